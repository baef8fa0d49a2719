"""How many tokens can be saved at the end of a value by tokens that reach beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..kernels.list_distances import tokens_leaving
from ..kernels.token_trie import BASE, CHECK

if TYPE_CHECKING:
    from .constraint import ListConstraint


def savings(constraint: ListConstraint) -> npt.NDArray[np.int32] | None:
    """For each value by rank, a number of tokens that no token saves more of by ending it and what follows in one;
    None if no token reaches beyond the end of any value. int32[K].

    Such a token, cut in pieces where it leaves values, would be at most so many more tokens as its pieces take. (So
    what it saves counts for the value that it leaves first.) One walk a state of the trie, and one a joint.
    """
    automaton = constraint.automaton
    items, joints, terminals = automaton.items, automaton.joints, automaton.sorted_values.terminals
    spelled = _Spelled(constraint)
    saved = np.zeros(len(terminals), np.int32)
    after_value = (joints.either, joints.another, joints.last_one)
    following = np.array(sorted(joints.first_bytes(*after_value)), np.uint8)
    tables = constraint.vocabulary.tables
    states = slots = np.empty(0, np.int32)
    if _last_bytes(tables.nodes, following)[items.labels[terminals]].any():
        states, slots = tokens_leaving(items.labels, items.links, items.accepting, *tables.trie, following)
    of_slot: dict[int, int] = {}
    for slot in np.unique(slots).tolist():
        head = spelled.bytes_of_slot(slot)
        most = 0
        for joint in after_value:
            legal = constraint.relaxed_legal(items.num_states + joint, slot)
            for k, token in enumerate(legal.tokens.tolist()):
                rest = spelled.bytes_of_token(token)[len(head) :]
                most = max(most, spelled.fewest(head) + spelled.most(rest, int(legal.counts[k])) - 1)
        of_slot[slot] = most
    ranks = np.searchsorted(terminals, states)
    np.maximum.at(saved, ranks, np.array([of_slot[slot] for slot in slots.tolist()], np.int32))
    # Tokens that begin before a value and reach beyond it.
    for joint in range(len(joints.flags)):
        if joints.closes[joint]:
            continue
        legal = constraint.relaxed_legal(items.num_states + joint)
        for k in np.flatnonzero(legal.counts).tolist():
            text = spelled.bytes_of_token(int(legal.tokens[k]))
            cut = int(legal.firsts[k])
            most = spelled.fewest(text[:cut]) + spelled.most(text[cut:], int(legal.counts[k]) - 1) - 1
            rank = int(np.searchsorted(terminals, legal.ends_of(k)[0]))
            saved[rank] = max(saved[rank], most)
    return saved if saved.any() else None


def _last_bytes(nodes: npt.NDArray[np.int32], following: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """The bytes after which, inside some token, one of these may follow: bool[256]."""
    slots = np.flatnonzero(nodes[:, CHECK] > 0)
    parents = nodes[slots, CHECK]
    parents = np.unique(parents[np.isin(slots - nodes[parents, BASE], following)])
    last = np.zeros(256, bool)
    last[parents - nodes[nodes[parents, CHECK], BASE]] = True
    return last


class _Spelled:
    """How few tokens of the vocabulary spell bytes."""

    def __init__(self, constraint: ListConstraint) -> None:
        self._tables = constraint.vocabulary.tables
        self._known: dict[bytes, int] = {b"": 0}

    def bytes_of_slot(self, slot: int) -> bytes:
        nodes = self._tables.nodes
        labels = bytearray()
        while slot != 0:
            parent = int(nodes[slot, CHECK])
            labels.append(slot - int(nodes[parent, BASE]))
            slot = parent
        return bytes(reversed(labels))

    def bytes_of_token(self, token: int) -> bytes:
        first, last = self._tables.offsets[token : token + 2]
        return self._tables.data[first:last].tobytes()

    def most(self, text: bytes, num_ends: int) -> int:
        """The fewest tokens for a text in which so many values end, or a number that is no smaller."""
        return self.fewest(text) if num_ends == 0 else len(text)

    def fewest(self, text: bytes) -> int:
        """The fewest tokens that spell bytes, each of which is a token. O(bytes squared), remembered."""
        known = self._known.get(text)
        if known is not None:
            return known
        nodes = self._tables.nodes
        costs = [0, *[len(text)] * len(text)]
        for begin in range(len(text)):
            slot = 0
            for end in range(begin, len(text)):
                child = int(nodes[slot, BASE]) + text[end]
                if nodes[child, CHECK] != slot:
                    break
                slot = child
                if nodes[slot, 3] > nodes[slot, 2]:
                    costs[end + 1] = min(costs[end + 1], costs[begin] + 1)
        self._known[text] = costs[-1]
        return costs[-1]
