"""Named sets inside JSON schemas: the keyword that stands for an enum of the set's values."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, cast

from ..errors import UnsupportedError, shorten
from .checking import SET_KEYWORD, malformed, pointer, unsupported

NAMES_OF_SCHEMAS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
NO_SCHEMAS = frozenset(("enum", "const", "default", "example", "examples"))


class Sets(Protocol):
    """Sets of strings by name: a mapping, or ``trieauto.serving.NamedSets``."""

    def __getitem__(self, name: str, /) -> Iterable[str]:
        """The values of a set."""


def unknown_set(name: str, names: Iterable[str]) -> UnsupportedError:
    """The error for a name that no set has; it lists names that are close."""
    close = difflib.get_close_matches(name, list(names), n=3)
    hint = f"; the closest are {', '.join(map(repr, close))}" if close else ""
    return UnsupportedError(f"there is no set named {shorten(name)}{hint}")


def may_name_sets(text: str) -> bool:
    """Whether the text of a schema could name a set: False for certain, True perhaps. A scan of the text."""
    return SET_KEYWORD in text or "\\u" in text  # a keyword may be written in escapes


def find_set_names(text: str) -> tuple[str, ...]:
    """The sets that the text of a schema names, ascending. Microseconds for a text without any.

    Raises:
        TrieautoError: a name that is not a string.
    """
    if not may_name_sets(text):
        return ()
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return ()  # whoever compiles it says what is wrong
    return names_in(schema)


def names_in(schema: Any) -> tuple[str, ...]:
    """The sets that a schema names, ascending.

    Raises:
        TrieautoError: a name that is not a string.
    """
    names: set[str] = set()

    def note(name: str) -> list[str]:
        names.add(name)
        return []

    try:
        _rewritten(schema, "#", note)
    except RecursionError:
        raise UnsupportedError("the schema is nested too deeply") from None
    return tuple(sorted(names))


def with_sets(schema: Any, sets: Sets) -> Any:
    """A schema with each named set put in as ``enum``. What names none is not copied.

    Raises:
        UnsupportedError: an unknown name; it lists close ones. The keyword beside ``enum`` or ``$ref``.
        TrieautoError: a name that is not a string.
    """

    def look_up(name: str) -> list[str]:
        try:
            values = sets[name]
        except KeyError:
            raise unknown_set(name, cast(Mapping[str, Any], sets)) from None
        return values if isinstance(values, list) else list(values)

    return _rewritten(schema, "#", look_up)


def _rewritten(schema: Any, at: str, look_up: Callable[[str], list[str]]) -> Any:
    if isinstance(schema, (list, tuple)):
        items = [_rewritten(item, pointer(at, number), look_up) for number, item in enumerate(schema)]
        return items if any(new is not old for new, old in zip(items, schema, strict=True)) else schema
    if not isinstance(schema, Mapping):
        return schema
    result: dict[Any, Any] = {}
    for keyword, value in schema.items():
        below = pointer(at, keyword)
        if keyword == SET_KEYWORD:
            if not isinstance(value, str):
                raise malformed(below, f"the name of a set must be a string, not {shorten(value)}")
            for other in ("enum", "$ref"):
                if other in schema:
                    raise unsupported(below, f"{SET_KEYWORD} beside {other}")
            result["enum"] = look_up(value)
        elif keyword in NO_SCHEMAS:
            result[keyword] = value
        elif keyword in NAMES_OF_SCHEMAS and isinstance(value, Mapping):
            named = {name: _rewritten(item, pointer(below, name), look_up) for name, item in value.items()}
            result[keyword] = named if any(named[name] is not value[name] for name in value) else value
        else:
            result[keyword] = _rewritten(value, below, look_up)
    unchanged = SET_KEYWORD not in schema and all(result[keyword] is schema[keyword] for keyword in schema)
    return schema if unchanged else result
