"""A vocabulary that a reader can take in at a glance, and models with random weights for it.

Ids: 0 padding, 1 start, 2 and 3 stop, 4-11 the letters a-h, then longer tokens (two of them with the same bytes), then
ids without bytes up to ``SIZE``; the models have a few logits more than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from trieauto import Vocabulary

Model: TypeAlias = Any  # transformers' annotations do not know that its models generate
Tokenizer: TypeAlias = Any

PAD, START, STOPS = 0, 1, [2, 3]
LONGER = [b"ab", b"abc", b"bc", b"cd", b"cde", b"de", b"ef", b"fa", b"ab", b"ead", b"gh"]
TOKENS: list[bytes | None] = [None] * 4 + [bytes([letter]) for letter in b"abcdefgh"] + [*LONGER]
SIZE = 40
NUM_LOGITS = 45

VALUES = ["ab", "abc", "abcd", "bead", "cab", "cafe", "cage", "dead", "deaf", "decade", "face", "facade", "fade"]


def vocabulary(size: int = SIZE) -> Vocabulary:
    return Vocabulary.from_tokens(TOKENS, stop_token_ids=STOPS, size=size)


def decoder(seed: int = 0, num_logits: int = NUM_LOGITS) -> Model:
    """A Llama of one layer with 16 dimensions."""
    torch.manual_seed(seed)
    return sharpened(
        LlamaForCausalLM(
            LlamaConfig(
                vocab_size=num_logits,
                hidden_size=16,
                intermediate_size=32,
                num_hidden_layers=1,
                num_attention_heads=2,
                pad_token_id=PAD,
                bos_token_id=START,
                eos_token_id=STOPS,
            )
        )
    )


def decoder_for(tokenizer: Tokenizer) -> Model:
    """A decoder with random weights for a real tokenizer, in which a pass takes a millisecond."""
    model = decoder(num_logits=len(tokenizer))
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    return model


@contextmanager
def counted_passes(model: Model) -> Iterator[list[None]]:
    """A list that has one more item after each forward pass."""
    passes: list[None] = []
    handle = model.register_forward_hook(lambda *_: passes.append(None))
    try:
        yield passes
    finally:
        handle.remove()


T5_SIZE: dict[str, Any] = {
    "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0
}  # fmt: skip


def t5(seed: int = 0) -> Model:
    torch.manual_seed(seed)
    return sharpened(
        T5ForConditionalGeneration(T5Config(vocab_size=NUM_LOGITS, pad_token_id=PAD, eos_token_id=STOPS, **T5_SIZE))
    )


def bart(seed: int = 0, num_logits: int = NUM_LOGITS) -> Model:
    torch.manual_seed(seed)
    return sharpened(
        BartForConditionalGeneration(
            BartConfig(
                vocab_size=num_logits,
                d_model=16,
                encoder_layers=1,
                decoder_layers=1,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                encoder_ffn_dim=32,
                decoder_ffn_dim=32,
                max_position_embeddings=256,
                pad_token_id=PAD,
                bos_token_id=START,
                eos_token_id=STOPS,
                decoder_start_token_id=START,
            )
        )
    )


def sharpened(model: Model) -> Model:
    """Weights so large that prompts matter and no two tokens score nearly the same."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=0.7)
    return model.eval()
