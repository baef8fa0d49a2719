"""What a trie of a set is made of: nodes, depths, masks; and the smallest automaton of the same set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import trieauto


@dataclass(frozen=True)
class Shape:
    """A set's trie in numbers.

    Attributes:
        count: of values.
        characters: bytes of all values.
        longest: bytes of the longest.
        nodes: of the trie, the root included.
        minimal: states of the minimal automaton, without a dead state.
    """

    count: int
    characters: int
    longest: int
    nodes: int
    minimal: int

    @property
    def ratio(self) -> float:
        """The paper's r: nodes for a character (appendix H.7)."""
        return self.nodes / self.characters


def shape(values: Sequence[str]) -> Shape:
    """Of the distinct values of a set."""
    lengths = [len(value.encode()) for value in set(values)]
    automaton = trieauto.choices(values)
    return Shape(len(lengths), sum(lengths), max(lengths), automaton.num_states, minimal_states(automaton))


def parents(automaton: trieauto.Automaton) -> npt.NDArray[np.int32]:
    """The state above each state of a trie, whose states are in preorder: int32[N], -1 for the root."""
    above = np.full(automaton.num_states, -1, np.int32)
    path: list[int] = []
    ends = automaton.links.tolist()  # of what lies below each state
    for state in range(automaton.num_states):
        while path and ends[path[-1]] <= state:
            path.pop()
        if path:
            above[state] = path[-1]
        path.append(state)
    return above


def depths(automaton: trieauto.Automaton) -> npt.NDArray[np.int32]:
    """Bytes from the root to each state: int32[N]."""
    found = np.zeros(automaton.num_states, np.int32)
    for state, above in enumerate(parents(automaton).tolist()):
        if above >= 0:
            found[state] = found[above] + 1
    return found


def minimal_states(automaton: trieauto.Automaton) -> int:
    """States of the minimal automaton of a set, without the dead one: those of the trie, with equal ones put together.

    From the leaves up two states are equal if both or none may end, and the same bytes lead to equal states.
    """
    above = parents(automaton).tolist()
    ways: list[list[tuple[int, int]]] = [[] for _ in above]
    kinds: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
    for state in range(len(above) - 1, -1, -1):
        key = int(automaton.accepting[state]), tuple(ways[state])
        kind = kinds.setdefault(key, len(kinds))
        if above[state] >= 0:
            ways[above[state]].append((int(automaton.labels[state]), kind))
        ways[state] = []
    return len(kinds)


def mask_sizes(constraint: trieauto.Constraint) -> npt.NDArray[np.int64]:
    """How many tokens with bytes are legal in each state of a set compiled with ``mode="eager"``: int64[N]."""
    offsets = constraint.known_arrays()["mask offsets"]
    return np.diff(offsets.astype(np.int64))


@dataclass(frozen=True)
class AtDepth:
    """A row of the paper's table 15."""

    depth: int
    mean: float
    largest: int
    nodes: int


def by_depth(constraint: trieauto.Constraint) -> list[AtDepth]:
    """Legal tokens by depth. A state from which nothing goes on has none."""
    assert isinstance(constraint.automaton, trieauto.Automaton)
    sizes, at = mask_sizes(constraint), depths(constraint.automaton)
    rows = []
    for depth in range(int(at.max()) + 1):
        here = sizes[at == depth]
        rows.append(AtDepth(depth, float(here.mean()), int(here.max()), len(here)))
    return rows
