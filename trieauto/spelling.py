"""What a vocabulary can spell of a language, where it lacks some of the bytes (laws 1 and 7 of the design)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .automaton import Automaton
from .errors import EmptyConstraintError, UnreachableValueError, shorten
from .kernels.walk import live_states, spelled, used_bytes
from .packing import as_bytes
from .vocabulary import Vocabulary

EVERY_STATE = np.empty(0, np.uint8)


def live_in_tokens(automaton: Automaton, vocabulary: Vocabulary) -> npt.NDArray[np.uint8]:
    """Where the end can be reached in tokens: uint8[N], or empty if everywhere (law 1 of the design).

    When every single byte that occurs is a token, whatever is possible in bytes is possible in tokens.
    """
    tables = vocabulary.tables
    first = 1 if automaton.is_trie else 0  # the root of a trie has no byte that leads into it
    if vocabulary.is_byte_complete or not (used_bytes(automaton.labels, first) > tables.single_bytes).any():
        return EVERY_STATE
    return live_states(*automaton.arrays, automaton.accepting, *tables.trie)  # type: ignore[no-any-return]


def spelled_from(
    automaton: Automaton, vocabulary: Vocabulary, live: npt.NDArray[np.uint8], start: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """At which states tokens after ``start`` can end, and which edges lie on their way: uint8[N], uint8[edges]."""
    reached, passed = spelled(*automaton.arrays, live, *vocabulary.tables.trie, start, automaton.num_states)
    if start == automaton.start and automaton.accepting[start]:
        reached[0] = 1  # the empty value ends at the root of its trie, which a prefix space may have cut off
    return reached, passed


def find_unreachable_values(
    automaton: Automaton, vocabulary: Vocabulary, live: npt.NDArray[np.uint8], *, error: bool
) -> list[str | bytes]:
    """The set's values that no sequence of tokens spells; the error that names them, if that is asked for.

    Raises:
        EmptyConstraintError: nothing at all can be spelled.
        UnreachableValueError: some values cannot, and ``error`` is true.
    """
    if len(live) == 0:
        return []
    values = automaton.values
    if not live[automaton.start]:
        example = "" if values is None else f", not even {shorten(values[0])}"
        raise EmptyConstraintError(f"this vocabulary can spell nothing of what is allowed{example}")
    if values is None:
        return []
    reached = spelled_from(automaton, vocabulary, live, automaton.start)[0]
    missing = np.setdiff1d(values.order, values.order[reached[values.terminals] != 0])
    missing_values = sorted(map(values.given.__getitem__, missing.tolist()), key=as_bytes)
    if missing_values and error:
        shown = ", ".join(shorten(value) for value in missing_values[:5])
        more = f" and {len(missing_values) - 5:,} more" if len(missing_values) > 5 else ""
        raise UnreachableValueError(
            f"this vocabulary has no tokens that spell {shown}{more} "
            f"({len(missing_values):,} of {len(values):,} values); with unreachable='report' they are left out",
            missing_values,
        )
    return missing_values
