"""Taking tokens: from one state of a sequence to the next."""

from __future__ import annotations

import numpy as np

from .descriptor import (
    NUM_TOKEN_BYTES,
    NUM_TOKENS,
    RECORD_WORDS,
    REMAINING,
    SIZE,
    STATE,
    TERMINATED,
    TOKEN_DATA,
    TOKEN_OFFSETS,
    accepts,
    descriptor_of,
    distances_of,
    has_token_edges,
    labels_of,
    links_of,
    remaining_of,
    state_of,
    step_by_token,
    stop_ids_of,
    targets_of,
)
from .edges import step
from .jit import helper, kernel
from .memory import int64_at, uint8_at
from .walk import ANY_DISTANCE, is_within

REFUSED = -2


@helper
def _is_stop_id(d, token):
    stop_ids = stop_ids_of(d)
    for k in range(len(stop_ids)):  # noqa: SIM110 (numba)
        if stop_ids[k] == token:
            return True
    return False


@helper
def _state_after(d, state, remaining, token):
    """The state after a token, or ``REFUSED``."""
    if token < 0 or token >= d[SIZE]:
        return np.int64(REFUSED)
    begin = end = np.int64(0)
    if token < d[NUM_TOKENS]:
        offsets = int64_at(d[TOKEN_OFFSETS], d[NUM_TOKENS] + 1)
        begin, end = offsets[token], offsets[token + 1]
    if begin == end and _is_stop_id(d, token):
        return np.int64(TERMINATED) if accepts(d, state) else np.int64(REFUSED)
    if state == TERMINATED or remaining <= 0:
        return np.int64(REFUSED)
    if has_token_edges(d):
        state = step_by_token(d, state, token)
    elif begin == end:
        state = np.int64(-1)
    else:
        labels, links, targets = labels_of(d), links_of(d), targets_of(d)
        data = uint8_at(d[TOKEN_DATA], d[NUM_TOKEN_BYTES])
        for k in range(begin, end):
            state = np.int64(step(labels, links, targets, state, data[k]))
            if state < 0:
                break
    most = remaining - 1
    if state < 0 or not is_within(distances_of(d, most), min(most, ANY_DISTANCE), state):
        return np.int64(REFUSED)
    return state


@kernel("int64(int64, int64)", nogil=False)
def accept(record, token):
    """Take a token: the state before it, or ``REFUSED`` (nothing has changed then). O(bytes of the token)."""
    words = int64_at(record, RECORD_WORDS)
    before = words[STATE]
    after = _state_after(descriptor_of(record), before, words[REMAINING], token)
    if after == REFUSED:
        return np.int64(REFUSED)
    words[STATE] = after
    words[REMAINING] -= 1
    return before


@kernel("int64(int64, int64[::1], int64[::1])", nogil=False)
def follow(record, tokens, states):
    """How many of the tokens could be accepted one after the other; the state before each goes to ``states``, and
    the one after the last to the place behind it. ``states`` int64[len(tokens) + 1]. Changes nothing else."""
    d = descriptor_of(record)
    remaining = remaining_of(record)
    states[0] = state_of(record)
    for k in range(len(tokens)):
        after = _state_after(d, states[k], remaining - k, tokens[k])
        if after == REFUSED:
            return np.int64(k)
        states[k + 1] = after
    return np.int64(len(tokens))


@kernel("boolean(int64)", nogil=False)
def is_accepting(record):
    return accepts(descriptor_of(record), state_of(record))
