"""Reading what all prompts begin with once, not once for each prompt: the options are most of every prompt."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

LEAST = 16  # tokens; a shorter beginning is not worth it


@contextmanager
def shared_beginnings(model: PreTrainedModel) -> Iterator[None]:
    """Inside, ``model.generate`` reads the beginning that the rows of a batch share once, and keeps the last one.

    Rows come padded on the left; they are laid out anew, padding after what they share, so that their length stays.
    The positions of tokens follow from the mask, so the model sees what it would have seen.
    """
    own: Any = model.generate
    # What the argument is called depends on the version of transformers.
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    kept: dict[tuple[int, ...], DynamicCache] = {}

    def generate(*, input_ids: torch.Tensor, attention_mask: torch.Tensor, **arguments: Any) -> Any:
        rows = [row[mask.bool()] for row, mask in zip(input_ids, attention_mask, strict=True)]
        size = _shared(rows)
        if size < LEAST:
            return own(input_ids=input_ids, attention_mask=attention_mask, **arguments)
        beginning = rows[0][:size]
        key = tuple(beginning.tolist())
        if key not in kept:
            kept.clear()
            with torch.no_grad():
                kept[key] = DynamicCache()
                model(beginning[None], use_cache=True, logits_to_keep=1, **{name: kept[key]})
        cache = copy.deepcopy(kept[key])
        cache.batch_repeat_interleave(len(rows))
        ids, mask = input_ids.clone(), attention_mask.clone()
        for place, row in enumerate(rows):
            padding = ids.shape[1] - len(row)
            ids[place, :size] = beginning
            ids[place, size : size + padding] = input_ids[place, 0] if padding else 0
            ids[place, size + padding :] = row[size:]
            mask[place] = 1
            mask[place, size : size + padding] = 0
        return own(input_ids=ids, attention_mask=mask, **{name: cache}, **arguments)

    model.generate = generate  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        del model.generate


def _shared(rows: list[torch.Tensor]) -> int:
    """How many tokens all rows begin with; at least one of each is left to be read."""
    shortest = min(map(len, rows)) - 1
    alike = torch.stack([row[:shortest] == rows[0][:shortest] for row in rows]).all(dim=0)
    return int(alike.long().cumprod(dim=0).sum())
