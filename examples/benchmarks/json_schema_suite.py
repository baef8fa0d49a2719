"""The official JSON Schema Test Suite, run: what was right, what is outside of the declared subset, what was refused.

    python examples/benchmarks/json_schema_suite.py               by draft and file, with max_depth=3
    python examples/benchmarks/json_schema_suite.py --max-depth 0  without max_depth

The suite is read from ``share/json-schema-test-suite`` of the running Python's environment, where
``bash tests/json_schema_suite.sh PYTHON`` puts it, or from the folder named by ``--suite``. Needs
``pip install "trieauto[json-schema]"``.

A group of the suite is one schema and several values, each said to be valid or not. Its schema becomes an automaton, or
is empty (an automaton of no text), or is refused by ``UnsupportedError``; any other exception ends the program. Then

- a value that is not valid must not be accepted, however it is spelled;
- a valid one must be accepted as compact JSON, with its properties as given and in the order in which they are
  declared, or be outside of what ``json_schema`` says that it generates. That is decided by the package jsonschema
  with narrower rules for some keywords (``narrow_validator``), which knows nothing of automata.

Everything else is wrong, is printed, and makes the program exit with 1.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from trieauto.automaton import Automaton
from trieauto.errors import EmptyConstraintError, UnsupportedError
from trieauto.json_schemas import json_schema

SUITE = Path(sys.prefix) / "share" / "json-schema-test-suite"
DRAFTS = {
    "draft6": jsonschema.Draft6Validator,
    "draft7": jsonschema.Draft7Validator,
    "draft2019-09": jsonschema.Draft201909Validator,
    "draft2020-12": jsonschema.Draft202012Validator,
}
LEFT_OUT = {
    "draft7/optional/content.json": "takes contentEncoding and contentMediaType for assertions; they are annotations"
}
"""Files that ask for what trieauto has declared not to do. Of format, ``optional/format`` asks; it is then exact."""


@dataclass
class Group:
    """One schema of the suite, and values."""

    file: str
    name: str
    schema: dict[str, Any] | bool
    cases: list[dict[str, Any]]

    @property
    def draft(self) -> str:
        return self.file.partition("/")[0]

    @property
    def formats(self) -> str:
        return "exact" if "/optional/format/" in self.file else "annotation"


@dataclass
class Outcome:
    """What became of a group: "built", "empty" or "refused"; its cases counted; and what went wrong."""

    kind: str
    automaton: Automaton | None = None
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def groups(suite: Path = SUITE) -> Iterator[Group]:
    """All groups of the drafts that trieauto knows, each schema with its ``$schema``.

    Raises:
        FileNotFoundError: no suite there.
    """
    if not (suite / "tests").is_dir():
        raise FileNotFoundError(
            f"no JSON Schema Test Suite in {suite}: bash tests/json_schema_suite.sh {sys.executable}"
        )
    for draft, cls in DRAFTS.items():
        for path in sorted((suite / "tests" / draft).rglob("*.json")):
            file = path.relative_to(suite / "tests").as_posix()
            if file in LEFT_OUT:
                continue
            for group in json.loads(path.read_text(encoding="utf-8")):
                schema = group["schema"]
                if isinstance(schema, dict):
                    schema = {"$schema": cls.META_SCHEMA["$schema"], **schema}
                yield Group(file, group["description"], schema, group["tests"])


def run(group: Group, options: Mapping[str, Any]) -> Outcome:
    """Build the group's automaton and ask it for all cases."""
    try:
        automaton = json_schema(group.schema, formats=group.formats, **options)  # type: ignore[arg-type]
    except UnsupportedError:
        return Outcome("refused")
    except EmptyConstraintError:
        automaton = None
    outcome = Outcome("empty" if automaton is None else "built", automaton)
    order = _declared_names(group.schema)
    for case in group.cases:
        instances = [case["data"], _in_order(case["data"], order)]
        accepted = [
            any(automaton is not None and automaton.accepts(text) for text in _spellings(instance, options))
            for instance in instances
        ]
        if not case["valid"]:
            verdict = "wrong" if any(accepted) else "passed"
        elif any(
            not ok and is_in_subset(group, instance, options) for ok, instance in zip(accepted, instances, strict=True)
        ):
            verdict = "wrong"
        else:
            verdict = "passed" if any(accepted) else "outside"
        outcome.counts[verdict] += 1
        if verdict == "wrong":
            outcome.wrong.append(
                f"{group.file}: {group.name}: {case['description']}: {json.dumps(group.schema)} "
                f"{'rejects' if case['valid'] else 'accepts'} {json.dumps(case['data'])} ({options})"
            )
    return outcome


