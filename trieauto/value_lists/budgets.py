"""The fewest tokens from a place in a list to its end, values that were given considered: exact, without a table of it.

Let every value end where a token ends (that is always possible: all bytes are tokens). Then the tokens of a list are
those of its values, each together with what stands before it, and those of the end; of the values that are still needed
but not begun, the cheapest that were not given are taken. So the fewest tokens from a place are: a number for the place
(one table for the trie, made once), and the sum of the cheapest; only where some value that was given, or is among the
cheapest, lies ahead must a little of the table be made anew. That is ``_Outlook``.

Usually that is all: no token of the vocabulary reaches from inside a value of the set beyond its end. Where some do, it
is an upper bound; and a lower one if each value may save what such tokens can save at its end. Where the budget lies
between the two, a best-first search (A*) over places and given values decides, guided by the lower bound. Exact; but
there are sets and vocabularies for which it would take very long (many values needed, and many tokens of that kind), so
after very many places it gives up, with an error.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedError
from ..kernels.aho_corasick import depth_of_trie
from ..kernels.list_distances import from_begin, to_ends, to_other_ends
from ..kernels.list_walk import FINAL
from ..kernels.walk import UNREACHABLE
from .automaton import ListAutomaton
from .savings import savings

if TYPE_CHECKING:
    from .constraint import ListConstraint
    from .legal import Legal

Int32s = npt.NDArray[np.int32]
_MOST_KEPT = 512  # outlooks, for one bound
_MOST_SEARCHED = 10_000  # places, in one search: a second or so


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What lies ahead with certain values given: see ``Bound.outlook``."""

    base: int
    changed: Int32s
    costs: Int32s
    of_joints: dict[int, int]


