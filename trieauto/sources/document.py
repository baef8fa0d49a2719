"""A ``tokenizer.json`` as parsed: finding it, and checking that it has the shape of one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from trieauto.errors import VocabularyError, shorten
from trieauto.sources.shapes import ShapeError, entry, not_a, scalar
from trieauto.sources.source import size_for

Document = Mapping[str, Any]

# So many entries of something that is no tokenizer.json are named.
_NAMED_ENTRIES = 8


def load_document(source: str | os.PathLike[str] | Document) -> tuple[Document, Path | None]:
    """The document that a path, a text or a parsed document stands for, unchecked, and its path if it has one.

    Raises:
        VocabularyError: none of these, no such file, or no JSON object in it.
    """
    if isinstance(source, Mapping):
        return source, None
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return _parse(source, "the text"), None
    if not isinstance(source, (str, os.PathLike)):
        raise VocabularyError(
            f"a tokenizer.json must be a path, its text or the parsed document, not {type(source).__name__} "
            f"{shorten(source)}"
        )
    path = Path(source)
    return read_object(path), path


def read_object(path: Path) -> Document:
    """The JSON object in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    # A ValueError is bytes that are no UTF-8, or a path that cannot be one.
    except (OSError, ValueError) as error:
        raise VocabularyError(f"cannot read {str(path)!r}: {error}") from error
    return _parse(text, str(path))


def checked_document(document: Document) -> Document:
    """The document with the entries that files may leave out.

    What only components hold is checked where they are read. One pass over the vocabulary.

    Raises:
        ShapeError: an entry that is missing or of another kind than it must be; the message names it.
    """
    if "model" not in document:
        raise ShapeError(_what_it_is(document))
    # The library writes these entries always, but reads files without them.
    document = {"added_tokens": [], "normalizer": None, "pre_tokenizer": None, "decoder": None, **document}
    model, added = document["model"], document["added_tokens"]
    if not isinstance(model, Mapping):
        raise not_a("an object", "model", model)
    if not isinstance(added, (list, tuple)):
        raise not_a("a list", "added_tokens", added)
    ids = _piece_ids(entry(model, "the model", "vocab"))
    ids += [_added_id(token) for token in added]
    try:
        size = size_for(ids)
    except VocabularyError as error:
        raise ShapeError(str(error)) from error
    _check_unknown(model, size)
    return document


def _what_it_is(document: Document) -> str:
    if not document:
        return "it is an empty object"
    if "config" in document and isinstance(document.get("vocab"), (list, tuple)):
        return (
            "it is a tekken file; mistral-common's MistralTokenizer.from_file(...) loads it, and "
            "Vocabulary.from_tokenizer takes what that gives"
        )
    names = ", ".join(map(shorten, islice(document, _NAMED_ENTRIES)))
    more = f" and {len(document) - _NAMED_ENTRIES:,} more" if len(document) > _NAMED_ENTRIES else ""
    return f"it has no model, but {names}{more}"


def _piece_ids(vocab: object) -> list[Any]:
    if isinstance(vocab, Mapping):
        if set(map(type, vocab)) - {str}:
            raise not_a("a text", "a piece in vocab", next(piece for piece in vocab if type(piece) is not str))
        return list(vocab.values())
    if not isinstance(vocab, (list, tuple)):
        raise not_a("an object or a list", "vocab of the model", vocab)
    for pair in vocab:
        if not (isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str)):
            raise not_a("a piece and its score", "an item of vocab", pair)
    return list(range(len(vocab)))


def _added_id(token: object) -> int:
    if not isinstance(token, Mapping):
        raise not_a("an object", "an added token", token)
    content = scalar(token, "an added token", "content", str)
    scalar(token, f"added token {shorten(content)}", "special", bool)
    return scalar(token, f"added token {shorten(content)}", "id", int)


def _check_unknown(model: Document, size: int) -> None:
    unknown_id, unknown = model.get("unk_id"), model.get("unk_token")
    if unknown_id is not None and not 0 <= scalar(model, "the model", "unk_id", int) < size:
        raise not_a(f"one of the {size:,} ids", "unk_id of the model", unknown_id)
    if unknown is not None:
        scalar(model, "the model", "unk_token", str)


def _parse(text: str, origin: str) -> Document:
    try:
        document = json.loads(text)
    # A ValueError is no JSON, or a number of thousands of digits.
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{origin} is no JSON: {error}") from error
    if not isinstance(document, Mapping):
        raise VocabularyError(f"{origin} holds no JSON object")
    return document
