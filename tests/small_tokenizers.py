"""Small tokenizers of the ``tokenizers`` library, one for each way in which they write texts; made in milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from .tokenizers_for_tests import TEXTS


def trained(
    model: Any, trainer: Any, decoder: Any, pre_tokenizer: Any = None, normalizer: Any = None, texts: Any = TEXTS
) -> Tokenizer:
    tokenizer = Tokenizer(model)
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoder
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def byte_level_tokenizer(add_prefix_space: bool = False) -> Tokenizer:
    return trained(
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=["<eos>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
        decoders.ByteLevel(),
        pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space),
    )


def llama_decoder() -> decoders.Decoder:
    return decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )


def byte_fallback_pieces() -> list[str]:
    return [f"<0x{byte:02X}>" for byte in range(256)]


def byte_fallback_bpe() -> Tokenizer:
    """Like Llama's: pieces for some letters and words, bytes for all else."""
    pieces = ["<unk>", *byte_fallback_pieces(), "\u2581", *"abcdefgh", "ab", "\u2581ab"]
    merges = [("a", "b"), ("\u2581", "ab")]
    vocab = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = llama_decoder()
    return tokenizer


def byte_fallback_unigram(prepend_scheme: str = "always") -> Tokenizer:
    pieces = ["<unk>", *byte_fallback_pieces(), "\u2581", *"abcdefgh", "ab", "\u2581ab"]
    tokenizer = Tokenizer(models.Unigram([(piece, -float(i)) for i, piece in enumerate(pieces)], 0, True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend_scheme)
    tokenizer.decoder = llama_decoder()
    return tokenizer


SMALL: dict[str, Callable[[], Tokenizer]] = {
    "byte-level": byte_level_tokenizer,
    "byte-level-prefix": lambda: byte_level_tokenizer(add_prefix_space=True),
    "byte-fallback-bpe": byte_fallback_bpe,
    "unigram-always": byte_fallback_unigram,
    "unigram-first": lambda: byte_fallback_unigram("first"),
    "unigram-never": lambda: byte_fallback_unigram("never"),
}
