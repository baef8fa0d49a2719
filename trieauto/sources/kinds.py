"""What tells one kind of tokenizer from another: the attributes it offers, never the name of its class."""

from __future__ import annotations

import os
from typing import Any

from trieauto.errors import VocabularyError, shorten

TIKTOKEN = ("token_byte_values", "encode_single_token", "n_vocab", "special_tokens_set")
SENTENCEPIECE = ("id_to_piece", "is_byte", "serialized_model_proto", "get_piece_size", "eos_id", "normalize")
# The tekken or SentencePiece tokenizer within a MistralTokenizer.
MISTRAL_INNER = ("_model", "num_special_tokens", "eos_id")
HUGGINGFACE_BACKEND = ("get_vocab", "get_added_tokens_decoder", "model", "decoder", "normalizer", "pre_tokenizer")
HUGGINGFACE_SLOW = ("get_vocab", "vocab_size", "tokenize", "added_tokens_decoder")


def offers(tokenizer: Any, names: tuple[str, ...]) -> bool:
    """Whether an object has all these attributes; a class never has, for its attributes are those of no tokenizer."""
    return not isinstance(tokenizer, type) and all(hasattr(tokenizer, name) for name in names)


def wrong_kind(tokenizer: object, expected: str) -> VocabularyError:
    """The error for an object that is not what was expected, such as "a tiktoken.Encoding"."""
    kind = type(tokenizer).__name__
    if isinstance(tokenizer, (str, os.PathLike)):
        return VocabularyError(
            f"{shorten(tokenizer)} ({kind}) is a name or path, not {expected}: load the tokenizer first, or use "
            "Vocabulary.from_file for a tokenizer.json"
        )
    if isinstance(tokenizer, type):
        return VocabularyError(f"the class {tokenizer.__name__} is not {expected}: it takes an object of a class")
    return VocabularyError(f"{kind} is not {expected}")
