"""The arms of the paper's tables 6, 7 and 9: prompts alone, the trie, and both after thinking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from accuracy_cells import Result, Subject, Table, message, timed
from accuracy_paper import ACCURACY, COMPLIANCE, PE, SHORT, STRICT, THINK_PE, THINK_TRIE
from accuracy_sets import LabelledSet
from report import Report, progress
from tool_prompts import prompts as tool_texts

import trieauto
from trieauto.constraint import Tokenization
from trieauto.demo_sets import tool_names
from trieauto.integrations.hf import Chooser
from trieauto.strategies import prompts

TOOL_COUNTS = (10, 100, 500, 1_000, 2_000, 5_000)
LISTED_TOOLS = 500  # more do not fit into the model's context
LONG_PROMPT, FEW = 100, 4  # prompts that list more tools are asked in batches of so few
TOKENIZATIONS: tuple[Tokenization, ...] = ("any", "canonical")


def constraint_of(subject: Subject, values: Sequence[str], tokenization: Tokenization) -> trieauto.Constraint:
    return trieauto.compile(trieauto.choices(values), subject.vocabulary, tokenization=tokenization)


def choosing(
    subject: Subject, values: Sequence[str], tokenization: Tokenization, questions: Sequence[str]
) -> Callable[[], list[Result]]:
    chooser = Chooser(subject.model, subject.tokenizer, constraint_of(subject, values, tokenization))
    batches = [message(question) for question in questions]
    return lambda: subject.chosen(chooser.map(batches, batch_size=subject.batch_size, progress=False))


def arms(report: Report, subject: Subject, data: LabelledSet, thinking_tokens: int) -> None:
    """All arms on one set; those that think only with some tokens for it."""
    name, labels, texts = data.name, data.labels, data.texts
    table = Table(
        report,
        f"{name}: {len(labels)} labels, {len(texts)} samples (tables 6 and 7)",
        labels,
        [label for _, label in data.examples],
    )

    def unconstrained(arm: str, questions: Sequence[str], seconds: float, steps: Sequence[int]) -> None:
        results, first = timed(lambda: subject.answers(questions, labels))
        paper = ACCURACY.get((name, arm), "")
        table.add(arm, with_steps(results, steps), seconds + first, is_constrained=False, paper=paper)
        retried, again = timed(lambda: subject.retried(questions, labels, results))
        table.add(
            f"{arm}, up to {subject.retries} retries", with_steps(retried, steps), seconds + first + again,
            is_constrained=False,
        )  # fmt: skip

    def constrained(arm: str, questions: Sequence[str], seconds: float, steps: Sequence[int]) -> None:
        by_tokenization = []
        for tokenization in TOKENIZATIONS:
            results, own = timed(choosing(subject, labels, tokenization, questions))
            by_tokenization.append(results)
            paper = ACCURACY.get((name, arm), "") if tokenization == TOKENIZATIONS[0] else ""
            table.add(
                f"{arm}, {tokenization} tokens", with_steps(results, steps), seconds + own,
                is_constrained=True, paper=paper,
            )  # fmt: skip
        table.add_spelling(arm, *by_tokenization)

    none = [0] * len(texts)
    strict = [prompts.select(text, labels) for text in texts]
    unconstrained(PE, strict, 0, none)
    constrained(STRICT, strict, 0, none)
    constrained(SHORT, [prompts.select_briefly(text, labels) for text in texts], 0, none)
    if not thinking_tokens:
        return
    progress(f"{name}: thinking")
    thoughts: list[str] = []

    def think() -> list[Result]:
        written = subject.free([prompts.think(text, labels) for text in texts], thinking_tokens)
        thoughts.extend(thought.text.strip() for thought in written)
        return [Result("", "", thought.num_tokens) for thought in written]

    spent, seconds = timed(think)
    steps = [int(result.steps) for result in spent]
    after = [prompts.select_after_thinking(text, labels, own) for text, own in zip(texts, thoughts, strict=True)]
    unconstrained(THINK_PE, after, seconds, steps)
    constrained(THINK_TRIE, after, seconds, steps)


def with_steps(results: Sequence[Result], more: Sequence[int]) -> list[Result]:
    return [replace(result, steps=result.steps + steps) for result, steps in zip(results, more, strict=True)]


def compliance(report: Report, subject: Subject, samples: int, counts: Sequence[int] = TOOL_COUNTS) -> None:
    """Whether an answer is a tool's name, in sets of growing size (tables 9 and 16)."""
    texts = tool_texts(samples, subject.seed)
    unlisted = [prompts.select(text, []) for text in texts]
    for count in counts:
        names = tool_names(count, subject.seed)
        table = Table(report, f"Tool names: K = {count:,}, {samples} samples (tables 9 and 16)", names, None)
        asked = {"unconstrained": unlisted}
        if count <= LISTED_TOOLS:
            asked[PE] = [prompts.select(text, names) for text in texts]
        for arm, questions in asked.items():
            is_long = arm == PE and count > LONG_PROMPT
            asking = replace(subject, batch_size=min(FEW, subject.batch_size)) if is_long else subject
            first, seconds = timed(partial(asking.answers, questions, names))
            table.add(arm, first, seconds, is_constrained=False, paper=COMPLIANCE[arm])
            results, again = timed(partial(asking.retried, questions, names, first))
            seconds += again
            retries = f"{arm}, up to {subject.retries} retries"
            table.add(retries, results, seconds, is_constrained=False, paper=COMPLIANCE[arm])
        by_tokenization = []
        for tokenization in TOKENIZATIONS:
            results, seconds = timed(choosing(subject, names, tokenization, unlisted))
            by_tokenization.append(results)
            table.add(f"trie, {tokenization} tokens", results, seconds, is_constrained=True, paper=COMPLIANCE["trie"])
        table.add_spelling("trie", *by_tokenization)
