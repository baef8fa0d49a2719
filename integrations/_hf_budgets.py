"""Token budgets as ``max_new_tokens`` gives them: one for all prompts, or one for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any, TypeGuard, cast

from transformers import PretrainedConfig

from trieauto import Constraint, Matcher
from trieauto.budgets import checked_budget
from trieauto.errors import BudgetError, TrieautoError


def has_one_for_each(max_new_tokens: object) -> TypeGuard[Iterable[Any]]:
    """Whether these are many budgets, in the order of the prompts. Reads none of them."""
    if not isinstance(max_new_tokens, Iterable) or isinstance(max_new_tokens, (str, bytes, Mapping, Set)):
        return False
    try:
        iter(max_new_tokens)
    except TypeError:  # an array or tensor without a dimension is a number
        return False
    return True


def first_matchers(constraints: Sequence[Constraint], max_new_tokens: object) -> list[Matcher]:
    """A matcher before the first token for each prompt, or for all of them; the same object for prompts that have the
    same constraint and the same budget.

    Args:
        constraints: one for all prompts, or one for each.
        max_new_tokens: an int, or None, for all prompts; or one of these for each.

    Raises:
        BudgetError: no answer of a prompt's constraint has so few tokens; the message names the prompt's place.
        TrieautoError: what is no budget, no budgets at all, or not as many as there are constraints.
    """
    if not has_one_for_each(max_new_tokens):
        with named("max_new_tokens"):
            checked_budget(cast(int | None, max_new_tokens))
        budgets: list[Any] = [max_new_tokens] * len(constraints)
    else:
        budgets = list(max_new_tokens)
        if not budgets:
            raise TrieautoError("max_new_tokens holds no budget: give one, or one for each prompt")
        if len(constraints) == 1:
            constraints = [constraints[0]] * len(budgets)
        if len(constraints) != len(budgets):
            raise TrieautoError(
                f"max_new_tokens holds {len(budgets)} budgets for {len(constraints)} constraints: give one for each"
            )
    made: dict[tuple[Constraint, int], Matcher] = {}
    matchers = []
    for i, (constraint, given) in enumerate(zip(constraints, budgets, strict=True)):
        with named(of_prompt(i) if len(budgets) > 1 else None):
            budget = checked_budget(given)
            if (constraint, budget) not in made:
                made[constraint, budget] = constraint.matcher(budget)
        matchers.append(made[constraint, budget])
    return matchers


def of_prompt(index: int) -> str:
    """How errors call one of many budgets."""
    return f"max_new_tokens of the prompt at index {index}"


@contextmanager
def named(what: str | None) -> Iterator[None]:
    """Errors about a budget say which budget, if that is given."""
    try:
        yield
    except TrieautoError as error:
        if what is not None:
            error.args = (f"{what}: {error}", *error.args[1:])
        raise


def context_length(config: PretrainedConfig) -> int | None:
    """How many positions a model's (text) decoder has, where its configuration says so."""
    context = getattr(config.get_text_config(decoder=True), "max_position_embeddings", None)
    return context if isinstance(context, int) and not isinstance(context, bool) and context > 0 else None


def matcher_within_context(
    constraint: Constraint, budget: int | None, num_prompt_tokens: int, context: int | None
) -> Matcher:
    """A matcher with a budget, or with the positions that the prompt leaves, if these are fewer.

    Raises:
        BudgetError: no answer has so few tokens; the message says whether it is the context that is too short.
    """
    if budget is None or context is None or num_prompt_tokens + budget <= context:
        with named("max_new_tokens"):
            return constraint.matcher(budget)
    left = max(0, context - num_prompt_tokens)
    try:
        return constraint.matcher(left)
    except BudgetError as error:
        given = f"what the prompt's {num_prompt_tokens:,} tokens leave of the model's {context:,}"
        message = f"{error}, {given}: shorten the prompt"
        raise BudgetError(error.needed, left, message) from None
