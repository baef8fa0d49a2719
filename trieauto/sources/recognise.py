"""From a tokenizer object of any supported kind to its tokens."""

from __future__ import annotations

from typing import Any

from trieauto.errors import VocabularyError
from trieauto.sources.huggingface import from_huggingface
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

    def offers(*names: str) -> bool:
        return all(hasattr(tokenizer, name) for name in names)

    if offers("backend_tokenizer") or offers("get_vocab", "added_tokens_decoder"):
        return from_huggingface(tokenizer)
    if offers("get_vocab", "get_added_tokens_decoder", "model", "decoder"):
        return from_huggingface(tokenizer)
    if offers("instruct_tokenizer") or offers("_model", "num_special_tokens", "eos_id"):
        return from_mistral_common(tokenizer)
    if offers("token_byte_values", "encode_single_token", "n_vocab"):
        return from_tiktoken(tokenizer)
    if offers("id_to_piece", "is_byte", "serialized_model_proto"):
        return from_sentencepiece(tokenizer)
    raise VocabularyError(
        f"{type(tokenizer).__name__} is no supported tokenizer: it has neither backend_tokenizer or get_vocab "
        "(Hugging Face), instruct_tokenizer (mistral-common), token_byte_values (tiktoken) nor id_to_piece "
        "(SentencePiece)"
    )
