"""One cell of the tables: how an arm did on a sample, and the model that all of them ask."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accuracy_paper import SAME_SPELLING
from rapidfuzz import fuzz, process, utils
from report import Line, Report
from transformers import PreTrainedModel, PreTrainedTokenizerBase

import trieauto
from trieauto.integrations._hf_free_text import FreeText, write_freely
from trieauto.integrations._hf_prompts import encode
from trieauto.integrations.hf import Choice, Decision

ANSWER_TOKENS = 32  # of an answer without constraint
TEMPERATURE = 0.7  # of retries
HEADER = f"  {'arm':<44} {'accuracy':>9} {'validity':>9} {'steps':>7} {'time':>8}   the paper: accuracy"


@dataclass(frozen=True)
class Result:
    """What came of one prompt: the answer as text, the label it counts as, and the tokens it took.

    ``token_ids`` are those of an answer under a constraint.
    """

    answer: str
    label: str
    steps: float
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Subject:
    """The model, and how it is asked.

    Attributes:
        batch_size: prompts that share a ``generate`` call.
        retries: for answers without constraint that are not valid.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    vocabulary: trieauto.Vocabulary
    batch_size: int
    retries: int
    seed: int

    def free(self, prompts: Sequence[str], limit: int, **arguments: Any) -> list[FreeText]:
        """What the model writes after each prompt (as a chat message)."""
        texts: list[FreeText] = []
        stops = list(self.vocabulary.stop_token_ids)
        for first in range(0, len(prompts), self.batch_size):
            encoded = [encode(self.tokenizer, message(prompt)) for prompt in prompts[first : first + self.batch_size]]
            texts += write_freely(self.model, self.tokenizer, encoded, [limit] * len(encoded), stops, **arguments)
        return texts

    def answers(self, prompts: Sequence[str], labels: Sequence[str]) -> list[Result]:
        """Answers without constraint: the first line, and the label that it is most like."""
        return [read(text, labels) for text in self.free(prompts, ANSWER_TOKENS)]

    def retried(self, prompts: Sequence[str], labels: Sequence[str], first: Sequence[Result]) -> list[Result]:
        """The same with up to ``retries`` further attempts, sampled, for those that are not valid; all steps count."""
        results = list(first)
        for attempt in range(self.retries):
            again = [i for i, result in enumerate(results) if result.answer not in labels]
            torch.manual_seed(self.seed + attempt)
            # From the whole distribution, whatever the model's own configuration says.
            sampled = self.free(
                [prompts[i] for i in again], ANSWER_TOKENS, do_sample=True, temperature=TEMPERATURE, top_k=0, top_p=1.0
            )
            for i, text in zip(again, sampled, strict=True):
                new = read(text, labels)
                steps = results[i].steps + new.steps
                kept = new if new.answer in labels else results[i]
                results[i] = Result(kept.answer, kept.label, steps)
        return results

    def chosen(self, choices: Iterable[Choice | Decision]) -> list[Result]:
        """Answers under a constraint, read off the tokens as well as off the value: they must be its beginning."""
        results = []
        for choice in choices:
            value = str(choice.value)
            last = choice.calls[-1] if isinstance(choice, Decision) else choice
            spelled = self.tokenizer.decode(last.token_ids)
            answer = value if value.startswith(spelled.removeprefix(" ")) else spelled
            results.append(Result(answer, value, choice.num_forward_passes, tuple(last.token_ids)))
        return results


def message(prompt: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}]


def read(text: FreeText, labels: Sequence[str]) -> Result:
    lines = [line.strip() for line in text.text.splitlines() if line.strip()]
    answer = lines[0] if lines else ""
    best = process.extractOne(answer, labels, scorer=fuzz.WRatio, processor=utils.default_process)
    return Result(answer, str(best[0]) if best else labels[0], text.num_tokens)


@dataclass(frozen=True)
class Cell:
    """Per cent right, per cent valid, mean steps (tokens generated, stop tokens included), seconds for a prompt."""

    accuracy: float | None
    validity: float
    steps: float
    seconds: float


class Table:
    """Cells under one title: a line for each arm, printed as it is done, and four numbers each for the report."""

    def __init__(self, report: Report, title: str, labels: Sequence[str], right: Sequence[str] | None) -> None:
        report.section(title)
        print(HEADER, flush=True)
        self.report, self.title, self.labels, self.right = report, title, labels, right

    def add(
        self,
        arm: str,
        results: Sequence[Result],
        seconds: float,
        *,
        is_constrained: bool,
        paper: str = "",
        note: str = "",
    ) -> Cell:
        """Judge an arm. ``seconds``: of all prompts together."""
        count = len(results)
        accuracy = None
        if self.right is not None:
            pairs = zip(results, self.right, strict=True)
            accuracy = 100 * sum(result.label == label for result, label in pairs) / count
        members = set(self.labels)
        validity = 100 * sum(result.answer in members for result in results) / count
        cell = Cell(accuracy, validity, sum(result.steps for result in results) / count, seconds / count)
        met = validity == 100 if is_constrained else None
        numbers = [("validity", validity, "%"), ("steps", cell.steps, "tokens"), ("time", cell.seconds, "s")]
        if accuracy is not None:
            numbers.append(("accuracy", accuracy, "%"))
        for what, number, unit in numbers:
            judged = {"target": "target ≥ 100 %", "met": met} if what == "validity" and is_constrained else {}
            self.report.lines.append(Line(self.title, arm, what, number=number, unit=unit, note=paper, **judged))
        shown = f"{accuracy:8.1f}%" if accuracy is not None else f"{'':9}"
        verdict = "MISSED" if met is False else ""
        print(
            f"  {arm:<44} {shown} {validity:8.1f}% {cell.steps:7.2f} {cell.seconds:7.2f}s   "
            f"{'   '.join(part for part in (paper, note, verdict) if part)}".rstrip(),
            flush=True,
        )
        return cell

    def add_spelling(self, arm: str, one: Sequence[Result], other: Sequence[Result]) -> None:
        """How many of the answers under two tokenizations are the same token sequence."""
        same = sum(a.token_ids == b.token_ids for a, b in zip(one, other, strict=True))
        share = 100 * same / len(one)
        self.report.lines.append(Line(self.title, arm, SAME_SPELLING, number=share, unit="%"))
        print(f"  {arm + ': same tokens in both':<44} {share:8.1f}%", flush=True)


def timed(task: Callable[[], list[Result]]) -> tuple[list[Result], float]:
    begin = time.perf_counter()
    results = task()
    return results, time.perf_counter() - begin
