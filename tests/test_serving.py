"""What the adapters of serving engines share: named sets, the store of constraints, thinking before an answer."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto import BudgetError, EmptyConstraintError, TrieautoError, UnsupportedError
from trieauto.errors import ValueFileError
from trieauto.json_schemas.named_sets import find_set_names
from trieauto.serving import ENVIRONMENT, ConstraintStore, NamedSet, NamedSets, Snapshots, ThinkingMatcher
from trieauto.serving.named_sets import mentions_sets
from trieauto.serving.schemas import with_object_types

from .tiny_models import STOPS, TOKENS, VALUES, vocabulary

SETS = {"tools": ["get", "get_user", "send"], "odd": ['"', "é", "\n"]}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write(tmp_path, "tools.txt", "get\nget_user\nsend\n")
    write(tmp_path, "odd.json", json.dumps(SETS["odd"]))
    return tmp_path


def write(directory: Path, name: str, text: str) -> None:
    """As one should: in one step."""
    (directory / "new.tmp").write_text(text)
    os.replace(directory / "new.tmp", directory / name)


def together(count: int, work: Callable[[], object]) -> list[object]:
    """What each of many threads that start at once returns or raises."""
    barrier = threading.Barrier(count)

    def run(_: int) -> object:
        barrier.wait()
        try:
            return work()
        except TrieautoError as error:
            return error

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


# Named sets


def test_sets_are_read_by_name(directory: Path) -> None:
    (directory / "lines.jsonl").write_text('"a\\nb"\n""\n')
    sets = NamedSets(directory)
    assert sets.names() == ["lines", "odd", "tools"]
    assert sets["tools"] == SETS["tools"]
    assert sets["lines"] == ["a\nb", ""]
    assert sets.automaton("odd").accepts("é")
    assert not sets.automaton("odd").accepts("e")
    assert sets.automaton("tools") is sets.automaton("tools")


def test_a_changed_file_is_read_again(directory: Path) -> None:
    sets = NamedSets(directory)
    before, version = sets.automaton("tools"), sets.version("tools")
    write(directory, "tools.txt", "get\nput\n")
    assert sets["tools"] == ["get", "put"]
    assert sets.version("tools") != version
    assert before.accepts("send")
    write(directory, "tools.txt", "get\nget_user\nsend\n")
    assert sets.version("tools") == version


@pytest.mark.parametrize("age", [0, 3600])
def test_a_change_of_one_moment_is_noticed(directory: Path, age: int) -> None:
    """Same size, same time: written in place within one tick of the clock, or by a program that sets times."""
    sets = NamedSets(directory)
    path = directory / "tools.txt"
    times = os.stat(path).st_mtime_ns - age * 10**9
    os.utime(path, ns=(times, times))
    assert sets["tools"] == SETS["tools"]
    path.write_text("get\nget_usex\nsend\n")
    os.utime(path, ns=(times, times))
    assert sets["tools"] == ["get", "get_usex", "send"]


def test_a_second_file_of_a_name_is_noticed(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the first one has been there, and whatever else appears beside it."""
    monkeypatch.setattr("trieauto.serving.named_sets._SETTLED_AFTER", -(10**18))
    sets = NamedSets(directory)
    found = sets.get("tools")
    assert sets.get("tools") is found
    (directory / "others.json").write_text('["x"]')
    assert sets.get("tools") is found
    (directory / "tools.json").write_text('["x"]')
    with pytest.raises(UnsupportedError, match="more than one file"):
        sets.get("tools")
    (directory / "tools.txt").unlink()
    assert sets["tools"] == ["x"]
    (directory / "tools.json").unlink()
    with pytest.raises(UnsupportedError, match="there is no set named"):
        sets.get("tools")


