"""What the logits processors of the host and of the device share: constraints, budgets, and where answers begin."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

from transformers import LogitsProcessor

from trieauto import Constraint, Matcher

from ._hf_arguments import Budgets, Kept, checked_constraints, checked_prompt_length
from ._hf_budgets import first_matchers, has_one_for_each
from ._hf_messages import shown


class ProcessorOfConstraints(LogitsProcessor):
    """Holds the constraints and budgets of one generation loop after the other.

    What its arguments are and which errors they lead to is said by the classes that are made of it.
    """

    supports_continuous_batching = False

    def __init__(self, constraint: Constraint | Sequence[Constraint]) -> None:
        self._constraints = checked_constraints(constraint)
        self.vocabulary = self._constraints[0].vocabulary
        self._prompt_length: int | None = None

    @abstractmethod
    def _start(self, matchers: Sequence[Matcher]) -> None:
        """Begin with these, one for each prompt, before the first token; nothing is known of any row."""

    @abstractmethod
    def _forget(self) -> None:
        """Drop what is known of rows."""

    def _set_up(self, prompt_length: int | None, max_new_tokens: Budgets) -> None:
        """The rest of making one."""
        self._set_budgets(max_new_tokens)
        if prompt_length is not None:
            self.begin(prompt_length)

    def _set_budgets(self, max_new_tokens: Budgets) -> None:
        if has_one_for_each(max_new_tokens):
            max_new_tokens = list(max_new_tokens)
        self._start(first_matchers(self._constraints, max_new_tokens))
        self._max_new_tokens = max_new_tokens

    def begin(self, prompt_length: int, max_new_tokens: Budgets | Literal[Kept.AS_BEFORE] = Kept.AS_BEFORE) -> None:
        """Say where the answers of the next generation loop begin, and forget the rows of the last one.

        Args:
            prompt_length: how many ids come before the answer.
            max_new_tokens: the budgets from now on; by default those there were. None: no budget any more.

        Raises:
            BudgetError, TrieautoError: as when making a processor. Nothing has changed then.
        """
        length = checked_prompt_length(prompt_length)
        if max_new_tokens is Kept.AS_BEFORE:
            self._forget()
        else:
            self._set_budgets(max_new_tokens)
        self._prompt_length = length

    def __repr__(self) -> str:
        count = "1 constraint" if len(self._constraints) == 1 else f"{len(self._constraints)} constraints"
        budgets = "" if self._max_new_tokens is None else f", max_new_tokens={shown(self._max_new_tokens)}"
        where = f"prompt_length={self._prompt_length}{budgets}"
        return f"<{type(self).__name__}: {where}, {count} in {self.vocabulary!r}>"
