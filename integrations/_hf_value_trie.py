"""The trie of the values of a set in the tokens that the tokenizer itself writes."""

from __future__ import annotations

import numpy as np

from trieauto import TokenAutomaton

ROOT = 0
NO_VALUE = -1


class ValueTrie:
    """A trie of token sequences. Node 0 is the root; nodes are numbered in preorder, children by ascending token.

    Args:
        automaton: of a set, compiled for canonical tokenization.

    Attributes:
        tokens: the token that leads to each node.
        parents: the node before each.
        depths: how many tokens lead to each.
        children: the nodes after each.
        ends: the number of the value that ends at each node, or ``NO_VALUE``: its place among the distinct values, as
            they were given.
        num_inner_below: how many nodes with children lie below each, itself not counted.
    """

    def __init__(self, automaton: TokenAutomaton) -> None:
        values = automaton.values
        assert values is not None
        links, targets = automaton.links.tolist(), automaton.targets.tolist()
        count = automaton.num_states
        self.children: list[list[int]] = [targets[links[node] : links[node + 1]] for node in range(count)]
        self.tokens, self.parents, self.depths = [-1] * count, [-1] * count, [0] * count
        for child, token_id in zip(targets, automaton.tokens.tolist(), strict=True):
            self.tokens[child] = token_id
        for node, children in enumerate(self.children):
            for child in children:
                self.parents[child] = node
                self.depths[child] = self.depths[node] + 1
        self.ends = [NO_VALUE] * count
        numbers = np.searchsorted(np.unique(values.order), values.order)
        for node, number in zip(values.terminals.tolist(), numbers.tolist(), strict=True):
            self.ends[node] = number
        self.num_inner_below = [0] * count
        for node in range(count - 1, ROOT, -1):
            self.num_inner_below[self.parents[node]] += self.num_inner_below[node] + bool(self.children[node])

    def __len__(self) -> int:
        return len(self.tokens)

    def inner_nodes(self) -> list[int]:
        """The nodes with children, in preorder: those after which the model's scores are needed."""
        return [node for node, children in enumerate(self.children) if children]

    def path(self, node: int) -> list[int]:
        """The nodes on the way from the root to a node, without the root."""
        path = []
        while node != ROOT:
            path.append(node)
            node = self.parents[node]
        return path[::-1]

    @property
    def longest_inner_path(self) -> int:
        """The most tokens that lead to a node with children."""
        return int(np.max([self.depths[node] for node in self.inner_nodes()], initial=0))
