"""Matchers parked along random walks, and whether engines agree there."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from peers import Engine, Form
from vocabularies import ByteVocabulary


def walks(values: Sequence[str], form: Form, vocabulary: ByteVocabulary, count: int, seed: int) -> list[list[int]]:
    """Tokens on the way to random values: each a random spelling, cut at a random place (whole ones among them)."""
    rng = random.Random(seed)
    result = []
    for _ in range(count):
        token_ids = vocabulary.random_tokens(form.spell(rng.choice(values)), rng)
        result.append(token_ids[: rng.randint(0, len(token_ids))])
    return result


def park(engine: Engine, compiled: Any, prefixes: Sequence[Sequence[int]]) -> list[Any]:
    """A matcher at the end of each walk."""
    matchers = []
    for prefix in prefixes:
        matcher = engine.matcher(compiled)
        for token_id in prefix:
            engine.accept(matcher, token_id)
        matchers.append(matcher)
    return matchers


def fill_each(engine: Engine, matchers: Sequence[Any]) -> Callable[[], None]:
    """Fills one row with the mask of each matcher in turn."""
    bitmask = engine.allocate(1)
    fills = [engine.fill(matcher, bitmask) for matcher in matchers]

    def fill_all() -> None:
        for fill in fills:
            fill()

    return fill_all


def content_masks(engine: Engine, matchers: Sequence[Any], vocabulary: ByteVocabulary) -> npt.NDArray[np.int32]:
    """The masks of these matchers without special tokens: int32[matchers, words]."""
    bits = np.zeros(32 * engine.num_words, np.uint8)
    bits[[i for i, token in enumerate(vocabulary.tokens) if token]] = 1
    content = np.packbits(bits, bitorder="little").view(np.int32)
    bitmask = engine.allocate(1)
    masks = np.empty((len(matchers), engine.num_words), np.int32)
    for row, matcher in enumerate(matchers):
        engine.fill(matcher, bitmask)()
        masks[row] = engine.rows(bitmask)[0] & content
    return masks


def disagreements(ours: tuple[Engine, list[Any]], peer: tuple[Engine, list[Any]], vocabulary: ByteVocabulary) -> int:
    """At how many of the same places two engines allow different content tokens, or differ about the end."""
    different = (content_masks(*ours, vocabulary) != content_masks(*peer, vocabulary)).any(axis=1)
    stops = [ours[0].may_stop(a) != peer[0].may_stop(b) for a, b in zip(ours[1], peer[1], strict=True)]
    return int((different | np.array(stops)).sum())
