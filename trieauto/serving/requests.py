"""What a request may say that it wants, where an engine passes on an argument as it is: values, or the name of what
describes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import EmptyConstraintError, TrieautoError, shorten
from .named_sets import PREFIX
from .store import GrammarKind


class ConstraintRequest(NamedTuple):
    """What ``ConstraintStore.get`` takes: equal for requests that say the same in different ways."""

    kind: GrammarKind
    text: str

    def as_argument(self) -> dict[str, str]:
        """The shortest way to say it again: what ``read_request`` reads back in a microsecond."""
        return {self.kind: self.text}


def read_request(value: Any) -> ConstraintRequest:
    """What a request wants.

    Args:
        value: one of

            - a list of strings: one of these values;
            - ``{"values": [...]}``: the same; ``{"set": NAME}``: a value of a named set;
            - ``{"regex": ...}``, ``{"ebnf": ...}``, ``{"json_schema": ...}``, ``{"format": NAME}``: as
              ``ConstraintStore.get`` takes them; a schema as text, or as it is;
            - ``"*set:NAME"``, or one of the lists and objects above as JSON text. (Over HTTP, vLLM passes on strings,
              numbers and lists, but no objects.)

    Returns:
        Kind and text. Whether that can be compiled is found by ``ConstraintStore.get``. A microsecond for text that is
        passed on as it is: a list of a thousand values is twice as fast to send as JSON text.

    Raises:
        EmptyConstraintError: a list without values.
        TrieautoError: anything else; it names what is wrong.
    """
    if isinstance(value, str):
        if value.startswith(PREFIX):
            return ConstraintRequest("regex", value)
        if value[:1] == "[":  # thousands of values are not read for each request, but when they are compiled
            return ConstraintRequest("values", value)
        value = _parsed(value)
    if isinstance(value, (list, tuple)):
        return ConstraintRequest("values", _text_of_values(value))
    if not isinstance(value, Mapping):
        raise TrieautoError(f"{shorten(value)} is no constraint: {_WHAT_IS_ONE}")
    if len(value) != 1:
        raise TrieautoError(f"a constraint is an object with exactly one of {_names()}; this one has {_names(value)}")
    ((name, argument),) = value.items()
    read = _READERS.get(name)
    if read is None:
        raise TrieautoError(f"{shorten(name)} is no kind of constraint: there are {_names()}")
    return read(argument)


def _parsed(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        raise TrieautoError(f"{shorten(text)} is no constraint: {_WHAT_IS_ONE}")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TrieautoError(f"{shorten(text)} is not the JSON text of a constraint: {error}") from None


def _text_of_values(values: Any) -> str:
    for place, value in enumerate(values if set(map(type, values)) - {str} else ()):
        if not isinstance(value, str):
            raise TrieautoError(f"values must be strings, but number {place} is {shorten(value)}")
    if not values:
        raise EmptyConstraintError("a constraint by values has none")
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def _values(argument: Any) -> ConstraintRequest:
    if isinstance(argument, str):  # as they are kept and sent on; who compiles them reads them
        return ConstraintRequest("values", argument)
    if not isinstance(argument, (list, tuple)):
        raise TrieautoError(f"values must be a list of strings, not {shorten(argument)}")
    return ConstraintRequest("values", _text_of_values(argument))


def _set(argument: Any) -> ConstraintRequest:
    return ConstraintRequest("regex", PREFIX + _string("set", argument))


def _schema(argument: Any) -> ConstraintRequest:
    if isinstance(argument, str):
        return ConstraintRequest("json_schema", argument)
    if not isinstance(argument, (Mapping, bool)):
        raise TrieautoError(f"json_schema must be a schema or its text, not {shorten(argument)}")
    try:
        return ConstraintRequest("json_schema", json.dumps(argument))
    except (TypeError, ValueError, RecursionError) as error:
        raise TrieautoError(f"json_schema is nothing that JSON can write: {error}") from None


def _reader(kind: GrammarKind) -> Callable[[Any], ConstraintRequest]:
    return lambda argument: ConstraintRequest(kind, _string(kind, argument))


def _string(name: str, argument: Any) -> str:
    if not isinstance(argument, str):
        raise TrieautoError(f"{name} must be a string, not {shorten(argument)}")
    return argument


_READERS: dict[str, Callable[[Any], ConstraintRequest]] = {
    "values": _values,
    "set": _set,
    "regex": _reader("regex"),
    "json_schema": _schema,
    "format": _reader("format"),
    "ebnf": _reader("ebnf"),
}


def _names(names: Any = _READERS) -> str:
    return ", ".join(map(shorten, names)) or "nothing"


_WHAT_IS_ONE = f"it is a list of values, '{PREFIX}NAME', or an object (or its JSON text) with one of {_names()}"
