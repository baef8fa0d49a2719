"""trieauto in the same harness as its peers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from peers import Engine, EngineError, Fill, Form
from vocabularies import ByteVocabulary, qwen_encoding

import trieauto
from trieauto.kernels.aho_corasick import build_aho_corasick


class Trieauto(Engine):
    """trieauto, filling numpy arrays as the peers do."""

    name = "trieauto"
    forms = (Form("choices", list),)
    mode: Literal["auto", "eager", "lazy"] = "auto"
    method: Literal["walk", "aho_corasick"] = "walk"

    def __init__(self, vocabulary: ByteVocabulary) -> None:
        super().__init__(vocabulary)
        self._stop_token_id = vocabulary.stop_token_id
        self.vocabulary = self.prepare(vocabulary)

    @staticmethod
    def prepare(vocabulary: ByteVocabulary) -> trieauto.Vocabulary:
        """The tokenizer as trieauto knows it; timed in a row of its own."""
        return trieauto.Vocabulary.from_tokens(vocabulary.tokens, stop_token_ids=[vocabulary.stop_token_id])

    def compile(self, form: Form, source: Any) -> trieauto.Constraint:
        return trieauto.compile(trieauto.choices(source), self.vocabulary, mode=self.mode, method=self.method)

    def settle(self, compiled: trieauto.Constraint) -> None:
        """In auto mode the masks of a set of this size are stored after some thousand of them: do it now."""
        if self.mode == "auto":
            compiled._store_masks()

    def matcher(self, compiled: trieauto.Constraint) -> trieauto.Matcher:
        return compiled.matcher()

    def accept(self, matcher: trieauto.Matcher, token_id: int) -> None:
        if not matcher.accept_token(token_id):
            raise EngineError(f"{self.name} refuses token {token_id}")

    def rollback(self, matcher: trieauto.Matcher) -> None:
        matcher.rollback(1)

    def may_stop(self, matcher: trieauto.Matcher) -> bool:
        return matcher.fork().accept_token(self._stop_token_id)

    def fill(self, matcher: trieauto.Matcher, bitmask: Any) -> Fill:
        return partial(matcher.fill_next_token_bitmask, bitmask, 0)

    def batch_fill(self, matchers: Sequence[trieauto.Matcher], bitmask: Any, threads: Any) -> Fill:
        return partial(trieauto.fill_next_token_bitmasks, list(matchers), bitmask)

    def nbytes(self, compiled: trieauto.Constraint) -> int:
        return compiled.nbytes


class TrieautoOwnBuffers(Trieauto):
    """trieauto, filling bitmasks that remember their words, so that only what changes is written."""

    name = "trieauto, own buffers"

    def allocate(self, rows: int) -> trieauto.TokenBitmask:
        return trieauto.TokenBitmask(rows, 32 * self.num_words)

    def rows(self, bitmask: trieauto.TokenBitmask) -> Any:
        return bitmask.array


class TrieautoEager(Trieauto):
    """trieauto with the masks of all states found while compiling."""

    name = "trieauto, eager"
    mode = "eager"


class TrieautoAhoCorasick(TrieautoEager):
    """trieauto with the masks of all states found as in the trie paper, by Aho-Corasick over the vocabulary."""

    name = "trieauto, eager, Aho-Corasick"
    method = "aho_corasick"


class TrieautoLazy(Trieauto):
    """trieauto with masks found when they are needed."""

    name = "trieauto, lazy"
    mode = "lazy"


class TrieautoCanonical(Trieauto):
    """trieauto admitting the tokenizer's own spelling of each value alone: a trie over tokens."""

    name = "trieauto, canonical"
    is_oracle = False

    @staticmethod
    def prepare(vocabulary: ByteVocabulary) -> trieauto.Vocabulary:
        if vocabulary.name != "qwen":
            raise EngineError(f"no tokenizer for {vocabulary.name}")
        return trieauto.Vocabulary.from_tiktoken(qwen_encoding(), stop_token_ids=[vocabulary.stop_token_id])

    def compile(self, form: Form, source: Any) -> trieauto.Constraint:
        return trieauto.compile(trieauto.choices(source), self.vocabulary, tokenization="canonical")

    def settle(self, compiled: trieauto.Constraint) -> None:
        """Its masks are all known when it is compiled."""


class TrieautoAsInPaper(Trieauto):
    """The trie paper's construction, nothing kept: the vocabulary's Aho-Corasick automaton is built for each set."""

    name = "trieauto, as in the paper"
    mode = "eager"

    def build_tokenizer(self) -> None:
        """What depends on the tokenizer alone: its trie, and the failure links over it."""
        build_aho_corasick(self.vocabulary.tables._build_trie()["nodes"])

    def compile(self, form: Form, source: Any) -> trieauto.Constraint:
        self.build_tokenizer()
        return trieauto.compile(trieauto.choices(source), self.vocabulary, mode="eager", method="aho_corasick")


OURS: dict[str, type[Engine]] = {
    engine.name: engine
    for engine in (
        *(Trieauto, TrieautoOwnBuffers, TrieautoEager, TrieautoAhoCorasick, TrieautoLazy),
        *(TrieautoCanonical, TrieautoAsInPaper),
    )
}
