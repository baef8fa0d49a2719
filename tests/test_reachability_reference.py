"""Laws of the reference's budgets: the paper's table, its dense form, and the matcher that keeps to a deadline (law 6).

What is checked here is checked against graphs that a reader can follow by hand, breadth-first searches written out
below, and enumerations of all token paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trieauto.reference.language import live_masks, prefixes, unreachable_values
from trieauto.reference.language import min_tokens as min_tokens_of_prefixes
from trieauto.reference.matcher import ReferenceMatcher
from trieauto.reference.prefix_space import spellings
from trieauto.reference.reachability import (
    DenseReachability,
    dfa_graph,
    forward_tokens,
    min_tokens,
    prefix_graph,
    reachability_table,
    token_transitions,
    valid_tokens,
)
from trieauto.reference.regex_dfa import RegexDfa

from .strategies import Problem, problems, small_problems, walks
from .test_reference import enumerated, observed

Delta = list[dict[int, int]]


@dataclass(frozen=True)
class Graph:
    """A graph over tokens: transitions, goals, and how many tokens there are."""

    delta: Delta
    goals: set[int]
    num_tokens: int


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to seven states and five tokens: loops, traps, goals with and without a way on, no goal at all."""
    num_states, num_tokens = draw(st.integers(1, 7)), draw(st.integers(1, 5))
    states = st.integers(0, num_states - 1)
    edges = st.dictionaries(st.integers(0, num_tokens - 1), states)
    delta = draw(st.lists(edges, min_size=num_states, max_size=num_states))
    return Graph(delta, draw(st.sets(states)), num_tokens)


def as_array(graph: Graph) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    array = np.full((len(graph.delta), graph.num_tokens), -1, np.int64)
    for state, edges in enumerate(graph.delta):
        for token, following in edges.items():
            array[state, token] = following
    return array


def searched(graph: Graph, state: int) -> int | None:
    """The fewest tokens from ``state`` to a goal, by a forward search that knows no table."""
    here = {state}
    for length in range(len(graph.delta)):
        if here & graph.goals:
            return length
        here = {following for at in here for following in graph.delta[at].values()}
    return None


def states_reached(table: Iterable[Sequence[bool]]) -> list[set[int]]:
    """For every t, the states of which R holds."""
    return [{state for state, reached in enumerate(row) if reached} for row in table]


# Graphs that can be checked by hand

A, B, C, D, E, F, G, H = range(8)
TRAPS = Graph(
    [{A: 1, D: 4, G: 3}, {B: 2, C: 6}, {}, {H: 3}, {E: 5}, {F: 2}, {}],
    goals={2},
    num_tokens=8,
)
"""Two ways to the goal, and two traps.

::

    0 --a--> 1 --b--------> (2)       the goal
    |        |               ^
    |        +--c--> 6       |        6 has no way out
    |                        |
    +--d--> 4 --e--> 5 --f---+        the long way
    |
    +--g--> 3 --h--> 3                3 leads only to itself

Tokens to the goal: 2 from 0, 1 from 1, 0 from 2, 2 from 4, 1 from 5; from 3 and 6 there is no way.
"""

OPEN, CLOSE, KEY, COLON, VALUE, COMMA = range(6)
OBJECT = Graph(
    [{OPEN: 1}, {CLOSE: 2, KEY: 3}, {}, {COLON: 4}, {VALUE: 5}, {CLOSE: 2, COMMA: 6}, {KEY: 3}],
    goals={2},
    num_tokens=6,
)
"""A JSON object, in which a comma goes back to the next key.

::

    0 --{--> 1 --key--> 3 --:--> 4 --value--> 5 --}--> (2)
             |          ^                     |
             |          +--key-- 6 <----,-----+
             +--}--> (2)

Tokens to the goal: 2, 1, 0 from 0, 1, 2; 3, 2, 1 from 3, 4, 5; 4 from 6.
"""


