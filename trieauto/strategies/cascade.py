"""The likeliest values first: a shortlist, a longer one, and the whole set, so that nothing is out of reach."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..errors import TrieautoError, shorten
from ..frozen import Frozen
from .scorers import Scorer, scores_of
from .values import Value, checked_count, distinct_values

ESCAPE = "none of these"


class Cascade(Frozen):
    """Which values a model is asked about, stage by stage (speculative short-circuiting, appendix J of the trie paper).

    A scorer without a language model puts the k likeliest values before the model; if the answer is not among them, the
    2k likeliest; then all. The paper does not say what sends an answer on to the next stage. Here it is a further
    answer, the ``escape``, that each shortlist has beside its values: a model that is bound to a shortlist must be able
    to say that nothing on it is right, or it would have to take something wrong. It is never a result, and the last
    stage, the whole set, does not have it.

    >>> cascade = Cascade(values, TfidfScorer(), k=20)
    >>> cascade.sizes
    (20, 40, 74719)

    Args:
        values: the set.
        scorer: a text and the values to scores, any callable; the higher the likelier. It always gets the tuple
            ``values``, and may keep what it makes of it.
        k: length of the first shortlist. A stage that would be as long as the set is left away.
        escape: the answer that nothing on a shortlist is right, worded for the model.

    Raises:
        EmptyConstraintError: no values.
        TrieautoError: a bad ``k``, an ``escape`` that is a value, empty or no text, or a bad value.

    Attributes:
        values: the set: every value once.
        escape: as given.
        sizes: how many values each stage has, ascending; the last has all.
    """

    values: tuple[Value, ...]
    escape: str
    sizes: tuple[int, ...]
    _scorer: Scorer

    def __init__(self, values: Iterable[Value], scorer: Scorer, k: int = 20, *, escape: str = ESCAPE) -> None:
        found = distinct_values(values)
        count = checked_count("k", k)
        if not callable(scorer):
            raise TrieautoError(
                f"a scorer is called with a text and the values, but {shorten(scorer)} cannot be called"
            )
        if not isinstance(escape, str) or not escape:
            raise TrieautoError(f"escape must be a text that is not empty, not {shorten(escape)}")
        if escape in found or escape.encode() in found:
            raise TrieautoError(f"escape {shorten(escape)} is a value of the set: word it in another way")
        sizes = (*(size for size in (count, 2 * count) if size < len(found)), len(found))
        self._set(values=found, escape=escape, sizes=sizes, _scorer=scorer)

    def __repr__(self) -> str:
        return f"<Cascade: {' → '.join(f'{size:,}' for size in self.sizes)} values>"

    def ranked(self, text: str, count: int | None = None) -> tuple[Value, ...]:
        """The likeliest values for a text, the likeliest first (of equal scores the earlier value).

        Costs what the scorer costs, and sorting K scores.

        Args:
            text: what is to be decided.
            count: how many values; None for all.

        Raises:
            TrieautoError: the scorer gives something else than a number for each value.
        """
        scores = scores_of(self._scorer, text, self.values)
        order = np.argsort(-scores, kind="stable")[:count]
        return tuple(self.values[i] for i in order.tolist())

    def recall(self, texts: Iterable[str], labels: Iterable[Value], k: int | None = None) -> float:
        """How often the right value is among the k likeliest (Recall@k), 0 to 1.

        Args:
            texts: one or more.
            labels: for each its right value.
            k: length of the shortlist; None for that of the first stage.

        Raises:
            TrieautoError: no texts, not as many labels, a label that is no value, or a bad ``k``.
        """
        count = self.sizes[0] if k is None else checked_count("k", k)
        asked, right = list(texts), list(labels)
        if not asked or len(asked) != len(right):
            raise TrieautoError(f"recall needs a label for each text, but got {len(right)} for {len(asked)}")
        members = set(self.values)
        found = 0
        for text, label in zip(asked, right, strict=True):
            if label not in members:
                raise TrieautoError(f"label {shorten(label)} is not a value of the set")
            found += label in self.ranked(text, count)
        return found / len(asked)
