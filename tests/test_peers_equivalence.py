"""Law 8 against other engines: on the content tokens, our masks are XGrammar's and LLGuidance's along random walks.

Sets of real strings, in many scripts; vocabularies with all single bytes, of three kinds. Special tokens are left out
of the masks; whether the answer may end is asked of each engine by its own means.
"""

from __future__ import annotations

import json
import random
import zoneinfo
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Protocol

import llguidance
import llguidance.hf
import numpy as np
import numpy.typing as npt
import pytest
import xgrammar

import trieauto
from trieauto.demo_sets import icd10_cm_codes, tool_names

from . import tokenizers_for_tests as real

NUM_WALKS = 40

COUNTRIES = """
    Afghanistan|افغانستان|Albania|Shqipëria|Algeria|الجزائر|ⵍⵣⵣⴰⵢⴻⵔ|Armenia|Հայաստան|Azərbaycan|Bangladesh|বাংলাদেশ|Belarus
    Беларусь|Bhutan|འབྲུག་ཡུལ|Bosna i Hercegovina|Босна и Херцеговина|България|ကမ္ဘောဇ|កម្ពុជា|Cameroun|Cameroon|中国|中國
    中华人民共和国|Côte d'Ivoire|Κύπρος|Česko|Česká republika|Danmark|مصر|ኤርትራ|ኢትዮጵያ|Ethiopia|Ελλάδα|საქართველო|Guinea
    Guinea-Bissau|Equatorial Guinea|भारत|இந்தியா|ഇന്ത്യ|India|Ísland|Éire|ישראל|日本|日本国|Қазақстан|대한민국
    조선민주주의인민공화국|ປະເທດລາວ|ދިވެހިރާއްޖެ|Монгол Улс|ᠮᠣᠩᠭᠣᠯ|မြန်မာ|नेपाल|Niger|Nigeria|پاکستان|Россия
    Российская Федерация|São Tomé e Príncipe|ශ්‍රී ලංකාව|Suid-Afrika|ประเทศไทย|Тоҷикистон|Türkiye|Україна|United States
    United States of America|Việt Nam|اليمن
"""


def countries() -> list[str]:
    return [name for line in COUNTRIES.split("\n") for name in line.strip().split("|") if name]


def emoji() -> list[str]:
    """Sequences with tones, joiners, variation selectors, flags and keycaps; many are prefixes of others."""
    tones = ["", *map(chr, range(0x1F3FB, 0x1F400))]
    people = ["".join(parts) for parts in product("👍👋🧑👩👨", tones)]
    at_work = [
        f"{person}{tone}\u200d{tool}" for person, tone, tool in product("🧑👩👨", tones, ["💻", "🚀", "⚕️", "⚖️", "🦽"])
    ]
    families = ["👪", "👨‍👩‍👧", "👨‍👩‍👧‍👦", "👩‍👩‍👦‍👦", "👩‍❤️‍👨", "👩‍❤️‍💋‍👨", "🏳️", "🏳️‍🌈", "🏳️‍⚧️", "🏴", "🏴‍☠️"]
    flags = [
        "".join(chr(0x1F1E6 + ord(letter) - ord("A")) for letter in code)
        for code in ("UN", "US", "UA", "EU", "JP", "JE")
    ]
    keycaps = [f"{key}{end}" for key in "0123456789#*" for end in ("", "\ufe0f\u20e3")]
    return [*people, *at_work, *families, *flags, *keycaps, "☃", "☃️", "❤", "❤️", "❤️‍🔥", "♾️"]


def time_zones() -> list[str]:
    names = sorted(zoneinfo.available_timezones())
    assert len(names) > 400, "no time zone database: install tzdata"
    return names


SETS: dict[str, Callable[[], list[str]]] = {
    "tool names": lambda: tool_names(1_000),
    "ICD-10-CM codes": icd10_cm_codes,
    "every 20th ICD-10-CM code": lambda: icd10_cm_codes()[::20],
    "time zones": time_zones,
    "countries": countries,
    "emoji": emoji,
}


@dataclass(frozen=True)
class Tokenizer:
    """One tokenizer as the three engines know it; ``content`` marks the ids that have bytes: int32[words]."""

    vocabulary: trieauto.Vocabulary
    xgrammar: xgrammar.TokenizerInfo
    llguidance: llguidance.LLTokenizer
    content: npt.NDArray[np.int32]


@cache
def tokenizer(name: str) -> Tokenizer:
    if name == "qwen":  # each engine reads the Hugging Face tokenizer in its own way
        hugging_face = real.qwen_huggingface()
        vocabulary = trieauto.Vocabulary.from_tokenizer(hugging_face)
        info = xgrammar.TokenizerInfo.from_huggingface(hugging_face, vocab_size=vocabulary.size)
        lltokenizer = llguidance.hf.from_tokenizer(hugging_face)
    else:  # the peers read no such tokenizers: they are given our bytes
        load: dict[str, Callable[[], Any]] = {"tekken": real.mistral_tekken, "mistral": real.mistral_sentencepiece}
        vocabulary = trieauto.Vocabulary.from_tokenizer(load[name]())
        (stop_token_id,) = vocabulary.stop_token_ids
        info = xgrammar.TokenizerInfo(
            [token or b"" for token in vocabulary.tokens], vocab_size=vocabulary.size, stop_token_ids=[stop_token_id]
        )
        lltokenizer = llguidance.LLTokenizer(BytesTokenizer(vocabulary.tokens, stop_token_id))  # type: ignore[arg-type]
    bits = np.zeros(-vocabulary.size % 32 + vocabulary.size, np.uint8)
    bits[[i for i, token in enumerate(vocabulary.tokens) if token]] = 1
    assert vocabulary.is_byte_complete
    return Tokenizer(vocabulary, info, lltokenizer, np.packbits(bits, bitorder="little").view(np.int32))


