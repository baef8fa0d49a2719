"""The regular expressions by which pre-tokenizers split a text, as small programs of a backtracking matcher.

What a character class holds is asked of the tokenizer's own engine (see ``characters``), for Unicode has versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedError, shorten

NUM_CODE_POINTS = 0x110000
MOST_COPIES = 1_000  # of a repeated part
CHAR, LOOK, SPLIT, JUMP, MATCH = range(5)

CharacterSet = npt.NDArray[np.bool_]
"""bool[0x110000]: which characters are in it."""


class Classes(Protocol):
    """What the engine's classes hold."""

    def named(self, escape: str) -> CharacterSet:
        r"""Of ``\p{L}``, ``\s`` and the like."""

    def folded(self, character: str) -> CharacterSet:
        """The characters that equal one where case does not matter."""


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


def alternatives_of(strings: Sequence[str]) -> Program:
    """The program of a few strings, earlier ones before later ones."""
    program = Program()
    nodes: list[_Node] = [_Sequence([_Leaf(_only(c)) for c in string]) for string in strings]
    _Writer(program).write(_Choice(nodes))
    program.instructions.append(Instruction(MATCH))
    return program


def program_of_set(characters: CharacterSet, *, is_repeated: bool) -> Program:
    """The program of one character of a set, or of as many as there are."""
    program = Program()
    leaf = _Leaf(characters)
    _Writer(program).write(_Repeat(leaf, 1, None) if is_repeated else leaf)
    program.instructions.append(Instruction(MATCH))
    return program


def parse_pattern(pattern: str, classes: Classes, *, is_rust: bool) -> Program:
    """The program of a regular expression.

    Args:
        pattern: in the notation that Oniguruma and Rust's regex share.
        classes: what its classes hold.
        is_rust: whether it is Rust's: there ``$`` holds at the end of the text alone, and ``{1,3}+`` is possessive;
            to Oniguruma that is ``(?:x{1,3})+``.

    Raises:
        UnsupportedError: what the notation has beyond classes, groups, alternatives, greedy repeats and looking at the
            next character. (Possessive repeats are taken where they match what greedy ones do.)
    """
    node = _Parser(pattern, classes, is_rust).whole()
    program = Program()
    _Writer(program).write(node)
    program.instructions.append(Instruction(MATCH))
    return program


# The parts of an expression


class _Node:
    def first(self) -> CharacterSet:
        """The characters that it can begin with."""
        raise NotImplementedError

    @property
    def is_nullable(self) -> bool:
        """Whether it matches the empty text."""
        raise NotImplementedError


@dataclass
class _Leaf(_Node):
    characters: CharacterSet

    def first(self) -> CharacterSet:
        return self.characters

    @property
    def is_nullable(self) -> bool:
        return False


@dataclass
class _Look(_Node):
    characters: CharacterSet | None  # None for none
    at_end: bool

    def first(self) -> CharacterSet:
        return np.zeros(NUM_CODE_POINTS, bool)  # what follows begins with what it begins with

    @property
    def is_nullable(self) -> bool:
        return False  # it may fail


@dataclass
class _Sequence(_Node):
    parts: list[_Node]

    def first(self) -> CharacterSet:
        found = np.zeros(NUM_CODE_POINTS, bool)
        for part in self.parts:
            found |= part.first()
            if not part.is_nullable and not isinstance(part, _Look):
                break
        return found

    @property
    def is_nullable(self) -> bool:
        return all(part.is_nullable for part in self.parts)


@dataclass
class _Choice(_Node):
    parts: list[_Node]

    def first(self) -> CharacterSet:
        return np.logical_or.reduce([part.first() for part in self.parts])  # type: ignore[no-any-return]

    @property
    def is_nullable(self) -> bool:
        return any(part.is_nullable for part in self.parts)


@dataclass
class _Repeat(_Node):
    part: _Node
    least: int
    most: int | None

    def first(self) -> CharacterSet:
        return self.part.first()

    @property
    def is_nullable(self) -> bool:
        return self.least == 0 or self.part.is_nullable


