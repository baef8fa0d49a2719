"""Dataclasses made again of what ``dataclasses.asdict`` and JSON left of them, by their annotations."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from results import earlier_run

T = TypeVar("T")


def restored(kind: type[T], value: Any) -> T:
    """An instance of a dataclass.

    Raises:
        TypeError: an annotation that is not known here, or a value that is not of its kind.
    """
    result: T = _restored(kind, value)
    return result


def kept_or_measured(
    kind: type[T], program: str, path: Path | None, measure: Callable[[], T]
) -> tuple[T, dict[str, Any]]:
    """A run, of a file of results (whose figures are its ``asdict``) or made now; and ``Results.earlier`` of it."""
    if path is None:
        return measure(), {}
    figures, earlier = earlier_run(path, program)
    return restored(kind, figures), earlier


def _restored(kind: Any, value: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(**{own.name: _restored(hints[own.name], value[own.name]) for own in dataclasses.fields(kind)})
    if origin in (Union, types.UnionType):
        return _one_of(arguments, value)
    if origin in (dict, Mapping):
        keys, values = arguments
        return {keys(key): _restored(values, item) for key, item in value.items()}
    if origin in (list, Sequence):
        return [_restored(arguments[0], item) for item in value]
    if origin is tuple:
        kinds = [arguments[0]] * len(value) if arguments[1:] == (...,) else arguments
        return tuple(_restored(each, item) for each, item in zip(kinds, value, strict=True))
    if kind is float and isinstance(value, int):
        return float(value)
    if kind is not Any and not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind}")
    return value


def _one_of(kinds: Sequence[Any], value: Any) -> Any:
    for kind in kinds:
        try:
            return _restored(kind, value)
        except (TypeError, KeyError, AttributeError):
            continue
    raise TypeError(f"{value!r} is none of {kinds}")
