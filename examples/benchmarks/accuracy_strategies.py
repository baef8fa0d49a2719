"""The paper's strategies beside the plain trie: groups first (appendix I), or a shortlist first (appendix J)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from accuracy_arms import choosing
from accuracy_cells import Result, Subject, Table, message, timed
from accuracy_paper import RECALL
from accuracy_sets import LabelledSet
from report import Line, Report

from trieauto.constraint import Tokenization
from trieauto.integrations._hf_prompts import pad
from trieauto.integrations.hf import Ask, Decision, HierarchicalChooser, ShortlistChooser
from trieauto.strategies import Cascade, EmbeddingScorer, FuzzyScorer, Hierarchy, TfidfScorer, prompts
from trieauto.strategies.naming import words_of

SHORTLIST = 20
MISASSIGNED = (0.1, 0.2)


def embedding(subject: Subject) -> Callable[[Sequence[str]], np.ndarray]:
    """Texts to the mean of the model's last hidden states: what is at hand without a model for embeddings."""

    def embed(texts: Sequence[str]) -> np.ndarray:
        rows: list[np.ndarray] = []
        for first in range(0, len(texts), subject.batch_size):
            spaced = [" ".join(words_of(text)) or text or " " for text in texts[first : first + subject.batch_size]]
            encoded = [subject.tokenizer(text)["input_ids"] for text in spaced]
            ids, mask = pad(encoded, subject.vocabulary.stop_token_ids[0], subject.model.device, left=False)
            with torch.no_grad():
                hidden = subject.model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            weights = mask[:, :, None].float()
            rows.append(((hidden * weights).sum(dim=1) / weights.sum(dim=1)).cpu().numpy())
        return np.concatenate(rows)

    return embed


def strategies(report: Report, subject: Subject, data: LabelledSet, tokenization: Tokenization) -> None:
    """All strategies on one set."""
    right = [label for _, label in data.examples]
    title = f"{data.name}: strategies, {len(data.labels)} labels, {len(data.texts)} samples, {tokenization} tokens"
    table = Table(report, title, data.labels, right)
    options = {"tokenization": tokenization}
    strict = [prompts.select(text, data.labels) for text in data.texts]
    results, seconds = timed(choosing(subject, data.labels, tokenization, strict))
    table.add("the plain trie", results, seconds, is_constrained=True)

    def decided(chooser: HierarchicalChooser | ShortlistChooser) -> tuple[list[Decision], list[Result], float]:
        decisions: list[Decision] = []

        def decide() -> list[Result]:
            decisions.extend(chooser.map(data.texts, batch_size=subject.batch_size, progress=False))
            return subject.chosen(decisions)

        results, seconds = timed(decide)
        return decisions, results, seconds

    def grouped(arm: str, hierarchy: Hierarchy, ask_group: Ask | None = None) -> None:
        chooser = HierarchicalChooser(
            subject.model, subject.tokenizer, hierarchy, ask_group=ask_group, compile_options=options
        )
        decisions, results, seconds = decided(chooser)
        found = sum(
            label in hierarchy.groups[str(decision.calls[0].value)]
            for decision, label in zip(decisions, right, strict=True)
        )
        share = 100 * found / len(right)
        report.lines.append(Line(title, arm, "the right group", number=share, unit="%"))
        sizes = f"{len(hierarchy.names)} groups of up to {max(map(len, hierarchy.groups.values()))}"
        table.add(arm, results, seconds, is_constrained=True, note=f"{sizes}, the right one {share:.0f} %")

    embed = embedding(subject)
    similar = Hierarchy.by_similarity(data.labels)
    grouped("groups by similarity", similar)
    with_examples = partial(prompts.select_group, groups=similar.groups)
    grouped("groups by similarity, with examples", similar, lambda text, names: message(with_examples(text, names)))
    grouped("groups by similarity, each label in two", Hierarchy.by_similarity(data.labels, memberships=2))
    grouped("groups by embedding", Hierarchy.by_embedding(data.labels, embed))
    best = similar
    if data.taxonomy:
        best = Hierarchy.by_taxonomy(data.taxonomy)
        grouped("groups by taxonomy", best)
    kind = "taxonomy" if data.taxonomy else "similarity"
    for fraction in MISASSIGNED:
        grouped(f"groups by {kind}, {fraction:.0%} misassigned", best.misassigned(fraction, subject.seed))
    for name, scorer in (
        ("TF-IDF", TfidfScorer()),
        ("rapidfuzz", FuzzyScorer()),
        ("embedding", EmbeddingScorer(embed)),
    ):
        cascade = Cascade(data.labels, scorer, SHORTLIST)
        recall = 100 * cascade.recall(data.texts, right)
        report.lines.append(Line(title, f"shortlist by {name}", f"Recall@{SHORTLIST}", number=recall, unit="%"))
        chooser = ShortlistChooser(subject.model, subject.tokenizer, cascade, compile_options=options)
        decisions, results, seconds = decided(chooser)
        calls = sum(len(decision.calls) for decision in decisions) / len(decisions)
        table.add(
            f"shortlist by {name}", results, seconds, is_constrained=True,
            note=f"Recall@{SHORTLIST} {recall:.0f} % (the paper: {RECALL}), {calls:.2f} calls",
        )  # fmt: skip
