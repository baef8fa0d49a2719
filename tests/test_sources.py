"""The bytes of every token id.

The law: what a tokenizer makes of a text spells that text, byte for byte. The tokenizers' own libraries are the oracle:
they encode, and they decode single ids.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tiktoken
import xgrammar
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import BertGenerationTokenizer, ByT5Tokenizer, PreTrainedTokenizer, PreTrainedTokenizerFast
from transformers.tokenization_mistral_common import MistralCommonBackend

from trieauto.errors import TrieautoError, UnsupportedError, VocabularyError
from trieauto.sources import (
    TokenSource,
    from_huggingface,
    from_mistral_common,
    from_sentencepiece,
    from_tiktoken,
    from_tokenizer_json,
    token_source,
)
from trieauto.sources.pieces import BYTE_LEVEL_ALPHABET, byte_fallback, byte_level, space_marked

from . import tokenizers_for_tests as real
from .small_tokenizers import (
    SMALL,
    byte_fallback_bpe,
    byte_fallback_pieces,
    byte_fallback_unigram,
    byte_level_tokenizer,
    llama_decoder,
)
from .tokenizers_for_tests import TEXTS


@dataclasses.dataclass(frozen=True)
class Case:
    """A tokenizer as its own library has it, and what we make of it."""

    source: TokenSource
    size: int
    special_ids: set[int]
    encode: Callable[[str], list[int]]
    # The bytes that the library itself gives an id, or the text where it only decodes to text.
    decode_alone: Callable[[list[int]], list[bytes] | list[str]]
    prefix_space: bool = False
    # What the tokenizer does to every text before it encodes it.
    normalize: Callable[[str], str] = str
    # Bytes that it drops, because no token has them.
    dropped: bytes = b""


def tiktoken_case(encoding: tiktoken.Encoding) -> Case:
    return Case(
        source=token_source(encoding),
        size=encoding.n_vocab,
        special_ids={encoding.encode_single_token(token) for token in encoding.special_tokens_set},
        encode=encoding.encode_ordinary,
        decode_alone=encoding.decode_tokens_bytes,
    )


def backend_case(source: TokenSource, tokenizer: Tokenizer, **options: Any) -> Case:
    return Case(
        source=source,
        size=tokenizer.get_vocab_size(with_added_tokens=True),
        special_ids={i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special},
        encode=lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
        decode_alone=lambda ids: tokenizer.decode_batch([[i] for i in ids], skip_special_tokens=False),
        **options,
    )


def sentencepiece_case(source: TokenSource, processor: sentencepiece.SentencePieceProcessor, **options: Any) -> Case:
    ids = range(processor.get_piece_size())
    letter = processor.piece_to_id("a")
    return Case(
        source=source,
        size=len(ids),
        special_ids={i for i in ids if processor.is_control(i) or processor.is_unknown(i)},
        encode=processor.encode,
        # A token at the start of a text would lose its space.
        decode_alone=lambda ids: [text[1:] for text in processor.decode([[letter, i] for i in ids])],
        **{"prefix_space": True, **options},
    )


def olmo_case(name: str, **options: Any) -> Case:
    path = real.olmo_tokenizer_json(name)
    return backend_case(from_tokenizer_json(path), real.olmo(name), **options)


def tekken_case() -> Case:
    tekken = real.mistral_tekken().instruct_tokenizer.tokenizer
    return Case(
        source=token_source(real.mistral_tekken()),
        size=tekken.n_words,
        special_ids=set(range(1000)),
        encode=lambda text: tekken.encode(text, bos=False, eos=False),
        decode_alone=lambda ids: [tekken.id_to_byte_piece(i) for i in ids],
    )


def slow_case() -> Case:
    """A slow tokenizer of transformers around Mistral's SentencePiece model."""
    slow = BertGenerationTokenizer(str(real.mistral_file("tokenizer.model.v1")))
    case = sentencepiece_case(token_source(slow), real.mistral_sentencepiece())
    # Its padding and separator are further special tokens, behind the pieces.
    return dataclasses.replace(case, size=len(slow), special_ids={*case.special_ids, 32000, 32001})


# Thirteen of these 21 are in no UTF-8 text; the others the library leaves out without a word.
SMOLLM2_LACKS = bytes([0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xC0, 0xC1, 0xF1, 0xF2, *range(0xF5, 0x100)])

