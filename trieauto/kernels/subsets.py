"""A part of a set over the whole set's trie: which states lead to what is left of it, and how far it is from there."""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .walk import (
    ANY_DISTANCE,
    AUTOMATON,
    TOKEN_TRIE,
    UNLIMITED,
    UNREACHABLE,
    collect_in_edge_lists,
    collect_in_trie,
    enlarged,
    new_stack,
)


@kernel("Tuple((uint8[::1], int32[::1]))(int32[::1], int32[::1])")
def part_of_trie(subtree_ends, terminals):
    """Where strings of the part end (uint8[N], 1), and which states lead to one (int32[N], 0; else ``UNREACHABLE``).

    ``terminals``: int32[K], where the part's strings end, ascending. O(N).
    """
    num_states = len(subtree_ends)
    accepting = np.zeros(num_states, np.uint8)
    alive = np.empty(num_states, np.int32)
    place = len(terminals) - 1
    following = np.int32(UNREACHABLE)  # the first end at or after the state
    for state in range(num_states - 1, -1, -1):
        if place >= 0 and terminals[place] == state:
            accepting[state] = 1
            following = terminals[place]
            while place >= 0 and terminals[place] == state:
                place -= 1
        alive[state] = 0 if following < subtree_ends[state] else UNREACHABLE
    return accepting, alive


@kernel(f"int32[::1]({AUTOMATON}, {TOKEN_TRIE}, int64, int32[::1], uint8[::1], uint8[::1], int32[::1], int64)")
def distances_of_part(
    labels, links, targets, nodes, siblings, token_ids, max_token_length,
    subtree_ends, accepting, accepting_of_all, distances_of_all, start,
):  # fmt: skip
    """The fewest tokens from each state to the end of a string of the part: int32[N].

    A state below which nothing is left is as good as dead, and one below which nothing is missing keeps its distance:
    one walk from each of the others, from last to first. (``start`` is the last state, behind those of the trie, where
    there is a prefix space, else 0.)
    """
    num_trie = len(subtree_ends)
    stack = new_stack(max_token_length)
    everywhere = np.empty(0, np.int32)
    tokens = np.empty(256, np.int32)
    ends = np.empty(256, np.int32)
    distances = np.full(len(accepting), np.int32(UNREACHABLE), np.int32)
    left = missing = np.int64(UNREACHABLE)  # the first end at or after the state that is, or is not, in the part
    for turn in range(len(accepting)):
        state = np.int64(num_trie - 1 - turn) if turn < num_trie else np.int64(start)
        if turn < num_trie:
            if accepting[state]:
                left = state
            elif accepting_of_all[state]:
                missing = state
            if left >= subtree_ends[state]:
                continue
            if missing >= subtree_ends[state]:
                distances[state] = distances_of_all[state]
                continue
        if accepting[state]:
            distances[state] = 0
            continue
        while True:
            if len(targets) == 0:
                count = collect_in_trie(
                    labels, links, everywhere, ANY_DISTANCE, nodes, token_ids,
                    state, stack, tokens, ends, np.int64(0), UNLIMITED,
                )  # fmt: skip
            else:
                count = collect_in_edge_lists(
                    labels, links, targets, everywhere, ANY_DISTANCE, nodes, siblings, token_ids,
                    state, stack, tokens, ends, np.int64(0), UNLIMITED,
                )  # fmt: skip
            if count >= 0:
                break
            tokens, ends = enlarged(tokens, 0), enlarged(ends, 0)
        nearest = np.int32(UNREACHABLE)
        for k in range(count):
            nearest = min(nearest, distances[ends[k]])
        if nearest < UNREACHABLE:
            distances[state] = nearest + 1
    return distances
