"""How a byte-pair tokenizer writes texts, taken from its own settings: for following it without asking it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trieauto.errors import UnsupportedError, shorten
from trieauto.sources.components import unrolled
from trieauto.sources.pieces import BYTE_LEVEL_ALPHABET

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
NUMERIC = "numeric"
"""In the place of a pattern: one digit, as ``tokenizers.pre_tokenizers.Digits`` knows them."""

_COMPOSING = ("NFC", "NFD", "NFKC", "NFKD")
_FLAGS = ("lstrip", "rstrip", "single_word")


@dataclass(frozen=True)
class Split:
    """One way to split a text.

    Attributes:
        pattern: a regular expression, or ``NUMERIC``.
        is_repeated: whether what matches side by side is one piece.
        keeps_gaps: whether text that does not match is kept, in pieces of its own.
    """

    pattern: str
    is_repeated: bool = False
    keeps_gaps: bool = True


@dataclass(frozen=True)
class BytePairRules:
    """Of a byte-level BPE.

    Attributes:
        pieces: the ids of its tokens, by their bytes.
        lefts, rights, ranks, results: int32[M], its merges; the lowest rank comes first.
        takes_whole: whether a pre-token that is a token becomes it, whatever the merges say.
        splits: how it splits texts, one after the other.
        engine: "oniguruma" or "rust": whose regular expressions these are.
        added: texts that are cut out first, leftmost and longest, in one step after the other; with their ids.
        is_ascii_only: whether this holds only for ASCII, for a normalizer may change other text.
    """

    pieces: Mapping[bytes, int]
    lefts: npt.NDArray[np.int32]
    rights: npt.NDArray[np.int32]
    ranks: npt.NDArray[np.int32]
    results: npt.NDArray[np.int32]
    takes_whole: bool
    splits: tuple[Split, ...]
    engine: str
    added: tuple[tuple[tuple[str, int], ...], ...] = ()
    is_ascii_only: bool = False


def rules_of_tokenizer_json(document: Mapping[str, Any]) -> BytePairRules:
    """Of a ``tokenizer.json``.

    Raises:
        UnsupportedError: it is no byte-level BPE, or changes texts before it splits them; the message names the part.
    """
    model = document["model"]
    if model["type"] != "BPE":
        raise unsupported_tokenizer(f"a {model['type']} model")
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(name):
            raise unsupported_tokenizer(f"a BPE with {name} {shorten(model[name])}")
    vocab = model["vocab"]
    pieces = {
        bytes(map(BYTE_LEVEL_ALPHABET.__getitem__, piece)): token_id
        for piece, token_id in vocab.items()
        if BYTE_LEVEL_ALPHABET.keys() >= set(piece)  # others have characters that no byte is written as
    }
    merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    return BytePairRules(
        pieces,
        np.array([vocab[left] for left, _ in merges], np.int32),
        np.array([vocab[right] for _, right in merges], np.int32),
        np.arange(len(merges), dtype=np.int32),
        np.array([vocab[left + right] for left, right in merges], np.int32),
        bool(model.get("ignore_merges")),
        tuple(_splits(document["pre_tokenizer"])),
        "oniguruma",
        _added(document["added_tokens"]),
        _is_ascii_only(document["normalizer"]),
    )


def rules_of_tiktoken(encoding: Any, first_id: int) -> BytePairRules:
    """Of a ``tiktoken.Encoding``, whose special tokens are ordinary text to it. ``first_id``: the id of rank 0.

    Raises:
        UnsupportedError: a version that keeps its parts elsewhere.
    """
    try:
        ranks, pattern = encoding._mergeable_ranks, encoding._pat_str
    except AttributeError as error:
        raise unsupported_tokenizer(f"this version of tiktoken ({error})") from None
    lefts, rights, results = [], [], []
    get: Callable[[bytes], int | None] = ranks.get
    for token, rank in ranks.items():
        for place in range(1, len(token)):
            left = get(token[:place])
            if left is not None and (right := get(token[place:])) is not None:
                lefts.append(left)
                rights.append(right)
                results.append(rank)
    return BytePairRules(
        {token: first_id + rank for token, rank in ranks.items()},
        np.array(lefts, np.int32) + np.int32(first_id),
        np.array(rights, np.int32) + np.int32(first_id),
        np.array(results, np.int32),
        np.array(results, np.int32) + np.int32(first_id),
        True,
        (Split(pattern, keeps_gaps=False),),
        "rust",
    )


def unsupported_tokenizer(what: str) -> UnsupportedError:
    return UnsupportedError(
        "tokenization='canonical' of a language of more than 200,000 strings follows the tokenizer's own steps, which "
        f"is supported for byte-level BPE (Hugging Face's, tiktoken's), not for {what}"
    )


def _is_ascii_only(normalizer: Mapping[str, Any] | None) -> bool:
    parts = list(unrolled(normalizer, "normalizer", "normalizers"))
    for part in parts:
        if part["type"] not in _COMPOSING:
            raise unsupported_tokenizer(f"the normalizer {part['type']}")
    return bool(parts)


def _splits(pre_tokenizer: Mapping[str, Any] | None) -> Iterable[Split]:
    parts = list(unrolled(pre_tokenizer, "pre-tokenizer", "pretokenizers"))
    if not parts or parts[-1]["type"] != "ByteLevel":
        raise unsupported_tokenizer(
            f"{parts[-1]['type']} as the last pre-tokenizer" if parts else "one without a pre-tokenizer"
        )
    *others, last = parts
    if last["add_prefix_space"]:
        raise unsupported_tokenizer("a pre-tokenizer that adds a space before the text")
    for part in others:
        if part["type"] == "Digits":
            yield Split(NUMERIC, is_repeated=not part["individual_digits"])
        elif part["type"] == "Split" and part["behavior"] == "Isolated" and not part["invert"]:
            pattern = part["pattern"]
            yield Split(pattern["Regex"] if "Regex" in pattern else _escaped(pattern["String"]))
        else:
            raise unsupported_tokenizer(f"the pre-tokenizer {shorten(part)}")
    if last["use_regex"]:
        yield Split(GPT2_PATTERN)


def _escaped(text: str) -> str:
    return "".join(c if c.isalnum() or c.isspace() or not c.isascii() else "\\" + c for c in text)


def _added(added_tokens: Iterable[Mapping[str, Any]]) -> tuple[tuple[tuple[str, int], ...], ...]:
    """First those that are looked for in the text itself, then those in the normalized one."""
    steps: tuple[list[tuple[str, int]], list[tuple[str, int]]] = ([], [])
    for token in added_tokens:
        for flag in _FLAGS:
            if token[flag]:
                raise unsupported_tokenizer(f"added tokens with {flag}, such as {shorten(token['content'])}")
        if token["content"]:
            steps[bool(token["normalized"])].append((token["content"], token["id"]))
    return tuple(tuple(step) for step in steps if step)
