"""Law 6 on automata of every kind, against the reachability paper's table; real regexes and sets; bad budgets."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto import constraint as constraint_module
from trieauto import edge_lists
from trieauto.demo_sets import tool_names
from trieauto.kernels.walk import UNREACHABLE
from trieauto.reference.reachability import TokenGraph, min_tokens, reachability_table, valid_tokens
from trieauto.reference.regex_dfa import RegexDfa

from .automata import Graph, from_dfa, graphs, graphs_and_tokens, quoted
from .strategies import walks
from .test_laws_real import mistral, qwen, smollm2, tekken

# Against the table


def _check_walk(constraint: trieauto.Constraint, graph: TokenGraph[int], walk: list[int], more: int) -> None:
    """Along a walk under a budget, and one without: the masks are R's, and the end is reached in time."""
    table = reachability_table(graph.delta, graph.goals, len(graph.delta) + 1)
    fewest = min_tokens(table, graph.start)
    assert fewest is not None
    stop_ids = list(constraint.vocabulary.stop_token_ids)
    assert constraint.min_tokens == fewest
    if fewest > 0:
        with pytest.raises(trieauto.BudgetError, match=f"budget is {fewest - 1}"):
            constraint.matcher(fewest - 1)
    for budget in (fewest + more, None):
        matcher, state = constraint.matcher(budget), graph.start
        for step, number in enumerate(walk):
            remaining = len(table) if budget is None else budget - step
            expected = valid_tokens(graph.delta, table, state, remaining)
            unlimited = valid_tokens(graph.delta, table, state, len(table))
            stops = stop_ids if state in graph.goals else []
            assert matcher.allowed_token_ids().tolist() == sorted(expected + stops)
            assert matcher.min_tokens_to_finish == min_tokens(table, state)
            assert matcher.is_limited_by_budget == (expected != unlimited)
            assert matcher.is_complete == (state in graph.goals and not expected)
            for token_id in range(constraint.vocabulary.size):
                assert matcher.validate_tokens([token_id]) == (token_id in expected + stops)
            if not expected:
                break
            token_id = expected[number % len(expected)]
            assert matcher.accept_token(token_id)
            state = graph.delta[state][token_id]
        if budget is not None and len(walk) >= budget:
            assert matcher.is_accepting
            assert matcher.remaining_tokens == max(0, budget - matcher.num_accepted)


def _vocabulary(tokens: Sequence[bytes | None]) -> trieauto.Vocabulary:
    return trieauto.Vocabulary.from_tokens(tokens, stop_token_ids=[len(tokens) - 1], size=len(tokens) + 3)


@pytest.mark.parametrize("row_count", [constraint_module.ROW_COUNT, -1], ids=["", "every mask a row"])
@given(problem=graphs_and_tokens(), walk=walks(), more=st.integers(0, 3), mode=st.sampled_from(["lazy", "eager"]))
def test_byte_automata(
    row_count: int, problem: tuple[Graph, list[bytes | None]], walk: list[int], more: int, mode: str
) -> None:
    graph, tokens = problem
    over_tokens = graph.over_tokens(tokens)
    table = reachability_table(over_tokens.delta, over_tokens.goals, graph.num_states + 1)

    def compiled() -> trieauto.Constraint:
        automaton = edge_lists.byte_automaton(graph.num_states, graph.triples, graph.start, graph.accepting)
        return trieauto.compile(automaton, _vocabulary(tokens), mode=mode)  # type: ignore[arg-type]

    if min_tokens(table, graph.start) is None:
        with pytest.raises(trieauto.EmptyConstraintError):
            compiled()
        return
    constraint = compiled()
    if row_count < 0:
        before = constraint_module.ROW_COUNT
        constraint_module.ROW_COUNT = row_count
        try:
            _make_everything_ready(constraint)
        finally:
            constraint_module.ROW_COUNT = before
    _check_walk(constraint, over_tokens, walk, more)


def _make_everything_ready(constraint: trieauto.Constraint) -> None:
    distances = constraint.distances()
    for state in np.flatnonzero(distances < UNREACHABLE).tolist():
        for remaining in range(1, len(distances) + 2):
            constraint.make_ready(state, remaining)