def test_worked_example_with_traps() -> None:
    table = reachability_table(TRAPS.delta, TRAPS.goals, 4)
    assert states_reached(table) == [{2}, {1, 2, 5}, {0, 1, 2, 4, 5}, {0, 1, 2, 4, 5}, {0, 1, 2, 4, 5}]
    assert [min_tokens(table, state) for state in range(7)] == [2, 1, 0, None, 2, 1, None]
    by_budget = [valid_tokens(TRAPS.delta, table, 0, remaining) for remaining in range(6)]
    assert by_budget == [[], [], [A], [A, D], [A, D], [A, D]]
    assert [valid_tokens(TRAPS.delta, table, 1, remaining) for remaining in range(3)] == [[], [B], [B]]
    # In a trap nothing is valid, however much remains; nor at a goal that has no way on.
    assert valid_tokens(TRAPS.delta, table, 3, 99) == valid_tokens(TRAPS.delta, table, 2, 99) == []


def test_forward_tokens_walk_into_the_traps_and_valid_tokens_do_not() -> None:
    table = reachability_table(TRAPS.delta, TRAPS.goals, 3)

    def met(choices: dict[int, list[int]]) -> set[int]:
        """All states on the walks that these choices allow."""
        found: set[int] = set()
        pending = [0]
        while pending:
            state = pending.pop()
            if state not in found:
                found.add(state)
                pending += [TRAPS.delta[state][token] for token in choices[state]]
        return found

    assert forward_tokens(TRAPS.delta, 0) == [A, D, G]
    assert forward_tokens(TRAPS.delta, 1) == [B, C]
    assert met({state: forward_tokens(TRAPS.delta, state) for state in range(7)}) == {0, 1, 2, 3, 4, 5, 6}
    assert met({state: valid_tokens(TRAPS.delta, table, state, 99) for state in range(7)}) == {0, 1, 2, 4, 5}


def test_worked_example_with_a_loop() -> None:
    table = reachability_table(OBJECT.delta, OBJECT.goals, 5)
    everywhere = set(range(7))
    closed = [{2}, {1, 2, 5}, {0, 1, 2, 4, 5}, {0, 1, 2, 3, 4, 5}]
    assert states_reached(table) == [*closed, everywhere, everywhere]
    # A key costs three more tokens after it, a comma four. Before that only closing is left.
    inside = [valid_tokens(OBJECT.delta, table, 1, remaining) for remaining in range(5)]
    assert inside == [[], [CLOSE], [CLOSE], [CLOSE], [CLOSE, KEY]]
    after_value = [valid_tokens(OBJECT.delta, table, 5, remaining) for remaining in range(6)]
    assert after_value == [[], [CLOSE], [CLOSE], [CLOSE], [CLOSE], [CLOSE, COMMA]]


def test_more_than_t_max_counts_as_t_max() -> None:
    # The paper's index min(remaining - 1, T_max): a table up to 2 does not know that a key can be afforded.
    table = reachability_table(OBJECT.delta, OBJECT.goals, 2)
    assert valid_tokens(OBJECT.delta, table, 1, 99) == [CLOSE]
    assert (min_tokens(table, 0), min_tokens(table, 3)) == (2, None)


def test_a_goal_may_go_on() -> None:
    # 0 is the start and a goal, and is left and entered again: (0) --0--> 1 --1--> (0).
    delta: Delta = [{0: 1}, {1: 0}]
    table = reachability_table(delta, {0}, 3)
    assert states_reached(table) == [{0}, {0, 1}, {0, 1}, {0, 1}]
    assert [valid_tokens(delta, table, 0, remaining) for remaining in range(3)] == [[], [], [0]]


def test_graphs_without_a_goal_and_without_a_state() -> None:
    assert reachability_table(TRAPS.delta, set(), 1) == [[False] * 7] * 2
    assert reachability_table([], set(), 1) == [[], []]
    assert DenseReachability(np.empty((0, 3), np.int64), [], 1).table.shape == (2, 0)
    assert DenseReachability(np.empty((2, 0), np.int64), [1], 1).table.tolist() == [[False, True]] * 2


