"""JSON schemas: what is generated is valid, what is valid and in the declared subset is accepted; refusals by name."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import llguidance
import numpy as np
import pytest
import xgrammar
from hypothesis import given, settings
from hypothesis import strategies as st

import trieauto
from trieauto.json_schemas import json_schema
from trieauto.json_schemas.escaping import characters, escaped
from trieauto.json_schemas.products import difference, intersection
from trieauto.nfa import edges_of
from trieauto.regex_automaton import regex

from .test_peers_equivalence import Tokenizer, tokenizer

Schema = dict[str, Any]

NUM_WALKS = 1_000

TREE: Schema = {
    "$ref": "#/$defs/tree",
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "required": ["v"],
        }
    },
}
TOOLS: Schema = {
    "oneOf": [
        {
            "type": "object",
            "properties": {
                "name": {"const": "get_weather"},
                "arguments": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
                    "required": ["city"],
                },
            },
            "required": ["name", "arguments"],
        },
        {
            "type": "object",
            "properties": {"name": {"const": "stop"}, "arguments": {"type": "object", "properties": {}}},
            "required": ["name", "arguments"],
        },
    ]
}

# schema, options, texts that are accepted, texts that are not
TRIPLES: list[tuple[Schema | bool, dict[str, Any], list[str], list[str]]] = [
    # Sets
    (
        {"enum": ["a", "b\n", 1, -2.5, None, True, {"a": [1, ""]}, []]},
        {},
        ['"a"', '"b\\n"', "1", "-2.5", "null", "true", '{"a":[1,""]}', "[]"],
        ["a", '"b\n"', "false", "1.0", '{"a": [1,""]}'],
    ),
    (
        {"enum": ["a/b", "é", "\x7f", "\x1f"]},
        {},
        ['"a/b"', '"é"', '"\x7f"', '"\\u001f"'],
        ['"a\\/b"', '"\\u00e9"', '"\\u001F"'],
    ),
    (
        {"enum": ["a/", "é", "😀\n"]},
        {"escapes": "any"},
        ['"a/"', '"\\u0061\\/"', '"\\u00E9"', '"é"', '"\\uD83d\\ude00\\n"', '"😀\\u000A"'],
        ['"\\U0061/"', '"\\ud83d"', '"😀\n"', '"b"'],
    ),
    (
        {"const": {"a": [1, {}]}},
        {"whitespace": 2},
        ['{"a":[1,{}]}', '{ "a":\n [ 1, { } ] }'],
        ['{"a" :[1,{}]}', '{   "a":[1,{}]}'],
    ),
    ({"enum": [1, 2.0, "a", True], "type": "integer"}, {}, ["1", "2.0"], ['"a"', "true", "2"]),
    ({"enum": ["a", "bb", "ccc"], "minLength": 2}, {}, ['"bb"', '"ccc"'], ['"a"']),
    ({"enum": ["a", 1], "const": 1}, {}, ["1"], ['"a"']),
    ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b", "description": "B"}]}, {}, ['"a"', '"b"'], ['"c"', '"']),
    # Strings
    (
        {"type": "string"},
        {},
        ['""', '"é\\n😀"', '"\\u0000\\u001f"', '"\\"\\\\"'],
        ['"\\/"', '"\n"', '"\\u0041"', '"\\u000a"', '"\\u001F"', '"', "a"],
    ),
    (
        {"type": "string"},
        {"escapes": "any"},
        ['"\\/\\u0041\\u00e9\\ud83D\\uDE00"', '"/"', '"\\u000A"'],
        ['"\\ud83d"', '"\\ude00"', '"\\ud83da"', '"\\ud83d\\u0041"', '"\\x41"', '"\\u00g0"', '"\x00"'],
    ),
    (
        {"type": "string", "minLength": 2, "maxLength": 3},
        {},
        ['"ab"', '"é😀"', '"\\n\\"\\u0001"'],
        ['"a"', '"abcd"', '""'],
    ),
    (
        {"type": "string", "maxLength": 1},
        {"escapes": "any"},
        ['""', '"\\ud83d\\ude00"', '"\\u0041"', '"😀"'],
        ['"ab"', '"\\u0041a"'],
    ),
    ({"type": "string", "maxLength": 0}, {}, ['""'], ['"a"']),
    ({"type": "string", "minLength": 2.0}, {}, ['"ab"'], ['"a"']),
    ({"type": "string", "pattern": "b"}, {}, ['"b"', '"abc"', '"\\n b"'], ['"a"', '""']),
    ({"type": "string", "pattern": '^a.*"$'}, {}, ['"a\\""', '"abc\\""'], ['"a"', '"ba\\""', '"a\\n\\""']),
    (
        {"type": "string", "pattern": "^[\\x00-\\x1f]\\\\$"},
        {},
        ['"\\u0001\\\\"', '"\\t\\\\"'],
        ['"\\u0009\\\\"', '"a\\\\"'],
    ),
    (
        {"type": "string", "pattern": "^[a/é]$"},
        {"escapes": "any"},
        ['"\\u0061"', '"\\/"', '"\\u00E9"', '"é"'],
        ['"b"', '"\\u0062"'],
    ),
    (
        {"type": "string", "pattern": "b", "minLength": 2, "maxLength": 3},
        {},
        ['"ab"', '"bbb"', '"éb"'],
        ['"b"', '"aaa"', '"bbbb"'],
    ),
    (
        {"type": "string", "format": "date"},
        {},
        ['"2024-02-29"', '"2000-02-29"', '"0001-12-31"'],
        ['"2023-02-29"', '"1900-02-29"', '"0000-01-01"', '"2024-04-31"', '"2024-13-01"'],
    ),
    (
        {"type": "string", "format": "date-time"},
        {},
        ['"2024-02-29T23:59:59Z"', '"2024-01-01T00:00:00.123+05:30"'],
        ['"2024-02-29 23:59:59Z"', '"2024-02-29T24:00:00Z"', '"2024-02-29T23:59:59"'],
    ),
    (
        {"type": "string", "format": "uuid"},
        {},
        ['"123e4567-e89b-12d3-a456-426614174000"'],
        ['"123e4567e89b12d3a456426614174000"'],
    ),
    ({"type": "string", "format": "ipv4"}, {}, ['"0.0.0.0"', '"255.1.20.3"'], ['"256.0.0.0"', '"01.0.0.0"', '"1.1.1"']),
    (
        {"type": "string", "format": "ipv6"},
        {},
        ['"::"', '"::1"', '"1:2:3:4:5:6:7:8"', '"1::8"', '"::ffff:1.2.3.4"', '"1:2:3:4:5:6:7::"'],
        ['"1::2::3"', '"1:2:3:4:5:6:7"', '"12345::"', '":::"', '"1:2:3:4:5:6:7:8::"'],
    ),
    ({"type": "string", "format": "email"}, {}, ['"a.b+c@x-y.org"'], ['"a..b@x.org"', '"a@-x.org"', '"@x"']),
    (
        {"type": "string", "format": "duration"},
        {},
        ['"P1Y2M3DT4H5M6S"', '"PT1H"', '"P2W"'],
        ['"P"', '"PT"', '"P1Y3D"', '"PT1H6S"'],
    ),
    ({"type": "string", "format": "date", "pattern": "^2024", "maxLength": 10}, {}, ['"2024-02-29"'], ['"2023-01-01"']),
    ({"type": "string", "format": "uri"}, {"formats": "annotation"}, ['"x"'], []),
    # Numbers
    ({"type": "integer"}, {}, ["0", "-1", "123456789012345678901234567890"], ["-0", "01", "1.0", "1e3", "+1", "-", ""]),
    ({"type": "integer"}, {"max_digits": 2}, ["0", "-99", "10"], ["100", "-100"]),
    (
        {"type": "integer", "minimum": -5, "maximum": 123},
        {},
        ["-5", "-1", "0", "9", "99", "100", "123"],
        ["-6", "-10", "124", "200", "-0"],
    ),
    (
        {"type": "integer", "exclusiveMinimum": 9.5, "exclusiveMaximum": 1001},
        {},
        ["10", "999", "1000"],
        ["9", "1001", "-10"],
    ),
    ({"type": "integer", "maximum": -100}, {}, ["-100", "-101", "-99999"], ["-99", "0", "100"]),
    ({"type": "integer", "multipleOf": 7}, {}, ["0", "7", "-14", "700000"], ["-0", "8", "71"]),
    ({"type": "integer", "multipleOf": 5, "minimum": -7, "maximum": 12}, {}, ["-5", "0", "10"], ["-10", "12", "15"]),
    ({"type": "integer", "multipleOf": 5, "minimum": 1}, {}, ["5", "100"], ["0", "-5", "1"]),
    (
        {"type": "number"},
        {},
        ["0", "-1.50", "1e5", "-1.5E-07", "-0.0", "0e0"],
        ["01", ".5", "1.", "1e", "--1", "NaN", "Infinity"],
    ),
    ({"type": "number"}, {"max_digits": 2}, ["12.34e56"], ["123", "1.234", "1e123"]),
    (
        {"type": "number", "minimum": -5.5, "exclusiveMaximum": 1},
        {},
        ["-5.5", "-5.50", "-0.0", "0.999", "0.9999999999999999", "-1"],
        ["-5.51", "1", "1.0", "0.99999999999999999", "-6", "1e0"],
    ),
    (
        {"type": "number", "exclusiveMinimum": 0},
        {},
        ["1", "0.0001", "0.10", "123.5"],
        ["0", "0.0", "-1", f"0.{'0' * 400}1"],
    ),
    (
        {"type": "number", "minimum": 0.1, "maximum": 0.25},
        {},
        ["0.1", "0.100", "0.2", "0.25", "0.250"],
        ["0.09", "0", "0.251", "0.3", "0.0999"],
    ),
    ({"type": "number", "minimum": 10, "maximum": 10}, {}, ["10", "10.0"], ["10.01", "9.99", "100"]),
    ({"type": "number", "minimum": 0, "maximum": 1}, {"max_digits": 3}, ["0.123", "1.000"], ["0.1234", "-0.0"]),
    ({"type": ["integer", "null"]}, {}, ["1", "null"], ["1.5", '"1"']),
    ({"type": ["integer", "number", "boolean"]}, {}, ["1", "1.5", "true"], ["null"]),
    # Objects
    (
        {
            "type": "object",
            "properties": {"a": {"type": "null"}, "b": {"type": "boolean"}, "c": {"type": "null"}},
            "required": ["b"],
        },
        {},
        ['{"b":true}', '{"a":null,"b":true}', '{"a":null,"b":false,"c":null}', '{"b":true,"c":null}'],
        ["{}", '{"a":null}', '{,"b":true}', '{"b":true,}', '{"b":true,"a":null}', '{"a":null"b":true}', '{"b": true}'],
    ),
    (
        {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}},
        {},
        ["{}", '{"a":null}', '{"b":null}', '{"a":null,"b":null}'],
        ["{,}", '{"a":null,}', '{,"b":null}', '{"c":null}'],
    ),
    (
        {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "minProperties": 1},
        {},
        ['{"b":null}'],
        ["{}"],
    ),
    ({"type": "object", "properties": {}}, {}, ["{}"], ["{ }", '{"a":1}']),
    (
        {"type": "object", "properties": {"a": {"type": "null"}}},
        {"whitespace": 2},
        ["{}", "{ }", '{"a":null}', '{ \n"a": null\n}'],
        ["{   }", '{"a" :null}', '{"a":\tnull}', ' {"a":null}'],
    ),
    ({"type": "object", "properties": {'a"é/': {"type": "null"}}}, {}, ['{"a\\"é/":null}'], ['{"a\\"\\u00e9/":null}']),
    (
        {"type": "object", "properties": {'a"é/': {"type": "null"}}},
        {"escapes": "any"},
        ['{"\\u0061\\u0022\\u00e9\\/":null}'],
        ['{"a"é/":null}'],
    ),
    (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {},
        ["{}", '{"a":1}', '{"a":1,"b":2}', '{"":0}'],
        ['{"a":null}', "{,}", '{"a":1,}'],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "null"}, "ab": {"type": "null"}},
            "additionalProperties": {"type": "integer"},
        },
        {},
        ["{}", '{"a":null,"b":1}', '{"aa":1,"":2,"abc":3}'],
        ['{"a":1}', '{"b":1,"a":null}', '{"b":1,"ab":2}'],
    ),
    (
        {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "integer"}},
        {"escapes": "any"},
        ['{"b":1}', '{"\\u0061":null}'],
        ['{"\\u0061":1}', '{"a":1}'],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "null"}},
            "required": ["b"],
            "additionalProperties": {"type": "integer"},
        },
        {},
        ['{"b":1}', '{"a":null,"b":1,"c":2}'],
        ['{"a":null}', '{"c":1}'],
    ),
    ({"type": "object", "properties": {"a": False, "b": {"type": "null"}}}, {}, ["{}", '{"b":null}'], ['{"a":1}']),
    # Arrays
    (
        {"type": "array", "items": {"type": "null"}},
        {},
        ["[]", "[null]", "[null,null,null]"],
        ["[,]", "[null,]", "[null null]", "["],
    ),
    (
        {"type": "array", "items": {"type": "null"}},
        {"whitespace": 1},
        ["[]", "[ ]", "[ null, null ]"],
        ["[  ]", "[null ,null]"],
    ),
    (
        {"type": "array", "items": {"type": "null"}, "minItems": 2},
        {},
        ["[null,null]", "[null,null,null]"],
        ["[]", "[null]"],
    ),
    (
        {"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 2},
        {},
        ["[null]", "[null,null]"],
        ["[]", "[null,null,null]"],
    ),
    (
        {"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 50},
        {},
        ["[null,null]", f"[{','.join(['null'] * 50)}]"],
        ["[]", "[null]", f"[{','.join(['null'] * 51)}]"],
    ),
    (
        {"type": "array", "items": {"type": "null"}, "minItems": 9},
        {},
        [f"[{','.join(['null'] * 9)}]", f"[{','.join(['null'] * 12)}]"],
        [f"[{','.join(['null'] * 8)}]", "[]"],
    ),
    (
        {"type": "array", "prefixItems": [{"type": "boolean"}], "items": {"type": "null"}, "minItems": 7},
        {},
        [f"[true,{','.join(['null'] * 6)}]", f"[true,{','.join(['null'] * 8)}]"],
        [f"[true,{','.join(['null'] * 5)}]", "[]"],
    ),
    ({"type": "array", "items": {"type": "null"}, "maxItems": 0}, {}, ["[]"], ["[null]"]),
    ({"type": "array", "items": False}, {}, ["[]"], ["[null]"]),
    (
        {"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": False},
        {},
        ["[]", "[null]", "[null,true]"],
        ["[true]", "[null,true,1]"],
    ),
    (
        {
            "type": "array",
            "prefixItems": [{"type": "null"}],
            "items": {"type": "boolean"},
            "minItems": 2,
            "maxItems": 9,
        },
        {},
        ["[null,true]", "[null,true,false]"],
        ["[null]", "[]", "[true,true]"],
    ),
    (
        {"type": "array", "prefixItems": [{"type": "null"}, {"type": "null"}], "minItems": 2, "maxItems": 2},
        {},
        ["[null,null]"],
        ["[null]"],
    ),
    (
        {"type": "array", "items": {"type": "null"}, "maxItems": 1, "uniqueItems": True},
        {},
        ["[]", "[null]"],
        ["[null,null]"],
    ),
    # Several at once
    (
        {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "null"}, {"type": "string", "minLength": 3}]},
        {},
        ['""', "null", '"abc"'],
        ['"ab"', "1"],
    ),
    ({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, {}, ['"a"', '["a"]'], ["1"]),
    ({"oneOf": [{"type": "integer", "maximum": 3}, {"type": "integer", "minimum": 5}]}, {}, ["3", "5"], ["4"]),
    (
        TOOLS,
        {},
        ['{"name":"stop","arguments":{}}', '{"name":"get_weather","arguments":{"city":"x","unit":"C"}}'],
        ['{"name":"stop","arguments":{"city":"x"}}', '{"name":"get_weather","arguments":{}}'],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        {},
        ['{"a":null}', '{"b":null}', '{"a":null,"b":null}'],
        ["{}"],
    ),
    (
        {"allOf": [{"type": "integer", "minimum": 3}, {"type": ["integer", "string"], "maximum": 5, "minimum": 1}]},
        {},
        ["3", "5"],
        ["2", "6", '"a"'],
    ),
    (
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "number"}}},
                {"properties": {"a": {"type": "integer"}, "b": {"type": "null"}}, "required": ["b"]},
            ]
        },
        {},
        ['{"a":1,"b":null}', '{"b":null}'],
        ['{"a":1.5,"b":null}', "{}"],
    ),
    ({"$ref": "#/$defs/a", "description": "x", "$defs": {"a": {"type": "null"}}}, {}, ["null"], ["1"]),
    (
        {"$ref": "#/$defs/a", "maximum": 3, "$defs": {"a": {"type": "integer", "minimum": 1}}},
        {},
        ["1", "3"],
        ["0", "4"],
    ),
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/a",
            "maximum": 3,
            "definitions": {"a": {"type": "integer"}},
        },
        {},
        ["7"],
        [],
    ),
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "http://example.org/",
            "type": "array",
            "items": {"$id": "http://example.org/x/", "$ref": "#/definitions/a"},
            "definitions": {"a": {"type": "null"}, "b": {"$id": "y/", "type": "integer"}},
        },
        {},
        ["[null]"],
        ["[1]"],
    ),
    (
        {
            "$id": "http://example.org/root",
            "properties": {"a": {"$ref": "#x"}, "b": {"$ref": "/root#/$defs/a"}},
            "type": "object",
            "$defs": {"a": {"$anchor": "x", "type": "null"}},
        },
        {},
        ['{"a":null,"b":null}'],
        ['{"a":1}'],
    ),
    (
        {
            "type": "array",
            "prefixItems": [{"$ref": "#/$defs/a"}] * 3,
            "items": False,
            "$defs": {"a": {"enum": ["x", "y"]}},
        },
        {},
        ['["x","y","x"]'],
        ['["x","z"]'],
    ),
    (TREE, {"max_depth": 1}, ['{"v":1}', '{"v":1,"kids":[]}'], ['{"v":1,"kids":[{"v":2}]}']),
    (
        TREE,
        {"max_depth": 3},
        ['{"v":1,"kids":[{"v":2,"kids":[{"v":3},{"v":4,"kids":[]}]}]}'],
        ['{"v":1,"kids":[{"v":2,"kids":[{"v":3,"kids":[{"v":4}]}]}]}', '{"kids":[]}'],
    ),
    (
        {
            "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
            "$defs": {"a": {"type": "integer"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
        },
        {},
        ["1"],
        ["null"],
    ),
    (
        {"oneOf": [{"const": "a", "title": "A"}, {"const": 1}, {"type": "null"}, {"enum": ["b", 2]}]},
        {},
        ['"a"', "1", "null", "2"],
        ["3"],
    ),
    ({"type": "string", "pattern": r"^\d\s\w$"}, {}, ['"1 a"'], ['"١ a"', '"1\u00a0a"', '"1 é"']),
    ({"type": "string", "pattern": r"^\D\d$"}, {}, ['"a1"'], ['"11"', '"١1"', '"a١"']),
    ({"type": "string", "pattern": r"^\S$"}, {}, ['"a"', '"é"'], ['" "', '"\u00a0"', '"\ufeff"']),
    ({"type": "string", "pattern": r"^[^\S]$"}, {}, ['" "'], ['"a"', '"\u00a0"', '"\x85"']),
    ({"enum": ["a", "é", "a\n", 1], "pattern": r"^\w$"}, {}, ['"a"', "1"], ['"é"', '"a\\n"']),
    ({"enum": ["a", "é", 1], "pattern": "^[^\\W\\w]$"}, {}, ["1"], ['"a"']),
    # Values of any kind
    (True, {"max_depth": 2}, ["1", '"a"', "[[1],{}]", '{"a":[],"b":{"c":null}}'], ["[[[1]]]", "", "[1,]"]),
    ({"type": "object"}, {"max_depth": 1}, ["{}", '{"a":1}'], ['{"a":[]}', "[]"]),
    ({"minLength": 2}, {"max_depth": 1}, ["1", '"ab"', '["a"]'], ['"a"']),
    ({"type": "object", "required": ["a"]}, {"max_depth": 1}, ['{"a":1}', '{"a":1,"b":null}'], ["{}", '{"b":1}']),
    (
        {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
        {"max_depth": 1},
        ['{"a":[1]}'],
        ['{"b":1}'],
    ),
]
IDS = [json.dumps(schema)[:60] for schema, *_ in TRIPLES]


def automaton_of(schema: Schema | bool, options: Mapping[str, Any]) -> trieauto.Automaton:
    return json_schema(schema, **options)


def validator(schema: Schema | bool) -> Any:
    cls = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    cls.check_schema(schema)
    return cls(schema, format_checker=cls.FORMAT_CHECKER)


class Walker:
    """Random texts of an automaton; after ``turn`` bytes by the shortest way to an end."""

    def __init__(self, automaton: trieauto.Automaton) -> None:
        sources, labels, targets = (array.tolist() for array in edges_of(automaton))
        self.edges: list[list[tuple[int, int]]] = [[] for _ in range(automaton.num_states)]
        into: list[list[int]] = [[] for _ in range(automaton.num_states)]
        for source, label, target in zip(sources, labels, targets, strict=True):
            self.edges[source].append((label, target))
            into[target].append(source)
        self.start, self.ends = automaton.start, automaton.accepting.tolist()
        self.distance = [0 if end else -1 for end in self.ends]
        queue = [state for state, end in enumerate(self.ends) if end]
        for state in queue:
            for source in into[state]:
                if self.distance[source] < 0:
                    self.distance[source] = self.distance[state] + 1
                    queue.append(source)
        assert min(self.distance) >= 0, "a state from which no end can be reached"

    def texts(self, count: int, rng: random.Random, turn: int = 40) -> Iterator[bytes]:
        for _ in range(count):
            state, written = self.start, bytearray()
            while True:
                ways = self.edges[state]
                if self.ends[state] and (not ways or len(written) > turn or rng.random() < 0.2):
                    break
                if len(written) > turn:
                    ways = [way for way in ways if self.distance[way[1]] == self.distance[state] - 1]
                # Some groups of bytes are large; structure should be met as often.
                label, state = (
                    rng.choice(ways) if rng.random() < 0.5 else rng.choice([ways[0], ways[-1], rng.choice(ways)])
                )
                written.append(label)
            yield bytes(written)


@pytest.mark.parametrize(("schema", "options", "valid", "invalid"), TRIPLES, ids=IDS)
def test_triples(schema: Schema | bool, options: dict[str, Any], valid: list[str], invalid: list[str]) -> None:
    automaton = automaton_of(schema, options)
    is_valid = validator(schema).is_valid
    for text in valid:
        assert is_valid(json.loads(text)), "the test itself is wrong"
        assert automaton.accepts(text), text
    for text in invalid:
        assert not automaton.accepts(text), text


@pytest.mark.parametrize(("schema", "options", "valid", "invalid"), TRIPLES, ids=IDS)
def test_random_walks_are_valid(
    schema: Schema | bool, options: dict[str, Any], valid: list[str], invalid: list[str]
) -> None:
    walker = Walker(automaton_of(schema, options))
    check = validator(schema)
    rng = random.Random(0)
    for text in walker.texts(NUM_WALKS, rng):
        instance = json.loads(text)
        assert check.is_valid(instance), text
        if options.get("escapes") != "any":
            json.dumps(instance, ensure_ascii=False).encode()  # no surrogates


# Refusals


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"not": {}}, "#/not"),
        ({"type": "object", "properties": {"a/b": {"type": "object", "if": {}}}}, "#/properties/a~1b/if"),
        ({"type": "array", "items": {"type": "string", "foo": 1}}, "#/items/foo"),
        ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "#/uniqueItems"),
        ({"type": "array"}, "#:"),
        ({"type": "array", "prefixItems": [{"type": "null"}]}, "#:"),
        ({"type": "object"}, "#:"),
        ({}, "#:"),
        (True, "#:"),
        ({"minLength": 3}, "#:"),
        ({"type": "object", "properties": {}, "patternProperties": {"a": {}}}, "#/patternProperties"),
        ({"type": "object", "properties": {"a": {"type": "null"}}, "maxProperties": 0}, "#/maxProperties"),
        ({"type": "object", "properties": {"a": {"type": "null"}}, "minProperties": 2}, "#/minProperties"),
        ({"type": "number", "multipleOf": 0.01}, "#/multipleOf"),
        ({"type": "integer", "multipleOf": 3, "minimum": 7}, "#/multipleOf"),
        ({"type": "number", "minimum": 2**53 + 1}, "#/minimum"),
        ({"type": "string", "format": "uri"}, "#/format"),
        ({"type": "string", "pattern": "a(?=b)"}, "#/pattern"),
        ({"type": "string", "pattern": r"^\cC$"}, "#/pattern"),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "a.{30}"}}}, "#/properties/a/pattern"),
        ({"type": "array", "items": {"enum": ["a"], "pattern": "a(?=b)"}}, "#/items/pattern"),
        ({"enum": [10**400, 1.5], "multipleOf": 0.5}, "#:"),
        ({"type": "string", "maxLength": 10**9}, "#/maxLength"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "#/oneOf"),
        ({"oneOf": [{"const": 1}, {"const": 1.0}]}, "#/oneOf"),
        ({"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b"}]}, "#/pattern"),
        (
            {"allOf": [{"type": "object", "properties": {"a": {}}}, {"additionalProperties": False}]},
            "#/additionalProperties",
        ),
        (TREE, "#/$defs/tree/properties/kids/items"),
        ({"$ref": "#"}, "#"),
        ({"$ref": "https://example.org/other"}, "#/$ref"),
        ({"type": "array", "items": [{"type": "null"}]}, "#/items"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "prefixItems": [{}]}, "#/prefixItems"),
        ({"allOf": [{"$ref": "#"}], "type": "string"}, "#/allOf/0/$ref"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "#/$schema"),
        ({"enum": ["\ud800"]}, "#/enum"),
        ({"$dynamicRef": "#a"}, "#/$dynamicRef"),
    ],
)
def test_what_is_not_supported_is_refused_with_its_pointer(schema: Schema | bool, where: str) -> None:
    with pytest.raises(trieauto.UnsupportedError) as caught:
        json_schema(schema)
    assert f"at {where}" in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "strin"}, "#/type"),
        ({"type": []}, "#/type"),
        ({"type": "object", "properties": {"a": 1}}, "#/properties/a"),
        ({"type": "object", "properties": []}, "#/properties"),
        ({"type": "string", "minLength": -1}, "#/minLength"),
        ({"type": "string", "maxLength": 1.5}, "#/maxLength"),
        ({"type": "string", "pattern": "["}, "#/pattern"),
        ({"enum": ["a"], "pattern": "["}, "#/pattern"),
        ({"type": "integer", "minimum": "x"}, "#/minimum"),
        ({"type": "integer", "exclusiveMinimum": True}, "#/exclusiveMinimum"),
        ({"type": "integer", "minimum": math.nan}, "#/minimum"),
        ({"anyOf": []}, "#/anyOf"),
        ({"enum": "abc"}, "#/enum"),
        ({"enum": [math.inf]}, "#/enum"),
        ({"enum": [object()]}, "#/enum"),
        ({"$ref": "#/$defs/missing"}, "#/$ref"),
        ({"type": "object", "required": "a"}, "#/required"),
    ],
)
def test_what_is_no_schema_is_an_error_with_its_pointer(schema: Schema, where: str) -> None:
    with pytest.raises(trieauto.TrieautoError, match="not a valid schema") as caught:
        json_schema(schema)
    assert not isinstance(caught.value, trieauto.UnsupportedError)
    assert f"at {where}" in str(caught.value)


def test_the_metaschema_is_asked_on_demand() -> None:
    wrong = {"type": "null", "$defs": {"a": {"type": "strin"}}}
    assert json_schema(wrong).accepts("null")
    with pytest.raises(trieauto.TrieautoError, match="#/\\$defs/a/type"):
        json_schema(wrong, check=True)
    assert json_schema({"enum": ["a", "b"]}, check=True).accepts('"b"')


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"enum": []},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "string", "pattern": "^abc$", "maxLength": 2},
        {"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 1},
        {"type": "array", "items": False, "minItems": 1},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"type": "object", "properties": {}, "additionalProperties": False, "required": ["a"]},
        {"allOf": [{"type": "string"}, {"type": "null"}]},
        {"allOf": [{"const": 1}, {"const": True}]},
    ],
    ids=str,
)
def test_what_has_no_value_is_an_error(schema: Schema | bool) -> None:
    with pytest.raises(trieauto.EmptyConstraintError):
        json_schema(schema)


@pytest.mark.parametrize(
    "options",
    [
        {"whitespace": -1},
        {"whitespace": True},
        {"max_depth": 0},
        {"max_digits": 1.5},
        {"escapes": "all"},
        {"formats": 1},
    ],
    ids=str,
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(trieauto.TrieautoError, match=next(iter(options))):
        json_schema({"type": "null"}, **options)


@pytest.mark.parametrize("option", ["whitespace", "max_depth", "max_digits"])
def test_options_that_cost_too_much_are_refused(option: str) -> None:
    with pytest.raises(trieauto.UnsupportedError, match=option):
        json_schema({"type": "integer"}, **{option: 10**9})


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '"a"'])
def test_text_that_is_no_schema(text: str) -> None:
    with pytest.raises(trieauto.TrieautoError):
        json_schema(text)


def test_a_schema_as_text() -> None:
    assert json_schema('{"type": "null"}').accepts("null")


def test_references_to_references_do_not_multiply() -> None:
    """Each definition holds the next one twice."""
    definitions: Schema = {
        f"d{k}": {"type": "array", "prefixItems": [{"$ref": f"#/$defs/d{k + 1}"}] * 2, "items": False}
        for k in range(12)
    }
    definitions["d12"] = {"type": "null"}
    assert json_schema({"$ref": "#/$defs/d0", "$defs": definitions}).accepts("[[[]],[]]")


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_references_that_double_at_each_level_end(keyword: str) -> None:
    definitions: Schema = {f"d{k}": {keyword: [{"$ref": f"#/$defs/d{k + 1}"}] * 2} for k in range(40)}
    definitions["d40"] = {"type": "null"}
    try:
        assert json_schema({"$ref": "#/$defs/d0", "$defs": definitions}).accepts("null")
    except trieauto.UnsupportedError as error:
        if keyword == "anyOf":
            raise AssertionError("each definition is built once") from error


def test_very_many_levels_of_anything_are_refused() -> None:
    with pytest.raises(trieauto.UnsupportedError, match="levels"):
        json_schema(True, max_depth=50)


def test_very_deep_schemas_are_refused() -> None:
    schema: Schema = {"type": "null"}
    for _ in range(3_000):
        schema = {"type": "array", "items": schema}
    with pytest.raises(trieauto.UnsupportedError):
        json_schema(schema)


# Sets


def test_a_set_alone_is_its_trie() -> None:
    automaton = json_schema({"enum": ["b", "a"], "title": "letters"})
    assert automaton.values is not None
    assert sorted(automaton.values.given) == ['"a"', '"b"']


@given(
    st.lists(
        st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.integers(), st.booleans(), st.none()),
        min_size=1,
    )
)
def test_enums_are_spelled_as_json_writes_them(values: list[Any]) -> None:
    automaton = json_schema({"enum": values})
    assert automaton.values is not None
    assert {json.dumps(value, ensure_ascii=False) for value in values} == set(automaton.values.given)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), st.data())
def test_any_spelling_of_a_string(value: str, data: st.DataObject) -> None:
    """Every spelling that ``json.loads`` maps to the value, and none of another one."""
    short = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    spelled = ""
    for character in value:
        units = character.encode("utf-16-be").hex()
        hexadecimal = "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))
        forms = [hexadecimal, hexadecimal.upper().replace("U", "u")]
        forms += [short[character]] if character in short else []
        forms += [character] if character >= " " and character not in '"\\' else []
        spelled += data.draw(st.sampled_from(forms))
    text = f'"{spelled}"'
    assert json.loads(text) == value
    for schema in ({"enum": [value, "other"]}, {"const": value}, {"type": "string", "maxLength": len(value)}):
        assert json_schema(schema, escapes="any").accepts(text)
    assert not json_schema({"enum": [value + "x", "x" + value]}, escapes="any").accepts(text)
    assert json_schema({"type": "string", "minLength": len(value)}).accepts(json.dumps(value, ensure_ascii=False))
    assert not json_schema({"type": "string", "minLength": len(value) + 1}, escapes="any").accepts(text)


def test_escapes_of_large_classes_are_refused() -> None:
    with pytest.raises(trieauto.UnsupportedError, match="#/pattern"):
        json_schema({"type": "string", "pattern": "a.b"}, escapes="any")


# Automata


@pytest.mark.parametrize(("one", "other"), [("a*b?", "(ab|a)*"), ("[a-c]{2,5}", ".*c"), ("abc|abd|x", "ab.*")])
def test_products(one: str, other: str) -> None:
    both, only = intersection(regex(one), regex(other)), difference(regex(one), regex(other))
    rng = random.Random(1)
    for automaton in (both, only):
        Walker(automaton)  # every state has an end
    for _ in range(2_000):
        text = "".join(rng.choices("abcdx", k=rng.randrange(6)))
        in_one, in_other = regex(one).accepts(text), regex(other).accepts(text)
        assert both.accepts(text) == (in_one and in_other)
        assert only.accepts(text) == (in_one and not in_other)


def test_escaped_characters_are_the_ones_of_strings() -> None:
    """Two ways to the same language: characters as they are built, and the raw ones, escaped."""
    built, translated = characters("canonical", 0, 2), escaped(characters(None, 0, 2), "canonical")
    for one, other in ((built, translated), (translated, built)):
        with pytest.raises(trieauto.EmptyConstraintError):
            difference(one, other)


# Numbers


@given(st.integers(-1200, 1200), st.integers(-1200, 1200), st.lists(st.integers(-1500, 1500), min_size=1))
def test_ranges_of_integers(low: int, high: int, numbers: list[int]) -> None:
    if low > high:
        low, high = high, low
    automaton = json_schema({"type": "integer", "minimum": low, "maximum": high})
    for number in [*numbers, low, high, low - 1, high + 1, 0]:
        assert automaton.accepts(str(number)) == (low <= number <= high)
    from_low = json_schema({"type": "integer", "minimum": low})
    to_high = json_schema({"type": "integer", "exclusiveMaximum": high})
    for number in [*numbers, low, high]:
        assert from_low.accepts(str(number)) == (number >= low)
        assert to_high.accepts(str(number)) == (number < high)


finite = st.floats(allow_nan=False, allow_infinity=False)
short = st.decimals(-100, 100, places=2).map(float)


@given(
    st.one_of(finite, short), st.one_of(finite, short), st.lists(st.one_of(finite, short), min_size=1), st.booleans()
)
@settings(max_examples=200)
def test_ranges_of_numbers(low: float, high: float, numbers: list[float], is_exclusive: bool) -> None:
    """By their canonical texts, and by texts close to the bounds."""
    if low > high:
        low, high = high, low
    bounds = ("exclusiveMinimum", "exclusiveMaximum") if is_exclusive else ("minimum", "maximum")
    schema = {"type": "number", bounds[0]: low, bounds[1]: high}
    is_valid = jsonschema.Draft202012Validator(schema).is_valid
    try:
        automaton = json_schema(schema)
    except trieauto.EmptyConstraintError:
        assert not any(map(is_valid, [low, high, *numbers]))
        return
    except trieauto.UnsupportedError:
        assert is_exclusive
        assert math.inf in (math.nextafter(low, math.inf), math.nextafter(-high, math.inf))
        return
    close = [math.nextafter(bound, way) for bound in (low, high) for way in (-math.inf, math.inf)]
    for number in [*numbers, low, high, *close]:
        if math.isinf(number):
            continue
        text = json.dumps(number)
        if "e" not in text and text != "-0.0":
            assert automaton.accepts(text) == is_valid(number), text
        for changed in (text + "1", text[:-1], text.replace("e", "1e")):
            if automaton.accepts(changed):
                assert is_valid(json.loads(changed)), changed


# Schemas drawn at random, with values


def texts() -> st.SearchStrategy[str]:
    return st.text(st.sampled_from('ab"\\/\n\x01é😀 '), max_size=4)


def canonical(instance: Any) -> str:
    return json.dumps(instance, ensure_ascii=False, separators=(",", ":"))


@st.composite
def schemas_and_values(draw: st.DrawFn, depth: int = 2) -> tuple[Schema, st.SearchStrategy[Any]]:
    """A schema that is supported, and the strategy of its values in the declared subset."""
    kinds = ["string", "integer", "boolean", "null", "enum", "number"] + (
        ["array", "object", "anyOf"] if depth > 0 else []
    )
    kind = draw(st.sampled_from(kinds))
    if kind == "string":
        least = draw(st.integers(0, 2))
        most = draw(st.one_of(st.none(), st.integers(least, 4)))
        schema: Schema = (
            {"type": "string"} | ({"minLength": least} if least else {}) | ({} if most is None else {"maxLength": most})
        )
        return schema, texts().map(lambda text: (text + "xx"[:least])[: 9 if most is None else most]).filter(
            lambda text: len(text) >= least
        )
    if kind == "integer":
        low, high = sorted(draw(st.tuples(st.integers(-300, 300), st.integers(-300, 300))))
        return {"type": "integer", "minimum": low, "maximum": high}, st.integers(low, high)
    if kind == "number":
        return {"type": "number"}, st.floats(allow_nan=False, allow_infinity=False)
    if kind == "boolean":
        return {"type": "boolean"}, st.booleans()
    if kind == "null":
        return {"type": "null"}, st.none()
    if kind == "enum":
        values = draw(st.lists(st.one_of(texts(), st.integers(), st.none(), st.booleans()), min_size=1, max_size=4))
        return {"enum": values}, st.sampled_from(values)
    if kind == "anyOf":
        pairs = draw(st.lists(schemas_and_values(depth - 1), min_size=1, max_size=3))
        return {"anyOf": [schema for schema, _ in pairs]}, st.one_of([values for _, values in pairs])
    if kind == "array":
        schema, values = draw(schemas_and_values(depth - 1))
        least = draw(st.integers(0, 2))
        most = draw(st.one_of(st.none(), st.integers(least, 7)))
        whole = {"type": "array", "items": schema, "minItems": least} | ({} if most is None else {"maxItems": most})
        return whole, st.lists(values, min_size=least, max_size=4 if most is None else most)
    names = draw(st.lists(texts(), unique=True, max_size=4))
    fields = {name: draw(schemas_and_values(depth - 1)) for name in names}
    required = [name for name in names if draw(st.booleans())]
    whole = {
        "type": "object",
        "properties": {name: schema for name, (schema, _) in fields.items()},
        "required": required,
    }

    @st.composite
    def objects(draw: st.DrawFn) -> dict[str, Any]:
        return {name: draw(values) for name, (_, values) in fields.items() if name in required or draw(st.booleans())}

    return whole, objects()


@given(schemas_and_values(), st.data())
@settings(max_examples=300)
def test_schemas_accept_their_values_and_nothing_else(
    pair: tuple[Schema, st.SearchStrategy[Any]], data: st.DataObject
) -> None:
    schema, values = pair
    automaton = json_schema(schema)
    check = validator(schema)
    for _ in range(3):
        instance = data.draw(values)
        assert check.is_valid(instance)
        assert automaton.accepts(canonical(instance)), canonical(instance)
        assert json_schema(schema, escapes="any").accepts(canonical(instance))
        assert json_schema(schema, whitespace=1).accepts(json.dumps(instance, ensure_ascii=False))
    for text in Walker(automaton).texts(20, random.Random(0)):
        instance = json.loads(text)
        assert check.is_valid(instance), text
        if "number" not in json.dumps(schema):
            assert canonical(instance).encode() == text


KEYWORDS = [
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
    "$defs",
    "$id",
    "title",
    "unevaluatedProperties",
    "not",
    "patternProperties",
    "contains",
    "x-other",
    "other",
    "$schema",
    "default",
]


def wild_schemas() -> st.SearchStrategy[Any]:
    """Nearly schemas: keywords with values that may be for others."""
    leaf = st.one_of(
        st.sampled_from(
            [
                "string",
                "integer",
                "number",
                "object",
                "array",
                "null",
                "boolean",
                "date",
                "a",
                "^a",
                "(",
                "#",
                "#/$defs/a",
            ]
        ),
        st.integers(-3, 5),
        st.booleans(),
        st.none(),
        st.sampled_from([0.5, -1.5, 1e300, 2.0]),
        st.lists(st.sampled_from(["a", "b", "string"]), max_size=3),
    )
    usual = {
        "type": st.sampled_from(
            ["string", "integer", "number", "object", "array", "null", "boolean", ["string", "null"]]
        ),
        "enum": st.lists(
            st.one_of(st.integers(0, 3), st.sampled_from(["a", "b", 1.0, True, None, [1], {"a": 1}])), max_size=3
        ),
        "required": st.lists(st.sampled_from(["a", "b", "c"]), max_size=2, unique=True),
        "pattern": st.sampled_from(["a", "^a", "b$", "^[ab]{1,3}$", "", "\\d"]),
        "format": st.sampled_from(["date", "uuid", "uri", "time"]),
        "$ref": st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/properties/a"]),
        "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
        "uniqueItems": st.booleans(),
        "title": st.just("x"),
        "$id": st.just("http://example.org/x"),
        "const": leaf,
    }
    numbers = st.one_of(st.integers(-3, 5), st.sampled_from([0.5, 2.5, -1.5]))
    sizes = st.integers(0, 4)

    def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        def value(keyword: str) -> st.SearchStrategy[Any]:
            if keyword in usual:
                proper = usual[keyword]
            elif keyword in ("properties", "$defs", "patternProperties"):
                proper = st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
            elif keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
                proper = st.lists(inner, min_size=1, max_size=3)
            elif keyword in ("items", "additionalProperties", "unevaluatedProperties", "not", "contains"):
                proper = inner
            elif keyword[:3] in ("min", "max") and keyword not in ("minimum", "maximum"):
                proper = sizes
            else:
                proper = numbers
            return st.integers(0, 19).flatmap(lambda dice: leaf if dice == 0 else proper)

        likely = KEYWORDS[:30]
        keys = st.integers(0, 9).flatmap(lambda dice: st.sampled_from(KEYWORDS if dice == 0 else likely))
        return st.lists(keys, min_size=1, max_size=5, unique=True).flatmap(
            lambda names: st.fixed_dictionaries({name: value(name) for name in names})
        )

    return st.recursive(st.one_of(st.booleans(), schemas(st.booleans())), schemas, max_leaves=12)


@pytest.mark.parametrize("keyword", ["$schema", "$id"])
@pytest.mark.parametrize("value", [None, 7, [], {}])
def test_addresses_that_are_no_strings_are_refused(keyword: str, value: object) -> None:
    for schema in ({"type": "boolean"}, {"$ref": "#/$defs/a", "$defs": {"a": {"type": "boolean"}}}):
        with pytest.raises(trieauto.TrieautoError, match=rf"not a valid schema at #/\{keyword}: .*string"):
            json_schema(schema | {keyword: value})


@given(wild_schemas(), st.sampled_from([{}, {"max_depth": 1}, {"max_depth": 2}, {"escapes": "any"}, {"whitespace": 1}]))
@settings(max_examples=1_500)
def test_any_schema_gives_its_language_or_a_typed_error(schema: Any, options: dict[str, Any]) -> None:
    try:
        automaton = json_schema(schema, **options)
    except trieauto.TrieautoError:
        return
    try:
        check = validator(schema)
    except jsonschema.SchemaError:
        return  # wrong in a place that changes nothing
    for text in Walker(automaton).texts(30, random.Random(0)):
        assert check.is_valid(json.loads(text)), text


# Budgets

BUDGETED: list[tuple[Schema, dict[str, Any]]] = [
    ({"type": "string"}, {}),
    ({"type": "string", "minLength": 5, "maxLength": 9}, {}),
    ({"type": "array", "items": {"type": "string"}}, {}),
    ({"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 3}, {}),
    ({"type": "array", "items": {"enum": ["antelope", "aardvark"]}, "minItems": 2, "maxItems": 5}, {}),
    (TOOLS, {}),
    (TREE, {"max_depth": 3}),
    ({"type": "integer", "minimum": 100_000}, {}),
    ({"type": "number", "exclusiveMinimum": 0}, {}),
    ({"type": "string", "format": "date-time"}, {}),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "number"}}},
            "required": ["b"],
        },
        {},
    ),
    (True, {"max_depth": 2}),
]


@pytest.fixture(scope="module")
def known() -> Tokenizer:
    return tokenizer("qwen")


def finish(matcher: trieauto.Matcher, vocabulary: trieauto.Vocabulary, rng: random.Random) -> bytes:
    """Write on with what a budget leaves, whatever it is."""
    written = b""
    while not matcher.is_complete:
        token_id = rng.choice(
            [token_id for token_id in matcher.allowed_token_ids().tolist() if vocabulary.tokens[token_id]]
        )
        written += vocabulary.tokens[token_id] or b""
        assert matcher.accept_token(token_id)
        assert matcher.remaining_tokens is not None
        assert matcher.remaining_tokens >= 0
    return written


@pytest.mark.parametrize(("schema", "options"), BUDGETED, ids=str)
def test_the_shortest_value_is_written_under_its_exact_budget(
    schema: Schema, options: dict[str, Any], known: Tokenizer
) -> None:
    constraint = trieauto.compile(automaton_of(schema, options), known.vocabulary)
    check = validator(schema)
    rng = random.Random(2)
    for extra in (0, 0, 0, 1, 3, 10, 25):
        budget = constraint.min_tokens + extra
        matcher = constraint.matcher(max_tokens=budget)
        text = finish(matcher, known.vocabulary, rng)
        assert check.is_valid(json.loads(text)), text
        assert matcher.num_accepted <= budget
        if extra == 0:
            assert matcher.num_accepted == budget
    with pytest.raises(trieauto.BudgetError):
        constraint.matcher(max_tokens=constraint.min_tokens - 1)


@pytest.mark.parametrize("begun", ['["a', '["a"', '["a",', '["a","', "[", '["a","b","c\\'])
def test_an_array_of_strings_is_closed_from_anywhere(begun: str, known: Tokenizer) -> None:
    constraint = trieauto.compile(json_schema({"type": "array", "items": {"type": "string"}}), known.vocabulary)
    of_byte = {token: token_id for token_id, token in enumerate(known.vocabulary.tokens) if token and len(token) == 1}
    for seed in range(20):
        matcher = constraint.matcher()
        assert matcher.accept_tokens([of_byte[bytes([byte])] for byte in begun.encode()])
        needed = matcher.min_tokens_to_finish
        with pytest.raises(trieauto.BudgetError):
            matcher.set_budget(needed - 1)
        matcher.set_budget(needed)
        text = begun.encode() + finish(matcher, known.vocabulary, random.Random(seed))
        assert all(isinstance(item, str) for item in json.loads(text))


# Peers

SHARED: dict[str, Schema] = {
    "tool call": {
        "type": "object",
        "properties": {
            "name": {"enum": ["get_user", "get", 'a"b', "é", "日本"]},
            "count": {"type": "integer", "minimum": 0},
            "ok": {"type": "boolean"},
            "x": {"type": ["null", "boolean"]},
        },
        "required": ["name", "count"],
        "additionalProperties": False,
    },
    "optional properties": {
        "type": "object",
        "properties": {"a": {"type": "null"}, "b": {"type": "boolean"}, "c": {"enum": [1, 2, 10]}},
        "additionalProperties": False,
    },
    "bounded array": {"type": "array", "items": {"enum": ["a", "ab"]}, "minItems": 1, "maxItems": 3},
    "array": {"type": "array", "items": {"type": "boolean"}},
    "range": {"type": "integer", "minimum": 3, "maximum": 1234},
    "number": {"type": "number"},
    "pattern": {"type": "string", "pattern": "^[0-9]{4}-[a-z]+$"},
    "anyOf": {
        "anyOf": [
            {"type": "null"},
            {
                "type": "object",
                "properties": {"v": {"type": "boolean"}},
                "required": ["v"],
                "additionalProperties": False,
            },
        ]
    },
    "const": {"const": {"a": [1, "x"], "b": None}},
    "reference": {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/p"}, "q": {"$ref": "#/$defs/p"}},
        "required": ["p", "q"],
        "additionalProperties": False,
        "$defs": {"p": {"enum": ["one", "two"]}},
    },
    "string": {"type": "string"},
}


# XGrammar's strings allow every escape, surrogates alone included.
PEERS = [("LLGuidance", name) for name in SHARED] + [("XGrammar", name) for name in SHARED if name != "string"]


@pytest.mark.parametrize(("peer_name", "name"), PEERS)
def test_masks_are_the_peers(peer_name: str, name: str, known: Tokenizer) -> None:
    schema = SHARED[name]
    ours = trieauto.compile(json_schema(schema), known.vocabulary).matcher()
    row, peer_row = np.zeros((2, len(known.content)), np.int32)
    content = known.content.copy()
    peer: Any
    if peer_name == "XGrammar":
        compiler = xgrammar.GrammarCompiler(known.xgrammar)
        peer = xgrammar.GrammarMatcher(
            compiler.compile_json_schema(json.dumps(schema), any_whitespace=False, separators=(",", ":"))
        )
        fill, accept = (lambda: peer.fill_next_token_bitmask(peer_row[None])), peer.accept_token
    else:
        options = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
        text = json.dumps({**schema, "x-guidance": options}, ensure_ascii=False)
        grammar = f'%llguidance {{"no_forcing": true}}\nstart: %json {text}'
        peer = llguidance.LLMatcher(known.llguidance, llguidance.LLMatcher.grammar_from_lark(grammar))
        assert not peer.is_error(), peer.get_error()
        fill = lambda: peer.unsafe_compute_mask_ptr(peer_row.ctypes.data, peer_row.nbytes)  # noqa: E731
        accept = peer.consume_token
        # It leaves out the character U+007F, which JSON allows.
        for token_id, token in enumerate(known.vocabulary.tokens):
            if token and b"\x7f" in token:
                content[token_id // 32] &= ~np.int32(1 << (token_id % 32))
    rng = random.Random(name)
    for _ in range(15):
        ours.reset()
        peer.reset()
        written = b""
        for _ in range(40):
            ours.fill_next_token_bitmask(row)
            fill()
            np.testing.assert_array_equal(row & content, peer_row & content, err_msg=repr(written))
            allowed = ours.allowed_token_ids()
            allowed = allowed[(content[allowed // 32] >> (allowed % 32) & 1) > 0]
            if len(allowed) == 0:
                break
            token_id = int(rng.choice(allowed))
            written += known.vocabulary.tokens[token_id] or b""
            assert ours.accept_token(token_id)
            assert accept(token_id)


# Found by using it


def test_the_same_reference_many_times_at_once_is_one() -> None:
    depth = 60
    definitions: Schema = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(depth)}
    definitions[f"a{depth}"] = {"type": "boolean"}
    automaton = json_schema({"$ref": "#/$defs/a0", "$defs": definitions})
    assert automaton.accepts("true")
    assert automaton.num_states == 9


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        (
            {"properties": {"b": {"type": "integer", "minimum": 5, "maximum": 4}}},
            "no integer is valid at #/properties/a/p",
        ),
        (
            {"properties": {"b": {"type": "number", "minimum": 5, "maximum": 4}}},
            "no number is valid at #/properties/a/p",
        ),
        ({"properties": {"b": False}}, "false at #/properties/a/properties/b"),
        ({"properties": {"b": {"enum": []}}}, "no value is left at #/properties/a/properties/b/enum"),
        ({"properties": {"b": {"type": "string", "minLength": 3, "maxLength": 2}}}, "minLength .* at #/properties/a/p"),
        ({"properties": {"b": {"type": "array", "items": {"type": "null"}, "minItems": 3, "maxItems": 2}}}, "minItems"),
        ({"properties": {"b": {"type": "object", "properties": {}, "minProperties": 1}}}, "no object is valid at #/p"),
    ],
)
def test_where_it_comes_from_that_nothing_is_valid(schema: Schema, where: str) -> None:
    inner = {"type": "object", "required": ["b"], **schema}
    with pytest.raises(trieauto.EmptyConstraintError, match=where):
        json_schema({"type": "object", "properties": {"a": inner}, "required": ["a"]})


@pytest.mark.parametrize("name", ["\ud800", "a\nb", "\x00"])
def test_messages_can_be_shown(name: str) -> None:
    for schema in ({"properties": {name: {"not": {}}}}, {name: 1}, {"properties": {name: {"type": "sting"}}}):
        with pytest.raises(trieauto.TrieautoError) as caught:
            json_schema({"type": "object", **schema})
        assert str(caught.value).isprintable()


HUGE = 10**5000  # more digits than Python writes by default


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number", "minimum": HUGE},
        {"type": "integer", "multipleOf": HUGE},
        {"type": "array", "items": {"type": "null"}, "maxItems": HUGE},
        {"type": "array", "items": {"type": "null"}, "minItems": HUGE},
        {"type": "string", "minLength": -HUGE},
        {"enum": [HUGE]},
    ],
)
def test_integers_of_very_many_digits_get_a_typed_error(schema: Schema) -> None:
    with pytest.raises(trieauto.TrieautoError):
        json_schema(schema)


def test_values_in_a_structure_that_a_vocabulary_cannot_spell_are_named() -> None:
    no_b: list[bytes | None] = [bytes([byte]) for byte in range(256) if byte != ord("b")]
    vocabulary = trieauto.Vocabulary.from_tokens([*no_b, None], stop_token_ids=[255])
    of_two: Schema = {"enum": ["a", "b"]}
    structures = [
        json_schema({"type": "object", "properties": {"t": of_two}, "required": ["t"]}),
        json_schema(of_two, whitespace=1),
        json_schema(of_two, escapes="any"),
        (trieauto.literal("x") + trieauto.choices(["a", "b"])).repeat(1, 2),
    ]
    for automaton in structures:
        with pytest.raises(trieauto.UnreachableValueError, match="'b' \\(1 of 2 values\\)"):
            trieauto.compile(automaton, vocabulary)
        assert trieauto.compile(automaton, vocabulary, unreachable="report").unreachable_values == ["b"]
    trieauto.compile(trieauto.regex("[ab]+|" + "|".join("acegikmoqb")), vocabulary)  # alternatives are no values
