"""The vocabulary of the model that SGLang serves."""

from __future__ import annotations

from typing import Any

from trieauto import Vocabulary


def read_vocabulary(tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> Vocabulary:
    """The vocabulary, with the stop ids that SGLang ends requests at."""
    given = [] if eos_token_ids is None else [eos_token_ids] if isinstance(eos_token_ids, int) else list(eos_token_ids)
    more = getattr(tokenizer, "additional_stop_token_ids", None) or ()
    stop_ids = {*given, *more, getattr(tokenizer, "eos_token_id", None)} - {None}
    return Vocabulary.from_tokenizer(tokenizer, size=vocab_size, stop_token_ids=stop_ids)
