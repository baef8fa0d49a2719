"""Grammars whose language is a finite union of strings: literals, their sequences, and rules made of such."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from ..errors import TrieautoError, UnsupportedError, shorten
from .notations import Notation

MAX_CHARACTERS = 10_000_000  # that sequences and references may make of a grammar; or twice its own length
MAX_DEPTH = 100  # of groups and rules within each other


class Token(NamedTuple):
    """A piece of a grammar that means something: a group of ``Notation.token``, its text, where it begins."""

    group: str
    text: str
    position: int


END = Token("end", "", -1)


def values_of_grammar(text: str, notation: Notation) -> list[str]:
    """All strings of a grammar, if it is a finite union of them; duplicates are possible.

    Understood are literals, sequences, alternatives, groups, what may be left out (``?``; ``[ ]`` in Lark) and rules
    that are made of these. O(text + strings); long alternations of literals are read in a few passes of ``re``. Rules
    that the first one does not need are not looked at.

    Raises:
        UnsupportedError: anything else (recursion, repetition, classes of characters, regular expressions, statements),
            naming it and its place; a Lark grammar whose language hangs on how texts are cut into terminals; more than
            ``MAX_CHARACTERS``.
        TrieautoError: not a grammar: a rule that is missing or there twice, a bracket without its other, a bad escape.
    """
    return _Union(text, notation).values()


class _Union:
    """One grammar while it is read."""

    def __init__(self, text: str, notation: Notation) -> None:
        self._text = text
        self._notation = notation
        self._most = max(MAX_CHARACTERS, 2 * len(text))
        self._rules: dict[str, list[Token]] = {}
        self._known: dict[str, list[str]] = {}
        self._open: list[str] = []
        self._depth = 0
        self._terminals: list[str] = []  # the strings of those that rules use, where texts are cut into such
        self._first_sequence: Token | None = None
        self._read_rules()

    def values(self) -> list[str]:
        start = self._notation.start
        if start not in self._rules:
            raise TrieautoError(f"there is no rule {start!r}, with which {self._notation.title} grammars begin")
        values = self._values_of_rule(Token("name", start, 0))
        if self._first_sequence is not None:
            self._check_terminals(self._first_sequence)
        return values

    # Rules

    def _read_rules(self) -> None:
        rule: list[Token] | None = None
        newline: Token | None = None
        for found in self._notation.token.finditer(self._text):
            group = found.lastgroup
            if group is None:
                continue
            token = Token(group, found[group], found.start())
            if group == "newline":
                newline = token
            elif group == "unclosed":
                raise self._error("a string literal is never closed", token)
            elif group == "head":
                name = token.text.lstrip("!?")
                if name in self._rules:
                    raise self._error(f"the rule {name!r} is there twice", token)
                rule = self._rules[name] = []
                newline = None
            elif rule is None or (newline is not None and token.text[:1] != "|"):
                following = self._text[token.position + len(token.text) :][:1]
                is_more = group == "other" or (self._notation.is_lexed and following in (".", "{"))
                raise self._refused(token) if is_more else self._error("a rule has to begin here", token)
            else:
                rule.append(token)
                newline = None

    def _values_of_rule(self, reference: Token) -> list[str]:
        name = reference.text
        if name in self._known:
            return self._known[name]
        if name in self._notation.macros:
            raise self._refused(reference)
        if name not in self._rules:
            raise self._error(f"there is no rule {shorten(name)}", reference)
        if name in self._open:
            raise self._refused(reference, f"the rule {name!r}, which is made of itself,")
        if len(self._open) + self._depth >= MAX_DEPTH:
            raise self._refused(reference, f"what lies within more than {MAX_DEPTH} rules and groups")
        self._open.append(name)
        tokens = [*self._rules[name], END]
        values, place = self._alternatives(tokens, 0)
        if tokens[place] is not END:
            raise self._error(f"{tokens[place].text!r} closes nothing", tokens[place])
        self._open.pop()
        self._known[name] = values
        return values

    def _alternatives(self, tokens: list[Token], place: int) -> tuple[list[str], int]:
        """The strings of alternatives, and the place of the token after them: a closing bracket, or the end."""
        is_lexed = self._notation.is_lexed and not _is_terminal(self._open[-1])
        strings: list[str] = []
        items: list[list[str]] = []  # of the alternative that is being read
        size = 0
        while True:
            token = tokens[place]
            place += 1
            if token.group == "literals":
                try:
                    first, *others = self._notation.values(token.text)
                except TrieautoError as error:
                    raise type(error)(f"{error} (in the literals at {self._place(token)})") from None
                if is_lexed:
                    self._terminals += [first, *others]
                items.append([first])
                if others:
                    values = self._sequence(items, token, is_lexed)
                    size += _size(values)
                    strings += values
                    strings += others[:-1]
                    items = [others[-1:]]
            elif token.group == "name":
                values = self._values_of_rule(token)
                if is_lexed and _is_terminal(token.text):
                    self._terminals += values
                items.append(values)
            elif token.group == "mark" and token.text in "([":
                values, place = self._group(tokens, place)
                items.append(values)
            elif token.text == "?" and items:
                items[-1] = [*items[-1], ""]
            elif token is END or (token.group == "mark" and token.text in "|)]"):
                if not items and not self._notation.allows_nothing:
                    raise self._error("an alternative without anything in it", token)
                values = self._sequence(items, token, is_lexed)
                size += _size(values)
                if size > self._most:
                    raise self._too_many(token)
                strings += values
                items = []
                if token.text != "|":
                    return strings, place - 1
            else:
                raise self._refused(token)

    def _group(self, tokens: list[Token], place: int) -> tuple[list[str], int]:
        """The strings of a group, and the place of the token after it."""
        opening = tokens[place - 1]
        closing = {"(": ")", "[": "]"}[opening.text]
        if tokens[place].text == closing:
            return [""], place + 1
        if len(self._open) + self._depth >= MAX_DEPTH:
            raise self._refused(opening, f"what lies within more than {MAX_DEPTH} rules and groups")
        self._depth += 1
        values, place = self._alternatives(tokens, place)
        self._depth -= 1
        if tokens[place].text != closing:
            raise self._error(f"{opening.text!r} is never closed", opening)
        return (values if closing == ")" else [*values, ""]), place + 1

    def _sequence(self, items: list[list[str]], token: Token, is_lexed: bool) -> list[str]:
        """The strings of one item after the other."""
        if len(items) == 1:
            return items[0]
        if is_lexed and self._first_sequence is None and sum(item != [""] for item in items) > 1:
            self._first_sequence = token
        strings = [""]
        for item in items:
            if _size(strings) * len(item) + _size(item) * len(strings) > self._most:
                raise self._too_many(token)
            strings = [before + after for before in strings for after in item]
        return strings

    def _check_terminals(self, sequence: Token) -> None:
        """Refuse what texts are cut into if the longest terminal that fits may be the wrong one."""
        for shorter, longer in pairwise(sorted(set(self._terminals) - {""})):
            if longer.startswith(shorter):
                raise self._refused(
                    sequence,
                    f"a sequence of terminals of which one, {shorten(shorter)}, begins another, {shorten(longer)}, so "
                    "that lexers disagree about it (put the sequence into a terminal, a rule in capitals),",
                )

    # Errors

    def _place(self, token: Token) -> str:
        end = len(self._text) if token is END else token.position
        line = self._text.count("\n", 0, end) + 1
        return f"line {line}, column {end - self._text.rfind(chr(10), 0, end)}"

    def _error(self, message: str, token: Token) -> TrieautoError:
        return TrieautoError(f"{message}: {self._place(token)} of the {self._notation.title} grammar")

    def _refused(self, token: Token, what: str | None = None) -> UnsupportedError:
        where = f"{self._place(token)} of the {self._notation.title} grammar"
        return UnsupportedError(
            f"{what or shorten(token.text)} at {where} needs a general grammar engine: trieauto reads grammars that "
            "are finite unions of string literals"
        )

    def _too_many(self, token: Token) -> UnsupportedError:
        return self._refused(token, f"a union of strings with more than {self._most:,} characters in all")


def _is_terminal(name: str) -> bool:
    return name.lstrip("_")[:1].isupper()


def _size(values: list[str]) -> int:
    return sum(map(len, values)) + len(values)
