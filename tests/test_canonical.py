"""Canonical tokenization: exactly the token sequences that the tokenizer itself writes.

The oracle is the tokenizer's own library, called one text at a time, and GENRE's token trie over what it gives.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers
from transformers import BertGenerationTokenizer, PreTrainedTokenizerFast

import trieauto
from trieauto import Constraint, Matcher, Vocabulary
from trieauto.errors import EmptyConstraintError, TrieautoError, UnreachableValueError, UnsupportedError
from trieauto.integrations.hf import Chooser
from trieauto.reference.token_trie import TokenTrie

from . import tiny_models as tiny
from . import tokenizers_for_tests as real
from .small_tokenizers import SMALL, byte_fallback_bpe, byte_fallback_unigram, byte_level_tokenizer


@dataclass(frozen=True)
class Known:
    """A tokenizer as its own library has it, and our vocabulary of it.

    Attributes:
        encode: the ids of a text without special tokens of the tokenizer's own.
        decode: the text of ids; None where it leaves out spaces that tokens have.
        encode_after: the ids of what stands before and a value, with special tokens in the former; by default the ids
            of both as one text.
    """

    vocabulary: Vocabulary
    encode: Callable[[str], Sequence[int]]
    decode: Callable[[Sequence[int]], str] | None = None
    encode_after: Callable[[str, str], Sequence[int]] | None = None

    def after(self, context: str, value: str) -> Sequence[int]:
        return self.encode(context + value) if self.encode_after is None else self.encode_after(context, value)

    def spelled(self, ids: Iterable[int]) -> bytes | None:
        """The bytes of tokens; None if one has none."""
        tokens = self.vocabulary.tokens
        parts = [tokens[token_id] if token_id < len(tokens) else None for token_id in ids]
        return None if None in parts else b"".join(part for part in parts if part is not None)


def fast(tokenizer: Any) -> Known:
    """Of transformers, fast."""

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    return Known(Vocabulary.from_tokenizer(tokenizer), encode, tokenizer.decode)


def of_library(tokenizer: Tokenizer, stop_token_ids: Sequence[int] = (0,), path: Path | None = None) -> Known:
    """Of ``tokenizers``, given itself or as the file that it writes."""
    vocabulary = (
        Vocabulary.from_tokenizer(tokenizer, stop_token_ids=stop_token_ids)
        if path is None
        else Vocabulary.from_file(path, stop_token_ids=stop_token_ids)
    )
    return Known(vocabulary, lambda text: tokenizer.encode(text, add_special_tokens=False).ids, tokenizer.decode)


def of_tiktoken(encoding: tiktoken.Encoding) -> Known:
    return Known(
        Vocabulary.from_tiktoken(encoding),
        lambda text: encoding.encode(text, disallowed_special=()),
        encoding.decode,
        lambda context, value: encoding.encode(context + value, allowed_special="all"),
    )


def sentencepiece_known() -> Known:
    processor = real.mistral_sentencepiece()
    return Known(Vocabulary.from_sentencepiece(processor), processor.encode, processor.decode)


def slow_known() -> Known:
    slow = BertGenerationTokenizer(str(real.mistral_file("tokenizer.model.v1")))
    return Known(
        Vocabulary.from_tokenizer(slow, stop_token_ids=[2]), lambda text: slow.encode(text, add_special_tokens=False)
    )


def mistral_known(load: Callable[[], Any]) -> Known:
    inner = load().instruct_tokenizer.tokenizer
    return Known(Vocabulary.from_tokenizer(load()), lambda text: inner.encode(text, bos=False, eos=False))


def llama3_like() -> Tokenizer:
    """A byte-level BPE that takes a whole word for its token, even if no merges lead there."""
    tokenizer = byte_level_tokenizer()
    document = json.loads(tokenizer.to_str())
    document["model"]["ignore_merges"] = True
    size = len(document["model"]["vocab"])
    document["model"]["vocab"].update({word: size + i for i, word in enumerate(["Ġxyzzy", "getuser", "b_u_s_e_r"])})
    return Tokenizer.from_str(json.dumps(document))


def with_added_tokens() -> Tokenizer:
    tokenizer = byte_level_tokenizer()
    tokenizer.add_tokens(["  ", "_user", AddedToken("<call>", normalized=False), AddedToken("by ", rstrip=True)])
    tokenizer.add_special_tokens(["<|im_end|>", "<|im_start|>"])
    return tokenizer


def normalizing(normalizer: Any) -> Tokenizer:
    tokenizer = byte_level_tokenizer()
    tokenizer.normalizer = normalizer
    return tokenizer


KNOWN: dict[str, Callable[[], Known]] = {
    "qwen": lambda: fast(real.qwen_huggingface()),
    "smollm2": lambda: fast(real.smollm2()),
    "qwen-tiktoken": lambda: of_tiktoken(real.qwen_encoding()),
    "mistral-sentencepiece": sentencepiece_known,
    "mistral-slow": slow_known,
    "mistral-v3": lambda: mistral_known(real.mistral_v3),
    "mistral-tekken": lambda: mistral_known(real.mistral_tekken),
    "neox": lambda: of_library(real.olmo()),
    "neox-file": lambda: of_library(real.olmo(), path=real.olmo_tokenizer_json()),
    **{f"small-{name}": lambda make=make: of_library(make()) for name, make in SMALL.items()},  # type: ignore[misc]
    "llama3-like": lambda: of_library(llama3_like()),
    "added-tokens": lambda: of_library(with_added_tokens()),
    "lower-case": lambda: of_library(normalizing(normalizers.Lowercase())),
    "nfc": lambda: of_library(normalizing(normalizers.NFC())),
}
load = cache(lambda name: KNOWN[name]())


@pytest.fixture(params=KNOWN)
def known(request: pytest.FixtureRequest) -> Known:
    return load(request.param)  # type: ignore[no-any-return]


ODD: list[str | bytes] = [
    "",
    "a",
    "ab",
    "abc",
    "get_user",
    "get_user_by_id",
    "get_user_by id",
    "getuser",
    "\n",
    "\n\n",
    "\x00",
    "  two before",
    " one before",
    "one after ",
    "emoji 😀👍🏽",
    "naïve",
    "e\u0301 combining",
    "é composed",
    "ÉCOLE",
    "x" * 1_000,
    "internationalization",
    "1234567",
    "don't",
    "'sat",
    "tabs\t\there",
    "<|im_end|>",
    "before <|im_end|>",
    "</s>",
    "<s>",
    "<eos>",
    "<unk>",
    "<call>x</call>",
    "<0x41>",
    "a\u2581b",
    "Paris, France",
    "你好，世界",
    b"as bytes",
    "été".encode(),
    b"\xff\xfe",
    b"cut \xf0\x9f",
]
TOOLS = [f"{verb}_{noun}" for verb in ("get", "set", "list", "delete") for noun in ("user", "users", "order", "id")]


def as_text(value: str | bytes) -> str | None:
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def sequences_of(
    known: Known, values: Iterable[str | bytes], context: str | None = None
) -> dict[tuple[int, ...], str | bytes]:
    """What the tokenizer writes for each value that it writes at all."""
    found: dict[tuple[int, ...], str | bytes] = {}
    before = list(known.after(context, "")) if context else []
    for value in dict.fromkeys(values):
        text = as_text(value)
        if text is None:
            continue
        ids = list(known.after(context, text) if context else known.encode(text))
        if ids[: len(before)] != before:
            continue
        rest = tuple(ids[len(before) :])
        allowed = {text.encode(), b" " + text.encode()} if known.vocabulary.prefix_space else {text.encode()}
        if known.spelled(rest) in allowed:
            assert rest not in found
            found[rest] = value
    return found


def complete_paths(constraint: Constraint) -> dict[tuple[int, ...], str | bytes | None]:
    """All sequences of tokens after which a stop token is legal, and the value that it settles."""
    found: dict[tuple[int, ...], str | bytes | None] = {}
    stop_ids = constraint.vocabulary.stop_token_ids
    pending: list[tuple[tuple[int, ...], Matcher]] = [((), constraint.matcher())]
    while pending:
        ids, matcher = pending.pop()
        legal = matcher.allowed_token_ids().tolist()
        assert set(stop_ids) <= set(legal) or not set(stop_ids) & set(legal)
        for token_id in legal:
            following = matcher.fork()
            assert following.accept_token(token_id)
            if token_id not in stop_ids:
                pending.append(((*ids, token_id), following))
            elif token_id == stop_ids[0]:
                found[ids] = following.value
    return found


def compiled(known: Known, values: Iterable[str | bytes], **options: Any) -> Constraint:
    options = {"unreachable": "report", "tokenization": "canonical"} | options
    return trieauto.compile(trieauto.choices(values), known.vocabulary, **options)


def sorted_values(values: Iterable[str | bytes]) -> list[str | bytes]:
    return sorted(values, key=lambda value: value.encode() if isinstance(value, str) else value)


# The laws, on real tokenizers


def test_exactly_what_the_tokenizer_writes(known: Known) -> None:
    """Nothing that it writes is lost, nothing else is admitted, and what it never writes is named."""
    expected = sequences_of(known, ODD)
    assert len(expected) > len(ODD) // 2
    constraint = compiled(known, ODD)
    assert complete_paths(constraint) == expected
    assert constraint.unreachable_values == sorted_values(set(ODD) - set(expected.values()))
    assert constraint.tokenization == "canonical"
    assert constraint.left_context is None
    stats = constraint.stats()
    assert (stats["tokenization"], stats["values"]) == ("canonical", len(expected))
    assert stats["unreachable_values"] == len(constraint.unreachable_values)
    for ids, value in expected.items():
        text = as_text(value)
        assert text is not None
        assert tuple(known.encode(text)) == ids
        if known.decode is not None and not text.startswith(" "):  # some drop it, and their own space
            assert tuple(known.encode(known.decode(list(ids)))) == ids


def test_masks_are_those_of_the_token_trie(known: Known) -> None:
    """A walk by masks always ends in a sequence that the tokenizer writes, and every mask on it is the reference's."""
    expected = sequences_of(known, [*ODD, *TOOLS])
    reference = TokenTrie(expected)
    constraint = compiled(known, [*ODD, *TOOLS])
    stop_ids = list(constraint.vocabulary.stop_token_ids)
    generator = random.Random(4)
    bitmask = trieauto.allocate_token_bitmask(1, constraint.vocabulary.size)
    for _ in range(30):
        matcher = constraint.matcher()
        ids: list[int] = []
        while not matcher.is_complete:
            legal = matcher.allowed_token_ids().tolist()
            stops = stop_ids if reference.is_end(ids) else []
            assert legal == sorted([*reference.allowed_token_ids(ids), *stops])
            matcher.fill_next_token_bitmask(bitmask)
            bits = np.unpackbits(np.asarray(bitmask).view(np.uint8), bitorder="little")
            assert np.flatnonzero(bits).tolist() == legal
            below = {value for path, value in expected.items() if list(path[: len(ids)]) == ids}
            assert matcher.value == (next(iter(below)) if len(below) == 1 else None)
            token_id = generator.choice(legal)
            refused = generator.randrange(constraint.vocabulary.size)
            assert refused in legal or not matcher.accept_token(refused)
            assert matcher.accept_token(token_id)
            if token_id in stop_ids:
                break
            ids.append(token_id)
        assert matcher.value == expected[tuple(ids)]


