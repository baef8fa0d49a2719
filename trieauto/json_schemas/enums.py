"""Sets of values: an enum becomes a trie."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..automaton import Automaton
from ..errors import TrieautoError
from ..nfa import Nfa, Part
from ..value_sets import choices
from .checking import ANNOTATIONS, malformed, pointer, unsupported
from .escaping import MUST_ESCAPE, Escapes, escaped, spelled_string

_SCALARS = {str, int, float, bool, type(None)}


def is_set(schema: object) -> bool:
    """Whether a schema is an ``enum`` or ``const``, and says nothing more than types beside it."""
    return (
        isinstance(schema, Mapping)
        and ("const" in schema or "enum" in schema)
        and all(keyword in ("const", "enum", "type") or keyword in ANNOTATIONS for keyword in schema)
    )


def values_of(schema: Mapping[str, Any]) -> list[Any]:
    """The values that ``enum``, ``const`` and ``type`` leave."""
    values = list(schema["enum"]) if "enum" in schema else [schema["const"]]
    if "enum" in schema and "const" in schema:
        constant = key_of(schema["const"])
        values = [value for value in values if key_of(value) == constant]
    if "type" in schema:
        types = schema["type"]
        types = {types} if isinstance(types, str) else set(types)
        if not (types >= {"string"} and set(map(type, values)) == {str}):
            values = [value for value in values if not types.isdisjoint(kinds_of(value))]
    return values


def kinds_of(value: object) -> set[str]:
    """The types that JSON Schema gives a value."""
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, (int, float)):
        return {"number", "integer"} if value == value // 1 else {"number"}
    kinds = {str: "string", type(None): "null", list: "array", tuple: "array"}
    return {kinds.get(type(value), "object")}


def key_of(value: Any) -> Hashable:
    """Equal for values that JSON Schema calls equal (1 and 1.0 are, 1 and true are not)."""
    if isinstance(value, Mapping):
        return "object", frozenset((name, key_of(item)) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return "array", tuple(map(key_of, value))
    return ("boolean" if isinstance(value, bool) else "value"), value


def spellings(values: Sequence[Any], at: str) -> list[str]:
    """Values as compact JSON, as ``json.dumps(ensure_ascii=False)`` writes them. O(characters).

    Raises:
        TrieautoError: a value that JSON cannot write: infinite, not a number, or an object of Python's own.
        UnsupportedError: a surrogate, which has no UTF-8.
    """
    try:
        kinds = set(map(type, values))
        if kinds == {str}:
            spelled = list(map(spelled_string, values))
            text = "".join(spelled)
        elif kinds <= _SCALARS:
            # A line break is escaped inside a string, so between the values only.
            text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=("\n", ":"))
            spelled = text[1:-1].split("\n") if values else []
        else:
            spelled = [
                json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")) for value in values
            ]
            text = "".join(spelled)
        text.encode()
    except UnicodeEncodeError as error:
        raise unsupported(at, f"a surrogate in a string, {error.object[error.start : error.end]!r}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise malformed(at, f"a value that JSON cannot write ({error})") from None
    return spelled


def values_automaton(values: Sequence[Any], at: str) -> Automaton:
    """The trie of values as compact JSON, in canonical spelling."""
    return choices(spellings(values, at))


def values_part(nfa: Nfa, values: Sequence[Any], at: str, escapes: Escapes, whitespace: int) -> Part:
    """Values with the spellings and spaces that options allow."""
    if not values:
        return nfa.never(f"no value is left at {at}")
    if escapes == "canonical" and set(map(type, values)) == {str}:
        return _strings_part(nfa, values, at)
    if whitespace == 0 and escapes == "canonical":
        return nfa.embed(values_automaton(values, at))
    strings = [value for value in values if type(value) is str]
    others = [value for value in values if type(value) is not str]
    spellings(values, at)  # for its errors
    parts = [_value_part(nfa, value, at, escapes, whitespace) for value in others]
    if strings:
        parts.append(quoted(nfa, strings, at, escapes))
    return nfa.choice(parts)


def _strings_part(nfa: Nfa, strings: Sequence[str], at: str) -> Part:
    """Strings in canonical spelling. Most sets hold nothing to escape, and then need not be rewritten one by one."""
    try:
        plain = choices(strings)
    except TrieautoError:
        spellings(strings, at)  # says where
        raise
    if np.isin(plain.labels[1:], MUST_ESCAPE).any():
        return nfa.embed(values_automaton(strings, at))
    return nfa.sequence([nfa.literal(b'"'), nfa.embed(plain), nfa.literal(b'"')])


def quoted(nfa: Nfa, strings: Sequence[str], at: str, escapes: Escapes) -> Part:
    """Strings in quotes; none of them a surrogate."""
    if escapes == "canonical" and len(strings) == 1:
        return nfa.literal(spelled_string(strings[0]).encode())
    if escapes == "canonical":
        return _strings_part(nfa, strings, at)
    nfa.sets.append(strings)
    return nfa.sequence([nfa.literal(b'"'), nfa.embed(escaped(choices(strings), escapes)), nfa.literal(b'"')])


def space(nfa: Nfa, whitespace: int) -> Part:
    """Up to so many spaces or line breaks."""
    return nfa.repeat(lambda: nfa.any_byte(b" \n"), 0, whitespace)


def _value_part(nfa: Nfa, value: Any, at: str, escapes: Escapes, whitespace: int) -> Part:
    """One value, piece by piece."""
    if isinstance(value, str):
        return quoted(nfa, [value], at, escapes)
    if not isinstance(value, (Mapping, list, tuple)):
        return nfa.literal(json.dumps(value).encode())
    names = list(value) if isinstance(value, Mapping) else None
    items = value.values() if isinstance(value, Mapping) else value
    parts = [nfa.literal(b"[" if names is None else b"{"), space(nfa, whitespace)]
    for place, item in enumerate(items):
        if place > 0:
            parts += [nfa.literal(b","), space(nfa, whitespace)]
        if names is not None:
            if not isinstance(names[place], str):
                raise malformed(at, f"the name {names[place]!r} in a value is not a string")
            parts += [quoted(nfa, [names[place]], at, escapes), nfa.literal(b":"), space(nfa, whitespace)]
        parts.append(_value_part(nfa, item, at, escapes, whitespace))
    if len(value) > 0:
        parts.append(space(nfa, whitespace))
    return nfa.sequence([*parts, nfa.literal(b"]" if names is None else b"}")])


def pointer_of_values(schema: Mapping[str, Any], at: str) -> str:
    """Where the values stand."""
    return pointer(at, "enum" if "enum" in schema else "const")
