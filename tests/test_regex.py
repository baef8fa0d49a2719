"""Regular expressions: the language is that of ``re.fullmatch``, or the pattern is refused by name and position."""

from __future__ import annotations

import random
import re
from functools import cache
from itertools import product
from typing import Any

import hypothesis.strategies as st
import llguidance
import numpy as np
import numpy.typing as npt
import pytest
import regex as regex_package
import xgrammar
from hypothesis import given, settings

import trieauto
from trieauto.characters import ALL, part_of_ranges, union, utf8_automaton
from trieauto.nfa import Nfa
from trieauto.reference.regex_dfa import RegexDfa
from trieauto.regex_automaton import pattern_automaton, regex

from . import tokenizers_for_tests as real
from .regex_triples import TRIPLES
from .test_peers_equivalence import tokenizer


def searched(pattern: str, flags: int = 0) -> trieauto.Automaton:
    return pattern_automaton(pattern, flags, anchored=False)


def delta(automaton: trieauto.Automaton) -> npt.NDArray[np.int32]:
    """int32[N + 1, 256]: where each byte leads; the last state is the dead one."""
    table = np.full((automaton.num_states + 1, 256), automaton.num_states, np.int32)
    sources = np.repeat(np.arange(automaton.num_states), np.diff(automaton.links))
    table[sources, automaton.labels] = automaton.targets[: len(sources)]
    return table


def random_strings(automaton: trieauto.Automaton, rng: random.Random, most_bytes: int, count: int) -> list[str]:
    """Strings of the language, by random walks that stop where they may."""
    table = delta(automaton)
    strings = []
    for _ in range(count):
        state, written = automaton.start, bytearray()
        while len(written) < most_bytes:
            if automaton.accepting[state] and rng.random() < 0.3:
                break
            following = np.flatnonzero(table[state] < automaton.num_states)
            if len(following) == 0:
                break
            byte = int(rng.choice(following))
            written.append(byte)
            state = int(table[state, byte])
        if automaton.accepting[state]:
            strings.append(written.decode())  # every string of the language is well-formed UTF-8
    return strings


def near(strings: list[str], rng: random.Random, alphabet: str) -> list[str]:
    """Each with a character removed, added, exchanged, or doubled."""
    changed = []
    for string in strings:
        place = rng.randrange(len(string) + 1)
        other = rng.choice(alphabet)
        changed += [
            string[:place] + string[place + 1 :],
            string[:place] + other + string[place:],
            string[:place] + other + string[place + 1 :],
            string[:place] + string[max(place - 1, 0) :],
        ]
    return changed


# The language, by example


def test_there_are_enough_triples() -> None:
    assert len(TRIPLES) >= 200


@pytest.mark.parametrize(("pattern", "matching", "other"), TRIPLES)
def test_triples(pattern: str, matching: list[str], other: list[str]) -> None:
    automaton = regex(pattern)
    for string in matching:
        assert re.fullmatch(pattern, string), f"the triple is wrong about {string!r}"
        assert automaton.accepts(string), string
    for string in other:
        assert not re.fullmatch(pattern, string) or has_surrogate(string), f"the triple is wrong about {string!r}"
        assert not automaton.accepts(string), string


def has_surrogate(string: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in string)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"), [triple for triple in TRIPLES if not triple[0].startswith("(?")]
)
@pytest.mark.parametrize("flags", [re.I, re.A, re.S | re.M, re.I | re.A])
def test_triples_with_flags_given(pattern: str, matching: list[str], other: list[str], flags: int) -> None:
    automaton = regex(pattern, flags)
    for string in [*matching, *other]:
        if not has_surrogate(string):
            for variant in (string, string.upper(), string.lower()):
                assert automaton.accepts(variant) == bool(re.fullmatch(pattern, variant, flags)), variant


def test_flags_may_be_plain_integers() -> None:
    assert regex("a", int(re.I)).accepts("A")


