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
def step(labels, links, targets, state, byte):
    """The state that ``byte`` leads to from ``state``, or -1. O(edges of the state)."""
    edge, stop = first_edge(links, targets, state), last_edge(links, targets, state)
    while edge < stop:
        if labels[edge] >= byte:
            return edge_target(targets, edge) if labels[edge] == byte else -1
        edge = next_edge(links, targets, edge)
    return -1
