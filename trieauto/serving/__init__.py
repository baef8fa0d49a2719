"""What the adapters of serving engines share: sets by name, what requests say, constraints by request, a gate for
thinking."""

from __future__ import annotations

from .named_sets import ENVIRONMENT, NamedSet, NamedSets
from .requests import ConstraintRequest, read_request
from .snapshots import Snapshots
from .store import ConstraintStore, GrammarKind
from .thinking import ThinkingMatcher

__all__ = [
    "ENVIRONMENT",
    "ConstraintRequest",
    "ConstraintStore",
    "GrammarKind",
    "NamedSet",
    "NamedSets",
    "Snapshots",
    "ThinkingMatcher",
    "read_request",
]