def test_a_state_is_kept_for_another_process(directory: Path) -> None:
    """One that first needs it after the file has changed, or is gone."""
    snapshots = Snapshots()
    store, other = (ConstraintStore(byte_vocabulary(), NamedSets(directory)) for _ in range(2))
    versions = store.key("regex", "*set:tools")[2]
    kept_in = snapshots.keep([store.sets.get("tools")])
    write(directory, "tools.txt", "x\n")
    for _ in range(2):
        constraint = other.get("regex", "*set:tools", versions, kept_in)
        assert constraint.automaton.accepts("get_user")  # type: ignore[union-attr]
    assert other.get("regex", "*set:tools").automaton.accepts("x")  # type: ignore[union-attr]
    (directory / "tools.txt").unlink()
    schema = '{"x-trieauto-set": "tools"}'
    assert other.get("json_schema", schema, versions, kept_in).automaton.accepts('"get"')  # type: ignore[union-attr]
    with pytest.raises(UnsupportedError, match="has changed since the request began"):
        other.get("json_schema", schema, ("0" * 32,), kept_in)
    states = [NamedSet("tools", str(number), ["a"], trieauto.choices(["a"])) for number in range(20)]
    assert snapshots.keep(states) == kept_in
    assert len(list(Path(kept_in).iterdir())) == 8


def test_a_directory_that_is_gone(directory: Path) -> None:
    """A request fails, and nothing else."""
    store = ConstraintStore(byte_vocabulary(), NamedSets(directory))
    constraint = store.get("regex", "*set:tools")
    away = directory.rename(directory.with_name("away"))
    assert store.peek("regex", "*set:tools") is None
    for name in ("tools", "others"):
        with pytest.raises(ValueFileError, match=r"the directory of named sets, .*: No such file"):
            store.get("regex", f"*set:{name}")
    away.rename(directory)
    assert store.get("regex", "*set:tools") is constraint
    (directory / "folder.txt").mkdir()
    with pytest.raises(UnsupportedError, match=r"no set named .folder.$"):
        store.get("regex", "*set:folder")


def test_a_reload_that_fails_names_file_and_reason(directory: Path) -> None:
    sets = NamedSets(directory)
    vocabulary_ = trieauto.Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [None], stop_token_ids=[256])
    matcher = trieauto.compile(sets.automaton("tools"), vocabulary_).matcher()
    matcher.accept_tokens(list(b"se"))
    write(directory, "tools.txt", "get\n\nsend\n")
    with pytest.raises(ValueFileError, match=r"tools\.txt:2: an empty line"):
        sets.get("tools")
    assert matcher.accept_tokens(list(b"nd"))
    assert matcher.value == "send"
    write(directory, "tools.txt", "get\n")
    assert sets["tools"] == ["get"]
    (directory / "tools.txt").unlink()
    with pytest.raises(UnsupportedError, match="there is no set named 'tools'"):
        sets.get("tools")


@pytest.mark.parametrize(
    "name", ["", "../tools", "a/b", "/etc/passwd", ".hidden", "-x", "a b", "a\0b", "é", "x" * 129, "..", None, 7, []]
)
def test_what_is_no_name_is_refused(directory: Path, name: str) -> None:
    with pytest.raises(TrieautoError, match="is no name of a set"):
        NamedSets(directory).get(name)


def test_unknown_names_are_refused(directory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="there is no set named 'tolls'; the closest are 'tools'"):
        NamedSets(directory).get("tolls")
    (directory / "tools.json").write_text('["x"]')
    with pytest.raises(UnsupportedError, match=r"more than one file: tools\.txt and tools\.json"):
        NamedSets(directory).get("tools")
    with pytest.raises(TrieautoError, match="is not a directory"):
        NamedSets(tmp_path / "nowhere")
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    with pytest.raises(UnsupportedError, match=ENVIRONMENT):
        NamedSets.from_environment().get("tools")
    monkeypatch.setenv(ENVIRONMENT, str(directory))
    assert NamedSets.from_environment()["odd"] == SETS["odd"]


def test_many_first_users_read_once(directory: Path) -> None:
    sets = NamedSets(directory)
    assert len(set(map(id, together(32, lambda: sets.get("tools"))))) == 1


# Named sets in schemas


def strings(automaton: trieauto.Automaton) -> set[str | bytes]:
    assert automaton.values is not None
    return set(automaton.values.given)


@pytest.mark.parametrize("sets", [SETS, "directory"])
def test_a_named_set_is_an_enum(sets: dict[str, list[str]] | str, directory: Path) -> None:
    known = NamedSets(directory) if isinstance(sets, str) else sets
    assert strings(trieauto.json_schema({"x-trieauto-set": "tools", "type": "string"}, sets=known)) == {
        '"get"', '"get_user"', '"send"'
    }  # fmt: skip


