"""What claims are computed with: verdicts, and where two lines cross."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from results import Verdict

Line = Mapping[int, float]
"""A cost by the size of a set."""


def judged(holds: bool, in_part: bool = False) -> Verdict:
    """The verdict on a claim that was found to hold, or at least in part."""
    return "holds" if holds else "in part" if in_part else "does not hold"


def crossovers(one: Line, other: Line) -> list[float]:
    """The sizes at which two lines cross, read between the sizes that both have, on logarithmic axes."""
    shared = sorted(one.keys() & other.keys())
    found = []
    for low, high in pairwise(shared):
        before = math.log(one[low] / other[low])
        after = math.log(one[high] / other[high])
        if before * after < 0:
            share = before / (before - after)
            found.append(math.exp(math.log(low) + share * math.log(high / low)))
    return found


def cost_at(line: Line, count: float) -> float:
    """The cost of a set between two that were measured, read as in ``crossovers``."""
    low, high = next((low, high) for low, high in pairwise(sorted(line)) if low <= count <= high)
    share = math.log(count / low) / math.log(high / low)
    return math.exp((1 - share) * math.log(line[low]) + share * math.log(line[high]))


def said_crossings(found: list[float]) -> str:
    """``"at K≈1,200"``, ``"nowhere"``."""
    return "at " + " and ".join(f"K≈{round_2(count):,}" for count in found) if found else "nowhere"


def round_2(count: float) -> int:
    """To two digits: what is read between two points is no more exact."""
    return int(round(count, 1 - math.floor(math.log10(count))))


def largest_within(line: Line, seconds: float) -> tuple[float, bool]:
    """The largest set that costs no more, read between or beyond points as above; and whether it is only a lower bound,
    because the largest set measured costs less."""
    shared = sorted(line)
    if line[shared[-1]] <= seconds:
        return shared[-1], True
    for low, high in reversed(list(pairwise(shared))):
        if line[low] <= seconds < line[high]:
            share = math.log(seconds / line[low]) / math.log(line[high] / line[low])
            return math.exp(math.log(low) + share * math.log(high / low)), False
    return 0.0, False
