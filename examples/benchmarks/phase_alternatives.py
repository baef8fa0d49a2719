"""Appendix H.10: other ways that one might think of. Filtering the vocabulary beforehand, keeping what depends on the
tokenizer, a hash set of the values."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from context import NUM_WALKS, Context
from measure import Timing, clocked, in_turns
from ours import Trieauto
from peers import XGrammar
from preparation import cache_directory, forget_tables
from token_tries import canonical_walks
from vocabularies import VOCABULARIES, ByteVocabulary

from trieauto.demo_sets import tool_names

LONGEST = 20  # bytes of a substring, as in the paper


@dataclass(frozen=True)
class Filtered:
    """Only the tokens that are within some value.

    Attributes:
        kept: tokens.
        seconds: of finding them, in Python.
        compiling, compiling_filtered: XGrammar's, to the first mask, with all tokens and with those alone.
    """

    count: int
    kept: int
    seconds: float
    compiling: Timing
    compiling_filtered: Timing


def filtered(context: Context, count: int, seconds: float) -> Filtered:
    """XGrammar is given a tokenizer in which the other tokens have no bytes."""
    vocabulary = VOCABULARIES["qwen"]()
    values = tool_names(count)
    begin = time.perf_counter()
    kept = within(values, vocabulary)
    spent = time.perf_counter() - begin
    members = set(kept)
    few = ByteVocabulary(
        "filtered", [t if i in members else None for i, t in enumerate(vocabulary.tokens)], vocabulary.stop_token_id
    )
    whole, reduced = context.engine("XGrammar"), XGrammar(few)
    source = whole.forms[0].source(values)
    timings = in_turns(
        {
            name: clocked(engine.first_mask, engine.forms[0], source, engine.allocate(1))
            for name, engine in (("whole", whole), ("reduced", reduced))
        },
        seconds=seconds,
        rounds=9,
    )
    return Filtered(count, len(kept), spent, timings["whole"], timings["reduced"])


def within(values: Sequence[str], vocabulary: ByteVocabulary) -> list[int]:
    """The ids of all tokens that are a substring of some value, of up to 20 bytes."""
    ids = vocabulary.ids
    substrings = {
        data[begin:end]
        for data in (value.encode() for value in values)
        for begin in range(len(data))
        for end in range(begin + 1, min(len(data), begin + LONGEST) + 1)
    }
    return sorted(token_id for text in substrings & ids.keys() for token_id in ids[text])


def caches(context: Context, count: int, seconds: float) -> dict[str, Timing]:
    """To the first mask with nothing known, and with what depends on the tokenizer kept."""
    vocabulary, values = VOCABULARIES["qwen"](), tool_names(count)
    ours, xgrammar = context.engine("trieauto"), context.engine("XGrammar")
    source = xgrammar.forms[0].source(values)

    def from_nothing(engine: Callable[[ByteVocabulary], Any], given: Any) -> float:
        begin = time.perf_counter()
        made = engine(vocabulary)
        made.first_mask(made.forms[0], given, made.allocate(1))
        return time.perf_counter() - begin

    def ours_from_nothing() -> float:
        forget_tables()
        with tempfile.TemporaryDirectory() as empty, cache_directory(empty):
            return from_nothing(Trieauto, values)

    def ours_from_disk() -> float:
        forget_tables()
        return from_nothing(Trieauto, values)

    return in_turns(
        {
            "trieauto, cold": ours_from_nothing,
            "trieauto, tokenizer on disk": ours_from_disk,
            "trieauto, warm": clocked(ours.first_mask, ours.forms[0], values, ours.allocate(1)),
            "XGrammar, cold": lambda: from_nothing(XGrammar, source),
            "XGrammar, warm": clocked(xgrammar.first_mask, xgrammar.forms[0], source, xgrammar.allocate(1)),
        },
        seconds=seconds,
        rounds=7,
    )


class HashSet:
    """The values, and the tokens by their bytes; everything else is done at each step."""

    def __init__(self, values: Sequence[str], vocabulary: ByteVocabulary) -> None:
        self._values = {value.encode() for value in values}
        self._ids = vocabulary.ids
        self._longest = max(map(len, self._ids))

    def allowed(self, prefix: bytes) -> set[int]:
        """The tokens with bytes after which some value can still be written. O(K times the longest token)."""
        begin = len(prefix)
        found: set[int] = set()
        for value in self._values:
            if value.startswith(prefix):
                for end in range(begin + 1, min(len(value), begin + self._longest) + 1):
                    found.update(self._ids.get(value[begin:end], ()))
        return found


@dataclass(frozen=True)
class Matching:
    """Seconds of a step with a hash set, along values as the tokenizer writes them, and of ours.

    Attributes:
        places: where the tokens were compared; ``different``: at how many they are not ours.
    """

    count: int
    seconds: float
    at_start: float
    ours: float
    places: int
    different: int


def hash_set(context: Context, count: int) -> Matching:
    """Once along some values, in Python."""
    values, vocabulary = tool_names(count), VOCABULARIES["qwen"]()
    engine = context.engine("trieauto")
    compiled = engine.compile(engine.forms[0], values)
    plain = HashSet(values, vocabulary)
    row = engine.allocate(1)
    is_content = np.array([bool(token) for token in vocabulary.tokens])
    spent, own, different = [], [], 0
    at_start = min(clocked(plain.allowed, b"")() for _ in range(3))
    for walk in canonical_walks(values, NUM_WALKS // 8):
        matcher = engine.matcher(compiled)
        fill = engine.fill(matcher, row)
        prefix = b""
        for token_id in [*walk, None]:
            begin = time.perf_counter()
            allowed = plain.allowed(prefix)
            middle = time.perf_counter()
            fill()
            own.append(time.perf_counter() - middle)
            spent.append(middle - begin)
            bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: vocabulary.size]
            different += set(np.flatnonzero(bits & is_content).tolist()) != allowed
            if token_id is not None:
                prefix += vocabulary.tokens[token_id] or b""
                engine.accept(matcher, token_id)
    return Matching(count, float(np.mean(spent)), at_start, float(np.median(own)), len(spent), different)
