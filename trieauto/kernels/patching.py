"""Changing a few strings of a large trie: what stays is copied in stretches, each moved by one number.

States keep their order (see ``trie``), so adding strings moves later states up and taking strings away moves them down.
A patch is a list of places, ascending; between two of them every state moves by the same number, and so does the end
of its subtree, except where that lies at the next place or beyond: of the states above the last one before it.
"""

from __future__ import annotations

import numpy as np

from .edges import step
from .jit import helper, kernel
from .strings import BYTES
from .walk import ANY_DISTANCE, AUTOMATON, TOKEN_TRIE, UNLIMITED, UNREACHABLE, collect_in_trie, enlarged, new_stack

_TRIE = "uint8[::1], int32[::1]"  # labels, subtree ends: see ``trie``


@kernel(f"Tuple((int32[::1], int32[::1], int32[::1], int32[::1]))({_TRIE}, {_TRIE})")
def match_tries(labels, links, new_labels, new_links):
    """Where the states of one trie are in another.

    Returns:
        matched int32[M]: for each state of the new trie that of the old one with the same string, -1 if there is none.
        positions, parents, begins int32[E], one for each largest subtree that the old trie lacks, in order: the old
        state before which it belongs (or the number of states), the old state above it, its first new state.
    """
    matched = np.full(len(new_labels), np.int32(-1), np.int32)
    positions = np.empty(len(new_labels), np.int32)
    parents = np.empty(len(new_labels), np.int32)
    begins = np.empty(len(new_labels), np.int32)
    path = np.empty(len(new_labels), np.int32)  # the new states above the next one
    matched[0] = path[0] = 0
    depth = 0
    count = 0
    state = 1
    while state < len(new_labels):
        while state >= new_links[path[depth]]:
            depth -= 1
        parent = matched[path[depth]]
        child = np.int64(parent + 1)
        while child < links[parent] and labels[child] < new_labels[state]:
            child = np.int64(links[child])
        if child < links[parent] and labels[child] == new_labels[state]:
            matched[state] = child
            depth += 1
            path[depth] = state
            state += 1
        else:
            positions[count], parents[count], begins[count] = child, parent, state
            count += 1
            state = np.int64(new_links[state])
    return matched, positions[:count].copy(), parents[:count].copy(), begins[:count].copy()


