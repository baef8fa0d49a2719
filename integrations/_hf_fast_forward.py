"""A decoding loop for ``generate`` that spends no forward pass on forced text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.generation.utils import GenerateDecoderOnlyOutput

from trieauto.errors import UnsupportedError
from trieauto.fast_forward import bytes_of_tokens, forced_token_ids

from ._hf_messages import shown
from ._hf_options import drafts
from ._hf_passes import Decoder
from ._hf_processor import ConstraintLogitsProcessor

_FOR_TEXT = (
    "attention_mask",
    "cache",
    "cache_position",
    "logits_to_keep",
    "past_key_values",
    "position_ids",
    "use_cache",
)
"""What ``generate`` hands to a decoding loop if the prompt is text alone."""

_REFUSED = (
    "streamer", "output_scores", "output_attentions", "output_hidden_states", "penalty_alpha", "dola_layers",
    "num_beam_groups", "prefill_chunk_size",
)  # fmt: skip


class FastForward:
    """Greedy decoding or sampling in which the tokens of forced text join the pass of the token before them.

    >>> loop = FastForward(processor, tokenizer)
    >>> model.generate(**inputs, custom_generate=loop, logits_processor=[processor], stopping_criteria=[criterion])

    After the prompt, and after every token that the model chose, ``trieauto.fast_forward.forced_token_ids`` says what
    follows without a choice. These tokens are appended, and the next pass reads all of them at once. Where they finish
    the answer there is no further pass (unless ``output_logits`` asks for their logits, too).

    Args:
        processor: of the same ``generate`` call. It has the prompt's length and the budget.
        tokenizer: the model's, for the usual spelling of forced text.

    Attributes:
        num_forward_passes: how often the model ran in the last ``generate`` call.
        num_forced_tokens: how many tokens of its answer the model did not choose.
    """

    def __init__(self, processor: ConstraintLogitsProcessor, tokenizer: PreTrainedTokenizerBase) -> None:
        self._processor = processor
        self._tokenizer = tokenizer
        self.num_forward_passes = 0
        self.num_forced_tokens = 0

    def __call__(
        self,
        model: PreTrainedModel,
        input_ids: torch.LongTensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        synced_gpus: bool = False,
        **model_kwargs: Any,
    ) -> GenerateDecoderOnlyOutput | torch.Tensor:
        """The loop, as ``generate`` calls it.

        Raises:
            UnsupportedError: several rows, padding, prompts that are not text alone, or a model whose cache is not one
                of attention.
        """
        _check_inputs(input_ids, synced_gpus, model_kwargs)
        decoder = Decoder(model, model_kwargs.get("cache", model_kwargs.get("past_key_values")))
        has_output = generation_config.return_dict_in_generate
        wants_logits = has_output and generation_config.output_logits
        raw_logits: list[torch.Tensor] = []
        ids: torch.Tensor = input_ids
        num_read = self.num_forced_tokens = 0
        while True:
            forced = self._forced(ids)
            ids = torch.cat([ids, torch.tensor([forced], dtype=ids.dtype, device=ids.device)], dim=1)
            self.num_forced_tokens += len(forced)
            is_done = bool(forced) and bool(stopping_criteria(ids, None).all())
            if is_done and not wants_logits:
                break
            # After the last token no logits are needed if it ends the answer.
            num_logits = len(forced) + (not is_done)
            end = ids.shape[1] - is_done
            logits = decoder.read(ids[:, num_read:end], num_logits)[0].to(torch.float32, copy=True)
            num_read = end
            if wants_logits:
                raw_logits += logits[:, None].to(ids.device)
            if is_done:
                break
            scores = logits_processor(ids, logits[-1:].to(ids.device))
            if generation_config.do_sample:
                chosen = torch.multinomial(scores.softmax(dim=-1), num_samples=1)
            else:
                chosen = scores.argmax(dim=-1, keepdim=True)
            ids = torch.cat([ids, chosen], dim=1)
            if bool(stopping_criteria(ids, None).all()):
                break
        self.num_forward_passes = decoder.num_passes
        if not has_output:
            return ids
        output: Any = {"sequences": ids, "logits": tuple(raw_logits) if wants_logits else None}
        return GenerateDecoderOnlyOutput(**output)

    def _forced(self, ids: torch.Tensor) -> list[int]:
        [row] = self._processor.rows(ids)  # type: ignore[arg-type]
        if row.is_outside:
            return []
        answer = ids[0, -row.accepted :].tolist() if row.accepted else []
        before = bytes_of_tokens(self._processor.vocabulary, answer)
        return forced_token_ids(row.matcher, self._encode, before)

    def _encode(self, text: str) -> list[int]:
        token_ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return token_ids


def check_fast_forward(model: PreTrainedModel, arguments: Mapping[str, Any]) -> None:
    """Whether answers of a model can be fast-forwarded, with these arguments of ``generate``.

    Raises:
        UnsupportedError: an encoder-decoder, beams, drafted tokens, or an argument that the loop does not know.
    """
    if model.config.is_encoder_decoder:
        raise UnsupportedError(f"fast_forward is for decoders, and {type(model).__name__} is an encoder-decoder")
    if drafts(arguments):
        raise UnsupportedError("fast_forward cannot be combined with drafted tokens (assistant model, prompt lookup)")
    if arguments.get("num_beams") not in (None, 1):
        raise UnsupportedError(f"fast_forward follows one answer at a time, not num_beams={arguments['num_beams']}")
    if arguments.get("use_cache") is False:
        raise UnsupportedError("fast_forward needs the model's cache, but use_cache is False")
    for name in _REFUSED:
        if arguments.get(name):
            raise UnsupportedError(f"fast_forward does not know {name}={shown(arguments[name])}")


def _check_inputs(input_ids: torch.Tensor, synced_gpus: bool, model_kwargs: Mapping[str, Any]) -> None:
    if len(input_ids) != 1:
        raise UnsupportedError(f"fast_forward runs one prompt at a time, not {len(input_ids)} rows")
    mask = model_kwargs.get("attention_mask")
    if mask is not None and not bool(mask.all()):
        raise UnsupportedError("fast_forward takes prompts without padding")
    if synced_gpus:
        raise UnsupportedError("fast_forward does not run with synced_gpus")
    for name, value in model_kwargs.items():
        if name not in _FOR_TEXT and value is not None:
            raise UnsupportedError(f"fast_forward is for prompts of text alone: it does not know {name}={shown(value)}")