CASES: dict[str, Callable[[], Case]] = {
    "qwen-tiktoken": lambda: tiktoken_case(real.qwen_encoding()),
    "qwen-huggingface": lambda: backend_case(
        token_source(real.qwen_huggingface()), real.qwen_huggingface().backend_tokenizer
    ),
    "smollm2": lambda: backend_case(
        token_source(real.smollm2()), real.smollm2().backend_tokenizer, dropped=SMOLLM2_LACKS
    ),
    "olmo-neox": lambda: olmo_case(
        "allenai_gpt-neox-olmo-dolma-v1_5.json", normalize=lambda text: unicodedata.normalize("NFC", text)
    ),
    "olmo-dolma2": lambda: olmo_case("allenai_dolma2.json"),
    "mistral-sentencepiece": lambda: sentencepiece_case(
        token_source(real.mistral_sentencepiece()), real.mistral_sentencepiece()
    ),
    "mistral-v3": lambda: sentencepiece_case(
        token_source(real.mistral_v3()), real.mistral_v3().instruct_tokenizer.tokenizer._model
    ),
    "mistral-slow": slow_case,
    "tekken": tekken_case,
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def spelled(source: TokenSource, ids: list[int]) -> bytes:
    tokens = [source.tokens[token_id] for token_id in ids]
    assert None not in tokens
    return b"".join(token for token in tokens if token is not None)


def assert_spells(case: Case, text: str) -> None:
    wanted = case.normalize(text).encode().translate(None, case.dropped)
    if case.prefix_space and text:
        wanted = b" " + wanted
    assert spelled(case.source, case.encode(text)) == wanted


class TestRealTokenizers:
    @pytest.mark.parametrize("text", TEXTS)
    def test_encoded_text_is_spelled(self, case: Case, text: str) -> None:
        assert_spells(case, text)

    # U+2581 is no text for SentencePiece: it becomes a space.
    @given(st.text(st.characters(exclude_characters="\u2581", codec="utf-8")))
    @settings(max_examples=200, deadline=None)
    def test_random_text_is_spelled(self, case: Case, text: str) -> None:
        assume("<|" not in text)  # hypothesis finds the texts of special tokens in our sources
        assert_spells(case, text)

    @given(st.binary(max_size=200))
    @settings(max_examples=50, deadline=None)
    def test_text_out_of_random_bytes_is_spelled(self, case: Case, data: bytes) -> None:
        assert_spells(case, data.decode("latin-1"))
        assert_spells(case, data.decode("utf-8", errors="replace").replace("\u2581", ""))

    def test_every_id_is_there(self, case: Case) -> None:
        assert len(case.source.tokens) == case.size

    def test_special_tokens_and_only_they_have_no_bytes(self, case: Case) -> None:
        assert {i for i, token in enumerate(case.source.tokens) if token is None} == case.special_ids

    def test_every_token_decodes_to_its_bytes(self, case: Case) -> None:
        ids = [i for i, token in enumerate(case.source.tokens) if token is not None]
        for token_id, decoded in zip(ids, case.decode_alone(ids), strict=True):
            token = case.source.tokens[token_id]
            assert token is not None
            assert decoded == (token if isinstance(decoded, bytes) else token.decode(errors="replace")), token_id

    def test_prefix_space(self, case: Case) -> None:
        assert case.source.prefix_space == case.prefix_space


class TestRealVocabularies:
    """What is known of each of them."""

    @staticmethod
    def missing_bytes(source: TokenSource) -> bytes:
        return bytes(byte for byte in range(256) if bytes([byte]) not in source.tokens)

    @staticmethod
    def shared(source: TokenSource) -> dict[bytes, int]:
        counts = Counter(token for token in source.tokens if token is not None)
        return {token: count for token, count in counts.items() if count > 1}

    def test_qwen_is_byte_complete_and_knows_its_ends(self) -> None:
        encoding = real.qwen_encoding()
        source = from_tiktoken(encoding)
        assert source.tokens[:151_643] == sorted(real.qwen_ranks(), key=real.qwen_ranks().__getitem__)
        assert self.missing_bytes(source) == b""
        assert source.stop_token_ids == (151_643,)
        assert from_tiktoken(encoding, stop_token_ids=[151_645, 151_643]).stop_token_ids == (151_645, 151_643)
        assert token_source(real.qwen_huggingface()) == dataclasses.replace(source, stop_token_ids=(151_645,))

    def test_qwen_json_is_the_same(self) -> None:
        text = real.qwen_huggingface().backend_tokenizer.to_str()
        assert from_tokenizer_json(text, stop_tokens=["<|im_end|>"]) == from_huggingface(real.qwen_huggingface())

    def test_smollm2_lacks_21_bytes(self) -> None:
        source = token_source(real.smollm2())
        assert self.missing_bytes(source) == SMOLLM2_LACKS
        assert len(SMOLLM2_LACKS) == 21
        assert source.stop_token_ids == (2,)

    def test_mistral_has_two_ids_for_125_bytes(self) -> None:
        processor = real.mistral_sentencepiece()
        source = from_sentencepiece(processor)
        assert self.missing_bytes(source) == b""
        assert source.stop_token_ids == (2,)
        assert source.tokens[processor.piece_to_id("s")] == source.tokens[processor.piece_to_id("<0x73>")] == b"s"
        shared = self.shared(source)
        assert len(shared) == 125
        assert set(shared.values()) == {2}
        assert all(processor.is_byte(source.tokens.index(token)) for token in shared)

    def test_neox_has_runs_of_spaces_twice(self) -> None:
        source = from_tokenizer_json(real.olmo_tokenizer_json(), stop_tokens=["<|endoftext|>"])
        assert self.shared(source) == {b" " * length: 2 for length in range(2, 25)}
        assert source.stop_token_ids == (50_279,)

    def test_tekken_ids_are_ranks_behind_the_special_tokens(self) -> None:
        source = from_mistral_common(real.mistral_tekken())
        assert source.tokens[1000:1256] == [bytes([byte]) for byte in range(256)]
        assert source.stop_token_ids == (2,)

    def test_mistral_tokenizers_are_the_same_by_every_way(self) -> None:
        for mistral, name in [
            (real.mistral_tekken(), "tekken_240911.json"),
            (real.mistral_v3(), "mistral_instruct_tokenizer_240323.model.v3"),
        ]:
            source = from_mistral_common(mistral)
            assert token_source(mistral.instruct_tokenizer.tokenizer) == source
            assert token_source(MistralCommonBackend(tokenizer_path=str(real.mistral_file(name)))) == source

    @pytest.mark.parametrize("load", [real.qwen_huggingface, real.smollm2])
    def test_xgrammar_agrees(self, load: Callable[[], PreTrainedTokenizerFast]) -> None:
        decoded = xgrammar.TokenizerInfo.from_huggingface(load()).decoded_vocab
        source = token_source(load())
        assert len(decoded) == len(source.tokens)
        assert all(token in (None, other) for token, other in zip(source.tokens, decoded, strict=True))


class TestPieces:
    @given(st.binary())
    def test_byte_level_pieces_are_the_bytes_that_the_library_writes(self, data: bytes) -> None:
        piece = "".join({byte: letter for letter, byte in BYTE_LEVEL_ALPHABET.items()}[byte] for byte in data)
        assert byte_level(piece) == data

    def test_the_alphabet_is_the_librarys(self) -> None:
        assert set(BYTE_LEVEL_ALPHABET) == set(pre_tokenizers.ByteLevel.alphabet())
        assert sorted(BYTE_LEVEL_ALPHABET.values()) == list(range(256))

    @given(st.text(st.characters(codec="utf-8"), min_size=1))
    def test_any_text_as_a_piece_decodes_as_in_the_library(self, piece: str) -> None:
        assert byte_level(piece).decode(errors="replace") == decoders.ByteLevel().decode([piece])
        assert byte_fallback(piece).decode(errors="replace") == decoders.ByteFallback().decode([piece])
        marked = decoders.Replace("\u2581", " ").decode([piece])
        assert space_marked(piece).decode() == marked

    @pytest.mark.parametrize(
        "piece", ["<0x00>", "<0xfF>", "<0x0g>", "<0X41>", "<0x041>", "<0x41> ", "<0x4>", "\u0120 "]
    )
    def test_near_misses_decode_as_in_the_library(self, piece: str) -> None:
        assert byte_fallback(piece).decode(errors="replace") == decoders.ByteFallback().decode([piece])
        assert byte_level(piece).decode(errors="replace") == decoders.ByteLevel().decode([piece])


@pytest.fixture(scope="module", params=SMALL)
def small(request: pytest.FixtureRequest) -> Tokenizer:
    return SMALL[request.param]()


class TestTokenizersLibrary:
    @given(text=st.text(st.characters(exclude_characters="\u2581", codec="utf-8"), min_size=1))
    @settings(deadline=None)
    def test_encoded_text_is_spelled(self, small: Tokenizer, text: str) -> None:
        source = token_source(small)
        data = spelled(source, small.encode(text, add_special_tokens=False).ids)
        # Some put no space before a text that starts with one.
        assert data in ({b" " + text.encode(), text.encode()} if source.prefix_space else {text.encode()})

    def test_prefix_space_is_what_the_tokenizer_does(self, small: Tokenizer) -> None:
        source = token_source(small)
        assert spelled(source, small.encode("a").ids) == (b" a" if source.prefix_space else b"a")

    def test_the_document_is_the_same(self, small: Tokenizer, tmp_path: Path) -> None:
        source = from_huggingface(small)
        text = small.to_str()
        path = tmp_path / "tokenizer.json"
        path.write_text(text, encoding="utf-8")
        assert from_tokenizer_json(text) == source
        assert from_tokenizer_json("\n " + text) == source
        assert from_tokenizer_json(json.loads(text)) == source
        assert from_tokenizer_json(path) == source
        assert from_tokenizer_json(str(path)) == source

    def test_unknown_tokens_have_no_bytes(self) -> None:
        assert token_source(byte_fallback_bpe()).tokens[0] is None
        assert token_source(byte_fallback_unigram()).tokens[0] is None

    def test_gaps_have_no_bytes(self) -> None:
        tokenizer = Tokenizer(models.BPE({"a": 0, "b": 3, "c": 9}, []))
        tokenizer.decoder = decoders.ByteLevel()
        wanted = [b"a", None, None, b"b", None, None, None, None, None, b"c"]
        assert token_source(tokenizer).tokens == wanted
        assert from_tokenizer_json(tokenizer.to_str()).tokens == wanted

    def test_tokens_of_no_bytes(self) -> None:
        document = json.loads(decoded_by(decoders.ByteLevel()).to_str())
        document["model"]["vocab"][""] = 2
        assert from_tokenizer_json(document).tokens == [b"a", b"b", None]

    def test_strip_of_the_whole_text_leaves_the_tokens_alone(self) -> None:
        tokenizer = byte_level_tokenizer(add_prefix_space=True)
        tokens = token_source(tokenizer).tokens
        tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
        assert tokenizer.decode(tokenizer.encode("a b").ids) == "a b"
        assert token_source(tokenizer).tokens == tokens

    def test_two_ids_of_one_piece_are_both_kept(self) -> None:
        tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0), ("a", -2.0)], 0, False))
        tokenizer.decoder = decoders.Metaspace()
        assert token_source(tokenizer).tokens == [None, b"a", b"a"]

    def test_long_tokens(self) -> None:
        pieces = {"a" * length: length - 1 for length in range(1, 3001)}
        merges = [("a" * length, "a") for length in range(1, 3000)]
        tokenizer = Tokenizer(models.BPE(pieces, merges))
        tokenizer.decoder = decoders.ByteLevel()
        assert token_source(tokenizer).tokens == [b"a" * length for length in range(1, 3001)]

    def test_added_tokens(self) -> None:
        tokenizer = byte_level_tokenizer()
        size = tokenizer.get_vocab_size()
        letter = tokenizer.token_to_id("\u00e9")
        tokenizer.add_tokens(
            ["two words", "caf\u00e9", "\u00e9", "\u0120", "<0x41>", AddedToken("<call>", normalized=False)]
        )
        tokenizer.add_special_tokens(["<pad>"])
        source = token_source(tokenizer)
        assert from_tokenizer_json(tokenizer.to_str()) == source
        added = {token.content: i for i, token in tokenizer.get_added_tokens_decoder().items()}
        for text in ("two words", "caf\u00e9", "<0x41>", "<call>"):
            assert added[text] >= size
            assert source.tokens[added[text]] == text.encode()
        # These two are pieces already, and stay the bytes that they were.
        assert added["\u00e9"] == letter
        assert source.tokens[letter] == b"\xe9"
        assert source.tokens[added["\u0120"]] == b" "
        assert source.tokens[added["<pad>"]] is None
        for text in ("so: two words, caf\u00e9", "<call>x</call><0x41>"):
            assert spelled(source, tokenizer.encode(text).ids) == text.encode()

    def test_added_pieces_of_spaces_are_spaces(self) -> None:
        """Gemma's runs of U+2581 are pieces of its model and added tokens at once."""
        tokenizer = byte_fallback_bpe()
        tokenizer.add_tokens([AddedToken("\u2581ab", normalized=False)])
        source = token_source(tokenizer)
        assert source.tokens[tokenizer.token_to_id("\u2581ab")] == b" ab"

    def test_added_token_hides_the_piece_whose_id_it_took(self) -> None:
        """The library numbers on from the number of pieces, and so may come upon an id beyond a gap."""
        tokenizer = Tokenizer(models.BPE({"a": 0, "b": 2}, []))
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_tokens(["longer"])
        assert tokenizer.decode([2]) == "longer"
        assert token_source(tokenizer).tokens == [b"a", None, b"longer"]

    def test_old_files_say_add_prefix_space(self) -> None:
        document = json.loads(byte_fallback_unigram().to_str())
        for flag in (True, False):
            document["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": flag}
            assert from_tokenizer_json(document).prefix_space == flag

    @given(st.lists(st.sampled_from([*byte_fallback_pieces(), "a", "ab", "\u2581", "\u2581ab", "h"]), max_size=12))
    @settings(deadline=None)
    def test_any_ids_decode_to_their_bytes(self, pieces: list[str]) -> None:
        tokenizer = byte_fallback_bpe()
        ids = [tokenizer.token_to_id("a"), *map(tokenizer.token_to_id, pieces)]
        data = spelled(token_source(tokenizer), ids)
        try:
            wanted = data.decode()
        except UnicodeDecodeError:
            # The library replaces broken sequences byte by byte and not as Python does.
            return
        assert tokenizer.decode(ids) == wanted


