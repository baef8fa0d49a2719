"""Large automata for experiment 4, sparse and dense, and the paper's dense transitions of both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from vocabularies import ByteVocabulary

import trieauto
from trieauto.edge_lists import byte_automaton

Edges = npt.NDArray[np.int64]
"""[E, 3]: state, label, state."""


@dataclass(frozen=True)
class RandomAutomaton:
    """A random graph over token ids, every state of which can reach the goal, state 0, and be reached.

    From each state one edge halves its number, so that the goal is at most 14 tokens away from 10,000 states; one leads
    to the state before; the others lead anywhere. The tokens are random. The start is the last state.
    """

    num_states: int
    edges: Edges

    @staticmethod
    def of(num_states: int, degree: int, vocabulary: ByteVocabulary, seed: int) -> RandomAutomaton:
        rng = np.random.default_rng([seed, num_states, degree])
        ids = np.array([token_id for token_id, token in enumerate(vocabulary.tokens) if token])
        targets = rng.integers(0, num_states, (num_states, degree))
        states = np.arange(num_states)
        targets[:, 0] = states // 2
        targets[:, 1] = (states - 1) % num_states
        labels = np.array([rng.choice(ids, degree, replace=False) for _ in states])
        return RandomAutomaton(
            num_states, np.stack([np.repeat(states, degree), labels.ravel(), targets.ravel()], axis=1)
        )

    @property
    def goal(self) -> int:
        return 0

    @property
    def start(self) -> int:
        return self.num_states - 1

    def automaton(self) -> trieauto.TokenAutomaton:
        return trieauto.token_automaton(self.num_states, self.edges, self.start, [self.goal])

    def delta(self, vocabulary: ByteVocabulary) -> npt.NDArray[np.int64]:
        """int64[S, V], -1 for no edge."""
        delta = np.full((self.num_states, vocabulary.size), -1, np.int64)
        delta[self.edges[:, 0], self.edges[:, 1]] = self.edges[:, 2]
        return delta


@dataclass(frozen=True)
class QuotedText:
    """``[^"]{0,n}"`` over the bytes of UTF-8: four states a character, one before it and three for the bytes after its
    first; nearly every token is legal in each. (Bytes that only look like UTF-8, as overlong forms do, are taken too.)
    """

    length: int

    @property
    def num_states(self) -> int:
        return 4 * self.length + 2

    @property
    def start(self) -> int:
        return 0

    @property
    def goal(self) -> int:
        return 4 * self.length + 1

    @cached_property
    def edges(self) -> Edges:
        # Before a character, and with 1, 2 and 3 bytes still to come of it: states 0 to 3; the next character's are
        # four further.
        firsts = ((range(0x80), 4), (range(0xC2, 0xE0), 1), (range(0xE0, 0xF0), 2), (range(0xF0, 0xF5), 3))
        character = [(0, byte, target) for bytes_, target in firsts for byte in bytes_ if byte != ord('"')]
        character += [(left, byte, left - 1 or 4) for left in (1, 2, 3) for byte in range(0x80, 0xC0)]
        shifts = 4 * np.arange(self.length)[:, None, None] * np.array([1, 0, 1])
        edges = (np.array(character)[None] + shifts).reshape(-1, 3)
        quotes = np.array([(4 * place, ord('"'), self.goal) for place in range(self.length + 1)])
        return np.concatenate([edges, quotes])

    def automaton(self) -> trieauto.Automaton:
        return byte_automaton(self.num_states, self.edges, self.start, [self.goal])

    def delta(self, vocabulary: ByteVocabulary) -> npt.NDArray[np.int64]:
        """int64[S, V], -1 for no way: every token walked from every state."""
        dead = self.num_states
        steps = np.full((dead + 1, 256), dead, np.int64)
        steps[self.edges[:, 0], self.edges[:, 1]] = self.edges[:, 2]
        tokens = {token_id: token for token_id, token in enumerate(vocabulary.tokens) if token}
        ids = sorted(tokens, key=lambda token_id: -len(tokens[token_id]))
        lengths = np.array([len(tokens[token_id]) for token_id in ids])
        # columns[i] holds byte i of all tokens that have one: they are the first ones in the order of ids.
        columns = [
            np.array([tokens[token_id][place] for token_id in ids[: int((lengths > place).sum())]])
            for place in range(int(lengths.max()))
        ]
        delta = np.full((self.num_states, vocabulary.size), -1, np.int64)
        for state in range(self.num_states):
            ends = np.full(len(ids), state)
            for column in columns:
                ends[: len(column)] = steps[ends[: len(column)], column]
            delta[state, ids] = np.where(ends == dead, -1, ends)
        return delta


Large = RandomAutomaton | QuotedText
