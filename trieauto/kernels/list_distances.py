"""How few tokens values of a set take, for lists of them: from inside a value to its end, and from where it begins.

All of this is about tokens within one value (and the joint before it); ``value_lists.budgets`` puts it together.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .token_trie import BASE, CHECK
from .walk import ANY_DISTANCE, TOKEN_TRIE, UNLIMITED, UNREACHABLE, collect_in_trie, enlarged, new_stack

TRIE = "uint8[::1], int32[::1]"  # labels, links


@kernel(f"void({TRIE}, {TOKEN_TRIE}, int64, int32[::1])")
def to_ends(labels, links, nodes, siblings, token_ids, max_token_length, costs):
    """For each state of the trie, the least of: what ending there costs, and one token and what follows. In place.

    ``costs`` int32[N]: what it costs to end in a state, ``UNREACHABLE`` where no value ends. One walk a state.
    """
    stack, everywhere = new_stack(max_token_length), np.empty(0, np.int32)
    tokens, ends = np.empty(256, np.int32), np.empty(256, np.int32)
    for turn in range(len(links)):
        state = np.int64(len(links) - 1 - turn)
        while True:
            count = collect_in_trie(
                labels, links, everywhere, ANY_DISTANCE, nodes, token_ids,
                state, stack, tokens, ends, np.int64(0), UNLIMITED,
            )  # fmt: skip
            if count >= 0:
                break
            tokens, ends = enlarged(tokens, 0), enlarged(ends, 0)
        least = costs[state]
        for k in range(count):
            if costs[ends[k]] < UNREACHABLE:
                least = min(least, np.int32(costs[ends[k]] + 1))
        costs[state] = least


@kernel(f"void({TRIE}, {TOKEN_TRIE}, int64, int32[::1])")
def from_begin(labels, links, nodes, siblings, token_ids, max_token_length, costs):
    """For each state of the trie, the fewest tokens to come there. In place.

    ``costs`` int32[N]: those of tokens that come from outside of the trie, else ``UNREACHABLE``. One walk a state.
    """
    stack, everywhere = new_stack(max_token_length), np.empty(0, np.int32)
    tokens, ends = np.empty(256, np.int32), np.empty(256, np.int32)
    for state in range(len(links)):
        if costs[state] == UNREACHABLE:
            continue
        while True:
            count = collect_in_trie(
                labels, links, everywhere, ANY_DISTANCE, nodes, token_ids,
                np.int64(state), stack, tokens, ends, np.int64(0), UNLIMITED,
            )  # fmt: skip
            if count >= 0:
                break
            tokens, ends = enlarged(tokens, 0), enlarged(ends, 0)
        for k in range(count):
            costs[ends[k]] = min(costs[ends[k]], np.int32(costs[state] + 1))


@kernel(
    f"Tuple((int32[::1], int32[::1]))({TRIE}, uint8[::1], {TOKEN_TRIE}, int64, int32[::1], int32[::1], int32[::1],"
    " int32[::1])"
)
def to_other_ends(
    labels, links, accepting, nodes, siblings, token_ids, max_token_length, costs, own_costs, changed, weights
):
    """What ``to_ends`` would have found, if it cost something else to end in some states.

    ``costs`` int32[N]: what it found. ``own_costs`` int32[N]: what was given to it; or empty, if all were 0.
    ``changed`` int32[C], ascending: the states where a value ends at another cost, ``weights`` int32[C].

    Returns the states from which those can be reached, ascending, and what holds there: int32 each. Elsewhere nothing
    has changed. One walk for each of these.
    """
    affected = np.empty(256, np.int32)
    num_affected = 0
    for k in range(len(changed)):
        state = np.int64(0)
        while True:
            # Those on the way to the one before come first, and need not come again.
            if k == 0 or not state <= changed[k - 1] < links[state]:
                if num_affected == len(affected):
                    affected = enlarged(affected, num_affected)
                affected[num_affected] = state
                num_affected += 1
            if state == changed[k]:
                break
            state += 1
            while links[state] <= changed[k]:
                state = np.int64(links[state])
    affected = np.sort(affected[:num_affected])
    found = np.empty(num_affected, np.int32)
    stack, everywhere = new_stack(max_token_length), np.empty(0, np.int32)
    tokens, ends = np.empty(256, np.int32), np.empty(256, np.int32)
    last_changed = len(changed) - 1
    for turn in range(num_affected):
        place = num_affected - 1 - turn
        state = np.int64(affected[place])
        least = np.int32(UNREACHABLE)
        if accepting[state]:
            while last_changed >= 0 and changed[last_changed] > state:
                last_changed -= 1
            if last_changed >= 0 and changed[last_changed] == state:
                least = weights[last_changed]
            else:
                least = own_costs[state] if len(own_costs) > 0 else np.int32(0)
        while True:
            count = collect_in_trie(
                labels, links, everywhere, ANY_DISTANCE, nodes, token_ids,
                state, stack, tokens, ends, np.int64(0), UNLIMITED,
            )  # fmt: skip
            if count >= 0:
                break
            tokens, ends = enlarged(tokens, 0), enlarged(ends, 0)
        for k in range(count):
            cost = costs[ends[k]]
            low, high = place + 1, num_affected
            while low < high:
                middle = (low + high) >> 1
                if affected[middle] < ends[k]:
                    low = middle + 1
                else:
                    high = middle
            if low < num_affected and affected[low] == ends[k]:
                cost = found[low]
            if cost < UNREACHABLE:
                least = min(least, np.int32(cost + 1))
        found[place] = least
    return affected, found


@kernel(f"Tuple((int32[::1], int32[::1]))({TRIE}, uint8[::1], {TOKEN_TRIE}, int64, uint8[::1])")
def tokens_leaving(labels, links, accepting, nodes, siblings, token_ids, max_token_length, following):
    """Where a token that began inside a value can go on beyond its end: the states where those values end, and the
    slots of the token trie that the token has come to. int32 each, not sorted, pairs perhaps more than once.

    ``following`` uint8: the bytes that can follow a value. One walk a state.
    """
    states, slots = np.empty(64, np.int32), np.empty(64, np.int32)
    num_found = 0
    stack = np.empty((max_token_length + 1, 3), np.int64)
    for begin in range(len(links)):
        depth = 0
        stack[0, 0], stack[0, 1], stack[0, 2] = begin + 1, links[begin], 0
        while depth >= 0:
            edge, parent = stack[depth, 0], stack[depth, 2]
            if edge >= stack[depth, 1]:
                depth -= 1
                continue
            stack[depth, 0] = links[edge]
            child = np.int64(nodes[parent, BASE] + labels[edge])
            if nodes[child, CHECK] != parent or nodes[child, BASE] == 0:
                continue
            if accepting[edge]:
                for byte in following:
                    if nodes[nodes[child, BASE] + byte, CHECK] == child:
                        if num_found == len(states):
                            states, slots = enlarged(states, num_found), enlarged(slots, num_found)
                        states[num_found], slots[num_found] = edge, child
                        num_found += 1
                        break
            depth += 1
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = edge + 1, links[edge], child
    return states[:num_found].copy(), slots[:num_found].copy()
