"""Sets: what is taken, what is refused, and sets that hurt."""

from __future__ import annotations

import enum
import random
from collections.abc import Iterator
from functools import cache
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto.packing import pack, sort_packed
from trieauto.reference.char_trie import CharTrie

from .tokenizers_for_tests import qwen_ranks


@pytest.fixture(scope="module")
def qwen() -> trieauto.Vocabulary:
    return trieauto.Vocabulary.from_tokens(list(qwen_ranks()), stop_token_ids=[151_643], size=151_936)


@given(values=st.lists(st.binary(max_size=30), min_size=1, max_size=60), threads=st.integers(1, 4))
def test_sorting_is_pythons(values: list[bytes], threads: int) -> None:
    order, shared = sort_packed(pack(values), threads)
    assert order.tolist() == sorted(range(len(values)), key=lambda i: (values[i], i))
    for i in range(1, len(values)):
        a, b = values[order[i - 1]], values[order[i]]
        common = next((k for k in range(min(len(a), len(b))) if a[k] != b[k]), min(len(a), len(b)))
        assert shared[i] == (-1 if a == b else common)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_sorting_large_sets(threads: int) -> None:
    """Sizes at which sorting changes its method, and prefixes longer than it looks at at once."""
    generator = random.Random(threads)
    stems = [
        b"a shared beginning, ",
        b"a shared beginning, longer than that, ",
        b"",
        b"\x00\x00\x00\x00\x00\x00\x00\x00",
    ]
    values = [
        generator.choice(stems) + generator.randbytes(generator.randrange(4)) + b"\x00" * generator.randrange(12)
        for _ in range(30_000)
    ]
    order, _ = sort_packed(pack(values), threads)
    assert order.tolist() == sorted(range(len(values)), key=lambda i: (values[i], i))


@given(values=st.lists(st.one_of(st.text(max_size=8), st.binary(max_size=8)), min_size=1, max_size=20))
def test_str_and_bytes_mix(values: list[str | bytes]) -> None:
    """A str is its UTF-8 bytes; of equal values the first given is kept; nothing else is accepted."""
    try:
        encoded = [value if isinstance(value, bytes) else value.encode() for value in values]
    except UnicodeEncodeError:
        with pytest.raises(trieauto.TrieautoError, match="lone surrogate"):
            trieauto.choices(values)
        return
    automaton = trieauto.choices(values)
    assert automaton.values is not None
    kept = [automaton.values[rank] for rank in range(len(automaton.values))]
    assert kept == [values[encoded.index(data)] for data in sorted(set(encoded))]
    assert automaton.num_states == len(CharTrie(encoded).nodes)
    for data in encoded:
        assert automaton.accepts(data)
        assert automaton.accepts(data + b"x") == (data + b"x" in encoded)
        assert automaton.accepts(data[:-1]) == (data[:-1] in encoded)


