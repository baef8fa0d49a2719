"""The engines as logits processors of ``generate``, each as its users have it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from hf_claims import WAYS
from ours import Trieauto
from peers import PEERS, Engine, Form
from transformers import LogitsProcessor
from vocabularies import huggingface_tokenizer, smollm2

import trieauto
from trieauto.integrations._masks import mask_on_cpu
from trieauto.integrations.hf import ConstraintLogitsProcessor


class Way(ABC):
    """An engine, and how a set is written for it."""

    def __init__(self, engine: Engine, form: Form) -> None:
        self.engine = engine
        self.form = form

    def source(self, values: Sequence[str]) -> Any:
        """What the engine is given; not timed."""
        return self.form.source(values)

    def compile(self, source: Any) -> Any:
        """What the processor is made of."""
        return self.engine.compile(self.form, source)

    @abstractmethod
    def processor(self, compiled: Any, prompt_length: int, max_tokens: int) -> LogitsProcessor:
        """For one call of ``generate``."""


class OurWay(Way):
    """With the budget, as ``generate`` has it."""

    def __init__(self) -> None:
        engine = Trieauto(smollm2())
        engine.vocabulary = trieauto.Vocabulary.from_tokenizer(huggingface_tokenizer(), size=smollm2().size)
        super().__init__(engine, engine.forms[0])

    def processor(self, compiled: trieauto.Constraint, prompt_length: int, max_tokens: int) -> LogitsProcessor:
        return ConstraintLogitsProcessor(compiled, prompt_length, max_new_tokens=max_tokens)


class XGrammarWay(Way):
    """With XGrammar's own processor."""

    def processor(self, compiled: Any, prompt_length: int, max_tokens: int) -> LogitsProcessor:
        from xgrammar.contrib.hf import LogitsProcessor as OwnProcessor

        return OwnProcessor(compiled)  # type: ignore[no-any-return]


class MaskProcessor(LogitsProcessor):
    """One row, its mask filled by an engine that has no processor for sets."""

    def __init__(self, engine: Engine, compiled: Any, prompt_length: int) -> None:
        self.engine = engine
        self.matcher = engine.matcher(compiled)
        self.bitmask = engine.allocate(1)
        self.fill = engine.fill(self.matcher, self.bitmask)
        self.length = prompt_length

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        for token_id in input_ids[0, self.length :].tolist():
            self.engine.accept(self.matcher, token_id)
        self.length = input_ids.shape[1]
        self.fill()
        mask_on_cpu(scores, self.engine.rows(self.bitmask))
        return scores


class MaskWay(Way):
    """With that processor."""

    def processor(self, compiled: Any, prompt_length: int, max_tokens: int) -> LogitsProcessor:
        return MaskProcessor(self.engine, compiled, prompt_length)


def ways(names: Sequence[str]) -> dict[str, Way]:
    """Some, by the names of their lines; each engine is prepared once."""
    needed = dict.fromkeys(WAYS[name][0] for name in names)
    engines = {name: PEERS[name](smollm2()) for name in needed if name in PEERS}
    found: dict[str, Way] = {}
    for name in names:
        engine, form_name = WAYS[name]
        if engine == "trieauto":
            found[name] = OurWay()
            continue
        form = next(form for form in engines[engine].forms if form.name == form_name)
        found[name] = (XGrammarWay if engine == "XGrammar" else MaskWay)(engines[engine], form)
    return found
