"""Schemas drawn by hypothesis-jsonschema: the language of each is right, or the error is one of ours.

Instances are drawn from each schema by the same library; those in the declared subset must be accepted.
"""

from __future__ import annotations

import json
import random
import re
import warnings
from typing import Any

import jsonschema
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.utils import many
from hypothesis_jsonschema import from_schema

import trieauto
from trieauto.json_schemas import json_schema

from .json_suite import Group, is_in_subset
from .test_json_schema import Walker, canonical

Schema = dict[str, Any]

if not hasattr(many, "more"):

    def _more(self: Any) -> bool:
        """What hypothesis-jsonschema 0.23 calls, and Hypothesis had until its collections became iterators."""
        if self._depth is None:
            self.__enter__()
            self.loop = iter(self)
        return next(self.loop, StopIteration) is not StopIteration

    many.more = _more

OPTIONS: list[dict[str, Any]] = [
    {},
    {"max_depth": 1},
    {"max_depth": 3},
    {"max_depth": 2, "escapes": "any"},
    {"max_depth": 2, "whitespace": 1},
    {"max_depth": 2, "max_digits": 3},
]
DRAFT = "http://json-schema.org/draft-07/schema#"
MAX_STATES = 3_000_000
"""More, for a schema that was written in some lines, is a blow-up."""

OFTEN_REFUSED = {
    *("not", "if", "then", "else", "contains", "patternProperties", "propertyNames", "dependencies"),
    *("additionalItems", "format", "uniqueItems", "contentMediaType", "contentEncoding", "default", "examples", "$id"),
}


HOLE = {"$comment": "a schema"}
"""Where another schema goes. Written out, schemas in schemas are more than the library can bear."""


def metaschema() -> Schema:
    """Draft 7's own, without keywords that are refused, and with short names."""
    whole: Schema = json.loads(json.dumps(jsonschema.Draft7Validator.META_SCHEMA))
    definitions = whole.pop("definitions")
    definitions["stringArray"]["items"] = {"enum": ["a", "b", "c"]}
    definitions["nonNegativeInteger"]["maximum"] = 50

    def written_out(part: Any) -> Any:
        if isinstance(part, list):
            return [written_out(item) for item in part]
        if not isinstance(part, dict):
            return part
        reference = part.get("$ref")
        if reference == "#":
            return {"const": HOLE}
        if isinstance(reference, str):
            return written_out(definitions[reference.removeprefix("#/definitions/")])
        return {name: written_out(value) for name, value in part.items()}

    keywords = {name: value for name, value in whole["properties"].items() if name not in OFTEN_REFUSED}
    keywords["items"] = {"$ref": "#"}
    keywords = written_out(keywords)
    keywords["$ref"] = {"enum": ["#", "#/definitions/a", "#/definitions/b", "#/properties/a"]}
    keywords["$schema"] = {"const": DRAFT}
    keywords["multipleOf"] = {"enum": [1, 2, 3, 2.0, 0.5, 1e-3, 7, 100]}
    for keyword in ("anyOf", "allOf", "oneOf"):
        keywords[keyword] = {"type": "array", "items": {"const": HOLE}, "minItems": 1, "maxItems": 3}
    for keyword in ("properties", "definitions"):
        keywords[keyword] = {
            "type": "object",
            "additionalProperties": {"const": HOLE},
            "maxProperties": 3,
            "propertyNames": {"enum": ["a", "b", "c", "~", "/", "%", ""]},
        }
    return {"type": "object", "properties": keywords, "additionalProperties": False, "maxProperties": 4}


NUMBERS = {"enum": [*range(-12, 13), 0.1, 0.5, -0.5, 2.0, 1e3, 1e16, 0.1 + 0.2, -0.0, 2**53, 10**25, 1e-7]}
SIZES = {"type": "integer", "minimum": 0, "maximum": 5}
TEXTS = {"enum": ["", "a", "ab", "b", "1", "é", '"', "\\", "/", "\n", "😀", "~0", "%25", "a b"]}
BOUNDS = dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), NUMBERS)
PATTERNS = [
    "a",
    "^a",
    "b$",
    "^(a|b)$",
    "^a|b$",
    "^$",
    r"\d",
    r"\S",
    "[^a]",
    "^.{2,3}$",
    "^[ab]*$",
    r"^\W\d$",
    r"^[^\s]$",
]
SCALARS = {"anyOf": [TEXTS, NUMBERS, {"type": ["null", "boolean"]}]}
VALUES = {"anyOf": [SCALARS, {"type": "array", "items": SCALARS, "maxItems": 2}, {"enum": [{}, {"a": 1}, [[1.0]]]}]}
NAMES = {"type": "array", "items": TEXTS, "maxItems": 2, "uniqueItems": True}
PROPERTIES = {"type": "object", "propertyNames": TEXTS, "additionalProperties": {"const": HOLE}, "maxProperties": 3}
SEVERAL = {"type": "array", "items": {"const": HOLE}, "minItems": 1, "maxItems": 3}
OPEN = {"enum": [True, False, HOLE, HOLE, HOLE]}


def keywords(**keywords: Schema) -> Schema:
    """The schema of schemas with the first of these keywords and perhaps others."""
    required = [next(iter(keywords))]
    return {"type": "object", "properties": keywords, "required": required, "additionalProperties": False}


