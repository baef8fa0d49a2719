"""The memory that budgets take while they are made, beside what is kept of them."""

from __future__ import annotations

import gc
from collections.abc import Callable

from measure import resident_bytes
from reach_automata import Large, QuotedText
from vocabularies import VOCABULARIES

import trieauto


def resident_for_budgets(large: Large, vocabulary: str, begin: Callable[[], None]) -> tuple[int, int]:
    """For a child: resident bytes kept, and at the peak, of automaton, constraint, distances and first budgeted mask.

    The edges, which are the caller's, and the vocabulary are there before.
    """
    byte_vocabulary = VOCABULARIES[vocabulary]()
    tokenizer = trieauto.Vocabulary.from_tokens(byte_vocabulary.tokens, stop_token_ids=[byte_vocabulary.stop_token_id])
    bitmask = trieauto.allocate_token_bitmask(1, tokenizer.size)

    def make(automaton: trieauto.Automaton | trieauto.TokenAutomaton) -> trieauto.Constraint:
        constraint = trieauto.compile(automaton, tokenizer)
        constraint.matcher(max_tokens=constraint.min_tokens).fill_next_token_bitmask(bitmask)
        return constraint

    make(QuotedText(1).automaton())
    assert len(large.edges) > 0
    gc.collect()
    before, _ = resident_bytes(reset_peak=True)
    begin()
    constraint = make(large.automaton())
    gc.collect()
    after, peak = resident_bytes()
    del constraint
    return after - before, peak - before
