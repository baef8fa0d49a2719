"""The trie of a vocabulary as a double array: one comparison tells whether a token goes on with a byte.

A slot is ``nodes[slot] = (base, check, first, last)``: the child by byte b is slot ``base + b`` if that slot's
``check`` is this slot; ``token_ids[first:last]`` are the tokens that end here (several when they spell the same bytes).
Slot 0 is the root; ``base`` 0 means no children (no slot names a childless one as its parent).
``siblings[slot] = (first, next)`` are bytes that lead from child to child without trying all 256: that of the slot's
first child, if it has any, and that of its next sibling, 0 for none (bytes ascend, so no next one is 0).
"""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel

BASE, CHECK, FIRST, LAST = 0, 1, 2, 3
FIRST_CHILD, NEXT_SIBLING = 0, 1


@helper
def _next_free(free, position):
    """The first free slot at or after ``position``; ``free[i] == i`` where i is free, else a link towards it."""
    root = position
    while free[root] != root:
        root = free[root]
    while free[position] != root:
        following = free[position]
        free[position] = root
        position = following
    return root


@kernel("Tuple((int32[:, ::1], uint8[:, ::1]))(uint8[::1], int32[::1], int32[::1], int32[::1])")
def build_double_array(labels, subtree_ends, token_first, token_last):
    """Place the nodes of a trie (as laid out by ``trie``) in a double array.

    ``token_first``, ``token_last`` int32[N]: the range of token ids at each node. Returns nodes int32[S, 4] and
    siblings uint8[S, 2].
    Nodes with many children are placed first, while there is room; single children then fill the holes.
    """
    num_nodes = len(labels)
    degrees = np.zeros(num_nodes, np.int32)
    places = np.zeros(258, np.int64)
    for node in range(num_nodes):
        child = node + 1
        while child < subtree_ends[node]:
            degrees[node] += 1
            child = subtree_ends[child]
        places[256 - degrees[node] + 1] += 1
    for rank in range(257):
        places[rank + 1] += places[rank]
    by_degree = np.empty(num_nodes, np.int32)
    for node in range(num_nodes):
        rank = 256 - degrees[node]
        by_degree[places[rank]] = node
        places[rank] += 1

    capacity = 2 * num_nodes + 1024
    free = np.empty(capacity + 1, np.int32)
    for slot in range(capacity + 1):
        free[slot] = slot
    free[0] = 1  # the root's
    bases = np.zeros(num_nodes, np.int32)
    slots = np.zeros(num_nodes, np.int32)
    used = 1
    start = np.int64(1)
    last_degree = 0
    for node in by_degree:
        degree = degrees[node]
        if degree == 0:
            break
        if degree != last_degree and degree < 8:
            start = 1  # fewer children fit into holes that more did not
        last_degree = degree
        first = node + 1
        position = np.int64(_next_free(free, max(start, np.int64(labels[first]) + 1)))
        attempts = 0
        while True:
            base = position - labels[first]
            if base + 256 >= capacity:
                larger = np.empty(2 * capacity + 1, np.int32)
                for slot in range(2 * capacity + 1):
                    larger[slot] = free[slot] if slot <= capacity else slot
                free = larger
                capacity *= 2
            child = np.int64(subtree_ends[first])
            while child < subtree_ends[node] and free[base + labels[child]] == base + labels[child]:
                child = np.int64(subtree_ends[child])
            if child >= subtree_ends[node]:
                break
            attempts += 1
            position = np.int64(_next_free(free, position + 1))
        if degree == 1:
            start = position  # single children go from hole to hole
        elif attempts > 16:
            start = max(start, position - 256)  # what lies before is too crowded for this many children
        bases[node] = base
        child = np.int64(first)
        while child < subtree_ends[node]:
            slot = base + labels[child]
            slots[child] = slot
            free[slot] = slot + 1
            used = max(used, slot + 1)
            child = np.int64(subtree_ends[child])

    nodes = np.zeros((used + 256, 4), np.int32)
    for slot in range(used + 256):
        nodes[slot, CHECK] = -1
    siblings = np.zeros((used + 256, 2), np.uint8)
    for node in range(num_nodes):
        slot = slots[node]
        nodes[slot, BASE] = bases[node]
        nodes[slot, FIRST] = token_first[node]
        nodes[slot, LAST] = token_last[node]
        child = np.int64(node + 1)
        if child < subtree_ends[node]:
            siblings[slot, FIRST_CHILD] = labels[child]
        while child < subtree_ends[node]:
            nodes[slots[child], CHECK] = slot
            following = np.int64(subtree_ends[child])
            if following < subtree_ends[node]:
                siblings[slots[child], NEXT_SIBLING] = labels[following]
            child = following
    return nodes, siblings


@kernel("int32[::1](int32[:, ::1])")
def heights_of(nodes):
    """How many more bytes the longest token below each slot has: int32[S]. O(S) or little more."""
    heights = np.zeros(len(nodes), np.int32)
    for slot in range(1, len(nodes)):
        height = 0
        at = np.int64(slot)
        while nodes[at, CHECK] >= 0:
            height += 1
            at = np.int64(nodes[at, CHECK])
            if heights[at] >= height:
                break
            heights[at] = height
    return heights
