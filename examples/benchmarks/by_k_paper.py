"""What the trie paper says of compiling and masking by K: the figures that its text gives (its tables are pictures).

Qwen3-8B (151K), A100 and EPYC 7R32 with 96 cores, XGrammar 0.1.11, LLGuidance 1.6.1.
"""

from __future__ import annotations

COUNTS = [10, 50, 100, 500, 1_000, 2_000, 5_000, 10_000, 50_000, 100_000]
"""Appendix C.2."""

COMPILE: dict[str, dict[int, float]] = {
    "trieauto": {10: 0.030, 1_000: 0.033, 5_000: 0.037, 10_000: 0.040, 100_000: 0.067},
    "XGrammar": {10: 0.003, 1_000: 0.075, 5_000: 0.150, 10_000: 0.239, 100_000: 2.7},
    "LLGuidance": {10: 0.0006, 10_000: 0.024},
    "GENRE": {1_000: 0.033, 10_000: 7 * 0.040},
    "outlines-core": {2_000: 25.0},
}
"""Seconds. "trieauto" is the paper's trie; GENRE from "crosses over at 1,000" and "7× faster by 10,000"; outlines-core
stands for the FSM of appendix F, "25-50 s" for 2,000 tools."""

MASK: dict[str, dict[int, float]] = {
    "trieauto": {10: 0.65e-6, 100: 0.65e-6, 1_000: 0.65e-6, 10_000: 0.65e-6},
    "XGrammar": {10: 9.5e-6, 100: 5.4e-6, 1_000: 5.8e-6},
    "LLGuidance": {10: 73e-6, 10_000: 141e-6},
    "GENRE": {100: 0.43e-6, 10_000: 0.63e-6},
}
"""Seconds. LLGuidance's are the ends of a range whose sizes the text does not give."""

LIMITS = {"Gemini": 120, "Anthropic": 200, "OpenAI": 1_000}
"""Values in an enum, as the paper's figure 1a has them (section 1 and appendix G.7). Only OpenAI's is a documented
number; the others are what the paper found or concluded. Their servers were not asked here."""

CONTRADICTIONS = (
    "The paper's own figures of XGrammar at K=10,000 differ: 239 ms (section 5.1), 695 ms (section 3), 1,207 ms "
    "(appendix H.10)."
)
