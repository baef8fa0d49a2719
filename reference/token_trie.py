"""Trie over token ids, as GENRE builds it: one fixed tokenization of each value, its children are the allowed tokens.

This is the oracle of canonical tokenization only. It admits a subset of the token paths that the byte trie admits, one
for each value (the paper's appendix H.8 and H.9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


class TokenTrie:
    """The trie of a set of token sequences.

    Attributes:
        children: for every node (the ids from the root to it), the ids on its outgoing edges. The root is ``()``.
        ends: the nodes at which a sequence ends.
    """

    def __init__(self, sequences: Iterable[Sequence[int]]) -> None:
        self.children: dict[tuple[int, ...], set[int]] = {(): set()}
        self.ends: set[tuple[int, ...]] = set()
        for sequence in sequences:
            path = tuple(sequence)
            for depth, token_id in enumerate(path):
                self.children[path[:depth]].add(token_id)
                self.children.setdefault(path[: depth + 1], set())
            self.ends.add(path)

    @classmethod
    def from_values(cls, values: Iterable[str], encode: Callable[[str], list[int]]) -> TokenTrie:
        """The trie of ``encode(value)`` for every value; ``encode`` must add no special tokens."""
        return cls(encode(value) for value in values)

    def allowed_token_ids(self, ids: Sequence[int]) -> list[int]:
        """The ids that may follow ``ids``, ascending, without stop tokens. KeyError if ``ids`` is not a node."""
        return sorted(self.children[tuple(ids)])

    def is_end(self, ids: Sequence[int]) -> bool:
        """Whether ``ids`` is a whole sequence, so that a stop token may follow."""
        return tuple(ids) in self.ends
