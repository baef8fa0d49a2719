"""Tokens from a ``tokenizer.json``, the file format of the ``tokenizers`` library, without that library."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from trieauto.errors import UnsupportedError, VocabularyError, shorten
from trieauto.sources.components import Component, space_mark, unrolled
from trieauto.sources.decoders import Spelling, spelling_of
from trieauto.sources.document import Document, checked_document, load_document, read_object
from trieauto.sources.encoders import Encoder, TokenizerJsonEncoder
from trieauto.sources.pieces import BYTE_PIECES, literal
from trieauto.sources.shapes import ShapeError, scalar
from trieauto.sources.source import TokenSource, make_token_source, size_for


def from_tokenizer_json(
    source: str | os.PathLike[str] | Document, stop_tokens: Iterable[str | int] | None = None
) -> TokenSource:
    """The tokens of a ``tokenizer.json``.

    Args:
        source: the path of the file, its text, or the parsed document.
        stop_tokens: the stop tokens, each as its text or its id. The format itself names none. With ``None`` and a
            path, they are those that the files beside it name: ``eos_token_id`` in ``generation_config.json``,
            ``eos_token`` and ``eot_token`` in ``tokenizer_config.json``; with ``None`` and anything else, there are
            none.

    Raises:
        VocabularyError: no such file, not a ``tokenizer.json``, an unknown stop token, two texts with one id, or an
            added token with another id than the ``tokenizers`` library gives it (which numbers them anew).
        UnsupportedError: a decoder or model under which a token has no bytes of its own; the message names it.
    """
    document, path = load_document(source)
    encoder = TokenizerJsonEncoder(cast(str | Document, source) if path is None else path)
    try:
        document = checked_document(document)
        if stop_tokens is None:
            stop_tokens = _stop_tokens_beside(path.parent) if path is not None else ()
        _check_numbering(document)
        return read_document(document, _resolve(document, stop_tokens), encoder)
    except (ShapeError, RecursionError) as error:
        subject = f"{path} is " if path is not None else ""
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise VocabularyError(f"{subject}not a tokenizer.json: {reason}") from error


def read_document(document: Document, stop_token_ids: Iterable[int], encoder: Encoder | None = None) -> TokenSource:
    """The tokens of a parsed ``tokenizer.json``, of which the merges are not needed.

    A special added token has no bytes, any other is its content, literally. One that is a piece of the model too
    keeps the piece's bytes, for they are what its id stood for when the model was trained.

    Raises: as ``from_tokenizer_json``.
    """
    model, added = document["model"], document["added_tokens"]
    spelling = spelling_of(document["decoder"])
    pieces = _pieces(model)
    _check_marks(model)
    _check_byte_pieces(model, pieces, spelling)
    tokens: list[bytes | None] = [None] * size_for([i for _, i in pieces] + [token["id"] for token in added])
    for piece, token_id in pieces:
        if tokens[token_id] is not None:
            raise VocabularyError(f"token {shorten(piece)} has the id {token_id} of another token")
        tokens[token_id] = spelling(piece)
    for token in added:
        if token["special"]:
            tokens[token["id"]] = None
        elif not _is_piece(model, token["content"], token["id"]):
            tokens[token["id"]] = literal(token["content"])
    unknown_id = model["unk_id"] if "unk_id" in model else dict(pieces).get(model.get("unk_token"))
    if unknown_id is not None:
        tokens[unknown_id] = None
    return make_token_source(tokens, stop_token_ids, _prefix_space(document, spelling), encoder)


def _pieces(model: Document) -> list[tuple[str, int]]:
    """The model's pieces and their ids, from a mapping (BPE, WordPiece, WordLevel) or a scored list (Unigram)."""
    vocab = model["vocab"]
    if isinstance(vocab, Mapping):
        return list(vocab.items())
    return [(piece, token_id) for token_id, (piece, _score) in enumerate(vocab)]


def _is_piece(model: Document, text: str, token_id: int) -> bool:
    """Whether the model itself has this text under this id."""
    vocab = model["vocab"]
    if isinstance(vocab, Mapping):
        return bool(vocab.get(text) == token_id)
    return token_id < len(vocab) and bool(vocab[token_id][0] == text)


def _check_marks(model: Document) -> None:
    """Refuse marks within pieces that no supported decoder takes out again."""
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            raise UnsupportedError(f"a model with {name} {model[name]!r} gives its tokens no bytes of their own")


