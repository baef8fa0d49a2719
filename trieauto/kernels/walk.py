"""Masks by walking the token trie together with the automaton, from one state or from all.

A token is legal in a state iff its bytes lead to a state from which the end can be reached in tokens. Both sides are
deterministic, so one descent of the two together finds every legal token exactly once, and looks at nothing but
their common paths.
"""

from __future__ import annotations

import numpy as np

from .edges import edge_target, first_edge, last_edge, next_edge, step
from .jit import helper, kernel
from .token_trie import BASE, CHECK, FIRST, LAST

NO_ROOM = -1
TOO_LONG = -2
UNLIMITED = 2**62  # edges

AUTOMATON = "uint8[::1], int32[::1], int32[::1]"  # labels, links, targets: see ``edges``
LIVE = "uint8[::1]"  # one byte a state, 0 where the end is out of reach in tokens; empty: every state is live
TOKEN_TRIE = "int32[:, ::1], int32[::1]"  # nodes, token ids: see ``token_trie``


@helper
def new_stack(max_token_length):
    """Working space of ``collect``: for each depth with edges left, the next, where they end, the token trie's slot."""
    return np.empty((max_token_length + 1, 3), np.int32)


@helper
def collect(labels, links, targets, live, nodes, token_ids, state, stack, tokens, ends, position, limit):
    """Append the tokens that are legal in ``state`` to ``tokens`` from ``position`` on.

    Where each leads goes to ``ends``, unless that is empty. Returns the new position, ``NO_ROOM`` if ``tokens`` is
    too short (nothing below ``position`` has changed), or ``TOO_LONG`` after looking at more than ``limit`` edges.
    """
    depth = -1
    slot = np.int64(0)
    edge = np.int64(first_edge(links, targets, state))
    stop = np.int64(last_edge(links, targets, state))
    while True:
        while edge >= stop:
            if depth < 0:
                return position
            edge, stop, slot = np.int64(stack[depth, 0]), np.int64(stack[depth, 1]), np.int64(stack[depth, 2])
            depth -= 1
        limit -= 1
        if limit < 0:
            return np.int64(TOO_LONG)
        following = np.int64(next_edge(links, targets, edge))
        child = np.int64(nodes[slot, BASE] + labels[edge])
        if nodes[child, CHECK] != slot:
            edge = following
            continue
        target = np.int64(edge_target(targets, edge))
        first, last = nodes[child, FIRST], nodes[child, LAST]
        if last > first and (len(live) == 0 or live[target] != 0):
            if position + last - first > len(tokens):
                return np.int64(NO_ROOM)
            for k in range(first, last):
                tokens[position] = token_ids[k]
                if len(ends) > 0:
                    ends[position] = target
                position += 1
        if nodes[child, BASE] == 0:
            edge = following
            continue
        if following < stop:  # most states have one edge, and nothing to come back to
            depth += 1
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = following, stop, slot
        slot = child
        edge = np.int64(first_edge(links, targets, target))
        stop = np.int64(last_edge(links, targets, target))


@helper
def enlarged(array, filled):
    larger = np.empty(2 * len(array) + 16, array.dtype)
    for k in range(filled):
        larger[k] = array[k]
    return larger


@helper
def _collect_all(labels, links, targets, live, nodes, token_ids, state, stack, tokens, ends):
    """``collect`` from the beginning of arrays that grow as needed: how many tokens, and the two arrays."""
    while True:
        count = collect(
            labels, links, targets, live, nodes, token_ids, state, stack, tokens, ends, np.int64(0), UNLIMITED
        )  # fmt: skip
        if count >= 0:
            return count, tokens, ends
        tokens = enlarged(tokens, 0)
        if len(ends) > 0:
            ends = enlarged(ends, 0)


@kernel(f"int32[::1]({AUTOMATON}, {LIVE}, {TOKEN_TRIE}, int64, int64)")
def state_tokens(labels, links, targets, live, nodes, token_ids, max_token_length, state):
    """The tokens legal in one state: int32, in the order of their bytes."""
    stack = new_stack(max_token_length)
    count, tokens, _ = _collect_all(
        labels, links, targets, live, nodes, token_ids, state, stack, np.empty(256, np.int32), np.empty(0, np.int32)
    )  # fmt: skip
    return tokens[:count].copy()


