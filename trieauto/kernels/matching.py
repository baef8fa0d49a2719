"""What runs once for each token of each sequence: fill a mask row, accept a token.

Two tables of int64 words stand for a constraint and for a sequence, so that a kernel needs one number to reach
everything (see ``memory``):

- a *descriptor*, one for each constraint, holds the addresses and lengths of its arrays (the names below);
- a *record*, one for each matcher: the address of its constraint's descriptor and its state.

These kernels keep the interpreter lock: they take about a microsecond, and holding it is also what keeps a ready mask
from being evicted while it is read.
"""

from __future__ import annotations

import numpy as np

from .edges import edge_target, first_edge, last_edge, next_edge, step
from .jit import helper, kernel
from .memory import int32_at, int64_at, uint8_at
from .strings import BYTES
from .walk import collect, enlarged

# Descriptor words.
LABELS, NUM_LABELS, LINKS, NUM_LINKS, TARGETS, NUM_TARGETS, ACCEPTING, NUM_STATES, LIVE, NUM_LIVE = range(10)
NODES, NUM_SLOTS, TOKEN_IDS, NUM_TOKEN_IDS, MAX_TOKEN_LENGTH = range(10, 15)
TOKEN_DATA, NUM_TOKEN_BYTES, TOKEN_OFFSETS, NUM_TOKENS, STOP_IDS, NUM_STOP_IDS, SIZE = range(15, 22)
MASK_OFFSETS, NUM_MASK_OFFSETS, MASK_TOKENS, NUM_MASK_TOKENS, READY, READY_CAPACITY, SCRATCH = range(22, 29)
DESCRIPTOR_WORDS = 32

_ARRAYS = "uint8[::1], int32[::1], int32[::1], uint8[::1], uint8[::1]"
_TOKEN_ARRAYS = f"int32[:, ::1], int32[::1], {BYTES}, int64[::1], int32[::1]"


# Record words.
DESCRIPTOR, STATE = 0, 1
RECORD_WORDS = 2
TERMINATED = -1  # the state after a stop token

# A row of the ready table: the state (-1: free), the address of its mask, how many token ids that holds (-1: it is a
# whole bitmap row), whether it was used since the last eviction looked at it.
READY_STATE, READY_MASK, READY_COUNT, READY_USED = 0, 1, 2, 3
READY_WORDS = 4

DONE = -1
REFUSED = -2
DOES_NOT_FIT = -3
WALK_LIMIT = 64  # edges; a mask that takes a longer walk is made once and kept
SCRATCH_TOKENS = 4 * WALK_LIMIT

# The target of a fill: where a bitmask is, its rows, their stride in bytes and width in words, and the address of
# int32[rows, TRACKED_WORDS + 1] for a tracked one, else 0.
TARGET_MEMORY, TARGET_ROWS, TARGET_STRIDE, TARGET_ROW_WORDS, TARGET_TRACKED = range(5)
TARGET_WORDS = 5

# A row of a tracked bitmap (see ``bitmask.TokenBitmask``): how many words may be nonzero (-1: any), and which.
TRACKED_WORDS = 63