def test_budgets_count_canonical_tokens(known: Known) -> None:
    expected = sequences_of(known, [*ODD[1:], *TOOLS])
    lengths = sorted(map(len, expected))
    constraint = compiled(known, [*ODD[1:], *TOOLS])
    assert constraint.min_tokens == lengths[0]
    assert constraint.enough_tokens == lengths[-1]
    with pytest.raises(trieauto.BudgetError, match=f"budget is {lengths[0] - 1}"):
        constraint.matcher(max_tokens=lengths[0] - 1)
    generator = random.Random(5)
    for budget in range(lengths[0], lengths[0] + 6):
        within = {ids: value for ids, value in expected.items() if len(ids) <= budget}
        assert constraint.num_values_within(budget) == len(within)
        reference = TokenTrie(within)
        matcher = constraint.matcher(max_tokens=budget)
        ids: list[int] = []
        while not matcher.is_complete:
            stops = list(constraint.vocabulary.stop_token_ids) if reference.is_end(ids) else []
            legal = matcher.allowed_token_ids().tolist()
            assert legal == sorted([*reference.allowed_token_ids(ids), *stops])
            token_id = generator.choice(sorted(set(legal) - set(stops)) or legal)
            assert matcher.accept_token(token_id)
            ids.append(token_id)
        assert matcher.value == within[tuple(ids)]


