"""What requests say that they want, where an engine passes on an argument as it is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trieauto import EmptyConstraintError, TrieautoError, UnsupportedError, Vocabulary
from trieauto.serving import ConstraintRequest, ConstraintStore, NamedSets, read_request

VOCABULARY = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [None], stop_token_ids=[256])
VALUES = ["get", 'a"b', "é", ""]


@pytest.mark.parametrize(
    ("argument", "wanted"),
    [
        (VALUES, ("values", VALUES)),
        (tuple(VALUES), ("values", VALUES)),
        ({"values": VALUES}, ("values", VALUES)),
        (json.dumps(VALUES), ("values", VALUES)),
        ("[1]", ("values", [1])),  # which is found when it is compiled
        (json.dumps({"values": VALUES}), ("values", VALUES)),
        ({"set": "tools"}, ("regex", "*set:tools")),
        ("*set:tools", ("regex", "*set:tools")),
        (' {"set": "tools"}', ("regex", "*set:tools")),
        ({"regex": "a|b"}, ("regex", "a|b")),
        ({"ebnf": 'root ::= "a"'}, ("ebnf", 'root ::= "a"')),
        ({"format": "date"}, ("format", "date")),
        ({"json_schema": {"enum": [1]}}, ("json_schema", {"enum": [1]})),
        ({"json_schema": '{"enum": [1]}'}, ("json_schema", {"enum": [1]})),
        ('{"json_schema": {"enum": [1]}}', ("json_schema", {"enum": [1]})),
        ({"json_schema": True}, ("json_schema", True)),
    ],
)
def test_ways_to_say_it(argument: Any, wanted: tuple[str, Any]) -> None:
    request = read_request(argument)
    is_json = request.kind in ("values", "json_schema")
    assert (request.kind, json.loads(request.text) if is_json else request.text) == wanted
    assert read_request(request.as_argument()) == request


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (None, "None is no constraint: it is a list of values, "),
        (7, "7 is no constraint"),
        ("tools", "'tools' is no constraint"),
        ("", "'' is no constraint"),
        ('{"set": ', "is not the JSON text of a constraint"),
        ('{"values":' * 100_000, "is not the JSON text of a constraint"),
        ({}, "exactly one of 'values', 'set', 'regex', 'json_schema', 'format', 'ebnf'; this one has nothing"),
        ({"regex": "a", "set": "b"}, "this one has 'regex', 'set'"),
        ({"choice": ["a"]}, "'choice' is no kind of constraint"),
        ({1: 2}, "1 is no kind of constraint"),
        (["a", None], "number 1 is None"),
        ({"values": 7}, "values must be a list of strings, not 7"),
        ({"set": ["tools"]}, "set must be a string"),
        ({"regex": None}, "regex must be a string, not None"),
        ({"json_schema": [1]}, "json_schema must be a schema or its text"),
        ({"json_schema": {"enum": [{1, 2}]}}, "json_schema is nothing that JSON can write"),
    ],
)
def test_what_is_no_constraint_is_named(argument: Any, message: str) -> None:
    with pytest.raises(TrieautoError) as refused:
        read_request(argument)
    assert message in str(refused.value)


def test_no_values() -> None:
    store = ConstraintStore(VOCABULARY, NamedSets(None))
    for argument in ([], {"values": []}, '{"values": []}', "[]"):
        with pytest.raises(EmptyConstraintError):
            store.get(*read_request(argument))


NAMES = st.sampled_from(["values", "set", "regex", "json_schema", "format", "ebnf"])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(NAMES | st.text(), inner),
    )
)
def test_whatever_comes_is_read_or_refused(argument: Any) -> None:
    for sent in (argument, json.dumps(argument)):
        try:
            request = read_request(sent)
        except TrieautoError:
            continue
        assert type(request) is ConstraintRequest
        assert read_request(request.as_argument()) == request


def test_what_is_read_can_be_compiled() -> None:
    store = ConstraintStore(VOCABULARY, NamedSets(None))
    assert store.get(*read_request(["a", "ab"])) is store.get(*read_request('["a","ab"]'))
    assert store.get(*read_request({"format": "digits:2"})).min_tokens == store.get("regex", "[0-9]{2}").min_tokens
    for text in ("a, b", '{"a": 1}', '["a", 1]', "[" * 100_000):
        with pytest.raises(TrieautoError, match="the values"):
            store.get(*read_request({"values": text}))


def test_a_request_goes_on_with_the_sets_that_it_began_with(tmp_path: Path) -> None:
    def write(text: str) -> None:
        (tmp_path / "new").write_text(text)
        os.replace(tmp_path / "new", tmp_path / "s.txt")

    write("a")
    store = ConstraintStore(VOCABULARY, NamedSets(tmp_path))
    versions = store.key("regex", "*set:s")[2]
    old = store.get("regex", "*set:s", versions)
    assert old is store.get("regex", "*set:s")
    write("b")
    assert store.get("regex", "*set:s", versions) is old
    young = store.get("regex", "*set:s")
    assert young is not old
    assert young is store.get("regex", "*set:s", store.key("regex", "*set:s")[2])
    store.clear()
    with pytest.raises(UnsupportedError, match="has changed since the request began"):
        store.get("regex", "*set:s", versions)
    assert store.get("regex", "x", ()) is store.get("regex", "x")
