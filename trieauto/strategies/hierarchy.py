"""A set split into groups, for two questions instead of one: which group, then which value of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ..errors import EmptyConstraintError, TrieautoError, shorten
from ..frozen import Frozen
from .clustering import EDIT_DISTANCES, assigned, by_edit_distance, by_vectors, ngram_vectors
from .naming import group_names
from .values import Embed, Value, checked_count, distinct_values, text_of, vectors_of

NameGroup = Callable[[tuple[Value, ...]], str]
_LISTED = 5  # values in an error message


class Hierarchy(Frozen):
    """Named groups of values that together are the set (hierarchical rewriting, appendix I of the trie paper).

    >>> hierarchy = Hierarchy.by_similarity(values)  # or .by_embedding(values, embed), .by_taxonomy(chapter_of_code)
    >>> hierarchy.groups["card arrival linking"]
    ('card_arrival', 'card_linking', 'lost_card')

    With about √K groups of about √K values neither question has many answers (its proposition 2). A value may be in
    several groups: then it is found by more than one way. Immutable.

    Args:
        groups: for each name its values. A name is what a model reads and writes.

    Raises:
        EmptyConstraintError: no groups, or one without values.
        TrieautoError: fewer than two values in all, a name that is no text or an empty one, or a bad value.

    Attributes:
        groups: for each name its values, in their order.
        values: the set: every value once.
    """

    groups: Mapping[str, tuple[Value, ...]]
    values: tuple[Value, ...]

    def __init__(self, groups: Mapping[str, Iterable[Value]]) -> None:
        if not isinstance(groups, Mapping):
            raise TrieautoError(f"groups must map names to values, not {shorten(groups)}")
        if not groups:
            raise EmptyConstraintError("there are no groups: nothing could be chosen")
        checked: dict[str, tuple[Value, ...]] = {}
        for name, values in groups.items():
            if not isinstance(name, str) or not name:
                raise TrieautoError(f"a group's name must be a text that is not empty, not {shorten(name)}")
            try:
                checked[name] = distinct_values(values)
            except TrieautoError as error:
                raise type(error)(f"group {shorten(name)}: {error}") from None
        found = distinct_values(value for values in checked.values() for value in values)
        self._set(groups=MappingProxyType(checked), values=_check_several(found))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(self.groups)

    @property
    def largest(self) -> int:
        """The most answers that one of the two questions has: the effective cardinality of the paper."""
        return max(len(self.groups), *map(len, self.groups.values()))

    def __repr__(self) -> str:
        return f"<Hierarchy: {len(self.values):,} values in {len(self.groups):,} groups>"

    @classmethod
    def by_similarity(
        cls,
        values: Iterable[Value],
        *,
        num_groups: int | None = None,
        memberships: int = 1,
        name: NameGroup | None = None,
        seed: int = 0,
    ) -> Hierarchy:
        """Groups of values that are written alike.

        Up to 2,000 values: hierarchical clustering of edit distances, as in the paper, O(K²). More: k-means of the
        n-grams that they share (some seconds for 20,000). Then groups are evened out: none has more than
        2 ⌈K / num_groups⌉ values for each membership.

        Args:
            values: two or more.
            num_groups: about so many groups (at most one more); by default ⌈√K⌉.
            memberships: in how many groups a value is, if these have room: in the one it fits best, and in the next.
            name: what to call a group of values; by default up to three words that tell it from the others.
            seed: of what is random.

        Raises:
            EmptyConstraintError: no values.
            TrieautoError: one value, a bad number, or two groups with the same name.
            UnsupportedError: scikit-learn or rapidfuzz is not installed.
        """
        given = _check_several(distinct_values(values))
        texts = [text_of(value) for value in given]
        groups, capacity = _sizes(len(given), num_groups)
        if len(texts) <= EDIT_DISTANCES:
            labels, distances = by_edit_distance(texts, capacity)
        else:
            labels, distances = by_vectors(ngram_vectors(texts, seed), groups, capacity, seed)
        return cls._made(given, labels, distances, capacity, memberships, name)

    @classmethod
    def by_embedding(
        cls,
        values: Iterable[Value],
        embed: Embed,
        *,
        num_groups: int | None = None,
        memberships: int = 1,
        name: NameGroup | None = None,
        seed: int = 0,
    ) -> Hierarchy:
        """Groups of values that mean something alike: k-means of their vectors, evened out as in ``by_similarity``.

        Args:
            values: two or more.
            embed: texts to vectors, any callable; their directions count. It is called once, with all values.
            num_groups, memberships, name, seed: as for ``by_similarity``. (At most ``num_groups`` groups.)

        Raises:
            EmptyConstraintError, TrieautoError, UnsupportedError: as for ``by_similarity``; and for vectors that are
                none.
        """
        given = _check_several(distinct_values(values))
        groups, capacity = _sizes(len(given), num_groups)
        vectors = vectors_of(embed, [text_of(value) for value in given])
        labels, distances = by_vectors(vectors, groups, capacity, seed)
        return cls._made(given, labels, distances, capacity, memberships, name)

    @classmethod
    def by_taxonomy(
        cls, group_of: Mapping[Value, str | Iterable[str]], values: Iterable[Value] | None = None
    ) -> Hierarchy:
        """The groups that somebody else made, such as the chapters of ICD-10.

        Args:
            group_of: for each value the name of its group, or the names of several.
            values: the set; by default all that ``group_of`` has. It may have more than the set.

        Raises:
            EmptyConstraintError: no values.
            TrieautoError: a value without a group, or a group that is no text; the message names the value. One value.
        """
        if not isinstance(group_of, Mapping):
            raise TrieautoError(f"a taxonomy must map values to groups, not {shorten(group_of)}")
        given = distinct_values(group_of if values is None else values)
        lost = [value for value in given if value not in group_of]
        if lost:
            named = ", ".join(map(shorten, lost[:_LISTED])) + (", …" if len(lost) > _LISTED else "")
            raise TrieautoError(f"{len(lost):,} of {len(given):,} values have no group: {named}")
        groups: dict[str, list[Value]] = {}
        for value in given:
            found = group_of[value]
            try:
                names = [found] if isinstance(found, str) else list(found)
            except TypeError:
                names = [found]  # type: ignore[list-item]  # which is what the error is about
            if not names or not all(isinstance(name, str) and name for name in names):
                raise TrieautoError(f"the group of {shorten(value)} must be a name, or several, not {shorten(found)}")
            for name in dict.fromkeys(names):
                groups.setdefault(name, []).append(value)
        return cls(groups)

    @classmethod
    def _made(
        cls,
        values: tuple[Value, ...],
        labels: npt.NDArray[np.int64],
        distances: npt.NDArray[np.float32],
        capacity: int,
        memberships: int,
        name: NameGroup | None,
    ) -> Hierarchy:
        """Groups from the number of each value's first group and its distance to all groups."""
        num_groups = distances.shape[1]
        belongs = np.zeros(distances.shape, dtype=bool)
        belongs[np.arange(len(labels)), labels] = True
        for _ in range(checked_count("memberships", memberships) - 1):
            others = assigned(distances, capacity, belongs)
            belongs[np.flatnonzero(others >= 0), others[others >= 0]] = True
        groups = [tuple(values[i] for i in np.flatnonzero(belongs[:, number])) for number in range(num_groups)]
        if name is None:
            # Named after those that belong there most.
            texts = [[text_of(values[i]) for i in np.flatnonzero(labels == number)] for number in range(num_groups)]
            names = group_names(texts)
        else:
            names = [name(group) for group in groups]
        if len(set(names)) < len(names):
            twice = next(each for each in names if names.count(each) > 1)
            raise TrieautoError(f"two groups have the name {shorten(twice)}: names must tell them apart")
        return cls(dict(zip(names, groups, strict=True)))

    def misassigned(self, fraction: float, seed: int = 0) -> Hierarchy:
        """A hierarchy in which some values, drawn at random, are in another group, drawn at random, than they should.

        For measuring how much a strategy depends on good groups (the paper speaks of 10 to 20 %). The names stay as
        they are; a group that loses all its values is gone.

        Args:
            fraction: of the values, 0 to 1.
            seed: of the draws.

        Raises:
            TrieautoError: a fraction that is none, or there is no other group.
        """
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
            raise TrieautoError(f"fraction must be a number from 0 to 1, not {shorten(fraction)}")
        if len(self.groups) < 2:
            raise TrieautoError(f"all values are in one group, {shorten(self.names[0])}: none can be in a wrong one")
        rng = np.random.default_rng(seed)
        moved = rng.choice(len(self.values), size=round(fraction * len(self.values)), replace=False)
        members = {name: set(group) for name, group in self.groups.items()}
        goal_of: dict[Value, str] = {}
        for i in moved.tolist():
            value = self.values[i]
            others = [name for name, group in members.items() if value not in group]
            if others:
                goal_of[value] = others[rng.integers(len(others))]
        groups = {name: [value for value in group if value not in goal_of] for name, group in self.groups.items()}
        for value, name in goal_of.items():
            groups[name].append(value)
        return Hierarchy({name: group for name, group in groups.items() if group})


def _check_several(values: tuple[Value, ...]) -> tuple[Value, ...]:
    if len(values) < 2:
        raise TrieautoError(f"groups need two values or more; there is only {shorten(values[0])}")
    return values


def _sizes(count: int, num_groups: int | None) -> tuple[int, int]:
    """How many groups, and how many values one takes."""
    groups = math.isqrt(count - 1) + 1 if num_groups is None else checked_count("num_groups", num_groups, least=2)
    if groups > count:
        raise TrieautoError(f"num_groups={groups} is more than there are values ({count})")
    return groups, 2 * -(-count // groups)
