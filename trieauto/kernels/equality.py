"""Which states of an automaton are alike: for as many bytes as one looks ahead, or for ever."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .walk import AUTOMATON


@helper
def _runs(labels, links, targets):
    """Edges with neighbouring bytes and the same target, put together: where each state's runs are, the first and the
    last byte of each, and its target. (A class of characters has few runs of many bytes.)"""
    num_states = len(links) - 1
    run_links = np.zeros(num_states + 1, np.int32)
    firsts = np.empty(links[num_states], np.uint8)
    lasts = np.empty(links[num_states], np.uint8)
    run_targets = np.empty(links[num_states], np.int32)
    count = 0
    for state in range(num_states):
        begin = count
        for edge in range(links[state], links[state + 1]):
            if count > begin and run_targets[count - 1] == targets[edge] and lasts[count - 1] + 1 == labels[edge]:
                lasts[count - 1] = labels[edge]
            else:
                firsts[count] = lasts[count] = labels[edge]
                run_targets[count] = targets[edge]
                count += 1
        run_links[state + 1] = count
    return run_links, firsts[:count].copy(), lasts[:count].copy(), run_targets[:count].copy()


@helper
def _joined_run(run, end, firsts, lasts, run_targets, classes):
    """The last byte of a run and of those right after it that lead to the same class, and the next run."""
    last = lasts[run]
    target_class = classes[run_targets[run]]
    run += 1
    while run < end and firsts[run] == last + 1 and classes[run_targets[run]] == target_class:
        last = lasts[run]
        run += 1
    return last, run


@kernel(f"Tuple((int32[::1], boolean))({AUTOMATON}, int32[::1], int64)")
def alike(labels, links, targets, kinds, rounds):
    """For each state the first one like it: int32[N]; and whether that would be the same after any more rounds.

    States are alike if the same strings of up to ``rounds`` bytes lead on from them, past states of equal ``kinds``
    (int32[N]) at every step. Only for edge lists. Partition refinement, each round O(runs of edges).
    """
    num_states = len(links) - 1
    run_links, firsts, lasts, run_targets = _runs(labels, links, targets)
    capacity = np.int64(16)
    while capacity < 2 * num_states:
        capacity *= 2
    table = np.empty(capacity, np.int32)
    before = kinds.copy()  # of each state, something that is equal for those that are alike so far
    after = np.empty(num_states, np.int32)
    num_classes = -1
    for turn in range(rounds + 1):
        for place in range(capacity):
            table[place] = -1
        found = 0
        for state in range(num_states):
            value = np.uint64(before[state]) * np.uint64(0x9E3779B97F4A7C15)
            begin, end = run_links[state], run_links[state + 1]
            if turn > 0:  # the first turn only tells kinds apart
                run = np.int64(begin)
                while run < end:
                    item = np.uint64(before[run_targets[run]]) << np.uint64(16) | np.uint64(firsts[run]) << np.uint64(8)
                    last, run = _joined_run(run, end, firsts, lasts, run_targets, before)
                    item |= np.uint64(last)
                    value = (value ^ item) * np.uint64(0x9E3779B97F4A7C15)
                    value ^= value >> np.uint64(31)
            place = np.int64(value >> np.uint64(20)) & (capacity - 1)
            while True:
                other = table[place]
                if other < 0:
                    table[place] = state
                    after[state] = state
                    found += 1
                    break
                same = before[other] == before[state]
                if same and turn > 0:
                    one, two = np.int64(begin), np.int64(run_links[other])
                    end_other = np.int64(run_links[other + 1])
                    while same and one < end and two < end_other:
                        same = firsts[one] == firsts[two] and before[run_targets[one]] == before[run_targets[two]]
                        last, one = _joined_run(one, end, firsts, lasts, run_targets, before)
                        last_other, two = _joined_run(two, end_other, firsts, lasts, run_targets, before)
                        same = same and last == last_other
                    same = same and one == end and two == end_other
                if same:
                    after[state] = other
                    break
                place = (place + 1) & (capacity - 1)
        before, after = after, before
        if found == num_classes:
            return before, True
        num_classes = found
    return before, False
