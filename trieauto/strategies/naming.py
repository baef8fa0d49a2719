"""Names of groups that tell a model what is in them."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ..errors import printable

MOST_WORDS = 3
_LONGEST = 24  # characters of a word
_CASE_CHANGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """The words of a value, in lower case: ``getUser_by-id`` has get, user, by and id."""
    return [word.lower()[:_LONGEST] for word in _WORD.findall(_CASE_CHANGE.sub(" ", text))]


def group_names(groups: Sequence[Sequence[str]]) -> list[str]:
    """A name for each group, all different: up to three words that many of its values have and few other groups.

    A group of ``card_arrival``, ``card_linking`` and ``lost_card`` is named "card arrival linking". Where words do not
    tell it from another group it gets more of them, or at last a number; where it has no words, its first value is its
    name.
    """
    words = [_ranked(group) for group in groups]
    groups_with = Counter(word for ranked in words for word in ranked)
    names: list[str] = []
    taken: set[str] = set()
    for group, ranked in zip(groups, words, strict=True):
        # Rare among groups and frequent in this one; of equal ones the word that comes first.
        scores = {word: share * math.log(1 + len(groups) / groups_with[word]) for word, share in ranked.items()}
        best = sorted(ranked, key=lambda word: -scores[word]) or [printable(group[0])[:_LONGEST].strip() or "empty"]
        name = next(name for name in _candidates(best, list(ranked)) if name not in taken)
        taken.add(name)
        names.append(name)
    return names


def _candidates(best: list[str], in_order: list[str]) -> Iterator[str]:
    """Names of the best words, more and more of them, in the order in which they occur; then with numbers."""
    place = {word: number for number, word in enumerate(in_order)}

    def joined(count: int) -> str:
        return " ".join(sorted(best[:count], key=lambda word: place.get(word, 0)))

    yield from map(joined, range(MOST_WORDS, max(MOST_WORDS, len(best)) + 1))
    for number in itertools.count(2):
        yield f"{joined(MOST_WORDS)} {number}"


def _ranked(group: Sequence[str]) -> dict[str, float]:
    """For each word of a group, in the order of its values, the share of values that have it."""
    counts = Counter(word for text in group for word in dict.fromkeys(words_of(text)))
    return {word: count / len(group) for word, count in counts.items()}