LEAVES = [
    keywords(type={"const": "string"}, minLength=SIZES, maxLength=SIZES, pattern={"enum": PATTERNS}),
    keywords(type={"const": "string"}, format={"enum": ["date", "time", "date-time", "uuid", "ipv4", "ipv6"]}),
    keywords(type={"const": "integer"}, multipleOf={"enum": [1, 2, 3, 10, 2.0]}, **BOUNDS),
    keywords(type={"const": "number"}, **BOUNDS),
    keywords(type={"enum": ["null", "boolean", ["integer", "null"], ["string", "boolean"]]}),
    keywords(enum={"type": "array", "items": VALUES, "minItems": 1, "maxItems": 4}, minLength=SIZES, maximum=NUMBERS),
    keywords(const=VALUES),
]
BRANCHES = [
    keywords(
        type={"const": "object"},
        properties=PROPERTIES,
        required=NAMES,
        additionalProperties=OPEN,
        minProperties=SIZES,
        maxProperties=SIZES,
        unevaluatedProperties={"type": "boolean"},
    ),
    keywords(properties=PROPERTIES, type={"const": "object"}, required=NAMES),
    keywords(items={"const": HOLE}, type={"const": "array"}, minItems=SIZES, maxItems=SIZES),
    keywords(prefixItems=SEVERAL, type={"const": "array"}, items=OPEN, minItems=SIZES),
    keywords(anyOf=SEVERAL, required=NAMES, type={"enum": ["object", "string", "integer"]}),
    keywords(oneOf=SEVERAL),
    keywords(allOf=SEVERAL, properties=PROPERTIES, **BOUNDS),
    keywords(**{"$ref": {"enum": ["#", "#/$defs/a", "#/$defs/~0", "#/$defs/~1%25"]}, "minimum": NUMBERS}),
]


def drawn(schemas: list[Schema]) -> st.SearchStrategy[Any]:
    return st.one_of([from_schema(schema) for schema in schemas])


@st.composite
def filled(draw: st.DrawFn, flat: st.SearchStrategy[Any], leaf: st.SearchStrategy[Any], depth: int) -> Any:
    """A schema with schemas in its holes, so many levels deep."""

    def fill(part: Any) -> Any:
        if part == HOLE:
            return draw(leaf if depth == 0 else filled(flat, leaf, depth - 1))
        if isinstance(part, dict):
            return {name: fill(value) for name, value in part.items()}
        return [fill(item) for item in part] if isinstance(part, list) else part

    return fill(draw(flat))


fitting = filled(st.one_of(drawn(BRANCHES), drawn(BRANCHES), drawn(LEAVES)), drawn(LEAVES), 2)
of_metaschema = filled(from_schema(metaschema()), st.sampled_from([True, False, {"type": "null"}, {"minimum": 3}]), 2)


def instances_of(schema: Any) -> st.SearchStrategy[Any] | None:
    """None where the library cannot say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            strategy = from_schema(schema)
            strategy.validate()
        except Exception:  # of that library, in what it does not know
            return None
    return None if strategy.is_empty or "error_raiser" in repr(strategy) else strategy


def check(schema: Any, options: Schema, data: st.DataObject | None = None, num_walks: int = 20) -> None:
    """The law of this file for one schema."""
    try:
        automaton = json_schema(schema, **options)
    except trieauto.UnsupportedError as error:
        if "in the schema at #" not in str(error):
            raise AssertionError("an error without a pointer") from error
        return
    except trieauto.EmptyConstraintError:
        automaton = None
    cls = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    validator = cls(schema, format_checker=cls.FORMAT_CHECKER)

    def is_valid(instance: Any) -> bool | None:
        """None for a reference that comes back to itself with no value between, which the standard leaves undefined."""
        try:
            return bool(validator.is_valid(instance))
        except RecursionError:
            event("a reference to itself")
            return None

    if automaton is not None:
        assert automaton.num_states < MAX_STATES
        for text in Walker(automaton).texts(num_walks, random.Random(0)):
            assert is_valid(json.loads(text)) is not False, text
    if data is None or (strategy := instances_of(schema)) is None:
        return
    group = Group("draft7/" if cls is jsonschema.Draft7Validator else "draft2020-12/optional/format/", "", schema, [])
    for instance in data.draw(st.lists(strategy, max_size=4), "instances"):
        if is_valid(instance) and is_in_subset(group, instance, options):
            assert automaton is not None
            assert automaton.accepts(canonical(instance)), canonical(instance)


slow = settings(suppress_health_check=list(HealthCheck))


@given(of_metaschema, st.sampled_from(OPTIONS), st.data())
@settings(slow, max_examples=100)
def test_schemas_of_the_metaschema(schema: Any, options: Schema, data: st.DataObject) -> None:
    try:
        check({**schema, "$schema": DRAFT}, options, data)
    except trieauto.TrieautoError as error:
        # What the metaschema lets through and yet is no schema.
        if not re.search("the schema holds no|of the pattern", str(error)):
            raise


@given(fitting, st.fixed_dictionaries(dict.fromkeys(("a", "~", "/%"), fitting)), st.sampled_from(OPTIONS), st.data())
@settings(slow, max_examples=100)
def test_schemas_whose_keywords_fit_together(
    schema: Schema, definitions: Schema, options: Schema, data: st.DataObject
) -> None:
    check({**schema, "$defs": definitions}, options, data)
