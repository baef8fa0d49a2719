"""Tokens that need no model: where only one text can follow, or only one token."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from .matcher import Matcher
from .vocabulary import Vocabulary

Encode = Callable[[str], Sequence[int]]
"""A tokenizer: the ids of a text, without special tokens."""


def forced_token_ids(matcher: Matcher, encode: Encode | None = None, before: bytes = b"") -> list[int]:
    """Tokens that a sequence can take without asking a model, in their order; none where there is something to choose.

    - Where one token alone is legal, the budget considered, it is taken.
    - Where every continuation begins with the same bytes (``Matcher.jump_forward_string``), these are spelled: as the
      tokenizer spells them after what comes before, wherever these tokens are legal under the budget; from where they
      are not, by the longest legal token each (of several with the same bytes, the lowest id). The spelling ends before
      a token that could be another one which reaches past these bytes: which of them it is, the model decides.

    The tokens are legal one after the other, so the budget holds. Forced text may have other spellings that a model
    would have preferred: taking one is another history for what follows. A stop token is never among them.

    Args:
        matcher: where the sequence stands. It is not changed.
        encode: the tokenizer; without it the longest legal tokens are taken.
        before: the bytes of the answer so far, which the tokenizer may need to spell what follows as it would.

    Costs O(bytes of the text) and a mask a token; where nothing is forced, a mask.
    """
    ahead = matcher.fork()
    vocabulary = matcher.constraint.vocabulary
    taken: list[int] = []
    while not ahead.is_terminated() and not ahead.is_complete:
        text = ahead.jump_forward_string()
        spelled = _spell(ahead, text, encode, before) if text else []
        if not spelled:
            allowed = ahead.allowed_token_ids()
            if len(allowed) != 1:
                break
            spelled = [int(allowed[0])]
            ahead.accept_token(spelled[0])
        taken += spelled
        before += bytes_of_tokens(vocabulary, spelled)
    return taken


def bytes_of_tokens(vocabulary: Vocabulary, token_ids: Sequence[int]) -> bytes:
    """The text of some tokens; of those without bytes (special ones, ids beyond the tokenizer's length) none."""
    data, offsets = vocabulary.tables.data, vocabulary.tables.offsets
    known = (token_id for token_id in token_ids if token_id < len(offsets) - 1)
    return b"".join(data[offsets[token_id] : offsets[token_id + 1]].tobytes() for token_id in known)


def _spell(ahead: Matcher, text: bytes, encode: Encode | None, before: bytes) -> list[int]:
    """Tokens that spell forced text, or the beginning of it; the matcher accepts them."""
    vocabulary = ahead.constraint.vocabulary
    offsets = vocabulary.tables.offsets
    usual = deque(_usual_spelling(vocabulary, text, encode, before))
    spelled: list[int] = []
    num_left = len(text)
    while num_left > 0:
        allowed = ahead.allowed_token_ids()
        sizes = offsets[allowed + 1] - offsets[allowed]
        if len(allowed) > 1 and sizes.max() > num_left:
            break
        place = int(np.searchsorted(allowed, usual[0])) if usual else len(allowed)
        if place < len(allowed) and allowed[place] == usual[0]:
            usual.popleft()
        else:
            place = int(sizes.argmax())
            usual.clear()
        ahead.accept_token(int(allowed[place]))
        spelled.append(int(allowed[place]))
        num_left -= int(sizes[place])
    return spelled


def _usual_spelling(vocabulary: Vocabulary, text: bytes, encode: Encode | None, before: bytes) -> list[int]:
    """The ids that the tokenizer has for a text after another, if a token begins where the text does."""
    if encode is None:
        return []
    offsets = vocabulary.tables.offsets
    for context in (before, b""):
        try:
            token_ids = list(encode((context + text).decode()))
        except UnicodeDecodeError:  # the text may begin or end within a character
            continue
        num_left, first = len(text), len(token_ids)
        while num_left > 0 and first > 0:
            first -= 1
            token_id = token_ids[first]
            num_left -= int(offsets[token_id + 1] - offsets[token_id]) if token_id < len(offsets) - 1 else 0
        if num_left == 0:
            return token_ids[first:]
    return []