class Bound:
    """The fewest tokens if all values end where tokens end, and each saves so many of its own.

    Args:
        saved: int32[K], by rank; None for none at all.
    """

    def __init__(self, constraint: ListConstraint, saved: Int32s | None) -> None:
        automaton = constraint.automaton
        self._constraint = constraint
        self._automaton = automaton
        items, terminals = automaton.items, automaton.sorted_values.terminals
        self._tables = constraint.vocabulary.tables.trie
        self._own = np.empty(0, np.int32)
        self._costs = np.full(items.num_states, UNREACHABLE, np.int32)
        self._costs[terminals] = 0 if saved is None else -saved
        if saved is not None:
            self._own = self._costs.copy()
        to_ends(items.labels, items.links, *self._tables, self._costs)
        self._saved = saved
        self._outlooks: dict[object, _Outlook] = {}
        # Of each value, after another one.
        begins = np.full(items.num_states, UNREACHABLE, np.int32)
        for joint, cost in self._from_joint(automaton.joints.another).items():
            legal = constraint.relaxed_legal(items.num_states + joint)
            inside = legal.places[(legal.counts == 0) & (legal.places < items.num_states)]
            np.minimum.at(begins, inside, np.int32(cost + 1))
        from_begin(items.labels, items.links, *self._tables, begins)
        self._of_values = begins[terminals]
        if saved is not None:
            self._of_values = self._of_values - saved
        self._cheapest = np.argsort(self._of_values, kind="stable") if automaton.minimum > 1 else None
        self._most_of_value = int(self._of_values.max())
        self._at_end = self._of_closing(automaton.joints.last_one)
        # A token has at least a byte.
        self._farthest = int(depth_of_trie(items.links)) + len(automaton.joints.flags) + self._at_end

    def _from_joint(self, joint: int) -> dict[int, int]:
        """The fewest tokens from one joint to others, without a value between."""
        offset = self._automaton.items.num_states
        fewest = {joint: 0}
        waiting = [joint]
        for at in waiting:
            legal = self._constraint.relaxed_legal(offset + at)
            for place in np.unique(legal.places[(legal.counts == 0) & (legal.places >= offset)]).tolist():
                if place - offset not in fewest:
                    fewest[place - offset] = fewest[at] + 1
                    waiting.append(place - offset)
        return fewest

    def _of_closing(self, joint: int) -> int:
        """The fewest tokens from a joint after the last value to the end of the text."""
        flags = self._automaton.joints.flags
        return min(cost for at, cost in self._from_joint(joint).items() if flags[at] & FINAL)

    def num_needed(self, given: tuple[int, ...]) -> int:
        """How many values must still end, the one that is being written or comes next included."""
        return max(1, self._automaton.minimum - len(given))

    def is_generous(self, given: tuple[int, ...], most: int) -> bool:
        """Whether so many tokens are certainly enough from every place after these values. O(1)."""
        return self.generous_budget(given) - 1 <= most

    def generous_budget(self, given: tuple[int, ...]) -> int:
        """With so many tokens left, none is forbidden after these values. O(1)."""
        return (self.num_needed(given) - 1) * self._most_of_value + self._farthest + 1

    def outlook(self, given: tuple[int, ...]) -> _Outlook:
        """What lies ahead once the values that end at ``given`` were given."""
        is_distinct = self._automaton.distinct
        key = (self.num_needed(given), frozenset(given) if is_distinct else None)
        known = self._outlooks.get(key)
        if known is None:
            if len(self._outlooks) >= _MOST_KEPT:
                self._outlooks.clear()
            known = self._outlooks[key] = self._new_outlook(given if is_distinct else (), self.num_needed(given) - 1)
        return known

    def _new_outlook(self, given: tuple[int, ...], num_more: int) -> _Outlook:
        """``num_more``: how many values are needed beyond the one that comes first."""
        automaton, terminals = self._automaton, self._automaton.sorted_values.terminals
        used = set(np.searchsorted(terminals, given).tolist())
        other: dict[int, int] = dict.fromkeys(used, UNREACHABLE)
        base = self._at_end
        if num_more > 0 and not automaton.distinct:
            base += num_more * int(self._of_values.min())
        elif num_more > 0:
            assert self._cheapest is not None
            first = self._cheapest[: num_more + 1 + len(used)].tolist()
            best = [rank for rank in first if rank not in used]
            base += sum(int(self._of_values[rank]) for rank in best[:num_more])
            following = int(self._of_values[best[num_more]]) if len(best) > num_more else UNREACHABLE
            for rank in best[:num_more]:
                # If one of these comes first, the next cheapest takes its place.
                saved = 0 if self._saved is None else int(self._saved[rank])
                cost = following - int(self._of_values[rank]) - saved
                other[rank] = cost if following < UNREACHABLE else UNREACHABLE
        if not other:
            return _Outlook(base, np.empty(0, np.int32), np.empty(0, np.int32), {})
        ranks = sorted(other)
        weights = np.array([other[rank] for rank in ranks], np.int32)
        items = automaton.items
        changed, costs = to_other_ends(
            items.labels, items.links, items.accepting, *self._tables, self._costs, self._own, terminals[ranks], weights
        )
        return _Outlook(base, changed, costs, {})

    def of_places(self, places: Int32s, given: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """The bound for places after the same values: int64, at least ``UNREACHABLE`` where there is no way on."""
        outlook = self.outlook(given)
        num_states = self._automaton.items.num_states
        result = np.empty(len(places), np.int64)
        inside = places < num_states
        states = places[inside]
        costs = self._costs[states].astype(np.int64)
        if len(outlook.changed) > 0:
            at = np.minimum(np.searchsorted(outlook.changed, states), len(outlook.changed) - 1)
            costs = np.where(outlook.changed[at] == states, outlook.costs[at], costs)
        result[inside] = costs + outlook.base
        if not inside.all():
            result[~inside] = [
                self._of_joint(joint, given, outlook) for joint in (places[~inside] - num_states).tolist()
            ]
        return result

    def of_place(self, place: int, given: tuple[int, ...]) -> int:
        """The bound for one place."""
        return int(self.of_places(np.array([place], np.int32), given)[0])

    def _of_joint(self, joint: int, given: tuple[int, ...], outlook: _Outlook) -> int:
        if self._automaton.joints.flags[joint] & FINAL:
            return 0
        known = outlook.of_joints.get(joint)
        if known is None:
            legal = self._constraint.relaxed_legal(self._automaton.items.num_states + joint)
            places = legal.places[legal.counts == 0]
            known = outlook.of_joints[joint] = (
                int(self.of_places(np.unique(places), given).min(initial=UNREACHABLE)) + 1
            )
        return known


class ListBudgets:
    """Exact distances of a constraint's places. Made when the first budget is."""

    def __init__(self, constraint: ListConstraint) -> None:
        self._constraint = constraint
        self._automaton: ListAutomaton = constraint.automaton
        self._upper = Bound(constraint, None)
        saved = savings(constraint)
        self._lower = self._upper if saved is None else Bound(constraint, saved)
        self._found: dict[object, int] = {}

    @property
    def needs_search(self) -> bool:
        """Whether tokens reach beyond the ends of values, so that the bounds may differ."""
        return self._lower is not self._upper

    def is_generous(self, given: tuple[int, ...], most: int) -> bool:
        """Whether ``most`` tokens are certainly enough after any token from a place after ``given``. O(1)."""
        return self._upper.is_generous(given, most)

    def fewest(self, place: int, given: tuple[int, ...]) -> int:
        """The fewest tokens from a place to the end of the text."""
        upper = self._upper.of_place(place, given)
        if not self.needs_search or self._lower.of_place(place, given) == upper:
            return upper
        key = self._key(place, given)
        known = self._found.get(key)
        if known is None:
            if len(self._found) >= 64 * _MOST_KEPT:
                self._found.clear()
            known = self._found[key] = self._search(place, given, upper)
        return known

    def _key(self, place: int, given: tuple[int, ...]) -> object:
        return place, frozenset(given) if self._automaton.distinct else None, len(given)

    def is_within(self, place: int, given: tuple[int, ...], most: int) -> bool:
        """Whether ``most`` tokens are enough from a place to the end of the text."""
        upper = self._upper.of_place(place, given)
        if upper <= most or not self.needs_search or self._lower.of_place(place, given) > most:
            return upper <= most
        known = self._found.get(self._key(place, given))
        return (self._search(place, given, upper, most) if known is None else known) <= most

    def are_within(self, legal: Legal, given: tuple[int, ...], most: int) -> npt.NDArray[np.bool_]:
        """For each of a place's tokens, whether ``most`` more are enough after it: bool[T]."""
        within = np.zeros(len(legal), bool)
        same = np.flatnonzero(legal.counts == 0)
        places = legal.places[same]
        within[same] = self._upper.of_places(places, given) <= most
        if self.needs_search:
            unclear = same[~within[same]]
            if len(unclear) > 0:
                unclear = unclear[self._lower.of_places(legal.places[unclear], given) <= most]
            decided: dict[int, bool] = {}
            for k in unclear.tolist():
                place = int(legal.places[k])
                if place not in decided:
                    decided[place] = self.is_within(place, given, most)
                within[k] = decided[place]
        for k in np.flatnonzero(legal.counts).tolist():
            within[k] = self.is_within(int(legal.places[k]), given + legal.ends_of(k), most)
        return within

    def farthest(self, legal: Legal, given: tuple[int, ...]) -> int:
        """The largest number of tokens that the end can take after one of a place's tokens; -1 if there are none."""
        farthest = -1
        same = np.unique(legal.places[legal.counts == 0])
        if len(same) > 0:
            if self.needs_search:
                farthest = max(self.fewest(place, given) for place in same.tolist())
            else:
                farthest = int(self._upper.of_places(same, given).max())
        for k in np.flatnonzero(legal.counts).tolist():
            farthest = max(farthest, self.fewest(int(legal.places[k]), given + legal.ends_of(k)))
        return farthest

    def _search(self, place: int, given: tuple[int, ...], upper: int, most: int | None = None) -> int:
        """The fewest tokens, if they are fewer than ``upper``; else that. With ``most``, any number that is on the same
        side of it.

        Raises:
            UnsupportedError: it takes too long.
        """
        enough = self._upper.generous_budget(given)
        order = count()
        waiting = [(self._lower.of_place(place, given), 0, next(order), place, given)]
        nearest: dict[object, int] = {}
        while waiting:
            bound, depth, _, place, given = heapq.heappop(waiting)
            if bound >= upper or (most is not None and (bound > most or upper <= most)):
                break
            key = self._key(place, given)
            if nearest.get(key, UNREACHABLE) <= depth:
                continue
            nearest[key] = depth
            if len(nearest) > _MOST_SEARCHED:
                raise UnsupportedError(
                    "the tokens of this vocabulary reach beyond the ends of these values in so many ways that the "
                    f"fewest tokens of such a list take too long to find; with {enough:,} tokens left, nothing need be "
                    "searched for"
                )
            legal = self._constraint.legal(place, given)
            following = [(int(k), given) for k in np.unique(legal.places[legal.counts == 0]).tolist()]
            following += {
                (int(legal.places[k]), given + legal.ends_of(k)) for k in np.flatnonzero(legal.counts).tolist()
            }
            for after, values in following:
                if self._constraint.is_final(after, values):
                    upper = min(upper, depth + 1)
                    continue
                upper = min(upper, depth + 1 + self._upper.of_place(after, values))
                bound = depth + 1 + self._lower.of_place(after, values)
                if bound < upper:
                    heapq.heappush(waiting, (bound, depth + 1, next(order), after, values))
        return upper
