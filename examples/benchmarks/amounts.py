"""Figures as the page writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def duration(seconds: float) -> str:
    """Three digits, in the unit that fits: "65.1 ms"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= scale or unit == "ns":
            return f"{three_digits(seconds / scale)} {unit}"
    raise AssertionError


def three_digits(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def times(ratio: float) -> str:
    """As in "3.5×"."""
    return f"{three_digits(ratio)}×" if ratio < 10 else f"{ratio:,.0f}×"


def span(ratios: Sequence[float]) -> str:
    """As in "2.1× to 4.7×"; one number if they are the same."""
    low, high = times(min(ratios)), times(max(ratios))
    return low if low == high else f"{low} to {high}"


def faster(ours: float, theirs: float, name: str) -> str:
    """As in "3.5× faster than XGrammar", or slower; of seconds."""
    ratio = theirs / ours
    if 0.95 <= ratio <= 1.05:
        return f"as fast as {name}"
    return f"{times(ratio)} faster than {name}" if ratio > 1 else f"{times(1 / ratio)} slower than {name}"


def listed(figures: Mapping[str, str]) -> str:
    """As in "trieauto 1 ms, XGrammar 2 ms"."""
    return ", ".join(f"{name} {figure}" for name, figure in figures.items())


def percent(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") + " %"
