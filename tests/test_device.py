"""Masks on the device: what tensors say about every state is what matchers say, and the host is never waited for."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import trieauto
from trieauto.demo_sets import tool_names
from trieauto.errors import TrieautoError, UnsupportedError, VocabularyError
from trieauto.integrations import device
from trieauto.integrations.device import NO_BUDGET, OUTSIDE, TERMINATED, UNCONSTRAINED, DeviceConstraints
from trieauto.transitions import token_transitions

from .automata import graphs, graphs_and_tokens, quoted
from .never_waits import NeverWaits
from .strategies import Problem, problems, walks

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
LETTERS: list[bytes | None] = [b"a", b"b", b"c", b"ab", b"bc", b"ab", b"abc", None, b"", None]
STOPS = [7, 9]


def compile_problem(problem: Problem) -> trieauto.Constraint:
    vocabulary = trieauto.Vocabulary.from_tokens(
        problem.tokens, stop_token_ids=problem.stop_token_ids, size=len(problem.tokens) + 3
    )
    return trieauto.compile(
        trieauto.choices(problem.values), vocabulary, prefix_space=problem.prefix_space, unreachable="report"
    )


def letters(*values: str) -> trieauto.Constraint:
    vocabulary = trieauto.Vocabulary.from_tokens(LETTERS, stop_token_ids=STOPS, size=12)
    return trieauto.compile(trieauto.choices(values), vocabulary)


def ints(numbers: Sequence[int], dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype)


def legal(
    tables: DeviceConstraints, states: Sequence[int], remaining: Sequence[int] | None = None, dtype: Any = torch.float32
) -> list[list[int]]:
    """The ids that keep their logits, which are wider than the vocabulary, in each row."""
    before = torch.randn(len(states), tables.vocabulary.size + 5).to(dtype)
    logits = before.clone()
    left = None if remaining is None else ints(remaining)
    assert tables.apply_(logits, ints(states), left) is logits
    is_kept = logits != -torch.inf
    assert torch.equal(logits[is_kept], before[is_kept])
    return [row.nonzero().flatten().tolist() for row in is_kept]


def every_place(constraint: trieauto.Constraint, limit: int = 60) -> Iterator[list[int]]:
    """Sequences of legal tokens, the shortest first, one to each state."""
    seen = {constraint.automaton.start}
    waiting: list[list[int]] = [[]]
    stop_ids = set(constraint.vocabulary.stop_token_ids)
    for path in waiting:
        yield path
        matcher = constraint.matcher()
        assert matcher.accept_tokens(path)
        for token_id in matcher.allowed_token_ids().tolist():
            if token_id in stop_ids:
                continue
            assert matcher.accept_token(token_id)
            state = state_of(matcher)
            if state not in seen and len(waiting) < limit:
                seen.add(state)
                waiting.append([*path, token_id])
            matcher.rollback()


def state_of(matcher: trieauto.Matcher) -> int:
    from trieauto.kernels.descriptor import get_state

    return int(get_state(matcher._record))


def agree(constraint: trieauto.Constraint) -> None:
    """Masks and moves of every state, under every budget that matters, are those of the matcher."""
    vocabulary = constraint.vocabulary
    tables = DeviceConstraints([constraint])
    start = tables.add(constraint)
    every_id = range(-2, vocabulary.size + 2)
    for path in every_place(constraint):
        state = start
        for token_id in path:
            state = int(tables.advance(ints([state]), ints([token_id])))
        matcher = constraint.matcher()
        assert matcher.accept_tokens(path)
        budgets = [None, *range(matcher.min_tokens_to_finish, matcher.min_tokens_to_finish + 4)]
        left = [NO_BUDGET if budget is None else budget for budget in budgets]
        masks = legal(tables, [state] * len(budgets), left)
        allowed = matcher.allowed_token_ids().tolist()
        assert legal(tables, [state]) == [allowed]
        for budget, mask in zip(budgets, masks, strict=True):
            matcher.set_budget(budget)
            assert mask == matcher.allowed_token_ids().tolist(), (path, budget)
            remaining = None if budget is None else ints([budget] * len(every_id))
            after = tables.advance(ints([state] * len(every_id)), ints(list(every_id)), remaining).tolist()
            for token_id, state_after in zip(every_id, after, strict=True):
                was_accepted = 0 <= token_id < vocabulary.size and matcher.accept_token(token_id)
                assert (state_after != OUTSIDE) == was_accepted
                assert (state_after == TERMINATED) == (was_accepted and matcher.is_terminated())
                if was_accepted:
                    matcher.rollback()
        # Where each token leads: the masks there are those of the matcher, too.
        matcher.set_budget(None)
        masks = legal(tables, tables.advance(ints([state] * len(allowed)), ints(allowed)).tolist())
        for token_id, mask in zip(allowed, masks, strict=True):
            assert matcher.accept_token(token_id)
            assert mask == matcher.allowed_token_ids().tolist()
            matcher.rollback()


@settings(max_examples=60)
@given(problems(prefix_space=None, spellable=True))
def test_sets_agree_with_matchers(problem: Problem) -> None:
    agree(compile_problem(problem))


@settings(max_examples=40)
@given(problems(byte_complete=False))
def test_sets_that_a_vocabulary_cannot_spell_whole(problem: Problem) -> None:
    try:
        constraint = compile_problem(problem)
    except trieauto.EmptyConstraintError:
        return
    agree(constraint)


@settings(max_examples=60)
@given(graphs_and_tokens())
def test_languages_agree_with_matchers(given_: Any) -> None:
    from trieauto.edge_lists import byte_automaton

    graph, tokens = given_
    vocabulary = trieauto.Vocabulary.from_tokens(tokens, stop_token_ids=[len(tokens) - 1])
    try:
        automaton = byte_automaton(graph.num_states, graph.triples, graph.start, graph.accepting)
        constraint = trieauto.compile(automaton, vocabulary)
    except (trieauto.EmptyConstraintError, trieauto.UnreachableValueError):
        return
    agree(constraint)


@settings(max_examples=60)
@given(graphs(list(range(6)), max_edges=20))
def test_automata_over_tokens_agree_with_matchers(graph: Any) -> None:
    vocabulary = trieauto.Vocabulary.from_tokens([None] * 8, stop_token_ids=[6, 7])
    try:
        automaton = trieauto.token_automaton(graph.num_states, graph.triples, graph.start, graph.accepting)
    except trieauto.EmptyConstraintError:
        return
    agree(trieauto.compile(automaton, vocabulary))


@settings(max_examples=30)
@given(problems(spellable=True), st.integers(1, 5))
def test_wide_states_agree_with_matchers(problem: Problem, wide: int) -> None:
    """States with a row of their own, among others; for this, rows are called wide that are not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "WIDE", wide)
        agree(compile_problem(problem))


