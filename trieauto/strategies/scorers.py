"""What guesses, without a language model, how likely each value of a set is: any callable can, these are at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import TrieautoError, shorten
from .naming import words_of
from .values import Embed, Value, load_rapidfuzz, load_sklearn, text_of, vectors_of

Scorer: TypeAlias = Callable[[str, Sequence[Value]], npt.ArrayLike]
"""A text and the values to scores, one for each value; the higher the likelier. Only their order counts."""


def scores_of(scorer: Scorer, text: str, values: Sequence[Value]) -> npt.NDArray[np.float64]:
    """The scores of a text: float64[values].

    Raises:
        TrieautoError: not one number for each value; the message names what the scorer gave.
    """
    given = scorer(text, values)
    try:
        scores = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        scores = np.empty(0)
    if scores.shape != (len(values),) or np.isnan(scores).any():
        raise TrieautoError(f"the scorer must give one number for each of {len(values):,} values, not {shorten(given)}")
    return scores


class _Fitted:
    """What a scorer makes of the values is kept until it is called with others."""

    def __init__(self) -> None:
        self._kept: tuple[Sequence[Value], Any] | None = None

    def _of(self, values: Sequence[Value], make: Callable[[list[str]], Any]) -> Any:
        kept = self._kept
        # A tuple does not change, so the same one need not be looked at again.
        if kept is None or kept[0] is not values or not isinstance(values, tuple):
            kept = values, make([_spaced(value) for value in values])
            self._kept = kept
        return kept[1]


class FuzzyScorer(_Fitted):
    """How well the words of a value are found in the text, misspelled or not: rapidfuzz's token set ratio, 0 to 100.

    O(bytes of text and values) for each pair; some microseconds. Needs rapidfuzz.
    """

    def __call__(self, text: str, values: Sequence[Value]) -> npt.NDArray[np.float32]:
        """The scores of ``values`` for ``text``: float32[values], the higher the likelier.

        Raises:
            UnsupportedError: rapidfuzz is not installed.
        """
        rapidfuzz = load_rapidfuzz("FuzzyScorer")
        texts = self._of(values, lambda spaced: spaced)
        scores = rapidfuzz.process.cdist(
            [" ".join(words_of(text))], texts, scorer=rapidfuzz.fuzz.token_set_ratio, dtype=np.float32
        )
        return np.asarray(scores[0])


class TfidfScorer(_Fitted):
    """Cosine of the n-grams of characters (2 to 5, within words) that text and value share, rare ones counting more.

    Fitted to the values once; then one sparse product for each text. Needs scikit-learn.
    """

    def __call__(self, text: str, values: Sequence[Value]) -> npt.NDArray[np.float32]:
        """The scores of ``values`` for ``text``: float32[values], the higher the likelier.

        Raises:
            UnsupportedError: scikit-learn is not installed.
        """
        vectorizer, matrix = self._of(values, self._fit)
        return np.asarray((matrix @ vectorizer.transform([_spaced(text)]).T).todense(), np.float32)[:, 0]

    def _fit(self, texts: list[str]) -> tuple[Any, Any]:
        vectorizer = load_sklearn("feature_extraction.text", "TfidfScorer").TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, dtype=np.float32
        )
        return vectorizer, vectorizer.fit_transform(texts)


class EmbeddingScorer(_Fitted):
    """Cosine of the vectors that an embedding gives text and value.

    Args:
        embed: texts to vectors, any callable. The values, with spaces between their words, are embedded once.
    """

    def __init__(self, embed: Embed) -> None:
        super().__init__()
        self._embed = embed

    def __call__(self, text: str, values: Sequence[Value]) -> npt.NDArray[np.float32]:
        """The scores of ``values`` for ``text``: float32[values], the higher the likelier.

        Raises:
            TrieautoError: the embedding gives no vectors of numbers.
        """
        vectors = self._of(values, lambda texts: vectors_of(self._embed, texts))
        return np.asarray(vectors @ vectors_of(self._embed, [text])[0])


def _spaced(value: Value) -> str:
    """A value's words with spaces between them; as it is if it has none, and never empty."""
    text = text_of(value)
    return " ".join(words_of(text)) or text.strip() or "_"
