"""Regular expressions that are nothing but a union of literals: ``a|b|c``, escaped, in a group or not."""

from __future__ import annotations

import re
from typing import NamedTuple

_HEX = "[0-9A-Fa-f]"
_ESCAPES = rf"[^0-9A-Za-z] | [afnrtv] | x{_HEX}{{2}} | u{_HEX}{{4}} | U00(?:0{_HEX}|10){_HEX}{{4}}"
_LITERALS = rf"(?: [^\\.^$*+?{{\[()]++ | \\ (?: {_ESCAPES} ) )*+"
# A whole string is matched, so ^ before the first alternative and $ after the last one change nothing.
_UNION = re.compile(
    rf"\^?+ (?: \( (?:\?:)?+ (?P<grouped> {_LITERALS}) \) | (?P<plain> {_LITERALS}) ) (?:\$(?=\Z))?+", re.VERBOSE
)
_ALTERNATIVE = re.compile(r"((?:[^\\|]++|\\.)*+)\|", re.DOTALL)
_ESCAPE = re.compile(rf"\\(?:([afnrtv])|x({_HEX}{{2}})|u({_HEX}{{4}})|U({_HEX}{{8}})|(.))", re.DOTALL)
_LETTER_OR_BAR = re.compile(r"\\[0-9A-Za-z|\\]")  # without these, escapes are backslashes to leave out
_CONTROL = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}


class NoUnion(NamedTuple):
    """Why a regular expression is no union of literals: the first character that is more, and where."""

    met: str
    position: int


def literals_of_regex(pattern: str) -> list[str] | NoUnion:
    """The strings that a regular expression of Python's syntax matches as a whole, if it is a union of literals.

    Escapes are those of ``re``; only what needs the surrounding (``\\d``, ``\\1``, octal numbers) is no literal. One
    pass over the pattern.
    """
    found = _UNION.match(pattern)
    assert found is not None  # it matches the empty string
    if found.end() < len(pattern):
        return NoUnion(pattern[found.end()], found.end())
    union = found["plain"] if found["grouped"] is None else found["grouped"]
    if "\\" not in union:
        return union.split("|")
    if not _LETTER_OR_BAR.search(union):
        return union.replace("\\", "").split("|")
    return [_unescaped(literal) if "\\" in literal else literal for literal in _ALTERNATIVE.findall(union + "|")]


def _unescaped(literal: str) -> str:
    return _ESCAPE.sub(_character, literal)


def _character(found: re.Match[str]) -> str:
    control, *numbers, itself = found.groups()
    if control or itself:
        return _CONTROL[control] if control else itself
    return chr(int(next(filter(None, numbers)), 16))
