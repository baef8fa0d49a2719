"""Real bytes of every token id, from the tokenizers people use."""

from __future__ import annotations

from trieauto.sources.huggingface import from_huggingface
from trieauto.sources.mistral_common import from_mistral_common
from trieauto.sources.recognise import token_source
from trieauto.sources.sentencepiece import from_sentencepiece
from trieauto.sources.source import TokenSource
from trieauto.sources.tiktoken import from_tiktoken
from trieauto.sources.tokenizer_json import from_tokenizer_json

__all__ = [
    "TokenSource",
    "from_huggingface",
    "from_mistral_common",
    "from_sentencepiece",
    "from_tiktoken",
    "from_tokenizer_json",
    "token_source",
]
