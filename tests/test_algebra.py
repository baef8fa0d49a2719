"""Concatenation, union, repetition: against Python's own regular expressions over the same structure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto import nfa
from trieauto.algebra import literal, minimised
from trieauto.errors import TrieautoError

from .automata import quoted

Language = tuple[trieauto.Automaton, str]
"""An automaton and the pattern of the same language."""


@pytest.fixture(autouse=True, scope="module", params=[nfa.LARGE, 1], ids=["large tries alone", "all tries"])
def least_states_of_tries_laid_out_as_they_are(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything holds whichever way a set is embedded."""
    with mock.patch.object(nfa, "LARGE", request.param):
        yield


def _set(values: list[str]) -> Language:
    return trieauto.choices(values), "(?:" + "|".join(map(re.escape, values)) + ")"


def _combined(children: st.SearchStrategy[Language]) -> st.SearchStrategy[Language]:
    bounds = st.sampled_from([(0, 1), (0, None), (1, None), (2, 2), (0, 3), (1, 2), (0, 0)])

    def repeated(language: Language, bounds: tuple[int, int | None]) -> Language:
        least, most = bounds
        return language[0].repeat(least, most), f"(?:{language[1]}){{{least},{'' if most is None else most}}}"

    return st.one_of(
        st.tuples(children, children).map(lambda pair: (pair[0][0] + pair[1][0], pair[0][1] + pair[1][1])),
        st.tuples(children, children).map(lambda pair: (pair[0][0] | pair[1][0], f"(?:{pair[0][1]}|{pair[1][1]})")),
        st.builds(repeated, children, bounds),
        children.map(lambda language: (minimised(language[0]), language[1])),
    )


texts = st.text(st.sampled_from("ab"), max_size=3)
languages = st.recursive(st.lists(texts, min_size=1, max_size=4).map(_set), _combined, max_leaves=5)


@given(language=languages, probes=st.lists(st.text(st.sampled_from("abc"), max_size=8), max_size=12))
def test_combinations_are_the_regular_expressions(language: Language, probes: list[str]) -> None:
    automaton, pattern = language
    compiled = re.compile(pattern)
    for probe in ["", "a", "b", "ab", "ba", "aa", "aab", "abab", *probes]:
        assert automaton.accepts(probe) == (compiled.fullmatch(probe) is not None)
    _check_shape(automaton)


def _check_shape(automaton: trieauto.Automaton) -> None:
    """Labels ascend within a state; every state is reached and reaches the end."""
    if automaton.is_trie:
        return
    reached, waiting = {automaton.start}, [automaton.start]
    into: dict[int, list[int]] = {}
    while waiting:
        state = waiting.pop()
        first, last = automaton.links[state : state + 2]
        assert (np.diff(automaton.labels[first:last].astype(int)) > 0).all()
        for target in automaton.targets[first:last].tolist():
            into.setdefault(target, []).append(state)
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    assert reached == set(range(automaton.num_states))
    live = set(np.flatnonzero(automaton.accepting).tolist())
    waiting = list(live)
    while waiting:
        for source in into.get(waiting.pop(), []):
            if source not in live:
                live.add(source)
                waiting.append(source)
    assert live == reached


@given(language=languages)
def test_minimised_has_no_two_equal_states(language: Language) -> None:
    """Against Moore's algorithm on sets, pair by pair."""
    small = minimised(language[0] + trieauto.choices([""]))
    if small.is_trie:
        return
    edges = [
        dict(zip(small.labels[a:b].tolist(), small.targets[a:b].tolist(), strict=True))
        for a, b in zip(small.links[:-1], small.links[1:], strict=True)
    ]
    count = small.num_states
    different = {(p, q) for p in range(count) for q in range(count) if small.accepting[p] != small.accepting[q]}
    changed = True
    while changed:
        more = {
            (p, q)
            for p in range(count)
            for q in range(count)
            if (p, q) not in different
            and (edges[p].keys() != edges[q].keys() or any((edges[p][b], edges[q][b]) in different for b in edges[p]))
        }
        changed = bool(more)
        different |= more
    assert len(different) == count * (count - 1)


def test_states_that_lead_to_equal_states_by_other_bytes_are_equal() -> None:
    anything = (trieauto.choices(["aa"]) | trieauto.choices(["a", "b"]).repeat()) + literal("")
    assert minimised(anything).num_states == 1


def test_a_large_set_in_a_structure_costs_its_nodes() -> None:
    values = [f"tool_{number:06d}" for number in range(100_000)] + ["tool_0000001"]
    whole = literal('{"tool":"') + trieauto.choices(values) + literal('"}')
    assert whole.num_states <= trieauto.choices(values).num_states + 20
    for value in (values[0], values[-1], values[-2]):
        assert whole.accepts(f'{{"tool":"{value}"}}')
    assert not whole.accepts('{"tool":"tool_1"}')
    assert whole.is_finite


def test_literals() -> None:
    assert literal("é").accepts(b"\xc3\xa9")
    assert literal(b"\xff").accepts(b"\xff")
    assert literal("").accepts("")
    assert literal("").is_finite
    assert (literal("") + literal("")).is_finite
    assert not literal("a").repeat().is_finite
    assert not literal("").accepts("a")
    for wrong in (5, None, ["a"], "\ud800"):
        with pytest.raises(TrieautoError, match="literal"):
            literal(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("least", "most"), [(-1, 2), (1.5, 2), (True, 2), (3, 2), (0, -1), ("1", None)])
def test_bad_bounds(least: object, most: object) -> None:
    with pytest.raises(TrieautoError):
        literal("a").repeat(least, most)  # type: ignore[arg-type]


def test_what_grows_without_bounds_is_refused() -> None:
    any_of_two = literal("a") | literal("b")
    with pytest.raises(trieauto.UnsupportedError, match="states to be certain"):
        any_of_two.repeat() + literal("a") + any_of_two.repeat(40, 40)
    with pytest.raises(trieauto.UnsupportedError, match="states"):
        literal("a" * 1_000).repeat(0, 10**9)
    with pytest.raises(TypeError):
        literal("a") + "b"  # type: ignore[operator]


def test_masks_are_shared_between_states_that_are_alike() -> None:
    """A long string of any characters is one scan, not one at each place."""
    tokens: list[bytes | None] = [bytes([a, b]) for a in range(32, 127) for b in range(32, 127)]
    vocabulary = trieauto.Vocabulary.from_tokens(
        [*tokens, *(bytes([a]) for a in range(32, 127)), None], stop_token_ids=[len(tokens) + 95]
    )
    constraint = trieauto.compile(quoted(700), vocabulary)
    for budget in (None, 300):
        matcher = constraint.matcher(budget)
        for _ in range(290):
            assert len(matcher.allowed_token_ids()) > 8_000
            assert matcher.accept_token(100)
        assert constraint.stats()["ready_masks_made"] < 40


COMBINE: list[Callable[[trieauto.Automaton], trieauto.Automaton]] = [
    lambda automaton: automaton + automaton,
    lambda automaton: automaton | automaton,
    lambda automaton: automaton.optional(),
    lambda automaton: automaton.repeat(2, 4),
]


@pytest.mark.parametrize("combine", COMBINE)
def test_operands_are_not_changed(combine: Callable[[trieauto.Automaton], trieauto.Automaton]) -> None:
    automaton = trieauto.choices(["ab", "a"]) | literal("c")
    before = [array.copy() for array in (*automaton.arrays, automaton.accepting)]
    combine(automaton)
    for old, new in zip(before, (*automaton.arrays, automaton.accepting), strict=True):
        assert (old == new).all()