@helper
def _first_at_least(array, least):
    low, high = 0, len(array)
    while low < high:
        middle = (low + high) >> 1
        if array[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def _copy_stretch(labels, links, accepting, out_labels, out_links, out_accepting, begin, end, shift):
    """Copy states ``begin .. end - 1`` to where they are with ``shift`` added. (Over parts of arrays, so that places
    are known not to be negative and several are copied at once.)"""
    first, last = begin + shift, end + shift
    from_labels, from_links, from_accepting = labels[begin:end], links[begin:end], accepting[begin:end]
    to_labels, to_links, to_accepting = out_labels[first:last], out_links[first:last], out_accepting[first:last]
    for k in range(len(from_labels)):
        to_labels[k] = from_labels[k]
    for k in range(len(from_accepting)):
        to_accepting[k] = from_accepting[k]
    added = np.int32(shift)
    for k in range(len(from_links)):
        to_links[k] = from_links[k] + added


@helper
def _child_towards(links, state, below):
    """The child of a state on the way to a state below it, or -1 if it is that state itself."""
    if state >= below:
        return np.int64(-1)
    child = np.int64(state + 1)
    while links[child] <= below:
        child = np.int64(links[child])
    return child


@kernel(
    f"Tuple((uint8[::1], int32[::1], uint8[::1], int32[::1]))({_TRIE}, uint8[::1], {_TRIE}, uint8[::1],"
    " int32[::1], int32[::1], int32[::1], int32[::1])"
)
def grown(labels, links, accepting, new_labels, new_links, new_accepting, matched, positions, parents, begins):
    """The trie of the strings of both, by what ``match_tries`` found.

    Returns:
        labels, subtree ends, accepting: of the trie; places int32[M]: where in it the states of the new trie are.
        O(states), about a nanosecond each.
    """
    num_old, num_parts = len(labels), len(positions)
    before = np.zeros(num_parts + 1, np.int32)  # new states in the parts before each
    for k in range(num_parts):
        before[k + 1] = before[k] + new_links[begins[k]] - begins[k]
    out_labels = np.empty(num_old + before[num_parts], np.uint8)
    out_links = np.empty(len(out_labels), np.int32)
    out_accepting = np.empty(len(out_labels), np.uint8)
    places = np.empty(len(new_labels), np.int32)
    begin = 0
    for k in range(num_parts + 1):
        end = positions[k] if k < num_parts else num_old
        shift = before[k]
        _copy_stretch(labels, links, accepting, out_labels, out_links, out_accepting, begin, end, shift)
        state = np.int64(0) if begin < end else np.int64(-1)
        while state >= 0:
            stop = links[state]
            if state >= begin:
                part = _first_at_least(positions, stop)
                while part < num_parts and positions[part] == stop and parents[part] >= state:
                    part += 1
                out_links[state + shift] = stop + before[part]
            state = _child_towards(links, state, end - 1)
        if k < num_parts:
            moved = end + shift - begins[k]
            for state in range(begins[k], new_links[begins[k]]):
                out_labels[state + moved] = new_labels[state]
                out_links[state + moved] = new_links[state] + moved
                out_accepting[state + moved] = new_accepting[state]
                places[state] = state + moved
        begin = end
    for state in range(len(new_labels)):
        old = matched[state]
        if old >= 0:
            part = _first_at_least(positions, old + 1)  # one that belongs before it moves it, too
            places[state] = old + before[part]
            out_accepting[places[state]] |= new_accepting[state]
    return out_labels, out_links, out_accepting, places


@kernel("int32[::1](int32[::1], int32[::1], int32[::1], int32[::1])")
def spread(numbers, new_links, positions, begins):
    """One number for each old state, as ``grown`` lays the states out; ``UNREACHABLE`` for the new ones."""
    total = len(numbers)
    for k in range(len(begins)):
        total += new_links[begins[k]] - begins[k]
    out = np.full(total, np.int32(UNREACHABLE), np.int32)
    begin = 0
    shift = 0
    for k in range(len(positions) + 1):
        end = positions[k] if k < len(positions) else len(numbers)
        for state in range(begin, end):
            out[state + shift] = numbers[state]
        if k < len(positions):
            shift += new_links[begins[k]] - begins[k]
        begin = end
    return out


@kernel("int32[::1](int32[::1], int32[::1], int32[::1], int32[::1])")
def moved_up(states, new_links, positions, begins):
    """Where ``grown`` puts old states, which ascend."""
    out = np.empty(len(states), np.int32)
    part = 0
    shift = 0
    for k in range(len(states)):
        while part < len(positions) and positions[part] <= states[k]:
            shift += new_links[begins[part]] - begins[part]
            part += 1
        out[k] = states[k] + shift
    return out


@kernel("Tuple((int32[::1], int32[::1], int32[::1]))(int32[::1], int32[::1], int32[::1], int32[::1], int32[::1])")
def dead_ranges(links, terminals, removed, paths, path_links):
    """Which states go if strings are taken away.

    Args:
        links: of the trie; terminals: int32[K], where its strings end; removed: int32[R], those of them that go; both
            ascend.
        paths: int32[M], the states on the ways to the removed strings, as the trie of these numbers them, with its
            subtree ends ``path_links``.

    Returns:
        begins, ends int32[E]: the largest subtrees without any string left, in order; and those of ``paths`` that stay.
        O(M log K).
    """
    begins = np.empty(len(removed), np.int32)
    ends = np.empty(len(removed), np.int32)
    staying = np.empty(len(paths), np.int32)
    count = 0
    num_staying = 0
    place = 0
    while place < len(paths):
        state, stop = paths[place], links[paths[place]]
        in_all = _first_at_least(terminals, stop) - _first_at_least(terminals, state)
        if in_all == _first_at_least(removed, stop) - _first_at_least(removed, state):
            begins[count], ends[count] = state, stop
            count += 1
            place = np.int64(path_links[place])
        else:
            staying[num_staying] = state
            num_staying += 1
            place += 1
    return begins[:count].copy(), ends[:count].copy(), staying[:num_staying].copy()


@kernel(f"Tuple((uint8[::1], int32[::1], uint8[::1]))({_TRIE}, uint8[::1], int32[::1], int32[::1], int32[::1])")
def shrunk(labels, links, accepting, removed, begins, ends):
    """The trie without the strings that end at ``removed``, and without the states of the ranges: labels, subtree ends,
    accepting."""
    num_parts = len(begins)
    before = np.zeros(num_parts + 1, np.int32)  # states in the ranges before each
    for k in range(num_parts):
        before[k + 1] = before[k] + ends[k] - begins[k]
    num_left = len(labels) - before[num_parts]
    out_labels = np.empty(num_left, np.uint8)
    out_links = np.empty(num_left, np.int32)
    out_accepting = np.empty(num_left, np.uint8)
    begin = 0
    for k in range(num_parts + 1):
        end = begins[k] if k < num_parts else len(labels)
        shift = before[k]
        _copy_stretch(labels, links, accepting, out_labels, out_links, out_accepting, begin, end, -shift)
        state = np.int64(0) if begin < end else np.int64(-1)
        while state >= 0:
            if state >= begin:
                out_links[state - shift] = links[state] - before[_first_at_least(begins, links[state])]
            state = _child_towards(links, state, end - 1)
        if k < num_parts:
            begin = ends[k]
    part = 0
    for state in removed:
        while part < num_parts and ends[part] <= state:
            part += 1
        if part == num_parts or state < begins[part]:
            out_accepting[state - before[part]] = 0
    return out_labels, out_links, out_accepting


@kernel("int32[::1](int32[::1], int32[::1], int32[::1])")
def moved_down(states, begins, ends):
    """Where ``shrunk`` puts old states, which ascend and lie in no range."""
    out = np.empty(len(states), np.int32)
    part = 0
    shift = 0
    for k in range(len(states)):
        while part < len(begins) and begins[part] <= states[k]:
            shift += ends[part] - begins[part]
            part += 1
        out[k] = states[k] - shift
    return out


@kernel(f"void({_TRIE}, uint8[::1], int32[::1], {TOKEN_TRIE}, int64, int32[::1])")
def refresh_distances(labels, links, accepting, distances, nodes, siblings, token_ids, max_token_length, states):
    """Find the fewest tokens to the end anew for ``states``, which ascend; those of all others below them hold.

    One walk for each.
    """
    stack = new_stack(max_token_length)
    everywhere = np.empty(0, np.int32)
    tokens = np.empty(256, np.int32)
    ends = np.empty(256, np.int32)
    for k in range(len(states) - 1, -1, -1):
        state = np.int64(states[k])
        if accepting[state]:
            distances[state] = 0
            continue
        while True:
            count = collect_in_trie(
                labels, links, everywhere, ANY_DISTANCE, nodes, token_ids,
                state, stack, tokens, ends, np.int64(0), UNLIMITED,
            )  # fmt: skip
            if count >= 0:
                break
            tokens, ends = enlarged(tokens, 0), enlarged(ends, 0)
        nearest = np.int32(UNREACHABLE)
        for found in range(count):
            nearest = min(nearest, distances[ends[found]])
        distances[state] = nearest + 1 if nearest < UNREACHABLE else nearest


@kernel(f"int32[::1]({AUTOMATON}, {BYTES}, int64[::1])")
def states_of_strings(labels, links, targets, data, offsets):
    """Where strings lead from state 0: int32[K], -1 where nowhere. O(bytes * children)."""
    states = np.empty(len(offsets) - 1, np.int32)
    for k in range(len(states)):
        state = np.int64(0)
        for place in range(offsets[k], offsets[k + 1]):
            state = step(labels, links, targets, state, data[place])
            if state < 0:
                break
        states[k] = state
    return states