def _only(character: str) -> CharacterSet:
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

    def write(self, node: _Node) -> None:
        out = self._out
        if isinstance(node, _Leaf):
            out.append(Instruction(CHAR, leaf=self._leaf(node.characters)))
        elif isinstance(node, _Look):
            leaf = -1 if node.characters is None else self._leaf(node.characters)
            out.append(Instruction(LOOK, leaf=leaf, at_end=node.at_end))
        elif isinstance(node, _Sequence):
            for part in node.parts:
                self.write(part)
        elif isinstance(node, _Choice):
            jumps = []
            for part in node.parts[:-1]:
                split = self._reserve()
                self.write(part)
                jumps.append(self._reserve())
                out[split] = Instruction(SPLIT, split + 1, len(out))
            self.write(node.parts[-1])
            for jump in jumps:
                out[jump] = Instruction(JUMP, len(out))
        elif isinstance(node, _Repeat):
            for _ in range(node.least):
                self.write(node.part)
            if node.most is None:
                split = self._reserve()
                self.write(node.part)
                out.append(Instruction(JUMP, split))
                out[split] = Instruction(SPLIT, split + 1, len(out))
                return
            splits = []
            for _ in range(node.most - node.least):
                splits.append(self._reserve())
                self.write(node.part)
            for split in splits:
                out[split] = Instruction(SPLIT, split + 1, len(out))

    def _reserve(self) -> int:
        self._out.append(Instruction(JUMP))
        return len(self._out) - 1


