"""Matchers parked along random walks: where masks are measured, and where engines must agree."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from measure import clock_overhead
from peers import Engine, Form
from vocabularies import ByteVocabulary

Walk = list[int]


def random_walks(
    values: Sequence[str], form: Form, vocabulary: ByteVocabulary, count: int, seed: int = 1
) -> list[Walk]:
    """Token ids of random values, each randomly spelled."""
    rng = random.Random(seed)
    return [vocabulary.random_tokens(form.spell(rng.choice(values)), rng) for _ in range(count)]


class WalkTimer:
    """Times each mask on the way along walks, with one matcher."""

    def __init__(self, engine: Engine, compiled: Any, walks: Sequence[Walk]) -> None:
        self.engine = engine
        self.walks = walks
        self.matcher = engine.matcher(compiled)
        self.fill = engine.fill(self.matcher, engine.allocate(1))
        self.overhead = clock_overhead()

    def __call__(self) -> float:
        """Seconds of one mask, on average over all places of all walks."""
        engine, matcher, fill, clock = self.engine, self.matcher, self.fill, time.perf_counter
        total, count = 0.0, 0
        for walk in self.walks:
            engine.reset(matcher)
            begin = clock()
            fill()
            total += clock() - begin
            for token_id in walk:
                engine.accept(matcher, token_id)
                begin = clock()
                fill()
                total += clock() - begin
            count += len(walk) + 1
        return total / count - self.overhead


class Parked:
    """One matcher of an engine at a random place of each walk, before the first token and after the last included.

    Some engines keep the last mask of a matcher and hand it out again while nothing is accepted. While decoding that
    never happens, so ``step`` has every matcher take a token (back and forth) between two measurements.
    """

    def __init__(self, engine: Engine, compiled: Sequence[Any], walks: Sequence[Walk]) -> None:
        """``compiled`` is what the matcher of each walk is made from."""
        rng = random.Random(1)
        self.engine = engine
        self.walks = walks
        self.lengths = [rng.randint(0, len(walk)) for walk in walks]
        self.matchers = [engine.matcher(one) for one in compiled]
        for matcher, walk, length in zip(self.matchers, walks, self.lengths, strict=True):
            for token_id in walk[:length]:
                engine.accept(matcher, token_id)

    def step(self) -> None:
        """Accept one token with every matcher, and be back where it was."""
        accept, rollback = self.engine.accept, self.engine.rollback
        for matcher, walk, length in zip(self.matchers, self.walks, self.lengths, strict=True):
            if length:
                rollback(matcher)
                accept(matcher, walk[length - 1])
            elif walk:
                accept(matcher, walk[0])
                rollback(matcher)

    def batch_timer(self, size: int, threads: Any) -> Callable[[], float]:
        """Seconds of one call that fills ``size`` rows, on average over all groups of so many matchers."""
        bitmask = self.engine.allocate(size)
        groups = [self.matchers[begin : begin + size] for begin in range(0, len(self.matchers), size)]
        fills = [self.engine.batch_fill(group, bitmask, threads) for group in groups]

        def run() -> float:
            self.step()
            begin = time.perf_counter()
            for fill in fills:
                fill()
            return (time.perf_counter() - begin) / len(fills)

        return run

    def content_masks(self, vocabulary: ByteVocabulary) -> npt.NDArray[np.int32]:
        """The masks without special tokens: int32[matchers, words]."""
        content = self._content(vocabulary)
        bitmask = self.engine.allocate(1)
        masks = np.empty((len(self.matchers), self.engine.num_words), np.int32)
        for row, matcher in enumerate(self.matchers):
            self.engine.fill(matcher, bitmask)()
            masks[row] = self.engine.rows(bitmask)[0] & content
        return masks

    def batch_content_masks(self, vocabulary: ByteVocabulary, size: int, threads: Any) -> npt.NDArray[np.int32]:
        """The same masks by calls that fill ``size`` rows each."""
        content, bitmask = self._content(vocabulary), self.engine.allocate(size)
        masks = []
        for begin in range(0, len(self.matchers), size):
            self.engine.batch_fill(self.matchers[begin : begin + size], bitmask, threads)()
            masks.append(self.engine.rows(bitmask) & content)
        return np.concatenate(masks)

    def _content(self, vocabulary: ByteVocabulary) -> npt.NDArray[np.int32]:
        """The bits of the tokens that have bytes: int32[words]."""
        bits = np.zeros(32 * self.engine.num_words, np.uint8)
        bits[[i for i, token in enumerate(vocabulary.tokens) if token]] = 1
        return np.packbits(bits, bitorder="little").view(np.int32)

    def disagreements(self, other: Parked, vocabulary: ByteVocabulary) -> int:
        """At how many of the same places two engines allow different content tokens, or differ about the end."""
        different = (self.content_masks(vocabulary) != other.content_masks(vocabulary)).any(axis=1)
        ends = [[parked.engine.may_stop(matcher) for matcher in parked.matchers] for parked in (self, other)]
        return int((different | (np.array(ends[0]) != np.array(ends[1]))).sum())


def disagreements(
    engines: Mapping[str, Engine], compiled: Mapping[str, Any], walks: Sequence[Walk], vocabulary: ByteVocabulary
) -> dict[str, int]:
    """At how many of the same places (one for each walk) each other engine's masks are not those of the first.

    Engines whose language is known to be another are left out.
    """
    parked = {
        name: Parked(engines[name], [made] * len(walks), walks)
        for name, made in compiled.items()
        if engines[name].is_oracle
    }
    first, *others = parked
    return {name: parked[first].disagreements(parked[name], vocabulary) for name in others}
