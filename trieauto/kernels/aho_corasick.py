"""Masks by the trie paper's method: Aho-Corasick over the vocabulary, one pass over the trie of the set.

Section 4.2 and appendix G.1 of the paper: feed each edge of the set's trie to the automaton of all tokens, keep the
automaton's state for each depth so that a branch goes on from where it left the trunk, and give every token found to
the state at which its bytes began.
"""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .token_trie import BASE, CHECK, FIRST, LAST
from .walk import ANY_DISTANCE, enlarged, is_within


@helper
def _next_slot(nodes, failures, slot, byte):
    """The longest suffix of what was read, ``byte`` included, that some token begins with."""
    while True:
        child = nodes[slot, BASE] + byte
        if nodes[child, CHECK] == slot:
            return np.int64(child)
        if slot == 0:
            return np.int64(0)
        slot = np.int64(failures[slot])


@kernel("Tuple((int32[::1], int32[::1], int32[::1]))(int32[:, ::1])")
def build_aho_corasick(nodes):
    """Failure links over a token trie.

    Args:
        nodes: int32[S, 4], the double array of ``token_trie``.

    Returns:
        failures int32[S]: the slot of the longest proper suffix that is in the trie;
        outputs int32[S]: the nearest slot along the failure links at which tokens end, 0 for none;
        lengths int32[S]: bytes from the root (0 where a slot is unused).
    """
    num_slots = len(nodes)
    lengths = np.zeros(num_slots, np.int32)
    chain = np.empty(num_slots, np.int32)
    longest = 0
    for slot in range(1, num_slots):
        if nodes[slot, CHECK] < 0:
            continue
        top = 0
        at = np.int64(slot)
        while at != 0 and lengths[at] == 0:
            chain[top] = at
            top += 1
            at = np.int64(nodes[at, CHECK])
        while top > 0:
            top -= 1
            lengths[chain[top]] = lengths[nodes[chain[top], CHECK]] + 1
        longest = max(longest, lengths[slot])
    places = np.zeros(longest + 2, np.int64)
    for slot in range(num_slots):
        if lengths[slot] > 0:
            places[lengths[slot] + 1] += 1
    for length in range(longest + 1):
        places[length + 1] += places[length]
    by_length = np.empty(places[longest + 1], np.int32)
    for slot in range(num_slots):
        if lengths[slot] > 0:
            by_length[places[lengths[slot]]] = slot
            places[lengths[slot]] += 1
    failures = np.zeros(num_slots, np.int32)
    outputs = np.zeros(num_slots, np.int32)
    for slot in by_length:
        parent = np.int64(nodes[slot, CHECK])
        if parent != 0:
            failures[slot] = _next_slot(nodes, failures, np.int64(failures[parent]), slot - nodes[parent, BASE])
        failure = failures[slot]
        outputs[slot] = failure if nodes[failure, LAST] > nodes[failure, FIRST] else outputs[failure]
    return failures, outputs, lengths


@helper
def _scan(
    labels,
    subtree_ends,
    distances,
    nodes,
    failures,
    outputs,
    lengths,
    depth_limit,
    begin,
    end,
    places,
    token_ids,
    tokens,
):
    """Find every token whose bytes begin at one of the states ``begin .. end - 1``.

    Without room in ``tokens`` they are counted in ``places[start - begin + 1]``, else written from
    ``places[start - begin]`` on. A scan that does not begin at the root begins in an unknown state -1 above
    ``begin``, and knows nothing of what was read before: no token that concerns it began there.
    """
    path = np.empty(depth_limit + 2, np.int64)  # the trie's state at each depth
    slots = np.empty(depth_limit + 2, np.int64)  # the automaton's state there
    path[0] = 0 if begin == 0 else -1
    slots[0] = depth = 0
    for state in range(max(begin, 1), len(labels)):
        while depth > 0 and state >= subtree_ends[path[depth]]:
            depth -= 1
        if depth == 0 and state >= end and begin > 0:
            break  # nothing from here on lies below a state of the range (below the root, everything does)
        slot = _next_slot(nodes, failures, slots[depth], labels[state])
        depth += 1
        path[depth] = state
        slots[depth] = slot
        if not is_within(distances, ANY_DISTANCE, state):
            continue
        if nodes[slot, LAST] == nodes[slot, FIRST]:
            slot = np.int64(outputs[slot])
        while slot != 0:
            start = path[depth - lengths[slot]]
            if begin <= start < end:
                first, last = nodes[slot, FIRST], nodes[slot, LAST]
                if len(tokens) == 0:
                    places[start - begin + 1] += last - first
                else:
                    for k in range(first, last):
                        tokens[places[start - begin]] = token_ids[k]
                        places[start - begin] += 1
            slot = np.int64(outputs[slot])


@kernel(
    "Tuple((int64[::1], int32[::1]))(uint8[::1], int32[::1], int32[::1], int32[:, ::1], int32[::1], int32[::1],"
    " int32[::1], int32[::1], int64, int64, int64, int64)"
)
def all_tokens_by_aho_corasick(
    labels, subtree_ends, distances, nodes, token_ids, failures, outputs, lengths, depth_limit, begin, end, max_entries
):
    """The tokens legal in each of the states ``begin .. end - 1`` of a trie; as ``walk.all_tokens``.

    Counts first, then fills, so that nothing is allocated twice. O(states * tokens that end at one state).
    ``depth_limit``: at least the length of the longest path. ``max_entries`` as there.
    """
    places = np.zeros(end - begin + 1, np.int64)
    counts = np.zeros(end - begin, np.int64)
    tokens = np.empty(0, np.int32)
    for scan in range(2):
        _scan(
            labels, subtree_ends, distances, nodes, failures, outputs, lengths, depth_limit, begin, end,
            places, token_ids, tokens,
        )  # fmt: skip
        if scan == 1:
            break
        for k in range(len(counts)):
            counts[k] = places[k + 1]
            places[k + 1] += places[k]
        if places[len(counts)] > max_entries:
            return counts[:0].copy(), tokens
        if places[len(counts)] == 0:
            break
        tokens = np.empty(places[len(counts)], np.int32)
    return counts, tokens


@kernel("int64(int32[::1])")
def depth_of_trie(subtree_ends):
    """The length of the longest path of a trie. O(N)."""
    open_ends = np.empty(16, np.int32)
    depth = longest = 0
    open_ends[0] = subtree_ends[0]
    for state in range(1, len(subtree_ends)):
        while state >= open_ends[depth]:
            depth -= 1
        depth += 1
        if depth == len(open_ends):
            open_ends = enlarged(open_ends, depth)
        open_ends[depth] = subtree_ends[state]
        longest = max(longest, depth)
    return longest
