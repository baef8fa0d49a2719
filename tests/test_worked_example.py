"""The trie paper's worked example (appendix G.1) and its prefix case (section 4.2), as full tables."""

from __future__ import annotations

from typing import Literal

import pytest

import trieauto

TOKENS: list[bytes | None] = [b"medical", b"_bill", b"_cod", b"_rec", b"ing", b"ords", None]
STOP = 6
VALUES = ["medical_billing", "medical_coding", "medical_records"]

every_method = pytest.mark.parametrize(
    ("mode", "method"), [("eager", "walk"), ("eager", "aho_corasick"), ("lazy", "walk")]
)


def table(constraint: trieauto.Constraint) -> dict[bytes, list[int]]:
    """The legal ids of every state of a set's trie, by the bytes that lead there."""
    automaton = constraint.automaton
    prefixes = [b""]
    for state in range(1, automaton.num_states):
        parent = max(s for s in range(state) if automaton.links[s] > state)
        prefixes.append(prefixes[parent] + bytes([automaton.labels[state]]))
    masks = {}
    for state, prefix in enumerate(prefixes):
        tokens = sorted(constraint.content_tokens(state).tolist())
        masks[prefix] = tokens + [STOP] * int(automaton.accepting[state])
    return masks


@every_method
def test_the_full_table(mode: Literal["eager", "lazy"], method: Literal["walk", "aho_corasick"]) -> None:
    automaton = trieauto.choices(VALUES)
    assert sum(map(len, VALUES)) == 44
    assert automaton.num_states == 29
    vocabulary = trieauto.Vocabulary.from_tokens(TOKENS, stop_token_ids=[STOP])
    masks = table(trieauto.compile(automaton, vocabulary, mode=mode, method=method))
    expected: dict[bytes, list[int]] = {prefix: [] for prefix in masks}
    expected |= {
        b"": [0],
        b"medical": [1, 2, 3],
        b"medical_bill": [4],
        b"medical_cod": [4],  # left out in the paper's list
        b"medical_rec": [5],
        b"medical_billing": [STOP],
        b"medical_coding": [STOP],
        b"medical_records": [STOP],
    }
    assert masks == expected


@every_method
def test_a_value_that_is_a_prefix_of_another(
    mode: Literal["eager", "lazy"], method: Literal["walk", "aho_corasick"]
) -> None:
    """``get`` may stop or go on to ``get_user``; a token that overshoots a leaf is never legal."""
    tokens: list[bytes | None] = [b"get", b"_user", b"get_user", b"_users", b"get_", b"user", None]
    vocabulary = trieauto.Vocabulary.from_tokens(tokens, stop_token_ids=[6])
    constraint = trieauto.compile(trieauto.choices(["get", "get_user"]), vocabulary, mode=mode, method=method)
    masks = {prefix: ids for prefix, ids in table(constraint).items() if ids}
    assert masks == {b"": [0, 2, 4], b"get": [1, 6], b"get_": [5], b"get_user": [6]}
    matcher = constraint.matcher()
    assert matcher.value is None
    assert matcher.accept_token(0)
    assert matcher.is_accepting
    assert not matcher.is_complete
    assert matcher.value is None
    assert matcher.jump_forward_string() == b""
    shorter = matcher.fork()
    assert shorter.accept_token(6)
    assert shorter.value == "get"
    assert matcher.accept_token(1)
    assert matcher.is_complete
    assert matcher.value == "get_user"
