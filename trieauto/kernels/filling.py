"""Writing masks: the legal tokens of a sequence's state, as bits of a bitmask row.

A state's mask is found in one of four ways: it was made ready (a list of tokens, or the whole row), it is stored (eager
masks), or it is walked now if that is short; else the caller is told to make it ready.
"""

from __future__ import annotations

import numpy as np

from .descriptor import (
    MASK_OFFSETS,
    MASK_TOKENS,
    NUM_MASK_OFFSETS,
    READY,
    READY_CAPACITY,
    SIZE,
    TERMINATED,
    WALK_LIMIT,
    WALKS_LEFT,
    accepts,
    descriptor_of,
    scratch_tokens_of,
    state_of,
    stop_ids_of,
    walk_from,
)
from .jit import helper, kernel
from .memory import int32_at, int64_at

DONE = -1
DOES_NOT_FIT = -3

# A row of the ready table: the state (-1: free), the address of its mask, how many token ids that holds (-1: it is a
# whole bitmap row), whether it was used since the last eviction looked at it.
READY_STATE, READY_MASK, READY_COUNT, READY_USED = 0, 1, 2, 3
READY_WORDS = 4

# The target of a fill: where a bitmask is, its rows, their stride in bytes and width in words, and the address of
# int32[rows, TRACKED_WORDS + 1] for a tracked one, else 0.
TARGET_MEMORY, TARGET_ROWS, TARGET_STRIDE, TARGET_ROW_WORDS, TARGET_TRACKED = range(5)
TARGET_WORDS = 5

# A row of a tracked bitmap (see ``bitmask.TokenBitmask``): how many words may be nonzero (-1: any), and which.
TRACKED_WORDS = 63


@helper
def ready_place(table, state):
    """Where ``state`` is in a ready table (int64[C, 4], C a power of two), or the free row where it would go."""
    capacity = len(table)
    place = (state * np.int64(0x9E3779B1)) & (capacity - 1)
    while table[place, READY_STATE] != state and table[place, READY_STATE] != -1:
        place = (place + 1) & (capacity - 1)
    return place


@kernel("int64(int64[:, ::1], int64)", nogil=False)
def find_ready_place(table, state):
    return ready_place(table, state)


@helper
def _clear(row, tracked):
    if len(tracked) > 0 and tracked[0] >= 0:
        for k in range(1, tracked[0] + 1):
            row[tracked[k]] = 0
    else:
        for k in range(len(row)):
            row[k] = 0


@helper
def _set(row, tracked, num_tracked, tokens, count):
    """Set the bits of the first ``count`` tokens; note new words in ``tracked``, and return how many there are then."""
    for k in range(count):
        word = tokens[k] >> 5
        if row[word] == 0 and 0 <= num_tracked < len(tracked):
            # The count is in a register and not in tracked[0], which for all the compiler knows lies in the row.
            num_tracked += 1
            if num_tracked == len(tracked):
                num_tracked = -1
            else:
                tracked[num_tracked] = word
        row[word] |= np.int32(1) << np.int32(tokens[k] & 31)
    return num_tracked


@helper
def _fill(d, state, row, tracked):
    """Write one mask row; ``DONE``, or the state whose mask must be made ready first (the row is then unspecified)."""
    tokens = scratch_tokens_of(d)
    count = 0
    found = False
    if state == TERMINATED:
        found = True
    elif d[READY_CAPACITY] > 0:
        table = int64_at(d[READY], d[READY_CAPACITY] * READY_WORDS).reshape((d[READY_CAPACITY], READY_WORDS))
        place = ready_place(table, state)
        if table[place, READY_STATE] == state:
            table[place, READY_USED] = 1
            count = table[place, READY_COUNT]
            if count < 0:
                words = (d[SIZE] + 31) >> 5
                mask = int32_at(table[place, READY_MASK], words)
                for k in range(words):
                    row[k] = mask[k]
                for k in range(words, len(row)):
                    row[k] = 0
                if len(tracked) > 0:
                    tracked[0] = -1
                return np.int64(DONE)
            tokens = int32_at(table[place, READY_MASK], count)
            found = True
    if not found:
        if d[NUM_MASK_OFFSETS] > 0:
            offsets = int32_at(d[MASK_OFFSETS], d[NUM_MASK_OFFSETS])
            first = offsets[state]
            count = offsets[state + 1] - first
            if count > WALK_LIMIT:
                return np.int64(state)
            tokens = int32_at(d[MASK_TOKENS] + 4 * np.int64(first), count)
        else:
            if d[WALKS_LEFT] >= 0:
                if d[WALKS_LEFT] == 0:
                    return np.int64(state)
                d[WALKS_LEFT] -= 1
            count = walk_from(d, state, tokens, WALK_LIMIT)
            if count < 0:
                return np.int64(state)
    _clear(row, tracked)
    num_tracked = _set(row, tracked, np.int64(0), tokens, count)
    if accepts(d, state):
        stop_ids = stop_ids_of(d)
        num_tracked = _set(row, tracked, num_tracked, stop_ids, len(stop_ids))
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
    return _fill(d, state_of(record), row, _tracked(target[TARGET_TRACKED], index))


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
    result = _fill(descriptor_of(record), state_of(record), row, untracked)
    return result, _row_tokens(row) if result == DONE else np.empty(0, np.int32)


@kernel("boolean(int64)", nogil=False)
def has_continuation(record):
    """Whether any token with bytes is legal now. Stops at the first one found."""
    d = descriptor_of(record)
    state = state_of(record)
    if state == TERMINATED:
        return False
    # No room for a single token: the walk ends as soon as it finds one.
    return walk_from(d, state, int32_at(np.int64(0), 0), np.int64(1) << 62) < 0
