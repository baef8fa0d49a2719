"""Byte trie of a set of values, with masks found by walking every token from every node.

This is the paper's automaton without its speed (section 4.1): a node is a prefix of some value, and a token is valid at
a node if its bytes follow edges of the trie. Nodes are named by their prefix, so any other implementation can be
compared with this one node by node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class CharTrie:
    """The trie of a set of byte strings.

    Attributes:
        values: the distinct values, in sorted order.
        children: for every node (its prefix), the byte on each outgoing edge and the node it leads to. The root is
            ``b""``; it exists even when the set is empty.
    """

    def __init__(self, values: Iterable[bytes]) -> None:
        self.values: list[bytes] = sorted(set(values))
        self.children: dict[bytes, dict[int, bytes]] = {b"": {}}
        for value in self.values:
            for depth, byte in enumerate(value):
                node, child = value[:depth], value[: depth + 1]
                self.children[node][byte] = child
                self.children.setdefault(child, {})

    @property
    def nodes(self) -> list[bytes]:
        """Every node, in sorted order: the distinct prefixes of the values, and the root."""
        return sorted(self.children)

    def walk(self, node: bytes, token: bytes) -> bytes | None:
        """The node that the bytes of ``token`` lead to from ``node``, or None if they leave the trie."""
        current = node
        for byte in token:
            edges = self.children[current]
            if byte not in edges:
                return None
            current = edges[byte]
        return current

    def masks(self, tokens: Sequence[bytes | None]) -> dict[bytes, list[int]]:
        """For every node, the ids of all non-empty tokens that stay inside the trie, ascending.

        This asks only that a value can be finished in bytes. Whether it can be finished in tokens of this vocabulary
        is another question, which ``language.live_masks`` answers. O(nodes * tokens * token length).
        """
        return {
            node: [token_id for token_id, token in enumerate(tokens) if token and self.walk(node, token) is not None]
            for node in self.nodes
        }
