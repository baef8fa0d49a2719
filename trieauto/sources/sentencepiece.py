"""Tokens from a SentencePiece model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trieauto.errors import UnsupportedError
from trieauto.sources.encoders import SentencePieceEncoder
from trieauto.sources.kinds import SENTENCEPIECE, offers, wrong_kind
from trieauto.sources.pieces import BYTE_PIECES, SPACE_MARK, space_marked
from trieauto.sources.source import TokenSource, make_token_source

# Field numbers of ModelProto and NormalizerSpec in SentencePiece's model format.
_DENORMALIZER_SPEC = 5
_PRECOMPILED_CHARSMAP = 2


def from_sentencepiece(processor: Any) -> TokenSource:
    """The tokens of a ``sentencepiece.SentencePieceProcessor``; the stop token is its ``</s>``, if it has one.

    Raises:
        UnsupportedError: a model that rewrites the text when decoding, or puts its dummy space after the last word.
        VocabularyError: something else than a processor, or a model without one piece that has bytes.
    """
    if not offers(processor, SENTENCEPIECE):
        raise wrong_kind(processor, "a sentencepiece.SentencePieceProcessor")
    stop_ids = [processor.eos_id()] if processor.eos_id() >= 0 else []
    encoder = SentencePieceEncoder(processor)
    return make_token_source(piece_bytes(processor), stop_ids, _prefix_space(processor), encoder)


def piece_bytes(processor: Any) -> list[bytes | None]:
    """The bytes of every piece by id, ``None`` for control, unknown and unused pieces.

    Byte pieces are their byte. All others, user-defined symbols too, are their text, with U+2581 as the space.

    Raises:
        UnsupportedError: a model that rewrites the text when decoding.
    """
    _check_denormalizer(processor.serialized_model_proto())
    ids = list(range(processor.get_piece_size()))
    kinds = zip(
        processor.id_to_piece(ids),
        processor.is_byte(ids),
        processor.is_control(ids),
        processor.is_unknown(ids),
        processor.is_unused(ids),
        strict=True,
    )
    return [
        None if control or unknown or unused else BYTE_PIECES[piece] if byte else space_marked(piece)
        for piece, byte, control, unknown, unused in kinds
    ]


def _prefix_space(processor: Any) -> bool:
    normalized = processor.normalize("a")
    if normalized.endswith((SPACE_MARK, " ")):
        raise UnsupportedError("a SentencePiece model with treat_whitespace_as_suffix: its dummy space ends the text")
    return bool(normalized.startswith((SPACE_MARK, " ")))


def _check_denormalizer(model: bytes) -> None:
    for field, value in _fields(model):
        if field == _DENORMALIZER_SPEC and any(f == _PRECOMPILED_CHARSMAP and v for f, v in _fields(value)):
            raise UnsupportedError("a SentencePiece model with denormalization rules: it rewrites text when decoding")


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The length-delimited fields (messages, texts) of a serialized Protocol Buffers message."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        wire_type = tag & 7
        if wire_type == 0:
            _, position = _varint(message, position)
        elif wire_type == 2:
            length, position = _varint(message, position)
            yield tag >> 3, message[position : position + length]
            position += length
        else:
            position += 8 if wire_type == 1 else 4


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """The number that starts at a position, seven bits a byte with the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position
