"""Strings: their characters, lengths, patterns and formats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..automaton import Automaton
from ..errors import EmptyConstraintError, TrieautoError, UnsupportedError
from ..nfa import Nfa, Part
from ..regex_automaton import pattern_automaton, regex
from .checking import malformed, pointer, unsupported
from .escaping import Escapes, characters, escaped
from .formats import FORMATS, format_automaton
from .products import intersection

_CLASSES = re.compile(r"\\[dwsDWS]")
_COMPLEMENTS = re.compile(r"\[\^|\\[DWSP]")
_FLAGS = re.compile(r"\(\?[a-zA-Z-]")
_BYTE_ORDER_MARK = "\ufeff"  # a space to the standard, but not to re
_OTHER_SYNTAX = ("bad escape", "incomplete escape", "unknown extension")
"""What ``re`` says of what may be the standard's syntax, which is ECMAScript's."""
MAX_LENGTH = 20_000  # characters that are counted one by one, with some 20 states each


def flags_of(pattern: str) -> int:
    """``re.ASCII`` for a pattern whose ``\\d``, ``\\w`` and ``\\s`` may be taken for ASCII, as other engines do, and
    still mean nothing that ``re`` does not; 0 where there is a complement, in which fewer characters would be more."""
    return 0 if _COMPLEMENTS.search(pattern) or _FLAGS.search(pattern) else re.ASCII


def string_part(nfa: Nfa, schema: Mapping[str, Any], at: str, escapes: Escapes, *, use_formats: bool) -> Part:
    """A string in its quotes.

    ``pattern`` means what ``re.search`` means by it. The standard's ``\\d``, ``\\w`` and ``\\s`` are ASCII, those of
    many validators are Unicode's: what is generated matches by both.
    """
    least, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    most = None if most is None else int(most)
    for keyword, size in (("minLength", least), ("maxLength", most)):
        if size is not None and size > MAX_LENGTH:
            raise unsupported(pointer(at, keyword), f"strings of more than {MAX_LENGTH:,} characters that are counted")
    if most is not None and least > most:
        return nfa.never(f"minLength is more than maxLength at {at}")
    name = schema.get("format") if use_formats else None
    if name is not None and name not in FORMATS:
        known = ", ".join(FORMATS)
        raise unsupported(
            pointer(at, "format"), f"the format {name!r} ({known} are; formats='annotation' ignores all formats)"
        )
    pattern = schema.get("pattern")
    try:
        body = _body(escapes, least, most, pattern, name)
    except EmptyConstraintError:
        return nfa.never(f"no string is valid at {at}")
    except TrieautoError as error:
        raise _refusal(error, pointer(at, "pattern" if pattern is not None else "format")) from None
    return nfa.sequence([nfa.literal(b'"'), nfa.embed(body), nfa.literal(b'"')])


def keep_matching(values: list[Any], pattern: str, at: str) -> list[Any]:
    """Values without the strings in which a pattern is not found, by the rule of ``string_part``.

    Raises:
        UnsupportedError, TrieautoError: of ``regex``, with the JSON pointer.
    """
    try:
        automata = _matching(pattern)
    except EmptyConstraintError:
        return [value for value in values if not isinstance(value, str)]
    except TrieautoError as error:
        raise _refusal(error, pointer(at, "pattern")) from None
    return [value for value in values if not isinstance(value, str) or all(each.accepts(value) for each in automata)]


def _refusal(error: TrieautoError, at: str) -> TrieautoError:
    is_unsupported = isinstance(error, UnsupportedError) or str(error).startswith(_OTHER_SYNTAX)
    return (unsupported if is_unsupported else malformed)(at, str(error))


@lru_cache(maxsize=256)
def _body(escapes: Escapes, least: int, most: int | None, pattern: str | None, name: str | None) -> Automaton:
    if pattern is None and name is None:
        return characters(escapes, least, most)
    texts = [] if name is None else [format_automaton(name)]
    if pattern is not None:
        texts += _matching(pattern)
    if least > 0 or most is not None:
        texts.append(characters(None, least, most))
    text = texts[0]
    for other in texts[1:]:
        text = intersection(text, other)
    return escaped(text, escapes)


@lru_cache(maxsize=256)
def _matching(pattern: str) -> list[Automaton]:
    """The texts in which a pattern is found: what all of these automata accept."""
    has_classes = _CLASSES.search(pattern) and not _FLAGS.search(pattern)
    readings: list[int] = []
    if has_classes:
        readings.append(re.ASCII)
    if not has_classes or _COMPLEMENTS.search(pattern):
        # With fewer characters in a class, a complement has more, so ASCII alone would let through what re rejects.
        readings.append(0)
    texts = [pattern_automaton(pattern, flags, anchored=False) for flags in readings]
    if len(readings) > 1 and re.search(r"\\[sS]", pattern):
        texts.append(regex(f"[^{_BYTE_ORDER_MARK}]*"))
    return texts
