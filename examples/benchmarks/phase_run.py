"""One run of ``phases.py``."""

from __future__ import annotations

from dataclasses import dataclass, field

from measure import Timing
from phase_ablation import Arm
from phase_alternatives import Filtered, Matching
from phase_compile import EachTokenAtEachNode, Phases
from phase_precomputing import Precomputed
from phase_steps import Steps


@dataclass
class Run:
    """What was measured, part by part.

    Attributes:
        caches: by K.
        example: seconds to the first mask, or why there is none, by engine, at ``example_count`` over 32,000 tokens.
        ablation: by strategy.
    """

    steps: Steps | None = None
    phases: list[Phases] = field(default_factory=list)
    naive: EachTokenAtEachNode | None = None
    precomputed: list[Precomputed] = field(default_factory=list)
    filtered: list[Filtered] = field(default_factory=list)
    caches: dict[int, dict[str, Timing]] = field(default_factory=dict)
    hash_sets: list[Matching] = field(default_factory=list)
    example_count: int = 0
    example: dict[str, float | str] = field(default_factory=dict)
    ablation: dict[str, Arm] = field(default_factory=dict)
