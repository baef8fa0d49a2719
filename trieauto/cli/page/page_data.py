"""What the page carries of a set and a tokenizer, as bytes.

A page holds arrays, each of the smallest type that its numbers fit, behind a header in JSON that names them::

    uint32 little-endian: length of the header   header, UTF-8   the arrays one after the other, little-endian

Strings in sorted order are three arrays, a *list of strings*: string k is the first ``shared[k]`` bytes of string k - 1
and then the next ``added[k]`` bytes of ``labels``, which begins with a byte of its own for the root. So ``labels`` is
the byte that leads into each state of the strings' trie in preorder: the page builds the trie that the kernels walk,
with states of the same numbers (see ``kernels.trie``). A prefix space's start is one state more, behind them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...automaton import Automaton
from ...constraint import NOTHING, Constraint
from ...kernels.strings import common_prefixes
from ...kernels.trie import build_trie
from ...kernels.walk import UNREACHABLE, all_tokens
from ...packing import as_bytes
from ...token_tables import TokenTables
from ..mask_sizes import SPAN, node_depths

_Numbers = npt.NDArray[np.integer[Any]]

FORMAT = 1


@dataclass(frozen=True)
class PageNames:
    """What the page is about, for its reader.

    Attributes:
        values_file, tokenizer: as the user named them.
        names_stop: whether the tokenizer names a stop token; else one was added behind its last id.
        max_tokens: the budget that the page begins with; None for none.
    """

    values_file: str
    tokenizer: str
    names_stop: bool
    max_tokens: int | None = None


def page_data(constraint: Constraint, names: PageNames, own_tokens: Sequence[Sequence[int]] | None = None) -> bytes:
    """A compiled set as the page reads it; not compressed.

    Args:
        constraint: of a set.
        own_tokens: for each of the set's values as they were given, the token ids that the tokenizer itself writes it
            in; None if that is not known.

    Cost: about as much as the masks of all states, and their distances; about 3 bytes for each state and each token.
    """
    automaton = constraint.automaton
    values = automaton.values
    if not isinstance(automaton, Automaton) or values is None:
        raise TypeError("the page is for sets")
    tables = constraint.vocabulary.tables
    enough_tokens = constraint.enough_tokens
    ranks, value_of_string = np.unique(values.order, return_inverse=True)
    arrays: dict[str, _Numbers] = {}
    _add_strings(arrays, "values", *_value_strings(automaton))
    if len(ranks) < len(values.order):  # an optional space made two strings of every value
        arrays["value_of_string"] = value_of_string
    distances = constraint.distances()
    # The page cannot tell "no way" by a number that some other set has as a distance.
    is_dead = distances == UNREACHABLE
    arrays["distances"] = np.where(is_dead, 0, distances + np.int64(1))
    useful = _useful_tokens(constraint)
    in_order = tables.token_ids
    for name, token_ids in (("pieces", in_order[useful[in_order]]), ("others", in_order[~useful[in_order]])):
        _add_strings(arrays, name, *_token_strings(tables, token_ids))
        arrays[f"{name}_ids"] = token_ids
    if own_tokens is not None:
        places = (ranks if "value_of_string" in arrays else values.order).tolist()
        own = [_checked_spelling(constraint, values.given[place], own_tokens[place]) for place in places]
        arrays["own_counts"] = np.array([len(ids) for ids in own], np.int64)
        arrays["own_ids"] = np.array([token_id for ids in own for token_id in ids], np.int64)
    header = {
        "format": FORMAT,
        **asdict(names),
        "num_values": len(ranks),
        "num_unreachable": len(constraint.unreachable_values),
        "has_every_byte": constraint.has_every_byte,
        "prefix_space": constraint.prefix_space,
        "start": automaton.start,
        "start_accepts": bool(automaton.accepting[automaton.start]),
        "num_ids": len(tables.offsets) - 1,
        "size": constraint.vocabulary.size,
        "stop_ids": list(constraint.vocabulary.stop_token_ids),
        "min_tokens": constraint.min_tokens,
        "enough_tokens": enough_tokens,
    }
    return _packed(header, arrays)


def _checked_spelling(constraint: Constraint, value: str | bytes, token_ids: Sequence[int]) -> Sequence[int]:
    """A tokenizer's own spelling; none if it has other bytes, as where a normalizer changed the text."""
    tables = constraint.vocabulary.tables
    num_ids = len(tables.offsets) - 1
    spaces = {"none": [b""], "optional": [b"", b" "], "required": [b" "]}[constraint.prefix_space]
    pieces = [
        tables.data[tables.offsets[token_id] : tables.offsets[token_id + 1]].tobytes() if token_id < num_ids else b""
        for token_id in token_ids
    ]
    is_spelled = all(pieces) and b"".join(pieces) in [space + as_bytes(value) for space in spaces]
    return token_ids if is_spelled else ()


