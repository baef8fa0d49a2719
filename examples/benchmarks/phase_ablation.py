"""Table 12: the trie alone, groups first, and a shortlist first, one prompt at a time, at K=5,000."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from accuracy_cells import message
from structure_model import SmallModel
from tool_prompts import prompts

import trieauto
from trieauto.demo_sets import tool_names

ALONE, GROUPS, SHORTLIST = "the trie alone", "groups first, then a trie", "a shortlist first, then a trie"


@dataclass(frozen=True)
class Arm:
    """Seconds once for the set, and of a prompt (the median); model calls of a prompt; answers that are values."""

    once: float
    prompt: float
    calls: float
    valid: int
    samples: int


def ablation(subject: SmallModel, count: int, samples: int) -> dict[str, Arm]:
    """By strategy."""
    from trieauto.integrations.hf import Chooser, HierarchicalChooser, ShortlistChooser
    from trieauto.strategies import Cascade, Hierarchy, TfidfScorer

    values, questions = tool_names(count), prompts(samples, 0)
    model, tokenizer = subject.model, subject.tokenizer

    def alone() -> Any:
        return Chooser(model, tokenizer, trieauto.compile(trieauto.choices(values), subject.vocabulary))

    def groups() -> Any:
        return HierarchicalChooser(model, tokenizer, Hierarchy.by_similarity(values))

    def shortlist() -> Any:
        return ShortlistChooser(model, tokenizer, Cascade(values, TfidfScorer()))

    makers: dict[str, Callable[[], Any]] = {ALONE: alone, GROUPS: groups, SHORTLIST: shortlist}
    _ = subject.vocabulary
    found = {}
    for name, make in makers.items():
        begin = time.perf_counter()
        chooser = make()
        once = time.perf_counter() - begin
        asked: Sequence[Any] = [message(text) for text in questions] if name == ALONE else questions
        spent, calls, valid = [], [], 0
        for text in asked:
            begin = time.perf_counter()
            (choice,) = chooser.map([text], batch_size=1, progress=False)
            spent.append(time.perf_counter() - begin)
            calls.append(len(choice.calls) if name != ALONE else 1)
            valid += choice.value in values
        found[name] = Arm(once, statistics.median(spent), statistics.mean(calls), valid, samples)
    return found
