"""Lists of values of a set as a language: the set's trie, and what stands around its values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..algebra import literal
from ..automaton import SPACE, Automaton, PrefixSpace, SortedValues
from ..errors import TrieautoError, UnsupportedError, shorten
from ..kernels.list_walk import ENTERS, list_step
from ..kernels.trie import parents_of_trie
from ..packing import as_bytes, as_integer
from ..value_sets import choices
from .joints import Joints, joints

UNBOUNDED = 2**62  # values

Place = tuple[int, tuple[int, ...], bool]
"""Where a text stands: the place (see ``kernels.list_walk``); the ends of the values before it, in their order; and
whether the text may end here."""


@dataclass(frozen=True, slots=True, eq=False)
class ListAutomaton:
    """A language of lists of values. Immutable, thread-safe. Made by ``several``, or for a JSON schema.

    It is no ``Automaton``: if the values must differ, that would have a state for each set of values that were given.
    So it cannot be a part of other languages. ``compile`` takes it like them.

    Attributes:
        items: the set; its states are the first ones.
        given: for each of its strings, what ``matcher.value`` has for it.
        parts: what stands before, between and after values, and the text of the empty list or None.
        joints: these in one.
        minimum: how few values there may be.
        maximum: how many there may be; ``UNBOUNDED`` for any number.
        distinct: whether they must differ.
        engine: as in ``Automaton``.
    """

    items: Automaton
    given: Sequence[Any]
    parts: tuple[Automaton, Automaton, Automaton, Automaton | None]
    joints: Joints
    minimum: int
    maximum: int
    distinct: bool
    engine: str = ""

    @property
    def values(self) -> None:
        """Those of a set that one is chosen of; this is none."""
        return None

    @property
    def sets(self) -> tuple[Sequence[str | bytes], ...]:
        """The values that a vocabulary must spell."""
        return (self.sorted_values.given,)

    @property
    def sorted_values(self) -> SortedValues:
        """The set's values in the order of their bytes."""
        assert self.items.values is not None
        return self.items.values

    @property
    def num_states(self) -> int:
        """States of the trie, and of the joints. (What was given already is not counted.)"""
        return self.items.num_states + len(self.joints.flags)

    @property
    def start(self) -> int:
        """The place before the first byte."""
        return self.items.num_states + self.joints.start

    @property
    def is_finite(self) -> bool:
        """Whether there are finitely many lists."""
        return self.maximum < UNBOUNDED

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The form in which kernels take it: see ``kernels.list_walk``."""
        return self._with_numbers(self.minimum, self.maximum, self.distinct)

    @property
    def relaxed_arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The same for the language with any number of values, which may be equal."""
        return self._with_numbers(0, UNBOUNDED, False)

    def _with_numbers(self, minimum: int, maximum: int, distinct: bool) -> tuple[npt.NDArray[Any], ...]:
        it = self.joints
        numbers = np.array([minimum, maximum, distinct, it.either, it.another, it.last_one], np.int64)
        items = self.items
        terminals = self.sorted_values.terminals
        return items.labels, items.links, items.accepting, terminals, it.labels, it.links, it.targets, it.flags, numbers

    def accepts(self, string: str | bytes) -> bool:
        """Whether a whole string is in the language. O(bytes * values given).

        Raises:
            TrieautoError: neither str nor bytes.
        """
        if not isinstance(string, (str, bytes)):
            raise TrieautoError(f"a string of a language is str or bytes, not {shorten(string)}")
        try:
            data = as_bytes(string)
        except UnicodeEncodeError:
            return False  # a lone surrogate has no UTF-8 bytes
        _, is_final, _ = list_step(*self.arrays, self.start, np.empty(0, np.int32), np.frombuffer(data, np.uint8))
        return bool(is_final)

    def value_at(self, state: int) -> Any:
        """What was given for the string that ends at a state of the trie."""
        values = self.sorted_values
        return self.given[int(values.order[int(np.searchsorted(values.terminals, state))])]

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes, without the caller's values themselves."""
        return self.items.nbytes + self.joints.nbytes

    def __repr__(self) -> str:
        most = "" if self.maximum == UNBOUNDED else f" to {self.maximum:,}"
        different = " different" if self.distinct else ""
        return f"<ListAutomaton: {self.minimum:,}{most or ' or more'}{different} of {len(self.sorted_values):,} values>"


