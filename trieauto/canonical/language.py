"""A language together with how the tokenizer splits its strings: nodes, and the tokens that lead on from each."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..automaton import Automaton
from ..errors import EmptyConstraintError, UnsupportedError
from ..kernels.canonical_walk import (
    FULL,
    closer_token,
    completion,
    explore,
    is_live_inside,
    numbers_of,
    token_ends,
    tokens_within,
)
from ..kernels.equality import alike
from ..kernels.walk import UNREACHABLE, state_after
from ..nfa import edges_of
from ..recent import Recent
from ..vocabulary import Vocabulary
from .model import BytePairModel

MOST_NODES = 2**22
MOST_EDGES = 2**25
MOST_KEPT = 64 * 2**20  # bytes of lists of tokens
MOST_ALIKE = 2**17  # states of which is found out which are alike
NOWHERE = -1

Int32s = npt.NDArray[np.int32]


class Following(NamedTuple):
    """Tokens and where they lead.

    Attributes:
        tokens: int32[T], ascending.
        ends: int32[T], the node that each leads to.
        different: int32[D], these nodes, once each.
        is_easy: uint8[T], whether the end can be reached from there whatever the token.
    """

    tokens: Int32s
    ends: Int32s
    different: Int32s
    is_easy: npt.NDArray[np.uint8]


_NO_TOKENS = np.zeros(0, np.int32)
_NOTHING = Following(_NO_TOKENS, _NO_TOKENS, _NO_TOKENS, _NO_TOKENS.astype(np.uint8))


class Choices(NamedTuple):
    """The tokens that may follow in a node, whichever came before.

    Attributes:
        tokens: int32[T], ascending.
        different: int32[D], nodes; the last is ``NOWHERE``.
        apart, joined: int32[T], where in ``different`` each token leads: if its pre-token must begin with it, for the
            token before and it do not stand side by side in one; and if it may also go on.
    """

    tokens: Int32s
    different: Int32s
    apart: Int32s
    joined: Int32s


class SplitLanguage:
    """All nodes (q, s) of a language that texts reach (see ``kernels.canonical_walk``), and those inside of characters
    at which tokens end, (q, s, p), as they are found.

    A node does not say which token came last, so the pair rule (``kernels.byte_pairs``) is not in it. But at the
    beginning of a pre-token any text that the language allows can be written: every text has its canonical tokens.

    Attributes:
        is_final: bool[>= N], whether the text may end in each node; 0 is the first one.
        cuts: int32[>= N], the node in which a pre-token begins, from which the end can be reached; or
            ``NOWHERE``.
        least: int32[>= N], the fewest tokens of any kind from each to the end.
        most_tokens: so many are enough wherever a pre-token begins, for a token takes at least one byte.
    """

    def __init__(
        self,
        automaton: Automaton,
        vocabulary: Vocabulary,
        model: BytePairModel,
        start_split: int,
        distances: Int32s,
    ) -> None:
        self._vocabulary = vocabulary
        self._model = model
        self._distances = distances
        self._arrays = _edge_lists(automaton)
        splitting = model.splitting
        self._num_splits = len(splitting.steps)
        nodes, self._keys, self._numbers, self._live, self.most_tokens, state = explore(
            *self._arrays, automaton.accepting, model.decode, splitting.steps, splitting.cuts, splitting.boths,
            splitting.finals, splitting.atoms, model.atom_data, model.atom_offsets, automaton.start, start_split,
            MOST_NODES, MOST_EDGES,
        )  # fmt: skip
        if state == FULL:
            raise UnsupportedError(
                f"{automaton!r} takes more than {MOST_NODES:,} states to follow together with how the tokenizer splits "
                "its strings: too many for tokenization='canonical'"
            )
        if not self._live[0]:
            raise EmptyConstraintError("the tokenizer writes no string of the language")
        self._num_between = len(nodes)  # between characters
        self._nodes = np.concatenate([nodes, np.zeros((len(nodes), 1), np.int32)], axis=1)
        self.cuts = self._linked(splitting.cuts)
        self._boths = self._linked(splitting.boths)
        self.least: Int32s = distances[self._nodes[:, 0]]
        self.is_final = (automaton.accepting[nodes[:, 0]] != 0) & (splitting.finals[nodes[:, 1]] != 0)
        self._easy = (self._live & self.is_easy(np.arange(len(nodes)))).astype(np.uint8)
        self._inside: dict[int, int] = {}  # numbers of nodes inside of characters, by their keys
        self._lock = threading.Lock()
        self._within: Recent[Following] = Recent(MOST_KEPT // 2)
        self._choices: Recent[Choices] = Recent(MOST_KEPT // 2)
        self._accepting = automaton.accepting
        self._num_states = automaton.num_states
        self._alike: Int32s | None = None
        self._closer: dict[int, tuple[int, int]] = {}  # a step of an example, for each state that one leads through

    def _linked(self, links: Int32s) -> Int32s:
        """For each node the live one in which ``links[s]`` stands for s."""
        return self._numbers_of(self._nodes[:, 0], links[self._nodes[:, 1]])

    def _numbers_of(self, states: Int32s, splits: Int32s) -> Int32s:
        keys = states.astype(np.int64) * self._num_splits + splits
        keys[splits < 0] = NOWHERE
        return numbers_of(self._keys, self._numbers, self._live, keys)  # type: ignore[no-any-return]

    @property
    def num_nodes(self) -> int:
        """How many nodes there are, so far."""
        return self._num_between + len(self._inside)

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes."""
        arrays = self._nodes, self._keys, self._numbers, self._live, self.cuts, self._boths, self.least, self.is_final
        return sum(array.nbytes for array in arrays) + self._within.nbytes + self._choices.nbytes

    def place_of(self, node: int) -> tuple[int, int, int]:
        """(q, s, p) of a node."""
        state, split, partial = self._nodes[node].tolist()
        return state, split, partial

    def is_easy(self, nodes: Any) -> Any:
        """Whether the end can be reached from a node, or from each of an array, whatever the token before: where the
        text may end, or the pre-token, for then any text can be written."""
        return self.is_final[nodes] | (self.cuts[nodes] != NOWHERE)

    def completion(self, node: int, token: int) -> tuple[int, int]:
        """How many single bytes complete the character that a node is inside of after a token, and the node then, from
        which the end can be reached whatever the token; -1 twice where single bytes do not do it. A microsecond."""
        if node < self._num_between:
            return -1, -1
        model = self._model
        count, end = completion(
            *self._arrays, model.decode, model.splitting.steps, self._keys, self._numbers, self._easy,
            model.byte_tokens, *model.pairs, token, *map(int, self._nodes[node]),
        )  # fmt: skip
        return int(count), int(end)

    def open_ends(self, node: int, tokens: Int32s, *, begins: bool) -> tuple[Int32s, npt.NDArray[np.uint8]]:
        """The node after each of some tokens that merges make, ``NOWHERE`` where single bytes complete its character
        (then no number is needed), and whether they do: int32[T], uint8[T]."""
        model, tables = self._model, self._vocabulary.tables
        places, is_completed = token_ends(
            *self._arrays, model.decode, model.splitting.steps, self._keys, self._numbers, self._easy,
            model.byte_tokens, *model.pairs, tables.data, tables.offsets, tokens,
            *self._nodes[self._origin(node, begins=begins)].tolist(),
        )  # fmt: skip
        numbers = self._numbers_of(places[:, 0], np.where(places[:, 0] < 0, NOWHERE, places[:, 1]))
        asked = (places[:, 2] > 0) & (is_completed == 0)
        numbers[places[:, 2] > 0] = NOWHERE
        numbers[asked] = self._numbers_inside(places[asked])
        return numbers, is_completed

    def _origin(self, node: int, *, begins: bool) -> int:
        """The node that a token leads from which begins a pre-token, or goes on in the one before."""
        both = int(self._boths[node])
        return int(self.cuts[node]) if begins else both if both >= 0 else node

    def alike(self) -> Int32s | None:
        """For each state of the language the first one like it: for a token, whatever it is, each leads to places from
        which the end can be reached whatever the token, or to such where that is open, or to none, as the other does.
        int32[N]; None if there are too many states to find out."""
        if self._alike is None and self._num_states <= MOST_ALIKE:
            with self._lock:
                if self._alike is None:
                    self._alike = self._find_alike()
        return self._alike

    def _find_alike(self) -> Int32s:
        live = np.flatnonzero(self._live)
        states, splits, _ = self._nodes[live].T
        kind_of_node = 2 * splits.astype(np.int64) + self._easy[live]
        order = np.lexsort((kind_of_node, states))
        states, kind_of_node = states[order], kind_of_node[order]
        bounds = [0, *(np.flatnonzero(np.diff(states)) + 1).tolist(), len(states)]
        kinds = np.zeros(self._num_states, np.int32)
        known: dict[bytes, int] = {}
        for first, last in pairwise(bounds):
            kinds[states[first]] = known.setdefault(kind_of_node[first:last].tobytes(), len(known) + 1)
        # A token, and the rest of a character.
        found: Int32s = alike(*self._arrays, kinds, self._vocabulary.tables.max_token_length + 3)[0]
        return found

    def going_on(self, node: int) -> Following:
        """The tokens by which the pre-token goes on; in a node in which one begins, all that begin one."""
        found = self._within.get(node)
        if found is None:
            model, tables = self._model, self._vocabulary.tables
            tokens, places = tokens_within(
                *self._arrays, model.decode, model.splitting.steps, *tables.trie[:3], model.is_written,
                tables.max_token_length, *map(int, self._nodes[node]),
            )  # fmt: skip
            ends = self._numbers_of(places[:, 0], places[:, 1])
            is_inside = places[:, 2] != 0
            ends[is_inside] = self._numbers_inside(places[is_inside])
            if self.cuts[node] == node:
                own, own_ends = self._atoms(node)
                tokens, ends = np.concatenate([tokens, own]), np.concatenate([ends, own_ends])
            is_live = ends != NOWHERE
            tokens, ends = _by_token(tokens[is_live], ends[is_live], len(model.is_written))
            found = Following(tokens, ends, _different(ends, self.num_nodes), self.is_easy(ends).astype(np.uint8))
            self._within.add(node, found, 9 * len(tokens))
        return found

    def _numbers_inside(self, places: Int32s) -> Int32s:
        """The numbers of nodes inside of characters, new ones if need be; ``NOWHERE`` for those that are not live."""
        keys = places[:, 0].astype(np.int64) * self._num_splits + places[:, 1]
        keys = keys * len(self._model.decode) + places[:, 2]
        different, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
        numbers = np.empty(len(different), np.int32)
        with self._lock:
            for k, (key, first) in enumerate(zip(different.tolist(), firsts.tolist(), strict=True)):
                number = self._inside.get(key)
                if number is None:
                    place = places[first].tolist()
                    number = self._add_inside(key, place) if self._is_live_inside(*place) else NOWHERE
                numbers[k] = number
        return numbers[inverse]

    def _is_live_inside(self, state: int, split: int, partial: int) -> bool:
        model = self._model
        return bool(
            is_live_inside(
                *self._arrays, model.decode, model.splitting.steps, self._keys, self._numbers, self._live,
                state, split, partial,
            )
        )  # fmt: skip

    def _add_inside(self, key: int, place: list[int]) -> int:
        number = self.num_nodes
        if number == len(self._nodes):  # arrays that others look at now stay as they are
            self._nodes = np.concatenate([self._nodes, np.zeros_like(self._nodes)])
            self.cuts = np.concatenate([self.cuts, np.full_like(self.cuts, NOWHERE)])
            self._boths = np.concatenate([self._boths, np.full_like(self._boths, NOWHERE)])
            self.least = np.concatenate([self.least, np.zeros_like(self.least)])
            self.is_final = np.concatenate([self.is_final, np.zeros_like(self.is_final)])
        self._nodes[number] = place
        self.least[number] = self._distances[place[0]]
        self._inside[key] = number
        return number

    def after_token(self, node: int, token_id: int, *, begins: bool) -> int:
        """The node after a token, which begins a pre-token or goes on in the one before; ``NOWHERE`` if it may not."""
        model = self._model
        is_atom = token_id in model.atoms
        origin = self._origin(node, begins=begins or is_atom)
        if origin == NOWHERE or not (is_atom or model.is_written[token_id]):
            return NOWHERE
        state, split, partial = self._nodes[origin].tolist()
        data, offsets = self._vocabulary.tables.data, self._vocabulary.tables.offsets
        own = data[offsets[token_id] : offsets[token_id + 1]]
        state = self._after_bytes(state, own)
        if is_atom:
            split = int(model.splitting.atoms[split, model.atoms[token_id]])
        else:
            split, partial = model.moved(split, partial, own.tobytes())
        if state == NOWHERE or split == NOWHERE:
            return NOWHERE
        place = np.array([[state, split, partial]], np.int32)
        numbers = self._numbers_inside(place) if partial else self._numbers_of(place[:, 0], place[:, 1])
        return int(numbers[0])

    def two_ways(self, node: int) -> tuple[Following, Following]:
        """The tokens that begin a pre-token in a node, and those that may go on in the one before."""
        cut = self._origin(node, begins=True)
        apart = self.going_on(cut) if cut >= 0 else _NOTHING
        return apart, self.going_on(self._origin(node, begins=False))

    def _atoms(self, node: int) -> tuple[Int32s, Int32s]:
        """The tokens that are not made by merges, and where they lead from a node in which a pre-token begins."""
        model = self._model
        state, split, _ = map(int, self._nodes[node])
        offsets = model.atom_offsets
        states = [self._after_bytes(state, model.atom_data[begin:end]) for begin, end in pairwise(offsets.tolist())]
        splits = model.splitting.atoms[split].copy()
        splits[np.array(states, np.int32) < 0] = NOWHERE
        return model.atom_ids, self._numbers_of(np.array(states, np.int32), splits)

    def _after_bytes(self, state: int, data: npt.NDArray[np.uint8]) -> int:
        return int(state_after(*self._arrays, state, data))

    def choices(self, node: int) -> Choices:
        """The tokens that may follow in a node."""
        found = self._choices.get(node)
        if found is None:
            apart, joined = self.two_ways(node)
            tokens = _different(np.append(joined.tokens, apart.tokens), len(self._model.is_written))
            different = np.union1d(joined.different, apart.different).astype(np.int32)
            at_apart, at_joined = (self._places(tokens, different, following) for following in (apart, joined))
            is_atom = np.isin(tokens, self._model.atom_ids)  # a pre-token always begins with these
            found = Choices(
                tokens, np.append(different, np.int32(NOWHERE)), at_apart, np.where(is_atom, at_apart, at_joined)
            )
            self._choices.add(node, found, 12 * len(tokens))
        return found

    def _places(self, tokens: Int32s, different: Int32s, following: Following) -> Int32s:
        places = np.full(len(tokens), len(different), np.int32)
        at = _positions(following.tokens, tokens, len(self._model.is_written))
        places[at] = _positions(following.ends, different, self.num_nodes)
        return places

    # Texts

    def state_after(self, state: int, data: bytes) -> int:
        """Where bytes lead the language; ``NOWHERE`` if nowhere."""
        return self._after_bytes(state, np.frombuffer(data, np.uint8))

    def cut_at(self, state: int, split: int) -> int:
        """The node in which a pre-token begins, if it may; else ``NOWHERE``."""
        cut = self._model.splitting.cuts[split]
        return int(self._numbers_of(np.array([state], np.int32), np.array([cut], np.int32))[0])

    def may_end(self, state: int, split: int) -> bool:
        """Whether a text may end there."""
        return bool(self._accepting[state] and self._model.splitting.finals[split])

    def short_text(self, node: int) -> bytes:
        """A string that the language allows from a node on, of the fewest tokens of any kind; which may be one that
        the pre-token before must not be followed by. Empty if there is none in tokens."""
        state, tables = int(self._nodes[node, 0]), self._vocabulary.tables
        spelled = []
        while 0 < self._distances[state] < UNREACHABLE:
            step = self._closer.get(state)
            if step is None:
                step = self._closer[state] = closer_token(*self._arrays, self._distances, *tables.trie, state)
            token_id, state = step
            spelled.append(tables.data[tables.offsets[token_id] : tables.offsets[token_id + 1]].tobytes())
        return b"".join(spelled)


