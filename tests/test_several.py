"""Several values at once: every law against the list of all texts, on vocabularies with tokens that span values."""

from __future__ import annotations

import itertools
import json
import pickle
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trieauto
from trieauto.demo_sets import tool_names
from trieauto.integrations.hf import Chooser
from trieauto.value_lists.constraint import ListConstraint

from . import tiny_models
from .strategies import walks
from .test_laws_real import mistral, qwen, smollm2

INFINITE = 10**9


@dataclass(frozen=True)
class Lists:
    """Lists of values, and a vocabulary that has their bytes; the last two ids are a stop token and no token."""

    values: list[bytes]
    minimum: int
    maximum: int
    separator: bytes
    distinct: bool
    tokens: list[bytes]

    @cached_property
    def texts(self) -> dict[bytes, tuple[bytes, ...]]:
        """All texts and what they say."""
        found = {}
        for count in range(self.minimum, self.maximum + 1):
            of_count = (
                itertools.permutations(self.values, count)
                if self.distinct
                else itertools.product(self.values, repeat=count)
            )
            for chosen in of_count:
                text = self.separator.join(chosen)
                assert text not in found, "two readings"
                found[text] = chosen
        return found

    @cached_property
    def prefixes(self) -> set[bytes]:
        return {text[:end] for text in self.texts for end in range(len(text) + 1)}

    @cached_property
    def fewest(self) -> dict[bytes, int]:
        """The fewest tokens from each prefix to the end."""
        fewest: dict[bytes, int] = {}
        for prefix in sorted(self.prefixes, key=len, reverse=True):
            after = [fewest[prefix + token] for token in self.tokens if token and prefix + token in self.prefixes]
            fewest[prefix] = 0 if prefix in self.texts else min(after, default=INFINITE) + 1
        return fewest

    def legal(self, prefix: bytes, remaining: int) -> list[int]:
        legal = [
            token_id
            for token_id, token in enumerate(self.tokens)
            if token and prefix + token in self.prefixes and self.fewest[prefix + token] < remaining
        ]
        return legal + [len(self.tokens)] * (prefix in self.texts)

    def compiled(self) -> trieauto.Constraint:
        vocabulary = trieauto.Vocabulary.from_tokens(
            [*self.tokens, None, None], stop_token_ids=[len(self.tokens)], size=len(self.tokens) + 5
        )
        automaton = trieauto.several(self.values, self.minimum, self.maximum, self.separator, self.distinct)
        return trieauto.compile(automaton, vocabulary)


@st.composite
def lists(draw: st.DrawFn, max_values: int = 4) -> Lists:
    separator = draw(st.sampled_from([b",", b", ", b"--", b",a"]))
    letters = [b"a", b"b"] if separator != b",a" else [b"b", b"c"]
    letters += draw(st.sampled_from([[], [b" "], [separator]]))
    words = st.lists(st.sampled_from(letters), min_size=1, max_size=4).map(b"".join)
    values: list[bytes] = []
    for value in draw(st.lists(words, min_size=1, max_size=max_values, unique=True)):
        following = separator[:1]
        if not any(one.startswith(other + following) for one, other in itertools.permutations([*values, value], 2)):
            values.append(value)
    distinct = draw(st.booleans())
    maximum = draw(st.integers(1, len(values) if distinct else 2))
    minimum = draw(st.integers(0, maximum))
    made = Lists(values, minimum, maximum, separator, distinct, [])
    singles = sorted({bytes([byte]) for value in [*values, separator] for byte in value})
    tokens = []
    texts = sorted(made.texts)
    for _ in range(draw(st.integers(0, 10))):
        text = draw(st.sampled_from(texts))
        begin = draw(st.integers(0, len(text)))
        tokens.append(text[begin : draw(st.integers(begin, len(text)))])
    tokens += draw(st.lists(words, max_size=2))
    return Lists(values, minimum, maximum, separator, distinct, draw(st.permutations([*tokens, *singles])))


def _texts_of_tokens(problem: Lists, matcher: trieauto.Matcher, limit: list[int]) -> dict[bytes, Any]:
    """What all complete token paths spell, and the values that the matcher has for it."""
    found: dict[bytes, Any] = {}

    def follow(matcher: trieauto.Matcher, text: bytes) -> None:
        limit[0] -= 1
        if limit[0] < 0:
            return
        for token_id in matcher.allowed_token_ids().tolist():
            fork = matcher.fork()
            assert fork.accept_token(token_id)
            if token_id == len(problem.tokens):
                assert fork.is_terminated()
                assert found.setdefault(text, fork.value) == fork.value
            else:
                follow(fork, text + problem.tokens[token_id])

    follow(matcher, b"")
    return found


