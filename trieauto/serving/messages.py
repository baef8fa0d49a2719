"""What adapters say to those whose requests are refused."""

from __future__ import annotations


def too_few_tokens(needed: int, given: int, limit: str, includes: str = "") -> str:
    """Why a request cannot be finished within its budget.

    Args:
        needed: the fewest tokens of an answer.
        given: the budget.
        limit: what the engine calls it.
        includes: what is counted beside the answer, in brackets.
    """
    tokens = "1 token" if needed == 1 else f"{needed:,} tokens"
    return (
        f"the shortest answer takes {tokens}{includes}, but {limit}, or what the prompt leaves of the context, "
        f"is {given:,}"
    )
