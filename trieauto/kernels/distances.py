"""The fewest tokens from every state to the end, d(s): the reachability paper's table R, since R[t, s] iff d(s) <= t.

Neither way of finding them makes a table of the transitions.
"""

from __future__ import annotations

import numpy as np

from .edges import find_edge
from .graph import reversed_edges, turned_round
from .jit import helper, kernel
from .token_trie import BASE, CHECK, FIRST, FIRST_CHILD, LAST, NEXT_SIBLING
from .walk import (
    ANY_DISTANCE,
    AUTOMATON,
    MANY_EDGES,
    TOKEN_TRIE,
    UNLIMITED,
    UNREACHABLE,
    collect_in_edge_lists,
    collect_in_trie,
    enlarged,
    new_stack,
)

_FEW = 512  # tokens of a state, and edges that finding them takes


@kernel(f"int32[::1]({AUTOMATON}, uint8[::1], {TOKEN_TRIE}, int64, int64, boolean)")
def distances_of_set(
    labels, links, targets, accepting, nodes, siblings, token_ids, max_token_length, start, from_start
):
    """For a set: the fewest tokens from each state to the end; or, ``from_start``, from the start to it. int32[N].

    One walk from each state, for every edge leads to a larger number: from last to first, or from first to last.
    (All but those of the start of a set with a prefix space, which is the last state though it comes first.)
    """
    num_states = len(accepting)
    stack = new_stack(max_token_length)
    everywhere = np.empty(0, np.int32)
    tokens = np.empty(256, np.int32)
    ends = np.empty(256, np.int32)
    distances = np.full(num_states, np.int32(UNREACHABLE), np.int32)
    if from_start:
        distances[start] = 0
    for turn in range(num_states):
        state = np.int64(turn) if from_start else np.int64(num_states - 1 - turn)
        if start > 0:
            state = state - 1 if state > 0 else np.int64(start)
        if from_start and distances[state] == UNREACHABLE:
            continue
        if not from_start and accepting[state]:
            distances[state] = 0
            continue
        while True:
            if len(targets) == 0:
                count = collect_in_trie(
                    labels, links, everywhere, ANY_DISTANCE, nodes, token_ids,
                    state, stack, tokens, ends, np.int64(0), UNLIMITED,
                )  # fmt: skip
            else:
                count = collect_in_edge_lists(
                    labels, links, targets, everywhere, ANY_DISTANCE, nodes, siblings, token_ids,
                    state, stack, tokens, ends, np.int64(0), UNLIMITED,
                )  # fmt: skip
            if count >= 0:
                break
            tokens, ends = enlarged(tokens, 0), enlarged(ends, 0)
        if from_start:
            for k in range(count):
                distances[ends[k]] = min(distances[ends[k]], distances[state] + 1)
        else:
            nearest = np.int32(UNREACHABLE)
            for k in range(count):
                nearest = min(nearest, distances[ends[k]])
            if nearest < UNREACHABLE:
                distances[state] = nearest + 1
    return distances


@helper
def _leads_to(labels, links, targets, nodes, siblings, heights, state, bytes_left, stack):
    """Whether some token leads from ``state`` to a state with ``bytes_left`` 0; and the stack, which may have grown.

    ``bytes_left`` int32[N]: how many bytes there must be at least. Goes on only where some token is as long as that.
    """
    stack[0, 0], stack[0, 1] = 0, state
    top = 1
    while top > 0:
        top -= 1
        slot, at = np.int64(stack[top, 0]), np.int64(stack[top, 1])
        if top + 257 > len(stack):
            larger = np.empty((2 * len(stack), 2), np.int32)
            for k in range(top):
                larger[k, 0], larger[k, 1] = stack[k, 0], stack[k, 1]
            stack = larger
        edge, stop = np.int64(links[at]), np.int64(links[at + 1])
        by_tokens = stop - edge > MANY_EDGES
        label = np.int64(siblings[slot, FIRST_CHILD])
        while edge < stop:
            if by_tokens:
                child = np.int64(nodes[slot, BASE] + label)
                found = find_edge(labels, links, at, label)
                label = np.int64(siblings[child, NEXT_SIBLING])
                if label == 0:
                    edge = stop
                if found < 0:
                    continue
            else:
                found = edge
                edge += 1
                child = np.int64(nodes[slot, BASE] + labels[found])
                if nodes[child, CHECK] != slot:
                    continue
            target = targets[found]
            if bytes_left[target] > heights[child]:
                continue
            if bytes_left[target] == 0 and nodes[child, LAST] > nodes[child, FIRST]:
                return True, stack
            if nodes[child, BASE] != 0:
                stack[top, 0], stack[top, 1] = child, target
                top += 1
    return False, stack


