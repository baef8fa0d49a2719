"""Whether all engines have the same language: on the answers, and in every mask along them and along random walks."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from mixed_documents import Document
from mixed_engines import OURS, MixedEngine
from vocabularies import ByteVocabulary

MAX_STEPS = 60


class Disagreement(Exception):  # noqa: N818 (says what it is)
    """Two engines differ, so their times must not be compared."""


def check_agreement(
    engines: Mapping[str, MixedEngine],
    compiled: Mapping[str, Any],
    documents: Sequence[Document],
    vocabulary: ByteVocabulary,
    *,
    num_walks: int,
    plain_strings: bool,
) -> int:
    """Compare all engines with ours; how many masks were compared.

    Raises:
        Disagreement: which engine, after what text, and on which tokens.
    """
    oracles = [name for name in compiled if name != OURS and engines[name].is_oracle]
    matchers = {name: engines[name].matcher(one) for name, one in compiled.items()}
    compared = _Compared(vocabulary, plain_strings=plain_strings)
    for document in documents:
        text = b""
        _start(engines, matchers)
        for token_id in document.token_ids:
            compared.masks(engines, matchers, oracles, text)
            _accept(engines, matchers, token_id, text)
            text += vocabulary.tokens[token_id] or b""
        compared.masks(engines, matchers, oracles, text)
        for name, matcher in matchers.items():
            if not engines[name].may_stop(matcher):
                raise Disagreement(f"{name} does not end after {document.text!r}")
    rng = random.Random(0)
    walkers = {name: matchers[name] for name in [OURS, *oracles]}
    for _ in range(num_walks):
        text = b""
        _start(engines, walkers)
        for _ in range(MAX_STEPS):
            legal = compared.masks(engines, walkers, oracles, text)
            if len(legal) == 0:
                break
            token_id = int(rng.choice(legal))
            _accept(engines, walkers, token_id, text)
            text += vocabulary.tokens[token_id] or b""
    return compared.count


def _start(engines: Mapping[str, MixedEngine], matchers: Mapping[str, Any]) -> None:
    for name, matcher in matchers.items():
        engines[name].reset(matcher)


def _accept(engines: Mapping[str, MixedEngine], matchers: Mapping[str, Any], token_id: int, text: bytes) -> None:
    for name, matcher in matchers.items():
        try:
            engines[name].accept(matcher, token_id)
        except RuntimeError as error:
            raise Disagreement(f"after {text!r} {error}") from None


class _Compared:
    """Counts the masks that were compared."""

    def __init__(self, vocabulary: ByteVocabulary, *, plain_strings: bool) -> None:
        self._vocabulary = vocabulary
        unlike = (b"\\", b"\x7f") if plain_strings else ()
        self._is_compared = np.array(
            [bool(token) and not any(text in (token or b"") for text in unlike) for token in vocabulary.tokens]
        )
        self.count = 0

    def masks(
        self, engines: Mapping[str, MixedEngine], matchers: Mapping[str, Any], oracles: Sequence[str], text: bytes
    ) -> npt.NDArray[np.int64]:
        """Compare them where ``text`` led; the token ids that are legal."""
        ours = self._legal(engines[OURS], matchers[OURS])
        ends = engines[OURS].may_stop(matchers[OURS])
        for name in oracles:
            theirs = self._legal(engines[name], matchers[name])
            self.count += 1
            if not np.array_equal(ours, theirs):
                only = [[self._vocabulary.tokens[i] for i in np.setdiff1d(*pair)[:5]] for pair in
                        ((ours, theirs), (theirs, ours))]  # fmt: skip
                raise Disagreement(f"after {text!r} only {OURS} allows {only[0]}, only {name} allows {only[1]}")
            if engines[name].may_stop(matchers[name]) != ends:
                raise Disagreement(f"{OURS} and {name} differ about the end after {text!r}")
        return ours

    def _legal(self, engine: MixedEngine, matcher: Any) -> npt.NDArray[np.int64]:
        bitmask = engine.allocate(1)
        engine.fill(matcher, bitmask)()
        bits = np.unpackbits(engine.rows(bitmask)[0].view(np.uint8), bitorder="little")
        return np.flatnonzero(bits[: self._vocabulary.size].astype(bool) & self._is_compared)
