"""Constraints in files: loaded ones are what was saved, and nothing else is ever loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto import Constraint, SavedConstraintError, Vocabulary
from trieauto.demo_sets import tool_names
from trieauto.saved_parts import put_together, taken_apart

from . import tokenizers_for_tests as real
from .same_language import assert_same_language
from .strategies import Problem, problems
from .test_laws_real import qwen

VOCABULARY = Vocabulary.from_tokens(
    [b"a", b"b", b"ab", b"\xff", b"\xc3\xa9", b"\xc3", None], stop_token_ids=[6], size=9
)


def _again(constraint: Constraint, path: Path) -> Constraint:
    constraint.save(path)
    return trieauto.load(str(path), constraint.vocabulary)


@given(
    problem=problems(prefix_space=None, max_values=8),
    mode=st.sampled_from(["auto", "lazy", "eager"]),
    knows_distances=st.booleans(),
    data=st.data(),
)
def test_sets(
    problem: Problem, mode: str, knows_distances: bool, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    vocabulary = Vocabulary.from_tokens(problem.tokens, stop_token_ids=problem.stop_token_ids)
    try:
        constraint = trieauto.compile(
            trieauto.choices(problem.values),
            vocabulary,
            unreachable="report",
            prefix_space=problem.prefix_space,
            mode=mode,  # type: ignore[arg-type]
        )
        if data.draw(st.booleans()):
            constraint = constraint.restricted_to(data.draw(st.lists(st.sampled_from(problem.values), min_size=1)))
    except trieauto.EmptyConstraintError:
        return
    if knows_distances:
        constraint.distances()
    path = tmp_path_factory.mktemp("saved") / "constraint"
    loaded = _again(constraint, path)
    assert (loaded.mode, loaded.prefix_space) == (constraint.mode, constraint.prefix_space)
    assert loaded.unreachable_values == constraint.unreachable_values
    assert loaded.nbytes == constraint.nbytes
    assert_same_language(loaded, constraint)
    assert loaded.enough_tokens == constraint.enough_tokens
    assert_same_language(_again(loaded, path), constraint)  # what was loaded can be saved over its own file
    assert_same_language(loaded, constraint)


def test_str_and_bytes(tmp_path: Path) -> None:
    values: list[str | bytes] = ["é", b"\xff", "", b"ab"]
    loaded = _again(trieauto.compile(trieauto.choices(values), VOCABULARY), tmp_path / "x")
    assert loaded.automaton.values is not None
    assert list(loaded.automaton.values.given) == values
    assert loaded.automaton.values.given[-1:] == [b"ab"]
    new = loaded.updated(["b"], [b"\xff"])
    assert new.automaton.values is not None
    assert list(new.automaton.values.given) == ["é", "", b"ab", "b"]


@pytest.mark.parametrize("pattern", ["(a|b)*ab", "a{2,40}b?", "é+", ""])
def test_regexes(pattern: str, tmp_path: Path) -> None:
    constraint = trieauto.compile(trieauto.regex(pattern), VOCABULARY)
    loaded = _again(constraint, tmp_path / "x")
    assert_same_language(loaded, constraint, budgets=[5] if pattern != "" else [None, 0, 3])


def test_token_automata(tmp_path: Path) -> None:
    automaton = trieauto.token_automaton(4, [(0, 3, 1), (1, 4, 2), (1, 5, 0), (0, 2, 3)], 0, [2])
    constraint = trieauto.compile(automaton, VOCABULARY)
    loaded = _again(constraint, tmp_path / "x")
    assert_same_language(loaded, constraint, budgets=[2, 4, 6])
    assert loaded.stats()["dead_ends"] == constraint.stats()["dead_ends"] == 1


def test_canonical_tokens(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_tokenizer(real.smollm2())
    constraint = trieauto.compile(
        trieauto.choices(["get_time", "get_weather", b"\xff"]),
        vocabulary,
        unreachable="report",
        tokenization="canonical",
        left_context="Tool:\n",
    )
    loaded = _again(constraint, tmp_path / "x")
    assert (loaded.tokenization, loaded.left_context) == ("canonical", "Tool:\n")
    assert loaded.unreachable_values == [b"\xff"]
    matcher, expected = loaded.matcher(), constraint.matcher()
    while expected.value is None:
        allowed = expected.allowed_token_ids().tolist()
        assert matcher.allowed_token_ids().tolist() == allowed
        assert matcher.accept_token(allowed[-1])
        assert expected.accept_token(allowed[-1])
    assert matcher.value == expected.value


def test_another_process_maps_it(tmp_path: Path) -> None:
    names = tool_names(20_000)
    constraint = trieauto.compile(trieauto.choices(names), qwen())
    constraint.distances()
    constraint.save(tmp_path / "tools")
    program = (
        "import sys, trieauto\n"
        "tokens = [bytes([b]) for b in range(256)]\n"
        "vocabulary = trieauto.Vocabulary.from_tokens([*tokens, None], stop_token_ids=[256])\n"
        "trieauto.compile(trieauto.choices(sys.argv[2:]), vocabulary).save(sys.argv[1] + '2')\n"
        "print(trieauto.load(sys.argv[1] + '2', vocabulary).matcher().jump_forward_string().decode())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "tools", "one", "once"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout == "on\n"
    tokens = [bytes([b]) for b in range(256)]
    vocabulary = Vocabulary.from_tokens([*tokens, None], stop_token_ids=[256])
    assert trieauto.load(tmp_path / "tools2", vocabulary).min_tokens == 3
    assert trieauto.load(tmp_path / "tools", qwen()).min_tokens == constraint.min_tokens


class TestWhatIsNoSavedConstraint:
    @pytest.fixture
    def constraint(self) -> Constraint:
        constraint = trieauto.compile(trieauto.choices(["a", "ab", "é", b"\xff"]), VOCABULARY, mode="eager")
        constraint.distances()
        return constraint

    def test_every_byte_is_checked(self, constraint: Constraint, tmp_path: Path) -> None:
        path = tmp_path / "x"
        constraint.save(path)
        contents = path.read_bytes()
        for place in range(len(contents)):
            damaged = bytearray(contents)
            damaged[place] ^= 1 << place % 8
            path.write_bytes(damaged)
            with pytest.raises(SavedConstraintError):
                trieauto.load(path, VOCABULARY)

    def test_cut_off_anywhere(self, constraint: Constraint, tmp_path: Path) -> None:
        path = tmp_path / "x"
        constraint.save(path)
        contents = path.read_bytes()
        for length in range(0, len(contents), 13):
            path.write_bytes(contents[:length])
            with pytest.raises(SavedConstraintError, match=str(path)):
                trieauto.load(path, VOCABULARY)

    def test_something_behind_it(self, constraint: Constraint, tmp_path: Path) -> None:
        path = tmp_path / "x"
        constraint.save(path)
        path.write_bytes(path.read_bytes() + bytes(64))
        with pytest.raises(SavedConstraintError, match="something stands behind"):
            trieauto.load(path, VOCABULARY)

    def test_numbers_that_lead_outside(self, constraint: Constraint) -> None:
        """Even with right checksums: whoever made such a file."""
        arrays, facts = taken_apart(constraint)
        put_together(arrays, facts, VOCABULARY, 0.0)
        for name, array in arrays.items():
            if name in ("labels", "accepting", "distances", "values, data", "values, are bytes") or len(array) == 0:
                continue
            for number in (-1, 2**30):
                wrong = array.copy()
                wrong[len(array) // 2] = number
                with pytest.raises(ValueError, match="would lead outside"):
                    put_together(arrays | {name: wrong}, facts, VOCABULARY, 0.0)
        for name, array in arrays.items():
            if name not in ("values, data", "values, are bytes", "mask tokens") and len(array) > 0:
                with pytest.raises(ValueError, match="would lead outside"):
                    put_together(arrays | {name: np.repeat(array, 2)}, facts, VOCABULARY, 0.0)
        for start in (-1, constraint.num_states, None, 0.0, True):
            with pytest.raises(ValueError, match="would lead outside"):
                put_together(arrays, facts | {"start": start}, VOCABULARY, 0.0)

    @pytest.mark.parametrize(
        ("contents", "message"),
        [
            (b"", "is empty"),
            (b"\x80\x04.", "no saved constraint"),
            (b"trieauto constraint 2 9 abc\n", "version '2' of the format; this trieauto reads 1"),
            (b"trieauto constraint 1\n", "first line is not whole"),
            (b"trieauto constraint 1 x y\n", "first line is not whole"),
            (b"trieauto constraint 1 9 y\n" + bytes(500), "damaged"),
        ],
    )
    def test_other_files(self, contents: bytes, message: str, tmp_path: Path) -> None:
        path = tmp_path / "other"
        path.write_bytes(contents)
        with pytest.raises(SavedConstraintError, match=message):
            trieauto.load(path, VOCABULARY)

    def test_another_vocabulary(self, constraint: Constraint, tmp_path: Path) -> None:
        constraint.save(tmp_path / "x")
        other = Vocabulary.from_tokens([b"a", None], stop_token_ids=[1])
        with pytest.raises(SavedConstraintError, match="made for another vocabulary"):
            trieauto.load(tmp_path / "x", other)

    def test_paths(self, constraint: Constraint, tmp_path: Path) -> None:
        with pytest.raises(SavedConstraintError, match="cannot be read: No such file"):
            trieauto.load(tmp_path / "none", VOCABULARY)
        with pytest.raises(SavedConstraintError, match="cannot be read: Is a directory"):
            trieauto.load(tmp_path, VOCABULARY)
        with pytest.raises(SavedConstraintError, match="cannot be written: No such file"):
            constraint.save(tmp_path / "none" / "x")
        with pytest.raises(SavedConstraintError, match="cannot be written"):
            constraint.save(tmp_path)
        for path in (None, 7, "a\0b", b"x", "", "\ud800"):
            with pytest.raises(trieauto.TrieautoError, match="names a file"):
                constraint.save(path)  # type: ignore[arg-type]
            with pytest.raises(trieauto.TrieautoError, match="names a file"):
                trieauto.load(path, VOCABULARY)  # type: ignore[arg-type]
        with pytest.raises(trieauto.TrieautoError, match="load takes the vocabulary"):
            trieauto.load(tmp_path, None)  # type: ignore[arg-type]
        assert os.listdir(tmp_path) == []
