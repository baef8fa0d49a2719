"""Canonical tokenization of strings one by one: the tokenizer encodes each, and their tokens make a trie."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..automaton import Automaton, PrefixSpace, SortedValues
from ..errors import EmptyConstraintError, TrieautoError, UnreachableValueError, UnsupportedError, shorten
from ..kernels.enumeration import count_strings, strings_of
from ..kernels.sequences import (
    ID_BYTES,
    JOINED,
    NO_TEXT,
    NOT_UTF8,
    SAME,
    SPACE_BEFORE,
    chosen_rows,
    relations,
    sortable_bytes,
)
from ..kernels.trie import build_trie_of_ids, edges_of_trie_of_ids
from ..packing import PackedStrings, as_bytes, pack, sort_packed
from ..sources.encoders import Encoder
from ..spelling import unreachable_error
from ..token_automata import TokenAutomaton
from ..vocabulary import Vocabulary

MOST_STRINGS = 200_000  # of a language that is no set
MOST_BYTES = 2**26  # of those together
_BATCH = 8_192  # texts; what a tokenizer makes of one takes about a kilobyte


class CanonicalTokens(NamedTuple):
    """A language in the tokens that the tokenizer itself writes.

    Attributes:
        automaton: the trie of its sequences, with the set's values, if it is a set.
        prefix_space: whether the tokenizer wrote a space before all of its strings, before some, or before none.
        unreachable: the strings that it never writes, in the order of their bytes.
    """

    automaton: TokenAutomaton
    prefix_space: PrefixSpace
    unreachable: list[str | bytes]


def canonical_tokens(
    automaton: Automaton, vocabulary: Vocabulary, left_context: str | None, *, error: bool, threads: int | None = None
) -> CanonicalTokens:
    """Encode all strings of a finite language with the vocabulary's tokenizer, and lay out the trie of their tokens.

    A string belongs to it if its tokens have exactly its bytes, perhaps after a space where the tokenizer puts one
    before the first word; and if, after ``left_context``, those of the context alone come first. O(encoding + tokens).

    Raises:
        UnsupportedError: the tokenizer is not known; a language of very many strings that is no set; two values for
            which the tokenizer writes the same.
        UnreachableValueError: strings that the tokenizer never writes, if ``error`` is true.
        EmptyConstraintError: it writes none.
    """
    given, places = _strings(automaton)
    written = Written([given[place] for place in places.tolist()], vocabulary, left_context)
    if len(written.rows) == 0:
        raise EmptyConstraintError(
            f"the tokenizer itself never writes what is allowed, not even {written.with_reason(written.missing[0])}"
        )
    if written.missing and error:
        raise written.unreachable()
    values = given if automaton.values is not None else None
    return laid_out(values, places[written.rows], *written.own(), written.has_space(), written.missing, threads)


class Written:
    """What a tokenizer writes for some strings, perhaps behind a left context.

    Attributes:
        strings: all of them.
        rows: int64[R], those that it writes at all.
        missing: the others, in the order of their bytes.
    """

    def __init__(self, strings: Sequence[str | bytes], vocabulary: Vocabulary, left_context: str | None) -> None:
        encoder = _encoder_of(vocabulary)
        self.strings = strings
        self._vocabulary = vocabulary
        try:
            context = encoder.since_boundary(left_context or "")
            context_ids = np.array(encoder.encode_batch([context])[0] if context else [], np.int32)
            texts, not_text = _as_texts(strings)
            self._ids, self._offsets = _encoded(encoder, context, texts)
        except TrieautoError:
            raise
        except Exception as failure:  # other people's code, which gets whatever text there is
            raise UnsupportedError(f"the tokenizer fails to encode the strings: {shorten(failure, 400)}") from failure
        self._num_context = len(context_ids)
        self._relation = relations_to(strings, self._ids, self._offsets, vocabulary, context_ids)
        self._relation[not_text] = NOT_UTF8
        is_written = (self._relation == SAME) | (self._relation == SPACE_BEFORE)
        self.rows = np.flatnonzero(is_written)
        self._unwritten = np.flatnonzero(~is_written).tolist()
        self.missing = sorted(map(strings.__getitem__, self._unwritten), key=as_bytes)

    def own(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The tokens of the rows, without those of the context."""
        return chosen_rows(self._ids, self._offsets, self.rows, self._num_context)  # type: ignore[no-any-return]

    def has_space(self) -> npt.NDArray[np.bool_]:
        """Whether a space was written before each of the rows."""
        return self._relation[self.rows] == SPACE_BEFORE  # type: ignore[no-any-return]

    def with_reason(self, value: str | bytes) -> str:
        """A missing one, and why it is."""
        row = next(row for row in self._unwritten if as_bytes(self.strings[row]) == as_bytes(value))
        own = self._ids[self._offsets[row] : self._offsets[row + 1]]
        return f"{shorten(value)} ({_reason(int(self._relation[row]), own, self._num_context, self._vocabulary)})"

    def unreachable(self) -> UnreachableValueError:
        """The error that names what is missing."""
        return unreachable_error(self.missing, len(self.strings), "the tokenizer itself never writes", self.with_reason)


