"""The shapes that the entries of a ``tokenizer.json`` must have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from trieauto.errors import VocabularyError, shorten

Scalar = TypeVar("Scalar", str, int, bool)

_IN_WORDS: dict[type, str] = {str: "a text", int: "an integer", bool: "true or false"}


class ShapeError(VocabularyError):
    """A document that is no ``tokenizer.json``; its reader adds where it came from."""


def scalar(holder: Mapping[str, Any], where: str, name: str, kind: type[Scalar]) -> Scalar:
    """The text, integer or flag that ``holder``, which the message calls ``where``, has under ``name``.

    Raises:
        ShapeError: it has none, or something else there.
    """
    value = entry(holder, where, name)
    # A flag is an integer to Python, but not to JSON.
    if type(value) is not kind:
        raise not_a(_IN_WORDS[kind], f"{name} of {where}", value)
    return value


def entry(holder: Mapping[str, Any], where: str, name: str) -> Any:
    if name not in holder:
        raise ShapeError(f"{where} lacks the entry {name!r}")
    return holder[name]


def not_a(expected: str, what: str, value: object) -> ShapeError:
    return ShapeError(f"{what} must be {expected}, not {shorten(value)}")
