"""An automaton and a vocabulary put together: the masks of every state."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from .automaton import Automaton, PrefixSpace
from .budgets import checked_budget, token_distances, tokens_of_values
from .eager_masks import eager_masks
from .errors import TrieautoError, UnsupportedError, shorten
from .frozen import Frozen
from .kernels import descriptor
from .kernels.equality import alike
from .kernels.filling import ready_key
from .kernels.scan import scan_tokens
from .kernels.walk import UNREACHABLE, state_tokens
from .legal_tokens import LegalTokens
from .ready_masks import ReadyMasks
from .spelling import states_spelled
from .token_automata import TokenAutomaton
from .vocabulary import Vocabulary

Tokenization = Literal["any", "canonical"]

if TYPE_CHECKING:
    from .matcher import Matcher

STORE_LIMIT = 2**20  # token ids, 4 MB: what auto mode stores at most
MOST_REMEMBERED = 2**16  # states of which one number is remembered
READY_LIMIT = 16 * 2**20  # bytes of ready masks for each constraint
ROW_COUNT = descriptor.LIST_LIMIT  # tokens; a mask of more is kept as a bitmap row

_MANY_EDGES = 48  # of a state; with more, it is faster to scan the whole token trie than to look tokens up
# Finding out which states are alike takes about as long, for each state, as going over so many tokens for a row.
_TOKENS_FOR_ALIKE = 40

NOTHING = np.empty(0, np.int32)
_UNUSED = np.zeros(1, np.int32)  # not empty, for that would mean something else
_NO_BYTES = np.empty(0, np.uint8), NOTHING, _UNUSED


class Constraint(Frozen):
    """What may be generated, in tokens. Immutable for its users, shared by any number of matchers and threads.

    Made by ``trieauto.compile``. For each state it has, or finds when needed, the legal tokens (section 4.1 of the trie
    paper) and the fewest tokens to the end (section 3.1 of the reachability paper).

    Attributes:
        automaton: the language, a prefix space included; or the automaton over tokens.
        vocabulary: the tokens.
        num_words: the least width of a bitmask's rows, in int32 words.
        prefix_space: "none", "optional" or "required": whether a space may or must come before the value.
        tokenization: "any" spelling in tokens, or the "canonical" one: then ``automaton`` is one over tokens, or, of a
            language with very many strings, over bytes.
        left_context: the text that the canonical tokens join; None for none.
        has_every_byte: whether all single bytes that occur are tokens, so that whatever is possible in bytes is.
        unreachable_values: the values that this vocabulary cannot spell, or that the tokenizer itself never writes
            (with ``unreachable="report"``).
    """

    automaton: Automaton | TokenAutomaton
    vocabulary: Vocabulary
    prefix_space: PrefixSpace
    tokenization: Tokenization
    left_context: str | None
    unreachable_values: list[str | bytes]
    num_words: int
    scratch_row: npt.NDArray[np.int32]
    descriptor_address: int
    _compile_seconds: float
    _whole: Constraint | None
    _alive: npt.NDArray[np.int32] | None
    _distances: npt.NDArray[np.int32] | None
    has_every_byte: bool
    _masks: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]] | None
    _most_after: dict[int, int]
    _alike: npt.NDArray[np.int32]
    _lock: threading.Lock
    _stop_ids: npt.NDArray[np.int32]
    _descriptor: npt.NDArray[np.int64]
    _ready: ReadyMasks

    def __init__(
        self,
        automaton: Automaton | TokenAutomaton,
        vocabulary: Vocabulary,
        *,
        distances: npt.NDArray[np.int32] | None = None,
        has_every_byte: bool = True,
        whole: Constraint | None = None,
        alive: npt.NDArray[np.int32] | None = None,
        masks: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]] | None = None,
        walks_before_storing: int = -1,
        prefix_space: PrefixSpace = "none",
        unreachable_values: Sequence[str | bytes] = (),
        tokenization: Tokenization = "any",
        left_context: str | None = None,
        compile_seconds: float,
    ) -> None:
        stop_ids = np.array(vocabulary.stop_token_ids, np.int32)
        words = np.zeros(descriptor.DESCRIPTOR_WORDS, np.int64)
        tables = vocabulary.tables
        bytes_of_automaton = _NO_BYTES if isinstance(automaton, TokenAutomaton) else automaton.arrays
        descriptor.describe(
            words, *bytes_of_automaton, automaton.accepting, *tables.trie, tables.data, tables.offsets, stop_ids,
            vocabulary.size, tables.scratch, walks_before_storing,
        )  # fmt: skip
        num_words = (vocabulary.size + 31) // 32
        self._set(
            automaton=automaton,
            vocabulary=vocabulary,
            prefix_space=prefix_space,
            tokenization=tokenization,
            left_context=left_context,
            unreachable_values=list(unreachable_values),
            num_words=num_words,
            scratch_row=np.empty(num_words, np.int32),  # for kernels that hold the interpreter lock
            descriptor_address=words.ctypes.data,
            _compile_seconds=compile_seconds,
            _whole=whole,
            _alive=alive,
            _distances=None,
            has_every_byte=has_every_byte,
            _masks=None,
            _most_after={},
            _alike=NOTHING,
            _lock=threading.Lock(),
            _stop_ids=stop_ids,
            _descriptor=words,
            _ready=ReadyMasks(READY_LIMIT, words),
        )
        if isinstance(automaton, TokenAutomaton):
            self._keep_masks(
                (automaton.links, automaton.tokens), automaton.targets if len(automaton.targets) else _UNUSED
            )
        elif masks is not None:
            self._keep_masks(masks, NOTHING)
        if distances is not None:
            self._keep_distances(distances)
        elif alive is not None:
            descriptor.set_distances(words, alive, 0, True)

    def new_descriptor(self) -> npt.NDArray[np.int64]:
        """A copy of what kernels know of it (see ``kernels.descriptor``)."""
        return self._descriptor.copy()

    def __reduce__(self) -> tuple[object, ...]:
        is_over_tokens = isinstance(self.automaton, TokenAutomaton)
        make = partial(
            Constraint,
            distances=self._distances,
            has_every_byte=self.has_every_byte,
            alive=self._alive,
            masks=None if is_over_tokens else self._masks,
            walks_before_storing=self.walks_before_storing,
            prefix_space=self.prefix_space,
            unreachable_values=self.unreachable_values,
            tokenization=self.tokenization,
            left_context=self.left_context,
            compile_seconds=self._compile_seconds,
        )
        return make, (self.automaton, self.vocabulary)

    def _keep_masks(
        self, masks: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]], targets: npt.NDArray[np.int32]
    ) -> None:
        self._set(_masks=masks)
        descriptor.set_masks(self._descriptor, *masks, targets)

    def _keep_alike(self, alike: npt.NDArray[np.int32]) -> None:
        self._set(_alike=alike)
        descriptor.set_alike(self._descriptor, alike)

    def _keep_distances(self, distances: npt.NDArray[np.int32]) -> None:
        is_dead = distances == UNREACHABLE
        farthest = int(distances.max(where=~is_dead, initial=0))
        self._set(_distances=distances)
        descriptor.set_distances(self._descriptor, distances, farthest, bool(is_dead.any()))
        self._keep_alike(NOTHING)  # which states are alike depends on their distances

    def distances(self) -> npt.NDArray[np.int32]:
        """The fewest tokens from every state to the end, without a stop token: int32[N], 2**31 - 1 where the end is out
        of reach. Read-only. They stand for the table R of the reachability paper's section 3.1: R[t, s] iff
        ``distances()[s] <= t``.

        Found when first asked for, once: about 0.1 µs a state of a set (see ``budgets.token_distances``); thread-safe.

        Raises:
            UnsupportedError: lists of values, or a language that is followed in canonical tokens: what was written
                decides, too, so ask ``matcher.min_tokens_to_finish``.
        """
        distances = self._known_distances().view()
        distances.flags.writeable = False
        return distances

    def _known_distances(self) -> npt.NDArray[np.int32]:
        """Those of ``distances``, as kernels take them."""
        if self._distances is None:
            with self._lock:
                if self._distances is None:
                    distances = self._found_distances()
                    self._ready.start_over(lambda: self._keep_distances(distances))
        assert self._distances is not None
        return self._distances

    def _found_distances(self) -> npt.NDArray[np.int32]:
        if self._whole is None or not isinstance(self.automaton, Automaton):
            return token_distances(self.automaton, self.vocabulary)
        from .restricting import part_distances

        return part_distances(self._whole, self.automaton)

    @property
    def distances_if_known(self) -> npt.NDArray[np.int32] | None:
        """Those of ``distances``, if somebody asked for them; not to be written to."""
        return self._distances

    @property
    def dead_ends(self) -> npt.NDArray[np.int32]:
        """What kernels take for knowing states from which the end is out of reach; empty if there are none."""
        if self._distances is not None:
            return self._distances
        return NOTHING if self._alive is None else self._alive

    def min_tokens_from(self, state: int) -> int:
        """The fewest tokens from a state to the end, without a stop token. Costs what ``distances`` costs, once.

        Raises:
            TrieautoError: ``state`` is not one of this constraint's.
            UnsupportedError: as ``distances`` does.
        """
        self._check_state(state)
        return int(self._known_distances()[state])

    @property
    def min_tokens(self) -> int:
        """The fewest tokens of any answer, without a stop token. Costs what ``distances`` costs."""
        return self.min_tokens_from(self.automaton.start)

    def _check_state(self, state: int) -> None:
        if isinstance(state, bool) or not isinstance(state, (int, np.integer)) or not 0 <= state < self.num_states:
            raise TrieautoError(
                f"state {shorten(state)} is not one of the {self.num_states:,} states of this constraint"
            )

    @property
    def mode(self) -> Literal["eager", "lazy"]:
        """How masks are had: "eager", all are stored, or "lazy", they are found when needed."""
        return "lazy" if self._masks is None else "eager"

    @cached_property
    def _tokens_of_values(self) -> npt.NDArray[np.int32] | None:
        return tokens_of_values(self.automaton, self.vocabulary)

    @property
    def enough_tokens(self) -> int | None:
        """The least budget, without a stop token, under which every value of the set can still be written; a smaller
        one leaves some out. None for anything but a set. The first call costs what ``distances`` costs."""
        tokens = self._tokens_of_values
        return None if tokens is None else int(tokens.max(initial=0))

    def num_values_within(self, max_tokens: int) -> int | None:
        """How many values of the set can be written in ``max_tokens`` tokens, without a stop token. None for anything
        but a set. The first call costs what ``distances`` costs.

        Raises:
            TrieautoError: not a budget.
        """
        tokens, budget = self._tokens_of_values, checked_budget(max_tokens)
        return None if tokens is None else int((tokens <= budget).sum())

    def _store_masks(self) -> None:
        """Store the masks of all states: enough were found one by one for that to pay."""
        automaton = self.automaton
        assert isinstance(automaton, Automaton)  # the others have them from the beginning
        with self._lock:
            if self._masks is not None:
                return
            try:
                masks = eager_masks(automaton, automaton, self.vocabulary, self.dead_ends, "walk", 1, STORE_LIMIT)
            except UnsupportedError:  # a set of few states, but very many tokens: it stays lazy
                self._descriptor[descriptor.WALKS_LEFT] = -1
                return
            self._keep_masks(masks, NOTHING)

    def make_ready(self, state: int, remaining: int = descriptor.NO_BUDGET) -> None:
        """Make the mask of a state that has too many tokens to find or to set one by one at each step, and keep it:
        the one that holds without a budget, if ``remaining`` tokens are enough for that, else the one for just so many.

        Kernels ask for this. They also ask when all masks should be stored, and then that is done instead.

        Raises:
            TrieautoError: ``state`` is not one of this constraint's.
        """
        self._check_state(state)
        if self._descriptor[descriptor.WALKS_LEFT] == 0:
            self._store_masks()
            return
        generation = self._ready.generation
        legal = self._legal_tokens(state)
        is_row = len(legal) > ROW_COUNT
        if is_row and self._alike_pays():
            generation = self._find_alike()
        if len(self._alike) > 0:
            state = int(self._alike[state])
        key = ready_key(state, None)
        holds_from = 0
        limits: tuple[()] | tuple[npt.NDArray[np.int32], int] = ()
        if self._distances is not None:
            holds_from = legal.farthest(self._distances) + 1
            if remaining < holds_from:
                key = ready_key(state, remaining)
                limits = self._distances, remaining - 1
        if is_row:
            bits = legal.bits(32 * self.num_words, *limits)
            if self.automaton.accepting[state]:
                bits[self._stop_ids] = 1
            mask = np.packbits(bits, bitorder="little").view(np.int32)
        else:
            mask = legal.ids(*limits)
        self._ready.add(key, mask, is_row=is_row, holds_from=holds_from, generation=generation)

    def _alike_pays(self) -> bool:
        """Whether as much was spent on rows as it takes to find out which of them are equal. (A form with one string
        in it needs a handful of rows, beside a set that may have a million states.)"""
        return (self._ready.num_rows_made + 1) * self.vocabulary.size >= _TOKENS_FOR_ALIKE * self.num_states

    def _find_alike(self) -> int:
        """Find out which states have equal masks under every budget, once: in a long string, that is most of them.

        They are those from which the same strings as long as a token lead on, past states at the same distances.
        Returns the generation of ready masks from then on.
        """
        automaton = self.automaton
        if len(self._alike) > 0 or not isinstance(automaton, Automaton) or automaton.is_trie:
            return self._ready.generation
        with self._lock:
            if len(self._alike) == 0:
                kinds = automaton.accepting.astype(np.int32)
                if self._distances is not None:
                    kinds += 2 * np.minimum(self._distances, 2**30 - 1)
                found, _ = alike(*automaton.arrays, kinds, self.vocabulary.tables.max_token_length)
                self._ready.start_over(lambda: self._keep_alike(found))
            return self._ready.generation

    def _legal_tokens(self, state: int) -> LegalTokens:
        """The tokens that are legal in a state without a budget, and where each leads."""
        automaton = self.automaton
        if isinstance(automaton, TokenAutomaton):
            first, last = automaton.links[state : state + 2]
            return LegalTokens(automaton.tokens[first:last], automaton.targets[first:last])
        distances, tables = self.dead_ends, self.vocabulary.tables
        if automaton.is_trie or automaton.links[state + 1] - automaton.links[state] <= _MANY_EDGES:
            return LegalTokens(*state_tokens(*automaton.arrays, distances, *tables.trie, state))
        images = tables.plain_text.images(automaton, distances, state)
        if images is not None:
            return LegalTokens(*tables.plain_text.others(automaton, distances, state), tables.plain_text, images)
        return LegalTokens(
            *scan_tokens(
                *automaton.arrays, distances, *tables.preorder, tables.token_ids, tables.max_token_length, state
            )
        )

    def content_tokens(self, state: int) -> npt.NDArray[np.int32]:
        """The tokens with bytes that are legal in a state without a budget: int32, in an order of their own.

        Raises:
            TrieautoError: ``state`` is not one of this constraint's.
        """
        self._check_state(state)
        if self._masks is not None:
            offsets, stored = self._masks
            return stored[offsets[state] : offsets[state + 1]].copy()
        return self._legal_tokens(state).ids()

    def most_tokens_after(self, state: int) -> int:
        """The largest number of tokens that the end can take after a token that is legal in a state, if it is then
        reached as soon as possible: with so many left after it, the budget forbids none. -1 if no token is legal.

        O(legal tokens); where they are many, it is remembered.

        Raises:
            TrieautoError: ``state`` is not one of this constraint's.
        """
        self._check_state(state)
        if len(self._alike) > 0:
            state = int(self._alike[state])
        if state in self._most_after:
            return self._most_after[state]
        legal = self._legal_tokens(state)
        most = legal.farthest(self._known_distances())
        if len(legal) > ROW_COUNT and len(self._most_after) < MOST_REMEMBERED:
            self._most_after[state] = most
        return most

    def only_value(self, state: int) -> str | bytes | None:
        """The one value of a set that can still be generated from a state, or ``None`` if there are several.

        O(log K); where the vocabulary lacks bytes of the set, O(what lies below the state).

        Raises:
            TrieautoError: ``state`` is not one of this constraint's.
        """
        self._check_state(state)
        automaton = self.automaton
        values = automaton.values
        if values is None:
            return None
        first, last = (0, len(values)) if state == automaton.start else values.below(state)
        if last - first == 1 or (last - first == 2 and values.order[first] == values.order[first + 1]):
            return values[first]
        if self.has_every_byte:
            return None
        assert isinstance(automaton, Automaton)  # those over tokens have no bytes that a token could lack
        reached = states_spelled(automaton, self.vocabulary, self._known_distances(), state)
        possible = np.unique(values.order[first:last][reached[values.terminals[first:last]] != 0])
        return values.given[possible[0]] if len(possible) == 1 else None

    def matcher(self, max_tokens: int | None = None) -> Matcher:
        """A new matcher, before the first token. O(1); the first one with a budget finds ``distances``.

        Args:
            max_tokens: its budget. Every sequence of legal tokens is then a whole answer after at most so many, a stop
                token included if there is one.

        Raises:
            BudgetError: no answer has so few tokens; it names the fewest.
            TrieautoError: not an integer, or negative.
        """
        from .matcher import Matcher

        return Matcher(self, max_tokens)

    @property
    def values(self) -> Sequence[str | bytes] | None:
        """The set's values as they were given, duplicates included: the order of masks for ``restricted_to``, which for
        a part of a set is that of the whole set. None for anything but a set. Not to be written to."""
        values = self.automaton.values
        return None if values is None else values.given

    def updated(
        self,
        add: Iterable[str | bytes] = (),
        remove: Iterable[str | bytes] = (),
        *,
        unreachable: Literal["error", "report"] = "error",
    ) -> Constraint:
        """The constraint of the set with some values more and some fewer, without building its trie anew.

        This one, and its matchers, stay as they are. What is known of it is kept for what did not change (distances;
        masks are found anew, lazily at first). About a nanosecond a state and some microseconds a value: for 100 of
        100,000 tool names one or two milliseconds. In canonical tokens only the added values are encoded; the rest is
        about a microsecond a value of the whole set. States have other numbers in the new constraint.

        Args:
            add: values to add; those that are there already stay. They come after the others in ``values``.
            remove: values to take away.
            unreachable: what to do about added values that the vocabulary cannot spell, as in ``compile``.

        Raises:
            TrieautoError: a value to remove that is not in the set, or is to be added, too; what is no value.
            EmptyConstraintError: no value would be left.
            UnreachableValueError: an added value that cannot be spelled.
            UnsupportedError: not a set; a part of one (``restricted_to``), but for canonical tokens; a vocabulary that
                does not know its tokenizer, to add values in canonical tokens.
        """
        from .updating import updated

        return updated(self, add, remove, unreachable)

    def restricted_to(self, allowed: Iterable[str | bytes] | npt.NDArray[np.bool_]) -> Constraint:
        """The constraint of a part of the set, over the same trie: for rules that differ from request to request.

        This one stays as it is. Without a budget about a nanosecond and 5 bytes a state of the whole set; the first
        budget finds distances, by a walk from each state that leads to values of both kinds.

        Args:
            allowed: values of the set; or, faster, an array of bool with one for each of ``values``. Of a value that
                was given twice any place counts.

        Raises:
            TrieautoError: a value that is not in the set, or a mask that does not fit.
            EmptyConstraintError: nothing is allowed.
            UnsupportedError: not a set.
        """
        from .restricting import restricted

        return restricted(self, allowed)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, with what is known so far (distances; masks, if they are stored): ``trieauto.load`` maps
        that into memory, in milliseconds, and many processes share one copy.

        Args:
            path: the file. One that is there is replaced, in one step.

        Raises:
            SavedConstraintError: the file cannot be written.
            UnsupportedError: lists of values, or a language that is followed in canonical tokens.
        """
        from .saving import save

        save(self, path)

    def known_arrays(self) -> dict[str, npt.NDArray[np.int32]]:
        """What was found so far beyond the automaton, by name."""
        arrays = {"distances": self._distances, "alive": self._alive}
        if self._masks is not None and not isinstance(self.automaton, TokenAutomaton):
            arrays |= {"mask offsets": self._masks[0], "mask tokens": self._masks[1]}
        return {name: array for name, array in arrays.items() if array is not None}

    @property
    def walks_before_storing(self) -> int:
        """How many masks will still be found one by one before all are stored; -1 for any number."""
        return int(self._descriptor[descriptor.WALKS_LEFT])

    @property
    def is_restricted(self) -> bool:
        """Whether this is a part of a set over the whole set's trie."""
        return self._alive is not None

    @property
    def num_states(self) -> int:
        """Number of states of the automaton."""
        return self.automaton.num_states

    @property
    def nbytes(self) -> int:
        """Memory of this constraint in bytes, ready masks included; without the vocabulary, which is shared, and
        without the caller's values."""
        arrays: list[npt.NDArray[Any]] = [self._descriptor, self._alike, *self.known_arrays().values()]
        return self.automaton.nbytes + sum(array.nbytes for array in arrays) + self._ready.nbytes

    def stats(self) -> dict[str, Any]:
        """What this constraint is and costs, for people and logs."""
        automaton = self.automaton
        of_kind: dict[str, Any]
        if self.tokenization == "canonical":
            of_kind = {
                "engine": "trie of canonical tokens",
                "values": None if automaton.values is None else len(automaton.values),
                "prefix_space": self.prefix_space,
                "unreachable_values": len(self.unreachable_values),
            }
        elif isinstance(automaton, TokenAutomaton):
            of_kind = {
                "edges": len(automaton.tokens),
                "unreachable_states": automaton.num_unreachable,
                "dead_ends": automaton.num_dead_ends,
            }
        else:
            kind_of_language = "automaton" if automaton.values is None else "trie"
            of_kind = {
                "engine": automaton.engine or kind_of_language,
                "values": None if automaton.values is None else len(automaton.values),
                "prefix_space": self.prefix_space,
                "stored_mask_entries": 0 if self._masks is None else len(self._masks[1]),
                "unreachable_values": len(self.unreachable_values),
            }
        return {
            "states": self.num_states,
            "tokenization": self.tokenization,
            **of_kind,
            "mode": self.mode,
            "bytes": self.nbytes,
            "min_tokens": None if self._distances is None else self.min_tokens,
            "ready_masks": len(self._ready),
            "ready_masks_made": self._ready.num_made,
            "compile_seconds": self._compile_seconds,
        }

    def __repr__(self) -> str:
        return f"<Constraint ({self.mode}) of {self.automaton!r} in {self.vocabulary!r}>"
