"""The trie paper's strategies for sets too large, or too much alike, for one question: their model-free parts.

``Hierarchy`` splits a set into groups, for two questions instead of one (its appendix I); ``Cascade`` puts the
likeliest values before the others (appendix J); ``prompts`` words the questions (appendix C.1).
``trieauto.integrations.hf`` asks them of a model. What clusters and compares strings comes with
``pip install trieauto[strategies]``.
"""

from __future__ import annotations

from . import prompts
from .cascade import Cascade
from .hierarchy import Hierarchy
from .scorers import EmbeddingScorer, FuzzyScorer, TfidfScorer

__all__ = ["Cascade", "EmbeddingScorer", "FuzzyScorer", "Hierarchy", "TfidfScorer", "prompts"]
