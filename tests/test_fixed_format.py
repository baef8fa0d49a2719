"""Fixed formats: their masks are those of the regular expression, and calendar days are those of ``datetime``."""

from __future__ import annotations

import random
import uuid
from calendar import isleap
from collections.abc import Callable
from datetime import date, datetime
from functools import cache
from hashlib import new as new_digest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto.fixed_formats import FORMATS, fixed_format
from trieauto.nfa import edges_of
from trieauto.reference.regex_dfa import RegexDfa

from . import tokenizers_for_tests as real
from .automata import from_dfa

HEX = "[0-9a-f]"
REGEXES = {
    "date": "[0-9]{4}-[01][0-9]-[0-3][0-9]",
    "time": "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]",
    "date-time": "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z",
    "uuid": f"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}",
    "md5": f"{HEX}{{32}}",
    "sha1": f"{HEX}{{40}}",
    "sha224": f"{HEX}{{56}}",
    "sha256": f"{HEX}{{64}}",
    "sha384": f"{HEX}{{96}}",
    "sha512": f"{HEX}{{128}}",
    "digits:8": "[0-9]{8}",
    "hex:5": f"{HEX}{{5}}",
    "###-###-####": "[0-9]{3}-[0-9]{3}-[0-9]{4}",
    "+1 (###) ###-####": r"\+1 \([0-9]{3}\) [0-9]{3}-[0-9]{4}",
    "#### #### #### ####": "([0-9]{4} ){3}[0-9]{4}",
    "[A-Z]{2}## [0-9A-Z]{4}": "[A-Z]{2}[0-9]{2} [0-9A-Z]{4}",
    r"\#[0-9a-f]{6}": f"#{HEX}{{6}}",
    r"[\]\\\-a-c^]{2}\[\{\}\]": r"(a|b|c|\\|-|\]|\^){2}\[\{\}\]",
    "[--/][^a]": r"(-|\.|/)(\^|a)",
    "#{1}\n": "[0-9]\n",
}


@cache
def vocabulary(name: str) -> trieauto.Vocabulary:
    load: dict[str, Callable[[], Any]] = {
        "qwen": real.qwen_huggingface,
        "mistral": real.mistral_sentencepiece,
        "smollm2": real.smollm2,
    }
    return trieauto.Vocabulary.from_tokenizer(load[name]())


def assert_same_masks(ours: trieauto.Constraint, wanted: trieauto.Constraint, budget: int | None, seed: object) -> None:
    """The masks are equal along random walks; with a budget, every walk is finished within it."""
    rng = random.Random(str(seed))
    for _ in range(8):
        one, other = ours.matcher(budget), wanted.matcher(budget)
        while not one.is_terminated():
            allowed = one.allowed_token_ids()
            np.testing.assert_array_equal(allowed, other.allowed_token_ids())
            assert one.min_tokens_to_finish == other.min_tokens_to_finish
            assert one.is_accepting == other.is_accepting
            if len(allowed) == 0 or one.is_complete:
                break
            token_id = rng.choice(allowed.tolist())
            assert one.accept_token(token_id)
            assert other.accept_token(token_id)
        assert one.is_accepting or one.is_terminated()


@pytest.mark.parametrize("tokenizer", ["qwen", "mistral", "smollm2"])
@pytest.mark.parametrize("form", REGEXES)
def test_masks_and_budgets_are_those_of_the_regex(form: str, tokenizer: str) -> None:
    automaton = fixed_format(form)
    wanted = from_dfa(RegexDfa.from_pattern(REGEXES[form]))
    assert automaton.num_states <= wanted.num_states
    one = trieauto.compile(automaton, vocabulary(tokenizer))
    other = trieauto.compile(wanted, vocabulary(tokenizer))
    fewest = one.min_tokens
    assert fewest == other.min_tokens
    for budget in (None, fewest, fewest + 2):
        assert_same_masks(one, other, budget, (form, tokenizer, budget))
    with pytest.raises(trieauto.BudgetError) as error:
        one.matcher(fewest - 1)
    assert error.value.needed == fewest


def test_every_named_format_is_compared() -> None:
    assert FORMATS.keys() <= REGEXES.keys()


def test_what_programs_write_is_accepted() -> None:
    now = datetime(2024, 2, 29, 23, 59, 58)
    assert fixed_format("date").accepts(now.date().isoformat())
    assert fixed_format("time").accepts(now.time().isoformat())
    assert fixed_format("date-time").accepts(now.isoformat() + "Z")
    assert fixed_format("uuid").accepts(str(uuid.uuid4()))
    assert not fixed_format("uuid").accepts(str(uuid.UUID(int=2**128 - 1)).upper())
    for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512"):
        assert fixed_format(name).accepts(new_digest(name, b"x", usedforsecurity=False).hexdigest())


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4), min_size=1, max_size=4),
    st.data(),
)
def test_lists_of_positions(positions: list[str], data: st.DataObject) -> None:
    automaton = fixed_format(positions)
    assert automaton.is_finite
    inside = "".join(data.draw(st.sampled_from(position)) for position in positions)
    assert automaton.accepts(inside)
    other = data.draw(st.text(max_size=len(positions) + 1))
    wanted = len(other) == len(positions) and all(map(str.__contains__, positions, other))
    assert automaton.accepts(other) == wanted
    assert not automaton.accepts(inside.encode() + b"\x80")


