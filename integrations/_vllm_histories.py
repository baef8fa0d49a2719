"""Which requests of a batch are constrained, and which tokens each has had: of vLLM's V1 and V2 model runners."""

from __future__ import annotations

import logging
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from trieauto import Matcher

from ._vllm_requests import argument_of, new_matcher
from ._vllm_stores import store_of

if TYPE_CHECKING:
    from ._vllm_device import DeviceRows

logger = logging.getLogger("trieauto")


class Row:
    """A constrained request in a batch.

    Attributes:
        matcher: where it stands; None if it cannot be constrained. (Then only stop tokens are legal, and the
            scheduler, which knows that its answer is not whole, ends it with an error.)
    """

    __slots__ = ("matcher", "name")

    def __init__(self, params: Any, vllm_config: Any, name: str) -> None:
        self.name = name
        self.matcher: Matcher | None = None
        try:
            self.matcher = new_matcher(params, store_of(vllm_config.model_config))
        except ValueError as error:
            self.give_up(str(error))

    def give_up(self, reason: str) -> None:
        """Let this request end; the engine goes on with the others."""
        logger.error("trieauto: a request in %s cannot be constrained: %s", self.name, reason)
        self.matcher = None

    def num_missing(self, length: int) -> int:
        """How many of its first ``length`` tokens this request has not taken yet. If it has taken more, it goes back:
        vLLM takes tokens back after a failed transfer of a cache."""
        if self.matcher is None:
            return 0
        missing = length - self.matcher.num_accepted
        if missing < 0:
            self.matcher.rollback(-missing)
        return max(0, missing)

    def take(self, token_ids: Sequence[int]) -> None:
        """Accept tokens; most often it is one, which is faster by itself."""
        matcher = self.matcher
        if matcher is None:
            return
        if not (matcher.accept_token(token_ids[0]) if len(token_ids) == 1 else matcher.accept_tokens(token_ids)):
            self.give_up(f"of the tokens {list(token_ids)} one is not legal")


class HistoryV1:
    """For the V1 runner, which tells of changes of its batch, and shares the lists of output tokens."""

    def __init__(self, vllm_config: Any) -> None:
        self._vllm_config = vllm_config
        self._rows: dict[int, tuple[Row, list[int]]] = {}

    def update(self, batch_update: Any) -> None:
        """Follow a change of the batch."""
        from vllm.v1.sample.logits_processor.builtin import process_dict_updates

        process_dict_updates(self._rows, batch_update, self._new_row)

    def _new_row(
        self, params: Any, prompt_ids: list[int] | None, output_ids: list[int]
    ) -> tuple[Row, list[int]] | None:
        if argument_of(params) is None:
            return None
        return Row(params, self._vllm_config, "the V1 runner's batch"), output_ids

    def up_to_date(self, context: Any = None) -> tuple[list[int], list[Row]]:
        """The rows, and their requests."""
        for row, output_ids in self._rows.values():
            missing = row.num_missing(len(output_ids))
            if missing and output_ids[-1] < 0:
                row.give_up("vLLM runs ahead, and does not say which token was generated last")
            elif missing:
                row.take(output_ids[-missing:])
        return list(self._rows), [row for row, _ in self._rows.values()]


class HistoryV2:
    """For the V2 runner, which has a slot for each request, and keeps its tokens on the device."""

    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        self._vllm_config = vllm_config
        self._states = req_states
        self._slots: dict[int, Row] = {}
        self._on_device: DeviceRows | None = None

    def add(self, slot: int, params: Any) -> bool:
        """Begin with the request in a slot; whether it is constrained.

        On a device other than the CPU it is followed there, if its constraint fits (see ``device``); else, and on the
        CPU, where nothing need be waited for, by a matcher on the host.
        """
        self._slots.pop(slot, None)
        if self._on_device is not None:
            self._on_device.discard(slot)
        if argument_of(params) is None:
            return False
        row = Row(params, self._vllm_config, f"slot {slot} of the V2 runner")
        if not self._is_followed_on_device(slot, row.matcher):
            self._slots[slot] = row
        return True

    def _is_followed_on_device(self, slot: int, matcher: Matcher | None) -> bool:
        states = self._states
        if states.device.type == "cpu" or type(matcher) is not Matcher:
            return False
        if self._on_device is None:
            from ._vllm_device import DeviceRows

            self._on_device = DeviceRows(matcher.constraint.vocabulary, states.max_num_reqs, states.device)
        return self._on_device.add(slot, matcher.constraint, matcher.remaining_tokens)

    def apply_on_device(self, logits: torch.Tensor, context: Any) -> None:
        """Mask the rows of the requests that are followed on the device. Waits for nothing.

        Raises:
            RuntimeError: as for ``up_to_date``.
        """
        rows = self._on_device
        places = [] if rows is None else self._places_of(rows, context)
        if rows is not None and places:
            slots = context.idx_mapping_np[places]
            prompt_lengths = self._states.prompt_len.np[slots]
            lengths = self._lengths(context, places)
            rows.apply_(logits, places, slots, prompt_lengths, lengths, self._states.all_token_ids.gpu)

    def up_to_date(self, context: Any) -> tuple[list[int], list[Row]]:
        """The rows, and their requests, but for those that are followed on the device. One copy from the device, which
        waits for the last step's tokens.

        Raises:
            RuntimeError: there are rows of drafts. (Admission refuses constraints where vLLM speculates.)
        """
        places = self._places_of(self._slots, context) if self._slots else []
        if not places:
            return [], []
        of_places = context.idx_mapping_np[places]
        rows = [self._slots[slot] for slot in of_places.tolist()]
        ends = context.seq_lens_upper_bound_np[places]  # exact without drafts
        lengths = self._lengths(context, places)
        missing = [row.num_missing(length) for row, length in zip(rows, lengths.tolist(), strict=True)]
        token_ids = self._tokens_before(of_places, ends, missing)
        first = 0
        for row, count in zip(rows, missing, strict=True):
            if count:
                row.take(token_ids[first : first + count])
                first += count
        return places, rows

    def _places_of(self, slots: Container[int], context: Any) -> list[int]:
        """The rows of a batch that have one of these slots."""
        of_rows = context.idx_mapping_np
        places = [place for place, slot in enumerate(of_rows.tolist()) if slot in slots]
        if places and len(context.expanded_idx_mapping) != len(of_rows):
            raise RuntimeError("trieauto: constrained requests among drafts, which admission should have refused")
        return places

    def _lengths(self, context: Any, places: Sequence[int]) -> npt.NDArray[np.integer[Any]]:
        """How many tokens the answers in these rows have."""
        ends = context.seq_lens_upper_bound_np[places]
        prompt_lengths = self._states.prompt_len.np[context.idx_mapping_np[places]]
        lengths: npt.NDArray[np.integer[Any]] = np.maximum(ends - prompt_lengths, 0)  # of a part of a prompt negative
        return lengths

    def _tokens_before(
        self, slots: npt.NDArray[np.int32], ends: npt.NDArray[np.int32], counts: Sequence[int]
    ) -> list[int]:
        """The last tokens before a position of each slot, so many of each, one slot's after the other's."""
        total = sum(counts)
        if not total:
            return []
        of_slot = np.repeat(slots, counts)
        backwards = np.concatenate([np.arange(count, 0, -1) for count in counts])
        places = np.stack([of_slot, np.repeat(ends, counts) - backwards]).astype(np.int64)
        on_device = torch.from_numpy(places).to(self._states.device)
        return self._states.all_token_ids.gpu[on_device[0], on_device[1]].tolist()  # type: ignore[no-any-return]
