"""A language over bytes as a deterministic automaton: knows nothing of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .errors import TrieautoError, UnsupportedError, shorten
from .kernels.graph import has_cycle
from .kernels.trie import build_trie, edges_of_trie
from .kernels.walk import state_after
from .packing import pack, sort_packed

PrefixSpace = Literal["none", "optional", "required"]
SPACE = 0x20


@dataclass(frozen=True, slots=True, eq=False)
class SortedValues:
    """The values of a set in the order of their bytes, and where in the trie each ends. (In a trie over tokens, in the
    order of their tokens.)

    Attributes:
        given: the values as the caller gave them, duplicates included.
        order: int32[K], the distinct values' places in ``given``, sorted (twice each where an optional space made two
            strings of every value).
        terminals: int32[K], the state at which each ends, ascending.
        subtree_ends: int32[N], one past the last state below each state of the trie.
    """

    given: Sequence[str | bytes]
    order: npt.NDArray[np.int32]
    terminals: npt.NDArray[np.int32]
    subtree_ends: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, rank: int) -> str | bytes:
        return self.given[int(self.order[rank])]

    def ending_at(self, state: int) -> str | bytes:
        """The value whose last byte or token leads to an accepting state. O(log K)."""
        return self[int(np.searchsorted(self.terminals, state))]

    def below(self, state: int) -> tuple[int, int]:
        """The ranks ``first, last`` (exclusive) of the values whose ends lie at or below a state. O(log K)."""
        terminals = self.terminals
        first, last = np.searchsorted(terminals, (state, self.subtree_ends[state]))
        return int(first), int(last)

    @property
    def nbytes(self) -> int:
        """Memory in bytes, without the values themselves and without ``subtree_ends``, which may be the automaton's."""
        return self.order.nbytes + self.terminals.nbytes + 8 * len(self.given)


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """A deterministic automaton over bytes, every state of which can reach the end. Immutable, thread-safe.

    Made by ``choices`` and the like, not by hand: kernels trust the arrays, which must not be written to. They follow
    one of two layouts (see ``kernels.edges``): a trie (``targets`` is empty), or edge lists.

    Attributes:
        labels: uint8, the byte of each edge.
        links: int32, where a state's edges are.
        targets: int32, where each edge leads; empty for a trie, whose edges are the states they lead to.
        accepting: uint8[N], 1 where the string may end.
        start: the state before the first byte.
        values: the set's values, if this is a set; they begin at state 0.
        sets: the values of the sets that it was made from, so that those a vocabulary cannot spell can be named.
        engine: what was chosen for a grammar and why, for people; "" if nothing was to choose.
    """

    labels: npt.NDArray[np.uint8]
    links: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    accepting: npt.NDArray[np.uint8]
    start: int
    values: SortedValues | None = None
    engine: str = ""
    sets: tuple[Sequence[str | bytes], ...] = ()

    @property
    def num_states(self) -> int:
        """Number of states; for a set, one more than the number of distinct nonempty prefixes."""
        return len(self.accepting)

    @property
    def is_trie(self) -> bool:
        """Whether the arrays are laid out as a trie, each state with one way in."""
        return len(self.targets) == 0

    @property
    def arrays(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """labels, links, targets: the form in which kernels take an automaton."""
        return self.labels, self.links, self.targets

    @property
    def is_finite(self) -> bool:
        """Whether the language has finitely many strings. O(1) for a set, else O(states + edges)."""
        return self.values is not None or not has_cycle(self.links, self.targets)

    def accepts(self, string: str | bytes) -> bool:
        """Whether a whole string is in the language. O(bytes).

        Raises:
            TrieautoError: neither str nor bytes.
        """
        if not isinstance(string, (str, bytes)):
            raise TrieautoError(f"a string of a language is str or bytes, not {shorten(string)}")
        try:
            data = string.encode() if isinstance(string, str) else bytes(string)
        except UnicodeEncodeError:
            return False  # a lone surrogate has no UTF-8 bytes
        state = state_after(*self.arrays, self.start, np.frombuffer(data, np.uint8))
        return bool(state >= 0 and self.accepting[state])

    # Languages from languages (see ``algebra``)

    def __add__(self, other: Automaton) -> Automaton:
        """A string of this one, and then one of the other. O(all edges), unless one ends in many ways in which the
        other can begin.

        Raises:
            UnsupportedError: too many states.
        """
        from .algebra import concatenated

        return concatenated(self, other) if isinstance(other, Automaton) else NotImplemented

    def __or__(self, other: Automaton) -> Automaton:
        """A string of this one or of the other. O(all edges), and what they share is followed once.

        Raises:
            UnsupportedError: too many states.
        """
        from .algebra import united

        return united(self, other) if isinstance(other, Automaton) else NotImplemented

    def optional(self) -> Automaton:
        """A string of this one, or none."""
        return self.repeat(0, 1)

    def repeat(self, least: int = 0, most: int | None = None) -> Automaton:
        """``least`` to ``most`` strings of this one, one after the other; without end if ``most`` is None.

        Raises:
            TrieautoError: bounds that are no such numbers.
            UnsupportedError: too many states.
        """
        from .algebra import repeated

        return repeated(self, least, most)

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes, without the caller's values themselves."""
        arrays: list[npt.NDArray[Any]] = [self.labels, self.links, self.targets, self.accepting]
        if self.values is not None and self.values.subtree_ends is not self.links:
            arrays.append(self.values.subtree_ends)
        return sum(array.nbytes for array in arrays) + (0 if self.values is None else self.values.nbytes)

    def __repr__(self) -> str:
        what = "automaton" if self.values is None else f"set of {len(self.values):,} values"
        return f"<Automaton: {what}, {self.num_states:,} states>"


def with_prefix_space(automaton: Automaton, prefix_space: PrefixSpace) -> Automaton:
    """The automaton of the strings of a set with a space before them: before all, or before any.

    One state is added, the new start (the last state); the others keep their numbers. (Except that a set in which
    some values begin with a space becomes a trie of twice as many strings.) O(states).

    Raises:
        UnsupportedError: "optional" for a set that holds a value both with and without a space before it, so that a
            text could be two values at once.
    """
    if prefix_space == "none":
        return automaton
    values = automaton.values
    if values is None or not automaton.is_trie:
        raise UnsupportedError(f"prefix_space={prefix_space!r} is for sets; put the space into the pattern instead")
    children = _children(automaton, 0)
    if prefix_space == "optional" and any(automaton.labels[child] == SPACE for child in children):
        return _with_spaced_values(automaton, values)
    num_states = automaton.num_states
    labels, links, targets = edges_of_trie(automaton.labels, automaton.links)
    own_edges = [(SPACE, 0)]
    if prefix_space == "optional":
        own_edges = sorted(own_edges + [(int(automaton.labels[child]), child) for child in children])
    labels = np.append(labels, np.array([byte for byte, _ in own_edges], np.uint8))
    targets = np.append(targets, np.array([target for _, target in own_edges], np.int32))
    links = np.append(links, links[-1] + np.int32(len(own_edges)))
    accepts_empty = automaton.accepting[0] if prefix_space == "optional" else np.uint8(0)
    accepting = np.append(automaton.accepting, accepts_empty).astype(np.uint8)
    return Automaton(labels, links, targets, accepting, num_states, values, automaton.engine)


def without_prefix_space(automaton: Automaton) -> Automaton:
    """The trie that ``with_prefix_space`` added a start to; or the automaton itself, if it is a trie. O(states)."""
    values = automaton.values
    if automaton.is_trie or values is None:
        return automaton
    num_edges = automaton.num_states - 2  # of the trie: one into each state but its root
    labels = np.zeros(automaton.num_states - 1, np.uint8)
    labels[automaton.targets[:num_edges]] = automaton.labels[:num_edges]
    return Automaton(
        labels, values.subtree_ends, automaton.targets[:0], automaton.accepting[:-1], 0, values, automaton.engine
    )


def _children(automaton: Automaton, state: int) -> list[int]:
    children = []
    child, end = state + 1, int(automaton.links[state])
    while child < end:
        children.append(child)
        child = int(automaton.links[child])
    return children


def _with_spaced_values(automaton: Automaton, values: SortedValues) -> Automaton:
    """The trie of all values and of all with a space before them: needed where some begin with a space themselves."""
    plain = [values[rank] for rank in range(len(values))]
    for value in plain:
        rest = value[1:] if value[:1] in (" ", b" ") else None
        if rest is not None and automaton.accepts(rest):
            raise UnsupportedError(
                f"the set holds both {shorten(rest)} and {shorten(value)}, so an optional space before a value would "
                "be ambiguous: compile with prefix_space='none' or 'required'"
            )
    spaced = [" " + value if isinstance(value, str) else b" " + value for value in plain]
    packed = pack(plain + spaced)
    order, shared = sort_packed(packed)
    labels, subtree_ends, accepting, terminals = build_trie(packed.data, packed.offsets, order, shared)
    both = SortedValues(values.given, values.order[order % len(plain)], terminals, subtree_ends)
    return Automaton(labels, subtree_ends, automaton.targets, accepting, 0, both, automaton.engine)