def several(
    values: Iterable[str | bytes],
    minimum: int = 1,
    maximum: int | None = None,
    separator: str | bytes = ", ",
    distinct: bool = True,
) -> ListAutomaton:
    """The language of several values of a set, one after the other: labels of a text, tools to call.

    >>> trieauto.several(["red", "green", "blue"], maximum=2).accepts("blue, red")
    True

    With ``distinct``, a value that was given is masked from then on, under a budget too. ``matcher.value`` is the tuple
    of the values, in the order in which they were given, once it is determined. Orders count: "a, b" and "b, a" are two
    texts.

    A text must say by its bytes what its values are. So refused are: the empty value; and a value which, followed by
    the separator's first byte, begins another value ("a" and "a,b" with ", "). A separator that no value holds, a line
    break say, is always possible.

    Args:
        values: as for ``choices``; duplicates count once.
        minimum: the least number of values; with 0, the empty string is the list of none.
        maximum: the most. None: all of them, or, if they need not differ, any number.
        separator: what stands between two values: str (in UTF-8) or bytes, not empty.
        distinct: whether all must differ.

    Returns:
        What ``compile`` takes. It costs what ``choices`` costs; no state is copied.

    Raises:
        EmptyConstraintError: no values.
        UnsupportedError: values that the separator does not tell apart, as said above.
        TrieautoError: bounds that are no such numbers; more different values than there are; what is no value.
    """
    items = choices(values)
    assert items.values is not None
    before = literal("")
    if not isinstance(separator, (str, bytes)) or not separator:
        raise TrieautoError(f"a separator is a string of at least one byte, not {shorten(separator)}")
    return list_automaton(
        items, items.values.given, (before, literal(separator), literal(""), literal("")), minimum, maximum, distinct
    )


def list_automaton(
    items: Automaton,
    given: Sequence[Any],
    parts: tuple[Automaton, Automaton, Automaton, Automaton | None],
    minimum: object,
    maximum: object,
    distinct: bool,
) -> ListAutomaton:
    """A language of lists. ``parts``: see ``ListAutomaton``; the text of the empty list is for a minimum of 0.

    Raises:
        UnsupportedError: the text would not determine the values.
        TrieautoError: bounds that are no such numbers, or that more values are needed for than there are.
    """
    assert items.values is not None
    count = len(items.values)
    if not isinstance(distinct, (bool, np.bool_)):
        raise TrieautoError(f"distinct must be True or False, not {shorten(distinct)}")
    least = _bound("minimum", minimum, 0)
    most = (count if distinct else UNBOUNDED) if maximum is None else min(_bound("maximum", maximum, 1), UNBOUNDED)
    if distinct and most > count:
        raise TrieautoError(f"maximum is {most:,}, but there are only {count:,} different values")
    if least > most:
        raise TrieautoError(f"minimum is {least:,}, which is more than the maximum of {most:,}")
    before, between, after, nothing = parts
    made = joints(before, between, after, nothing if least == 0 else None)
    automaton = ListAutomaton(items, given, parts, made, least, most, bool(distinct))
    _check_determined(automaton)
    return automaton


def with_list_prefix_space(automaton: ListAutomaton, prefix_space: PrefixSpace) -> ListAutomaton:
    """The lists with a space before them: before all, or before any.

    Raises:
        UnsupportedError: "optional", and a value begins with a space; or what stands before the first value is not
            the empty string.
    """
    if prefix_space == "none":
        return automaton
    before, between, after, nothing = automaton.parts
    if not before.accepts(b""):
        raise UnsupportedError(f"prefix_space={prefix_space!r} is for sets and lists that begin with a value")
    space = literal(bytes([SPACE]))
    if prefix_space == "optional":
        space = space.optional()
    parts = space + before, between, after, None if nothing is None else space + nothing
    made = joints(*parts[:3], parts[3] if automaton.minimum == 0 else None)
    extended = replace(automaton, parts=parts, joints=made)
    _check_determined(extended)
    return extended


def _bound(name: str, value: object, least: int) -> int:
    number = as_integer(value)
    if number is None or number < least:
        raise TrieautoError(f"{name} must be a number from {least} on, not {shorten(value)}")
    return number


def _check_determined(automaton: ListAutomaton) -> None:
    """Whether each byte of a text belongs either to a value or to what stands around it."""
    items, it = automaton.items, automaton.joints
    if items.accepting[0]:
        raise UnsupportedError("a list cannot hold the empty value: it would not be seen")
    if it.flags[it.another] & ENTERS:
        raise UnsupportedError("what stands between the values of a list must not be empty")
    parents = parents_of_trie(items.links)
    labels = items.labels[1:]
    of_root = {int(byte) for byte in labels[parents == 0]}
    for joint in np.flatnonzero(it.flags & ENTERS).tolist():
        shared = of_root & it.first_bytes(joint)
        if shared:
            raise UnsupportedError(
                f"a value begins with {bytes([min(shared)])!r}, which may also stand before it: then it is not certain "
                "what belongs to the value (with an optional space before a value, say prefix_space='none' or "
                "'required')"
            )
    following = np.zeros(256, bool)
    following[list(it.first_bytes(it.either, it.another, it.last_one))] = True
    unclear = np.flatnonzero(following[labels] & (items.accepting[parents] != 0))
    if len(unclear) > 0:
        values = automaton.sorted_values
        state = int(unclear[0]) + 1
        shorter, longer = values.ending_at(int(parents[state - 1])), values[values.below(state)[0]]
        raise UnsupportedError(
            f"in a list, {shorten(shorter)} followed by {bytes([int(labels[state - 1])])!r} could be the value, or the "
            f"beginning of {shorten(longer)}: take another separator, which no value holds"
        )
