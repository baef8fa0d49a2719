"""One way to go over the edges of a state, for the two layouts of an automaton.

- A trie (``targets`` is empty): an edge is the state it leads to. ``links[s]`` is one past the last state below s, so
  the first child of s is ``s + 1`` and the next sibling of a child c is ``links[c]``.
- Any other automaton: edges e of state s are ``links[s] .. links[s + 1]`` and lead to ``targets[e]``.

Either way ``labels[e]`` is the byte, labels ascend, and the loop is::

    edge, stop = first_edge(links, targets, s), last_edge(links, targets, s)
    while edge < stop:
        ...
        edge = next_edge(links, targets, edge)
"""

from __future__ import annotations

import numpy as np

from .jit import helper


@helper
def first_edge(links, targets, state):
    return links[state] if len(targets) > 0 else state + 1


@helper
def last_edge(links, targets, state):
    return links[state + 1] if len(targets) > 0 else links[state]


@helper
def next_edge(links, targets, edge):
    return edge + 1 if len(targets) > 0 else links[edge]


@helper
def edge_target(targets, edge):
    return targets[edge] if len(targets) > 0 else edge


@helper
def find_edge(labels, links, state, label):
    """The edge of ``state`` with this label, or -1, in edge lists. O(log of how many labels are missing in between).

    Labels ascend and differ, so an edge is at most as far from the state's first and last as its label is from theirs;
    and where few labels are missing, it is close to that.
    """
    low, high = np.int64(links[state]), np.int64(links[state + 1]) - 1
    if low > high:
        return np.int64(-1)
    lowest, highest = np.int64(labels[low]), np.int64(labels[high])
    if label < lowest or label > highest:
        return np.int64(-1)
    last = high
    high = min(high, low + label - lowest)
    low = max(low, last - (highest - label))
    reach = np.int64(1)
    while high - reach > low and np.int64(labels[high - reach]) >= label:
        high -= reach
        reach *= 2
    low = max(low, high - reach)
    while low < high:
        middle = (low + high) >> 1
        if np.int64(labels[middle]) < label:
            low = middle + 1
        else:
            high = middle
    return low if np.int64(labels[low]) == label else np.int64(-1)


@helper
def step(labels, links, targets, state, byte):
    """The state that ``byte`` leads to from ``state``, or -1. O(children) in a trie."""
    if len(targets) > 0:
        edge = find_edge(labels, links, state, np.int64(byte))
        return np.int64(targets[edge]) if edge >= 0 else np.int64(-1)
    edge, stop = np.int64(state + 1), np.int64(links[state])
    while edge < stop:
        if labels[edge] >= byte:
            return edge if labels[edge] == byte else np.int64(-1)
        edge = np.int64(links[edge])
    return np.int64(-1)