def test_refused_tables() -> None:
    for make in (
        lambda goals, t_max: reachability_table(TRAPS.delta, goals, t_max),
        lambda goals, t_max: DenseReachability(as_array(TRAPS), goals, t_max),
    ):
        with pytest.raises(ValueError, match="-1"):
            make([2], -1)
        with pytest.raises(ValueError, match=r"7 states: \[-1, 7\]"):
            make([-1, 2, 7], 3)
    with pytest.raises(ValueError, match=r"int64 \[S, V\], not int32 \[7, 8\]"):
        DenseReachability(as_array(TRAPS).astype(np.int32), [2], 3)
    with pytest.raises(ValueError, match=r"not int64 \[8\]"):
        DenseReachability(as_array(TRAPS)[0], [2], 3)


# The table and the mask rule


@given(graph=graphs(), t_max=st.integers(0, 9))
def test_the_table_grows_with_t_and_holds_the_fewest_tokens(graph: Graph, t_max: int) -> None:
    table = reachability_table(graph.delta, graph.goals, t_max)
    assert len(table) == t_max + 1
    rows = states_reached(table)
    assert all(rows[t] <= rows[t + 1] for t in range(t_max))
    for state in range(len(graph.delta)):
        fewest = searched(graph, state)
        assert [row[state] for row in table] == [fewest is not None and fewest <= t for t in range(t_max + 1)]
        assert min_tokens(table, state) == (fewest if fewest is not None and fewest <= t_max else None)


@given(graph=graphs(), t_max=st.integers(0, 9))
def test_valid_tokens_are_those_that_can_be_finished_after(graph: Graph, t_max: int) -> None:
    table = reachability_table(graph.delta, graph.goals, t_max)
    fewest = [searched(graph, state) for state in range(len(graph.delta))]
    for state, edges in enumerate(graph.delta):
        for remaining in range(-1, t_max + 3):
            left = min(remaining - 1, t_max)
            expected = [token for token, end in edges.items() if (d := fewest[end]) is not None and d <= left]
            assert valid_tokens(graph.delta, table, state, remaining) == sorted(expected)
            assert set(expected) <= set(forward_tokens(graph.delta, state))
        assert forward_tokens(graph.delta, state) == sorted(edges)


@given(graph=graphs(), t_max=st.integers(0, 9), budget=st.integers(0, 12))
def test_every_walk_over_valid_tokens_ends_on_a_goal(graph: Graph, t_max: int, budget: int) -> None:
    # Law 6, all walks at once: where no token is valid, and at the latest when none remains, the state is a goal.
    table = reachability_table(graph.delta, graph.goals, t_max)
    feasible = {s for s in range(len(graph.delta)) if (d := min_tokens(table, s)) is not None and d <= budget}
    here = feasible
    for remaining in range(budget, -1, -1):
        valid = {state: valid_tokens(graph.delta, table, state, remaining) for state in here}
        assert {state for state in here if not valid[state]} <= graph.goals
        here = {graph.delta[state][token] for state in here for token in valid[state]}
    assert not here


@given(graph=graphs(), t_max=st.integers(0, 9), block_entries=st.integers(1, 20), data=st.data())
def test_the_dense_form_is_the_plain_form(graph: Graph, t_max: int, block_entries: int, data: st.DataObject) -> None:
    plain = reachability_table(graph.delta, graph.goals, t_max)
    dense = DenseReachability(as_array(graph), graph.goals, t_max, block_entries)
    assert dense.table.tolist() == plain
    num_states = len(graph.delta)
    assert dense.nbytes == (8 * num_states * graph.num_tokens, (t_max + 1) * num_states)
    for state in range(num_states):
        for remaining in range(-1, t_max + 3):
            valid = valid_tokens(graph.delta, plain, state, remaining)
            assert np.flatnonzero(dense.mask(state, remaining)).tolist() == valid

            dtype = data.draw(st.sampled_from([np.float32, np.float64]))
            before = np.arange(graph.num_tokens, dtype=dtype)
            logits = before.copy()
            dense.apply(state, remaining, logits)
            assert [token for token in range(graph.num_tokens) if logits[token] == before[token]] == valid
            assert np.isneginf(np.delete(logits, valid)).all()


