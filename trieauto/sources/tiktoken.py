"""Tokens from a tiktoken encoding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsIndex

from trieauto.sources.encoders import TiktokenEncoder
from trieauto.sources.kinds import TIKTOKEN, offers, wrong_kind
from trieauto.sources.source import TokenSource, make_token_source, size_for

_END_OF_TEXT = "<|endoftext|>"


def from_tiktoken(encoding: Any, stop_token_ids: Iterable[SupportsIndex] | None = None) -> TokenSource:
    """The tokens of a ``tiktoken.Encoding``; its special tokens have no bytes.

    Args:
        encoding: the encoding.
        stop_token_ids: the ids that end a generation. With ``None`` it is ``encoding.eot_token``, where the encoding
            has one: chat models end their turns with another token, which tiktoken does not know to be one.

    Raises:
        VocabularyError: something else than an encoding, or a stop id that is no integer or outside the encoding.
    """
    if not offers(encoding, TIKTOKEN):
        raise wrong_kind(encoding, "a tiktoken.Encoding")
    if stop_token_ids is None:
        stop_token_ids = [encoding.eot_token] if _END_OF_TEXT in encoding.special_tokens_set else []
    tokens: list[bytes | None] = [None] * size_for([encoding.n_vocab - 1])
    values = encoding.token_byte_values()
    for token, token_id in zip(values, map(encoding.encode_single_token, values), strict=True):
        tokens[token_id] = token
    return make_token_source(tokens, stop_token_ids, prefix_space=False, encoder=TiktokenEncoder(encoding))
