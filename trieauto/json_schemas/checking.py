"""What a schema may say: the shape of every keyword, and what is refused by name."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import TrieautoError, UnsupportedError, printable, shorten

SET_KEYWORD = "x-trieauto-set"
KINDS = ("string", "integer", "number", "boolean", "null", "array", "object")

ANNOTATIONS = frozenset(
    (
        *(
            "$schema",
            "$id",
            "$comment",
            "$anchor",
            "$defs",
            "definitions",
            "title",
            "description",
            "default",
            "example",
        ),
        *("examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema"),
        *("discriminator", "externalDocs"),
    )
)
"""What changes no language. (``discriminator`` is OpenAPI's hint beside ``oneOf``; so are keywords that begin x-.)"""

REFUSED = {
    "not": "the complement of a schema",
    "if": "conditions",
    "then": "conditions",
    "else": "conditions",
    "contains": "counting the items that match",
    "minContains": "counting the items that match",
    "maxContains": "counting the items that match",
    "dependentRequired": "properties that depend on others",
    "dependentSchemas": "properties that depend on others",
    "dependencies": "properties that depend on others",
    "patternProperties": "properties by pattern",
    "propertyNames": "a schema for names",
    "unevaluatedItems": "what other schemas have not looked at",
    "additionalItems": "the older form of tuples (say prefixItems and items)",
    "$dynamicRef": "references that depend on the way",
    "$recursiveRef": "references that depend on the way",
    "$dynamicAnchor": "references that depend on the way",
    "$recursiveAnchor": "references that depend on the way",
}
"""Standard keywords that would change the language and are not supported, with what they are."""

NEWEST = "2020-12"
LEGACY = ("draft-06", "draft-07")
"""Drafts in which nothing counts that stands beside ``$ref``."""

_DIALECTS = {
    f"{scheme}://json-schema.org/{name}/schema": name.removeprefix("draft/")
    for scheme in ("http", "https")
    for name in ("draft-06", "draft-07", "draft/2019-09", "draft/2020-12")
}
_NOT_SUPPORTED = "not supported in the schema at "


def pointer(at: str, *tokens: str | int) -> str:
    """A JSON pointer, as a URI fragment, to what lies below another."""
    return at + "".join("/" + printable(str(token)).replace("~", "~0").replace("/", "~1") for token in tokens)


def malformed(at: str, message: str) -> TrieautoError:
    """The error for what no schema may say."""
    return TrieautoError(f"not a valid schema at {at}: {message}")


def unsupported(at: str, message: str) -> UnsupportedError:
    """The error for what is not supported."""
    return UnsupportedError(f"{_NOT_SUPPORTED}{at}: {message}")


def located(error: UnsupportedError, at: str) -> UnsupportedError:
    """The error with a JSON pointer, if it has none yet."""
    return error if str(error).startswith(_NOT_SUPPORTED) else unsupported(at, str(error))


def parsed(schema: object) -> Mapping[str, Any] | bool:
    """The schema as an object; text is read as JSON.

    Raises:
        TrieautoError: it is neither.
    """
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError) as error:
            raise TrieautoError(f"the schema is not JSON: {error}") from None
    if not isinstance(schema, (Mapping, bool)):
        raise TrieautoError(f"a schema is an object, true or false, not {shorten(schema)}")
    return schema


def dialect_of(schema: Mapping[str, Any] | bool) -> str:
    """The draft that a schema is written in, "2020-12" where it does not say.

    Raises:
        UnsupportedError: a dialect that is not known.
    """
    if not isinstance(schema, Mapping) or "$schema" not in schema:
        return NEWEST
    dialect = schema["$schema"]
    if not isinstance(dialect, str):
        raise malformed("#/$schema", f"{shorten(dialect)} is not a string")
    if dialect.removesuffix("#") not in _DIALECTS:
        raise unsupported("#/$schema", f"the dialect {shorten(dialect)}; drafts 6, 7, 2019-09 and 2020-12 are")
    return _DIALECTS[dialect.removesuffix("#")]