NESTED = {
    "type": "object",
    "properties": {"a": {"x-trieauto-set": "tools"}, "x-trieauto-set": {"$ref": "#/$defs/odd"}},
    "required": ["a", "x-trieauto-set"],
    "$defs": {"odd": {"anyOf": [{"x-trieauto-set": "odd"}, {"type": "null"}]}},
    "default": {"x-trieauto-set": 7},
}


def test_named_sets_in_every_place() -> None:
    automaton = trieauto.json_schema(NESTED, sets=SETS)
    for one in SETS["tools"]:
        for other in [*SETS["odd"], None]:
            value = {"a": one, "x-trieauto-set": other}
            assert automaton.accepts(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    assert not automaton.accepts('{"a":"put","x-trieauto-set":null}')
    assert find_set_names(json.dumps(NESTED)) == ("odd", "tools")
    items = trieauto.json_schema({"type": "array", "items": {"x-trieauto-set": "tools"}, "minItems": 1}, sets=SETS)
    assert items.accepts('["get","send"]')
    assert not items.accepts('["put"]')
    both = trieauto.json_schema({"allOf": [{"x-trieauto-set": "tools"}, {"enum": ["get", "put"]}]}, sets=SETS)
    assert both.accepts('"get"')
    assert not both.accepts('"put"')
    assert not both.accepts('"send"')


@pytest.mark.parametrize(
    ("schema", "sets", "message"),
    [
        ({"x-trieauto-set": "tools"}, None, r"#/x-trieauto-set: the set 'tools': no sets were given"),
        (NESTED, None, "x-trieauto-set: the set 'tools': no sets were given"),
        ({"enum": ["a"], "x-trieauto-set": "tools"}, None, "no sets were given"),
        ({"anyOf": [{"enum": ["a"], "x-trieauto-set": "tools"}, {"const": "b"}]}, None, "no sets were given"),
        ({"$ref": "#/x-y", "x-y": {"x-trieauto-set": "tools", "type": "string"}}, None, "no sets were given"),
        ({"x-trieauto-set": "tolls"}, SETS, "there is no set named 'tolls'; the closest are 'tools'"),
        ({"x-trieauto-set": 7}, SETS, "#/x-trieauto-set: the name of a set must be a string, not 7"),
        ({"x-trieauto-set": "tools", "enum": ["get"]}, SETS, "x-trieauto-set beside enum"),
        ({"x-trieauto-set": "tools", "type": "integer"}, SETS, "allows no value"),
    ],
)
def test_named_sets_are_never_ignored(schema: object, sets: dict[str, list[str]] | None, message: str) -> None:
    with pytest.raises(TrieautoError, match=message):
        trieauto.json_schema(schema, sets=sets)  # type: ignore[arg-type]


def test_names_are_found_however_they_are_written() -> None:
    assert find_set_names('{"x\\u002dtrieauto-set": "a"}') == ("a",)
    assert find_set_names('{"not": {"x-trieauto-set": "a"}, "if": [{"x-trieauto-set": "b"}]}') == ("a", "b")
    assert find_set_names('{"enum": ["x-trieauto-set"], "const": {"x-trieauto-set": "a"}}') == ()
    assert find_set_names("no schema, though x-trieauto-set") == ()
    assert find_set_names('["' + '{"a":[' * 10) == ()


def test_declared_properties_make_an_object() -> None:
    schema = {"properties": {"properties": {"properties": {}}, "a": {"type": "null"}}, "const": {"properties": {}}}
    assert with_object_types(schema) == {
        "properties": {"properties": {"type": "object", "properties": {}}, "a": {"type": "null"}},
        "const": {"properties": {}},
    }
    plain = {"type": "object", "properties": {"a": {"enum": [{"properties": {}}]}}, "allOf": [{"properties": {}}]}
    assert with_object_types(plain) is plain
    assert with_object_types({"items": [{"properties": {}}]}) == {"items": [{"type": "object", "properties": {}}]}


# The store


def byte_vocabulary() -> trieauto.Vocabulary:
    return trieauto.Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [None], stop_token_ids=[256])


