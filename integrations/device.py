"""Masks on the device: constraints as tensors, followed and applied for a whole batch by tensor operations alone.

The trie paper's section H.6, with the idea of STATIC (its reference 30): a set's transitions by tokens as a sparse
matrix, for vocabularies of any size. The host neither sees the tokens nor waits for them: nothing is copied from the
device, and all shapes are known beforehand, so that a step can be part of a CUDA graph. Needs torch alone.

>>> tables = DeviceConstraints([constraint], device="cuda")
>>> states = tables.start_states([constraint] * batch_size)
>>> while ...:
...     tables.apply_(logits, states)
...     token_ids = logits.argmax(-1)
...     states = tables.advance(states, token_ids)
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from trieauto import Constraint, Matcher, Vocabulary
from trieauto.errors import TrieautoError, UnsupportedError, VocabularyError, shorten
from trieauto.packing import as_integer
from trieauto.transitions import MAX_ENTRIES, TokenTransitions, token_transitions

from ._device_tensors import GrowingTensor

UNCONSTRAINED = 0
"""State of a row that every token is legal for; it keeps this state, whatever its tokens."""
OUTSIDE = 1
"""State of a row that has left the language by a token that was not legal: only stop ids are, from then on."""
TERMINATED = 2
"""State of a row whose answer a stop token has ended: only stop ids are legal."""
NO_BUDGET = 2**31 - 1
"""As many tokens as a row likes, where others of the batch have budgets."""

WIDE = 1024
"""Legal tokens. A state that has more, and more than a sixteenth of the vocabulary, has a row as wide as that."""

_NO_KEY = 2**63 - 1
_NEVER = 2**15 - 1  # tokens to the end, in wide rows: the token is not legal
_INTEGERS = (torch.int64, torch.int32)


class DeviceConstraints:
    """The transitions of any number of constraints, in one table on a device.

    A row's state is one number, the row of the table. ``advance`` finds the next one by a binary search for (state,
    token) among all transitions, and ``apply_`` reads the legal tokens of a state side by side. So a step costs, for B
    rows, a constant number of operations on tensors of B × (most legal tokens of a state) numbers, besides setting
    B × width logits to minus infinity, and no more for many constraints than for one.

    - Masks and moves equal those of the constraints' matchers, with and without budgets.
    - Memory is 12 bytes a transition and 16 a state that tokens reach, and up to half as much again as room to grow.
      (With tokens for all single bytes that is every state of a set's trie: 10,000 tool names have 94,000 states and
      336,000 transitions in Qwen's vocabulary, 5.5 MB.)
    - States with very many legal tokens (the first one of a very large set, or inside of strings; see ``WIDE``) have a
      row of two bytes for each token of the vocabulary besides. If there are any, ``apply_`` reads one for each row of
      the batch.
    - A language in which any text may follow in many states (a JSON string of up to 40 characters, say) has more
      transitions than are allowed, and is refused. Its masks are for matchers.

    ``add`` may be called while the tables are in use, by one thread at a time with ``advance`` and ``apply_``; states
    keep their numbers. Nothing is ever taken out: drop the object instead.

    Args:
        constraints: the first ones, as for ``add``.
        device: where the tables are. All tensors passed to methods must be there.
        vocabulary: of all constraints; needed only if there are none yet.
        max_entries: how many transitions the table may hold, those of stop ids included.

    Raises:
        TrieautoError: neither a constraint nor a vocabulary; what is no constraint or vocabulary.
        UnsupportedError, VocabularyError: as for ``add``.
    """

    def __init__(
        self,
        constraints: Iterable[Constraint] = (),
        device: torch.device | str | int = "cpu",
        *,
        vocabulary: Vocabulary | None = None,
        max_entries: int = MAX_ENTRIES,
    ) -> None:
        if not isinstance(constraints, Iterable):
            raise TrieautoError(f"expected a list of constraints, not {shorten(constraints)}")
        constraints = list(constraints)
        if vocabulary is None:
            if not constraints:
                raise TrieautoError("no constraint was given: pass some, or the vocabulary of those to come")
            _check_constraint(constraints[0])
            vocabulary = constraints[0].vocabulary
        if not isinstance(vocabulary, Vocabulary):
            raise TrieautoError(f"expected a Vocabulary, not {shorten(vocabulary)}")
        limit = as_integer(max_entries)
        if limit is None or not 0 <= limit < 2**31:
            raise TrieautoError(f"max_entries must be a number of transitions below 2**31, not {shorten(max_entries)}")
        self.vocabulary = vocabulary
        self.max_entries = limit
        self.generation = 0
        """Changes whenever captured CUDA graphs must be captured anew: a tensor has moved, or rows have grown."""
        self._starts: dict[Constraint, int] = {}
        self._lock = threading.Lock()
        self._width = 0
        stop_ids = np.array(vocabulary.stop_token_ids, np.int64)
        num_stops = len(stop_ids)
        with torch.inference_mode(False):

            def growing(contents: npt.ArrayLike, dtype: torch.dtype, fill: int = 0) -> GrowingTensor:
                return GrowingTensor(torch.as_tensor(np.asarray(contents)).to(device, dtype), fill)

            # The key of a transition is state * size + token; keys ascend.
            self._keys = growing(
                np.concatenate([state * vocabulary.size + stop_ids for state in (OUTSIDE, TERMINATED)]),
                torch.int64,
                _NO_KEY,
            )
            self._targets = growing(np.repeat([OUTSIDE, TERMINATED], num_stops), torch.int32)
            # Those of state s are the ones from offsets[s] to offsets[s + 1].
            self._offsets = growing([0, 0, num_stops, 2 * num_stops], torch.int64)
            # Tokens from a state to the end: -1 after what is legal under any budget, even that of no token.
            self._distances = growing([-1, -1, -1], torch.int32)
            self._wide_of = growing([0, 0, 0], torch.int32)  # which wide row a state has; 0 for none
            self._wide = growing(np.full((1, vocabulary.size), _NEVER), torch.int16)
            self.device = self._keys.tensor.device
            self._grow(num_stops)
        for constraint in constraints:
            self.add(constraint)

    @property
    def num_constraints(self) -> int:
        """How many different constraints were added."""
        return len(self._starts)

    @property
    def num_states(self) -> int:
        """Rows of the table, the three of states that stand for no place in a constraint included."""
        return self._distances.length

    @property
    def num_entries(self) -> int:
        """Transitions of all states, those of stop ids included."""
        return self._keys.length

    @property
    def width(self) -> int:
        """How many tokens ``apply_`` reads for each row: those of the state that has most, wide rows aside."""
        return self._width

    @property
    def nbytes(self) -> int:
        """Memory on the device, in bytes."""
        return sum(each.nbytes for each in self._growing) + self._columns.nbytes

    @property
    def _growing(self) -> tuple[GrowingTensor, ...]:
        return self._keys, self._targets, self._offsets, self._distances, self._wide_of, self._wide

    @property
    def _has_wide(self) -> bool:
        return self._wide.length > 1  # the first one stands for none

    def __repr__(self) -> str:
        return (
            f"<DeviceConstraints on {self.device}: {self.num_constraints} constraints, {self.num_states:,} states, "
            f"{self.num_entries:,} transitions>"
        )

    # Constraints

    def add(self, constraint: Constraint) -> int:
        """The state before the first token of a constraint, which is added if it is new.

        Costs what ``constraint.distances()`` costs, about 0.1 µs a transition, and a copy to the device.

        Raises:
            UnsupportedError: it has more transitions than there is room for, or answers of more than 32,766 tokens from
                a wide state on.
            VocabularyError: it was compiled for another vocabulary.
            TrieautoError: not a constraint.
        """
        _check_constraint(constraint)
        with self._lock, torch.inference_mode(False):
            if constraint not in self._starts:
                if constraint.vocabulary.fingerprint != self.vocabulary.fingerprint:
                    raise VocabularyError("the constraints of one batch must be compiled for the same vocabulary")
                transitions = token_transitions(constraint, max(0, self.max_entries - self.num_entries))
                self._starts[constraint] = self._append(transitions)
            return self._starts[constraint]

    def _append(self, added: TokenTransitions) -> int:
        first, had_wide = self.num_states, self._has_wide
        counts = np.diff(added.offsets)
        is_wide = counts > max(WIDE, self.vocabulary.size // 16)
        wide_rows = self._wide_rows(added, np.flatnonzero(is_wide))  # may refuse, and nothing has changed yet
        sources = np.repeat(np.arange(first, first + added.num_states), counts)
        targets = np.where(added.targets < 0, TERMINATED, added.targets + first)
        wide_of = np.where(is_wide, self._wide.length - 1 + np.cumsum(is_wide), 0)
        news = (
            (self._keys, sources * self.vocabulary.size + added.tokens),
            (self._targets, targets),
            (self._offsets, added.offsets[1:] + self.num_entries),
            (self._wide, wide_rows),
            (self._wide_of, wide_of),
            (self._distances, added.distances),
        )
        arrays = [(growing, torch.from_numpy(array).to(growing.tensor.dtype)) for growing, array in news]
        have_moved = [growing.append(tensor) for growing, tensor in arrays]
        if any(have_moved) or self._has_wide != had_wide:
            self.generation += 1
        self._grow(int(counts[~is_wide].max(initial=1)))
        return first + added.start

    def _wide_rows(self, added: TokenTransitions, states: npt.NDArray[np.int64]) -> npt.NDArray[np.int16]:
        """For each of these states, how many tokens the end takes after each token of the vocabulary."""
        rows = np.full((len(states), self.vocabulary.size), _NEVER, np.int16)
        for row, state in zip(rows, states.tolist(), strict=True):
            places = slice(*added.offsets[state : state + 2].tolist())
            targets = added.targets[places]
            distances = np.where(targets < 0, -1, added.distances[targets])
            if distances.max() >= _NEVER:
                raise UnsupportedError(
                    f"a state with {len(targets):,} legal tokens leads to one from which the end takes "
                    f"{int(distances.max()):,} more: with so many legal tokens, {_NEVER - 1:,} is the most"
                )
            row[added.tokens[places]] = distances
        return rows

    def _grow(self, width: int) -> None:
        if width > self._width:
            self._width = width
            self._columns = torch.arange(self._width, device=self.device)
            self.generation += 1

    def start_states(self, constraints: Sequence[Constraint | None]) -> torch.Tensor:
        """States before the first token, for a batch: int64[B]. None stands for a row without a constraint.

        New constraints are added. One copy to the device.

        Raises:
            UnsupportedError, VocabularyError, TrieautoError: as for ``add``.
        """
        states = [UNCONSTRAINED if each is None else self.add(each) for each in constraints]
        return torch.tensor(states, dtype=torch.int64, device=self.device)

    def matcher(self, constraint: Constraint, token_ids: Iterable[int], max_tokens: int | None = None) -> Matcher:
        """A matcher that has accepted what a row has generated: to read its ``value``, and whether it ``is_complete``.

        Args:
            constraint: the row's.
            token_ids: those of the row, on the host. What follows a token that is outside the language is not taken.
            max_tokens: the row's budget, if it has one.

        Raises:
            BudgetError, TokenNotAllowedError, TrieautoError: as for matchers.
        """
        matcher = constraint.matcher(max_tokens)
        for token_id in token_ids:
            if not matcher.accept_token(token_id):
                break
        return matcher

    # Steps

    def advance(
        self, states: torch.Tensor, token_ids: torch.Tensor, remaining_tokens: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The states after one more token of each row: a new tensor like ``states``.

        After a token that was not legal it is ``OUTSIDE``, and stays so; after a stop token ``TERMINATED``.

        Args:
            states: int64[B] or int32[B]. (A number that is no state is an error of the device, if at all.)
            token_ids: int64[B] or int32[B]; what is no id of the vocabulary is not legal.
            remaining_tokens: int64[B] or int32[B], the budgets before this token, if they decide what is legal. The
                caller counts them down.

        Raises:
            TrieautoError: tensors of other shapes or dtypes, or on another device.
        """
        self._check_vectors(states=states, token_ids=token_ids, remaining_tokens=remaining_tokens)
        rows, tokens = states.long(), token_ids.long()
        keys, size = self._keys.tensor, self.vocabulary.size
        sought = rows * size + tokens
        place = torch.searchsorted(keys, sought)  # never behind the room at the end
        is_legal = (keys[place] == sought) & (tokens >= 0) & (tokens < size)
        targets = self._targets.tensor[place]
        if remaining_tokens is not None:
            is_legal &= self._distances.tensor[targets] <= _most_after(remaining_tokens)
        otherwise = (rows != UNCONSTRAINED).to(torch.int32)  # OUTSIDE is 1
        return torch.where(is_legal, targets, otherwise).to(states.dtype)

    def apply_(
        self, logits: torch.Tensor, states: torch.Tensor, remaining_tokens: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Set the logits of all tokens that are not legal to minus infinity, in place, and return them.

        Under a budget of r tokens, a token is legal only if the answer can be finished in r - 1 after it, and stop ids
        where it may end; with none left only these. (A budget must be enough for the constraint's ``min_tokens`` at
        the start, or no token is legal: only the host can refuse that.)

        Args:
            logits: float[B, W] of any dtype, W at least the size of the vocabulary; ids beyond that are never legal.
                Rows whose state is ``UNCONSTRAINED`` stay as they are.
            states: int64[B] or int32[B].
            remaining_tokens: int64[B] or int32[B], ``NO_BUDGET`` for a row without one, and what is negative counts as
                0. None: no row has one.

        Raises:
            VocabularyError: logits narrower than the vocabulary.
            TrieautoError: tensors of other shapes or dtypes, or on another device.
        """
        self._check_vectors(states=states, remaining_tokens=remaining_tokens)
        self._check_logits(logits, len(states))
        rows, size = states.long(), self.vocabulary.size
        is_constrained = (rows != UNCONSTRAINED)[:, None]
        most = None if remaining_tokens is None else _most_after(remaining_tokens)[:, None]
        # The legal ids of each row; where they are fewer, the last one again and again.
        first, behind = self._offsets.tensor[rows], self._offsets.tensor[rows + 1]
        places = torch.minimum(first[:, None] + self._columns, behind[:, None] - 1).clamp_(min=0)
        ids = self._keys.tensor[places].sub_((rows * size)[:, None])
        ids.clamp_(0, size - 1)  # those of unconstrained rows, which have none, are anything
        kept = logits.gather(1, ids)
        if most is not None:
            is_far = self._distances.tensor[self._targets.tensor[places]] > most
            kept.masked_fill_(is_far & is_constrained, -torch.inf)
        if not self._has_wide:
            logits.masked_fill_(is_constrained, -torch.inf)
        else:
            after = self._wide.tensor[self._wide_of.tensor[rows]]
            limit = _NEVER - 1 if most is None else most.clamp(max=_NEVER - 1).to(torch.int16)
            logits[:, :size].masked_fill_((after > limit) & is_constrained, -torch.inf)
            logits[:, size:].masked_fill_(is_constrained, -torch.inf)
        # What is written twice to one place is the same.
        return logits.scatter_(1, ids, kept)

    def _check_vectors(self, **tensors: torch.Tensor | None) -> None:
        """Look at shapes, dtypes and devices, which the host knows."""
        count: int | None = None
        for name, tensor in tensors.items():
            if name == "remaining_tokens" and tensor is None:
                continue
            if not isinstance(tensor, torch.Tensor) or tensor.dtype not in _INTEGERS or tensor.ndim != 1:
                found = f"{tensor.dtype} {list(tensor.shape)}" if isinstance(tensor, torch.Tensor) else shorten(tensor)
                raise TrieautoError(f"{name} must be a tensor of int64 or int32, one for each row, not {found}")
            if tensor.device != self.device:
                raise TrieautoError(f"{name} are on {tensor.device}, but the constraints on {self.device}")
            if count is not None and len(tensor) != count:
                raise TrieautoError(f"{len(tensor)} {name} for {count} states")
            count = len(tensor)

    def _check_logits(self, logits: torch.Tensor, count: int) -> None:
        if not isinstance(logits, torch.Tensor) or not logits.is_floating_point() or logits.ndim != 2:
            found = f"{logits.dtype} {list(logits.shape)}" if isinstance(logits, torch.Tensor) else shorten(logits)
            raise TrieautoError(f"logits must be a tensor of floats, rows × ids, not {found}")
        if logits.device != self.device:
            raise TrieautoError(f"the logits are on {logits.device}, but the constraints on {self.device}")
        if len(logits) != count:
            raise TrieautoError(f"{len(logits)} rows of logits for {count} states")
        if logits.shape[1] < self.vocabulary.size:
            raise VocabularyError(
                f"the model has {logits.shape[1]:,} logits, fewer than the {self.vocabulary.size:,} ids of the "
                "vocabulary: was the constraint compiled for another model?"
            )


def _most_after(remaining_tokens: torch.Tensor) -> torch.Tensor:
    """How many tokens may follow the next one; -1 if there is none left even for that."""
    return remaining_tokens.clamp(min=0) - 1


def _check_constraint(constraint: object) -> None:
    if not isinstance(constraint, Constraint):
        raise TrieautoError(f"expected a Constraint, as trieauto.compile makes it, not {shorten(constraint)}")
