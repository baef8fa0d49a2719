"""Sets that change: ``updated`` is the set compiled anew, ``restricted_to`` the part compiled alone."""

from __future__ import annotations

import pickle
import random
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto import Constraint, Vocabulary
from trieauto.demo_sets import tool_names
from trieauto.packed_values import PackedValues
from trieauto.packing import as_bytes
from trieauto.reference.language import unreachable_values
from trieauto.reference.prefix_space import spellings

from . import tokenizers_for_tests as real
from .same_language import assert_same_language
from .strategies import Problem, problems
from .test_laws_real import qwen, smollm2


def _vocabulary(problem: Problem) -> Vocabulary:
    return Vocabulary.from_tokens(problem.tokens, stop_token_ids=problem.stop_token_ids, size=len(problem.tokens) + 3)


def _compiled(problem: Problem, values: list[bytes], vocabulary: Vocabulary) -> Constraint:
    return trieauto.compile(
        trieauto.choices(values), vocabulary, unreachable="report", prefix_space=problem.prefix_space
    )


def _spellable(problem: Problem, values: list[bytes]) -> list[bytes]:
    return [
        value
        for value in values
        if set(spellings([value], problem.prefix_space))
        - set(unreachable_values(sorted(spellings([value], problem.prefix_space)), problem.tokens))
    ]


def _assert_equal(one: Constraint, other: Constraint) -> None:
    """The same language, with the same numbering."""
    _assert_same_arrays(one, other)
    assert one.unreachable_values == other.unreachable_values
    assert one.distances().tolist() == other.distances().tolist()
    assert_same_language(one, other)


def _assert_same_arrays(one: Constraint, other: Constraint) -> None:
    mine, theirs = one.automaton, other.automaton
    assert isinstance(mine, trieauto.Automaton)
    assert isinstance(theirs, trieauto.Automaton)
    for array, expected in zip((*mine.arrays, mine.accepting), (*theirs.arrays, theirs.accepting), strict=True):
        assert array.tolist() == expected.tolist()
        assert array.dtype == expected.dtype
    assert mine.values is not None
    assert theirs.values is not None
    assert mine.start == theirs.start
    assert mine.values.terminals.tolist() == theirs.values.terminals.tolist()
    assert [mine.values[rank] for rank in range(len(mine.values))] == [
        theirs.values[rank] for rank in range(len(theirs.values))
    ]


@given(problem=problems(prefix_space=None, max_values=10), data=st.data(), knows_distances=st.booleans())
def test_updated_is_the_set_compiled_anew(problem: Problem, data: st.DataObject, knows_distances: bool) -> None:
    vocabulary = _vocabulary(problem)
    is_there = data.draw(st.lists(st.booleans(), min_size=len(problem.values), max_size=len(problem.values)))
    before = [value for value, there in zip(problem.values, is_there, strict=True) if there]
    others = [value for value in problem.values if value not in before]
    removed = data.draw(st.lists(st.sampled_from(before), unique=True)) if before else []
    again = data.draw(st.lists(st.sampled_from(before))) if before else []
    after = [value for value in before if value not in removed] + others
    if not _spellable(problem, before):
        return
    old = _compiled(problem, before, vocabulary)
    if knows_distances:
        old.distances()
    matcher = old.matcher()
    if not _spellable(problem, after):
        with pytest.raises(trieauto.EmptyConstraintError):
            old.updated(others, removed, unreachable="report")
        return
    add = [*others, *(value for value in again if value not in removed)]
    new = old.updated(iter(add), removed, unreachable="report")
    _assert_equal(new, _compiled(problem, after, vocabulary))
    assert new.automaton.values is not None
    assert list(new.automaton.values.given) == after
    _assert_equal(old, _compiled(problem, before, vocabulary))
    assert matcher.allowed_token_ids().tolist() == old.matcher().allowed_token_ids().tolist()


