"""The logits processor: one class for vLLM's V1 and V2 model runners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from vllm.v1.sample.logits_processor.interface import LogitsProcessor as LogitsProcessorV1
from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as LogitsProcessorV2
from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcRequestState

from ._vllm_admission import check_params
from ._vllm_hooks import check_hooks
from ._vllm_requests import argument_of

if TYPE_CHECKING:
    from ._vllm_histories import HistoryV1, HistoryV2
    from ._vllm_masking import Masking


class TrieLogitsProcessor(LogitsProcessorV1, LogitsProcessorV2):  # type: ignore[misc]
    """Constrains the requests that have ``extra_args={"trieauto": ...}``; ``trieauto.serving.read_request`` says what
    may stand there. vLLM finds it by its entry point.

    Budgets hold: no answer is cut off by ``max_tokens`` or by the context, and a request that cannot be finished is
    refused (HTTP 400). A batch's masks are one call of a kernel; requests without a constraint pay nothing. Made by
    vLLM, with ``(vllm_config, device, is_pin_memory)`` for the V1 runner and with ``(vllm_config, req_states)`` for V2.
    On other devices than the CPU, the V2 runner's requests are followed and masked there, without waiting for the
    tokens, if their constraints have few enough transitions (see ``device.DeviceConstraints``).

    Limits:

    - No speculative decoding (vLLM does not call processors then), and no reasoning parser: refused.
    - In the V1 runner with asynchronous scheduling vLLM shows tokens to processors only if it was started with
      ``--logits-processors trieauto.integrations.vllm:TrieLogitsProcessor``: refused without it.
    - ``structured_outputs``, ``stop``, ``bad_words``, ``allowed_token_ids`` beside a constraint are refused, too.
    """

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuse ``sampling_params`` in which something cannot go with a constraint. (Whatever needs the vocabulary or
        the prompt is checked after it, by a hook on vLLM's admission.)

        Raises:
            TrieautoError: a conflict, or hooks that are not in place.
        """
        if argument_of(sampling_params) is not None:
            check_hooks()
            check_params(sampling_params)

    def __init__(self, vllm_config: Any, *arguments: Any) -> None:
        self._vllm_config = vllm_config
        self._masking: Masking | None = None
        self._v1: HistoryV1 | None = None
        self._v2: HistoryV2 | None = None
        self._states = arguments[0] if isinstance(arguments[0], LogitsProcRequestState) else None

    def is_argmax_invariant(self) -> bool:
        """No: it changes which token is the most likely one."""
        return False

    # V1

    def update_state(self, batch_update: Any) -> None:
        """Follow a change of the batch, in the V1 runner. ``batch_update``: vLLM's, or None if nothing changed."""
        if self._v1 is None:
            if batch_update is None or all(argument_of(added[1]) is None for added in batch_update.added):
                return
            from ._vllm_histories import HistoryV1

            self._v1 = HistoryV1(self._vllm_config)
        self._v1.update(batch_update)

    # V2

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Begin with a request, in the V2 runner.

        Args:
            req_idx: its slot.
            sampling_params: its own.

        Returns:
            Whether it is constrained.
        """
        if self._v2 is None:
            if argument_of(sampling_params) is None:
                return False
            from ._vllm_histories import HistoryV2

            self._v2 = HistoryV2(self._vllm_config, self._states)
        return self._v2.add(req_idx, sampling_params)

    # Both

    def apply(self, logits: torch.Tensor, ctx: Any = None) -> torch.Tensor:
        """Set the logits of illegal tokens to minus infinity.

        Args:
            logits: [rows, size], any float dtype; changed in place.
            ctx: what the V2 runner says of the batch.
        """
        if self._v2 is not None:
            self._v2.apply_on_device(logits, ctx)
        history = self._v1 or self._v2
        if history is not None:
            rows, requests = history.up_to_date(ctx)
            if rows:
                if self._masking is None:
                    self._masking = self._new_masking()
                self._masking.apply(logits, rows, requests)
        return logits

    def _new_masking(self) -> Masking:
        from vllm.utils.torch_utils import PIN_MEMORY

        from ._vllm_masking import Masking
        from ._vllm_stores import store_of

        vocabulary = store_of(self._vllm_config.model_config).vocabulary
        return Masking(vocabulary.size, vocabulary.stop_token_ids, PIN_MEMORY)
