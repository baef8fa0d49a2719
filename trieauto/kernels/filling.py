"""Writing masks: the legal tokens of a sequence's state, as bits of a bitmask row.

A state's mask is found in one of four ways: it was made ready (a list of tokens, or the whole row), it is stored, or it
is walked now if that is short; else the caller is told to make it ready. Under a budget that is so small that it
matters somewhere, a ready mask is used if it was made for exactly that budget, or leads nowhere that is too far; and
a stored one if it says where its tokens lead.
"""

from __future__ import annotations

import numpy as np

from .descriptor import (
    ALIKE,
    FARTHEST,
    LIST_LIMIT,
    MASK_OFFSETS,
    MASK_TOKENS,
    NUM_STATES,
    READY,
    READY_CAPACITY,
    SIZE,
    TERMINATED,
    WALK_LIMIT,
    WALKS_LEFT,
    accepts,
    descriptor_of,
    distances_of,
    has_token_edges,
    mask_of,
    mask_targets_of,
    remaining_of,
    scratch_tokens_of,
    state_of,
    stop_ids_of,
    walk_from,
)
from .jit import helper, kernel
from .memory import int32_at, int64_at
from .walk import UNLIMITED, is_within

DONE = -1
DOES_NOT_FIT = -3

# A row of the ready table: its key (-1: free), the address of its mask, how many token ids that holds (-1: it is a
# whole bitmap row), whether it was used since the last eviction looked at it, and the tokens left from which on it
# holds. The key is the state, together with the tokens left if the mask was made for exactly those.
READY_KEY, READY_MASK, READY_COUNT, READY_USED, READY_FROM = range(5)
READY_WORDS = 5

# The target of a fill: where a bitmask is, its rows, their stride in bytes and width in words, and the address of
# int32[rows, TRACKED_WORDS + 1] for a tracked one, else 0.
TARGET_MEMORY, TARGET_ROWS, TARGET_STRIDE, TARGET_ROW_WORDS, TARGET_TRACKED = range(5)
TARGET_WORDS = 5

# A row of a tracked bitmap (see ``bitmask.TokenBitmask``): how many words may be nonzero (-1: any), and which.
TRACKED_WORDS = 63


def ready_key(state: int, remaining: int | None) -> int:
    """The key of a mask made for a budget of ``remaining`` tokens, or for any large enough."""
    return state if remaining is None else remaining << 32 | state


@helper
def ready_place(table, key):
    """Where ``key`` is in a ready table (int64[C, READY_WORDS], C a power of two), or the free row for it."""
    capacity = len(table)
    place = ((key * np.int64(-7046029254386353131)) >> 40) & (capacity - 1)
    while table[place, READY_KEY] != key and table[place, READY_KEY] != -1:
        place = (place + 1) & (capacity - 1)
    return place


@kernel("int64(int64[:, ::1], int64)", nogil=False)
def find_ready_place(table, key):
    return ready_place(table, key)


@helper
def _ready_mask(d, state, remaining):
    """The row of the ready table that holds the mask: int64[READY_WORDS], or empty."""
    if d[READY_CAPACITY] > 0:
        table = int64_at(d[READY], d[READY_CAPACITY] * READY_WORDS).reshape((d[READY_CAPACITY], READY_WORDS))
        if d[ALIKE] != 0:
            state = np.int64(int32_at(d[ALIKE], d[NUM_STATES])[state])
        place = ready_place(table, state)
        if table[place, READY_KEY] == state and remaining >= table[place, READY_FROM]:
            return table[place]
        if remaining <= d[FARTHEST]:
            key = remaining << 32 | state
            place = ready_place(table, key)
            if table[place, READY_KEY] == key:
                return table[place]
    return int64_at(np.int64(0), 0)


@helper
def _clear(row, tracked):
    if len(tracked) > 0 and tracked[0] >= 0:
        for k in range(1, tracked[0] + 1):
            row[tracked[k]] = 0
    else:
        for k in range(len(row)):
            row[k] = 0


@helper
def _set_bit(row, tracked, num_tracked, token):
    """Set one bit; note its word in ``tracked`` if that is new, and return how many are noted then (-1: too many).

    The count is in a register and not in tracked[0], which for all the compiler knows lies in the row.
    """
    word = token >> 5
    if row[word] == 0 and 0 <= num_tracked < len(tracked):
        num_tracked += 1
        if num_tracked == len(tracked):
            num_tracked = np.int64(-1)
        else:
            tracked[num_tracked] = word
    row[word] |= np.int32(1) << np.int32(token & 31)
    return num_tracked


@helper
def _copy_row(d, address, row):
    words = (d[SIZE] + 31) >> 5
    mask = int32_at(address, words)
    for k in range(words):
        row[k] = mask[k]
    for k in range(words, len(row)):
        row[k] = 0


