"""Masks by walking the token trie together with the automaton, from one state or from all.

A token is legal in a state iff its bytes lead to a state from which the end can be reached in tokens. Both sides are
deterministic, so one descent of the two together finds every legal token exactly once, and looks at nothing but
their common paths.
"""

from __future__ import annotations

import numpy as np

from .edges import edge_target, find_edge, first_edge, last_edge, next_edge, step
from .jit import helper, kernel
from .token_trie import BASE, CHECK, FIRST, FIRST_CHILD, LAST, NEXT_SIBLING

NO_ROOM = -1
TOO_LONG = -2
UNLIMITED = 2**62  # edges
UNREACHABLE = 2**31 - 1  # the distance of a state from which no number of tokens reaches the end
ANY_DISTANCE = UNREACHABLE - 1

AUTOMATON = "uint8[::1], int32[::1], int32[::1]"  # labels, links, targets: see ``edges``
DISTANCES = "int32[::1]"  # fewest tokens from each state to the end; empty: nobody asked, and every state can reach it
TOKEN_TRIE = "int32[:, ::1], uint8[:, ::1], int32[::1]"  # nodes, siblings, token ids: see ``token_trie``

MANY_EDGES = 8  # of a state: from there on its tokens are looked for by the token trie's children, which are few
_BY_TOKENS = -1


@helper
def is_within(distances, most, state):
    """Whether the end can be reached from ``state`` in ``most`` tokens."""
    return len(distances) == 0 or distances[state] <= most


@helper
def new_stack(max_token_length):
    """Working space of a walk: int32[depths, 4], for each depth with something left what to go on with."""
    return np.empty((max_token_length + 1, 4), np.int32)


# The two ways to collect, for the two layouts of ``edges``. Callers choose (``len(targets) == 0``: a trie), because a
# function that chooses is too large to be inlined, and a call with so many arrays costs more than a walk.
#
# Both append the tokens that are legal in ``state`` to ``tokens`` from ``position`` on: those after which ``most`` more
# are enough. Where each leads goes to ``ends``, unless that is empty. They return the new position, ``NO_ROOM`` if
# ``tokens`` is too short (nothing below ``position`` has changed), or ``TOO_LONG`` after looking at more than ``limit``
# edges.


@helper
def collect_in_trie(labels, links, distances, most, nodes, token_ids, state, stack, tokens, ends, position, limit):
    depth = -1
    slot = np.int64(0)
    edge = np.int64(state + 1)
    stop = np.int64(links[state])
    while True:
        while edge >= stop:
            if depth < 0:
                return position
            edge, stop, slot = np.int64(stack[depth, 0]), np.int64(stack[depth, 1]), np.int64(stack[depth, 2])
            depth -= 1
        limit -= 1
        if limit < 0:
            return np.int64(TOO_LONG)
        following = np.int64(links[edge])
        child = np.int64(nodes[slot, BASE] + labels[edge])
        if nodes[child, CHECK] != slot:
            edge = following
            continue
        first, last = nodes[child, FIRST], nodes[child, LAST]
        if last > first and is_within(distances, most, edge):
            if position + last - first > len(tokens):
                return np.int64(NO_ROOM)
            for k in range(first, last):
                tokens[position] = token_ids[k]
                if len(ends) > 0:
                    ends[position] = edge
                position += 1
        if nodes[child, BASE] == 0:
            edge = following
            continue
        if following < stop:  # most states have one edge, and nothing to come back to
            depth += 1
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = following, stop, slot
        slot = child
        stop = following
        edge += 1


@helper
def collect_in_edge_lists(
    labels, links, targets, distances, most, nodes, siblings, token_ids, state, stack, tokens, ends, position, limit
):
    depth = -1
    slot = np.int64(0)
    base = np.int64(nodes[slot, BASE])
    # Edges ``edge .. stop - 1`` are to be looked at; or, with a negative ``stop``, the slot's children from the byte
    # ``edge`` on, of which there are likely to be fewer.
    edge, stop = np.int64(links[state]), np.int64(links[state + 1])
    if stop - edge > MANY_EDGES and base != 0:
        edge, stop = np.int64(siblings[slot, FIRST_CHILD]), np.int64(_BY_TOKENS)
    while True:
        if edge < stop:
            found = edge
            edge += 1
            has_more = edge < stop
            limit -= 1
            if limit < 0:
                return np.int64(TOO_LONG)
            child = base + labels[found]
            if nodes[child, CHECK] != slot:
                continue
        elif stop < 0 and edge >= 0:
            limit -= 1
            if limit < 0:
                return np.int64(TOO_LONG)
            child = base + edge
            found = np.int64(find_edge(labels, links, state, edge))
            edge = np.int64(siblings[child, NEXT_SIBLING])
            if edge == 0:
                edge = np.int64(-1)
            has_more = edge >= 0
            if found < 0:
                continue
        else:
            if depth < 0:
                return position
            edge, stop = np.int64(stack[depth, 0]), np.int64(stack[depth, 1])
            slot, state = np.int64(stack[depth, 2]), np.int64(stack[depth, 3])
            base = np.int64(nodes[slot, BASE])
            depth -= 1
            continue
        target = np.int64(targets[found])
        first, last = nodes[child, FIRST], nodes[child, LAST]
        if last > first and is_within(distances, most, target):
            if position + last - first > len(tokens):
                return np.int64(NO_ROOM)
            for k in range(first, last):
                tokens[position] = token_ids[k]
                if len(ends) > 0:
                    ends[position] = target
                position += 1
        child_base = np.int64(nodes[child, BASE])
        if child_base == 0:
            continue
        if has_more:
            depth += 1
            stack[depth, 0], stack[depth, 1] = edge, stop
            stack[depth, 2], stack[depth, 3] = slot, state
        slot, state, base = child, target, child_base
        edge, stop = np.int64(links[state]), np.int64(links[state + 1])
        if stop - edge > MANY_EDGES:
            edge, stop = np.int64(siblings[slot, FIRST_CHILD]), np.int64(_BY_TOKENS)


