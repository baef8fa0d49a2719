"""Patterns over a small alphabet: the sets of characters that a pattern does not tell apart.

Ambiguous repeats, as in ``(\\w+ ?){1,30}``, have many states before those that are equal are put together. One for each
set of characters is few enough; one for each byte of each character is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from .algebra import minimised
from .automaton import Automaton
from .characters import ALL, Ranges, part_of_ranges, union
from .errors import UnsupportedError
from .nfa import Nfa, Part, edges_of
from .regex_tree import Characters, Choice, Node, Repeat

_MOST_STATES = 20_000


class Symbols:
    """Numbers, as bytes, for the sets of characters that the nodes of a pattern do not tell apart."""

    def __init__(self, ranges: Sequence[Ranges], symbols: Mapping[Ranges, bytes]) -> None:
        """
        Args:
            ranges: the characters of each symbol.
            symbols: the symbols of each set of characters in the pattern.
        """
        self._ranges = ranges
        self._symbols = symbols

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> Symbols | None:
        """Those of a pattern; None if there are more than bytes."""
        classes = [tuple(ALL), *{tuple(node.ranges) for node in _characters_of(nodes)}]
        borders = np.unique([edge for ranges in classes for first, last in ranges for edge in (first, last + 1)])
        begins = borders[:-1]
        # For each class, whether it has the characters from each border to the next.
        has = np.array([
            (np.searchsorted(np.ravel(ranges), begins, side="right") % 2 == 1)
            | np.isin(begins, [last for _, last in ranges])
            for ranges in classes
        ])  # fmt: skip
        kinds, numbers = np.unique(has, axis=1, return_inverse=True)
        if kinds.shape[1] > 256:
            return None
        spans = list(zip(begins.tolist(), (borders[1:] - 1).tolist(), numbers.ravel().tolist(), strict=True))
        return cls(
            [
                union((first, last) for first, last, number in spans if number == symbol)
                for symbol in range(kinds.shape[1])
            ],
            {
                ranges: np.flatnonzero(row).astype(np.uint8).tobytes()
                for ranges, row in zip(classes, kinds, strict=True)
            },
        )

    def bytes_of(self, ranges: Ranges) -> bytes:
        """The symbols of one of the pattern's sets of characters."""
        return self._symbols[tuple(ranges)]

    def spelled(self, automaton: Automaton) -> Automaton:
        """The automaton over UTF-8 of one over symbols.

        Raises:
            UnsupportedError: too many states.
        """
        automaton = minimised(automaton)
        if automaton.num_states > _MOST_STATES:
            raise UnsupportedError(f"more than {_MOST_STATES:,} states between characters")
        nfa = Nfa()
        first = nfa.states(automaton.num_states + 1)
        end = first + automaton.num_states
        symbols: dict[tuple[int, int], list[int]] = {}
        for source, label, target in zip(*(array.tolist() for array in edges_of(automaton)), strict=True):
            symbols.setdefault((source, target), []).append(label)
        for (source, target), labels in symbols.items():
            part = part_of_ranges(nfa, union(span for label in labels for span in self._ranges[label]))
            nfa.jump(first + source, part.start)
            nfa.jump(part.end, first + target)
        for state in np.flatnonzero(automaton.accepting).tolist():
            nfa.jump(first + state, end)
        return nfa.automaton(Part(first + automaton.start, end))


def _characters_of(nodes: Iterable[Node]) -> Iterator[Characters]:
    for node in nodes:
        if isinstance(node, Characters):
            yield node
        elif isinstance(node, Choice):
            for alternative in node.alternatives:
                yield from _characters_of(alternative)
        elif isinstance(node, Repeat):
            yield from _characters_of(node.body)
