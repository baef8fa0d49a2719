"""What every kind of tokenizer is reduced to: the bytes of each id, the stop ids, the prefix space."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import SupportsIndex

from trieauto.errors import VocabularyError, shorten
from trieauto.sources.encoders import Encoder

# Beyond every vocabulary there is: an id that is larger comes from a broken file, and a table for it would fill memory.
_MOST_IDS = 2**24


@dataclass(frozen=True)
class TokenSource:
    """The vocabulary of one tokenizer, as bytes.

    Attributes:
        tokens: the bytes of each token, indexed by token id. ``None`` where an id spells nothing: special tokens,
            stop tokens, the unknown token, ids that the tokenizer leaves unassigned.
        stop_token_ids: the ids that end a generation; none, if the tokenizer names none.
        prefix_space: whether the tokenizer puts a space of its own before the first word of a text.
        encoder: how it writes texts itself; ``None`` where only its tokens are known.
    """

    tokens: list[bytes | None]
    stop_token_ids: tuple[int, ...]
    prefix_space: bool
    encoder: Encoder | None = field(default=None, compare=False, repr=False)


def make_token_source(
    tokens: list[bytes | None],
    stop_token_ids: Iterable[SupportsIndex],
    prefix_space: bool,
    encoder: Encoder | None = None,
) -> TokenSource:
    """Check what a tokenizer gave and make it a ``TokenSource``; ``tokens`` is taken over and may be changed.

    Stop ids lose their bytes, repeated stop ids are kept once, and tokens of zero bytes become ``None``.

    Raises:
        VocabularyError: a stop id that is no integer or outside the tokenizer, or not one token that has bytes.
    """
    if not isinstance(stop_token_ids, Iterable):
        raise VocabularyError(f"stop token ids must be several ids, not {shorten(stop_token_ids)}")
    stop_ids = tuple(dict.fromkeys(map(_stop_id, stop_token_ids)))
    for token_id in stop_ids:
        if not 0 <= token_id < len(tokens):
            raise VocabularyError(f"stop token id {token_id} is outside the tokenizer's {len(tokens):,} ids")
        tokens[token_id] = None
    if b"" in tokens:
        tokens = [token or None for token in tokens]
    if not any(tokens):
        raise VocabularyError(f"none of the tokenizer's {len(tokens):,} token ids has any bytes")
    return TokenSource(tokens, stop_ids, prefix_space, encoder)


def size_for(token_ids: Collection[int]) -> int:
    """The number of ids that a vocabulary with these ids has: one more than the largest of them.

    Raises:
        VocabularyError: no ids at all, or one that is no integer, negative, or 2**24 and more.
    """
    strange = set(map(type, token_ids)) - {int}
    if strange:
        raise VocabularyError(f"token ids must be integers, not {', '.join(sorted(t.__name__ for t in strange))}")
    if not token_ids:
        raise VocabularyError("the tokenizer has no tokens")
    if min(token_ids) < 0:
        raise VocabularyError(f"token id {min(token_ids)} is negative")
    if max(token_ids) >= _MOST_IDS:
        raise VocabularyError(f"token id {max(token_ids)} is too large: a vocabulary has at most {_MOST_IDS:,} ids")
    return max(token_ids) + 1


def _stop_id(value: SupportsIndex) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise VocabularyError(f"stop token id {value!r} is no integer") from None