@kernel(f"void(int64[::1], {_ARRAYS}, {_TOKEN_ARRAYS}, int32[::1], int32[::1], int64, int64, int32[::1])")
def describe(
    d, labels, links, targets, accepting, live, nodes, token_ids, token_data, token_offsets, stop_ids,
    mask_offsets, mask_tokens, max_token_length, size, scratch,
):  # fmt: skip
    """Write a descriptor, int64[DESCRIPTOR_WORDS]. Whoever keeps it keeps the arrays.

    ``live`` may be empty (every state is), and so may ``mask_offsets`` (masks are found when needed).
    ``scratch``: int32[scratch_length(max_token_length)], working space that may be shared by everything, since only
    kernels that hold the interpreter lock write there.
    """
    d[LABELS], d[NUM_LABELS] = labels.ctypes.data, len(labels)
    d[LINKS], d[NUM_LINKS] = links.ctypes.data, len(links)
    d[TARGETS], d[NUM_TARGETS] = targets.ctypes.data, len(targets)
    d[ACCEPTING], d[NUM_STATES] = accepting.ctypes.data, len(accepting)
    d[LIVE], d[NUM_LIVE] = live.ctypes.data, len(live)
    d[NODES], d[NUM_SLOTS] = nodes.ctypes.data, len(nodes)
    d[TOKEN_IDS], d[NUM_TOKEN_IDS] = token_ids.ctypes.data, len(token_ids)
    d[TOKEN_DATA], d[NUM_TOKEN_BYTES] = token_data.ctypes.data, len(token_data)
    d[TOKEN_OFFSETS], d[NUM_TOKENS] = token_offsets.ctypes.data, len(token_offsets) - 1
    d[STOP_IDS], d[NUM_STOP_IDS] = stop_ids.ctypes.data, len(stop_ids)
    d[MASK_OFFSETS], d[NUM_MASK_OFFSETS] = mask_offsets.ctypes.data, len(mask_offsets)
    d[MASK_TOKENS], d[NUM_MASK_TOKENS] = mask_tokens.ctypes.data, len(mask_tokens)
    d[MAX_TOKEN_LENGTH], d[SIZE], d[SCRATCH] = max_token_length, size, scratch.ctypes.data
    d[READY] = d[READY_CAPACITY] = 0


@helper
def _descriptor(record):
    return int64_at(int64_at(record, RECORD_WORDS)[DESCRIPTOR], DESCRIPTOR_WORDS)


@helper
def _labels(d):
    return uint8_at(d[LABELS], d[NUM_LABELS])


@helper
def _links(d):
    return int32_at(d[LINKS], d[NUM_LINKS])


@helper
def _targets(d):
    return int32_at(d[TARGETS], d[NUM_TARGETS])


@helper
def _live(d):
    return uint8_at(d[LIVE], d[NUM_LIVE])


@helper
def _is_accepting(d, state):
    return state == TERMINATED or uint8_at(d[ACCEPTING], d[NUM_STATES])[state] != 0


@helper
def _stop_ids(d):
    return int32_at(d[STOP_IDS], d[NUM_STOP_IDS])


def scratch_length(max_token_length: int) -> int:
    """int32 words of working space: a walk's stack, and the tokens it finds."""
    return 3 * (max_token_length + 1) + SCRATCH_TOKENS


@helper
def _scratch_tokens(d):
    return int32_at(d[SCRATCH] + 12 * (d[MAX_TOKEN_LENGTH] + 1), SCRATCH_TOKENS)


@helper
def _walk(d, state, tokens, limit):
    nodes = int32_at(d[NODES], d[NUM_SLOTS] * 4).reshape((d[NUM_SLOTS], 4))
    token_ids = int32_at(d[TOKEN_IDS], d[NUM_TOKEN_IDS])
    nowhere = int32_at(np.int64(0), 0)
    depth = d[MAX_TOKEN_LENGTH] + 1
    stack = int32_at(d[SCRATCH], 3 * depth).reshape((depth, 3))
    return collect(
        _labels(d), _links(d), _targets(d), _live(d), nodes, token_ids, state, stack, tokens, nowhere, 0, limit
    )


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
    tokens = _scratch_tokens(d)
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
            count = _walk(d, state, tokens, WALK_LIMIT)
            if count < 0:
                return np.int64(state)
    _clear(row, tracked)
    num_tracked = _set(row, tracked, np.int64(0), tokens, count)
    if _is_accepting(d, state):
        stop_ids = _stop_ids(d)
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
    d = _descriptor(record)
    row_words = target[TARGET_ROW_WORDS]
    if index < 0 or index >= target[TARGET_ROWS] or 32 * row_words < d[SIZE]:
        return np.int64(DOES_NOT_FIT)
    row = int32_at(target[TARGET_MEMORY] + index * target[TARGET_STRIDE], row_words)
    return _fill(d, int64_at(record, RECORD_WORDS)[STATE], row, _tracked(target[TARGET_TRACKED], index))


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
def _state_after(d, state, token):
    """The state after a token, or ``REFUSED``."""
    if token < 0 or token >= d[SIZE]:
        return np.int64(REFUSED)
    begin = end = np.int64(0)
    if token < d[NUM_TOKENS]:
        offsets = int64_at(d[TOKEN_OFFSETS], d[NUM_TOKENS] + 1)
        begin, end = offsets[token], offsets[token + 1]
    if begin == end:
        stop_ids = _stop_ids(d)
        for k in range(len(stop_ids)):
            if stop_ids[k] == token:
                return np.int64(TERMINATED) if _is_accepting(d, state) else np.int64(REFUSED)
        return np.int64(REFUSED)
    if state == TERMINATED:
        return np.int64(REFUSED)
    labels, links, targets = _labels(d), _links(d), _targets(d)
    data = uint8_at(d[TOKEN_DATA], d[NUM_TOKEN_BYTES])
    for k in range(begin, end):
        state = np.int64(step(labels, links, targets, state, data[k]))
        if state < 0:
            return np.int64(REFUSED)
    live = _live(d)
    return state if len(live) == 0 or live[state] != 0 else np.int64(REFUSED)


