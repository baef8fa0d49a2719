"""What adapters check of requests, and say to those whose requests are refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary


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


def with_text(token_ids: Iterable[int], vocabulary: Vocabulary) -> list[int]:
    """Those tokens that stand for bytes, so that an answer could be cut off at them. Ids outside of the vocabulary do
    not."""
    offsets = vocabulary.tables.offsets
    return [i for i in token_ids if 0 <= i < len(offsets) - 1 and offsets[i + 1] > offsets[i]]
