"""Which characters a single item of a regular expression stands for, exactly as Python's ``re`` has it.

What depends on Unicode's tables, or on how ``re`` ignores case, is not worked out here: ``re`` is asked.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from .characters import ALL, ALL_BYTES, LAST, Ranges, complement, intersection, union
from .errors import UnsupportedError

_BLOCK = 256  # code points looked at together

Item = tuple[str, Any]
"""("LITERAL", code point), ("RANGE", (first, last)), ("CATEGORY", "d" or "D" and so on), ("PROPERTY", name), or
("NOT_PROPERTY", name)."""


class CharacterClass(NamedTuple):
    """The characters that are any of ``items``, or none of them.

    Attributes:
        flags: of ``re``: at most IGNORECASE and ASCII.
        is_text: characters; otherwise bytes.
    """

    items: tuple[Item, ...]
    is_negated: bool
    flags: int
    is_text: bool


@lru_cache(maxsize=1024)
def ranges_of(what: CharacterClass) -> Ranges:
    """The code points (or bytes) of a class, without surrogates.

    The first use in a process of a Unicode category, of a property or of IGNORECASE takes some 30 to 80 ms each.
    """
    universe = ALL if what.is_text else ALL_BYTES
    ranges = intersection(union(r for item in what.items for r in _ranges_of_item(item, what)), universe)
    exact = complement(ranges, universe) if what.is_negated else ranges
    if not what.flags & re.IGNORECASE:
        return exact
    if what.is_text:
        with_case, without_case, text = _characters_with_case()
    else:
        with_case, without_case, text = ALL_BYTES, (), "".join(map(chr, range(256)))
    if len(what.items) == 1 and what.items[0][0] == "LITERAL" and not intersection(ranges, with_case):
        return exact
    matches = _spans(_source(what), what.flags, what.is_text, text)
    found = union((ord(text[k]), ord(text[k])) for first, end in matches for k in range(first, end))
    return union([*intersection(exact, without_case), *found])


def _ranges_of_item(item: Item, what: CharacterClass) -> Ranges:
    kind, value = item
    if kind == "LITERAL":
        return ((value, value),)
    if kind == "RANGE":
        return (value,)
    if kind == "CATEGORY":
        return _category(value, what.flags & re.ASCII, what.is_text)
    ranges = property_ranges(value)
    return ranges if kind == "PROPERTY" else complement(ranges)


def _source(what: CharacterClass) -> str:
    """A pattern for the class, in characters that have no meaning of their own."""

    def escaped(number: int) -> str:
        return f"\\U{number:08x}" if what.is_text else f"\\x{number:02x}"

    sources = []
    for kind, value in what.items:
        if kind == "RANGE":
            first, last = value
            sources.append(f"{escaped(first)}-{escaped(last)}")
        else:
            sources.append(escaped(value) if kind == "LITERAL" else f"\\{value}")
    return f"[{'^' * what.is_negated}{''.join(sources)}]"


def _spans(source: str, flags: int, is_text: bool, text: str) -> list[tuple[int, int]]:
    """Where in ``text`` there are runs of what a pattern for one character matches."""
    if is_text:
        return [match.span() for match in re.compile(f"{source}+", flags).finditer(text)]
    return [match.span() for match in re.compile(f"{source}+".encode(), flags).finditer(text.encode("latin-1"))]


def _every_code_point() -> str:
    """A string whose character number n is n, surrogates included."""
    return np.arange(LAST + 1, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _runs(spans: list[tuple[int, int]], universe: Ranges = ALL) -> Ranges:
    return intersection(union((first, end - 1) for first, end in spans), universe)


@cache
def _category(letter: str, ascii_flag: int, is_text: bool) -> Ranges:
    if letter.isupper():
        return complement(_category(letter.lower(), ascii_flag, is_text), ALL if is_text else ALL_BYTES)
    if not is_text or ascii_flag:
        return _runs(_spans(f"\\{letter}", re.ASCII, True, "".join(map(chr, range(128)))))
    return _runs(_spans(f"\\{letter}", 0, True, _every_code_point()))


@cache
def property_ranges(name: str) -> Ranges:
    """The characters with a Unicode property (``L``, ``Greek``, ``Script=Greek``), by the tables of ``regex``.

    Raises:
        UnsupportedError: ``regex`` is not installed, or knows no such property.
    """
    try:
        regex = import_module("regex")
    except ImportError:
        raise UnsupportedError(f"\\p{{{name}}} needs the package regex, which is not installed") from None
    try:
        pattern = regex.compile(rf"\p{{{name}}}+", regex.VERSION0)
    except regex.error:
        raise UnsupportedError(f"\\p{{{name}}}: the package regex knows no such property") from None
    return _runs([match.span() for match in pattern.finditer(_every_code_point())])


@cache
def _characters_with_case() -> tuple[Ranges, Ranges, str]:
    """The characters that ignoring case may concern, all others, and the former as a string.

    These are the ones that have another case, are another case, or are equal to another when case is ignored.
    """
    text = _every_code_point()
    concerned: set[str] = set()
    for begin in range(0, len(text), _BLOCK):
        block = text[begin : begin + _BLOCK]
        if block.lower() != block or block.upper() != block:
            for character in block:
                lower, upper = character.lower(), character.upper()
                if lower != character or upper != character:
                    concerned.update(character, lower, upper)
    ranges = intersection(union((ord(character), ord(character)) for character in concerned), ALL)
    return ranges, complement(ranges), "".join(chr(k) for first, last in ranges for k in range(first, last + 1))