@kernel(f"Tuple((int64[::1], int32[::1]))({AUTOMATON}, {LIVE}, {TOKEN_TRIE}, int64, int64, int64, int64)")
def all_tokens(labels, links, targets, live, nodes, token_ids, max_token_length, begin, end, max_entries):
    """The tokens legal in each of the states ``begin .. end - 1``.

    Returns counts int64[end - begin] and the tokens int32, state after state; two empty arrays when there are more
    than ``max_entries`` of them.
    """
    stack = new_stack(max_token_length)
    counts = np.empty(end - begin, np.int64)
    tokens = np.empty(2 * (end - begin) + 64, np.int32)
    nowhere = np.empty(0, np.int32)
    position = np.int64(0)
    for state in range(begin, end):
        while True:
            after = collect(
                labels, links, targets, live, nodes, token_ids, state, stack, tokens, nowhere, position, UNLIMITED
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


@kernel(f"uint8[::1]({AUTOMATON}, uint8[::1], {TOKEN_TRIE}, int64)")
def live_states(labels, links, targets, accepting, nodes, token_ids, max_token_length):
    """Which states can reach the end in tokens of this vocabulary: uint8[N].

    Backwards over the states until nothing changes; one pass where every edge leads to a larger number.
    """
    num_states = len(accepting)
    stack = new_stack(max_token_length)
    live = accepting.copy()
    tokens = np.empty(256, np.int32)
    ends = np.empty(256, np.int32)
    everything_live = np.empty(0, np.uint8)
    changed = True
    while changed:
        changed = False
        for state in range(num_states - 1, -1, -1):
            if live[state]:
                continue
            count, tokens, ends = _collect_all(
                labels, links, targets, everything_live, nodes, token_ids, state, stack, tokens, ends
            )  # fmt: skip
            for k in range(count):
                if live[ends[k]]:
                    live[state] = 1
                    changed = True
                    break
        if len(targets) == 0:
            break
    return live


@kernel(f"Tuple((uint8[::1], uint8[::1]))({AUTOMATON}, {LIVE}, {TOKEN_TRIE}, int64, int64, int64)")
def spelled(labels, links, targets, live, nodes, token_ids, max_token_length, start, num_states):
    """What the sequences of legal tokens from ``start`` on reach and pass.

    Returns reached uint8[N], the states at which some token ends, and passed uint8[edges], the edges that lie on the
    way of some legal token.
    """
    reached = np.zeros(num_states, np.uint8)
    passed = np.zeros(len(labels), np.uint8)
    waiting = np.empty(num_states, np.int32)
    waiting[0] = start
    reached[start] = 1
    num_waiting = 1
    stack = np.empty((max_token_length + 1, 4), np.int32)  # the edge taken, the next one, where they end, the slot
    while num_waiting > 0:
        num_waiting -= 1
        depth = 0
        stack[0, 1] = first_edge(links, targets, waiting[num_waiting])
        stack[0, 2] = last_edge(links, targets, waiting[num_waiting])
        stack[0, 3] = 0
        while depth >= 0:
            edge = stack[depth, 1]
            if edge >= stack[depth, 2]:
                depth -= 1
                continue
            stack[depth, 0] = edge
            stack[depth, 1] = next_edge(links, targets, edge)
            parent = stack[depth, 3]
            slot = nodes[parent, BASE] + labels[edge]
            if nodes[slot, CHECK] != parent:
                continue
            target = edge_target(targets, edge)
            if nodes[slot, LAST] > nodes[slot, FIRST] and (len(live) == 0 or live[target] != 0):
                for k in range(depth + 1):
                    passed[stack[k, 0]] = 1
                if not reached[target]:
                    reached[target] = 1
                    waiting[num_waiting] = target
                    num_waiting += 1
            if nodes[slot, BASE] != 0:
                depth += 1
                stack[depth, 1] = first_edge(links, targets, target)
                stack[depth, 2] = last_edge(links, targets, target)
                stack[depth, 3] = slot
    return reached, passed


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
