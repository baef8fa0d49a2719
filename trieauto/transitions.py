"""A constraint as an automaton over token ids, if that is small enough to be written down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .constraint import Constraint
from .errors import TrieautoError, UnsupportedError, shorten
from .kernels.descriptor import TERMINATED
from .kernels.transitions import transitions_from
from .token_automata import TokenAutomaton

MAX_ENTRIES = 2**24


@dataclass(frozen=True, slots=True, eq=False)
class TokenTransitions:
    """The states of a constraint that tokens reach, numbered anew, and where every legal token leads.

    Attributes:
        offsets: int64[S + 1]: what is legal in state s is at ``offsets[s] .. offsets[s + 1]``, at least one token.
        tokens: int32[E], the legal token ids, ascending within a state; stop ids, too, where the sequence may end.
        targets: int32[E], the state to which each leads; -1 for a stop id.
        distances: int32[S], the fewest tokens from each state to the end, without a stop token.
        states: int32[S], the number that each has in the constraint's automaton.
        start: the state before the first token.
    """

    offsets: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    distances: npt.NDArray[np.int32]
    states: npt.NDArray[np.int32]
    start: int

    @property
    def num_states(self) -> int:
        """How many states tokens reach: all of them, if the vocabulary has all single bytes."""
        return len(self.states)


def token_transitions(constraint: Constraint, max_entries: int = MAX_ENTRIES) -> TokenTransitions:
    """All of a constraint's transitions by tokens.

    Costs about 0.1 µs for each transition of a set, of which there are three or four a state, and what
    ``constraint.distances()`` costs.

    Args:
        constraint: any, but each state in which any text may go on (inside a JSON string, say) has a transition for
            nearly every token of the vocabulary, so that only a few of these are within the limit.
        max_entries: how many transitions there may be, those by stop ids included.

    Raises:
        UnsupportedError: there are more; or a constraint that is more than an automaton (of a class of its own).
        TrieautoError: not a constraint.
    """
    if not isinstance(constraint, Constraint):
        raise TrieautoError(f"expected a Constraint, as trieauto.compile makes it, not {shorten(constraint)}")
    if type(constraint) is not Constraint:
        raise UnsupportedError(
            f"the masks of {constraint!r} depend on more than a state, so that it has no table of transitions: follow "
            "it on the host"
        )
    automaton, vocabulary = constraint.automaton, constraint.vocabulary
    distances = constraint.distances()
    if isinstance(automaton, TokenAutomaton):
        states, counts, tokens, ends = _of_edges(automaton)
        start = int(np.searchsorted(states, automaton.start))
    else:
        states, counts, tokens, ends = transitions_from(
            *automaton.arrays,
            distances.copy(),  # kernels take no read-only arrays
            *vocabulary.tables.trie,
            automaton.start,
            automaton.num_states,
            max_entries,
        )
        start = 0
    states = states[: len(counts)]  # there are more only if the search ended early
    accepting = np.flatnonzero(automaton.accepting[states])
    stop_ids = np.array(vocabulary.stop_token_ids, np.int32)
    num_entries = len(tokens) + len(accepting) * len(stop_ids)
    if num_entries > max_entries:
        widest = int(counts.argmax())
        raise UnsupportedError(
            f"the tokens of {constraint!r} make more than {max_entries:,} transitions ({num_entries:,} from the first "
            f"{len(counts):,} states that tokens reach, {int(counts[widest]):,} from one of them): too many to store"
        )
    sources = np.concatenate([np.repeat(np.arange(len(states)), counts), np.repeat(accepting, len(stop_ids))])
    tokens = np.concatenate([tokens, np.tile(stop_ids, len(accepting))])
    ends = np.concatenate([ends, np.full(len(tokens) - len(ends), TERMINATED, np.int32)])
    order = np.argsort(sources * np.int64(vocabulary.size) + tokens)
    offsets = np.zeros(len(states) + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=len(states)), out=offsets[1:])
    return TokenTransitions(offsets, tokens[order], ends[order], distances[states], states, start)


def _of_edges(
    automaton: TokenAutomaton,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """As ``kernels.transitions.transitions_from``, but with the states in ascending order: all edges can be reached."""
    targets = automaton.targets[: len(automaton.tokens)]
    states = np.unique(np.append(targets, np.int32(automaton.start))).astype(np.int32)
    counts = np.diff(automaton.links)[states].astype(np.int64)
    return states, counts, automaton.tokens, np.searchsorted(states, targets).astype(np.int32)
