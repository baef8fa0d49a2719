"""The mask of a state in which nearly every token is legal: one scan over the token trie laid out in preorder.

The double array of ``token_trie`` finds a child by its byte at once, but each lookup is somewhere else in memory. Where
most of the trie is visited anyway, reading it from front to back is many times faster.
"""

from __future__ import annotations

import numpy as np

from .edges import edge_target, first_edge, last_edge, next_edge
from .jit import helper, kernel
from .token_trie import BASE, CHECK, FIRST, FIRST_CHILD, LAST, NEXT_SIBLING
from .walk import ANY_DISTANCE, AUTOMATON, DISTANCES, is_within

_ROWS = 128

PREORDER = "uint8[::1], int32[::1], int32[::1], int32[::1]"


@kernel(f"Tuple(({PREORDER}))(int32[:, ::1], uint8[:, ::1], int64)")
def preorder_of(nodes, siblings, max_token_length):
    """A token trie in preorder, without its root.

    Returns, for each of M nodes: labels uint8[M], the byte that leads into it; depths int32[M], how many bytes lead to
    it; subtree_ends int32[M], one past the last node below it; token_ends int32[M], one past the last of its tokens in
    ``token_ids`` (which begin where those of the node before it end). O(S).
    """
    num_nodes = 0
    for slot in range(1, len(nodes)):
        if nodes[slot, CHECK] >= 0:
            num_nodes += 1
    labels = np.empty(num_nodes, np.uint8)
    depths = np.empty(num_nodes, np.int32)
    subtree_ends = np.empty(num_nodes, np.int32)
    token_ends = np.empty(num_nodes, np.int32)
    path = np.empty(max_token_length + 1, np.int32)  # the slot at each depth
    places = np.empty(max_token_length + 1, np.int32)  # and its node
    path[0] = 0
    depth = 0
    node = 0
    label = np.int64(siblings[0, FIRST_CHILD])
    while num_nodes > 0:
        slot = np.int64(nodes[path[depth], BASE] + label)
        depth += 1
        path[depth], places[depth] = slot, node
        labels[node], depths[node] = label, depth
        before = token_ends[node - 1] if node > 0 else 0
        token_ends[node] = nodes[slot, LAST] if nodes[slot, LAST] > nodes[slot, FIRST] else before
        node += 1
        if nodes[slot, BASE] != 0:
            label = np.int64(siblings[slot, FIRST_CHILD])
            continue
        while depth > 0:
            subtree_ends[places[depth]] = node
            label = np.int64(siblings[path[depth], NEXT_SIBLING])
            depth -= 1
            if label != 0:
                break
        if depth == 0 and label == 0:
            break
    return labels, depths, subtree_ends, token_ends


@helper
def _expand(labels, links, targets, state, row):
    """Where each byte leads from ``state``, or -1: int32[256]."""
    row[:] = -1
    edge, stop = first_edge(links, targets, state), last_edge(links, targets, state)
    while edge < stop:
        row[labels[edge]] = edge_target(targets, edge)
        edge = next_edge(links, targets, edge)


@kernel(f"Tuple((int32[::1], int32[::1]))({AUTOMATON}, {DISTANCES}, {PREORDER}, int32[::1], int64, int64)")
def scan_tokens(
    labels, links, targets, distances,
    token_labels, depths, subtree_ends, token_ends, token_ids, max_token_length, state,
):  # fmt: skip
    """As ``walk.state_tokens``: the tokens legal in a state without a budget, in the order of their bytes, and where
    each leads: int32."""
    path = np.empty(max_token_length + 1, np.int32)  # the automaton's state at each depth
    path[0] = state
    # States with all 256 bytes laid out, so that a step is one look: the last one for each remainder.
    rows = np.empty((_ROWS, 256), np.int32)
    states = np.full(_ROWS, np.int32(-1), np.int32)
    tokens = np.empty(len(token_ids), np.int32)
    ends = np.empty(len(token_ids), np.int32)
    count = 0
    node = np.int64(0)
    while node < len(token_labels):
        depth = depths[node]
        source = path[depth - 1]
        row = source & (_ROWS - 1)
        if states[row] != source:
            _expand(labels, links, targets, source, rows[row])
            states[row] = source
        target = rows[row, token_labels[node]]
        if target < 0:
            node = np.int64(subtree_ends[node])
            continue
        path[depth] = target
        first, last = np.int64(token_ends[node - 1]) if node > 0 else np.int64(0), np.int64(token_ends[node])
        if last > first and is_within(distances, ANY_DISTANCE, target):
            for k in range(first, last):
                tokens[count] = token_ids[k]
                ends[count] = target
                count += 1
        node += 1
    return tokens[:count].copy(), ends[:count].copy()