def decoded_by(decoder: Any, pieces: tuple[str, ...] = ("a", "b")) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE({piece: index for index, piece in enumerate(pieces)}, []))
    if decoder is not None:
        tokenizer.decoder = decoder
    return tokenizer


class Joining:
    """A decoder written in Python."""

    def decode_chain(self, tokens: list[str]) -> list[str]:
        return tokens


# What each reader says that it expects, and its kind of OTHER_KINDS.
READERS: dict[Callable[[Any], TokenSource], tuple[str, str]] = {
    from_tiktoken: ("a tiktoken.Encoding", "tiktoken"),
    from_sentencepiece: ("a sentencepiece.SentencePieceProcessor", "sentencepiece"),
    from_mistral_common: ("a tokenizer of mistral-common", "mistral-common"),
    from_huggingface: ("a Hugging Face tokenizer", "tokenizers"),
}

OTHER_KINDS: dict[str, Any] = {
    "tiktoken": real.qwen_encoding(),
    "sentencepiece": real.mistral_sentencepiece(),
    "mistral-common": real.mistral_v3(),
    "tokenizers": decoded_by(decoders.ByteLevel()),
}


class TestRefusals:
    @pytest.mark.parametrize(
        ("decoder", "named"),
        [
            (None, "without a decoder"),
            (decoders.WordPiece(), "WordPiece"),
            (decoders.BPEDecoder(), "BPEDecoder"),
            (decoders.CTC(), "CTC"),
            (decoders.Strip(" ", 1, 0), "Strip"),
            (decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 0, 1)]), "Strip"),
            (decoders.Sequence([decoders.Fuse(), decoders.Strip("a", 1, 0)]), "Strip"),
            (decoders.Sequence([decoders.Fuse(), decoders.Replace("ab", "c")]), "Replace after Fuse"),
            (decoders.Sequence([decoders.Fuse(), decoders.ByteLevel()]), "ByteLevel after Fuse"),
            (decoders.Sequence([decoders.Fuse(), decoders.Metaspace()]), "Metaspace after Fuse"),
            (decoders.Sequence([decoders.ByteFallback(), decoders.Replace("\u2581", " ")]), "Replace after"),
            (decoders.Sequence([decoders.ByteLevel(), decoders.ByteFallback()]), "ByteFallback after"),
            (decoders.Sequence([decoders.Sequence([decoders.CTC()])]), "CTC"),
        ],
    )
    def test_decoders_are_refused_by_name(self, decoder: Any, named: str) -> None:
        tokenizer = decoded_by(decoder)
        with pytest.raises(UnsupportedError, match=named):
            token_source(tokenizer)
        with pytest.raises(UnsupportedError, match=named):
            from_tokenizer_json(tokenizer.to_str())

    def test_decoder_of_a_pattern(self) -> None:
        document = json.loads(decoded_by(decoders.Replace("\u2581", " ")).to_str())
        document["decoder"]["pattern"] = {"Regex": "a+"}
        with pytest.raises(UnsupportedError, match="Regex"):
            from_tokenizer_json(document)

    @pytest.mark.parametrize("role", ["decoder", "normalizer", "pre_tokenizer"])
    def test_custom_components(self, role: str) -> None:
        tokenizer = decoded_by(decoders.ByteLevel())
        module = {"decoder": decoders.Decoder, "normalizer": normalizers.Normalizer}
        setattr(tokenizer, role, module.get(role, pre_tokenizers.PreTokenizer).custom(Joining()))
        with pytest.raises(UnsupportedError, match=f"custom {role}"):
            token_source(tokenizer)

    @pytest.mark.parametrize("mark", ["end_of_word_suffix", "continuing_subword_prefix"])
    def test_marks_within_pieces(self, mark: str) -> None:
        tokenizer = Tokenizer(models.BPE({"a": 0, "b##": 1}, [], **{mark: "##"}))
        tokenizer.decoder = decoders.ByteLevel()
        with pytest.raises(UnsupportedError, match=mark):
            token_source(tokenizer)

    def test_byte_pieces_that_the_decoder_takes_for_text(self) -> None:
        tokenizer = byte_fallback_bpe()
        tokenizer.decoder = decoders.Metaspace()
        with pytest.raises(UnsupportedError, match="falls back to bytes such as <0x"):
            token_source(tokenizer)

    def test_spaces_that_the_decoder_does_not_read_back(self) -> None:
        tokenizer = byte_level_tokenizer()
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        with pytest.raises(UnsupportedError, match="Metaspace"):
            token_source(tokenizer)
        tokenizer.normalizer = normalizers.Prepend("x")
        with pytest.raises(UnsupportedError, match="Prepend"):
            token_source(tokenizer)
        other = byte_fallback_bpe()
        other.pre_tokenizer = pre_tokenizers.ByteLevel()
        with pytest.raises(UnsupportedError, match="ByteLevel"):
            token_source(other)

    def test_a_vocabulary_without_bytes(self) -> None:
        tokenizer = decoded_by(decoders.ByteLevel())
        tokenizer.add_special_tokens(["a", "b"])
        with pytest.raises(VocabularyError, match="2 token ids"):
            token_source(tokenizer)
        with pytest.raises(VocabularyError, match="no tokens"):
            token_source(decoded_by(decoders.ByteLevel(), ()))

    def test_objects_that_are_no_tokenizers(self) -> None:
        for thing in (object(), None, 3, b"gpt2", {"a": 1}):
            kind = type(thing).__name__
            with pytest.raises(VocabularyError, match=f"^{kind} is not a tokenizer of a supported kind.*SentencePiece"):
                token_source(thing)

    @pytest.mark.parametrize("reader", [token_source, *READERS])
    def test_names_and_paths_are_no_tokenizers(self, reader: Callable[[Any], TokenSource]) -> None:
        for thing in ("gpt2", Path("models") / "gpt2"):
            with pytest.raises(VocabularyError, match=r"gpt2.* is a name or path, not a .*load.*Vocabulary.from_file"):
                reader(thing)

    @pytest.mark.parametrize("reader", READERS)
    def test_every_reader_names_what_it_was_given_and_what_it_expects(
        self, reader: Callable[[Any], TokenSource]
    ) -> None:
        expected, own_kind = READERS[reader]
        for thing in (None, 3, b"gpt2", {"a": 1}, object(), *OTHER_KINDS.values()):
            if thing is not OTHER_KINDS[own_kind]:
                with pytest.raises(VocabularyError, match=f"^{type(thing).__name__} is not {expected}"):
                    reader(thing)

    @pytest.mark.parametrize("reader", [token_source, *READERS])
    def test_classes_are_no_tokenizers(self, reader: Callable[[Any], TokenSource]) -> None:
        for kind in (tiktoken.Encoding, PreTrainedTokenizerFast, Tekkenizer, type(real.mistral_sentencepiece())):
            with pytest.raises(VocabularyError, match=f"the class {kind.__name__} is not a"):
                reader(kind)

    def test_slow_tokenizers_that_do_not_show_their_bytes(self) -> None:
        with pytest.raises(VocabularyError, match=r"ByT5Tokenizer.*backend_tokenizer, sp_model, byte_decoder"):
            token_source(ByT5Tokenizer())


