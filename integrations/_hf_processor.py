"""The logits processor: at every step of ``generate``, only tokens that lead on to an answer keep their scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch

from trieauto import Constraint, Matcher

from ._hf_arguments import Budgets, Kept, check_call, generated_ids
from ._hf_base import ProcessorOfConstraints
from ._hf_messages import shown
from ._hf_rows import Row, RowTracker

UNSCORED = -1e4
"""Score of an allowed token that came in as -inf or NaN and must be chosen from all the same. Finite in every dtype,
after a temperature too, and far below any real score, so that a beam that needed it loses against one that did not."""


class ConstraintWarning(UserWarning):
    """What reached the processor contradicts the constraint, or is no number; the answer still follows the constraint.

    Or a prompt was taken for an answer: then there is none.
    """


class ConstraintLogitsProcessor(ProcessorOfConstraints):
    """Sets the score of every token to -inf that does not lead on to an answer of the constraint.

    >>> processor = ConstraintLogitsProcessor(constraint, prompt_length=inputs["input_ids"].shape[1])
    >>> criterion = ConstraintStoppingCriteria(processor)
    >>> model.generate(**inputs, logits_processor=[processor], stopping_criteria=[criterion])

    Works with greedy decoding, sampling, beam search, several returned sequences, left-padded batches, assisted
    decoding and prompt lookup, on any device and in any float dtype. Scores are returned in a new tensor; the ones
    passed in are not changed. One object serves one generation loop at a time (no sharing between threads), and any
    number of them one after the other.

    The answer begins after ``prompt_length`` ids of ``input_ids``. For a decoder that is the padded length of the
    prompts, ``input_ids.shape[1]``; for an encoder-decoder model the length of ``decoder_input_ids``: 1 for the start
    token that ``generate`` supplies (a model with ``forced_bos_token_id`` needs it passed in ``decoder_input_ids``).
    Prompts of another length in the next call need ``begin(prompt_length)`` first. Where rows begin with what is no
    answer, a ``ConstraintWarning`` says so.

    With ``max_new_tokens`` every answer is whole after at most so many tokens, whatever the model prefers: a token
    stays only if the answer can still be finished in what is left after it. Give it what ``generate`` gets as its own
    ``max_new_tokens``, or less: without it, or with more, ``generate`` cuts answers off in the middle. A stop token
    costs one token, but where the budget ends the answer is whole without it; if the loop goes on for other rows, such
    a row may only stop.

    >>> processor = ConstraintLogitsProcessor(constraint, prompt_length, max_new_tokens=12)
    >>> model.generate(**inputs, logits_processor=[processor], max_new_tokens=12)

    - A row that is finished or has left the language may only stop.
    - Ids beyond the vocabulary (padded logits) are never allowed.
    - A row whose scores are all -inf gets an allowed token all the same. Where only the allowed ones are, another
      processor contradicts the constraint: the answer follows the constraint, and a ``ConstraintWarning`` (one for
      each ``begin``) says what was forbidden or forced.
    - Scores of NaN count as -inf, with a ``ConstraintWarning`` (one for each ``begin``).
    - A model that forces its last token (``forced_eos_token_id``, as BART does) contradicts a budget that ends there:
      pass ``forced_eos_token_id=None`` to ``generate``.
    - To end a row at the stop token, ``generate`` must know it: ``eos_token_id=list(vocabulary.stop_token_ids)``.

    Args:
        constraint: one for every row, or a sequence with one for each prompt. All have the same vocabulary. With beams
            or several returned sequences each prompt's rows follow that prompt's constraint.
        prompt_length: how many ids come before the answer; None if ``begin`` says it.
        max_new_tokens: the budget of an answer, in tokens: an int for every row, or a sequence with one (or None) for
            each prompt, as many as there are constraints if these are several. A prompt's beams and returned sequences
            each have its whole budget. None: no budget.

    Raises:
        BudgetError: no answer has so few tokens; among several prompts the message names the first such one's place.
        VocabularyError: the constraints have different vocabularies; when called, the model's logits are narrower
            than the vocabulary (before anything is generated).
        TrieautoError: no constraint, a bad ``prompt_length``, or bad budgets; when called, no ``prompt_length`` was
            given, the ids are shorter than it, the batch does not divide among the prompts that have constraints or
            budgets of their own, or ids and scores are not tensors of integers and floats with the same rows.

    A step costs one mask and one move of a matcher for each row, and a new tensor for the scores. The first budget for
    a constraint costs what ``constraint.distances()`` costs.
    """

    def __init__(
        self,
        constraint: Constraint | Sequence[Constraint],
        prompt_length: int | None = None,
        max_new_tokens: Budgets = None,
    ) -> None:
        super().__init__(constraint)
        self._stop_ids = np.array(self.vocabulary.stop_token_ids, dtype=np.int32)
        self._has_warned = False
        self._has_warned_of_nan = False
        self._set_up(prompt_length, max_new_tokens)

    def _start(self, matchers: Sequence[Matcher]) -> None:
        self._tracker = RowTracker(matchers)

    def _forget(self) -> None:
        self._tracker.forget()

    def begin(self, prompt_length: int, max_new_tokens: Budgets | Literal[Kept.AS_BEFORE] = Kept.AS_BEFORE) -> None:
        """Say where the answers of the next generation loop begin, and forget the rows of the last one.

        Args:
            prompt_length: how many ids come before the answer.
            max_new_tokens: the budgets from now on; by default those there were. None: no budget any more.

        Raises:
            BudgetError, TrieautoError: as when making a processor. Nothing has changed then.
        """
        super().begin(prompt_length, max_new_tokens)
        self._has_warned = False
        self._has_warned_of_nan = False

    def rows(self, input_ids: torch.LongTensor) -> list[Row]:
        """Where each row of ``input_ids`` (rows × ids, prompt included) stands. Raises and warns as a call does."""
        generated = generated_ids(input_ids, self._prompt_length)
        rows = self._tracker.rows(generated.cpu().numpy())
        if self._tracker.has_strays:
            warnings.warn(
                f"what follows the first {self._prompt_length} ids is no answer of the constraint: if it belongs to "
                "the prompt, call begin(prompt_length) before each generate",
                ConstraintWarning,
                stacklevel=3,
            )
        return rows

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """What ``generate`` calls: the scores with -inf wherever a token is not allowed, in a new tensor.

        Args:
            input_ids: int64[rows, ids], prompt included.
            scores: [rows, logits], of any float dtype.

        Raises:
            TrieautoError, VocabularyError: as the class says.
        """
        check_call(input_ids, scores, self.vocabulary)
        rows = self.rows(input_ids)
        allowed = [self._stop_ids if row.is_outside else row.matcher.allowed_token_ids() for row in rows]
        row_of = torch.from_numpy(np.repeat(np.arange(len(rows)), [len(ids) for ids in allowed])).to(scores.device)
        id_of = torch.from_numpy(np.concatenate(allowed).astype(np.int64)).to(scores.device)
        # Copying the allowed scores into a new tensor is many times faster than blanking out all the others.
        kept = scores[row_of, id_of]
        is_nan = kept.isnan()
        has_nan = torch.zeros_like(scores[:, 0], dtype=torch.bool)
        has_nan[row_of[is_nan]] = True
        if has_nan.any():
            kept = kept.masked_fill(is_nan, -torch.inf)
            self._warn_of_nan(rows, has_nan.nonzero().flatten().tolist())
        masked = torch.full_like(scores, -torch.inf)
        masked[row_of, id_of] = kept
        best = torch.full_like(scores[:, 0], -torch.inf).scatter_reduce(0, row_of, kept, "amax")
        starved = best == -torch.inf
        if starved.any():
            masked[row_of, id_of] = kept.masked_fill(starved[row_of], UNSCORED)
            if not self._has_warned:
                self._explain(rows, scores, starved & ~has_nan)
        return masked  # type: ignore[return-value]

    def _warn_of_nan(self, rows: list[Row], places: list[int]) -> None:
        if self._has_warned_of_nan:
            return
        self._has_warned_of_nan = True
        warnings.warn(
            f"the model's scores are not numbers: in row {places[0]}, after {rows[places[0]].accepted} generated "
            "tokens, allowed tokens have the score NaN. The answer follows the constraint, but the model did not "
            "choose it.",
            ConstraintWarning,
            stacklevel=3,
        )

    def _explain(self, rows: list[Row], scores: torch.Tensor, starved: torch.Tensor) -> None:
        """Warn of the first row that another processor left no allowed token but did leave others."""
        contradicted = (starved & (scores > -torch.inf).any(dim=1)).nonzero().flatten().tolist()
        for i in contradicted:
            row = rows[i]
            if row.is_outside or row.matcher.is_terminated():
                continue
            self._has_warned = True
            warnings.warn(
                f"another logits processor contradicts the constraint: in row {i}, after {row.accepted} generated "
                f"tokens, it {self._describe(row, scores[i])}. The answer follows the constraint.",
                ConstraintWarning,
                stacklevel=3,
            )
            return

    def _describe(self, row: Row, scores: torch.Tensor) -> str:
        left = (scores > -torch.inf).nonzero().flatten().tolist()
        allowed = row.matcher.allowed_token_ids().tolist()
        if len(left) == 1:
            return f"forces token {self._name(left[0])} (forced_bos_token_id, forced_eos_token_id)"
        if set(allowed) <= set(self.vocabulary.stop_token_ids):
            return f"forbids the stop token {self._name(allowed[0])} (min_length, min_new_tokens, suppress_tokens)"
        names = ", ".join(self._name(token_id) for token_id in allowed[:3])
        return (
            f"forbids all {len(allowed)} allowed tokens, such as {names} (bad_words_ids, suppress_tokens, "
            "no_repeat_ngram_size, prefix_allowed_tokens_fn, another constraint)"
        )

    def _name(self, token_id: int) -> str:
        tokens = self.vocabulary.tokens
        token = tokens[token_id] if token_id < len(tokens) else None
        return f"{token_id}" if token is None else f"{token_id} {shown(token)}"
