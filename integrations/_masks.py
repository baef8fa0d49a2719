"""Bitmasks in torch: memory that devices copy from, and how rows of logits are masked on a CPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from trieauto.kernels.jit import warm_up
from trieauto.kernels.masking import mask_logits16, mask_logits32

_NUM_BUFFERS = 4  # one is copied to the device while the next batch's is filled; two more for good measure
_KERNELS = {
    dtype: (kernel, torch.tensor(-torch.inf, dtype=dtype).view(bits).item())
    for dtype, kernel, bits in (
        (torch.float32, mask_logits32, torch.int32),
        (torch.bfloat16, mask_logits16, torch.int16),
        (torch.float16, mask_logits16, torch.int16),
    )
}


class MaskBuffers:
    """Bitmasks that are used again and again. One thread at a time."""

    def __init__(self, pin_memory: bool) -> None:
        """
        Args:
            pin_memory: whether a device copies from them.
        """
        self.pin_memory = pin_memory
        self._buffers: list[torch.Tensor] = []
        self._views: list[dict[int, torch.Tensor]] = []
        self._next = 0

    def rows(self, count: int, vocab_size: int) -> torch.Tensor:
        """A bitmask: int32[count, ceil(vocab_size / 32)], with anything in it. The fourth call from now takes it
        back."""
        words = (vocab_size + 31) // 32
        if not self._buffers or self._buffers[0].shape[0] < count or self._buffers[0].shape[1] != words:
            rows = 1 << (count - 1).bit_length()
            self._buffers = [new_mask(rows, vocab_size, self.pin_memory) for _ in range(_NUM_BUFFERS)]
            self._views = [{} for _ in self._buffers]
        self._next = (self._next + 1) % _NUM_BUFFERS
        views = self._views[self._next]
        if count not in views:  # the same object again: its address is known then
            views[count] = self._buffers[self._next][:count]
        return views[count]


def new_mask(rows: int, vocab_size: int, pin_memory: bool) -> torch.Tensor:
    """A new bitmask with every token allowed."""
    return torch.full((rows, (vocab_size + 31) // 32), -1, dtype=torch.int32, pin_memory=pin_memory)


def mask_on_cpu(logits: torch.Tensor, mask: npt.NDArray[np.int32], rows: Sequence[int] | None = None) -> None:
    """Set the logits of illegal tokens to minus infinity, on a CPU, in one call of a kernel.

    Args:
        logits: float[rows, size].
        mask: int32[count, words]; tokens beyond its words stay as they are.
        rows: which row of the logits each row of the mask is for, each once; by default 0, 1, 2, ...
    """
    places = np.arange(len(mask)) if rows is None else np.asarray(rows, np.int64)
    if not len(places):
        return
    if len(places) != len(mask) or places.min() < 0 or places.max() >= len(logits):
        raise IndexError(f"{len(mask)} rows of a mask are for rows {places.tolist()} of {len(logits)}")
    width = min(logits.shape[-1], 32 * mask.shape[-1])
    known = _KERNELS.get(logits.dtype)
    if known is None or logits.stride(-1) != 1 or mask.strides[-1] != 4:
        legal = np.unpackbits(np.ascontiguousarray(mask).view(np.uint8), axis=1, count=width, bitorder="little")
        for place, of_row in zip(places.tolist(), legal, strict=True):
            logits[place, :width].masked_fill_(torch.from_numpy(of_row == 0), -torch.inf)
        return
    warm_up()
    kernel, minus_infinity = known
    stride = logits.stride(0) * logits.element_size()
    kernel(mask.ctypes.data, mask.strides[0], logits.data_ptr(), stride, places, width, minus_infinity)