# Spellings


def _spellings(instance: Any, options: Mapping[str, Any]) -> list[str]:
    """The compact text, and where options allow it or nothing else says what a value is, another; those with UTF-8."""
    texts = [json.dumps(instance, separators=(",", ":"), ensure_ascii=False)]
    if options.get("escapes") == "any":
        texts.append(json.dumps(instance, separators=(",", ":")))
    if options.get("whitespace", 0) > 0:
        texts.append(json.dumps(instance, ensure_ascii=False))
    return [text for text in texts if _has_utf8(text)]


def _has_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _declared_names(schema: Any) -> list[str]:
    """The names of all properties that a schema speaks of, declared ones first and as declared."""
    declared: list[str] = []
    required: list[str] = []

    def look(part: Any) -> None:
        if isinstance(part, dict):
            if isinstance(part.get("properties"), dict):
                declared.extend(part["properties"])
            if isinstance(part.get("required"), list):
                required.extend(part["required"])
            for value in part.values():
                look(value)
        elif isinstance(part, list):
            for value in part:
                look(value)

    look(schema)
    return list(dict.fromkeys(name for name in [*declared, *required] if isinstance(name, str)))


def _in_order(instance: Any, names: list[str]) -> Any:
    """A value with its properties in the order of ``names``, then the others."""
    if isinstance(instance, dict):
        first = [name for name in names if name in instance]
        return {name: _in_order(instance[name], names) for name in dict.fromkeys([*first, *instance])}
    return [_in_order(item, names) for item in instance] if isinstance(instance, list) else instance


# The declared subset


def is_in_subset(group: Group, instance: Any, options: Mapping[str, Any]) -> bool:
    """Whether a valid value is one that ``json_schema`` says it generates as compact text."""
    max_depth = options.get("max_depth")
    has_references = '"$ref"' in json.dumps(group.schema)
    if max_depth is not None and _depth(instance) + has_references > max_depth:
        return False  # levels of what the schema leaves open, and of references inside themselves
    text = json.dumps(instance, ensure_ascii=False)
    if not _has_utf8(text):
        return False
    if max(map(len, re.findall(r"[0-9]+", text)), default=0) > options.get("max_digits", len(text)):
        return False
    return bool(narrow_validator(group.draft, group.formats)(group.schema).is_valid(instance))


def _depth(instance: Any) -> int:
    if not isinstance(instance, (dict, list)):
        return 0
    return 1 + max(map(_depth, instance.values() if isinstance(instance, dict) else instance), default=0)


@cache
def narrow_validator(draft: str, formats: str) -> Any:
    """The validator of a draft that also asks for what the docstring of ``json_schema`` says of the declared subset."""
    cls = DRAFTS[draft]
    narrower = {keyword: _both(cls.VALIDATORS[keyword], rule) for keyword, rule in _NARROWER.items()}
    if formats == "annotation":
        del narrower["format"]
    return jsonschema.validators.extend(cls, narrower)


def _both(original: Any, rule: Any) -> Any:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        yield from original(validator, value, instance, schema) or ()
        if not rule(value, instance, schema):
            yield jsonschema.ValidationError("outside of the declared subset")

    return check


