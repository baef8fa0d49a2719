"""What stands before, between and after the values of a list, as one small automaton."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..algebra import literal
from ..automaton import Automaton
from ..errors import UnsupportedError
from ..kernels.list_walk import ENTERS, FINAL
from ..nfa import edges_of


@dataclass(frozen=True, slots=True, eq=False)
class Joints:
    """Edge lists (see ``kernels.edges``) of four automata side by side, without ways that come back.

    Attributes:
        labels, links, targets: the edges.
        flags: uint8[J], ``ENTERS`` where a value begins, ``FINAL`` where the text may end.
        start: before the first value.
        either, another, last_one: after a value, where another may follow or none; where another must; where none may.
        closes: bool[J], whether no value follows any more, whatever the text.
        may_close: bool[J], whether the text may come to its end without another value.
    """

    labels: npt.NDArray[np.uint8]
    links: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    flags: npt.NDArray[np.uint8]
    start: int
    either: int
    another: int
    last_one: int
    closes: npt.NDArray[np.bool_]
    may_close: npt.NDArray[np.bool_]

    def first_bytes(self, *joints: int) -> set[int]:
        """The bytes that may come first in some states."""
        return {int(byte) for joint in joints for byte in self.labels[self.links[joint] : self.links[joint + 1]]}

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes."""
        arrays = (self.labels, self.links, self.targets, self.flags, self.closes, self.may_close)
        return sum(array.nbytes for array in arrays)


def joints(before: Automaton, between: Automaton, after: Automaton, nothing: Automaton | None) -> Joints:
    """The joints of a list.

    Args:
        before: what stands before the first value.
        between: what stands between two; never the empty string.
        after: what stands after the last.
        nothing: the whole text of a list without values; None if there must be one.

    Raises:
        UnsupportedError: they hold all bytes there are, or have ways that come back.
    """
    used = {int(byte) for each in (before, between, after, nothing) if each is not None for byte in edges_of(each)[1]}
    free = next((byte for byte in range(256) if byte not in used), None)
    if free is None or not all(each is None or each.is_finite for each in (before, between, after, nothing)):
        raise UnsupportedError("what stands between the values of a list must be finite and leave a byte out")
    # A byte that does not occur stands for where a value begins.
    marker = literal(bytes([free]))
    more = between + marker
    first = before + marker
    parts = [first if nothing is None else first | nothing, more | after, more, after]
    labels, links, targets, flags, starts = [], [np.zeros(1, np.int32)], [], [], []
    num_states = num_edges = 0
    for part in parts:
        sources, bytes_, ends = edges_of(part)
        is_marker = bytes_ == free
        keep = ~is_marker
        flag = np.where(part.accepting != 0, FINAL, 0).astype(np.uint8)
        flag[np.setdiff1d(ends[is_marker], ends[keep])] = 0  # the end of the marker alone is no state of the text
        flag[sources[is_marker]] |= ENTERS
        starts.append(num_states + part.start)
        labels.append(bytes_[keep])
        targets.append((ends[keep] + num_states).astype(np.int32))
        counts = np.bincount(sources[keep], minlength=part.num_states)
        links.append((num_edges + np.cumsum(counts)).astype(np.int32))
        flags.append(flag)
        num_states += part.num_states
        num_edges += int(keep.sum())
    edges = np.concatenate(labels), np.concatenate(links), np.concatenate(targets)
    all_flags = np.concatenate(flags)
    enters = _reaches(edges[1], edges[2], (all_flags & ENTERS) != 0)
    may_close = _reaches(edges[1], edges[2], (all_flags & FINAL) != 0)
    start, either, another, last_one = starts
    return Joints(*edges, all_flags, start, either, another, last_one, ~enters, may_close)


def _reaches(
    links: npt.NDArray[np.int32], targets: npt.NDArray[np.int32], goals: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """The states from which a way leads to a goal."""
    sources = np.repeat(np.arange(len(goals)), np.diff(links))
    reached = goals
    while True:
        more = reached.copy()
        more[sources[reached[targets]]] = True
        if (more == reached).all():
            return reached
        reached = more
