"""Table 1's operations: the paper's formulas, with its own numbers and a real set's, and what is really done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from peers import Form
from structure_tries import Shape, mask_sizes, shape
from vocabularies import ByteVocabulary
from walks import random_walks

import trieauto

BYTES = 256


@dataclass(frozen=True)
class Formulas:
    """The paper's numbers of operations (appendices G and H.1).

    ``subset`` and ``minimised`` are for compiling the FSM, up to subset construction and with minimisation.
    """

    subset: float
    minimised: float
    trie: float
    mask: float

    @staticmethod
    def of(characters: int, vocabulary: int, token_length: float) -> Formulas:
        subset = characters * BYTES
        return Formulas(
            subset,
            subset * math.log(characters),
            (characters + vocabulary) * token_length,
            vocabulary * token_length,
        )


PAPERS = Formulas.of(2_000 * 30, 32_000, 4)
"""K=2,000, longest value 30, V=32,000, tokens of 4 bytes."""


@dataclass(frozen=True)
class Counts:
    """A real set over a real vocabulary.

    Attributes:
        formulas: the paper's, with this set's characters and the mean length of a token.
        longest: the formulas with the longest token instead, as their worst case needs.
        trie_edges: read by the pass over the set's trie.
        vocabulary_edges: of the tokens' trie, which the Aho-Corasick automaton is built over.
        entries: tokens found, over all nodes.
        mask: tokens legal at a step, on average along random spellings of random values.
        largest_mask: at any node.
    """

    shape: Shape
    vocabulary_size: int
    mean_token: float
    longest_token: int
    formulas: Formulas
    longest: Formulas
    trie_edges: int
    vocabulary_edges: int
    entries: int
    mask: float
    largest_mask: int


def counts(values: Sequence[str], tokens: ByteVocabulary, vocabulary: trieauto.Vocabulary) -> Counts:
    """Of a set, with the masks of all nodes."""
    own = shape(values)
    lengths = [len(token) for token in tokens.tokens if token]
    constraint = trieauto.compile(trieauto.choices(values), vocabulary, mode="eager")
    sizes = mask_sizes(constraint)
    steps = []
    for walk in random_walks(values, _plain_form(), tokens, 200):
        matcher = constraint.matcher()
        steps.append(len(matcher.allowed_token_ids()))
        for token_id in walk:
            matcher.accept_token(token_id)
            steps.append(len(matcher.allowed_token_ids()))
    nodes = vocabulary.tables.nodes
    mean = float(np.mean(lengths))
    return Counts(
        own, tokens.size, mean, max(lengths),
        Formulas.of(own.characters, tokens.size, mean), Formulas.of(own.characters, tokens.size, max(lengths)),
        own.nodes - 1, int((nodes[:, 1] >= 0).sum()), int(sizes.sum()), float(np.mean(steps)), int(sizes.max()),
    )  # fmt: skip


def _plain_form() -> Form:
    return Form("choices", list)
