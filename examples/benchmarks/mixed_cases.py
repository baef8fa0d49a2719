"""The trie paper's three mixed schemas: a large enum beside free fields, with new values for every seed, and answers.

The paper says what they are for and how large their enums are, not what else is in them; the other fields are chosen
here. All engines must have the same language, so fields on which engines differ are kept out:

- Strings are those without quotes, backslashes and control characters (a ``pattern``). For ``{"type": "string"}`` the
  engines disagree about escapes: XGrammar lets through every one that JSON has, lone surrogates included, trieauto and
  LLGuidance those that ``json.dumps`` writes; and LLGuidance leaves out U+007F. ``plain_strings`` has them all the
  same; then tokens with a backslash or U+007F are left out wherever masks are compared.
- Integers are not negative: XGrammar has -0 among them, the others do not.
- Numbers have no bounds: inside bounds XGrammar writes a few digits after the point at most.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from trieauto.demo_sets import tool_names

Phase = Literal["structure", "enum", "free string", "number"]
Piece = tuple[Phase, str]

_PATTERN = r'^[^"\\\x00-\x1f\x7f]*$'
_QUERIES = """
    the latest message from Zoë about invoice 4711|who owns the repository for payments?|München, Straße des 17. Juni
    all open issues with the label "urgent"|naïve approach, café prices; résumés|日本語の資料を探す
"""
_AREAS = "Account Billing Cards Delivery Devices Insurance Legal Loans Network Orders Payroll Privacy Returns"
_TOPICS = """
    address approval balance cancellation change claim complaint delay dispute duplicate error expiry fee fraud
    increase limit lock login loss notice password payment permission recovery refund renewal request statement status
"""
_KINDS = "business private partner student unknown"
_GIVEN = """
    Ada Agnès Alan Amélie André Anna Barbara Björn Carl Chloé Claude Dorothy Edith Émile Emmy Erik Étienne Françoise
    Grace Guðrún Héloïse Henri Hermann Inês Jürgen Kurt Łukasz Lise Maria Max Niels Noël Olga René Søren Sofia Zoë
"""
_FAMILY = """
    Ångström Bäcker Bernoulli Bohr Bouchard Čapek Cauchy Curie Dedekind Descartes Euler Fermat Fischer García Gauß
    Germain Gödel Hadamard Hamilton Hilbert Hopper Jacobi Klein Kowalski Lagrange Lovelace Meitner Müller Newton Noether
    Nuñez Pascal Peano Poincaré Ramanujan Riemann Sørensen Turing Weyl Žižek
"""
_FIELDS = """
    actor architect astronomer athlete author botanist chemist composer conductor diplomat economist engineer explorer
    geologist historian inventor journalist judge lawyer linguist mathematician painter philosopher physician physicist
    pilot poet politician printer sculptor singer soldier surgeon teacher writer
"""


@dataclass(frozen=True)
class Case:
    """One of the schemas.

    Attributes:
        counts: sizes of the enum, the paper's among them.
        values: so many distinct values, others for each seed.
        fields: the properties, given the enum's values and the schema of a free string.
        answer: the fields of a random answer around one value, as phases and JSON text, punctuation included.
    """

    name: str
    counts: tuple[int, ...]
    values: Callable[[int, int], list[str]]
    fields: Callable[[list[str], dict[str, Any]], dict[str, Any]]
    answer: Callable[[str, random.Random], list[Piece]]

    def schema(self, values: list[str], *, plain_strings: bool) -> dict[str, Any]:
        free = {"type": "string"} if plain_strings else {"type": "string", "pattern": _PATTERN}
        return _object(self.fields(values, free))


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _string(phase: Phase, text: str) -> list[Piece]:
    """A string in its quotes. What comes before the closing one is still a choice, so that belongs to the phase."""
    return [("structure", '"'), (phase, json.dumps(text, ensure_ascii=False)[1:])]


def _query(rng: random.Random) -> str:
    queries = [query.strip() for line in _QUERIES.strip().split("\n") for query in line.split("|")]
    return rng.choice(queries).replace('"', "'")


def _combinations(*words: str, text: Callable[..., str]) -> Callable[[int, int], list[str]]:
    """Values of one word from each list."""
    lists = [line.split() for line in words]

    def values(count: int, seed: int) -> list[str]:
        rng = random.Random(seed)
        total = 1
        for line in lists:
            total *= len(line)
        result = []
        for number in rng.sample(range(total), count):
            chosen = []
            for line in lists:
                number, place = divmod(number, len(line))
                chosen.append(line[place])
            result.append(text(*chosen))
        return result

    return values


def _tool_call(values: list[str], free: dict[str, Any]) -> dict[str, Any]:
    arguments = _object({"query": free, "limit": {"type": "integer", "minimum": 0}})
    return {"tool": {"enum": values}, "arguments": arguments}


def _tool_call_answer(value: str, rng: random.Random) -> list[Piece]:
    return [
        ("structure", '{"tool":'), *_string("enum", value),
        ("structure", ',"arguments":{"query":'), *_string("free string", _query(rng)),
        ("structure", ',"limit":'), ("number", str(rng.randrange(10 ** rng.randint(1, 4)))), ("structure", "}}"),
    ]  # fmt: skip


def _classification(values: list[str], free: dict[str, Any]) -> dict[str, Any]:
    return {"label": {"enum": values}, "confidence": {"type": "number"}}


def _classification_answer(value: str, rng: random.Random) -> list[Piece]:
    confidence = json.dumps(round(rng.random(), rng.randint(1, 4)))
    return [
        ("structure", '{"label":'), *_string("enum", value),
        ("structure", ',"confidence":'), ("number", confidence), ("structure", "}"),
    ]  # fmt: skip


def _entity_link(values: list[str], free: dict[str, Any]) -> dict[str, Any]:
    return {"mention": free, "offset": {"type": "integer", "minimum": 0}, "entity": {"enum": values}}


def _entity_link_answer(value: str, rng: random.Random) -> list[Piece]:
    mention = value.split(" ")[rng.randint(0, 1)]
    return [
        ("structure", '{"mention":'), *_string("free string", mention),
        ("structure", ',"offset":'), ("number", str(rng.randrange(10 ** rng.randint(1, 5)))),
        ("structure", ',"entity":'), *_string("enum", value), ("structure", "}"),
    ]  # fmt: skip


_labels = _combinations(_AREAS, _TOPICS, _KINDS, text=lambda area, topic, kind: f"{area} > {topic} > {kind}")
_entities = _combinations(_GIVEN, _FAMILY, _FIELDS, text=lambda given, family, field: f"{given} {family} ({field})")
CASES = {
    case.name: case
    for case in (
        Case("tool calling", (10, 100, 1_000, 50_000), tool_names, _tool_call, _tool_call_answer),
        Case("classification", (10, 100, 500), _labels, _classification, _classification_answer),
        Case("entity linking", (10, 100, 5_000, 50_000), _entities, _entity_link, _entity_link_answer),
    )
}
