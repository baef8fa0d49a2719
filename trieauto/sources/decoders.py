"""From the decoder of a ``tokenizer.json`` to the bytes of one piece.

A decoder turns a list of pieces into one text. It gives each piece bytes of its own only if it never looks at two
pieces at once; what a decoder does at the very start of a text (dropping the prefix space) is left out of account.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trieauto.errors import UnsupportedError
from trieauto.sources.components import Component, space_mark, unrolled
from trieauto.sources.pieces import byte_fallback, byte_level, literal
from trieauto.sources.shapes import entry, not_a, scalar

Spelling = Callable[[str], bytes]


def spelling_of(decoder: Component | None) -> Spelling:
    """The function from a piece to its bytes that a decoder stands for.

    Args:
        decoder: the ``decoder`` entry of a ``tokenizer.json``. Supported are ``ByteLevel``, ``Metaspace``,
            ``Replace`` of a text, ``ByteFallback``, ``Fuse``, ``Strip`` of the prefix space, and ``Sequence``.

    Raises:
        ShapeError: a decoder that lacks what its type needs.
        UnsupportedError: any other decoder, or steps in an order in which the bytes of a piece would depend on its
            neighbours; the message names the step.
    """
    if decoder is None:
        raise UnsupportedError("a tokenizer without a decoder joins its tokens with spaces: they have no bytes alone")
    replacements: list[tuple[str, str]] = []
    read_bytes: Spelling = literal
    fused = False
    for step in unrolled(decoder, "decoder", "decoders"):
        kind = step["type"]
        if kind == "Fuse":
            fused = True
        elif kind == "Strip":
            _check_strip(step, fused)
        elif kind not in ("ByteLevel", "ByteFallback", "Metaspace", "Replace"):
            raise UnsupportedError(f"decoder {kind} does not give every token bytes of its own")
        elif read_bytes is not literal:
            raise UnsupportedError(f"decoder {kind} after a step that made bytes acts on several tokens at once")
        elif fused and not (kind == "Replace" and len(_replaced_text(step)) == 1):
            raise UnsupportedError(f"decoder {kind} after Fuse acts on several tokens at once")
        elif kind == "ByteLevel":
            read_bytes, fused = byte_level, True
        elif kind == "ByteFallback":
            read_bytes = byte_fallback
        elif kind == "Metaspace":
            replacements.append((space_mark(step, "decoder"), " "))
        else:
            replacements.append((_replaced_text(step), scalar(step, "decoder Replace", "content", str)))
    return _after_replacing(replacements, read_bytes)


def _check_strip(step: Component, fused: bool) -> None:
    """Only dropping one space from the start of the whole text leaves the bytes of the tokens alone."""
    content = scalar(step, "decoder Strip", "content", str)
    start, stop = (scalar(step, "decoder Strip", name, int) for name in ("start", "stop"))
    if (start, stop) != (0, 0) and not (fused and content == " " and (start, stop) == (1, 0)):
        where = "the text" if fused else "every token"
        raise UnsupportedError(
            f"decoder Strip takes up to {start} and {stop} {content!r} from the ends of {where}, which the tokens spell"
        )


def _replaced_text(step: Component) -> str:
    pattern = entry(step, "decoder Replace", "pattern")
    if not isinstance(pattern, Mapping):
        raise not_a("an object", "pattern of decoder Replace", pattern)
    if not pattern.get("String"):
        raise UnsupportedError(f"decoder Replace of the pattern {pattern!r}: only a text can be replaced")
    return scalar(pattern, "pattern of decoder Replace", "String", str)


def _after_replacing(replacements: list[tuple[str, str]], read_bytes: Spelling) -> Spelling:
    if not replacements:
        return read_bytes

    def spelling(piece: str) -> bytes:
        for old, new in replacements:
            piece = piece.replace(old, new)
        return read_bytes(piece)

    return spelling
