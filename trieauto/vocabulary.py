"""The tokens of a model: which bytes each id stands for, which ids end an answer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from . import sources
from .errors import VocabularyError, shorten
from .frozen import Frozen
from .packing import as_integer
from .sources.encoders import Encoder, picklable
from .token_tables import TokenTables, token_tables

MAX_SIZE = 2**24  # token ids; far beyond any model, and a bitmask row of 2 MB


class Vocabulary(Frozen):
    """The bytes of every token id, the stop ids, and the width of the model's logits. Immutable, thread-safe.

    Made by one of the ``from_...`` constructors, once for each tokenizer: what is derived from the tokens is built
    then, kept on disk, and shared in memory by all vocabularies with the same tokens.

    Attributes:
        size: the width of the logits; ids from ``len(tokens)`` on are padding and never legal.
        stop_token_ids: ascending; the ids that end an answer.
        prefix_space: whether the tokenizer puts a space before the first word (SentencePiece's dummy prefix).
        tables: what is built from the tokens' bytes.
        encoder: how the tokenizer itself writes texts, for canonical tokenization; None if only tokens were given. No
            part of the fingerprint.
        fingerprint: equal for equal vocabularies, in every process.
    """

    size: int
    stop_token_ids: tuple[int, ...]
    prefix_space: bool
    tables: TokenTables
    encoder: Encoder | None
    fingerprint: str

    def __init__(
        self,
        tokens: Sequence[bytes | None],
        *,
        stop_token_ids: Iterable[int],
        size: int | None = None,
        prefix_space: bool = False,
        encoder: Encoder | None = None,
    ) -> None:
        stop_ids = _checked_stop_ids(stop_token_ids)
        contents = _checked_tokens(tokens)
        size = len(contents) if size is None else _checked_size(size)
        if size < len(contents):
            raise VocabularyError(
                f"the tokenizer has {len(contents):,} token ids but the model's logits are only {size:,} wide: "
                "this is not the tokenizer of this model"
            )
        if not stop_ids:
            raise VocabularyError("no stop token: an answer could never end; pass stop_token_ids")
        if stop_ids[-1] >= size:
            raise VocabularyError(f"stop token id {stop_ids[-1]:,} is outside the vocabulary of {size:,} ids")
        for token_id in stop_ids:
            if token_id < len(contents):
                contents[token_id] = b""
        if set(range(len(contents))) <= set(stop_ids):
            raise VocabularyError("there is no token but stop ids: nothing could ever be generated")
        if not isinstance(prefix_space, bool):
            raise VocabularyError(f"prefix_space is {shorten(prefix_space)}; it must be True or False")
        tables = token_tables(contents)
        digest = hashlib.blake2b(repr((tables.digest, stop_ids, size, prefix_space)).encode(), digest_size=16)
        self._set(
            size=size,
            stop_token_ids=stop_ids,
            prefix_space=prefix_space,
            tables=tables,
            encoder=encoder,
            fingerprint=digest.hexdigest(),
        )

    def __reduce__(self) -> tuple[object, ...]:
        make = partial(
            Vocabulary,
            stop_token_ids=self.stop_token_ids,
            size=self.size,
            prefix_space=self.prefix_space,
            encoder=picklable(self.encoder),
        )
        return make, (self.tokens,)

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes | None],
        *,
        stop_token_ids: Iterable[int],
        size: int | None = None,
        prefix_space: bool = False,
    ) -> Vocabulary:
        """From a list of the tokens' bytes.

        Args:
            tokens: the place in the list is the token id; ``None`` (or ``b""``) for a token without bytes, which never
                matches.
            stop_token_ids: the ids that end an answer, at least one. What they have for bytes does not count.
            size: the width of the model's logits, if wider than the list.
            prefix_space: whether the tokenizer puts a space before the first word.

        Raises:
            VocabularyError: a token that is not bytes, no stop token, ids or a size that do not fit.
        """
        return cls(tokens, stop_token_ids=stop_token_ids, size=size, prefix_space=prefix_space)

    @classmethod
    def _from_source(
        cls, source: sources.TokenSource, stop_token_ids: Iterable[int] | None, size: int | None
    ) -> Vocabulary:
        stop_ids = source.stop_token_ids if stop_token_ids is None else stop_token_ids
        return cls(
            source.tokens, stop_token_ids=stop_ids, size=size, prefix_space=source.prefix_space, encoder=source.encoder
        )

    @classmethod
    def from_tokenizer(
        cls, tokenizer: Any, *, size: int | None = None, stop_token_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """From any supported tokenizer object; most often a Hugging Face one, fast or slow.

        Args:
            tokenizer: Hugging Face, tiktoken, SentencePiece or mistral-common.
            size: the width of the model's logits (``model.config.vocab_size``), if wider than the tokenizer.
            stop_token_ids: instead of the tokenizer's own.

        Raises:
            VocabularyError: not a tokenizer that can be read, or one that does not fit ``size``.
            UnsupportedError: a tokenizer whose tokens do not stand for fixed bytes.
        """
        return cls._from_source(sources.token_source(tokenizer), stop_token_ids, size)

    @classmethod
    def from_tiktoken(
        cls, encoding: Any, *, size: int | None = None, stop_token_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """From a tiktoken encoding.

        Args:
            encoding: a ``tiktoken.Encoding``.
            size, stop_token_ids: as for ``from_tokenizer``.

        Raises:
            VocabularyError: something else, or an encoding that does not fit ``size``.
        """
        return cls._from_source(sources.from_tiktoken(encoding), stop_token_ids, size)

    @classmethod
    def from_sentencepiece(
        cls, processor: Any, *, size: int | None = None, stop_token_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """From a SentencePiece model.

        Args:
            processor: a ``sentencepiece.SentencePieceProcessor``.
            size, stop_token_ids: as for ``from_tokenizer``.

        Raises:
            VocabularyError: something else, or a model that does not fit ``size``.
            UnsupportedError: a model whose pieces do not stand for fixed bytes.
        """
        return cls._from_source(sources.from_sentencepiece(processor), stop_token_ids, size)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], *, size: int | None = None, stop_token_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """From a ``tokenizer.json``, or from the directory of a model that has one.

        Args:
            path: the file or the directory.
            size: the width of the model's logits, if wider than the tokenizer.
            stop_token_ids: by default those that the files beside it name.

        Raises:
            VocabularyError: no such file, one that cannot be read, or that does not fit ``size``.
            UnsupportedError: a tokenizer whose tokens do not stand for fixed bytes.
        """
        if not isinstance(path, (str, os.PathLike)):
            raise VocabularyError(f"from_file takes the path of a tokenizer.json, not {shorten(path)}")
        file = Path(path)
        if file.is_dir():
            file = file / "tokenizer.json"
            if not file.is_file():
                raise VocabularyError(f"there is no tokenizer.json in {str(path)!r}")
        source = sources.from_tokenizer_json(file, None if stop_token_ids is None else [])
        return cls._from_source(source, stop_token_ids, size)

    @cached_property
    def tokens(self) -> list[bytes | None]:
        """The bytes of each token id; ``None`` for those without (special tokens, stop ids, unused ids)."""
        data, offsets = self.tables.data.tobytes(), self.tables.offsets.tolist()
        return [data[a:b] or None for a, b in pairwise(offsets)]

    @property
    def is_byte_complete(self) -> bool:
        """Whether every single byte is a token, so that whatever is possible in bytes is possible in tokens."""
        return bool(self.tables.single_bytes.all())

    def prepare(self) -> Vocabulary:
        """Make now what is otherwise made when first needed, in some ten milliseconds each: tables for states in which
        very many tokens are legal, and for budgets. For servers, when they start. Returns itself; thread-safe."""
        self.tables.prepare()
        return self

    def __repr__(self) -> str:
        stop_ids = ", ".join(map(str, self.stop_token_ids))
        return f"<Vocabulary of {len(self.tables.offsets) - 1:,} tokens, size {self.size:,}, stop ids {stop_ids}>"


def _checked_stop_ids(stop_token_ids: Iterable[int]) -> tuple[int, ...]:
    if isinstance(stop_token_ids, (str, bytes)) or not isinstance(stop_token_ids, Iterable):
        raise VocabularyError(f"stop_token_ids must be a list of ids, not {shorten(stop_token_ids)}")
    return tuple(sorted({_checked_id(token_id) for token_id in stop_token_ids}))


def _checked_id(token_id: int) -> int:
    checked = as_integer(token_id)
    if checked is None:
        raise VocabularyError(f"stop token id {shorten(token_id)} is not an integer")
    if checked < 0:
        raise VocabularyError(f"stop token id {checked} is negative")
    return checked


def _checked_size(size: int) -> int:
    checked = as_integer(size)
    if checked is None:
        raise VocabularyError(f"size is {shorten(size)}; it must be the width of the model's logits")
    if checked > MAX_SIZE:
        raise VocabularyError(f"size is {checked:,}; at most {MAX_SIZE:,} token ids are supported")
    return checked


def _checked_tokens(tokens: Sequence[bytes | None]) -> list[bytes]:
    if isinstance(tokens, (str, bytes)) or not isinstance(tokens, Sequence):
        raise VocabularyError(
            f"tokens must be a list in which each place is the token's id, not of type {type(tokens).__name__}"
        )
    return [token if type(token) is bytes else _checked_token(i, token) for i, token in enumerate(tokens)]


def _checked_token(token_id: int, token: object) -> bytes:
    if token is None:
        return b""
    if isinstance(token, (bytes, bytearray)):
        return bytes(token)
    raise VocabularyError(
        f"token {token_id} is {shorten(token)}: tokens must be bytes, or None for those without bytes"
    )
