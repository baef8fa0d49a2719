"""From an automaton with several ways for one string to the deterministic one of the same language.

The subset construction, which costs next to nothing where there is only one way anyway: most subsets are single states,
and those are looked up in an array. Large tries inside are not even that (see ``tries_in_parts``).
"""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .tries_in_parts import lay_out, trie_of


@helper
def _close(
    seeds, num_seeds, jump_links, jump_targets, matters, first, trie_begins, ends, accepting_nodes, exits,
    marks, stack, members,
):  # fmt: skip
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
        if state >= first:
            node = state - first
            if ends[node] > node + 1:
                members[count] = state
                count += 1
            if accepting_nodes[node]:
                target = exits[trie_of(node, trie_begins)]
                if marks[target] == 0:
                    marks[target] = 1
                    stack[visited] = target
                    visited += 1
            continue
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
def _gather(links, labels, targets, first, node_labels, ends, members, counts, gathered, gathered_labels):
    """The edges of several states, sorted by label; how many. ``counts``: int64[257], working space."""
    counts[:] = 0
    for k in range(len(members)):
        if members[k] >= first:
            node = members[k] - first
            child = node + 1
            while child < ends[node]:
                counts[np.int64(node_labels[child]) + 1] += 1
                child = ends[child]
        else:
            for edge in range(links[members[k]], links[members[k] + 1]):
                counts[np.int64(labels[edge]) + 1] += 1
    for label in range(256):
        counts[label + 1] += counts[label]
    total = counts[256]
    for k in range(len(members)):
        if members[k] >= first:
            node = members[k] - first
            child = node + 1
            while child < ends[node]:
                label = node_labels[child]
                gathered[counts[label]] = first + child
                gathered_labels[counts[label]] = label
                counts[label] += 1
                child = ends[child]
        else:
            for edge in range(links[members[k]], links[members[k] + 1]):
                place = counts[labels[edge]]
                gathered[place] = targets[edge]
                gathered_labels[place] = labels[edge]
                counts[labels[edge]] += 1
    return total


@helper
def _numbers(num_states, edge_begins, edge_counts, targets, is_everything_reached):
    """The states that can be reached from state 0, in order: int32[N + 1], their numbers (-1 for others) and how many
    there are."""
    numbers = np.full(num_states + 1, np.int32(0 if is_everything_reached else -1), np.int32)
    if not is_everything_reached:
        stack = np.empty(num_states, np.int32)
        stack[0] = numbers[0] = 0
        top = 1
        while top > 0:
            top -= 1
            state = stack[top]
            for edge in range(edge_begins[state], edge_begins[state] + edge_counts[state]):
                if numbers[targets[edge]] < 0:
                    numbers[targets[edge]] = 0
                    stack[top] = targets[edge]
                    top += 1
    count = 0
    for state in range(num_states):
        if numbers[state] == 0:
            numbers[state] = count
            count += 1
    numbers[num_states] = count
    return numbers


