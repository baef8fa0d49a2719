"""Masks of wide nodes without a budget: two bitmaps of each node decide, whichever token came before."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .language import NOWHERE, Following, Int32s, SplitLanguage
from .model import BytePairModel

_Bits = npt.NDArray[np.uint8]


class SharedMask(NamedTuple):
    """What may follow in nodes that are alike (see ``SplitLanguage.alike``).

    Attributes:
        apart, joined: uint8[V / 8], a bit for each token after which the end can be reached whatever the token: if its
            pre-token begins with it, and if it may also go on.
        open_apart, open_joined: int32[T], the tokens after which that depends on them, one way or the other.
    """

    apart: _Bits
    joined: _Bits
    open_apart: Int32s
    open_joined: Int32s

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


class NodeMask(NamedTuple):
    """What may follow in one node.

    Attributes:
        apart, joined: uint8[V / 8], as above, with the open tokens decided.
        others: nodes and the tokens that lead there, of the open ones that are legal: those after which the pre-token
            may not end, not even when single bytes have completed a character.
    """

    apart: _Bits
    joined: _Bits
    others: list[tuple[int, int]]

    @property
    def nbytes(self) -> int:
        return self.apart.nbytes + self.joined.nbytes


def shared_mask(apart: Following, joined: Following, model: BytePairModel) -> SharedMask:
    """Of the tokens that begin a pre-token in a node, and of those that may go on in the one before."""
    size = len(model.is_written)
    easy_apart, easy_joined = (_flags(following, size, is_easy=True) for following in (apart, joined))
    open_apart, open_joined = (_flags(following, size, is_easy=False) for following in (apart, joined))
    # A pre-token always begins with these.
    easy_joined[model.atom_ids] = easy_apart[model.atom_ids]
    open_joined[model.atom_ids] = open_apart[model.atom_ids]
    return SharedMask(
        _packed(easy_apart),
        _packed(easy_joined),
        np.flatnonzero(open_apart).astype(np.int32),
        np.flatnonzero(open_joined).astype(np.int32),
    )


def node_mask(
    shared: SharedMask,
    language: SplitLanguage,
    model: BytePairModel,
    node: int,
    can_end: Callable[[int, int], bool],
) -> NodeMask:
    """Decide the open tokens, for one node. About a microsecond each.

    Args:
        can_end: whether the end can be reached from a node after a token.
    """
    others: list[tuple[int, int]] = []

    def decided(bits: _Bits, tokens: Int32s, begins: bool) -> _Bits:
        if len(tokens) == 0:
            return bits
        flags = np.unpackbits(bits, bitorder="little")
        is_atom = np.isin(tokens, model.atom_ids)
        merged = tokens[~is_atom]
        ends, is_completed = language.open_ends(node, merged, begins=begins)
        flags[merged] = is_completed
        left = [(int(ends[k]), int(merged[k])) for k in np.flatnonzero(is_completed == 0).tolist()]
        left += [(language.after_token(node, token, begins=True), token) for token in tokens[is_atom].tolist()]
        for end, token in left:
            if end != NOWHERE and can_end(end, token):
                flags[token] = 1
                others.append((end, token))
        return _packed(flags)

    apart = decided(shared.apart, shared.open_apart, True)
    return NodeMask(apart, decided(shared.joined, shared.open_joined, False), others)


def legal_tokens(mask: NodeMask, is_apart: npt.NDArray[np.uint8] | None) -> Int32s:
    """The tokens that may follow in the node: int32, ascending.

    Args:
        is_apart: uint8[V], which tokens may not stand beside the one before in a pre-token; None if there is none.
    """
    bits = mask.apart
    if is_apart is not None:
        rows = _packed(is_apart)
        bits = (mask.apart & rows) | (mask.joined & ~rows)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int32)


def _packed(flags: npt.NDArray[np.uint8]) -> _Bits:
    return np.packbits(flags, bitorder="little")


def _flags(following: Following, size: int, *, is_easy: bool) -> npt.NDArray[np.uint8]:
    flags = np.zeros(size, np.uint8)
    flags[following.tokens[following.is_easy == is_easy]] = 1
    return flags
