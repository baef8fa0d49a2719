"""Canonical tokens of languages with any number of strings: a byte-pair tokenizer is followed instead of asked.

The oracle is the tokenizer's own library: for a language of few strings it says all of their sequences, and masks and
budgets must be those of the trie of these; for others every sequence must be what it writes for its own text.
"""

from __future__ import annotations

import pickle
import random
import re
import threading
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
import tiktoken
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

import trieauto
from trieauto import Constraint, Vocabulary
from trieauto.canonical.constraint import CanonicalConstraint
from trieauto.canonical.examples import ENDLESS
from trieauto.canonical.model import byte_pair_model
from trieauto.canonical.search import Search
from trieauto.errors import EmptyConstraintError, UnsupportedError
from trieauto.reference.byte_pairs import merged
from trieauto.reference.token_trie import TokenTrie

from . import test_canonical as sets
from . import tokenizers_for_tests as real
from .byte_level_tokenizers import BYTE_LEVEL, load_byte_level, split_by, splitting
from .test_canonical import Known, sequences_of

REAL = ("qwen", "qwen-tiktoken", "smollm2", "mistral-tekken", "cl100k-tiktoken")
CL100K = (  # as tiktoken has it
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)


@cache
def load(name: str) -> Known:
    if name in BYTE_LEVEL:
        return sets.of_library(load_byte_level(name))
    if name == "cl100k-tiktoken":
        ranks = {token: rank for token, rank in real.qwen_ranks().items() if rank < 20_000}
        return sets.of_tiktoken(
            tiktoken.Encoding(name, pat_str=CL100K, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 20_000})
        )
    return sets.load(name)


def followed(strings: Iterable[str], known: Known, context: str | None = None) -> CanonicalConstraint:
    """The language of these strings, followed though there are few."""
    automaton = trieauto.choices(list(strings)) + trieauto.literal("")
    return CanonicalConstraint(automaton, known.vocabulary, context)


def check_all_masks(constraint: Constraint, expected: Iterable[Sequence[int]], most: int = 400) -> None:
    """Every mask on every way, and every budget, is that of the trie of these sequences."""
    expected = list(map(tuple, expected))
    reference = TokenTrie(expected)
    stop_ids = list(constraint.vocabulary.stop_token_ids)
    pending: list[tuple[int, ...]] = [()]
    seen = 0
    generator = random.Random(3)
    while pending and seen < most:
        ids = pending.pop(generator.randrange(len(pending)))
        seen += 1
        matcher = constraint.matcher()
        assert matcher.accept_tokens(ids)
        stops = stop_ids if reference.is_end(ids) else []
        following = reference.allowed_token_ids(ids)
        assert matcher.allowed_token_ids().tolist() == sorted([*following, *stops])
        rest = [len(row) - len(ids) for row in expected if row[: len(ids)] == ids]
        assert matcher.min_tokens_to_finish == min(rest)
        assert matcher.is_accepting == bool(stops)
        for budget in range(min(rest), min(min(rest) + 3, max(rest)) + 1):
            matcher.set_budget(budget)
            within = TokenTrie([row for row in expected if row[: len(ids)] == ids and len(row) - len(ids) <= budget])
            legal = sorted([*within.allowed_token_ids(ids), *stops]) if budget else stops
            assert matcher.allowed_token_ids().tolist() == legal
            assert (
                matcher.is_limited_by_budget == (len(legal) < len(following) + len(stops) and budget > 0) or not budget
            )
        pending += [(*ids, token_id) for token_id in following]


# Few strings, against what the library writes

texts = st.text(st.sampled_from("aab x1 2'st\n\r\tlé😀<|>endcA\u0301.,ß中 "), max_size=9)
words = st.lists(
    st.sampled_from(
        ["ab", "a", " ", "  ", "'s", "'ll", "\n", "1", "22", "x", "xab", "xy", "é", "<|end|>", "<call>", "B"]
    ),
    max_size=5,
).map("".join)


