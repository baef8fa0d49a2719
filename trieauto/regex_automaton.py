"""Regular expressions, in the syntax of Python's ``re``, as automata over UTF-8."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

import numpy as np

from .algebra import minimised
from .automaton import Automaton
from .characters import ALL, ALL_BYTES, part_of_ranges, utf8_automaton
from .errors import EmptyConstraintError, TrieautoError, UnsupportedError, shorten
from .nfa import GROWTH, Nfa, Part, TooManyStatesError, edges_of
from .regex_symbols import Symbols
from .regex_tree import Anchor, Characters, Choice, Node, Repeat, parse
from .value_sets import choices

_FEW_CHOICES = 8  # fewer are joined as they are


def regex(pattern: str | bytes, flags: int | re.RegexFlag = 0) -> Automaton:
    """The automaton of a regular expression: the strings that ``re.fullmatch(pattern, string, flags)`` matches.

    Syntax and flags are those of Python's ``re`` of the running version, Unicode's tables included, and the strings
    are taken in UTF-8. (A bytes pattern is a language of bytes.) Greedy and lazy repeats are the same language, and so
    are alternatives in any order. ``\\p{...}`` and ``\\P{...}`` are understood if the package ``regex`` is installed.

    Args:
        pattern: a regular expression. Surrogates, which have no UTF-8, are left out of classes.
        flags: of ``re``: ASCII, IGNORECASE, MULTILINE, DOTALL, UNICODE, VERBOSE.

    Returns:
        A deterministic automaton, not always minimal. Time and memory grow with the states, which are as many as the
        repeats written out have: ``[^"]{0,2000}`` takes some 0.1 s. Where repeats can be told apart in several ways,
        as in ``(\\w+ ?){1,100}``, there are in between the square of their number and more, and those that make no
        difference are put together at the end: some hundred such repeats take a second or two. The first use in a
        process of ``\\w``, ``\\d``, ``\\s``, or IGNORECASE asks Unicode's tables, for some 30 to 80 ms each.

    Raises:
        UnsupportedError: what is not regular, or would take too many states: look-around, back-references, word
            boundaries, conditionals, atomic groups and possessive quantifiers, anchors that change the language (``^``
            and ``$`` other than at the very beginning and end), a literal surrogate, the flag LOCALE. The message
            names it and its position in the pattern.
        EmptyConstraintError: the pattern matches no string at all.
        TrieautoError: not a regular expression (with the message and position of ``re``), or nested too deeply.
    """
    return pattern_automaton(pattern, flags)


def pattern_automaton(pattern: str | bytes, flags: int | re.RegexFlag = 0, anchored: bool = True) -> Automaton:
    """As ``regex``, which see.

    Args:
        anchored: whether the pattern is to match the whole string. Otherwise it may match anywhere in it, as in
            ``re.search`` and in JSON Schema's ``pattern``: ``^`` and ``$`` (which is then only the very end) are heeded
            at the beginning and end of each alternative, and any text may stand where they are missing.
    """
    nodes = parse(pattern, flags)
    edge = _Edge.SHUT if anchored else _Edge.OPEN
    try:
        try:
            return _Builder(pattern, attempts=1).automaton(nodes, edge)
        except TooManyStatesError:
            symbols = Symbols.of(nodes) if isinstance(pattern, str) else None
            if symbols is None:
                return _Builder(pattern).automaton(nodes, edge)
            return symbols.spelled(_Builder(pattern, symbols).automaton(nodes, edge))
    except RecursionError:
        raise TrieautoError(f"the pattern {shorten(pattern)} is nested too deeply") from None


class _Edge(Enum):
    """What lies on one side of a node: the beginning or end of the string, any text, or other nodes."""

    SHUT = 0
    OPEN = 1
    INNER = 2


class _Builder:
    """Adds nodes of one pattern to an ``Nfa``.

    Args:
        symbols: to take in the place of bytes.
        attempts: see ``Nfa.automaton``.
    """

    def __init__(self, pattern: str | bytes, symbols: Symbols | None = None, attempts: int = len(GROWTH)) -> None:
        self.nfa = Nfa()
        self.pattern = pattern
        self.is_text = isinstance(pattern, str)
        self.symbols = symbols
        self.attempts = attempts

    def automaton(self, nodes: Sequence[Node], edge: _Edge) -> Automaton:
        """The automaton of nodes, with the same on both sides of them."""
        part = self.sequence(nodes, edge, edge)
        self.nfa.sets.clear()  # alternatives are no values
        automaton = self.nfa.automaton(part, self.attempts)
        # More states than its parts have: it remembers what may make no difference.
        return minimised(automaton) if automaton.num_states > self.nfa.num_states else automaton

    def sequence(self, nodes: Sequence[Node], left: _Edge, right: _Edge) -> Part:
        begin, end = 0, len(nodes)
        is_all_anchors = all(isinstance(node, Anchor) for node in nodes)
        while begin < end and isinstance(anchor := nodes[begin], Anchor) and (is_all_anchors or not anchor.is_end):
            left, right = self._after_anchor(anchor, left, right)
            begin += 1
        while begin < end and isinstance(anchor := nodes[end - 1], Anchor) and anchor.is_end:
            left, right = self._after_anchor(anchor, left, right)
            end -= 1
        if begin == end:
            return self._any_text() if _Edge.OPEN in (left, right) else self.nfa.nothing()
        parts = []
        # If there are anchors inside a node, it is for each of its alternatives to say whether any text is before it.
        if left is _Edge.OPEN and nodes[begin].anchor is None:
            parts.append(self._any_text())
        place = begin
        while place < end:
            after = next((k for k in range(place, end) if not _is_single(nodes[k])), end)
            if after > place:
                parts.append(self.nfa.literal(self._bytes_of(nodes[place:after])))
                place = after
                continue
            edges = left if place == begin else _Edge.INNER, right if place == end - 1 else _Edge.INNER
            parts.append(self._node(nodes[place], *edges))
            place += 1
        if right is _Edge.OPEN and nodes[end - 1].anchor is None:
            parts.append(self._any_text())
        return self.nfa.sequence(parts)

    def _after_anchor(self, anchor: Anchor, left: _Edge, right: _Edge) -> tuple[_Edge, _Edge]:
        edge = right if anchor.is_end else left
        if edge is _Edge.INNER or (edge is _Edge.OPEN and anchor.is_of_line):
            raise self._refusal(anchor)
        return (left, _Edge.SHUT) if anchor.is_end else (_Edge.SHUT, right)

    def _refusal(self, anchor: Anchor) -> UnsupportedError:
        where = "end" if anchor.is_end else "beginning"
        return UnsupportedError(
            f"the anchor {anchor.source} at position {anchor.position} of the pattern {shorten(self.pattern)} is not "
            f"supported: it is not at the {where} of the string in every case"
        )

    def _node(self, node: Node, left: _Edge, right: _Edge) -> Part:
        if isinstance(node, Characters):
            if self.symbols is not None:
                return self.nfa.any_byte(self.symbols.bytes_of(node.ranges))
            if self.is_text:
                return part_of_ranges(self.nfa, node.ranges)
            return self.nfa.any_byte(byte for first, last in node.ranges for byte in range(first, last + 1))
        if isinstance(node, Choice):
            return self._choice(node, left, right)
        if isinstance(node, Repeat) and node.anchor is None:
            return self._repeat(node)
        raise self._refusal(node.anchor)  # type: ignore[arg-type]

    def _choice(self, node: Choice, left: _Edge, right: _Edge) -> Part:
        if node.anchor is None:
            left = right = _Edge.INNER
        fixed = [nodes for nodes in node.alternatives if node.anchor is None and all(map(_is_single, nodes))]
        parts = []
        if len(fixed) > _FEW_CHOICES:
            parts.append(self.nfa.embed(choices([self._bytes_of(nodes) for nodes in fixed])))
        else:
            fixed = []
        taken = set(map(id, fixed))
        parts += [self.sequence(nodes, left, right) for nodes in node.alternatives if id(nodes) not in taken]
        return self.nfa.choice(parts)

    def _bytes_of(self, nodes: Sequence[Node]) -> bytes:
        if self.symbols is not None:
            return b"".join(self.symbols.bytes_of(node.ranges) for node in nodes if isinstance(node, Characters))
        numbers = [node.ranges[0][0] for node in nodes if isinstance(node, Characters)]
        return "".join(map(chr, numbers)).encode() if self.is_text else bytes(numbers)

    def _any_text(self) -> Part:
        return self._loop(self._node(Characters(ALL if self.is_text else ALL_BYTES), _Edge.INNER, _Edge.INNER), 0)

    # Repeats

    def _repeat(self, node: Repeat) -> Part:
        if node.most is None and node.least <= 1:
            return self._loop(self.sequence(node.body, _Edge.INNER, _Edge.INNER), node.least)
        if node.most == 1:
            return self.nfa.optional(self.sequence(node.body, _Edge.INNER, _Edge.INNER))
        automaton = self._automaton(node.body)
        if automaton is None:
            return self.nfa.nothing() if node.least == 0 else self.nfa.choice([])
        return part_of_repeat(self.nfa, automaton, node.least, node.most)

    def _loop(self, part: Part, least: int) -> Part:
        """``part`` at least 0 or 1 times."""
        whole = self.nfa.choice([part])
        self.nfa.jump(part.end, part.start)
        if least == 0:
            self.nfa.jump(*whole)
        return whole

    def _automaton(self, nodes: list[Node]) -> Automaton | None:
        """The deterministic automaton of what is to be copied many times; None if it has no string."""
        if self.symbols is None and self.is_text and len(nodes) == 1 and isinstance(nodes[0], Characters):
            return utf8_automaton(tuple(nodes[0].ranges))
        try:
            return _Builder(self.pattern, self.symbols, self.attempts).automaton(nodes, _Edge.INNER)
        except EmptyConstraintError:
            return None


def part_of_repeat(nfa: Nfa, automaton: Automaton, least: int, most: int | None) -> Part:
    """``least`` to ``most`` times (None: any number) a language. O(edges of all copies), in a few array operations."""
    automaton, least = _without_empty(automaton, least)
    sources, labels, targets = edges_of(automaton)
    if len(labels) == 0 or most == 0:
        return nfa.nothing()
    # Between the copies are states of their own, into which nothing leads from within a copy.
    copies = max(least, 1) if most is None else most
    size = automaton.num_states + 1
    first = nfa.states(copies * size + 2)
    borders = first + size * np.arange(copies + 1, dtype=np.int32)
    end = int(borders[-1]) + 1
    offsets = borders[:-1, None] + np.int32(1)
    # Arrays, where the methods of ``Nfa`` take one edge or jump at a time.
    nfa.add_edges((offsets + sources).ravel(), np.tile(labels, copies), (offsets + targets).ravel())
    ends = np.flatnonzero(automaton.accepting).astype(np.int32)
    jumps = [
        (borders[:-1], borders[:-1] + np.int32(1 + automaton.start)),
        ((offsets + ends).ravel(), np.repeat(borders[1:], len(ends))),
    ]
    if most is None:
        nfa.jump(int(borders[-1]), int(borders[-2]))
        skips = borders[-1:] if least > 0 else borders
    else:
        skips = borders[least:]
    jumps.append((skips, np.full(len(skips), end, np.int32)))
    for pair in jumps:
        nfa.add_jumps(*pair)
    return Part(nfa.sequence([nfa.nothing(), Part(first, end)]).start, end)


def _without_empty(automaton: Automaton, least: int) -> tuple[Automaton, int]:
    """A language whose repeats, from the number returned on, are those of another, and which lacks the empty string.

    What can be empty can be left out, so then 0 copies are enough. And many copies each of which may be empty would be
    as many ways for one string.
    """
    if not automaton.accepting[automaton.start]:
        return automaton, least
    sources, labels, targets = edges_of(automaton)
    own = sources == automaton.start
    counts = np.append(np.bincount(sources, minlength=automaton.num_states), np.count_nonzero(own))
    return (
        Automaton(
            np.concatenate([labels, labels[own]]),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
            np.concatenate([targets, targets[own], np.zeros(int(len(labels) == 0), np.int32)]).astype(np.int32),
            np.append(automaton.accepting, np.uint8(0)),
            automaton.num_states,
        ),
        0,
    )


def _is_single(node: Node) -> bool:
    """Whether this is one certain character."""
    return isinstance(node, Characters) and len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]
