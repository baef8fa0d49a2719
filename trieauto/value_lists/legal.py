"""The tokens that may follow in a place of a list, and where each leads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Legal:
    """As ``kernels.list_walk.list_tokens`` finds them, which see: int32 each."""

    tokens: Int32s
    places: Int32s
    counts: Int32s
    firsts: Int32s
    ends: Int32s

    def __len__(self) -> int:
        return len(self.tokens)

    def ends_of(self, k: int) -> tuple[int, ...]:
        """The ends of the values that token ``k`` ends. O(tokens)."""
        first = int(self.counts[:k].sum())
        return tuple(self.ends[first : first + int(self.counts[k])].tolist())

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes."""
        return 4 * (4 * len(self.tokens) + len(self.ends))
