"""Tokens from Hugging Face tokenizers, recognised by what they offer; ``transformers`` is never imported."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from trieauto.errors import UnsupportedError, VocabularyError
from trieauto.sources.document import Document
from trieauto.sources.encoders import SlowEncoder, huggingface_encoder
from trieauto.sources.kinds import HUGGINGFACE_BACKEND, HUGGINGFACE_SLOW, offers, wrong_kind
from trieauto.sources.mistral_common import from_mistral_common
from trieauto.sources.pieces import ByteAlphabet, literal, space_marked
from trieauto.sources.sentencepiece import piece_bytes
from trieauto.sources.source import TokenSource, make_token_source, size_for
from trieauto.sources.tokenizer_json import read_document

# What slow tokenizers are asked to tokenize, to see that their pieces spell it and whether a space comes before it.
_PROBE = "a a"


def from_huggingface(tokenizer: Any) -> TokenSource:
    """The tokens of a tokenizer of ``transformers``, fast or slow, or of the ``tokenizers`` library.

    The stop ids are those that the tokenizer itself names ``eos_token_id`` and ``eot_token_id``, each one id or a
    list; a tokenizer knows nothing of the model's generation config, which may name more. A special added token
    (``added_tokens_decoder[id].special``) has no bytes, any other is literal text. What
    ``clean_up_tokenization_spaces`` does to a decoded text is left out of account.

    Slow tokenizers are read by what they keep: a SentencePiece model (``sp_model``), GPT-2's alphabet
    (``byte_decoder``), a vocabulary of bytes, or a tokenizer of mistral-common.

    Raises:
        VocabularyError: a tokenizer that offers none of these.
        UnsupportedError: a tokenizer whose tokens have no bytes of their own; the message says why.
    """
    stop_ids = _stop_ids(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if offers(backend, HUGGINGFACE_BACKEND):
        return read_document(_document(backend), stop_ids, huggingface_encoder(backend))
    inner = getattr(tokenizer, "tokenizer", None)
    if offers(inner, ("instruct_tokenizer",)):
        source = from_mistral_common(inner)
        stop_ids = [*source.stop_token_ids, *stop_ids]
        return make_token_source(source.tokens, stop_ids, source.prefix_space, source.encoder)
    return _from_slow(tokenizer, stop_ids)


def _stop_ids(tokenizer: Any) -> list[int]:
    stop_ids: list[int] = []
    for name in ("eos_token_id", "eot_token_id"):
        value = getattr(tokenizer, name, None)
        if value is not None:
            stop_ids.extend(value if isinstance(value, (list, tuple)) else [value])
    return stop_ids


def _document(backend: Any) -> Document:
    """What ``backend.to_str()`` would say, without the merges: writing and parsing those takes most of its time."""
    added = backend.get_added_tokens_decoder().items()
    return {
        "model": _model(backend),
        "added_tokens": [{"id": id_, "content": token.content, "special": token.special} for id_, token in added],
        "normalizer": _state("normalizer", backend.normalizer),
        "pre_tokenizer": _state("pre_tokenizer", backend.pre_tokenizer),
        "decoder": _state("decoder", backend.decoder),
    }


def _model(backend: Any) -> Document:
    model = backend.model
    if not hasattr(model, "unk_token"):
        # Unigram models show nothing of themselves, but have no merges either.
        state: Document = json.loads(model.__getstate__())
        return state
    names = ("unk_token", "byte_fallback", "continuing_subword_prefix", "end_of_word_suffix")
    return {"vocab": backend.get_vocab(with_added_tokens=False)} | {name: getattr(model, name, None) for name in names}


def _state(role: str, component: Any) -> Document | None:
    """A component as ``tokenizer.json`` would hold it: this is also the form in which it is pickled."""
    if component is None:
        return None
    # The library's own components are subclasses; one that is written in Python comes as the base class.
    if type(component).__base__ is object:
        raise UnsupportedError(f"a custom {role}, written in Python: what it does to the bytes cannot be known")
    state: Document = json.loads(component.__getstate__())
    return state


def _from_slow(tokenizer: Any, stop_ids: list[int]) -> TokenSource:
    if not offers(tokenizer, HUGGINGFACE_SLOW):
        raise wrong_kind(tokenizer, "a Hugging Face tokenizer")
    vocab = tokenizer.get_vocab()
    added = tokenizer.added_tokens_decoder
    spelling = _slow_spelling(tokenizer, vocab)
    tokens: list[bytes | None] = [None] * size_for([*vocab.values(), *added])
    for piece, token_id in vocab.items():
        tokens[token_id] = spelling(piece)
    for token_id, token in added.items():
        if token.special:
            tokens[token_id] = None
        elif token_id >= tokenizer.vocab_size:
            tokens[token_id] = literal(token.content)
    return make_token_source(tokens, stop_ids, _probe(tokenizer, spelling), SlowEncoder(tokenizer))


def _slow_spelling(tokenizer: Any, vocab: dict[Any, int]) -> Callable[[Any], bytes | None]:
    """The function from a piece of a slow tokenizer to its bytes."""
    if hasattr(tokenizer, "sp_model"):
        processor = tokenizer.sp_model
        by_piece = dict(
            zip(processor.id_to_piece(list(range(processor.get_piece_size()))), piece_bytes(processor), strict=True)
        )
        return by_piece.get
    if hasattr(tokenizer, "byte_decoder"):
        return ByteAlphabet(tokenizer.byte_decoder)
    if any(isinstance(piece, bytes) for piece in vocab):
        return lambda piece: piece if isinstance(piece, bytes) else None
    raise VocabularyError(
        f"{type(tokenizer).__name__} does not show the bytes of its tokens: it has no backend_tokenizer, sp_model, "
        "byte_decoder or vocabulary of bytes"
    )


def _probe(tokenizer: Any, spelling: Callable[[Any], bytes | None]) -> bool:
    """Whether a slow tokenizer puts a space before the first word, found out by tokenizing one text.

    Slow tokenizers are Python code that may do anything to a text, so this also checks that the pieces spell it.
    """
    pieces = tokenizer.tokenize(_PROBE)
    # Some tokenizers leave text that is in no piece as it is.
    spelled = b"".join(spelling(piece) or space_marked(piece) for piece in pieces)
    if spelled not in (_PROBE.encode(), b" " + _PROBE.encode()):
        raise UnsupportedError(
            f"{type(tokenizer).__name__} tokenizes {_PROBE!r} as {pieces}, whose bytes would be {spelled!r}"
        )
    return spelled.startswith(b" ")
