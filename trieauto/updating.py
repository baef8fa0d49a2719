"""A set that gains and loses values, without building its trie anew."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt

from .automaton import Automaton, with_prefix_space, without_prefix_space
from .budgets import token_distances
from .canonical.changing import changed
from .compiling import compile, constraint_of, walks_before_storing
from .constraint import Constraint
from .errors import EmptyConstraintError, TrieautoError, UnsupportedError, shorten
from .kernels.walk import UNREACHABLE, state_tokens
from .packing import as_bytes
from .patched_tries import PatchedTrie
from .spelling import has_every_byte, unreachable_error
from .value_sets import choices


def updated(
    constraint: Constraint,
    add: Iterable[str | bytes],
    remove: Iterable[str | bytes],
    unreachable: Literal["error", "report"],
) -> Constraint:
    """See ``Constraint.updated``."""
    begin = time.perf_counter()
    if unreachable not in ("error", "report"):
        raise TrieautoError(f"unreachable is {shorten(unreachable)}; it must be one of 'error', 'report'")
    automaton, vocabulary = constraint.automaton, constraint.vocabulary
    if automaton.values is None:
        raise UnsupportedError(f"updated is for sets of values, not for {constraint!r}")
    if constraint.is_restricted:
        raise UnsupportedError("this is a part of a set: update the whole set, and restrict it again")
    added, removed = _trie_of(add, "add"), _trie_of(remove, "remove")
    if added is None and removed is None:
        return constraint
    if not isinstance(automaton, Automaton):
        if removed is not None:
            _check_apart(added, removed)
        canonical = changed(
            automaton,
            vocabulary,
            constraint.left_context,
            constraint.unreachable_values,
            _in_order(added),
            _in_order(removed),
            error=unreachable == "error",
        )
        return constraint_of(canonical, vocabulary, constraint.left_context, begin)
    missing = {as_bytes(value): value for value in constraint.unreachable_values}
    is_complete = constraint.has_every_byte
    has_spaced = automaton.is_trie and constraint.prefix_space != "none"  # then it holds every value twice
    trie = choices(automaton.values.given) if has_spaced else without_prefix_space(automaton)
    patched = PatchedTrie(trie, _known_distances(constraint, trie), vocabulary)
    if added is not None:
        missing |= _unreachable(added, constraint, unreachable)
        is_complete = is_complete and has_every_byte(added, vocabulary)
        patched.add(added)
    if removed is not None:
        _check_apart(added, removed)
        patched.remove(removed)
        missing = {data: value for data, value in missing.items() if not removed.accepts(data)}
    if len(missing) == len(patched.values):
        raise EmptyConstraintError("this vocabulary can spell none of the values that would be left")
    extended = with_prefix_space(patched.trie, constraint.prefix_space)
    distances = patched.distances
    if distances is not None or not is_complete:
        distances = _with_start(extended, distances, constraint)
    return Constraint(
        extended,
        vocabulary,
        distances=distances,
        has_every_byte=is_complete,
        walks_before_storing=walks_before_storing(extended),
        prefix_space=constraint.prefix_space,
        unreachable_values=[missing[data] for data in sorted(missing)],
        compile_seconds=time.perf_counter() - begin,
    )


def _in_order(trie: Automaton | None) -> list[str | bytes]:
    """The different values of a trie in the order given."""
    if trie is None or trie.values is None:
        return []
    return [trie.values.given[k] for k in np.sort(trie.values.order).tolist()]


def _trie_of(values: Iterable[str | bytes], name: str) -> Automaton | None:
    """The trie of the values to add or to remove; None if there are none."""
    try:
        return choices(values)
    except EmptyConstraintError:
        return None
    except TrieautoError as error:
        raise TrieautoError(f"{name}: {error}") from None


def _known_distances(constraint: Constraint, trie: Automaton) -> npt.NDArray[np.int32] | None:
    """From the states of the trie, if they are known."""
    of_all = constraint.distances_if_known
    is_same = constraint.num_states - trie.num_states in (0, 1)
    return of_all[: trie.num_states] if of_all is not None and is_same else None


def _check_apart(added: Automaton | None, removed: Automaton) -> None:
    if added is not None and removed.values is not None:
        for rank in range(len(removed.values)):
            if added.accepts(removed.values[rank]):
                raise TrieautoError(f"{shorten(removed.values[rank])} is both to be added and to be removed")


def _unreachable(
    added: Automaton, constraint: Constraint, unreachable: Literal["error", "report"]
) -> dict[bytes, str | bytes]:
    """Of the added values those that the vocabulary cannot spell, by their bytes; whatever else is in the set, that is
    the same."""
    values = added.values
    assert values is not None
    missing = list(map(values.__getitem__, range(len(values))))
    with contextlib.suppress(EmptyConstraintError):  # all of them
        missing = compile(
            added, constraint.vocabulary, mode="lazy", unreachable="report", prefix_space=constraint.prefix_space
        ).unreachable_values
    if missing and unreachable == "error":
        raise unreachable_error(missing, len(values), "this vocabulary has no tokens that spell")
    return {as_bytes(value): value for value in missing}


def _with_start(
    extended: Automaton, distances: npt.NDArray[np.int32] | None, constraint: Constraint
) -> npt.NDArray[np.int32]:
    """The fewest tokens from every state, given those from the states of the trie, if anybody knows them."""
    tables = constraint.vocabulary.tables
    if distances is None or extended.num_states not in (len(distances), len(distances) + 1):
        return token_distances(extended, constraint.vocabulary)  # a prefix space made a trie of its own
    if extended.num_states == len(distances):
        return distances
    nearest = 0
    if not extended.accepting[extended.start]:
        _, ends = state_tokens(*extended.arrays, distances[:0], *tables.trie, extended.start)
        nearest = int(distances[ends].min(initial=UNREACHABLE - 1)) + 1
    return np.append(distances, np.int32(nearest))
