"""The four labelled sets, as their directory has them: ``labels.txt`` and ``test.jsonl`` each."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DIRECTORIES = {"TREC": "trec_fine", "MASSIVE": "massive_en_us", "Banking77": "banking77", "CLINC150": "clinc150"}
COARSE = {
    "ABBR": "abbreviation",
    "DESC": "description",
    "ENTY": "entity",
    "HUM": "human being",
    "LOC": "location",
    "NUM": "number",
}
"""The coarse classes of TREC by the beginning of a fine one (Li and Roth 2002)."""


@dataclass(frozen=True)
class LabelledSet:
    """Texts with their labels, drawn at random.

    Attributes:
        name: as the paper has it.
        labels: the set to choose from.
        examples: texts and their labels.
        taxonomy: the group of each label, where the set comes with groups; empty otherwise.
    """

    name: str
    labels: list[str]
    examples: list[tuple[str, str]]
    taxonomy: Mapping[str, str]

    @property
    def texts(self) -> list[str]:
        return [text for text, _ in self.examples]


def read_set(directory: Path, name: str, samples: int, seed: int) -> LabelledSet:
    """A sample of a set; with the labels that its test split has, where these are fewer (TREC: 42 of 50)."""
    place = directory / DIRECTORIES[name]
    own = place / "labels_test_only.txt"
    labels = (own if own.exists() else place / "labels.txt").read_text("utf-8").split("\n")
    labels = [label for label in labels if label]
    lines = [json.loads(line) for line in (place / "test.jsonl").read_text("utf-8").splitlines()]
    examples = [(line["text"], line["label"]) for line in lines]
    foreign = {label for _, label in examples} - set(labels)
    if foreign:
        raise ValueError(f"{place}: labels in test.jsonl that are not in the list: {sorted(foreign)}")
    drawn = random.Random(seed).sample(examples, min(samples, len(examples)))
    taxonomy: dict[str, str] = {}
    if name == "TREC":
        taxonomy = {label: COARSE[label.split(":")[0]] for label in labels}
    elif name == "MASSIVE":  # the scenario of an intent is its first word
        taxonomy = {label: label.split("_")[0] for label in labels}
    return LabelledSet(name, labels, drawn, taxonomy)
