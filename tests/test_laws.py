"""The laws of the design, for every way masks are made: against the reference, on generated sets and vocabularies."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto import constraint as constraint_module
from trieauto.constraint import Constraint
from trieauto.kernels.descriptor import WALKS_LEFT
from trieauto.reference.language import TooManyPathsError, complete_paths, unreachable_values
from trieauto.reference.matcher import ReferenceMatcher
from trieauto.reference.prefix_space import spellings

from .strategies import Problem, problems, small_problems, walks


def _vocabulary(problem: Problem) -> trieauto.Vocabulary:
    # Wider than the tokens: the ids beyond them, up to past a word of the bitmask, are never legal.
    return trieauto.Vocabulary.from_tokens(
        problem.tokens, stop_token_ids=problem.stop_token_ids, size=len(problem.tokens) + 40
    )


def _compile(problem: Problem, **options: object) -> Constraint:
    return trieauto.compile(
        trieauto.choices(problem.values),
        _vocabulary(problem),
        unreachable="report",
        prefix_space=problem.prefix_space,
        **options,  # type: ignore[arg-type]
    )


def _ready(problem: Problem, row_count: int) -> Constraint:
    """Every mask made and kept beforehand, as happens to those of many tokens: as lists, or as bitmap rows."""
    constraint = _compile(problem, mode="lazy")
    before = constraint_module.ROW_COUNT
    constraint_module.ROW_COUNT = row_count
    try:
        for state in range(constraint.num_states):
            constraint.make_ready(state)
    finally:
        constraint_module.ROW_COUNT = before
    return constraint


def _about_to_store(problem: Problem) -> Constraint:
    """Auto mode in which the second mask that is found has all of them stored."""
    constraint = _compile(problem)
    constraint._descriptor[WALKS_LEFT] = 1
    return constraint


WAYS: dict[str, Callable[[Problem], Constraint]] = {
    "eager walk": lambda problem: _compile(problem, mode="eager"),
    "eager walk, three threads": lambda problem: _compile(problem, mode="eager", threads=3),
    "Aho-Corasick": lambda problem: _compile(problem, mode="eager", method="aho_corasick"),
    "Aho-Corasick, three threads": lambda problem: _compile(problem, mode="eager", method="aho_corasick", threads=3),
    "lazy": lambda problem: _compile(problem, mode="lazy"),
    "auto": _about_to_store,
    "ready lists": lambda problem: _ready(problem, 1_000),
    "ready rows": lambda problem: _ready(problem, -1),
}

every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


def _reference(problem: Problem) -> ReferenceMatcher:
    return ReferenceMatcher(problem.values, problem.tokens, problem.stop_token_ids, problem.prefix_space)


def _is_spellable(problem: Problem) -> bool:
    language = list(spellings(problem.values, problem.prefix_space))
    return len(unreachable_values(language, problem.tokens)) < len(language)


def _with_budgets(
    constraint: Constraint, problem: Problem, data: st.DataObject, slack: int = 4
) -> tuple[trieauto.Matcher, ReferenceMatcher]:
    """Two matchers with the same budget: often the least there is, at times none."""
    budget = data.draw(st.one_of(st.none(), st.integers(0, slack).map(lambda more: constraint.min_tokens + more)))
    reference = _reference(problem)
    reference.set_budget(budget)
    return constraint.matcher(budget), reference


def _assert_same(matcher: trieauto.Matcher, reference: ReferenceMatcher) -> None:
    """Everything a matcher says of itself."""
    allowed = reference.allowed_token_ids()
    assert matcher.allowed_token_ids().tolist() == allowed
    size = matcher.constraint.vocabulary.size
    for bitmask in (
        trieauto.allocate_token_bitmask(2, size + 64),
        np.full((2, (size + 31) // 32), 0x5A5A5A5A, np.int32),
    ):
        neighbour = bitmask[0].copy()
        matcher.fill_next_token_bitmask(bitmask, 1)
        bits = np.unpackbits(bitmask[1].view(np.uint8), bitorder="little")
        assert np.flatnonzero(bits).tolist() == allowed
        assert (bitmask[0] == neighbour).all()
    assert matcher.is_accepting == reference.is_accepting
    assert matcher.is_complete == reference.is_complete
    assert matcher.is_terminated() == reference.is_terminated()
    assert matcher.value == reference.value
    assert matcher.remaining_tokens == reference.remaining_tokens
    assert matcher.min_tokens_to_finish == reference.min_tokens_to_finish
    without_budget = reference.fork()
    without_budget.set_budget(None)
    assert matcher.is_limited_by_budget == (without_budget.allowed_token_ids() != allowed)
    assert matcher.jump_forward_string() == reference.jump_forward_string()
    assert matcher.jump_forward_string(2) == reference.jump_forward_string(2)


@every_way
@given(problem=problems(prefix_space=None), walk=walks())
def test_masks_and_everything_else_equal_the_reference(
    way: Callable[[Problem], Constraint], problem: Problem, walk: list[int]
) -> None:
    """Laws 1, 2, 4 and 8, along a walk that ends in repeated stop tokens."""
    if not _is_spellable(problem):
        with pytest.raises(trieauto.EmptyConstraintError):
            way(problem)
        return
    matcher, reference = way(problem).matcher(), _reference(problem)
    _assert_same(matcher, reference)
    for number in walk:
        allowed = reference.allowed_token_ids()
        assert allowed, "a walk met an empty mask"
        for token_id in range(len(problem.tokens) + 40):
            if token_id not in allowed:
                assert not matcher.accept_token(token_id)
        token_id = allowed[number % len(allowed)]
        assert matcher.validate_tokens([token_id]) == 1
        assert matcher.accept_token(token_id)
        assert reference.accept_token(token_id)
        _assert_same(matcher, reference)


@every_way
@given(problem=problems(prefix_space=None), walk=walks(), more=st.integers(0, 4), data=st.data())
def test_every_walk_within_a_budget_ends_with_an_answer(
    way: Callable[[Problem], Constraint], problem: Problem, walk: list[int], more: int, data: st.DataObject
) -> None:
    """Law 6: the masks are the reference's, and every sequence of legal tokens is complete in time. A budget below the
    minimum is refused, and changes nothing."""
    if not _is_spellable(problem):
        return
    constraint, reference = way(problem), _reference(problem)
    fewest = reference.min_tokens_to_finish
    assert constraint.min_tokens == fewest
    if fewest > 0:
        with pytest.raises(trieauto.BudgetError) as error:
            constraint.matcher(max_tokens=fewest - 1)
        assert (error.value.needed, error.value.given) == (fewest, fewest - 1)
    matcher = constraint.matcher(max_tokens=fewest + more)
    reference.set_budget(fewest + more)
    for step in itertools.count():
        _assert_same(matcher, reference)
        if matcher.is_terminated() or (matcher.remaining_tokens == 0 and step >= len(walk)):
            break
        allowed = reference.allowed_token_ids()
        assert allowed, "a walk met an empty mask"
        if matcher.remaining_tokens == 0:
            assert matcher.is_complete
            assert set(allowed) == set(problem.stop_token_ids)
        for token_id in range(len(problem.tokens)):
            assert matcher.validate_tokens([token_id]) == (token_id in allowed)
        # An engine may learn of the budget late.
        if step < len(walk) and data.draw(st.integers(0, 9)) == 0:
            budget = data.draw(st.integers(matcher.min_tokens_to_finish, fewest + more + 2))
            matcher.set_budget(budget)
            reference.set_budget(budget)
            _assert_same(matcher, reference)
            allowed = reference.allowed_token_ids()
        token_id = allowed[(walk[step] if step < len(walk) else 0) % len(allowed)]
        assert matcher.accept_token(token_id)
        assert reference.accept_token(token_id)
    assert matcher.is_accepting


@every_way
@given(problem=small_problems(prefix_space=None))
def test_complete_token_paths_are_exactly_the_language(way: Callable[[Problem], Constraint], problem: Problem) -> None:
    """Law 3: the paths through the masks are all paths, and each ends as the value it spells."""
    if not _is_spellable(problem):
        return
    meaning = spellings(problem.values, problem.prefix_space)
    try:
        expected = complete_paths(list(meaning), problem.tokens, limit=3_000)
    except TooManyPathsError:
        return
    found: list[list[int]] = []
    open_paths: list[tuple[list[int], trieauto.Matcher]] = [([], way(problem).matcher())]
    while open_paths:
        following = []
        for ids, matcher in open_paths:
            for token_id in matcher.allowed_token_ids().tolist():
                fork = matcher.fork()
                assert fork.accept_token(token_id)
                if fork.is_terminated():
                    if token_id == problem.stop_token_ids[0]:
                        found.append(ids)
                        assert fork.value == meaning[b"".join(problem.tokens[i] or b"" for i in ids)]
                else:
                    following.append(([*ids, token_id], fork))
        open_paths = following
    assert sorted(found) == sorted(expected)


@given(problem=problems(prefix_space=None))
def test_values_that_cannot_be_spelled_are_named(problem: Problem) -> None:
    """Law 7."""
    meaning = spellings(problem.values, problem.prefix_space)
    spelled = {value for text, value in meaning.items() if not unreachable_values([text], problem.tokens)}
    missing = sorted(set(problem.values) - spelled)
    automaton, vocabulary = trieauto.choices(problem.values), _vocabulary(problem)
    if not spelled:
        with pytest.raises(trieauto.EmptyConstraintError):
            trieauto.compile(automaton, vocabulary, prefix_space=problem.prefix_space)
        return
    if missing:
        with pytest.raises(trieauto.UnreachableValueError) as error:
            trieauto.compile(automaton, vocabulary, prefix_space=problem.prefix_space)
        assert error.value.values == missing
        assert repr(missing[0]) in str(error.value)
    reported = trieauto.compile(automaton, vocabulary, prefix_space=problem.prefix_space, unreachable="report")
    assert reported.unreachable_values == missing


@every_way
@given(problem=problems(spellable=True, prefix_space=None), walk=walks(), data=st.data())
def test_time_travel(
    way: Callable[[Problem], Constraint], problem: Problem, walk: list[int], data: st.DataObject
) -> None:
    """Law 5: rollback, replay, fork, reset and rebuilding all come to the same, the budget included."""
    constraint = way(problem)
    matcher, reference = _with_budgets(constraint, problem, data)
    budget = matcher.remaining_tokens
    ids: list[int] = []
    for number in walk:
        allowed = reference.allowed_token_ids()
        ids.append(allowed[number % len(allowed)])
        assert matcher.accept_token(ids[-1])
        assert reference.accept_token(ids[-1])
    fork = matcher.fork()
    count = data.draw(st.integers(0, len(ids)))
    matcher.rollback(count)
    reference.rollback(count)
    _assert_same(matcher, reference)
    assert matcher.num_accepted == len(ids) - count
    rebuilt = constraint.matcher(budget)
    assert rebuilt.accept_tokens(ids[: len(ids) - count])
    _assert_same(rebuilt, reference)
    _assert_same(pickle.loads(pickle.dumps(rebuilt)), reference)
    for token_id in ids[len(ids) - count :]:
        assert matcher.accept_token(token_id)
        assert reference.accept_token(token_id)
    _assert_same(matcher, reference)
    _assert_same(fork, reference)
    matcher.reset()
    assert matcher.num_accepted == 0
    fresh = _reference(problem)
    fresh.set_budget(budget)
    _assert_same(matcher, fresh)
    _assert_same(fork, reference)  # untouched by what happened to the other
    with pytest.raises(trieauto.TrieautoError):
        matcher.rollback(1)


@every_way
@given(problem=problems(spellable=True), data=st.data())
def test_several_tokens_are_all_or_nothing(
    way: Callable[[Problem], Constraint], problem: Problem, data: st.DataObject
) -> None:
    matcher, reference = _with_budgets(way(problem), problem, data)
    ids = data.draw(st.lists(st.integers(0, len(problem.tokens) + 39), max_size=5))
    count = reference.validate_tokens(ids)
    assert matcher.validate_tokens(ids) == count
    assert matcher.num_accepted == 0
    assert matcher.accept_tokens(ids) == (count == len(ids))
    if count == len(ids):
        assert reference.accept_tokens(ids)
    _assert_same(matcher, reference)


@given(
    many=st.lists(
        st.tuples(problems(spellable=True), st.sampled_from(sorted(WAYS)), walks(3), st.integers(-1, 3)),
        min_size=1,
        max_size=6,
    )
)
def test_a_batch_of_different_constraints_equals_single_fills(many: list[tuple[Problem, str, list[int], int]]) -> None:
    """One call for all rows, each with its own constraint and budget; rows not named stay as they are; a tracked
    bitmask keeps up over several steps."""
    matchers = []
    for problem, name, _, more in many:
        constraint = WAYS[name](problem)
        matchers.append(constraint.matcher(None if more < 0 else constraint.min_tokens + more))
    words = max(matcher.constraint.num_words for matcher in matchers)
    rows = list(range(len(matchers), 0, -1))
    own = trieauto.TokenBitmask(len(matchers) + 1, 32 * words)
    for step in range(4):
        expected = np.full((len(matchers) + 1, words), 7, np.int32)
        for matcher, row in zip(matchers, rows, strict=True):
            matcher.fill_next_token_bitmask(expected, row)
        batch = np.full((len(matchers) + 1, words), 7, np.int32)
        trieauto.fill_next_token_bitmasks(matchers, batch, rows)
        assert (batch == expected).all()
        trieauto.fill_next_token_bitmasks(matchers, batch)
        assert (batch[:-1] == expected[1:][::-1]).all()
        trieauto.fill_next_token_bitmasks(matchers, own, rows)
        assert (own.array[1:] == expected[1:]).all()
        assert not own.array[0].any()
        for matcher, (_, _, walk, _) in zip(matchers, many, strict=True):
            allowed = matcher.allowed_token_ids().tolist()
            if step < len(walk):
                assert matcher.accept_token(allowed[walk[step] % len(allowed)])
            else:
                matcher.reset()
