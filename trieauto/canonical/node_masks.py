"""Masks of a node without a budget: two bitmaps, whichever token came before, and tokens that need to be looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .language import NOWHERE, Following, Int32s
from .model import BytePairModel

_Bits = npt.NDArray[np.uint8]


class NodeMask(NamedTuple):
    """What may follow in a node.

    Attributes:
        apart, joined: uint8[V / 8], a bit for each token after which the end can be reached whatever the token: if its
            pre-token begins with it, and if it may also go on.
        open: int32[T], the tokens after which that depends on them, one way or the other.
        open_apart, open_joined: int32[T], where each leads then; ``NOWHERE`` if nowhere, or if it is in the bitmap.
    """

    apart: _Bits
    joined: _Bits
    open: Int32s
    open_apart: Int32s
    open_joined: Int32s

    @property
    def nbytes(self) -> int:
        return self.apart.nbytes + self.joined.nbytes + 12 * len(self.open)


def node_mask(apart: Following, joined: Following, model: BytePairModel) -> NodeMask:
    """Of the tokens that begin a pre-token in a node, and of those that may go on in the one before."""
    size = len(model.is_written)
    easy_apart, easy_joined = (_easy(following, size) for following in (apart, joined))
    ends_apart, ends_joined = (_open_ends(following, size) for following in (apart, joined))
    # A pre-token always begins with these.
    easy_joined[model.atom_ids] = easy_apart[model.atom_ids]
    ends_joined[model.atom_ids] = ends_apart[model.atom_ids]
    open_ = np.flatnonzero((ends_apart != NOWHERE) | (ends_joined != NOWHERE)).astype(np.int32)
    return NodeMask(_packed(easy_apart), _packed(easy_joined), open_, ends_apart[open_], ends_joined[open_])


def legal_tokens(mask: NodeMask, is_apart: npt.NDArray[np.uint8] | None, can_end: Callable[[int, int], bool]) -> Int32s:
    """The tokens that may follow in the node after a given one: int32, ascending.

    Args:
        is_apart: uint8[V], which tokens may not stand beside the one before in a pre-token; None if there is none.
        can_end: whether the end can be reached from a node after a token.
    """
    if is_apart is None:
        bits, ends = mask.apart, mask.open_apart
    else:
        rows = _packed(is_apart)
        bits = (mask.apart & rows) | (mask.joined & ~rows)
        ends = np.where(is_apart[mask.open], mask.open_apart, mask.open_joined)
    legal = np.unpackbits(bits, bitorder="little")
    at = np.flatnonzero(ends != NOWHERE)
    for end, token in zip(ends[at].tolist(), mask.open[at].tolist(), strict=True):
        legal[token] = can_end(end, token)
    return np.flatnonzero(legal).astype(np.int32)


def _packed(flags: npt.NDArray[np.uint8]) -> _Bits:
    return np.packbits(flags, bitorder="little")


def _easy(following: Following, size: int) -> npt.NDArray[np.uint8]:
    flags = np.zeros(size, np.uint8)
    flags[following.tokens] = following.is_easy
    return flags


def _open_ends(following: Following, size: int) -> Int32s:
    ends = np.full(size, NOWHERE, np.int32)
    is_open = following.is_easy == 0
    ends[following.tokens[is_open]] = following.ends[is_open]
    return ends