@given(
    strings=st.lists(texts | words, min_size=1, max_size=7, unique=True),
    name=st.sampled_from([*BYTE_LEVEL]),
    context=st.none() | texts | words,
)
@example(["%$'salt'", "'sat", "'salt"], "gpt2", None)
@example(["  a", "   ", " \n a", "\n \n "], "qwen-pattern", "a ")
@example(["xy x", "xyx", "bx<call>", "ab<|end|>"], "added", "x")
@example(["xab", " xab", "xabx", "''a", "''"], "whole", None)
@example(["abab", "aabab", "\n\n", "a\n\n\n", " 1"], "unsplit", "x")
@example(["  a", "a  12", "  \n  a", "aa", "aab", "baa"], "possessive-looks", None)
@settings(max_examples=400, deadline=None)
def test_few_strings(strings: list[str], name: str, context: str | None) -> None:
    known = load(name)
    if name == "nfc":
        strings = [string for string in strings if string.isascii()] or ["a"]
    if context and name == "lacking-bytes" and b"\xad" in context.encode():
        with pytest.raises(UnsupportedError, match=r"the left context .* could not be followed"):
            followed(strings, known, context)
        return
    expected = sequences_of(known, strings, context)
    if not expected:
        with pytest.raises(EmptyConstraintError, match="the tokenizer itself never writes"):
            followed(strings, known, context)
        return
    check_all_masks(followed(strings, known, context), expected, 40)


@pytest.mark.parametrize("name", REAL)
def test_few_strings_of_real_tokenizers(name: str) -> None:
    known = load(name)
    strings = [value for value in sets.ODD if isinstance(value, str)] + sets.TOOLS
    check_all_masks(followed(strings, known), sequences_of(known, strings))
    strings = [string for string in strings if "<|im" not in string]  # the oracle takes it for special behind a context
    for context in sets.CONTEXTS:
        expected = sequences_of(known, strings, context)
        if expected:
            check_all_masks(followed(strings, known, context), expected, 30)


# Any number of strings

LANGUAGES = [
    r"\d+",
    r"[a-z ]+",
    r'"[^"\\]*"',
    r"(ab|a)*c",
    r"-?\d+(\.\d+)?( [a-z']+)*",
    r"\s+x",
    r"[^\n]{0,12}\n",
    r"(['$%]|sal|t)*",
    r"( |\n|a)*",
]


@pytest.mark.parametrize("name", [*REAL, *BYTE_LEVEL])
def test_every_sequence_is_what_the_tokenizer_writes(name: str) -> None:
    """Walks by masks end, whatever is chosen, in what the tokenizer writes for the text; with budgets, in time."""
    known = load(name)
    generator = random.Random(name)
    stop_ids = set(known.vocabulary.stop_token_ids)
    for pattern in LANGUAGES if name in REAL else LANGUAGES[::2]:
        if name == "nfc":
            pattern = pattern.replace("[^", "[^\x80-\U0010ffff")
        constraint = trieauto.compile(trieauto.regex(pattern, re.ASCII), known.vocabulary, tokenization="canonical")
        fewest = constraint.min_tokens
        for walk in range(8):
            budget = fewest + generator.randrange(5) if walk % 2 else None
            matcher = constraint.matcher(max_tokens=budget)
            ids: list[int] = []
            while not matcher.is_complete:
                legal = matcher.allowed_token_ids().tolist()
                assert legal
                content = [token_id for token_id in legal if token_id not in stop_ids]
                assert (len(content) < len(legal)) == matcher.is_accepting
                if len(content) < len(legal) and generator.random() < 0.2:
                    break
                if matcher.remaining_tokens is None and len(ids) > 12:
                    matcher.set_budget(matcher.min_tokens_to_finish)
                    continue
                tried = generator.sample(range(known.vocabulary.size), 20) + generator.sample(content[-200:], 1)
                assert [matcher.validate_tokens([token_id]) for token_id in tried] == np.isin(tried, legal).tolist()
                ids.append(generator.choice(content))
                assert matcher.accept_token(ids[-1])
            assert matcher.is_accepting
            assert budget is None or len(ids) <= budget
            spelled = known.spelled(ids)
            assert spelled is not None
            assert constraint.automaton.accepts(spelled)
            assert list(known.encode(spelled.decode())) == ids


