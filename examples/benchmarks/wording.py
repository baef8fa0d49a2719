"""Figures in words, for the claims of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from measure import Timing


def duration(seconds: float) -> str:
    """``1.23 ms``."""
    return str(Timing.of([seconds]))


def durations(seconds: Iterable[float]) -> str:
    """From the shortest to the longest."""
    values = sorted(seconds)
    return _spread(duration(values[0]), duration(values[-1]))


def times(ratios: Iterable[float]) -> str:
    """From the smallest to the largest: ``1.2-6.4×``."""
    low, *_, high = sorted([*ratios] * 2)
    return _spread(_ratio(low), _ratio(high)) + "×"


def as_figures(timings: Mapping[str, Timing]) -> dict[str, dict[str, Any]]:
    """For ``Results.figures``: seconds."""
    return {name: asdict(timing) for name, timing in timings.items()}


def _ratio(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"


def _spread(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}" if " " in low else f"{low}-{high}"