@given(problem=problems(prefix_space=None, max_values=10), data=st.data(), by_mask=st.booleans())
def test_restricted_to_is_the_part_compiled_alone(problem: Problem, data: st.DataObject, by_mask: bool) -> None:
    vocabulary = _vocabulary(problem)
    count = len(problem.values)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    part = [value for value, is_in in zip(problem.values, mask.tolist(), strict=True) if is_in]
    if not _spellable(problem, problem.values):
        return
    whole = _compiled(problem, problem.values, vocabulary)
    if not part or not _spellable(problem, part):
        with pytest.raises(trieauto.EmptyConstraintError):
            whole.restricted_to(mask if by_mask else part)
        return
    found, expected = whole.restricted_to(mask if by_mask else part), _compiled(problem, part, vocabulary)
    assert found.unreachable_values == expected.unreachable_values
    assert_same_language(found, expected)
    assert_same_language(pickle.loads(pickle.dumps(found)), expected)
    for value in problem.values:
        assert found.automaton.accepts(value) == expected.automaton.accepts(value)
    assert found.enough_tokens == expected.enough_tokens
    assert [found.num_values_within(n) for n in range(5)] == [expected.num_values_within(n) for n in range(5)]
    # A part of the part.
    smaller = part[: max(1, len(part) // 2)]
    if _spellable(problem, smaller):
        assert_same_language(found.restricted_to(smaller), _compiled(problem, smaller, vocabulary))
    assert_same_language(whole, _compiled(problem, problem.values, vocabulary))


def test_a_loaded_set_changes_without_unpacking_its_values(tmp_path: Path) -> None:
    names = tool_names(500)
    vocabulary = qwen()
    trieauto.compile(trieauto.choices([*names[:300], b"\xff", names[3]]), vocabulary).save(tmp_path / "x")
    loaded = trieauto.load(tmp_path / "x", vocabulary).updated(names[290:400], [b"\xff", names[3], names[7]])
    expected = [name for k, name in enumerate(names[:400]) if k not in (3, 7)]
    assert isinstance(loaded.values, PackedValues)
    assert list(loaded.values) == expected
    _assert_same_arrays(loaded, trieauto.compile(trieauto.choices(expected), vocabulary))
    loaded.save(tmp_path / "x")
    assert list(trieauto.load(tmp_path / "x", vocabulary).values or ()) == expected


def test_a_mask_counts_the_values_as_they_were_given() -> None:
    vocabulary = Vocabulary.from_tokens([b"x", b"y", b"q", None], stop_token_ids=[3])
    constraint = trieauto.compile(trieauto.choices(["x", "x", "y"]), vocabulary)
    new = constraint.updated(add=["q"])
    assert list(new.values or ()) == ["x", "x", "y", "q"]
    assert new.restricted_to(np.array([False, False, True, False])).matcher().value == "y"
    assert list(new.updated(remove=["x"]).values or ()) == ["y", "q"]


def test_a_space_before_a_value_makes_another() -> None:
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    vocabulary = Vocabulary.from_tokens([*tokens, None], stop_token_ids=[256], prefix_space=True)
    constraint = trieauto.compile(trieauto.choices(["a", "b", " c"]), vocabulary)
    assert constraint.restricted_to([" c", "a"]).matcher().allowed_token_ids().tolist() == [32, 97]
    for wrong in (" a", "  c", "c"):
        with pytest.raises(trieauto.TrieautoError, match=f"'{wrong}' is not in the set"):
            constraint.restricted_to([wrong])


def test_values_given_twice() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c", None], stop_token_ids=[3])
    whole = trieauto.compile(trieauto.choices(["b", "a", "b", b"a", "c"]), vocabulary)
    found = whole.restricted_to(np.array([False, False, True, False, False]))
    assert found.matcher().allowed_token_ids().tolist() == [1]
    assert whole.restricted_to([b"a"]).matcher().value == "a"
    new = whole.updated(["ab", "ab", "b"], ["a"])
    assert new.automaton.values is not None
    assert list(new.automaton.values.given) == ["b", "b", "c", "ab"]


@pytest.mark.parametrize("vocabulary", [qwen, smollm2], ids=["qwen", "smollm2"])
def test_many_updates_of_many_tools(vocabulary: object) -> None:
    names = tool_names(20_000)
    tokens = vocabulary()  # type: ignore[operator]
    rng = random.Random(1)
    present = names[:10_000]
    constraint = trieauto.compile(trieauto.choices(present), tokens)
    constraint.distances()
    absent = set(names[10_000:])
    for size in (1, 100, 3_000):
        removed, added = rng.sample(present, size), rng.sample(sorted(absent), size)
        constraint = constraint.updated(added, removed)
        gone = set(removed)
        present = [name for name in present if name not in gone] + added
        absent = (absent | gone) - set(added)
        fresh = trieauto.compile(trieauto.choices(present), tokens)
        mine, theirs = constraint.automaton, fresh.automaton
        assert isinstance(mine, trieauto.Automaton)
        assert isinstance(theirs, trieauto.Automaton)
        assert np.array_equal(mine.labels, theirs.labels)
        assert np.array_equal(mine.links, theirs.links)
        assert np.array_equal(mine.accepting, theirs.accepting)
        assert np.array_equal(constraint.distances(), fresh.distances())
        assert mine.values is not None
        assert list(mine.values.given) == present


def test_a_part_of_many_tools_under_budgets() -> None:
    names = tool_names(5_000)
    rng = random.Random(2)
    whole = trieauto.compile(trieauto.choices(names), qwen())
    for share in (0.001, 0.5, 0.99):
        mask = np.array([rng.random() < share for _ in names])
        mask[17] = True
        part = whole.restricted_to(mask)
        alone = trieauto.compile(
            trieauto.choices([name for name, kept in zip(names, mask, strict=True) if kept]), qwen()
        )
        assert part.min_tokens == alone.min_tokens
        assert part.enough_tokens == alone.enough_tokens
        for budget in (None, alone.min_tokens, alone.min_tokens + 1, 8):
            for _ in range(30):
                mine, theirs = part.matcher(budget), alone.matcher(budget)
                while not theirs.is_complete and not theirs.is_terminated():
                    allowed = theirs.allowed_token_ids().tolist()
                    assert mine.allowed_token_ids().tolist() == allowed
                    token_id = rng.choice(allowed)
                    assert mine.accept_token(token_id)
                    assert theirs.accept_token(token_id)
                assert mine.value == theirs.value


def test_old_matchers_go_on_while_sets_change() -> None:
    names = tool_names(2_000)
    constraint = trieauto.compile(trieauto.choices(names[:1_000]), qwen())
    errors = []

    def walk() -> None:
        rng = random.Random(threading.get_ident())
        for _ in range(50):
            matcher = constraint.matcher(20)
            while not matcher.is_complete:
                matcher.accept_token(int(rng.choice(matcher.allowed_token_ids())))
            if matcher.value not in names[:1_000]:
                errors.append(matcher.value)

    threads = [threading.Thread(target=walk) for _ in range(2)]
    for thread in threads:
        thread.start()
    for k in range(50):
        constraint.updated([names[1_000 + k]], [names[k]]).matcher(20).allowed_token_ids()
        constraint.restricted_to(names[k : k + 500]).matcher(20).allowed_token_ids()
    for thread in threads:
        thread.join()
    assert not errors


class TestBadInput:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c", None], stop_token_ids=[3])

    @pytest.fixture
    def constraint(self) -> Constraint:
        return trieauto.compile(trieauto.choices(["a", "ab", "b"]), self.vocabulary)

    @pytest.mark.parametrize(
        ("add", "remove", "error", "message"),
        [
            ([], ["x"], trieauto.TrieautoError, "remove: 'x' is not in the set"),
            ([], ["abc", "x", "a"], trieauto.TrieautoError, "remove: 'abc' and 1 more are not in the set"),
            ([], [""], trieauto.TrieautoError, "remove: '' is not in the set"),
            (["c"], ["c"], trieauto.TrieautoError, "'c' is both"),
            ([], ["a", "b", "ab"], trieauto.EmptyConstraintError, "no value would be left"),
            (["d"], [], trieauto.UnreachableValueError, "'d'"),
            ("ab", [], trieauto.TrieautoError, "add: values must be a collection"),
            ([], b"ab", trieauto.TrieautoError, "remove: values must be a collection"),
            ([1], [], trieauto.TrieautoError, "add: value 0 is 1"),
            (None, [], trieauto.TrieautoError, "add: values must be a collection of strings, not None"),
            (["\ud800"], [], trieauto.TrieautoError, "lone surrogate"),
        ],
    )
    def test_updates(self, constraint: Constraint, add: object, remove: object, error: type, message: str) -> None:
        with pytest.raises(error, match=message):
            constraint.updated(add, remove)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("allowed", "error", "message"),
        [
            ([], trieauto.EmptyConstraintError, "nothing to choose"),
            (["a", "x", "y"], trieauto.TrieautoError, "restricted_to: 'x' and 1 more are not in the set"),
            ([""], trieauto.TrieautoError, "'' is not in the set"),
            ("a", trieauto.TrieautoError, "not 'a'"),
            (7, trieauto.TrieautoError, "not 7"),
            ([True, False, True], trieauto.TrieautoError, "numpy array of bool"),
            (np.array([True]), trieauto.TrieautoError, "3 values given, not of bool with shape"),
            (np.array([1, 0, 1]), trieauto.TrieautoError, "not of int64"),
            (np.array([False] * 3), trieauto.EmptyConstraintError, "nothing to choose"),
        ],
    )
    def test_parts(self, constraint: Constraint, allowed: object, error: type, message: str) -> None:
        with pytest.raises(error, match=message):
            constraint.restricted_to(allowed)  # type: ignore[arg-type]

    def test_other_languages(self, constraint: Constraint) -> None:
        dates = trieauto.compile(trieauto.regex("a*b"), self.vocabulary)
        with pytest.raises(trieauto.UnsupportedError, match="for sets of values"):
            dates.updated(["a"])
        with pytest.raises(trieauto.UnsupportedError, match="for sets of values"):
            dates.restricted_to(["a"])
        with pytest.raises(trieauto.UnsupportedError, match="update the whole set"):
            constraint.restricted_to(["a"]).updated(["c"])

    def test_what_to_do_about_values_that_cannot_be_spelled(self, constraint: Constraint) -> None:
        with pytest.raises(trieauto.TrieautoError, match="unreachable is 'eror'; it must be one of 'error', 'report'"):
            constraint.updated(["d"], unreachable="eror")  # type: ignore[arg-type]

    def test_nothing_to_change(self, constraint: Constraint) -> None:
        assert constraint.updated() is constraint


def test_values_that_cannot_be_spelled() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", None], stop_token_ids=[2])
    constraint = trieauto.compile(trieauto.choices(["a", "x"]), vocabulary, unreachable="report")
    new = constraint.updated(["y", "b"], ["a"], unreachable="report")
    assert new.unreachable_values == ["x", "y"]
    assert new.matcher().value == "b"
    assert new.updated(remove=["x"]).unreachable_values == ["y"]
    assert new.restricted_to(["y", "b"]).unreachable_values == ["y"]
    with pytest.raises(trieauto.EmptyConstraintError, match="can spell none"):
        new.updated(remove=["b"])
    with pytest.raises(trieauto.EmptyConstraintError, match="can spell none"):
        new.restricted_to(["x"])
    assert as_bytes(constraint.matcher().value or "") == b"a"


class TestCanonicalTokens:
    """Sets in the tokens that the tokenizer itself writes."""

    def test_a_part_is_the_part_compiled_alone(self) -> None:
        names = tool_names(300)
        vocabulary = Vocabulary.from_tokenizer(real.smollm2())
        whole = trieauto.compile(
            trieauto.choices([*names, b"\xff", names[5]]), vocabulary, tokenization="canonical", unreachable="report"
        )
        mask = np.arange(302) % 3 == 0
        part = [name for name, is_in in zip(names, mask, strict=False) if is_in]
        alone = trieauto.compile(trieauto.choices(part), vocabulary, tokenization="canonical")
        for found in (whole.restricted_to(mask), whole.restricted_to(part), whole.restricted_to([*part, b"\xff"])):
            assert found.tokenization == "canonical"
            for budget in (None, alone.min_tokens, alone.min_tokens + 1):
                pairs = [(found.matcher(budget), alone.matcher(budget))]
                while pairs:
                    mine, theirs = pairs.pop()
                    allowed = theirs.allowed_token_ids().tolist()
                    assert mine.allowed_token_ids().tolist() == allowed
                    assert (mine.value, mine.is_complete) == (theirs.value, theirs.is_complete)
                    for token_id in allowed:
                        pairs.append((mine.fork(), theirs.fork()))
                        assert pairs[-1][0].accept_token(token_id)
                        assert pairs[-1][1].accept_token(token_id)
                        if theirs.is_accepting and token_id in vocabulary.stop_token_ids:
                            pairs.pop()
        assert whole.restricted_to([*part, b"\xff"]).unreachable_values == [b"\xff"]
        assert whole.restricted_to(part).unreachable_values == []

    def test_a_loaded_set_changes(self, tmp_path: Path) -> None:
        """Without its tokenizer it can only lose values."""
        vocabulary = Vocabulary.from_tokenizer(real.smollm2())
        plain = Vocabulary.from_tokens(
            vocabulary.tokens, stop_token_ids=vocabulary.stop_token_ids, size=vocabulary.size
        )
        names = tool_names(300)
        trieauto.compile(trieauto.choices(names[:200]), vocabulary, tokenization="canonical").save(tmp_path / "x")
        expected = trieauto.compile(trieauto.choices(names[50:]), vocabulary, tokenization="canonical")
        found = trieauto.load(tmp_path / "x", vocabulary).updated(names[100:], names[:50])
        assert list(found.values or ()) == names[50:]
        assert_same_language(found, expected, budgets=[None])
        fewer = trieauto.load(tmp_path / "x", plain).updated(remove=names[:50])
        assert list(fewer.values or ()) == names[50:200]
        with pytest.raises(trieauto.UnsupportedError, match="was made of tokens alone"):
            fewer.updated(add=names[:50])
        part = found.restricted_to(names[60:70]).updated(names[:5], names[60:61])
        assert list(part.values or ()) == [*names[61:70], *names[:5]]
        with pytest.raises(trieauto.TrieautoError, match="not in the set"):
            found.restricted_to(names[60:70]).updated(remove=names[70:71])

    def test_what_is_no_value_of_them(self) -> None:
        vocabulary = Vocabulary.from_tokenizer(real.smollm2())
        constraint = trieauto.compile(trieauto.choices(["a", "b"]), vocabulary, tokenization="canonical")
        with pytest.raises(trieauto.TrieautoError, match="'x' is not in the set"):
            constraint.restricted_to(["x"])
