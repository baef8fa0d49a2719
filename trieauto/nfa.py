"""Automata in the making: parts joined without regard for ambiguity, made deterministic once, at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .automaton import Automaton
from .errors import EmptyConstraintError, UnsupportedError
from .kernels.assembly import assembled, shifted
from .kernels.determinise import determinise
from .kernels.jit import warm_up
from .kernels.trie import parents_of_trie

MAX_STATES = 20_000_000  # of the parts together; some gigabytes
# How many states and edges the result may have, by those of the parts, and some more. Where it takes more than the
# first, there is a second attempt; still more are a sign of a language that doubles with each repetition.
GROWTH = (2, 8)
ROOM = (1_000, 30_000)
LARGE = 256  # states of a trie that is laid out as it is

_MOST_REASONS = 3

_Edges = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.int32]]
_NO_EDGES = np.zeros(0, np.int32), np.zeros(0, np.uint8), np.zeros(0, np.int32)


class TooManyStatesError(UnsupportedError):
    """It takes very many states to be certain where a string leads."""


class Part(NamedTuple):
    """A language between two states of an ``Nfa``: the strings that lead from ``start`` to ``end``.

    Nothing leads into ``start`` from within, and nothing on from ``end``, so that parts can be joined by jumps.
    """

    start: int
    end: int


class Nfa:
    """A nondeterministic automaton over bytes that grows part by part.

    Each method that returns a ``Part`` adds its states; a part is used once. ``automaton`` makes the result.
    """

    def __init__(self) -> None:
        warm_up()
        self.num_states = 0  # but those of large tries, which follow them
        self._num_nodes = 0  # of large tries
        self._edges: list[_Edges] = []
        self._few_edges: list[int] = []  # source, byte, target; the next one
        self._strings: list[tuple[int, bytes]] = []  # from a state on, each byte to the next one
        self._classes: list[tuple[int, bytes]] = []  # from a state, each byte to the next one
        self._jumps: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]] = []
        self._few_jumps: list[int] = []  # source, target; the next one
        self._tries: list[tuple[Automaton, int, int]] = []  # between two states
        self._reasons: list[str] = []
        self.sets: list[Sequence[str | bytes]] = []  # the values of those embedded

    # States and edges

    def states(self, count: int) -> int:
        """Add states; the first one's number.

        Raises:
            UnsupportedError: more than ``MAX_STATES`` in all.
        """
        first = self.num_states
        self.num_states += count
        if self.num_states + self._num_nodes > MAX_STATES:
            raise UnsupportedError(f"this takes more than {MAX_STATES:,} states: repeat less, or less deeply")
        return first

    def edge(self, source: int, byte: int, target: int) -> None:
        """Add an edge."""
        self._few_edges += (source, byte, target)

    def add_edges(
        self, sources: npt.NDArray[np.int32], labels: npt.NDArray[np.uint8], targets: npt.NDArray[np.int32]
    ) -> None:
        """Add many edges: those of a state by ascending byte, and together."""
        self._edges.append((sources, labels, targets))

    def add_jumps(self, sources: npt.NDArray[np.int32], targets: npt.NDArray[np.int32]) -> None:
        """Add many jumps."""
        self._jumps.append((sources.astype(np.int32), targets.astype(np.int32)))

    def jump(self, source: int, target: int) -> None:
        """Let ``source`` go on as ``target``, without a byte."""
        self._few_jumps += (source, target)

    # Parts

    def nothing(self) -> Part:
        """The empty string."""
        start = self.states(2)
        self.jump(start, start + 1)
        return Part(start, start + 1)

    def literal(self, data: bytes) -> Part:
        """One string."""
        if not data:
            return self.nothing()
        start = self.states(len(data) + 1)
        self._strings.append((start, data))
        return Part(start, start + len(data))

    def any_byte(self, allowed: Iterable[int]) -> Part:
        """One byte of several."""
        start = self.states(2)
        self._classes.append((start, bytes(sorted(set(allowed)))))
        return Part(start, start + 1)

    def embed(self, automaton: Automaton) -> Part:
        """The language of an automaton. O(its edges); the trie of a large set is only noted, to be laid out."""
        self.sets += automaton.sets if automaton.values is None else [automaton.values.given]
        if automaton.is_trie and automaton.num_states >= LARGE:
            self._num_nodes += automaton.num_states
            begin = self.states(2)
            self._tries.append((automaton, begin, begin + 1))
            return Part(begin, begin + 1)
        if automaton.is_trie:
            sources, labels, targets = edges_of(automaton)
            links = np.searchsorted(sources, np.arange(automaton.num_states + 1)).astype(np.int32)
        else:
            links, labels, targets = automaton.links, automaton.labels, automaton.targets
        first = self.states(automaton.num_states + 2)
        begin, end = first + automaton.num_states, first + automaton.num_states + 1
        sources, targets, accepting = shifted(links, targets, automaton.accepting, first)
        self._edges.append((sources, labels[: len(sources)], targets))
        self._jumps.append((accepting, np.full(len(accepting), end, np.int32)))
        self.jump(begin, first + automaton.start)
        return Part(begin, end)

    def sequence(self, parts: Sequence[Part]) -> Part:
        """One after the other."""
        if not parts:
            return self.nothing()
        for before, after in pairwise(parts):
            self.jump(before.end, after.start)
        return Part(parts[0].start, parts[-1].end)

    def choice(self, parts: Sequence[Part]) -> Part:
        """One of them. Of none: no string at all."""
        start = self.states(2)
        for part in parts:
            self.jump(start, part.start)
            self.jump(part.end, start + 1)
        return Part(start, start + 1)

    def never(self, reason: str) -> Part:
        """No string at all; why, for the error if nothing else is allowed either."""
        self._reasons.append(reason)
        return self.choice([])

    def optional(self, part: Part) -> Part:
        """It, or nothing."""
        whole = self.choice([part])
        self.jump(*whole)
        return whole

    def repeat(self, make: Callable[[], Part], least: int, most: int | None) -> Part:
        """``least`` to ``most`` times (None: any number) what ``make`` adds, which is called for each copy."""
        copies = [make() for _ in range(least if most is None else most)]
        if most is None:
            loop = self.states(2)
            part = make()
            self.jump(loop, loop + 1)
            self.jump(loop, part.start)
            self.jump(part.end, loop)
            copies.append(Part(loop, loop + 1))
        whole = self.sequence(copies)
        if most is not None and least < most:
            end = self.states(1)
            for copy in copies[least:]:
                self.jump(copy.start, end)
            self.jump(whole.end, end)
            whole = Part(whole.start, end)
        return self.sequence([self.nothing(), whole])  # nothing leads into the start of what is returned

    # The result

    def automaton(self, part: Part, attempts: int = len(GROWTH)) -> Automaton:
        """The deterministic automaton of a part, every state of which can reach the end.

        Args:
            attempts: how often to try, each time with more room.

        Raises:
            EmptyConstraintError: the part has no string at all.
            TooManyStatesError: it takes very many states to be certain where a string leads (as in ``.*a.{30}``).
        """
        trie_begins = np.zeros(len(self._tries) + 1, np.int32)
        np.cumsum([trie.num_states for trie, _, _ in self._tries], out=trie_begins[1:])
        entries = np.array([entry for _, entry, _ in self._tries], np.int32)
        exits = np.array([exit for _, _, exit in self._tries], np.int32)
        roots = trie_begins[:-1] + np.int32(self.num_states)
        links, labels, targets, jump_links, jump_targets, is_possible = assembled(
            self.num_states, *self._all_edges(), *self._all_jumps(), entries, exits, roots, part.start, part.end
        )
        if not is_possible:
            why = "".join(f"; {reason}" for reason in self._reasons[:_MOST_REASONS])
            raise EmptyConstraintError(f"no string is allowed at all: nothing could ever be generated{why}")
        nodes = self._all_nodes(trie_begins)
        for growth, room in tuple(zip(GROWTH, ROOM, strict=True))[:attempts]:
            states = growth * self.num_states + self._num_nodes + room
            result = determinise(
                links, labels, targets, jump_links, jump_targets, part.start, part.end, trie_begins, *nodes, exits,
                states, 4 * states + 32 * room, growth * len(labels) + 2 * self._num_nodes + 64 * room,
            )  # fmt: skip
            if len(result[0]) > 0:
                break
        else:
            raise TooManyStatesError(
                f"this takes more than {states:,} states to be certain where a string leads: what can begin in the "
                "same way is repeated many times"
            )
        links, labels, targets, accepting = result
        if len(targets) == 0:
            targets = np.zeros(1, np.int32)  # empty would mean a trie
        sets = {id(values): values for values in self.sets}
        return Automaton(labels, links, targets, accepting, 0, sets=tuple(sets.values()))

    def _all_edges(self) -> _Edges:
        """In the order of their labels where they have one source."""
        chunks = [*self._edges]
        if self._few_edges:
            few = np.array(self._few_edges, np.int32).reshape(-1, 3)
            few = few[np.argsort(few[:, 1], kind="stable")]
            chunks.append((few[:, 0], few[:, 1].astype(np.uint8), few[:, 2]))
        for lists, is_string in ((self._strings, True), (self._classes, False)):
            if not lists:
                continue
            begins = np.array([begin for begin, _ in lists], np.int32)
            sizes = np.array([len(data) for _, data in lists])
            labels = np.frombuffer(b"".join([data for _, data in lists]), np.uint8)
            if is_string:
                begins -= (np.cumsum(sizes) - sizes).astype(np.int32)
            sources = np.repeat(begins, sizes)
            if is_string:
                sources += np.arange(len(labels), dtype=np.int32)
            chunks.append((sources, labels, sources + np.int32(1)))
        sources, labels, targets = (np.concatenate(column) for column in zip(_NO_EDGES, *chunks, strict=True))
        return sources, labels, targets

    def _all_nodes(
        self, begins: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """Of the large tries, one behind the other: labels, one past the last node below, accepting."""
        if len(self._tries) == 1:  # most often; not copied
            trie = self._tries[0][0]
            return trie.labels, trie.links, trie.accepting
        tries = [trie for trie, _, _ in self._tries]
        return (
            np.concatenate([_NO_EDGES[1], *(trie.labels for trie in tries)]),
            np.concatenate([_NO_EDGES[0], *(trie.links + begin for trie, begin in zip(tries, begins, strict=False))]),
            np.concatenate([_NO_EDGES[1], *(trie.accepting for trie in tries)]),
        )

    def _all_jumps(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        few = np.array(self._few_jumps, np.int32).reshape(-1, 2).T
        sources = np.concatenate([few[0], *(froms for froms, _ in self._jumps)])
        targets = np.concatenate([few[1], *(tos for _, tos in self._jumps)])
        return sources, targets


def edges_of(automaton: Automaton) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """sources int32[E], labels uint8[E], targets int32[E], by source and label."""
    if not automaton.is_trie:
        sources = np.repeat(np.arange(automaton.num_states, dtype=np.int32), np.diff(automaton.links))
        return sources, automaton.labels, automaton.targets[: len(sources)]
    parents = parents_of_trie(automaton.links)
    order = np.argsort(parents, kind="stable").astype(np.int32)
    return parents[order], automaton.labels[1:][order], order + np.int32(1)
