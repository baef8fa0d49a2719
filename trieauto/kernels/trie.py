"""The trie of sorted strings of bytes, or of token ids.

States are numbered in preorder (a state, then everything below its first child, then its second child, ...), so that
a chain of states lies side by side in memory, every edge leads to a larger number, and what lies below a state is one
range of states and one range of values. Two arrays hold all of it: the byte (or token id) that leads into each state
and one past the last state below it. See ``edges`` for how they are walked.
"""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .strings import BYTES


@helper
def _lay_out(data, offsets, order, shared):
    num_states = 1
    longest = 0
    for i in range(len(order)):
        if shared[i] >= 0:
            length = offsets[order[i] + 1] - offsets[order[i]]
            num_states += length - shared[i]
            longest = max(longest, length)
    labels = np.empty(num_states, data.dtype)
    accepting = np.zeros(num_states, np.uint8)
    subtree_ends = np.empty(num_states, np.int32)
    terminals = np.empty(len(order), np.int32)
    path = np.empty(longest + 1, np.int32)
    path[0] = labels[0] = 0
    depth = 0
    state = 0
    for i in range(len(order)):
        if shared[i] < 0:
            terminals[i] = terminals[i - 1]
            continue
        for d in range(shared[i] + 1, depth + 1):
            subtree_ends[path[d]] = state + 1
        begin = offsets[order[i]]
        depth = offsets[order[i] + 1] - begin
        for d in range(shared[i], depth):
            state += 1
            labels[state] = data[begin + d]
            path[d + 1] = state
        accepting[path[depth]] = 1
        terminals[i] = path[depth]
    for d in range(depth + 1):
        subtree_ends[path[d]] = state + 1
    subtree_ends[0] = state + 1
    return labels, subtree_ends, accepting, terminals


@kernel(f"Tuple((uint8[::1], int32[::1], uint8[::1], int32[::1]))({BYTES}, int64[::1], int32[::1], int64[::1])")
def build_trie(data, offsets, order, shared):
    """Lay out the trie of K strings given in sorted order.

    Args:
        data: uint8[B], offsets: int64[K' + 1]: the packed strings.
        order: int32[K], shared: int64[K]: their sorted order and common prefixes (see ``strings``); equal strings
            (``shared`` -1) end at the same state.

    Returns:
        labels uint8[N]: the byte that leads into each state (0 for the root, state 0);
        subtree_ends int32[N]: one past the last state below each state;
        accepting uint8[N];
        terminals int32[K]: the state at which each string, in sorted order, ends.
        O(B) time.
    """
    return _lay_out(data, offsets, order, shared)


@kernel("Tuple((int32[::1], int32[::1], uint8[::1], int32[::1]))(int32[::1], int64[::1], int32[::1], int64[::1])")
def build_trie_of_ids(ids, offsets, order, shared):
    """The same of sequences of token ids, int32, end to end; labels are int32[N] then."""
    return _lay_out(ids, offsets, order, shared)


@helper
def _edges(labels, subtree_ends):
    num_states = len(labels)
    links = np.zeros(num_states + 1, np.int32)
    edge_labels = np.empty(num_states - 1, labels.dtype)
    targets = np.empty(num_states - 1, np.int32)
    edge = 0
    for state in range(num_states):
        child = state + 1
        while child < subtree_ends[state]:
            edge_labels[edge], targets[edge] = labels[child], child
            edge += 1
            child = subtree_ends[child]
        links[state + 1] = edge
    return edge_labels, links, targets


@kernel("Tuple((uint8[::1], int32[::1], int32[::1]))(uint8[::1], int32[::1])")
def edges_of_trie(labels, subtree_ends):
    """The edge lists of a trie with the same states: labels uint8[N - 1], links int32[N + 1], targets int32[N - 1].
    O(N)."""
    return _edges(labels, subtree_ends)


@kernel("Tuple((int32[::1], int32[::1], int32[::1]))(int32[::1], int32[::1])")
def edges_of_trie_of_ids(labels, subtree_ends):
    """The same of a trie of token ids: labels are int32."""
    return _edges(labels, subtree_ends)


@kernel("int32[::1](int32[::1])")
def parents_of_trie(subtree_ends):
    """The parent of each state but the root: int32[N - 1]. O(N)."""
    parents = np.empty(len(subtree_ends) - 1, np.int32)
    parent = 0
    for state in range(1, len(subtree_ends)):
        while state >= subtree_ends[parent]:
            parent = parents[parent - 1]
        parents[state - 1] = parent
        parent = state
    return parents
