"""Sets of characters: ranges of code points, and the automata of their UTF-8.

A set is a sorted list or tuple of ranges ``(first, last)``, both inclusive, that neither overlap nor touch. Surrogates
have no UTF-8, so the set of all characters is without them, and whatever of them a set holds is left out of automata.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from .automaton import Automaton
from .errors import TrieautoError
from .nfa import Nfa, Part

Ranges = Sequence[tuple[int, int]]

LAST = 0x10FFFF
FIRST_SURROGATE, LAST_SURROGATE = 0xD800, 0xDFFF
ALL: Ranges = ((0, FIRST_SURROGATE - 1), (LAST_SURROGATE + 1, LAST))
ALL_BYTES: Ranges = ((0, 255),)

# Of the code points with 1 to 4 bytes: the last, and what their first byte adds to their highest bits.
_LENGTHS = ((0x7F, 0x00), (0x7FF, 0xC0), (0xFFFF, 0xE0), (LAST, 0xF0))
_BITS = 6  # in each byte after the first, which adds 0x80
_NO_BYTE_LEFT = 1  # the accepting state


def union(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The set of ranges in any order, which may overlap. O(R log R)."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def intersection(one: Ranges, other: Ranges) -> tuple[tuple[int, int], ...]:
    """What is in both sets. O(R)."""
    common = []
    i = j = 0
    while i < len(one) and j < len(other):
        first, last = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if first <= last:
            common.append((first, last))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return tuple(common)


def complement(ranges: Ranges, universe: Ranges = ALL) -> tuple[tuple[int, int], ...]:
    """What of ``universe`` is not in a set. O(R)."""
    begins = [0, *(last + 1 for _, last in ranges)]
    ends = [*(first - 1 for first, _ in ranges), LAST]
    return intersection([gap for gap in zip(begins, ends, strict=True) if gap[0] <= gap[1]], universe)


def part_of_ranges(nfa: Nfa, ranges: Ranges) -> Part:
    """One character of a set, in UTF-8; no string at all for an empty set. O(states), the automaton being cached.

    Raises:
        TrieautoError: the ranges are out of order, overlap, or go beyond U+10FFFF.
    """
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _part_of_one(nfa, ranges[0][0])
    automaton = utf8_automaton(tuple(ranges))
    return nfa.choice([]) if automaton is None else nfa.embed(automaton)


def _part_of_one(nfa: Nfa, code_point: int) -> Part:
    if FIRST_SURROGATE <= code_point <= LAST_SURROGATE:
        return nfa.choice([])
    return nfa.literal(chr(code_point).encode())


@lru_cache(maxsize=1024)
def utf8_automaton(ranges: tuple[tuple[int, int], ...]) -> Automaton | None:
    """The automaton of the characters of a set, each in its only UTF-8 form: minimal, one accepting state. None for an
    empty set, whose language no automaton has.

    O(R), some 60 states for a script, some 300 for all letters.

    Raises:
        TrieautoError: as ``part_of_ranges``.
    """
    for before, (first, last) in zip(((-1, -1), *ranges), ranges, strict=False):
        if not before[1] < first <= last <= LAST:
            raise TrieautoError(f"({first}, {last}) is no range of code points that can follow {before}")
    ranges = intersection(ranges, ALL)
    if not ranges:
        return None
    edges: list[list[tuple[int, int]]] = [[], []]  # of each state: byte, target
    numbers: dict[tuple[int, Ranges], int] = {}

    def state_of(count: int, rest: Ranges) -> int:
        """The state before the last ``count`` bytes of characters, whose bits there are in ``rest``."""
        if count == 0:
            return _NO_BYTE_LEFT
        number = numbers.get((count, rest))
        if number is None:
            number = numbers[count, rest] = len(edges)
            edges.append([])
            edges[number] = edges_by_high_bits(count, rest, 0x80)
        return number

    def edges_by_high_bits(count: int, rest: Ranges, base: int) -> list[tuple[int, int]]:
        shift = _BITS * (count - 1)
        mask = (1 << shift) - 1
        by_high_bits: dict[int, list[tuple[int, int]]] = {}
        for first, last in rest:
            for high in range(first >> shift, (last >> shift) + 1):
                low = (first & mask if high == first >> shift else 0, last & mask if high == last >> shift else mask)
                by_high_bits.setdefault(high, []).append(low)
        return [(base + high, state_of(count - 1, tuple(lows))) for high, lows in by_high_bits.items()]

    beginning = 0
    for count, (end, base) in enumerate(_LENGTHS, 1):
        edges[0] += edges_by_high_bits(count, intersection(ranges, ((beginning, end),)), base)
        beginning = end + 1
    flat = np.array([edge for of_state in edges for edge in of_state], np.int32)
    links = np.concatenate([[0], np.cumsum([len(of_state) for of_state in edges])]).astype(np.int32)
    accepting = np.zeros(len(edges), np.uint8)
    accepting[_NO_BYTE_LEFT] = 1
    labels, targets = flat[:, 0].astype(np.uint8), np.ascontiguousarray(flat[:, 1])
    return Automaton(labels, links, targets, accepting, 0)
