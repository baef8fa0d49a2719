"""What was used last, kept up to a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import Generic, TypeVar

_Kept = TypeVar("_Kept")


class Recent(Generic[_Kept]):
    """What was used last, up to a number of bytes. Thread-safe without a lock: each step is one operation of a dict,
    and what two threads make at once is the same."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[object, tuple[_Kept, int]] = OrderedDict()
        self.nbytes = 0

    def get(self, key: object) -> _Kept | None:
        found = self._kept.get(key)
        if found is None:
            return None
        with suppress(KeyError):  # another thread may have dropped it just now
            self._kept.move_to_end(key)
        return found[0]

    def add(self, key: object, kept: _Kept, nbytes: int) -> _Kept:
        if key not in self._kept:
            self._kept[key] = kept, nbytes
            self.nbytes += nbytes
        while self.nbytes > self._limit and len(self._kept) > 1:
            try:
                _, (_, size) = self._kept.popitem(last=False)
            except KeyError:
                break
            self.nbytes -= size
        return kept

    def __len__(self) -> int:
        return len(self._kept)
