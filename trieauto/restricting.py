"""A part of a set, over the whole set's trie: which states lead to a value of it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from .automaton import Automaton, PrefixSpace, SortedValues
from .constraint import Constraint
from .errors import EmptyConstraintError, TrieautoError, UnsupportedError, not_in_set, shorten
from .kernels.patching import states_of_strings
from .kernels.subsets import distances_of_part, part_of_trie
from .kernels.walk import UNREACHABLE
from .packing import as_bytes, pack
from .token_automata import TokenAutomaton


def restricted(constraint: Constraint, allowed: Iterable[str | bytes] | npt.NDArray[np.bool_]) -> Constraint:
    """See ``Constraint.restricted_to``."""
    begin = time.perf_counter()
    whole = constraint.automaton
    values = whole.values
    if values is None:
        raise UnsupportedError(f"restricted_to is for sets of values, not for {constraint!r}")
    if isinstance(allowed, np.ndarray) and allowed.dtype.kind not in "USO":
        is_allowed = _checked_mask(allowed, values)
    else:
        is_allowed = np.zeros(len(values.given), bool)
        is_allowed[_places(allowed, whole, values, constraint.prefix_space)] = True
    kept = is_allowed[values.order]
    if not kept.any():
        raise EmptyConstraintError("restricted_to would leave no value of the set: there is nothing to choose from")
    part = SortedValues(values.given, values.order[kept], values.terminals[kept], values.subtree_ends)
    missing = constraint.unreachable_values
    if missing:
        wanted = {as_bytes(values.given[place]) for place in np.flatnonzero(is_allowed).tolist()}
        missing = [value for value in missing if as_bytes(value) in wanted]
    if isinstance(whole, TokenAutomaton):
        return Constraint(
            _fewer_edges(whole, part),
            constraint.vocabulary,
            prefix_space=constraint.prefix_space,
            unreachable_values=missing,
            tokenization=constraint.tokenization,
            left_context=constraint.left_context,
            compile_seconds=time.perf_counter() - begin,
        )
    accepting, alive = part_of_trie(part.subtree_ends, part.terminals)
    if whole.start > 0:  # the start that a prefix space added
        accepts_empty = whole.accepting[whole.start] and accepting[0]
        accepting = np.append(accepting, np.uint8(accepts_empty))
        alive = np.append(alive, np.int32(0))
    automaton = Automaton(whole.labels, whole.links, whole.targets, accepting, whole.start, part, whole.engine)
    distances = None if constraint.has_every_byte else part_distances(constraint, automaton)
    if distances is not None and distances[whole.start] == UNREACHABLE:
        raise EmptyConstraintError("this vocabulary can spell none of the values that restricted_to would leave")
    return Constraint(
        automaton,
        constraint.vocabulary,
        distances=distances,
        has_every_byte=constraint.has_every_byte,
        whole=constraint,
        alive=alive,
        prefix_space=constraint.prefix_space,
        unreachable_values=missing,
        compile_seconds=time.perf_counter() - begin,
    )


def _fewer_edges(whole: TokenAutomaton, part: SortedValues) -> TokenAutomaton:
    """Of canonical tokens: the same states, and those edges that lead to a value of the part. O(states)."""
    accepting, alive = part_of_trie(part.subtree_ends, part.terminals)
    is_left = alive[whole.targets] == 0
    before = np.zeros(len(is_left) + 1, np.int32)
    np.cumsum(is_left, out=before[1:])
    return TokenAutomaton(
        whole.tokens[is_left], before[whole.links], whole.targets[is_left], accepting, whole.start, values=part
    )


def part_distances(constraint: Constraint, part: Automaton) -> npt.NDArray[np.int32]:
    """The fewest tokens from every state to the end of a value of a part of the constraint's set.

    One walk from each state that leads both to values of the part and to others.
    """
    whole = constraint.automaton
    assert part.values is not None
    constraint.distances()
    return distances_of_part(  # type: ignore[no-any-return]
        *part.arrays, *constraint.vocabulary.tables.trie, part.values.subtree_ends, part.accepting, whole.accepting,
        constraint.distances_if_known, part.start,
    )  # fmt: skip


def _checked_mask(mask: npt.NDArray[Any], values: SortedValues) -> npt.NDArray[np.bool_]:
    """The mask, in which a value that was given twice is allowed at its first place if it is at any."""
    count = len(values.given)
    if mask.dtype != bool or mask.shape != (count,):
        raise TrieautoError(
            f"a mask of allowed values is an array of bool with one for each of the {count:,} values given, not of "
            f"{mask.dtype} with shape {mask.shape}"
        )
    firsts = np.zeros(count, bool)
    firsts[values.order] = True
    again = np.flatnonzero(mask & ~firsts)
    if len(again) > 0:
        mask = mask.copy()
        first_of = {as_bytes(values.given[place]): place for place in np.flatnonzero(firsts).tolist()}
        # Those that canonical tokens cannot spell are nowhere in the trie.
        mask[[first_of.get(as_bytes(values.given[place]), place) for place in again.tolist()]] = True
    return mask


def _places(
    allowed: Iterable[str | bytes], whole: Automaton | TokenAutomaton, values: SortedValues, prefix_space: PrefixSpace
) -> npt.NDArray[np.int32]:
    """Where the allowed values are among those given."""
    if isinstance(allowed, (str, bytes)) or not isinstance(allowed, Iterable):
        raise TrieautoError(f"restricted_to takes values of the set, or a mask of them, not {shorten(allowed)}")
    wanted = list(allowed)
    if any(isinstance(value, (bool, np.bool_)) for value in wanted):
        raise TrieautoError("restricted_to takes a mask as a numpy array of bool")
    packed = pack(wanted)
    if isinstance(whole, TokenAutomaton):
        # Of values that were given twice the first; and those that cannot be spelled, which the trie has not.
        place_of = {as_bytes(values.given[place]): place for place in range(len(values.given) - 1, -1, -1)}
        places = np.array([place_of.get(as_bytes(value), -1) for value in wanted], np.int32)
    else:
        states: npt.NDArray[np.int32] = states_of_strings(*whole.arrays, packed.data, packed.offsets)
        ranks: npt.NDArray[np.intp] = np.searchsorted(values.terminals, states)
        ranks[ranks == len(values.terminals)] = 0
        places = np.where(values.terminals[ranks] == states, values.order[ranks], np.int32(-1))
        if whole.is_trie and prefix_space != "none":  # a trie of all values with and without a space before them
            for k in np.flatnonzero(places >= 0).tolist():
                if as_bytes(values.given[places[k]]) != as_bytes(wanted[k]):
                    places[k] = -1
    is_missing = places < 0
    if is_missing.any():
        first, *more = np.flatnonzero(is_missing).tolist()
        raise TrieautoError(f"restricted_to: {not_in_set(wanted[first], len(more))}")
    return places
