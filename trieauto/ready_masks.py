"""Masks that are made when first needed and kept, up to a number of bytes."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from .kernels.descriptor import set_ready_table
from .kernels.filling import (
    READY_COUNT,
    READY_MASK,
    READY_STATE,
    READY_USED,
    READY_WORDS,
    find_ready_place,
)

_INITIAL_CAPACITY = 64


class ReadyMasks:
    """A table from states to finished masks, which kernels read by its address.

    Kernels that read it hold the interpreter lock, and everything here that changes it runs in Python under the same
    lock, so a mask is never evicted while it is copied. ``_lock`` keeps two threads from changing it at once.

    When ``limit`` bytes are exceeded, masks go that were not used since the table was last looked through (the clock
    approximation of least recently used), which kernels note in the table as they read.

    Args:
        limit: bytes of masks to keep; the one made last is always kept.
        descriptor: of the constraint, int64; pointed at the table.
    """

    def __init__(self, limit: int, descriptor: npt.NDArray[np.int64]) -> None:
        self._limit = limit
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._masks: dict[int, npt.NDArray[np.int32]] = {}
        self._is_row: dict[int, bool] = {}
        self._table = np.empty((0, READY_WORDS), np.int64)
        self.nbytes = 0
        self.num_made = 0

    def __len__(self) -> int:
        return len(self._masks)

    def add(self, state: int, mask: npt.NDArray[np.int32], is_row: bool) -> None:
        """Keep the mask of a state: a whole bitmap row, or a list of token ids."""
        with self._lock:
            if state in self._masks:
                return  # another thread was first
            if self.nbytes + mask.nbytes > self._limit:
                self._evict(mask.nbytes)
            self._masks[state] = mask
            self._is_row[state] = is_row
            self.nbytes += mask.nbytes
            self.num_made += 1
            if 2 * len(self._masks) > len(self._table):
                self._rebuild(max(_INITIAL_CAPACITY, 4 * len(self._masks)))
            else:
                self._enter(self._table, state)

    def _enter(self, table: npt.NDArray[np.int64], state: int) -> None:
        row = table[find_ready_place(table, state)]
        mask = self._masks[state]
        row[READY_MASK] = mask.ctypes.data
        row[READY_COUNT] = -1 if self._is_row[state] else len(mask)
        row[READY_USED] = 1
        row[READY_STATE] = state  # last: a row without its state is free

    def _rebuild(self, capacity: int) -> None:
        table = np.full((1 << (capacity - 1).bit_length(), READY_WORDS), -1, np.int64)
        for state in self._masks:
            self._enter(table, state)
        set_ready_table(self._descriptor, table)
        self._table = table  # the old one goes only now

    def _evict(self, room: int) -> None:
        """Drop unused masks, oldest first, until ``room`` bytes are free; used ones too if that is not enough."""
        used = set(self._table[self._table[:, READY_USED] == 1, READY_STATE].tolist())
        candidates = [s for s in self._masks if s not in used] + [s for s in self._masks if s in used]
        kept = dict(self._masks)  # what the old table points at stays alive until the new one is published
        target = max(0, min(self._limit - room, self._limit * 3 // 4))
        for state in candidates:
            if self.nbytes <= target:
                break
            self.nbytes -= self._masks.pop(state).nbytes
            del self._is_row[state]
        self._rebuild(max(_INITIAL_CAPACITY, 4 * len(self._masks)))
        self._table[:, READY_USED] = 0
        kept.clear()