@pytest.mark.parametrize("name", [*REAL, *BYTE_LEVEL])
def test_nothing_that_the_tokenizer_writes_is_lost(name: str) -> None:
    known = load(name)
    texts = [text for text in sets.ODD if isinstance(text, str)] + [
        "The quick brown fox, aged 12, isn't slow:\n\n  it   jumps.\r\n\tAnd 'sat'!  ",
        "naïve 中文 text — with “quotes”, 3.14159e-10 and 😀👍🏽",
        "AbC DEF's xY1a  <b>c</b>\n\n\n",
        " \n \n  x",
    ]
    constraint = trieauto.compile(
        trieauto.regex("[^\x80-\U0010ffff]*" if name == "nfc" else "[^☃]*"), known.vocabulary, tokenization="canonical"
    )
    written = 0
    for text in texts:
        ids = list(known.encode(text))
        matcher = constraint.matcher()
        if known.spelled(ids) == text.encode() and (name != "nfc" or text.isascii()):
            assert matcher.accept_tokens(ids), text
            assert matcher.is_accepting
            written += 1
            matcher = constraint.matcher(max_tokens=len(ids))
            assert matcher.accept_tokens(ids)
            assert matcher.is_complete
        elif known.spelled(ids) is not None:
            assert not matcher.accept_tokens(ids)
    assert written > len(texts) // 2


def test_pairs_across_pre_tokens_are_not_enough() -> None:
    r"""``'`` + ``sat`` is what GPT-2's pattern makes of ``%$'sat``, for ``'`` ends a pre-token, and not of ``'sat``."""
    known = load("qwen")
    constraint = trieauto.compile(
        trieauto.regex(r"([%$]+)?'?sa(l?)t'?(x|y)*"), known.vocabulary, tokenization="canonical"
    )
    for text in ("'sat", "%$'salt'", "sat", "$'sat'xyx"):
        assert constraint.matcher().accept_tokens(known.encode(text))


# How many tokens are enough, with examples and without


