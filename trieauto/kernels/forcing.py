"""The bytes that every continuation shares, so that they need not be generated one token at a time."""

from __future__ import annotations

import numpy as np

from .descriptor import (
    MAX_TOKEN_LENGTH,
    accepts,
    descriptor_of,
    distances_of,
    labels_of,
    links_of,
    nodes_of,
    state_of,
    targets_of,
)
from .edges import edge_target, first_edge, last_edge, next_edge
from .jit import helper, kernel
from .token_trie import BASE, CHECK, FIRST, LAST
from .walk import ANY_DISTANCE, enlarged, is_within, new_stack


@kernel("uint8[::1](int64, int64)", nogil=False)
def forced_bytes(record, limit):
    """For a vocabulary that has every byte: ``limit`` at most, uint8. Ends where the answer may stop. O(bytes), and the
    edges into states that lead nowhere, where there are such (a part of a set)."""
    d = descriptor_of(record)
    state = state_of(record)
    labels, links, targets = labels_of(d), links_of(d), targets_of(d)
    distances = distances_of(d, np.int64(ANY_DISTANCE))
    out = np.empty(64, np.uint8)
    count = 0
    while count < limit and not accepts(d, state):
        only = np.int64(-1)
        edge, stop = np.int64(first_edge(links, targets, state)), np.int64(last_edge(links, targets, state))
        while edge < stop:
            if is_within(distances, ANY_DISTANCE, edge_target(targets, edge)):
                if only >= 0:
                    return out[:count].copy()
                only = edge
            edge = np.int64(next_edge(links, targets, edge))
        if only < 0:
            break
        if count == len(out):
            out = enlarged(out, count)
        out[count] = labels[only]
        count += 1
        state = np.int64(edge_target(targets, only))
    return out[:count].copy()


@helper
def _goes_on(labels, links, targets, distances, nodes, slot, state, stack):
    """Whether some token that has come as far as ``slot`` leads on from ``state`` to where the end is in reach."""
    depth = 0
    stack[0, 0], stack[0, 1], stack[0, 2] = first_edge(links, targets, state), last_edge(links, targets, state), slot
    while depth >= 0:
        edge, parent = np.int64(stack[depth, 0]), np.int64(stack[depth, 2])
        if edge >= stack[depth, 1] or nodes[parent, BASE] == 0:
            depth -= 1
            continue
        stack[depth, 0] = next_edge(links, targets, edge)
        child = np.int64(nodes[parent, BASE] + labels[edge])
        if nodes[child, CHECK] != parent:
            continue
        target = np.int64(edge_target(targets, edge))
        if nodes[child, LAST] > nodes[child, FIRST] and is_within(distances, ANY_DISTANCE, target):
            return True
        if nodes[child, BASE] != 0:
            depth += 1
            stack[depth, 0], stack[depth, 1] = first_edge(links, targets, target), last_edge(links, targets, target)
            stack[depth, 2] = child
    return False


@helper
def _arrives(distances, nodes, slot, state):
    """Whether a token that is legal ends here."""
    return nodes[slot, LAST] > nodes[slot, FIRST] and is_within(distances, ANY_DISTANCE, state)


@kernel("uint8[::1](int64, int64)", nogil=False)
def forced_bytes_in_tokens(record, limit):
    """The same where the vocabulary lacks bytes, so that not everything that is possible in bytes is in tokens.

    Follows all tokens at once that can be under way: all of them are at the same state of the automaton, each at its
    own slot of the token trie. O(bytes * tokens under way * edges), and what it takes to find a token's end.
    """
    d = descriptor_of(record)
    state = state_of(record)
    labels, links, targets, nodes = labels_of(d), links_of(d), targets_of(d), nodes_of(d)
    distances = distances_of(d, np.int64(ANY_DISTANCE))
    most = d[MAX_TOKEN_LENGTH] + 1
    stack = new_stack(most)
    slots, next_slots = np.zeros(most + 1, np.int32), np.zeros(most + 1, np.int32)  # the root: no token under way
    num_slots = 1
    at_end = True  # of a token
    out = np.empty(64, np.uint8)
    count = 0
    while count < limit and not (at_end and accepts(d, state)):
        only = np.int64(-1)
        edge, stop = np.int64(first_edge(links, targets, state)), np.int64(last_edge(links, targets, state))
        while edge < stop:
            target = np.int64(edge_target(targets, edge))
            possible = False
            for k in range(num_slots):
                child = np.int64(nodes[slots[k], BASE] + labels[edge])
                if nodes[slots[k], BASE] == 0 or nodes[child, CHECK] != slots[k]:
                    continue
                if _arrives(distances, nodes, child, target) or _goes_on(
                    labels, links, targets, distances, nodes, child, target, stack
                ):
                    possible = True
                    break
            if possible:
                if only >= 0:
                    return out[:count].copy()
                only = edge
            edge = np.int64(next_edge(links, targets, edge))
        if only < 0:
            break
        if count == len(out):
            out = enlarged(out, count)
        out[count] = labels[only]
        count += 1
        state = np.int64(edge_target(targets, only))
        at_end = False
        num_next = 0
        for k in range(num_slots):
            child = np.int64(nodes[slots[k], BASE] + labels[only])
            if nodes[slots[k], BASE] == 0 or nodes[child, CHECK] != slots[k]:
                continue
            at_end = at_end or _arrives(distances, nodes, child, state)
            if _goes_on(labels, links, targets, distances, nodes, child, state, stack):
                next_slots[num_next] = child
                num_next += 1
        if at_end:
            next_slots[num_next] = 0
            num_next += 1
        slots, next_slots = next_slots, slots
        num_slots = num_next
    return out[:count].copy()
