"""Two languages at once: what is in both, or in one and not the other. For small automata."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..automaton import Automaton
from ..errors import UnsupportedError
from ..nfa import Nfa, edges_of
from .escaping import automaton_of

_MAX_TABLE = 100_000  # states of an automaton, whose table takes 1 KB each
_MAX_STATES = 300_000  # of the result


def intersection(one: Automaton, other: Automaton) -> Automaton:
    """The strings that are in both. O(256 times the pairs of states that are met).

    Raises:
        EmptyConstraintError: there is none.
        UnsupportedError: too many states.
    """
    return _product(one, other, complement=False)


def difference(one: Automaton, other: Automaton) -> Automaton:
    """The strings of one that are not in the other. Cost and errors as for ``intersection``."""
    return _product(one, other, complement=True)


def _table(automaton: Automaton, *, dead_end: bool) -> npt.NDArray[np.int64]:
    """int64[N + 1, 256]: where each byte leads; else -1, or, with a dead end, the last state, which leads nowhere."""
    if automaton.num_states > _MAX_TABLE:
        raise UnsupportedError(f"two languages at once, one of them of more than {_MAX_TABLE:,} states")
    table = np.full((automaton.num_states + 1, 256), automaton.num_states if dead_end else -1, np.int64)
    sources, labels, targets = edges_of(automaton)
    table[sources, labels] = targets
    return table


def _product(one: Automaton, other: Automaton, *, complement: bool) -> Automaton:
    first, second = _table(one, dead_end=False), _table(other, dead_end=complement)
    ends_first = one.accepting.astype(bool)
    ends_second = np.append(other.accepting.astype(bool), False) ^ complement
    width = len(second)
    known = np.array([one.start * width + other.start])
    frontier = known
    edges: list[npt.NDArray[np.int64]] = []
    while len(frontier) > 0:
        left, right = first[frontier // width], second[frontier % width]
        at, labels = np.nonzero((left >= 0) & (right >= 0))
        reached = left[at, labels] * width + right[at, labels]
        edges.append(np.stack([frontier[at], labels, reached], axis=1))
        frontier = np.setdiff1d(reached, known)
        known = np.union1d(known, frontier)
        if len(known) > _MAX_STATES:
            raise UnsupportedError(f"two languages at once, which takes more than {_MAX_STATES:,} states")
    sources, labels, targets = np.concatenate(edges).T
    accepting = (ends_first[known // width] & ends_second[known % width]).astype(np.uint8)
    number = np.searchsorted(known, [one.start * width + other.start])
    whole = automaton_of(
        len(known), np.searchsorted(known, sources), labels, np.searchsorted(known, targets), accepting, int(number[0])
    )
    nfa = Nfa()
    return nfa.automaton(nfa.embed(whole))  # without dead ends
