"""Schemas as engines' users and engines themselves write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..json_schemas.named_sets import NAMES_OF_SCHEMAS, NO_SCHEMAS

_SAYS_WHAT_IT_IS = frozenset(("type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "x-trieauto-set"))


def with_object_types(schema: Any) -> Any:
    """A schema in which whatever declares ``properties`` without a type is an object.

    By the standard, values of other types are valid for it, too. But it is what people and serving engines write when
    they mean an object (SGLang's schema of a tool call does), and XGrammar and LLGuidance read it so. All that is
    generated remains valid. What is unchanged is not copied.
    """
    if isinstance(schema, list):
        return _unless_same(schema, [with_object_types(item) for item in schema])
    if not isinstance(schema, Mapping):
        return schema
    result: dict[Any, Any] = {}
    for keyword, value in schema.items():
        if keyword in NO_SCHEMAS or keyword == "allOf":  # what holds for all of them need not be said by each
            result[keyword] = value
        elif keyword in NAMES_OF_SCHEMAS and isinstance(value, Mapping):
            named = {name: with_object_types(item) for name, item in value.items()}
            result[keyword] = value if all(named[name] is value[name] for name in value) else named
        else:
            result[keyword] = with_object_types(value)
    if isinstance(schema.get("properties"), Mapping) and _SAYS_WHAT_IT_IS.isdisjoint(schema):
        return {"type": "object", **result}
    return schema if all(result[keyword] is schema[keyword] for keyword in schema) else result


def _unless_same(old: list[Any], new: list[Any]) -> list[Any]:
    return old if all(one is other for one, other in zip(old, new, strict=True)) else new
