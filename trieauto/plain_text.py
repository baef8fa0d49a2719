"""Tokens of plain text: most of a vocabulary, and legal at once wherever any text may follow."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .characters import FIRST_SURROGATE, LAST, LAST_SURROGATE, utf8_automaton
from .kernels.plain_text import embedding, ends_of_strings
from .kernels.scan import scan_tokens
from .kernels.walk import UNREACHABLE
from .packing import pack

if TYPE_CHECKING:
    from .automaton import Automaton
    from .token_tables import TokenTables

# All characters that stand for themselves in a JSON string, but U+007F, which many patterns leave out.
_PLAIN = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E), (0x80, FIRST_SURROGATE - 1), (LAST_SURROGATE + 1, LAST))


@cache
def _any_plain_text() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """labels, links, targets of any number of plain characters, cut anywhere; state 0 is where one is complete."""
    one = utf8_automaton(_PLAIN)
    assert one is not None  # its state 1 is where a character ends, and nothing leads on from there
    return one.labels, one.links, np.where(one.targets == 1, 0, one.targets).astype(np.int32)


class PlainText:
    """The tokens of a vocabulary apart: those that are a piece of plain text from its beginning on, and others.

    In a state in which any plain text may follow (inside a JSON string, in ``[^"]*``), the first are known to be legal,
    and where they lead, so only the others, a few thousand, need be looked at.

    Attributes:
        ends: uint8[V], the state of any plain text at which each token ends, ``num_ends`` for the others.
        num_ends: how many such states there are.
        count: how many tokens are plain text.
    """

    def __init__(self, tables: TokenTables) -> None:
        from .token_tables import TokenTables

        self.num_ends = len(_any_plain_text()[1]) - 1
        ends = ends_of_strings(*_any_plain_text(), tables.data, tables.offsets)
        self.ends = np.where(ends >= 0, ends, self.num_ends).astype(np.uint8)
        self.count = int((ends >= 0).sum())
        self._used_ends = np.unique(ends[ends >= 0])
        others = np.flatnonzero((np.diff(tables.offsets) > 0) & (ends < 0)).astype(np.int32)
        data, offsets = tables.data.tobytes(), tables.offsets.tolist()
        packed = pack([data[offsets[token] : offsets[token + 1]] for token in others.tolist()])
        rest = TokenTables(packed, hashlib.blake2b(f"{tables.digest} without plain text".encode()).hexdigest())
        self._others = (*rest.preorder, others[rest.token_ids], rest.max_token_length)

    def images(
        self, automaton: Automaton, distances: npt.NDArray[np.int32], state: int
    ) -> npt.NDArray[np.int32] | None:
        """The automaton's state for each state of any plain text that follows in ``state``: int32[num_ends]. None if
        not all may follow, or the end is not in reach after all of it. Some microseconds."""
        images = embedding(*automaton.arrays, *_any_plain_text(), state)
        if len(images) == 0 or (len(distances) > 0 and (distances[images] == UNREACHABLE).any()):
            return None
        return images  # type: ignore[no-any-return]

    def others(
        self, automaton: Automaton, distances: npt.NDArray[np.int32], state: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """The other tokens that are legal in a state without a budget, and where each leads: int32."""
        return scan_tokens(*automaton.arrays, distances, *self._others, state)  # type: ignore[no-any-return]

    def most(self, of_images: npt.NDArray[np.int32]) -> int:
        """The most that any of these numbers, one for each image, is where a token ends."""
        return int(of_images[self._used_ends].max(initial=-1))
