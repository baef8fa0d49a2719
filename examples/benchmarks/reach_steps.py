"""A decoding step, timed along walks that a budget ends: ours, and the paper's dense form on the same tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import trieauto
from trieauto.reference.reachability import DenseReachability

FULL_ROW = 1_000
"""More allowed tokens than that are applied to logits as a bitmask, fewer as ids."""


@dataclass(frozen=True)
class Walks:
    """Random walks over legal tokens under one budget.

    Attributes:
        tokens: of each walk, to its end.
        limited: the share of steps at which the budget forbade a token.
        most_allowed: the most tokens allowed at a step.
    """

    tokens: list[list[int]]
    budget: int
    limited: float
    most_allowed: int

    @property
    def num_steps(self) -> int:
        return sum(map(len, self.tokens))

    @staticmethod
    def of(constraint: trieauto.Constraint, budget: int, count: int, seed: int) -> Walks:
        """Stop tokens are not drawn: a walk goes on until nothing else is left.

        Raises:
            AssertionError: a walk did not end complete within the budget.
        """
        rng = np.random.default_rng(seed)
        stop_ids = constraint.vocabulary.stop_token_ids
        walks: list[list[int]] = []
        limited, most_allowed = 0, 0
        for _ in range(count):
            matcher = constraint.matcher(max_tokens=budget)
            walk: list[int] = []
            while not matcher.is_complete:
                allowed = matcher.allowed_token_ids()
                allowed = allowed[~np.isin(allowed, stop_ids)]
                limited += matcher.is_limited_by_budget
                most_allowed = max(most_allowed, len(allowed))
                walk.append(int(rng.choice(allowed)))
                if not matcher.accept_token(walk[-1]):
                    raise AssertionError(f"token {walk[-1]} was in the mask, and is refused")
            if len(walk) > budget:
                raise AssertionError(f"a walk took {len(walk)} tokens, with a budget of {budget}")
            walks.append(walk)
        return Walks(walks, budget, limited / max(1, sum(map(len, walks))), most_allowed)


class OurSteps:
    """Seconds of a step with trieauto: a mask into a bitmask row and a token accepted, from Python.

    Args:
        own_buffer: the row is one that remembers its words, so that only what changes is written.
    """

    def __init__(self, constraint: trieauto.Constraint, walks: Walks, *, own_buffer: bool = False) -> None:
        self.walks = walks
        self.matcher = constraint.matcher(max_tokens=walks.budget)
        size = constraint.vocabulary.size
        self.bitmask: trieauto.TokenBitmask | npt.NDArray[np.int32] = (
            trieauto.TokenBitmask(1, size) if own_buffer else trieauto.allocate_token_bitmask(1, size)
        )

    def __call__(self) -> float:
        matcher, bitmask, clock = self.matcher, self.bitmask, time.perf_counter
        fill, accept = matcher.fill_next_token_bitmask, matcher.accept_token
        total = 0.0
        for walk in self.walks.tokens:
            matcher.reset()
            begin = clock()
            for token_id in walk:
                fill(bitmask)
                accept(token_id)
            total += clock() - begin
        return total / self.walks.num_steps


class OurStepsWithLogits(OurSteps):
    """The same, the mask applied to float32 logits in place."""

    bitmask: npt.NDArray[np.int32]

    def __call__(self) -> float:
        logits = np.zeros(self.matcher.constraint.vocabulary.size, np.float32)
        apply = self._apply_row if self.walks.most_allowed > FULL_ROW else self._apply_ids
        total = 0.0
        for walk in self.walks.tokens:
            self.matcher.reset()
            begin = time.perf_counter()
            for token_id in walk:
                apply(logits)
                self.matcher.accept_token(token_id)
            total += time.perf_counter() - begin
        return total / self.walks.num_steps

    def _apply_ids(self, logits: npt.NDArray[np.float32]) -> None:
        ids = self.matcher.allowed_token_ids()
        kept = logits[ids]
        logits.fill(-np.inf)
        logits[ids] = kept

    def _apply_row(self, logits: npt.NDArray[np.float32]) -> None:
        self.matcher.fill_next_token_bitmask(self.bitmask)
        forbidden = np.unpackbits(~self.bitmask[0].view(np.uint8), count=len(logits), bitorder="little")
        np.copyto(logits, -np.inf, where=forbidden.view(np.bool_))


class DenseSteps:
    """Seconds of a step with the paper's dense form: a mask over the vocabulary, and the next state looked up.

    Args:
        with_logits: the mask is applied to float32 logits in place.
    """

    def __init__(self, dense: DenseReachability, start: int, walks: Walks, *, with_logits: bool) -> None:
        self.dense = dense
        self.start = start
        self.walks = walks
        self.with_logits = with_logits

    def __call__(self) -> float:
        dense, delta = self.dense, self.dense.delta
        logits = np.zeros(delta.shape[1], np.float32)
        total = 0.0
        for walk in self.walks.tokens:
            state, remaining = self.start, self.walks.budget
            begin = time.perf_counter()
            for token_id in walk:
                if self.with_logits:
                    dense.apply(state, remaining, logits)
                else:
                    dense.mask(state, remaining)
                state = int(delta[state, token_id])
                remaining -= 1
            total += time.perf_counter() - begin
        return total / self.walks.num_steps


def disagreements(
    constraint: trieauto.Constraint, dense: DenseReachability, start: int, walks: Sequence[list[int]], budget: int
) -> int:
    """At how many steps the two allow different tokens, stop tokens aside."""
    wrong = 0
    for walk in walks:
        matcher = constraint.matcher(max_tokens=budget)
        state = start
        for place, token_id in enumerate(walk):
            ours = np.setdiff1d(matcher.allowed_token_ids(), constraint.vocabulary.stop_token_ids)
            wrong += not np.array_equal(ours, np.flatnonzero(dense.mask(state, budget - place)))
            state = int(dense.delta[state, token_id])
            matcher.accept_token(token_id)
    return wrong