@kernel(
    "Tuple((int32[::1], uint8[::1], int32[::1], uint8[::1]))"
    "(int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1], int64, int64,"
    " int32[::1], uint8[::1], int32[::1], uint8[::1], int32[::1], int64, int64, int64)"
)
def determinise(
    links, labels, targets, jump_links, jump_targets, start, goal,
    trie_begins, node_labels, ends, accepting_nodes, exits, max_states, max_members, max_edges,
):  # fmt: skip
    """The subset construction.

    Args:
        links, labels, targets: the edges of state s < F are ``links[s] .. links[s + 1]``, labels ascend and may repeat.
        jump_links, jump_targets: where one may go without a byte, laid out the same way.
        start, goal: states; the goal can be reached from each state.
        trie_begins: int32[T + 1], the first node of each trie, and the number of nodes; node i is state F + i.
        node_labels, ends, accepting_nodes: the tries, one behind the other: the byte that leads into each node, one
            past the last node below it, uint8 whether a string ends there.
        exits: int32[T], the state after each trie.
        max_states, max_members, max_edges: room for the result's states, for what they stand for together, and for its
            edges. Where it is too little, four empty arrays are returned. (Arrays that grow cost more than the work.)

    Returns:
        links int32[M + 1], labels uint8[E], targets int32[E], accepting uint8[M] of a deterministic automaton whose
        start is state 0 and all of whose states can be reached. A chain of states lies side by side.
        O(edges of the result) times the states that are there at once; a few nanoseconds for most nodes of tries.
    """
    first = np.int64(len(links) - 1)
    num_nodes = len(ends)
    num_states = first + num_nodes
    matters = np.zeros(first, np.uint8)
    for state in range(first):
        if links[state + 1] > links[state]:
            matters[state] = 1
    matters[goal] = 1
    marks = np.zeros(num_states, np.uint8)
    stack = np.empty(num_states, np.int32)
    members = np.empty(num_states, np.int32)
    # The result's state for what one target alone closes to, plus 2 (0: not known yet, 1: none), and its state for a
    # set of this one state, plus 1. (Memory that begins as zeros costs nothing where it is not touched.)
    after_one = np.zeros(num_states, np.int32)
    alone = np.zeros(num_states, np.int32)

    # Sets of several states are found by a hash table, open, with linear probing.
    num_sets = 0
    set_ends = np.empty(max_states, np.int64)  # of the result's states, in ``pool``
    pool = np.empty(max_members, np.int32)
    capacity = np.int64(1024)
    table = np.full(capacity, np.int32(-1), np.int32)
    hashes = np.empty(max_states, np.int64)
    count_states = np.int64(0)
    filled = np.int64(0)

    waiting = np.empty(2 * max_states + 2, np.int32)  # some wait twice
    num_waiting = np.int64(0)
    edge_begins = np.empty(max_states, np.int64)  # -1: not known yet
    edge_counts = np.empty(max_states, np.int32)
    out_labels = np.empty(max_edges, np.uint8)
    out_targets = np.empty(max_edges, np.int32)
    num_edges = np.int64(0)
    is_accepting = np.empty(max_states, np.uint8)

    seeds = np.empty(num_states, np.int32)
    counts = np.empty(257, np.int64)
    is_taken = np.zeros(256, np.uint8)
    gathered = np.empty(len(labels) + num_nodes + 1, np.int32)
    gathered_labels = np.empty(len(labels) + num_nodes + 1, np.uint8)

    is_everything_reached = True
    current = np.int64(-1)  # -1: a state is asked for, but no edge leads to it
    asked_for = np.int64(start)
    while True:
        # The targets of all edges of the current set, by label.
        if current < 0:
            total = np.int64(1)
            gathered[0] = asked_for
            gathered_labels[0] = 0
        else:
            begin = set_ends[current - 1] if current > 0 else np.int64(0)
            end = set_ends[current]
            edge_begins[current] = num_edges
            if end - begin == 1:
                offset = links[pool[begin]]
                total = np.int64(links[pool[begin] + 1] - offset)
                for k in range(total):
                    gathered[k] = targets[offset + k]
                    gathered_labels[k] = labels[offset + k]
            else:
                total = _gather(
                    links, labels, targets, first, node_labels, ends, pool[begin:end], counts, gathered, gathered_labels
                )
        position = np.int64(0)
        while position < total:
            label = gathered_labels[position]
            target = gathered[position]
            if position + 1 == total or gathered_labels[position + 1] != label:
                num_seeds = 1
                seeds[0] = target
                position += 1
                found = after_one[target] - np.int32(2)
                if found == -2:
                    # Most often a target stands for itself, or for where a few jumps without a choice lead.
                    ahead = target
                    jumps = 0
                    while (
                        ahead < first and matters[ahead] == 0 and jump_links[ahead + 1] - jump_links[ahead] == 1
                        and jumps < 8
                    ):  # fmt: skip
                        ahead = jump_targets[jump_links[ahead]]
                        jumps += 1
                    if ahead < first:
                        is_itself = matters[ahead] and jump_links[ahead + 1] == jump_links[ahead]
                    else:
                        is_itself = not accepting_nodes[ahead - first]
                    if is_itself:
                        found = alone[ahead] - np.int32(1)
                        if found < 0 and count_states < max_states and filled < max_members:
                            found = np.int32(count_states)
                            count_states += 1
                            pool[filled] = ahead
                            filled += 1
                            set_ends[found] = filled
                            is_accepting[found] = ahead == goal
                            edge_begins[found] = -1
                            alone[ahead] = found + 1
                            waiting[num_waiting] = found
                            num_waiting += 1
                        if found >= 0:
                            after_one[target] = found + 2
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
                found = after_one[seeds[0]] - np.int32(2) if num_seeds == 1 else np.int32(-2)
            if found == -2:
                size = _close(
                    seeds, num_seeds, jump_links, jump_targets, matters, first, trie_begins, ends, accepting_nodes,
                    exits, marks, stack, members,
                )  # fmt: skip
                found = alone[members[0]] - np.int32(1) if size == 1 else np.int32(-1)
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
                            accepts |= np.uint8(members[k] == goal)
                        filled += size
                        set_ends[found] = filled
                        hashes[found] = value
                        is_accepting[found] = accepts
                        edge_begins[found] = -1
                        waiting[num_waiting] = found
                        num_waiting += 1
                        if size == 1:
                            alone[members[0]] = found + 1
                        else:
                            table[place] = found
                            num_sets += 1
                        if 2 * num_sets > capacity:
                            capacity *= 2
                            table = np.full(capacity, np.int32(-1), np.int32)
                            for state in range(count_states):
                                state_begin = set_ends[state - 1] if state > 0 else np.int64(0)
                                if set_ends[state] - state_begin > 1:
                                    value = _hash(pool[state_begin : set_ends[state]], set_ends[state] - state_begin)
                                    hashes[state] = value
                                    place = value & (capacity - 1)
                                    while table[place] >= 0:
                                        place = (place + 1) & (capacity - 1)
                                    table[place] = state
                if num_seeds == 1:
                    after_one[seeds[0]] = found + 2
            if current >= 0 and found >= 0:
                if num_edges == max_edges:
                    return np.empty(0, np.int32), out_labels[:0], out_targets[:0], is_accepting[:0]
                out_labels[num_edges] = label
                out_targets[num_edges] = found
                num_edges += 1
        if current >= 0:
            edge_counts[current] = num_edges - edge_begins[current]

        # The next set; those that are a node of a trie alone are done here, with all that is below it.
        current = np.int64(-2)
        while num_waiting > 0 and current == -2:
            num_waiting -= 1
            current = np.int64(waiting[num_waiting])
            if edge_begins[current] >= 0:
                current = np.int64(-2)
                continue
            begin = set_ends[current - 1] if current > 0 else np.int64(0)
            if set_ends[current] - begin > 1 or pool[begin] < first:
                continue
            node = pool[begin] - first
            exit_state = exits[trie_of(node, trie_begins)]
            following = np.int64(after_one[exit_state]) - 2
            if following < 0 or edge_begins[following] < 0:
                # First what comes after the trie, then this again.
                waiting[num_waiting] = current
                num_waiting += 1
                if following < 0:
                    current = np.int64(-1)
                    asked_for = np.int64(exit_state)
                else:
                    waiting[num_waiting] = following
                    num_waiting += 1
                    current = np.int64(-2)
                continue
            scalars = (count_states, filled, num_waiting, num_edges)
            has_room, is_reached, count_states, filled, num_waiting, num_edges = lay_out(
                node, first, node_labels, ends, accepting_nodes, current, following, is_taken, scalars,
                after_one, set_ends, pool, waiting, is_accepting,
                edge_begins, edge_counts, out_labels, out_targets,
            )  # fmt: skip
            is_everything_reached &= is_reached
            if not has_room:
                return np.empty(0, np.int32), out_labels[:0], out_targets[:0], is_accepting[:0]
            current = np.int64(-2)
        if current == -2:
            break

    numbers = _numbers(count_states, edge_begins, edge_counts, out_targets, is_everything_reached)
    num_kept = numbers[count_states]
    result_links = np.zeros(num_kept + 1, np.int32)
    result_accepting = np.empty(num_kept, np.uint8)
    for state in range(count_states):
        number = numbers[state]
        if number >= 0:
            result_links[number + 1] = result_links[number] + edge_counts[state]
            result_accepting[number] = is_accepting[state]
    result_labels = np.empty(result_links[num_kept], np.uint8)
    result_targets = np.empty(result_links[num_kept], np.int32)
    place = 0
    for state in range(count_states):
        if numbers[state] >= 0:
            for edge in range(edge_begins[state], edge_begins[state] + edge_counts[state]):
                result_labels[place] = out_labels[edge]
                result_targets[place] = numbers[out_targets[edge]]
                place += 1
    return result_links, result_labels, result_targets, result_accepting
