"""The values of a set as strategies take them: in a fixed order, each once, and as text for people and models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import EmptyConstraintError, TrieautoError, UnsupportedError, shorten

Value: TypeAlias = str | bytes
Embed: TypeAlias = Callable[[Sequence[str]], npt.ArrayLike]
"""Texts to vectors: one row of numbers for each text, all of the same length."""


def distinct_values(values: Iterable[Value]) -> tuple[Value, ...]:
    """The values in the order given; of those with the same bytes the first, as ``choices`` has it.

    Raises:
        EmptyConstraintError: no values.
        TrieautoError: no collection, or a value that is neither str nor bytes or holds a lone surrogate.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TrieautoError(f"values must be a collection of strings, not {shorten(values)}")
    found: dict[bytes, Value] = {}
    for value in values:
        found.setdefault(_bytes_of(value), value)
    if not found:
        raise EmptyConstraintError("the set of values is empty: there is nothing to choose from")
    return tuple(found.values())


def _bytes_of(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TrieautoError(f"value {shorten(value)} is neither str nor bytes")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise TrieautoError(f"value {shorten(value)} holds a lone surrogate and has no UTF-8 bytes") from None


def text_of(value: Value) -> str:
    """A value as text; of bytes, those that are no UTF-8 as escapes."""
    return value if isinstance(value, str) else value.decode(errors="backslashreplace")


def vectors_of(embed: Embed, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """What an embedding makes of texts: float32[texts, dimensions], each row of length 1 (or 0).

    Raises:
        TrieautoError: not a table of numbers with a row for each text.
    """
    try:
        vectors = np.asarray(embed(texts), np.float32)
    except (TypeError, ValueError) as error:
        raise TrieautoError(f"the embedding's vectors are no table of numbers: {error}") from error
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise TrieautoError(
            f"the embedding must give a row of finite numbers for each of {len(texts)} texts, but its result has the "
            f"shape {vectors.shape}"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: npt.NDArray[np.float32] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


def checked_count(name: str, count: object, least: int = 1) -> int:
    """An argument that is a whole number.

    Raises:
        TrieautoError: it is none, or less than ``least``; the message names the argument.
    """
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < least:
        raise TrieautoError(f"{name} must be an integer of at least {least}, not {shorten(count)}")
    return int(count)


def missing(package: str, what: str) -> UnsupportedError:
    """The error where a package of the extra is not installed."""
    return UnsupportedError(f"{what} takes the package {package}: pip install trieauto[strategies]")


def load_sklearn(module: str, what: str) -> Any:
    """A module of scikit-learn, imported when it is needed: it takes most of a second."""
    from importlib import import_module

    try:
        return import_module(f"sklearn.{module}")
    except ModuleNotFoundError as error:
        raise missing("scikit-learn", what) from error


def load_rapidfuzz(what: str) -> Any:
    """The package rapidfuzz with its submodules, imported when it is needed."""
    try:
        import rapidfuzz
    except ModuleNotFoundError as error:
        raise missing("rapidfuzz", what) from error
    return rapidfuzz
