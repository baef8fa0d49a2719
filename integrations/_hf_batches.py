"""Many prompts, a batch at a time: what everything that answers prompts has in common."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Generic, Protocol, TypeVar, cast

from tqdm.auto import tqdm

from trieauto.budgets import checked_budget
from trieauto.errors import BudgetError, TrieautoError, UnsupportedError
from trieauto.packing import as_integer

from ._hf_budgets import has_one_for_each, named, of_prompt
from ._hf_messages import shown
from ._hf_prompts import Prompt


class HasError(Protocol):
    """A result that says what was wrong with its prompt's budget."""

    @property
    def error(self) -> BudgetError | None: ...


Result = TypeVar("Result", bound=HasError)


class Batched(ABC, Generic[Result]):
    """Answers prompts one by one, and any number of them in batches."""

    @abstractmethod
    def _choose(self, prompts: Sequence[Prompt], budgets: Sequence[int | None]) -> list[Result]:
        """The results for a batch of prompts. ``budgets``: of each; None for the one given at first."""

    def _check_batch_size(self, batch_size: int) -> None:
        """Raises UnsupportedError where prompts cannot share a ``generate`` call."""

    def __call__(self, prompt: Prompt, max_new_tokens: int | None = None) -> Result:
        """The value for one prompt: plain text, or chat messages (the tokenizer's chat template is applied).

        Args:
            prompt: the prompt.
            max_new_tokens: its budget; None for the one given at first.

        Raises:
            UnsupportedError: an empty prompt, neither text nor chat messages, or what the chat template refuses.
            BudgetError: no value fits the budget, or (if there is one) what the prompt leaves of the model's context;
                before the model runs. So a value never is None.
            TrieautoError: a budget that is none.
        """
        with named("max_new_tokens"):
            budget = checked_or_none(max_new_tokens)
        [result] = self._choose([prompt], [budget])
        if result.error is not None:
            raise result.error
        return result

    def map(
        self,
        prompts: Iterable[Prompt],
        batch_size: int = 8,
        progress: bool = True,
        max_new_tokens: int | Iterable[int | None] | None = None,
    ) -> Iterator[Result]:
        """The values for many prompts, one after the other, in their order.

        Prompts are read and answered a batch at a time, as the results are asked for, so that neither need fit in
        memory. Memory of a batch: beside the model's, its float32 logits of every step. A prompt whose budget is too
        small for any value does not disturb the others: the model is not run for it, and its result is "refused".

        Args:
            prompts: any iterable of prompts, chat messages and plain text mixed as you like.
            batch_size: prompts that share a ``generate`` call, padded to the longest.
            progress: whether to show a progress bar on stderr.
            max_new_tokens: the budget of each answer; None for the one given at first. Or an iterable with one of these
                for each prompt, read along with the prompts.

        Raises:
            UnsupportedError: one prompt instead of many, a ``batch_size`` below 1, or above 1 with an assistant model
                or prompt lookup; and for each prompt as when called with it.
            TrieautoError: ``prompts`` that cannot be iterated over, a ``batch_size`` that is no integer, a budget that
                is none, more prompts than budgets, or (if both have a length) fewer.
        """
        if isinstance(prompts, (str, bytes, Mapping)) or _is_one_chat(prompts):
            raise UnsupportedError(f"map takes many prompts, but got one: {shown(prompts)}")
        try:
            remaining = iter(prompts)
        except TypeError:
            raise TrieautoError(f"map takes many prompts, not {shown(prompts)}") from None
        size = as_integer(batch_size)
        if size is None:
            raise TrieautoError(f"batch_size must be an integer, not {shown(batch_size)}")
        if batch_size < 1:
            raise UnsupportedError(f"batch_size must be at least 1, but is {batch_size}")
        self._check_batch_size(size)
        total = len(prompts) if isinstance(prompts, Sized) else None
        if has_one_for_each(max_new_tokens):
            if total is not None and isinstance(max_new_tokens, Sized) and len(max_new_tokens) != total:
                raise TrieautoError(f"max_new_tokens holds {len(max_new_tokens)} budgets for {total} prompts")
            budgets = _each_checked(max_new_tokens)
        else:
            with named("max_new_tokens"):
                budgets = itertools.repeat(checked_or_none(cast(int | None, max_new_tokens)))
        return self._map(remaining, budgets, total, size, progress)

    def _map(
        self,
        remaining: Iterator[Prompt],
        budgets: Iterator[int | None],
        total: int | None,
        batch_size: int,
        progress: bool,
    ) -> Iterator[Result]:
        num_read = 0
        with tqdm(total=total, unit="prompt", disable=not progress) as bar:
            while batch := list(itertools.islice(remaining, batch_size)):
                own_budgets = list(itertools.islice(budgets, len(batch)))
                num_read += len(own_budgets)
                if len(own_budgets) < len(batch):
                    raise TrieautoError(f"max_new_tokens holds only {num_read} budgets, but there are more prompts")
                for result in self._choose(batch, own_budgets):
                    bar.update()
                    yield result


def checked_or_none(max_new_tokens: int | None) -> int | None:
    """One budget, or the error that it is none."""
    return None if max_new_tokens is None else checked_budget(max_new_tokens)


def _each_checked(max_new_tokens: Iterable[int | None]) -> Iterator[int | None]:
    for i, budget in enumerate(max_new_tokens):
        with named(of_prompt(i)):
            checked = checked_or_none(budget)
        yield checked


def _is_one_chat(prompts: object) -> bool:
    return isinstance(prompts, Sequence) and len(prompts) > 0 and isinstance(prompts[0], Mapping)
