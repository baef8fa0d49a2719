"""The regular expressions by which pre-tokenizers split a text, read.

What a character class holds is asked of the tokenizer's own engine (see ``characters``), for Unicode has versions.
"""

from __future__ import annotations

from typing import NoReturn, Protocol

import numpy as np

from ..errors import UnsupportedError, shorten
from .programs import (
    NUM_CODE_POINTS,
    CharacterSet,
    Choice,
    Leaf,
    Look,
    Node,
    Program,
    Repeat,
    Series,
    only,
    program_of,
)

MOST_COPIES = 1_000  # of a repeated part
MOST_FOLDED = 64  # characters of a class in which case does not matter


class Classes(Protocol):
    """What the engine's classes hold."""

    def named(self, escape: str) -> CharacterSet:
        r"""Of ``\p{L}``, ``\s`` and the like."""

    def folded(self, character: str) -> CharacterSet:
        """The characters that equal one where case does not matter."""


def parse_pattern(pattern: str, classes: Classes, *, is_rust: bool) -> Program:
    """The program of a regular expression.

    Args:
        pattern: in the notation that Oniguruma and Rust's regex share.
        classes: what its classes hold.
        is_rust: whether it is Rust's: there ``$`` holds at the end of the text alone, and ``{1,3}+`` is possessive;
            to Oniguruma that is ``(?:x{1,3})+``.

    Raises:
        UnsupportedError: what the notation has beyond classes, groups, alternatives, greedy repeats and looking at the
            next character, and possessive repeats of more than single characters.
    """
    return program_of(_Parser(pattern, classes, is_rust).whole())


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
            "tokenization='canonical' of a language of more than 200,000 strings follows the pre-tokenizer, but "
            f"{what} at position {self._at} of {shorten(self._pattern, 200)} is not supported"
        )

    def _peek(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        if not self._peek(text):
            return False
        self._at += len(text)
        return True

    def whole(self) -> Node:
        node = self._choice()
        if self._at < len(self._pattern):
            self._refuse("an unmatched parenthesis")
        if node.is_nullable:
            self._refuse("a match of the empty text")
        return node

    def _choice(self) -> Node:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(parts)

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in _ATOM_ENDS:
            parts.append(self._repeated(self._atom()))
        return Series(parts)

    def _repeated(self, atom: Node) -> Node:
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
            return atom
        if atom.is_nullable:
            self._refuse("a repeat of what may be empty")
        if max(least, bounds or 0) > MOST_COPIES:
            self._refuse(f"more than {MOST_COPIES:,} repeats")
        if self._take("?"):
            self._refuse("a lazy repeat")
        repeat = Repeat(atom, least, bounds)
        if not self._take("+"):
            return repeat
        if has_braces and not self._is_rust:
            return Repeat(repeat, 1, None)
        if not isinstance(atom, Leaf):
            self._refuse("a possessive repeat of more than single characters")
        return Repeat(atom, least, bounds, is_possessive=True)

    def _bounds(self) -> tuple[int, int | None]:
        end = self._pattern.find("}", self._at)
        low, comma, high = self._pattern[self._at + 1 : max(end, self._at)].partition(",")
        if end < 0 or not low.isdecimal() or not (high == "" or high.isdecimal()):
            self._refuse("these braces")
        self._at = end + 1
        return int(low), (int(high) if high else None) if comma else int(low)

    def _atom(self) -> Node:
        if self._take("(?!"):
            characters = self._looked_at()
            return Look(~characters, True)
        if self._take("(?="):
            return Look(self._looked_at(), False)
        if self._take("(?i:"):
            return self._group(True)
        if self._take("(?:"):
            return self._group(self._ignores_case)
        if self._peek("(?"):
            self._refuse(f"the group {self._pattern[self._at : self._at + 4]!r}")
        if self._take("("):
            return self._group(self._ignores_case)
        if self._take("["):
            return Leaf(self._class())
        character = self._pattern[self._at]
        if character == "$":
            if not self._is_rust:
                self._refuse("'$', which also holds before the end of a line,")
            self._at += 1
            return Look(None, True)
        if character in "^.*+?{":
            self._refuse(f"{character!r}")
        if character == "\\":
            return Leaf(self._escape())
        self._at += 1
        return Leaf(self._literal(character))

    def _group(self, ignores_case: bool) -> Node:
        before, self._ignores_case = self._ignores_case, ignores_case
        node = self._choice()
        self._ignores_case = before
        if not self._take(")"):
            self._refuse("a group without an end")
        return node

    def _looked_at(self) -> CharacterSet:
        node = self._choice()
        while isinstance(node, Series) and len(node.parts) == 1:
            node = node.parts[0]
        if not self._take(")") or not isinstance(node, Leaf):
            self._refuse("looking at more than the next character")
        return node.characters

    def _literal(self, character: str) -> CharacterSet:
        return self._classes.folded(character) if self._ignores_case else only(character)

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
        if self._ignores_case:
            codes = np.flatnonzero(found).tolist()
            if len(codes) > MOST_FOLDED or not all(chr(code).isascii() for code in codes):
                self._refuse("so large a class in which case does not matter")
            found = np.logical_or.reduce([self._classes.folded(chr(code)) for code in codes])
        return ~found if is_negated else found

    def _class_part(self) -> CharacterSet:
        if self._peek("\\"):
            return self._escape().copy()
        character = self._pattern[self._at : self._at + 1]
        if not character:
            self._refuse("a class without an end")
        self._at += 1
        return only(character)