@settings(max_examples=40)
@given(st.lists(problems(spellable=True), min_size=1, max_size=3), st.data())
def test_batches_of_several_constraints(drawn: list[Problem], data: st.DataObject) -> None:
    """Rows with constraints of their own and rows without, each with its own budget, along walks past the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "WIDE", data.draw(st.sampled_from([1, device.WIDE])))
        follow_a_batch(drawn, data)


def follow_a_batch(drawn: list[Problem], data: st.DataObject) -> None:
    tokens = [token for problem in drawn for token in problem.tokens] + [None]
    vocabulary = trieauto.Vocabulary.from_tokens(tokens, stop_token_ids=[len(tokens) - 1])
    constraints = [trieauto.compile(trieauto.choices(problem.values), vocabulary) for problem in drawn]
    tables = DeviceConstraints(constraints[:1])
    rows: list[trieauto.Constraint | None] = data.draw(
        st.lists(st.sampled_from([*constraints, None]), min_size=1, max_size=6)
    )
    states = tables.start_states(rows)
    budgets = [
        None if row is None else data.draw(st.sampled_from([None, row.min_tokens, row.min_tokens + 2])) for row in rows
    ]
    matchers = [None if row is None else row.matcher(budget) for row, budget in zip(rows, budgets, strict=True)]
    remaining = ints([NO_BUDGET if budget is None else budget for budget in budgets], torch.int32)
    dtype = data.draw(st.sampled_from([torch.int64, torch.int32]))
    states = states.to(dtype)
    for number in data.draw(walks(6)):
        masks = legal(tables, states.tolist(), remaining.tolist(), data.draw(st.sampled_from(DTYPES)))
        chosen = []
        for mask, matcher in zip(masks, matchers, strict=True):
            if matcher is None:
                assert mask == list(range(vocabulary.size + 5))
            else:
                assert mask == matcher.allowed_token_ids().tolist()
            chosen.append(mask[number % len(mask)])
            assert matcher is None or matcher.accept_token(chosen[-1])
        states = tables.advance(states, ints(chosen, torch.int32), remaining)
        remaining -= 1
        assert states.dtype == dtype
    for matcher, state in zip(matchers, states.tolist(), strict=True):
        assert (state == UNCONSTRAINED) == (matcher is None)
        assert (state == TERMINATED) == (matcher is not None and matcher.is_terminated())


def test_special_states() -> None:
    constraint = letters("a", "abc")
    tables = DeviceConstraints([constraint])
    start = tables.add(constraint)
    states = ints([start, start, OUTSIDE, TERMINATED, TERMINATED, UNCONSTRAINED, start, start])
    after = tables.advance(states, ints([2, 0, 0, 7, 0, 10**15, -1, 12])).tolist()
    inside = after[1]
    assert inside > TERMINATED
    assert after == [OUTSIDE, inside, OUTSIDE, TERMINATED, OUTSIDE, UNCONSTRAINED, OUTSIDE, OUTSIDE]
    # What would be another state's transition, if ids of any size were looked up.
    assert tables.advance(ints([start, inside]), ints([12 * (inside - start) + 1, -12])).tolist() == [OUTSIDE] * 2
    assert tables.advance(ints([OUTSIDE]), ints([7])).tolist() == [OUTSIDE]
    assert tables.advance(ints([inside]), ints([9])).tolist() == [TERMINATED]
    assert legal(tables, [OUTSIDE, TERMINATED, inside], [0, -3, 0]) == [STOPS] * 3
    assert legal(tables, [OUTSIDE, TERMINATED, inside]) == [STOPS, STOPS, [1, 4, *STOPS]]
    # One token is left, which "abc" takes as a whole, but "ab" does not finish.
    left, done = tables.advance(ints([start, start]), ints([3, 6]), ints([1, 1])).tolist()
    assert left == OUTSIDE
    assert legal(tables, [done]) == [STOPS]


def test_an_answer_is_read_on_the_host() -> None:
    constraint = letters("a", "abc")
    tables = DeviceConstraints([constraint])
    assert tables.matcher(constraint, [0, 4, 9, 9, 0]).value == "abc"
    assert tables.matcher(constraint, [0, 9]).value == "a"
    assert tables.matcher(constraint, [0, 1, 0], max_tokens=3).is_complete is False


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float64])
def test_logits_of_every_kind(dtype: torch.dtype) -> None:
    """What is legal stays as it is, infinities and NaN included; slices of larger tensors are masked in place."""
    constraint = letters("a", "abc")
    tables = DeviceConstraints([constraint])
    start = tables.add(constraint)
    whole = torch.zeros(6, 40, dtype=dtype)
    whole[:, 20] = torch.inf
    whole[:, 23] = torch.nan
    before = whole.clone()
    tables.apply_(whole[1::2, 20:35], ints([start, UNCONSTRAINED, OUTSIDE]))
    changed = before.clone()
    changed[1, [*range(21, 23), 24, *range(27, 35)]] = -torch.inf
    changed[5, [*range(20, 27), 28, *range(30, 35)]] = -torch.inf
    assert torch.equal(whole.nan_to_num(99), changed.nan_to_num(99))


def test_a_batch_of_no_rows() -> None:
    tables = DeviceConstraints([letters("a")])
    assert tables.advance(ints([]), ints([]), ints([])).tolist() == []
    assert tables.apply_(torch.zeros(0, 12), ints([])).shape == (0, 12)


def test_adding_keeps_what_was_there() -> None:
    """Sets of growing size, in use all along; the generation says when tensors moved or became wider."""
    vocabulary = trieauto.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], stop_token_ids=[256])
    tables = DeviceConstraints(vocabulary=vocabulary)
    assert tables.num_states == 3
    generator = random.Random(1)
    known: list[tuple[trieauto.Constraint, int]] = []
    moved = 0
    for count in (1, 2, 40, 3, 200, 1, 1, 1, 1, 1):
        values = ["".join(generator.choices("abcdefgh", k=generator.randint(1, 6))) for _ in range(count)]
        constraint = trieauto.compile(trieauto.choices(values), vocabulary)
        before = tables.generation
        pointers = [each.tensor.data_ptr() for each in tables._growing], tables.width
        start = tables.add(constraint)
        is_same = pointers == ([each.tensor.data_ptr() for each in tables._growing], tables.width)
        assert is_same == (tables.generation == before)
        moved += not is_same
        assert tables.add(constraint) == start
        known.append((constraint, start))
        masks = legal(tables, [start for _, start in known])
        assert masks == [constraint.matcher().allowed_token_ids().tolist() for constraint, _ in known]
    assert moved < 8
    assert tables.nbytes <= 18 * (tables.num_entries + 1) + 24 * (tables.num_states + 2) + 2 * 2 * 257 + 8 * 300


def test_dense_states() -> None:
    """A string of any length has few states, each with nearly every token: exact as wide rows. A long one has too many
    transitions, and is refused by name."""
    generator = random.Random(2)
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    tokens += ["".join(generator.choices("abcdefghij", k=generator.randint(2, 6))).encode() for _ in range(6_000)]
    vocabulary = trieauto.Vocabulary.from_tokens([*tokens, None], stop_token_ids=[len(tokens)])
    any_text = trieauto.compile(trieauto.regex('[^"]*"'), vocabulary)
    tables = DeviceConstraints([any_text])
    assert tables.width < device.WIDE < tables.num_entries
    start = tables.add(any_text)
    assert legal(tables, [start]) == [any_text.matcher().allowed_token_ids().tolist()]
    assert legal(tables, [start], [1]) == [[ord('"')]]
    inside = tables.advance(ints([start]), ints([300])).tolist()
    assert legal(tables, inside) == [any_text.matcher().allowed_token_ids().tolist()]

    long_text = trieauto.compile(quoted(100), vocabulary)
    before = tables.num_states, tables.num_entries
    small = DeviceConstraints([any_text], max_entries=100_000)
    with pytest.raises(UnsupportedError, match=r"make more than \d\d,\d\d\d transitions .*too many to store"):
        small.add(long_text)
    assert before == (small.num_states, small.num_entries)
    assert legal(small, [start]) == legal(tables, [start])


def test_the_number_of_transitions_decides() -> None:
    constraint = letters("a", "abc")
    needed = token_transitions(constraint)
    assert needed.num_states == 4
    count = int(needed.offsets[-1])
    assert token_transitions(constraint, count).num_states == 4
    for limit in range(count):
        with pytest.raises(UnsupportedError, match=f"more than {limit} transitions"):
            token_transitions(constraint, limit)


def test_long_answers_after_wide_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "WIDE", 1)
    constraint = letters("a" * 40_000, "b")
    with pytest.raises(UnsupportedError, match="39,999 more"):
        DeviceConstraints([constraint])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: DeviceConstraints(), TrieautoError, "no constraint was given"),
        (lambda: DeviceConstraints(letters("a")), TrieautoError, "expected a list of constraints"),  # type: ignore[arg-type]
        (lambda: DeviceConstraints(["a"]), TrieautoError, "expected a Constraint, .* not 'a'"),  # type: ignore[list-item]
        (lambda: DeviceConstraints(vocabulary="a"), TrieautoError, "expected a Vocabulary, not 'a'"),  # type: ignore[arg-type]
        (lambda: DeviceConstraints([letters("a")], max_entries=-1), TrieautoError, "max_entries must be"),
        (lambda: token_transitions("a"), TrieautoError, "expected a Constraint"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_bad_tensors() -> None:
    constraint = letters("a")
    tables = DeviceConstraints([constraint])
    one, logits = ints([3]), torch.zeros(1, 12)
    for call, message in (
        (lambda: tables.advance([3], one), r"states must be a tensor of int64 or int32, .* not \[3\]"),  # type: ignore[arg-type]
        (lambda: tables.advance(one, torch.zeros(1)), r"token_ids must be .* not torch.float32 \[1\]"),
        (lambda: tables.advance(one, one[None]), r"token_ids must be .* not torch.int64 \[1, 1\]"),
        (lambda: tables.advance(one, ints([1, 2])), "2 token_ids for 1 states"),
        (lambda: tables.advance(one, one, ints([1, 2])), "2 remaining_tokens for 1 states"),
        (lambda: tables.advance(one, one.to("meta")), "token_ids are on meta, but the constraints on cpu"),
        (lambda: tables.apply_(logits[0], one), "rows × ids"),
        (lambda: tables.apply_(logits.int(), one), "rows × ids"),
        (lambda: tables.apply_(logits, ints([3, 3])), "1 rows of logits for 2 states"),
        (lambda: tables.apply_(logits.to("meta"), one), "logits are on meta"),
        (lambda: tables.apply_(logits, one, 3), "remaining_tokens must be"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TrieautoError, match=message):
            call()
    with pytest.raises(VocabularyError, match="11 logits, fewer than the 12 ids"):
        tables.apply_(logits[:, :11], one)
    other = trieauto.Vocabulary.from_tokens([b"a", None], stop_token_ids=[1])
    with pytest.raises(VocabularyError, match="the same vocabulary"):
        tables.add(trieauto.compile(trieauto.choices(["a"]), other))
    assert tables.num_states == 5


@pytest.mark.parametrize("wide", [1, 1024])
@pytest.mark.parametrize("where", ["cpu", "meta"])
def test_the_host_never_waits(where: str, wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations are as many for any batch and state, and none has a result that the host needs to see: on the meta
    device there are no numbers at all to look at."""
    monkeypatch.setattr(device, "WIDE", wide)
    constraint = letters("a", "abc", "b")
    tables = DeviceConstraints([constraint], device=where)
    assert tables.device.type == where
    start = tables.add(constraint)
    calls = set()
    for count in (1, 7):
        states = torch.full((count,), start, device=where)
        token_ids, remaining = torch.zeros_like(states), torch.full_like(states, 3, dtype=torch.int32)
        logits = torch.zeros(count, 15, device=where)
        with NeverWaits() as mode:
            for left in (None, remaining):
                states = tables.advance(states, token_ids, left)
                assert tables.apply_(logits, states, left) is logits
        assert states.shape == (count,)
        assert states.device.type == where
        calls.add(tuple(mode.calls))
    assert len(calls) == 1
    assert "searchsorted" in next(iter(calls))


