"""The engines of ``choices.py``, given whole JSON schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mixed_cases import Case
from ours import Trieauto
from peers import Engine, Form, LLGuidance, XGrammar
from vocabularies import ByteVocabulary

import trieauto

# LLGuidance writes schemas compactly on request only.
_COMPACT = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}


@dataclass(frozen=True)
class Mixed:
    """One schema with so many values in its enum."""

    case: Case
    count: int
    plain_strings: bool

    def values(self, seed: int) -> list[str]:
        return self.case.values(self.count, seed)

    def schema(self, values: Sequence[str]) -> dict[str, Any]:
        return self.case.schema(list(values), plain_strings=self.plain_strings)

    def __str__(self) -> str:
        return f"{self.case.name} {self.count:,}"


class MixedEngine(Engine):
    """An engine and the form that it is given a schema in."""

    uses_text = True
    options: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    prefix = ""
    is_json = True

    def form(self, mixed: Mixed) -> Form:
        """Made outside the clock."""

        def source(values: Sequence[str]) -> Any:
            schema = {**mixed.schema(values), **self.options}
            return self.prefix + json.dumps(schema, ensure_ascii=False) if self.uses_text else schema

        return Form("JSON schema", source, is_json=self.is_json)

    def first_matcher(self, compiled: Any) -> Any:
        """A matcher for what is used once."""
        return self.matcher(compiled)


class MixedTrieauto(MixedEngine, Trieauto):
    """trieauto by default settings, given the schema as an object."""

    uses_text = False

    def compile(self, form: Form, source: Any) -> trieauto.Constraint:
        return trieauto.compile(trieauto.json_schema(source), self.vocabulary)


class MixedTrieautoText(MixedTrieauto):
    """trieauto, given text as its peers are, which it must read first."""

    name = "trieauto, from text"
    uses_text = True


class MixedXGrammar(MixedEngine, XGrammar):
    """XGrammar as it comes, with a new compiler each time."""

    is_cached = False

    def compiler(self) -> Any:
        return self._xgrammar.GrammarCompiler(
            self.tokenizer_info, cache_enabled=self.is_cached, enable_dynamic_compilation=self.dynamic
        )

    def compile(self, form: Form, source: Any) -> Any:
        return self.compiler().compile_json_schema(source, any_whitespace=False, separators=(",", ":"))


class MixedXGrammarCached(MixedXGrammar):
    """XGrammar with one compiler, which keeps what it compiled; the enums are new each time all the same."""

    name = "XGrammar, cache"
    is_cached = True

    @cached_property
    def _kept(self) -> Any:
        return super().compiler()

    def compiler(self) -> Any:
        return self._kept


class MixedDynamicXGrammar(MixedXGrammar):
    """XGrammar's option to prepare a mask when it is first needed."""

    name = "XGrammar dynamic"
    dynamic = True
    is_oracle = False  # it is the same grammar, and masks of large enums take it 0.1 s each


class MixedLLGuidance(MixedEngine, LLGuidance):
    """LLGuidance, with masks of all legal tokens where the text is determined, too; only this form can say so."""

    options = {"x-guidance": _COMPACT}  # noqa: RUF012
    prefix = '%llguidance {"no_forcing": true}\nstart: %json '
    is_json = False

    def first_matcher(self, compiled: Any) -> Any:
        return compiled  # a matcher already


class MixedSlicedLLGuidance(MixedLLGuidance):
    """With its "slices", prepared masks of the text in strings."""

    name = "LLGuidance, slices"

    def __init__(self, vocabulary: ByteVocabulary) -> None:
        super().__init__(vocabulary)
        self.tokenizer = self.prepare(vocabulary)


class MixedForcingLLGuidance(MixedSlicedLLGuidance):
    """As servers call it: a schema by itself, and where the text is determined a mask of one token. So the masks differ
    from all the others', and only the texts can be compared."""

    name = "LLGuidance, slices, forcing"
    prefix = ""
    is_json = True
    is_oracle = False


ENGINES: dict[str, type[MixedEngine]] = {
    engine.name: engine
    for engine in (
        MixedTrieauto,
        MixedTrieautoText,
        MixedXGrammar,
        MixedXGrammarCached,
        MixedDynamicXGrammar,
        MixedLLGuidance,
        MixedSlicedLLGuidance,
        MixedForcingLLGuidance,
    )
}
OURS = MixedTrieauto.name