# Graphs from sets and regular expressions


def test_the_graph_of_a_set_keeps_dead_ends() -> None:
    # Of "ab" and "abc": after "a" no token fits, after "ab" only the id for "c".
    graph = prefix_graph([b"abc", b"ab"], [b"a", b"ab", None, b"c", b"", b"c", b"abx"])
    assert graph.states == [b"", b"a", b"ab", b"abc"]
    assert graph.delta == [{0: 1, 1: 2}, {}, {3: 3, 5: 3}, {}]
    assert (graph.start, graph.goals) == (0, {2, 3})
    table = reachability_table(graph.delta, graph.goals, 3)
    assert forward_tokens(graph.delta, graph.start) == [0, 1]
    assert valid_tokens(graph.delta, table, graph.start, 3) == [1]


def test_the_graph_of_an_empty_set() -> None:
    graph = prefix_graph([], [b"a"])
    assert (graph.states, graph.delta, graph.start, graph.goals) == ([b""], [{}], 0, set())


def test_the_graph_of_a_regex_keeps_dead_states() -> None:
    # After "b" the look-ahead forbids the only byte that could follow, so that one leads to a state without an end.
    dfa = RegexDfa.from_pattern("ab|b(?!c)c")
    graph = dfa_graph(dfa, [b"a", b"b", b"ab", b"c", None, b""])
    assert len(graph.states) == len(dfa.fsm.states) > len(dfa.live)
    table = reachability_table(graph.delta, graph.goals, 4)
    assert forward_tokens(graph.delta, graph.start) == [0, 1, 2]
    assert [valid_tokens(graph.delta, table, graph.start, n) for n in range(4)] == [[], [2], [0, 2], [0, 2]]
    trap = graph.delta[graph.start][1]
    deeper = graph.delta[trap][3]
    assert (forward_tokens(graph.delta, trap), forward_tokens(graph.delta, deeper)) == ([3], [0, 1, 2, 3])
    assert (min_tokens(table, trap), valid_tokens(graph.delta, table, trap, 99)) == (None, [])


def test_the_graph_of_an_infinite_language() -> None:
    # a b* c, where "b" may be repeated only while a token for the "c" remains.
    graph = dfa_graph(RegexDfa.from_pattern("ab*c"), [b"a", b"b", b"c", b"bc", b"bb", b"abb"])
    table = reachability_table(graph.delta, graph.goals, 5)
    after_a = graph.delta[graph.start][0]
    assert (min_tokens(table, graph.start), min_tokens(table, after_a)) == (2, 1)
    assert valid_tokens(graph.delta, table, after_a, 1) == [2, 3]
    assert valid_tokens(graph.delta, table, after_a, 2) == forward_tokens(graph.delta, after_a) == [1, 2, 3, 4]


def test_states_of_any_kind() -> None:
    # A counter up to three that tokens advance by their length, and a state that is not the same as none.
    delta = token_transitions(
        [0, 1, 2, 3], {4: b"x", 7: b"xx", 9: b""}, lambda n, t: n + len(t) if n + len(t) < 4 else None
    )
    assert delta == [{4: 1, 7: 2}, {4: 2, 7: 3}, {4: 3}, {}]


@given(problem=problems())
def test_the_graph_of_a_set_has_the_masks_of_the_set(problem: Problem) -> None:
    graph = prefix_graph(problem.values, problem.tokens)
    table = reachability_table(graph.delta, graph.goals, max(map(len, problem.values)))
    fewest = min_tokens_of_prefixes(problem.values, problem.tokens)
    live = live_masks(problem.values, problem.tokens)
    inside = prefixes(problem.values)
    assert graph.states == sorted(inside)
    for state, prefix in enumerate(graph.states):
        assert min_tokens(table, state) == fewest.get(prefix)
        assert valid_tokens(graph.delta, table, state, len(table)) == sorted(live[prefix])
        following = [i for i, token in enumerate(problem.tokens) if token and prefix + token in inside]
        assert forward_tokens(graph.delta, state) == following