@given(graph=graphs(list(range(6))), walk=walks(), more=st.integers(0, 3), is_ready=st.booleans())
def test_token_automata(graph: Graph, walk: list[int], more: int, is_ready: bool) -> None:
    as_tokens = graph.as_tokens()
    table = reachability_table(as_tokens.delta, as_tokens.goals, graph.num_states + 1)

    def made() -> trieauto.TokenAutomaton:
        return trieauto.token_automaton(graph.num_states, graph.triples, graph.start, graph.accepting)

    if min_tokens(table, graph.start) is None:
        with pytest.raises(trieauto.EmptyConstraintError, match=f"state {graph.start}"):
            made()
        return
    # Special tokens may be edges, and what bytes a token has does not matter.
    constraint = trieauto.compile(made(), _vocabulary([b"a", b"a", None, b"bc", None, b"", None]))
    if is_ready:
        _make_everything_ready(constraint)
    _check_walk(constraint, as_tokens, walk, more)


# Real languages and vocabularies, and a model that always wants what leads furthest away


REGEXES = [
    r"[a-z]*",
    r"(ab|a)*c",
    r'\{("[a-z]{1,8}":"[^"]*"(,"[a-z]{1,8}":"[^"]*"){0,3})?\}',
    r"\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?)?",
    r'"[^"]{0,40}"',
    r"(very )*good",
    r"(0|[1-9][0-9]*)(\.[0-9]+)?",
    r"[ -~]{12,60}!",
]


