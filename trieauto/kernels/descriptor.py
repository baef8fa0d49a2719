"""What stands for a constraint and for a sequence in kernels, so that one number reaches everything (see ``memory``).

- A *descriptor*, int64 words, one for each constraint: the addresses and lengths of its arrays, named below.
- A *record*, int64 words, one for each matcher: the address of its constraint's descriptor, its state, and how many
  tokens its budget still has (``NO_BUDGET`` or a little less where there is none).

The kernels that go by them (``filling``, ``moving``) take about a microsecond and keep the interpreter lock. That is
also what keeps a ready mask from being evicted while it is read, and lets all of them share one working space.
"""

from __future__ import annotations

import numpy as np

from .edges import find_edge
from .jit import helper, kernel
from .memory import int32_at, int64_at, uint8_at
from .strings import BYTES
from .walk import ANY_DISTANCE, AUTOMATON, TOKEN_TRIE, collect_in_edge_lists, collect_in_trie

LABELS, NUM_LABELS, LINKS, NUM_LINKS, TARGETS, NUM_TARGETS, ACCEPTING, NUM_STATES = range(8)
NODES, SIBLINGS, NUM_SLOTS, TOKEN_IDS, NUM_TOKEN_IDS, MAX_TOKEN_LENGTH = range(8, 14)
TOKEN_DATA, NUM_TOKEN_BYTES, TOKEN_OFFSETS, NUM_TOKENS, STOP_IDS, NUM_STOP_IDS, SIZE = range(14, 21)
MASK_OFFSETS, MASK_TOKENS, NUM_MASK_TOKENS, MASK_TARGETS = range(21, 25)
DISTANCES, FARTHEST, HAS_DEAD_STATES, READY, READY_CAPACITY, ALIKE, SCRATCH, WALKS_LEFT = range(25, 33)
DESCRIPTOR_WORDS = 40

# Record words.
DESCRIPTOR, STATE, REMAINING = 0, 1, 2
RECORD_WORDS = 3
TERMINATED = -1  # the state after a stop token
NO_BUDGET = 2**62  # tokens; each that is taken counts down from here too, and is never missed

WALK_LIMIT = 64  # edges; a mask that takes a longer walk is made once and kept
LIST_LIMIT = 4 * WALK_LIMIT  # tokens; a mask of more is kept as a bitmap row: copying 19 KB beats setting so many bits


@kernel(
    f"void(int64[::1], {AUTOMATON}, uint8[::1], {TOKEN_TRIE}, int64, {BYTES}, int64[::1], int32[::1], int64,"
    " int32[::1], int64)"
)
def describe(
    d, labels, links, targets, accepting, nodes, siblings, token_ids, max_token_length,
    token_data, token_offsets, stop_ids, size, scratch, walks_left,
):  # fmt: skip
    """Write a descriptor, int64[DESCRIPTOR_WORDS], without masks or distances. Whoever keeps it keeps the arrays.

    ``scratch``: int32[scratch_length(max_token_length)], working space that may be shared by everything, since only
    kernels that hold the interpreter lock write there. ``walks_left``: after how many masks found by walking all of
    them should be stored; -1 for never.
    """
    for k in range(len(d)):
        d[k] = 0
    d[LABELS], d[NUM_LABELS] = labels.ctypes.data, len(labels)
    d[LINKS], d[NUM_LINKS] = links.ctypes.data, len(links)
    d[TARGETS], d[NUM_TARGETS] = targets.ctypes.data, len(targets)
    d[ACCEPTING], d[NUM_STATES] = accepting.ctypes.data, len(accepting)
    d[NODES], d[SIBLINGS], d[NUM_SLOTS] = nodes.ctypes.data, siblings.ctypes.data, len(nodes)
    d[TOKEN_IDS], d[NUM_TOKEN_IDS] = token_ids.ctypes.data, len(token_ids)
    d[TOKEN_DATA], d[NUM_TOKEN_BYTES] = token_data.ctypes.data, len(token_data)
    d[TOKEN_OFFSETS], d[NUM_TOKENS] = token_offsets.ctypes.data, len(token_offsets) - 1
    d[STOP_IDS], d[NUM_STOP_IDS] = stop_ids.ctypes.data, len(stop_ids)
    d[MAX_TOKEN_LENGTH], d[SIZE], d[SCRATCH] = max_token_length, size, scratch.ctypes.data
    d[WALKS_LEFT] = walks_left


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1])", nogil=False)
def set_masks(d, offsets, tokens, targets):
    """Store the masks of all states, all at once: tokens ``tokens[offsets[s]:offsets[s + 1]]`` are legal in state s.

    ``targets`` says where each leads, if the tokens themselves are the edges (a token automaton: then they ascend);
    it is empty for an automaton over bytes.
    """
    d[MASK_OFFSETS] = offsets.ctypes.data
    d[MASK_TOKENS], d[NUM_MASK_TOKENS] = tokens.ctypes.data, len(tokens)
    d[MASK_TARGETS] = targets.ctypes.data if len(targets) > 0 else 0
    d[WALKS_LEFT] = -1


