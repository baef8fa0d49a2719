"""Lists of values and a vocabulary put together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..automaton import PrefixSpace
from ..constraint import READY_LIMIT, ROW_COUNT
from ..errors import TrieautoError, UnsupportedError, shorten
from ..kernels.descriptor import NO_BUDGET
from ..kernels.list_walk import list_forced, list_step, list_tokens
from ..place_constraint import Int32s, Mask, PlaceConstraint, one_state
from ..recent import Recent
from ..spelling import has_every_byte
from ..vocabulary import Vocabulary
from .automaton import UNBOUNDED, ListAutomaton, Place, with_list_prefix_space
from .budgets import ListBudgets
from .legal import Legal

if TYPE_CHECKING:
    from .matcher import ListMatcher


class ListConstraint(PlaceConstraint):
    """What may be generated of lists of values, in tokens. What was given belongs to where a matcher stands.

    Masks are found when needed: some microseconds inside a value, at the beginning of one as many tenths of a
    microsecond as tokens are legal, whatever the size of the set. The last ones are kept, 16 MB.
    """

    automaton: ListAutomaton  # type: ignore[assignment]
    start: Place
    """Where every text begins."""
    _arrays: tuple[npt.NDArray[Any], ...]
    _relaxed: dict[tuple[int, int], Legal]
    _legal: Recent[Legal]
    _masks_made: Recent[Mask]
    _budgets: ListBudgets | None

    def __init__(
        self,
        automaton: ListAutomaton,
        vocabulary: Vocabulary,
        *,
        prefix_space: PrefixSpace = "none",
        compile_seconds: float = 0.0,
    ) -> None:
        # What it says of the automaton to kernels is the set alone; matchers bring their masks (see ``ListMatcher``).
        super().__init__(
            one_state(automaton.items.arrays),
            vocabulary,
            walks_before_storing=0,
            prefix_space=prefix_space,
            compile_seconds=compile_seconds,
        )
        self._set(
            automaton=automaton,
            _relaxed={},
            _legal=Recent(READY_LIMIT // 2),
            _masks_made=Recent(READY_LIMIT // 2),
            _budgets=None,
            _arrays=automaton.arrays,
        )
        start = self.place_after((automaton.start, (), False), b"")
        assert start is not None
        self._set(start=start)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.automaton, self.vocabulary, self.prefix_space, self._compile_seconds)

    # Places

    def place_after(self, place: Place, data: bytes | npt.NDArray[np.uint8]) -> Place | None:
        """Where bytes lead, or None. O(bytes)."""
        at, given, _ = place
        data = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        after, is_final, ends = list_step(*self._arrays, at, np.array(given, np.int32), data)
        return None if after < 0 else (int(after), given + tuple(ends.tolist()), bool(is_final))

    def place_after_token(self, place: Place, token_id: int) -> Place | None:
        tables = self.vocabulary.tables
        first, last = tables.offsets[token_id : token_id + 2]
        return self.place_after(place, tables.data[first:last])

    def is_final(self, at: int, given: tuple[int, ...]) -> bool:
        """Whether the text may end at a place."""
        place = self.place_after((at, given, False), b"")
        return place is not None and place[2]

    def legal(self, at: int, given: tuple[int, ...]) -> Legal:
        """The tokens that may follow without a budget, and where they lead."""
        key = at, frozenset(given) if self.automaton.distinct else None, len(given)
        found = self._legal.get(key)
        if found is None:
            found = self._found_legal(self._arrays, 0, at, given)
            self._legal.add(key, found, found.nbytes)
        return found

    def relaxed_legal(self, at: int, slot: int = 0) -> Legal:
        """The same if values may be given again, and any number of them. ``slot``: how far the token has come."""
        found = self._relaxed.get((at, slot))
        if found is None:
            found = self._relaxed[at, slot] = self._found_legal(self.automaton.relaxed_arrays, slot, at, ())
        return found

    def _found_legal(self, arrays: tuple[npt.NDArray[Any], ...], slot: int, at: int, given: tuple[int, ...]) -> Legal:
        nodes, _, token_ids, max_length = self.vocabulary.tables.trie
        return Legal(*list_tokens(*arrays, nodes, token_ids, max_length, slot, at, np.array(given, np.int32)))

    # Masks

    def mask(self, place: Place, remaining: int) -> Mask:
        """What may follow if so many tokens are left, at least one."""
        at, given, is_final = place
        key = at, frozenset(given) if self.automaton.distinct else None, len(given)
        limit = None if self._is_generous(given, remaining) else remaining
        known = self._masks_made.get((key, limit))
        if known is not None:
            return known
        legal = self.legal(at, given)
        tokens = legal.tokens
        if limit is not None:
            tokens = tokens[self.budgets.are_within(legal, given, remaining - 1)]
        is_row = len(tokens) > ROW_COUNT
        mask = self.bits_of(tokens, is_final) if is_row else tokens
        return self._masks_made.add((key, limit), (mask, is_row, len(tokens)), mask.nbytes)

    def _is_generous(self, given: tuple[int, ...], remaining: int) -> bool:
        return remaining > NO_BUDGET // 2 or self.budgets.is_generous(given, remaining - 1)

    def is_within(self, place: Place, remaining: int) -> bool:
        """Whether the text can be finished from a place in so many tokens."""
        at, given, is_final = place
        if is_final or remaining > NO_BUDGET // 2:
            return remaining >= 0
        return self.budgets.is_generous(given, remaining) or self.budgets.is_within(at, given, remaining)

    def is_limited(self, place: Place, remaining: int) -> bool:
        """Whether so small a budget forbids a token here."""
        at, given, _ = place
        if self._is_generous(given, remaining):
            return False
        legal = self.legal(at, given)
        return not bool(self.budgets.are_within(legal, given, remaining - 1).all())

    # Budgets

    @property
    def budgets(self) -> ListBudgets:
        """The exact distances: made when first needed, about half a microsecond for each state of the trie."""
        if self._budgets is None:
            with self._lock:
                if self._budgets is None:
                    self._set(_budgets=ListBudgets(self))
        assert self._budgets is not None
        return self._budgets

    def fewest_tokens(self, place: Place) -> int:
        """The fewest tokens from a place to the end."""
        at, given, is_final = place
        return 0 if is_final else self.budgets.fewest(at, given)

    # Values

    def values_given(self, place: Place) -> tuple[Any, ...]:
        """The values of a text that ends at a place."""
        at, given, _ = place
        ends = (*given, at) if at < self.automaton.items.num_states else given
        return tuple(map(self.automaton.value_at, ends))

    def only_values(self, place: Place) -> tuple[Any, ...] | None:
        """The values that every text has that goes on from a place, or None if they are not certain yet. O(given + log
        K)."""
        at, given, _ = place
        automaton = self.automaton
        state = at
        if at >= automaton.items.num_states:
            joint = at - automaton.items.num_states
            if automaton.joints.closes[joint]:
                return tuple(map(automaton.value_at, given))
            if automaton.joints.may_close[joint] and not given and automaton.minimum == 0:
                return None
            state = 0
        more = automaton.maximum - len(given) - 1  # values beyond the one that is being written or comes next
        if more > 0 and automaton.minimum < automaton.maximum:
            return None
        this = self._only_one_below(state, given)
        if this is None:
            return None
        ends = (*given, this)
        if more > 0:
            # The others are certain only if there is one of them.
            other = self._only_one_below(0, ends)
            if other is None or (automaton.distinct and more > 1):
                return None
            ends += (other,) * more
        return tuple(map(automaton.value_at, ends))

    def _only_one_below(self, state: int, given: tuple[int, ...]) -> int | None:
        """Where the only value at or below a state that can still be given ends, or None if there are several."""
        values = self.automaton.sorted_values
        first, last = values.below(state)
        used = set(np.searchsorted(values.terminals, given).tolist()) if self.automaton.distinct else set()
        left = [rank for rank in range(first, min(last, first + len(used) + 2)) if rank not in used]
        return int(values.terminals[left[0]]) if len(left) == 1 else None

    def forced_bytes(self, place: Place, limit: int) -> bytes:
        """The bytes that every text shares from a place on."""
        at, given, _ = place
        return list_forced(*self._arrays, at, np.array(given, np.int32), limit).tobytes()  # type: ignore[no-any-return]

    def most_bytes(self) -> int | None:
        """More bytes than any text has; None if there is no most."""
        automaton = self.automaton
        if automaton.maximum == UNBOUNDED:
            return None
        lengths = np.sort([len(v.encode()) if isinstance(v, str) else len(v) for v in self._distinct_values()])
        longest = lengths[-automaton.maximum :] if automaton.distinct else lengths[-1:]
        times = 1 if automaton.distinct else automaton.maximum
        return times * int(longest.sum()) + (automaton.maximum + 1) * len(automaton.joints.flags)

    def _distinct_values(self) -> Sequence[str | bytes]:
        values = self.automaton.sorted_values
        return [values[rank] for rank in range(len(values))]

    # What it shares with others

    def matcher(self, max_tokens: int | None = None) -> ListMatcher:
        from .matcher import ListMatcher

        return ListMatcher(self, max_tokens)

    def content_tokens(self, state: int) -> Int32s:
        """The tokens that may come first. int32, in an order of their own.

        Raises:
            UnsupportedError: another state than the start.
        """
        if state != self.automaton.start:
            self._check_state(state)
        return self.legal(self.automaton.start, ()).tokens

    def _check_state(self, state: int) -> NoReturn:
        raise UnsupportedError(
            f"state {shorten(state)} of a list does not say which values were given: ask a matcher instead"
        )

    @property
    def nbytes(self) -> int:
        return self.automaton.nbytes + self._legal.nbytes + self._masks_made.nbytes

    def stats(self) -> dict[str, Any]:
        automaton = self.automaton
        return {
            "states": self.num_states,
            "engine": automaton.engine or "trie, and the values given",
            "values": len(automaton.sorted_values),
            "prefix_space": self.prefix_space,
            "stored_mask_entries": 0,
            "unreachable_values": 0,
            "mode": "lazy",
            "bytes": self.nbytes,
            "min_tokens": None if self._budgets is None else self.min_tokens,
            "ready_masks": len(self._masks_made),
            "ready_masks_made": len(self._masks_made),
            "compile_seconds": self._compile_seconds,
        }


def compile_lists(
    automaton: ListAutomaton, vocabulary: Vocabulary, mode: str, prefix_space: PrefixSpace | None
) -> ListConstraint:
    """Put lists and a vocabulary together. O(distinct bytes).

    Raises:
        UnsupportedError: eager masks; a vocabulary that lacks single bytes of the values or of what stands around them:
            not all that is possible in bytes would be possible in tokens.
    """
    begin = time.perf_counter()
    if mode == "eager":
        raise UnsupportedError("lists of values have no eager mode: their masks depend on the values given")
    if prefix_space is None:
        prefix_space = "optional" if vocabulary.prefix_space and automaton.parts[0].accepts(b"") else "none"
    extended = with_list_prefix_space(automaton, prefix_space)
    missing = [part for part in (automaton.items, *extended.parts) if part and not has_every_byte(part, vocabulary)]
    if missing:
        raise _missing_bytes(extended, vocabulary)
    return ListConstraint(extended, vocabulary, prefix_space=prefix_space, compile_seconds=time.perf_counter() - begin)


def _missing_bytes(automaton: ListAutomaton, vocabulary: Vocabulary) -> TrieautoError:
    is_single = vocabulary.tables.single_bytes
    labels = np.concatenate([automaton.items.labels[1:], automaton.joints.labels])
    first = int(labels[~is_single[labels]][0])
    values = automaton.sorted_values
    example = next(
        (
            v
            for v in (values[rank] for rank in range(len(values)))
            if first in (v.encode() if isinstance(v, str) else v)
        ),
        None,
    )
    where = "what stands around the values" if example is None else shorten(example)
    return UnsupportedError(
        f"lists need every single byte of their values as a token, and this vocabulary has none for {bytes([first])!r} "
        f"(in {where})"
    )


def _restored(
    automaton: ListAutomaton, vocabulary: Vocabulary, prefix_space: PrefixSpace, compile_seconds: float
) -> ListConstraint:
    return ListConstraint(automaton, vocabulary, prefix_space=prefix_space, compile_seconds=compile_seconds)
