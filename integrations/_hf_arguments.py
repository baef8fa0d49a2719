"""What logits processors are given, checked: constraints, where prompts end, and what ``generate`` passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TypeAlias, cast

import torch

from trieauto import Automaton, Constraint, ListAutomaton, TokenAutomaton, Vocabulary
from trieauto.errors import TrieautoError, VocabularyError
from trieauto.packing import as_integer

from ._hf_messages import shown

Budgets: TypeAlias = int | Sequence[int | None] | None
"""In tokens: one for every row, or one for each prompt; None for as many as ``generate`` allows."""


class Kept(Enum):
    """An argument that was not given, where None means something."""

    AS_BEFORE = "as before"

    def __repr__(self) -> str:
        return "<as before>"


def checked_constraints(constraint: Constraint | Sequence[Constraint]) -> list[Constraint]:
    """One constraint for every row, or one for each prompt, as a list.

    Raises:
        VocabularyError: they have different vocabularies.
        TrieautoError: none, or something else.
    """
    is_one = not isinstance(constraint, Iterable) or isinstance(constraint, (str, bytes))
    constraints = [cast(Constraint, constraint)] if is_one else list(cast(Iterable[Constraint], constraint))
    if not constraints:
        raise TrieautoError("no constraint was given: pass one, or one for each prompt")
    for other in constraints:
        if not isinstance(other, Constraint):
            is_language = isinstance(other, (Automaton, ListAutomaton, TokenAutomaton))
            hint = ": compile it with trieauto.compile" if is_language else ""
            raise TrieautoError(f"expected a Constraint, or one for each prompt, not {type(other).__name__}{hint}")
        if other.vocabulary.fingerprint != constraints[0].vocabulary.fingerprint:
            raise VocabularyError("the constraints of one batch must be compiled for the same vocabulary")
    return constraints


def checked_prompt_length(prompt_length: int) -> int:
    """How many ids come before the answer.

    Raises:
        TrieautoError: not an integer, or negative.
    """
    length = as_integer(prompt_length)
    if length is None:
        raise TrieautoError(f"prompt_length must be an integer, not {shown(prompt_length)}")
    if length < 0:
        raise TrieautoError(f"prompt_length must not be negative, but is {length}")
    return length


def generated_ids(input_ids: torch.Tensor, prompt_length: int | None) -> torch.Tensor:
    """The ids after the prompt.

    Raises:
        TrieautoError: nobody said how long it is, it is longer than the ids, or these are no rows of integers.
    """
    check_tensor("input_ids", input_ids, is_float=False)
    if prompt_length is None:
        raise TrieautoError("where does the prompt end? Give prompt_length, or call begin(prompt_length) first")
    if input_ids.shape[1] < prompt_length:
        raise TrieautoError(
            f"the rows have {input_ids.shape[1]} ids, fewer than prompt_length={prompt_length}: call "
            "begin(prompt_length) before prompts of another length (encoder-decoder models: decoder_input_ids)"
        )
    return input_ids[:, prompt_length:]


def check_call(input_ids: torch.Tensor, scores: torch.Tensor, vocabulary: Vocabulary) -> None:
    """What ``generate`` calls a processor with: rows × ids, and rows × logits.

    Raises:
        VocabularyError: the model's logits are narrower than the vocabulary.
        TrieautoError: not tensors of integers and floats with the same rows.
    """
    check_tensor("scores", scores, is_float=True)
    if scores.shape[1] < vocabulary.size:
        raise VocabularyError(
            f"the model has {scores.shape[1]:,} logits, fewer than the {vocabulary.size:,} ids of the "
            "vocabulary: was the constraint compiled for another model?"
        )
    check_tensor("input_ids", input_ids, is_float=False)
    if len(scores) != len(input_ids):
        raise TrieautoError(f"scores have {len(scores)} rows, but input_ids have {len(input_ids)}")


def check_tensor(name: str, value: object, is_float: bool) -> None:
    """For what ``generate`` passes: rows × ids, or rows × logits."""
    kind = "floats" if is_float else "integers"
    if not isinstance(value, torch.Tensor):
        raise TrieautoError(f"{name} must be a torch tensor of {kind}, not {type(value).__name__}")
    fits = value.is_floating_point() if is_float else value.dtype in (torch.int64, torch.int32)
    if value.ndim != 2 or not fits:
        raise TrieautoError(
            f"{name} must be a tensor of {kind} with two dimensions, but have shape {tuple(value.shape)} and dtype "
            f"{value.dtype}"
        )
    if len(value) == 0:
        raise TrieautoError(f"{name} have no rows")