class BytesTokenizer:
    """LLGuidance's view of a tokenizer: bytes for each id (0xFF marks special ones), and an encoder, here by bytes."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, tokens: list[bytes | None], eos_token_id: int) -> None:
        self.eos_token_id = eos_token_id
        self.special_token_ids = [i for i, token in enumerate(tokens) if token is None]
        self.tokens = [b"\xff<%d>" % i if token is None else token for i, token in enumerate(tokens)]

    def __call__(self, text: str) -> list[int]:
        return [self.tokens.index(bytes([byte])) for byte in text.encode()]


class Peer(Protocol):
    """What the test asks of an engine."""

    def __init__(self, values: Iterable[str], tokenizer: Tokenizer) -> None: ...
    def fill(self, row: npt.NDArray[np.int32]) -> None: ...
    def accept(self, token_id: int) -> bool: ...
    def may_stop(self, stop_token_id: int) -> bool: ...
    def reset(self) -> None: ...


class XGrammarPeer:
    def __init__(self, values: Iterable[str], tokenizer: Tokenizer) -> None:
        compiler = xgrammar.GrammarCompiler(tokenizer.xgrammar)
        self._matcher = xgrammar.GrammarMatcher(compiler.compile_grammar(f"root ::= {alternatives(values)}"))

    def fill(self, row: npt.NDArray[np.int32]) -> None:
        self._matcher.fill_next_token_bitmask(row[None])

    def accept(self, token_id: int) -> bool:
        return self._matcher.accept_token(token_id)

    def may_stop(self, stop_token_id: int) -> bool:
        return self._matcher.fork().accept_token(stop_token_id)

    def reset(self) -> None:
        self._matcher.reset()


class LLGuidancePeer:
    def __init__(self, values: Iterable[str], tokenizer: Tokenizer) -> None:
        # By default it allows only the tokenizer's own next token where the text is determined.
        grammar = f'%llguidance {{"no_forcing": true}}\nstart: VALUE\nVALUE: {alternatives(values)}'
        self._matcher = llguidance.LLMatcher(tokenizer.llguidance, llguidance.LLMatcher.grammar_from_lark(grammar))
        assert not self._matcher.is_error(), self._matcher.get_error()

    def fill(self, row: npt.NDArray[np.int32]) -> None:
        self._matcher.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)

    def accept(self, token_id: int) -> bool:
        return self._matcher.consume_token(token_id)

    def may_stop(self, stop_token_id: int) -> bool:
        return self._matcher.deep_copy().consume_token(stop_token_id)

    def reset(self) -> None:
        self._matcher.reset()


PEERS: dict[str, type[Peer]] = {"XGrammar": XGrammarPeer, "LLGuidance": LLGuidancePeer}
CASES = [
    (peer, set_name)
    for peer, set_name in product(PEERS, SETS)
    # XGrammar takes a quarter of a minute for all of the codes, LLGuidance half a second.
    if set_name != ("ICD-10-CM codes" if peer == "XGrammar" else "every 20th ICD-10-CM code")
]


def alternatives(values: Iterable[str]) -> str:
    return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)


@pytest.mark.parametrize(("peer_name", "set_name"), CASES)
@pytest.mark.parametrize("tokenizer_name", ["qwen", "tekken", "mistral"])
def test_masks_and_ends_are_the_peers(tokenizer_name: str, peer_name: str, set_name: str) -> None:
    known = tokenizer(tokenizer_name)
    values = SETS[set_name]()
    ours = trieauto.compile(trieauto.choices(values), known.vocabulary, prefix_space="none").matcher()
    peer = PEERS[peer_name](values, known)
    our_row, peer_row = np.zeros((2, len(known.content)), np.int32)
    rng = random.Random(f"{tokenizer_name} {set_name}")
    stop_token_id = known.vocabulary.stop_token_ids[0]
    for _ in range(NUM_WALKS):
        ours.reset()
        peer.reset()
        written = b""
        while True:
            ours.fill_next_token_bitmask(our_row)
            peer.fill(peer_row)
            allowed = [token_id for token_id in ours.allowed_token_ids().tolist() if known.vocabulary.tokens[token_id]]
            np.testing.assert_array_equal(our_row & known.content, peer_row & known.content, err_msg=repr(written))
            may_stop = ours.fork().accept_token(stop_token_id)
            assert may_stop == peer.may_stop(stop_token_id) == (written.decode(errors="replace") in values), written
            if not allowed or (may_stop and rng.random() < 0.3):
                break
            token_id = rng.choice(allowed)
            written += known.vocabulary.tokens[token_id] or b""
            assert ours.accept_token(token_id)
            assert peer.accept(token_id)
