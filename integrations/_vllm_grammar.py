"""The grammar objects of vLLM's requests that trieauto serves, and the masks of batches."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from vllm.v1.structured_output.backend_types import StructuredOutputGrammar

from trieauto import Matcher, fill_next_token_bitmasks
from trieauto.errors import TrieautoError
from trieauto.serving import ThinkingMatcher

logger = logging.getLogger("trieauto")


class TrieGrammar(StructuredOutputGrammar):  # type: ignore[misc]
    """A request's way through a constraint."""

    def __init__(self, walker: Matcher | ThinkingMatcher) -> None:
        self.walker = walker

    @property
    def matcher_of_row(self) -> Matcher | None:
        """The matcher whose mask is this request's row; None if there is no single one, or no token is expected."""
        walker = self.walker
        if isinstance(walker, ThinkingMatcher):
            if walker.is_thinking:
                return None
            walker = walker.answer
        return None if walker.is_terminated() else walker

    # What vLLM calls

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Take tokens; if one is not legal vLLM ends the request with an error. (Tokens after a stop token are
        ignored.)"""
        walker = self.walker
        for token in tokens:
            if walker.is_terminated():
                break
            if not self._take(token):
                logger.error(
                    "trieauto: request %s is ended: token %s is not legal after %s tokens of %r",
                    request_id,
                    token,
                    walker.num_accepted,
                    self,
                )
                return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """Those of drafted tokens that could be taken one after the other. Changes nothing."""
        walker = self.walker
        taken = 0
        for token in tokens:
            if walker.is_terminated() or not self._take(token):
                break
            taken += 1
        walker.rollback(taken)
        return tokens[:taken]

    def _take(self, token: int) -> bool:
        try:
            return self.walker.accept_token(token)
        except TrieautoError:  # an id outside the vocabulary
            return False

    def rollback(self, num_tokens: int) -> None:
        """Take back tokens, a stop token too."""
        self.walker.rollback(num_tokens)

    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None:
        """Write the legal tokens into one row."""
        self.walker.fill_next_token_bitmask(bitmask, batch_index)

    def is_terminated(self) -> bool:
        """Whether a stop token was accepted."""
        return self.walker.is_terminated()

    def reset(self) -> None:
        """Back to before the first token; the budget has the tokens again."""
        self.walker.reset()

    def __repr__(self) -> str:
        return f"<TrieGrammar: {self.walker!r}>"


def fill_batch(grammars: Sequence[tuple[int, TrieGrammar]], bitmask: Any) -> None:
    """Fill rows of a bitmask, those of all answers in one kernel call. Where no more tokens are expected, any token is
    allowed, as vLLM does it.

    Args:
        grammars: each with the number of its row.
        bitmask: int32[rows, words], in torch.
    """
    matchers: list[Matcher] = []
    rows: list[int] = []
    for row, grammar in grammars:
        matcher = grammar.matcher_of_row
        if matcher is not None:
            matchers.append(matcher)
            rows.append(row)
        elif grammar.is_terminated():
            bitmask[row].fill_(-1)
        else:
            grammar.fill_bitmask(bitmask, row)
    if matchers:
        fill_next_token_bitmasks(matchers, bitmask, rows)
