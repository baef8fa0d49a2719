"""The laws on real tokenizers of four kinds and sets in many scripts, against the reference."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import pytest

import trieauto
from trieauto.demo_sets import tool_names
from trieauto.reference.matcher import ReferenceMatcher

from . import tokenizers_for_tests as real


@cache
def qwen() -> trieauto.Vocabulary:
    return trieauto.Vocabulary.from_tiktoken(real.qwen_encoding(), size=151_936)


@cache
def smollm2() -> trieauto.Vocabulary:
    return trieauto.Vocabulary.from_tokenizer(real.smollm2())


@cache
def mistral() -> trieauto.Vocabulary:
    return trieauto.Vocabulary.from_sentencepiece(real.mistral_sentencepiece())


@cache
def tekken() -> trieauto.Vocabulary:
    return trieauto.Vocabulary.from_tokenizer(real.mistral_tekken())


VOCABULARIES = [qwen, smollm2, mistral, tekken]

SETS: dict[str, list[str | bytes]] = {
    "tool names": list(tool_names(60)),
    "many scripts": [
        "Ελλάδα",
        "Россия",
        "日本",
        "日本語",
        "中国",
        "ไทย",
        "한국",
        "مصر",
        "भारत",
        "Côte d’Ivoire",
        "Österreich",
    ],
    "emoji": ["😀", "😀😀", "👩‍👩‍👧‍👦", "👩‍👩‍👧", "🏳️‍🌈", "🇺🇳", "☃️", "☃"],
    "odd": ["", " ", "  ", "\n", "\n\n", '"', "\\", "get", "get_user", "'s", "</s>", "<|im_end|>", "<0x41>", "a▁b"],
    "bytes": [b"\x00", b"\xff\xfe", b"\xf0\x9f\x98", b"caf\xc3", b"\x80"],
}

WAYS: dict[str, Callable[[list[str | bytes], trieauto.Vocabulary, str], trieauto.Constraint]] = {
    name: lambda values, vocabulary, space, options=options: trieauto.compile(  # type: ignore[misc]
        trieauto.choices(values), vocabulary, prefix_space=space, unreachable="report", **options
    )
    for name, options in {
        "eager": {"mode": "eager"},
        "Aho-Corasick": {"mode": "eager", "method": "aho_corasick"},
        "lazy": {"mode": "lazy"},
    }.items()
}


def _encoded(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("make_vocabulary", VOCABULARIES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", SETS)
def test_walks_equal_the_reference(make_vocabulary: Callable[[], trieauto.Vocabulary], name: str) -> None:
    values, vocabulary = SETS[name], make_vocabulary()
    space = "optional" if vocabulary.prefix_space and name != "odd" else "none"
    reference = ReferenceMatcher(
        [value.encode() if isinstance(value, str) else value for value in values],
        vocabulary.tokens + [None] * (vocabulary.size - len(vocabulary.tokens)),
        vocabulary.stop_token_ids,
        space,  # type: ignore[arg-type]
    )
    ways = [way(values, vocabulary, space) for way in WAYS.values()]
    for seed in range(6):
        generator = random.Random(seed)
        reference.reset()
        matchers = [constraint.matcher() for constraint in ways]
        while not reference.is_terminated():
            allowed = reference.allowed_token_ids()
            assert allowed
            for matcher in matchers:
                assert matcher.allowed_token_ids().tolist() == allowed
                assert matcher.is_accepting == reference.is_accepting
                assert matcher.is_complete == reference.is_complete
                assert _encoded(matcher.value) == reference.value
                assert matcher.jump_forward_string() == reference.jump_forward_string()
                assert not matcher.accept_token(generator.choice([0, 5, vocabulary.size - 1])) or matcher.num_accepted
                matcher.rollback(matcher.num_accepted - len(reference.accepted_token_ids))
            token_id = generator.choice(allowed)
            assert reference.accept_token(token_id)
            for matcher in matchers:
                assert matcher.accept_token(token_id)
        for matcher in matchers:
            assert matcher.is_terminated()
            assert _encoded(matcher.value) == reference.value


@pytest.mark.parametrize("make_vocabulary", VOCABULARIES, ids=lambda make: make.__name__)
def test_the_canonical_spelling_is_always_legal(make_vocabulary: Callable[[], trieauto.Vocabulary]) -> None:
    """What the tokenizer itself makes of a value leads through the masks to that value, however the tokenizer writes
    the beginning of a text."""
    vocabulary = make_vocabulary()
    encode: dict[object, Callable[[str], list[int]]] = {
        qwen: lambda text: real.qwen_encoding().encode(text, disallowed_special=()),
        smollm2: lambda text: real.smollm2().encode(text, add_special_tokens=False),
        mistral: lambda text: real.mistral_sentencepiece().encode(text),
        tekken: lambda text: real.mistral_tekken().instruct_tokenizer.tokenizer.encode(text, bos=False, eos=False),
    }
    values = [*tool_names(300), *(value for value in SETS["many scripts"] + SETS["emoji"] if isinstance(value, str))]
    constraint = trieauto.compile(trieauto.choices(values), vocabulary)
    for value in values:
        matcher = constraint.matcher()
        assert matcher.accept_tokens(encode[make_vocabulary](value)), value
        assert matcher.is_accepting
        assert matcher.accept_token(vocabulary.stop_token_ids[0])
        assert matcher.value == value


def test_values_that_smollm2_cannot_spell_are_named() -> None:
    """It lacks 21 single bytes, some of which occur in text."""
    vocabulary = smollm2()
    missing = [byte for byte in range(256) if not vocabulary.tables.single_bytes[byte]]
    assert len(missing) == 21
    values: list[str | bytes] = [b"good", *(b"bad" + bytes([byte]) for byte in missing)]
    with pytest.raises(trieauto.UnreachableValueError) as error:
        trieauto.compile(trieauto.choices(values), vocabulary)
    assert error.value.values
    assert set(error.value.values) <= set(values[1:])
    constraint = trieauto.compile(trieauto.choices(values), vocabulary, unreachable="report")
    assert constraint.unreachable_values == error.value.values
    matcher = constraint.matcher()
    assert b"good" not in constraint.unreachable_values
    while not matcher.is_complete:
        assert matcher.accept_token(int(matcher.allowed_token_ids()[0]))
    assert matcher.value not in constraint.unreachable_values