@given(problem=problems(), minimal=st.booleans())
def test_the_graphs_of_a_set_and_of_its_regex_agree(problem: Problem, minimal: bool) -> None:
    dfa = RegexDfa.from_values(problem.values)
    dfa = dfa.minimised() if minimal else dfa
    by_prefix, by_state = prefix_graph(problem.values, problem.tokens), dfa_graph(dfa, problem.tokens)
    t_max = max(map(len, problem.values))
    prefix_table = reachability_table(by_prefix.delta, by_prefix.goals, t_max)
    state_table = reachability_table(by_state.delta, by_state.goals, t_max)
    for prefix, dfa_state in dfa.states_by_prefix().items():
        here, there = by_prefix.states.index(prefix), by_state.states.index(dfa_state)
        assert (here in by_prefix.goals) == (there in by_state.goals)
        for remaining in range(t_max + 2):
            valid = valid_tokens(by_prefix.delta, prefix_table, here, remaining)
            assert valid_tokens(by_state.delta, state_table, there, remaining) == valid


# The matcher


def matcher_of(problem: Problem, max_tokens: int | None = None) -> ReferenceMatcher:
    return ReferenceMatcher(
        problem.values, problem.tokens, problem.stop_token_ids, problem.prefix_space, max_tokens=max_tokens
    )


def everything(matcher: ReferenceMatcher) -> tuple[object, ...]:
    """Everything a matcher shows, its budget too."""
    return (*observed(matcher), matcher.remaining_tokens, matcher.min_tokens_to_finish)


def step(matcher: ReferenceMatcher, number: int) -> None:
    """Take the allowed token that the number points at, a stop token too."""
    allowed = matcher.allowed_token_ids()
    assert matcher.accept_token(allowed[number % len(allowed)])


GET: list[bytes | None] = [b"get", b"_", b"user", None, None]
"""Ids 3 and 4 are stop ids. "get" is one token and "get_user" three."""


def get_matcher(max_tokens: int | None = None) -> ReferenceMatcher:
    return ReferenceMatcher([b"get", b"get_user"], GET, [3, 4], max_tokens=max_tokens)


def test_worked_example_with_three_tokens() -> None:
    matcher = get_matcher(3)
    assert (matcher.remaining_tokens, matcher.min_tokens_to_finish) == (3, 1)
    assert matcher.accept_token(0)
    # "_user" fits exactly; a stop token would cost one of the two.
    assert (matcher.remaining_tokens, matcher.min_tokens_to_finish) == (2, 0)
    assert (matcher.allowed_token_ids(), matcher.is_complete, matcher.value) == ([1, 3, 4], False, None)
    assert matcher.accept_token(1)
    assert (matcher.remaining_tokens, matcher.min_tokens_to_finish, matcher.value) == (1, 1, b"get_user")
    assert matcher.accept_token(2)
    # Nothing is left, and nothing is needed.
    assert (matcher.remaining_tokens, matcher.is_complete, matcher.value) == (0, True, b"get_user")
    assert matcher.allowed_token_ids() == [3, 4]


def test_worked_example_with_two_tokens() -> None:
    matcher = get_matcher(2)
    assert matcher.accept_token(0)
    # One token is left and "_user" takes two, so the answer is "get" already.
    assert (matcher.remaining_tokens, matcher.allowed_token_ids()) == (1, [3, 4])
    assert (matcher.is_complete, matcher.value, matcher.jump_forward_string()) == (True, b"get", b"")
    assert not matcher.accept_token(1)
    assert matcher.possible_answers() == [b"get", b"get_user"]
    assert (matcher.validate_tokens([4, 3, 1]), matcher.accept_tokens([1, 2])) == (2, False)
    # Without the budget the same text may go on.
    matcher.set_budget(None)
    assert (matcher.remaining_tokens, matcher.is_complete, matcher.value) == (None, False, None)
    assert matcher.accept_tokens([1, 2])


