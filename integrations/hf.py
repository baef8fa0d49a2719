"""Hugging Face transformers: constrain ``generate``, or let a model choose a value.

``Chooser`` does the whole job; ``ConstraintLogitsProcessor`` and ``ConstraintStoppingCriteria`` are what it is made of,
for ``generate`` calls of your own; ``DeviceLogitsProcessor`` masks without waiting for the device, and
``generate_constrained`` writes an answer of any other language. ``HierarchicalChooser``, ``ShortlistChooser`` and
``ThinkingChooser`` ask a model more than once, with what ``trieauto.strategies`` prepares. Install with
``pip install trieauto[hf]``.
"""

from __future__ import annotations

from ._hf_choice import Choice
from ._hf_chooser import Chooser
from ._hf_constrained import Generated, generate_constrained
from ._hf_device import DeviceLogitsProcessor
from ._hf_processor import ConstraintLogitsProcessor, ConstraintWarning
from ._hf_prompts import Prompt
from ._hf_scores import Score
from ._hf_stopping import ConstraintStoppingCriteria
from ._hf_strategies import Ask, Decision, HierarchicalChooser, ShortlistChooser
from ._hf_thinking import ThinkingChooser

__all__ = [
    "Ask",
    "Choice",
    "Chooser",
    "ConstraintLogitsProcessor",
    "ConstraintStoppingCriteria",
    "ConstraintWarning",
    "Decision",
    "DeviceLogitsProcessor",
    "Generated",
    "HierarchicalChooser",
    "Prompt",
    "Score",
    "ShortlistChooser",
    "ThinkingChooser",
    "generate_constrained",
]
