"""A finite set of strings as an automaton."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .automaton import Automaton, SortedValues
from .errors import EmptyConstraintError, TrieautoError, shorten
from .kernels.jit import warm_up
from .kernels.trie import build_trie
from .packing import check_threads, pack, sort_packed

MAX_STATES = 2**31 - 2  # states are int32


def choices(values: Iterable[str | bytes], *, threads: int | None = None) -> Automaton:
    """The automaton of a set: exactly one of ``values`` (section 4.1 of the trie paper).

    Args:
        values: any iterable of str (taken in UTF-8) or bytes, one to millions; any bytes at all, the empty string
            included. Of values with the same bytes (duplicates, or a str and its UTF-8) the first given is kept.
            Kept by reference, so that a matcher can say which value was chosen.
        threads: for sorting; by default one up to 20,000 values, then as many as this process has processors.

    Returns:
        A trie with one state for each distinct prefix. About 6 bytes a state and 16 a value; O(bytes) time, and
        K log K for sorting.

    Raises:
        EmptyConstraintError: no values.
        TrieautoError: a value that is not str or bytes, or holds a lone surrogate.
    """
    if isinstance(values, (str, bytes, bytearray)):
        raise TrieautoError(f"values must be a collection of strings, not the single string {shorten(values)}")
    check_threads(threads)
    warm_up()
    given: Sequence[str | bytes]
    if isinstance(values, (list, tuple)):
        given = values
    else:
        try:
            iterator = iter(values)
        except TypeError:
            raise TrieautoError(f"values must be a collection of strings, not {shorten(values)}") from None
        given = list(iterator)
    if len(given) == 0:
        raise EmptyConstraintError("the set of values is empty: there is nothing to choose from")
    if isinstance(given, list):
        given = given.copy()  # the caller's list may change
    packed = pack(given)
    if len(packed.data) >= MAX_STATES:
        raise TrieautoError(
            f"the values hold {len(packed.data):,} bytes together; at most {MAX_STATES:,} are supported"
        )
    order, shared = sort_packed(packed, threads)
    if (shared < 0).any():
        order, shared = order[shared >= 0], shared[shared >= 0]
    labels, subtree_ends, accepting, terminals = build_trie(packed.data, packed.offsets, order, shared)
    sorted_values = SortedValues(given, order, terminals, subtree_ends)
    return Automaton(labels, subtree_ends, np.empty(0, np.int32), accepting, 0, sorted_values)
