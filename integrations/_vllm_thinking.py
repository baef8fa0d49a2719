"""Models of vLLM that think before they answer (``--reasoning-parser``)."""

from __future__ import annotations

from typing import Any

from trieauto import Constraint, Matcher
from trieauto.errors import UnsupportedError
from trieauto.serving import ThinkingMatcher


def tokens_that_end_thinking(parser: Any, tokenizer: Any) -> list[int]:
    """What a reasoning parser of vLLM takes for the end of thinking.

    Args:
        parser: a ``ReasoningParser``.
        tokenizer: the model's.

    Raises:
        UnsupportedError: the parser does not say it by one text.
    """
    end = parser.reasoning_end_str
    if not end:
        raise UnsupportedError(
            f"the reasoning parser {type(parser).__name__} has no text that ends thinking, so it cannot be ended in "
            "time for the answer"
        )
    return list(tokenizer.encode(end, add_special_tokens=False))


_known: set[str] = set()  # parsers that say what ends thinking


def check_parser(structured_outputs_config: Any, tokenizer: Any) -> None:
    """Make sure that thinking before an answer can be ended, if this engine's model thinks.

    Raises:
        UnsupportedError: as for ``tokens_that_end_thinking``.
    """
    name = structured_outputs_config.reasoning_parser
    if not name or name in _known or structured_outputs_config.enable_in_reasoning:
        return
    from vllm.reasoning import ReasoningParserManager

    tokens_that_end_thinking(ReasoningParserManager.get_reasoning_parser(name)(tokenizer), tokenizer)
    _known.add(name)


def walker_for(constraint: Constraint, end_token_ids: list[int], budget: int) -> Matcher | ThinkingMatcher:
    """A request's way through a constraint, before its first token.

    Args:
        constraint: of the answer.
        end_token_ids: what ends the thinking before it; none: there is no thinking.
        budget: how many tokens the request has, thinking and a stop token included.

    Raises:
        BudgetError: they are too few.
    """
    if not end_token_ids:
        return constraint.matcher(budget)
    walker = ThinkingMatcher(constraint.matcher(), end_token_ids, answer_tokens=constraint.enough_tokens or 0)
    walker.set_budget(budget)
    return walker
