"""From an automaton with several ways for one string to the deterministic one of the same language.

The subset construction, which costs next to nothing where there is only one way anyway: in the trie of a set, most
subsets are single states, and those are looked up in an array.
"""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel


@helper
def _close(seeds, num_seeds, jump_links, jump_targets, matters, marks, stack, members):
    """What ``seeds`` reach by jumps, themselves included: those that matter go to ``members``, ascending; how many."""
    top = 0
    count = 0
    for k in range(num_seeds):
        if marks[seeds[k]] == 0:
            marks[seeds[k]] = 1
            stack[top] = seeds[k]
            top += 1
    visited = top
    position = 0
    # ``stack`` is a queue here, so that the marks can be taken back afterwards.
    while position < visited:
        state = stack[position]
        position += 1
        if matters[state]:
            members[count] = state
            count += 1
        for jump in range(jump_links[state], jump_links[state + 1]):
            target = jump_targets[jump]
            if marks[target] == 0:
                marks[target] = 1
                stack[visited] = target
                visited += 1
    for k in range(visited):
        marks[stack[k]] = 0
    members[:count].sort()
    return count


@helper
def _hash(members, count):
    value = np.uint64(count)
    for k in range(count):
        value = (value ^ np.uint64(members[k])) * np.uint64(0x9E3779B97F4A7C15)
        value ^= value >> np.uint64(29)
    return np.int64(value & np.uint64(0x7FFFFFFFFFFFFFFF))


@helper
def _gather(links, labels, targets, members, counts, gathered, gathered_labels):
    """The edges of several states, sorted by label. ``counts``: int64[257], working space."""
    counts[:] = 0
    for k in range(len(members)):
        for edge in range(links[members[k]], links[members[k] + 1]):
            counts[np.int64(labels[edge]) + 1] += 1
    for label in range(256):
        counts[label + 1] += counts[label]
    for k in range(len(members)):
        for edge in range(links[members[k]], links[members[k] + 1]):
            place = counts[labels[edge]]
            gathered[place] = targets[edge]
            gathered_labels[place] = labels[edge]
            counts[labels[edge]] += 1