class TestTokenizerJson:
    @staticmethod
    def document(**changes: Any) -> dict[str, Any]:
        tokenizer = decoded_by(decoders.ByteLevel(), ("a", "b", "<s>", "</s>", "<turn>"))
        tokenizer.add_special_tokens(["<s>", "</s>", "<turn>"])
        document: dict[str, Any] = json.loads(tokenizer.to_str())
        return document | changes

    def test_stop_tokens_by_text_and_by_id(self) -> None:
        assert from_tokenizer_json(self.document()).stop_token_ids == ()
        assert from_tokenizer_json(self.document(), ["</s>", 4, "</s>"]).stop_token_ids == (3, 4)
        assert from_tokenizer_json(self.document(), []).stop_token_ids == ()
        # A stop token never matches by its text, even if it is an ordinary token otherwise.
        assert from_tokenizer_json(self.document(), ["a"]).tokens == [None, b"b", None, None, None]

    @pytest.mark.parametrize("stop_token", ["</S>", 5, -1, 1.5])
    def test_unknown_stop_tokens_are_named(self, stop_token: Any) -> None:
        with pytest.raises(VocabularyError, match=str(stop_token)):
            from_tokenizer_json(self.document(), [stop_token])

    def test_one_text_is_no_list_of_stop_tokens(self) -> None:
        with pytest.raises(VocabularyError, match="several"):
            from_tokenizer_json(self.document(), "ab")

    def test_files_beside_it_name_the_stop_tokens(self, tmp_path: Path) -> None:
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(self.document()), encoding="utf-8")
        assert from_tokenizer_json(path).stop_token_ids == ()
        config = tmp_path / "tokenizer_config.json"
        config.write_text(json.dumps({"eos_token": {"content": "</s>"}, "bos_token": "<s>"}), encoding="utf-8")
        assert from_tokenizer_json(path).stop_token_ids == (3,)
        generation = tmp_path / "generation_config.json"
        generation.write_text(json.dumps({"eos_token_id": [4, 3]}), encoding="utf-8")
        assert from_tokenizer_json(path).stop_token_ids == (4, 3)
        generation.write_text(json.dumps({"eos_token_id": 4}), encoding="utf-8")
        config.write_text(json.dumps({"eos_token": None, "eot_token": "</s>"}), encoding="utf-8")
        assert from_tokenizer_json(path).stop_token_ids == (4, 3)
        assert from_tokenizer_json(path, ["<s>"]).stop_token_ids == (2,)
        generation.write_text("[", encoding="utf-8")
        with pytest.raises(VocabularyError, match=r"generation_config\.json"):
            from_tokenizer_json(path)

    def test_added_tokens_that_the_library_would_number_anew(self) -> None:
        document = self.document()
        entry = document["added_tokens"][0]
        document["added_tokens"].append(entry | {"content": "far", "id": 20, "special": False})
        loaded = Tokenizer.from_str(json.dumps(document))
        assert loaded.token_to_id("far") == 5
        with pytest.raises(VocabularyError, match=r"'far' has id 20 .* as 5"):
            from_tokenizer_json(document)
        # In the numbering of the library it is fine.
        assert from_tokenizer_json(loaded.to_str()).tokens[5] == b"far"

    def test_added_token_with_another_id_than_its_piece(self) -> None:
        document = self.document()
        document["added_tokens"][0]["id"] = 1
        with pytest.raises(VocabularyError, match=r"'<s>' has id 1 .* as 2"):
            from_tokenizer_json(document)

    @pytest.mark.parametrize(("vocab", "named"), [({"a": 0, "b": 0}, "'b'"), ({"a": -1}, "-1"), ({"a": 0.5}, "float")])
    def test_ids_that_are_none(self, vocab: dict[str, Any], named: str) -> None:
        document = self.document(model={"type": "BPE", "vocab": vocab}, added_tokens=[])
        with pytest.raises(VocabularyError, match=named):
            from_tokenizer_json(document)

    def test_a_lone_surrogate(self) -> None:
        document = self.document(model={"type": "BPE", "vocab": {"a": 0, "\ud800": 1}}, added_tokens=[])
        with pytest.raises(VocabularyError, match="ud800"):
            from_tokenizer_json(json.dumps(document))

    @pytest.mark.parametrize("text", ["{", "{}", '{"vocab": []}', '{"model": {}}', '{"model": {"vocab": {"a": 0}}}'])
    def test_texts_that_are_no_tokenizer(self, text: str) -> None:
        with pytest.raises(TrieautoError):
            from_tokenizer_json(text)

    def test_a_missing_entry_is_named(self) -> None:
        document = self.document()
        del document["added_tokens"][0]["special"]
        with pytest.raises(VocabularyError, match="special"):
            from_tokenizer_json(document)

    def test_files_that_are_no_tokenizer(self, tmp_path: Path) -> None:
        with pytest.raises(VocabularyError, match="nowhere"):
            from_tokenizer_json(tmp_path / "nowhere.json")
        with pytest.raises(VocabularyError, match="cannot read"):
            from_tokenizer_json(tmp_path)
        with pytest.raises(VocabularyError, match="cannot read"):
            from_tokenizer_json(real.mistral_file("tokenizer.model.v1"))
        with pytest.raises(VocabularyError, match="cannot read"):
            from_tokenizer_json("null \0 byte")
        (tmp_path / "list.json").write_text("[1]", encoding="utf-8")
        with pytest.raises(VocabularyError, match=r"list\.json"):
            from_tokenizer_json(tmp_path / "list.json")

    @pytest.mark.parametrize("thing", [None, 5, b"{}", ["model"], 1.5])
    def test_things_that_are_no_source(self, thing: Any) -> None:
        with pytest.raises(VocabularyError, match=f"path, its text or .* not {type(thing).__name__}"):
            from_tokenizer_json(thing)

    def test_a_document_without_a_model_is_described(self, tmp_path: Path) -> None:
        vocab = {f"piece{i}": i for i in range(10_000)}
        cases: list[tuple[dict[str, Any], str]] = [
            ({}, "it is an empty object"),
            ({"version": "1.0", "added_tokens": []}, "it has no model, but 'version', 'added_tokens'$"),
            (vocab, "'piece7' and 9,992 more$"),
        ]
        for document, described in cases:
            with pytest.raises(VocabularyError, match=f"^not a tokenizer.json: .*{described}"):
                from_tokenizer_json(document)
            path = tmp_path / "other.json"
            path.write_text(json.dumps(document), encoding="utf-8")
            with pytest.raises(VocabularyError, match=f"other.json is not a tokenizer.json: .*{described}"):
                from_tokenizer_json(path)

    def test_a_tekken_file_is_recognised(self) -> None:
        path = real.mistral_file("tekken_240911.json")
        wanted = "tekken_240911.json is not a .*tekken file.*MistralTokenizer.from_file.*Vocabulary.from_tokenizer"
        with pytest.raises(VocabularyError, match=wanted):
            from_tokenizer_json(path)

    @pytest.mark.parametrize(
        ("changes", "named"),
        [
            ({"model": 5}, "model must be an object, not 5"),
            ({"model": None}, "model must be an object, not None"),
            ({"model": ["vocab"]}, "model must be an object"),
            ({"model": {}}, "lacks the entry 'vocab'"),
            *(
                ({"model": {"vocab": vocab}}, named)
                for vocab, named in [
                    (5, "vocab of the model must be an object or a list, not 5"),
                    (None, "vocab of the model"),
                    ("text", "vocab of the model"),
                    ({}, "no tokens"),
                    ([], "no tokens"),
                    ({"a": None}, "NoneType"),
                    ({"a": [0]}, "list"),
                    ({"a": True}, "bool"),
                    ({"a": "0"}, "str"),
                    ({"a": 0.5}, "float"),
                    ({"a": -1}, "-1"),
                    ({"a": 2**40}, "1099511627776"),
                    ({"a": 2**24}, "16,777,216"),
                    ([5], "an item of vocab"),
                    ([[]], "an item of vocab"),
                    ([[5, 0.0]], "an item of vocab"),
                    (["ab"], "an item of vocab"),
                ]
            ),
            ({"model": {"vocab": [["a", 0.0]], "unk_id": 9}}, "unk_id of the model"),
            ({"model": {"vocab": [["a", 0.0]], "unk_id": -1}}, "unk_id of the model"),
            ({"model": {"vocab": [["a", 0.0]], "unk_id": [0]}}, "unk_id of the model"),
            ({"model": {"vocab": {"a": 0}, "unk_token": []}}, "unk_token of the model"),
            ({"added_tokens": None}, "added_tokens must be a list"),
            ({"added_tokens": {"<s>": 2}}, "added_tokens must be a list"),
            ({"added_tokens": [5]}, "an added token must be an object, not 5"),
            ({"added_tokens": [{}]}, "an added token lacks the entry 'content'"),
            ({"added_tokens": [{"content": [], "id": 5, "special": True}]}, "content of an added token"),
            ({"added_tokens": [{"content": "x", "id": "5", "special": True}]}, "id of added token 'x'"),
            ({"added_tokens": [{"content": "x", "id": True, "special": True}]}, "id of added token 'x'"),
            ({"added_tokens": [{"content": "x", "id": 2**40, "special": True}]}, "1099511627776"),
            ({"added_tokens": [{"content": "x", "id": 5, "special": None}]}, "special of added token 'x'"),
            *(
                ({role: component}, named)
                for role in ("decoder", "normalizer", "pre_tokenizer")
                for component, named in [
                    (5, f"a {role} must be an object, not 5"),
                    ([], f"a {role} must be an object"),
                    ("ByteLevel", f"a {role} must be an object"),
                    ({}, f"a {role} lacks the entry 'type'"),
                    ({"type": None}, f"type of a {role}"),
                    ({"type": "Sequence"}, f"a {role} Sequence lacks"),
                    ({"type": "Sequence", "decoders": "a", "normalizers": "a", "pretokenizers": "a"}, "must be a list"),
                    (
                        {"type": "Sequence", "decoders": [5], "normalizers": [5], "pretokenizers": [5]},
                        f"a {role} must be",
                    ),
                ]
            ),
            ({"decoder": {"type": "Replace", "pattern": 5, "content": " "}}, "pattern of decoder Replace"),
            ({"decoder": {"type": "Replace", "pattern": {"String": 5}, "content": " "}}, "String of pattern"),
            ({"decoder": {"type": "Replace", "pattern": {"String": "_"}, "content": None}}, "content of decoder"),
            ({"decoder": {"type": "Replace", "content": " "}}, "decoder Replace lacks the entry 'pattern'"),
            ({"decoder": {"type": "Metaspace"}}, "decoder Metaspace lacks the entry 'replacement'"),
            ({"decoder": {"type": "Metaspace", "replacement": ""}}, "replacement of decoder Metaspace"),
            ({"decoder": {"type": "Strip", "content": 5, "start": 0, "stop": 0}}, "content of decoder Strip"),
            ({"decoder": {"type": "Strip", "content": " ", "start": None, "stop": 0}}, "start of decoder Strip"),
            ({"normalizer": {"type": "Prepend", "prepend": 5}}, "prepend of normalizer Prepend"),
            ({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": 5}}, "add_prefix_space of pre-tokenizer"),
            ({"pre_tokenizer": {"type": "Metaspace", "replacement": "\u0120"}}, "lacks the entry 'add_prefix_space'"),
        ],
    )
    def test_documents_of_odd_shapes(self, tmp_path: Path, changes: dict[str, Any], named: str) -> None:
        document = self.document(**{"added_tokens": [], **changes})
        with pytest.raises(VocabularyError, match=f"^not a tokenizer.json: .*{named}"):
            from_tokenizer_json(document)
        path = tmp_path / "odd.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        with pytest.raises(VocabularyError, match=f"odd.json is not a tokenizer.json: .*{named}"):
            from_tokenizer_json(path)

    def test_pieces_that_are_no_text(self) -> None:
        with pytest.raises(VocabularyError, match=r"a piece in vocab must be a text, not 5"):
            from_tokenizer_json(self.document(model={"vocab": {5: 0}}))

    def test_deep_nesting_and_long_numbers(self) -> None:
        deep: dict[str, Any] = {"type": "ByteLevel"}
        for _ in range(sys.getrecursionlimit()):
            deep = {"type": "Sequence", "decoders": [deep]}
        with pytest.raises(VocabularyError, match=r"not a tokenizer.json: it is nested too deeply"):
            from_tokenizer_json(self.document(decoder=deep))
        for text in ('{"model": ' + "[" * 200_000, '{"model": ' + "9" * 5000 + "}"):
            with pytest.raises(VocabularyError, match="the text is no JSON"):
                from_tokenizer_json(text)

    def test_stop_tokens_of_odd_shapes(self, tmp_path: Path) -> None:
        with pytest.raises(VocabularyError, match="several tokens, not 5"):
            from_tokenizer_json(self.document(), 5)  # type: ignore[arg-type]
        with pytest.raises(VocabularyError, match="no integer"):
            from_tokenizer_json(self.document(), [["</s>"]])  # type: ignore[list-item]
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(self.document()), encoding="utf-8")
        odd: list[Any] = [5, [], {}, {"content": None}]
        for token in odd:
            (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": token}), encoding="utf-8")
            with pytest.raises(VocabularyError, match=r"tokenizer_config\.json: eos_token must be a text"):
                from_tokenizer_json(path)

    @given(data=st.data())
    @settings(max_examples=500, deadline=None)
    def test_mutated_documents_load_or_are_refused(self, data: st.DataObject) -> None:
        document = json.loads(data.draw(st.sampled_from(small_documents())))
        for _ in range(data.draw(st.integers(1, 3))):
            mutate(document, data)
        try:
            source = from_tokenizer_json(document)
        except TrieautoError:
            return
        assert any(source.tokens)


@cache
def small_documents() -> list[str]:
    byte_level = decoded_by(decoders.ByteLevel(), ("a", "b", "<s>"))
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    bpe = decoded_by(llama_decoder(), ("<unk>", "a", "\u2581"))
    bpe.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    unigram = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0), ("\u2581", -2.0)], 0, False))
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.decoder = decoders.Metaspace()
    for tokenizer in (byte_level, bpe, unigram):
        tokenizer.add_special_tokens(["</s>"])
        tokenizer.add_tokens(["added"])
    return [tokenizer.to_str() for tokenizer in (byte_level, bpe, unigram)]