def relations_to(
    strings: Sequence[str | bytes],
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    vocabulary: Vocabulary,
    context_ids: npt.NDArray[np.int32],
) -> npt.NDArray[np.uint8]:
    """What the tokens of each string, those of the context before it, have to do with its bytes: see ``relations``."""
    tables, packed = vocabulary.tables, pack(strings)
    return relations(  # type: ignore[no-any-return]
        ids, offsets, context_ids, tables.data, tables.offsets, packed.data, packed.offsets, vocabulary.prefix_space
    )


def laid_out(
    given: Sequence[str | bytes] | None,
    places: npt.NDArray[np.int32],
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    has_space: npt.NDArray[np.bool_],
    missing: list[str | bytes],
    threads: int | None,
) -> CanonicalTokens:
    """The trie of sequences of tokens.

    Args:
        given: a set's values; None for another language.
        places: where in ``given`` the string of each sequence is.
        has_space: whether each has a space before its string.

    Raises:
        UnsupportedError: two values have the same sequence.
    """
    (labels, subtree_ends, accepting, terminals), order = _trie_of_rows(ids, offsets, threads)
    values = None
    if given is not None:
        if len(terminals) < len(places):
            raise _ambiguous(given, places, ids, offsets)
        values = SortedValues(given, places[order], terminals, subtree_ends)
    tokens, links, targets = edges_of_trie_of_ids(labels, subtree_ends)
    return CanonicalTokens(
        TokenAutomaton(tokens, links, targets, accepting, 0, values=values),
        "required" if has_space.all() else "optional" if has_space.any() else "none",
        missing,
    )


def is_encoded(automaton: Automaton, vocabulary: Vocabulary) -> bool:
    """Whether all strings of a language are encoded: of a set, or if there are few.

    Raises:
        UnsupportedError: the vocabulary does not know its tokenizer.
    """
    _encoder_of(vocabulary)
    if automaton.values is not None:
        return True
    if not automaton.is_finite:
        return False
    language = *automaton.arrays, automaton.accepting, automaton.start
    return bool(count_strings(*language, MOST_STRINGS, MOST_BYTES)[0] >= 0)


def _encoder_of(vocabulary: Vocabulary) -> Encoder:
    if vocabulary.encoder is None:
        raise UnsupportedError(
            f"tokenization='canonical' asks the tokenizer, but {vocabulary!r} was made of tokens alone: make it with "
            "Vocabulary.from_tokenizer or Vocabulary.from_file"
        )
    return vocabulary.encoder