class NoExamples:
    """With it a search has to find everything by itself."""

    def enough(self, nodes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        return np.full(len(nodes), ENDLESS, np.int32)


@pytest.mark.parametrize("name", [*REAL, *BYTE_LEVEL])
def test_examples_are_enough_and_not_needed(name: str) -> None:
    known = load(name)
    num_found = num_nodes = 0
    for pattern in (r'\{"a":"[a-z 1\n]{0,6}","b":\d+\}', r"\s+x", r"(['$%]|sal|t)*c", r"( |\n|a)* b"):
        automaton = trieauto.regex(pattern, re.ASCII)
        constraint = CanonicalConstraint(automaton, known.vocabulary, None)
        language, search = constraint._language, constraint._search
        alone = Search(language, constraint._model, NoExamples())  # type: ignore[arg-type]
        nodes = np.unique(language.cuts[language.cuts >= 0])
        enough = search._examples.enough(nodes)
        num_found += int((enough < ENDLESS).sum())
        num_nodes += len(nodes)
        assert (enough >= language.least[nodes]).all()
        pairs = list(zip(nodes.tolist(), enough.tolist(), strict=True))
        for node, number in random.Random(name).sample(pairs, min(6, len(pairs))):
            fewest = alone.fewest(node, -1)
            assert search.fewest(node, -1) == fewest <= number
            assert fewest <= search.enough(node, -1)
            # And after tokens that lead to where the pre-token goes on.
            following = language.going_on(node)
            for at in np.flatnonzero(~language.is_easy(following.ends))[:3].tolist():
                after, token = int(following.ends[at]), int(following.tokens[at])
                assert search.can_end(after, token) == alone.can_end(after, token)
                if search.can_end(after, token):
                    assert search.fewest(after, token) == alone.fewest(after, token) <= search.enough(after, token)
    assert num_found > num_nodes / 3  # these languages abound with places that restrict what a pre-token may be


# Masks of wide places, shared and not


class Listed(CanonicalConstraint):
    """Every mask from lists of tokens and where they lead."""

    def _node_mask(self, node: int) -> None:
        return None


@pytest.mark.parametrize("name", ["qwen", "smollm2", "mistral-tekken"])
@pytest.mark.parametrize("pattern", [r'"[^"\\\x00-\x1f]{0,60}"( [0-9]{2})?', r"(?s:.){30,50}", r"[a-zé😀 ]{3,40}x"])
def test_places_that_are_alike_share_masks(name: str, pattern: str) -> None:
    known = load(name)
    automaton = trieauto.regex(pattern)
    shared, listed = (kind(automaton, known.vocabulary, None) for kind in (CanonicalConstraint, Listed))
    generator = random.Random(name + pattern)
    stop_ids = known.vocabulary.stop_token_ids
    matchers = shared.matcher(), listed.matcher()
    for _ in range(14):
        fewest = matchers[0].min_tokens_to_finish
        enough = shared._always_enough
        for budget in (fewest, fewest + 1, fewest + 7, enough - 1, enough + 1, enough + 5, None):
            if budget is None or budget >= fewest:
                for matcher in matchers:
                    matcher.set_budget(budget)
                legal, expected = (matcher.allowed_token_ids() for matcher in matchers)
                assert np.array_equal(legal, expected), (pattern, budget)
        content = np.setdiff1d(legal, stop_ids)
        if len(content) == 0:
            break
        short = [token_id for token_id in content.tolist() if len(known.vocabulary.tokens[token_id] or b"") < 4]
        token_id = generator.choice(short or content.tolist())
        for matcher in matchers:
            assert matcher.accept_token(token_id)


# The rule of pairs, against merging


@pytest.mark.parametrize("name", ["qwen", "smollm2", "mistral-tekken", "neox", "gpt2", "whole"])
def test_the_rule_of_pairs(name: str) -> None:
    known = load(name)
    assert known.vocabulary.encoder is not None
    rules = known.vocabulary.encoder.rules()
    model = byte_pair_model(known.vocabulary, known.vocabulary.encoder)
    columns = (rules.lefts, rules.rights, rules.ranks, rules.results)
    merges = {
        (left, right): (rank, result) for left, right, rank, result in zip(*(c.tolist() for c in columns), strict=True)
    }
    spelled = {token_id: token for token, token_id in rules.pieces.items()}
    singles = [rules.pieces.get(bytes([byte]), -1) for byte in range(256)]
    written = np.flatnonzero(model.is_written)
    generator = random.Random(name)
    for token_id, token in generator.sample(sorted(spelled.items()), 300):
        symbols = [singles[byte] for byte in token]
        assert bool(model.is_written[token_id]) == (merged(symbols, merges) == [token_id])
    joined = 0
    for left in generator.sample(written.tolist(), 60):
        row = model.apart_from(left)
        # Those that may not follow are few, so look at them, too.
        rights = generator.sample(written.tolist(), 40) + generator.choices(
            np.flatnonzero(row).tolist() or [left], k=40
        )
        for right in rights:
            symbols = [singles[byte] for byte in spelled[left] + spelled[right]]
            is_apart = merged(symbols, merges) != [left, right]
            assert bool(row[right]) == is_apart
            asked = np.array([right], np.int32), np.ones(1, np.uint8)
            assert model.first_beside(left, *asked) == (-1 if is_apart else 0)
            joined += is_apart
    assert joined > 100


def test_merges_out_of_order_are_refused() -> None:
    """``ab`` comes before ``b`` and ``c`` become one, and with it ``abc`` would never be what its rank says."""
    vocab = {piece: index for index, piece in enumerate(["<eos>", "a", "b", "c", "d", "bc", "abc", "bcd"])}
    tokenizer = Tokenizer(models.BPE(vocab, [("a", "bc"), ("b", "c"), ("bc", "d")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, stop_token_ids=[0])
    with pytest.raises(UnsupportedError, match="comes before those that make these"):
        trieauto.compile(trieauto.regex("a*"), vocabulary, tokenization="canonical")


# Matchers


def test_matchers_of_followed_languages() -> None:
    known = load("qwen")
    constraint = trieauto.compile(
        trieauto.regex(r'"[a-z ]*"'), known.vocabulary, tokenization="canonical", left_context="x:\n"
    )
    assert constraint.tokenization == "canonical"
    assert constraint.left_context == "x:\n"
    ids = list(known.encode('x:\n"the quick fox"'))[len(known.encode("x:\n")) :]
    matcher = constraint.matcher(max_tokens=20)
    masks = []
    for token_id in ids:
        masks.append(matcher.allowed_token_ids().tolist())
        assert matcher.accept_token(token_id)
    assert matcher.is_complete
    copied = pickle.loads(pickle.dumps(matcher))
    assert copied.is_complete
    assert copied.remaining_tokens == 20 - len(ids)
    matcher.rollback(len(ids))
    assert matcher.remaining_tokens == 20
    for token_id, mask in zip(ids, masks, strict=True):
        fork = matcher.fork()
        assert fork.allowed_token_ids().tolist() == mask
        refused = next(other for other in range(1000) if other not in mask)
        assert not fork.accept_token(refused)
        assert matcher.accept_token(token_id)
    assert matcher.value is None
    assert matcher.jump_forward_string() == b""
    assert constraint.stats()["tokenization"] == "canonical"
    bitmask = trieauto.allocate_token_bitmask(2, constraint.vocabulary.size)
    others = [constraint.matcher(), trieauto.compile(trieauto.choices(["a"]), known.vocabulary).matcher()]
    trieauto.fill_next_token_bitmasks(others, bitmask)
    for row, other in zip(np.asarray(bitmask), others, strict=True):
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")
        assert np.flatnonzero(bits).tolist() == other.allowed_token_ids().tolist()


def test_threads_share_one_constraint() -> None:
    known = load("smollm2")
    constraint = trieauto.compile(trieauto.regex(r'"[^"\\]{0,24}"'), known.vocabulary, tokenization="canonical")
    ids = list(known.encode('"naïve 😀, 12 of it"'))
    masks: list[list[list[int]]] = []

    def walk() -> None:
        matcher = constraint.matcher(max_tokens=30)
        found = []
        for token_id in ids:
            found.append(matcher.allowed_token_ids().tolist())
            assert matcher.accept_token(token_id)
        masks.append(found)

    threads = [threading.Thread(target=walk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(masks) == 4
    assert all(found == masks[0] for found in masks)


# What is refused


def tokenizer_with(**parts: object) -> Tokenizer:
    tokenizer = splitting(split_by([r"\p{L}+|[^\p{L}]"]), vocab_size=300)
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    return tokenizer


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"normalizer": normalizers.Lowercase()}, "not for the normalizer Lowercase"),
        ({"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=True)}, "adds a space before the text"),
        ({"pre_tokenizer": None}, "one without a pre-tokenizer"),
        ({"pre_tokenizer": pre_tokenizers.Whitespace()}, "Whitespace as the last pre-tokenizer"),
        ({"pre_tokenizer": split_by([r"(?<=a)b|[^b]"])}, r"the group '\(\?<=' at position 0"),
        ({"pre_tokenizer": split_by([r"a*?b|[^b]"])}, "a lazy repeat"),
        ({"pre_tokenizer": split_by([r"(a|b)++a|[^c]"])}, "a possessive repeat of more than single characters"),
        ({"pre_tokenizer": split_by([r"b|a?(?!b)"])}, "a match of the empty text"),
        ({"pre_tokenizer": split_by([r"a\b|[^a]"])}, "the escape of 'b'"),
        ({"pre_tokenizer": split_by([r"a$|[^a]|a"])}, r"'\$', which also holds before the end of a line"),
        ({"pre_tokenizer": split_by([r".+"])}, r"'\.' at position"),
        ({"pre_tokenizer": split_by([r"a|(?=bc)b|[^a]"])}, "looking at more than the next character"),
    ],
)
def test_other_tokenizers_are_refused_by_name(parts: dict[str, object], message: str) -> None:
    vocabulary = Vocabulary.from_tokenizer(tokenizer_with(**parts), stop_token_ids=[0])
    with pytest.raises(UnsupportedError, match=message):
        trieauto.compile(trieauto.regex("a+"), vocabulary, tokenization="canonical")


def test_a_left_context_that_the_tokenizer_drops_is_refused() -> None:
    """tiktoken leaves out what its pattern does not match: of ``1`` nothing is left, and ``12`` would not be joined."""
    encoding = tiktoken.Encoding(
        "gaps",
        pat_str=r"\S{2,}",
        mergeable_ranks={bytes([b]): b for b in range(256)} | {b"12": 256},
        special_tokens={"<|endoftext|>": 257},
    )
    vocabulary = Vocabulary.from_tiktoken(encoding)
    automaton = trieauto.regex("[0-9]+")
    with pytest.raises(UnsupportedError, match="the left context '1' could not be followed"):
        trieauto.compile(automaton, vocabulary, tokenization="canonical", left_context="1")
    matcher = trieauto.compile(automaton, vocabulary, tokenization="canonical", left_context="11").matcher()
    assert matcher.accept_tokens(encoding.encode("1123")[2:])


def test_modes() -> None:
    known = load("gpt2")
    automaton = trieauto.regex("a*")
    for mode in ("auto", "lazy"):
        assert trieauto.compile(automaton, known.vocabulary, tokenization="canonical", mode=mode).mode == "lazy"
    with pytest.raises(UnsupportedError, match="mode='eager' is not for tokenization='canonical' of"):
        trieauto.compile(automaton, known.vocabulary, tokenization="canonical", mode="eager")


def test_what_else_is_refused() -> None:
    def error(known: Known | Tokenizer, pattern: str = "a+") -> str:
        vocabulary = (
            known.vocabulary if isinstance(known, Known) else Vocabulary.from_tokenizer(known, stop_token_ids=[0])
        )
        with pytest.raises(UnsupportedError) as caught:
            trieauto.compile(trieauto.regex(pattern), vocabulary, tokenization="canonical")
        return str(caught.value)

    assert "not for SentencePiece" in error(sets.load("mistral-sentencepiece"))
    assert "not for a tokenizer written in Python (BertGenerationTokenizer)" in error(sets.load("mistral-slow"))
    assert "BPE with byte_fallback" in error(sets.load("small-byte-fallback-bpe"))
    assert "not for a Unigram model" in error(sets.load("small-unigram-never"))
    assert "added tokens with rstrip, such as 'by '" in error(sets.load("added-tokens"))
    assert "is supported for ASCII there" in error(load("nfc"), "[^a]+")
    tokenizer = tokenizer_with()
    tokenizer.add_tokens([AddedToken("ab", single_word=True)])
    assert "added tokens with single_word, such as 'ab'" in error(tokenizer)


def test_nothing_that_is_allowed_is_ever_written() -> None:
    known = load("added")
    with pytest.raises(EmptyConstraintError, match="never writes what is allowed, not one string"):
        trieauto.compile(trieauto.regex(r"a*<\|end\|>b*"), known.vocabulary, tokenization="canonical")
    with pytest.raises(EmptyConstraintError, match="never writes what is allowed"):
        trieauto.compile(trieauto.regex(r"end\|>b*"), known.vocabulary, tokenization="canonical", left_context="a<|")
