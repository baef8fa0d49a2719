"""Tensors that grow at their end."""

from __future__ import annotations

import torch


class GrowingTensor:
    """A tensor with room behind its contents, so that of many small additions most move nothing.

    Args:
        contents: the first ones: any dtype, [N, ...].
        fill: what is in the room behind them, of which there is always some.
    """

    def __init__(self, contents: torch.Tensor, fill: int) -> None:
        self._fill = fill
        self.length = 0
        self.tensor = contents[:0]
        """The contents and the room behind them. Another object after an addition that did not fit."""
        self.append(contents)

    def append(self, more: torch.Tensor) -> bool:
        """Add to the contents; whether everything had to be moved."""
        length = self.length + len(more)
        has_moved = length >= len(self.tensor)
        if has_moved:
            capacity = max(length + 1, 3 * len(self.tensor) // 2)
            larger = torch.full(
                (capacity, *more.shape[1:]), self._fill, dtype=self.tensor.dtype, device=self.tensor.device
            )
            larger[: self.length] = self.tensor[: self.length]
            self.tensor = larger
        self.tensor[self.length : length] = more.to(self.tensor.device)
        self.length = length
        return has_moved

    @property
    def nbytes(self) -> int:
        """Memory, the room included."""
        return self.tensor.nbytes
