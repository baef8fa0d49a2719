"""Canonical tokens of a language with any number of strings, found while it is written."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..automaton import Automaton
from ..budgets import token_distances
from ..constraint import READY_LIMIT, ROW_COUNT
from ..errors import EmptyConstraintError, UnsupportedError, shorten
from ..kernels.descriptor import NO_BUDGET
from ..place_constraint import Mask, Place, PlaceConstraint, one_state
from ..recent import Recent
from ..vocabulary import Vocabulary
from .examples import Examples
from .language import NOWHERE, Choices, SplitLanguage
from .model import BytePairModel, byte_pair_model
from .node_masks import NodeMask, SharedMask, legal_tokens, node_mask, shared_mask
from .search import NEVER, OPEN, SURE, Search

NO_TOKEN = -1
MOST_MASK_BYTES = 32 * 2**20
MANY_TOKENS = 4_096
WIDE_BEFORE_ALIKE = 4  # different wide nodes, before it is found out which are alike


class CanonicalConstraint(PlaceConstraint):
    """What may be generated of a language in the tokens that a byte-pair tokenizer itself writes.

    A place is a node of ``language.SplitLanguage`` and the token before it. Masks are found when needed: what leads
    where once for each node (tens of milliseconds where nearly every token is legal, then some for each node like that
    one), then what the token before allows (some tenths of a millisecond). What was found last is kept: masks, 64 MB;
    what leads where, 64 MB.
    """

    automaton: Automaton
    _language: SplitLanguage
    _search: Search
    _masks_made: Recent[Mask]
    _node_masks: Recent[NodeMask]
    _shared_masks: Recent[SharedMask]
    _always_enough: int
    _enough: dict[int, int]
    _others_enough: dict[int, int]
    _model: BytePairModel

    def __init__(
        self, automaton: Automaton, vocabulary: Vocabulary, left_context: str | None, compile_seconds: float = 0.0
    ) -> None:
        begin = time.perf_counter()
        assert vocabulary.encoder is not None
        model = byte_pair_model(vocabulary, vocabulary.encoder)
        if model.is_ascii_only and bool((automaton.labels >= 0x80).any()):
            raise UnsupportedError(
                "the tokenizer normalizes texts, which changes none that is ASCII: tokenization='canonical' of a "
                f"language of more than 200,000 strings is supported for ASCII there, and {automaton!r} has others"
            )
        split, last = 0, NO_TOKEN
        context = vocabulary.encoder.since_boundary(left_context or "")
        if context:
            ids = np.array(vocabulary.encoder.encode_batch([context])[0], np.int32)
            split, last = model.split_after(context, ids, vocabulary)
        distances = token_distances(automaton, vocabulary)
        try:
            language = SplitLanguage(automaton, vocabulary, model, split, distances)
        except EmptyConstraintError:
            raise _nothing_written(automaton, context) from None
        super().__init__(
            one_state(automaton.arrays),
            vocabulary,
            walks_before_storing=0,
            tokenization="canonical",
            left_context=left_context,
            compile_seconds=compile_seconds + time.perf_counter() - begin,
        )
        self._set(
            automaton=automaton,
            start=(0, last, bool(language.is_final[0])),
            _language=language,
            _search=Search(language, model, Examples(language, model, vocabulary)),
            _masks_made=Recent(READY_LIMIT),
            _node_masks=Recent(MOST_MASK_BYTES),
            _shared_masks=Recent(MOST_MASK_BYTES // 2),
            _always_enough=language.most_tokens + 3,  # with those that complete a character before
            _enough={},
            _others_enough={},
            _model=model,
        )
        if not self._search.can_end(0, last):
            raise _nothing_written(automaton, context)

    def __reduce__(self) -> tuple[object, ...]:
        return CanonicalConstraint, (self.automaton, self.vocabulary, self.left_context)

    # Places

    def _places_of(self, choices: Choices, token: int) -> Any:
        """Where in ``choices.different`` each of its tokens leads after a token: int32[T]."""
        if token == NO_TOKEN:
            return choices.apart
        return np.where(self._model.apart_from(token)[choices.tokens], choices.apart, choices.joined)

    def place_after_token(self, place: Place, token_id: int) -> Place | None:
        node, token, _ = place
        begins = token == NO_TOKEN or bool(self._model.apart_from(token)[token_id])
        after = self._language.after_token(node, token_id, begins=begins)
        if after == NOWHERE or not self._search.can_end(after, token_id):
            return None
        return after, token_id, bool(self._language.is_final[after])

    # Masks

    def mask(self, place: Place, remaining: int) -> Mask:
        node, token, is_final = place
        limit = None if self._is_generous(node, remaining) else remaining
        key = node, token, limit
        known = self._masks_made.get(key)
        if known is not None:
            return known
        tokens = self._legal(node, token, limit)
        is_row = len(tokens) > ROW_COUNT
        mask = self.bits_of(tokens, is_final) if is_row else tokens
        return self._masks_made.add(key, (mask, is_row, len(tokens)), mask.nbytes)

    def _legal(self, node: int, token: int, limit: int | None) -> Any:
        """The tokens that may follow, with so many left: int32, ascending."""
        mask = self._node_mask(node) if limit is None else None
        if mask is not None:
            is_apart = None if token == NO_TOKEN else self._model.apart_from(token)
            return legal_tokens(mask, is_apart)
        choices, search = self._language.choices(node), self._search
        places = self._places_of(choices, token)
        nodes = choices.different[:-1]
        # Most nodes decide for all tokens that lead there; in the others the token does.
        if limit is None:
            verdicts = np.where(self._language.is_easy(nodes), SURE, OPEN)
        else:
            verdicts = search.verdicts(nodes, limit - 1)
        legal = np.append(verdicts, NEVER)[places]
        for k in np.flatnonzero(legal == OPEN).tolist():
            after, following = int(nodes[places[k]]), int(choices.tokens[k])
            if limit is None:
                is_legal = search.can_end(after, following)
            else:
                is_legal = search.is_within(after, following, limit - 1)
            legal[k] = SURE if is_legal else NEVER
        return choices.tokens[legal == SURE]

    def _node_mask(self, node: int) -> NodeMask | None:
        """Of a node with many tokens: the lists of all of them take too long, and too much memory, to be kept."""
        mask = self._node_masks.get(node)
        if mask is None:
            shared = self._shared_mask(node)
            if shared is None:
                return None
            mask = node_mask(shared, self._language, self._model, node, self._search.can_end)
            self._node_masks.add(node, mask, mask.nbytes)
        return mask

    def _shared_mask(self, node: int) -> SharedMask | None:
        """Of the nodes like a node. Which are alike is found out when that has been worth it."""
        state, split, partial = self._language.place_of(node)
        alike = self._language.alike() if len(self._shared_masks) >= WIDE_BEFORE_ALIKE else None
        key = (state if alike is None else int(alike[state]), split, partial)
        shared = self._shared_masks.get(key)
        if shared is None:
            ways = self._language.two_ways(node)
            if sum(len(following.tokens) for following in ways) < MANY_TOKENS:
                return None
            shared = shared_mask(*ways, self._model)
            self._shared_masks.add(key, shared, shared.nbytes)
        return shared

    # Budgets

    def _is_generous(self, node: int, remaining: int) -> bool:
        """Whether so many tokens forbid nothing in a node."""
        if remaining > NO_BUDGET // 2:
            return True
        if remaining > self._always_enough:
            enough = self._enough_after_others(node)
            if enough is not None:
                return remaining > enough
        return remaining > self._enough_after(node)

    def _enough_after_others(self, node: int) -> int | None:
        """Of a node with many tokens: so many tokens are enough after those that ``_always_enough`` is not for."""
        enough = self._others_enough.get(node)
        if enough is None:
            mask = self._node_mask(node)
            if mask is None:
                return None
            enough = max((self._search.enough(*other) for other in mask.others), default=0)
            self._others_enough[node] = enough
        return enough

    def _enough_after(self, node: int) -> int:
        """So many tokens are enough after any token that may follow in a node, whichever came before."""
        enough = self._enough.get(node)
        if enough is None:
            search = self._search
            ways = self._language.two_ways(node)
            ends = np.unique(np.concatenate([following.different for following in ways]))
            enough = search.enough_at_end(ends[self._language.is_easy(ends)])
            hard = set[tuple[int, int]]()
            for following in ways:
                at = np.flatnonzero(following.is_easy == 0)
                hard.update(zip(following.ends[at].tolist(), following.tokens[at].tolist(), strict=True))
            for after, token in hard:
                if search.can_end(after, token):
                    enough = max(enough, search.enough(after, token))
            self._enough[node] = enough
        return enough

    def is_within(self, place: Place, remaining: int) -> bool:
        node, token, is_final = place
        if is_final or remaining > NO_BUDGET // 2:
            return remaining >= 0
        return self._search.is_within(node, token, remaining)

    def is_limited(self, place: Place, remaining: int) -> bool:
        node, token, _ = place
        if self._is_generous(node, remaining):
            return False
        return len(self._legal(node, token, remaining)) < len(self._legal(node, token, None))

    def fewest_tokens(self, place: Place) -> int:
        node, token, _ = place
        return self._search.fewest(node, token)

    def forced_bytes(self, place: Place, limit: int) -> bytes:
        """None: bytes are not looked at, as in any canonical tokenization."""
        return b""

    @property
    def nbytes(self) -> int:
        return (
            self.automaton.nbytes
            + self._language.nbytes
            + sum(kept.nbytes for kept in (self._masks_made, self._node_masks, self._shared_masks))
        )

    def stats(self) -> dict[str, Any]:
        return {
            "states": self.num_states,
            "tokenization": self.tokenization,
            "engine": "byte pairs and the pre-tokenizer, followed",
            "nodes": self._language.num_nodes,
            "mode": "lazy",
            "bytes": self.nbytes,
            "min_tokens": None,
            "ready_masks": len(self._masks_made),
            "ready_masks_made": len(self._masks_made),
            "compile_seconds": self._compile_seconds,
        }


def _nothing_written(automaton: Automaton, context: str) -> EmptyConstraintError:
    behind = f" behind the left context {shorten(context)}, whose end it joins with whatever follows" if context else ""
    return EmptyConstraintError(
        f"the tokenizer itself never writes what is allowed{behind}, not one string of {automaton!r}"
    )
