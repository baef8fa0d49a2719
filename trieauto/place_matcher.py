"""One sequence's way through a constraint whose states are not numbered."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .kernels.descriptor import ACCEPTING, READY, READY_CAPACITY, TERMINATED, get_remaining, get_state, move_to
from .kernels.filling import READY_COUNT, READY_KEY, READY_MASK, READY_WORDS
from .kernels.moving import REFUSED, accept
from .matcher import Matcher
from .place_constraint import Mask, Place, PlaceConstraint

_FLAGS = np.array([0, 1], np.uint8)  # whether the one state of a descriptor accepts
_FREE = -1
_Earlier = tuple[int, Place, "_Earlier"] | None
"""The state and the place before each token."""


class PlaceMatcher(Matcher):
    """As ``Matcher``; where it stands is more than a number (see ``PlaceConstraint``).

    Kernels know one state of it: its descriptor, its own copy, has that one alone, and says whether the text may end
    there, and its one mask, as soon as that is ready. So batches mix it with other matchers, and those pay nothing.
    """

    __slots__ = ("_mask", "_place", "_table", "_words")
    _constraint: PlaceConstraint
    _history: _Earlier  # type: ignore[assignment]

    def __init__(self, constraint: PlaceConstraint, max_tokens: int | None = None) -> None:
        self._place = constraint.start
        self._mask: Mask | None = None
        self._words = constraint.new_descriptor()
        self._table = np.full((1, READY_WORDS), _FREE, np.int64)
        self._words[READY], self._words[READY_CAPACITY] = self._table.ctypes.data, 1
        self._begin(constraint, self._words.ctypes.data, 0)
        self._stand_at(self._place)
        if max_tokens is not None:
            self.set_budget(max_tokens)

    def _stand_at(self, place: Place) -> None:
        self._place = place
        self._words[ACCEPTING] = _FLAGS.ctypes.data + place[-1]
        self._table[0, READY_KEY] = _FREE
        self._mask = None

    def _move(self, state: int, place: Place, remaining: int) -> None:
        move_to(self._record, state, remaining)
        self._stand_at(place)

    # Masks

    def _make_ready(self, state: int) -> None:
        mask, is_row, _ = self._ready_mask()
        self._table[0] = 0  # and the tokens left from which on it holds, among others
        self._table[0, READY_MASK] = mask.ctypes.data
        self._table[0, READY_COUNT] = -1 if is_row else len(mask)

    def _ready_mask(self) -> Mask:
        """What may follow, at least one token being left."""
        if self._mask is None:
            self._mask = self._constraint.mask(self._place, get_remaining(self._record))
        return self._mask

    def _has_continuation(self) -> bool:
        return get_state(self._record) != TERMINATED and get_remaining(self._record) > 0 and self._ready_mask()[2] > 0

    # Tokens

    def _after(self, place: Place, remaining: int, token_id: int) -> Place | None:
        """Where a token with bytes leads, if it is legal."""
        if remaining <= 0:
            return None
        after = self._constraint.place_after_token(place, token_id)
        return after if after is not None and self._constraint.is_within(after, remaining - 1) else None

    def _has_bytes(self, token_id: int) -> bool:
        offsets = self._constraint.vocabulary.tables.offsets
        return 0 <= token_id < len(offsets) - 1 and bool(offsets[token_id] < offsets[token_id + 1])

    def accept_token(self, token_id: int) -> bool:
        token_id = self._check_id(token_id)
        state, remaining, place = get_state(self._record), get_remaining(self._record), self._place
        if not self._has_bytes(token_id):
            if accept(self._record, token_id) == REFUSED:
                return False
        elif state == TERMINATED or (after := self._after(place, remaining, token_id)) is None:
            return False
        else:
            self._move(state, after, remaining - 1)
        self._history = (state, place, self._history)
        self._length += 1
        return True

    def accept_tokens(self, token_ids: Iterable[int]) -> bool:
        ids = self._checked_ids(token_ids)
        fork = self.fork()
        if not all(map(fork.accept_token, ids)):
            return False
        self._take_over(fork)
        return True

    def validate_tokens(self, token_ids: Iterable[int]) -> int:
        ids = self._checked_ids(token_ids)
        fork = self.fork()
        return next((k for k, token_id in enumerate(ids) if not fork.accept_token(token_id)), len(ids))

    def _take_over(self, other: PlaceMatcher) -> None:
        self._history, self._length = other._history, other._length
        self._move(get_state(other._record), other._place, get_remaining(other._record))

    # Time travel

    def rollback(self, num_tokens: int = 1) -> None:
        num_tokens = self._checked_rollback(num_tokens)
        state, place, history = get_state(self._record), self._place, self._history
        for _ in range(num_tokens):
            state, place, history = history  # type: ignore[misc]
        self._history = history
        self._length -= num_tokens
        self._move(state, place, get_remaining(self._record) + num_tokens)

    def reset(self) -> None:
        self._move(0, self._constraint.start, get_remaining(self._record) + self._length)
        self._history = None
        self._length = 0

    def fork(self) -> PlaceMatcher:
        fork = type(self)(self._constraint)
        fork._take_over(self)
        return fork

    def __reduce__(self) -> tuple[object, ...]:
        earlier = []
        history = self._history
        while history is not None:
            state, place, history = history
            earlier.append((state, place))
        now = get_state(self._record), self._place, get_remaining(self._record)
        return _unpickled, (type(self), self._constraint, earlier[::-1], *now)

    # The budget

    def _is_enough(self, budget: int) -> bool:
        # The fewest tokens may take a search, where a generous budget needs none.
        return get_state(self._record) == TERMINATED or self._constraint.is_within(self._place, budget)

    def set_budget(self, max_tokens: int | None) -> None:
        super().set_budget(max_tokens)
        self._stand_at(self._place)

    @property
    def min_tokens_to_finish(self) -> int:
        return 0 if get_state(self._record) == TERMINATED else self._constraint.fewest_tokens(self._place)

    @property
    def is_limited_by_budget(self) -> bool:
        remaining = self.remaining_tokens
        if get_state(self._record) == TERMINATED or remaining is None:
            return False
        return self._constraint.is_limited(self._place, remaining)

    def _forced_bytes(self, limit: int) -> bytes:
        return self._constraint.forced_bytes(self._place, limit)


def _unpickled(
    kind: type[PlaceMatcher],
    constraint: PlaceConstraint,
    earlier: list[tuple[int, Place]],
    state: int,
    place: Place,
    remaining: int,
) -> PlaceMatcher:
    matcher = kind(constraint)
    history: _Earlier = None
    for before, at in earlier:
        history = (before, at, history)
    matcher._history = history
    matcher._length = len(earlier)
    matcher._move(state, place, remaining)
    return matcher
