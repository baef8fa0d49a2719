"""Which states can reach the goal within t tokens: the whole boolean table R of the paper (its section 3).

States are ``0 .. S-1`` and ``delta[state]`` maps a token to the state it leads to; a token that is absent (or leads to
-1) leads nowhere. Goals are states, so the graph need not be one of text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from .language import occurring, prefixes

if TYPE_CHECKING:
    from .regex_dfa import RegexDfa

State = TypeVar("State")

Transitions = Sequence[Mapping[int, int]]
"""The paper's delta, one mapping from token to state for each state."""


# The paper's table and mask rule


def reachability_table(delta: Transitions, goals: Collection[int], t_max: int) -> list[list[bool]]:
    """R (section 3.1): ``R[t][s]`` says whether some goal is at most ``t`` tokens away from ``s``, for t = 0 .. t_max.

    ValueError for a negative ``t_max`` or a goal that is no state. O(t_max * transitions).
    """
    _check(len(delta), goals, t_max)
    table = [[state in goals for state in range(len(delta))]]
    for _ in range(t_max):
        before = table[-1]
        table.append(
            [
                before[state] or any(following >= 0 and before[following] for following in delta[state].values())
                for state in range(len(delta))
            ]
        )
    return table


def valid_tokens(delta: Transitions, table: Sequence[Sequence[bool]], state: int, remaining: int) -> list[int]:
    """The tokens after which a goal is within the ``remaining - 1`` tokens then left (section 3.2), ascending.

    ``remaining`` counts the token about to be chosen; at 0 or less no token is valid. More than ``t_max + 1`` counts as
    ``t_max + 1``. O(tokens of the state).
    """
    if remaining < 1:
        return []
    reached = table[min(remaining - 1, len(table) - 1)]
    return sorted(token for token, following in delta[state].items() if following >= 0 and reached[following])


def forward_tokens(delta: Transitions, state: int) -> list[int]:
    """The paper's forward-only baseline: every token that leads to a state, be it one without a way out; ascending."""
    return sorted(token for token, following in delta[state].items() if following >= 0)


def min_tokens(table: Sequence[Sequence[bool]], state: int) -> int | None:
    """The fewest tokens from ``state`` to a goal, or None if that is more than ``t_max``, or impossible."""
    return next((t for t, reached in enumerate(table) if reached[state]), None)


def _check(num_states: int, goals: Iterable[int], t_max: int) -> None:
    if t_max < 0:
        raise ValueError(f"t_max must not be negative: {t_max}")
    outside = [goal for goal in goals if not 0 <= goal < num_states]
    if outside:
        raise ValueError(f"goals that are none of the {num_states} states: {outside}")


# The paper's dense form


class DenseBytes(NamedTuple):
    """Bytes of the transitions and of the table of a ``DenseReachability``."""

    delta: int
    table: int