@settings(max_examples=60)
@given(problem=lists(max_values=3))
def test_language(problem: Lists) -> None:
    limit = [4_000]
    found = _texts_of_tokens(problem, problem.compiled().matcher(), limit)
    assert found.items() <= problem.texts.items()
    if limit[0] >= 0:
        assert found == problem.texts
    automaton = trieauto.several(*list(vars(problem).values())[:5])
    for text in problem.texts:
        assert automaton.accepts(text)
    for prefix in problem.prefixes:
        assert automaton.accepts(prefix) == (prefix in problem.texts)
        assert automaton.accepts(prefix + b"x") == (prefix + b"x" in problem.texts)


def _check_place(problem: Lists, matcher: trieauto.Matcher, text: bytes, remaining: int | None) -> None:
    expected = problem.legal(text, INFINITE if remaining is None else remaining)
    assert matcher.allowed_token_ids().tolist() == expected
    bitmask = trieauto.allocate_token_bitmask(2, matcher.constraint.vocabulary.size)
    matcher.fill_next_token_bitmask(bitmask, 1)
    assert np.flatnonzero(np.unpackbits(bitmask[1].view(np.uint8), bitorder="little")).tolist() == expected
    for token_id in range(matcher.constraint.vocabulary.size):
        assert matcher.validate_tokens([token_id]) == (token_id in expected)
    assert matcher.is_accepting == (text in problem.texts)
    assert matcher.is_complete == (expected == [len(problem.tokens)])
    assert matcher.min_tokens_to_finish == problem.fewest[text]
    assert matcher.remaining_tokens == remaining
    assert matcher.is_limited_by_budget == (expected != problem.legal(text, INFINITE))
    possible = {said for whole, said in problem.texts.items() if whole.startswith(text)}
    if remaining is None or not matcher.is_complete:
        assert matcher.value == (possible.pop() if len(possible) == 1 else None)
    else:
        assert matcher.value == problem.texts[text]
    forced = matcher.jump_forward_string()
    following = {whole[len(text) :] for whole in problem.texts if whole.startswith(text)}
    if not matcher.is_complete:
        shared = next(
            n
            for n in itertools.count()
            if b"" in {t[n:] for t in following} or len({t[: n + 1] for t in following}) > 1
        )
        assert forced == min(following)[:shared]


