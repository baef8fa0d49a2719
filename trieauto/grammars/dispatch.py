"""Which way a grammar is taken: a trie where its language is a set, else what its kind asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from ..automaton import Automaton
from ..errors import TrieautoError, shorten
from ..json_schemas import json_schema
from ..regex_automaton import regex
from ..value_lists.automaton import ListAutomaton
from ..value_sets import choices
from .notations import NOTATIONS
from .regex_unions import NoUnion, literals_of_regex
from .unions import values_of_grammar

Kind = Literal["regex", "ebnf", "gbnf", "lark", "json_schema"]


def from_grammar(text: str, kind: Kind = "regex") -> Automaton | ListAutomaton:
    """The automaton of a grammar's language, by the cheapest way that is exact (section 4.3 of the trie paper).

    A finite union of strings becomes a trie, as ``choices`` makes it, so that a matcher knows the ``value``: a regular
    expression ``a|b|c`` (escaped, in a group or not), a JSON schema that is an ``enum`` or a ``const`` (its values are
    JSON texts, quotes included), a grammar of string literals. What was chosen, and why, is in the
    automaton's ``engine`` and in ``stats()["engine"]`` of its constraints.

    Args:
        text: the grammar.
        kind: how it is written:

            - "regex": as ``trieauto.regex`` takes it.
            - "json_schema": the text of a schema, as ``trieauto.json_schema`` takes it.
            - "ebnf": XGrammar's EBNF, which begins with the rule ``root``.
            - "gbnf": llama.cpp's GBNF; the difference is in the escapes: ``\\x`` has two digits here, any number there.
            - "lark": Lark's, which begins with the rule ``start``, as LLGuidance reads it. Where Lark itself differs
              (some escapes; sequences in which one terminal begins another), it is refused.

            Of the last three, only finite unions of string literals are read: alternatives, sequences, groups, optional
            parts, and rules made of these.

    Cost: some ten microseconds to decide on a small grammar; else linear, 1 to 2 µs a literal, its trie included.

    Raises:
        UnsupportedError: a grammar that is no finite union (it names what was met and where: a general grammar engine
            serves those), or what ``regex`` and ``json_schema`` do not support.
        TrieautoError: a kind that does not exist, or a text that is not written in it.
    """
    if kind not in get_args(Kind):
        raise TrieautoError(f"kind is {shorten(kind)}; it must be one of {', '.join(map(repr, get_args(Kind)))}")
    if not isinstance(text, str):
        raise TrieautoError(f"a grammar is a str, not {shorten(text)}")
    if kind == "regex":
        return _from_regex(text)
    if kind == "json_schema":
        return _from_json_schema(text)
    notation = NOTATIONS[kind]
    return _as_trie(choices(values_of_grammar(text, notation)), f"{notation.title} grammar")


def _from_regex(pattern: str) -> Automaton:
    literals = literals_of_regex(pattern)
    if isinstance(literals, NoUnion):
        why = f"the regex is no union of literals: {literals.met!r} at position {literals.position}"
        return replace(regex(pattern), engine=f"automaton ({why})")
    return _as_trie(choices(literals), "regex")


def _from_json_schema(text: str) -> Automaton | ListAutomaton:
    automaton = json_schema(text)
    if isinstance(automaton, ListAutomaton):
        return replace(automaton, engine="trie, and the values given (the JSON schema is an array of different values)")
    if automaton.values is None:
        return replace(automaton, engine="automaton (the JSON schema is more than an enum)")
    return _as_trie(automaton, "JSON schema")


def _as_trie(automaton: Automaton, what: str) -> Automaton:
    assert automaton.values is not None
    count = len(automaton.values)
    union = "one string" if count == 1 else f"a union of {count:,} strings"
    return replace(automaton, engine=f"trie (the {what} is {union})")