def test_worked_example_stop_tokens_cost_a_token_each() -> None:
    matcher = get_matcher(2)
    remaining = []
    for token_id in (0, 3, 4, 3):
        assert matcher.accept_token(token_id)
        remaining.append((matcher.remaining_tokens, matcher.min_tokens_to_finish))
    assert remaining == [(1, 0), (0, 0), (0, 0), (0, 0)]
    assert matcher.allowed_token_ids() == [3, 4]
    # Two of the four taken back are beyond the deadline and bring nothing.
    matcher.rollback(2)
    assert matcher.remaining_tokens == 0
    matcher.rollback(1)
    assert (matcher.remaining_tokens, matcher.is_terminated()) == (1, False)
    matcher.reset()
    assert matcher.remaining_tokens == 2


def test_worked_example_with_a_budget_set_on_the_way() -> None:
    matcher = get_matcher()
    assert (matcher.remaining_tokens, matcher.min_tokens_to_finish) == (None, 1)
    assert matcher.accept_tokens([0, 1])
    with pytest.raises(ValueError, match="at least 1 more tokens, the budget is 0"):
        matcher.set_budget(0)
    assert (matcher.remaining_tokens, matcher.allowed_token_ids()) == (None, [2])
    matcher.set_budget(1)
    assert (matcher.remaining_tokens, matcher.allowed_token_ids()) == (1, [2])
    # The deadline is at the third token, so one taken back may be spent again.
    matcher.rollback(1)
    assert (matcher.remaining_tokens, matcher.allowed_token_ids()) == (2, [1, 3, 4])
    matcher.reset()
    assert matcher.remaining_tokens == 3


def test_refused_budgets() -> None:
    for make in (get_matcher, get_matcher().set_budget):
        with pytest.raises(ValueError, match="negative: -1"):
            make(-1)
        with pytest.raises(ValueError, match="at least 1 more tokens, the budget is 0"):
            make(0)
    for values in ([], [b"x"]):
        nothing = ReferenceMatcher(values, GET, [3])
        assert nothing.min_tokens_to_finish is None
        with pytest.raises(ValueError, match="no number of tokens"):
            nothing.set_budget(99)
    matcher = get_matcher(2)
    with pytest.raises(ValueError, match="negative"):
        matcher.set_budget(-1)
    assert matcher.remaining_tokens == 2


def test_no_tokens_for_the_empty_string() -> None:
    matcher = ReferenceMatcher([b"", b"get"], GET, [3], max_tokens=0)
    assert (matcher.allowed_token_ids(), matcher.is_complete, matcher.value) == ([3], True, b"")
    assert matcher.accept_token(3)
    assert (matcher.is_terminated(), matcher.remaining_tokens, matcher.value) == (True, 0, b"")