@kernel(f"Tuple((int64[::1], int32[::1], uint8[::1]))({AUTOMATON}, {TOKEN_TRIE}, int64)")
def ends_of_few(labels, links, targets, nodes, siblings, token_ids, max_token_length):
    """Where the tokens of each state that has few lead to, seen from there, and which states have many.

    Returns:
        links int64[N + 1] and sources int32: state s is where a token of ``sources[links[s] .. links[s + 1]]`` ends;
        has_many uint8[N].
    """
    num_states = len(links) - 1
    stack = new_stack(max_token_length)
    everywhere = np.empty(0, np.int32)
    tokens = np.empty(_FEW, np.int32)
    ends = np.empty(_FEW, np.int32)
    has_many = np.zeros(num_states, np.uint8)
    begins = np.empty(num_states + 1, np.int64)
    all_ends = np.empty(4 * num_states + _FEW, np.int32)
    filled = np.int64(0)
    for state in range(num_states):
        begins[state] = filled
        count = collect_in_edge_lists(
            labels, links, targets, everywhere, ANY_DISTANCE, nodes, siblings, token_ids,
            state, stack, tokens, ends, np.int64(0), np.int64(_FEW),
        )  # fmt: skip
        if count < 0:
            has_many[state] = 1
            continue
        if filled + count > len(all_ends):
            all_ends = enlarged(all_ends, filled)
        for k in range(count):
            if k == 0 or ends[k] != ends[k - 1]:
                all_ends[filled] = ends[k]
                filled += 1
    begins[num_states] = filled
    back_links, sources = turned_round(begins, all_ends)
    return back_links, sources, has_many


@helper
def _within_a_token(links, targets, origins, max_token_length):
    """The states that any origin leads to with the bytes of a token or fewer, as far as their number goes: uint8[N]."""
    num_states = len(links) - 1
    is_near = origins.copy()
    queue = np.empty(num_states, np.int32)
    filled = 0
    for state in range(num_states):
        if origins[state]:
            queue[filled] = state
            filled += 1
    position = 0
    for _ in range(max_token_length):
        end_of_level = filled
        while position < end_of_level:
            state = queue[position]
            position += 1
            for edge in range(links[state], links[state + 1]):
                target = targets[edge]
                if is_near[target] == 0:
                    is_near[target] = 1
                    queue[filled] = target
                    filled += 1
    return is_near


@kernel(f"int32[::1]({AUTOMATON}, uint8[::1], {TOKEN_TRIE}, int64, int32[::1], int64[::1], int32[::1], uint8[::1])")
def distances_of_automaton(
    labels, links, targets, accepting, nodes, siblings, token_ids, max_token_length, heights, few_links, few_sources,
    has_many,
):  # fmt: skip
    """For any automaton given as edge lists, cycles included: int32[N]. The last three arguments: see ``ends_of_few``.

    A backward breadth-first search: the states at distance k + 1 are those from which some token leads to one at
    distance k. Where a state has few tokens, it is found by where they end. The others lie at most a token's length of
    bytes before a state at distance k. So going back from those byte by byte tells which can be at k + 1, and how many
    bytes lie between; from each, only tokens that are long enough are followed, and only until one arrives. That is
    what makes states in which nearly every token is legal as cheap as any.
    """
    num_states = len(accepting)
    distances = np.full(num_states, np.int32(UNREACHABLE), np.int32)
    frontier = np.empty(num_states, np.int32)
    following = np.empty(num_states, np.int32)
    num_found = 0
    for state in range(num_states):
        if accepting[state]:
            distances[state] = 0
            frontier[num_found] = state
            num_found += 1
    in_frontier = num_found
    num_left = 0  # with many tokens
    for state in range(num_states):
        num_left += has_many[state] and distances[state] == UNREACHABLE
    if num_left > 0:
        is_near = _within_a_token(links, targets, has_many, max_token_length)
        back_links, sources = reversed_edges(links, targets)
        bytes_left = np.full(num_states, np.int32(UNREACHABLE), np.int32)
        queue = np.empty(num_states, np.int32)
        stack = np.empty((1024, 2), np.int32)
    distance = 0
    while in_frontier > 0 and num_found < num_states:
        distance += 1
        in_following = 0
        if num_left > 0:
            filled = 0
            for k in range(in_frontier):
                if is_near[frontier[k]]:
                    queue[filled] = frontier[k]
                    filled += 1
                    bytes_left[frontier[k]] = 0
            position = 0
            while position < filled:
                state = queue[position]
                position += 1
                if bytes_left[state] == max_token_length:
                    break  # and so have all that follow
                for edge in range(back_links[state], back_links[state + 1]):
                    source = sources[edge]
                    if bytes_left[source] == UNREACHABLE and is_near[source]:
                        bytes_left[source] = bytes_left[state] + 1
                        queue[filled] = source
                        filled += 1
            for k in range(filled):
                state = queue[k]
                if has_many[state] and distances[state] == UNREACHABLE:
                    arrives, stack = _leads_to(
                        labels, links, targets, nodes, siblings, heights, np.int64(state), bytes_left, stack
                    )
                    if arrives:
                        following[in_following] = state
                        in_following += 1
            num_left -= in_following
            for k in range(filled):
                bytes_left[queue[k]] = UNREACHABLE
            for k in range(in_following):
                distances[following[k]] = distance
        for k in range(in_frontier):
            for edge in range(few_links[frontier[k]], few_links[frontier[k] + 1]):
                source = few_sources[edge]
                if distances[source] == UNREACHABLE:
                    distances[source] = distance
                    following[in_following] = source
                    in_following += 1
        frontier, following = following, frontier
        in_frontier = in_following
        num_found += in_frontier
    return distances
