"""The vocabulary of a tokenizer file, of whatever kind it is; kinds are told by the files' contents."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .. import sources
from ..sources import TokenSource
from ..value_files import read_bytes, split_lines
from ..vocabulary import Vocabulary
from .errors import CommandError, reason, require
from .models import check_place, load_tokenizer, require_transformers

_TIKTOKEN_LINE = re.compile(rb"([A-Za-z0-9+/]+=*) (\d+)\r?(\n|$)")
_MOST_IDS = 2**24
# In the order of preference: a model's directory may hold several forms of its tokenizer.
_FILE_NAMES = ("tokenizer.json", "tekken.json", "tokenizer.model", "*.tiktoken")


Encode = Callable[[Sequence[str]], list[list[int]]]


@dataclass(frozen=True)
class NamedTokenizer:
    """A tokenizer that the user named.

    Attributes:
        vocabulary: its tokens.
        names_stop: whether it names a stop token. If not, one is added behind its last id.
        encode: the token ids that it writes texts in, each text by itself and without special tokens; None where the
            file alone does not say, or what reads it is not installed.
    """

    vocabulary: Vocabulary
    names_stop: bool
    encode: Encode | None


def load_vocabulary(name: str) -> tuple[Vocabulary, bool]:
    """The vocabulary of a tokenizer, and whether that names a stop token: as ``load_named``."""
    loaded = load_named(name)
    return loaded.vocabulary, loaded.names_stop


def load_named(name: str) -> NamedTokenizer:
    """The tokenizer of a name.

    Args:
        name: a ``tokenizer.json``, a tiktoken or SentencePiece file, a ``tekken.json``, a GGUF model, a directory
            that holds one of them or whatever else transformers can load, or a name in the Hugging Face hub.

    Raises:
        CommandError, TrieautoError: no tokenizer that can be read, or one whose tokens have no bytes of their own.
    """
    source, encode = _source(name)
    return NamedTokenizer(*vocabulary_of(source), encode)


def vocabulary_of(source: TokenSource) -> tuple[Vocabulary, bool]:
    """The vocabulary of tokens that have been read, and whether they name a stop token (else one is added)."""
    num_ids = len(source.tokens)
    names_stop = bool(source.stop_token_ids)
    vocabulary = Vocabulary.from_tokens(
        source.tokens,
        stop_token_ids=source.stop_token_ids if names_stop else [num_ids],
        size=num_ids if names_stop else num_ids + 1,
        prefix_space=source.prefix_space,
    )
    return vocabulary, names_stop


def _source(name: str) -> tuple[TokenSource, Encode | None]:
    path = Path(name)
    if path.is_file():
        return _source_of_file(path)
    if path.is_dir():
        for pattern in _FILE_NAMES:
            for file in sorted(path.glob(pattern)):
                return _source_of_file(file)
        files = sorted(path.glob("*.gguf"))
        if files and not (path / "config.json").exists():
            return _source_of_file(files[0])
    check_place(name, gguf=None)
    require_transformers(gguf=None)
    return _source_of_transformers(name)


def _source_of_transformers(name: str, gguf: str | None = None) -> tuple[TokenSource, Encode]:
    tokenizer: Any = load_tokenizer(name, gguf)

    def encode(texts: Sequence[str]) -> list[list[int]]:
        return tokenizer(list(texts), add_special_tokens=False)["input_ids"]  # type: ignore[no-any-return]

    return sources.token_source(tokenizer), encode


def _source_of_file(path: Path) -> tuple[TokenSource, Encode | None]:
    with path.open("rb") as file:
        beginning = file.read(1024)
    if beginning.startswith(b"GGUF"):
        require_transformers(gguf=path.name)
        return _source_of_transformers(str(path.parent), path.name)
    if beginning.lstrip().startswith(b"{"):
        return _source_of_json(path)
    if path.suffix == ".tiktoken" or _TIKTOKEN_LINE.match(beginning):
        return _source_of_ranks(path), None  # how it splits a text is not in the file
    return _source_of_sentencepiece(path)


def _source_of_json(path: Path) -> tuple[TokenSource, Encode | None]:
    data = read_bytes(path)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path}: not JSON: {reason(error)}") from error
    if "model" in document:
        return sources.from_tokenizer_json(path), _encoder_of_json(path)
    if not isinstance(document.get("vocab"), list):
        raise CommandError(f"{path} is neither a tokenizer.json nor a tekken.json")
    require(["mistral_common"], "pip install mistral-common")
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    try:
        tekkenizer = Tekkenizer.from_file(path)
    except Exception as error:  # it trusts the file: what it raises depends on what is wrong there
        raise CommandError(f"{path}: not a tokenizer that can be read: {reason(error)}") from error

    def encode(texts: Sequence[str]) -> list[list[int]]:
        return [tekkenizer.encode(text, bos=False, eos=False) for text in texts]

    return sources.token_source(tekkenizer), encode


def _encoder_of_json(path: Path) -> Encode | None:
    if find_spec("tokenizers") is None:
        return None
    from tokenizers import Tokenizer

    try:
        tokenizer: Any = Tokenizer.from_file(str(path))
    except Exception:  # a file of which we can read the tokens, but not it the rest
        return None
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def encode(texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    return encode


def _source_of_ranks(path: Path) -> TokenSource:
    """Tiktoken's format: on each line the bytes of a token, in base64, and its id."""
    tokens: dict[int, bytes] = {}
    for number, line in enumerate(split_lines(read_bytes(path)), start=1):
        if not line:
            continue
        parts = _TIKTOKEN_LINE.fullmatch(line)
        try:
            token = base64.b64decode(parts[1], validate=True) if parts else None
        except binascii.Error:
            token = None
        if parts is None or token is None:
            raise CommandError(f"{path}:{number}: not a token in base64 and its id")
        if len(parts[2]) > len(str(_MOST_IDS)) or int(parts[2]) >= _MOST_IDS:
            raise CommandError(f"{path}:{number}: the id is too large: a vocabulary has at most {_MOST_IDS:,} ids")
        token_id = int(parts[2])
        if token_id in tokens:
            raise CommandError(f"{path}:{number}: the id {token_id} is given twice")
        tokens[token_id] = token
    if not tokens:
        raise CommandError(f"{path} holds no tokens")
    return TokenSource([tokens.get(token_id) for token_id in range(max(tokens) + 1)], (), prefix_space=False)


def _source_of_sentencepiece(path: Path) -> tuple[TokenSource, Encode]:
    require(["sentencepiece"], "pip install sentencepiece")
    from sentencepiece import SentencePieceProcessor

    try:
        processor: Any = SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
        raise CommandError(
            f"{path} is no tokenizer file of a known kind (tokenizer.json, tiktoken, SentencePiece, tekken.json, GGUF)"
        ) from error

    def encode(texts: Sequence[str]) -> list[list[int]]:
        return processor.encode(list(texts))  # type: ignore[no-any-return]

    return sources.token_source(processor), encode