def test_the_check_for_waiting_finds_it() -> None:
    for wait in (lambda x: x[0].item(), lambda x: x.nonzero(), lambda x: x[x > 0], lambda x: bool((x > 0).any())):
        with pytest.raises(AssertionError), NeverWaits():
            wait(torch.ones(3))


def test_within_and_without_inference_mode() -> None:
    """What is added in one mode can be used and added to in another."""
    tables = DeviceConstraints([letters("a")])
    with torch.inference_mode():
        start = tables.add(letters("ab", "b"))
        states = ints([start])
        assert legal(tables, tables.advance(states, ints([0])).tolist()) == [[1]]
    assert legal(tables, [tables.add(letters("c"))]) == [[2]]


def test_real_sets(qwen_like: trieauto.Vocabulary) -> None:
    """Random walks over 5,000 tool names and a vocabulary of real tokens, 64 rows at once, with budgets."""
    generator = random.Random(3)
    constraint = trieauto.compile(trieauto.choices(tool_names(5_000)), qwen_like)
    enough = constraint.enough_tokens
    assert enough is not None
    tables = DeviceConstraints([constraint])
    states = tables.start_states([constraint] * 64)
    budgets = [generator.choice([constraint.min_tokens, enough, enough + 5]) for _ in range(64)]
    matchers = [constraint.matcher(budget) for budget in budgets]
    remaining = ints(budgets)
    for _ in range(12):
        masks = legal(tables, states.tolist(), remaining.tolist(), torch.bfloat16)
        assert masks == [matcher.allowed_token_ids().tolist() for matcher in matchers]
        chosen = [generator.choice(mask) for mask in masks]
        assert all(matcher.accept_token(token) for matcher, token in zip(matchers, chosen, strict=True))
        states = tables.advance(states, ints(chosen), remaining)
        remaining = remaining - 1
    assert all(matcher.is_terminated() or matcher.is_complete for matcher in matchers if matcher.remaining_tokens == 0)


@pytest.fixture(scope="module")
def qwen_like(smollm2_tokenizer: Any) -> trieauto.Vocabulary:
    return trieauto.Vocabulary.from_tokenizer(smollm2_tokenizer)


def test_transitions_are_those_of_matchers_in_order() -> None:
    constraint = letters("a", "abc", "abcab")
    found = token_transitions(constraint)
    assert found.start == 0
    assert found.states[0] == constraint.automaton.start
    assert (found.distances == constraint.distances()[found.states]).all()
    for state in range(found.num_states):
        tokens = found.tokens[found.offsets[state] : found.offsets[state + 1]]
        assert (np.diff(tokens) > 0).all()
