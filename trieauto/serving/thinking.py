"""Free thinking before a constrained answer, closed in time for the answer to be finished."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..bitmask import writable_row
from ..budgets import checked_budget
from ..errors import BudgetError, TrieautoError, shorten
from ..kernels.descriptor import NO_BUDGET
from ..matcher import Matcher
from ..packing import as_integer


def most_thinking_tokens(budget: int, num_end_tokens: int, answer_tokens: int) -> int:
    """How many tokens of thinking a budget has room for: all of its end, an answer of so many tokens and a stop token
    still fit after them (law 6 of the design). 0 where there is no room to think."""
    return max(0, budget - num_end_tokens - answer_tokens - 1)


class ThinkingMatcher:
    """A matcher for a model that thinks first: any token but a stop token until the end-of-thinking tokens, then what a
    constraint allows. One for each sequence; one thread at a time.

    With a budget (law 6 of the design) thinking is closed by force: a token that goes on thinking is legal only while
    what remains after it still covers the end-of-thinking tokens, the fewest tokens of an answer (or more, see
    ``answer_tokens``), and a stop token. What is more than the fewest tokens is given up where the budget has no room
    for it. So every sequence of legal tokens ends in a whole answer.
    """

    __slots__ = (
        "_answer_tokens",
        "_budget",
        "_ends",
        "_fallback",
        "_free_row",
        "_length",
        "_matched",
        "_matcher",
        "_most",
        "_trail",
    )

    def __init__(
        self,
        matcher: Matcher,
        end_token_ids: Sequence[int],
        *,
        max_thinking_tokens: int | None = None,
        answer_tokens: int = 0,
        excluded_token_ids: Iterable[int] = (),
    ) -> None:
        """
        Args:
            matcher: of the answer; new, and not used elsewhere. Its budget becomes that of the whole sequence.
            end_token_ids: the tokens that end thinking, in this order.
            max_thinking_tokens: after so many tokens the end is forced, token by token. None: no such limit.
            answer_tokens: how many tokens thinking leaves to the answer, if the budget has room for them and they
                are more than the fewest. (With the fewest, only the shortest answers remain; with
                ``constraint.enough_tokens``, all values of a set.)
            excluded_token_ids: tokens that are illegal while thinking. (Stop tokens always are.)

        Raises:
            BudgetError: the matcher's budget does not cover end and answer.
            TrieautoError: no end tokens, ids outside the vocabulary, a stop token among them, a matcher that has begun.
        """
        vocabulary = matcher.constraint.vocabulary
        ends = tuple(_checked_id(token_id, vocabulary.size) for token_id in end_token_ids)
        if not ends:
            raise TrieautoError("thinking has no end: end_token_ids is empty")
        for token_id in ends:
            if token_id in vocabulary.stop_token_ids:
                raise TrieautoError(f"token id {token_id:,} ends thinking, but is a stop token, which ends everything")
        if matcher.num_accepted:
            raise TrieautoError(f"the matcher of the answer has begun: it has accepted {matcher.num_accepted} tokens")
        row = np.full(32 * matcher.constraint.num_words, 1, np.uint8)
        row[len(vocabulary.tables.offsets) - 1 :] = 0  # padding is no token
        excluded = [_checked_id(token_id, vocabulary.size) for token_id in excluded_token_ids]
        row[[*vocabulary.stop_token_ids, *excluded]] = 0
        row[list(ends)] = 1
        self._free_row = np.packbits(row, bitorder="little").view(np.int32)
        self._matcher = matcher
        self._ends = ends
        self._answer_tokens = checked_budget(answer_tokens)
        self._fallback = _fallbacks(ends)
        self._most: int | None = None
        self._matched = 0
        self._trail: list[int] = []  # how many end tokens were matched before each token of thinking
        self._length = 0  # of thinking, its end included
        self._budget = NO_BUDGET
        self.set_max_thinking_tokens(max_thinking_tokens)
        if matcher.remaining_tokens is not None:
            budget = matcher.remaining_tokens
            matcher.set_budget(None)
            self.set_budget(budget)

    # Where it stands

    @property
    def is_thinking(self) -> bool:
        """Whether the end of thinking has not been accepted yet."""
        return self._matched < len(self._ends)

    @property
    def answer(self) -> Matcher:
        """The matcher of the answer; while thinking, before its first token."""
        return self._matcher

    @property
    def num_accepted(self) -> int:
        """How many tokens have been accepted, those of thinking and a stop token included."""
        return self._length + self._matcher.num_accepted

    @property
    def remaining_tokens(self) -> int | None:
        """How many tokens the budget still has; None without one."""
        if not self.is_thinking:
            return self._matcher.remaining_tokens
        return None if self._budget >= NO_BUDGET else self._budget - self._length

    @property
    def min_tokens_to_finish(self) -> int:
        """The fewest tokens from here to the end of an answer, without a stop token."""
        return len(self._ends) - self._matched + self._matcher.min_tokens_to_finish

    @property
    def is_forced(self) -> bool:
        """Whether the next token can only be the next one of the end of thinking."""
        if not self.is_thinking:
            return False
        if self._most is not None and self._length >= self._most:
            return True
        remaining = self.remaining_tokens
        if remaining is None:
            return False
        # Whatever comes next, all of the end may have to follow it.
        answer = max(self._answer_tokens, self._matcher.min_tokens_to_finish)
        return most_thinking_tokens(remaining, len(self._ends), answer) == 0

    @property
    def is_accepting(self) -> bool:
        """Whether a stop token is legal."""
        return not self.is_thinking and self._matcher.is_accepting

    @property
    def is_complete(self) -> bool:
        """Whether the answer is whole and nothing could follow."""
        return not self.is_thinking and self._matcher.is_complete

    def is_terminated(self) -> bool:
        """Whether a stop token was accepted."""
        return not self.is_thinking and self._matcher.is_terminated()

    # Masks and tokens

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> None:
        """Write the legal tokens into row ``index`` of a bitmask, as ``Matcher.fill_next_token_bitmask`` does."""
        if not self.is_thinking:
            self._matcher.fill_next_token_bitmask(bitmask, index)
            return
        row = writable_row(bitmask, index, len(self._free_row))
        row[len(self._free_row) :] = 0
        if self.is_forced:
            token_id = self._ends[self._matched]
            row[:] = 0
            row[token_id // 32 : token_id // 32 + 1].view(np.uint32)[0] = 1 << (token_id % 32)
        else:
            row[: len(self._free_row)] = self._free_row

    def allowed_token_ids(self) -> npt.NDArray[np.int32]:
        """The ids of all legal tokens: int32, ascending."""
        if not self.is_thinking:
            return self._matcher.allowed_token_ids()
        if self.is_forced:
            return np.array([self._ends[self._matched]], np.int32)
        bits = np.unpackbits(self._free_row.view(np.uint8), bitorder="little")
        return np.flatnonzero(bits).astype(np.int32)

    def accept_token(self, token_id: int) -> bool:
        """Take one token, if it is legal; otherwise nothing changes. Whether it was.

        Raises:
            TrieautoError: ``token_id`` is not an id of this vocabulary at all.
        """
        if not self.is_thinking:
            return self._matcher.accept_token(token_id)
        token_id = _checked_id(token_id, self._matcher.constraint.vocabulary.size)
        if self.is_forced:
            is_legal = token_id == self._ends[self._matched]
        else:
            is_legal = bool(int(self._free_row[token_id // 32]) >> (token_id % 32) & 1)
        if not is_legal:
            return False
        self._trail.append(self._matched)
        self._length += 1
        matched = self._matched
        while matched and self._ends[matched] != token_id:
            matched = self._fallback[matched]
        self._matched = matched + 1 if self._ends[matched] == token_id else 0
        if not self.is_thinking:
            self._give_budget()
        return True

    def rollback(self, num_tokens: int = 1) -> None:
        """Take back the last ``num_tokens``, across the end of thinking too; the budget has them again.

        Raises:
            TrieautoError: a negative number, or more than were accepted.
        """
        count = as_integer(num_tokens)
        if count is None or not 0 <= count <= self.num_accepted:
            raise TrieautoError(f"cannot roll back {shorten(num_tokens)} tokens: {self.num_accepted} were accepted")
        of_answer = min(count, self._matcher.num_accepted)
        self._matcher.rollback(of_answer)
        for _ in range(count - of_answer):
            self._matched = self._trail.pop()
            self._length -= 1
        if self.is_thinking:
            self._matcher.set_budget(None)

    def reset(self) -> None:
        """Go back to before the first token; the budget has the tokens again."""
        self.rollback(self.num_accepted)

    def fork(self) -> ThinkingMatcher:
        """An independent one in the same situation. O(tokens of thinking)."""
        copied: ThinkingMatcher = object.__new__(ThinkingMatcher)
        for name in self.__slots__:
            setattr(copied, name, getattr(self, name))
        copied._matcher = self._matcher.fork()
        copied._trail = self._trail.copy()
        return copied

    def __copy__(self) -> ThinkingMatcher:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> ThinkingMatcher:
        return self.fork()

    # Limits

    def set_budget(self, max_tokens: int | None) -> None:
        """Give the sequence ``max_tokens`` more tokens from now on, thinking, answer and a stop token together; None
        for as many as it likes.

        Raises:
            BudgetError: what is left to do takes more; nothing has changed then. It names the fewest, without a stop
                token.
            TrieautoError: not an integer, or negative.
        """
        budget = checked_budget(max_tokens)
        if budget < NO_BUDGET and (needed := self.min_tokens_to_finish) > budget:
            raise BudgetError(needed, budget)
        self._budget = budget if budget >= NO_BUDGET else budget + self.num_accepted
        if not self.is_thinking:
            self._give_budget()

    def set_max_thinking_tokens(self, max_tokens: int | None) -> None:
        """From now on force the end of thinking after ``max_tokens`` tokens of it; None: no such limit.

        Raises:
            TrieautoError: not an integer, or negative.
        """
        checked_budget(max_tokens)
        self._most = None if max_tokens is None else as_integer(max_tokens)

    def _give_budget(self) -> None:
        """Let the answer have what thinking has left."""
        is_limited = self._budget < NO_BUDGET
        self._matcher.set_budget(self._budget - self.num_accepted if is_limited else None)

    def __repr__(self) -> str:
        return f"<ThinkingMatcher: {f'thinking, {self._length} tokens' if self.is_thinking else repr(self._matcher)}>"


def _checked_id(token_id: int, size: int) -> int:
    checked = as_integer(token_id)
    if checked is None or not 0 <= checked < size:
        raise TrieautoError(f"token id {shorten(token_id)} is not one of the {size:,} ids of the vocabulary")
    return checked


def _fallbacks(ends: tuple[int, ...]) -> list[int]:
    """For each number of matched end tokens, the next smaller one that the same tokens match too (Knuth, Morris and
    Pratt's failure function)."""
    fallback = [0] * (len(ends) + 1)
    for place in range(1, len(ends)):
        matched = fallback[place]
        while matched and ends[matched] != ends[place]:
            matched = fallback[matched]
        fallback[place + 1] = matched + 1 if ends[matched] == ends[place] else 0
    return fallback