class DenseReachability:
    """The same table and mask rule as arrays over all states and the whole vocabulary, as the paper measures them.

    Args:
        delta: int64 [S, V], the state that each token leads to, -1 for none. Kept, not copied.
        goals: the goal states.
        t_max: the largest budget that is told apart from an unlimited one.
        block_entries: about how many entries of ``delta`` one step of the backward pass looks at (a row at least). It
            needs about 10 bytes of temporary memory for each, and nothing else depends on it.

    Attributes:
        table: bool [t_max + 1, S], R.

    Raises:
        ValueError: ``delta`` of another type or shape, a negative ``t_max``, a goal that is no state.

    Making one is O(t_max * S * V).
    """

    def __init__(
        self, delta: npt.NDArray[np.int64], goals: Collection[int], t_max: int, block_entries: int = 1 << 24
    ) -> None:
        if delta.ndim != 2 or delta.dtype != np.int64:
            raise ValueError(f"delta must be int64 [S, V], not {delta.dtype} {list(delta.shape)}")
        num_states, num_tokens = delta.shape
        _check(num_states, goals, t_max)
        self.delta = delta
        self.table: npt.NDArray[np.bool_] = np.zeros((t_max + 1, num_states), np.bool_)
        self.table[0, list(goals)] = True
        # Rows at once: a temporary for the whole of delta would double the memory.
        rows = max(1, block_entries // max(1, num_tokens))
        for t in range(1, t_max + 1):
            before = self.table[t - 1]
            for first in range(0, num_states, rows):
                block = slice(first, first + rows)
                self.table[t, block] = before[block] | _leads_into(delta[block], before).any(axis=1)

    @property
    def nbytes(self) -> DenseBytes:
        """Bytes of ``delta`` (8 * S * V) and of ``table`` ((t_max + 1) * S)."""
        return DenseBytes(self.delta.nbytes, self.table.nbytes)

    def mask(self, state: int, remaining: int) -> npt.NDArray[np.bool_]:
        """bool [V]: the rule of ``valid_tokens``. O(V)."""
        if remaining < 1:
            return np.zeros(self.delta.shape[1], np.bool_)
        return _leads_into(self.delta[state], self.table[min(remaining - 1, len(self.table) - 1)])

    def apply(self, state: int, remaining: int, logits: npt.NDArray[np.floating[Any]]) -> None:
        """Set ``logits`` (floating, [V]) to -inf in place for every token that ``mask`` does not allow. O(V)."""
        logits[~self.mask(state, remaining)] = -np.inf


def _leads_into(delta: npt.NDArray[np.int64], reached: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Where ``delta`` leads to a state that ``reached`` (bool [S]) holds of; the shape of ``delta``."""
    found: npt.NDArray[np.bool_] = (delta >= 0) & reached[np.maximum(delta, 0)]
    return found


# Transitions from what there is


@dataclass(frozen=True)
class TokenGraph(Generic[State]):
    """A graph over tokens, untrimmed.

    Attributes:
        delta: the transitions of each state, dead ends included.
        goals: the states at which an answer may end.
        start: the state before the first token.
        states: what each state stands for (a prefix, a state of a DFA).
    """

    delta: list[dict[int, int]]
    goals: set[int]
    start: int
    states: list[State]


def token_transitions(
    states: Sequence[State], tokens: Mapping[int, bytes], walk: Callable[[State, bytes], State | None]
) -> list[dict[int, int]]:
    """For every state, the tokens whose bytes ``walk`` can follow from it, and the index of the state they lead to.

    Empty tokens are left out. KeyError if a walk leaves ``states``. O(states * tokens) walks.
    """
    index = {state: number for number, state in enumerate(states)}
    delta: list[dict[int, int]] = []
    for state in states:
        ends = {token_id: walk(state, token) for token_id, token in tokens.items() if token}
        delta.append({token_id: index[end] for token_id, end in ends.items() if end is not None})
    return delta


def prefix_graph(values: Collection[bytes], tokens: Sequence[bytes | None]) -> TokenGraph[bytes]:
    """The graph of a set: its states are the prefixes of the values in sorted order, ``b""`` first.

    An empty set has the one state ``b""`` and no goal.
    """
    inside = {b""} | prefixes(values)
    states = sorted(inside)

    def walk(prefix: bytes, token: bytes) -> bytes | None:
        return prefix + token if prefix + token in inside else None

    ends = set(values)
    return TokenGraph(
        delta=token_transitions(states, occurring(values, tokens), walk),
        goals={number for number, prefix in enumerate(states) if prefix in ends},
        start=0,
        states=states,
    )


def dfa_graph(dfa: RegexDfa, tokens: Sequence[bytes | None]) -> TokenGraph[int]:
    """The graph of a regular expression: its states are those of the machine, in order, dead ones too."""
    states = sorted(dfa.fsm.states)
    return TokenGraph(
        delta=token_transitions(states, {token_id: token for token_id, token in enumerate(tokens) if token}, dfa.step),
        goals={number for number, state in enumerate(states) if state in dfa.fsm.finals},
        start=states.index(dfa.fsm.initial),
        states=states,
    )
