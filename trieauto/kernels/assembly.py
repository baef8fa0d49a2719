"""The parts of an automaton in the making, brought into one order."""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel(
    "Tuple((int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1], boolean))"
    "(int64, int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1],"
    " int64, int64)"
)
def assembled(num_states, sources, labels, targets, jump_sources, jump_targets, entries, exits, roots, start, goal):
    """Edges and jumps by source, without those to a state that cannot reach the goal. O(states + edges + jumps).

    Args:
        sources, labels, targets: the edges; a state's labels ascend.
        jump_sources, jump_targets: where one may go without a byte.
        entries, exits, roots: int32[T]: between two states there is a trie, whose root is a state from ``num_states``
            on.
        start, goal: states.

    Returns:
        links int32[N + 1], labels, targets; jump_links int32[N + 1], jump_targets, those to roots too; whether the
        start can reach the goal. The edges of a state stay in the order in which they were given.
    """
    num_edges, num_jumps, num_tries = len(sources), len(jump_sources), len(entries)
    head = np.full(num_states, np.int32(-1), np.int32)
    following = np.empty(num_edges + num_jumps + num_tries, np.int32)
    for k in range(num_edges):
        following[k] = head[targets[k]]
        head[targets[k]] = k
    for k in range(num_jumps):
        following[num_edges + k] = head[jump_targets[k]]
        head[jump_targets[k]] = num_edges + k
    for k in range(num_tries):
        following[num_edges + num_jumps + k] = head[exits[k]]
        head[exits[k]] = num_edges + num_jumps + k
    is_live = np.zeros(num_states, np.uint8)
    is_live[goal] = 1
    queue = np.empty(num_states, np.int32)
    queue[0] = goal
    filled = 1
    position = 0
    while position < filled:
        link = head[queue[position]]
        position += 1
        while link >= 0:
            if link < num_edges:
                source = sources[link]
            elif link < num_edges + num_jumps:
                source = jump_sources[link - num_edges]
            else:
                source = entries[link - num_edges - num_jumps]
            if is_live[source] == 0:
                is_live[source] = 1
                queue[filled] = source
                filled += 1
            link = following[link]

    links = np.zeros(num_states + 1, np.int32)
    jump_links = np.zeros(num_states + 1, np.int32)
    for k in range(num_edges):
        links[sources[k] + 1] += is_live[targets[k]]
    for k in range(num_jumps):
        jump_links[jump_sources[k] + 1] += is_live[jump_targets[k]]
    for k in range(num_tries):
        jump_links[entries[k] + 1] += is_live[exits[k]]
    for state in range(num_states):
        links[state + 1] += links[state]
        jump_links[state + 1] += jump_links[state]
    places = links[:num_states].copy()
    kept_labels = np.empty(links[num_states], np.uint8)
    kept_targets = np.empty(links[num_states], np.int32)
    for k in range(num_edges):
        if is_live[targets[k]]:
            place = places[sources[k]]
            places[sources[k]] = place + 1
            kept_labels[place] = labels[k]
            kept_targets[place] = targets[k]
    places = jump_links[:num_states].copy()
    kept_jumps = np.empty(jump_links[num_states], np.int32)
    for k in range(num_jumps):
        if is_live[jump_targets[k]]:
            kept_jumps[places[jump_sources[k]]] = jump_targets[k]
            places[jump_sources[k]] += 1
    for k in range(num_tries):
        if is_live[exits[k]]:
            kept_jumps[places[entries[k]]] = roots[k]
            places[entries[k]] += 1
    return links, kept_labels, kept_targets, jump_links, kept_jumps, is_live[start] == 1


@kernel("Tuple((int32[::1], int32[::1], int32[::1]))(int32[::1], int32[::1], uint8[::1], int64)")
def shifted(links, targets, accepting, first):
    """An automaton among others, with its states from ``first`` on: the source and the target of each edge, and its
    accepting states. O(N + E)."""
    num_states = len(accepting)
    sources = np.empty(links[num_states], np.int32)
    shifted_targets = np.empty(links[num_states], np.int32)
    num_accepting = 0
    for state in range(num_states):
        num_accepting += accepting[state]
        for edge in range(links[state], links[state + 1]):
            sources[edge] = first + state
            shifted_targets[edge] = first + targets[edge]
    ends = np.empty(num_accepting, np.int32)
    num_accepting = 0
    for state in range(num_states):
        if accepting[state]:
            ends[num_accepting] = first + state
            num_accepting += 1
    return sources, shifted_targets, ends
