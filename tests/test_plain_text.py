"""Tokens of plain text are known to be legal where any text may follow; masks are what they would be without that."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto.kernels.scan import scan_tokens
from trieauto.plain_text import PlainText

from .tokenizers_for_tests import qwen_huggingface, smollm2

FREE = {
    "a JSON string": trieauto.json_schema({"type": "string"}),
    "a string in an object": trieauto.json_schema({"type": "object", "properties": {"a": {"type": "string"}}}),
    "no quotes": trieauto.regex(r'"[^"]*"'),
    "no quotes, one after the other": trieauto.regex(r'[^"]*("[^"]*")+'),
    "anything": trieauto.regex(r"(?s:.*)"),
    "a line": trieauto.regex(r".*"),
    "U+007F left out": trieauto.regex(r'[^"\\\x00-\x1f\x7f]*"'),
    "words": trieauto.regex(r"(\w+ )*"),
    "a bounded string": trieauto.json_schema({"type": "string", "maxLength": 3}),
    "any bytes": trieauto.regex(rb"(?s:.*)"),
    "two strings apart": trieauto.regex(r'[^"]*"[^"\\]*'),
}
PIECES = [
    *("a", "b c", "1", '"', "\\", "\\n", "\n", "\x7f", "é", "€", "😀", '",', "ab", '"}'),
    *(b"\xc3", b"\xa9", b"\xe2\x82", b"\xac", b"\xf0\x9f", b"\x98\x80", b"\xff", b"\xed\xa0\x80"),
]
tokens = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map(
    lambda pieces: b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
)


@given(
    name=st.sampled_from(sorted(FREE)),
    more=st.lists(tokens, max_size=30),
    budget=st.none() | st.integers(2, 12),
    choices=st.lists(st.integers(0, 10**6), max_size=6),
)
def test_masks_are_the_same(name: str, more: list[bytes], budget: int | None, choices: list[int]) -> None:
    vocabulary = trieauto.Vocabulary.from_tokens(
        [*(bytes([byte]) for byte in range(256)), *more, None], stop_token_ids=[256 + len(more)]
    )
    fast = trieauto.compile(FREE[name], vocabulary).matcher(budget)
    slow = trieauto.compile(FREE[name], vocabulary).matcher(budget)
    for choice in [*choices, 0]:
        allowed = fast.allowed_token_ids()
        with mock.patch.object(PlainText, "images", return_value=None):
            assert (allowed == slow.allowed_token_ids()).all()
        if len(allowed) == 0 or fast.is_terminated():
            break
        token = int(allowed[choice % len(allowed)])
        assert fast.accept_token(token)
        assert slow.accept_token(token)


@pytest.mark.parametrize("load", [qwen_huggingface, smollm2])
@pytest.mark.parametrize("name", ["a JSON string", "no quotes", "anything", "U+007F left out"])
def test_it_is_used_and_right_with_real_vocabularies(name: str, load: object) -> None:
    vocabulary = trieauto.Vocabulary.from_tokenizer(load())  # type: ignore[operator]
    tables = vocabulary.tables
    constraint = trieauto.compile(FREE[name], vocabulary)
    automaton = constraint.automaton
    assert isinstance(automaton, trieauto.Automaton)
    distances = constraint.distances().copy()
    used = 0
    for state in range(automaton.num_states):
        legal = constraint._legal_tokens(state)
        tokens, ends = scan_tokens(
            *automaton.arrays, distances, *tables.preorder, tables.token_ids, tables.max_token_length, state
        )
        assert (np.sort(legal.ids()) == np.sort(tokens)).all()
        assert legal.farthest(distances) == distances[ends].max(initial=-1)
        for most in range(4):
            bits = legal.bits(vocabulary.size, distances, most)
            assert (np.flatnonzero(bits) == np.sort(tokens[distances[ends] <= most])).all()
        used += legal.plain_text is not None
    assert used > 0


def test_vocabularies_are_prepared_on_demand() -> None:
    vocabulary = trieauto.Vocabulary.from_tokens([b"a", b'"', b"\xff", None], stop_token_ids=[3])
    assert vocabulary.prepare() is vocabulary
    assert {"plain_text", "preorder", "heights"} <= vars(vocabulary.tables).keys()
    assert trieauto.compile(trieauto.choices(["aa"]), vocabulary).min_tokens == 2
