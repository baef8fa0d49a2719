"""Token budgets (law 6 of the design): how many tokens the end takes, and whether a budget is enough."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .automaton import Automaton
from .errors import TrieautoError, shorten
from .kernels.descriptor import NO_BUDGET
from .kernels.distances import distances_of_automaton, distances_of_set, ends_of_few
from .kernels.graph import edges_to_any, reversed_edges
from .kernels.walk import UNREACHABLE
from .packing import as_integer
from .token_automata import TokenAutomaton
from .vocabulary import Vocabulary


def token_distances(automaton: Automaton | TokenAutomaton, vocabulary: Vocabulary) -> npt.NDArray[np.int32]:
    """The fewest tokens from every state to the end, d(s): int32[N], ``UNREACHABLE`` where there is no way.

    It stands for the whole table of section 3.1 of the reachability paper: R[t, s] iff d(s) <= t. For a set one walk
    from each state; for edges over tokens O(states + edges); for other automata a backward search that follows, from
    each state, only tokens that can help.
    """
    if isinstance(automaton, TokenAutomaton):
        return edges_to_any(  # type: ignore[no-any-return]
            *reversed_edges(automaton.links, automaton.targets), automaton.accepting
        )
    tables = vocabulary.tables
    if automaton.values is not None:
        return distances_of_set(  # type: ignore[no-any-return]
            *automaton.arrays, automaton.accepting, *tables.trie, automaton.start, False
        )
    return distances_of_automaton(  # type: ignore[no-any-return]
        *automaton.arrays,
        automaton.accepting,
        *tables.trie,
        tables.heights,
        *ends_of_few(*automaton.arrays, *tables.trie),
    )


def tokens_of_values(automaton: Automaton | TokenAutomaton, vocabulary: Vocabulary) -> npt.NDArray[np.int32] | None:
    """In how few tokens each value of a set can be written: int32, in no particular order; None for anything but a set.

    Values that the vocabulary cannot spell are left out, and so are duplicates.
    """
    values = automaton.values
    if values is None:
        return None
    if isinstance(automaton, TokenAutomaton):
        is_start = np.zeros(automaton.num_states, np.uint8)
        is_start[automaton.start] = 1
        depths: npt.NDArray[np.int32] = edges_to_any(automaton.links, automaton.targets, is_start)
        return depths[values.terminals]
    tables = vocabulary.tables
    from_start = distances_of_set(*automaton.arrays, automaton.accepting, *tables.trie, automaton.start, True)
    if automaton.accepting[automaton.start]:
        from_start[0] = 0  # the empty value ends at the root of its trie, which a prefix space may have cut off
    fewest = np.full(len(values.given), UNREACHABLE, np.int32)
    # A value may be there twice, with a space before it and without.
    np.minimum.at(fewest, values.order, from_start[values.terminals])
    return fewest[fewest < UNREACHABLE]


def checked_budget(max_tokens: int | None) -> int:
    """A budget as a number: ``NO_BUDGET`` for None, and for more tokens than any sequence has.

    Raises:
        TrieautoError: not an integer, or negative.
    """
    if max_tokens is None:
        return NO_BUDGET
    budget = as_integer(max_tokens)
    if budget is None:
        raise TrieautoError(f"a budget must be an integer number of tokens, or None, not {shorten(max_tokens)}")
    if budget < 0:
        raise TrieautoError(f"a budget cannot be negative, but is {budget:,} tokens")
    return min(budget, NO_BUDGET)