def test_any_iterable() -> None:
    class Colour(enum.StrEnum):
        RED = "red"

    def generator() -> Iterator[str]:
        yield "red"
        yield "blue"

    for values in (
        ["red", "blue"],
        ("red", "blue"),
        {"red", "blue"},
        {"red": 1, "blue": 2},
        generator(),
        [Colour.RED, "blue"],
    ):
        automaton = trieauto.choices(values)
        assert automaton.accepts("red")
        assert automaton.accepts(b"blue")
        assert not automaton.accepts("green")
        assert automaton.is_finite
    given_list = ["b", "a"]
    automaton = trieauto.choices(given_list)
    given_list.clear()
    assert automaton.values is not None
    assert [automaton.values[0], automaton.values[1]] == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([], trieauto.EmptyConstraintError, "empty"),
        (iter([]), trieauto.EmptyConstraintError, "empty"),
        ("single", trieauto.TrieautoError, "'single'"),
        (b"single", trieauto.TrieautoError, "single"),
        (["a", 7], trieauto.TrieautoError, "value 1 is 7, of type int"),
        ([None], trieauto.TrieautoError, "value 0 is None"),
        ([b"a", bytearray(b"b")], trieauto.TrieautoError, "bytearray"),
        (["fine", "bad \ud800"], trieauto.TrieautoError, r"value 1, 'bad \\ud800'"),
        (["é" * 5, "bad \udfff", "x"], trieauto.TrieautoError, "value 1"),
        ([b"a", "\ud800"], trieauto.TrieautoError, "value 1"),
        (5, trieauto.TrieautoError, "not 5"),
        (None, trieauto.TrieautoError, "not None"),
        (np.array("x"), trieauto.TrieautoError, "collection"),
    ],
)
def test_bad_sets(values: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        trieauto.choices(values)  # type: ignore[arg-type]


def test_strings_that_are_none() -> None:
    automaton = trieauto.choices(["a"])
    assert not automaton.accepts("\ud800")
    for wrong in (5, None):
        with pytest.raises(trieauto.TrieautoError, match=f"not {wrong}"):
            automaton.accepts(wrong)  # type: ignore[arg-type]


def test_more_threads_than_values() -> None:
    assert trieauto.choices(["b", "a"], threads=1_000_000).accepts("a")


def test_long_values_are_shortened_in_messages() -> None:
    with pytest.raises(trieauto.TrieautoError) as error:
        trieauto.choices(["x" * 1_000_000 + "\ud800"])
    assert len(str(error.value)) < 300


def _walk_to_the_end(constraint: trieauto.Constraint, number: int = 0) -> trieauto.Matcher:
    matcher = constraint.matcher()
    while not matcher.is_complete:
        allowed = matcher.allowed_token_ids()
        assert len(allowed) > 0
        assert matcher.accept_token(int(allowed[number % len(allowed)]))
        if matcher.is_terminated():
            break
    return matcher


HARD_SETS: dict[str, list[str]] = {
    "each a prefix of the next": ["x" * n for n in range(1, 1_001)],
    "one value of 1 MB": ["".join(random.Random(1).choices("abcdefgh ", k=1_000_000))],
    "one value of 70,000 bytes": ["é" * 35_000],
    "60 KB of spaces": [" " * 60_000],
    "all binary numerals of up to 15 digits": [f"{n:b}"[1:] for n in range(2, 2**16)],
    "with and without a space": ["Pizza", " Pizza"],
    "all single characters": [chr(c) for c in range(0x500)],
    "empty and NUL": ["", "\x00", "\x00\x00", "\n", '"', "\\"],
}


@cache
def _longest_first(value: str) -> list[int]:
    """A spelling of a value in Qwen's tokens, taking the longest that matches each time."""
    data, ranks, ids = value.encode(), qwen_ranks(), []
    position = 0
    while position < len(data):
        length = next(
            n for n in range(128, 0, -1) if data[position : position + n] in ranks and position + n <= len(data)
        )
        ids.append(ranks[data[position : position + length]])
        position += length
    return ids


@pytest.mark.parametrize("name", HARD_SETS)
@pytest.mark.parametrize("mode", ["eager", "lazy"])
def test_sets_that_hurt(name: str, mode: Literal["eager", "lazy"], qwen: trieauto.Vocabulary) -> None:
    values = HARD_SETS[name]
    automaton = trieauto.choices(values)
    if len(values[0]) < 2_000:
        assert automaton.num_states == len({v.encode()[:n] for v in values for n in range(len(v.encode()) + 1)})
        constraint = trieauto.compile(automaton, qwen, mode=mode)
        for number in (0, 1, 10**6 + 3):
            assert _walk_to_the_end(constraint, number).value in values
    constraint = trieauto.compile(automaton, qwen, mode=mode)
    for value in values if len(values) < 10 else random.Random(2).sample(values, 6):
        ids = _longest_first(value)
        matcher = constraint.matcher()
        assert matcher.accept_tokens(ids)
        assert matcher.is_accepting
        for count in {0, min(1, len(ids)), len(ids) // 2, len(ids)}:
            fork = matcher.fork()
            fork.rollback(len(ids) - count)
            done = b"".join(qwen.tokens[i] or b"" for i in ids[:count])
            rests = {v.encode()[len(done) :][:128] for v in values if v.encode().startswith(done)}
            legal = {
                t for rest in rests for n in range(1, len(rest) + 1) if (t := qwen_ranks().get(rest[:n])) is not None
            }
            stop = {151_643} if b"" in rests else set()
            assert set(fork.allowed_token_ids().tolist()) == legal | stop
        assert matcher.accept_token(151_643)
        assert matcher.value == value


def test_spaces_have_their_86_tokens(qwen: trieauto.Vocabulary) -> None:
    constraint = trieauto.compile(trieauto.choices([" " * 60_000]), qwen)
    spaces = [i for i, token in enumerate(qwen.tokens) if token is not None and not token.strip(b" ")]
    assert len(spaces) == 86
    assert constraint.matcher().allowed_token_ids().tolist() == spaces


def test_optional_space_before_values_that_differ_by_one(qwen: trieauto.Vocabulary) -> None:
    automaton = trieauto.choices(["Pizza", " Pizza"])
    with pytest.raises(trieauto.UnsupportedError, match="' Pizza'"):
        trieauto.compile(automaton, qwen, prefix_space="optional")
    matcher = trieauto.compile(automaton, qwen, prefix_space="required").matcher()
    assert matcher.jump_forward_string() == b" "
    assert matcher.accept_tokens([qwen.tokens.index(b" "), qwen.tokens.index(b" Pizza")])
    assert matcher.value == " Pizza"


def test_memory_of_a_large_set(qwen: trieauto.Vocabulary) -> None:
    """About six bytes a state, as documented."""
    values = [f"namespace{n % 37}.function_{n:06d}" for n in range(20_000)]
    automaton = trieauto.choices(values)
    assert automaton.nbytes <= 6 * automaton.num_states + 16 * len(values) + 64
    lazy = trieauto.compile(automaton, qwen, mode="lazy")
    eager = trieauto.compile(automaton, qwen, mode="eager")
    assert lazy.nbytes < eager.nbytes
    assert lazy.stats()["values"] == 20_000
    assert lazy.nbytes == lazy.stats()["bytes"] >= automaton.nbytes
