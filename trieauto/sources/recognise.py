"""From a tokenizer object of any supported kind to its tokens."""

from __future__ import annotations

from typing import Any

from trieauto.sources.huggingface import from_huggingface
from trieauto.sources.kinds import HUGGINGFACE_BACKEND, MISTRAL_INNER, SENTENCEPIECE, TIKTOKEN, offers, wrong_kind
from trieauto.sources.mistral_common import from_mistral_common
from trieauto.sources.sentencepiece import from_sentencepiece
from trieauto.sources.source import TokenSource
from trieauto.sources.tiktoken import from_tiktoken


def token_source(tokenizer: Any) -> TokenSource:
    """The tokens of a tokenizer, whose kind is told by what it offers, never by the name of its class.

    Supported are the tokenizers of ``transformers`` (fast and slow), ``tokenizers``, tiktoken, SentencePiece and
    mistral-common.

    Raises:
        VocabularyError: an object that is none of these, or that does not show the bytes of its tokens.
        UnsupportedError: a tokenizer whose tokens have no bytes of their own; the message says why.
    """
    if (
        offers(tokenizer, ("backend_tokenizer",))
        or offers(tokenizer, ("get_vocab", "added_tokens_decoder"))
        or offers(tokenizer, HUGGINGFACE_BACKEND)
    ):
        return from_huggingface(tokenizer)
    if offers(tokenizer, ("instruct_tokenizer",)) or offers(tokenizer, MISTRAL_INNER):
        return from_mistral_common(tokenizer)
    if offers(tokenizer, TIKTOKEN):
        return from_tiktoken(tokenizer)
    if offers(tokenizer, SENTENCEPIECE):
        return from_sentencepiece(tokenizer)
    raise wrong_kind(
        tokenizer,
        "a tokenizer of a supported kind (Hugging Face transformers or tokenizers, mistral-common, tiktoken, "
        "SentencePiece)",
    )
