"""Token bitmasks: int32[rows, ceil(size / 32)], bit ``i % 32`` of word ``i // 32`` set where token i is legal.

The layout is XGrammar's, so that its functions, and the serving engines', apply our masks.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .errors import TrieautoError, shorten
from .kernels.filling import TARGET_MEMORY, TARGET_ROW_WORDS, TARGET_ROWS, TRACKED_WORDS


def allocate_token_bitmask(rows: int, size: int) -> npt.NDArray[np.int32]:
    """A bitmask with every token allowed. ``torch.from_numpy`` shares its memory.

    Args:
        rows: how many sequences it is for.
        size: of the vocabulary, in token ids.

    Returns:
        int32[rows, ceil(size / 32)].

    Raises:
        TrieautoError: not two integers of at least 1.
    """
    return np.full(_checked_shape(rows, size), -1, np.int32)


def _checked_shape(rows: int, size: int) -> tuple[int, int]:
    for name, number in (("rows", rows), ("size", size)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
            raise TrieautoError(f"a bitmask's {name} must be an integer of at least 1, not {shorten(number)}")
    return int(rows), (int(size) + 31) // 32


class RowTarget:
    """Where the rows of a bitmask are, as kernels read it: ``address`` is that of int64[5] (see ``kernels.filling``).

    The numbers are kept by address because passing five to a kernel costs as much as clearing a row.
    """

    __slots__ = ("_words", "address")

    def __init__(self, array: npt.NDArray[np.int32], tracked_address: int = 0) -> None:
        rows = 1 if array.ndim == 1 else array.shape[0]
        stride = 0 if array.ndim == 1 else array.strides[0]
        self._words = np.array([array.ctypes.data, rows, stride, array.shape[-1], tracked_address], np.int64)
        self.address: int = self._words.ctypes.data

    @property
    def memory(self) -> int:
        """The address of the first row."""
        return int(self._words[TARGET_MEMORY])

    @property
    def rows(self) -> int:
        return int(self._words[TARGET_ROWS])

    @property
    def row_words(self) -> int:
        return int(self._words[TARGET_ROW_WORDS])


class TokenBitmask:
    """A bitmask that remembers which of its words are set, so that a fill writes only what changes.

    Pass it in place of an array to ``fill_next_token_bitmask`` and ``fill_next_token_bitmasks``; read the masks in
    ``array``. For vocabularies of 150,000 tokens this saves writing 19 KB for each mask. Nothing else may write to it,
    so ``array`` is read-only. One thread at a time.

    Args:
        rows: how many sequences it is for.
        size: of the vocabulary, in token ids.

    Raises:
        TrieautoError: not two integers of at least 1; an attempt to copy or to pickle it.
    """

    def __init__(self, rows: int, size: int) -> None:
        self._memory = np.zeros(_checked_shape(rows, size), np.int32)
        self._tracked = np.zeros((len(self._memory), TRACKED_WORDS + 1), np.int32)
        self._array = self._memory.view()
        self._array.flags.writeable = False
        self.target = RowTarget(self._memory, self._tracked.ctypes.data)

    @property
    def array(self) -> npt.NDArray[np.int32]:
        """The masks: int32[rows, ceil(size / 32)], read-only, all zero at first."""
        return self._array

    def __reduce__(self) -> NoReturn:
        raise TrieautoError("a TokenBitmask cannot be copied or pickled: copy its array, or make a new one")

    def __repr__(self) -> str:
        return f"<TokenBitmask of {self._array.shape[0]} rows, {self._array.shape[1]:,} words each>"


def _target_of_array(array: npt.NDArray[Any]) -> RowTarget:
    if array.dtype != np.int32:
        raise TrieautoError(f"a bitmask must be int32, not {array.dtype}")
    if array.ndim not in (1, 2) or array.strides[-1] != 4 or 0 in array.shape:
        raise TrieautoError(
            "a bitmask must be int32[rows, words] with contiguous rows, "
            f"not of shape {array.shape} with strides {array.strides}"
        )
    if array.ndim == 2 and len(array) > 1 and abs(array.strides[0]) < 4 * array.shape[1]:
        raise TrieautoError(f"the rows of this bitmask overlap: its strides are {array.strides}")
    if not array.flags.writeable:
        raise TrieautoError("this bitmask is read-only (to fill a TokenBitmask, pass it and not its array)")
    return RowTarget(array)


def _find_target(bitmask: Any) -> RowTarget:
    if isinstance(bitmask, np.ndarray):
        return _target_of_array(bitmask)
    if hasattr(bitmask, "data_ptr") and hasattr(bitmask, "numpy"):
        if bitmask.device.type != "cpu":
            raise TrieautoError(f"masks are filled on the CPU; this bitmask is on {bitmask.device}")
        if str(bitmask.dtype) != "torch.int32" or str(bitmask.layout) != "torch.strided":
            raise TrieautoError(f"a bitmask must be dense int32, not {bitmask.dtype} ({bitmask.layout})")
        try:
            return _target_of_array(bitmask.numpy())
        except RuntimeError as error:  # what torch alone can read: a lazy negation, say
            raise TrieautoError(f"a bitmask must share its memory with numpy: {error}") from None
    raise TrieautoError(
        f"a bitmask must be a numpy array, a torch tensor or a TokenBitmask, not {type(bitmask).__name__}"
    )


# The targets of the bitmasks filled last, by id: an engine fills the same few at every step, and finding an address
# again costs more than a mask does. An array cannot move while anything refers to it, weakly or not; a tensor can, so
# its address is compared.
_MOST_TARGETS = 32
_recent: dict[int, tuple[Callable[[], Any], RowTarget, int]] = {}


def row_target(bitmask: Any) -> RowTarget:
    """The memory of a bitmask.

    Raises:
        TrieautoError: not an int32 array of contiguous rows in the CPU's memory that can be written.
    """
    if type(bitmask) is TokenBitmask:
        return bitmask.target
    known = _recent.get(id(bitmask))
    if known is not None:
        reference, target, memory = known
        if reference() is bitmask and (isinstance(bitmask, np.ndarray) or bitmask.data_ptr() == memory):
            return target
    target = _find_target(bitmask)
    if len(_recent) >= _MOST_TARGETS:
        _recent.clear()
    _recent[id(bitmask)] = (weakref.ref(bitmask), target, target.memory)
    return target


def writable_row(bitmask: Any, index: int, words: int) -> npt.NDArray[np.int32]:
    """One row of a bitmask as an array to write to: int32, at least ``words`` long.

    Raises:
        TrieautoError: as for ``row_target``; no such row, or one that is too short.
    """
    target = row_target(bitmask)
    if not 0 <= index < target.rows:
        raise TrieautoError(f"row {index} is outside this bitmask of {target.rows} rows")
    if target.row_words < words:
        raise TrieautoError(f"the bitmask is {target.row_words:,} words wide; {words:,} are needed")
    if type(bitmask) is TokenBitmask:
        bitmask._tracked[index, 0] = -1
        array = bitmask._memory
    else:
        array = bitmask if isinstance(bitmask, np.ndarray) else bitmask.numpy()
    return array if array.ndim == 1 else array[index]
