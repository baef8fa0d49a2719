"""How many canonical tokens the end takes: a search that looks at the pair rule only where it decides.

Three bounds, each a search by deepening with what it found kept:

- ``_relaxed``: the fewest tokens from a node if any two may stand side by side. A lower bound.
- ``_from_cut``: the fewest from a node in which a pre-token begins: no token before it matters.
- ``_after``: the fewest from a node after a given token: the end of the pre-token here, or tokens that go on in it.

And whether the end can be reached at all, after a token: at the end of its pre-token it can; so only ways inside of
that one need be looked at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..recent import Recent
from .language import NOWHERE, SplitLanguage
from .model import BytePairModel

ENDLESS = 2**31 - 1
NEVER, SURE, OPEN = range(3)
MOST_REACHED = 16 * 2**20  # bytes

_Flags = npt.NDArray[np.uint8]
_Answer = Generator[Any, Any, Any]
"""A search that yields the searches whose answers it needs, and returns its own: answers may be hundreds of tokens
long, and so deep."""


def _answered(search: _Answer) -> Any:
    way = [search]
    answer = None
    while way:
        try:
            way.append(way[-1].send(answer))
            answer = None
        except StopIteration as stop:
            way.pop()
            answer = stop.value
    return answer


class _Bounds:
    """What is known of the fewest tokens from somewhere."""

    def __init__(self) -> None:
        self._least: dict[Hashable, int] = {}
        self._most: dict[Hashable, int] = {}

    def known(self, key: Hashable, tokens: int) -> bool | None:
        """Whether so many are enough, if that is known."""
        if self._most.get(key, ENDLESS) <= tokens:
            return True
        return False if self._least.get(key, 0) > tokens else None

    def deepened(self, key: Hashable, tokens: int, least: int, attempt: Callable[[int], _Answer]) -> _Answer:
        """Whether so many are enough, by attempts with ever more, ``least`` at first. The first that succeeds has
        looked at little beyond the shortest ways; one with very many would lose itself in long ones.

        The end must be in reach.
        """
        known = self.known(key, tokens)
        if known is not None:
            return known
        for count in range(max(least, self._least.get(key, 0)), tokens + 1):
            if (yield attempt(count)):
                self._most[key] = count
                return True
            self._least[key] = count + 1
        return False


class Search:
    """Over the nodes of one language. Thread-safe."""

    def __init__(self, language: SplitLanguage, model: BytePairModel) -> None:
        self._language = language
        self._model = model
        self._relaxed_bounds, self._cut_bounds, self._after_bounds = _Bounds(), _Bounds(), _Bounds()
        self._can_end: dict[tuple[int, int], bool] = {}
        self._reached: Recent[tuple[_Flags, _Flags]] = Recent(MOST_REACHED)
        self._lock = threading.Lock()

    # Without a budget

    def can_end(self, node: int, token: int) -> bool:
        """Whether the end can be reached from a node after a token."""
        if self._language.is_easy(node):
            return True
        if token < 0:
            return False
        known = self._can_end.get((node, token))
        if known is not None:
            return known
        # Depth first; what was seen and does not lead to the end is kept as such when all of it is done.
        seen = {(node, token)}
        way = [(node, token)]
        waiting = [self._open(node, token)]
        while way:
            following = waiting[-1]
            if following is None:
                for key in way:
                    self._can_end[key] = True
                return True
            while following and (following[-1] in seen or self._can_end.get(following[-1]) is False):
                following.pop()
            if not following:
                way.pop()
                waiting.pop()
                continue
            key = following.pop()
            seen.add(key)
            way.append(key)
            waiting.append(None if self._can_end.get(key) else self._open(*key))
        for key in seen:
            self._can_end[key] = False
        return False

    def _open(self, node: int, token: int) -> list[tuple[int, int]] | None:
        """The nodes and tokens that may follow inside the pre-token; None if one of them leads to its end."""
        following = self._language.going_on(node)
        if self._model.can_follow(token, following.tokens, following.is_easy):
            return None
        may = self._model.apart_from(token)[following.tokens] == 0
        return list(zip(following.ends[may].tolist(), following.tokens[may].tolist(), strict=True))

    # With a budget

    def fewest(self, node: int, token: int) -> int:
        """The fewest tokens from a node after a token; the end must be in reach."""
        tokens = int(self._language.least[node])
        while not self.is_within(node, token, tokens):
            tokens += 1
        return tokens

    def fewest_at_end(self, node: int) -> int:
        """The fewest tokens from a node where the pre-token may end, if it does: none needs more after any token."""
        if self._language.is_final[node]:
            return 0
        cut = int(self._language.cuts[node])
        tokens = int(self._language.least[cut])
        with self._lock:
            while not _answered(self._from_cut(cut, tokens)):
                tokens += 1
        return tokens

    def verdict(self, node: int, tokens: int) -> int:
        """Whether so many tokens are enough from a node after any token (``SURE``), after none (``NEVER``), or after
        some (``OPEN``)."""
        with self._lock:
            return int(_answered(self._verdict(node, tokens)))

    def is_within(self, node: int, token: int, tokens: int) -> bool:
        """Whether the end can be reached from a node after a token in so many more."""
        with self._lock:
            return bool(_answered(self._after(node, token, tokens)))

    def _verdict(self, node: int, tokens: int) -> _Answer:
        language = self._language
        if language.is_final[node]:
            return SURE if tokens >= 0 else NEVER
        if tokens <= 0 or language.least[node] > tokens:
            return NEVER
        cut = int(language.cuts[node])
        if cut != NOWHERE and (yield self._from_cut(cut, tokens)):
            return SURE
        return OPEN if cut != node and (yield self._relaxed(node, tokens)) else NEVER

    def _after(self, node: int, token: int, tokens: int) -> _Answer:
        """Whether so many tokens are enough from a node after a token."""
        verdict = yield self._verdict(node, tokens)
        if verdict != OPEN or token < 0:
            return verdict == SURE
        if not self.can_end(node, token):
            return False
        return (
            yield self._after_bounds.deepened(
                (node, token),
                tokens,
                int(self._language.least[node]),
                lambda count: self._attempt_after(node, token, count),
            )
        )

    def _attempt_after(self, node: int, token: int, tokens: int) -> _Answer:
        verdict = yield self._verdict(node, tokens)
        if verdict != OPEN:
            return verdict == SURE
        following = self._language.going_on(node)
        sure, open_ = yield self._reaching(node, tokens - 1)
        is_enough = self._model.can_follow(token, following.tokens, sure)
        if not is_enough and open_.any():
            may = (open_ != 0) & (self._model.apart_from(token)[following.tokens] == 0)
            is_enough = yield self._any_after(following.tokens[may], following.ends[may], tokens - 1)
        return is_enough

    def _from_cut(self, cut: int, tokens: int) -> _Answer:
        """Whether so many tokens are enough from where a pre-token begins."""
        least = max(1, int(self._language.least[cut]))
        return (yield self._cut_bounds.deepened(cut, tokens, least, lambda count: self._attempt_from_cut(cut, count)))

    def _attempt_from_cut(self, cut: int, tokens: int) -> _Answer:
        if not (yield self._relaxed(cut, tokens)):
            return False
        following = self._language.going_on(cut)
        sure, open_ = yield self._reaching(cut, tokens - 1)
        if sure.any():
            return True
        return (yield self._any_after(following.tokens[open_ != 0], following.ends[open_ != 0], tokens - 1))

    def _reaching(self, node: int, tokens: int) -> _Answer:
        """Of the tokens that go on from a node: after which so many more are enough, whatever the token, and after
        which they may be: uint8 each."""
        found = self._reached.get((node, tokens))
        if found is None:
            following = self._language.going_on(node)
            verdicts = np.empty(len(following.different), np.uint8)
            for k, end in enumerate(following.different.tolist()):
                verdicts[k] = yield self._verdict(end, tokens)
            each = verdicts[np.searchsorted(following.different, following.ends)]
            found = (each == SURE).astype(np.uint8), (each == OPEN).astype(np.uint8)
            self._reached.add((node, tokens), found, 2 * len(each))
        return found

    def _any_after(self, tokens: npt.NDArray[np.int32], ends: npt.NDArray[np.int32], left: int) -> _Answer:
        for token, end in zip(tokens.tolist(), ends.tolist(), strict=True):
            if (yield self._after(end, token, left)):
                return True
        return False

    def _relaxed(self, node: int, tokens: int) -> _Answer:
        """Whether so many tokens are enough from a node if any two may stand side by side."""
        language = self._language
        if language.is_final[node]:
            return tokens >= 0
        if tokens <= 0 or language.least[node] > tokens:
            return False
        least = int(language.least[node])
        return (
            yield self._relaxed_bounds.deepened(node, tokens, least, lambda count: self._attempt_relaxed(node, count))
        )

    def _attempt_relaxed(self, node: int, tokens: int) -> _Answer:
        language = self._language
        cut = int(language.cuts[node])
        if cut not in (NOWHERE, node) and (yield self._relaxed(cut, tokens)):
            return True
        different = language.going_on(node).different
        for following in different[language.least[different] <= tokens - 1].tolist():
            if (yield self._relaxed(following, tokens - 1)):
                return True
        return False
