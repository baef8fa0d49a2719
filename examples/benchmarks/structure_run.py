"""One run of ``set_structure.py``."""

from __future__ import annotations

from dataclasses import dataclass, field

from context import Cost
from structure_counts import Counts
from structure_equality import Agreement
from structure_memory import Memory
from structure_model import Choosing, SameTokens
from structure_tries import AtDepth, Shape


@dataclass
class Structure:
    """One run.

    Attributes:
        shapes: by name of the set.
        tools: of tool names, by K.
        token_nodes: of the trie over tokens of the same sets, by K.
        memory: by K.
        process: growth of the process at one K, by engine; or why there is none.
        tokenizer_bytes: what depends on Qwen's tokenizer alone, with the Aho-Corasick automaton.
        depths: legal tokens by depth at K=1,000.
        counts: operations at K=2,000, V=32,000.
        agreement: with each peer at K=1,000.
        same: a trie over bytes and one over tokens under a real model, by K.
        first_masks: seconds to the first mask of the high-cardinality sets, by set and engine; or why there are none.
        choosing: a real model on these sets.
    """

    shapes: dict[str, Shape] = field(default_factory=dict)
    tools: dict[int, Shape] = field(default_factory=dict)
    token_nodes: dict[int, int] = field(default_factory=dict)
    memory: dict[int, Memory] = field(default_factory=dict)
    process_count: int = 0
    process: dict[str, Cost | str] = field(default_factory=dict)
    tokenizer_bytes: int = 0
    depths: list[AtDepth] = field(default_factory=list)
    counts: Counts | None = None
    agreement: dict[str, Agreement] = field(default_factory=dict)
    samples: int = 0
    same: list[SameTokens] = field(default_factory=list)
    first_masks: dict[str, dict[str, float | str]] = field(default_factory=dict)
    choosing: dict[str, Choosing] = field(default_factory=dict)
