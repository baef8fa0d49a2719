"""Figures in words, as lines, claims and plots have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from measure import Timing, three_digits


def duration(seconds: float) -> str:
    """Three digits, in the unit that fits: "65.1 ms"."""
    return str(Timing.of([seconds]))


def times(ratio: float) -> str:
    """As in "3.5×", "1,234×"."""
    return f"{three_digits(ratio)}×"


def percent(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") + " %"


def span(numbers: Iterable[float], say: Callable[[float], str] = times) -> str:
    """From the smallest to the largest, as in "2.1× to 4.7×"; one if they read the same."""
    values = sorted(numbers)
    low, high = say(values[0]), say(values[-1])
    return low if low == high else f"{low} to {high}"


def durations(seconds: Iterable[float]) -> str:
    """From the shortest to the longest."""
    return span(seconds, duration)


def faster(ours: float, theirs: float, name: str) -> str:
    """As in "3.5× faster than XGrammar", or slower; of seconds."""
    ratio = theirs / ours
    if 0.95 <= ratio <= 1.05:
        return f"as fast as {name}"
    return f"{times(ratio)} faster than {name}" if ratio > 1 else f"{times(1 / ratio)} slower than {name}"


def listed(figures: Mapping[str, str]) -> str:
    """As in "trieauto 1 ms, XGrammar 2 ms"."""
    return ", ".join(f"{name} {figure}" for name, figure in figures.items())


def as_figures(timings: Mapping[str, Timing]) -> dict[str, dict[str, Any]]:
    """For ``Results.figures``: seconds."""
    return {name: asdict(timing) for name, timing in timings.items()}
