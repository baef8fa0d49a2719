"""What the adapters of serving engines share: sets by name, constraints by request, a gate for thinking."""

from __future__ import annotations

from .named_sets import ENVIRONMENT, NamedSet, NamedSets
from .store import ConstraintStore, GrammarKind
from .thinking import ThinkingMatcher

__all__ = ["ENVIRONMENT", "ConstraintStore", "GrammarKind", "NamedSet", "NamedSets", "ThinkingMatcher"]
