"""What a constraint consists of: arrays and a few facts, and how they make one again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from .automaton import Automaton, PrefixSpace, SortedValues
from .constraint import Constraint, Tokenization
from .kernels.checking import are_offsets, are_subtree_ends, ascends, is_within_bounds
from .packed_values import PackedValues
from .packing import PackedStrings
from .token_automata import TokenAutomaton
from .vocabulary import Vocabulary

Arrays = dict[str, npt.NDArray[Any]]


def taken_apart(constraint: Constraint) -> tuple[Arrays, dict[str, Any]]:
    """The arrays of a constraint, uint8, int32 or int64 and flat, by name; and what else there is, for JSON."""
    automaton = constraint.automaton
    arrays: Arrays = {"links": automaton.links, "targets": automaton.targets, "accepting": automaton.accepting}
    arrays |= constraint.known_arrays()
    facts: dict[str, Any] = {
        "start": automaton.start,
        "prefix_space": constraint.prefix_space,
        "has_every_byte": constraint.has_every_byte,
        "walks_before_storing": constraint.walks_before_storing,
        "tokenization": constraint.tokenization,
        "left_context": constraint.left_context,
    }
    if isinstance(automaton, TokenAutomaton):
        arrays["tokens"] = automaton.tokens
        facts |= {"num_unreachable": automaton.num_unreachable, "num_dead_ends": automaton.num_dead_ends}
    else:
        arrays["labels"] = automaton.labels
        facts["engine"] = automaton.engine
    values = automaton.values
    if values is not None:
        arrays |= {"order": values.order, "terminals": values.terminals}
        if values.subtree_ends is not automaton.links:
            arrays["subtree ends"] = values.subtree_ends
        arrays |= _of_values("values", PackedValues.of(values.given))
    return arrays | _of_values("unreachable", PackedValues.of(constraint.unreachable_values)), facts


def put_together(arrays: Arrays, facts: Mapping[str, Any], vocabulary: Vocabulary, begin: float) -> Constraint:
    """The constraint again. ``begin``: when loading it began, in seconds of ``time.perf_counter``.

    Raises:
        ValueError: an array that would lead kernels outside of the others.
        KeyError, TypeError: something is missing.
    """
    automaton = _token_automaton(arrays, facts, vocabulary) if "tokens" in arrays else _automaton(arrays, facts)
    num_states = automaton.num_states
    if facts["prefix_space"] not in get_args(PrefixSpace) or facts["tokenization"] not in get_args(Tokenization):
        raise ValueError("its prefix_space or its tokenization is none that there is")
    left_context = facts["left_context"]
    if left_context is not None and not isinstance(left_context, str):
        raise ValueError("its left_context is no text")
    for name in ("distances", "alive"):
        _check(name, name not in arrays or len(arrays[name]) == num_states)
    masks = None
    if "mask tokens" in arrays:
        masks = arrays["mask offsets"], arrays["mask tokens"]
        _check_links("mask offsets", masks[0], num_states, len(masks[1]))
        _check("mask tokens", is_within_bounds(masks[1], 0, vocabulary.size - 1))
    return Constraint(
        automaton,
        vocabulary,
        distances=arrays.get("distances"),
        has_every_byte=bool(facts["has_every_byte"]),
        alive=arrays.get("alive"),
        masks=masks,
        walks_before_storing=-1 if masks is not None else int(facts["walks_before_storing"]),
        prefix_space=facts["prefix_space"],
        unreachable_values=list(_values("unreachable", arrays)),
        tokenization=facts["tokenization"],
        left_context=left_context,
        compile_seconds=time.perf_counter() - begin,
    )


def _automaton(arrays: Arrays, facts: Mapping[str, Any]) -> Automaton:
    labels, links, targets, accepting = (arrays[name] for name in ("labels", "links", "targets", "accepting"))
    num_states = len(accepting)
    # A prefix space has added a state to the trie.
    values = _sorted_values(arrays, num_states - 1) if "terminals" in arrays else None
    if values is not None and len(targets) == 0:
        _check("links", len(links) == num_states and are_subtree_ends(links))
        _check("labels", len(labels) == num_states)
    else:
        _check_links("links", links, num_states, len(labels))
        # An automaton without edges has a target that none uses, since one without targets is a trie.
        _check("targets", len(targets) >= max(1, len(labels)) and is_within_bounds(targets, 0, num_states - 1))
    return Automaton(labels, links, targets, accepting, _start(facts, num_states), values, str(facts["engine"]))


def _token_automaton(arrays: Arrays, facts: Mapping[str, Any], vocabulary: Vocabulary) -> TokenAutomaton:
    tokens, links, targets, accepting = (arrays[name] for name in ("tokens", "links", "targets", "accepting"))
    num_states = len(accepting)
    _check_links("links", links, num_states, len(tokens))
    _check("tokens", is_within_bounds(tokens, 0, len(vocabulary.tables.offsets) - 2))
    _check("targets", len(targets) == len(tokens) and is_within_bounds(targets, 0, num_states - 1))
    return TokenAutomaton(
        tokens,
        links,
        targets,
        accepting,
        _start(facts, num_states),
        num_unreachable=int(facts["num_unreachable"]),
        num_dead_ends=int(facts["num_dead_ends"]),
        values=_sorted_values(arrays, num_states) if "terminals" in arrays else None,
    )


def _sorted_values(arrays: Arrays, num_states: int) -> SortedValues:
    """``num_states``: of the trie, if ``links`` are not its subtree ends."""
    given, order, terminals = _values("values", arrays), arrays["order"], arrays["terminals"]
    subtree_ends = arrays.get("subtree ends", arrays["links"])
    _check("order", len(order) > 0 and is_within_bounds(order, 0, len(given) - 1))
    _check("terminals", len(terminals) == len(order) and is_within_bounds(terminals, 0, len(subtree_ends) - 1))
    _check("terminals", ascends(terminals))
    if "subtree ends" in arrays:
        _check("subtree ends", len(subtree_ends) == num_states and are_subtree_ends(subtree_ends))
    return SortedValues(given, order, terminals, subtree_ends)


def _of_values(name: str, values: PackedValues) -> Arrays:
    packed = values.packed
    return {f"{name}, data": packed.data, f"{name}, offsets": packed.offsets, f"{name}, are bytes": values.is_bytes}


def _values(name: str, arrays: Arrays) -> PackedValues:
    data, offsets, are_bytes = (arrays[f"{name}, {part}"] for part in ("data", "offsets", "are bytes"))
    _check(name, are_offsets(offsets, len(data)) and len(are_bytes) == len(offsets) - 1)
    return PackedValues(PackedStrings(data, offsets), are_bytes)


def _start(facts: Mapping[str, Any], num_states: int) -> int:
    start = facts["start"]
    _check("start", type(start) is int and 0 <= start < num_states)
    return int(start)


def _check_links(name: str, links: npt.NDArray[np.int32], num_states: int, num_edges: int) -> None:
    is_sound = len(links) == num_states + 1 and links[0] == 0 and links[-1] == num_edges
    _check(name, num_states > 0 and is_sound and ascends(links))


def _check(name: str, is_sound: object) -> None:
    if not is_sound:
        raise ValueError(f"its {name} would lead outside of its other arrays")