CONTEXTS = [
    "The tool is:",
    "The tool is: ",
    "x",
    '{"tool": "',
    "line\n",
    "<|im_start|>assistant\n",
    "<|im_start|>",
    "a  ",
    "<",
    "é",
]


@pytest.mark.parametrize("context", CONTEXTS)
def test_left_context(known: Known, context: str) -> None:
    values = [value for value in ODD if b"<|im" not in (value.encode() if isinstance(value, str) else value)]
    values += ["Pizza", " Pizza", "im_start|>"] if context.endswith(":") else ["Pizza", "im_start|>"]
    expected = sequences_of(known, values, context)
    if not expected:
        with pytest.raises(EmptyConstraintError, match="the tokenizer itself never writes"):
            compiled(known, values, left_context=context)
        return
    constraint = compiled(known, values, left_context=context)
    assert constraint.left_context == context
    assert complete_paths(constraint) == expected
    assert constraint.unreachable_values == sorted_values(set(values) - set(expected.values()))


def test_a_join_that_changes_the_context_is_named() -> None:
    known = load("qwen")
    with pytest.raises(
        UnreachableValueError, match=r"never writes 'Pizza' \(its beginning and the end of the left"
    ) as e:
        compiled(known, ["Pizza", "123"], left_context="Choose: ", unreachable="error")
    assert e.value.values == ["Pizza"]
    joined = compiled(known, [" Pizza", " Pasta"], left_context="Choose:", unreachable="error")
    assert set(complete_paths(joined)) == {tuple(known.encode(" Pizza")), tuple(known.encode(" Pasta"))}
    alone = compiled(known, ["Pizza", "Pasta"], left_context="", unreachable="error")
    assert set(complete_paths(alone)) == {tuple(known.encode("Pizza")), tuple(known.encode("Pasta"))}