# An id just below the limit would only cost time.
ODD_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.sampled_from([0.5, float("nan"), float("inf"), 2**24, 2**40, -(2**70), "ByteLevel", "Sequence", "Metaspace"])
    | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "a", "id"]), inner, max_size=2)
    ),
    max_leaves=3,
)


def mutate(document: dict[str, Any], data: st.DataObject) -> None:
    """Take out one entry, at any depth, or put something odd in its place."""
    here: Any = document
    while True:
        key = data.draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here)))) if here else None
        if key is None:
            return
        if isinstance(here[key], (dict, list)) and here[key] and data.draw(st.integers(0, 3)):
            here = here[key]
        elif data.draw(st.booleans()):
            here[key] = data.draw(ODD_VALUES)
            return
        else:
            del here[key]
            return


class GPT2Slow(PreTrainedTokenizer):
    """A slow tokenizer of single bytes in GPT-2's alphabet, as transformers' own were before version 5."""

    def __init__(self, spelling: dict[str, int] = BYTE_LEVEL_ALPHABET, prefix: str = "", **options: Any) -> None:
        self.encoder = {letter: byte for letter, byte in BYTE_LEVEL_ALPHABET.items() if byte != 0xFF}
        self.byte_decoder = spelling
        self.byte_encoder = {byte: letter for letter, byte in BYTE_LEVEL_ALPHABET.items()}
        self.prefix = prefix
        super().__init__(**options)

    @property
    def vocab_size(self) -> int:
        return 255

    def get_vocab(self) -> dict[str, int]:
        return self.encoder | self.added_tokens_encoder

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return [self.byte_encoder[byte] for byte in (self.prefix + text).encode()]

    def _convert_token_to_id(self, token: str) -> int:
        return self.encoder[token]

    def _convert_id_to_token(self, index: int) -> str:
        return self.byte_encoder[index]