def check_keywords(schema: object, at: str, *, is_root: bool) -> None:
    """Check that each keyword is known and has the shape that it must have. Looks at this schema, not at those in it.

    Raises:
        UnsupportedError: an unknown keyword, or one that would change the language and is not supported.
        TrieautoError: anything else that is wrong.
    """
    if not isinstance(schema, Mapping):
        raise malformed(at, f"a schema is an object, true or false, not {shorten(schema)}")
    for keyword, value in schema.items():
        shape = _SHAPES.get(keyword)
        if shape is not None:
            if not shape[0](value):
                if keyword == "items" and isinstance(value, list):
                    raise unsupported(pointer(at, keyword), "the older form of tuples (say prefixItems)")
                raise malformed(pointer(at, keyword), f"{keyword} must be {shape[1]}, not {shorten(value)}")
        elif keyword in REFUSED:
            if not _changes_nothing(keyword, value):
                raise unsupported(pointer(at, keyword), f"{keyword} ({REFUSED[keyword]})")
        elif keyword in ("$id", "$anchor"):
            if not isinstance(value, str):
                raise malformed(pointer(at, keyword), f"{keyword} must be a string, not {shorten(value)}")
        elif keyword not in ANNOTATIONS:
            if not isinstance(keyword, str):
                raise malformed(at, f"{shorten(keyword)} is not a string")
            if keyword == SET_KEYWORD:
                raise unsupported(pointer(at, keyword), f"the set {shorten(value)}: no sets were given (sets=)")
            if not keyword.startswith("x-"):
                raise unsupported(pointer(at, keyword), f"the keyword {shorten(keyword)}")
        elif keyword == "$schema" and not is_root:
            raise unsupported(pointer(at, keyword), "a dialect of its own for a part of the schema")


def check_by_metaschema(schema: Mapping[str, Any] | bool) -> None:
    """Check the whole schema, annotations and unused definitions too, with the package jsonschema.

    Raises:
        TrieautoError: what is wrong first; ``UnsupportedError`` where the package is missing.
    """
    try:
        from jsonschema import Draft202012Validator, SchemaError, validators
    except ImportError:
        raise UnsupportedError("check=True takes the package jsonschema: pip install trieauto[json-schema]") from None
    try:
        validators.validator_for(schema, default=Draft202012Validator).check_schema(_with_short_enums(schema))
    except SchemaError as error:
        raise malformed(pointer("#", *error.absolute_path), error.message) from None


def _with_short_enums(schema: Any) -> Any:
    """Metaschemas ask nothing of what an enum holds (but that it holds something), so a large one need not be read."""
    if isinstance(schema, Mapping):
        return {
            key: value[:1] if key == "enum" and isinstance(value, list) else _with_short_enums(value)
            for key, value in schema.items()
        }
    return [_with_short_enums(item) for item in schema] if isinstance(schema, list) else schema


def _changes_nothing(keyword: str, value: object) -> bool:
    if keyword in ("patternProperties", "dependentRequired", "dependentSchemas", "dependencies"):
        return value == {}
    return keyword in ("propertyNames", "unevaluatedItems") and value is True


def _is_number(value: object) -> bool:
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and (type(value) is int or math.isfinite(value))
    )


def _is_size(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_schema(value: object) -> bool:
    return isinstance(value, (Mapping, bool))


def _is_schemas(value: object) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 0


def _is_names(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)


def _is_types(value: object) -> bool:
    if isinstance(value, str):
        return value in KINDS
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(kind in KINDS for kind in value)


_TEXT: tuple[Callable[[Any], bool], str] = (lambda value: isinstance(value, str), "a string")
_FLAG: tuple[Callable[[Any], bool], str] = (lambda value: isinstance(value, bool), "true or false")
_SCHEMA: tuple[Callable[[Any], bool], str] = (_is_schema, "a schema (an object, true or false)")
_SCHEMAS: tuple[Callable[[Any], bool], str] = (_is_schemas, "a list of schemas, not empty")
_SIZE: tuple[Callable[[Any], bool], str] = (_is_size, "a whole number, not negative")
_NUMBER: tuple[Callable[[Any], bool], str] = (_is_number, "a number")
_SHAPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "$ref": _TEXT,
    "type": (_is_types, f"one of {', '.join(KINDS)}, or a list of them"),
    "enum": (lambda value: isinstance(value, (list, tuple)), "a list of values"),
    "const": (lambda value: True, ""),
    "allOf": _SCHEMAS,
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "properties": (lambda value: isinstance(value, Mapping), "an object of schemas"),
    "required": (_is_names, "a list of names"),
    "additionalProperties": _SCHEMA,
    "unevaluatedProperties": _SCHEMA,
    "minProperties": _SIZE,
    "maxProperties": _SIZE,
    "items": _SCHEMA,
    "prefixItems": _SCHEMAS,
    "minItems": _SIZE,
    "maxItems": _SIZE,
    "uniqueItems": _FLAG,
    "minLength": _SIZE,
    "maxLength": _SIZE,
    "pattern": _TEXT,
    "format": _TEXT,
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _NUMBER,
    "exclusiveMaximum": _NUMBER,
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number greater than 0"),
}
ASSERTIONS = frozenset(_SHAPES)
"""The keywords that are understood and say something about the value."""
