"""Appendix H.4: compiling taken apart into the paper's four phases; and what each token at each node would cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from context import Context
from measure import Timing, clocked, in_turns
from ours import TrieautoAsInPaper
from structure_tries import mask_sizes
from vocabularies import qwen_encoding

import trieauto
from trieauto import sources
from trieauto.demo_sets import tool_names

TRIE, DECODING, AHO_CORASICK, TRAVERSAL = (
    "1. the set's trie", "2. decoding the vocabulary", "3. Aho-Corasick over it", "4. masks of all nodes",
)  # fmt: skip
WALK = "4. by walking both tries"


@dataclass(frozen=True)
class Phases:
    """Seconds of each phase on a set; 2 and 3 depend on the tokenizer alone."""

    count: int
    nodes: int
    timings: dict[str, Timing]


def phases(context: Context, count: int, seconds: float) -> Phases:
    """One thread."""
    engine = context.engine("trieauto, as in the paper")
    assert isinstance(engine, TrieautoAsInPaper)
    vocabulary = engine.vocabulary
    values = tool_names(count)
    automaton = trieauto.choices(values)

    def masks(method: Any) -> trieauto.Constraint:
        return trieauto.compile(automaton, vocabulary, mode="eager", method=method, threads=1)

    timings = in_turns(
        {
            TRIE: clocked(trieauto.choices, values),
            DECODING: clocked(sources.from_tiktoken, qwen_encoding()),
            AHO_CORASICK: clocked(engine.build_tokenizer),
            TRAVERSAL: clocked(masks, "aho_corasick"),
            WALK: clocked(masks, "walk"),
        },
        seconds=seconds,
        rounds=15,
    )
    return Phases(count, automaton.num_states, timings)


@dataclass(frozen=True)
class EachTokenAtEachNode:
    """The paper's naive way, compiled too.

    Attributes:
        tried: nodes at which it was done.
        seconds: for these nodes.
        whole: for all nodes, at the same rate.
        by_aho_corasick: the masks of all nodes, Aho-Corasick's own time included.
        agrees: whether the numbers of tokens are those of our masks.
    """

    count: int
    nodes: int
    tried: int
    seconds: float
    whole: float
    by_aho_corasick: float
    agrees: bool


def each_token_at_each_node(context: Context, measured: Phases, tried: int) -> EachTokenAtEachNode:
    """Check every token's bytes from nodes spread over the trie."""
    engine = context.engine("trieauto, as in the paper")
    assert isinstance(engine, TrieautoAsInPaper)
    automaton = trieauto.choices(tool_names(measured.count))
    constraint = trieauto.compile(automaton, engine.vocabulary, mode="eager")
    tables = engine.vocabulary.tables
    nodes = np.unique(np.linspace(0, automaton.num_states - 1, min(tried, automaton.num_states)).astype(np.int64))
    arguments = automaton.labels, automaton.links, tables.data, tables.offsets, nodes
    counted = _count_naively(*arguments)  # compiles it
    seconds = min(clocked(_count_naively, *arguments)() for _ in range(3))
    timings = measured.timings
    return EachTokenAtEachNode(
        measured.count,
        automaton.num_states,
        len(nodes),
        seconds,
        seconds / len(nodes) * automaton.num_states,
        timings[AHO_CORASICK].median + timings[TRAVERSAL].median,
        bool((counted == mask_sizes(constraint)[nodes]).all()),
    )


@numba.njit  # type: ignore[untyped-decorator]
def _count_naively(
    labels: npt.NDArray[np.uint8],
    subtree_ends: npt.NDArray[np.int32],
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    nodes: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """How many tokens lead on from each of some nodes of a trie, each token tried at each node."""
    counts = np.zeros(len(nodes), np.int64)
    for place in range(len(nodes)):
        for token in range(len(offsets) - 1):
            at = nodes[place]
            fits = offsets[token + 1] > offsets[token]
            for k in range(offsets[token], offsets[token + 1]):
                child, end = at + 1, np.int64(subtree_ends[at])
                while child < end and labels[child] != data[k]:
                    child = np.int64(subtree_ends[child])
                if child >= end:
                    fits = False
                    break
                at = child
            counts[place] += fits
    return counts