@helper
def enlarged(array, filled):
    larger = np.empty(2 * len(array) + 16, array.dtype)
    for k in range(filled):
        larger[k] = array[k]
    return larger


@kernel(f"Tuple((int32[::1], int32[::1]))({AUTOMATON}, {DISTANCES}, {TOKEN_TRIE}, int64, int64)")
def state_tokens(labels, links, targets, distances, nodes, siblings, token_ids, max_token_length, state):
    """The tokens legal in one state without a budget, in the order of their bytes, and where each leads: int32."""
    stack = new_stack(max_token_length)
    tokens = np.empty(256, np.int32)
    ends = np.empty(256, np.int32)
    while True:
        if len(targets) == 0:
            count = collect_in_trie(
                labels, links, distances, ANY_DISTANCE, nodes, token_ids,
                state, stack, tokens, ends, np.int64(0), UNLIMITED,
            )  # fmt: skip
        else:
            count = collect_in_edge_lists(
                labels, links, targets, distances, ANY_DISTANCE, nodes, siblings, token_ids,
                state, stack, tokens, ends, np.int64(0), UNLIMITED,
            )  # fmt: skip
        if count >= 0:
            return tokens[:count].copy(), ends[:count].copy()
        tokens, ends = enlarged(tokens, 0), enlarged(ends, 0)


@kernel(f"Tuple((int64[::1], int32[::1]))({AUTOMATON}, {DISTANCES}, {TOKEN_TRIE}, int64, int64, int64, int64)")
def all_tokens(
    labels, links, targets, distances, nodes, siblings, token_ids, max_token_length, begin, end, max_entries
):
    """The tokens legal in each of the states ``begin .. end - 1`` without a budget.

    Returns their counts int64[end - begin] and the tokens int32, state after state; two empty arrays when there are
    more than ``max_entries`` of them.
    """
    stack = new_stack(max_token_length)
    counts = np.empty(end - begin, np.int64)
    tokens = np.empty(2 * (end - begin) + 64, np.int32)
    nowhere = np.empty(0, np.int32)
    position = np.int64(0)
    for state in range(begin, end):
        while True:
            if len(targets) == 0:
                after = collect_in_trie(
                    labels, links, distances, ANY_DISTANCE, nodes, token_ids,
                    state, stack, tokens, nowhere, position, UNLIMITED,
                )  # fmt: skip
            else:
                after = collect_in_edge_lists(
                    labels, links, targets, distances, ANY_DISTANCE, nodes, siblings, token_ids,
                    state, stack, tokens, nowhere, position, UNLIMITED,
                )  # fmt: skip
            if after >= 0:
                break
            if position > max_entries:
                break
            tokens = enlarged(tokens, position)
        if after > max_entries or after < 0:
            return counts[:0].copy(), tokens[:0].copy()
        counts[state - begin] = after - position
        position = after
    return counts, tokens[:position].copy()


@kernel(f"uint8[::1]({AUTOMATON}, {DISTANCES}, {TOKEN_TRIE}, int64, int64, int64)")
def spelled(labels, links, targets, distances, nodes, siblings, token_ids, max_token_length, start, num_states):
    """The states at which some token of the sequences of legal tokens from ``start`` on ends: uint8[N]."""
    reached = np.zeros(num_states, np.uint8)
    waiting = np.empty(num_states, np.int32)
    waiting[0] = start
    reached[start] = 1
    num_waiting = 1
    stack = np.empty((max_token_length + 1, 3), np.int32)  # the next edge, where they end, the slot
    while num_waiting > 0:
        num_waiting -= 1
        depth = 0
        stack[0, 0] = first_edge(links, targets, waiting[num_waiting])
        stack[0, 1] = last_edge(links, targets, waiting[num_waiting])
        stack[0, 2] = 0
        while depth >= 0:
            edge = stack[depth, 0]
            if edge >= stack[depth, 1]:
                depth -= 1
                continue
            stack[depth, 0] = next_edge(links, targets, edge)
            parent = stack[depth, 2]
            slot = nodes[parent, BASE] + labels[edge]
            if nodes[slot, CHECK] != parent:
                continue
            target = edge_target(targets, edge)
            is_token = nodes[slot, LAST] > nodes[slot, FIRST] and is_within(distances, ANY_DISTANCE, target)
            if is_token and not reached[target]:
                reached[target] = 1
                waiting[num_waiting] = target
                num_waiting += 1
            if nodes[slot, BASE] != 0:
                depth += 1
                stack[depth, 0] = first_edge(links, targets, target)
                stack[depth, 1] = last_edge(links, targets, target)
                stack[depth, 2] = slot
    return reached


@kernel("uint8[::1](uint8[::1], int64)")
def used_bytes(labels, begin):
    """Which bytes occur in ``labels[begin:]``: uint8[256]."""
    used = np.zeros(256, np.uint8)
    for edge in range(begin, len(labels)):
        used[labels[edge]] = 1
    return used


@kernel(f"int64({AUTOMATON}, int64, Array(uint8, 1, 'C', readonly=True))")
def state_after(labels, links, targets, state, data):
    """The state that the bytes ``data`` lead to from ``state``, or -1."""
    for byte in data:
        state = step(labels, links, targets, state, byte)
        if state < 0:
            break
    return state
