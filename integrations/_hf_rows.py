"""Which matcher belongs to which row of a generation loop, found from the rows' generated ids alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trieauto import Matcher
from trieauto.errors import TrieautoError


@dataclass(frozen=True, slots=True)
class Row:
    """Where one row stands. Immutable: ``matcher`` is forked before it moves, so that rows can share it.

    Attributes:
        start: the matcher of the row's prompt before the first token: its constraint and its budget.
        matcher: has accepted the row's first ``accepted`` generated ids.
        accepted: how many ids of the row are within the language.
        is_outside: whether the row has more ids than that. Nothing can bring it back.
    """

    start: Matcher
    matcher: Matcher
    accepted: int
    is_outside: bool

    @property
    def is_done(self) -> bool:
        """Whether no further token could change the answer: its value is determined, or it left the language."""
        return self.is_outside or is_determined(self.matcher)

    def follow(self, ids: NDArray[np.int64], shared: int) -> Row:
        """The row with the generated ids ``ids``, of which the first ``shared`` are this row's too."""
        if self.is_outside and shared > self.accepted:
            return self
        start = min(shared, self.accepted)
        if start == len(ids) and not self.is_outside and start == self.accepted:
            return self
        matcher = self.matcher.fork()
        matcher.rollback(self.accepted - start)
        size = matcher.constraint.vocabulary.size
        accepted = start
        for token_id in ids[start:].tolist():
            # Ids beyond the vocabulary turn up in made-up histories: to the matcher they would be an error.
            if not 0 <= token_id < size or not matcher.accept_token(token_id):
                break
            accepted += 1
        return Row(self.start, matcher, accepted, is_outside=accepted < len(ids))


def is_determined(matcher: Matcher) -> bool:
    """Whether the answer can no longer change, whatever text is still to come, or its budget is over."""
    return matcher.is_terminated() or matcher.is_complete or matcher.value is not None


class RowTracker:
    """Follows the rows of a batch from call to call.

    A row is looked for among the rows of the last call: at its own place, then as the continuation of any of them
    (beams change places). Otherwise what it shares with the row that had its place is kept and the rest replayed
    (assisted decoding goes back to earlier lengths). So a step costs one move of a matcher per row, plus one
    vectorised comparison of the generated ids, and only the rows of one call are kept.

    Args:
        starts: for each prompt, a matcher before the first token; the same object for prompts with the same
            constraint and budget. A batch of n rows gives each an equal share of neighbouring rows, which is how
            ``generate`` lays out beams and returned sequences.
    """

    def __init__(self, starts: Sequence[Matcher]) -> None:
        self._roots = [Row(start, start, 0, is_outside=False) for start in starts]
        self._rows: list[Row] = []
        self._ids = np.empty((0, 0), dtype=np.int64)
        self.has_strays = False
        """Whether a row of the last call is outside the language and no step of a loop led there, so that its ids
        cannot have been generated under these constraints."""

    def forget(self) -> None:
        """Drop all rows: the next call starts a new batch."""
        self._rows = []
        self._ids = np.empty((0, 0), dtype=np.int64)

    def rows(self, ids: NDArray[np.int64]) -> list[Row]:
        """The rows of a batch, given what each has generated so far (int64, rows × generated tokens).

        Raises:
            TrieautoError: the rows cannot be shared out equally among the prompts.
        """
        num_rows = len(ids)
        share = rows_of_each(num_rows, len(self._roots))
        known_length, length = self._ids.shape[1], ids.shape[1]
        shared = _shared_lengths(self._ids, ids)
        parents: dict[tuple[Matcher, bytes], Row] | None = None
        rows: list[Row] = []
        self.has_strays = False
        for i in range(num_rows):
            root = self._roots[i // share]
            at_place = self._rows[i] if i < len(shared) and self._rows[i].start is root.start else None
            if at_place is not None and shared[i] == known_length:
                rows.append(at_place.follow(ids[i], known_length))
                self.has_strays |= rows[-1].is_outside and length > known_length + 1
                continue
            if parents is None:
                parents = {(row.start, self._ids[j].tobytes()): row for j, row in enumerate(self._rows)}
            parent = parents.get((root.start, ids[i, :known_length].tobytes()))
            if parent is not None:
                rows.append(parent.follow(ids[i], known_length))
                self.has_strays |= rows[-1].is_outside and length > known_length + 1
                continue
            kept = 0 if at_place is None else shared[i]
            row = (at_place or root).follow(ids[i], kept)
            rows.append(row)
            # Drafts are taken back to a token that was allowed, or to any token after the stop token.
            is_taken_back = kept == length or (kept == length - 1 and row.matcher.is_terminated())
            self.has_strays |= row.is_outside and not is_taken_back
        self._rows = rows
        self._ids = ids
        return rows


def rows_of_each(num_rows: int, num_prompts: int) -> int:
    """How many neighbouring rows of a batch each prompt has.

    Raises:
        TrieautoError: the rows cannot be shared out equally among the prompts.
    """
    share, rest = divmod(num_rows, num_prompts)
    if rest or not share:
        raise TrieautoError(
            f"a batch of {num_rows} rows cannot be shared out among {num_prompts} prompts: give one "
            "constraint and one budget, or one for each prompt"
        )
    return share


def _shared_lengths(old: NDArray[np.int64], new: NDArray[np.int64]) -> list[int]:
    """For each row that both have, how many leading ids are the same."""
    num_rows, length = min(len(old), len(new)), min(old.shape[1], new.shape[1])
    differs = old[:num_rows, :length] != new[:num_rows, :length]
    if not length:
        return [0] * num_rows
    lengths: list[int] = np.where(differs.any(axis=1), differs.argmax(axis=1), length).tolist()
    return lengths
