"""Automata for tests, from what does not come from trieauto: interegular's machines, and graphs drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

import trieauto
from trieauto.edge_lists import byte_automaton
from trieauto.reference.reachability import TokenGraph, token_transitions
from trieauto.reference.regex_dfa import RegexDfa


def from_dfa(dfa: RegexDfa) -> trieauto.Automaton:
    """The same language; dead states are left out."""
    states = {state: number for number, state in enumerate(sorted(dfa.fsm.states))}
    edges = []
    for byte in range(256):
        symbol = dfa.fsm.alphabet[chr(byte)]
        for state, row in dfa.fsm.map.items():
            if symbol in row:
                edges.append((states[state], byte, states[row[symbol]]))
    return byte_automaton(len(states), edges, states[dfa.fsm.initial], [states[state] for state in dfa.fsm.finals])


def quoted(most: int, least: int = 0) -> trieauto.Automaton:
    """``least`` to ``most`` characters in UTF-8, none a quote or a control character, and a quote: four states for each
    character (how many bytes are to follow), nearly every token legal in each."""
    edges: list[np.ndarray] = []
    end = 4 * (most + 1)

    def add(source: int, labels: range | list[int], target: int) -> None:
        edges.append(np.array([(source, label, target) for label in labels]))

    for number in range(most + 1):
        here, following = 4 * number, 4 * (number + 1)
        if number >= least:
            add(here, [0x22], end)
        if number < most:
            add(here, [label for label in range(0x20, 0x80) if label != 0x22], following)
            add(here, range(0xC2, 0xE0), here + 1)
            add(here, range(0xE0, 0xF0), here + 2)
            add(here, range(0xF0, 0xF5), here + 3)
            add(here + 1, range(0x80, 0xC0), following)
            add(here + 2, range(0x80, 0xC0), here + 1)
            add(here + 3, range(0x80, 0xC0), here + 2)
    return byte_automaton(end + 1, np.concatenate(edges), 0, [end])


@dataclass(frozen=True)
class Graph:
    """A graph with labelled edges, one at most for each state and label; with cycles, dead ends and lost states."""

    num_states: int
    edges: dict[tuple[int, int], int]
    start: int
    accepting: list[int]

    @property
    def triples(self) -> list[tuple[int, int, int]]:
        return [(source, label, target) for (source, label), target in self.edges.items()]

    def over_tokens(self, tokens: list[bytes | None]) -> TokenGraph[int]:
        """The transitions of tokens that are spelled in the labels of this graph, which are bytes."""

        def walk(state: int, token: bytes) -> int | None:
            at: int | None = state
            for byte in token:
                at = None if at is None else self.edges.get((at, byte))
            return at

        spelled = {token_id: token for token_id, token in enumerate(tokens) if token}
        states = list(range(self.num_states))
        return TokenGraph(token_transitions(states, spelled, walk), set(self.accepting), self.start, states)

    def as_tokens(self) -> TokenGraph[int]:
        """The transitions if the labels are token ids."""
        delta: list[dict[int, int]] = [{} for _ in range(self.num_states)]
        for (source, label), target in self.edges.items():
            delta[source][label] = target
        return TokenGraph(delta, set(self.accepting), self.start, list(range(self.num_states)))


@st.composite
def graphs(draw: st.DrawFn, labels: list[int], max_states: int = 8, max_edges: int = 14) -> Graph:
    """A graph over ``labels``: usually with a way to the end of several steps, among other edges."""
    num_states = draw(st.integers(1, max_states))
    state = st.integers(0, num_states - 1)
    label = st.sampled_from(labels)
    edges = draw(st.dictionaries(st.tuples(state, label), state, max_size=max_edges))
    way = draw(st.permutations(range(num_states)))[: draw(st.integers(1, num_states))]
    if draw(st.integers(0, 4)) > 0:
        edges |= {(source, draw(label)): target for source, target in pairwise(way)}
    accepting = [way[-1]]
    if draw(st.integers(0, 3)) == 0:
        accepting.append(draw(state))
    return Graph(num_states, edges, way[0], accepting)


@st.composite
def graphs_and_tokens(draw: st.DrawFn) -> tuple[Graph, list[bytes | None]]:
    """A graph over bytes and a vocabulary of short tokens for it, some single bytes missing; the last id stops."""
    labels = [0x61, 0x62, 0x63]
    # Some states have many edges, and then tokens are looked for in another way.
    many = draw(st.integers(0, 3)) == 0
    graph = draw(graphs([*labels, *range(0x30, 0x3C)] if many else labels, max_edges=40 if many else 10))
    used = sorted({label for _, label in graph.edges}) or labels
    token = st.lists(st.sampled_from(used), min_size=1, max_size=4).map(bytes)
    tokens: list[bytes | None] = list(draw(st.lists(st.one_of(token, st.none()), max_size=8)))
    missing = draw(st.sampled_from([*[None] * 6, *used]))
    tokens += [bytes([label]) for label in used if label != missing]
    return graph, [*tokens, b"z", None]
