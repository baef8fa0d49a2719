"""From the tokens' bytes to what a set can be compiled with: how long each engine takes to make a tokenizer ready."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from measure import Timing, clocked, in_turns
from ours import Trieauto
from peers import LLGuidance, OutlinesCore, XGrammar
from vocabularies import ByteVocabulary

from trieauto import token_tables

CACHE_VARIABLE = "TRIEAUTO_CACHE_DIR"
COLD, KEPT, WITH_AHO_CORASICK = (
    "trieauto, nothing on disk",
    "trieauto, kept on disk",
    "trieauto, nothing on disk, with Aho-Corasick",
)
_PEERS: dict[str, Callable[[ByteVocabulary], object]] = {
    "XGrammar": XGrammar.prepare,
    "LLGuidance": LLGuidance.prepare,
    "outlines-core": OutlinesCore.prepare,
}


def preparation_timings(
    vocabulary: ByteVocabulary, names: Sequence[str], *, seconds: float = 2.0, rounds: int = 31
) -> dict[str, Timing]:
    """Seconds to a tokenizer that is ready, by ``names``: ``COLD``, ``KEPT``, ``WITH_AHO_CORASICK`` and the peers'.

    Nothing is kept in memory from before.
    """

    def cold(aho_corasick: bool) -> float:
        with tempfile.TemporaryDirectory() as empty, cache_directory(empty):
            forget_tables()
            return clocked(_with_aho_corasick if aho_corasick else Trieauto.prepare, vocabulary)()

    def kept() -> float:
        forget_tables()
        return clocked(Trieauto.prepare, vocabulary)()

    with tempfile.TemporaryDirectory() as filled, cache_directory(filled):
        Trieauto.prepare(vocabulary)
        tasks: dict[str, Callable[[], float]] = {
            COLD: lambda: cold(False),
            KEPT: kept,
            WITH_AHO_CORASICK: lambda: cold(True),
            **{name: clocked(prepare, vocabulary) for name, prepare in _PEERS.items()},
        }
        return in_turns({name: tasks[name] for name in names}, seconds=seconds, rounds=rounds)


def _with_aho_corasick(vocabulary: ByteVocabulary) -> None:
    _ = Trieauto.prepare(vocabulary).tables.aho_corasick


def forget_tables() -> None:
    """Drop the tables that vocabularies with the same tokens share in memory."""
    token_tables._shared.clear()


@contextmanager
def cache_directory(path: str) -> Iterator[None]:
    """Have trieauto keep tokenizers here; its compiled kernels are loaded already."""
    before = os.environ.get(CACHE_VARIABLE)
    os.environ[CACHE_VARIABLE] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ[CACHE_VARIABLE]
        else:
            os.environ[CACHE_VARIABLE] = before