@pytest.fixture
def store(directory: Path) -> ConstraintStore:
    return ConstraintStore(byte_vocabulary(), NamedSets(directory))


def test_lists_of_different_values(store: ConstraintStore) -> None:
    schema = {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 2}
    constraint = store.get("json_schema", json.dumps(schema))
    thinking = ThinkingMatcher(constraint.matcher(), [ord("."), ord("!")])
    thinking.set_budget(40)
    for token_id in b"hm.!":
        assert thinking.accept_token(token_id)
    for token_id in b'["b","':
        assert thinking.accept_token(token_id)
    row = trieauto.allocate_token_bitmask(1, constraint.vocabulary.size)
    thinking.fill_next_token_bitmask(row)
    assert [token_id for token_id in range(256) if row[0, token_id // 32] >> token_id % 32 & 1] == list(b"ac")


def test_texts_become_constraints(store: ConstraintStore) -> None:
    for kind, text, yes, no in (
        ("regex", "a|b|ab", "ab", "ba"),
        ("regex", r"\d{2}", "12", "١٢"),
        ("regex", r"[^\d]", "a", "١"),
        ("regex", "*set:tools", "get_user", "get_"),
        ("ebnf", "*set:tools", "send", "s"),
        ("ebnf", 'root ::= "a" | "b"', "a", "c"),
        ("json_schema", '{"x-trieauto-set": "tools"}', '"get"', "get"),
        ("json_schema", '{"properties": {"a": {"type": "null"}}, "required": ["a"]}', '{"a":null}', "{}"),
        ("values", '["*set:tools", "a"]', "*set:tools", "get_user"),
        ("format", "date", "2026-11-30", "2026-11-3"),
    ):
        constraint = store.get(kind, text)  # type: ignore[arg-type]
        assert constraint.automaton.accepts(yes), text  # type: ignore[union-attr]
        assert not constraint.automaton.accepts(no), text  # type: ignore[union-attr]
        assert store.get(kind, text) is constraint  # type: ignore[arg-type]
        assert store.peek(kind, text) is constraint  # type: ignore[arg-type]
    assert store.num_compiled == len(store) == 10


def test_a_changed_set_is_another_constraint(store: ConstraintStore, directory: Path) -> None:
    schema = '{"type": "array", "items": {"x-trieauto-set": "tools"}, "minItems": 1, "maxItems": 1}'
    old, old_schema = store.get("regex", "*set:tools"), store.get("json_schema", schema)
    write(directory, "tools.txt", "put\n")
    assert store.peek("regex", "*set:tools") is None
    new, new_schema = store.get("regex", "*set:tools"), store.get("json_schema", schema)
    assert new.automaton.accepts("put")  # type: ignore[union-attr]
    assert new_schema.automaton.accepts('["put"]')  # type: ignore[union-attr]
    assert old.automaton.accepts("send")  # type: ignore[union-attr]
    assert old_schema.automaton.accepts('["send"]')  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "text", "kind_of_error", "message"),
    [
        ("regex", "*set:tolls", UnsupportedError, "no set named 'tolls'"),
        ("regex", "*set:../x", TrieautoError, "'../x' is no name of a set"),
        ("regex", "*set:", TrieautoError, "'' is no name of a set"),
        ("regex", "(", TrieautoError, "unterminated"),
        ("ebnf", 'root ::= "a"*', UnsupportedError, r"'\*' at line 1"),
        ("json_schema", '{"x-trieauto-set": "tolls"}', UnsupportedError, "no set named 'tolls'"),
        ("json_schema", "{", TrieautoError, "not JSON"),
        ("json_schema", '{"type": "string", "enum": [1]}', EmptyConstraintError, "no value"),
        ("json_schema", '{"items":' * 5000 + "1" + "}" * 5000, TrieautoError, "nested|recursion"),
    ],
)
def test_errors_are_raised_and_not_kept(
    store: ConstraintStore, kind: str, text: str, kind_of_error: type[TrieautoError], message: str
) -> None:
    for _ in range(2):
        with pytest.raises(kind_of_error, match=message):
            store.get(kind, text)  # type: ignore[arg-type]
        assert store.peek(kind, text) is None  # type: ignore[arg-type]
    assert len(store) == 0