def test_the_space_before_the_first_word() -> None:
    known = load("mistral-sentencepiece")
    piece = known.vocabulary.tokens.index
    alone = compiled(known, ["Pizza"])
    assert alone.prefix_space == "required"
    assert known.spelled(next(iter(complete_paths(alone)))) == b" Pizza"
    assert alone.matcher().value == "Pizza"
    joined = compiled(known, ["Pizza"], left_context="«")
    assert joined.prefix_space == "none"
    assert known.spelled(next(iter(complete_paths(joined)))) == b"Pizza"
    assert compiled(known, ["", "a"]).prefix_space == "optional"
    assert piece(b" a") in known.encode("a")
    assert compiled(load("qwen"), ["", "a"]).prefix_space == "none"
    # Metaspace writes no second space before a text that begins with one.
    first = load("small-unigram-first")
    assert first.encode("a") == first.encode(" a")
    assert complete_paths(compiled(first, [" a", "b"])) == {
        tuple(first.encode(" a")): " a",
        tuple(first.encode("b")): "b",
    }
    with pytest.raises(UnsupportedError, match=r"writes ' a' and 'a' in the same tokens"):
        compiled(first, ["a", " a", "b"])


# The laws, on drawn sets and small tokenizers

small_texts = st.text(st.sampled_from("aab bé\ncABx' <>😀\u0301"), max_size=8)


@given(
    values=st.lists(small_texts, min_size=1, max_size=8, unique=True),
    name=st.sampled_from([name for name in KNOWN if name.startswith("small") or name in ("llama3-like", "nfc")]),
    context=st.one_of(st.none(), small_texts),
)
@settings(max_examples=150)
def test_drawn_sets(values: list[str], name: str, context: str | None) -> None:
    known = load(name)
    try:
        expected = sequences_of(known, values, context)
    except AssertionError:  # two values, one sequence
        with pytest.raises(UnsupportedError, match="in the same tokens"):
            compiled(known, values, left_context=context)
        return
    if not expected:
        with pytest.raises(EmptyConstraintError):
            compiled(known, values, left_context=context)
        return
    constraint = compiled(known, values, left_context=context)
    assert complete_paths(constraint) == expected
    assert constraint.unreachable_values == sorted_values(set(values) - set(expected.values()))
    assert constraint.num_values_within(3) == sum(len(ids) <= 3 for ids in expected)


