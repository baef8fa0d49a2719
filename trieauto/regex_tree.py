"""Regular expressions as trees: Python's own parser, with the position of what it finds, and what of it is regular."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

from .character_classes import CharacterClass, Item, property_ranges, ranges_of
from .characters import FIRST_SURROGATE, LAST_SURROGATE, Ranges
from .errors import TrieautoError, UnsupportedError, printable, shorten

_parser: Any = import_module("re._parser")
_MAX_REPEAT = int(_parser.MAXREPEAT)
# As plain integers: with enumerations each test costs a microsecond.
_IGNORECASE, _ASCII, _DOTALL, _MULTILINE = (int(flag) for flag in (re.IGNORECASE, re.ASCII, re.DOTALL, re.MULTILINE))
_FLAGS = _IGNORECASE | _ASCII | _DOTALL | _MULTILINE | int(re.UNICODE | re.VERBOSE)
_CATEGORIES = {"DIGIT": "d", "SPACE": "s", "WORD": "w", "NOT_DIGIT": "D", "NOT_SPACE": "S", "NOT_WORD": "W"}


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set."""

    ranges: Ranges

    @property
    def anchor(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Anchor:
    """``^``, ``$``, ``\\A`` or ``\\Z``.

    Attributes:
        is_end: whether it asks for the end rather than for the beginning.
        is_of_line: whether the beginning or end of any line would do.
    """

    is_end: bool
    is_of_line: bool
    source: str
    position: int

    @property
    def anchor(self) -> Anchor:
        return self


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several sequences. ``anchor``: the first anchor in it, if any, as in every node."""

    alternatives: list[list[Node]]
    anchor: Anchor | None


@dataclass(frozen=True, slots=True)
class Repeat:
    """``least`` to ``most`` times a sequence; None: any number."""

    body: list[Node]
    least: int
    most: int | None
    anchor: Anchor | None


Node = Characters | Anchor | Choice | Repeat


def parse(pattern: str | bytes, flags: int) -> list[Node]:
    """The tree of a pattern: a sequence, in which groups are dissolved and flags have had their effect.

    Raises:
        UnsupportedError: something that is not regular, or not supported; where it is.
        TrieautoError: not a regular expression of Python's, or nested too deeply.
    """
    if not isinstance(pattern, (str, bytes)):
        raise TrieautoError(f"a pattern is str or bytes, not {shorten(pattern)}")
    if not isinstance(flags, int) or isinstance(flags, bool):
        raise TrieautoError(f"flags are those of re, not {shorten(flags)}")
    flags = int(flags)
    if flags & ~_FLAGS:
        raise UnsupportedError(f"the flags {re.RegexFlag(flags & ~_FLAGS)!r} are not supported")
    try:
        parsed = _parse_with_positions(pattern, flags)
        return _Conversion(pattern).sequence(parsed, parsed.state.flags)
    except re.error as error:
        where = "" if error.pos is None else f" at position {error.pos}"
        raise TrieautoError(f"{error.msg}{where} of the pattern {shorten(pattern)}") from None
    except RecursionError:
        raise TrieautoError(f"the pattern {shorten(pattern)} is nested too deeply") from None
    except TrieautoError:
        raise
    except (ValueError, OverflowError) as error:
        raise TrieautoError(f"{error}, in the pattern {shorten(pattern)}") from None


def _refusal(what: str, position: int, pattern: str | bytes) -> UnsupportedError:
    return UnsupportedError(
        f"{printable(what)} at position {position} of the pattern {shorten(pattern)} is not supported"
    )


# Python's parser keeps no positions. But all it finds it appends to a SubPattern, and its Tokenizer knows at any time
# how far it has come. So its functions are run with a SubPattern that takes down where that is.


class _Located(tuple[Any, ...]):
    """An item of the parser's tree that knows its position in the pattern."""

    position: int


class _SubPattern(_parser.SubPattern):  # type: ignore[misc]
    def __init__(self, state: Any, data: Any = None) -> None:
        super().__init__(state, data)
        if data is None:
            state.beginnings.append(state.source.tell())
        self.known = len(state.beginnings)

    def append(self, code: Any) -> None:
        if code[0] is not _parser.LITERAL or code[1] >= FIRST_SURROGATE:
            code = self._located(code)
        self.data.append(code)
        self.known = len(self.state.beginnings)

    def __setitem__(self, index: Any, code: Any) -> None:
        if isinstance(index, int) and code[0].name == "POSSESSIVE_REPEAT":
            code = _located(code, self.state.source.tell() - 1)
        super().__setitem__(index, code)
        self.known = len(self.state.beginnings)

    def _located(self, code: Any) -> Any:
        if isinstance(code, _Located):
            return code
        text, end = self.state.source.decoded_string, self.state.source.tell()
        name = code[0].name
        if name == "AT":
            return _located(code, end - 1 if text[end - 1] in "^$" else end - 2)
        if name == "GROUPREF":
            return _located(code, text.rfind("(?P=" if text[end - 1] == ")" else "\\", 0, end))
        if name in ("ASSERT", "ASSERT_NOT", "FAILURE", "ATOMIC_GROUP", "GROUPREF_EXISTS"):
            # The first SubPattern begun since the last append is what follows the opening of the group.
            opening = "(?(" if name == "GROUPREF_EXISTS" else "(?"
            return _located(code, text.rfind(opening, 0, self.state.beginnings[self.known]))
        if name in ("LITERAL", "NOT_LITERAL") and FIRST_SURROGATE <= code[1] <= LAST_SURROGATE:
            is_raw = text[end - 1] == chr(code[1])
            return _located(code, end - 1 if is_raw else text.rfind("[" if text[end - 1] == "]" else "\\", 0, end))
        return code


def _located(code: Any, position: int) -> _Located:
    located = _Located(code)
    located.position = position
    return located


def _parse_with_positions(pattern: str | bytes, flags: int) -> Any:
    source = _parser.Tokenizer(pattern)
    state = _parser.State()
    state.source = source
    state.beginnings = []

    def escape(source: Any, escape: str, state: Any) -> Any:
        return _property(source, escape, pattern) or _parser._escape(source, escape, state)

    def class_escape(source: Any, escape: str) -> Any:
        return _property(source, escape, pattern) or _parser._class_escape(source, escape)

    names = dict(vars(_parser))
    names.update(SubPattern=_SubPattern, Tokenizer=lambda _: source, _escape=escape, _class_escape=class_escape)
    for name in ("_parse", "_parse_sub", "parse"):
        original = getattr(_parser, name)
        names[name] = FunctionType(original.__code__, names, name, original.__defaults__)
    return names["parse"](pattern, flags, state)


def _property(source: Any, escape: str, pattern: str | bytes) -> Any:
    """What ``\\p{...}`` or ``\\P{...}`` stands for, in the parser's form; None for other escapes."""
    if escape not in ("\\p", "\\P") or not source.istext:
        return None
    position = source.tell() - 2
    if not source.match("{"):
        raise _refusal(f"{escape} without a name in braces", position, pattern)
    name = source.getuntil("}", "property name")
    source_text = f"{escape}{{{name}}}"
    is_negated = escape == "\\P"
    if name.startswith("^"):
        name, is_negated = name[1:], not is_negated
    if not name.replace("_", "").replace("=", "").replace(" ", "").replace("-", "").isalnum():
        raise _refusal(source_text, position, pattern)
    try:
        property_ranges(name)
    except UnsupportedError as error:
        raise UnsupportedError(f"{error} (at position {position} of the pattern {shorten(pattern)})") from None
    return _parser.IN, [_located((_NOT_PROPERTY if is_negated else _PROPERTY, name), position)]


@dataclass(frozen=True)
class _Operation:
    """Like the parser's own."""

    name: str


_PROPERTY, _NOT_PROPERTY = _Operation("PROPERTY"), _Operation("NOT_PROPERTY")


class _Conversion:
    """From the parser's tree to ours."""

    def __init__(self, pattern: str | bytes) -> None:
        self.pattern = pattern
        self.is_text = isinstance(pattern, str)

    def sequence(self, parsed: Any, flags: int) -> list[Node]:
        nodes: list[Node] = []
        for item in parsed:
            operation, value = item
            name = operation.name
            if name == "LITERAL":
                if FIRST_SURROGATE <= value <= LAST_SURROGATE:
                    raise _refusal(f"the surrogate \\u{value:04x}, which has no UTF-8,", item.position, self.pattern)
                if flags & _IGNORECASE:
                    nodes.append(self._characters([item], flags))
                else:
                    nodes.append(Characters(((value, value),)))
            elif name == "SUBPATTERN":
                _, added, removed, body = value
                kept = flags & ~_parser.TYPE_FLAGS if added & _parser.TYPE_FLAGS else flags
                nodes += self.sequence(body, (kept | added) & ~removed)
            elif name == "BRANCH":
                alternatives = [self.sequence(alternative, flags) for alternative in value[1]]
                anchor = next(filter(None, (_first_anchor(nodes) for nodes in alternatives)), None)
                nodes.append(Choice(alternatives, anchor))
            elif name in ("MAX_REPEAT", "MIN_REPEAT"):
                least, most, repeated = value
                nodes += _repeated(self.sequence(repeated, flags), least, None if most == _MAX_REPEAT else int(most))
            elif name == "AT":
                nodes.append(self._anchor(item, flags))
            elif name in ("NOT_LITERAL", "IN", "ANY"):
                nodes.append(self._characters([item] if name != "IN" else value, flags))
            else:
                raise self._not_regular(item)
        return nodes

    def _characters(self, parsed: list[Any], flags: int) -> Characters:
        is_negated = False
        items: list[Item] = []
        for operation, value in parsed:
            name = operation.name
            if name == "NEGATE":
                is_negated = True
            elif name == "NOT_LITERAL":
                is_negated = True
                items.append(("LITERAL", value))
            elif name == "ANY":
                is_negated = True
                items += [] if flags & _DOTALL else [("LITERAL", ord("\n"))]
            elif name == "CATEGORY":
                items.append(("CATEGORY", _CATEGORIES[value.name.removeprefix("CATEGORY_")]))
            else:
                items.append((name, value))
        for item in parsed:
            if item[0] in (_PROPERTY, _NOT_PROPERTY) and flags & _IGNORECASE:
                raise _refusal("a \\p{...} that ignores case", item.position, self.pattern)
        flags &= _IGNORECASE | _ASCII
        if parsed[0][0].name == "ANY":
            flags = 0
        return Characters(ranges_of(CharacterClass(tuple(items), is_negated, flags, self.is_text)))

    def _anchor(self, item: Any, flags: int) -> Anchor:
        name = item[1].name
        source = {"AT_BEGINNING": "^", "AT_END": "$", "AT_BEGINNING_STRING": "\\A", "AT_END_STRING": "\\Z"}.get(name)
        if source is None:
            boundary = "\\b" if name == "AT_BOUNDARY" else "\\B"
            raise _refusal(f"the word boundary {boundary}", item.position, self.pattern)
        is_of_line = bool(flags & _MULTILINE) and source in "^$"
        return Anchor("END" in name, is_of_line, source, item.position)

    def _not_regular(self, item: Any) -> UnsupportedError:
        name = item[0].name
        kinds = {
            "ASSERT": "the look-ahead (?=...)",
            "ASSERT_NOT": "the look-ahead (?!...)",
            "FAILURE": "the look-ahead (?!)",
            "GROUPREF": "the back-reference",
            "GROUPREF_EXISTS": "the conditional (?(...)...)",
            "ATOMIC_GROUP": "the atomic group (?>...)",
            "POSSESSIVE_REPEAT": "the possessive quantifier",
        }
        what = kinds.get(name, name)
        if name in ("ASSERT", "ASSERT_NOT") and item[1][0] < 0:
            what = f"the look-behind (?<{'=' if name == 'ASSERT' else '!'}...)"
        return _refusal(what, getattr(item, "position", -1), self.pattern)


def _repeated(body: list[Node], least: int, most: int | None) -> list[Node]:
    anchor = _first_anchor(body)
    if most == 0 or not body:
        return []
    if all(isinstance(node, Anchor) for node in body):
        return body if least > 0 else []
    if (least, most) == (1, 1):
        return body
    if len(body) == 1 and isinstance(inner := body[0], Repeat) and inner.most is None and anchor is None:
        # As it stands this could be split between the copies in very many ways.
        if least > 0:
            return [Repeat(inner.body, inner.least * least, None, None)]
        if inner.least <= 1:
            return [Repeat(inner.body, 0, None, None)]
    if (least, most) == (0, 1) and anchor is not None:
        return [Choice([body, []], anchor)]
    return [Repeat(body, least, most, anchor)]


def _first_anchor(nodes: list[Node]) -> Anchor | None:
    return next((node.anchor for node in nodes if node.anchor is not None), None)