def _check_byte_pieces(model: Document, pieces: list[tuple[str, int]], spelling: Spelling) -> None:
    """A model that falls back to byte pieces needs a decoder that reads them as bytes."""
    if model.get("byte_fallback"):
        for piece, _ in pieces:
            if piece in BYTE_PIECES and spelling(piece) != BYTE_PIECES[piece]:
                raise UnsupportedError(f"the model falls back to bytes such as {piece}, its decoder reads that as text")


def _prefix_space(document: Document, spelling: Spelling) -> bool:
    """Whether the normalizer or the pre-tokenizer puts a space before the first word.

    Raises:
        UnsupportedError: one of them writes spaces in a way that the decoder does not read back.
    """
    prefix_space = False
    for step in unrolled(document["normalizer"], "normalizer", "normalizers"):
        if step["type"] == "Prepend":
            prepended = scalar(step, "normalizer Prepend", "prepend", str)
            _check_space(f"normalizer Prepend of {prepended!r}", prepended, spelling)
            prefix_space = True
    for step in unrolled(document["pre_tokenizer"], "pre_tokenizer", "pretokenizers"):
        if step["type"] == "Metaspace":
            _check_space("pre-tokenizer Metaspace", space_mark(step, "pre-tokenizer"), spelling)
            prefix_space |= _marks_the_first_word(step)
        elif step["type"] == "ByteLevel":
            _check_space("pre-tokenizer ByteLevel", "\u0120", spelling)
            prefix_space |= scalar(step, "pre-tokenizer ByteLevel", "add_prefix_space", bool)
    return prefix_space


def _marks_the_first_word(metaspace: Component) -> bool:
    # Files older than prepend_scheme have add_prefix_space in its place.
    if metaspace.get("prepend_scheme") is None:
        return scalar(metaspace, "pre-tokenizer Metaspace", "add_prefix_space", bool)
    return scalar(metaspace, "pre-tokenizer Metaspace", "prepend_scheme", str) != "never"


def _check_space(writer: str, written: str, spelling: Spelling) -> None:
    if spelling(written) != b" ":
        raise UnsupportedError(f"{writer}: the decoder reads {written!r} as {spelling(written)!r}, not as a space")


def _check_numbering(document: Document) -> None:
    """The file must give added tokens the ids under which the ``tokenizers`` library loads them.

    It goes by its own numbers: a token that is a piece has the piece's id, any other the next free one.
    """
    pieces = _pieces(document["model"])
    known = dict(pieces)
    next_id = len(pieces)
    for token in document["added_tokens"]:
        expected = known.setdefault(token["content"], next_id)
        if token["id"] != expected:
            raise VocabularyError(
                f"added token {shorten(token['content'])} has id {token['id']} in the file, but the tokenizers "
                f"library loads it as {expected}"
            )
        next_id = max(next_id, expected + 1)


def _resolve(document: Document, stop_tokens: Iterable[str | int]) -> list[int]:
    """The ids of stop tokens given by id or by text."""
    if isinstance(stop_tokens, str):
        raise VocabularyError(f"stop_tokens must be several tokens, not the one text {stop_tokens!r}")
    if not isinstance(stop_tokens, Iterable):
        raise VocabularyError(f"stop_tokens must be several tokens, not {shorten(stop_tokens)}")
    by_text = dict(_pieces(document["model"])) | {token["content"]: token["id"] for token in document["added_tokens"]}
    ids = []
    for token in stop_tokens:
        if isinstance(token, str) and token not in by_text:
            raise VocabularyError(f"stop token {shorten(token)} is not a token of this tokenizer")
        ids.append(by_text[token] if isinstance(token, str) else token)
    return ids


def _stop_tokens_beside(directory: Path) -> list[str | int]:
    """The stop tokens that the other files of a model's directory name, as Hugging Face models have them."""
    stop_tokens: list[str | int] = []
    generation = _read_config(directory / "generation_config.json").get("eos_token_id")
    if generation is not None:
        stop_tokens.extend(generation if isinstance(generation, list) else [generation])
    path = directory / "tokenizer_config.json"
    config = _read_config(path)
    for name in ("eos_token", "eot_token"):
        token = config.get(name)
        text = token.get("content") if isinstance(token, Mapping) else token
        if isinstance(text, str):
            stop_tokens.append(text)
        elif token is not None:
            raise VocabularyError(f"{path}: {name} must be a text or an object with a content, not {shorten(token)}")
    return stop_tokens


def _read_config(path: Path) -> Document:
    return read_object(path) if path.exists() else {}
