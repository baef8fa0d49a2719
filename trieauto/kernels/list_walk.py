"""Lists of values of a set: which tokens may follow, and where one leads.

Two machines take turns (``value_lists.automaton`` makes them). The trie of the set spells a value; the *joints*, a
small automaton in edge lists, spell what stands before, between and after values. A place is a state of the trie, or N
plus a state of the joints. Where a joint ``ENTERS``, the edges of the trie's root go on; where a value ends, those of a
joint that depends on how many values there are: another may follow, or the list may end, or either.

Beside the place stands what was given already: the trie's states at which those values end. If all must be different, a
state of the trie is dead when all values below it were given. What lies below is one range of states and one of values,
so that costs O(log K + given), and nothing is built for it. A token may end a value, pass the joint and go on into the
next value; then the one that it ended counts as given for the rest of it.
"""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .token_trie import BASE, CHECK, FIRST, LAST
from .walk import enlarged

# labels, links, accepting and terminals of the trie; labels, links, targets and flags of the joints; numbers.
LISTS = "uint8[::1], int32[::1], uint8[::1], int32[::1], uint8[::1], int32[::1], int32[::1], uint8[::1], int64[::1]"
ENTERS, FINAL = 1, 2  # flags: a value may begin here; the text may end here
# Numbers: bounds of how many values there are, whether they differ, and the joints after a value (states) where another
# may follow or none, where another must, and where none may.
MINIMUM, MAXIMUM, DISTINCT, EITHER, ANOTHER, LAST_ONE = range(6)

# A frame of a walk: the slot of the token trie; the trie's edges that are left, and the joint's; how many values were
# given; the value that ends here if the joint is taken, or -1; how many bytes of the token came before the first such.
_SLOT, _EDGE, _STOP, _JOINT, _JOINT_STOP, _NUM, _ENDED, _FIRST = range(8)
_FRAME_WORDS = 8


@helper
def _rank(terminals, state):
    """How many values end before a state."""
    low, high = np.int64(0), np.int64(len(terminals))
    while low < high:
        middle = (low + high) >> 1
        if terminals[middle] < state:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def _is_dead(links, terminals, numbers, taken, num_taken, state):
    """Whether all values at and below a state of the trie were given."""
    if numbers[DISTINCT] == 0:
        return False
    stop = np.int64(links[state])
    below = np.int64(0)
    for k in range(num_taken):
        below += state <= taken[k] < stop
    return below > 0 and _rank(terminals, stop) - _rank(terminals, state) <= below


@helper
def _ends_value(accepting, numbers, taken, num_taken, state):
    """Whether a value may end in a state of the trie."""
    if accepting[state] == 0:
        return False
    if numbers[DISTINCT] != 0:
        for k in range(num_taken):
            if taken[k] == state:
                return False
    return True


@helper
def _joint_after(numbers, num_values):
    """The joint after the last of ``num_values`` values."""
    if num_values < numbers[MINIMUM]:
        return numbers[ANOTHER]
    return numbers[EITHER] if num_values < numbers[MAXIMUM] else numbers[LAST_ONE]


@helper
def _open(links, accepting, joint_links, joint_flags, numbers, taken, num_taken, place, frame):
    """Write the edges of a place, after so many values were given, into a frame."""
    num_states = len(links)
    frame[_EDGE] = frame[_STOP] = frame[_JOINT] = frame[_JOINT_STOP] = 0
    frame[_NUM], frame[_ENDED] = num_taken, -1
    state = np.int64(place)
    joint = np.int64(-1)
    if place >= num_states:
        joint = np.int64(place - num_states)
        state = np.int64(0) if joint_flags[joint] & ENTERS else np.int64(-1)
    elif _ends_value(accepting, numbers, taken, num_taken, state):
        joint = np.int64(_joint_after(numbers, num_taken + 1))
        frame[_ENDED] = state
    if joint >= 0:
        frame[_JOINT], frame[_JOINT_STOP] = joint_links[joint], joint_links[joint + 1]
    if state >= 0:
        frame[_EDGE], frame[_STOP] = state + 1, links[state]


@helper
def _is_final(accepting, joint_flags, numbers, taken, num_taken, place):
    """Whether the text may end in a place."""
    num_states = len(accepting)
    if place >= num_states:
        return (joint_flags[place - num_states] & FINAL) != 0
    if not _ends_value(accepting, numbers, taken, num_taken, place):
        return False
    return (joint_flags[_joint_after(numbers, num_taken + 1)] & FINAL) != 0


@helper
def _with_room(given, room):
    taken = np.empty(len(given) + room, np.int32)
    for k in range(len(given)):
        taken[k] = given[k]
    return taken


