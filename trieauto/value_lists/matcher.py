"""One sequence's way through lists of values."""

from __future__ import annotations

from typing import Any

from ..kernels.descriptor import TERMINATED, get_state
from ..place_matcher import PlaceMatcher
from .constraint import ListConstraint


class ListMatcher(PlaceMatcher):
    """As ``Matcher``; what was given belongs to where it stands."""

    __slots__ = ()
    _constraint: ListConstraint

    @property
    def value(self) -> tuple[Any, ...] | None:
        """The values, in their order, as they were given, once no others are possible (even if not all of them are
        written yet), or once they are settled by a stop token or by a budget that leaves nothing more to write; None
        before that."""
        if get_state(self._record) == TERMINATED:
            return self._constraint.values_given(self._place)
        values = self._constraint.only_values(self._place)
        if values is not None or self.remaining_tokens is None or not self.is_complete:
            return values
        return self._constraint.values_given(self._place)
