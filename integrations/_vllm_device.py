"""Requests whose masks stay on the device: for vLLM's V2 model runner, which keeps the tokens there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from trieauto import Constraint, Vocabulary
from trieauto.budgets import checked_budget
from trieauto.errors import UnsupportedError

from .device import NO_BUDGET, UNCONSTRAINED, DeviceConstraints

MAX_ENTRIES = 2**22
"""Transitions, of all constraints: about 100 MB at most, of what vLLM leaves of a device's memory."""


@dataclass(slots=True)
class _Request:
    """The request in a slot: its state before the first token, and how many tokens its state on the device is after."""

    constraint: Constraint
    budget: int
    start: int
    taken: int = 0


class DeviceRows:
    """Requests in slots, and the states that they are in, on the device. The host never waits for a token.

    Args:
        vocabulary: of all constraints.
        num_slots: how many requests there may be at once.
        device: where tokens, logits and states are.
    """

    def __init__(self, vocabulary: Vocabulary, num_slots: int, device: torch.device) -> None:
        self._tables = DeviceConstraints((), device, vocabulary=vocabulary, max_entries=MAX_ENTRIES)
        with torch.inference_mode(False):
            self._states = torch.full((num_slots,), UNCONSTRAINED, dtype=torch.int64, device=device)
        self._requests: dict[int, _Request] = {}

    def __contains__(self, slot: object) -> bool:
        return slot in self._requests

    def add(self, slot: int, constraint: Constraint, budget: int | None) -> bool:
        """Begin with the request in a slot, whatever was there; whether its constraint can be on the device."""
        self.discard(slot)
        try:
            start = self._start_of(constraint)
        except UnsupportedError:
            return False
        self._requests[slot] = _Request(constraint, min(checked_budget(budget), NO_BUDGET), start)
        return True

    def discard(self, slot: int) -> None:
        """Forget the request in a slot, if there is one."""
        self._requests.pop(slot, None)

    def _start_of(self, constraint: Constraint) -> int:
        try:
            return self._tables.add(constraint)
        except UnsupportedError:
            used = {request.constraint for request in self._requests.values()}
            if self._tables.num_constraints <= len(used):
                raise
        # There is no room, but some are of requests that have gone. The others begin anew, and catch up.
        old = self._tables
        self._tables = DeviceConstraints(used, old.device, vocabulary=old.vocabulary, max_entries=MAX_ENTRIES)
        for request in self._requests.values():
            request.start, request.taken = self._tables.add(request.constraint), 0
        return self._tables.add(constraint)

    def apply_(
        self,
        logits: torch.Tensor,
        places: Sequence[int],
        slots: npt.NDArray[np.integer[Any]],
        prompt_lengths: npt.NDArray[np.integer[Any]],
        lengths: npt.NDArray[np.integer[Any]],
        token_ids: torch.Tensor,
    ) -> None:
        """Take the tokens that are new and set the logits of illegal tokens to minus infinity, in place.

        A request that has taken more tokens than it has now begins anew. One that took a token which is not legal may
        only stop.

        Args:
            logits: float[count, width].
            places: the rows of the logits that these requests have, each once.
            slots: of each request.
            prompt_lengths: how many tokens come before each answer.
            lengths: how many tokens each answer has.
            token_ids: int32[slots, positions] on the device, the tokens in each slot, those of the prompt first.
        """
        requests = [self._requests[slot] for slot in slots.tolist()]
        known = [
            request.taken if request.taken <= length else 0
            for request, length in zip(requests, lengths.tolist(), strict=True)
        ]
        starts, budgets = [each.start for each in requests], [each.budget for each in requests]
        on_host = np.stack([places, slots, prompt_lengths, lengths, known, starts, budgets]).astype(np.int64)
        on_device = torch.from_numpy(on_host).to(logits.device, non_blocking=True)
        place, slot, prompt_length, length, begin, start, budget = on_device
        states = torch.where(begin == 0, start, self._states[slot])
        for number in range(int((lengths - known).max(initial=0))):  # one, but after preemption
            position = begin + number
            token = token_ids[slot, prompt_length + torch.minimum(position, length - 1).clamp_(min=0)]
            after = self._tables.advance(states, token.long(), budget - position)
            states = torch.where(position < length, after, states)
        self._states[slot] = states
        for request, taken in zip(requests, lengths.tolist(), strict=True):
            request.taken = taken
        of_logits = torch.full((len(logits),), UNCONSTRAINED, dtype=torch.int64, device=logits.device)
        of_logits[place] = states
        remaining = torch.full_like(of_logits, NO_BUDGET)
        remaining[place] = budget - length
        self._tables.apply_(logits, of_logits, remaining)
