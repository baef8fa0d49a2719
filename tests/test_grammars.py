"""``from_grammar``: what it makes of a text is what the text means, to Python's ``re`` and to other engines."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import llguidance
import numpy as np
import pytest
import xgrammar
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto.grammars import from_grammar
from trieauto.grammars.regex_unions import NoUnion, literals_of_regex
from trieauto.grammars.unions import MAX_DEPTH

from .test_peers_equivalence import LLGuidancePeer, Peer, Tokenizer, XGrammarPeer, tokenizer


def strings(automaton: trieauto.Automaton) -> set[str | bytes]:
    values = automaton.values
    assert values is not None
    return {values[rank] for rank in range(len(values))}


# What grammars mean, to their engines too


class XGrammarOf(XGrammarPeer):
    def __init__(self, grammar: str, tokenizer: Tokenizer) -> None:
        compiled = xgrammar.GrammarCompiler(tokenizer.xgrammar).compile_grammar(grammar)
        self._matcher = xgrammar.GrammarMatcher(compiled)


class LLGuidanceOf(LLGuidancePeer):
    def __init__(self, grammar: str, tokenizer: Tokenizer) -> None:
        # By default it allows only the tokenizer's own next token where the text is determined.
        grammar = '%llguidance {"no_forcing": true}\n' + grammar.replace("%llguidance {}", "")
        self._matcher = llguidance.LLMatcher(tokenizer.llguidance, llguidance.LLMatcher.grammar_from_lark(grammar))
        assert not self._matcher.is_error(), self._matcher.get_error()


EBNF = {
    'root ::= "a" | "b"': ["a", "b"],
    'root::="a"|"b"': ["a", "b"],
    'root ::= ("a" | "b")': ["a", "b"],
    'root ::= (("get") | ("get_user" | ("get")))': ["get", "get_user"],
    'root ::= "only"': ["only"],
    'root ::= "" | "a"': ["", "a"],
    'root ::= () | "a"': ["", "a"],
    'root ::=\n  "a"\n  | "ab" # a comment | "c"\n\n  | "abc"\n': ["a", "ab", "abc"],
    '# first\nroot ::= # "x"\n "a" |# y\n "b"': ["a", "b"],
    'root ::= "a" "b" | "ab" "c"': ["ab", "abc"],
    'root ::= "a"\n"b"': ["ab"],
    'root ::= "a"("b"|"c")"d"': ["abd", "acd"],
    'root ::= "a" | "b" ("c" | "d") | "e" | "f" "g" | "h"': ["a", "bc", "bd", "e", "fg", "h"],
    'root ::= "a"? "b" ("c" "d")?': ["ab", "b", "abcd", "bcd"],
    'root ::= "x" | "a" | "b"?': ["x", "a", "b", ""],
    'root ::= colour " " noun\ncolour ::= "red" | "green"\nnoun ::= "ball" | plural\nplural ::= "balls"': [
        "red ball", "red balls", "green ball", "green balls",
    ],
    'noun ::= "a"\nroot ::= noun | noun noun': ["a", "aa"],
    'root ::= my-rule_1.x\nmy-rule_1.x ::= "a"': ["a"],
    'root ::= "a"\nunused ::= [a-z]+ unused | "b"': ["a"],
    'root ::= "::=" | "# no comment" | "(" ")" | "|"': ["::=", "# no comment", "()", "|"],
    r'root ::= "\"" | "\\" | "\\\\" | "\\n" | "\n\r\t\a\b\f\v\e" | "\'\?\/"': [
        '"', "\\", "\\\\", "\\n", "\n\r\t\a\b\f\v\x1b", "'?/",
    ],
    r'root ::= "\x41" | "\x9" | "\x1F600" | "\u00e9" | "\U0001F600!"': ["A", "\t", "\U0001f600", "é", "\U0001f600!"],
    r'root ::= "\x41-\xe9"': ["A-é"],
    'root ::= "日本" | "日本国" | "👍🏽" | "a\tb\x7f"': ["日本", "日本国", "👍🏽", "a\tb\x7f"],
    'root ::= "\u2028" | "\u00a0 "': ["\u2028", "\u00a0 "],
}  # fmt: skip

LARK = {
    'start: "a" | "b"': ["a", "b"],
    'start:"a"|"b"': ["a", "b"],
    'start: ("a" | "b")': ["a", "b"],
    '?start: "a" -> first\n     | "b" -> second\n': ["a", "b"],
    '!start: "get" | "get_user" | "get"': ["get", "get_user"],
    "start: VALUE\nVALUE: \"a\" | \"ab\" | \"it's\"": ["a", "ab", "it's"],
    '%llguidance {}\nstart: "a"': ["a"],
    '// first\nstart: "a" // "x"\n\n\n     | "b" # y\n': ["a", "b"],
    'start: "a" |': ["a", ""],
    'start: | "a"': ["a", ""],
    'start: "a" x\nx:\n': ["a"],
    'start: ["a"] "b"': ["ab", "b"],
    'start: "a"? "b"': ["ab", "b"],
    'start: [("a" | "b") "c"] "d"': ["acd", "bcd", "d"],
    'start: "a" ("b"\n | "c") "d"': ["abd", "acd"],
    'start: "a" | "b" | "c" "d" | "e"': ["a", "b", "cd", "e"],
    'start: _colour " " noun\n_colour: "red" | "green"\nnoun: "ball" | PLURAL\nPLURAL: "toys"': [
        "red ball", "red toys", "green ball", "green toys",
    ],
    'start: A | B\nA: "a" "b" | "ab" "c"\nB: ("x" | "xy") "yz"?': ["ab", "abc", "x", "xy", "xyz", "xyyz"],
    'start: A A\nA: _B "c"\n_B: "a" | "b"': ["acac", "acbc", "bcac", "bcbc"],
    'start: "a"\nunused: /[a-z]+/ unused | "b"i': ["a"],
    'start: "//" | "# no comment" | ":" | "x: y" | "a|b"': ["//", "# no comment", ":", "x: y", "a|b"],
    r'start: "\"" | "\\" | "\\\\" | "\\n" | "\n\r\t\f" | "\x41\u00e9" | "\ud83d\ude00"': [
        '"', "\\", "\\\\", "\\n", "\n\r\t\f", "Aé", "\U0001f600",
    ],
    'start: "日本" | "日本国" | "👍🏽"': ["日本", "日本国", "👍🏽"],
}  # fmt: skip

GBNF = {
    'root ::= "a" | "b"': ["a", "b"],
    'root ::= ("a" |\n "b") "c"\n': ["ac", "bc"],
    'root ::= "a" |': ["a", ""],
    "root ::=\n": [""],
    "root ::= 1st\n1st ::= \"x\" | \"y\"": ["x", "y"],
    r'root ::= "\x414" | "\u00e9\U0001F600" | "\[\]\-" | "\"\\\n\r\t"': ["A4", "é\U0001f600", "[]-", '"\\\n\r\t'],
    'root ::= "a\nb"': ["a\nb"],
}  # fmt: skip

CASES = [("ebnf", *case) for case in EBNF.items()] + [("lark", *case) for case in LARK.items()]


@pytest.mark.parametrize(("kind", "text", "wanted"), CASES + [("gbnf", *case) for case in GBNF.items()])
def test_grammars_become_tries_of_their_strings(kind: Any, text: str, wanted: list[str]) -> None:
    automaton = from_grammar(text, kind)
    assert strings(automaton) == set(wanted)
    assert automaton.is_trie


@pytest.mark.parametrize("tokenizer_name", ["qwen", "mistral"])
@pytest.mark.parametrize(("kind", "text", "wanted"), CASES)
def test_masks_and_ends_are_the_engines(kind: Any, text: str, wanted: list[str], tokenizer_name: str) -> None:
    known = tokenizer(tokenizer_name)
    ours = trieauto.compile(from_grammar(text, kind), known.vocabulary, prefix_space="none").matcher()
    make: Callable[[str, Tokenizer], Peer] = XGrammarOf if kind == "ebnf" else LLGuidanceOf
    peer = make(text, known)
    our_row, peer_row = np.zeros((2, len(known.content)), np.int32)
    (stop_token_id, *_) = known.vocabulary.stop_token_ids
    rng = random.Random(text)
    for _ in range(2 + 2 * len(wanted)):
        ours.reset()
        peer.reset()
        written = b""
        while True:
            ours.fill_next_token_bitmask(our_row)
            assert ours.is_accepting == peer.may_stop(stop_token_id) == (written.decode(errors="replace") in wanted)
            allowed = [token_id for token_id in ours.allowed_token_ids().tolist() if known.vocabulary.tokens[token_id]]
            if allowed:  # an engine that has written all may be done
                peer.fill(peer_row)
                np.testing.assert_array_equal(our_row & known.content, peer_row & known.content, err_msg=repr(written))
            if not allowed or (ours.is_accepting and rng.random() < 0.3):
                break
            token_id = rng.choice(allowed)
            written += known.vocabulary.tokens[token_id] or b""
            assert ours.accept_token(token_id)
            assert peer.accept(token_id)


text_values = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def escaped(character: str, form: int, single: dict[str, str]) -> str:
    """One of the ways to write a character in a literal."""
    must = character in '"\\' or character < " "
    if form == 0 and not must:
        return character
    if form <= 1 and character in single:
        return single[character]
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 and character != "\\" else f"\\U{ord(character):08X}"


SINGLE = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@given(st.lists(text_values, min_size=1, max_size=6), st.sampled_from(["ebnf", "gbnf", "lark"]), st.data())
def test_alternations_of_any_strings(values: list[str], kind: Any, data: st.DataObject) -> None:
    forms = st.integers(0, 1 if kind == "lark" else 2)
    literals = [
        '"' + "".join(escaped(c, 1 if c == "\\" and kind == "lark" else data.draw(forms), SINGLE) for c in value) + '"'
        for value in values
    ]
    joints = data.draw(st.lists(st.sampled_from(["|", " | ", "\n  | "]), min_size=len(values), max_size=len(values)))
    union = "".join(joint + literal for joint, literal in zip(joints, literals, strict=True)).lstrip("| \n")
    if data.draw(st.booleans()):
        union = f"({union})"
    automaton = from_grammar(f"start: {union}" if kind == "lark" else f"root ::= {union}", kind)
    assert strings(automaton) == set(values)
    assert automaton.engine.startswith("trie")


# Regular expressions


@given(st.lists(text_values, min_size=1, max_size=6), st.sampled_from(["{}", "({})", "(?:{})", "^{}$", "^(?:{})$"]))
def test_escaped_unions_of_any_strings(values: list[str], frame: str) -> None:
    pattern = frame.replace("{}", "|".join(map(re.escape, values)))
    assert all(re.fullmatch(pattern, value) for value in values)
    automaton = from_grammar(pattern)
    assert strings(automaton) == set(values)
    assert automaton.engine.startswith("trie (the regex is ")


SHORT = ["".join(letters) for length in range(4) for letters in product("ab\n|", repeat=length)]


@given(st.text(st.sampled_from("ab\n|()\\.^$?:x61n{}]#"), max_size=9))
def test_what_counts_as_a_union_is_one(pattern: str) -> None:
    literals = literals_of_regex(pattern)
    if isinstance(literals, NoUnion):
        assert pattern[literals.position] == literals.met
        return
    compiled = re.compile(pattern)
    assert all(compiled.fullmatch(literal) for literal in literals)
    assert {text for text in SHORT if compiled.fullmatch(text)} == set(literals) & set(SHORT)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("a|b|ab", ["a", "b", "ab"]),
        ("", [""]),
        ("(a|)", ["a", ""]),
        (r"a\|b|\(c\)|d\\|e\\\|", ["a|b", "(c)", "d\\", "e\\|"]),
        (r"a\\|b", ["a\\", "b"]),
        (r"\x7c|b", ["|", "b"]),
        (r"\x41BC|\u00e9e9|\U0001F60000|\nn", ["ABC", "ée9", "\U0001f60000", "\nn"]),
        (r"\x41\u00e9\U0001F600|\n\r\t\f\v\a|\é|\ ", ["Aé\U0001f600", "\n\r\t\f\v\a", "é", " "]),
        ("a]|}b|#,", ["a]", "}b", "#,"]),
    ],
)
def test_unions_as_python_reads_them(pattern: str, wanted: list[str]) -> None:
    assert all(re.fullmatch(pattern, value) for value in wanted)
    assert strings(from_grammar(pattern)) == set(wanted)


@pytest.mark.parametrize(
    ("pattern", "met"),
    [
        ("a+|b", "'+' at position 1"),
        ("(a)|b", "'|' at position 3"),
        ("[ab]", "'[' at position 0"),
        (r"a|\d", r"'\\\\' at position 2"),
        ("(a|b)c", "'c' at position 5"),
        ("a{2}", "'{' at position 1"),
        ("a.", "'.' at position 1"),
        ("(?i:a|b)", "'(' at position 0"),
    ],
)
def test_other_regexes_become_automata(pattern: str, met: str) -> None:
    automaton = from_grammar(pattern, "regex")
    assert automaton.values is None
    assert automaton.engine == f"automaton (the regex is no union of literals: {met.replace(chr(92) * 4, chr(92) * 2)})"
    for text in ("a", "b", "aa", "aab", "ac", "bc", "5", "A", ""):
        assert automaton.accepts(text) == bool(re.fullmatch(pattern, text))


# JSON schemas


@given(st.lists(text_values, min_size=1, max_size=6), st.booleans())
def test_json_enums_of_any_strings(values: list[str], ascii_only: bool) -> None:
    schema = json.dumps({"title": "t", "type": "string", "enum": values}, ensure_ascii=ascii_only)
    automaton = from_grammar(schema, "json_schema")
    texts = strings(automaton)
    assert texts == {json.dumps(value, ensure_ascii=False) for value in values}
    assert {json.loads(text) for text in texts} == set(values)
    assert automaton.engine.startswith("trie (the JSON schema is ")


def test_json_values_of_any_type() -> None:
    schema = {"enum": ["a/b", 1, None, {"x": [True]}]}
    assert strings(from_grammar(json.dumps(schema), "json_schema")) == {'"a/b"', "1", "null", '{"x":[true]}'}
    assert strings(from_grammar('{"const": "x"}', "json_schema")) == {'"x"'}


def test_other_schemas_become_automata() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}
    automaton = from_grammar(json.dumps(schema), "json_schema")
    assert automaton.engine == "automaton (the JSON schema is more than an enum)"
    assert automaton.values is None
    assert automaton.accepts('{"a":"x"}')
    assert not automaton.accepts('{"a":"z"}')


# Refusals


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("ebnf", 'root ::= "a" root | "b"', "'root', which is made of itself, at line 1, column 14"),
        ("ebnf", 'root ::= a\na ::= b\nb ::= "x" | "(" a ")"', "'a', which is made of itself, at line 3, column 17"),
        ("ebnf", "root ::= [a-z] [0-9]", r"'\[a-z\]' at line 1, column 10"),
        ("ebnf", 'root ::= "a"\n  | "b"*', r"'\*' at line 2, column 8"),
        ("ebnf", 'root ::= "a"+', r"'\+' at line 1"),
        ("ebnf", 'root ::= "a"{2,3}', r"'\{2,3\}' at line 1"),
        ("ebnf", 'root ::= "a" (="b")', r"'\(=' at line 1"),
        ("ebnf", "root ::= Token(5)", "'Token' at line 1, column 10"),
        ("ebnf", 'root[max_tokens=3] ::= "a"', None),
        ("ebnf", r'root ::= "\ud83d\ude00"', "ud83d' is no character"),
        ("ebnf", r'root ::= "\U00110000"', "U00110000' is no character"),
        ("ebnf", r'root ::= "\xfffffffffffff"', "is no character"),
        ("gbnf", "root ::= .", r"'\.' at line 1"),
        ("gbnf", 'root ::= <think> "a"', "'<' at line 1, column 10"),
        ("lark", 'start: /a+/ | "b"', "'/a\\+/' at line 1, column 8"),
        ("lark", 'start: "a"i | "b"', "'\"a\"i' at line 1"),
        ("lark", 'start: "a".."z"', r"'\.\.' at line 1, column 11"),
        ("lark", 'start: "a"~3', "'~' at line 1"),
        ("lark", 'start: "a" start | "b"', "'start', which is made of itself"),
        ("lark", 'start: "a"\n%ignore " "', "'%ignore' at line 2, column 1"),
        ("lark", '%import common.INT\nstart: "a"', "'%import' at line 1"),
        ("lark", '%llguidance {"no_forcing": true}\nstart: "a"', "'%llguidance' at line 1"),
        ("lark", 'start: "a" "b" | "ab" "c"', "'a', begins another, 'ab'"),
        ("lark", 'start: A "b"\nA: "a" | "ab"', "'a', begins another, 'ab'"),
        ("lark", 'start: x "c"\nx: "a" | A\nA: "ab"', "'a', begins another, 'ab'"),
        ("lark", r'start: "\/"', "Lark and LLGuidance read it differently"),
        ("lark", r'start: "\b"', "Lark and LLGuidance read it differently"),
        ("lark", r'start: "\x5c"', "Lark and LLGuidance may differ"),
    ],
)
def test_what_needs_a_general_engine_is_refused(kind: Any, text: str, message: str | None) -> None:
    with pytest.raises(trieauto.TrieautoError if message is None else trieauto.UnsupportedError, match=message):
        from_grammar(text, kind)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("ebnf", "", "no rule 'root'"),
        ("ebnf", 'start ::= "a"', "no rule 'root'"),
        ("lark", 'root: "a"', "no rule 'start'"),
        ("ebnf", '"a" | "b"', "a rule has to begin here: line 1, column 1"),
        ("ebnf", 'root ::= "a" | b', "no rule 'b': line 1, column 16"),
        ("ebnf", 'root ::= "a"\nroot ::= "b"', "'root' is there twice: line 2, column 1"),
        ("ebnf", 'root ::= ("a" | "b"', r"'\(' is never closed: line 1, column 10"),
        ("ebnf", 'root ::= "a")', r"'\)' closes nothing: line 1, column 13"),
        ("ebnf", 'root ::= | "a"', "without anything in it: line 1, column 10"),
        ("ebnf", 'root ::= "a" |', "without anything in it"),
        ("ebnf", r'root ::= "a" | "\q"', r"'\\\\q' is no escape in EBNF"),
        ("gbnf", r'root ::= "\b"', r"'\\\\b' is no escape"),
        ("gbnf", r'root ::= "\x4"', r"'\\\\x' is no escape"),
        ("lark", r'start: "\a"', r"'\\\\a' is no escape"),
        ("lark", 'start: "a" |\n "b"', "a rule has to begin here: line 2, column 2"),
        ("lark", 'start: ("a" | "b"]', r"'\(' is never closed"),
        ("lark", 'start: (\n"a")', "a rule has to begin here: line 2, column 1"),
        ("ebnf", 'root ::= "a', "never closed: line 1, column 10"),
        ("gbnf", r'root ::= "a\"', "never closed"),
        ("lark", 'start: "a\n | "b"', "never closed: line 1, column 8"),
        ("ebnf", "root ::= ?", None),
        ("regex", "(a", None),
        ("json_schema", "{", None),
        ("json_schema", "[" * 100_000, None),
        ("yaml", "a", "kind is 'yaml'; it must be one of 'regex', 'ebnf', 'gbnf', 'lark', 'json_schema'"),
        ("regex", b"a", "a grammar is a str"),
        ("ebnf", 'root ::= "\ud800"', "lone surrogate"),
    ],
)
def test_what_is_no_grammar_is_an_error(kind: Any, text: Any, message: str | None) -> None:
    with pytest.raises(trieauto.TrieautoError, match=message):
        from_grammar(text, kind)


@pytest.mark.parametrize("length", [MAX_DEPTH - 2, MAX_DEPTH + 2])
def test_deep_grammars(length: int) -> None:
    chain = "root ::= r0\n" + "\n".join(f"r{i} ::= r{i + 1}" for i in range(length - 2)) + f'\nr{length - 2} ::= "a"'
    nested = "root ::= " + "(" * (length - 1) + '"a"' + ")" * (length - 1)
    for text in (chain, nested):
        if length < MAX_DEPTH:
            assert strings(from_grammar(text, "ebnf")) == {"a"}
        else:
            with pytest.raises(trieauto.UnsupportedError, match="more than 100 rules and groups"):
                from_grammar(text, "ebnf")


@pytest.mark.parametrize("body", ["r{} r{}", "r{} | r{}", '("a" | r{}) ("b" | r{})', '"x" | r{} | "y" | r{} | "z"'])
def test_grammars_of_very_many_strings_are_refused(body: str) -> None:
    rules = [f"r{i} ::= {body.replace('{}', str(i + 1))}" for i in range(30)]
    with pytest.raises(trieauto.UnsupportedError, match="more than 10,000,000 characters"):
        from_grammar("root ::= r0\n" + "\n".join(rules) + '\nr30 ::= "0" | "1"', "ebnf")


@given(st.sampled_from(["ebnf", "gbnf", "lark"]), st.data())
def test_any_text_is_a_set_or_refused(kind: Any, data: st.DataObject) -> None:
    head = "start:" if kind == "lark" else "root ::="
    pieces = [
        head,
        "a:",
        "A:",
        "a ::=",
        "::=",
        '"a"',
        '"b"',
        "a",
        "A",
        "i",
        "é",
        "->",
        "//",
        "%x",
        *' \n\0|()[]{}?*"\\#/',
    ]
    text = head + "".join(data.draw(st.lists(st.sampled_from(pieces), max_size=12)))
    try:
        automaton = from_grammar(text, kind)
    except trieauto.TrieautoError:
        return
    assert automaton.is_trie


# What is told


def test_stats_say_what_was_chosen() -> None:
    vocabulary = tokenizer("mistral").vocabulary
    for prefix_space in ("none", "required"):
        constraint = trieauto.compile(from_grammar("a|b|a"), vocabulary, prefix_space=prefix_space)
        assert constraint.stats()["engine"] == "trie (the regex is a union of 2 strings)"
    assert trieauto.compile(trieauto.choices(["a"]), vocabulary).stats()["engine"] == "trie"
    assert from_grammar('root ::= "a"', "ebnf").engine == "trie (the EBNF grammar is one string)"


def test_the_matcher_knows_the_value() -> None:
    constraint = trieauto.compile(from_grammar('root ::= "yes" | "no"', "ebnf"), tokenizer("qwen").vocabulary)
    matcher = constraint.matcher()
    assert matcher.accept_token(constraint.vocabulary.tokens.index(b"y"))
    assert matcher.value == "yes"
