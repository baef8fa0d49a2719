"""How many tokens the masks of a set have, by depth: the trie paper's Table 15."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..automaton import Automaton
from ..constraint import Constraint
from ..kernels.walk import all_tokens

SPAN = 2**16  # states at a time, so that the tokens themselves, which are not kept, take little memory


@dataclass(frozen=True)
class DepthRow:
    """The trie's nodes at depths ``first`` to ``last`` (in bytes from the root), and the tokens legal there.

    Stop tokens do not count.
    """

    first: int
    last: int
    mean: float
    maximum: int
    nodes: int


def mask_sizes_by_depth(constraint: Constraint) -> list[DepthRow]:
    """One row for each depth of a set's trie, from all of its nodes: O(nodes + tokens).

    Depth counts the bytes of values. The start of a constraint with a prefix space is another state, not in the table.
    """
    values = constraint.automaton.values
    if values is None:
        raise TypeError("only sets have a trie")
    depths = node_depths(values.subtree_ends)
    sizes = _mask_sizes(constraint, len(depths))
    nodes = np.bincount(depths)
    sums = np.bincount(depths, sizes)
    maxima = np.zeros(len(nodes), np.int64)
    np.maximum.at(maxima, depths, sizes)
    rows = zip(sums.tolist(), maxima.tolist(), nodes.tolist(), strict=True)
    return [DepthRow(depth, depth, total / count, most, count) for depth, (total, most, count) in enumerate(rows)]


def grouped(rows: list[DepthRow], single: int = 16) -> list[DepthRow]:
    """The first ``single`` rows, and the others in groups, each twice as long as the one before. No row is lost."""
    groups = rows[:single]
    start, length = single, 8
    while start < len(rows):
        part = rows[start : start + length]
        nodes = sum(row.nodes for row in part)
        mean = sum(row.mean * row.nodes for row in part) / nodes
        groups.append(DepthRow(part[0].first, part[-1].last, mean, max(row.maximum for row in part), nodes))
        start, length = start + length, 2 * length
    return groups


def node_depths(subtree_ends: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The depth of every node of a trie in depth-first order: how many earlier nodes' subtrees have not ended."""
    num_nodes = len(subtree_ends)
    ended = np.cumsum(np.bincount(subtree_ends, minlength=num_nodes + 1)[:num_nodes])
    return np.arange(num_nodes) - ended


def _mask_sizes(constraint: Constraint, num_nodes: int) -> npt.NDArray[np.int64]:
    automaton = constraint.automaton
    assert isinstance(automaton, Automaton)
    parts = [
        all_tokens(
            *automaton.arrays, constraint.dead_ends, *constraint.vocabulary.tables.trie,
            begin, min(begin + SPAN, num_nodes), np.iinfo(np.int64).max,
        )[0]
        for begin in range(0, num_nodes, SPAN)
    ]  # fmt: skip
    return np.concatenate(parts)
