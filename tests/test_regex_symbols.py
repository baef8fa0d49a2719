"""Patterns by the sets of characters that they do not tell apart: the same languages, with fewer states on the way."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto import nfa
from trieauto.regex_automaton import regex
from trieauto.regex_symbols import Symbols

from . import test_regex
from .regex_triples import TRIPLES


@contextmanager
def by_symbols() -> Iterator[mock.Mock]:
    """There is no room for the first attempt, so every pattern of characters is taken this way."""
    with (
        mock.patch.object(nfa, "GROWTH", (0, 8)),
        mock.patch.object(nfa, "ROOM", (0, 30_000)),
        mock.patch.object(Symbols, "of", side_effect=Symbols.of) as asked,
    ):
        yield asked


@pytest.mark.parametrize(("pattern", "matching", "other"), TRIPLES)
def test_triples(pattern: str, matching: list[str], other: list[str]) -> None:
    with by_symbols() as asked:
        test_regex.test_triples(pattern, matching, other)
    assert asked.call_count == 1


@pytest.mark.parametrize(("pattern", "matching", "other"), test_regex.SEARCHES)
def test_searches(pattern: str, matching: list[str], other: list[str]) -> None:
    with by_symbols():
        test_regex.test_searches(pattern, matching, other)


@given(
    test_regex.patterns,
    st.sampled_from([0, re.I, re.A, re.S]),
    st.lists(test_regex.texts, max_size=6),
    st.randoms(),
)
def test_generated_patterns(pattern: str, flags: int, strings: list[str], rng: random.Random) -> None:
    with by_symbols():
        test_regex.test_generated_patterns.hypothesis.inner_test(pattern, flags, strings, rng)  # type: ignore[attr-defined]


def test_more_symbols_than_bytes() -> None:
    """Then bytes it is, as long as they do."""
    characters = "".join(map(chr, range(0x4E00, 0x4E00 + 600, 2)))
    pattern = "|".join(f"{character}+" for character in characters)
    with by_symbols():
        automaton = regex(pattern)
    assert automaton.accepts(characters[7] * 3)
    assert not automaton.accepts(characters[7:9])


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"(\w+ ?){1,30}", ["a " * 30, "à la carte", "x" * 500], ["a " * 31, "a  b", ""]),
        (r"(?:<(\w+ ?){1,30}>)+|z{1,9}", ["<a b>", "<a ><é " + "b " * 29 + ">", "zzz"], ["<>", "z" * 10, "<a"]),
        (r"(\w+\s?){1,100}", ["ab\t" * 100, "日本 語"], ["a " * 101, " a"]),
        (r"(?:[A-Z]\w*[-' ]?){1,40}", ["Jean-Luc O'Neill", "Lise-Marié "], ["jean", "Jean  Luc"]),
    ],
)
def test_ambiguous_repeats(pattern: str, matching: list[str], other: list[str]) -> None:
    automaton = regex(pattern)
    assert all(map(automaton.accepts, matching))
    assert not any(map(automaton.accepts, other))
    assert automaton.num_states < 100_000


def test_what_is_too_much_all_the_same_is_refused() -> None:
    with pytest.raises(trieauto.UnsupportedError, match="states"):
        regex("(a|b)*a(a|b){40}")
