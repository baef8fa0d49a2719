"""Tokens that are plain text, found once for a vocabulary, and states after which any plain text may follow."""

from __future__ import annotations

import numpy as np

from .edges import find_edge
from .jit import kernel
from .strings import BYTES
from .walk import AUTOMATON


@kernel(f"int32[::1]({AUTOMATON}, {BYTES}, int64[::1])")
def ends_of_strings(labels, links, targets, data, offsets):
    """Where strings lead from state 0 of edge lists: int32[K]; -1 for those that lead nowhere or are empty. O(B)."""
    row = np.full((len(links) - 1, 256), np.int32(-1), np.int32)
    for state in range(len(links) - 1):
        for edge in range(links[state], links[state + 1]):
            row[state, labels[edge]] = targets[edge]
    ends = np.empty(len(offsets) - 1, np.int32)
    for k in range(len(ends)):
        state = np.int32(0 if offsets[k + 1] > offsets[k] else -1)
        for position in range(offsets[k], offsets[k + 1]):
            state = row[state, data[position]]
            if state < 0:
                break
        ends[k] = state
    return ends


@kernel(f"int32[::1]({AUTOMATON}, {AUTOMATON}, int64)")
def embedding(labels, links, targets, part_labels, part_links, part_targets, state):
    """The state of an automaton for each state of a part, if the part's state 0 is ``state`` and each of its edges
    leads where it should: int32[P]. Empty if it is not so: then not all strings of the part lead on from ``state``, or
    some that should meet again do not. Both are edge lists. O(edges of the part)."""
    num_states = len(part_links) - 1
    images = np.full(num_states, np.int32(-1), np.int32)
    images[0] = state
    waiting = np.empty(num_states, np.int32)
    waiting[0] = 0
    num_waiting = 1
    while num_waiting > 0:
        num_waiting -= 1
        at = waiting[num_waiting]
        for edge in range(part_links[at], part_links[at + 1]):
            found = find_edge(labels, links, np.int64(images[at]), np.int64(part_labels[edge]))
            if found < 0:
                return images[:0].copy()
            end, target = part_targets[edge], targets[found]
            if images[end] < 0:
                images[end] = target
                waiting[num_waiting] = end
                num_waiting += 1
            elif images[end] != target:
                return images[:0].copy()
    return images
