"""Characters in classes: what a tokenizer's engine takes for a letter, and UTF-8 read byte by byte.

Which characters are letters depends on the version of Unicode that an engine was built with, so it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .programs import NUM_CODE_POINTS, CharacterSet

_SURROGATES = range(0xD800, 0xE000)
_NEVER_ASSIGNED = range(0x40000, 0xE0000)  # ten planes that no version of Unicode has a character in
_FOLDS_TO_ASCII = (range(0x600), range(0x1E00, 0x2000), range(0x2100, 0x2190), range(0xFB00, 0xFB07))
DEAD = -1

Found = Callable[[str, str], Iterable[str]]
"""Of a pattern for one character and a text: those of its characters that match, in any order."""


class EngineClasses:
    """What the classes of one engine of regular expressions hold."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._named: dict[str, CharacterSet] = {}

    def named(self, escape: str) -> CharacterSet:
        if escape not in self._named:
            self._named[escape] = _as_set(self._found(escape, _every_character()))
        return self._named[escape]

    def found_by(self, found: Callable[[str], Iterable[str]]) -> CharacterSet:
        """Those that a function finds in a text."""
        return _as_set(found(_every_character()))

    def folded(self, character: str) -> CharacterSet:
        ranges = _FOLDS_TO_ASCII if character.isascii() else (range(0x40000),)
        text = "".join(chr(code) for part in ranges for code in part if code not in _SURROGATES)
        escaped = character if character.isalnum() else "\\" + character
        return _as_set(self._found(f"(?i:{escaped})", text))


@cache
def _every_character() -> str:
    """All of them, those in planes without any by one each."""
    planes = range(_NEVER_ASSIGNED.start, _NEVER_ASSIGNED.stop, 0x10000)
    codes = (code for code in range(NUM_CODE_POINTS) if code not in _SURROGATES and code not in _NEVER_ASSIGNED)
    return "".join(map(chr, codes)) + "".join(map(chr, planes))


def _as_set(characters: Iterable[str]) -> CharacterSet:
    text = "".join(characters)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    found = np.zeros(NUM_CODE_POINTS, bool)
    found[codes] = True
    for plane in range(_NEVER_ASSIGNED.start, _NEVER_ASSIGNED.stop, 0x10000):
        found[plane : plane + 0x10000] = found[plane]
    return found


def oniguruma(pattern: str, text: str) -> Iterable[str]:
    """``Found`` of the engine of Hugging Face's ``tokenizers``."""
    from tokenizers import Regex, pre_tokenizers

    return _removed(pre_tokenizers.Split(Regex(f"(?:{pattern})+"), "removed"), text)


def numeric(text: str) -> Iterable[str]:
    """The digits of ``tokenizers.pre_tokenizers.Digits``."""
    from tokenizers import pre_tokenizers

    # With a letter before each character, a digit is the only one that is a piece alone.
    pieces = pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str("".join("a" + c for c in text))
    return [piece for piece, _ in pieces if len(piece) == 1 and piece != "a"]


def _removed(splitter: Any, text: str) -> Iterable[str]:
    end = 0
    for _, (begin, stop) in splitter.pre_tokenize_str(text):
        yield text[end:begin]
        end = stop
    yield text[end:]


def rust_regex(pattern: str, text: str) -> Iterable[str]:
    """``Found`` of the engine of ``tiktoken``."""
    import tiktoken

    ranks = {bytes([byte]): byte for byte in range(256)}
    probe = tiktoken.Encoding("probe", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    yield bytes(probe.encode_ordinary(text)).decode()


class Alphabet(NamedTuple):
    """Characters that no pattern tells apart are one class.

    Attributes:
        decode: int32[D, 256]: where a byte leads, from state 0 at the beginning of a character: ``DEAD`` if no
            character goes on so; a state; or ``-2 - c`` at the end of a character of class c.
        classes: int32[0x110000], the class of each character; -1 for surrogates.
        num_classes: how many there are.
    """

    decode: npt.NDArray[np.int32]
    classes: npt.NDArray[np.int32]
    num_classes: int


def alphabet(sets: Sequence[CharacterSet], missing: Iterable[int] = ()) -> Alphabet:
    """The coarsest classes that tell all sets' members from others, and UTF-8 in them.

    Args:
        missing: bytes that no token can write; characters with them lead nowhere.
    """
    classes = np.zeros(NUM_CODE_POINTS, np.int32)
    for members in sets:
        _, found = np.unique(2 * classes + members, return_inverse=True)
        classes = found.astype(np.int32).reshape(-1)
    num_classes = int(classes.max()) + 1
    classes[_SURROGATES.start : _SURROGATES.stop] = -1
    return Alphabet(_utf8(classes, missing), classes, num_classes)


def _utf8(classes: npt.NDArray[np.int32], missing: Iterable[int]) -> npt.NDArray[np.int32]:
    ends = np.where(classes >= 0, -2 - classes, DEAD).astype(np.int32)
    rows: list[npt.NDArray[np.int32]] = [np.full(256, DEAD, np.int32)]
    known: dict[bytes, int] = {}

    def state(row: npt.NDArray[np.int32]) -> int:
        """The state with 64 continuation bytes that lead so; ``DEAD`` if none leads anywhere."""
        if (row == DEAD).all():
            return DEAD
        key = row.tobytes()
        if key not in known:
            known[key] = len(rows)
            whole = np.full(256, DEAD, np.int32)
            whole[0x80:0xC0] = row
            rows.append(whole)
        return known[key]

    def reduced(blocks: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        different, inverse = np.unique(blocks, axis=0, return_inverse=True)
        numbers = np.array([state(row) for row in different], np.int32)
        return numbers[inverse.reshape(-1)]

    lasts = reduced(ends.reshape(-1, 64))  # of the last byte, for each block of 64 characters
    rows[0][:0x80] = ends[:0x80]
    rows[0][0xC2:0xE0] = lasts[2:32]
    thirds = reduced(np.concatenate([np.full(32, DEAD, np.int32), lasts[32:1024]]).reshape(-1, 64))
    rows[0][0xE0:0xF0] = thirds
    fourths = lasts[1024:].reshape(-1, 64)  # planes 1 to 16
    seconds = reduced(fourths)
    padded = np.concatenate([np.full(16, DEAD, np.int32), seconds, np.full(5 * 64 - 16 - len(seconds), DEAD, np.int32)])
    rows[0][0xF0:0xF5] = reduced(padded.reshape(5, 64))
    decode = np.stack(rows)
    decode[:, list(missing)] = DEAD
    return decode
