"""Tokens from the tokenizers of mistral-common, of both kinds: tekken and SentencePiece."""

from __future__ import annotations

from typing import Any

from trieauto.sources.sentencepiece import from_sentencepiece
from trieauto.sources.source import TokenSource, make_token_source
from trieauto.sources.tiktoken import from_tiktoken


def from_mistral_common(tokenizer: Any) -> TokenSource:
    """The tokens of a ``MistralTokenizer``, or of the tekken or SentencePiece tokenizer within it.

    A tekken id is a tiktoken rank behind the special tokens, which take the first ids. The stop token is ``</s>``.

    Raises: as ``from_tiktoken`` and ``from_sentencepiece``.
    """
    if hasattr(tokenizer, "instruct_tokenizer"):
        tokenizer = tokenizer.instruct_tokenizer.tokenizer
    model = tokenizer._model
    if not hasattr(model, "token_byte_values"):
        source = from_sentencepiece(model)
        return make_token_source(source.tokens, [tokenizer.eos_id], source.prefix_space)
    # The ranks of the encoding end where the vocabulary is cut off, so ids beyond n_words do not arise.
    tokens: list[bytes | None] = [None] * tokenizer.num_special_tokens
    tokens += from_tiktoken(model, stop_token_ids=[]).tokens
    return make_token_source(tokens, [tokenizer.eos_id], prefix_space=False)