def test_many_first_users_compile_once(store: ConstraintStore) -> None:
    text = "|".join(f"value{number}" for number in range(20_000))
    found = together(64, lambda: store.get("regex", text))
    assert isinstance(found[0], trieauto.Constraint)
    assert len(set(map(id, found))) == 1
    assert store.num_compiled == 1
    errors = together(64, lambda: store.get("regex", text + "|("))
    assert all(isinstance(error, TrieautoError) for error in errors)
    assert store.num_compiled == 1


def test_memory_is_bounded(directory: Path) -> None:
    store = ConstraintStore(byte_vocabulary(), NamedSets(directory), max_bytes=40_000)
    texts = ["|".join(f"{letter}{number}" for number in range(300)) for letter in "abcdefghij"]
    first = store.get("regex", texts[0])
    for text in texts:
        store.get("regex", text)
        assert store.nbytes <= store.max_bytes
        assert store.peek("regex", text) is not None
        assert store.get("regex", texts[0]) is first  # used all the time
    assert 1 < len(store) < len(texts)
    store.get("regex", "|".join(map(str, range(10_000))))  # too large to keep
    assert store.nbytes <= store.max_bytes
    store.clear()
    assert len(store) == 0


# Thinking

ENDS = st.lists(st.sampled_from(range(4, len(TOKENS))), min_size=1, max_size=4)


def walk_of(rng: random.Random, matcher: ThinkingMatcher, most: int = 60) -> list[int]:
    """Accept random legal tokens until the answer is whole."""
    taken = []
    while len(taken) < most and not (matcher.is_complete or matcher.is_terminated() or matcher.remaining_tokens == 0):
        token_id = int(rng.choice(matcher.allowed_token_ids()))
        assert matcher.accept_token(token_id)
        taken.append(token_id)
    return taken


def thinking(ends: list[int], **options: int) -> ThinkingMatcher:
    constraint = trieauto.compile(trieauto.choices(VALUES), vocabulary())
    return ThinkingMatcher(constraint.matcher(), ends, **options)


@given(ENDS, st.integers(0, 20), st.none() | st.integers(0, 12), st.integers(0, 9), st.randoms(use_true_random=False))
def test_every_walk_ends_in_a_whole_answer(
    ends: list[int], budget: int, most: int | None, answer: int, rng: random.Random
) -> None:
    options = {"answer_tokens": answer} | ({} if most is None else {"max_thinking_tokens": most})
    matcher = thinking(ends, **options)
    needed = len(ends) + matcher.answer.constraint.min_tokens
    assert matcher.min_tokens_to_finish == needed
    if budget < needed:
        with pytest.raises(BudgetError, match=f"{needed} tokens are needed to finish, but the budget is {budget}"):
            matcher.set_budget(budget)
        return
    matcher.set_budget(budget)
    taken = walk_of(rng, matcher)
    assert len(taken) <= budget
    assert not matcher.is_thinking
    assert matcher.answer.is_accepting or matcher.answer.is_terminated()
    assert matcher.answer.value in VALUES
    of_thinking = len(taken) - matcher.answer.num_accepted
    assert taken[:of_thinking][-len(ends) :] == ends
    assert most is None or of_thinking <= max(most, 0) + len(ends)
    # Thinking ends at the first place where its end stands.
    assert all(taken[i : i + len(ends)] != ends for i in range(of_thinking - len(ends)))


@given(ENDS, st.none() | st.integers(10, 24), st.randoms(use_true_random=False), st.integers(0, 60))
def test_time_travel_across_the_border(ends: list[int], budget: int | None, rng: random.Random, back: int) -> None:
    matcher = thinking(ends, max_thinking_tokens=8)
    matcher.set_budget(budget)
    masks, lengths = [], []
    row = np.empty((1, 2), np.int32)
    copies = []
    for _ in range(30):
        masks.append(matcher.allowed_token_ids().tolist())
        lengths.append(matcher.remaining_tokens)
        copies.append(matcher.fork())
        matcher.fill_next_token_bitmask(row, 0)
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")
        assert np.flatnonzero(bits).tolist() == masks[-1]
        for token_id in range(len(TOKENS) + 3):
            if token_id not in masks[-1]:
                before = repr(matcher)
                assert not matcher.accept_token(token_id)
                assert repr(matcher) == before
        if matcher.is_terminated() or matcher.remaining_tokens == 0:
            break
        assert matcher.accept_token(int(rng.choice(masks[-1])))
    back = min(back, matcher.num_accepted)
    matcher.rollback(back)
    place = matcher.num_accepted
    assert matcher.allowed_token_ids().tolist() == masks[place] == copies[place].allowed_token_ids().tolist()
    assert matcher.remaining_tokens == lengths[place] == copies[place].remaining_tokens
    matcher.reset()
    assert matcher.allowed_token_ids().tolist() == masks[0]
    assert matcher.remaining_tokens == budget


