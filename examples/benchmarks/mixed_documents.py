"""Answers as a tokenizer writes them, and in which field each mask falls."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import get_args

import tiktoken
from mixed_cases import Phase
from mixed_engines import Mixed
from vocabularies import qwen

PHASES: tuple[Phase, ...] = get_args(Phase)
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Document:
    """``phases[i]`` is where the mask before token ``i`` falls; the last one follows all tokens."""

    text: str
    token_ids: list[int]
    phases: list[Phase]


@cache
def qwen_encoding() -> tiktoken.Encoding:
    """Qwen's own way of writing a text."""
    ranks = {token: rank for rank, token in enumerate(qwen().tokens) if token is not None}
    return tiktoken.Encoding("qwen", pat_str=_WORDS, mergeable_ranks=ranks, special_tokens={})


def documents(mixed: Mixed, values: Sequence[str], count: int, seed: int = 0) -> list[Document]:
    """Random answers."""
    rng = random.Random(seed)
    return [_document(mixed, rng.choice(values), rng) for _ in range(count)]


def _document(mixed: Mixed, value: str, rng: random.Random) -> Document:
    pieces = mixed.case.answer(value, rng)
    text = "".join(piece for _, piece in pieces)
    assert json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")) == text
    of_byte: list[Phase] = []
    for phase, piece in pieces:
        after_number = of_byte[-1:] == ["number"]  # whether the number ends here is still a choice
        of_byte += [phase] * len(piece.encode())
        if after_number:
            of_byte[-len(piece.encode())] = "number"
    token_ids = qwen_encoding().encode_ordinary(text)
    place, phases = 0, []
    for token_id in token_ids:
        phases.append(of_byte[place])
        place += len(qwen().tokens[token_id] or b"")
    assert place == len(of_byte)
    return Document(text, token_ids, [*phases, "structure"])
