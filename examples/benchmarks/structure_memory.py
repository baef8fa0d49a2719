"""Tables 10 and H.5: what a compiled set takes, by the paper's formula, by our own account, and as a process grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from context import ENGINES, Context, Cost, attempt, first_mask_trial
from structure_tries import mask_sizes

import trieauto
from trieauto.demo_sets import tool_names

STATE_BYTES = 256 * 4
"""A row of the FSM's transition table in the paper's formula."""


@dataclass(frozen=True)
class Memory:
    """Of a set of tool names, in bytes.

    Attributes:
        nodes: of its trie.
        minimal: states of the smallest automaton.
        entries: 4 bytes for each token in the masks of all nodes: the paper's formula (appendix H.5).
        stored: trieauto with these masks stored, all of it.
        found: trieauto as it is after compiling by default, which finds masks when they are needed.
        table: nodes times a row of 256 words: the paper's formula for an FSM.
        minimal_table: the same for the smallest automaton.
    """

    nodes: int
    minimal: int
    entries: int
    stored: int
    found: int
    table: int
    minimal_table: int


def memory(count: int, vocabulary: trieauto.Vocabulary, minimal: int) -> Memory:
    """``minimal``: of the same set (see ``structure_tries``)."""
    automaton = trieauto.choices(tool_names(count))
    eager = trieauto.compile(automaton, vocabulary, mode="eager")
    nodes = automaton.num_states
    return Memory(
        nodes,
        minimal,
        4 * int(mask_sizes(eager).sum()),
        eager.nbytes,
        trieauto.compile(automaton, vocabulary).nbytes,
        nodes * STATE_BYTES,
        minimal * STATE_BYTES,
    )


MEASURED = ("trieauto", "trieauto, eager", "XGrammar", "LLGuidance")


def process_memory(context: Context, count: int, engines: Sequence[str] = MEASURED) -> dict[str, Cost | str]:
    """Each engine in a process of its own, from before a set is compiled to after its first mask."""
    return {name: attempt(first_mask_trial, context, name, count, ENGINES[name].forms[0]) for name in engines}
