"""Which arguments of ``generate`` a ``Chooser`` takes, and what it sets itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trieauto.errors import TrieautoError, UnsupportedError

from ._hf_messages import shown

_REFUSED_BECAUSE = {
    "each call brings its own prompt": (
        "inputs input_ids inputs_embeds attention_mask position_ids decoder_input_ids decoder_inputs_embeds "
        "decoder_attention_mask encoder_outputs cache past_key_values token_healing"
    ),
    "an answer ends where its value is determined, neither sooner nor later": (
        "max_time min_length min_new_tokens stop_strings stopping_criteria eos_token_id "
        "exponential_decay_length_penalty"
    ),
    "it counts the prompt too; give max_new_tokens, the tokens of an answer": "max_length",
    "it forbids or forces tokens, whatever the values need": (
        "bad_words_ids suppress_tokens begin_suppress_tokens forced_bos_token_id forced_eos_token_id "
        "no_repeat_ngram_size encoder_no_repeat_ngram_size prefix_allowed_tokens_fn constraints force_words_ids "
        "watermarking_config"
    ),
    "one value is chosen for each prompt": "num_return_sequences",
    "give its fields as arguments of their own": "generation_config",
    "the log-probability is read from what generate returns": "return_dict_in_generate output_logits",
    "it replaces the decoding loop": "custom_generate trust_remote_code",
    "the constraint knows the ids of one tokenizer only": "assistant_tokenizer",
}
_REASONS = {name: reason for reason, names in _REFUSED_BECAUSE.items() for name in names.split()}

NEUTRAL: Mapping[str, Any] = {
    "do_sample": False,
    "num_beams": 1,
    "num_return_sequences": 1,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "sequence_bias": None,
    "guidance_scale": None,
    "min_length": 0,
    "min_new_tokens": None,
    "max_new_tokens": None,
    "max_time": None,
    "stop_strings": None,
    "exponential_decay_length_penalty": None,
    "bad_words_ids": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "token_healing": False,
    "watermarking_config": None,
    "prompt_lookup_num_tokens": None,
    "return_dict_in_generate": True,
    "output_logits": True,
}
"""What the model's ``generation_config`` may say otherwise, for free text, and must not say here."""


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``generate`` that a user gave.

    Raises:
        UnsupportedError: one of them would break the constraint, or is the Chooser's own to set.
        TrieautoError: ``logits_processor`` is not a list of processors.
    """
    if not isinstance(options, Mapping):
        raise TrieautoError(f"the arguments of generate are a mapping of names to values, not {shown(options)}")
    for name, value in options.items():
        if name in _REASONS:
            raise UnsupportedError(f"{name}={shown(value)} cannot be combined with a constraint: {_REASONS[name]}")
    if options.get("cache_implementation") == "paged":
        raise UnsupportedError("cache_implementation='paged' ignores stopping criteria, so no answer would end")
    processors = options.get("logits_processor")
    if processors is None:
        return dict(options)
    if not isinstance(processors, Iterable):
        raise TrieautoError(f"logits_processor must be a list of logits processors, not {shown(processors)}")
    processors = list(processors)
    for processor in processors:
        if not callable(processor):
            raise TrieautoError(f"logits_processor must hold logits processors, not {shown(processor)}")
    return {**options, "logits_processor": processors}


def drafts(options: Mapping[str, Any]) -> bool:
    """Whether tokens are drafted before the model sees them: ``generate`` does that for one prompt at a time only."""
    names = ("assistant_model", "prompt_lookup_num_tokens", "assistant_early_exit", "use_mtp")
    return any(options.get(name) for name in names)
