"""How a tokenizer itself writes texts in tokens: kept beside its vocabulary, for canonical tokenization.

None of them changes the caller's tokenizer, and its settings of padding, truncation and sampling do not matter.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from trieauto.errors import UnsupportedError, shorten
from trieauto.sources.byte_pair_rules import (
    BytePairRules,
    rules_of_tiktoken,
    rules_of_tokenizer_json,
    unsupported_tokenizer,
)

Rows = Sequence[Sequence[int]]


class Encoder(Protocol):
    """Encodes texts as the tokenizer does in the middle of a text: without start, end or other special tokens."""

    def encode_batch(self, texts: Sequence[str]) -> Rows:
        """The token ids of each text. Thread-safe.

        Raises:
            UnsupportedError: the tokenizer is not there any more, or writes a text in many ways.
        """

    def since_boundary(self, text: str) -> str:
        """The end of a text that matters for the tokens of what follows."""

    def rules(self) -> BytePairRules:
        """How it does so, if it is a byte-level BPE.

        Raises:
            UnsupportedError: it is none, or has steps that are not supported.
        """


class HuggingFaceEncoder:
    """Of the ``tokenizers`` library, with the parts of a given ``Tokenizer``, which stays as it is.

    A special token's text within a text becomes the special token, as the library does by default.
    """

    def __init__(self, backend: Any) -> None:
        from tokenizers import Tokenizer

        added = backend.get_added_tokens_decoder()
        own = Tokenizer(backend.model)  # shares the model: a copy of that takes most of a second
        own.normalizer, own.pre_tokenizer = backend.normalizer, backend.pre_tokenizer
        own.add_tokens([added[token_id] for token_id in sorted(added)])
        if own.get_added_tokens_decoder() != added:  # it numbers them itself
            own = Tokenizer.from_str(backend.to_str())
            own.no_padding()
            own.no_truncation()
            if own.get_added_tokens_decoder() != added:
                raise UnsupportedError("its added tokens have other ids in a copy of it")
        self._tokenizer = own

    @classmethod
    def from_json(cls, text: str) -> HuggingFaceEncoder:
        """Of the text of a ``tokenizer.json``.

        Raises:
            UnsupportedError: ``tokenizers`` is not installed.
        """
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise UnsupportedError(
                "encoding by a tokenizer.json needs the package tokenizers, which is not installed: pip install "
                "tokenizers"
            ) from None
        return cls(Tokenizer.from_str(text))

    def encode_batch(self, texts: Sequence[str]) -> Rows:
        if getattr(self._tokenizer.model, "dropout", None):
            raise UnsupportedError("its BPE drops merges at random (dropout), so a text has many tokenizations")
        encode = getattr(self._tokenizer, "encode_batch_fast", self._tokenizer.encode_batch)
        return [encoding.ids for encoding in encode(list(texts), add_special_tokens=False)]

    def since_boundary(self, text: str) -> str:
        return text

    def rules(self) -> BytePairRules:
        return rules_of_tokenizer_json(json.loads(self._tokenizer.to_str()))


class TokenizerJsonEncoder:
    """Of a ``tokenizer.json``, which is loaded when first needed.

    Args:
        source: its path, its text, or the parsed document.
    """

    def __init__(self, source: Path | str | Mapping[str, Any]) -> None:
        self._source = source.absolute() if isinstance(source, Path) else source
        self._stamp = _stamp_of(source) if isinstance(source, Path) else None

    @cached_property
    def _encoder(self) -> HuggingFaceEncoder:
        source = self._source
        if isinstance(source, Mapping):
            return HuggingFaceEncoder.from_json(json.dumps(source))
        if isinstance(source, str):
            return HuggingFaceEncoder.from_json(source)
        stamp = _stamp_of(source)  # as it was when the vocabulary was made
        if stamp is None:
            raise UnsupportedError(f"{str(source)!r} cannot be read any more")
        if stamp != self._stamp:
            raise UnsupportedError(f"{str(source)!r} has changed since the vocabulary was made from it")
        return HuggingFaceEncoder.from_json(source.read_text(encoding="utf-8"))

    def encode_batch(self, texts: Sequence[str]) -> Rows:
        return self._encoder.encode_batch(texts)

    def since_boundary(self, text: str) -> str:
        return text

    def rules(self) -> BytePairRules:
        return self._encoder.rules()


def _stamp_of(path: Path) -> tuple[int, int] | None:
    """What differs between two versions of a file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