# Sorting is most of what wide nodes cost; with a place for each number there is none.
_FEW = 64  # of as many numbers as there may be one of: then sorting is cheaper


def _by_token(tokens: Int32s, ends: Int32s, num_tokens: int) -> tuple[Int32s, Int32s]:
    """Different tokens in ascending order, and their ends."""
    if _FEW * len(tokens) < num_tokens:
        order = np.argsort(tokens)
        return tokens[order], ends[order]
    end_of = np.full(num_tokens, NOWHERE, np.int32)
    end_of[tokens] = ends
    tokens = np.flatnonzero(end_of != NOWHERE).astype(np.int32)
    return tokens, end_of[tokens]


def _different(numbers: Int32s, limit: int) -> Int32s:
    """Numbers below a limit, in ascending order, each once: int32."""
    if _FEW * len(numbers) < limit:
        return np.unique(numbers).astype(np.int32, copy=False)
    is_there = np.zeros(limit, bool)
    is_there[numbers] = True
    return np.flatnonzero(is_there).astype(np.int32)


def _positions(numbers: Int32s, among: Int32s, limit: int) -> npt.NDArray[Any]:
    """Where each of the numbers stands among others, which are in ascending order, all below a limit."""
    if _FEW * len(numbers) < limit:
        return np.searchsorted(among, numbers)
    position_of = np.empty(limit, np.int32)
    position_of[among] = np.arange(len(among), dtype=np.int32)
    return position_of[numbers]


def _edge_lists(automaton: Automaton) -> tuple[npt.NDArray[np.uint8], Int32s, Int32s]:
    if not automaton.is_trie:
        return automaton.arrays
    sources, labels, targets = edges_of(automaton)
    links = np.zeros(automaton.num_states + 1, np.int32)
    np.cumsum(np.bincount(sources, minlength=automaton.num_states), out=links[1:])
    return labels, links, targets
