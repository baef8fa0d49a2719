"""Free text from a model: no constraint, but for each prompt a limit of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import (
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    StoppingCriteriaList,
)

from ._hf_options import NEUTRAL
from ._hf_passes import eval_mode
from ._hf_prompts import pad


@dataclass(frozen=True, slots=True)
class FreeText:
    """What a model wrote.

    Attributes:
        text: without special tokens.
        num_tokens: how many it took, a stop token included.
    """

    text: str
    num_tokens: int


class _OwnLimits(StoppingCriteria):
    """Ends each row at its own number of tokens."""

    def __init__(self, prompt_length: int, limits: Sequence[int]) -> None:
        self._ends = torch.tensor(limits) + prompt_length

    def __call__(
        self, input_ids: torch.LongTensor, scores: tuple[torch.Tensor] | None, **kwargs: object
    ) -> torch.BoolTensor:
        done = self._ends <= input_ids.shape[1]
        return done.to(input_ids.device)  # type: ignore[return-value]


def write_freely(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    encoded: Sequence[Sequence[int]],
    limits: Sequence[int],
    stop_token_ids: Sequence[int],
    **generate_arguments: Any,
) -> list[FreeText]:
    """What a decoder writes after each prompt until a stop token, in one ``generate`` call.

    Args:
        encoded: the prompts' ids.
        limits: for each the most tokens, a stop token included; for 0 the model is not run.
        stop_token_ids: one or more; the first also fills up rows that end early.
        generate_arguments: as for ``Chooser``; greedy by default.
    """
    running = [i for i, limit in enumerate(limits) if limit > 0]
    texts = [FreeText("", 0)] * len(encoded)
    if not running:
        return texts
    ids, mask = pad([encoded[i] for i in running], stop_token_ids[0], model.device, left=True)
    own = [limits[i] for i in running]
    generate: Any = model.generate
    options = {
        **NEUTRAL,
        "output_logits": False,
        "eos_token_id": list(stop_token_ids),
        "pad_token_id": stop_token_ids[0],
        **generate_arguments,
        "logits_processor": LogitsProcessorList(generate_arguments.get("logits_processor") or []),
    }
    with eval_mode(model):
        output = generate(
            input_ids=ids,
            attention_mask=mask,
            stopping_criteria=StoppingCriteriaList([_OwnLimits(ids.shape[1], own)]),
            **options,
            max_length=ids.shape[1] + max(own),
        )
    for i, limit, row in zip(running, own, output.sequences[:, ids.shape[1] :].tolist(), strict=True):
        written = row[:limit]
        length = next((place + 1 for place, token in enumerate(written) if token in stop_token_ids), len(written))
        texts[i] = FreeText(str(tokenizer.decode(written[:length], skip_special_tokens=True)), length)
    return texts
