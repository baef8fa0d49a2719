"""The vocabulary of the model that vLLM serves."""

from __future__ import annotations

from typing import Any

from trieauto import Vocabulary
from trieauto.errors import VocabularyError


def read_vocabulary(model_config: Any, tokenizer: Any = None) -> Vocabulary:
    """The vocabulary, with the stop ids at which vLLM ends requests: the tokenizer's, and the generation config's.

    Args:
        model_config: vLLM's ``ModelConfig``.
        tokenizer: vLLM's, if it is there already; otherwise vLLM's cache of tokenizers is asked.

    Raises:
        VocabularyError: there is no tokenizer (``skip_tokenizer_init``), or it does not fit the model.
        UnsupportedError: a tokenizer that cannot be read exactly.
    """
    if tokenizer is None:
        from vllm.tokenizers import cached_tokenizer_from_config

        if model_config.skip_tokenizer_init:
            raise VocabularyError("vLLM was started without a tokenizer (skip_tokenizer_init), so no token has a text")
        tokenizer = cached_tokenizer_from_config(model_config)
    given = (model_config.try_get_generation_config() or {}).get("eos_token_id")
    stop_ids: set[Any] = set() if given is None else {given} if isinstance(given, int) else set(given)
    stop_ids |= {getattr(tokenizer, "eos_token_id", None)} - {None}
    return Vocabulary.from_tokenizer(tokenizer, size=model_config.get_vocab_size(), stop_token_ids=stop_ids)
