"""Tries inside an automaton in the making: they are laid out as they are, node by node, and not determinised.

A trie is deterministic already. So where a subset is one of its nodes alone, everything below that node goes to the
result at once. Only what follows the trie has to be joined to it: a leaf is the same as the state after it, and an
inner node at which a string ends has the edges of both.

All tries of an automaton lie one behind the other in three arrays, and node i of them is state ``first + i``.
"""

from __future__ import annotations

import numpy as np

from .jit import helper


@helper
def trie_of(node, begins):
    """The number of the trie in which a node is. begins: int32[T + 1], the root of each trie, ascending."""
    low = 0
    high = len(begins) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if begins[middle] <= node:
            low = middle
        else:
            high = middle
    return low


@helper
def _meets(node, labels, ends, is_taken):
    """Whether a child's byte is taken."""
    child = node + 1
    while child < ends[node]:
        if is_taken[labels[child]]:
            return True
        child = ends[child]
    return False


@helper
def lay_out(
    root, first, labels, ends, accepting, current, following, is_taken, scalars,
    states_after, set_ends, pool, waiting, is_accepting,
    edge_begins, edge_counts, out_labels, out_targets,
):  # fmt: skip
    """Add what is below a node to the result.

    Args:
        root: the node; ``current`` is its state in the result.
        first: the state of node 0.
        labels, ends, accepting: the tries.
        following: the state in the result of where the trie ends; its edges are known.
        is_taken: uint8[256], all zero, before and after.
        scalars: how many states, members, waiting states and edges there are.
        states_after, set_ends, pool, waiting, is_accepting, edge_begins, edge_counts, out_labels,
            out_targets: those of ``determinise``.

    Returns:
        Whether there was room; whether ``following`` is certain to be reached; the scalars as they are now. O(nodes),
        plus the edges of ``following`` for each inner node at which a string ends.
    """
    begin_following = edge_begins[following]
    end_following = begin_following + edge_counts[following]
    for edge in range(begin_following, end_following):
        is_taken[out_labels[edge]] = 1
    set_begin = set_ends[following - 1] if following > 0 else np.int64(0)
    set_size = set_ends[following] - set_begin
    base, filled, num_waiting, num_edges = scalars
    number = base
    has_room = True
    is_reached = True  # from each leaf
    node = root + 1
    while node < ends[root]:
        state = first + node
        if states_after[state] != 0:  # met before, by another way
            node = ends[node]
            continue
        if ends[node] == node + 1:
            states_after[state] = following + 2
            node += 1
            continue
        if number == len(set_ends) or filled + set_size + 1 > len(pool):
            has_room = False
            break
        states_after[state] = number + 2
        is_accepting[number] = 0
        if accepting[node]:
            is_accepting[number] = is_accepting[following]
        if accepting[node] and _meets(node, labels, ends, is_taken):
            is_reached = False
            # Here the string may go on or end with the same byte, and what is below is for ``determinise``.
            place = filled
            while place - filled < set_size and pool[set_begin + place - filled] < state:
                pool[place] = pool[set_begin + place - filled]
                place += 1
            pool[place] = state
            for k in range(place - filled, set_size):
                pool[filled + k + 1] = pool[set_begin + k]
            filled += set_size + 1
            edge_begins[number] = -1
            waiting[num_waiting] = number
            num_waiting += 1
            node = ends[node]
        else:
            pool[filled] = state
            filled += 1
            node += 1
        set_ends[number] = filled
        number += 1

    at = np.int64(current)
    while has_room and at < number:
        set_begin = set_ends[at - 1] if at > 0 else np.int64(0)
        if set_ends[at] - set_begin == 1:
            node = pool[set_begin] - first
            edge_begins[at] = num_edges
            ahead = begin_following if accepting[node] else end_following
            if num_edges + 512 > len(out_labels):
                has_room = False
                break
            child = node + 1
            while child < ends[node]:
                label = labels[child]
                while ahead < end_following and out_labels[ahead] < label:
                    out_labels[num_edges] = out_labels[ahead]
                    out_targets[num_edges] = out_targets[ahead]
                    num_edges += 1
                    ahead += 1
                out_labels[num_edges] = label
                out_targets[num_edges] = states_after[first + child] - 2
                num_edges += 1
                child = ends[child]
            while ahead < end_following:
                out_labels[num_edges] = out_labels[ahead]
                out_targets[num_edges] = out_targets[ahead]
                num_edges += 1
                ahead += 1
            edge_counts[at] = num_edges - edge_begins[at]
        at = base if at == current else at + 1
    for edge in range(begin_following, end_following):
        is_taken[out_labels[edge]] = 0
    return has_room, is_reached, number, filled, num_waiting, num_edges
