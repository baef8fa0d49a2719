"""Constraints whose states are not numbered: what was written before belongs to where a matcher stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from .automaton import Automaton
from .constraint import Constraint
from .errors import UnsupportedError, shorten

if TYPE_CHECKING:
    from .place_matcher import PlaceMatcher

Int32s = npt.NDArray[np.int32]
Mask = tuple[Int32s, bool, int]
"""Token ids, or a whole bitmap row (which the bool says), and how many tokens with bytes are legal."""

Place = tuple[Any, ...]
"""Where a text stands; the last item is whether it may end there."""


class PlaceConstraint(Constraint):
    """What may be generated, in tokens. As ``Constraint``, and made by ``compile`` too.

    But the states of a matcher are not numbered: methods that take a state, and ``distances``, are refused.
    """

    start: Place
    """Where every text begins."""

    def place_after_token(self, place: Place, token_id: int) -> Place | None:
        """Where a token with bytes leads without a budget, or None."""
        raise NotImplementedError

    def mask(self, place: Place, remaining: int) -> Mask:
        """What may follow if so many tokens are left, at least one."""
        raise NotImplementedError

    def is_within(self, place: Place, remaining: int) -> bool:
        """Whether the text can be finished from a place in so many tokens."""
        raise NotImplementedError

    def is_limited(self, place: Place, remaining: int) -> bool:
        """Whether so small a budget forbids a token here."""
        raise NotImplementedError

    def fewest_tokens(self, place: Place) -> int:
        """The fewest tokens from a place to the end."""
        raise NotImplementedError

    def forced_bytes(self, place: Place, limit: int) -> bytes:
        """The bytes that every text shares from a place on."""
        raise NotImplementedError

    @property
    def min_tokens(self) -> int:
        """The fewest tokens of any answer, without a stop token."""
        return self.fewest_tokens(self.start)

    @property
    def enough_tokens(self) -> None:
        """Of sets that one value is chosen of; this is none."""
        return None

    def num_values_within(self, max_tokens: int) -> None:
        """Of sets that one value is chosen of; this is none."""
        return None

    def bits_of(self, tokens: Int32s, is_final: bool) -> Int32s:
        """A bitmap row with these tokens, and with the stop tokens if the text may end."""
        bits = np.zeros(32 * self.num_words, np.uint8)
        bits[tokens] = 1
        if is_final:
            bits[self._stop_ids] = 1
        return np.packbits(bits, bitorder="little").view(np.int32)

    def matcher(self, max_tokens: int | None = None) -> PlaceMatcher:
        from .place_matcher import PlaceMatcher

        return PlaceMatcher(self, max_tokens)

    def _check_state(self, state: int) -> NoReturn:
        raise UnsupportedError(
            f"state {shorten(state)} of {self!r} does not say what was written before: ask a matcher instead"
        )

    def distances(self) -> NoReturn:
        """Refused: what was written decides, too. ``matcher.min_tokens_to_finish`` says it.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"the distances of {self!r} depend on what was written: ask matcher.min_tokens_to_finish"
        )

    @property
    def num_states(self) -> int:
        return self.automaton.num_states


class _OneState:
    """In the place of an automaton, to write a descriptor from: one state, which matchers say of what it is."""

    def __init__(self, arrays: tuple[npt.NDArray[Any], ...]) -> None:
        self.arrays = arrays
        self.accepting = np.zeros(1, np.uint8)
        self.start = 0


def one_state(arrays: tuple[npt.NDArray[Any], ...]) -> Automaton:
    """What a ``PlaceConstraint`` gives ``Constraint`` for its automaton; its own is set afterwards."""
    return cast(Automaton, _OneState(arrays))
