"""Small byte-level BPE tokenizers that split, cut out and take whole in all the ways in which real ones do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from .small_tokenizers import trained
from .tokenizers_for_tests import QWEN_PATTERN, TEXTS

CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
]
PATTERNS: dict[str, Sequence[str]] = {
    "qwen-pattern": [QWEN_PATTERN],
    "cl100k": [CL100K],
    "o200k": [O200K],
    "deepseek": DEEPSEEK,
    "backtracking": [r"a+b|aa|a|b a|[^a]"],
    "gaps": [r"ab|\d\d", r"b |aab"],
    "whitespace": [r"\s+(?=a)|\S+|\s"],
    "possessive-looks": [r"\s++(?!\S)|\s+|a++b*+(?=a)|b?+[ab](?!x)|\p{L}+|\p{N}{1,2}+|[^\s\p{L}]"],
    "possessive": [r"[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s+"],
}


def split_by(patterns: Sequence[str]) -> pre_tokenizers.PreTokenizer:
    splits: list[pre_tokenizers.PreTokenizer] = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
    return pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def splitting(pre_tokenizer: pre_tokenizers.PreTokenizer, vocab_size: int = 700) -> Tokenizer:
    return trained(
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=["<eos>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
        decoders.ByteLevel(),
        pre_tokenizer,
        texts=[*TEXTS, "aab abb ab a b aabb 'sat 'salt' it's the cat's a1 22 333 abab aaaa bbbb"] * 2,
    )


def digits(individual: bool) -> Tokenizer:
    """As SmolLM2's and StarCoder's: digits first, then GPT-2's pattern."""
    return splitting(
        pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=individual), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    )


def with_added() -> Tokenizer:
    """Added tokens that overlap, that are prefixes of others, that are special, and that are runs of spaces."""
    tokenizer = splitting(split_by([QWEN_PATTERN]))
    tokenizer.add_tokens([AddedToken(text, normalized=True) for text in ("  ", "   ", "xy", "xyx", "bx<")])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ("<call>", "l>a", "1 2")])
    tokenizer.add_special_tokens(["<|end|>", "<|end", "ab<"])
    return tokenizer


def unsplit() -> Tokenizer:
    """Without any pattern, so added tokens are all that cuts a text."""
    tokenizer = splitting(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ("\n\n", "abab", "x<", " 1")])
    return tokenizer


def taking_whole() -> Tokenizer:
    """As Llama 3's: some pre-tokens are tokens that no merges make."""
    document = json.loads(splitting(split_by([QWEN_PATTERN])).to_str())
    document["model"]["ignore_merges"] = True
    vocab = document["model"]["vocab"]
    for piece in ("Ġxab", "abxa", "xab", "Ã©Ã©a", "''", "Ġ1"):
        vocab.setdefault(piece, len(vocab))
    return Tokenizer.from_str(json.dumps(document))


def without_bytes() -> Tokenizer:
    """As SmolLM2's: some bytes are no tokens, and text that has them is lost."""
    document = json.loads(splitting(split_by([QWEN_PATTERN])).to_str())
    document["model"]["vocab"].pop("Ń")
    document["model"]["merges"] = [m for m in document["model"]["merges"] if "Ń" not in "".join(m)]
    document["model"]["vocab"] = {
        piece: token_id for piece, token_id in document["model"]["vocab"].items() if "Ń" not in piece
    }
    return Tokenizer.from_str(json.dumps(document))


def composing() -> Tokenizer:
    tokenizer = splitting(split_by([QWEN_PATTERN]))
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


BYTE_LEVEL: dict[str, Callable[[], Tokenizer]] = {
    "gpt2": lambda: splitting(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    **{name: lambda patterns=patterns: splitting(split_by(patterns)) for name, patterns in PATTERNS.items()},  # type: ignore[misc]
    "digits": lambda: digits(True),
    "digit-runs": lambda: digits(False),
    "added": with_added,
    "unsplit": unsplit,
    "whole": taking_whole,
    "lacking-bytes": without_bytes,
    "nfc": composing,
}
load_byte_level = cache(lambda name: BYTE_LEVEL[name]())
