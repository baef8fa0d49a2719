"""A matcher that remembers only the accepted ids and works out everything else from them, each time anew.

The byte language, what is legal and every answer follow from their definitions. Nothing is updated step by step, so
there is no state that could be wrong after a rollback.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache, partial

from .language import min_tokens, occurring
from .prefix_space import PrefixSpace, spellings
from .reachability import TokenGraph, prefix_graph, reachability_table, valid_tokens


def _reachability(
    answers: Collection[bytes], tokens: Sequence[bytes | None]
) -> tuple[TokenGraph[bytes], list[list[bool]]]:
    """The token graph of a byte language, and the paper's table over it.

    The table ends where it stops growing: no prefix needs more tokens than the longest answer has bytes.
    """
    graph = prefix_graph(answers, tokens)
    return graph, reachability_table(graph.delta, graph.goals, max(map(len, answers), default=0))


class ReferenceMatcher:
    """One sequence constrained to a set of values.

    Args:
        values: the set.
        tokens: bytes of each id, or None.
        stop_token_ids: ids that end the answer. They have no bytes, whatever ``tokens`` says of them.
        prefix_space: whether the answer may or must start with a space that is not part of the value.
        max_tokens: the budget from the first token on, a stop token included; None for none.

    Raises:
        ValueError: a stop id outside the vocabulary, an ambiguous optional prefix space, or a budget that
            ``set_budget`` refuses.

    Making one costs what ``min_tokens`` costs, a mask O(tokens). The first mask under a budget costs what
    ``reachability_table`` costs, once for all forks.
    """

    def __init__(
        self,
        values: Iterable[bytes],
        tokens: Sequence[bytes | None],
        stop_token_ids: Collection[int],
        prefix_space: PrefixSpace = "none",
        max_tokens: int | None = None,
    ) -> None:
        outside = [token_id for token_id in stop_token_ids if not 0 <= token_id < len(tokens)]
        if outside:
            raise ValueError(f"stop ids outside the vocabulary of {len(tokens)} ids: {outside}")
        self._stop_token_ids = frozenset(stop_token_ids)
        self._tokens = [None if i in self._stop_token_ids else token for i, token in enumerate(tokens)]
        self._spellings = spellings(values, prefix_space)
        self._pieces = sorted(set(occurring(self._spellings, self._tokens).values()))
        self._min_tokens = min_tokens(self._spellings, self._pieces)
        self._reachability = cache(partial(_reachability, self._spellings, self._tokens))
        self._ids: list[int] = []
        self._deadline: int | None = None
        self.set_budget(max_tokens)

    # What the accepted ids say

    @property
    def accepted_token_ids(self) -> list[int]:
        """The ids accepted so far, stop tokens included."""
        return list(self._ids)

    @property
    def text(self) -> bytes:
        """The bytes of the accepted ids, a prefix space included."""
        return b"".join(self._tokens[token_id] or b"" for token_id in self._ids)

    def is_terminated(self) -> bool:
        """Whether a stop token was accepted."""
        return any(token_id in self._stop_token_ids for token_id in self._ids)

    @property
    def is_accepting(self) -> bool:
        """Whether the text so far is a whole answer."""
        return self.text in self._spellings

    @property
    def is_complete(self) -> bool:
        """Whether the text is a whole answer that no token may continue now; so it is after a stop token.

        A budget may forbid what could follow, so an answer can be complete with it and not without.
        """
        return self.is_accepting and not self._continuations()

    def possible_answers(self) -> list[bytes]:
        """The strings of the language that can still come out, in sorted order, a prefix space included.

        After a stop token this is the text; before it, every string that tokens can spell from here, whatever the
        budget.
        """
        text = self.text
        if self.is_terminated():
            return [text]
        return sorted(
            answer
            for answer in self._spellings
            if answer.startswith(text) and b"" in min_tokens([answer.removeprefix(text)], self._pieces)
        )

    @property
    def value(self) -> bytes | None:
        """The value of a complete text; else the one value that ``possible_answers`` leave, or None for several."""
        if self.is_complete:
            return self._spellings[self.text]
        values = {self._spellings[answer] for answer in self.possible_answers()}
        return values.pop() if len(values) == 1 else None

    def jump_forward_string(self, limit: int = 4096) -> bytes:
        """The bytes that all possible answers share after the text so far, at most ``limit`` of them.

        Empty where the answer may end (so where it is complete), for one possible answer then has no further bytes.
        """
        text = self.text
        rests = [answer.removeprefix(text) for answer in self.possible_answers()]
        shared = min(rests, key=len, default=b"")
        while not all(rest.startswith(shared) for rest in rests):
            shared = shared[:-1]
        return shared[:limit]

    # The budget

    def set_budget(self, n: int | None) -> None:
        """Allow ``n`` tokens from now on, a stop token included; None lifts the budget.

        ValueError, and nothing changes, if ``n`` is negative or the answer cannot be finished in ``n`` tokens.
        """
        if n is not None:
            needed = self.min_tokens_to_finish
            if n < 0:
                raise ValueError(f"a budget cannot be negative: {n}")
            if needed is None:
                raise ValueError(f"no number of tokens finishes the answer, so {n} do not")
            if n < needed:
                raise ValueError(f"the answer needs at least {needed} more tokens, the budget is {n}")
        self._deadline = None if n is None else len(self._ids) + n

    @property
    def remaining_tokens(self) -> int | None:
        """How many tokens the budget still allows, a stop token included; None without a budget.

        It follows from the number of accepted ids, so what is taken back is given back.
        """
        return None if self._deadline is None else max(0, self._deadline - len(self._ids))

    @property
    def min_tokens_to_finish(self) -> int | None:
        """The fewest tokens after which the text is a whole answer, the stop token not counted; 0 after a stop token.

        None if there are no such tokens, which is so from the start or never.
        """
        return self._min_tokens.get(self.text)

    # Masks

    def _continuations(self) -> list[int]:
        """The ids of the tokens after which the text can still be finished (law 1), and in time (law 6)."""
        if self.is_terminated():
            return []
        text = self.text
        remaining = self.remaining_tokens
        if remaining is not None:
            graph, table = self._reachability()
            return valid_tokens(graph.delta, table, graph.states.index(text), remaining)
        return [token_id for token_id, token in enumerate(self._tokens) if token and text + token in self._min_tokens]

    def allowed_token_ids(self) -> list[int]:
        """The ids that ``accept_token`` would accept, ascending. After a stop token: the stop ids.

        Without tokens left these are the stop ids, for the text is then a whole answer. They are never held back.
        """
        stops = self._stop_token_ids if self.is_accepting else frozenset()
        return sorted([*self._continuations(), *stops])

    # Moves

    def accept_token(self, token_id: int) -> bool:
        """Accept an id of the mask and return True; return False and change nothing for any other."""
        if token_id not in self.allowed_token_ids():
            return False
        self._ids.append(token_id)
        return True

    def validate_tokens(self, ids: Sequence[int]) -> int:
        """How many of the leading ``ids`` could be accepted one after the other. Changes nothing."""
        trial = self.fork()
        for count, token_id in enumerate(ids):
            if not trial.accept_token(token_id):
                return count
        return len(ids)

    def accept_tokens(self, ids: Sequence[int]) -> bool:
        """Accept all ``ids`` and return True, or none of them and return False."""
        if self.validate_tokens(ids) < len(ids):
            return False
        self._ids.extend(ids)
        return True

    def rollback(self, count: int = 1) -> None:
        """Take back the last ``count`` accepted ids, stop tokens included, and give their tokens back to the budget.

        ValueError if there are fewer.
        """
        if not 0 <= count <= len(self._ids):
            raise ValueError(f"cannot take back {count} of {len(self._ids)} accepted tokens")
        self._ids = self._ids[: len(self._ids) - count]

    def reset(self) -> None:
        """Take back everything that was accepted. A budget stays, with all its tokens."""
        self._ids = []

    def fork(self) -> ReferenceMatcher:
        """A matcher at the same place that goes its own way from here."""
        other = object.__new__(ReferenceMatcher)
        other._stop_token_ids = self._stop_token_ids
        other._tokens = self._tokens
        other._spellings = self._spellings
        other._pieces = self._pieces
        other._min_tokens = self._min_tokens
        other._reachability = self._reachability
        other._ids = list(self._ids)
        other._deadline = self._deadline
        return other