@pytest.mark.parametrize("length", [0, 1, 1_999, 2_000, 2_001])
@pytest.mark.parametrize("character", ["a", "é", "日", "😀"])
def test_long_bounded_repeats(length: int, character: str) -> None:
    assert long_string().accepts(f'"{character * length}"') == (length <= 2_000)


@cache
def long_string() -> trieauto.Automaton:
    automaton = regex('"[^"]{0,2000}"')
    assert automaton.num_states < 8 * 2_000 + 10
    return automaton


def test_sets_are_tries() -> None:
    values = [f"tool_{number}" for number in range(5_000)]
    automaton = regex("(" + "|".join(values) + ")!")
    assert automaton.num_states <= trieauto.choices(values).num_states + 2
    for number in (0, 17, 4_999):
        assert automaton.accepts(f"tool_{number}!")
    assert not automaton.accepts("tool_5000!")
    assert not automaton.accepts("tool_17")


def test_finite_or_not() -> None:
    assert regex("a{3,7}|b?").is_finite
    assert not regex("a+").is_finite


# Bytes


def test_bytes_patterns() -> None:
    patterns = [rb"a.\xff", rb"[\x80-\xff]{2}", rb"(?i)[a-c]\w\W", rb"[^a]", rb"\d+\s?\D", rb"(?i)K", b"\xe9|\xc3\xa9"]
    rng = random.Random(0)
    for pattern in patterns:
        automaton = regex(pattern)
        for _ in range(2_000):
            data = bytes(rng.choice(b"aAbkK1 \n\xff\x80\xe9\xc3\xa9") for _ in range(rng.randrange(5)))
            assert automaton.accepts(data) == bool(re.fullmatch(pattern, data)), (pattern, data)
        for byte in range(256):
            assert automaton.accepts(bytes([byte])) == bool(re.fullmatch(pattern, bytes([byte]))), (pattern, byte)


# Every code point


CLASSES = [
    *[".", r"\w", r"\d", r"\s", r"\W", r"\D", r"\S", r"[^\w]", r"[\w\s]", r"[^\d\W]"],
    *[r"(?s).", r"(?a)\w", r"(?a)\d", r"(?a)\s", r"(?a)\W", r"(?a)[^\s]"],
    *["(?i)[a-z]", "(?i)[^a-z]", "(?i)k", "(?i)[^s]", "(?i)ﬅ", "(?i)[ﬅ01]", "(?i)[ﬅa]", "(?i)ß", "(?i)[ẞx]", "(?i)İ"],
    *[r"(?i)[À-ɏ]", r"(?i)[\u0370-\u03ff]", r"(?i)[^\u0370-\u03ff]", r"(?i)[\U00010400-\U00010410x]", r"(?i)[𐐀x]"],
    *[r"(?i)\w", r"(?i)[\Wa]", r"(?i)[^\da]", r"(?ia)[k-s]", r"(?ia)[^é]", r"(?i)[\u1e00-\u2fff]", "(?i)𐐨", "(?i)."],
    *[r"(?i)[\x00-\U0010ffff]", r"(?i)ͅ", r"(?i)[ΐΰ]", r"(?i)\u1c80", r"(?i)[ⅰ-ⅷⓐ]", r"[\ud000-\uf000]"],
]


@cache
def utf8_of_all() -> npt.NDArray[np.int32]:
    """int32[0x110000, 4]: the bytes of each code point, 256 where there is none; for surrogates, one that never is."""
    rows = np.full((0x110000, 4), 256, np.int32)
    for number in range(0x110000):
        data = b"\xff" if 0xD800 <= number < 0xE000 else chr(number).encode()
        rows[number, : len(data)] = list(data)
    return rows


def accepted_code_points(automaton: trieauto.Automaton) -> npt.NDArray[np.bool_]:
    table = np.concatenate([delta(automaton), np.arange(automaton.num_states + 1, dtype=np.int32)[:, None]], axis=1)
    states = np.full(0x110000, automaton.start, np.int32)
    for column in utf8_of_all().T:
        states = table[states, column]
    return np.append(automaton.accepting, 0)[states] == 1


