"""What a vocabulary can spell of a language, where it lacks some of the bytes (laws 1 and 7 of the design)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .automaton import Automaton
from .errors import EmptyConstraintError, UnreachableValueError, shorten
from .kernels.walk import UNREACHABLE, spelled, used_bytes
from .packing import as_bytes
from .vocabulary import Vocabulary


def has_every_byte(automaton: Automaton, vocabulary: Vocabulary) -> bool:
    """Whether every single byte that occurs is a token: then whatever is possible in bytes is possible in tokens."""
    tables = vocabulary.tables
    first = 1 if automaton.is_trie else 0  # the root of a trie has no byte that leads into it
    return vocabulary.is_byte_complete or not (used_bytes(automaton.labels, first) > tables.single_bytes).any()


def states_spelled(
    automaton: Automaton, vocabulary: Vocabulary, distances: npt.NDArray[np.int32], start: int
) -> npt.NDArray[np.uint8]:
    """At which states tokens after ``start`` can end: uint8[N]."""
    reached: npt.NDArray[np.uint8] = spelled(
        *automaton.arrays, distances, *vocabulary.tables.trie, start, automaton.num_states
    )
    if start == automaton.start and automaton.accepting[start]:
        reached[0] = 1  # the empty value ends at the root of its trie, which a prefix space may have cut off
    return reached


def find_unreachable_values(
    automaton: Automaton, vocabulary: Vocabulary, distances: npt.NDArray[np.int32], *, error: bool
) -> list[str | bytes]:
    """The values that no sequence of tokens spells, where the vocabulary lacks some bytes: those of a set, exactly; of
    sets inside a larger language, those with a byte that no token has. Or the error that names them, if that is asked
    for. ``distances``: fewest tokens from each state to the end.

    Raises:
        EmptyConstraintError: nothing at all can be spelled.
        UnreachableValueError: some values cannot, and ``error`` is true.
    """
    values = automaton.values
    if distances[automaton.start] == UNREACHABLE:
        example = "" if values is None else f", not even {shorten(values[0])}"
        raise EmptyConstraintError(f"this vocabulary can spell nothing of what is allowed{example}")
    if values is None:
        return _unwritable(automaton.sets, vocabulary, error=error)
    reached = states_spelled(automaton, vocabulary, distances, automaton.start)
    missing = np.setdiff1d(values.order, values.order[reached[values.terminals] != 0])
    missing_values = sorted(map(values.given.__getitem__, missing.tolist()), key=as_bytes)
    if missing_values and error:
        raise unreachable_error(missing_values, len(values), "this vocabulary has no tokens that spell")
    return missing_values


def _unwritable(sets: Sequence[Sequence[str | bytes]], vocabulary: Vocabulary, *, error: bool) -> list[str | bytes]:
    """The values of sets inside a larger language that hold a byte which no token has.

    Whether a token that has it is of use depends on what stands around the value, so those are not looked for.
    """
    has_byte = np.zeros(256, bool)
    has_byte[vocabulary.tables.data] = True
    with_token = np.flatnonzero(has_byte).astype(np.uint8).tobytes()
    missing = {value for values in sets for value in values if as_bytes(value).translate(None, with_token)}
    if missing and error:
        raise unreachable_error(
            sorted(missing, key=as_bytes), sum(map(len, sets)), "this vocabulary has no tokens that spell"
        )
    return sorted(missing, key=as_bytes)


def unreachable_error(
    missing: list[str | bytes], count: int, what: str, shown_as: Callable[[str | bytes], str] = shorten
) -> UnreachableValueError:
    """The error that names values, the first five of them in the message; ``what`` is the beginning of its sentence."""
    shown = ", ".join(map(shown_as, missing[:5]))
    more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
    return UnreachableValueError(
        f"{what} {shown}{more} ({len(missing):,} of {count:,} values); "
        "trieauto.compile(..., unreachable='report') goes on without them",
        missing,
    )
