"""An automaton and a vocabulary put together: the masks of every state."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from .automaton import Automaton, PrefixSpace
from .eager_masks import eager_masks
from .errors import TrieautoError, UnsupportedError, shorten
from .frozen import Frozen
from .kernels import descriptor
from .kernels.walk import state_tokens
from .ready_masks import ReadyMasks
from .spelling import EVERY_STATE, spelled_from
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .matcher import Matcher

STORE_LIMIT = 2**20  # token ids, 4 MB: what auto mode stores at most
READY_LIMIT = 16 * 2**20  # bytes of ready masks for each constraint
ROW_COUNT = 256  # a mask of more tokens is kept as a bitmap row: copying 19 KB beats setting so many bits

_NO_MASKS = np.empty(0, np.int32)


class Constraint(Frozen):
    """What may be generated, in tokens. Immutable for its users, shared by any number of matchers and threads.

    Made by ``trieauto.compile``.

    Attributes:
        automaton: the language, a prefix space included.
        vocabulary: the tokens.
        num_words: the least width of a bitmask's rows, in int32 words.
        prefix_space: "none", "optional" or "required".
        unreachable_values: the set's values that this vocabulary cannot spell (with ``unreachable="report"``).
    """

    automaton: Automaton
    vocabulary: Vocabulary
    prefix_space: PrefixSpace
    unreachable_values: list[str | bytes]
    num_words: int
    scratch_row: npt.NDArray[np.int32]
    descriptor_address: int
    _compile_seconds: float
    _live: npt.NDArray[np.uint8]
    _masks: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]
    _storing: threading.Lock
    _stop_ids: npt.NDArray[np.int32]
    _descriptor: npt.NDArray[np.int64]
    _ready: ReadyMasks

    def __init__(
        self,
        automaton: Automaton,
        vocabulary: Vocabulary,
        *,
        live: npt.NDArray[np.uint8],
        masks: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]] | None,
        walks_before_storing: int = -1,
        prefix_space: PrefixSpace,
        unreachable_values: list[str | bytes],
        compile_seconds: float,
    ) -> None:
        masks = (_NO_MASKS, _NO_MASKS) if masks is None else masks
        stop_ids = np.array(vocabulary.stop_token_ids, np.int32)
        words = np.zeros(descriptor.DESCRIPTOR_WORDS, np.int64)
        tables = vocabulary.tables
        descriptor.describe(
            words, *automaton.arrays, automaton.accepting, live,
            tables.nodes, tables.token_ids, tables.data, tables.offsets, stop_ids,
            *masks, tables.max_token_length, vocabulary.size, tables.scratch, walks_before_storing,
        )  # fmt: skip
        num_words = (vocabulary.size + 31) // 32
        self._set(
            automaton=automaton,
            vocabulary=vocabulary,
            prefix_space=prefix_space,
            unreachable_values=unreachable_values,
            num_words=num_words,
            scratch_row=np.empty(num_words, np.int32),  # for kernels that hold the interpreter lock
            descriptor_address=words.ctypes.data,
            _compile_seconds=compile_seconds,
            _live=live,
            _masks=masks,
            _storing=threading.Lock(),
            _stop_ids=stop_ids,
            _descriptor=words,
            _ready=ReadyMasks(READY_LIMIT, words),
        )

    def __reduce__(self) -> tuple[object, ...]:
        make = partial(
            Constraint,
            live=self._live,
            masks=None if self.mode == "lazy" else self._masks,
            walks_before_storing=int(self._descriptor[descriptor.WALKS_LEFT]),
            prefix_space=self.prefix_space,
            unreachable_values=self.unreachable_values,
            compile_seconds=self._compile_seconds,
        )
        return make, (self.automaton, self.vocabulary)

    def _check_state(self, state: int) -> None:
        if isinstance(state, bool) or not isinstance(state, (int, np.integer)) or not 0 <= state < self.num_states:
            raise TrieautoError(
                f"state {shorten(state)} is not one of the {self.num_states:,} states of this constraint"
            )

    @property
    def mode(self) -> Literal["eager", "lazy"]:
        """How masks are had: "eager", all are stored, or "lazy", they are found when needed."""
        return "eager" if len(self._masks[0]) > 0 else "lazy"

    def _store_masks(self) -> None:
        """Store the masks of all states: enough were found one by one for that to pay."""
        with self._storing:
            if self.mode == "eager":
                return
            try:
                masks = eager_masks(self.automaton, self.automaton, self.vocabulary, self._live, "walk", 1, STORE_LIMIT)
            except UnsupportedError:  # a set of few states, but very many tokens: it stays lazy
                self._descriptor[descriptor.WALKS_LEFT] = -1
                return
            self._set(_masks=masks)
            descriptor.set_masks(self._descriptor, *masks)

    def make_ready(self, state: int) -> None:
        """Make the mask of a state that has too many tokens to find or to set one by one at each step, and keep it.

        Kernels ask for this. They also ask when all masks should be stored, and then that is done instead.
        """
        if self._descriptor[descriptor.WALKS_LEFT] == 0:
            self._store_masks()
            return
        tokens = self.content_tokens(state)
        if len(tokens) <= ROW_COUNT:
            self._ready.add(state, tokens, is_row=False)
            return
        if self.automaton.accepting[state]:
            tokens = np.concatenate([tokens, self._stop_ids])
        bits = np.zeros(32 * self.num_words, np.uint8)
        bits[tokens] = 1
        self._ready.add(state, np.packbits(bits, bitorder="little").view(np.int32), is_row=True)

    def content_tokens(self, state: int) -> npt.NDArray[np.int32]:
        """The tokens with bytes that are legal in a state, in the order of their bytes: int32."""
        self._check_state(state)
        offsets, stored = self._masks
        if len(offsets) > 0:
            return stored[offsets[state] : offsets[state + 1]].copy()
        automaton, tables = self.automaton, self.vocabulary.tables
        return state_tokens(*automaton.arrays, self._live, *tables.trie, state)  # type: ignore[no-any-return]

    def only_value(self, state: int) -> str | bytes | None:
        """The one value of a set that can still be generated from a state, or ``None`` if there are several.

        O(log K); where the vocabulary lacks bytes of the set, O(what lies below the state).
        """
        self._check_state(state)
        values = self.automaton.values
        if values is None:
            return None
        first, last = (0, len(values)) if state == self.automaton.start else values.below(state)
        if last - first == 1 or (last - first == 2 and values.order[first] == values.order[first + 1]):
            return values[first]
        if len(self._live) == 0:
            return None
        reached, _ = spelled_from(self.automaton, self.vocabulary, self._live, state)
        possible = np.unique(values.order[first:last][reached[values.terminals[first:last]] != 0])
        return values.given[possible[0]] if len(possible) == 1 else None

    def spelled(self, state: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """At which states tokens that follow a state can end, and which edges lie on their way: uint8[N], uint8[edges].

        Both are empty where the vocabulary has every byte, and so everything can be spelled.
        """
        self._check_state(state)
        if len(self._live) == 0:
            return EVERY_STATE, EVERY_STATE
        return spelled_from(self.automaton, self.vocabulary, self._live, state)

    def matcher(self) -> Matcher:
        """A new matcher, before the first token. O(1)."""
        from .matcher import Matcher

        return Matcher(self)

    @property
    def num_states(self) -> int:
        """Number of states of the automaton."""
        return self.automaton.num_states

    @property
    def nbytes(self) -> int:
        """Memory of this constraint in bytes, ready masks included; without the vocabulary, which is shared, and
        without the caller's values."""
        arrays: list[npt.NDArray[Any]] = [self._live, *self._masks, self._descriptor]
        return self.automaton.nbytes + sum(array.nbytes for array in arrays) + self._ready.nbytes

    def stats(self) -> dict[str, Any]:
        """What this constraint is and costs, for people and logs."""
        return {
            "values": None if self.automaton.values is None else len(self.automaton.values),
            "states": self.num_states,
            "mode": self.mode,
            "prefix_space": self.prefix_space,
            "bytes": self.nbytes,
            "stored_mask_entries": len(self._masks[1]),
            "ready_masks": len(self._ready),
            "ready_masks_made": self._ready.num_made,
            "unreachable_values": len(self.unreachable_values),
            "compile_seconds": self._compile_seconds,
        }

    def __repr__(self) -> str:
        return f"<Constraint ({self.mode}) of {self.automaton!r} in {self.vocabulary!r}>"
