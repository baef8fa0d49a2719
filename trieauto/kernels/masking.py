"""Logits of illegal tokens become minus infinity, in place, on the CPU."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .memory import int16_at, int32_at

EVERY_BIT = np.int32(-1)


@helper
def _mask_row(bits, row, minus_infinity):
    num_words = len(row) // 32
    word = 0
    while word < num_words:
        legal = bits[word]
        end = word + 1
        if legal == 0:
            while end < num_words and bits[end] == 0:  # long runs are written at once
                end += 1
            run = row[32 * word : 32 * end]
            for k in range(len(run)):
                run[k] = minus_infinity
        elif legal != EVERY_BIT:
            for k in range(32):
                if not (legal >> k) & 1:
                    row[32 * word + k] = minus_infinity
        word = end
    for k in range(32 * num_words, len(row)):
        if not (bits[k // 32] >> (k % 32)) & 1:
            row[k] = minus_infinity


@kernel("void(int64, int64, int64, int64, int64[::1], int64, int32)")
def mask_logits32(bitmask, bitmask_stride, logits, logits_stride, rows, width, minus_infinity):
    """Mask rows of logits of 32 bits each. O(rows · width): what it takes to write them.

    Args:
        bitmask, bitmask_stride: address of the rows of a bitmask (int32 words, at least ``width`` bits) and how many
            bytes lie between them.
        logits, logits_stride: the same of the logits.
        rows: int64[R], the row of the logits for each row of the bitmask.
        width: of a row that is masked; what follows stays as it is.
        minus_infinity: the bits of such a logit.
    """
    for i in range(len(rows)):
        bits = int32_at(bitmask + i * bitmask_stride, (width + 31) // 32)
        _mask_row(bits, int32_at(logits + rows[i] * logits_stride, width), minus_infinity)


@kernel("void(int64, int64, int64, int64, int64[::1], int64, int16)")
def mask_logits16(bitmask, bitmask_stride, logits, logits_stride, rows, width, minus_infinity):
    """The same for logits of 16 bits each (float16 and bfloat16)."""
    for i in range(len(rows)):
        bits = int32_at(bitmask + i * bitmask_stride, (width + 31) // 32)
        _mask_row(bits, int16_at(logits + rows[i] * logits_stride, width), minus_infinity)
