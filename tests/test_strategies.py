"""The model-free parts of the strategies: groups, shortlists, prompts."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz import fuzz

from trieauto.demo_sets import tool_names
from trieauto.errors import EmptyConstraintError, TrieautoError, UnsupportedError
from trieauto.serving.thinking import most_thinking_tokens
from trieauto.strategies import Cascade, EmbeddingScorer, FuzzyScorer, Hierarchy, TfidfScorer, prompts
from trieauto.strategies.clustering import assigned
from trieauto.strategies.naming import group_names, words_of
from trieauto.strategies.scorers import Scorer
from trieauto.strategies.values import Value

from .strategies import value_sets

BANKING = [
    *("card_arrival", "card_linking", "card_not_working", "lost_or_stolen_card", "card_swallowed"),
    *("exchange_rate", "exchange_charge", "exchange_via_app", "card_payment_wrong_exchange_rate"),
    *("transfer_timing", "transfer_fee_charged", "failed_transfer", "cancel_transfer", "pending_transfer"),
    *("top_up_failed", "top_up_limits", "pending_top_up", "top_up_reverted", "verify_top_up"),
]
texts = st.text(st.sampled_from("abcdeé_ 天"), max_size=8)
distinct_texts = st.lists(texts, min_size=2, max_size=40, unique=True)


def letters(values: Sequence[str]) -> np.ndarray:
    """An embedding: how often each of a few letters occurs."""
    return np.array([[value.count(letter) for letter in "abcdé_"] for value in values], np.float32)


def check(hierarchy: Hierarchy, values: Sequence[Value], memberships: int = 1, num_groups: int | None = None) -> None:
    """The laws of every grouping of ours."""
    groups = math.isqrt(len(values) - 1) + 1 if num_groups is None else num_groups
    assert {value for group in hierarchy.groups.values() for value in group} == set(values)
    assert set(hierarchy.values) == set(values)
    assert len(hierarchy.values) == len(values)
    assert all(hierarchy.groups.values())
    assert all(hierarchy.names)
    assert 1 <= len(hierarchy.names) <= groups + 1
    assert max(map(len, hierarchy.groups.values())) <= 2 * memberships * math.ceil(len(values) / groups)
    count = sum(map(len, hierarchy.groups.values()))
    assert len(values) <= count <= memberships * len(values)


@settings(max_examples=40)
@given(distinct_texts, st.integers(1, 3))
def test_every_value_is_in_a_group_and_sizes_are_near_the_root(values: list[str], memberships: int) -> None:
    check(Hierarchy.by_similarity(values, memberships=memberships), values, memberships)
    check(Hierarchy.by_embedding(values, letters, memberships=memberships), values, memberships)


@settings(max_examples=30)
@given(value_sets(max_values=12).filter(lambda values: len(set(values)) > 1))
def test_any_bytes_are_grouped(values: list[bytes]) -> None:
    hierarchy = Hierarchy.by_similarity(values)
    check(hierarchy, list(dict.fromkeys(values)))
    assert all(name.isprintable() for name in hierarchy.names)


def test_many_values_are_grouped_by_their_ngrams() -> None:
    values = tool_names(2_500)
    hierarchy = Hierarchy.by_similarity(values)
    check(hierarchy, values)
    together = [fuzz.ratio(group[0], value) for group in hierarchy.groups.values() for value in group[1:]]
    at_random = [fuzz.ratio(a, b) for a, b in itertools.pairwise(values)]
    assert np.mean(together) > np.mean(at_random) + 10  # per cent


def test_neighbours_are_together_and_names_say_what_is_in_a_group() -> None:
    hierarchy = Hierarchy.by_similarity(BANKING)
    together = sum(
        any({a, b} <= set(group) for group in hierarchy.groups.values())
        for a, b in [
            ("top_up_failed", "top_up_limits"),
            ("exchange_rate", "exchange_charge"),
            ("card_arrival", "card_linking"),
        ]
    )
    assert together >= 2
    for name, group in hierarchy.groups.items():
        assert set(name.split()) <= {word for value in group for word in words_of(str(value))}


@given(st.integers(2, 12), st.integers(0, 3))
def test_the_number_of_groups_can_be_chosen(num_groups: int, seed: int) -> None:
    check(Hierarchy.by_similarity(BANKING, num_groups=num_groups, seed=seed), BANKING, num_groups=num_groups)
    check(Hierarchy.by_embedding(BANKING, letters, num_groups=num_groups, seed=seed), BANKING, num_groups=num_groups)


def test_equal_vectors_are_split_all_the_same() -> None:
    check(Hierarchy.by_embedding(BANKING, lambda values: np.zeros((len(values), 3))), BANKING)


@settings(max_examples=60)
@given(st.lists(st.lists(texts, min_size=1, max_size=6), min_size=1, max_size=12))
def test_names_are_unique(groups: list[list[str]]) -> None:
    names = group_names(groups)
    assert len(names) == len(groups) == len(set(names))
    assert all(names)


def test_words() -> None:
    assert words_of("getUser_by-id") == ["get", "user", "by", "id"]
    assert words_of("LOC:city") == ["loc", "city"]
    assert words_of("__") == []
    assert group_names([["__", "--"], [""], [""]]) == ["__", "empty", "empty 2"]


@given(
    st.integers(1, 30).flatmap(
        lambda count: st.tuples(
            st.lists(st.lists(st.floats(0, 9, width=32), min_size=4, max_size=4), min_size=count, max_size=count),
            st.integers(-(-count // 4), count),
        )
    )
)
def test_assignment_fills_no_group_beyond_its_room(case: tuple[list[list[float]], int]) -> None:
    rows, capacity = case
    distances = np.array(rows, np.float32)
    labels = assigned(distances, capacity)
    assert (labels >= 0).all()
    counts = np.bincount(labels, minlength=4)
    assert counts.max() <= capacity
    # Whoever is not in its nearest group would have had to push out somebody nearer.
    for i, label in enumerate(labels):
        nearer = np.flatnonzero(distances[i] < distances[i, label])
        for group in nearer:
            assert counts[group] == capacity
            assert distances[labels == group, group].max() <= distances[i, group]


def test_taxonomies() -> None:
    chapters = {"A00": "Infections", "A01": "Infections", "C00": "Neoplasms", "D50": ("Blood", "Neoplasms")}
    hierarchy = Hierarchy.by_taxonomy(chapters)
    assert dict(hierarchy.groups) == {"Infections": ("A00", "A01"), "Neoplasms": ("C00", "D50"), "Blood": ("D50",)}
    assert hierarchy.values == ("A00", "A01", "C00", "D50")
    assert hierarchy.largest == 3
    assert dict(Hierarchy.by_taxonomy(chapters, ["D50", "A00"]).groups)["Blood"] == ("D50",)
    with pytest.raises(TrieautoError, match=r"1 of 2 values have no group: 'Z99'"):
        Hierarchy.by_taxonomy(chapters, ["A00", "Z99"])
    for odd in (None, 7, "", [], ["Blood", None], [""]):
        with pytest.raises(TrieautoError, match="the group of 'C00' must be a name"):
            Hierarchy.by_taxonomy({**chapters, "C00": odd})  # type: ignore[dict-item]
    with pytest.raises(TrieautoError, match="must map values to groups"):
        Hierarchy.by_taxonomy([("A00", "Infections")])  # type: ignore[arg-type]


@settings(max_examples=60)
@given(distinct_texts, st.sampled_from([0, 0.1, 0.2, 1.0]), st.integers(0, 9))
def test_misassigned_values_are_still_in_a_group(values: list[str], fraction: float, seed: int) -> None:
    hierarchy = Hierarchy(
        {"first": values[: len(values) // 2], "second": values[len(values) // 2 :], "third": values[:1]}
    )
    wrong = hierarchy.misassigned(fraction, seed)
    assert set(wrong.values) == set(values)
    assert set(wrong.names) <= set(hierarchy.names)
    moved = sum(
        {name for name, group in wrong.groups.items() if value in group}
        != {name for name, group in hierarchy.groups.items() if value in group}
        for value in values
    )
    assert moved == round(fraction * len(values))
    assert dict(hierarchy.misassigned(fraction, seed).groups) == dict(wrong.groups)


def test_errors_of_hierarchies() -> None:
    for make in (Hierarchy.by_similarity, lambda values: Hierarchy.by_embedding(values, letters)):
        with pytest.raises(EmptyConstraintError, match="the set of values is empty"):
            make([])
        for one in (["only"], ["only", b"only"]):
            with pytest.raises(TrieautoError, match="groups need two values or more; there is only 'only'"):
                make(one)
        with pytest.raises(TrieautoError, match="must be a collection of strings"):
            make("only")
        with pytest.raises(TrieautoError, match="7 is neither str nor bytes"):
            make(["a", 7])
    with pytest.raises(EmptyConstraintError, match="no groups"):
        Hierarchy({})
    with pytest.raises(EmptyConstraintError, match="group 'second': the set of values is empty"):
        Hierarchy({"first": ["a", "b"], "second": []})
    with pytest.raises(TrieautoError, match="there is only 'a'"):
        Hierarchy({"first": ["a"], "second": ["a"]})
    with pytest.raises(TrieautoError, match="name must be a text"):
        Hierarchy({"": ["a", "b"]})
    for bad in (1, 0, -1, True, 2.5):
        with pytest.raises(TrieautoError, match="num_groups must be an integer of at least 2"):
            Hierarchy.by_similarity(BANKING, num_groups=bad)  # type: ignore[arg-type]
    with pytest.raises(TrieautoError, match="num_groups=20 is more than there are values"):
        Hierarchy.by_similarity(BANKING, num_groups=20)
    with pytest.raises(TrieautoError, match="memberships must be an integer of at least 1, not 0"):
        Hierarchy.by_similarity(BANKING, memberships=0)
    with pytest.raises(TrieautoError, match="two groups have the name 'same'"):
        Hierarchy.by_similarity(BANKING, name=lambda values: "same")
    with pytest.raises(TrieautoError, match=r"a row of finite numbers for each of 19 texts.*\(2, 2\)"):
        Hierarchy.by_embedding(BANKING, lambda values: [[1, 2], [3, 4]])
    with pytest.raises(TrieautoError, match="no table of numbers"):
        Hierarchy.by_embedding(BANKING, lambda values: ["x"])
    hierarchy = Hierarchy.by_similarity(BANKING)
    for fraction in (-0.1, 1.1, True, "half"):
        with pytest.raises(TrieautoError, match="fraction must be a number from 0 to 1"):
            hierarchy.misassigned(fraction)  # type: ignore[arg-type]
    with pytest.raises(TrieautoError, match="all values are in one group, 'all'"):
        Hierarchy({"all": BANKING}).misassigned(0.1)
    with pytest.raises(TrieautoError, match="does not change"):
        hierarchy.values = ()


@pytest.mark.parametrize("package", ["sklearn", "rapidfuzz"])
def test_a_package_that_is_missing_is_named_with_its_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UnsupportedError, match=r"pip install trieauto\[strategies\]"):
        Hierarchy.by_similarity(BANKING)
    scorer = TfidfScorer() if package == "sklearn" else FuzzyScorer()
    with pytest.raises(UnsupportedError, match=r"pip install trieauto\[strategies\]"):
        Cascade(BANKING, scorer, k=2).ranked("my card")
    Hierarchy.by_taxonomy({value: value[0] for value in BANKING})  # which needs neither


def longest_first(text: str, values: Sequence[Value]) -> list[int]:
    return [len(value) for value in values]


@given(distinct_texts, st.integers(1, 50))
def test_the_last_stage_of_a_cascade_is_the_set(values: list[str], k: int) -> None:
    cascade = Cascade(values, longest_first, k)
    sizes = cascade.sizes
    assert sizes[-1] == len(values)
    assert list(sizes) == sorted(set(sizes))
    assert set(sizes[:-1]) == {size for size in (k, 2 * k) if size < len(values)}
    ranked = cascade.ranked("anything")
    assert sorted(ranked) == sorted(values)
    assert [len(value) for value in ranked] == sorted(map(len, values), reverse=True)
    # Of equals, the value that was given first.
    assert ranked == tuple(sorted(values, key=lambda value: -len(value)))
    assert cascade.ranked("anything", k) == ranked[:k]
    assert cascade.recall(["x"] * len(values), values, k) == min(k, len(values)) / len(values)


@pytest.mark.parametrize("scorer", [FuzzyScorer(), TfidfScorer(), EmbeddingScorer(letters)])
def test_scorers_give_every_value_a_number(scorer: Scorer) -> None:
    for values in (BANKING, ["", "__", "天气"], [b"\xff\xfe", b"abc"], ["only"]):
        cascade = Cascade(values, scorer, k=1)
        for text in ("Where is my new card?", "", "天气", "abc"):
            assert sorted(map(repr, cascade.ranked(text))) == sorted(map(repr, values))


@pytest.mark.parametrize("scorer", [FuzzyScorer(), TfidfScorer()])
def test_scorers_find_values_that_the_text_speaks_of(scorer: Scorer) -> None:
    cascade = Cascade(BANKING, scorer, k=5)
    assert "cancel_transfer" in cascade.ranked("Please cancel my transfer.", 5)
    assert "top_up_limits" in cascade.ranked("Are there limits for a top-up?", 5)
    assert (
        cascade.recall(["Please cancel the transfer", "exchange rates?"], ["cancel_transfer", "exchange_rate"]) == 1.0
    )


def test_what_a_scorer_keeps_is_that_of_its_values() -> None:
    scorer = TfidfScorer()
    assert Cascade(["red", "green"], scorer, k=1).ranked("green")[0] == "green"
    assert Cascade(["sun", "moon", "stars"], scorer, k=1).ranked("moon")[0] == "moon"
    changing = ["a", "b"]
    assert len(scorer("a", changing)) == 2
    changing.append("c")
    assert len(scorer("a", changing)) == 3


def test_errors_of_cascades() -> None:
    with pytest.raises(EmptyConstraintError, match="the set of values is empty"):
        Cascade([], longest_first)
    for bad in (0, -1, True, 2.0, None, "20"):
        with pytest.raises(TrieautoError, match="k must be an integer of at least 1"):
            Cascade(BANKING, longest_first, bad)  # type: ignore[arg-type]
    for values in (["a", "none of these"], [b"none of these", "a"]):
        with pytest.raises(TrieautoError, match="escape 'none of these' is a value of the set"):
            Cascade(values, longest_first)
    with pytest.raises(TrieautoError, match="escape must be a text"):
        Cascade(BANKING, longest_first, escape="")
    with pytest.raises(TrieautoError, match="cannot be called"):
        Cascade(BANKING, "tfidf")  # type: ignore[arg-type]
    for scores in ([1.0], None, [math.nan] * len(BANKING), ["high"] * len(BANKING)):
        with pytest.raises(TrieautoError, match="one number for each of 19 values"):
            Cascade(BANKING, lambda text, values, scores=scores: scores).ranked("x")  # type: ignore[misc]
    cascade = Cascade(BANKING, longest_first)
    with pytest.raises(TrieautoError, match="a label for each text, but got 1 for 2"):
        cascade.recall(["x", "y"], ["card_arrival"])
    with pytest.raises(TrieautoError, match="label 'pizza' is not a value"):
        cascade.recall(["x"], ["pizza"])
    with pytest.raises(TrieautoError, match="k must be"):
        cascade.recall(["x"], ["card_arrival"], k=0)
    assert Cascade(["only"], longest_first).sizes == (1,)


def test_prompts_hold_the_text_and_the_options() -> None:
    for prompt in (
        prompts.select("Hi?", BANKING),
        prompts.select_briefly("Hi?", BANKING),
        prompts.think("Hi?", BANKING),
    ):
        assert ", ".join(BANKING) in prompt
        assert "Text: Hi?" in prompt
    assert prompts.select("Hi?", BANKING).endswith("Answer:")
    after = prompts.select_after_thinking("Hi?", BANKING, "So it is a card.")
    # The same question as without thinking, with the thoughts put in.
    assert after.replace("Thoughts: So it is a card.\n", "") == prompts.select("Hi?", BANKING)
    assert "Options" not in prompts.select("Hi?", [str(number) for number in range(501)])
    groups = {"first": ["a", "b", "c", "d"], "second": ["e"]}
    question = prompts.select_group("Hi?", ["first", "second"], groups)
    assert "first: a, b, c\nsecond: e\n" in question
    assert question.endswith("Text: Hi?\nGroup:")
    assert "\\xff" in prompts.select("Hi?", [b"\xff"])


@given(st.integers(0, 40), st.integers(0, 5), st.integers(0, 9))
def test_thinking_leaves_what_has_to_follow_it(budget: int, ends: int, answer: int) -> None:
    most = most_thinking_tokens(budget, ends, answer)
    assert most >= 0
    assert most == 0 or budget - most == ends + answer + 1
    assert most > 0 or budget <= ends + answer + 1