def num_strings(automaton: trieauto.Automaton) -> int:
    """How many strings a finite language has."""
    sources, _, targets = edges_of(automaton)
    following: dict[int, list[int]] = {}
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        following.setdefault(source, []).append(target)

    @cache
    def count(state: int) -> int:
        return int(automaton.accepting[state]) + sum(map(count, following.get(state, [])))

    return count(automaton.start)


def test_valid_days_are_those_of_the_calendar() -> None:
    days = fixed_format("date", valid_days=True)
    assert num_strings(days) == date.max.toordinal()  # 0001-01-01 is day 1
    for year in range(10_000):
        assert days.accepts(f"{year:04}-02-29") == (year > 0 and isleap(year))
        assert days.accepts(f"{year:04}-12-31") == (year > 0)
    for month in range(100):
        for day in range(100):
            text = f"2023-{month:02}-{day:02}"
            try:
                wanted = date.fromisoformat(text).isoformat() == text
            except ValueError:
                wanted = False
            assert days.accepts(text) == wanted, text


@given(st.dates())
def test_every_day_is_valid(day: date) -> None:
    assert fixed_format("date", valid_days=True).accepts(day.isoformat())


@given(st.datetimes().map(lambda moment: moment.replace(microsecond=0)))
def test_every_moment_is_valid(moment: datetime) -> None:
    moments = fixed_format("date-time", valid_days=True)
    assert moments.accepts(moment.isoformat() + "Z")
    assert not moments.accepts(moment.isoformat())
    assert not moments.accepts(f"{moment.date()}T24:00:00Z")


def test_there_are_as_many_valid_moments_as_seconds() -> None:
    assert num_strings(fixed_format("date-time", valid_days=True)) == date.max.toordinal() * 86_400


@pytest.mark.parametrize("tokenizer", ["qwen", "mistral", "smollm2"])
def test_walks_under_the_least_budget_are_days(tokenizer: str) -> None:
    constraint = trieauto.compile(fixed_format("date-time", valid_days=True), vocabulary(tokenizer))
    rng = random.Random(tokenizer)
    for budget in (constraint.min_tokens, constraint.min_tokens + 1, None):
        for _ in range(20):
            matcher = constraint.matcher(budget)
            text = b""
            while not matcher.is_complete:
                token_id = rng.choice(matcher.allowed_token_ids().tolist())
                text += constraint.vocabulary.tokens[token_id] or b""
                assert matcher.accept_token(token_id)
            assert datetime.fromisoformat(text.decode()).isoformat()[:19] + "Z" == text.decode()


@pytest.mark.parametrize(
    ("form", "options", "message"),
    [
        ("dates", {}, "no format 'dates'; the names are date, time, .*digits:<length>"),
        ("DATE", {}, "no format 'DATE'"),
        ("", {}, "empty template"),
        ("[", {}, r"'\[' at position 0"),
        ("##]", {}, r"'\]' at position 2"),
        ("{2}", {}, r"'\{' at position 0"),
        ("#{2}{3}", {}, r"'\{' at position 4"),
        ("#{,3}", {}, r"'\{' at position 1"),
        ("#\\", {}, r"'\\\\' at position 1"),
        ("#[]", {}, "no character in the set at position 1"),
        ("#[9-0]", {}, "range 9-0 in the set at position 1"),
        ("#{0}", {}, "repeated 0 times"),
        ("digits:0", {}, "repeated 0 times"),
        ("digits:", {}, "no format"),
        ([], {}, "empty list"),
        (["1", ""], {}, "position 1 must be a string"),
        (["1", 2], {}, "position 1 must be a string"),
        (["\ud800"], {}, "lone surrogate"),
        (["a\ud800"], {}, "lone surrogate"),
        (b"##", {}, "a name, a template or a list"),
        (7, {}, "a name, a template or a list"),
        ("time", {"valid_days": True}, "valid_days is for the formats 'date' and 'date-time', not for 'time'"),
        ("####-##-##", {"valid_days": True}, "valid_days"),
        (["1"], {"valid_days": True}, "valid_days"),
    ],
)
def test_errors(form: Any, options: dict[str, bool], message: str) -> None:
    with pytest.raises(trieauto.TrieautoError, match=message):
        fixed_format(form, **options)


@pytest.mark.parametrize("form", ["digits:1000001", "#{99999999999999999999}", "#{1000000}#"])
def test_too_many_positions(form: str) -> None:
    with pytest.raises(trieauto.UnsupportedError, match="more than 1,000,000 positions"):
        fixed_format(form)
