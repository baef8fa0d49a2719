"""What stands for a constraint and for a sequence in kernels, so that one number reaches everything (see ``memory``).

- A *descriptor*, int64 words, one for each constraint: the addresses and lengths of its arrays, named below.
- A *record*, int64 words, one for each matcher: the address of its constraint's descriptor, and its state.

The kernels that go by them (``filling``, ``moving``) take about a microsecond and keep the interpreter lock. That is
also what keeps a ready mask from being evicted while it is read, and lets all of them share one working space.
"""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .memory import int32_at, int64_at, uint8_at
from .strings import BYTES
from .walk import collect

LABELS, NUM_LABELS, LINKS, NUM_LINKS, TARGETS, NUM_TARGETS, ACCEPTING, NUM_STATES, LIVE, NUM_LIVE = range(10)
NODES, NUM_SLOTS, TOKEN_IDS, NUM_TOKEN_IDS, MAX_TOKEN_LENGTH = range(10, 15)
TOKEN_DATA, NUM_TOKEN_BYTES, TOKEN_OFFSETS, NUM_TOKENS, STOP_IDS, NUM_STOP_IDS, SIZE = range(15, 22)
MASK_OFFSETS, NUM_MASK_OFFSETS, MASK_TOKENS, NUM_MASK_TOKENS, READY, READY_CAPACITY, SCRATCH, WALKS_LEFT = range(22, 30)
DESCRIPTOR_WORDS = 32

# Record words.
DESCRIPTOR, STATE = 0, 1
RECORD_WORDS = 2
TERMINATED = -1  # the state after a stop token

WALK_LIMIT = 64  # edges; a mask that takes a longer walk is made once and kept
SCRATCH_TOKENS = 4 * WALK_LIMIT

_AUTOMATON_ARRAYS = "uint8[::1], int32[::1], int32[::1], uint8[::1], uint8[::1]"
_TOKEN_ARRAYS = f"int32[:, ::1], int32[::1], {BYTES}, int64[::1], int32[::1]"


@kernel(
    f"void(int64[::1], {_AUTOMATON_ARRAYS}, {_TOKEN_ARRAYS}, int32[::1], int32[::1], int64, int64, int32[::1], int64)"
)
def describe(
    d, labels, links, targets, accepting, live, nodes, token_ids, token_data, token_offsets, stop_ids,
    mask_offsets, mask_tokens, max_token_length, size, scratch, walks_left,
):  # fmt: skip
    """Write a descriptor, int64[DESCRIPTOR_WORDS]. Whoever keeps it keeps the arrays.

    ``live`` may be empty (every state is), and so may ``mask_offsets`` (masks are found when needed).
    ``scratch``: int32[scratch_length(max_token_length)], working space that may be shared by everything, since only
    kernels that hold the interpreter lock write there. ``walks_left``: after how many masks found by walking all of
    them should be stored; -1 for never.
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
    d[WALKS_LEFT] = walks_left


@kernel("void(int64[::1], int32[::1], int32[::1])", nogil=False)
def set_masks(d, mask_offsets, mask_tokens):
    """Store the masks of all states in a descriptor, all at once."""
    d[MASK_OFFSETS], d[NUM_MASK_OFFSETS] = mask_offsets.ctypes.data, len(mask_offsets)
    d[MASK_TOKENS], d[NUM_MASK_TOKENS] = mask_tokens.ctypes.data, len(mask_tokens)
    d[WALKS_LEFT] = -1


@kernel("void(int64[::1], int64[:, ::1])", nogil=False)
def set_ready_table(d, table):
    """Point a descriptor at another ready table (see ``filling``), its address and its length at once."""
    d[READY], d[READY_CAPACITY] = table.ctypes.data, len(table)


@helper
def descriptor_of(record):
    return int64_at(int64_at(record, RECORD_WORDS)[DESCRIPTOR], DESCRIPTOR_WORDS)


@helper
def state_of(record):
    return int64_at(record, RECORD_WORDS)[STATE]


@helper
def labels_of(d):
    return uint8_at(d[LABELS], d[NUM_LABELS])


@helper
def links_of(d):
    return int32_at(d[LINKS], d[NUM_LINKS])


@helper
def targets_of(d):
    return int32_at(d[TARGETS], d[NUM_TARGETS])


@helper
def live_of(d):
    return uint8_at(d[LIVE], d[NUM_LIVE])


@helper
def accepts(d, state):
    return state == TERMINATED or uint8_at(d[ACCEPTING], d[NUM_STATES])[state] != 0


@helper
def stop_ids_of(d):
    return int32_at(d[STOP_IDS], d[NUM_STOP_IDS])


def scratch_length(max_token_length: int) -> int:
    """int32 words of working space: a walk's stack, and the tokens it finds."""
    return 3 * (max_token_length + 1) + SCRATCH_TOKENS


@helper
def scratch_tokens_of(d):
    return int32_at(d[SCRATCH] + 12 * (d[MAX_TOKEN_LENGTH] + 1), SCRATCH_TOKENS)


@helper
def walk_from(d, state, tokens, limit):
    nodes = int32_at(d[NODES], d[NUM_SLOTS] * 4).reshape((d[NUM_SLOTS], 4))
    token_ids = int32_at(d[TOKEN_IDS], d[NUM_TOKEN_IDS])
    nowhere = int32_at(np.int64(0), 0)
    depth = d[MAX_TOKEN_LENGTH] + 1
    stack = int32_at(d[SCRATCH], 3 * depth).reshape((depth, 3))
    return collect(
        labels_of(d),
        links_of(d),
        targets_of(d),
        live_of(d),
        nodes,
        token_ids,
        state,
        stack,
        tokens,
        nowhere,
        np.int64(0),
        limit,
    )


@kernel("void(int64, int64, int64)", nogil=False)
def set_record(record, descriptor, state):
    words = int64_at(record, RECORD_WORDS)
    words[DESCRIPTOR] = descriptor
    words[STATE] = state


@kernel("int64(int64)", nogil=False)
def get_state(record):
    return state_of(record)


@kernel("void(int64, int64)", nogil=False)
def set_state(record, state):
    int64_at(record, RECORD_WORDS)[STATE] = state