@helper
def _fill(d, state, remaining, row, tracked):
    """Write one mask row; ``DONE``, or the state whose mask must be made ready first (the row is then unspecified)."""
    tokens = scratch_tokens_of(d)
    count = np.int64(0)
    first_edge = np.int64(-1)  # of a token automaton's state, if only some of its edges are short enough
    if state != TERMINATED and remaining > 0:
        most = remaining - 1
        ready = _ready_mask(d, state, remaining)
        if len(ready) > 0:
            ready[READY_USED] = 1
            count = ready[READY_COUNT]
            if count < 0:
                _copy_row(d, ready[READY_MASK], row)
                if len(tracked) > 0:
                    tracked[0] = -1
                return np.int64(DONE)
            tokens = int32_at(ready[READY_MASK], count)
        elif d[MASK_OFFSETS] != 0 and (most >= d[FARTHEST] or has_token_edges(d)):
            first, last = mask_of(d, state)
            count = last - first
            if count > LIST_LIMIT:
                return np.int64(state)
            tokens = int32_at(d[MASK_TOKENS] + 4 * first, count)
            if most < d[FARTHEST]:
                first_edge = first
        else:
            if d[WALKS_LEFT] >= 0:
                if d[WALKS_LEFT] == 0:
                    return np.int64(state)
                d[WALKS_LEFT] -= 1
            count = walk_from(d, state, most, tokens, WALK_LIMIT)
            if count < 0:
                return np.int64(state)
    _clear(row, tracked)
    num_tracked = np.int64(0)
    if first_edge < 0:
        for k in range(count):
            num_tracked = _set_bit(row, tracked, num_tracked, tokens[k])
    else:
        distances, targets = distances_of(d, remaining - 1), mask_targets_of(d)
        for k in range(count):
            if is_within(distances, remaining - 1, targets[first_edge + k]):
                num_tracked = _set_bit(row, tracked, num_tracked, tokens[k])
    if accepts(d, state):
        stop_ids = stop_ids_of(d)
        for k in range(len(stop_ids)):
            num_tracked = _set_bit(row, tracked, num_tracked, stop_ids[k])
    if len(tracked) > 0:
        tracked[0] = num_tracked
    return np.int64(DONE)


@helper
def _tracked(address, index):
    if address == 0:
        return int32_at(np.int64(0), 0)
    return int32_at(address + index * 4 * (TRACKED_WORDS + 1), TRACKED_WORDS + 1)


@helper
def _fill_target_row(record, index, target):
    d = descriptor_of(record)
    row_words = target[TARGET_ROW_WORDS]
    if index < 0 or index >= target[TARGET_ROWS] or 32 * row_words < d[SIZE]:
        return np.int64(DOES_NOT_FIT)
    row = int32_at(target[TARGET_MEMORY] + index * target[TARGET_STRIDE], row_words)
    return _fill(d, state_of(record), remaining_of(record), row, _tracked(target[TARGET_TRACKED], index))


@kernel("int64(int64, int64, int64)", nogil=False)
def fill_row(record, index, target):
    """Write the mask of one matcher into row ``index`` of the bitmask whose target is at address ``target``.

    Returns ``DONE``; or ``DOES_NOT_FIT``; or the state whose mask must be made ready before trying again.
    """
    return _fill_target_row(record, index, int64_at(target, TARGET_WORDS))


@kernel("int64(int64[::1], int64, int64[::1], int64)", nogil=False)
def fill_rows(records, begin, indices, target):
    """Write the masks of ``records[begin:]`` into the rows ``indices`` (or 0, 1, ... if that is empty).

    Otherwise as ``fill_row``. Returns ``DONE``; or the position in ``records`` of the first whose mask must be made
    ready; or ``DOES_NOT_FIT - k`` if record k does not fit. All before it are done.
    """
    words = int64_at(target, TARGET_WORDS)
    for k in range(begin, len(records)):
        result = _fill_target_row(records[k], indices[k] if len(indices) > 0 else np.int64(k), words)
        if result != DONE:
            return np.int64(k) if result >= 0 else np.int64(DOES_NOT_FIT - k)
    return np.int64(DONE)


@helper
def _row_tokens(row):
    count = 0
    for k in range(len(row)):
        word = np.int64(row[k]) & 0xFFFFFFFF
        while word != 0:
            word &= word - 1
            count += 1
    tokens = np.empty(count, np.int32)
    count = 0
    for k in range(len(row)):
        if row[k] != 0:
            for bit in range(32):
                if (row[k] >> bit) & 1:
                    tokens[count] = 32 * k + bit
                    count += 1
    return tokens


@kernel("Tuple((int64, int32[::1]))(int64, int32[::1])", nogil=False)
def allowed_tokens(record, row):
    """``DONE`` and everything legal now, stop ids included, ascending: int32; or the state whose mask must be made
    ready, and nothing. ``row``: int32[words], working space."""
    untracked = int32_at(np.int64(0), 0)
    result = _fill(descriptor_of(record), state_of(record), remaining_of(record), row, untracked)
    return result, _row_tokens(row) if result == DONE else np.empty(0, np.int32)


@kernel("boolean(int64)", nogil=False)
def has_continuation(record):
    """Whether any token but a stop token is legal now. Stops at the first one found."""
    d, state, remaining = descriptor_of(record), state_of(record), remaining_of(record)
    if state == TERMINATED or remaining <= 0:
        return False
    if has_token_edges(d):
        distances, targets = distances_of(d, remaining - 1), mask_targets_of(d)
        first, last = mask_of(d, state)
        for edge in range(first, last):  # noqa: SIM110 (numba)
            if is_within(distances, remaining - 1, targets[edge]):
                return True
        return False
    # No room for a single token: the walk ends as soon as it finds one.
    return walk_from(d, state, remaining - 1, int32_at(np.int64(0), 0), np.int64(UNLIMITED)) < 0