# What is refused, and what is said


def test_values_that_are_never_written_are_named() -> None:
    def error(name: str, *values: str | bytes) -> str:
        with pytest.raises(UnreachableValueError) as caught:
            compiled(load(name), [*values, "fine"], unreachable="error")
        assert caught.value.values == sorted_values(values)
        return str(caught.value)

    assert "'ÉCOLE' (it writes 'école')" in error("lower-case", "ÉCOLE")
    assert "(it writes 'é')" in error("nfc", "e\u0301")
    stop_id = load("qwen").vocabulary.stop_token_ids[0]
    assert f"it takes it for token {stop_id:,}, which is special" in error("qwen", "so <|im_end|>")
    assert "b'\\xff' (it is no UTF-8)" in error("qwen", b"\xff")
    assert "(it writes '<0x41>')" not in error("qwen-tiktoken", b"\xff", b"\xfe")
    message = error("lower-case", *"ABCDEFG")
    assert (
        "'E' (it writes 'e') and 2 more (7 of 8 values); trieauto.compile(..., unreachable='report') goes on without"
        in message
    )
    assert complete_paths(compiled(load("qwen-tiktoken"), ["<|im_end|>"])) != {}  # ordinary text to tiktoken


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokenization": "best"}, "tokenization is 'best'; it must be 'any' or 'canonical'"),
        ({"tokenization": "any", "left_context": "x"}, "left_context is for tokenization='canonical'"),
        ({"left_context": b"x"}, "left_context must be the text"),
        ({"left_context": "\ud800"}, "lone surrogate"),
        ({"prefix_space": "none"}, "prefix_space='none' is for tokenization='any'"),
        ({"mode": "lazy"}, "mode='lazy' is for tokenization='any'"),
        ({"method": "aho_corasick"}, "method='aho_corasick' is for"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TrieautoError, match=message):
        compiled(load("small-byte-level"), ["a"], **options)


def test_updated_is_the_set_compiled_anew(known: Known) -> None:
    generator = random.Random(5)
    values = [*ODD, *TOOLS]
    for context in (None, CONTEXTS[0]):
        for _ in range(4):
            before = generator.sample(values, 20)
            others = [value for value in values if value not in before]
            added, removed = generator.sample(others, 6), generator.sample(before, 5)
            after = [*(value for value in before if value not in removed), *added]
            old, expected = (
                compiled(known, some, left_context=context, unreachable="report") for some in (before, after)
            )
            matcher = old.matcher()
            first = matcher.allowed_token_ids().tolist()
            again = [value for value in before if value not in removed][:2]
            new = old.updated([*again, *added], iter(removed), unreachable="report")
            mine, theirs = new.automaton, expected.automaton
            for name in ("tokens", "links", "targets", "accepting"):
                assert getattr(mine, name).tolist() == getattr(theirs, name).tolist()
            assert mine.values is not None
            assert theirs.values is not None
            assert list(mine.values.given) == after
            assert mine.values.terminals.tolist() == theirs.values.terminals.tolist()
            assert [*map(mine.values.__getitem__, range(len(mine.values)))] == [
                *map(theirs.values.__getitem__, range(len(theirs.values)))
            ]
            assert new.unreachable_values == expected.unreachable_values
            assert (new.tokenization, new.left_context) == ("canonical", context)
            assert new.prefix_space == expected.prefix_space
            assert new.min_tokens == expected.min_tokens
            assert matcher.allowed_token_ids().tolist() == first


