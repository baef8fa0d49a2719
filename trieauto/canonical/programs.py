"""Small programs of a backtracking matcher, and the parts of expressions that they are written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

NUM_CODE_POINTS = 0x110000
CHAR, LOOK, SPLIT, JUMP, MATCH = range(5)

CharacterSet = npt.NDArray[np.bool_]
"""bool[0x110000]: which characters are in it."""


@dataclass(frozen=True)
class Instruction:
    """One step of a program: ``kind`` and what that kind needs.

    Attributes:
        kind: CHAR consumes a character of ``leaf``; LOOK asks for the next one without consuming it; SPLIT goes on at
            ``first`` and, if that fails, at ``second``; JUMP goes on at ``first``; MATCH ends.
        leaf: an index of ``Program.leaves``, -1 for none at all.
        at_end: whether LOOK holds at the end of the text.
    """

    kind: int
    first: int = -1
    second: int = -1
    leaf: int = -1
    at_end: bool = False


@dataclass
class Program:
    """Instructions, from the first one on, and the sets that they speak of."""

    instructions: list[Instruction] = field(default_factory=list)
    leaves: list[CharacterSet] = field(default_factory=list)


def program_of(node: Node) -> Program:
    """The program of an expression."""
    program = Program()
    _Writer(program).write(node)
    program.instructions.append(Instruction(MATCH))
    return program


def alternatives_of(strings: Sequence[str]) -> Program:
    """The program of a few strings, earlier ones before later ones."""
    return program_of(Choice([Series([Leaf(only(c)) for c in string]) for string in strings]))


def program_of_set(characters: CharacterSet, *, is_repeated: bool) -> Program:
    """The program of one character of a set, or of as many as there are."""
    leaf = Leaf(characters)
    return program_of(Repeat(leaf, 1, None) if is_repeated else leaf)


# The parts of an expression


class Node:
    @property
    def is_nullable(self) -> bool:
        """Whether it matches the empty text."""
        raise NotImplementedError


@dataclass
class Leaf(Node):
    characters: CharacterSet

    @property
    def is_nullable(self) -> bool:
        return False


@dataclass
class Look(Node):
    characters: CharacterSet | None  # None for none
    at_end: bool

    @property
    def is_nullable(self) -> bool:
        return True


@dataclass
class Series(Node):
    parts: list[Node]

    @property
    def is_nullable(self) -> bool:
        return all(part.is_nullable for part in self.parts)


@dataclass
class Choice(Node):
    parts: list[Node]

    @property
    def is_nullable(self) -> bool:
        return any(part.is_nullable for part in self.parts)


@dataclass
class Repeat(Node):
    """As often as it can be. ``is_possessive``: never less often, even if what follows does not match then (of a
    ``Leaf`` alone)."""

    part: Node
    least: int
    most: int | None
    is_possessive: bool = False

    @property
    def is_nullable(self) -> bool:
        return self.least == 0 or self.part.is_nullable


def only(character: str) -> CharacterSet:
    """The set of one character."""
    found = np.zeros(NUM_CODE_POINTS, bool)
    found[ord(character)] = True
    return found


class _Writer:
    """Writes the instructions of parts, one behind the other."""

    def __init__(self, program: Program) -> None:
        self._out = program.instructions
        self._leaves = program.leaves

    def _leaf(self, characters: CharacterSet) -> int:
        for number, known in enumerate(self._leaves):
            if np.array_equal(known, characters):
                return number
        self._leaves.append(characters)
        return len(self._leaves) - 1

    def write(self, node: Node) -> None:
        out = self._out
        if isinstance(node, Leaf):
            out.append(Instruction(CHAR, leaf=self._leaf(node.characters)))
        elif isinstance(node, Look):
            leaf = -1 if node.characters is None else self._leaf(node.characters)
            out.append(Instruction(LOOK, leaf=leaf, at_end=node.at_end))
        elif isinstance(node, Series):
            for part in node.parts:
                self.write(part)
        elif isinstance(node, Choice):
            jumps = []
            for part in node.parts[:-1]:
                split = self._reserve()
                self.write(part)
                jumps.append(self._reserve())
                out[split] = Instruction(SPLIT, split + 1, len(out))
            self.write(node.parts[-1])
            for jump in jumps:
                out[jump] = Instruction(JUMP, len(out))
        elif isinstance(node, Repeat):
            self._write_repeat(node)

    def _write_repeat(self, node: Repeat) -> None:
        out = self._out
        for _ in range(node.least):
            self.write(node.part)
        splits = []
        if node.most is None:
            splits.append(self._reserve())
            self.write(node.part)
            out.append(Instruction(JUMP, splits[0]))
        else:
            for _ in range(node.most - node.least):
                splits.append(self._reserve())
                self.write(node.part)
        # A possessive one that ends before it must is not followed by one more.
        looks = node.is_possessive and bool(splits)
        past_look = self._reserve() if looks and node.most is not None else -1
        for split in splits:
            out[split] = Instruction(SPLIT, split + 1, len(out))
        if looks:
            assert isinstance(node.part, Leaf)
            self.write(Look(~node.part.characters, True))
        if past_look >= 0:
            out[past_look] = Instruction(JUMP, len(out))

    def _reserve(self) -> int:
        self._out.append(Instruction(JUMP))
        return len(self._out) - 1
