"""Values kept as bytes end to end, and made into str or bytes one by one when somebody asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from .packing import PackedStrings, pack


class PackedValues(Sequence[str | bytes]):
    """The values of a set that was loaded from a file. Immutable.

    Args:
        packed: their bytes.
        is_bytes: uint8[K], 1 for those that are bytes and not str.
    """

    def __init__(self, packed: PackedStrings, is_bytes: npt.NDArray[np.uint8]) -> None:
        self.packed = packed
        self.is_bytes = is_bytes

    @classmethod
    def of(cls, values: Sequence[str | bytes]) -> PackedValues:
        """Of values that are not packed yet."""
        if isinstance(values, PackedValues):
            return values
        return cls(pack(values), np.fromiter((isinstance(value, bytes) for value in values), np.uint8, len(values)))

    def appended(self, values: Sequence[str | bytes]) -> PackedValues:
        """These and more."""
        more = PackedValues.of(values)
        offsets = np.concatenate([self.packed.offsets, more.packed.offsets[1:] + self.packed.offsets[-1]])
        data = np.concatenate([self.packed.data, more.packed.data])
        return PackedValues(PackedStrings(data, offsets), np.concatenate([self.is_bytes, more.is_bytes]))

    def without(self, places: npt.NDArray[np.int32]) -> PackedValues:
        """All but those at these places."""
        is_left = np.ones(len(self), bool)
        is_left[places] = False
        lengths = np.diff(self.packed.offsets)
        offsets = np.zeros(int(is_left.sum()) + 1, np.int64)
        np.cumsum(lengths[is_left], out=offsets[1:])
        ends = self.packed.offsets[np.sort(places)].tolist()
        begins = [0, *self.packed.offsets[np.sort(places) + 1].tolist()]
        stretches = zip(begins, [*ends, len(self.packed.data)], strict=True)
        data = np.concatenate([self.packed.data[begin:end] for begin, end in stretches])
        return PackedValues(PackedStrings(data, offsets), self.is_bytes[is_left])

    def __len__(self) -> int:
        return len(self.packed)

    @overload
    def __getitem__(self, place: int) -> str | bytes: ...
    @overload
    def __getitem__(self, place: slice) -> list[str | bytes]: ...
    def __getitem__(self, place: int | slice) -> str | bytes | list[str | bytes]:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"value {place} of {len(self):,}")
        place %= len(self)
        begin, end = self.packed.offsets[place : place + 2]
        data = self.packed.data[begin:end].tobytes()
        return data if self.is_bytes[place] else data.decode()
