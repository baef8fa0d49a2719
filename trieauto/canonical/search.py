"""How many canonical tokens the end takes: a search that looks at the pair rule only where it decides.

What is enough is mostly known without it: by an example (``examples``) from where a pre-token begins, and by any way
to there. Where fewer may do, three bounds, each a search by deepening with what it found kept:

- ``_relaxed``: the fewest tokens from a node if any two may stand side by side. A lower bound.
- ``_from_cut``: the fewest from a node in which a pre-token begins: no token before it matters.
- ``_after``: the fewest from a node after a given token: the end of the pre-token here, or tokens that go on in it.

And whether the end can be reached at all, after a token: at the end of its pre-token it can; so only ways inside of
that one need be looked at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Hashable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..recent import Recent
from .examples import ENDLESS, Examples
from .language import NOWHERE, Following, Int32s, SplitLanguage
from .model import BytePairModel

NEVER, SURE, OPEN = range(3)
MOST_REACHED = 16 * 2**20  # bytes
MOST_PAIRS = 2**18  # of nodes and tokens that something is known of

_Flags = npt.NDArray[np.uint8]
_Pair = tuple[int, int]  # a node, and the token before it
_ENDS: _Pair = (NOWHERE, 0)
_DEAD: _Pair = (NOWHERE, 1)
_COMPLETED: _Pair = (NOWHERE, 2)  # by single bytes: the character, after which the pre-token may end
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


class _Nearest(NamedTuple):
    """Of the tokens that go on from a node those after which the pre-token may end, the nearest to the end first.

    Attributes:
        tokens: int32[T].
        enough: int32[T], how many tokens are enough after each.
        all: uint8[T], ones.
    """

    tokens: Int32s
    enough: Int32s
    all: _Flags


class _Bounds:
    """What is known of the fewest tokens from somewhere."""

    def __init__(self) -> None:
        self._least: dict[Hashable, int] = {}
        self._most: dict[Hashable, int] = {}

    def most(self, key: Hashable) -> int:
        """So many are enough; ``ENDLESS`` if that is not known."""
        return self._most.get(key, ENDLESS)

    def forget_beyond(self, limit: int) -> None:
        """Forget everything if that is more keys."""
        if max(len(self._least), len(self._most)) > limit:
            self._least.clear()
            self._most.clear()

    def add_most(self, key: Hashable, tokens: int) -> None:
        if tokens < self.most(key):
            self._most[key] = tokens

    def deepened(self, key: Hashable, tokens: int, least: int, attempt: Callable[[int], _Answer]) -> _Answer:
        """Whether so many are enough, by attempts with ever more, ``least`` at first. The first that succeeds has
        looked at little beyond the shortest ways; one with very many would lose itself in long ones.

        The end must be in reach.
        """
        if self.most(key) <= tokens:
            return True
        for count in range(max(least, self._least.get(key, 0)), tokens + 1):
            if (yield attempt(count)):
                self._most[key] = count
                return True
            self._least[key] = count + 1
        return False


class Search:
    """Over the nodes of one language. Thread-safe."""

    def __init__(self, language: SplitLanguage, model: BytePairModel, examples: Examples) -> None:
        self._language = language
        self._model = model
        self._examples = examples
        self._relaxed_bounds, self._cut_bounds, self._after_bounds = _Bounds(), _Bounds(), _Bounds()
        self._ways: dict[_Pair, _Pair] = {}
        self._nearest: Recent[_Nearest] = Recent(MOST_REACHED // 2)
        self._reached: Recent[tuple[_Flags, _Flags]] = Recent(MOST_REACHED // 2)
        self._lock = threading.Lock()

    def _make_room(self) -> None:
        """Forget what is known if it is very much, between two searches."""
        if len(self._ways) > MOST_PAIRS:
            self._ways.clear()
        self._after_bounds.forget_beyond(MOST_PAIRS)

    # Without a budget

    def can_end(self, node: int, token: int) -> bool:
        """Whether the end can be reached from a node after a token."""
        if self._language.is_easy(node):
            return True
        with self._lock:
            self._make_room()
            return self._can_end(node, token)

    def _can_end(self, node: int, token: int) -> bool:
        return bool(self._language.is_easy(node)) or (token >= 0 and self._way(node, token) is not _DEAD)

    def _way(self, node: int, token: int) -> _Pair:
        """What may follow on a way to the end of the pre-token, from a node in which it may not end."""
        known = self._known_way(node, token)
        if known is not None:
            return known
        # Depth first, what is nearest to the end first; what was seen and does not lead there is dead when all is done.
        seen = {(node, token)}
        way = [(node, token)]
        waiting = [self._open(node, token)]
        while way:
            following = waiting[-1]
            if following is None:
                self._ways.setdefault(way[-1], _ENDS)
                for key, after in pairwise(way):
                    self._ways[key] = after
                return self._ways[node, token]
            while following and (following[-1] in seen or self._ways.get(following[-1]) is _DEAD):
                following.pop()
            if not following:
                way.pop()
                waiting.pop()
                continue
            key = following.pop()
            seen.add(key)
            way.append(key)
            waiting.append(None if self._known_way(*key) is not None else self._open(*key))
        for key in seen:
            self._ways[key] = _DEAD
        return _DEAD

    def _known_way(self, node: int, token: int) -> _Pair | None:
        known = self._ways.get((node, token))
        if known is None and self._language.completion(node, token)[0] > 0:
            known = self._ways[node, token] = _COMPLETED
        return known

    def _open(self, node: int, token: int) -> list[_Pair] | None:
        """The nodes and tokens that may follow inside the pre-token, the nearest to the end last; None if one of them
        leads to where it may end."""
        following = self._language.going_on(node)
        if self._model.first_beside(token, following.tokens, following.is_easy) >= 0:
            return None
        may = self._model.apart_from(token)[following.tokens] == 0
        ends, tokens = following.ends[may], following.tokens[may]
        order = np.argsort(-self._language.least[ends], kind="stable")
        return list(zip(ends[order].tolist(), tokens[order].tolist(), strict=True))

    # With a budget

    def enough(self, node: int, token: int) -> int:
        """So many tokens are enough from a node after a token, mostly no more than the fewest; the end must be in
        reach."""
        with self._lock:
            self._make_room()
            enough = self._enough(node, token)
        return self.fewest(node, token) if enough == ENDLESS else enough

    def enough_at_end(self, nodes: Int32s) -> int:
        """So many tokens are enough from all of the nodes, in each of which the pre-token or the text may end."""
        with self._lock:
            self._make_room()
            each = self._examples.enough(nodes)
            for k in np.flatnonzero(each == ENDLESS).tolist():
                each[k] = self._fewest_at_end(int(nodes[k]))
        return int(each.max(initial=0))

    def fewest(self, node: int, token: int) -> int:
        """The fewest tokens from a node after a token; the end must be in reach."""
        tokens = int(self._language.least[node])
        while not self.is_within(node, token, tokens):
            tokens += 1
        return tokens

    def verdicts(self, nodes: Int32s, tokens: int) -> _Flags:
        """Whether so many tokens are enough from each of the nodes after any token (``SURE``), after none (``NEVER``),
        or maybe after some (``OPEN``): uint8."""
        with self._lock:
            self._make_room()
            found = self._known(nodes, tokens)
            for k in np.flatnonzero((found == OPEN) & self._language.is_easy(nodes)).tolist():
                found[k] = _answered(self._verdict(int(nodes[k]), tokens))
        return found

    def is_within(self, node: int, token: int, tokens: int) -> bool:
        """Whether the end can be reached from a node after a token in so many more."""
        with self._lock:
            self._make_room()
            return bool(_answered(self._after(node, token, tokens)))

    def _known(self, nodes: Int32s, tokens: int) -> _Flags:
        """What is known of each node without a search: uint8, as of ``verdicts``."""
        language = self._language
        found = np.full(len(nodes), OPEN, np.uint8)
        found[(language.least[nodes] > tokens) | ((tokens <= 0) & ~language.is_final[nodes])] = NEVER
        asked = (found == OPEN) & language.is_easy(nodes)
        found[asked] = np.where(self._examples.enough(nodes[asked]) <= tokens, SURE, OPEN)
        return found

    def _enough(self, node: int, token: int) -> int:
        """As ``enough``, or ``ENDLESS`` where no example says it."""
        if self._language.is_easy(node):
            return int(self._examples.enough(np.array([node]))[0])
        bounds = self._after_bounds
        key, way = (node, token), []
        while bounds.most(key) == ENDLESS:
            after = self._way(*key)
            if after[0] != NOWHERE:
                way.append(key)
                key = after
                continue
            enough = ENDLESS
            if after is _ENDS:
                enough = self._enough_where_it_ends(*key)
            elif after is _COMPLETED:
                count, end = self._language.completion(*key)
                enough = min(ENDLESS, count + int(self._examples.enough(np.array([end]))[0]))
            if enough == ENDLESS:
                return ENDLESS
            bounds.add_most(key, enough)
        enough = bounds.most(key)
        for key in reversed(way):
            enough += 1
            bounds.add_most(key, enough)
        return bounds.most((node, token))

    def _enough_where_it_ends(self, node: int, token: int) -> int:
        """``_enough``, if a next token may lead to the end of the pre-token."""
        nearest = self._nearest.get(node)
        if nearest is None:
            following = self._language.going_on(node)
            easy = following.is_easy != 0
            each = self._examples.enough(following.ends[easy])
            order = np.argsort(each, kind="stable")
            nearest = _Nearest(following.tokens[easy][order], each[order], np.ones(len(order), np.uint8))
            self._nearest.add(node, nearest, 9 * len(order))
        first = self._model.first_beside(token, nearest.tokens, nearest.all)
        enough = int(nearest.enough[first])
        return enough if enough == ENDLESS else 1 + enough

    def _fewest_at_end(self, node: int) -> int:
        """The fewest tokens from a node in which the pre-token may end, if it does."""
        tokens = int(self._language.least[node])
        while not _answered(self._from_cut(int(self._language.cuts[node]), tokens)):
            tokens += 1
        return tokens

    def _verdict(self, node: int, tokens: int) -> _Answer:
        known = int(self._known(np.array([node]), tokens)[0])
        if known != OPEN:
            return known
        cut = int(self._language.cuts[node])
        if cut != NOWHERE and (yield self._from_cut(cut, tokens)):
            return SURE
        return OPEN if cut != node and (yield self._relaxed(node, tokens)) else NEVER

    def _after(self, node: int, token: int, tokens: int) -> _Answer:
        """Whether so many tokens are enough from a node after a token."""
        language = self._language
        if language.is_final[node]:
            return tokens >= 0
        if tokens <= 0 or language.least[node] > tokens or not self._can_end(node, token):
            return False
        if self._enough(node, token) <= tokens:
            return True
        verdict = yield self._verdict(node, tokens)
        if verdict != OPEN or token < 0:
            return verdict == SURE
        return (
            yield self._after_bounds.deepened(
                (node, token),
                tokens,
                int(language.least[node]),
                lambda count: self._attempt_after(node, token, count),
            )
        )

    def _attempt_after(self, node: int, token: int, tokens: int) -> _Answer:
        verdict = yield self._verdict(node, tokens)
        if verdict != OPEN:
            return verdict == SURE
        following = self._language.going_on(node)
        sure, open_ = yield self._reaching(node, following, tokens - 1)
        if self._model.first_beside(token, following.tokens, sure) >= 0:
            return True
        may = (open_ != 0) & (self._model.apart_from(token)[following.tokens] == 0)
        return (yield self._any_after(following.tokens[may], following.ends[may], tokens - 1))

    def _from_cut(self, cut: int, tokens: int) -> _Answer:
        """Whether so many tokens are enough from where a pre-token begins."""
        if self._examples.enough(np.array([cut]))[0] <= tokens:
            return True
        least = max(1, int(self._language.least[cut]))
        return (yield self._cut_bounds.deepened(cut, tokens, least, lambda count: self._attempt_from_cut(cut, count)))

    def _attempt_from_cut(self, cut: int, tokens: int) -> _Answer:
        if not (yield self._relaxed(cut, tokens)):
            return False
        following = self._language.going_on(cut)
        known = self._known(following.different, tokens - 1)
        if (known == SURE).any():
            return True
        open_ = []
        for end in following.different[known == OPEN].tolist():
            verdict = yield self._verdict(end, tokens - 1)
            if verdict == SURE:
                return True
            if verdict == OPEN:
                open_.append(end)
        may = np.isin(following.ends, open_)
        return (yield self._any_after(following.tokens[may], following.ends[may], tokens - 1))

    def _reaching(self, node: int, following: Following, tokens: int) -> _Answer:
        """Of the tokens that go on from a node: after which so many more are enough, whatever the token, and after
        which they may be: uint8 each."""
        found = self._reached.get((node, tokens))
        if found is None:
            verdicts = self._known(following.different, tokens)
            for k in np.flatnonzero(verdicts == OPEN).tolist():
                verdicts[k] = yield self._verdict(int(following.different[k]), tokens)
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
