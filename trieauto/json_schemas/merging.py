"""Several schemas that hold at once, as one: for ``allOf``, and for what stands beside ``$ref`` or ``anyOf``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .checking import ANNOTATIONS, pointer, unsupported
from .enums import key_of

_LARGER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_SMALLER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_OF_ITEMS = frozenset(("items", "prefixItems"))
_OF_PROPERTIES = frozenset(("properties", "additionalProperties"))

Schema = Mapping[str, Any]


def assertions(schema: Schema) -> dict[str, Any]:
    """A schema without what changes no language."""
    return {
        keyword: value
        for keyword, value in schema.items()
        if keyword not in ANNOTATIONS and not keyword.startswith("x-")
    }


def merged(one: Schema | bool, other: Schema | bool, at: str) -> Schema | bool:
    """The schema of what is valid for both, neither of which has ``$ref`` or ``allOf``.

    Raises:
        UnsupportedError: keywords that cannot be joined into one without a change of meaning.
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return False if one is False or other is False else other if one is True else one
    one, other = assertions(one), assertions(other)
    result = {**one, **other}
    if "const" in one and "const" in other and key_of(one["const"]) != key_of(other["const"]):
        return False
    for keyword in one.keys() & other.keys() - {"const"}:
        if key_of(one[keyword]) != key_of(other[keyword]):
            join = _JOINS.get(keyword)
            if join is None:
                raise unsupported(pointer(at, keyword), f"two different {keyword} at once")
            result[keyword] = join(one[keyword], other[keyword])
            if keyword == "type" and not result["type"]:
                return False
    # What these say depends on their neighbours, so they must come with them.
    for group, dependent in ((_OF_ITEMS, "items"), (_OF_PROPERTIES, "additionalProperties")):
        neighbours = [{keyword: schema[keyword] for keyword in group & schema.keys()} for schema in (one, other)]
        if (
            any(dependent in given for given in neighbours)
            and all(neighbours)
            and key_of(neighbours[0]) != key_of(neighbours[1])
        ):
            if dependent == "additionalProperties" and _same_names(*neighbours):
                continue
            raise unsupported(
                pointer(at, dependent), f"{dependent} beside another schema's {' and '.join(sorted(group))}"
            )
    return result


def _same_names(one: Schema, other: Schema) -> bool:
    """Whether two schemas declare the same properties, and allow nothing else or leave it open."""
    return one.get("properties", {}).keys() == other.get("properties", {}).keys() and not (
        one.get("additionalProperties") or other.get("additionalProperties")
    )


def _types(one: Any, other: Any) -> list[str]:
    ones, others = ([given] if isinstance(given, str) else list(given) for given in (one, other))
    both = [kind for kind in ones if kind in others or (kind == "integer" and "number" in others)]
    return both + [kind for kind in others if kind == "integer" and "number" in ones and kind not in both]


def _values(one: Any, other: Any) -> list[Any]:
    keys = set(map(key_of, other))
    return [value for value in one if key_of(value) in keys]


def _properties(one: Any, other: Any) -> dict[str, Any]:
    result = {**one, **other}
    for name in one.keys() & other.keys():
        result[name] = one[name] if key_of(one[name]) == key_of(other[name]) else {"allOf": [one[name], other[name]]}
    return result


_JOINS: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(_LARGER, max),
    **dict.fromkeys(_SMALLER, min),
    "type": _types,
    "enum": _values,
    "required": lambda one, other: [*one, *(name for name in other if name not in one)],
    "properties": _properties,
    "uniqueItems": lambda one, other: one or other,
    "unevaluatedProperties": lambda one, other: False,
}
