"""An automaton and a vocabulary put together: the masks of every state."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from .automaton import Automaton, PrefixSpace, with_prefix_space
from .errors import EmptyConstraintError, TrieautoError, UnreachableValueError, UnsupportedError, shorten
from .kernels import matching as m
from .kernels.aho_corasick import all_tokens_by_aho_corasick, depth_of_trie
from .kernels.walk import all_tokens, live_states, spelled, state_tokens, used_bytes
from .packing import as_bytes, default_threads
from .ready_masks import ReadyMasks
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .matcher import Matcher

Mode = Literal["auto", "eager", "lazy"]
Method = Literal["walk", "aho_corasick"]

AUTO_EAGER_STATES = 1_000  # up to here, masks for all states cost less than a tenth of a millisecond
MAX_EAGER_ENTRIES = 2**28  # 1 GB of token ids
READY_LIMIT = 16 * 2**20  # bytes of ready masks for each constraint
ROW_COUNT = 256  # a mask of more tokens is kept as a bitmap row: copying 19 KB beats setting so many bits

_EVERY_STATE = np.empty(0, np.uint8)
_NO_MASKS = np.empty(0, np.int32)


class Constraint:
    """What may be generated, in tokens. Immutable for its users, shared by any number of matchers and threads.

    Made by :func:`compile`.

    Attributes:
        automaton: the language, a prefix space included.
        vocabulary: the tokens.
        num_words: the least width of a bitmask's rows, in int32 words.
        mode: "eager" or "lazy", how masks are had.
        prefix_space: "none", "optional" or "required".
        unreachable_values: the set's values that this vocabulary cannot spell (with ``unreachable="report"``).
    """

    def __init__(
        self,
        automaton: Automaton,
        vocabulary: Vocabulary,
        *,
        live: npt.NDArray[np.uint8],
        masks: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]] | None,
        prefix_space: PrefixSpace,
        unreachable_values: list[str | bytes],
        compile_seconds: float,
    ) -> None:
        self.automaton = automaton
        self.vocabulary = vocabulary
        self.mode: Literal["eager", "lazy"] = "lazy" if masks is None else "eager"
        self.prefix_space = prefix_space
        self.unreachable_values = unreachable_values
        self._compile_seconds = compile_seconds
        self._live = live
        self._mask_offsets, self._mask_tokens = masks if masks is not None else (_NO_MASKS, _NO_MASKS)
        self._stop_ids = np.array(vocabulary.stop_token_ids, np.int32)
        self._descriptor = np.zeros(m.DESCRIPTOR_WORDS, np.int64)
        self._descriptor_address: int = self._descriptor.ctypes.data
        tables = vocabulary.tables
        m.describe(
            self._descriptor, automaton.labels, automaton.links, automaton.targets, automaton.accepting, live,
            tables.nodes, tables.token_ids, tables.data, tables.offsets, self._stop_ids,
            self._mask_offsets, self._mask_tokens, tables.max_token_length, vocabulary.size, tables.scratch,
        )  # fmt: skip
        self.num_words = (vocabulary.size + 31) // 32
        self.scratch_row = np.empty(self.num_words, np.int32)  # for kernels that hold the interpreter lock
        self._ready = ReadyMasks(READY_LIMIT, self._publish_ready)

    def _publish_ready(self, table: npt.NDArray[np.int64]) -> None:
        self._descriptor[m.READY] = table.ctypes.data
        self._descriptor[m.READY_CAPACITY] = len(table)

    def make_ready(self, state: int) -> None:
        """Make the mask of a state that has too many tokens to find or to set one by one at each step, and keep it."""
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
        if self.mode == "eager":
            return self._mask_tokens[self._mask_offsets[state] : self._mask_offsets[state + 1]]
        automaton, tables = self.automaton, self.vocabulary.tables
        tokens: npt.NDArray[np.int32] = state_tokens(
            automaton.labels, automaton.links, automaton.targets, self._live,
            tables.nodes, tables.token_ids, tables.max_token_length, state,
        )  # fmt: skip
        return tokens

    def only_value(self, state: int) -> str | bytes | None:
        """The one value of a set that can still be generated from a state, or ``None`` if there are several.

        O(log K); where the vocabulary lacks bytes of the set, O(what lies below the state).
        """
        values = self.automaton.values
        if values is None:
            return None
        first, last = (0, len(values)) if state == self.automaton.start else values.below(state)
        if last - first == 1 or (last - first == 2 and values.order[first] == values.order[first + 1]):
            return values[first]
        if len(self._live) == 0:
            return None
        reached = _spelled(self.automaton, self.vocabulary, self._live, state)[0]
        possible = np.unique(values.order[first:last][reached[values.terminals[first:last]] != 0])
        return values.given[possible[0]] if len(possible) == 1 else None

    def spelled(self, state: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """At which states tokens that follow a state can end, and which edges lie on their way: uint8[N], uint8[edges].

        Both are empty where the vocabulary has every byte, and so everything can be spelled.
        """
        if len(self._live) == 0:
            return _EVERY_STATE, _EVERY_STATE
        return _spelled(self.automaton, self.vocabulary, self._live, state)

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
        arrays: list[npt.NDArray[Any]] = [self._live, self._mask_offsets, self._mask_tokens, self._descriptor]
        return self.automaton.nbytes + sum(array.nbytes for array in arrays) + self._ready.nbytes

    def stats(self) -> dict[str, Any]:
        """What this constraint is and costs, for people and logs."""
        return {
            "values": None if self.automaton.values is None else len(self.automaton.values),
            "states": self.num_states,
            "mode": self.mode,
            "prefix_space": self.prefix_space,
            "bytes": self.nbytes,
            "stored_mask_entries": len(self._mask_tokens),
            "ready_masks": len(self._ready),
            "ready_masks_made": self._ready.num_made,
            "unreachable_values": len(self.unreachable_values),
            "compile_seconds": self._compile_seconds,
        }

    def __repr__(self) -> str:
        return f"<Constraint ({self.mode}) of {self.automaton!r} in {self.vocabulary!r}>"


def compile(
    automaton: Automaton,
    vocabulary: Vocabulary,
    *,
    mode: Mode = "auto",
    unreachable: Literal["error", "report"] = "error",
    prefix_space: PrefixSpace | None = None,
    method: Method = "walk",
    threads: int | None = None,
) -> Constraint:
    """Put an automaton and a vocabulary together.

    Args:
        mode: "eager" finds the legal tokens of every state now; "lazy" finds those of a state when they are needed,
            which costs well under a microsecond, and keeps the ones that cost more; "auto" is eager for small automata.
        unreachable: what to do about values that the vocabulary's tokens cannot spell: an error that names them, or
            go on without them and list them in ``unreachable_values``.
        prefix_space: a space before the answer, as SentencePiece tokenizers write it: "none", "optional" or
            "required". By default "optional" for a tokenizer that puts one before the first word, else "none".
        method: for eager masks, walking the token trie and the automaton together, or the trie paper's Aho-Corasick
            pass (section 4.2; sets only). The masks are equal.
        threads: for eager masks; by default one up to 20,000 states, then as many as there are processors.

    Raises:
        UnreachableValueError, EmptyConstraintError: some or all of the values cannot be spelled.
        UnsupportedError: a combination of options, or eager masks of more than 268 million entries.
    """
    begin = time.perf_counter()
    _check_options(automaton, vocabulary, mode, unreachable, prefix_space, method)
    if prefix_space is None:
        prefix_space = "optional" if vocabulary.prefix_space and automaton.values is not None else "none"
    extended = with_prefix_space(automaton, prefix_space)
    live = _live_states(extended, vocabulary)
    unreachable_values = _unreachable_values(extended, vocabulary, live, unreachable)
    if mode == "auto" and method == "walk" and extended.num_states > AUTO_EAGER_STATES:
        mode = "lazy"
    masks = None if mode == "lazy" else _eager_masks(automaton, extended, vocabulary, live, method, threads)
    return Constraint(
        extended,
        vocabulary,
        live=live,
        masks=masks,
        prefix_space=prefix_space,
        unreachable_values=unreachable_values,
        compile_seconds=time.perf_counter() - begin,
    )


def _check_options(
    automaton: object, vocabulary: object, mode: str, unreachable: str, prefix_space: str | None, method: str
) -> None:
    if not isinstance(automaton, Automaton):
        raise TrieautoError(
            f"compile takes an automaton, as trieauto.choices(values) makes it, not {shorten(automaton)}"
        )
    if not isinstance(vocabulary, Vocabulary):
        raise TrieautoError(
            f"compile takes a vocabulary, as Vocabulary.from_tokenizer makes it, not {shorten(vocabulary)}"
        )
    for name, value, allowed in (
        ("mode", mode, get_args(Mode)),
        ("unreachable", unreachable, ("error", "report")),
        ("prefix_space", prefix_space, (*get_args(PrefixSpace), None)),
        ("method", method, get_args(Method)),
    ):
        if value not in allowed:
            raise TrieautoError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, allowed))}")
    if method == "aho_corasick" and mode == "lazy":
        raise UnsupportedError("the Aho-Corasick pass finds the masks of all states at once: it has no lazy mode")
    if method == "aho_corasick" and not automaton.is_trie:
        raise UnsupportedError("the Aho-Corasick pass is for sets")


def _live_states(automaton: Automaton, vocabulary: Vocabulary) -> npt.NDArray[np.uint8]:
    """Where the end can be reached in tokens: uint8[N], or empty if everywhere (law 1 of the design).

    When every single byte that occurs is a token, whatever is possible in bytes is possible in tokens.
    """
    tables = vocabulary.tables
    first = 1 if automaton.is_trie else 0  # the root of a trie has no byte that leads into it
    if vocabulary.is_byte_complete or not (used_bytes(automaton.labels, first) > tables.single_bytes).any():
        return _EVERY_STATE
    live: npt.NDArray[np.uint8] = live_states(
        automaton.labels, automaton.links, automaton.targets, automaton.accepting,
        tables.nodes, tables.token_ids, tables.max_token_length,
    )  # fmt: skip
    return live


def _spelled(
    automaton: Automaton, vocabulary: Vocabulary, live: npt.NDArray[np.uint8], start: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    tables = vocabulary.tables
    reached, passed = spelled(
        automaton.labels, automaton.links, automaton.targets, live,
        tables.nodes, tables.token_ids, tables.max_token_length, start, automaton.num_states,
    )  # fmt: skip
    if start == automaton.start and automaton.accepting[start]:
        reached[0] = 1  # the empty value ends at the root of its trie, which a prefix space may have cut off
    return reached, passed


def _unreachable_values(
    automaton: Automaton, vocabulary: Vocabulary, live: npt.NDArray[np.uint8], unreachable: str
) -> list[str | bytes]:
    """The set's values that no sequence of tokens spells; the error that names them, if that is asked for."""
    if len(live) == 0:
        return []
    values = automaton.values
    if not live[automaton.start]:
        example = "" if values is None else f", not even {shorten(values[0])}"
        raise EmptyConstraintError(f"this vocabulary can spell nothing of what is allowed{example}")
    if values is None:
        return []
    reached = _spelled(automaton, vocabulary, live, automaton.start)[0]
    missing = np.setdiff1d(values.order, values.order[reached[values.terminals] != 0])
    missing_values = sorted(map(values.given.__getitem__, missing.tolist()), key=as_bytes)
    if missing_values and unreachable == "error":
        shown = ", ".join(shorten(value) for value in missing_values[:5])
        more = f" and {len(missing_values) - 5:,} more" if len(missing_values) > 5 else ""
        raise UnreachableValueError(
            f"this vocabulary has no tokens that spell {shown}{more} "
            f"({len(missing_values):,} of {len(values):,} values); with unreachable='report' they are left out",
            missing_values,
        )
    return missing_values