def test_updated_says_what_is_wrong() -> None:
    known = load("qwen")
    constraint = compiled(known, ["ab", "abc"])
    with pytest.raises(TrieautoError, match="remove: 'x' and 1 more are not in the set"):
        constraint.updated(remove=["x", "ab", "y"])
    with pytest.raises(TrieautoError, match="'x' is both to be added and to be removed"):
        constraint.updated(add=["x"], remove=["x"])
    with pytest.raises(EmptyConstraintError, match="no value would be left"):
        constraint.updated(remove=["ab", "abc"])
    with pytest.raises(UnreachableValueError, match=r"never writes b'\\xff' \(it is no UTF-8\)"):
        constraint.updated(add=[b"\xff"])
    with pytest.raises(EmptyConstraintError, match="never writes any of the values that would be left"):
        constraint.updated(add=[b"\xff"], remove=["ab", "abc"], unreachable="report")
    assert constraint.updated(add=[b"\xff"], unreachable="report").unreachable_values == [b"\xff"]
    assert constraint.updated() is constraint
    assert constraint.updated(add=["ab"]).values == ["ab", "abc"]


def test_what_canonical_tokenization_is_not_for() -> None:
    known = load("small-byte-level")
    automata: list[tuple[Any, str]] = [
        (trieauto.token_automaton(2, [(0, 5, 1)], 0, [1]), "is for languages over bytes"),
        (trieauto.several(["a", "b"]), "is for languages over bytes"),
    ]
    for automaton, message in automata:
        with pytest.raises(UnsupportedError, match=message):
            trieauto.compile(automaton, known.vocabulary, tokenization="canonical")
    plain = Vocabulary.from_tokens([b"a", None], stop_token_ids=[1])
    with pytest.raises(UnsupportedError, match=r"was made of tokens alone: make it with Vocabulary\.from_tokenizer"):
        trieauto.compile(trieauto.choices(["a"]), plain, tokenization="canonical")
    assert plain.encoder is None


# Finite languages that are no sets


@pytest.mark.parametrize("name", ["qwen", "smollm2", "mistral-sentencepiece", "mistral-tekken", "small-unigram-first"])
def test_finite_languages(name: str) -> None:
    known = load(name)
    days = [f"20{year:02}-{month:02}" for year in range(30) for month in range(1, 13)]
    tools = [f'{{"tool":"{tool}","n":{n}}}' for tool in TOOLS for n in range(10)]
    schema = {
        "type": "object",
        "properties": {"tool": {"enum": TOOLS}, "n": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["tool", "n"],
    }
    cases: list[tuple[trieauto.Automaton, list[str]]] = [
        (trieauto.regex(r"20[0-2][0-9]-(0[1-9]|1[0-2])"), days),
        (trieauto.json_schema(schema), tools),
        (trieauto.literal("Answer: ") + trieauto.choices(TOOLS), [f"Answer: {tool}" for tool in TOOLS]),
        (trieauto.choices(["a", "aa"]).repeat(0, 2), ["", "a", "aa", "aaa", "aaaa"]),
    ]
    for automaton, strings in cases:
        assert all(map(automaton.accepts, strings))
        expected = set(sequences_of(known, strings))
        constraint = trieauto.compile(automaton, known.vocabulary, tokenization="canonical")
        assert len(expected) == len(strings)
        assert dict.fromkeys(expected) == complete_paths(constraint)
        assert constraint.automaton.values is None
        assert constraint.enough_tokens is None
        assert constraint.min_tokens == min(map(len, expected))
        assert constraint.stats()["values"] is None


def test_strings_of_a_language_that_are_never_written() -> None:
    automaton = trieauto.literal("x") + trieauto.choices(["a", "B", b"\xff"])
    known = load("lower-case")
    with pytest.raises(UnreachableValueError) as caught:
        trieauto.compile(automaton, known.vocabulary, tokenization="canonical")
    assert caught.value.values == ["xB", b"x\xff"]
    constraint = trieauto.compile(automaton, known.vocabulary, tokenization="canonical", unreachable="report")
    assert constraint.unreachable_values == ["xB", b"x\xff"]
    assert set(complete_paths(constraint)) == {tuple(known.encode("xa"))}


# Tokenizers: what their state does, and where they go


def test_the_callers_tokenizer_is_left_alone() -> None:
    """Its truncation and padding neither count nor change, nor does what is added to it later."""
    tokenizer = with_added_tokens()
    expected = sequences_of(of_library(tokenizer), TOOLS)
    tokenizer.enable_truncation(1)
    tokenizer.enable_padding(length=20)
    tokenizer.encode_special_tokens = True
    before = tokenizer.to_str()
    vocabulary = Vocabulary.from_tokenizer(PreTrainedTokenizerFast(tokenizer_object=tokenizer), stop_token_ids=[0])
    known = Known(vocabulary, lambda text: [])
    assert complete_paths(compiled(known, TOOLS)) == expected
    assert compiled(known, ["<|im_end|>", "a"]).unreachable_values == ["<|im_end|>"]
    assert tokenizer.to_str() == before
    tokenizer.add_tokens(TOOLS)
    assert complete_paths(compiled(known, TOOLS)) == expected


def test_a_tokenizer_that_draws_lots() -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.model.dropout = 0.5
    with pytest.raises(UnsupportedError, match="dropout"):
        compiled(of_library(tokenizer), ["a"])


def test_a_tokenizer_that_fails() -> None:
    tokenizer = Tokenizer(models.WordLevel({"<stop>": 0, "a": 1}, unk_token="<unk>"))  # which it does not have
    tokenizer.decoder = byte_level_tokenizer().decoder
    with pytest.raises(UnsupportedError, match="the tokenizer fails to encode the strings"):
        compiled(of_library(tokenizer), ["b"])


def test_a_file_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer = byte_fallback_bpe()
    tokenizer.enable_truncation(1)
    tokenizer.save(str(path))
    known = of_library(byte_fallback_bpe(), path=tmp_path)
    other = of_library(byte_fallback_bpe(), path=path)
    third = of_library(byte_fallback_bpe(), path=path)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UnsupportedError, match="pip install tokenizers"):
        compiled(known, ["ab"])
    monkeypatch.undo()
    assert complete_paths(compiled(known, ["ab", "cab"])) == sequences_of(known, ["ab", "cab"])
    os.utime(path, ns=(1, 1))
    with pytest.raises(UnsupportedError, match=r"tokenizer\.json' has changed since"):
        compiled(other, ["ab"])
    assert complete_paths(compiled(known, ["h"])) == sequences_of(known, ["h"])  # this one is loaded
    path.unlink()
    with pytest.raises(UnsupportedError, match=r"tokenizer\.json' cannot be read any more"):
        compiled(third, ["ab"])


