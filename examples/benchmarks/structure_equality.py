"""Proposition 1, looked at on many samples: the masks of several engines along the same ways."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from peers import Engine
from vocabularies import ByteVocabulary


@dataclass
class Agreement:
    """How two engines did along the same samples.

    Attributes:
        places: where masks were compared.
        masks: at how many of them some token with bytes is legal in one alone.
        ends: at how many only one would let the answer end.
        special: at how many the rest of the row differs: the stop token's bit, and other special tokens'.
        outputs: samples that one of the two refuses.
    """

    places: int = 0
    masks: int = 0
    ends: int = 0
    special: int = 0
    outputs: int = 0


def agreement(
    engines: Sequence[Engine], compiled: Sequence[Any], vocabulary: ByteVocabulary, samples: int, seed: int = 0
) -> dict[str, Agreement]:
    """Walk with all engines at once, choosing among the first one's legal tokens at random, to the end.

    This is greedy decoding with a model whose scores are random. By the name of each engine but the first.
    """
    rng = random.Random(seed)
    matchers = [engine.matcher(made) for engine, made in zip(engines, compiled, strict=True)]
    rows = [engine.allocate(1) for engine in engines]
    fills = [engine.fill(matcher, row) for engine, matcher, row in zip(engines, matchers, rows, strict=True)]
    content = np.zeros(32 * engines[0].num_words, np.uint8)
    content[[token_id for token_id, token in enumerate(vocabulary.tokens) if token]] = 1
    is_content = np.packbits(content, bitorder="little").view(np.int32)
    found = {engine.name: Agreement() for engine in engines[1:]}
    for _ in range(samples):
        for engine, matcher in zip(engines, matchers, strict=True):
            engine.reset(matcher)
        refused: set[str] = set()
        while True:
            for fill in fills:
                fill()
            words = [engine.rows(row)[0] for engine, row in zip(engines, rows, strict=True)]
            ends = [engine.may_stop(matcher) for engine, matcher in zip(engines, matchers, strict=True)]
            for index, engine in enumerate(engines[1:], 1):
                own = found[engine.name]
                differing = words[index] ^ words[0]
                own.places += 1
                own.masks += bool((differing & is_content).any())
                own.special += bool((differing & ~is_content).any())
                own.ends += ends[index] != ends[0]
            legal = np.flatnonzero(np.unpackbits((words[0] & is_content).view(np.uint8), bitorder="little")).tolist()
            choices = [*legal, *([None] if ends[0] else [])]
            token_id = rng.choice(choices)
            if token_id is None:
                break
            for engine, matcher in zip(engines, matchers, strict=True):
                try:
                    engine.accept(matcher, token_id)
                except RuntimeError:
                    refused.add(engine.name)
            if refused:
                break
        for name in refused:
            found[name].outputs += 1
    return found
