"""Constrained decoding over large finite sets, and the languages around them: exact token masks, within a budget.

Names are imported when they are first used: the plug-ins of serving engines run in processes that never make a mask,
and numba alone takes them most of a second and 100 MB. (So no module here may have the name of a function.)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import errors
from .errors import (
    BudgetError,
    EmptyConstraintError,
    SavedConstraintError,
    TokenNotAllowedError,
    TrieautoError,
    UnreachableValueError,
    UnsupportedError,
    VocabularyError,
)

if TYPE_CHECKING:
    from .algebra import literal
    from .automaton import Automaton
    from .bitmask import TokenBitmask, allocate_token_bitmask
    from .compiling import compile
    from .constraint import Constraint
    from .fixed_formats import fixed_format
    from .grammars import from_grammar
    from .json_schemas import json_schema
    from .matcher import Matcher, fill_next_token_bitmasks
    from .regex_automaton import regex
    from .saving import load
    from .token_automata import TokenAutomaton, token_automaton
    from .value_lists.automaton import ListAutomaton, several
    from .value_sets import choices
    from .vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "Automaton",
    "BudgetError",
    "Constraint",
    "EmptyConstraintError",
    "ListAutomaton",
    "Matcher",
    "SavedConstraintError",
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
    "errors",
    "fill_next_token_bitmasks",
    "fixed_format",
    "from_grammar",
    "json_schema",
    "literal",
    "load",
    "regex",
    "several",
    "token_automaton",
]

_MODULES = {
    "Automaton": "automaton",
    "Constraint": "constraint",
    "ListAutomaton": "value_lists.automaton",
    "Matcher": "matcher",
    "TokenAutomaton": "token_automata",
    "TokenBitmask": "bitmask",
    "Vocabulary": "vocabulary",
    "allocate_token_bitmask": "bitmask",
    "choices": "value_sets",
    "compile": "compiling",
    "fill_next_token_bitmasks": "matcher",
    "fixed_format": "fixed_formats",
    "from_grammar": "grammars",
    "json_schema": "json_schemas",
    "literal": "algebra",
    "load": "saving",
    "regex": "regex_automaton",
    "several": "value_lists.automaton",
    "token_automaton": "token_automata",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
