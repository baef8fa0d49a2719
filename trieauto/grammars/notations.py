"""The notations in which grammars are written: their tokens, and the escapes of their string literals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import TrieautoError, UnsupportedError, shorten


@dataclass(frozen=True)
class Notation:
    """How a notation is read.

    Attributes:
        kind: its name.
        start: the rule that a grammar begins with.
        token: a token in one of the groups ``literals`` (a run of literals joined by ``|``), ``head`` (a rule's name
            before its definition), ``name``, ``mark`` (a sign that is understood), ``newline`` (where it means
            something), ``unclosed`` (a literal without an end), ``other`` (what makes a grammar more than a union), or
            in none (space, comments). However the text is made, it is read in linear time.
        literal: a literal, with what is between its quotes in the only group.
        escape: a backslash and what belongs to it: digits after ``x``, ``u`` or ``U``, a surrogate pair in the group
            ``pair``, or any other character in the group ``sign``.
        signs: what escapes with one character stand for.
        refused: escapes that are not served although the notation has them, and why.
        macros: names that are no rules.
        allows_nothing: whether an alternative may be left out, for the empty string.
        is_lexed: whether texts are cut into terminals first (those of rules in capitals, and literals elsewhere).
    """

    kind: str
    start: str
    token: re.Pattern[str]
    literal: re.Pattern[str]
    escape: re.Pattern[str]
    signs: Mapping[str, str]
    refused: Mapping[str, str]
    macros: frozenset[str]
    allows_nothing: bool
    is_lexed: bool

    @property
    def title(self) -> str:
        """Its name, for people."""
        return "Lark" if self.kind == "lark" else self.kind.upper()

    def values(self, literals: str) -> list[str]:
        """The strings of a run of literals."""
        bodies: list[str] = self.literal.findall(literals)
        if "\\" not in literals:
            return bodies
        return [self.escape.sub(self._character, body) if "\\" in body else body for body in bodies]

    def _character(self, found: re.Match[str]) -> str:
        escape = found[0]
        if escape in self.refused:
            raise UnsupportedError(f"the escape {escape}: {self.refused[escape]}")
        if found["pair"] is not None:
            return bytes.fromhex(escape.replace("\\u", "")).decode("utf-16-be")
        if found["sign"] is not None:
            if found["sign"] not in self.signs:
                raise TrieautoError(f"{escape!r} is no escape in {self.title}")
            return self.signs[found["sign"]]
        digits = escape[2:].lstrip("0")
        code = int(digits or "0", 16) if len(digits) < 8 else 0x110000
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise UnsupportedError(f"the escape {shorten(escape)} is no character that UTF-8 can write")
        return chr(code)


_HEX = "[0-9A-Fa-f]"
_SURROGATES = rf"\\u[Dd][89ABab]{_HEX}{{2}}\\u[Dd][C-Fc-f]{_HEX}{{2}}"
_SPACE = r"[ \t\r\n]*+"


def _body(excluded: str) -> str:
    """What is between the quotes of a literal that may not have some characters as they are."""
    return rf'[^"\\{excluded}]*+(?:\\.[^"\\{excluded}]*+)*+'


def _run(literal: str, before: str, after: str) -> str:
    return rf"{literal}(?:{before}\|{after}{literal})*+"


def _bnf_token(body: str, name: str) -> re.Pattern[str]:
    run = _run(f'"{body}"', _SPACE, _SPACE)
    return re.compile(
        rf"(?:[ \t\r\n]++|\#[^\r\n]*+)++"
        rf"|(?P<literals>{run})"
        rf"|(?P<head>{name}){_SPACE}::="
        rf"|(?P<name>{name})"
        r"|(?P<mark>[|)?]|\((?!=))"
        rf'|(?P<unclosed>"{body})'
        r"|(?P<other>\[(?:[^\]\\\n]++|\\.)*+\]?+|\{[^}\n]*+\}?+|::=|\(=|.)",
        re.DOTALL,
    )


_EBNF_BODY = _body(r"\r\n\0")
EBNF = Notation(
    kind="ebnf",
    start="root",
    token=_bnf_token(_EBNF_BODY, r"[A-Za-z_.\-][A-Za-z0-9_.\-]*+"),
    literal=re.compile(f'"({_EBNF_BODY})"', re.DOTALL),
    # As in C, \x takes all the digits that follow.
    escape=re.compile(rf"\\(?:(?P<pair>(?!))|x{_HEX}++|u{_HEX}{{4}}|U{_HEX}{{8}}|(?P<sign>.))", re.DOTALL),
    signs={sign: sign for sign in "'\"?\\/"}
    | {"0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"},
    refused={},
    macros=frozenset(["TagDispatch", "Token", "ExcludeToken", "TokenTagDispatch", "Regex"]),
    allows_nothing=False,
    is_lexed=False,
)

_GBNF_BODY = _body(r"\0")
GBNF = Notation(
    kind="gbnf",
    start="root",
    token=_bnf_token(_GBNF_BODY, r"[A-Za-z0-9\-]++"),
    literal=re.compile(f'"({_GBNF_BODY})"', re.DOTALL),
    escape=re.compile(rf"\\(?:(?P<pair>(?!))|x{_HEX}{{2}}|u{_HEX}{{4}}|U{_HEX}{{8}}|(?P<sign>.))", re.DOTALL),
    signs={sign: sign for sign in '"\\[]-'} | {"n": "\n", "r": "\r", "t": "\t"},
    refused={},
    macros=frozenset(),
    allows_nothing=True,
    is_lexed=False,
)

_LARK_BODY = _body(r"\n")
_LARK_NAME = r"[!?]{0,2}+_?[A-Za-z][A-Za-z0-9_\-]*+"
_LARK_RUN = _run(f'"{_LARK_BODY}"(?!i)', r"[ \t]*+(?:\r?\n\s*+)?+", r"[ \t]*+")
LARK = Notation(
    kind="lark",
    start="start",
    token=re.compile(
        r"[ \t]++|(?://|\#)[^\n]*+|%llguidance[ \t]*+\{[ \t]*+\}|->[ \t]*+_?[a-z][a-z0-9_]*+"
        rf"|(?P<literals>{_LARK_RUN})"
        rf"|(?P<head>{_LARK_NAME})[ \t]*+:"
        rf"|(?P<name>{_LARK_NAME})"
        r"|(?P<newline>\r?\n\s*+)"
        r"|(?P<mark>[|()\[\]?])"
        rf'|(?P<other>"{_LARK_BODY}"i|/(?:[^/\\\n]++|\\.)++/?+[imslux]*+|%\w++|\.\.|(?!").)'
        rf'|(?P<unclosed>"{_LARK_BODY})',
        re.DOTALL | re.ASCII,
    ),
    literal=re.compile(f'"({_LARK_BODY})"', re.DOTALL),
    escape=re.compile(
        rf"\\(?:(?P<pair>{_SURROGATES[2:]})|x{_HEX}{{2}}|u{_HEX}{{4}}|U{_HEX}{{8}}|(?P<sign>.))", re.DOTALL
    ),
    signs={'"': '"', "\\": "\\", "f": "\f", "n": "\n", "r": "\r", "t": "\t"},
    # Lark keeps the backslash of an escape that it does not know, LLGuidance reads these as JSON does.
    refused=dict.fromkeys(["\\b", "\\/"], "Lark and LLGuidance read it differently")
    | dict.fromkeys(["\\x5c", "\\x5C", "\\u005c", "\\u005C"], "Lark and LLGuidance may differ; write \\\\"),
    macros=frozenset(),
    allows_nothing=True,
    is_lexed=True,
)

NOTATIONS = {notation.kind: notation for notation in (EBNF, GBNF, LARK)}
