"""Sequences of token ids end to end: sequence ``i`` is ``ids[offsets[i]:offsets[i + 1]]``; int32, int64."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .strings import BYTES

SAME, SPACE_BEFORE, OTHER_TEXT, NO_TEXT, JOINED, NOT_UTF8 = range(6)
ID_BYTES = 4
_SPACE = 0x20


@helper
def _relation(ids, begin, end, context, token_data, token_offsets, data, first, last, may_add_space):
    if end - begin < len(context):
        return JOINED
    for k in range(len(context)):
        if ids[begin + k] != context[k]:
            return JOINED
    begin += len(context)
    length = np.int64(0)
    for k in range(begin, end):
        token = np.int64(ids[k])
        if token < 0 or token >= len(token_offsets) - 1 or token_offsets[token] == token_offsets[token + 1]:
            return NO_TEXT
        length += token_offsets[token + 1] - token_offsets[token]
    added = length - (last - first)
    if added != 0 and not (added == 1 and may_add_space):
        return OTHER_TEXT
    position = first - added
    for k in range(begin, end):
        for at in range(token_offsets[ids[k]], token_offsets[ids[k] + 1]):
            if token_data[at] != (_SPACE if position < first else data[position]):
                return OTHER_TEXT
            position += 1
    return SAME if added == 0 else SPACE_BEFORE


@kernel(f"uint8[::1](int32[::1], int64[::1], int32[::1], {BYTES}, int64[::1], {BYTES}, int64[::1], boolean)")
def relations(ids, id_offsets, context, token_data, token_offsets, data, offsets, may_add_space):
    """What the tokens of each of K strings have to do with its bytes. O(tokens + bytes).

    Args:
        ids, id_offsets: the tokens of each string, those of what stands before it included.
        context: the tokens of what stands before, alone.
        token_data, token_offsets: the bytes of every token; none for a special token, a stop token and the like.
        data, offsets: the packed strings.
        may_add_space: whether the tokenizer may write a space before a string.

    Returns:
        uint8[K]: ``SAME``, the tokens after ``context`` have exactly the string's bytes; ``SPACE_BEFORE``, a space and
        then these; ``OTHER_TEXT``, other bytes; ``NO_TEXT``, one of them has no bytes; ``JOINED``, they do not begin
        with ``context``.
    """
    found = np.empty(len(offsets) - 1, np.uint8)
    for i in range(len(found)):
        found[i] = _relation(
            ids, id_offsets[i], id_offsets[i + 1], context, token_data, token_offsets,
            data, offsets[i], offsets[i + 1], may_add_space,
        )  # fmt: skip
    return found


@kernel("Tuple((int32[::1], int64[::1]))(int32[::1], int64[::1], int64[::1], int64)")
def chosen_rows(ids, offsets, rows, skip):
    """Some of the sequences, each without its first ``skip`` ids: ids int32, offsets int64[len(rows) + 1]."""
    kept_offsets = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        kept_offsets[i + 1] = kept_offsets[i] + offsets[rows[i] + 1] - offsets[rows[i]] - skip
    kept = np.empty(kept_offsets[len(rows)], np.int32)
    for i in range(len(rows)):
        begin = offsets[rows[i]] + skip - kept_offsets[i]
        for k in range(kept_offsets[i], kept_offsets[i + 1]):
            kept[k] = ids[begin + k]
    return kept, kept_offsets


@kernel("uint8[::1](int32[::1])")
def sortable_bytes(ids):
    """The ids in ``ID_BYTES`` bytes each, which sort as they do: uint8[4 · len(ids)]."""
    data = np.empty(ID_BYTES * len(ids), np.uint8)
    for i in range(len(ids)):
        data[4 * i] = (ids[i] >> 24) & 255
        data[4 * i + 1] = (ids[i] >> 16) & 255
        data[4 * i + 2] = (ids[i] >> 8) & 255
        data[4 * i + 3] = ids[i] & 255
    return data
