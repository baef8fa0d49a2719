"""Graphs over token ids: what they are made from, what is left out, what is refused."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

import trieauto
from trieauto.edge_lists import byte_automaton

# An agent that calls tools. Retrying leads nowhere, and the archive is never reached:
#
#   0 --search--> 1 --read--> 2 --finish--> 3 (goal)
#   0 --read----> 2          1 --retry--> 4 --retry--> 4        5 --finish--> 3
#   2 --search--> 1
SEARCH, READ, FINISH, RETRY, STOP = range(5)
EDGES = [
    (0, SEARCH, 1),
    (1, READ, 2),
    (2, FINISH, 3),
    (0, READ, 2),
    (1, RETRY, 4),
    (4, RETRY, 4),
    (2, SEARCH, 1),
    (5, FINISH, 3),
]


@pytest.fixture
def vocabulary() -> trieauto.Vocabulary:
    return trieauto.Vocabulary.from_tokens([b"search", b"read", b"finish", b"retry", None], stop_token_ids=[STOP])


def test_an_agent_reaches_its_goal_in_time(vocabulary: trieauto.Vocabulary) -> None:
    graph = trieauto.token_automaton(6, EDGES, 0, [3])
    assert (graph.num_unreachable, graph.num_dead_ends) == (1, 1)
    assert not graph.is_finite
    assert graph.accepts([READ, FINISH])
    assert not graph.accepts([SEARCH, RETRY])
    assert not graph.accepts([READ])
    constraint = trieauto.compile(graph, vocabulary)
    assert constraint.min_tokens == 2
    assert constraint.stats() == constraint.stats() | {"states": 6, "edges": 5, "unreachable_states": 1, "dead_ends": 1}
    matcher = constraint.matcher(max_tokens=4)
    assert matcher.allowed_token_ids().tolist() == [SEARCH, READ]
    assert matcher.accept_tokens([READ, SEARCH])
    assert matcher.allowed_token_ids().tolist() == [READ]  # never the trap, whatever the budget
    assert not matcher.accept_token(RETRY)
    assert matcher.accept_token(READ)
    assert matcher.allowed_token_ids().tolist() == [FINISH]
    assert matcher.accept_token(FINISH)
    assert matcher.is_complete
    assert matcher.value is None
    assert matcher.jump_forward_string() == b""
    with pytest.raises(trieauto.BudgetError, match="2 tokens are needed"):
        constraint.matcher(max_tokens=1)
    restored = pickle.loads(pickle.dumps(matcher))
    assert restored.remaining_tokens == 0
    restored.rollback(2)
    assert restored.allowed_token_ids().tolist() == [READ]


def test_without_a_budget_it_may_wander(vocabulary: trieauto.Vocabulary) -> None:
    matcher = trieauto.compile(trieauto.token_automaton(6, EDGES, 0, [3]), vocabulary).matcher()
    assert matcher.accept_tokens([READ, SEARCH] * 1_000)
    assert matcher.min_tokens_to_finish == 2


def test_tokens_need_no_text() -> None:
    vocabulary = trieauto.Vocabulary.from_tokens([None] * 5, stop_token_ids=[STOP])
    matcher = trieauto.compile(trieauto.token_automaton(6, EDGES, 0, [3]), vocabulary).matcher(2)
    assert matcher.allowed_token_ids().tolist() == [READ]
    assert matcher.accept_tokens([READ, FINISH])
    assert matcher.is_complete
    with pytest.raises(trieauto.EmptyConstraintError, match="can spell nothing of what is allowed, not even 'a'"):
        trieauto.compile(trieauto.choices(["a"]), vocabulary)
    with pytest.raises(trieauto.EmptyConstraintError, match="can spell nothing"):
        trieauto.compile(byte_automaton(2, [(0, 0x61, 1)], 0, [1]), vocabulary)
    assert trieauto.compile(trieauto.choices([""]), vocabulary).matcher(0).is_complete


@pytest.mark.parametrize("edges", [np.array(EDGES), iter(EDGES), [*EDGES, *EDGES], tuple(map(list, EDGES))])
def test_edges_may_come_in_any_form(edges: object) -> None:
    graph = trieauto.token_automaton(6, edges, 0, np.array([3, 3]))  # type: ignore[arg-type]
    assert len(graph.tokens) == 5


def test_states_with_many_edges() -> None:
    """Up to all tokens from one state, in lists and in rows, with the budget that leaves some of them out."""
    generator = random.Random(1)
    size = 2_000
    near, far, goal = 1, 2, 3
    targets = [generator.choice([near, far]) for _ in range(size)]
    edges = [(0, token, target) for token, target in enumerate(targets)]
    edges += [(near, 5, goal), (far, 6, near), *((goal, token, 0) for token in range(200))]
    vocabulary = trieauto.Vocabulary.from_tokens([b"x"] * size + [None], stop_token_ids=[size])
    constraint = trieauto.compile(trieauto.token_automaton(4, edges, 0, [goal]), vocabulary)
    for budget in (None, 2, 3, 2):
        matcher = constraint.matcher(budget)
        expected = [token for token, target in enumerate(targets) if budget != 2 or target == near]
        for _ in range(2):
            assert matcher.allowed_token_ids().tolist() == expected
        assert matcher.accept_token(expected[0])
    assert trieauto.compile(trieauto.token_automaton(1, [], 0, [0]), vocabulary).matcher(0).is_complete


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, [], 0, [0]), "num_states is 0"),
        ((1.5, [], 0, [0]), "num_states must be an integer, not 1.5"),
        ((True, [], 0, [0]), "not True"),
        ((2, [], 2, [0]), "the start is state 2, but there are only states 0 to 1"),
        ((2, [], -1, [0]), "the start is state -1"),
        ((2, [], 0, [2]), "accepting state 2"),
        ((2, [], 0, 1), "accepting must be a list of states, not 1"),
        ((2, [], 0, "1"), "accepting must be a list"),
        ((2, [], 0, np.array([False, True])), "not False|not np.False_"),
        ((2, "edges", 0, [1]), "edges must be a list"),
        ((2, 5, 0, [1]), "edges must be a list"),
        ((2, [(0, 1)], 0, [1]), r"not \(0, 1\)"),
        ((2, [7], 0, [1]), "not 7"),
        ((2, [(0, "a", 1)], 0, [1]), "not 'a'"),
        ((2, [(0, 1.0, 1)], 0, [1]), "not 1.0"),
        ((2, [(0, -1, 1)], 0, [1]), r"edge \(0, -1, 1\): there is no token id -1"),
        ((2, [(0, 2**70, 1)], 0, [1]), "beyond 64 bits"),
        ((2, [(0, 2**24, 1)], 0, [1]), "no token id 16777216"),
        ((2, [(0, 1, 2)], 0, [1]), r"edge \(0, 1, 2\): there is no state 2, only 0 to 1"),
        ((2, [(3, 1, 1)], 0, [1]), "there is no state 3"),
        ((3, [(0, 1, 1), (1, 0, 2), (0, 1, 2)], 0, [2]), "state 0 has two edges with token id 1, to 1 and to 2"),
        ((2, np.zeros((3, 2), int), 0, [1]), "shape"),
        ((2, np.zeros((3, 3)), 0, [1]), "float64"),
    ],
)
def test_bad_graphs(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(trieauto.TrieautoError, match=message):
        trieauto.token_automaton(*arguments)  # type: ignore[arg-type]


def test_graphs_without_a_way_to_the_goal() -> None:
    with pytest.raises(trieauto.EmptyConstraintError, match=r"from the start, state 0, to an accepting state \(2\)"):
        trieauto.token_automaton(3, [(0, 1, 1), (2, 1, 2)], 0, [2])
    with pytest.raises(trieauto.EmptyConstraintError, match=r"\(1, 2, 3, 4, 5 and 3 more\)"):
        trieauto.token_automaton(9, [(0, 1, 0)], 0, range(1, 9))
    with pytest.raises(trieauto.EmptyConstraintError, match="no state is accepting"):
        trieauto.token_automaton(3, [(0, 1, 1)], 0, [])


def test_graphs_that_do_not_fit_the_vocabulary(vocabulary: trieauto.Vocabulary) -> None:
    with pytest.raises(trieauto.TrieautoError, match="token id 5, but the vocabulary only has ids below 5"):
        trieauto.compile(trieauto.token_automaton(2, [(0, 5, 1)], 0, [1]), vocabulary)
    with pytest.raises(trieauto.TrieautoError, match="token id 4, which is a stop token"):
        trieauto.compile(trieauto.token_automaton(2, [(0, STOP, 1)], 0, [1]), vocabulary)
    graph = trieauto.token_automaton(2, [(0, 0, 1)], 0, [1])
    for options in ({"mode": "lazy"}, {"prefix_space": "optional"}, {"method": "aho_corasick"}):
        with pytest.raises(trieauto.UnsupportedError, match=next(iter(options.values()))):
            trieauto.compile(graph, vocabulary, **options)  # type: ignore[arg-type]
    assert trieauto.compile(graph, vocabulary, mode="eager", prefix_space="none").mode == "eager"


def test_byte_automata_are_trimmed_and_numbered_anew() -> None:
    automaton = byte_automaton(5, [(4, 0x61, 2), (2, 0x62, 2), (2, 0x63, 0), (1, 0x61, 2), (2, 0x64, 3)], 4, [0])
    assert automaton.num_states == 3
    assert automaton.accepts("abbbc")
    assert not automaton.accepts("ad")
    assert not automaton.is_finite
    assert byte_automaton(3, [(0, 0x61, 1), (1, 0x62, 2)], 0, [2]).is_finite
    assert byte_automaton(1, [], 0, [0]).accepts("")
    with pytest.raises(trieauto.TrieautoError, match="bytes go up to 255"):
        byte_automaton(2, [(0, 256, 1)], 0, [1])
