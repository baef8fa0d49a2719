"""What is public: every name, method and attribute that a user may rely on, as it stands in the source.

The source is parsed (by griffe) and never imported, so that what needs torch or an engine is read like the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import griffe

from .pages import ROOT

GROUPS: dict[str, list[str]] = {
    "Vocabularies": ["Vocabulary"],
    "Languages": [
        "choices", "several", "literal", "regex", "fixed_format", "json_schema", "from_grammar", "token_automaton",
        "Automaton", "ListAutomaton", "TokenAutomaton",
    ],
    "Constraints": ["compile", "load", "Constraint"],
    "Matchers and masks": [
        "Matcher", "fill_next_token_bitmasks", "allocate_token_bitmask", "TokenBitmask",
    ],
}  # fmt: skip
"""The names of ``trieauto``, but for its errors, in an order to read them in."""

# Names that engines ask for by a module's ``__getattr__``, and where they are.
_LAZY = {
    "integrations.sglang": {"TrieLogitProcessor": "_sglang_processor"},
    "integrations.vllm": {"TrieLogitsProcessor": "_vllm_processor"},
}
MODULES = {
    "trieauto.errors": "trieauto.errors",
    "trieauto.integrations.hf": "integrations.hf",
    "trieauto.strategies": "trieauto.strategies",
    "trieauto.strategies.prompts": "trieauto.strategies.prompts",
    "trieauto.integrations.device": "integrations.device",
    "trieauto.integrations.sglang": "integrations.sglang",
    "trieauto.integrations.vllm": "integrations.vllm",
    "trieauto.serving": "trieauto.serving",
}
"""Public modules beside ``trieauto`` itself: the name of each, and where its source is."""

_OPERATORS = ("__add__", "__call__", "__getitem__", "__len__", "__or__")


@dataclass(frozen=True)
class Public:
    """One public name.

    Attributes:
        name: as a user writes it: ``trieauto.compile``, ``Matcher.accept_token``.
        definition: what griffe knows of it.
        members: of a class, its public methods and properties, inherited ones too.
        has_constructor: whether users make it themselves.
    """

    name: str
    definition: Any
    members: list[Public] = field(default_factory=list)
    has_constructor: bool = False

    @property
    def docstring(self) -> str:
        """Its documentation; for a module's number or type, the string below it."""
        own = "" if self.definition.docstring is None else self.definition.docstring.value
        if self.has_constructor and self.init is not None and self.init.docstring is not None:
            own = f"{own}\n\n{self.init.docstring.value}"
        return str(own).strip()

    @property
    def init(self) -> Any:
        """A class's own ``__init__``, if there is one."""
        return self.definition.members.get("__init__") if self.definition.is_class else None

    @property
    def parameters(self) -> list[Any]:
        """What is passed when it is called."""
        if self.definition.is_function:
            called = self.definition
        elif self.definition.is_class and self.has_constructor:
            called = self.init
        else:
            called = None
        return [] if called is None else [it for it in called.parameters if it.name not in ("self", "cls")]

    @property
    def fields(self) -> list[str]:
        """The public fields of a data class."""
        if not (self.definition.is_class and "dataclass" in self.definition.labels):
            return []
        return [it.name for it in self.definition.attributes.values() if it.is_public and "property" not in it.labels]

    @property
    def file(self) -> Path:
        """Where it is defined, relative to the repository."""
        return Path(self.definition.filepath).relative_to(ROOT)

    def everything(self) -> Iterator[Public]:
        """It, and its members."""
        yield self
        yield from self.members


@cache
def package(name: str) -> Any:
    """A package of the repository, parsed."""
    return griffe.load(name, search_paths=[ROOT], docstring_parser="google", resolve_aliases=True)


def module(path: str) -> Any:
    """A module by its place in the repository."""
    first, _, rest = path.partition(".")
    return package(first)[rest] if rest else package(first)


def names_of(path: str) -> list[str]:
    """The public names of a module: those of ``__all__``, or else those that it defines without an underscore."""
    found = module(path)
    if found.exports is not None:
        return [str(name) for name in found.exports] + list(_LAZY.get(path, ()))
    names = [name for name, it in found.members.items() if not name.startswith("_") and not it.is_alias]
    # What else the module of errors has is for this package.
    return [name for name in names if found[name].is_class] if path == "trieauto.errors" else names


def top_level() -> dict[str, list[Public]]:
    """The names of ``trieauto`` by groups; those of its errors are in ``of_module("trieauto.errors")``."""
    return {title: [_public("trieauto", module("trieauto")[name]) for name in names] for title, names in GROUPS.items()}


def of_module(shown: str) -> list[Public]:
    """The public names of one of ``MODULES``."""
    path = MODULES[shown]
    found = []
    for name in names_of(path):
        lazy = _LAZY.get(path, {}).get(name)
        place = module(path) if lazy is None else module(f"{path.partition('.')[0]}.{lazy}")
        definition = place[name]
        if not definition.is_module:
            found.append(_public(shown, definition))
    return found


def everything() -> list[Public]:
    """All of it, members of classes included."""
    roots = [it for group in top_level().values() for it in group]
    roots += [it for shown in MODULES for it in of_module(shown)]
    return [it for root in roots for it in root.everything()]


def _public(prefix: str, definition: Any) -> Public:
    if definition.is_alias:
        definition = definition.final_target
    name = f"{prefix}.{definition.name}"
    if not definition.is_class:
        return Public(name, definition)
    members = []
    for member in definition.all_members.values():
        is_method = member.is_function or "property" in member.labels or "cached_property" in member.labels
        is_shown = not member.name.startswith("_") or member.name in _OPERATORS
        if is_method and is_shown:
            target = member.final_target if member.is_alias else member
            members.append(Public(f"{definition.name}.{member.name}", target))
    text = "" if definition.docstring is None else definition.docstring.value
    is_made_elsewhere = re.search(r"\bMade\s+by\b", text) is not None or "dataclass" in definition.labels
    is_made_elsewhere = is_made_elsewhere or definition.name.endswith("Error")
    init = definition.members.get("__init__")
    has_constructor = init is not None and not is_made_elsewhere and bool(init.parameters)
    return Public(name, definition, members, has_constructor)