def _sets() -> list[trieauto.Automaton]:
    return [
        trieauto.choices(tool_names(1_000)),
        trieauto.choices(["", "a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "日本語", "😀😀"]),
    ]


def _languages() -> list[trieauto.Automaton]:
    return [*(from_dfa(RegexDfa.from_pattern(pattern)) for pattern in REGEXES), quoted(300), quoted(200, 150), *_sets()]


def _furthest(matcher: trieauto.Matcher, allowed: np.ndarray, generator: random.Random) -> int:
    """A token that leads as far away from the end as any of 40; a stop token only if nothing else is legal."""
    sample = set(generator.sample(range(len(allowed)), min(40, len(allowed))))
    stop_ids = matcher.constraint.vocabulary.stop_token_ids
    found = (-1, stop_ids[0])
    for token_id in allowed[list(sample)].tolist():
        if token_id not in stop_ids:
            assert matcher.accept_token(token_id)
            found = max(found, (matcher.min_tokens_to_finish, token_id))
            matcher.rollback()
    return found[1]


@pytest.mark.parametrize("make_vocabulary", [qwen, smollm2, mistral, tekken], ids=lambda make: make.__name__)
def test_ten_thousand_adversarial_walks_are_complete_in_time(
    make_vocabulary: Callable[[], trieauto.Vocabulary],
) -> None:
    """2,500 walks in each of four vocabularies, over regexes, long dense strings and sets. Half of them are random,
    half always take the token that leads furthest away."""
    vocabulary = make_vocabulary()
    constraints = [trieauto.compile(language, vocabulary, unreachable="report") for language in _languages()]
    generator = random.Random(6)
    completed = 0
    for number in range(2_500):
        constraint = constraints[number % len(constraints)]
        budget = constraint.min_tokens + generator.choice([0, 0, 1, 2, 3, 5, 8])
        matcher = constraint.matcher(budget)
        while matcher.remaining_tokens and not matcher.is_terminated():
            allowed = matcher.allowed_token_ids()
            token_id = _furthest(matcher, allowed, generator) if number % 2 else int(generator.choice(allowed))
            assert matcher.accept_token(token_id)
            assert matcher.is_terminated() or matcher.min_tokens_to_finish <= (matcher.remaining_tokens or 0)
        assert matcher.is_accepting
        assert matcher.num_accepted <= budget
        completed += 1
    assert completed == 2_500


@pytest.mark.parametrize("make_vocabulary", [qwen, smollm2], ids=lambda make: make.__name__)
def test_a_large_budget_changes_nothing(make_vocabulary: Callable[[], trieauto.Vocabulary]) -> None:
    """And masks that were made ready before the first budget hold as well as those made after it."""
    vocabulary = make_vocabulary()
    generator = random.Random(7)
    for language in _languages():
        constraint = trieauto.compile(language, vocabulary, unreachable="report")
        matcher = constraint.matcher()
        for _ in range(6):
            before = matcher.allowed_token_ids()
            farthest = int(constraint.distances()[constraint.distances() < UNREACHABLE].max())
            with_budget = matcher.fork()
            with_budget.set_budget(farthest + 1)
            assert (with_budget.allowed_token_ids() == before).all()
            assert (matcher.allowed_token_ids() == before).all()
            assert not with_budget.is_limited_by_budget
            with_budget.set_budget(None)
            assert with_budget.remaining_tokens is None
            assert (with_budget.allowed_token_ids() == before).all()
            matcher.accept_token(int(generator.choice(before)))
            if matcher.is_terminated():
                break


def test_dense_masks_under_a_budget() -> None:
    """In a string of up to 300 characters nearly all tokens are legal: with r tokens left, those after which r - 1 are
    enough, found here by asking for each of them."""
    constraint = trieauto.compile(quoted(300), qwen())
    tokens = constraint.vocabulary.tokens
    assert len(constraint.matcher().allowed_token_ids()) > 140_000
    for prefix in ([], [b"a"] * 40, [b"a"] * 299):
        matcher = constraint.matcher()
        for text in prefix:
            assert matcher.accept_token(tokens.index(text))
        everything = matcher.allowed_token_ids().tolist()
        fewest_after = []
        for token_id in everything:
            assert matcher.accept_token(token_id)
            fewest_after.append(matcher.min_tokens_to_finish)
            matcher.rollback()
        for budget in range(matcher.min_tokens_to_finish, 5):
            matcher.set_budget(budget)
            expected = [i for i, fewest in zip(everything, fewest_after, strict=True) if fewest <= budget - 1]
            for _ in range(2):  # made, and then ready
                assert matcher.allowed_token_ids().tolist() == expected
            assert matcher.is_limited_by_budget == (len(expected) < len(everything))


def test_ready_masks_of_budgets_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constraint_module, "READY_LIMIT", 100_000)
    constraint = trieauto.compile(quoted(60, 40), qwen())
    generator = random.Random(8)
    for _ in range(40):
        matcher = constraint.matcher(constraint.min_tokens + generator.randrange(3))
        while matcher.remaining_tokens and not matcher.is_terminated():
            assert matcher.accept_token(int(generator.choice(matcher.allowed_token_ids())))
        assert matcher.is_accepting
        assert constraint.nbytes < constraint.automaton.nbytes + constraint.distances().nbytes + 110_000
    assert constraint.stats()["ready_masks_made"] > constraint.stats()["ready_masks"]


# What distances say


def test_a_set_of_a_million_values() -> None:
    values = [f"{number:07d}-{number * 7919 % 1000:03d}" for number in range(1_000_000)]
    constraint = trieauto.compile(trieauto.choices(values), qwen())
    assert constraint.min_tokens == 11  # this vocabulary has digits one by one
    assert constraint.enough_tokens == 11
    generator = random.Random(9)
    for _ in range(50):
        matcher = constraint.matcher(11)
        while not matcher.is_complete:
            assert matcher.accept_token(int(generator.choice(matcher.allowed_token_ids())))
        assert matcher.value in values[:: 1_000_000 - 1] or str(matcher.value)[7] == "-"
        assert matcher.num_accepted == 11
    with pytest.raises(trieauto.BudgetError, match="11 tokens are needed to finish, but the budget is 10"):
        constraint.matcher(10)


@pytest.mark.parametrize("space", ["none", "optional", "required"])
def test_enough_tokens_is_the_least_budget_that_loses_no_value(space: str) -> None:
    tokens: list[bytes | None] = [b"a", b"b", b"ab", b" ", b" a", b"c", None]
    vocabulary = trieauto.Vocabulary.from_tokens(tokens, stop_token_ids=[6])
    values = ["a", "abab", "bbb", "cab", "ca"]
    constraint = trieauto.compile(trieauto.choices(values), vocabulary, prefix_space=space)  # type: ignore[arg-type]
    enough = constraint.enough_tokens
    assert enough is not None

    def writable(budget: int) -> set[object]:
        found = set()
        waiting = [constraint.matcher(budget)] if budget >= constraint.min_tokens else []
        while waiting:
            matcher = waiting.pop()
            for token_id in matcher.allowed_token_ids().tolist():
                fork = matcher.fork()
                assert fork.accept_token(token_id)
                if fork.is_terminated() or fork.is_complete:
                    found.add(fork.value)
                if not fork.is_terminated():
                    waiting.append(fork)
        return found

    assert writable(enough) == set(values)
    for budget in range(enough + 2):
        assert constraint.num_values_within(budget) == len(writable(budget))
    assert writable(enough - 1) < set(values)
    empty = trieauto.compile(trieauto.choices([""]), vocabulary, prefix_space=space)  # type: ignore[arg-type]
    assert empty.enough_tokens == (1 if space == "required" else 0)
    assert trieauto.compile(quoted(3), _vocabulary([bytes([b]) for b in range(256)] + [None])).enough_tokens is None


def test_a_budget_settles_the_value() -> None:
    """Where nothing more can be written, the value is known without a stop token."""
    vocabulary = trieauto.Vocabulary.from_tokens([b"a", b"b", None], stop_token_ids=[2])
    constraint = trieauto.compile(trieauto.choices(["a", "ab", "abb"]), vocabulary)
    matcher = constraint.matcher(2)
    assert matcher.accept_token(0)
    assert (matcher.value, matcher.is_complete, matcher.remaining_tokens) == (None, False, 1)
    assert matcher.accept_token(1)
    assert (matcher.value, matcher.is_complete, matcher.remaining_tokens) == ("ab", True, 0)
    assert matcher.allowed_token_ids().tolist() == [2]
    assert matcher.is_limited_by_budget
    assert not matcher.accept_token(1)
    assert matcher.jump_forward_string() == b""
    assert matcher.accept_token(2)  # not needed, and not refused
    assert (matcher.value, matcher.remaining_tokens) == ("ab", 0)
    matcher.rollback()
    assert matcher.remaining_tokens == 0
    matcher.rollback()
    assert (matcher.value, matcher.remaining_tokens) == (None, 1)
    assert matcher.accept_token(2)  # the stop token costs one
    assert matcher.remaining_tokens == 0
    assert "0 left" in repr(matcher)


def test_distances_cannot_be_written_to() -> None:
    distances = _two_tokens_at_least().distances()
    assert distances.tolist() == [2, 1, 0]
    with pytest.raises(ValueError, match="read-only"):
        distances[0] = 1


def test_what_a_budget_does_after_it_is_set_anew() -> None:
    """It is counted from then on; going back gives tokens back, and does not undo it."""
    matcher = _two_tokens_at_least().matcher(9)
    assert matcher.accept_token(0)
    matcher.set_budget(5)
    matcher.reset()
    assert matcher.remaining_tokens == 6
    matcher.set_budget(None)
    assert matcher.accept_token(0)
    matcher.rollback()
    assert matcher.remaining_tokens is None


# Bad input


def _two_tokens_at_least() -> trieauto.Constraint:
    return trieauto.compile(trieauto.choices(["ab"]), _vocabulary([b"a", b"b", None]))


@pytest.mark.parametrize("budget", [-1, -(2**70), 1.0, 1.5, "3", True, np.bool_(True), [2], b"2", float("inf")])
def test_bad_budgets(budget: object) -> None:
    constraint = _two_tokens_at_least()
    with pytest.raises(trieauto.TrieautoError, match="budget") as error:
        constraint.matcher(budget)  # type: ignore[arg-type]
    assert not isinstance(error.value, trieauto.BudgetError)
    matcher = constraint.matcher(5)
    with pytest.raises(trieauto.TrieautoError, match="budget"):
        matcher.set_budget(budget)  # type: ignore[arg-type]
    assert matcher.remaining_tokens == 5


def test_impossible_budgets_change_nothing() -> None:
    constraint = _two_tokens_at_least()
    with pytest.raises(trieauto.BudgetError, match="2 tokens are needed to finish, but the budget is 0"):
        constraint.matcher(0)
    matcher = constraint.matcher(2)
    assert matcher.accept_token(0)
    with pytest.raises(trieauto.BudgetError, match="1 token is needed to finish, but the budget is 0") as error:
        matcher.set_budget(0)
    assert (error.value.needed, error.value.given) == (1, 0)
    assert isinstance(error.value, trieauto.TrieautoError)
    assert matcher.remaining_tokens == 1
    assert matcher.allowed_token_ids().tolist() == [1]


def test_a_budget_of_nothing_is_enough_for_the_empty_answer() -> None:
    constraint = trieauto.compile(trieauto.choices(["", "ab"]), _vocabulary([b"a", b"b", None]))
    matcher = constraint.matcher(0)
    assert matcher.is_complete
    assert matcher.value == ""
    assert matcher.allowed_token_ids().tolist() == [2]


@pytest.mark.parametrize("budget", [np.int64(7), 10**9, sys.maxsize, 2**62, 10**30])
def test_large_budgets(budget: int) -> None:
    matcher = _two_tokens_at_least().matcher(budget)
    assert matcher.remaining_tokens == (budget if budget < 2**61 else None)
    assert matcher.accept_tokens([0, 1, 2])
