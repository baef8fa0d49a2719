"""Tokens from the tokenizers of mistral-common, of both kinds: tekken and SentencePiece."""

from __future__ import annotations

from typing import Any

from trieauto.sources.encoders import TiktokenEncoder
from trieauto.sources.kinds import MISTRAL_INNER, SENTENCEPIECE, TIKTOKEN, offers, wrong_kind
from trieauto.sources.sentencepiece import from_sentencepiece
from trieauto.sources.source import TokenSource, make_token_source
from trieauto.sources.tiktoken import from_tiktoken


def from_mistral_common(tokenizer: Any) -> TokenSource:
    """The tokens of a ``MistralTokenizer``, or of the tekken or SentencePiece tokenizer within it.

    A tekken id is a tiktoken rank behind the special tokens, which take the first ids. The stop token is ``</s>``.

    Raises:
        VocabularyError: something else.
        UnsupportedError: as ``from_sentencepiece``.
    """
    inner = tokenizer
    if offers(tokenizer, ("instruct_tokenizer",)):
        inner = getattr(tokenizer.instruct_tokenizer, "tokenizer", None)
    model = inner._model if offers(inner, MISTRAL_INNER) else None
    if offers(model, SENTENCEPIECE):
        source = from_sentencepiece(model)
        return make_token_source(source.tokens, [inner.eos_id], source.prefix_space, source.encoder)
    if not offers(model, TIKTOKEN):
        raise wrong_kind(tokenizer, "a tokenizer of mistral-common, such as a MistralTokenizer")
    # The ranks of the encoding end where the vocabulary is cut off, so ids beyond n_words do not arise.
    tokens: list[bytes | None] = [None] * inner.num_special_tokens
    tokens += from_tiktoken(model, stop_token_ids=[]).tokens
    encoder = TiktokenEncoder(model, first_id=inner.num_special_tokens)
    return make_token_source(tokens, [inner.eos_id], prefix_space=False, encoder=encoder)
