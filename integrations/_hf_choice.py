"""What a model chose, and how it is read off the ids that it generated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trieauto import Matcher
from trieauto.errors import BudgetError, TrieautoError

from ._hf_messages import shown
from ._hf_rows import is_determined
from ._hf_scores import Score


@dataclass(frozen=True, slots=True)
class Choice:
    """What a model chose.

    Attributes:
        value: the chosen value, as it was given; the tuple of the chosen values, for lists of them; None if the prompt
            was refused.
        log_probability: natural logarithm of the probability that the model itself gives to ``token_ids`` after the
            prompt: the sum of its unmasked log-softmax. Text that only one value has, and the stop token, are not
            counted. NaN if the model's scores are, or if the prompt was refused.
        token_ids: the ids that the model had to choose, and with ``fast_forward`` those of the forced text between
            them. They spell the value, or the part of it that tells it from all other values; without the stop token.
        num_forward_passes: how often the model ran until this value was determined; with beams, until the search was
            over. The prompts of a batch share passes. A prefill counts as one; an encoder, an assistant and what
            ``scores`` cost not at all.
        ended: "complete": a budget, if there was one, forbade nothing on the way to this value. "completed under the
            budget": it forbade at least one token on the way that was legal otherwise, or left no room for a longer
            value; without it the model might have chosen another. "refused": no value fits the budget; the model was
            not run.
        error: the tokens needed and the tokens given, if the prompt was refused.
        scores: with ``Chooser(scores=k)``, the k values that the model finds most likely, the most likely first; None
            without it, or if the prompt was refused or too long for that. ``value`` is what decoding chose, which need
            not be the first.
    """

    value: str | bytes | tuple[Any, ...] | None
    log_probability: float
    token_ids: tuple[int, ...]
    num_forward_passes: int
    ended: Literal["complete", "completed under the budget", "refused"] = "complete"
    error: BudgetError | None = None
    scores: tuple[Score, ...] | None = None


def refused(error: BudgetError) -> Choice:
    """The result for a prompt that cannot be answered within its budget."""
    # Tracebacks, its own and that of an error it was made from, would keep the whole batch in memory.
    error.__context__ = None
    return Choice(None, math.nan, (), 0, "refused", error.with_traceback(None))


@dataclass(frozen=True, slots=True)
class Answer:
    """A value, and how it came about.

    Attributes:
        value: the value, or the tuple of values.
        token_ids: the ids that determined it, without a stop token.
        num_steps: how many ids these are, a stop token counted.
        ended: as in ``Choice``.
    """

    value: str | bytes | tuple[Any, ...]
    token_ids: tuple[int, ...]
    num_steps: int
    ended: Literal["complete", "completed under the budget"]


def read_answer(start: Matcher, generated: Sequence[int]) -> Answer:
    """The value that the ids of a row determine; padding and forced text may follow.

    Args:
        start: the matcher of a set, before the first token, with the row's budget. It is not changed.
        generated: the row, without the prompt.

    Raises:
        TrieautoError: they determine no value.
    """
    matcher = start.fork()
    is_limited = False
    num_steps = 0
    while not is_determined(matcher):
        is_limited = is_limited or matcher.is_limited_by_budget
        if num_steps == len(generated) or not matcher.accept_token(generated[num_steps]):
            break
        num_steps += 1
    value = matcher.value
    if value is None:
        raise TrieautoError(f"the model's answer {shown(generated)} is no value of the set")
    token_ids = tuple(generated[: num_steps - matcher.is_terminated()])
    matcher.set_budget(None)
    # Otherwise only the end of the budget keeps a longer value from following.
    is_limited = is_limited or matcher.value is None
    return Answer(value, token_ids, num_steps, "completed under the budget" if is_limited else "complete")


def num_steps(start: Matcher, token_ids: Sequence[int]) -> int:
    """How many tokens an answer took that is these without a stop token: one more if it needs that.

    ``start``: the matcher that it was chosen with, before the first token. It is not changed.
    """
    matcher = start.fork()
    return len(token_ids) if matcher.accept_tokens(token_ids) and is_determined(matcher) else len(token_ids) + 1
