"""Whether two schemas can be shown to have no value in common, as ``oneOf`` needs it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .checking import KINDS
from .enums import key_of, kinds_of

_DEPTH = 8  # of properties that are looked into

Schema = Mapping[str, Any] | bool


def all_disjoint(schemas: Sequence[Schema], resolve: Callable[[Any], Schema]) -> tuple[int, int] | None:
    """The places of two schemas that may have a value in common; None if there are none.

    O(n) for sets, and where one required property has different constants in all of them; else O(n²).

    Args:
        resolve: takes a schema and puts in what ``$ref`` and ``allOf`` stand for.
    """
    schemas = [resolve(schema) for schema in schemas]
    if _has_discriminator(schemas, resolve):
        return None
    places = list(range(len(schemas)))
    sets = [place for place in places if _values(schemas[place]) is not None]
    values = [value for place in sets for value in _values(schemas[place]) or ()]
    if len(sets) > 1 and len(set(map(key_of, values))) == len(values):
        # Sets without a value in common are for the others as one.
        schemas[sets[0]] = {"enum": values}
        places = [place for place in places if place == sets[0] or _values(schemas[place]) is None]
    for number, place in enumerate(places):
        for after in places[number + 1 :]:
            if not _are_disjoint(schemas[place], schemas[after], resolve, _DEPTH):
                return place, after
    return None


def _values(schema: Schema) -> list[Any] | None:
    if isinstance(schema, bool):
        return None
    return [schema["const"]] if "const" in schema else schema.get("enum")


def _has_discriminator(schemas: Sequence[Schema], resolve: Callable[[Any], Schema]) -> bool:
    if not schemas or any(isinstance(schema, bool) or schema.get("type") != "object" for schema in schemas):
        return False
    named: list[Mapping[str, Any]] = [schema for schema in schemas if isinstance(schema, Mapping)]
    for name in named[0].get("required", ()):
        keys: list[Any] = []
        for schema in named:
            values = _values(resolve(schema.get("properties", {}).get(name, True)))
            if values is None or name not in schema.get("required", ()):
                break
            keys += {key_of(value) for value in values}
        else:
            if len(set(keys)) == len(keys):
                return True
    return False


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    values = _values(schema)
    types = schema.get("type", KINDS)
    kinds = {types} if isinstance(types, str) else set(types)
    if "number" in kinds:
        kinds.add("integer")
    return kinds if values is None else kinds & set().union(*map(kinds_of, values))


def _are_disjoint(one: Schema, other: Schema, resolve: Callable[[Any], Schema], depth: int) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is False or other is False
    kinds = _kinds(one) & _kinds(other)
    if not kinds:
        return True
    values, others = _values(one), _values(other)
    if values is not None and others is not None:
        return {key_of(value) for value in values}.isdisjoint(map(key_of, others))
    if kinds <= {"integer", "number"}:
        return not _may_overlap(one, other)
    if kinds != {"object"} or depth == 0:
        return False
    names = {*one.get("required", ()), *other.get("required", ())}
    for name in names:
        mine, theirs = (
            schema.get("properties", {}).get(name, schema.get("additionalProperties", True)) for schema in (one, other)
        )
        if _are_disjoint(resolve(mine), resolve(theirs), resolve, depth - 1):
            return True
    return False


def _may_overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the ranges of two schemas of numbers, bounds included, meet."""
    low = max(schema.get(bound, -math.inf) for schema in (one, other) for bound in ("minimum", "exclusiveMinimum"))
    high = min(schema.get(bound, math.inf) for schema in (one, other) for bound in ("maximum", "exclusiveMaximum"))
    return bool(low <= high)
