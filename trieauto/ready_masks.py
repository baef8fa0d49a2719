"""Masks that are made when first needed and kept, up to a number of bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .kernels.descriptor import set_ready_table
from .kernels.filling import (
    READY_COUNT,
    READY_FROM,
    READY_KEY,
    READY_MASK,
    READY_USED,
    READY_WORDS,
    find_ready_place,
)

_INITIAL_CAPACITY = 64


class ReadyMasks:
    """A table from states (or from states and budgets, see ``filling.ready_key``) to finished masks, which kernels
    read by its address.

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
        self._from: dict[int, int] = {}
        self.generation = 0
        self._table = np.empty((0, READY_WORDS), np.int64)
        self.nbytes = 0
        self.num_made = 0
        self.num_rows_made = 0

    def __len__(self) -> int:
        return len(self._masks)

    def add(self, key: int, mask: npt.NDArray[np.int32], *, is_row: bool, holds_from: int, generation: int) -> None:
        """Keep a mask: a whole bitmap row, or a list of token ids.

        It holds with ``holds_from`` tokens left and more (if the key is that of a state alone). What was made in an
        earlier ``generation`` is not kept.
        """
        with self._lock:
            if key in self._masks or generation != self.generation:
                return  # another thread was first
            if self.nbytes + mask.nbytes > self._limit:
                self._evict(mask.nbytes)
            self._masks[key] = mask
            self._is_row[key] = is_row
            self._from[key] = holds_from
            self.nbytes += mask.nbytes
            self.num_made += 1
            self.num_rows_made += is_row
            if 2 * len(self._masks) > len(self._table):
                self._rebuild(max(_INITIAL_CAPACITY, 4 * len(self._masks)))
            else:
                self._enter(self._table, key)

    def start_over(self, publish: Callable[[], None]) -> None:
        """Drop all masks, call ``publish``, and begin a new generation: masks now depend on what it makes known."""
        with self._lock:
            kept = self._masks
            self._masks, self._is_row, self._from = {}, {}, {}
            self._rebuild(_INITIAL_CAPACITY)
            self.nbytes = 0
            self.generation += 1
            publish()
            kept.clear()

    def _enter(self, table: npt.NDArray[np.int64], key: int) -> None:
        row = table[find_ready_place(table, key)]
        mask = self._masks[key]
        row[READY_MASK] = mask.ctypes.data
        row[READY_COUNT] = -1 if self._is_row[key] else len(mask)
        row[READY_USED] = 1
        row[READY_FROM] = self._from[key]
        row[READY_KEY] = key  # last: a row without its key is free

    def _rebuild(self, capacity: int) -> None:
        table = np.full((1 << (capacity - 1).bit_length(), READY_WORDS), -1, np.int64)
        for key in self._masks:
            self._enter(table, key)
        set_ready_table(self._descriptor, table)
        self._table = table  # the old one goes only now

    def _evict(self, room: int) -> None:
        """Drop unused masks, oldest first, until ``room`` bytes are free; used ones too if that is not enough."""
        used = set(self._table[self._table[:, READY_USED] == 1, READY_KEY].tolist())
        candidates = [key for key in self._masks if key not in used] + [key for key in self._masks if key in used]
        kept = dict(self._masks)  # what the old table points at stays alive until the new one is published
        target = max(0, min(self._limit - room, self._limit * 3 // 4))
        for key in candidates:
            if self.nbytes <= target:
                break
            self.nbytes -= self._masks.pop(key).nbytes
            del self._is_row[key], self._from[key]
        self._rebuild(max(_INITIAL_CAPACITY, 4 * len(self._masks)))
        self._table[:, READY_USED] = 0
        kept.clear()
