"""Where tokens lead, from every state that tokens reach: the automaton over bytes turned into one over tokens."""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .walk import (
    ANY_DISTANCE,
    AUTOMATON,
    DISTANCES,
    TOKEN_TRIE,
    UNLIMITED,
    collect_in_edge_lists,
    collect_in_trie,
    enlarged,
    new_stack,
)


@kernel(
    f"Tuple((int32[::1], int64[::1], int32[::1], int32[::1]))"
    f"({AUTOMATON}, {DISTANCES}, {TOKEN_TRIE}, int64, int64, int64, int64)"
)
def transitions_from(
    labels, links, targets, distances, nodes, siblings, token_ids, max_token_length, start, num_states, max_entries
):
    """The legal tokens, without a budget, of all states that sequences of legal tokens from ``start`` on lead to.

    Returns, numbering those S states anew, breadth first from ``start``: states int32[S], the automaton's numbers;
    counts int64[S], how many tokens are legal in each; tokens int32[E], state after state and in the order of their
    bytes; ends int32[E], the new number of the state to which each leads. The search ends once there are more than
    ``max_entries`` tokens, and returns what it has: then E is larger than that.
    """
    stack = new_stack(max_token_length)
    numbers = np.full(num_states, np.int32(-1), np.int32)
    states = np.empty(num_states, np.int32)
    counts = np.empty(num_states, np.int64)
    tokens = np.empty(1024, np.int32)
    ends = np.empty(1024, np.int32)
    numbers[start] = 0
    states[0] = start
    found = 1
    done = 0
    position = np.int64(0)
    while done < found and position <= max_entries:
        state = np.int64(states[done])
        while True:
            if len(targets) == 0:
                after = collect_in_trie(
                    labels, links, distances, ANY_DISTANCE, nodes, token_ids,
                    state, stack, tokens, ends, position, UNLIMITED,
                )  # fmt: skip
            else:
                after = collect_in_edge_lists(
                    labels, links, targets, distances, ANY_DISTANCE, nodes, siblings, token_ids,
                    state, stack, tokens, ends, position, UNLIMITED,
                )  # fmt: skip
            if after >= 0:
                break
            tokens, ends = enlarged(tokens, position), enlarged(ends, position)
        for k in range(position, after):
            end = ends[k]
            if numbers[end] < 0:
                numbers[end] = found
                states[found] = end
                found += 1
            ends[k] = numbers[end]
        counts[done] = after - position
        position = after
        done += 1
    return states[:found].copy(), counts[:done].copy(), tokens[:position].copy(), ends[:position].copy()
