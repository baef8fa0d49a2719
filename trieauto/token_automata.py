"""A goal that is not text: states with token ids on their edges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .automaton import SortedValues
from .edge_lists import edge_lists
from .errors import TrieautoError
from .kernels.graph import has_cycle


@dataclass(frozen=True, slots=True, eq=False)
class TokenAutomaton:
    """A deterministic automaton over token ids, every edge of which lies on a way from the start to the end.

    Made by ``token_automaton``, whose states have the numbers that were given, or from a set by compiling it for
    canonical tokenization: then it is a trie, in preorder. Immutable, thread-safe.

    Attributes:
        tokens: int32[E], the token id of each edge, ascending within a state.
        links: int32[N + 1]: the edges of state s are ``links[s] .. links[s + 1]``.
        targets: int32[E], where each leads.
        accepting: uint8[N], 1 where the sequence may end.
        start: the state before the first token.
        num_unreachable: states that no way leads to from the start; their edges are left out.
        num_dead_ends: reachable states that no way leads from to the end; the edges that lead there are left out.
        values: the set's values, if it was made from a set.
    """

    tokens: npt.NDArray[np.int32]
    links: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    accepting: npt.NDArray[np.uint8]
    start: int
    num_unreachable: int = 0
    num_dead_ends: int = 0
    values: SortedValues | None = None

    @property
    def num_states(self) -> int:
        """Number of states, as it was given."""
        return len(self.accepting)

    @property
    def is_finite(self) -> bool:
        """Whether finitely many sequences are accepted. O(states + edges)."""
        return not has_cycle(self.links, self.targets)

    def accepts(self, token_ids: Iterable[int]) -> bool:
        """Whether a whole sequence is accepted. O(tokens).

        Args:
            token_ids: the sequence, without a stop token.
        """
        state = self.start
        for token_id in token_ids:
            first, last = self.links[state : state + 2]
            place = int(np.searchsorted(self.tokens[first:last], token_id)) + int(first)
            if place == last or self.tokens[place] != token_id:
                return False
            state = int(self.targets[place])
        return bool(self.accepting[state])

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes."""
        own = sum(array.nbytes for array in (self.tokens, self.links, self.targets, self.accepting))
        return own if self.values is None else own + self.values.nbytes + self.values.subtree_ends.nbytes

    def __repr__(self) -> str:
        what = "" if self.values is None else f"set of {len(self.values):,} values, "
        return f"<TokenAutomaton: {what}{self.num_states:,} states, {len(self.tokens):,} edges>"


def token_automaton(
    num_states: int, edges: Iterable[tuple[int, int, int]], start: int, accepting: Iterable[int]
) -> TokenAutomaton:
    """An automaton given by its edges over token ids: a tool-calling loop, a plan, any graph with a goal (section 3 of
    the reachability paper).

    What a token's text is does not matter, so special tokens may be edges too; stop tokens may not, for they end the
    sequence wherever it may end. Compile it for a vocabulary like any other automaton.

    Args:
        num_states: states are ``0 .. num_states - 1``.
        edges: (state, token id, state) triples, or (faster, for many) an integer array of shape [E, 3].
        start: the state before the first token.
        accepting: the states in which the sequence may end, at least one.

    Returns:
        About 8 bytes an edge and 5 a state. Ways that cannot reach the end, and states that cannot be reached, are left
        out and counted. O(N + E log E).

    Raises:
        EmptyConstraintError: no way leads from the start to an accepting state, or none is accepting.
        TrieautoError: a number that is no integer or out of range; two edges of one state with the same token that
            lead to different states.
    """
    lists = edge_lists(num_states, edges, start, accepting, "token id")
    return TokenAutomaton(
        lists.labels,
        lists.links,
        lists.targets,
        lists.accepting,
        lists.start,
        num_unreachable=int((~lists.is_reachable).sum()),
        num_dead_ends=int((lists.is_reachable & ~lists.is_live).sum()),
    )


def check_edge_tokens(automaton: TokenAutomaton, num_tokens: int, stop_token_ids: Iterable[int]) -> None:
    """Whether a vocabulary has the tokens on all edges.

    Raises:
        TrieautoError: an edge with a stop token, or with an id that the vocabulary does not have.
    """
    if len(automaton.tokens) == 0:
        return
    worst = int(automaton.tokens.max())
    if worst >= num_tokens:
        raise TrieautoError(f"an edge has the token id {worst:,}, but the vocabulary only has ids below {num_tokens:,}")
    for stop_id in stop_token_ids:
        if (automaton.tokens == stop_id).any():
            raise TrieautoError(
                f"an edge has the token id {stop_id:,}, which is a stop token: it ends the sequence in every accepting "
                "state, and needs no edge"
            )
