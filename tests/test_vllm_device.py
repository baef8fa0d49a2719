"""Slots of requests whose masks come from the device: as vLLM's V2 runner has them, but without vLLM."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto.integrations import _vllm_device
from trieauto.integrations._vllm_device import DeviceRows

from .never_waits import NeverWaits
from .tiny_models import SIZE, STOPS, VALUES, vocabulary

NUM_SLOTS, LENGTH = 5, 30
SETS = [VALUES, ["bed", "bee", "gh", "ghe", "hag"], ["a", "ab"]]


class Runner:
    """The tokens of each slot, and what a matcher says about them."""

    def __init__(self) -> None:
        self.rows = DeviceRows(vocabulary(), NUM_SLOTS, torch.device("cpu"))
        self.tokens = torch.full((NUM_SLOTS, LENGTH), -7, dtype=torch.int32)
        self.prompts = np.zeros(NUM_SLOTS, np.int32)
        self.matchers: dict[int, trieauto.Matcher] = {}
        self.stray: set[int] = set()

    def add(self, slot: int, constraint: trieauto.Constraint, budget: int | None, prompt: int) -> bool:
        self.matchers.pop(slot, None)
        self.stray.discard(slot)
        is_on_device = self.rows.add(slot, constraint, budget)
        assert (slot in self.rows) == is_on_device
        if is_on_device:
            self.matchers[slot] = constraint.matcher(budget)
        self.tokens[slot] = -7
        self.prompts[slot] = prompt
        return is_on_device

    def check(self, slots: list[int]) -> None:
        """Masks of a batch whose rows have these slots."""
        places = [place for place, slot in enumerate(slots) if slot in self.rows]
        chosen = np.array(slots, np.int32)[places]
        lengths = np.array([self.matchers[slot].num_accepted + (slot in self.stray) for slot in chosen.tolist()])
        logits = torch.zeros(len(slots), SIZE + 3)
        self.rows.apply_(logits, places, chosen, self.prompts[chosen], lengths, self.tokens)
        for slot, row in zip(slots, logits, strict=True):
            found = (row == 0).nonzero().flatten().tolist()
            if slot not in self.rows:
                assert found == list(range(SIZE + 3))
            elif slot in self.stray:
                assert found == STOPS
            else:
                assert found == self.matchers[slot].allowed_token_ids().tolist()

    def take(self, slot: int, token_id: int) -> None:
        matcher = self.matchers[slot]
        self.tokens[slot, self.prompts[slot] + matcher.num_accepted] = token_id
        if not matcher.accept_token(token_id):
            self.stray.add(slot)


@given(st.data())
def test_slots_are_followed(data: st.DataObject) -> None:
    """Requests come, take tokens, some of which are not legal, go back, are preempted, and leave their slots."""
    constraints = [trieauto.compile(trieauto.choices(values), vocabulary()) for values in SETS]
    runner = Runner()
    for _ in range(data.draw(st.integers(1, 12))):
        slot = data.draw(st.integers(0, NUM_SLOTS - 1))
        matcher = runner.matchers.get(slot)
        action = data.draw(st.sampled_from(["add", "leave", "take", "take", "take", "back", "again", "stray"]))
        if action == "add" or matcher is None:
            budget = data.draw(st.sampled_from([None, 3, 6]))
            assert runner.add(slot, data.draw(st.sampled_from(constraints)), budget, data.draw(st.integers(0, 4)))
        elif action == "leave":
            runner.rows.discard(slot)
            del runner.matchers[slot]
        elif slot in runner.stray or matcher.num_accepted > 15:
            continue
        elif action == "take":
            for _ in range(data.draw(st.integers(1, 3))):  # several, if it was not in the last batches
                runner.take(slot, data.draw(st.sampled_from(matcher.allowed_token_ids().tolist())))
        elif action == "back":
            matcher.rollback(data.draw(st.integers(0, matcher.num_accepted)))
        elif action == "again":
            start = matcher.fork()
            start.reset()
            assert runner.rows.add(slot, matcher.constraint, start.remaining_tokens)
        else:
            runner.take(slot, 0)
        if runner.matchers:
            runner.check(data.draw(st.permutations(range(NUM_SLOTS))))


def test_no_request_is_no_problem() -> None:
    runner = Runner()
    assert runner.add(0, trieauto.compile(trieauto.choices(VALUES), vocabulary()), 5, 2)
    runner.rows.discard(0)
    runner.check([0, 3])


def test_what_does_not_fit_is_for_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constraints of requests that have gone make room for others; those of requests that go on stay."""
    monkeypatch.setattr(_vllm_device, "MAX_ENTRIES", 150)
    generator = random.Random(1)
    runner = Runner()
    small = [
        trieauto.compile(
            trieauto.choices(["".join(generator.choices("abcdefgh", k=4)) for _ in range(4)]), vocabulary()
        )
        for _ in range(40)
    ]
    large = trieauto.compile(trieauto.regex("[a-h]{40}"), vocabulary())
    assert not runner.add(0, large, None, 1)
    assert 0 not in runner.rows
    assert runner.add(1, small[0], 4, 1)
    runner.take(1, int(runner.matchers[1].allowed_token_ids()[0]))
    for number, constraint in enumerate(small):
        assert runner.add(2 + number % 2, constraint, None, number % 3)
        assert not runner.add(0, large, None, 1)
        runner.check([2, 0, 1])
        if runner.matchers[1].remaining_tokens:
            runner.take(1, int(runner.matchers[1].allowed_token_ids()[0]))


def test_the_host_never_waits() -> None:
    runner = Runner()
    constraint = trieauto.compile(trieauto.choices(VALUES), vocabulary())
    assert runner.add(3, constraint, 6, 2)
    logits = torch.zeros(2, SIZE)
    for length in (0, 1, 2):
        with NeverWaits():
            runner.rows.apply_(logits, [1], np.array([3]), np.array([2]), np.array([length]), runner.tokens)