@pytest.mark.parametrize("pattern", CLASSES)
def test_classes_at_every_code_point(pattern: str) -> None:
    matches = re.compile(pattern).fullmatch
    wanted = np.fromiter((matches(chr(number)) is not None for number in range(0x110000)), np.bool_, 0x110000)
    wanted[0xD800:0xE000] = False
    np.testing.assert_array_equal(accepted_code_points(regex(pattern)), wanted)


@pytest.mark.parametrize("name", ["L", "Lu", "Nd", "Greek", "Script=Cyrillic", "P", "Emoji"])
def test_properties_at_every_code_point(name: str) -> None:
    matches = regex_package.compile(rf"\p{{{name}}}").fullmatch
    wanted = np.fromiter((matches(chr(number)) is not None for number in range(0x110000)), np.bool_, 0x110000)
    wanted[0xD800:0xE000] = False
    np.testing.assert_array_equal(accepted_code_points(regex(rf"\p{{{name}}}")), wanted)
    np.testing.assert_array_equal(
        accepted_code_points(regex(rf"[^\p{{{name}}}]")), accepted_code_points(regex(rf"\P{{{name}}}"))
    )
    is_valid = np.ones(0x110000, np.bool_)
    is_valid[0xD800:0xE000] = False
    np.testing.assert_array_equal(accepted_code_points(regex(rf"\P{{{name}}}")), is_valid & ~wanted)


def test_properties_inside_classes() -> None:
    automaton = regex(r"[\p{Lu}\d_-]+\P{L}?")
    for string in ["ÀB9_-", "A!", "_"]:
        assert automaton.accepts(string)
    for string in ["a", "Aa", "!"]:
        assert not automaton.accepts(string)


code_points = st.one_of(
    st.integers(0, 0x10FFFF), st.sampled_from([0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0xD800, 0xDFFF])
)


@given(st.lists(st.tuples(code_points, code_points), max_size=6), st.lists(code_points, max_size=20))
def test_utf8_of_ranges(pairs: list[tuple[int, int]], probes: list[int]) -> None:
    wanted = {k for first, last in pairs for k in probes if min(first, last) <= k <= max(first, last)}

    ranges = union((min(pair), max(pair)) for pair in pairs)
    automaton = utf8_automaton(ranges)
    for k in probes:
        is_surrogate = 0xD800 <= k < 0xE000
        if automaton is None:
            assert k not in wanted or is_surrogate
            continue
        assert automaton.accepts(chr(k)) == (k in wanted and not is_surrogate)
        assert not automaton.accepts(chr(k).encode("utf-8", "surrogatepass")[:-1] + b"\xff")
        if is_surrogate:
            assert not automaton.accepts(chr(k).encode("utf-8", "surrogatepass"))


