"""Goals as graphs, given by their edges: for trieauto as an automaton, for the baselines as untrimmed transitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

import trieauto
from trieauto.edge_lists import byte_automaton
from trieauto.reference.reachability import Transitions

Edge = tuple[int, int, int]


@dataclass
class Graph:
    """States with edges over token ids, or over bytes: (state, label, state). State 0 is the start.

    ``new_state``, ``edge`` and ``path`` add to it.
    """

    num_states: int = 1
    edges: list[Edge] = field(default_factory=list)
    accepting: set[int] = field(default_factory=set)
    _targets: dict[tuple[int, int], int] = field(default_factory=dict)

    def new_state(self) -> int:
        self.num_states += 1
        return self.num_states - 1

    def edge(self, source: int, labels: Iterable[int], target: int) -> None:
        """An edge for each label (``b"ab"``: one for each byte)."""
        for label in labels:
            if self._targets.setdefault((source, label), target) != target:
                raise ValueError(f"state {source} has two edges with label {label}")
            self.edges.append((source, label, target))

    def path(self, source: int, text: bytes, end: int | None = None) -> int:
        """Follow ``text`` from a state, along edges that are there and else along new ones, the last one to ``end``."""
        for position, byte in enumerate(text):
            target = self._targets.get((source, byte))
            if target is None:
                target = end if end is not None and position == len(text) - 1 else self.new_state()
                self.edge(source, [byte], target)
            source = target
        return source


@dataclass(frozen=True)
class Task:
    """What the three methods are compared on.

    Attributes:
        transitions: over tokens, dead ends included.
        goals: the states in which the sequence may end; no edge leaves them here.
        start: the first state.
        constraint: the same for trieauto.
        num_tokens: the ids that can be drawn are those below it.
    """

    transitions: Transitions
    goals: frozenset[int]
    start: int
    constraint: trieauto.Constraint
    num_tokens: int


def made_up_vocabulary(tokens: Sequence[bytes]) -> trieauto.Vocabulary:
    """These tokens, and after them a stop token."""
    return trieauto.Vocabulary.from_tokens([*tokens, None], stop_token_ids=[len(tokens)])


def task_over_tokens(graph: Graph, names: Sequence[str]) -> Task:
    """The labels of the graph are places in ``names``."""
    transitions: list[dict[int, int]] = [{} for _ in range(graph.num_states)]
    for source, token_id, target in graph.edges:
        transitions[source][token_id] = target
    automaton = trieauto.token_automaton(graph.num_states, graph.edges, 0, graph.accepting)
    constraint = trieauto.compile(automaton, made_up_vocabulary([name.encode() for name in names]))
    return Task(transitions, frozenset(graph.accepting), 0, constraint, len(names))


def task_over_bytes(graph: Graph, vocabulary: trieauto.Vocabulary) -> Task:
    """The labels of the graph are bytes. Only tokens before the first stop token can be drawn."""
    automaton = byte_automaton(graph.num_states, graph.edges, 0, graph.accepting)
    return Task(
        LazyTransitions(graph, vocabulary.tokens),
        frozenset(graph.accepting),
        0,
        trieauto.compile(automaton, vocabulary),
        vocabulary.stop_token_ids[0],
    )


class LazyTransitions(Sequence[Mapping[int, int]]):
    """The token transitions of a graph over bytes, untrimmed; those of a state are found when first asked for, at the
    cost of a walk along every token that begins with a byte of its edges. So a real vocabulary will do."""

    def __init__(self, graph: Graph, tokens: Sequence[bytes | None]) -> None:
        self._steps: list[dict[int, int]] = [{} for _ in range(graph.num_states)]
        for source, byte, target in graph.edges:
            self._steps[source][byte] = target
        self._by_first_byte: dict[int, dict[int, bytes]] = {}
        for token_id, token in enumerate(tokens):
            if token:
                self._by_first_byte.setdefault(token[0], {})[token_id] = token
        self._found: dict[int, Mapping[int, int]] = {}

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, state: int) -> Mapping[int, int]: ...
    @overload
    def __getitem__(self, state: slice) -> Sequence[Mapping[int, int]]: ...
    def __getitem__(self, state: int | slice) -> Mapping[int, int] | Sequence[Mapping[int, int]]:
        if isinstance(state, slice):
            return [self[each] for each in range(*state.indices(len(self)))]
        if state not in self._found:
            tokens: dict[int, bytes] = {}
            for byte in self._steps[state]:
                tokens |= self._by_first_byte.get(byte, {})
            ends = {token_id: self._walk(state, token) for token_id, token in tokens.items()}
            self._found[state] = {token_id: end for token_id, end in ends.items() if end is not None}
        return self._found[state]

    def _walk(self, state: int, token: bytes) -> int | None:
        current: int | None = state
        for byte in token:
            if current is None:
                return None
            current = self._steps[current].get(byte)
        return current