def _keeps_names(properties: dict[str, Any], instance: Any, schema: dict[str, Any]) -> bool:
    """Declared properties in their order, then required ones, then others only where additionalProperties says so."""
    if not isinstance(instance, dict):
        return True
    known = list(dict.fromkeys([*properties, *schema.get("required", ())]))
    others = [name for name in instance if name not in known]
    in_order = [name for name in known if name in instance] + others
    return list(instance) == in_order and (not others or "additionalProperties" in schema)


def _is_plain_integer(types: Any, instance: Any, schema: Any) -> bool:
    kinds = [types] if isinstance(types, str) else types
    return not isinstance(instance, float) or "integer" not in kinds or "number" in kinds


def _is_spelled_as_given(values: Any, instance: Any, schema: Any) -> bool:
    return json.dumps(instance) in [json.dumps(value) for value in values]


def _has_no_exponent(bound: Any, instance: Any, schema: Any) -> bool:
    text = json.dumps(instance)
    return not isinstance(instance, float) or ("e" not in text and text != "-0.0")


def _matches(pattern: str, instance: Any, schema: Any) -> bool:
    """Both by ASCII's classes and by Unicode's; where there are spaces beside a complement, no U+FEFF."""
    if not isinstance(instance, str):
        return True
    if not re.search(r"\[\^|\\[DWS]", pattern):
        return re.search(pattern, instance, re.ASCII) is not None
    return all(re.search(pattern, instance, flags) for flags in (0, re.ASCII)) and "\ufeff" not in instance


def _is_plain_format(name: str, instance: Any, schema: Any) -> bool:
    """No leap seconds nor small letters in times, no quoted names nor addresses in brackets in e-mail addresses."""
    if not isinstance(instance, str):
        return True
    if name in ("time", "date-time"):
        return ":60" not in instance and instance == instance.upper()
    return name != "email" or not re.search(r'["\[]', instance)


_NARROWER: dict[str, Any] = {
    "properties": _keeps_names,
    "type": _is_plain_integer,
    "enum": _is_spelled_as_given,
    "const": lambda value, instance, schema: _is_spelled_as_given([value], instance, schema),
    "pattern": _matches,
    "format": _is_plain_format,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _has_no_exponent),
}

# The table

COLUMNS = ("groups", "built", "empty", "refused", "passed", "outside", "wrong")


def totals(outcomes: list[Outcome]) -> dict[str, int]:
    """Groups by what became of them, and cases of those that were not refused by verdict."""
    counts = Counter(outcome.kind for outcome in outcomes)
    for outcome in outcomes:
        counts.update(outcome.counts)
    return {column: len(outcomes) if column == "groups" else counts[column] for column in COLUMNS}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=Path, default=SUITE, help="folder of the suite, with tests/ in it")
    parser.add_argument("--max-depth", type=int, default=3, help="as json_schema takes it; 0: none")
    arguments = parser.parse_args()
    options = {"max_depth": arguments.max_depth} if arguments.max_depth else {}
    by_file: dict[str, list[Outcome]] = {}
    for group in groups(arguments.suite):
        by_file.setdefault(group.file, []).append(run(group, options))
    width = max(map(len, by_file))
    print(" " * width, *(f"{column:>8}" for column in COLUMNS))
    drafts: dict[str, list[Outcome]] = {}
    for file, outcomes in by_file.items():
        drafts.setdefault(file.partition("/")[0], []).extend(outcomes)
        _print_row(file, outcomes, width)
    everything = [outcome for outcomes in drafts.values() for outcome in outcomes]
    print()
    for draft, outcomes in drafts.items():
        _print_row(draft, outcomes, width)
    _print_row("all", everything, width)
    for file, reason in LEFT_OUT.items():
        print(f"left out: {file}, which {reason}")
    wrong = [line for outcome in everything for line in outcome.wrong]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


def _print_row(name: str, outcomes: list[Outcome], width: int) -> None:
    print(f"{name:<{width}}", *(f"{number:>8,}" for number in totals(outcomes).values()))


if __name__ == "__main__":
    sys.exit(main())
