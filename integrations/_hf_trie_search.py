"""What is known of the values of a trie while a model is asked about its nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from trieauto.errors import TrieautoError

from ._hf_trie_passes import TriePasses
from ._hf_value_trie import NO_VALUE, ROOT, ValueTrie


class TrieSearch:
    """What is known so far of the values of a trie after one prompt.

    Attributes:
        passes: where logits come from.
        prefixes: the logarithm of the probability of the tokens that lead to a node, for all that were reached.
        finished: the logarithm of the product of each value (by its number), for all that were reached.
    """

    def __init__(self, trie: ValueTrie, passes: TriePasses, stop_token_ids: torch.Tensor) -> None:
        self._trie = trie
        self.passes = passes
        self._stop_token_ids = stop_token_ids
        self.prefixes: dict[int, float] = {ROOT: 0.0}
        self.finished: dict[int, float] = {}
        self._num_open_below: dict[int, int] = {}
        if not trie.children[ROOT]:
            self.finished[trie.ends[ROOT]] = 0.0  # the empty text alone: nothing else is possible

    def expand(self, nodes: Sequence[int]) -> None:
        """Run the model at some nodes with children, each after its parent."""
        if not nodes:
            return
        trie = self._trie
        logits = self.passes.logits(nodes).float()
        logs = logits - logits.logsumexp(dim=1, keepdim=True)
        rows = [i for i, node in enumerate(nodes) for _ in trie.children[node]]
        tokens = [trie.tokens[child] for node in nodes for child in trie.children[node]]
        steps = iter(logs[torch.tensor(rows), torch.tensor(tokens)].tolist())
        ends = [i for i, node in enumerate(nodes) if trie.ends[node] != NO_VALUE]
        stops = iter(logs[torch.tensor(ends)][:, self._stop_token_ids].logsumexp(dim=1).tolist() if ends else [])
        for node in nodes:
            before = self.prefixes[node]
            if trie.ends[node] != NO_VALUE:
                self.finished[trie.ends[node]] = before + next(stops)
            for child in trie.children[node]:
                self.prefixes[child] = before + next(steps)
                if not trie.children[child]:
                    self.finished[trie.ends[child]] = self.prefixes[child]
            self._num_open_below[node] = trie.num_inner_below[node]
            for above in trie.path(node)[:-1]:
                self._num_open_below[above] -= 1

    def expand_segments(self, nodes: Sequence[int]) -> list[int]:
        """Run the model at some nodes, and with each at those after it as far as there is one way on only; the last of
        each."""
        trie = self._trie
        segments = []
        for node in nodes:
            segment = [node]
            while len(trie.children[segment[-1]]) == 1 and trie.children[trie.children[segment[-1]][0]]:
                segment.append(trie.children[segment[-1]][0])
            segments.append(segment)
        self.expand([node for segment in segments for node in segment])
        return [segment[-1] for segment in segments]

    def forget_the_finished(self) -> None:
        """Drop what the model remembers of nodes below which everything is known."""
        self.passes.keep([node for node, count in self._num_open_below.items() if count > 0])


def log_sum(logs: Any) -> float:
    """The logarithm of the sum of what ``logs`` are logarithms of.

    Raises:
        TrieautoError: not all are numbers, or all are -inf.
    """
    array = np.asarray(logs, np.float64)
    highest = float(array.max())
    if math.isnan(highest):
        raise TrieautoError("the model's scores are not numbers (NaN), so no value has a probability")
    if highest == -math.inf:
        raise TrieautoError("the model gives each of the values the probability 0, so none has a share")
    return highest + float(np.log(np.exp(array - highest).sum()))
