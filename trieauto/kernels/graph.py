"""Graphs as edge lists: the edges of state s are ``links[s] .. links[s + 1]``, and edge e leads to ``targets[e]``."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .walk import UNREACHABLE


@helper
def turned_round(links, targets):
    """The same edges seen from where they lead: links[N + 1], of the type of the given ones, and sources int32[E].
    O(N + E)."""
    num_states = len(links) - 1
    reversed_links = np.zeros(num_states + 1, links.dtype)
    num_edges = links[num_states]  # not all of targets: an automaton without edges has one that none uses
    for edge in range(num_edges):
        reversed_links[targets[edge] + 1] += 1
    for state in range(num_states):
        reversed_links[state + 1] += reversed_links[state]
    places = reversed_links[:num_states].copy()
    sources = np.empty(num_edges, np.int32)
    for state in range(num_states):
        for edge in range(links[state], links[state + 1]):
            sources[places[targets[edge]]] = state
            places[targets[edge]] += 1
    return reversed_links, sources


@kernel("Tuple((int32[::1], int32[::1]))(int32[::1], int32[::1])")
def reversed_edges(links, targets):
    """The same edges seen from where they lead: links int32[N + 1] and sources int32[E]. O(N + E)."""
    return turned_round(links, targets)


@kernel("int32[::1](int32[::1], int32[::1], uint8[::1])")
def edges_to_any(links, targets, is_origin):
    """The fewest edges from an origin to each state: int32[N], ``UNREACHABLE`` where there is no way. Breadth first,
    O(N + E). Over reversed edges and from the accepting states, these are the distances to the end."""
    num_states = len(links) - 1
    distances = np.full(num_states, np.int32(UNREACHABLE), np.int32)
    queue = np.empty(num_states, np.int32)
    filled = 0
    for state in range(num_states):
        if is_origin[state]:
            distances[state] = 0
            queue[filled] = state
            filled += 1
    position = 0
    while position < filled:
        state = queue[position]
        position += 1
        for edge in range(links[state], links[state + 1]):
            target = targets[edge]
            if distances[target] == UNREACHABLE:
                distances[target] = distances[state] + 1
                queue[filled] = target
                filled += 1
    return distances


@kernel("boolean(int32[::1], int32[::1])")
def has_cycle(links, targets):
    """Whether some way leads from a state back to it. O(N + E): takes away states without a way in, over and over."""
    num_states = len(links) - 1
    ways_in = np.zeros(num_states, np.int32)
    for edge in range(links[num_states]):
        ways_in[targets[edge]] += 1
    queue = np.empty(num_states, np.int32)
    filled = 0
    for state in range(num_states):
        if ways_in[state] == 0:
            queue[filled] = state
            filled += 1
    position = 0
    while position < filled:
        state = queue[position]
        position += 1
        for edge in range(links[state], links[state + 1]):
            ways_in[targets[edge]] -= 1
            if ways_in[targets[edge]] == 0:
                queue[filled] = targets[edge]
                filled += 1
    return filled < num_states