def _value_strings(automaton: Automaton) -> tuple[_Numbers, _Numbers, _Numbers]:
    """The strings of a set's trie, without the space that a start of its own puts before them."""
    values = automaton.values
    assert values is not None
    ends, terminals = values.subtree_ends, values.terminals
    if automaton.is_trie:
        labels = automaton.labels
    else:
        labels = np.zeros(len(ends), np.uint8)
        num_edges = len(ends) - 1  # one into each state but the root; behind them come the start's own
        labels[automaton.targets[:num_edges]] = automaton.labels[:num_edges]
    added = np.diff(terminals, prepend=0)
    return labels, node_depths(ends)[terminals] - added, added


def _token_strings(tables: TokenTables, token_ids: npt.NDArray[np.int32]) -> tuple[_Numbers, _Numbers, _Numbers]:
    """Tokens in the order of their bytes, equal ones included."""
    order = np.ascontiguousarray(token_ids)
    shared = np.empty(len(order), np.int64)
    common_prefixes(tables.data, tables.offsets, order, shared, 0, len(order))
    labels, _, _, terminals = build_trie(tables.data, tables.offsets, order, shared)
    lengths = (tables.offsets[1:] - tables.offsets[:-1])[order]
    added = np.diff(terminals, prepend=0)
    return labels, lengths - added, added


def _useful_tokens(constraint: Constraint) -> npt.NDArray[np.bool_]:
    """Which token ids are legal in some state: bool[V]."""
    automaton = constraint.automaton
    assert isinstance(automaton, Automaton)
    tables = constraint.vocabulary.tables
    distances = NOTHING if constraint.has_every_byte else constraint.distances().copy()
    useful = np.zeros(len(tables.offsets) - 1, bool)
    for begin in range(0, automaton.num_states, SPAN):
        end = min(begin + SPAN, automaton.num_states)
        useful[all_tokens(*automaton.arrays, distances, *tables.trie, begin, end, np.iinfo(np.int64).max)[1]] = True
    return useful


def _add_strings(arrays: dict[str, _Numbers], name: str, labels: _Numbers, shared: _Numbers, added: _Numbers) -> None:
    arrays |= {f"{name}_labels": labels, f"{name}_shared": shared, f"{name}_added": added}


def _packed(header: dict[str, object], arrays: dict[str, _Numbers]) -> bytes:
    compact = {name: _compact(array) for name, array in arrays.items()}
    described = [[name, array.dtype.name, len(array)] for name, array in compact.items()]
    text = json.dumps({**header, "arrays": described}).encode()
    return b"".join([struct.pack("<I", len(text)), text, *(array.tobytes() for array in compact.values())])


def _compact(array: _Numbers) -> _Numbers:
    """In the smallest unsigned type, little-endian."""
    largest = int(array.max(initial=0))
    kind = next(kind for kind in ("<u1", "<u2", "<u4") if largest <= np.iinfo(kind).max)
    return array.astype(kind)
