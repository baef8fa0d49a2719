"""One sequence's way through a constraint."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .bitmask import RowTarget, row_target
from .constraint import Constraint
from .errors import TokenNotAllowedError, TrieautoError, shorten
from .kernels.descriptor import RECORD_WORDS, TERMINATED, get_state, set_record, set_state
from .kernels.filling import DOES_NOT_FIT, DONE, allowed_tokens, fill_row, fill_rows, has_continuation
from .kernels.moving import REFUSED, accept, follow, forced_bytes, is_accepting

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

    Made by ``constraint.matcher()``. Its state is one number; the history is a chain of the earlier ones, shared with
    forks and never changed.
    """

    __slots__ = ("_constraint", "_history", "_length", "_record")

    def __init__(self, constraint: Constraint) -> None:
        if not isinstance(constraint, Constraint):
            raise TrieautoError(f"a matcher is made by constraint.matcher(), not from {shorten(constraint)}")
        self._constraint = constraint
        self._record = _new_record()
        self._history: _History = None
        self._length = 0
        set_record(self._record, constraint.descriptor_address, constraint.automaton.start)

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
                in the CPU's memory, or a ``TokenBitmask``. Bits beyond the vocabulary are cleared.
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
                self._constraint.make_ready(state)
        except OverflowError:
            raise _does_not_fit(target, index, self._constraint) from None

    def allowed_token_ids(self) -> npt.NDArray[np.int32]:
        """The ids of all legal tokens, stop ids included: int32, ascending."""
        while True:
            state, tokens = allowed_tokens(self._record, self._constraint.scratch_row)
            if state == DONE:
                return tokens  # type: ignore[no-any-return]
            self._constraint.make_ready(state)

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
        """Take several tokens one after the other, or none of them; whether they were taken."""
        ids, states, count = self._follow(token_ids)
        if count < len(ids):
            return False
        for state in states[:count].tolist():
            self._history = (state, self._history)
        self._length += count
        set_state(self._record, states[count])
        return True

    def validate_tokens(self, token_ids: Iterable[int]) -> int:
        """How many of these tokens could be accepted one after the other. Changes nothing."""
        return self._follow(token_ids)[2]

    def _follow(self, token_ids: Iterable[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
        try:
            iterator = iter(token_ids)
        except TypeError:
            raise TokenNotAllowedError(f"token ids must be given as a list, not as {shorten(token_ids)}") from None
        ids = [self._check_id(token_id) for token_id in iterator]
        tokens = np.array(ids, np.int64)
        states = np.empty(len(tokens) + 1, np.int64)
        return tokens, states, int(follow(self._record, tokens, states))

    def _check_id(self, token_id: int) -> int:
        try:
            checked = operator.index(token_id)
        except TypeError:
            raise TokenNotAllowedError(f"token id {shorten(token_id)} is not an integer") from None
        size = self._constraint.vocabulary.size
        if not 0 <= checked < size:
            raise TokenNotAllowedError(f"token id {checked:,} is outside the vocabulary of {size:,} ids")
        return checked

    # Time travel

    @property
    def num_accepted(self) -> int:
        """How many tokens have been accepted, a stop token included."""
        return self._length

    def rollback(self, num_tokens: int = 1) -> None:
        """Take back the last tokens, a stop token included. O(num_tokens).

        Raises:
            TrieautoError: a negative number, or more than were accepted.
        """
        num_tokens = _integer(num_tokens, "the number of tokens to roll back")
        if not 0 <= num_tokens <= self._length:
            raise TrieautoError(f"cannot roll back {num_tokens} tokens: {self._length} have been accepted")
        if num_tokens == 0:
            return
        history, state = self._history, 0
        for _ in range(num_tokens):
            state, history = history  # type: ignore[misc]
        self._history = history
        self._length -= num_tokens
        set_state(self._record, state)

    def reset(self) -> None:
        """Go back to before the first token."""
        self._history = None
        self._length = 0
        set_state(self._record, self._constraint.automaton.start)

    def fork(self) -> Matcher:
        """An independent matcher in the same situation. O(1). Copying a matcher does the same."""
        return _restored(self._constraint, self._history, self._length, get_state(self._record))

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
        return _unpickled, (self._constraint, states[::-1], get_state(self._record))

    # Where it stands

    @property
    def is_accepting(self) -> bool:
        """Whether the answer may end here: a stop token is legal."""
        return bool(is_accepting(self._record))

    @property
    def is_complete(self) -> bool:
        """Whether the answer is whole and nothing could follow: it may be ended without spending a stop token."""
        return bool(is_accepting(self._record)) and not has_continuation(self._record)

    def is_terminated(self) -> bool:
        """Whether a stop token was accepted. From then on only stop tokens are legal, and change nothing.

        A method, as in XGrammar, and not a property like the others.
        """
        return bool(get_state(self._record) == TERMINATED)

    @property
    def value(self) -> str | bytes | None:
        """The set's value, as it was given, once no other is possible (even if not all of it is written yet), or once
        a stop token has settled it; ``None`` before that, and for anything but a set."""
        values = self._constraint.automaton.values
        if values is None:
            return None
        state = get_state(self._record)
        if state == TERMINATED:
            before = self._history
            while state == TERMINATED:
                state, before = before  # type: ignore[misc]
            return values[0] if state == self._constraint.automaton.start else values.ending_at(state)
        return self._constraint.only_value(state)

    def jump_forward_string(self, limit: int = 4096) -> bytes:
        """The bytes, ``limit`` at most, that every continuation shares; none where the answer may end."""
        limit = _integer(limit, "limit")
        if not 0 <= limit < 2**63:
            raise TrieautoError(f"limit must not be negative, nor larger than any memory, but is {limit}")
        if get_state(self._record) == TERMINATED:
            return b""
        return bytes(forced_bytes(self._record, *self._constraint.spelled(get_state(self._record)), limit))

    def __repr__(self) -> str:
        where = "terminated" if self.is_terminated() else "complete" if self.is_complete else "open"
        return f"<Matcher: {where} after {self._length} tokens, of {self._constraint!r}>"


def fill_next_token_bitmasks(
    matchers: Sequence[Matcher], bitmask: Any, indices: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None
) -> None:
    """Write the masks of a batch in one call; each matcher may have its own constraint.

    Args:
        matchers: one for each row to write.
        bitmask: as in ``Matcher.fill_next_token_bitmask``. Rows that are not named stay as they are.
        indices: the row of each matcher; by default 0, 1, 2, ...

    Raises:
        TrieautoError: a bitmask or indices that do not fit.
    """
    target = row_target(bitmask)
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
        constraint = matchers[position].constraint
        constraint.make_ready(get_state(records[position]))


_ALL_ROWS = np.empty(0, np.int64)


def _checked_rows(indices: object, count: int) -> npt.NDArray[np.int64]:
    rows = np.asarray(indices)
    if rows.dtype.kind not in "iu" and rows.size > 0:
        raise TrieautoError(f"indices must be row numbers, not {shorten(indices)}")
    if rows.shape != (count,):
        raise TrieautoError(f"{count} matchers but indices of shape {rows.shape}")
    return np.ascontiguousarray(rows, np.int64)


def _integer(number: object, what: str) -> int:
    try:
        return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise TrieautoError(f"{what} must be an integer, not {shorten(number)}") from None


def _restored(constraint: Constraint, history: _History, length: int, state: int) -> Matcher:
    matcher = Matcher(constraint)
    matcher._history = history
    matcher._length = length
    set_state(matcher._record, state)
    return matcher


def _unpickled(constraint: Constraint, states: list[int], state: int) -> Matcher:
    history: _History = None
    for earlier in states:
        history = (earlier, history)
    return _restored(constraint, history, len(states), state)


def _does_not_fit(target: RowTarget, index: int, constraint: Constraint) -> TrieautoError:
    if not 0 <= index < target.rows:
        return TrieautoError(f"row {index} is outside this bitmask of {target.rows} rows")
    return TrieautoError(
        f"the bitmask is {target.row_words:,} words wide; {constraint.num_words:,} are needed for "
        f"{constraint.vocabulary.size:,} token ids"
    )
