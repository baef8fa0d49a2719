"""Whether two constraints of one vocabulary allow the same, step by step."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import trieauto
from trieauto import Constraint, Matcher

BUDGETS = (None, 1, 2, 3, 5)


def assert_same_language(one: Constraint, other: Constraint, budgets: Iterable[int | None] = BUDGETS) -> None:
    """Along every sequence of legal tokens: masks, values, forced text, and what budgets make of them."""
    for budget in budgets:
        pairs = [_started(one, other, budget)]
        while pairs:
            pair = pairs.pop()
            if pair is None:
                continue
            mine, theirs = pair
            allowed = theirs.allowed_token_ids().tolist()
            assert mine.allowed_token_ids().tolist() == allowed
            assert (mine.is_accepting, mine.is_complete) == (theirs.is_accepting, theirs.is_complete)
            assert (mine.value, mine.remaining_tokens) == (theirs.value, theirs.remaining_tokens)
            assert mine.jump_forward_string() == theirs.jump_forward_string()
            assert mine.min_tokens_to_finish == theirs.min_tokens_to_finish
            assert mine.is_limited_by_budget == theirs.is_limited_by_budget
            for token_id in range(one.vocabulary.size):
                assert mine.validate_tokens([token_id]) == (token_id in allowed)
            pairs += [
                (_after(mine, token_id), _after(theirs, token_id))
                for token_id in allowed
                if token_id not in one.vocabulary.stop_token_ids
            ]


def _started(one: Constraint, other: Constraint, budget: int | None) -> tuple[Matcher, Matcher] | None:
    try:
        theirs = other.matcher(budget)
    except trieauto.BudgetError as error:
        with pytest.raises(trieauto.BudgetError, match=str(error)):
            one.matcher(budget)
        return None
    return one.matcher(budget), theirs


def _after(matcher: Matcher, token_id: int) -> Matcher:
    following = matcher.fork()
    assert following.accept_token(token_id)
    return following
