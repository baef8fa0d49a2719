"""Greedy answers of a real model are the same under our masks, XGrammar's and the reference's."""

from __future__ import annotations

import pytest
import torch
import xgrammar
from transformers import LogitsProcessor, LogitsProcessorList, PreTrainedModel, PreTrainedTokenizerBase

import trieauto
from trieauto.demo_sets import tool_names
from trieauto.integrations.hf import ConstraintLogitsProcessor
from trieauto.reference.matcher import ReferenceMatcher

QUESTIONS = [
    "Which tool sends a message on Slack?",
    "Which tool deletes a file?",
    "I need to see all open invoices. Which tool do I need?",
    "Create a new issue on GitHub.",
]


class _MaskedBy(LogitsProcessor):
    """Lets through what a matcher allows, and follows what was chosen."""

    def __init__(self, matcher: ReferenceMatcher, prompt_length: int) -> None:
        self.matcher = matcher
        self.prompt_length = prompt_length

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        self.matcher.reset()
        assert self.matcher.accept_tokens(input_ids[0, self.prompt_length :].tolist())
        masked = torch.full_like(scores, -torch.inf)
        allowed = self.matcher.allowed_token_ids()
        masked[0, allowed] = scores[0, allowed]
        return masked


@pytest.mark.parametrize("question", QUESTIONS)
def test_three_ways_to_the_same_answer(
    question: str, smollm2_model: PreTrainedModel, smollm2_tokenizer: PreTrainedTokenizerBase
) -> None:
    names = tool_names(200)
    size = smollm2_model.config.vocab_size
    vocabulary = trieauto.Vocabulary.from_tokenizer(smollm2_tokenizer, size=size)
    messages = [{"role": "user", "content": question}]
    prompt = smollm2_tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    length = prompt["input_ids"].shape[1]

    info = xgrammar.TokenizerInfo.from_huggingface(smollm2_tokenizer, vocab_size=size)
    grammar = xgrammar.GrammarCompiler(info).compile_grammar("root ::= " + " | ".join(f'"{name}"' for name in names))
    processors = {
        "trieauto": ConstraintLogitsProcessor(trieauto.compile(trieauto.choices(names), vocabulary), length),
        "xgrammar": xgrammar.contrib.hf.LogitsProcessor(grammar),
        "reference": _MaskedBy(
            ReferenceMatcher([name.encode() for name in names], vocabulary.tokens, vocabulary.stop_token_ids), length
        ),
    }
    answers = {}
    for name, processor in processors.items():
        output = smollm2_model.generate(
            **prompt, logits_processor=LogitsProcessorList([processor]), do_sample=False, max_new_tokens=40
        )
        answers[name] = output[0, length:].tolist()
    assert answers["trieauto"] == answers["xgrammar"] == answers["reference"]
    assert smollm2_tokenizer.decode(answers["trieauto"], skip_special_tokens=True) in names
