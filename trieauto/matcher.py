"""One sequence's way through a constraint."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .automaton import Automaton
from .bitmask import RowTarget, row_target
from .budgets import checked_budget
from .constraint import Constraint
from .errors import BudgetError, TokenNotAllowedError, TrieautoError, shorten
from .kernels.descriptor import NO_BUDGET, RECORD_WORDS, TERMINATED, get_remaining, get_state, move_to, set_record
from .kernels.filling import DOES_NOT_FIT, DONE, allowed_tokens, fill_row, fill_rows, has_continuation
from .kernels.forcing import forced_bytes, forced_bytes_in_tokens
from .kernels.moving import REFUSED, accept, follow, is_accepting
from .packing import as_integer

_CHUNK = 1024
_free_records: list[int] = []
_chunks: list[npt.NDArray[np.int64]] = []  # records never move and are never given back to the system

_History = tuple[int, "_History"] | None


def _new_record() -> int:
    """The address of a record that nobody uses. Popping and appending are atomic, so no lock is needed."""
    while True:
        try:
            return _free_records.pop()
        except IndexError:
            chunk = np.zeros((_CHUNK, RECORD_WORDS), np.int64)
            _chunks.append(chunk)
            _free_records.extend(range(chunk.ctypes.data, chunk.ctypes.data + chunk.nbytes, 8 * RECORD_WORDS))


class Matcher:
    """Which tokens are legal now, and what has been accepted so far. One for each sequence; one thread at a time.

    Made by ``constraint.matcher()``. A stop token is legal iff the answer may end (appendix G.5 of the trie paper), and
    a budget holds whatever is chosen (section 3.2 of the reachability paper). It is two numbers, the state and how many
    tokens its budget still has; the history is a chain of the earlier states, shared with forks and never changed.
    """

    __slots__ = ("_constraint", "_history", "_length", "_record")

    def __init__(self, constraint: Constraint, max_tokens: int | None = None) -> None:
        if not isinstance(constraint, Constraint):
            raise TrieautoError(f"a matcher is made by constraint.matcher(), not from {shorten(constraint)}")
        self._begin(constraint, constraint.descriptor_address, constraint.automaton.start)
        if max_tokens is not None:
            self.set_budget(max_tokens)

    def _begin(self, constraint: Constraint, descriptor: int, state: int) -> None:
        """Before the first token, without a budget. ``descriptor``: its address."""
        self._constraint = constraint
        self._record = _new_record()
        self._history: _History = None
        self._length = 0
        set_record(self._record, descriptor, state, NO_BUDGET)

    def __del__(self) -> None:
        record = getattr(self, "_record", None)
        if record is not None:
            del self._record  # whatever happens, a record is given back once
            _free_records.append(record)

    @property
    def constraint(self) -> Constraint:
        """What this matcher follows."""
        return self._constraint

    # Masks

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> None:
        """Write the legal tokens into one row of a bitmask; the whole row, whatever was there.

        Args:
            bitmask: int32[rows, words] (or int32[words]) with words >= ceil(size / 32): a numpy array, a torch tensor
                in the CPU's memory, or a ``TokenBitmask``. Bits beyond the vocabulary are cleared. It is looked at
                closely when it is first used: leave its shape and strides alone from then on.
            index: the row.

        Raises:
            TrieautoError: a bitmask of another kind, or too small.
        """
        target = row_target(bitmask)
        if type(index) is not int:
            index = _integer(index, "a row")
        try:
            while (state := fill_row(self._record, index, target.address)) != DONE:
                if state == DOES_NOT_FIT:
                    raise _does_not_fit(target, index, self._constraint)
                self._make_ready(state)
        except OverflowError:
            raise _does_not_fit(target, index, self._constraint) from None

    def allowed_token_ids(self) -> npt.NDArray[np.int32]:
        """The ids of all legal tokens, stop ids included: int32, ascending."""
        while True:
            state, tokens = allowed_tokens(self._record, self._constraint.scratch_row)
            if state == DONE:
                return tokens  # type: ignore[no-any-return]
            self._make_ready(state)

    def _make_ready(self, state: int) -> None:
        """Have the mask made that a kernel asks for."""
        self._constraint.make_ready(state, get_remaining(self._record))

    # Tokens

    def accept_token(self, token_id: int) -> bool:
        """Take one token, if it is legal; otherwise nothing changes.

        Returns:
            Whether it was legal.

        Raises:
            TokenNotAllowedError: ``token_id`` is not an id of this vocabulary at all. O(bytes of the token).
        """
        if type(token_id) is not int:
            token_id = self._check_id(token_id)
        try:
            before = accept(self._record, token_id)
        except OverflowError:  # beyond 64 bits
            before = REFUSED
        if before == REFUSED:
            self._check_id(token_id)
            return False
        self._history = (before, self._history)
        self._length += 1
        return True

    def accept_tokens(self, token_ids: Iterable[int]) -> bool:
        """Take several tokens one after the other, or none of them.

        Args:
            token_ids: the tokens, in order.

        Returns:
            Whether they were taken.

        Raises:
            TokenNotAllowedError: one of ``token_ids`` is not an id of this vocabulary at all.
        """
        ids, states, count = self._follow(token_ids)
        if count < len(ids):
            return False
        for state in states[:count].tolist():
            self._history = (state, self._history)
        self._length += count
        move_to(self._record, states[count], get_remaining(self._record) - count)
        return True

    def validate_tokens(self, token_ids: Iterable[int]) -> int:
        """How many of these tokens could be accepted one after the other. Changes nothing.

        Args:
            token_ids: the tokens, in order.

        Raises:
            TokenNotAllowedError: one of ``token_ids`` is not an id of this vocabulary at all.
        """
        return self._follow(token_ids)[2]

    def _follow(self, token_ids: Iterable[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
        tokens = np.array(self._checked_ids(token_ids), np.int64)
        states = np.empty(len(tokens) + 1, np.int64)
        return tokens, states, int(follow(self._record, tokens, states))

    def _checked_ids(self, token_ids: Iterable[int]) -> list[int]:
        try:
            if isinstance(token_ids, (bytes, bytearray)):
                raise TypeError  # its bytes are integers, but no token ids
            iterator = iter(token_ids)
        except TypeError:
            raise TokenNotAllowedError(f"token ids must be given as a list, not as {shorten(token_ids)}") from None
        return [self._check_id(token_id) for token_id in iterator]

    def _check_id(self, token_id: int) -> int:
        try:
            checked = operator.index(token_id)
        except TypeError:
            raise TokenNotAllowedError(f"token id {shorten(token_id)} is not an integer") from None
        size = self._constraint.vocabulary.size
        if not 0 <= checked < size:
            raise TokenNotAllowedError(f"token id {shorten(checked)} is outside the vocabulary of {size:,} ids")
        return checked

    # Time travel

    @property
    def num_accepted(self) -> int:
        """How many tokens have been accepted, a stop token included."""
        return self._length

    def rollback(self, num_tokens: int = 1) -> None:
        """Take back the last tokens, a stop token included; the budget has them again. O(num_tokens).

        Raises:
            TrieautoError: a negative number, or more than were accepted.
        """
        num_tokens = self._checked_rollback(num_tokens)
        if num_tokens == 0:
            return
        history, state = self._history, 0
        for _ in range(num_tokens):
            state, history = history  # type: ignore[misc]
        self._history = history
        self._length -= num_tokens
        move_to(self._record, state, get_remaining(self._record) + num_tokens)

    def _checked_rollback(self, num_tokens: int) -> int:
        num_tokens = _integer(num_tokens, "the number of tokens to roll back")
        if not 0 <= num_tokens <= self._length:
            raise TrieautoError(f"cannot roll back {num_tokens} tokens: {self._length} have been accepted")
        return num_tokens

    def reset(self) -> None:
        """Go back to before the first token. The budget has the tokens again that were accepted."""
        move_to(self._record, self._constraint.automaton.start, get_remaining(self._record) + self._length)
        self._history = None
        self._length = 0

    def fork(self) -> Matcher:
        """An independent matcher in the same situation. O(1). Copying a matcher does the same."""
        return _restored(
            self._constraint, self._history, self._length, get_state(self._record), get_remaining(self._record)
        )

    def __copy__(self) -> Matcher:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> Matcher:
        return self.fork()

    def __reduce__(self) -> tuple[object, ...]:
        states = []
        history = self._history
        while history is not None:
            state, history = history
            states.append(state)
        return _unpickled, (self._constraint, states[::-1], get_state(self._record), get_remaining(self._record))

    # The budget

    def set_budget(self, max_tokens: int | None) -> None:
        """Give the sequence ``max_tokens`` more tokens from now on, whatever it had; None for as many as it likes.

        From then on a token is legal only if the answer can still be finished within the tokens that are left after
        it (law 6; section 3.2 of the reachability paper). A stop token costs one, but is not needed when the budget
        ends: with none left the answer is whole, and only stop tokens are legal. ``rollback`` and ``reset`` give the
        tokens back that they take back, but do not undo this. 2**62 tokens and more count as None.

        Raises:
            BudgetError: the end takes more tokens than that; nothing has changed then.
            TrieautoError: not an integer, or negative.
        """
        budget = checked_budget(max_tokens)
        if budget < NO_BUDGET and not self._is_enough(budget):
            raise BudgetError(self.min_tokens_to_finish, budget)
        move_to(self._record, get_state(self._record), budget)

    def _is_enough(self, budget: int) -> bool:
        """Whether the end can be reached in so many tokens."""
        return self.min_tokens_to_finish <= budget

    @property
    def remaining_tokens(self) -> int | None:
        """How many tokens the budget still has; None without one."""
        remaining = get_remaining(self._record)
        # Tokens count down from NO_BUDGET too; no sequence is long enough to come near any other budget.
        return None if remaining > NO_BUDGET // 2 else max(0, remaining)

    @property
    def min_tokens_to_finish(self) -> int:
        """The fewest tokens from here to the end, without a stop token; 0 where the answer may end here.

        O(1); the first call for a constraint costs what ``constraint.distances()`` costs.
        """
        state = get_state(self._record)
        return 0 if state == TERMINATED else self._constraint.min_tokens_from(state)

    @property
    def is_limited_by_budget(self) -> bool:
        """Whether the budget forbids a token here that would be legal without it. O(tokens legal without it), at most
        once for each state with many."""
        state, remaining = get_state(self._record), self.remaining_tokens
        if state == TERMINATED or remaining is None:
            return False
        return self._constraint.most_tokens_after(state) > remaining - 1

    # Where it stands

    @property
    def is_accepting(self) -> bool:
        """Whether the answer may end here: a stop token is legal."""
        return bool(is_accepting(self._record))

    @property
    def is_complete(self) -> bool:
        """Whether the answer is whole and nothing could follow, the budget considered: it may be ended without spending
        a stop token."""
        return bool(is_accepting(self._record)) and not self._has_continuation()

    def _has_continuation(self) -> bool:
        """Whether any token but a stop token is legal now."""
        return bool(has_continuation(self._record))

    def is_terminated(self) -> bool:
        """Whether a stop token was accepted. From then on only stop tokens are legal, and change nothing.

        A method, as in XGrammar, and not a property like the others.
        """
        return bool(get_state(self._record) == TERMINATED)

    @property
    def value(self) -> str | bytes | tuple[Any, ...] | None:
        """The set's value, as it was given, once no other is possible (even if not all of it is written yet), or once
        it is settled by a stop token or by a budget that leaves nothing more to write; ``None`` before that, and for
        anything but a set. For lists of values (``several``) the tuple of them.

        (Before its end a budget does not count: several values may be possible but for it.)
        """
        values = self._constraint.automaton.values
        if values is None:
            return None
        state, before = get_state(self._record), self._history
        is_settled = state == TERMINATED
        while state == TERMINATED:
            state, before = before  # type: ignore[misc]
        if not is_settled:
            value = self._constraint.only_value(state)
            if value is not None or self.remaining_tokens is None or not self.is_complete:
                return value
        return values[0] if state == self._constraint.automaton.start else values.ending_at(state)

    def jump_forward_string(self, limit: int = 4096) -> bytes:
        """The bytes, ``limit`` at most, that every continuation shares; none where the answer may end. (In an automaton
        over tokens, and in canonical tokens, always none: bytes are not looked at.)

        Continuations that a budget forbids count too, unless it forbids all.

        Raises:
            TrieautoError: a ``limit`` that is negative or no integer.
        """
        limit = _integer(limit, "limit")
        if not 0 <= limit < 2**63:
            raise TrieautoError(f"limit must not be negative, nor larger than any memory, but is {limit}")
        return b"" if get_state(self._record) == TERMINATED or self.is_complete else self._forced_bytes(limit)

    def _forced_bytes(self, limit: int) -> bytes:
        if not isinstance(self._constraint.automaton, Automaton):
            return b""
        find = forced_bytes if self._constraint.has_every_byte else forced_bytes_in_tokens
        return bytes(find(self._record, limit))

    def __repr__(self) -> str:
        where = "terminated" if self.is_terminated() else "complete" if self.is_complete else "open"
        left = "" if self.remaining_tokens is None else f", {self.remaining_tokens:,} left"
        return f"<Matcher: {where} after {self._length} tokens{left}, of {self._constraint!r}>"


def fill_next_token_bitmasks(
    matchers: Sequence[Matcher], bitmask: Any, indices: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None
) -> None:
    """Write the masks of a batch in one call.

    Args:
        matchers: a list, one for each row to write; each may have its own constraint and its own budget.
        bitmask: as in ``Matcher.fill_next_token_bitmask``. Rows that are not named stay as they are.
        indices: the row of each matcher; by default 0, 1, 2, ... Of those for one row the last is written.

    Raises:
        TrieautoError: a bitmask or indices that do not fit.
    """
    if indices is None and type(matchers) is list and len(matchers) == 1 and isinstance(matchers[0], Matcher):
        matchers[0].fill_next_token_bitmask(bitmask)  # without the array of a batch, which costs as much as the mask
        return
    target = row_target(bitmask)
    if not isinstance(matchers, (list, tuple, Sequence, np.ndarray)):  # a set, say, whose order means nothing
        raise TrieautoError(f"matchers must be a list of Matcher objects, not {shorten(matchers)}")
    try:
        records = np.array([matcher._record for matcher in matchers], np.int64)
    except (AttributeError, TypeError):
        raise TrieautoError(f"matchers must be a list of Matcher objects, not {shorten(matchers)}") from None
    rows = _ALL_ROWS if indices is None else _checked_rows(indices, len(records))
    if indices is None and len(records) > target.rows:
        raise TrieautoError(f"{len(records)} matchers for a bitmask of {target.rows} rows")
    position = 0
    while (position := fill_rows(records, position, rows, target.address)) != DONE:
        if position <= DOES_NOT_FIT:
            position = DOES_NOT_FIT - position
            raise _does_not_fit(
                target, position if indices is None else int(rows[position]), matchers[position].constraint
            )
        matchers[position]._make_ready(get_state(records[position]))


_ALL_ROWS = np.empty(0, np.int64)
_LAST_ROW = np.iinfo(np.int64).max


def _checked_rows(indices: object, count: int) -> npt.NDArray[np.int64]:
    rows = np.asarray(indices)
    if rows.dtype.kind not in "iu" and rows.size > 0:
        raise TrieautoError(f"indices must be row numbers, not {shorten(indices)}")
    if rows.shape != (count,):
        raise TrieautoError(f"{count} matchers but indices of shape {rows.shape}")
    if rows.dtype == np.uint64 and rows.size > 0 and rows.max() > _LAST_ROW:
        raise TrieautoError(f"row {rows.max()} is outside this bitmask")
    return np.ascontiguousarray(rows, np.int64)


def _integer(number: object, what: str) -> int:
    checked = as_integer(number)
    if checked is None:
        raise TrieautoError(f"{what} must be an integer, not {shorten(number)}")
    return checked


def _restored(constraint: Constraint, history: _History, length: int, state: int, remaining: int) -> Matcher:
    matcher = Matcher(constraint)
    matcher._history = history
    matcher._length = length
    if remaining <= NO_BUDGET // 2:
        constraint.distances()  # those of an unpickled constraint may not be there yet
    move_to(matcher._record, state, remaining)
    return matcher


def _unpickled(constraint: Constraint, states: list[int], state: int, remaining: int) -> Matcher:
    history: _History = None
    for earlier in states:
        history = (earlier, history)
    return _restored(constraint, history, len(states), state, remaining)


def _does_not_fit(target: RowTarget, index: int, constraint: Constraint) -> TrieautoError:
    if not 0 <= index < target.rows:
        return TrieautoError(f"row {index} is outside this bitmask of {target.rows} rows")
    return TrieautoError(
        f"the bitmask is {target.row_words:,} words wide; {constraint.num_words:,} are needed for "
        f"{constraint.vocabulary.size:,} token ids"
    )