def test_only_the_shortest_form_of_utf8() -> None:
    automaton = utf8_automaton(tuple(ALL))
    assert automaton is not None
    for data in [b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf"]:
        assert not automaton.accepts(data)
    for data in [b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xed\xa0\x80", b"\x80", b"\xff", b""]:
        assert not automaton.accepts(data)


def test_ranges_out_of_order_are_refused() -> None:
    for ranges in ([(5, 4)], [(1, 5), (5, 6)], [(7, 8), (1, 2)], [(0, 0x110000)], [(-1, 3)]):
        with pytest.raises(trieauto.TrieautoError, match="no range of code points"):
            part_of_ranges(Nfa(), ranges)


# The language, by generated patterns


LETTERS = "abAB1_ -é\nſK日"
atoms = st.one_of(
    st.sampled_from(["a", "b", "A", "é", "1", "ſ", "K", r"\n", r"\-", "_"]),
    st.sampled_from(
        [".", r"\d", r"\w", r"\s", r"\W", "[ab]", "[^a]", "[a-c1]", r"[^\w]", r"[\d_]", "[é-ſ]", "()", "[Kk]"]
    ),
)
quantifiers = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,3}", "{2,}", "{0}", "{,2}?", "{3}"])


def larger(patterns: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = st.sampled_from(["(?:{})", "({})", "(?i:{})", "(?s:{})", "(?a:{})", "(?-i:{})", "(?ai-s:{})"])
    return st.one_of(
        st.lists(patterns, min_size=2, max_size=3).map("".join),
        st.lists(st.one_of(patterns, st.just("")), min_size=2, max_size=3).map("|".join).map("(?:{})".format),
        st.builds("(?:{}){}".format, patterns, quantifiers),
        st.builds(lambda group, pattern: group.format(pattern), groups, patterns),
    )


patterns = st.recursive(atoms, larger, max_leaves=6)
texts = st.text(st.sampled_from(LETTERS), max_size=6)


@settings(max_examples=400)
@given(patterns, st.sampled_from([0, re.I, re.A, re.S, re.I | re.A | re.S]), st.lists(texts, max_size=6), st.randoms())
def test_generated_patterns(pattern: str, flags: int, strings: list[str], rng: random.Random) -> None:
    try:
        automaton = regex(pattern, flags)
    except trieauto.EmptyConstraintError:
        assert not any(re.fullmatch(pattern, string, flags) for string in strings)
        return
    own = random_strings(automaton, rng, 8, 4)
    for string in own:
        assert re.fullmatch(pattern, string, flags), string
    for string in [*strings, *near(own, rng, LETTERS)]:
        assert automaton.accepts(string) == bool(re.fullmatch(pattern, string, flags)), string


@st.composite
def anchored_patterns(draw: st.DrawFn) -> str:
    """Alternatives, each with or without anchors at its ends, at times in groups."""
    alternatives = [
        draw(st.sampled_from(["", "^", "^^", "(^)", "(?:^|a)"]))
        + draw(patterns)
        + draw(st.sampled_from(["", "$", "$$", "(?:1|$)"]))
        for _ in range(draw(st.integers(1, 3)))
    ]
    pattern = "|".join(alternatives)
    return draw(st.sampled_from(["{}", "({})", "(?:{})", "({}|^$)", "^(?:{})$", "(?:{}){{1}}", "(?:{})?"])).format(
        pattern
    )


@settings(max_examples=300)
@given(anchored_patterns(), st.lists(texts, max_size=8), st.randoms(), st.booleans())
def test_generated_anchors(pattern: str, strings: list[str], rng: random.Random, is_search: bool) -> None:
    theirs = re.compile(pattern.replace("$", r"\Z"))
    automaton, refusal = None, ""
    try:
        automaton = searched(pattern) if is_search else regex(pattern)
    except trieauto.EmptyConstraintError:
        pass
    except trieauto.UnsupportedError as error:
        refusal = str(error)
    if refusal:
        assert "the anchor" in refusal
        return
    own = [] if automaton is None else random_strings(automaton, rng, 8, 4)
    for string in [*strings, *own, *near(own, rng, LETTERS)]:
        matches = theirs.search(string) if is_search else re.fullmatch(pattern, string)
        assert (automaton is not None and automaton.accepts(string)) == bool(matches), string


SEARCHES: list[tuple[str, list[str], list[str]]] = [
    ("", ["", "a", "\n"], []),
    ("^", ["", "a\nb"], []),
    ("$", ["", "a\nb"], []),
    ("^$", [""], ["a", "\n"]),
    ("b", ["b", "abc", "\nb\n"], ["", "ac"]),
    ("^b", ["b", "bc\n"], ["ab", "\nb"]),
    ("b$", ["b", "a\nb"], ["b\n", "ba"]),
    ("^b$", ["b"], ["b\n", "ab", "bc"]),
    ("^a|b$", ["a", "ax", "b", "xb", "ab"], ["ba", "xa", ""]),
    ("^(a|b)$", ["a", "b"], ["ab", "xa"]),
    ("(^|,)x($|,)", ["x", "a,x", "x,b", "a,x,b"], ["ax", "xb", "a,xb"]),
    ("^$|^https?://", ["", "https://a", "http://"], ["a", " http://a"]),
    ("^[a-z]+", ["a", "ab1"], ["1a", ""]),
    ("a.b", ["xa-bx"], ["a\nb"]),
    (r"^\S+@\S+$", ["a@b"], ["a @b", "@"]),
    ("(^a)?b", ["b", "ab", "xab"], ["a"]),
    ("foo|bar", ["a foo", "bars"], ["fo", ""]),
    ("^.{2,3}$", ["ab", "日本"], ["a", "abcd", "a\n"]),
    (r"\Aa\Z", ["a"], ["a\n"]),
]


@pytest.mark.parametrize(("pattern", "matching", "other"), SEARCHES)
def test_searches(pattern: str, matching: list[str], other: list[str]) -> None:
    automaton = searched(pattern)
    theirs = re.compile(pattern.replace("$", r"\Z"))
    for string, is_match in [*[(string, True) for string in matching], *[(string, False) for string in other]]:
        assert bool(theirs.search(string)) == is_match, f"the case is wrong about {string!r}"
        assert automaton.accepts(string) == is_match, string


def test_a_regex_may_be_part_of_something_larger() -> None:
    nfa = Nfa()
    parts = [nfa.literal(b'"'), nfa.embed(regex(r"\d{2,3}")), nfa.literal(b'"'), part_of_ranges(nfa, [(0xE9, 0xEA)])]
    automaton = nfa.automaton(nfa.sequence(parts))
    assert automaton.accepts('"12"é')
    assert not automaton.accepts('"1"é')


# Other engines


ASCII_PATTERNS = [
    *[
        "a*b|c",
        "(ab|cd)*e?",
        "[a-f]{2,4}[^a-f]",
        r"[0-9]{4}-(0[1-9]|1[0-2])",
        "(a|b)*abb",
        "(a?b){2,3}",
        "x.y",
        "[^x]*x",
    ],
    *["(aa|aaa)*", "((a|b)c?){1,4}", "(foo|foobar|barfoo)+", "a{3,}b{0,2}", "([a-c]|c[a-b])*d", "(a*b*)*c", "(|a)(|b)"],
    *[r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", r'"([^"\\]|\\["\\n])*"', "(a|ab)(c|bcd)(d*)", "(.*a){3}", ".*abc.*", "(ab?)*"],
    *["[a-z]+@[a-z]+[.](com|org)", "(a{2}){0,3}", "(a{2,3}){2,3}", "(ab*){2}|(ba*){3}", "a?b?c?d?"],
]


@pytest.mark.parametrize("pattern", ASCII_PATTERNS)
def test_language_is_interegulars(pattern: str) -> None:
    """Over ASCII, on which characters and bytes are one; every pair of states that a string leads to."""
    ours, theirs = regex(pattern), RegexDfa.from_pattern(pattern)
    table = delta(ours)
    waiting: list[tuple[int, int | None]] = [(ours.start, theirs.fsm.initial)]
    seen = set(waiting)
    while waiting:
        our_state, their_state = waiting.pop()
        accepts = our_state < ours.num_states and bool(ours.accepting[our_state])
        assert accepts == (their_state in theirs.fsm.finals)
        for byte in range(128):
            pair = (
                int(table[our_state, byte]),
                None if their_state is None else theirs.walk(their_state, bytes([byte])),
            )
            if pair not in seen and pair != (ours.num_states, None):
                seen.add(pair)
                waiting.append(pair)


def as_in_the_regex_package(pattern: str) -> str:
    """Without what that package has otherwise: spaces, the flag ASCII for a part, and lazy repeats (``Aaa`` is to it
    a partial match of ``a*?Aa``)."""
    pattern = pattern.replace(r"\s", r"[ \n]").replace("(?a:", "(?:").replace("(?ai-s:", "(?i-s:")
    return re.sub(r"(?<!\()([*+?}])\?", r"\1", pattern)


@settings(max_examples=200, derandomize=True)  # that package has flaws of its own
@given(patterns.map(as_in_the_regex_package), st.lists(texts, max_size=6), st.randoms())
def test_prefixes_are_viable_as_in_the_regex_package(pattern: str, strings: list[str], rng: random.Random) -> None:
    """A string leads to a state of the automaton, all of which can reach the end, iff it is a partial match.

    (That package's Unicode may be of another year, so only with known letters.)
    """
    try:
        automaton = regex(pattern)
    except trieauto.EmptyConstraintError:
        return
    table = delta(automaton)
    own = [string for string in random_strings(automaton, rng, 8, 4) if set(string) <= set(LETTERS)]
    theirs = regex_package.compile(pattern)
    for string in [*strings, *near(own, rng, LETTERS)]:
        state = automaton.start
        for byte in string.encode():
            state = int(table[state, byte])
        assert (state < automaton.num_states) == bool(theirs.fullmatch(string, partial=True)), string


PEER_PATTERNS = [
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    r"(red|green|blue)( (light|dark))?",
    r'"[^"\\]{0,20}"',
    r"[a-z]+(_[a-z]+)*",
    r"-?(0|[1-9][0-9]*)(\.[0-9]+)?",
    r"[А-я]{2,5}|[一-龥]+|😀?",
    r"#[0-9a-f]{6}",
    r"(https?|ftp)://[a-z0-9.]+(/[a-z0-9._-]*)*",
    r"[^a]b*c{2,3}",
]


class XGrammarPeer:
    def __init__(self, pattern: str, name: str) -> None:
        compiler = xgrammar.GrammarCompiler(tokenizer(name).xgrammar)
        self.matcher = xgrammar.GrammarMatcher(compiler.compile_regex(pattern))

    def fill(self, row: npt.NDArray[np.int32]) -> None:
        self.matcher.fill_next_token_bitmask(row[None])

    def accept(self, token_id: int) -> bool:
        return self.matcher.accept_token(token_id)


class LLGuidancePeer:
    def __init__(self, pattern: str, name: str) -> None:
        escaped = pattern.replace("/", r"\/")
        grammar = f'%llguidance {{"no_forcing": true}}\nstart: /{escaped}/'
        self.matcher = llguidance.LLMatcher(tokenizer(name).llguidance, llguidance.LLMatcher.grammar_from_lark(grammar))
        assert not self.matcher.is_error(), self.matcher.get_error()

    def fill(self, row: npt.NDArray[np.int32]) -> None:
        self.matcher.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)

    def accept(self, token_id: int) -> bool:
        return self.matcher.consume_token(token_id)


@pytest.mark.parametrize("pattern", PEER_PATTERNS)
@pytest.mark.parametrize("peer_type", [XGrammarPeer, LLGuidancePeer])
@pytest.mark.parametrize("name", ["qwen", "mistral"])
def test_masks_are_the_peers(name: str, peer_type: Any, pattern: str) -> None:
    known = tokenizer(name)
    constraint = trieauto.compile(regex(pattern), known.vocabulary, prefix_space="none")
    our_row, peer_row = np.zeros((2, len(known.content)), np.int32)
    rng = random.Random(pattern)
    for _ in range(4):
        ours, peer = constraint.matcher(), peer_type(pattern, name)
        for _ in range(12):
            ours.fill_next_token_bitmask(our_row)
            peer.fill(peer_row)
            np.testing.assert_array_equal(our_row & known.content, peer_row & known.content)
            allowed = [token_id for token_id in ours.allowed_token_ids().tolist() if known.vocabulary.tokens[token_id]]
            if not allowed:
                break
            token_id = rng.choice(allowed)
            assert ours.accept_token(token_id)
            assert peer.accept(token_id)


# Budgets


@cache
def qwen() -> trieauto.Vocabulary:
    return trieauto.Vocabulary.from_tokenizer(real.qwen_huggingface())


def fewest_tokens(automaton: trieauto.Automaton, tokens: list[bytes | None]) -> int:
    """By trying every token in every state, breadth first."""
    table = delta(automaton).tolist()
    states, seen, count = {automaton.start}, {automaton.num_states}, 0
    while not any(automaton.accepting[state] for state in states):
        seen |= states
        reached = set()
        for before, token in product(states, filter(None, tokens)):
            state = before
            for byte in token:
                state = table[state][byte]
                if state == automaton.num_states:
                    break
            reached.add(state)
        states, count = reached - seen, count + 1
    return count


@pytest.mark.parametrize(
    ("pattern", "fewest"),
    [
        (r"[0-9]{4}-[0-9]{2}", 7),  # the tokenizer has no token of several digits
        (r"a{8}", None),
        (r'"[^"]{0,2000}"', 1),  # two quotes are one token
        (r'x"[^"]{10}"y', None),
        (r"(yes|no)\.", None),
        (r"[a-f]{3}\s[a-f]{3}", None),
        (r"(ab|c){5,}!", None),
        ("", 0),
    ],
)
def test_budgets(pattern: str, fewest: int | None) -> None:
    constraint = trieauto.compile(regex(pattern), qwen())
    needed = constraint.min_tokens
    assert needed == (fewest_tokens(regex(pattern), qwen().tokens) if fewest is None else fewest)
    if needed > 0:
        with pytest.raises(trieauto.BudgetError):
            constraint.matcher(max_tokens=needed - 1)
    rng = random.Random(pattern)
    for budget in [needed, needed + 1, needed + 5]:
        for _ in range(5):
            matcher, written = constraint.matcher(max_tokens=budget), b""
            while not (matcher.is_complete or matcher.remaining_tokens == 0):
                allowed = [k for k in matcher.allowed_token_ids().tolist() if qwen().tokens[k]]
                if not allowed:
                    break
                token_id = rng.choice(allowed)
                assert matcher.accept_token(token_id)
                written += qwen().tokens[token_id] or b""
            assert matcher.is_accepting
            assert re.fullmatch(pattern, written.decode())


# Refusals


REFUSED = [
    (r"ab\b", r"word boundary \\b at position 2 "),
    (r"a\Bc", r"word boundary \\B at position 1 "),
    (r"a\\\b", r"word boundary \\b at position 3 "),
    (r"[\b]\b", r"word boundary \\b at position 4 "),
    (r"x(?=y)", r"look-ahead \(\?=\.\.\.\) at position 1 "),
    (r"x(?!y|z)", r"look-ahead \(\?!\.\.\.\) at position 1 "),
    (r"(?!)", r"look-ahead .* at position 0 "),
    (r"[(?=]x(?!a|b)", r"look-ahead .* at position 6 "),
    (r"a|b|(?=c|d)", r"look-ahead .* at position 4 "),
    (r"((?=a)|b)", r"look-ahead .* at position 1 "),
    ("(?x) a b # x (?= y) \\b \n  (?= c)", r"look-ahead .* at position 26 "),
    ("(?#(?=)(?:a)(?=b)", r"look-ahead .* at position 12 "),
    (r"(?<=a)b", r"look-behind \(\?<=\.\.\.\) at position 0 "),
    (r"c(?<!a)b", r"look-behind \(\?<!\.\.\.\) at position 1 "),
    (r"(a)\1", r"back-reference at position 3 "),
    (r"((x)y)z\2", r"back-reference at position 7 "),
    (r"(?P<n>a)b(?P=n)", r"back-reference at position 9 "),
    (r"(a)?(?(1)b|c)", r"conditional .* at position 4 "),
    (r"(?P<n>a)?x(?(n)b)", r"conditional .* at position 10 "),
    (r"a(?>bc|d)e", r"atomic group .* at position 1 "),
    (r"a++", r"possessive quantifier at position 2 "),
    (r"ab{1,2}+", r"possessive quantifier at position 7 "),
    (r"(?:ab)*+", r"possessive quantifier at position 7 "),
    (r"a^b", r"anchor \^ at position 1 "),
    (r"a$b", r"anchor \$ at position 1 "),
    (r"a$\n", r"anchor \$ at position 1 "),
    (r"(a|b$)c", r"anchor \$ at position 4 "),
    (r"a?^b", r"anchor \^ at position 2 "),
    (r"(?:^a)*", r"anchor \^ at position 3 "),
    (r"a\Ab", r"anchor \\A at position 1 "),
    (r"[$]\$a\Zb", r"anchor \\Z at position 6 "),
    (r"(?m)a$\nb", r"anchor \$ at position 5 "),
    (r"x\ud800", r"surrogate \\ud800, .* at position 1 "),
    ("xy\udfff", r"surrogate \\udfff, .* at position 2 "),
    (r"a[\ud800]", r"surrogate \\ud800, .* at position 1 "),
    (r"\p{L}\p", r"\\p without a name in braces at position 5 "),
    (r"a\p{Nonsense}", r"no such property \(at position 1 "),
    (r"(?i)a\p{L}", r"ignores case at position 5 "),
]


@pytest.mark.parametrize(("pattern", "message"), REFUSED)
def test_what_is_not_regular_is_refused_by_name_and_position(pattern: str, message: str) -> None:
    with pytest.raises(trieauto.UnsupportedError, match=message):
        regex(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "[a", "a**", "*", "a{2,1}", r"\q", "(?P<1>a)", "(?z)", "\\", r"\1", "(?L)a", "[b-a]", r"\x1", "a(?i)b"],
)
def test_what_python_refuses_is_refused_with_its_message_and_position(pattern: str) -> None:
    with pytest.raises(re.error) as theirs:
        re.compile(pattern)
    with pytest.raises(trieauto.TrieautoError) as ours:
        regex(pattern)
    assert str(ours.value).startswith(f"{theirs.value.msg} at position {theirs.value.pos} of the pattern")


def test_other_refusals() -> None:
    for flags in (re.LOCALE, re.DEBUG, 1 << 20):
        with pytest.raises(trieauto.UnsupportedError, match="flags"):
            regex("a", flags)
    for wrong in ("i", None, True, 1.0):
        with pytest.raises(trieauto.TrieautoError, match="flags"):
            regex("a", wrong)  # type: ignore[arg-type]
    for wrong in (None, 5, ["a"], re.compile("a")):
        with pytest.raises(trieauto.TrieautoError, match="a pattern is str or bytes"):
            regex(wrong)  # type: ignore[arg-type]
    with pytest.raises(trieauto.TrieautoError, match="incompatible"):
        regex("a", re.A | re.U)
    with pytest.raises(trieauto.TrieautoError, match="too large"):
        regex("a{99999999999}")
    for nested in ("(" * 5_000 + ")" * 5_000, "(?:a|" * 900 + ")" * 900):
        with pytest.raises(trieauto.TrieautoError, match="nested too deeply"):
            regex(nested)
    with pytest.raises(trieauto.UnsupportedError, match="states"):
        regex("((a{1000}){1000}){1000}")
    for empty in (r"[^\s\S]", r"a[^\x00-\U0010ffff]", r"[\ud800-\udfff]", r"([^\w\W]b){2}"):
        with pytest.raises(trieauto.EmptyConstraintError):
            regex(empty)


def test_an_empty_class_may_be_left_out() -> None:
    assert regex(r"a[^\s\S]{0,2}").accepts("a")
    assert regex(r"a|[\ud800-\udfff]b").accepts("a")
    assert regex(r"a(?:[^\s\S]b){0,3}c").accepts("ac")


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of re, about "[["
@settings(max_examples=300)
@given(st.text(st.sampled_from("ab()[]{}|*+?.^$\\-,1:=!<>PiQ#dwb"), max_size=12))
def test_any_text_is_a_language_or_refused(pattern: str) -> None:
    try:
        automaton = regex(pattern)
    except trieauto.TrieautoError:
        return
    for string in ["", "a", "b", "ab", "aa", "a1", "-", "(", "\n"]:
        assert automaton.accepts(string) == bool(re.fullmatch(pattern, string)), string