@pytest.mark.parametrize("row_count", [256, -1], ids=["", "every mask a row"])
@given(problem=lists(), walk=walks(), more=st.integers(0, 3))
def test_masks_and_budgets(row_count: int, problem: Lists, walk: list[int], more: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trieauto.value_lists.constraint.ROW_COUNT", row_count)
        constraint = problem.compiled()
        fewest = problem.fewest[b""]
        assert constraint.min_tokens == fewest
        if fewest > 0:
            with pytest.raises(trieauto.BudgetError, match=f"budget is {fewest - 1}"):
                constraint.matcher(fewest - 1)
        for budget in (fewest + more, fewest + more + 4, None):
            matcher, text = constraint.matcher(budget), b""
            for step, number in enumerate(walk):
                _check_place(problem, matcher, text, None if budget is None else budget - step)
                content = [k for k in matcher.allowed_token_ids().tolist() if k < len(problem.tokens)]
                if not content:
                    break
                token_id = content[number % len(content)]
                assert matcher.accept_token(token_id)
                text += problem.tokens[token_id]
            if budget is not None and len(walk) >= budget:
                assert matcher.is_accepting


@given(
    problem=lists(), walk=walks(), more=st.integers(0, 2), numbers=st.lists(st.integers(0, 100), min_size=3, max_size=3)
)
def test_time_travel(problem: Lists, walk: list[int], more: int, numbers: list[int]) -> None:
    constraint = problem.compiled()
    for budget in (None, problem.fewest[b""] + more):
        matcher = constraint.matcher(budget)
        ids: list[int] = []
        seen = [_situation(matcher)]
        for number in walk:
            allowed = matcher.allowed_token_ids()
            if len(allowed) == 0 or matcher.is_terminated():
                break
            ids.append(int(allowed[number % len(allowed)]))
            assert matcher.accept_token(ids[-1])
            seen.append(_situation(matcher))
        other = constraint.matcher(budget)
        assert other.accept_tokens(ids)
        assert _situation(other) == seen[-1]
        assert not other.accept_tokens([constraint.vocabulary.size - 1])
        fork = matcher.fork()
        back = numbers[0] % (len(ids) + 1)
        matcher.rollback(back)
        assert _situation(matcher) == seen[len(ids) - back]
        assert _situation(fork) == seen[-1]
        copied = pickle.loads(pickle.dumps(fork))
        assert _situation(copied) == seen[-1]
        copied.rollback(len(ids))
        assert _situation(copied) == seen[0]
        assert matcher.accept_tokens(ids[len(ids) - back :])
        assert _situation(matcher) == seen[-1]
        matcher.reset()
        assert _situation(matcher) == seen[0]
        with pytest.raises(trieauto.TrieautoError, match="cannot roll back"):
            matcher.rollback()


def _situation(matcher: trieauto.Matcher) -> tuple[Any, ...]:
    return (
        matcher.allowed_token_ids().tolist(),
        matcher.remaining_tokens,
        matcher.value,
        matcher.is_terminated(),
        matcher.is_complete,
        matcher.num_accepted,
        matcher.min_tokens_to_finish,
    )


# Real vocabularies


def _walk(
    constraint: trieauto.Constraint, budget: int | None, rng: random.Random, limit: int = 400
) -> trieauto.Matcher:
    """A walk of random legal tokens to the end of an answer; short tokens and early stops are not preferred."""
    matcher = constraint.matcher(budget)
    for _ in range(limit):
        if matcher.is_terminated() or matcher.is_complete:
            break
        allowed = matcher.allowed_token_ids()
        assert len(allowed) > 0
        content = np.setdiff1d(allowed, constraint.vocabulary.stop_token_ids)
        chosen = content if len(content) > 0 and rng.random() < 0.95 else allowed
        assert matcher.accept_token(int(rng.choice(chosen.tolist())))
    assert matcher.is_terminated() or matcher.is_complete
    return matcher


@pytest.mark.parametrize("vocabulary", [qwen, smollm2, mistral])
def test_ten_thousand_values(vocabulary: Any) -> None:
    names = tool_names(10_000)
    constraint = trieauto.compile(trieauto.several(names, 2, 4), vocabulary())
    rng = random.Random(1)
    fewest = constraint.min_tokens
    for budget in (None, fewest, fewest + 1, fewest + 2, 40):
        for _ in range(4):
            value = _walk(constraint, budget, rng).value
            assert value is not None
            assert 2 <= len(value) <= 4
            assert len(set(value)) == len(value)
            assert set(value) <= set(names)
    with pytest.raises(trieauto.BudgetError):
        constraint.matcher(fewest - 1)


def test_all_of_few_values_in_any_order() -> None:
    labels = ["joy", "joyful", "anger", "fear", "fearless"]
    constraint = trieauto.compile(trieauto.several(labels, 5, separator="\n"), qwen())
    rng = random.Random(2)
    for budget in (constraint.min_tokens, None):
        for _ in range(10):
            assert set(_walk(constraint, budget, rng).value) == set(labels)  # type: ignore[arg-type]


def test_masks_of_a_real_vocabulary_are_those_of_the_plain_language() -> None:
    labels = ["red", "dark red", "green", "greenish", "blue.", "(grey)", "1,0"]
    texts = [", ".join(chosen) for count in range(1, 4) for chosen in itertools.permutations(labels, count)]
    vocabulary = qwen()
    plain = trieauto.compile(trieauto.choices(texts), vocabulary)
    constraint = trieauto.compile(trieauto.several(labels, 1, 3), vocabulary)
    least = (
        trieauto.compile(trieauto.choices(texts[7:]), vocabulary),
        trieauto.compile(trieauto.several(labels, 2, 3), vocabulary),
    )
    rng = random.Random(3)
    for one, other in ((plain, constraint), least):
        assert one.min_tokens == other.min_tokens
        for budget in (None, one.min_tokens, one.min_tokens + 1, one.min_tokens + 3, 12):
            for _ in range(15):
                expected, matcher = one.matcher(budget), other.matcher(budget)
                while not expected.is_terminated():
                    allowed = expected.allowed_token_ids().tolist()
                    assert matcher.allowed_token_ids().tolist() == allowed
                    assert matcher.min_tokens_to_finish == expected.min_tokens_to_finish
                    token_id = rng.choice(allowed)
                    assert expected.accept_token(token_id)
                    assert matcher.accept_token(token_id)
                assert ", ".join(matcher.value) == expected.value  # type: ignore[arg-type]


def test_batches_with_other_matchers() -> None:
    vocabulary = qwen()
    names = tool_names(300)
    lists_of = trieauto.compile(trieauto.several(names, 1, 3), vocabulary)
    plain = trieauto.compile(trieauto.choices(names), vocabulary)
    pattern = trieauto.compile(trieauto.regex(r"[a-z ]{1,40}"), vocabulary)
    rng = random.Random(4)
    matchers = [rng.choice([lists_of, plain, pattern]).matcher(rng.choice([None, 30])) for _ in range(24)]
    bitmask = trieauto.TokenBitmask(40, vocabulary.size)
    for _ in range(12):
        rows = rng.sample(range(40), len(matchers))
        trieauto.fill_next_token_bitmasks(matchers, bitmask, rows)
        for matcher, row in zip(matchers, rows, strict=True):
            bits = np.unpackbits(bitmask.array[row].view(np.uint8), bitorder="little")
            allowed = matcher.allowed_token_ids()
            assert np.array_equal(np.flatnonzero(bits), allowed)
            if not matcher.is_terminated():
                assert matcher.accept_token(int(rng.choice(allowed.tolist())))


def test_what_stands_before_the_answer() -> None:
    vocabulary = mistral()
    for prefix_space, begins in (("none", [False]), ("optional", [False, True]), ("required", [True])):
        constraint = trieauto.compile(
            trieauto.several(["red", "blue"], 0, 2),
            vocabulary,
            prefix_space=prefix_space,  # type: ignore[arg-type]
        )
        for has_space in (False, True):
            text = b" " * has_space + b"blue, red"
            ids = [next(k for k, token in enumerate(vocabulary.tokens) if token == bytes([byte])) for byte in text]
            matcher = constraint.matcher()
            assert matcher.accept_tokens(ids) == (has_space in begins)
            if has_space in begins:
                assert matcher.value == ("blue", "red")
    assert trieauto.compile(trieauto.several(["red"]), vocabulary).prefix_space == "optional"


# What is refused


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([],), trieauto.EmptyConstraintError, "empty"),
        ((["a", ""],), trieauto.UnsupportedError, "empty value"),
        ((["a", "a, b"],), trieauto.UnsupportedError, "'a' followed by b','.*'a, b'"),
        ((["a", "a,b"],), trieauto.UnsupportedError, "another separator"),
        ((["a", "b"], 1, 3), trieauto.TrieautoError, "maximum is 3.*only 2 different"),
        ((["a", "a"], 1, 2), trieauto.TrieautoError, "only 1 different"),
        ((["a", "b"], 2, 1), trieauto.TrieautoError, "minimum is 2"),
        ((["a", "b"], -1), trieauto.TrieautoError, "minimum must be"),
        ((["a", "b"], 0, 0), trieauto.TrieautoError, "maximum must be"),
        ((["a", "b"], 1.5), trieauto.TrieautoError, "minimum must be"),
        ((["a", "b"], 1, 2, ""), trieauto.TrieautoError, "separator"),
        ((["a", "b"], 1, 2, 3), trieauto.TrieautoError, "separator"),
        ((["a", "b"], 1, 2, ",", "no"), trieauto.TrieautoError, "distinct"),
    ],
)
def test_refusals(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        trieauto.several(*arguments)


def test_refusals_of_compiling() -> None:
    automaton = trieauto.several(["ab", "c"])
    lacking = trieauto.Vocabulary.from_tokens([b"ab", b"c", b",", b" ", b"a", None], stop_token_ids=[5])
    with pytest.raises(trieauto.UnsupportedError, match=r"none for b'b'.*'ab'"):
        trieauto.compile(automaton, lacking)
    with pytest.raises(trieauto.UnsupportedError, match="eager"):
        trieauto.compile(automaton, qwen(), mode="eager")
    with pytest.raises(trieauto.UnsupportedError, match="prefix_space"):
        trieauto.compile(trieauto.several([" a", "b"]), qwen(), prefix_space="optional")
    constraint = trieauto.compile(automaton, qwen())
    for refused in (constraint.distances, lambda: constraint.min_tokens_from(0)):
        with pytest.raises(trieauto.UnsupportedError):
            refused()


def test_what_people_see() -> None:
    automaton = trieauto.several(["red", "blue"], distinct=False)
    assert repr(automaton) == "<ListAutomaton: 1 or more of 2 values>"
    assert not automaton.is_finite
    assert trieauto.several(["red", "blue"]).is_finite
    constraint = trieauto.compile(trieauto.several(["red", "blue"]), qwen())
    assert constraint.stats()["values"] == 2
    assert constraint.enough_tokens is None
    assert constraint.nbytes > 0
    copied = pickle.loads(pickle.dumps(constraint))
    assert isinstance(copied, ListConstraint)
    assert copied.matcher().allowed_token_ids().tolist() == constraint.matcher().allowed_token_ids().tolist()
    assert "open after 0 tokens" in repr(constraint.matcher())
    with pytest.raises(trieauto.TokenNotAllowedError):
        constraint.matcher().accept_token(10**7)


def test_values_need_not_differ_and_have_no_most() -> None:
    constraint = trieauto.compile(trieauto.several(["x", "y"], 3, separator=";", distinct=False), qwen())
    matcher = constraint.matcher(9)
    while not matcher.is_complete:
        assert matcher.accept_token(int(matcher.allowed_token_ids()[0]))
    assert len(matcher.value) >= 3  # type: ignore[arg-type]


# JSON

COLOURS = ["red", "dark red", "green", 'qu"ote', "new\nline", "é"]


def _array(values: Sequence[Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"enum": list(values)}, "uniqueItems": True, **more}


@pytest.mark.parametrize(
    "schema",
    [
        _array(COLOURS),
        _array(COLOURS, minItems=2, maxItems=3),
        _array(COLOURS, minItems=2, maxItems=100),
        _array([1, 1.0, 2, True, None, "1", [1], {"a": 2}], minItems=1),
        _array(["", "a", "b"], minItems=3),
        {**_array([]), "items": {"$ref": "#/$defs/it"}, "$defs": {"it": {"enum": ["a", "b", "c"], "title": "T"}}},
    ],
)
def test_json(schema: dict[str, Any]) -> None:
    automaton = trieauto.json_schema(schema)
    assert isinstance(automaton, trieauto.ListAutomaton)
    constraint = trieauto.compile(automaton, qwen())
    validator = jsonschema.Draft202012Validator(schema)
    rng = random.Random(5)
    fewest = constraint.min_tokens
    for budget in (None, fewest, fewest + 1, fewest + 5, 60):
        for _ in range(6):
            text, matcher = b"", constraint.matcher(budget)
            while not matcher.is_complete:
                allowed = matcher.allowed_token_ids()
                token_id = int(rng.choice(allowed.tolist()))
                assert matcher.accept_token(token_id)
                text += constraint.vocabulary.tokens[token_id] or b""
            said = json.loads(text)
            assert validator.is_valid(said)
            assert matcher.value == tuple(said)
            assert text.decode() == json.dumps(said, ensure_ascii=False, separators=(",", ":"))
            assert automaton.accepts(text)


def test_json_masks_are_those_of_the_plain_language() -> None:
    vocabulary = qwen()
    schema = _array(["a", "ab", "x."], minItems=1)
    texts = [
        json.dumps(chosen, separators=(",", ":"))
        for count in (1, 2, 3)
        for chosen in itertools.permutations(schema["items"]["enum"], count)
    ]
    plain = trieauto.compile(trieauto.choices(texts), vocabulary)
    constraint = trieauto.compile(trieauto.json_schema(schema), vocabulary)
    rng = random.Random(6)
    for budget in (None, plain.min_tokens, plain.min_tokens + 1, plain.min_tokens + 2):
        for _ in range(20):
            expected, matcher = plain.matcher(budget), constraint.matcher(budget)
            while not expected.is_complete:
                allowed = expected.allowed_token_ids().tolist()
                assert matcher.allowed_token_ids().tolist() == allowed
                token_id = rng.choice(allowed)
                assert expected.accept_token(token_id)
                assert matcher.accept_token(token_id)


def test_json_with_spaces() -> None:
    automaton = trieauto.json_schema(_array(["a", "b"]), whitespace=1)
    for text, is_valid in {
        '["a", "b"]': True,
        '[ "b" ]': True,
        "[]": True,
        "[ ]": True,
        '["a","b"]': True,
        '["a",  "b"]': False,
        '["a", "a"]': False,
        '["a" ,"b"]': False,
        "[  ]": False,
    }.items():
        assert automaton.accepts(text) == is_valid, text


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        ({"type": "object", "properties": {"tags": _array(["a", "b"])}}, {}, "#/properties/tags/uniqueItems"),
        (_array(["a", "b"]), {"escapes": "any"}, "#/uniqueItems.*escapes"),
        (_array(["a", ["b"]]), {"whitespace": 1}, "#/uniqueItems.*whitespace"),
        ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, {}, "#/uniqueItems"),
    ],
)
def test_json_refusals(schema: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(trieauto.UnsupportedError, match=message):
        trieauto.json_schema(schema, **options)


def test_json_through_from_grammar() -> None:
    automaton = trieauto.from_grammar(json.dumps(_array(["a", "b"])), kind="json_schema")
    assert "different values" in trieauto.compile(automaton, qwen()).stats()["engine"]


# Hugging Face


@pytest.mark.parametrize("arguments", [{}, {"num_beams": 3}, {"do_sample": True}], ids=["greedy", "beams", "sampling"])
def test_chooser(smollm2_tokenizer: Any, arguments: dict[str, Any]) -> None:
    labels = ["sports", "politics", "science", "music", "food"]
    model = tiny_models.decoder(num_logits=len(smollm2_tokenizer))
    model.generation_config.eos_token_id = smollm2_tokenizer.eos_token_id
    prompts = ["The band won the cup. Topics:", "A new theory", "Soup"]
    fewest = Chooser(model, smollm2_tokenizer, trieauto.several(labels, 2, 3)).constraint.min_tokens
    for minimum, budget in ((1, None), (2, None), (2, fewest), (2, fewest + 1)):
        automaton = trieauto.several(labels, minimum, 3)
        chooser = Chooser(model, smollm2_tokenizer, automaton, max_new_tokens=budget, **arguments)
        for choice in chooser.map(prompts, batch_size=3, progress=False):
            assert isinstance(choice.value, tuple)
            assert minimum <= len(choice.value) <= 3
            assert len(set(choice.value)) == len(choice.value)
            assert set(choice.value) <= set(labels)
            if budget == fewest:
                assert choice.ended == "completed under the budget"


def test_chooser_of_any_number_of_values(smollm2_tokenizer: Any) -> None:
    model = tiny_models.decoder(num_logits=len(smollm2_tokenizer))
    model.generation_config.eos_token_id = smollm2_tokenizer.eos_token_id
    endless = trieauto.several(["red", "blue"], distinct=False)
    with pytest.raises(trieauto.UnsupportedError, match="maximum"):
        Chooser(model, smollm2_tokenizer, endless)
    assert Chooser(model, smollm2_tokenizer, endless, max_new_tokens=6)("Topics:").value


def test_a_search_without_end_is_given_up() -> None:
    """Tokens that reach beyond the ends of values in very many ways: the fewest tokens are a puzzle."""
    letters = "abcdefghijkl"
    rng = random.Random(1)
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    tokens += [f"{a},{rng.choice(letters)},".encode() for a in letters for _ in range(3)]
    vocabulary = trieauto.Vocabulary.from_tokens([*tokens, None], stop_token_ids=[len(tokens)])
    constraint = trieauto.compile(trieauto.several(list(letters), 12, 12, ","), vocabulary)
    with pytest.raises(trieauto.UnsupportedError, match=r"take too long to find; with \d+ tokens left") as caught:
        constraint.matcher(max_tokens=9)
    enough = re.search(r"with (\d+) tokens left", str(caught.value))
    assert enough is not None
    matcher = constraint.matcher(max_tokens=int(enough[1]))
    while not matcher.is_complete:
        matcher.accept_token(int(matcher.allowed_token_ids()[0]))
    assert sorted(matcher.value or ()) == list(letters)


@pytest.mark.parametrize(("values", "least"), [(["a"], 0), (["a"], 1), ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], 0)])
def test_json_lists_of_one_value(values: list[object], least: int) -> None:
    schema = {"type": "array", "items": {"enum": values}, "uniqueItems": True, "minItems": least}
    automaton = trieauto.json_schema(schema)
    assert isinstance(automaton, trieauto.ListAutomaton)
    text = "[" + json.dumps(values[0], separators=(",", ":")) + "]"
    assert automaton.accepts(text)
    assert automaton.accepts("[]") == (least == 0)


def test_json_lists_of_more_values_than_there_are() -> None:
    schema = {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 3}
    with pytest.raises(
        trieauto.EmptyConstraintError,
        match=r"no value at all: #/minItems asks for 3 different items, but there are only 2",
    ):
        trieauto.json_schema(schema)
