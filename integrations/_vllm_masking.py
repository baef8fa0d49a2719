"""From matchers to the logits of a batch: one call of a kernel for all masks, and one to apply them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from trieauto import fill_next_token_bitmasks

from ._masks import MaskBuffers, mask_on_cpu
from ._vllm_histories import Row


class Masking:
    """Masks rows of logits, in memory that is used again and again."""

    def __init__(self, vocab_size: int, stop_token_ids: Sequence[int], pin_memory: bool) -> None:
        """
        Args:
            vocab_size: of the model.
            stop_token_ids: what remains legal for a request that cannot be constrained.
            pin_memory: whether a device copies the masks.
        """
        self._vocab_size = vocab_size
        self._stop_ids = list(stop_token_ids)
        self._buffers = MaskBuffers(pin_memory)

    def apply(self, logits: torch.Tensor, places: Sequence[int], rows: Sequence[Row]) -> None:
        """Set the logits of illegal tokens to minus infinity, in place.

        Args:
            logits: float[count, width].
            places: the rows of the logits that are constrained.
            rows: their requests.
        """
        is_on_cpu = logits.device.type == "cpu"
        # On a device XGrammar's kernel is given the mask of every row of the logits.
        count = len(places) if is_on_cpu else len(logits)
        mask = self._buffers.rows(count, max(self._vocab_size, logits.shape[-1]))
        targets = range(count) if is_on_cpu else places
        matchers, of_matchers = [], []
        for target, row in zip(targets, rows, strict=True):
            if row.matcher is not None:
                matchers.append(row.matcher)
                of_matchers.append(target)
            else:
                mask[target] = 0
                for token_id in self._stop_ids:
                    bit = token_id % 32
                    mask[target, token_id // 32] |= 1 << bit if bit < 31 else -(1 << 31)
        if matchers:
            fill_next_token_bitmasks(matchers, mask, of_matchers)
        if is_on_cpu:
            mask_on_cpu(logits, mask.numpy(), places)
            return
        from xgrammar import apply_token_bitmask_inplace

        indices: Any = None  # a tensor can be copied without waiting for it
        if len(places) < len(logits):
            indices = torch.tensor(places, dtype=torch.int32).to(logits.device, non_blocking=True)
        apply_token_bitmask_inplace(logits, mask.to(logits.device, non_blocking=True), indices=indices)
