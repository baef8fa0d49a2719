"""Tries over token ids, as GENRE has them, in the same harness: one tokenization of each value, nothing to align.

The trie paper's own ("our own, following GENRE's design", appendix H.8) is a dictionary for each node, in Python. Its
mask is the node's keys; here the paper's list of ids, a bitmask row made of the keys at each step, and a row made of
words and bits that were found for all nodes while compiling. They admit less than the others, so their masks are never
compared with them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from peers import Engine, EngineError, Fill, Form
from vocabularies import ByteVocabulary, qwen_encoding

Node = dict[int, Any]
"""The nodes below by token id; and under ``END`` nothing, if a value ends here."""
END = -1


def encode(values: Sequence[str]) -> list[list[int]]:
    """Each value in the tokenizer's own tokens (Qwen's). One after the other: tiktoken's batches are slower here."""
    one = qwen_encoding().encode_ordinary
    return [one(value) for value in values]


def build(sequences: Sequence[Sequence[int]]) -> tuple[Node, int]:
    """The root of the trie of token sequences, and the number of its nodes, the root included."""
    root: Node = {}
    count = 1
    for sequence in sequences:
        node = root
        for token_id in sequence:
            child = node.get(token_id)
            if child is None:
                child = node[token_id] = {}
                count += 1
            node = child
        node[END] = None
    return root, count


def canonical_walks(values: Sequence[str], count: int, seed: int = 1) -> list[list[int]]:
    """Random values in the tokenizer's own tokens: what a model writes, and the only walks that token tries know."""
    rng = random.Random(seed)
    return encode([rng.choice(values) for _ in range(count)])


class Walker:
    """One sequence's way through a trie."""

    def __init__(self, root: Node) -> None:
        self.path = [root]

    @property
    def node(self) -> Node:
        return self.path[-1]

    def reset(self) -> None:
        del self.path[1:]


class TokenTrie(Engine):
    """GENRE's: the mask is the list of a node's keys, as its ``prefix_allowed_tokens_fn`` returns it."""

    name = "GENRE"
    forms = (Form("values", list),)
    is_oracle = False

    def __init__(self, vocabulary: ByteVocabulary) -> None:
        super().__init__(vocabulary)
        if vocabulary.name != "qwen":
            raise EngineError(f"no tokenizer for {vocabulary.name}")
        qwen_encoding()
        self._stop_token_id = vocabulary.stop_token_id

    def compile(self, form: Form, source: Any) -> Any:
        return build(encode(source))[0]

    def matcher(self, compiled: Any) -> Walker:
        return Walker(compiled)

    def accept(self, matcher: Walker, token_id: int) -> None:
        child = matcher.node.get(token_id)
        if child is None:
            raise EngineError(f"{self.name} refuses token {token_id}")
        matcher.path.append(child)

    def rollback(self, matcher: Walker) -> None:
        matcher.path.pop()

    def may_stop(self, matcher: Walker) -> bool:
        return END in matcher.node

    def fill(self, matcher: Walker, bitmask: Any) -> Fill:
        path = matcher.path
        return lambda: list(path[-1])

    def batch_fill(self, matchers: Sequence[Walker], bitmask: Any, threads: Any) -> Fill:
        fills = [self.fill(matcher, bitmask[row : row + 1]) for row, matcher in enumerate(matchers)]

        def fill_all() -> None:
            for fill in fills:
                fill()

        return fill_all


class TokenTrieRows(TokenTrie):
    """The same, writing a bitmask row of the keys at each step."""

    name = "GENRE, rows"

    def fill(self, matcher: Walker, bitmask: Any) -> Fill:
        return partial(_fill_row, matcher.path, bitmask[0], self._stop_token_id)


def _fill_row(path: list[Node], row: npt.NDArray[np.int32], stop_token_id: int) -> None:
    words, bits = words_and_bits(path[-1], stop_token_id)
    row.fill(0)
    row[words] = bits


def words_and_bits(node: Node, stop_token_id: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int32]]:
    """Which words of a row are not 0, and what they are."""
    found: dict[int, int] = {}
    for token_id in node:
        token = stop_token_id if token_id == END else token_id
        found[token >> 5] = found.get(token >> 5, 0) | 1 << (token & 31)
    words = np.fromiter(found.keys(), np.intp, len(found))
    return words, np.fromiter(found.values(), np.uint32, len(found)).view(np.int32)


READY = -2
"""The key under which a node has its words and bits."""


class TokenTrieReady(TokenTrie):
    """The same with the words and bits of all nodes found while compiling."""

    name = "GENRE, masks ready"

    def compile(self, form: Form, source: Any) -> Any:
        root, _ = build(encode(source))
        stack = [root]
        while stack:
            node = stack.pop()
            stack += [child for child in node.values() if child is not None]
            node[READY] = words_and_bits(node, self._stop_token_id)
        return root

    def fill(self, matcher: Walker, bitmask: Any) -> Fill:
        return partial(_fill_ready, matcher.path, bitmask[0])


def _fill_ready(path: list[Node], row: npt.NDArray[np.int32]) -> None:
    words, bits = path[-1][READY]
    row.fill(0)
    row[words] = bits


TOKEN_TRIES: dict[str, type[Engine]] = {engine.name: engine for engine in (TokenTrie, TokenTrieRows, TokenTrieReady)}