def test_thinking_is_free_but_for_stop_tokens_and_padding() -> None:
    matcher = thinking([0, 1])  # special tokens
    assert matcher.allowed_token_ids().tolist() == [i for i in range(len(TOKENS)) if i not in STOPS]
    assert thinking([0, 1], excluded_token_ids=[5, 1]).allowed_token_ids().tolist() == [  # type: ignore[arg-type]
        i for i in range(len(TOKENS)) if i not in [*STOPS, 5]
    ]
    tracked = trieauto.TokenBitmask(2, 40)
    for end in ([0, 1], [4]):
        gate = thinking(end, max_thinking_tokens=0)
        gate.fill_next_token_bitmask(tracked, 1)
        assert gate.accept_token(end[0])
        thinking([0, 1]).fill_next_token_bitmask(tracked, 1)
        gate.answer.fill_next_token_bitmask(tracked, 1)
        bits = np.unpackbits(tracked.array[1].view(np.uint8), bitorder="little")
        assert np.flatnonzero(bits).tolist() == gate.answer.allowed_token_ids().tolist()


def test_thinking_leaves_room_for_the_answer() -> None:
    """With room, all values can still be written after the longest thinking; the budget is used up to that."""
    matcher = thinking([0])
    enough = matcher.answer.constraint.enough_tokens
    assert enough is not None
    matcher = thinking([0], answer_tokens=enough)
    matcher.set_budget(20)
    while matcher.is_thinking:
        assert matcher.accept_token(0 if matcher.is_forced else 5)
    assert matcher.remaining_tokens == enough + 1
    assert matcher.answer.constraint.num_values_within(enough) == len(VALUES)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ([], "thinking has no end"),
        ([4, 2], "token id 2 ends thinking, but is a stop token"),
        ([40], "40 is not one of the 40 ids"),
        (["a"], "'a' is not one"),
        ([-1], "-1 is not one"),
    ],
)
def test_what_cannot_end_thinking_is_refused(ends: list[int], message: str) -> None:
    with pytest.raises(TrieautoError, match=message):
        thinking(ends)


def test_a_matcher_with_a_budget_gives_it_to_the_whole() -> None:
    constraint = trieauto.compile(trieauto.choices(VALUES), vocabulary())
    assert ThinkingMatcher(constraint.matcher(9), [0]).remaining_tokens == 9
    with pytest.raises(BudgetError):
        ThinkingMatcher(constraint.matcher(1), [0])
    begun = constraint.matcher()
    begun.accept_token(int(begun.allowed_token_ids()[0]))
    with pytest.raises(TrieautoError, match="has begun"):
        ThinkingMatcher(begun, [0])
    with pytest.raises(TrieautoError, match="cannot roll back 1 tokens"):
        thinking([0]).rollback(1)


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("*set:tools", True),
        ('{"format": {"type": "regex", "pattern": "*set:tools"}}', True),
        ('{"format": {"type": "regex", "pattern": "\\u002aset:tools"}}', True),
        ('{"tags": [{"schema": {"x-trieauto-set": "tools"}}]}', True),
        ('{"tags": [{"schema": {"x-trieauto-set": 1}}]}', True),  # it tries to
        ('{"tags": [{"schema": {"enum": ["x-trieauto-set"]}}]}', False),
        ('{"format": {"type": "regex", "pattern": "a*set:tools"}}', False),
        ("a*set:tools", False),
        ("(x-trieauto-set", False),
        ("", False),
    ],
)
def test_whether_a_grammar_mentions_sets(text: str, mentions: bool) -> None:
    assert mentions_sets(text) is mentions
