"""Automata in the making: parts joined without regard for ambiguity, made deterministic once, at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .automaton import Automaton
from .errors import EmptyConstraintError, UnsupportedError
from .kernels.determinise import determinise
from .kernels.graph import by_source, edges_to_any, reversed_edges
from .kernels.jit import warm_up
from .kernels.walk import UNREACHABLE

MAX_STATES = 20_000_000  # of the parts together; some gigabytes
# How many states the result may have, by those of the parts. Memory that is not used costs nothing, and more are a sign
# of a language that doubles with each repetition.
GROWTH = 8
ROOM = 30_000


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
        self.num_states = 0
        self._edges: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.int32]]] = []
        self._few_edges: list[tuple[int, int, int]] = []
        self._jumps: list[npt.NDArray[np.int32]] = []
        self._few_jumps: list[tuple[int, int]] = []

    # States and edges

    def states(self, count: int) -> int:
        """Add states; the first one's number.

        Raises:
            UnsupportedError: more than ``MAX_STATES`` in all.
        """
        first = self.num_states
        self.num_states += count
        if self.num_states > MAX_STATES:
            raise UnsupportedError(f"this takes more than {MAX_STATES:,} states: repeat less, or less deeply")
        return first

    def edge(self, source: int, byte: int, target: int) -> None:
        """Add an edge."""
        self._few_edges.append((source, byte, target))

    def add_edges(
        self, sources: npt.NDArray[np.int32], labels: npt.NDArray[np.uint8], targets: npt.NDArray[np.int32]
    ) -> None:
        """Add many edges: those of a state by ascending byte, and together."""
        self._edges.append((sources, labels, targets))

    def add_jumps(self, sources: npt.NDArray[np.int32], targets: npt.NDArray[np.int32]) -> None:
        """Add many jumps."""
        self._jumps.append(np.stack([sources, targets], axis=1).astype(np.int32))

    def jump(self, source: int, target: int) -> None:
        """Let ``source`` go on as ``target``, without a byte."""
        self._few_jumps.append((source, target))

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
        for place, byte in enumerate(data):
            self.edge(start + place, byte, start + place + 1)
        return Part(start, start + len(data))

    def any_byte(self, allowed: Iterable[int]) -> Part:
        """One byte of several."""
        start = self.states(2)
        for byte in allowed:
            self.edge(start, byte, start + 1)
        return Part(start, start + 1)

    def embed(self, automaton: Automaton) -> Part:
        """The language of an automaton. O(its edges), in a few array operations: a large set costs little."""
        sources, labels, targets = edges_of(automaton)
        first = self.states(automaton.num_states + 2)
        end = first + automaton.num_states + 1
        self.add_edges(sources + np.int32(first), labels, targets + np.int32(first))
        accepting = np.flatnonzero(automaton.accepting).astype(np.int32) + np.int32(first)
        self.add_jumps(accepting, np.full(len(accepting), end, np.int32))
        self.jump(end - 1, first + automaton.start)
        return Part(end - 1, end)

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

    def automaton(self, part: Part) -> Automaton:
        """The deterministic automaton of a part, every state of which can reach the end.

        Raises:
            EmptyConstraintError: the part has no string at all.
            UnsupportedError: it takes very many states to be certain where a string leads (as in ``.*a.{30}``).
        """
        few = np.array(self._few_edges, np.int32).reshape(-1, 3)
        few = few[np.argsort(few[:, 1], kind="stable")]  # by label; those of an embedded automaton are in order
        chunks = [*self._edges, (few[:, 0], few[:, 1].astype(np.uint8), few[:, 2])]
        links, labels, targets = by_source(
            self.num_states, *(np.concatenate(column) for column in zip(*chunks, strict=True))
        )
        jumps = np.concatenate([*self._jumps, np.array(self._few_jumps, np.int32).reshape(-1, 2)])
        froms, tos = np.ascontiguousarray(jumps.T)
        jump_links, _, jump_targets = by_source(self.num_states, froms, np.zeros(len(froms), np.uint8), tos)
        accepting = np.zeros(self.num_states, np.uint8)
        accepting[part.end] = 1
        states = GROWTH * self.num_states + ROOM
        result = determinise(
            links, labels, targets, jump_links, jump_targets, accepting, part.start,
            states, 4 * states + 32 * ROOM, GROWTH * len(labels) + 64 * ROOM,
        )  # fmt: skip
        if len(result[0]) == 0:
            raise UnsupportedError(
                f"this takes more than {states:,} states to be certain where a string leads: what can begin in the "
                "same way is repeated many times"
            )
        return _trimmed(*result)


def edges_of(automaton: Automaton) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """sources int32[E], labels uint8[E], targets int32[E], by source and label."""
    if not automaton.is_trie:
        sources = np.repeat(np.arange(automaton.num_states, dtype=np.int32), np.diff(automaton.links))
        return sources, automaton.labels, automaton.targets[: len(sources)]
    from .kernels.trie import parents_of_trie

    parents = parents_of_trie(automaton.links)
    order = np.argsort(parents, kind="stable").astype(np.int32)
    return parents[order], automaton.labels[1:][order], order + np.int32(1)


def _trimmed(
    links: npt.NDArray[np.int32],
    labels: npt.NDArray[np.uint8],
    targets: npt.NDArray[np.int32],
    accepting: npt.NDArray[np.uint8],
) -> Automaton:
    """Without states from which the end cannot be reached; every state can be reached from the start, state 0."""
    is_live = edges_to_any(*reversed_edges(links, targets), accepting) != UNREACHABLE
    if len(is_live) == 0 or not is_live[0]:
        raise EmptyConstraintError("no string is allowed at all: nothing could ever be generated")
    if not is_live.all():
        sources = np.repeat(np.arange(len(is_live)), np.diff(links))
        keep = is_live[sources] & is_live[targets]
        number = (np.cumsum(is_live) - 1).astype(np.int32)
        links = np.searchsorted(sources[keep], np.append(np.flatnonzero(is_live), len(is_live))).astype(np.int32)
        labels, targets, accepting = labels[keep], number[targets[keep]], accepting[is_live]
    if len(targets) == 0:
        targets = np.zeros(1, np.int32)  # empty would mean a trie
    return Automaton(labels, links, targets, accepting, 0)