class BytesSlow(GPT2Slow):
    """One that keeps its vocabulary as bytes, as tokenizers around tiktoken do."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        del self.byte_decoder

    def get_vocab(self) -> dict[Any, int]:
        return {bytes([byte]): byte for byte in self.encoder.values()} | self.added_tokens_encoder

    def _tokenize(self, text: str, **_: Any) -> list[Any]:
        return [bytes([byte]) for byte in text.encode()]


class TestHuggingFace:
    def test_stop_ids_are_those_that_the_tokenizer_names(self) -> None:
        backend = byte_level_tokenizer()
        backend.add_special_tokens(["<|im_end|>", "<end_of_turn>"])
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
        assert token_source(tokenizer).stop_token_ids == ()
        tokenizer.eos_token = "<eos>"
        assert token_source(tokenizer).stop_token_ids == (0,)
        end = backend.token_to_id("<|im_end|>")
        tokenizer.eot_token_id = end
        assert token_source(tokenizer).stop_token_ids == (0, end)
        tokenizer.eot_token_id = [end, 0, end + 1]
        assert token_source(tokenizer).stop_token_ids == (0, end, end + 1)

    def test_a_stop_token_without_an_id_of_the_tokenizer(self) -> None:
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level_tokenizer(), eos_token="<eos>")
        tokenizer.eot_token_id = len(tokenizer)
        with pytest.raises(VocabularyError, match=f"stop token id {len(tokenizer)}"):
            token_source(tokenizer)

    def test_an_ordinary_token_as_stop_token(self) -> None:
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level_tokenizer(), eos_token="a")
        source = token_source(tokenizer)
        assert source.stop_token_ids == (tokenizer.convert_tokens_to_ids("a"),)
        assert source.tokens[source.stop_token_ids[0]] is None

    @pytest.mark.parametrize("prefix", ["", " "])
    @pytest.mark.parametrize("kind", [GPT2Slow, BytesSlow])
    def test_slow(self, kind: type[GPT2Slow], prefix: str) -> None:
        tokenizer = GPT2Slow(prefix=prefix, eos_token="<eos>") if kind is GPT2Slow else BytesSlow(eos_token="<eos>")
        tokenizer.add_tokens(["caf\u00e9"])
        source = token_source(tokenizer)
        assert source.prefix_space == (prefix == " " and kind is GPT2Slow)
        assert source.tokens == [*(bytes([byte]) for byte in range(255)), None, "caf\u00e9".encode()]
        assert source.stop_token_ids == (255,)

    def test_added_token_that_is_a_piece_of_a_slow_tokenizer(self) -> None:
        tokenizer = GPT2Slow(eos_token="<eos>")
        tokenizer.add_tokens(["\u00e9"])
        assert tokenizer.added_tokens_decoder[0xE9].content == "\u00e9"
        assert token_source(tokenizer).tokens[0xE9] == b"\xe9"

    def test_slow_that_does_not_spell_what_it_tokenizes(self) -> None:
        swapped = BYTE_LEVEL_ALPHABET | {"a": ord("b"), "b": ord("a")}
        with pytest.raises(UnsupportedError, match="GPT2Slow tokenizes 'a a'"):
            token_source(GPT2Slow(spelling=swapped))

    def test_nothing_of_the_tokenizers_libraries_is_imported(self) -> None:
        libraries = {"transformers", "tokenizers", "tiktoken", "sentencepiece", "mistral_common", "torch"}
        program = f"import sys, trieauto.sources; print(sorted({libraries!r} & sys.modules.keys()))"
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert result.stdout.strip() == "[]"


class TestTiktoken:
    @staticmethod
    def encoding(**special: int) -> tiktoken.Encoding:
        ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"a" * 5000: 300}
        return tiktoken.Encoding("small", pat_str=r".+", mergeable_ranks=ranks, special_tokens=special)

    def test_gaps_special_tokens_and_long_tokens(self) -> None:
        source = from_tiktoken(self.encoding(end=310))
        assert len(source.tokens) == 311
        assert source.tokens[:257] == [*(bytes([byte]) for byte in range(256)), b"ab"]
        assert source.tokens[300] == b"a" * 5000
        assert {i for i, token in enumerate(source.tokens) if token} == {*range(257), 300}

    def test_stop_ids(self) -> None:
        assert from_tiktoken(self.encoding(end=310)).stop_token_ids == ()
        assert from_tiktoken(self.encoding(**{"<|endoftext|>": 310})).stop_token_ids == (310,)
        assert from_tiktoken(self.encoding(end=310), stop_token_ids=[310, 5]).tokens[5] is None
        for wrong in (311, -1, "end"):
            with pytest.raises(VocabularyError, match=str(wrong)):
                from_tiktoken(self.encoding(end=310), stop_token_ids=[wrong])  # type: ignore[list-item]
        with pytest.raises(VocabularyError, match="several ids, not 310"):
            from_tiktoken(self.encoding(end=310), stop_token_ids=310)  # type: ignore[arg-type]

    def test_an_id_beyond_every_vocabulary(self) -> None:
        with pytest.raises(VocabularyError, match="4000000000 is too large"):
            from_tiktoken(self.encoding(end=4_000_000_000))


def train_sentencepiece(directory: Path, **options: Any) -> sentencepiece.SentencePieceProcessor:
    corpus = directory / "corpus.txt"
    corpus.write_text(
        "the quick brown fox jumps over the lazy dog, \u00e9t\u00e9 \u4f60\u597d\n" * 50, encoding="utf-8"
    )
    defaults = {
        "model_type": "bpe",
        "vocab_size": 400,
        "hard_vocab_limit": False,
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "minloglevel": 2,
    }
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(directory / "model"), **{**defaults, **options}
    )
    return sentencepiece.SentencePieceProcessor(model_file=str(directory / "model.model"))


class TestSentencePiece:
    @pytest.mark.parametrize("model_type", ["bpe", "unigram"])
    @pytest.mark.parametrize("add_dummy_prefix", [True, False])
    def test_encoded_text_is_spelled(self, tmp_path: Path, model_type: str, add_dummy_prefix: bool) -> None:
        processor = train_sentencepiece(tmp_path, model_type=model_type, add_dummy_prefix=add_dummy_prefix)
        case = sentencepiece_case(from_sentencepiece(processor), processor, prefix_space=add_dummy_prefix)
        assert case.source.prefix_space == add_dummy_prefix
        for text in TEXTS:
            assert_spells(case, text)

    def test_kinds_of_pieces(self, tmp_path: Path) -> None:
        processor = train_sentencepiece(
            tmp_path, control_symbols=["<ctl>"], user_defined_symbols=["<call>", "\u2581\u2581", "<0x4>"], pad_id=3
        )
        source = from_sentencepiece(processor)
        for piece in ("<unk>", "<s>", "</s>", "<pad>", "<ctl>"):
            assert source.tokens[processor.piece_to_id(piece)] is None
        for piece, token in {"<call>": b"<call>", "\u2581\u2581": b"  ", "<0x4>": b"<0x4>", "<0x41>": b"A"}.items():
            assert source.tokens[processor.piece_to_id(piece)] == token
        assert source.stop_token_ids == (processor.eos_id(),)
        for text in ("do <call> it", "a  b", "<0x4>", "<0x41>"):
            assert spelled(source, processor.encode(text)) == b" " + text.encode()

    def test_unused_pieces_have_no_bytes(self, tmp_path: Path) -> None:
        model = train_sentencepiece(tmp_path).serialized_model_proto()
        size = sentencepiece.SentencePieceProcessor(model_proto=model).get_piece_size()
        # One more piece in the model's own format: the text (field 1) and the kind (field 3), which is UNUSED.
        piece = b"\x0a\x04word" + b"\x18\x05"
        processor = sentencepiece.SentencePieceProcessor(model_proto=model + b"\x0a" + bytes([len(piece)]) + piece)
        assert processor.is_unused(size)
        assert from_sentencepiece(processor).tokens[size:] == [None]

    def test_without_an_end(self, tmp_path: Path) -> None:
        assert from_sentencepiece(train_sentencepiece(tmp_path, eos_id=-1)).stop_token_ids == ()

    def test_space_at_the_end(self, tmp_path: Path) -> None:
        with pytest.raises(UnsupportedError, match="treat_whitespace_as_suffix"):
            from_sentencepiece(train_sentencepiece(tmp_path, treat_whitespace_as_suffix=True))

    def test_text_that_is_rewritten_when_decoding(self, tmp_path: Path) -> None:
        rules = tmp_path / "rules.tsv"
        rules.write_text("66\t46\n", encoding="utf-8")
        processor = train_sentencepiece(tmp_path, denormalization_rule_tsv=str(rules))
        assert processor.decode(processor.encode("fox")) == "Fox"
        with pytest.raises(UnsupportedError, match="denormalization"):
            from_sentencepiece(processor)


class TestMistralCommon:
    @staticmethod
    def tekken(vocab_size: int, ranks: int, special: int) -> Tekkenizer:
        tokens = [bytes([byte]) for byte in range(256)] + [b"a%d" % rank for rank in range(256, ranks)]
        vocab = [{"rank": rank, "token_bytes": encoded(token), "token_str": None} for rank, token in enumerate(tokens)]
        named = [{"rank": i, "token_str": name, "is_control": True} for i, name in enumerate(["<unk>", "<s>", "</s>"])]
        return Tekkenizer(
            vocab,  # type: ignore[arg-type]
            named,  # type: ignore[arg-type]
            pattern=r".+",
            vocab_size=vocab_size,
            num_special_tokens=special,
            version=TokenizerVersion.v3,
        )

    @pytest.mark.parametrize(("vocab_size", "ranks", "special"), [(270, 260, 10), (268, 300, 10), (260, 256, 4)])
    def test_vocabulary_is_cut_where_the_tokenizer_cuts_it(self, vocab_size: int, ranks: int, special: int) -> None:
        tekken = self.tekken(vocab_size, ranks, special)
        source = from_mistral_common(tekken)
        assert len(source.tokens) == tekken.n_words == vocab_size
        assert source.tokens[:special] == [None] * special
        assert source.tokens[special:] == [tekken.id_to_byte_piece(i) for i in range(special, vocab_size)]
        assert source.stop_token_ids == (2,)


def encoded(token: bytes) -> str:
    return base64.b64encode(token).decode()


def test_a_source_cannot_be_changed_by_assignment() -> None:
    source = TokenSource([b"a"], (), False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        source.prefix_space = True  # type: ignore[misc]