_ESCAPED = {"r": "\r", "n": "\n", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_ATOM_ENDS = "|)"


class _Parser:
    def __init__(self, pattern: str, classes: Classes, is_rust: bool) -> None:
        self._pattern = pattern
        self._classes = classes
        self._is_rust = is_rust
        self._at = 0
        self._ignores_case = False

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedError(
            f"tokenization='canonical' of a language with so many strings follows the tokenizer's pre-tokenizer, but "
            f"{what} at position {self._at} of {shorten(self._pattern, 200)} is not supported"
        )

    def _peek(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        if not self._peek(text):
            return False
        self._at += len(text)
        return True

    def whole(self) -> _Node:
        node = self._choice()
        if self._at < len(self._pattern):
            self._refuse("an unmatched parenthesis")
        if node.is_nullable:
            self._refuse("a match of the empty text")
        return node

    def _choice(self) -> _Node:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else _Choice(parts)

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        possessive: list[int] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in _ATOM_ENDS:
            part, is_possessive = self._repeated(self._atom())
            if is_possessive:
                possessive.append(len(parts))
            parts.append(part)
        for place in possessive:
            repeat, rest = parts[place], _Sequence(parts[place + 1 :])
            assert isinstance(repeat, _Repeat)
            is_simple = isinstance(repeat.part, _Leaf)
            if not is_simple or (not rest.is_nullable and bool((rest.first() & repeat.first()).any())):
                self._refuse("a possessive repeat that can match less than a greedy one")
        return _Sequence(parts)

    def _repeated(self, atom: _Node) -> tuple[_Node, bool]:
        least: int = 1
        bounds: int | None = 1
        has_braces = self._peek("{")
        if self._take("*"):
            least, bounds = 0, None
        elif self._take("+"):
            least, bounds = 1, None
        elif self._take("?"):
            least, bounds = 0, 1
        elif self._peek("{"):
            least, bounds = self._bounds()
        else:
            return atom, False
        if isinstance(atom, _Look) or atom.is_nullable:
            self._refuse("a repeat of what may be empty")
        if max(least, bounds or 0) > MOST_COPIES:
            self._refuse(f"more than {MOST_COPIES:,} repeats")
        if self._take("?"):
            self._refuse("a lazy repeat")
        repeat = _Repeat(atom, least, bounds)
        if has_braces and not self._is_rust:
            return (_Repeat(repeat, 1, None) if self._take("+") else repeat), False
        return repeat, self._take("+")

    def _bounds(self) -> tuple[int, int | None]:
        end = self._pattern.find("}", self._at)
        low, comma, high = self._pattern[self._at + 1 : max(end, self._at)].partition(",")
        if end < 0 or not low.isdecimal() or not (high == "" or high.isdecimal()):
            self._refuse("these braces")
        self._at = end + 1
        return int(low), (int(high) if high else None) if comma else int(low)

    def _atom(self) -> _Node:
        if self._take("(?!"):
            characters = self._looked_at()
            return _Look(~characters, True)
        if self._take("(?="):
            return _Look(self._looked_at(), False)
        if self._take("(?i:"):
            return self._group(True)
        if self._take("(?:"):
            return self._group(self._ignores_case)
        if self._peek("(?"):
            self._refuse(f"the group {self._pattern[self._at : self._at + 4]!r}")
        if self._take("("):
            return self._group(self._ignores_case)
        if self._take("["):
            if self._ignores_case:
                self._refuse("a class in which case does not matter")
            return _Leaf(self._class())
        character = self._pattern[self._at]
        if character == "$":
            if not self._is_rust:
                self._refuse("'$', which also holds before the end of a line,")
            self._at += 1
            return _Look(None, True)
        if character in "^.*+?{":
            self._refuse(f"{character!r}")
        if character == "\\":
            return _Leaf(self._escape())
        self._at += 1
        return _Leaf(self._literal(character))

    def _group(self, ignores_case: bool) -> _Node:
        before, self._ignores_case = self._ignores_case, ignores_case
        node = self._choice()
        self._ignores_case = before
        if not self._take(")"):
            self._refuse("a group without an end")
        return node

    def _looked_at(self) -> CharacterSet:
        node = self._choice()
        while isinstance(node, _Sequence) and len(node.parts) == 1:
            node = node.parts[0]
        if not self._take(")") or not isinstance(node, _Leaf):
            self._refuse("looking at more than the next character")
        return node.characters

    def _literal(self, character: str) -> CharacterSet:
        return self._classes.folded(character) if self._ignores_case else _only(character)

    def _escape(self) -> CharacterSet:
        character = self._pattern[self._at + 1 : self._at + 2]
        if character in ("p", "P"):
            end = self._pattern.find("}", self._at)
            if self._pattern[self._at + 2 : self._at + 3] != "{" or end < 0:
                self._refuse("a property without braces")
            name, self._at = self._pattern[self._at : end + 1], end + 1
            return self._classes.named(name)
        if character in ("s", "S", "d", "D", "w", "W"):
            self._at += 2
            found = self._classes.named("\\" + character.lower())
            return ~found if character.isupper() else found
        if character in _ESCAPED:
            self._at += 2
            return self._literal(_ESCAPED[character])
        if character == "" or character.isalnum():
            self._refuse(f"the escape of {character!r}")
        self._at += 2
        return self._literal(character)

    def _class(self) -> CharacterSet:
        is_negated = self._take("^")
        found = np.zeros(NUM_CODE_POINTS, bool)
        if self._peek("]"):
            self._refuse("a class without characters")
        while not self._take("]"):
            if self._at >= len(self._pattern):
                self._refuse("a class without an end")
            if self._peek("[") or self._peek("&&"):
                self._refuse("a class inside a class")
            begin = self._at
            part = self._class_part()
            if self._peek("-") and not self._peek("-]"):
                self._at += 1
                end = self._class_part()
                if part.sum() != 1 or end.sum() != 1 or int(part.argmax()) > int(end.argmax()):
                    self._at = begin
                    self._refuse("this range")
                part[int(part.argmax()) : int(end.argmax()) + 1] = True
            found |= part
        return ~found if is_negated else found

    def _class_part(self) -> CharacterSet:
        if self._peek("\\"):
            return self._escape().copy()
        character = self._pattern[self._at : self._at + 1]
        if not character:
            self._refuse("a class without an end")
        self._at += 1
        return _only(character)
