"""The figures of the paper's tables (its section 4), and where they do not agree with one another or with its text."""

from __future__ import annotations

from typing import NamedTuple

VANILLA, FORWARD, OURS = "vanilla", "forward-only", "trieauto, budget"
"""The three methods of every experiment; the paper's own method stands where ours does."""

Rates = dict[str, float]
"""Per cent by method."""


class ScalingCell(NamedTuple):
    """One line of the paper's table of experiment 4; its megabytes are 2**20 bytes."""

    offline_ms: float
    memory: str
    step_us: float


def _rates(vanilla: float, forward: float, ours: float = 100.0) -> Rates:
    return {VANILLA: vanilla, FORWARD: forward, OURS: ours}


TRAP_GOAL_RATES = _rates(1.3, 50.2)
TRAP_ENTRY_RATES = _rates(48.7, 49.8, 0.0)

JSON_RATES = {
    4: _rates(2.4, 55.4),
    6: _rates(2.4, 45.6),
    8: _rates(2.2, 65.2),
    12: _rates(3.4, 83.4),
    16: _rates(1.4, 91.8),
}

AGENT_RATES = {3: _rates(0.0, 16.8), 4: _rates(0.0, 33.2), 8: _rates(0.6, 65.2)}

SCALING = {
    (32_000, 10): ScalingCell(29.55, "2.44 MB", 388.72),
    (32_000, 100): ScalingCell(240.10, "24.42 MB", 335.10),
    (32_000, 1_000): ScalingCell(2_111.82, "244.19 MB", 340.84),
    (32_000, 10_000): ScalingCell(25_790.14, "2.44 GB", 356.29),
    (151_643, 10): ScalingCell(159.29, "11.57 MB", 601.92),
    (151_643, 10_000): ScalingCell(147_702.79, "11.56 GB", 666.22),
}
"""By the paper's |V| and |S|."""

MODEL_RATES = {6: _rates(0.0, 30.0), 10: _rates(0.0, 70.0), 16: _rates(0.0, 85.0)}
MODEL_MS = {6: 615.90, 10: 1_086.02, 16: 992.39}
"""Milliseconds a sample of its own method; it gives none for the others."""

CONTRADICTIONS = """\
Where the paper does not agree with itself:
- The abstract promises under 0.4 ms a token on a CPU. Its table of experiment 4 has 602 and 666 µs at |V| = 151,643.
- "O(1)" holds in |S| and T, not in |V|: the mask looks at all of a state's |V| entries, and the table's latency grows
  with |V|. There is no table for the GPU's "under 0.05 ms".
- "Forward baselines fail up to 54.4 %" is 100 - 45.6, the cell T = 6 of experiment 2. Yet what is whole within 4 tokens
  is whole within 6, so with one model and one grammar that cell could not lie below the one for T = 4 (55.4 %) but for
  chance, and 500 trials leave only about 2 points to chance.
- "Up to 40 % less latency by early completion" compares budgets of its own method in experiment 5; no other method's
  latency is given, and T = 16 is faster there than T = 10.
- Its memory is that of the dense delta in int64, 8 |S| |V| bytes in units of 2**20: R adds (T + 1) |S| bytes to it.
  "A compact 2D bitmap" is the small part."""