class SlowEncoder:
    """Of a tokenizer of ``transformers`` that is written in Python."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode_batch(self, texts: Sequence[str]) -> Rows:
        return [list(self._tokenizer.encode(text, add_special_tokens=False)) for text in texts]

    def since_boundary(self, text: str) -> str:
        return text

    def rules(self) -> BytePairRules:
        raise unsupported_tokenizer(f"a tokenizer written in Python ({type(self._tokenizer).__name__})")


class TiktokenEncoder:
    """Of a ``tiktoken.Encoding``: special tokens' texts are ordinary text, except in what stands before.

    Args:
        encoding: the encoding.
        first_id: the id of its rank 0.
    """

    def __init__(self, encoding: Any, first_id: int = 0) -> None:
        self._encoding = encoding
        self._first_id = first_id

    def encode_batch(self, texts: Sequence[str]) -> Rows:
        # Not encode_ordinary_batch: with its threads, texts of a few tokens take ten times as long.
        rows = [self._encoding.encode_ordinary(text) for text in texts]
        first_id = self._first_id
        return [[first_id + rank for rank in row] for row in rows] if first_id else rows

    def since_boundary(self, text: str) -> str:
        special = self._encoding.special_tokens_set
        if not special:
            return text
        return re.split("|".join(map(re.escape, sorted(special, key=len, reverse=True))), text)[-1]

    def rules(self) -> BytePairRules:
        return rules_of_tiktoken(self._encoding, self._first_id)


class SentencePieceEncoder:
    """Of a ``SentencePieceProcessor``. Control pieces' texts are ordinary text to it."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def encode_batch(self, texts: Sequence[str]) -> Rows:
        rows: Rows = self._processor.encode(
            list(texts), out_type=int, add_bos=False, add_eos=False, reverse=False, enable_sampling=False
        )
        return rows

    def since_boundary(self, text: str) -> str:
        return text

    def rules(self) -> BytePairRules:
        raise unsupported_tokenizer("SentencePiece")


class LostEncoder:
    """In the place of one that could not be had: says why when it is needed."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def encode_batch(self, texts: Sequence[str]) -> Rows:
        raise UnsupportedError(f"the vocabulary has lost its tokenizer: {self._reason}")

    def since_boundary(self, text: str) -> str:
        return text

    def rules(self) -> BytePairRules:
        raise UnsupportedError(f"the vocabulary has lost its tokenizer: {self._reason}")


class PickledEncoder:
    """An encoder on its way to another process, where it may never be needed: it is unpickled when first used."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __reduce__(self) -> tuple[object, ...]:
        return PickledEncoder, (self._data,)

    @cached_property
    def _encoder(self) -> Encoder:
        try:
            encoder: Encoder = pickle.loads(self._data)
        except Exception as error:
            return LostEncoder(f"it cannot be unpickled here ({shorten(error)})")
        return encoder

    def encode_batch(self, texts: Sequence[str]) -> Rows:
        return self._encoder.encode_batch(texts)

    def since_boundary(self, text: str) -> str:
        return self._encoder.since_boundary(text)

    def rules(self) -> BytePairRules:
        return self._encoder.rules()


def huggingface_encoder(backend: Any) -> Encoder:
    """Of a ``tokenizers.Tokenizer``, or of something like it, if it can be copied."""
    try:
        return HuggingFaceEncoder(backend)
    except Exception as error:  # whatever it is, reading its vocabulary need not fail
        return LostEncoder(f"it cannot be copied ({shorten(error)})")


def picklable(encoder: Encoder | None) -> Encoder | None:
    """An encoder in a form that can be pickled for certain."""
    if encoder is None or isinstance(encoder, (PickledEncoder, LostEncoder)):
        return encoder
    try:
        return PickledEncoder(pickle.dumps(encoder))
    except Exception as error:  # a tokenizer may hold anything
        return LostEncoder(f"it could not be pickled ({shorten(error)})")