@kernel(
    "Tuple((int32[::1], uint8[::1], int32[::1], uint8[::1]))"
    "(int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1], uint8[::1], int64, int64, int64, int64)"
)
def determinise(links, labels, targets, jump_links, jump_targets, accepting, start, max_states, max_members, max_edges):
    """The subset construction.

    Args:
        links, labels, targets: the edges of state s are ``links[s] .. links[s + 1]``, labels ascend and may repeat.
        jump_links, jump_targets: where one may go without a byte, laid out the same way.
        accepting: uint8[N].
        max_states, max_members, max_edges: room for the result's states, for what they stand for together, and for its
            edges. Where it is too little, four empty arrays are returned. (Arrays that grow cost more than the work.)

    Returns:
        links int32[M + 1], labels uint8[E], targets int32[E], accepting uint8[M] of a deterministic automaton whose
        start is state 0 and all of whose states can be reached. A chain of states lies side by side.
        O(edges of the result) times the states that are there at once.
    """
    num_states = len(accepting)
    matters = accepting.copy()
    for state in range(num_states):
        if links[state + 1] > links[state]:
            matters[state] = 1
    marks = np.zeros(num_states, np.uint8)
    stack = np.empty(num_states, np.int32)
    members = np.empty(num_states, np.int32)
    after_one = np.full(num_states, np.int32(-2), np.int32)  # the result's state for what one target alone closes to

    alone = np.full(num_states, np.int32(-1), np.int32)  # its state for a set of this one state

    # Sets of several states are found by a hash table, open, with linear probing.
    num_sets = 0
    set_ends = np.empty(max_states, np.int64)  # of the result's states, in ``pool``
    pool = np.empty(max_members, np.int32)
    capacity = np.int64(1024)
    table = np.full(capacity, np.int32(-1), np.int32)
    hashes = np.empty(max_states, np.int64)
    count_states = np.int64(0)
    filled = np.int64(0)

    waiting = np.empty(max_states, np.int32)
    num_waiting = 0
    edge_begins = np.empty(max_states, np.int64)
    edge_counts = np.empty(max_states, np.int32)
    out_labels = np.empty(max_edges, np.uint8)
    out_targets = np.empty(max_edges, np.int32)
    num_edges = np.int64(0)
    is_accepting = np.empty(max_states, np.uint8)

    seeds = np.empty(num_states, np.int32)
    counts = np.empty(257, np.int64)
    gathered = np.empty(len(labels) + 1, np.int32)
    gathered_labels = np.empty(len(labels) + 1, np.uint8)

    current = np.int64(-1)  # -1: the start is yet to be made
    while True:
        # The targets of all edges of the current set, by label.
        if current < 0:
            total = np.int64(1)
            gathered[0] = start
            gathered_labels[0] = 0
        else:
            begin = set_ends[current - 1] if current > 0 else np.int64(0)
            end = set_ends[current]
            total = np.int64(0)
            for k in range(begin, end):
                total += links[pool[k] + 1] - links[pool[k]]
            if end - begin == 1:
                offset = links[pool[begin]]
                for k in range(total):
                    gathered[k] = targets[offset + k]
                    gathered_labels[k] = labels[offset + k]
            else:
                _gather(links, labels, targets, pool[begin:end], counts, gathered, gathered_labels)
            edge_begins[current] = num_edges
        position = np.int64(0)
        while position < total:
            label = gathered_labels[position]
            target = gathered[position]
            if position + 1 == total or gathered_labels[position + 1] != label:
                num_seeds = 1
                seeds[0] = target
                position += 1
                found = after_one[target]
                if found == -2:
                    # Most often a target stands for itself, or for where a few jumps without a choice lead.
                    ahead = target
                    jumps = 0
                    while matters[ahead] == 0 and jump_links[ahead + 1] - jump_links[ahead] == 1 and jumps < 8:
                        ahead = jump_targets[jump_links[ahead]]
                        jumps += 1
                    if matters[ahead] and jump_links[ahead + 1] == jump_links[ahead]:
                        found = alone[ahead]
                        if found < 0 and count_states < max_states and filled < max_members:
                            found = np.int32(count_states)
                            count_states += 1
                            pool[filled] = ahead
                            filled += 1
                            set_ends[found] = filled
                            is_accepting[found] = accepting[ahead]
                            alone[ahead] = found
                            waiting[num_waiting] = found
                            num_waiting += 1
                        if found >= 0:
                            after_one[target] = found
                        else:
                            found = np.int32(-2)
            else:
                num_seeds = 0
                while position < total and gathered_labels[position] == label:
                    target = gathered[position]
                    if marks[target] == 0:
                        marks[target] = 1
                        seeds[num_seeds] = target
                        num_seeds += 1
                    position += 1
                for k in range(num_seeds):
                    marks[seeds[k]] = 0
                found = after_one[seeds[0]] if num_seeds == 1 else np.int32(-2)
            if found == -2:
                size = _close(seeds, num_seeds, jump_links, jump_targets, matters, marks, stack, members)
                found = alone[members[0]] if size == 1 else np.int32(-1)
                if size > 0 and found < 0:
                    value = np.int64(members[0]) if size == 1 else _hash(members, size)
                    place = value & (capacity - 1)
                    while size > 1 and table[place] >= 0:
                        other = table[place]
                        other_begin = set_ends[other - 1] if other > 0 else np.int64(0)
                        if hashes[other] == value and set_ends[other] - other_begin == size:
                            same = True
                            for k in range(size):
                                if pool[other_begin + k] != members[k]:
                                    same = False
                                    break
                            if same:
                                found = other
                                break
                        place = (place + 1) & (capacity - 1)
                    if found < 0:
                        if count_states == max_states or filled + size > max_members:
                            return np.empty(0, np.int32), out_labels[:0], out_targets[:0], is_accepting[:0]
                        found = np.int32(count_states)
                        count_states += 1
                        accepts = np.uint8(0)
                        for k in range(size):
                            pool[filled + k] = members[k]
                            accepts |= accepting[members[k]]
                        filled += size
                        set_ends[found] = filled
                        hashes[found] = value
                        is_accepting[found] = accepts
                        waiting[num_waiting] = found
                        num_waiting += 1
                        if size == 1:
                            alone[members[0]] = found
                        else:
                            table[place] = found
                            num_sets += 1
                        if 2 * num_sets > capacity:
                            capacity *= 2
                            table = np.full(capacity, np.int32(-1), np.int32)
                            for state in range(count_states):
                                if set_ends[state] - (set_ends[state - 1] if state > 0 else np.int64(0)) > 1:
                                    place = hashes[state] & (capacity - 1)
                                    while table[place] >= 0:
                                        place = (place + 1) & (capacity - 1)
                                    table[place] = state
                if num_seeds == 1:
                    after_one[seeds[0]] = found
            if current >= 0 and found >= 0:
                if num_edges == max_edges:
                    return np.empty(0, np.int32), out_labels[:0], out_targets[:0], is_accepting[:0]
                out_labels[num_edges] = label
                out_targets[num_edges] = found
                num_edges += 1
        if current >= 0:
            edge_counts[current] = num_edges - edge_begins[current]
        if num_waiting == 0:
            break
        num_waiting -= 1
        current = np.int64(waiting[num_waiting])

    result_links = np.zeros(count_states + 1, np.int32)
    for state in range(count_states):
        result_links[state + 1] = result_links[state] + edge_counts[state]
    result_labels = np.empty(num_edges, np.uint8)
    result_targets = np.empty(num_edges, np.int32)
    for state in range(count_states):
        for k in range(edge_counts[state]):
            result_labels[result_links[state] + k] = out_labels[edge_begins[state] + k]
            result_targets[result_links[state] + k] = out_targets[edge_begins[state] + k]
    return result_links, result_labels, result_targets, is_accepting[:count_states].copy()