@kernel("void(int64[::1], int32[::1], int64, boolean)", nogil=False)
def set_distances(d, distances, farthest, has_dead_states):
    """Point a descriptor at the fewest tokens from each state to the end.

    ``farthest``: the largest of them that is finite. ``has_dead_states``: whether some are not, so that they count
    without a budget too.
    """
    d[DISTANCES], d[FARTHEST], d[HAS_DEAD_STATES] = distances.ctypes.data, farthest, has_dead_states


@kernel("void(int64[::1], int64[:, ::1])", nogil=False)
def set_ready_table(d, table):
    """Point a descriptor at another ready table (see ``filling``), its address and its length at once."""
    d[READY], d[READY_CAPACITY] = table.ctypes.data, len(table)


@kernel("void(int64[::1], int32[::1])", nogil=False)
def set_alike(d, alike):
    """Let ready masks be those of all states that are alike: int32[N], for each state the one that stands for it
    (see ``equality``). Empty: each for itself."""
    d[ALIKE] = alike.ctypes.data if len(alike) > 0 else 0


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
def distances_of(d, most):
    """int32[N], or empty where the end can be reached in ``most`` tokens from every state (see ``walk.is_within``)."""
    counts = d[HAS_DEAD_STATES] != 0 or most < d[FARTHEST]
    return int32_at(d[DISTANCES], d[NUM_STATES] if counts else np.int64(0))


@helper
def has_token_edges(d):
    return d[MASK_TARGETS] != 0


@helper
def mask_of(d, state):
    """Where the stored mask of a state begins, and where it ends."""
    offsets = int32_at(d[MASK_OFFSETS], d[NUM_STATES] + 1)
    return np.int64(offsets[state]), np.int64(offsets[state + 1])


@helper
def mask_tokens_of(d):
    return int32_at(d[MASK_TOKENS], d[NUM_MASK_TOKENS])


@helper
def mask_targets_of(d):
    return int32_at(d[MASK_TARGETS], d[NUM_MASK_TOKENS])


@helper
def step_by_token(d, state, token):
    """The state that an edge of a token automaton leads to, or -1."""
    edge = find_edge(mask_tokens_of(d), int32_at(d[MASK_OFFSETS], d[NUM_STATES] + 1), state, token)
    return np.int64(mask_targets_of(d)[edge]) if edge >= 0 else np.int64(-1)


@helper
def accepts(d, state):
    return state == TERMINATED or uint8_at(d[ACCEPTING], d[NUM_STATES])[state] != 0


@helper
def stop_ids_of(d):
    return int32_at(d[STOP_IDS], d[NUM_STOP_IDS])


def scratch_length(max_token_length: int) -> int:
    """int32 words of working space: a walk's stack, and the tokens it finds."""
    return 4 * (max_token_length + 1) + LIST_LIMIT


@helper
def scratch_tokens_of(d):
    return int32_at(d[SCRATCH] + 16 * (d[MAX_TOKEN_LENGTH] + 1), LIST_LIMIT)


@helper
def nodes_of(d):
    return int32_at(d[NODES], d[NUM_SLOTS] * 4).reshape((d[NUM_SLOTS], 4))


@helper
def walk_from(d, state, most, tokens, limit):
    """Collect into ``tokens`` (see ``walk``) what is legal in ``state`` if ``most`` tokens may follow."""
    nodes = nodes_of(d)
    siblings = uint8_at(d[SIBLINGS], d[NUM_SLOTS] * 2).reshape((d[NUM_SLOTS], 2))
    token_ids = int32_at(d[TOKEN_IDS], d[NUM_TOKEN_IDS])
    nowhere = int32_at(np.int64(0), 0)
    depth = d[MAX_TOKEN_LENGTH] + 1
    stack = int32_at(d[SCRATCH], 4 * depth).reshape((depth, 4))
    distances, most = distances_of(d, most), min(most, np.int64(ANY_DISTANCE))
    if d[NUM_TARGETS] == 0:
        return collect_in_trie(
            labels_of(d), links_of(d), distances, most, nodes, token_ids,
            state, stack, tokens, nowhere, np.int64(0), limit,
        )  # fmt: skip
    return collect_in_edge_lists(
        labels_of(d), links_of(d), targets_of(d), distances, most, nodes, siblings, token_ids,
        state, stack, tokens, nowhere, np.int64(0), limit,
    )  # fmt: skip


@helper
def remaining_of(record):
    return int64_at(record, RECORD_WORDS)[REMAINING]


@kernel("void(int64, int64, int64, int64)", nogil=False)
def set_record(record, descriptor, state, remaining):
    words = int64_at(record, RECORD_WORDS)
    words[DESCRIPTOR] = descriptor
    words[STATE] = state
    words[REMAINING] = remaining


@kernel("int64(int64)", nogil=False)
def get_state(record):
    return state_of(record)


@kernel("int64(int64)", nogil=False)
def get_remaining(record):
    return remaining_of(record)


@kernel("void(int64, int64, int64)", nogil=False)
def move_to(record, state, remaining):
    words = int64_at(record, RECORD_WORDS)
    words[STATE] = state
    words[REMAINING] = remaining
