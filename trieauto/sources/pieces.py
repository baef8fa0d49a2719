"""The three ways in which tokenizers write bytes as text: each function turns one piece into its bytes."""

from __future__ import annotations

import string

from trieauto.errors import VocabularyError

# SentencePiece writes a space as this character (U+2581) and takes it for one wherever it appears.
SPACE_MARK = "\u2581"

# GPT-2's alphabet: printable Latin-1 characters stand for themselves, the other bytes for U+0100, U+0101, ...
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_UNPRINTABLE = sorted(set(range(0x100)) - set(_PRINTABLE))
BYTE_LEVEL_ALPHABET: dict[str, int] = {
    **{chr(byte): byte for byte in _PRINTABLE},
    **{chr(0x100 + rank): byte for rank, byte in enumerate(_UNPRINTABLE)},
}

# The pieces that stand for one byte each: <0x0A> for the byte 0x0A.
BYTE_PIECES: dict[str, bytes] = {
    f"<0x{a}{b}>": bytes([int(a + b, 16)]) for a in string.hexdigits for b in string.hexdigits
}


class ByteAlphabet:
    """Reads pieces in which one character stands for one byte, such as GPT-2's.

    A piece with a character outside the alphabet is literal text, as the decoders of such tokenizers take it.

    Args:
        alphabet: the byte that each character stands for.
    """

    def __init__(self, alphabet: dict[str, int]) -> None:
        # Latin-1 characters outside the alphabet must not pass as the byte of the same number.
        self._table = dict.fromkeys(range(0x100), 0xFFFF)
        self._table.update({ord(character): byte for character, byte in alphabet.items()})

    def __call__(self, piece: str) -> bytes:
        try:
            return piece.translate(self._table).encode("latin-1")
        except UnicodeEncodeError:
            return literal(piece)


byte_level = ByteAlphabet(BYTE_LEVEL_ALPHABET)


def byte_fallback(piece: str) -> bytes:
    """``<0x0A>`` is one byte, any other piece its text."""
    return BYTE_PIECES.get(piece) or literal(piece)


def space_marked(piece: str) -> bytes:
    """A SentencePiece piece: its text, with every U+2581 a space."""
    return literal(piece.replace(SPACE_MARK, " "))


def literal(piece: str) -> bytes:
    """The text itself, in UTF-8.

    Raises:
        VocabularyError: the piece holds a lone surrogate, which has no bytes.
    """
    try:
        return piece.encode()
    except UnicodeEncodeError:
        raise VocabularyError(f"token {piece!r} holds a lone surrogate, which has no UTF-8 form") from None
