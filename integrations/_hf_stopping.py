"""The stopping criterion: a row ends as soon as its answer can no longer change."""

from __future__ import annotations

import torch
from transformers import StoppingCriteria

from trieauto.errors import TrieautoError

from ._hf_processor import ConstraintLogitsProcessor


class ConstraintStoppingCriteria(StoppingCriteria):
    """Ends a row as soon as its value is determined, so that no forward pass is spent on text that is forced.

    Also where the budget that the processor gave it is over: the answer is then whole, and needs no stop token.

    The rest of the value is implied: of ``ab``, ``cde`` and ``cdf``, the row ``a`` ends at once and ``cd`` goes on.
    A value that is a prefix of another is determined by the stop token. The text of a row is then shorter than its
    value, and ``generate`` fills the row up (beam search may fill it with stop tokens): read the value by accepting
    the row's ids in a matcher with the row's budget until ``matcher.value`` is there, or use ``Chooser``, which does
    that. A row that left the language ends too.

    Args:
        processor: the processor of the same ``generate`` call. The two share one view of the rows and their budgets.

    Raises:
        TrieautoError: something else than a processor; when called, what the processor raises about the ids.

    Beam search compares hypotheses by the tokens before this end. Leave the criterion away to have forced tokens
    generated and scored.
    """

    def __init__(self, processor: ConstraintLogitsProcessor) -> None:
        if not isinstance(processor, ConstraintLogitsProcessor):
            raise TrieautoError(
                f"expected the ConstraintLogitsProcessor of the same generate call, not {type(processor).__name__}"
            )
        self.processor = processor
        self.num_calls = 0
        """How often it was asked: once after each forward pass, if no tokens are drafted."""

    def __repr__(self) -> str:
        return f"<ConstraintStoppingCriteria for {self.processor!r}>"

    def __call__(
        self, input_ids: torch.LongTensor, scores: tuple[torch.Tensor] | None, **kwargs: object
    ) -> torch.BoolTensor:
        """What ``generate`` calls: whether each row is at its end.

        Args:
            input_ids: int64[rows, ids], prompt included.
            scores: not looked at; nor are other arguments (``kwargs``).

        Returns:
            bool[rows], on the device of ``input_ids``.
        """
        self.num_calls += 1
        done = [row.is_done for row in self.processor.rows(input_ids)]
        return torch.tensor(done, dtype=torch.bool, device=input_ids.device)  # type: ignore[return-value]