def _strings(automaton: Automaton) -> tuple[Sequence[str | bytes], npt.NDArray[np.int32]]:
    """The strings of a finite language, and where among them its distinct ones are."""
    if automaton.values is not None:
        return automaton.values.given, automaton.values.order
    language = *automaton.arrays, automaton.accepting, automaton.start
    count, num_bytes = count_strings(*language, MOST_STRINGS, MOST_BYTES)
    data, offsets = strings_of(*language, count, num_bytes)
    joined, bounds = data.tobytes(), offsets.tolist()
    strings: list[str | bytes] = []
    for begin, end in pairwise(bounds):
        try:
            strings.append(joined[begin:end].decode())
        except UnicodeDecodeError:
            strings.append(joined[begin:end])
    return strings, np.arange(count, dtype=np.int32)


def _as_texts(strings: Sequence[str | bytes]) -> tuple[list[str], list[int]]:
    """The strings as text, and which of them are none (they become empty)."""
    texts: list[str] = []
    not_text: list[int] = []
    for i, string in enumerate(strings):
        if isinstance(string, str):
            texts.append(string if type(string) is str else str.__str__(string))  # libraries look at the type
            continue
        try:
            texts.append(string.decode())
        except UnicodeDecodeError:
            not_text.append(i)
            texts.append("")
    return texts, not_text


def _encoded(
    encoder: Encoder, context: str, texts: Sequence[str]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The tokens of each text after the context, those of the context included."""
    parts: list[npt.NDArray[np.int32]] = []
    offsets = np.zeros(len(texts) + 1, np.int64)
    for begin in range(0, len(texts), _BATCH):
        batch = texts[begin : begin + _BATCH]
        rows = encoder.encode_batch([context + text for text in batch] if context else batch)
        offsets[begin + 1 : begin + 1 + len(batch)] = np.fromiter(map(len, rows), np.int64, len(batch))
        parts.append(np.fromiter(chain.from_iterable(rows), np.int32))
    np.cumsum(offsets, out=offsets)
    return np.concatenate(parts), offsets


_Trie = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.int32]]


def _trie_of_rows(
    ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], threads: int | None
) -> tuple[_Trie, npt.NDArray[np.int32]]:
    """The trie of sequences (see ``kernels.trie``), and the order of the distinct ones."""
    order, shared = sort_packed(PackedStrings(sortable_bytes(ids), ID_BYTES * offsets), threads)
    if (shared < 0).any():
        order, shared = order[shared >= 0], shared[shared >= 0]
    return build_trie_of_ids(ids, offsets, order, shared // ID_BYTES), order


def _ambiguous(
    given: Sequence[str | bytes],
    places: npt.NDArray[np.int32],
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
) -> UnsupportedError:
    """One of them begins with the space that the tokenizer puts before the other."""
    first: dict[bytes, int] = {}
    for row, place in enumerate(places.tolist()):
        one = first.setdefault(ids[offsets[row] : offsets[row + 1]].tobytes(), place)
        if one != place:
            return UnsupportedError(
                f"the tokenizer writes {shorten(given[one])} and {shorten(given[place])} in the same tokens: a set for "
                "tokenization='canonical' can hold only one of them"
            )
    raise AssertionError("some sequences were equal")


def _reason(relation: int, ids: npt.NDArray[np.int32], num_context: int, vocabulary: Vocabulary) -> str:
    """Why the tokenizer never writes a string, whose tokens these are, those of the context included."""
    if relation == NOT_UTF8:
        return "it is no UTF-8"
    if relation == JOINED:
        return "its beginning and the end of the left context become one token, or change each other's"
    spelled = [vocabulary.tokens[token_id] if token_id < len(vocabulary.tokens) else None for token_id in ids]
    if relation == NO_TEXT:
        without = next(int(i) for i, text in zip(ids[num_context:], spelled[num_context:], strict=True) if not text)
        return f"it takes it for token {without:,}, which is special, unknown or a stop token"
    return f"it writes {shorten(b''.join(text or b'' for text in spelled[num_context:]).decode(errors='replace'))}"