@given(problem=small_problems(prefix_space=None), more=st.integers(0, 4), steps=walks(), data=st.data())
def test_a_budgeted_mask_is_what_complete_paths_allow(
    problem: Problem, more: int, steps: list[int], data: st.DataObject
) -> None:
    # Law 6 by brute force: legal iff a complete path of at most that many tokens begins so.
    paths = enumerated(sorted(spellings(problem.values, problem.prefix_space)), problem.tokens)
    fewest = min(map(len, paths), default=None)
    for too_few in range(-1, 3 if fewest is None else fewest):
        with pytest.raises(ValueError, match=r"budget|no number of tokens"):
            matcher_of(problem, too_few)
    if fewest is None:
        assert matcher_of(problem).min_tokens_to_finish is None
        return

    matcher = matcher_of(problem, fewest + more)
    deadline = fewest + more
    for number in steps:
        ids = matcher.accepted_token_ids
        remaining = max(0, deadline - len(ids))
        assert matcher.remaining_tokens == remaining
        if matcher.is_terminated():
            assert matcher.allowed_token_ids() == problem.stop_token_ids
            assert (matcher.is_complete, matcher.min_tokens_to_finish) == (True, 0)
        else:
            ways = [path[len(ids) :] for path in paths if path[: len(ids)] == ids]
            content = {way[0] for way in ways if way and len(way) <= remaining}
            stops = problem.stop_token_ids if ids in paths else []
            assert matcher.allowed_token_ids() == sorted([*content, *stops])
            assert matcher.min_tokens_to_finish == min(map(len, ways)) <= remaining
            assert matcher.is_complete == (ids in paths and not content)
            if data.draw(st.sampled_from([False, False, False, True])):
                least = min(map(len, ways))
                if least:
                    with pytest.raises(ValueError, match=f"at least {least}"):
                        matcher.set_budget(least - 1)
                deadline = len(ids) + least + data.draw(st.integers(0, 3))
                matcher.set_budget(deadline - len(ids))
        step(matcher, number)


@given(problem=problems(prefix_space=None), more=st.integers(0, 6), steps=walks(30))
def test_every_walk_is_complete_in_time(problem: Problem, more: int, steps: list[int]) -> None:
    fewest = matcher_of(problem).min_tokens_to_finish
    assume(fewest is not None)
    assert fewest is not None
    matcher = matcher_of(problem, fewest + more)
    language = spellings(problem.values, problem.prefix_space)
    for number in range(fewest + more):
        if matcher.is_complete:
            break
        step(matcher, steps[number % len(steps)])
    assert len(matcher.accepted_token_ids) <= fewest + more
    assert matcher.is_complete
    assert matcher.value == language[matcher.text]
    assert matcher.jump_forward_string() == b""
    assert matcher.allowed_token_ids() == problem.stop_token_ids


@given(problem=problems(prefix_space=None), steps=walks())
def test_ample_budgets_and_none_change_nothing(problem: Problem, steps: list[int]) -> None:
    language = list(spellings(problem.values, problem.prefix_space))
    assume(len(unreachable_values(language, problem.tokens)) < len(language))
    free = matcher_of(problem)
    ample = matcher_of(problem, len(steps) + max(map(len, language)))
    lifted = matcher_of(problem, free.min_tokens_to_finish)
    lifted.set_budget(None)
    for number in steps:
        assert observed(free) == observed(ample)
        assert everything(free) == everything(lifted)
        assert free.remaining_tokens is None
        for matcher in (free, ample, lifted):
            step(matcher, number)


@given(problem=problems(spellable=True, prefix_space=None), more=st.integers(0, 6), steps=walks(), data=st.data())
def test_time_travel_gives_tokens_back(problem: Problem, more: int, steps: list[int], data: st.DataObject) -> None:
    # Law 5 with a budget, across stop tokens and beyond the deadline.
    before = data.draw(walks(3)) if data.draw(st.booleans()) else []
    matcher = matcher_of(problem)
    for number in before:
        step(matcher, number)
    fewest = matcher.min_tokens_to_finish
    assert fewest is not None
    matcher.set_budget(fewest + more)
    deadline = len(before) + fewest + more
    for number in steps:
        step(matcher, number)
    end, ids = everything(matcher), matcher.accepted_token_ids

    fork = matcher.fork()
    back = data.draw(st.integers(0, len(ids)))
    fork.rollback(back)
    rebuilt = matcher_of(problem, deadline)
    assert rebuilt.accept_tokens(ids[: len(ids) - back])
    assert everything(fork) == everything(rebuilt)
    assert fork.remaining_tokens == max(0, deadline - len(ids) + back)
    assert everything(matcher) == end
    assert fork.accept_tokens(ids[len(ids) - back :])
    assert everything(fork) == end

    # A fork's budget is its own.
    fork.set_budget(None)
    assert everything(matcher) == end
    matcher.reset()
    assert everything(matcher) == everything(matcher_of(problem, deadline))