@kernel(
    f"Tuple((int32[::1], int32[::1], int32[::1], int32[::1], int32[::1]))({LISTS}, int32[:, ::1], int32[::1], int64,"
    " int64, int64, int32[::1])"
)
def list_tokens(
    labels, links, accepting, terminals, joint_labels, joint_links, joint_targets, joint_flags, numbers,
    nodes, token_ids, max_token_length, slot, place, given,
):  # fmt: skip
    """The tokens that may follow in a place, without a budget, in no particular order.

    ``slot``: of the token trie, if the token has begun already; else 0. ``given`` int32: what was given before.

    Returns, for each token: its id; the place where it leads; how many values it ends; and how many bytes of it (from
    the slot on) come before the first of these ends, 0 if there is none: int32 each. Last, the ends of the values that
    tokens end, token after token: int32.
    """
    num_given = len(given)
    num_states = len(links)
    taken = _with_room(given, max_token_length + 2)
    stack = np.empty((max_token_length + 2, _FRAME_WORDS), np.int64)
    tokens, places = np.empty(256, np.int32), np.empty(256, np.int32)
    counts, firsts = np.empty(256, np.int32), np.empty(256, np.int32)
    ends = np.empty(16, np.int32)
    position = num_ends = 0
    depth = 0
    _open(links, accepting, joint_links, joint_flags, numbers, taken, num_given, place, stack[0])
    stack[0, _SLOT], stack[0, _FIRST] = slot, -1
    while depth >= 0:
        frame = stack[depth]
        parent, num_taken, first_end = frame[_SLOT], frame[_NUM], frame[_FIRST]
        if frame[_EDGE] < frame[_STOP]:
            target = frame[_EDGE]
            frame[_EDGE] = links[target]
            child = nodes[parent, BASE] + labels[target]
            if nodes[child, CHECK] != parent or _is_dead(links, terminals, numbers, taken, num_taken, target):
                continue
        elif frame[_JOINT] < frame[_JOINT_STOP]:
            edge = frame[_JOINT]
            frame[_JOINT] += 1
            child = nodes[parent, BASE] + joint_labels[edge]
            if nodes[child, CHECK] != parent:
                continue
            target = np.int64(num_states + joint_targets[edge])
            if frame[_ENDED] >= 0:
                taken[num_taken] = frame[_ENDED]
                num_taken += 1
                if first_end < 0:
                    first_end = np.int64(depth)
        else:
            depth -= 1
            continue
        first, last = nodes[child, FIRST], nodes[child, LAST]
        if position + last - first > len(tokens):
            while position + last - first > len(tokens):
                tokens, places = enlarged(tokens, position), enlarged(places, position)
                counts, firsts = enlarged(counts, position), enlarged(firsts, position)
        for k in range(first, last):
            tokens[position], places[position] = token_ids[k], target
            counts[position], firsts[position] = num_taken - num_given, max(first_end, np.int64(0))
            position += 1
            for end in range(num_given, num_taken):
                if num_ends == len(ends):
                    ends = enlarged(ends, num_ends)
                ends[num_ends] = taken[end]
                num_ends += 1
        if nodes[child, BASE] != 0:
            depth += 1
            _open(links, accepting, joint_links, joint_flags, numbers, taken, num_taken, target, stack[depth])
            stack[depth, _SLOT], stack[depth, _FIRST] = child, first_end
    return (
        tokens[:position].copy(), places[:position].copy(), counts[:position].copy(), firsts[:position].copy(),
        ends[:num_ends].copy(),
    )  # fmt: skip


@kernel(f"Tuple((int64, boolean, int32[::1]))({LISTS}, int64, int32[::1], Array(uint8, 1, 'C', readonly=True))")
def list_step(
    labels, links, accepting, terminals, joint_labels, joint_links, joint_targets, joint_flags, numbers,
    place, given, data,
):  # fmt: skip
    """Where the bytes ``data`` lead from a place: the place, -1 for nowhere; whether the text may end there; and the
    ends of the values that they end, int32. O(bytes)."""
    num_taken = len(given)
    taken = _with_room(given, len(data) + 1)
    frame = np.empty(_FRAME_WORDS, np.int64)
    for byte in data:
        _open(links, accepting, joint_links, joint_flags, numbers, taken, num_taken, place, frame)
        edge, place = frame[_EDGE], np.int64(-1)
        while edge < frame[_STOP]:
            if labels[edge] == byte:
                if not _is_dead(links, terminals, numbers, taken, num_taken, edge):
                    place = edge
                break
            edge = np.int64(links[edge])
        if place < 0:
            for joint in range(frame[_JOINT], frame[_JOINT_STOP]):
                if joint_labels[joint] == byte:
                    place = np.int64(len(links) + joint_targets[joint])
                    if frame[_ENDED] >= 0:
                        taken[num_taken] = frame[_ENDED]
                        num_taken += 1
                    break
        if place < 0:
            return np.int64(-1), False, taken[:0].copy()
    is_final = _is_final(accepting, joint_flags, numbers, taken, num_taken, place)
    return np.int64(place), is_final, taken[len(given) : num_taken].copy()


@kernel(f"uint8[::1]({LISTS}, int64, int32[::1], int64)")
def list_forced(
    labels, links, accepting, terminals, joint_labels, joint_links, joint_targets, joint_flags, numbers,
    place, given, limit,
):  # fmt: skip
    """The bytes, ``limit`` at most, that every text shares from a place on; ends where the text may. uint8."""
    num_taken = len(given)
    taken = _with_room(given, 64)
    frame = np.empty(_FRAME_WORDS, np.int64)
    out = np.empty(64, np.uint8)
    count = 0
    while count < limit and not _is_final(accepting, joint_flags, numbers, taken, num_taken, place):
        _open(links, accepting, joint_links, joint_flags, numbers, taken, num_taken, place, frame)
        edge, found = frame[_EDGE], np.int64(-1)
        num_found = 0
        while edge < frame[_STOP] and num_found < 2:
            if not _is_dead(links, terminals, numbers, taken, num_taken, edge):
                found = edge
                num_found += 1
            edge = np.int64(links[edge])
        if num_found + frame[_JOINT_STOP] - frame[_JOINT] != 1:
            break
        if count == len(out):
            out = enlarged(out, count)
        if num_found == 1:
            out[count] = labels[found]
            place = found
        else:
            joint = frame[_JOINT]
            out[count] = joint_labels[joint]
            place = np.int64(len(links) + joint_targets[joint])
            if frame[_ENDED] >= 0:
                if num_taken == len(taken):
                    taken = enlarged(taken, num_taken)
                taken[num_taken] = frame[_ENDED]
                num_taken += 1
        count += 1
    return out[:count].copy()