@pytest.mark.parametrize(
    "name", ["smollm2", "qwen-tiktoken", "mistral-sentencepiece", "mistral-slow", "mistral-tekken", "neox-file", "nfc"]
)
def test_pickled_vocabularies_keep_their_tokenizer(name: str) -> None:
    known = load(name)
    twice = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(known.vocabulary))))
    assert twice.fingerprint == known.vocabulary.fingerprint
    again = Known(twice, known.encode)
    assert complete_paths(compiled(again, TOOLS, left_context="x:")) == sequences_of(known, TOOLS, "x:")
    constraint = compiled(known, TOOLS, left_context="x:")
    matcher = constraint.matcher(max_tokens=9)
    assert matcher.accept_token(int(matcher.allowed_token_ids()[0]))
    restored = pickle.loads(pickle.dumps(matcher))
    assert restored.allowed_token_ids().tolist() == matcher.allowed_token_ids().tolist()
    assert (restored.value, restored.remaining_tokens) == (matcher.value, 8)
    for attribute in ("tokenization", "left_context", "prefix_space", "unreachable_values", "enough_tokens"):
        assert getattr(restored.constraint, attribute) == getattr(constraint, attribute)


def test_a_tokenizer_that_cannot_be_pickled() -> None:
    slow: Any = BertGenerationTokenizer(str(real.mistral_file("tokenizer.model.v1")))
    slow.hook = lambda: None
    vocabulary = Vocabulary.from_tokenizer(slow, stop_token_ids=[2])
    restored = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(vocabulary))))
    assert trieauto.compile(trieauto.choices(["a"]), restored).matcher().value == "a"
    with pytest.raises(UnsupportedError, match="has lost its tokenizer: it could not be pickled"):
        trieauto.compile(trieauto.choices(["a"]), restored, tokenization="canonical")


