"""The tokens that are legal in one state, and where they lead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .plain_text import PlainText


@dataclass(frozen=True, slots=True)
class LegalTokens:
    """Tokens, and where each leads; those of plain text, of which there are very many, not one by one.

    Attributes:
        tokens, ends: int32, in the order of the tokens' bytes.
        plain_text: if its tokens are legal, too, the vocabulary's; then ``images`` are where they lead (see there).
    """

    tokens: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]
    plain_text: PlainText | None = None
    images: npt.NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.tokens) + (0 if self.plain_text is None else self.plain_text.count)

    def farthest(self, distances: npt.NDArray[np.int32]) -> int:
        """The largest distance from where one of them leads; -1 if there are none."""
        farthest = int(distances[self.ends].max(initial=-1))
        if self.plain_text is None or self.images is None:
            return farthest
        return max(farthest, self.plain_text.most(distances[self.images]))

    def ids(self, distances: npt.NDArray[np.int32] | None = None, most: int = 0) -> npt.NDArray[np.int32]:
        """All of them, or those from where the end is ``most`` tokens away at most: int32. In the order of their bytes,
        but where there are some of plain text ascending."""
        if self.plain_text is not None:
            return np.flatnonzero(self.bits(len(self.plain_text.ends), distances, most)).astype(np.int32)
        return self.tokens if distances is None else self.tokens[distances[self.ends] <= most]

    def bits(self, count: int, distances: npt.NDArray[np.int32] | None = None, most: int = 0) -> npt.NDArray[np.uint8]:
        """uint8[count], 1 for each of them, or of those from where the end is ``most`` tokens away at most."""
        bits = np.zeros(count, np.uint8)
        if self.plain_text is not None and self.images is not None:
            is_legal = np.zeros(self.plain_text.num_ends + 1, np.uint8)
            is_legal[:-1] = 1 if distances is None else distances[self.images] <= most
            bits[: len(self.plain_text.ends)] = is_legal[self.plain_text.ends]
        bits[self.tokens if distances is None else self.tokens[distances[self.ends] <= most]] = 1
        return bits
