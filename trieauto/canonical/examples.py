"""Short texts to the end of a language, in the tokenizer's own tokens: so many are enough, without a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..vocabulary import Vocabulary
from .language import NOWHERE, Int32s, SplitLanguage
from .model import BytePairModel

ENDLESS = 2**31 - 1
_UNKNOWN = -1


class Examples:
    """An example from each node in which a pre-token begins, made when first asked for, in some tens of microseconds.

    It is a text of the fewest tokens of any kind: the tokenizer mostly writes it in as few.
    """

    def __init__(self, language: SplitLanguage, model: BytePairModel, vocabulary: Vocabulary) -> None:
        self._language = language
        self._model = model
        self._vocabulary = vocabulary
        self._enough = np.full(language.num_nodes, _UNKNOWN, np.int32)  # for each node in which a pre-token begins

    def enough(self, nodes: Any) -> Int32s:
        """How many tokens are enough from nodes in which the text may end, or the pre-token: int32, ``ENDLESS`` where
        the example is none (what the pre-token before must not be followed by is in the node, not in the example)."""
        cuts = self._language.cuts[nodes]
        is_open = ~self._language.is_final[nodes]
        cuts_open = np.unique(cuts[is_open])
        missing = cuts_open[self._enough[cuts_open] == _UNKNOWN].tolist()
        if missing:
            self._find(missing)
        return np.where(is_open, self._enough[cuts], 0)

    def _find(self, cuts: list[int]) -> None:
        encoder = self._vocabulary.encoder
        assert encoder is not None
        texts = [self._language.short_text(cut) for cut in cuts]
        encoded = encoder.encode_batch([text.decode(errors="replace") for text in texts])
        spelled = self._vocabulary.tokens
        for cut, text, ids in zip(cuts, texts, encoded, strict=True):
            if self._enough[cut] == _UNKNOWN:
                tokens = [(token_id, spelled[token_id] or b"") for token_id in ids]
                self._enough[cut] = ENDLESS
                if b"".join(data for _, data in tokens) == text:
                    self._follow(cut, tokens)

    def _follow(self, cut: int, tokens: list[tuple[int, bytes]]) -> None:
        """Learn from the tokens of an example, up to where a pre-token begins of which is known what is enough."""
        language = self._language
        state, split, partial = language.place_of(cut)
        passed = [(cut, 0)]  # where pre-tokens begin, after so many tokens
        steps = self._model.steps_of(split, [token_id for token_id, _ in tokens], self._vocabulary)
        for count, (step, (_, data)) in enumerate(zip(steps, tokens, strict=True)):
            if step.begins and count > 0:
                begin = language.cut_at(state, split)
                if begin == NOWHERE:
                    return
                if self._enough[begin] != _UNKNOWN:
                    total = count + int(self._enough[begin])
                    break
                passed.append((begin, count))
            state, split, partial = language.state_after(state, data), step.split, step.partial
            if NOWHERE in (state, split):
                return
        else:
            if partial != 0 or not language.may_end(state, split):
                return
            total = len(tokens)
        if total < ENDLESS:
            for begin, count in passed:
                self._enough[begin] = total - count
