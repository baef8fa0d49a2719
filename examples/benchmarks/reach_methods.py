"""The three methods, and a model of random logits that draws under each of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt
from reach_graphs import Task
from reach_paper import FORWARD, OURS, VANILLA

from trieauto.reference.reachability import forward_tokens

OUTSIDE = -1


class Method(Protocol):
    """One sequence: what may come next, and what came."""

    def __init__(self, task: Task, budget: int) -> None: ...

    @property
    def is_over(self) -> bool:
        """Whether nothing more is drawn though the budget has tokens left: the goal is reached, or no token allowed."""

    def allowed(self) -> npt.NDArray[np.integer]:
        """Token ids."""

    def accept(self, token_id: int) -> None: ...


class Vanilla:
    """Every token at every step; once one leads nowhere, the goal is out of reach."""

    def __init__(self, task: Task, budget: int) -> None:
        self.task = task
        self.state = task.start

    @property
    def is_over(self) -> bool:
        return self.state in self.task.goals

    def allowed(self) -> npt.NDArray[np.integer]:
        return np.arange(self.task.num_tokens)

    def accept(self, token_id: int) -> None:
        self.state = next_state(self.task, self.state, token_id)


class ForwardOnly:
    """The paper's baseline: every token that leads to a state, dead ends included; it does not know the budget."""

    def __init__(self, task: Task, budget: int) -> None:
        self.task = task
        self.state = task.start

    @property
    def is_over(self) -> bool:
        return self.state in self.task.goals or not self.task.transitions[self.state]

    def allowed(self) -> npt.NDArray[np.integer]:
        return np.array(forward_tokens(self.task.transitions, self.state))

    def accept(self, token_id: int) -> None:
        self.state = next_state(self.task, self.state, token_id)


class Budgeted:
    """trieauto's matcher with ``max_tokens``."""

    def __init__(self, task: Task, budget: int) -> None:
        self.matcher = task.constraint.matcher(max_tokens=budget)

    @property
    def is_over(self) -> bool:
        return self.matcher.is_complete

    def allowed(self) -> npt.NDArray[np.integer]:
        return self.matcher.allowed_token_ids()

    def accept(self, token_id: int) -> None:
        if not self.matcher.accept_token(token_id):
            raise AssertionError(f"token {token_id} was in the mask, and is refused")


METHODS: dict[str, type[Method]] = {VANILLA: Vanilla, FORWARD: ForwardOnly, OURS: Budgeted}


def next_state(task: Task, state: int, token_id: int) -> int:
    """Where a token leads, by the untrimmed transitions; ``OUTSIDE`` if nowhere."""
    return OUTSIDE if state == OUTSIDE else task.transitions[state].get(token_id, OUTSIDE)


def states_passed(task: Task, token_ids: Iterable[int]) -> list[int]:
    """The states of a sequence, the start first, whichever method it comes from."""
    states = [task.start]
    for token_id in token_ids:
        states.append(next_state(task, states[-1], token_id))
    return states


def draw(method: Method, num_tokens: int, budget: int, rng: np.random.Generator) -> list[int]:
    """A sequence of at most ``budget`` tokens, sampled from logits that are standard normal at every step."""
    token_ids: list[int] = []
    while len(token_ids) < budget and not method.is_over:
        allowed = method.allowed()
        # The largest sum of logit and Gumbel noise is a sample of the softmax over what is allowed.
        scores = rng.standard_normal(num_tokens) + rng.gumbel(size=num_tokens)
        token_ids.append(int(allowed[scores[allowed].argmax()]))
        method.accept(token_ids[-1])
    return token_ids
