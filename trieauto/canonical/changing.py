"""A set in the tokenizer's own tokens that gains and loses values: only those that it gains are encoded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import EmptyConstraintError, TrieautoError, not_in_set
from ..kernels.sequences import SPACE_BEFORE, chosen_rows
from ..packing import as_bytes
from ..token_automata import TokenAutomaton
from ..vocabulary import Vocabulary
from .strings import CanonicalTokens, Written, laid_out, relations_to


def changed(
    automaton: TokenAutomaton,
    vocabulary: Vocabulary,
    left_context: str | None,
    missing: Sequence[str | bytes],
    added: Sequence[str | bytes],
    removed: Sequence[str | bytes],
    *,
    error: bool,
) -> CanonicalTokens:
    """The set with some values more and some fewer. A microsecond a value of the set, and encoding those added.

    Args:
        missing: values of the set that the tokenizer never writes.
        added, removed: different values each, and no value in both. Of the added ones those that are there stay.

    Raises:
        TrieautoError: a value to remove that is not in the set.
        EmptyConstraintError: nothing would be left.
        UnreachableValueError: an added value that the tokenizer never writes, if ``error`` is true.
        UnsupportedError: as of ``canonical_tokens``.
    """
    values = automaton.values
    assert values is not None
    data = list(map(as_bytes, values.given))
    # Of a part of a set (``restricted_to``) it still has all values in ``given``.
    there = {data[place] for place in values.order.tolist()} | set(map(as_bytes, missing))
    strangers = [value for value in removed if as_bytes(value) not in there]
    if strangers:
        raise TrieautoError(f"remove: {not_in_set(strangers[0], len(strangers) - 1)}")
    gone = set(map(as_bytes, removed))
    is_left = np.array([value in there and value not in gone for value in data], bool)
    given = [value for value, stays in zip(values.given, is_left.tolist(), strict=True) if stays]
    strings = [value for value in added if as_bytes(value) not in there]
    new = Written(strings, vocabulary, left_context) if strings else None  # a tokenizer is needed for new ones alone
    if new is not None and new.missing and error:
        raise new.unreachable()
    rows = np.flatnonzero(is_left[values.order])
    if len(given) + len(strings) == 0:
        raise EmptyConstraintError("no value would be left: there would be nothing to choose from")
    if len(rows) == 0 and (new is None or len(new.rows) == 0):
        raise EmptyConstraintError("the tokenizer itself never writes any of the values that would be left")
    ids, offsets = chosen_rows(*_sequences(automaton), rows, 0)
    places = (np.cumsum(is_left, dtype=np.int32) - 1)[values.order[rows]]
    has_space = np.zeros(len(rows), bool)
    if vocabulary.prefix_space:
        relation = relations_to([given[k] for k in places.tolist()], ids, offsets, vocabulary, np.zeros(0, np.int32))
        has_space = relation == SPACE_BEFORE
    left_missing = [value for value in missing if as_bytes(value) not in gone]
    if new is not None:
        new_ids, new_offsets = new.own()
        places = np.concatenate([places, (len(given) + new.rows).astype(np.int32)])
        ids, offsets = np.concatenate([ids, new_ids]), np.concatenate([offsets, offsets[-1] + new_offsets[1:]])
        has_space = np.concatenate([has_space, new.has_space()])
        left_missing = sorted([*left_missing, *new.missing], key=as_bytes)
    return laid_out([*given, *strings], places, ids, offsets, has_space, left_missing, None)


def _sequences(automaton: TokenAutomaton) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The tokens of each value, in the order of ``values``: read from their ends up to the root of the trie."""
    values = automaton.values
    assert values is not None
    parents = np.zeros(automaton.num_states, np.int32)
    parents[automaton.targets] = np.repeat(np.arange(automaton.num_states, dtype=np.int32), np.diff(automaton.links))
    tokens = np.empty(automaton.num_states, np.int32)
    tokens[automaton.targets] = automaton.tokens
    lengths = np.zeros(len(values), np.int64)
    rows, at = np.arange(len(values)), values.terminals
    while len(rows := rows[at != 0]):
        at = at[at != 0]
        lengths[rows] += 1
        at = parents[at]
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    ids = np.empty(offsets[-1], np.int32)
    rows, at, positions = np.arange(len(values)), values.terminals, offsets[1:].copy()
    while len(rows := rows[at != 0]):
        at = at[at != 0]
        positions[rows] -= 1
        ids[positions[rows]] = tokens[at]
        at = parents[at]
    return ids, offsets
