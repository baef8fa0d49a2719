"""Strings of a fixed form: a set of characters for each position (appendix K of the trie paper); and calendar days."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import chain

import numpy as np

from .automaton import Automaton
from .errors import TrieautoError, UnsupportedError, shorten
from .kernels.jit import warm_up
from .nfa import Nfa, Part
from .value_sets import choices

DIGITS = "0123456789"
HEX_DIGITS = DIGITS + "abcdef"

# What each name stands for, as a template. The first digit of a month, a day, an hour, a minute and a second is
# narrowed as far as a set for one position can be.
FORMATS = {
    "date": "####-[01]#-[0-3]#",
    "time": "[0-2]#:[0-5]#:[0-5]#",
    "date-time": "####-[01]#-[0-3]#T[0-2]#:[0-5]#:[0-5]#Z",
    "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "md5": "[0-9a-f]{32}",
    "sha1": "[0-9a-f]{40}",
    "sha224": "[0-9a-f]{56}",
    "sha256": "[0-9a-f]{64}",
    "sha384": "[0-9a-f]{96}",
    "sha512": "[0-9a-f]{128}",
}
COUNTED = {"digits": DIGITS, "hex": HEX_DIGITS}
MAX_POSITIONS = 1_000_000

_COUNTED = re.compile(r"([a-z]+):([0-9]+)")
_SPECIAL = re.compile(r"[#\[\]{}\\]")
_POSITION = re.compile(
    r"""(?: (?P<digit> \#)
          | \[ (?P<set> (?: [^\\\]] | \\. )* ) \]
          | \\ (?P<escaped> .)
          | (?P<literal> [^\#\[\]{}\\])
        ) (?: \{ (?P<count> [0-9]+) \} )?+""",
    re.VERBOSE | re.DOTALL,
)
_IN_SET = re.compile(r"(\\.|[^\\])(?:-(\\.|[^\\]))?", re.DOTALL)


def fixed_format(name_or_template: str | Sequence[str], *, valid_days: bool = False) -> Automaton:
    """The automaton of all strings of a fixed form, each of whose positions has its own set of characters.

    One state for each position and one edge for each character of its set, laid down directly: no automaton is
    determinised, and nothing depends on the vocabulary (appendix K of the trie paper). O(characters of all sets).

    Args:
        name_or_template: one of

            - a name: "date" (``YYYY-MM-DD``), "time" (``HH:MM:SS``), "date-time" (``YYYY-MM-DDTHH:MM:SSZ``, in UTC),
              "uuid" and the digests "md5", "sha1", "sha224", "sha256", "sha384", "sha512" (lower case, as programs
              write them), "digits:8" (any number of digits), "hex:16" (hexadecimal digits, lower case). Positions
              are independent: a month has a first digit of 0 or 1 and any second one, so that 2024-19-39 is a "date"
              and 29:59:59 a "time"; see ``valid_days``.
            - a template, such as ``"###-###-####"`` or ``"[A-Z]{2}## #### ####"``: ``#`` is a digit 0 to 9,
              ``[A-Za-z]`` one character of a set with ranges, ``{4}`` repeats the position before it, and a backslash
              makes a character literal that has a meaning here (``# [ ] { } \\``; in a set ``\\ ] -``). All other
              characters stand for themselves. A template has at least one of these signs, for it is else a name.
            - a list with the characters that each position may have, ``["AB", "-", "0123456789"]``.

            Characters beyond ASCII are taken in UTF-8.
        valid_days: for "date" and "date-time": only days of the calendar, 0001-01-01 to 9999-12-31, with leap years by
            the Gregorian rule; and hours only up to 23. No sets for single positions can say that: the automaton
            is made once, in a few milliseconds.

    Raises:
        TrieautoError: an unknown name (the message lists the names); no position, an empty set, a malformed template;
            ``valid_days`` with a form that has no date.
        UnsupportedError: more than a million positions.
    """
    warm_up()
    if not isinstance(name_or_template, str):
        if valid_days:
            raise TrieautoError("valid_days is for the formats 'date' and 'date-time', not for a list of positions")
        return _chain(_checked_positions(name_or_template))
    if valid_days:
        return _valid_days(name_or_template)
    if name_or_template in FORMATS:
        return _chain(_positions_of(name_or_template))
    counted = _COUNTED.fullmatch(name_or_template)
    if counted and counted[1] in COUNTED:
        return _chain(_repeated([COUNTED[counted[1]]], counted[2], name_or_template))
    if not name_or_template:
        raise TrieautoError("an empty template: there is no position to fill")
    if not _SPECIAL.search(name_or_template):
        raise TrieautoError(
            f"there is no format {shorten(name_or_template)}; the names are {', '.join(FORMATS)}, "
            f"{', '.join(f'{name}:<length>' for name in COUNTED)}, and a template has at least one of # [ {{ or \\"
        )
    return _chain(_positions(name_or_template))


@cache
def _positions_of(name: str) -> list[str]:
    """Of a named format. To read its template takes as long as to lay down its states."""
    return _positions(FORMATS[name])


def _positions(template: str) -> list[str]:
    """The characters of each position of a template."""
    positions: list[str] = []
    place = 0
    while place < len(template):
        found = _POSITION.match(template, place)
        if found is None:
            raise TrieautoError(
                f"{template[place]!r} at position {place} of the template {shorten(template)} has no place there: "
                "# is a digit, [a-z] a set, {4} repeats what is before it, and a backslash makes a character literal"
            )
        if found["set"] is not None:
            characters = _set(found["set"], template, place)
        else:
            characters = DIGITS if found["digit"] else found["escaped"] or found["literal"]
        positions += _repeated([characters], found["count"] or "1", template)
        if len(positions) > MAX_POSITIONS:
            raise _too_long(template)
        place = found.end()
    return positions


def _set(inner: str, template: str, place: int) -> str:
    where = f"in the set at position {place} of the template {shorten(template)}"
    characters = []
    for found in _IN_SET.finditer(inner):
        first, last = (found[1][-1], (found[2] or found[1])[-1])
        if first > last:
            raise TrieautoError(f"the range {found[0]} {where} is the wrong way round")
        characters += [chr(code) for code in range(ord(first), ord(last) + 1)]
    if not characters:
        raise TrieautoError(f"no character {where}: write one, or \\[ for a bracket")
    return "".join(characters)


def _repeated(positions: list[str], count: str, template: str) -> list[str]:
    if len(count) > len(str(MAX_POSITIONS)) or int(count) > MAX_POSITIONS:
        raise _too_long(template)
    if int(count) == 0:
        raise TrieautoError(f"a position that is repeated 0 times in {shorten(template)}; the least is 1")
    return positions * int(count)


def _too_long(template: str) -> UnsupportedError:
    return UnsupportedError(f"{shorten(template)} has more than {MAX_POSITIONS:,} positions")


def _checked_positions(given: Iterable[str]) -> list[str]:
    if isinstance(given, (bytes, bytearray)) or not isinstance(given, Iterable):
        raise TrieautoError(f"a format is a name, a template or a list of positions, not {shorten(given)}")
    positions = list(given)
    if not positions:
        raise TrieautoError("an empty list of positions: there is none to fill")
    if len(positions) > MAX_POSITIONS:
        raise UnsupportedError(f"{len(positions):,} positions are more than {MAX_POSITIONS:,}")
    for number, characters in enumerate(positions):
        if not isinstance(characters, str) or not characters:
            raise TrieautoError(f"position {number} must be a string of its characters, not {shorten(characters)}")
    return positions


def _chain(positions: list[str]) -> Automaton:
    """The automaton of one string after another, given the characters of each position."""
    byte_sets = []
    for characters in positions:
        try:
            data = _encoded(characters)
        except UnicodeEncodeError:
            raise TrieautoError(f"{shorten(characters)} holds a lone surrogate and has no UTF-8 bytes") from None
        if data is None:
            return _chain_of_wide_sets(positions)
        byte_sets += data
    sizes = np.fromiter(map(len, byte_sets), np.int32, len(byte_sets))
    links = np.zeros(len(sizes) + 2, np.int32)
    np.cumsum(sizes, out=links[1:-1])
    links[-1] = links[-2]  # the last state has no edge
    accepting = np.zeros(len(sizes) + 1, np.uint8)
    accepting[-1] = 1
    targets = np.repeat(np.arange(1, len(sizes) + 1, dtype=np.int32), sizes)
    labels = np.frombuffer(b"".join(byte_sets), np.uint8).copy()  # kernels take arrays that can be written to
    return Automaton(labels, links, targets, accepting, 0)


@lru_cache(1024)
def _encoded(characters: str) -> list[bytes] | None:
    """The bytes that may stand at each byte of a position, ascending; None if they depend on each other."""
    if characters.isascii():
        return [bytes(sorted(set(characters.encode())))]
    if len(set(characters)) == 1:
        return [bytes([byte]) for byte in characters[0].encode()]
    characters.encode()  # an error here names what a set further on cannot
    return None


def _chain_of_wide_sets(positions: list[str]) -> Automaton:
    nfa = Nfa()
    return nfa.automaton(nfa.sequence([nfa.embed(_set_of_characters(characters)) for characters in positions]))


@lru_cache(64)
def _set_of_characters(characters: str) -> Automaton:
    return choices(sorted(set(characters)))


@lru_cache(2)
def _valid_days(name: str) -> Automaton:
    nfa = Nfa()
    if name == "date":
        return nfa.automaton(_days(nfa))
    if name == "date-time":
        hours = nfa.embed(choices([f"{hour:02}" for hour in range(24)]))
        rest = nfa.embed(_chain(_positions(":[0-5]#:[0-5]#Z")))
        return nfa.automaton(nfa.sequence([_days(nfa), nfa.literal(b"T"), hours, rest]))
    raise TrieautoError(f"valid_days is for the formats 'date' and 'date-time', not for {shorten(name)}")


def _days(nfa: Nfa) -> Part:
    """The days of a common year in every year, and 29 February in leap years."""
    lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    months = ([f"-{month:02}-{day:02}" for day in range(1, length + 1)] for month, length in enumerate(lengths, 1))
    common = nfa.embed(choices(list(chain.from_iterable(months))))
    fourths = [f"{number:02}" for number in range(4, 100, 4)]
    leap_years = nfa.choice([_pair(nfa, None, fourths), _pair(nfa, fourths, ["00"])])
    positive = [f"{number:02}" for number in range(1, 100)]
    years = nfa.choice([_pair(nfa, positive, None), _pair(nfa, ["00"], positive)])
    return nfa.choice([nfa.sequence([years, common]), nfa.sequence([leap_years, nfa.literal(b"-02-29")])])


def _pair(nfa: Nfa, *halves: list[str] | None) -> Part:
    """Years by their first and last two digits; None for any."""
    any_two = _chain([DIGITS, DIGITS])
    return nfa.sequence([nfa.embed(any_two if half is None else choices(half)) for half in halves])
