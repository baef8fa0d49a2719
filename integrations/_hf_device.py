"""The logits processor that never waits for the device: states and masks stay there."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from trieauto import Constraint, ListAutomaton, Matcher
from trieauto.budgets import checked_budget
from trieauto.errors import TrieautoError, UnsupportedError

from ._hf_arguments import Budgets, check_call, generated_ids
from ._hf_base import ProcessorOfConstraints
from ._hf_processor import UNSCORED
from ._hf_rows import rows_of_each
from .device import NO_BUDGET, OUTSIDE, DeviceConstraints

_MOST_COMPARED = 2**24
"""Ids; if finding out which row goes on from which takes more comparisons, the rows are followed from their start."""


class DeviceLogitsProcessor(ProcessorOfConstraints):
    """Does what ``ConstraintLogitsProcessor`` does, by tensor operations alone: the host does not wait for the device.

    >>> processor = DeviceLogitsProcessor(constraint, prompt_length=inputs["input_ids"].shape[1], max_new_tokens=12)
    >>> model.generate(**inputs, logits_processor=[processor], max_new_tokens=12)

    The scores that it returns are the same: with greedy decoding, sampling, beams, several returned sequences, padded
    batches, drafts, on any device and in any float dtype; with budgets, too. What differs:

    - No warnings: only the host could give them. A row whose scores contradict the constraint follows it silently.
    - Rows end at a stop token (``eos_token_id=list(vocabulary.stop_token_ids)``) or at ``max_new_tokens``; the
      ``ConstraintStoppingCriteria`` goes with the other processor.
    - Lists of values, and constraints with too many transitions, are refused (see ``DeviceConstraints``).

    Where each row stands is found from the ids alone. A call with one more id than the last one looks for the row of
    the last call that each row goes on from, on the device, for beams change places; a row without one counts as
    outside the language. A call with any other number of ids follows the rows from their beginning, one id after the
    other.

    Args:
        constraint: one for every row, or a sequence with one for each prompt. All have the same vocabulary.
        prompt_length: how many ids come before the answer; None if ``begin`` says it.
        max_new_tokens: the budget of an answer, in tokens: one for every row, or one for each prompt. None: no budget.
        tables: where the constraints are kept, to share them with other processors; by default made at the first call,
            on the device of its scores.

    Raises:
        BudgetError: no answer has so few tokens.
        UnsupportedError: lists of values; a constraint with too many transitions (at the first call, if no ``tables``
            are given).
        VocabularyError: the constraints have different vocabularies; when called, the model's logits are narrower.
        TrieautoError: as for ``ConstraintLogitsProcessor``; when called, scores on another device than ``tables``.

    A step costs what ``advance`` and ``apply_`` cost, and some operations on the scores.
    """

    def __init__(
        self,
        constraint: Constraint | Sequence[Constraint],
        prompt_length: int | None = None,
        max_new_tokens: Budgets = None,
        *,
        tables: DeviceConstraints | None = None,
    ) -> None:
        super().__init__(constraint)
        for each in self._constraints:
            if isinstance(each.automaton, ListAutomaton):
                raise UnsupportedError("lists of values are for ConstraintLogitsProcessor: they have no transitions")
        if tables is not None and not isinstance(tables, DeviceConstraints):
            raise TrieautoError(f"tables must be DeviceConstraints, not {type(tables).__name__}")
        if tables is not None:
            for each in self._constraints:
                tables.add(each)
        self._tables = tables
        self._set_up(prompt_length, max_new_tokens)

    def _start(self, matchers: Sequence[Matcher]) -> None:
        self._of_prompts = [
            (matcher.constraint, min(checked_budget(matcher.remaining_tokens), NO_BUDGET)) for matcher in matchers
        ]
        self._forget()

    def _forget(self) -> None:
        self._rows: _Rows | None = None

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """What ``generate`` calls: the scores with -inf wherever a token is not allowed, in a new tensor.

        Args:
            input_ids: int64[rows, ids], prompt included.
            scores: [rows, logits], of any float dtype.

        Raises:
            TrieautoError, VocabularyError: as the class says.
        """
        check_call(input_ids, scores, self.vocabulary)
        ids = generated_ids(input_ids, self._prompt_length)
        if self._tables is None:
            self._tables = DeviceConstraints(self._constraints, scores.device)
        if self._rows is None or len(self._rows.starts) != len(ids):
            self._rows = _Rows(self._tables, self._of_prompts, len(ids))
        states, remaining = self._rows.follow(ids.to(self._tables.device))  # where they are, but for odd models
        masked = self._tables.apply_(scores.masked_fill(scores.isnan(), -torch.inf), states, remaining)
        # A row must choose something legal even if all of that came in as -inf or NaN.
        is_starved = masked.amax(dim=1, keepdim=True) == -torch.inf
        unscored = self._tables.apply_(torch.full_like(scores, UNSCORED), states, remaining)
        return torch.where(is_starved, unscored, masked)  # type: ignore[return-value]


class _Rows:
    """The rows of a generation loop, followed on the device.

    Args:
        tables: the constraints.
        of_prompts: the constraint and the budget of each prompt, which has an equal share of neighbouring rows.
        count: of rows.

    Raises:
        TrieautoError: they cannot be shared out equally among the prompts.
    """

    def __init__(self, tables: DeviceConstraints, of_prompts: Sequence[tuple[Constraint, int]], count: int) -> None:
        self._tables = tables
        of_rows = [each for each in of_prompts for _ in range(rows_of_each(count, len(of_prompts)))]
        self.starts = tables.start_states([constraint for constraint, _ in of_rows])
        budgets = [budget for _, budget in of_rows]
        self._budgets = torch.tensor(budgets, device=tables.device)
        self._has_budgets = min(budgets) < NO_BUDGET
        # Rows may go on from one another only if they have the same constraint and budget.
        self._are_kin = (self.starts[:, None] == self.starts) & (self._budgets[:, None] == self._budgets)
        self._ids: torch.Tensor | None = None
        self._states = self.starts

    def follow(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The state of each row, and what its budget has left, given what it has generated so far (rows × ids)."""
        count, length = ids.shape
        known = None if self._ids is None else self._ids.shape[1]
        if known is not None and length == known + 1 and count * count * known <= _MOST_COMPARED:
            states = self._states_before(ids[:, :known])
            begin = known
        else:
            states, begin = self.starts, 0
        for place in range(begin, length):
            states = self._tables.advance(states, ids[:, place], self._left_after(place))
        self._ids, self._states = ids.clone(), states
        return states, self._left_after(length)

    def _left_after(self, num_tokens: int) -> torch.Tensor | None:
        return self._budgets - num_tokens if self._has_budgets else None

    def _states_before(self, ids: torch.Tensor) -> torch.Tensor:
        """The states of the rows of the last call that had these ids; where there is none, ``OUTSIDE``."""
        assert self._ids is not None
        is_parent = (ids[:, None] == self._ids).all(dim=2) & self._are_kin
        parents = is_parent.to(torch.int32).argmax(dim=1)
        return self._states[parents].masked_fill(~is_parent.any(dim=1), OUTSIDE)
