"""Many byte strings end to end in one array: how sets and vocabularies reach the kernels."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .errors import TrieautoError, shorten
from .kernels.strings import byte_offsets, common_prefixes, shared_prefix, sort_strings, split_by_rank

MAX_THREADS = 64
_LARGEST = 10**30
PARALLEL_COUNT = 20_000  # strings; below, starting threads costs more than they save


@dataclass(frozen=True, slots=True)
class PackedStrings:
    """String ``i`` is ``data[offsets[i]:offsets[i + 1]]``; data uint8[B], offsets int64[K + 1]."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1


def pack(values: Sequence[str | bytes]) -> PackedStrings:
    """Pack values, strings in UTF-8.

    Raises:
        TrieautoError: naming the first value that is neither str nor bytes, or holds a lone surrogate.
    """
    if len(values) > 0 and isinstance(values[0], str):
        try:
            joined = "".join(values)  # type: ignore[arg-type]  # a value of another type is what the except is for
        except TypeError:
            return _pack_mixed(values)
        char_counts = np.fromiter(map(len, values), np.int64, len(values))
        try:
            data = np.frombuffer(joined.encode(), np.uint8)
        except UnicodeEncodeError as error:
            position = int(np.searchsorted(np.cumsum(char_counts), error.start, side="right"))
            raise _surrogate(values[position], position) from None
        if len(data) == len(joined):
            return PackedStrings(data, _running_sum(char_counts))
        return PackedStrings(data, byte_offsets(data, char_counts))
    if set(map(type, values)) <= {bytes}:
        return _pack_bytes(values)  # type: ignore[arg-type]
    return _pack_mixed(values)


def _running_sum(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _pack_bytes(values: Sequence[bytes]) -> PackedStrings:
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    return PackedStrings(np.frombuffer(b"".join(values), np.uint8), _running_sum(lengths))


def _pack_mixed(values: Sequence[str | bytes]) -> PackedStrings:
    encoded = []
    for position, value in enumerate(values):
        if isinstance(value, str):
            try:
                encoded.append(value.encode())
            except UnicodeEncodeError:
                raise _surrogate(value, position) from None
        elif isinstance(value, bytes):
            encoded.append(bytes(value))
        else:
            raise TrieautoError(
                f"value {position} is {shorten(value)}, of type {type(value).__name__}: values must be str or bytes"
            )
    return _pack_bytes(encoded)


def as_integer(value: object) -> int | None:
    """The integer that a value is, or None for anything else, a bool included. Far beyond anything that there can be so
    many of, the limit instead: Python refuses to write integers of thousands of digits into messages."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
    return max(-_LARGEST, min(number, _LARGEST))


def as_bytes(value: str | bytes) -> bytes:
    """The bytes that a value stands for."""
    return value.encode() if isinstance(value, str) else value


def _surrogate(value: str | bytes, position: int) -> TrieautoError:
    return TrieautoError(f"value {position}, {shorten(value)}, holds a lone surrogate and has no UTF-8 bytes")


def default_threads(count: int) -> int:
    """How many threads to use on ``count`` strings: those this process may run on, eight at most."""
    if count < PARALLEL_COUNT:
        return 1
    return min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def check_threads(threads: int | None) -> None:
    """Raise TrieautoError unless this is a number of threads, or ``None`` for the default."""
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise TrieautoError(f"threads must be at least 1, not {shorten(threads)}")


def sort_packed(
    packed: PackedStrings, threads: int | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The order of packed strings by their bytes, equal ones as given, and what each shares with the one before.

    Returns:
        order int32[K]; shared int64[K], -1 for a string that equals the one before it.
    """
    data, offsets = packed.data, packed.offsets
    count = len(packed)
    threads = default_threads(count) if threads is None else min(threads, MAX_THREADS, count)
    depth = shared_prefix(data, offsets)
    shared = np.empty(count, np.int64)
    if threads == 1:
        order = np.arange(count, dtype=np.int32)
        sort_strings(data, offsets, order, depth)
        common_prefixes(data, offsets, order, shared, 0, count)
        return order, shared
    order, begins = split_by_rank(data, offsets, depth, threads)
    with ThreadPoolExecutor(threads) as pool:
        parts = [order[begins[k] : begins[k + 1]] for k in range(threads)]
        list(pool.map(lambda part: sort_strings(data, offsets, part, depth), parts))
        ranges = [(count * k // threads, count * (k + 1) // threads) for k in range(threads)]
        list(pool.map(lambda span: common_prefixes(data, offsets, order, shared, *span), ranges))
    return order, shared
