"""Constrained decoding over large finite sets, and the languages around them: exact token masks, within a budget."""

from __future__ import annotations

from .algebra import literal
from .automaton import Automaton
from .bitmask import TokenBitmask, allocate_token_bitmask
from .choices import choices
from .compiling import compile
from .constraint import Constraint
from .errors import (
    BudgetError,
    EmptyConstraintError,
    TokenNotAllowedError,
    TrieautoError,
    UnreachableValueError,
    UnsupportedError,
    VocabularyError,
)
from .fixed_format import fixed_format
from .grammars import from_grammar
from .json_schema import json_schema
from .matcher import Matcher, fill_next_token_bitmasks
from .regex import regex
from .token_automaton import TokenAutomaton, token_automaton
from .vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "Automaton",
    "BudgetError",
    "Constraint",
    "EmptyConstraintError",
    "Matcher",
    "TokenAutomaton",
    "TokenBitmask",
    "TokenNotAllowedError",
    "TrieautoError",
    "UnreachableValueError",
    "UnsupportedError",
    "Vocabulary",
    "VocabularyError",
    "allocate_token_bitmask",
    "choices",
    "compile",
    "fill_next_token_bitmasks",
    "fixed_format",
    "from_grammar",
    "json_schema",
    "literal",
    "regex",
    "token_automaton",
]