def _eager_masks(
    automaton: Automaton,
    extended: Automaton,
    vocabulary: Vocabulary,
    live: npt.NDArray[np.uint8],
    method: Method,
    threads: int | None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Offsets int32[N + 1] and token ids int32 of all states' masks.

    ``automaton`` is without, ``extended`` with the prefix space; they differ in the start alone, so a trie's states
    are done on the trie.
    """
    if extended.is_trie:
        automaton = extended
    tables = vocabulary.tables
    num_states = automaton.num_states
    threads = default_threads(num_states) if threads is None else threads
    arrays = (automaton.labels, automaton.links, automaton.targets, live)

    def masks(span: tuple[int, int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        if method == "aho_corasick":
            depth = depth_of_trie(automaton.links)
            return all_tokens_by_aho_corasick(  # type: ignore[no-any-return]
                automaton.labels,
                automaton.links,
                live,
                tables.nodes,
                tables.token_ids,
                *tables.aho_corasick,
                depth,
                *span,
            )
        return all_tokens(  # type: ignore[no-any-return]
            *arrays, tables.nodes, tables.token_ids, tables.max_token_length, *span, MAX_EAGER_ENTRIES
        )

    if threads == 1:
        parts = [masks((0, num_states))]
    else:
        spans = [(num_states * k // threads, num_states * (k + 1) // threads) for k in range(threads)]
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(masks, spans))
    if extended is not automaton:
        start_tokens = state_tokens(
            extended.labels, extended.links, extended.targets, live,
            tables.nodes, tables.token_ids, tables.max_token_length, extended.start,
        )  # fmt: skip
        parts.append((np.array([len(start_tokens)], np.int64), start_tokens))
    counts = [part[0] for part in parts]
    num_entries = sum(int(part.sum()) for part in counts)
    if sum(map(len, counts)) < extended.num_states or num_entries > MAX_EAGER_ENTRIES:
        raise UnsupportedError(
            f"the masks of all {extended.num_states:,} states hold more than {MAX_EAGER_ENTRIES:,} tokens: "
            "use mode='lazy'"
        )
    offsets = np.zeros(extended.num_states + 1, np.int32)
    np.cumsum(counts[0] if len(counts) == 1 else np.concatenate(counts), out=offsets[1:])
    tokens = parts[0][1] if len(parts) == 1 else np.concatenate([part[1] for part in parts])
    return offsets, tokens
