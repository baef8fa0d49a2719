"""Byte-pair encoding as it is defined: the best-ranked pair is merged, leftmost first, until none is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise


def merged(symbols: Sequence[int], merges: Mapping[tuple[int, int], tuple[int, int]]) -> list[int]:
    """The tokens that a sequence of symbols becomes.

    Args:
        merges: of a pair of symbols, the rank and what they become.
    """
    now = list(symbols)
    while True:
        ranked = [(merges[pair][0], place) for place, pair in enumerate(pairwise(now)) if pair in merges]
        if not ranked:
            return now
        _, place = min(ranked)
        now[place : place + 2] = [merges[now[place], now[place + 1]][1]]
