"""Automata given edge by edge: checked, put in order, and rid of states that no answer passes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .automaton import Automaton
from .errors import EmptyConstraintError, TrieautoError, shorten
from .kernels.graph import edges_to_any, reversed_edges
from .kernels.jit import warm_up
from .kernels.walk import UNREACHABLE
from .packing import as_integer

MAX_STATES = 2**31 - 2  # states are int32
_LABEL_BITS = 24
MAX_LABEL = 2**_LABEL_BITS - 1  # beyond any token id
_SHOWN = 5


class EdgeLists(NamedTuple):
    """A deterministic graph in which every edge lies on a way from the start to the end.

    Attributes:
        labels: int32[E], ascending within a state.
        links: int32[N + 1]: the edges of state s are ``links[s] .. links[s + 1]``.
        targets: int32[E], where each leads.
        accepting: uint8[N].
        start: the first state.
        is_reachable: bool[N], whether a way leads there from the start.
        is_live: bool[N], whether a way leads on to the end.
    """

    labels: npt.NDArray[np.int32]
    links: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    accepting: npt.NDArray[np.uint8]
    start: int
    is_reachable: npt.NDArray[np.bool_]
    is_live: npt.NDArray[np.bool_]


def edge_lists(
    num_states: int, edges: Iterable[tuple[int, int, int]], start: int, accepting: Iterable[int], label: str
) -> EdgeLists:
    """Check a graph and put it in order. The states keep their numbers. O(N + E log E).

    Args:
        edges: (state, label, state) triples, or an integer array [E, 3].
        label: what the labels are, for messages.

    Raises:
        TrieautoError: a number that is no integer or out of range; two edges of a state with one label that lead to
            different states.
        EmptyConstraintError: no accepting state can be reached from the start.
    """
    warm_up()
    num_states = _integer("num_states", num_states)
    if not 1 <= num_states <= MAX_STATES:
        raise TrieautoError(f"num_states is {num_states:,}; it must be at least 1 and at most {MAX_STATES:,}")
    start = _integer("start", start)
    if not 0 <= start < num_states:
        raise TrieautoError(f"the start is state {start:,}, but there are only states 0 to {num_states - 1:,}")
    is_accepting = _accepting(num_states, accepting)
    triples = _triples(edges, label)
    _check_range(triples, num_states, label)
    links, labels, targets = _in_order(triples, num_states, label)
    is_reachable, is_live = _useful(links, targets, start, is_accepting)
    if not is_live[start]:
        ends = np.flatnonzero(is_accepting).tolist()
        names = ", ".join(map(str, ends[:_SHOWN])) + (f" and {len(ends) - _SHOWN:,} more" * (len(ends) > _SHOWN))
        raise EmptyConstraintError(f"no way leads from the start, state {start}, to an accepting state ({names})")
    is_useful = is_reachable & is_live
    sources = np.repeat(np.arange(num_states), np.diff(links))
    keep = is_useful[sources] & is_useful[targets]
    if not keep.all():
        links = np.zeros(num_states + 1, np.int32)
        np.cumsum(np.bincount(sources[keep], minlength=num_states), out=links[1:])
        labels, targets = labels[keep], targets[keep]
    return EdgeLists(labels, links, targets, is_accepting, start, is_reachable, is_live)


def byte_automaton(
    num_states: int, edges: Iterable[tuple[int, int, int]], start: int, accepting: Iterable[int]
) -> Automaton:
    """An automaton over bytes from its edges (state, byte, state). States that no answer passes are left out, and the
    others numbered anew. As ``edge_lists``, which see for errors and cost."""
    lists = edge_lists(num_states, edges, start, accepting, "byte")
    if len(lists.labels) > 0 and int(lists.labels.max()) > 255:
        raise TrieautoError(f"an edge has the byte {int(lists.labels.max())}; bytes go up to 255")
    is_useful = lists.is_reachable & lists.is_live
    number = (np.cumsum(is_useful, dtype=np.int32) - 1).astype(np.int32)
    links = np.concatenate([[0], lists.links[1:][is_useful]]).astype(np.int32)
    # A general automaton is told from a trie by its having targets: so one without edges gets a target that none uses.
    targets = number[lists.targets] if len(lists.targets) > 0 else np.zeros(1, np.int32)
    return Automaton(
        lists.labels.astype(np.uint8), links, targets, lists.accepting[is_useful], int(number[lists.start])
    )


def _integer(name: str, value: object) -> int:
    number = as_integer(value)
    if number is None:
        raise TrieautoError(f"{name} must be an integer, not {shorten(value)}")
    return number


def _accepting(num_states: int, accepting: Iterable[int]) -> npt.NDArray[np.uint8]:
    if isinstance(accepting, (str, bytes)) or not isinstance(accepting, Iterable):
        raise TrieautoError(f"accepting must be a list of states, not {shorten(accepting)}")
    states = [_integer("an accepting state", state) for state in accepting]
    if not states:
        raise EmptyConstraintError("no state is accepting: nothing could ever be finished")
    for state in states:
        if not 0 <= state < num_states:
            raise TrieautoError(f"accepting state {state:,}: there are only states 0 to {num_states - 1:,}")
    flags = np.zeros(num_states, np.uint8)
    flags[states] = 1
    return flags


def _triples(edges: object, label: str) -> npt.NDArray[np.int64]:
    """int64[E, 3]."""
    if isinstance(edges, (str, bytes)) or not isinstance(edges, Iterable):
        raise TrieautoError(f"edges must be a list of (state, {label}, state), not {shorten(edges)}")
    if isinstance(edges, np.ndarray):
        if edges.ndim != 2 or edges.shape[1] != 3 or edges.dtype.kind not in "iu":
            raise TrieautoError(
                f"edges must be an integer array of shape [edges, 3], not {edges.dtype} of shape {edges.shape}"
            )
        return edges.astype(np.int64)
    edges = list(edges)
    if set(map(type, edges)) <= {tuple, list} and set(map(len, edges)) <= {3}:
        flat = list(chain.from_iterable(edges))
        if set(map(type, flat)) <= {int} and (not flat or max(map(abs, flat)) < 2**63):
            return np.fromiter(flat, np.int64, len(flat)).reshape(-1, 3)
    # Anything else: edge by edge, so that what is wrong can be named.
    triples = []
    for edge in edges:
        if isinstance(edge, (str, bytes)) or not isinstance(edge, Iterable):
            raise TrieautoError(f"an edge must be (state, {label}, state), not {shorten(edge)}")
        numbers = [_integer(f"each part of the edge {shorten(edge)}", number) for number in edge]
        if len(numbers) != 3:
            raise TrieautoError(f"an edge must be (state, {label}, state), not {shorten(edge)}")
        triples.append(numbers)
    try:
        return np.array(triples, np.int64).reshape(-1, 3)
    except OverflowError:
        worst = max(triples, key=lambda numbers: max(map(abs, numbers)))
        raise TrieautoError(f"edge {tuple(worst)}: a number beyond 64 bits") from None


def _check_range(triples: npt.NDArray[np.int64], num_states: int, label: str) -> None:
    columns = (("state", num_states), (label, MAX_LABEL + 1), ("state", num_states))
    for column, (name, limit) in enumerate(columns):
        wrong = np.flatnonzero((triples[:, column] < 0) | (triples[:, column] >= limit))
        if len(wrong) > 0:
            edge = tuple(triples[wrong[0]].tolist())
            raise TrieautoError(f"edge {edge}: there is no {name} {edge[column]}, only 0 to {limit - 1:,}")


def _in_order(
    triples: npt.NDArray[np.int64], num_states: int, label: str
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """links, labels, targets, the edges of each state by ascending label, each once."""
    keys = triples[:, 0] << _LABEL_BITS | triples[:, 1]
    targets = triples[:, 2].astype(np.int32)
    if (keys[1:] <= keys[:-1]).any():
        order = np.argsort(keys)
        keys, targets = keys[order], targets[order]
        is_repeated = np.append(False, keys[1:] == keys[:-1])
        if is_repeated.any():
            conflicts = np.flatnonzero(is_repeated[1:] & (targets[1:] != targets[:-1]))
            if len(conflicts) > 0:
                place = int(conflicts[0])
                source, number = divmod(int(keys[place]), 1 << _LABEL_BITS)
                one, other = sorted(targets[place : place + 2].tolist())
                raise TrieautoError(
                    f"state {source} has two edges with {label} {number}, to {one} and to {other}: where it leads must "
                    "be certain"
                )
            keys, targets = keys[~is_repeated], targets[~is_repeated]
    links = np.searchsorted(keys, np.arange(num_states + 1) << _LABEL_BITS).astype(np.int32)
    return links, (keys & MAX_LABEL).astype(np.int32), targets


def _useful(
    links: npt.NDArray[np.int32], targets: npt.NDArray[np.int32], start: int, accepting: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    is_start = np.zeros(len(accepting), np.uint8)
    is_start[start] = 1
    is_reachable = edges_to_any(links, targets, is_start) != UNREACHABLE
    is_live = edges_to_any(*reversed_edges(links, targets), accepting) != UNREACHABLE
    return is_reachable, is_live