@kernel("int64(int64, int64)", nogil=False)
def accept(record, token):
    """Take a token: the state before it, or ``REFUSED`` (nothing has changed then). O(bytes of the token)."""
    words = int64_at(record, RECORD_WORDS)
    before = words[STATE]
    after = _state_after(_descriptor(record), before, token)
    if after == REFUSED:
        return np.int64(REFUSED)
    words[STATE] = after
    return before


@kernel("int64(int64, int64[::1], int64[::1])", nogil=False)
def follow(record, tokens, states):
    """How many of the tokens could be accepted one after the other; the state before each goes to ``states``, and
    the one after the last to the place behind it. ``states`` int64[len(tokens) + 1]. Changes nothing else."""
    d = _descriptor(record)
    states[0] = int64_at(record, RECORD_WORDS)[STATE]
    for k in range(len(tokens)):
        after = _state_after(d, states[k], tokens[k])
        if after == REFUSED:
            return np.int64(k)
        states[k + 1] = after
    return np.int64(len(tokens))


@kernel("int64(int64)", nogil=False)
def get_state(record):
    return int64_at(record, RECORD_WORDS)[STATE]


@kernel("void(int64, int64)", nogil=False)
def set_state(record, state):
    int64_at(record, RECORD_WORDS)[STATE] = state


@kernel("void(int64, int64, int64)", nogil=False)
def set_record(record, descriptor, state):
    words = int64_at(record, RECORD_WORDS)
    words[DESCRIPTOR] = descriptor
    words[STATE] = state


@kernel("boolean(int64)", nogil=False)
def is_accepting(record):
    return _is_accepting(_descriptor(record), int64_at(record, RECORD_WORDS)[STATE])


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
    result = _fill(_descriptor(record), int64_at(record, RECORD_WORDS)[STATE], row, untracked)
    return result, _row_tokens(row) if result == DONE else np.empty(0, np.int32)


@kernel("boolean(int64)", nogil=False)
def has_continuation(record):
    """Whether any token with bytes is legal now. Stops at the first one found."""
    d = _descriptor(record)
    state = int64_at(record, RECORD_WORDS)[STATE]
    if state == TERMINATED:
        return False
    # No room for a single token: the walk ends as soon as it finds one.
    return _walk(d, state, int32_at(np.int64(0), 0), np.int64(1) << 62) < 0


@kernel("uint8[::1](int64, uint8[::1], uint8[::1], int64)", nogil=False)
def forced_bytes(record, reached, passed, limit):
    """The bytes that every continuation shares, ``limit`` at most: uint8. Ends where the answer may stop.

    ``reached`` uint8[N], ``passed`` uint8[edges]: the states and edges that count (see ``walk.spelled``); all of them
    where these are empty.
    """
    d = _descriptor(record)
    state = int64_at(record, RECORD_WORDS)[STATE]
    labels, links, targets = _labels(d), _links(d), _targets(d)
    out = np.empty(64, np.uint8)
    count = 0
    while count < limit:
        if _is_accepting(d, state) and (len(reached) == 0 or reached[state] != 0):
            break
        only = np.int64(-1)
        edge, stop = np.int64(first_edge(links, targets, state)), last_edge(links, targets, state)
        while edge < stop:
            if len(passed) == 0 or passed[edge] != 0:
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
