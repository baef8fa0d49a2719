"""Open hash tables: keys int64[2**k], ``EMPTY`` where there is none; what belongs to a key is kept elsewhere."""

from __future__ import annotations

import numpy as np

from .jit import helper

EMPTY = np.int64(-1)  # so keys are not negative


@helper
def slot_of(keys, key):
    """Where a key is, or would be. At least one place must be empty."""
    mask = len(keys) - 1
    mixed = key * np.int64(-7046029254386353131)
    slot = (mixed ^ (mixed >> 29)) & mask
    while keys[slot] != key and keys[slot] != EMPTY:
        slot = (slot + 1) & mask
    return slot