def test_the_encoder_is_no_part_of_what_a_vocabulary_is() -> None:
    vocabulary = load("small-byte-level").vocabulary
    bare = Vocabulary.from_tokens(vocabulary.tokens, stop_token_ids=vocabulary.stop_token_ids)
    assert bare.fingerprint == vocabulary.fingerprint
    assert bare.encoder is None
    assert vocabulary.encoder is not None


def test_many_values_in_order() -> None:
    """More than a batch of the tokenizer's, in threads, with duplicates; each value is what its tokens say."""
    known = load("smollm2")
    generator = random.Random(6)
    values = [f"{generator.choice(TOOLS)}_{generator.randrange(10**5)}" for _ in range(25_000)]
    constraint = compiled(known, [*values, *values[:100]], unreachable="error", threads=2)
    assert constraint.stats()["values"] == len(set(values))
    for value in generator.sample(values, 300):
        matcher = constraint.matcher()
        ids = known.encode(value)
        assert matcher.accept_tokens(ids)
        assert matcher.is_accepting
        assert matcher.accept_token(constraint.vocabulary.stop_token_ids[0])
        assert matcher.value == value
    assert constraint.num_values_within(5) == sum(len(known.encode(value)) <= 5 for value in set(values))
    assert constraint.nbytes > 17 * constraint.num_states


def test_unigram_with_bytes() -> None:
    known = of_library(byte_fallback_unigram())
    values = ["ab", "é", "abé ab", "zz"]
    assert complete_paths(compiled(known, values, unreachable="error")) == sequences_of(known, values)


# Through the Chooser


def test_chooser_chooses_canonical_tokens() -> None:
    tokenizer: Any = real.smollm2()
    model = tiny.decoder_for(tokenizer)
    values = [*TOOLS, "get", "sélectionner", "天气"]
    chooser = Chooser(model, tokenizer, values, tokenization="canonical")
    assert chooser.constraint.tokenization == "canonical"
    prompts = [f"{i} {word}" for i in range(4) for word in ("What?", "Which tool:", "é")]
    for batch_size in (1, 5):
        for choice in chooser.map(prompts, batch_size=batch_size, progress=False):
            assert isinstance(choice.value, str)
            encoded = tokenizer(choice.value, add_special_tokens=False)["input_ids"]
            assert list(choice.token_ids) == encoded[: len(choice.token_ids)]
    by_default = Chooser(model, tokenizer, values)
    assert by_default.constraint.tokenization == "canonical"
    assert by_default(prompts[0]).token_ids == chooser(prompts[0]).token_ids
    for others, options in (
        ([*values, b"caf\xe9"], {}),  # what the tokenizer never writes
        ([*values, "<|im_end|>"], {}),
        (values, {"fast_forward": True}),
        (trieauto.several(values, maximum=2), {}),
    ):
        assert Chooser(model, tokenizer, others, **options).constraint.tokenization == "any"
    anyhow = Chooser(model, tokenizer, values, tokenization="any")
    assert anyhow.constraint.tokenization == "any"
    own = [
        tuple(tokenizer(choice.value, add_special_tokens=False)["input_ids"][: len(choice.token_ids)])
        == choice.token_ids
        for choice in anyhow.map(prompts, progress=False)
    ]
    assert not all(own)  # a model with random weights spells as it likes
    assert chooser.constraint.min_tokens == min(
        len(tokenizer(value, add_special_tokens=False)["input_ids"]) for value in values
    )
    limited = chooser(prompts[0], max_new_tokens=chooser.constraint.min_tokens)
    assert len(limited.token_ids) <= chooser.constraint.min_tokens
    constraint = trieauto.compile(
        trieauto.choices(values), chooser.constraint.vocabulary, tokenization="canonical", left_context="Tool:"
    )
    assert Chooser(model, tokenizer, constraint)("Tool:").value in values
    assert Chooser(model, tokenizer, constraint, tokenization="canonical").constraint is constraint
    with pytest.raises(TrieautoError, match="tokenization='canonical', but the constraint was compiled for 'any'"):
        Chooser(model, tokenizer, anyhow.constraint, tokenization="canonical")
    with pytest.raises(TrieautoError, match="tokenization is 'best'"):
        Chooser(model, tokenizer, values, tokenization="best")  # type: ignore[arg-type]
