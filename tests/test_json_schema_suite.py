"""The official JSON Schema Test Suite: nothing wrong, and as much of it right as the README says."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import regex

from .json_suite import DRAFTS, Group, groups, run, totals
from .test_json_schema import Walker

NUM_WALKS = 30

COLUMNS = ("groups", "built", "empty", "refused", "passed", "outside", "wrong")
TOTALS = {
    "default": (1449, 280, 24, 1145, 965, 69, 0),
    "max_depth=3": (1449, 737, 24, 688, 3285, 128, 0),
    "many spellings": (1449, 709, 24, 716, 3185, 116, 0),
}
"""Of groups, how many there are, have an automaton, have no value, are refused; of the cases of those that are not
refused, how many are right, valid but outside of the declared subset, wrong."""
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "max_depth=3": {"max_depth": 3},
    "many spellings": {"max_depth": 3, "escapes": "any", "whitespace": 1},
}


@pytest.fixture(scope="module")
def suite() -> list[Group]:
    return list(groups())


@pytest.mark.parametrize("name", OPTIONS)
def test_nothing_is_wrong(name: str, suite: list[Group]) -> None:
    """Whatever is refused is refused as not supported; the counts are published."""
    outcomes = [run(group, OPTIONS[name]) for group in suite]
    assert [line for outcome in outcomes for line in outcome.wrong] == []
    assert totals(outcomes) == dict(zip(COLUMNS, TOTALS[name], strict=True))


def found(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    # The suite has \p{...}, which re does not know.
    if isinstance(instance, str) and not (regex if r"\p" in pattern else re).search(pattern, instance):
        yield jsonschema.ValidationError(pattern)


@pytest.mark.parametrize("draft", DRAFTS)
def test_random_walks_are_valid(draft: str, suite: list[Group]) -> None:
    cls = jsonschema.validators.extend(DRAFTS[draft], {"pattern": found})
    rng = random.Random(0)
    for group in suite:
        if group.draft != draft or (automaton := run(group, OPTIONS["max_depth=3"]).automaton) is None:
            continue
        checker = cls.FORMAT_CHECKER if group.formats == "exact" else None
        validator = cls(group.schema, format_checker=checker)
        for text in Walker(automaton).texts(NUM_WALKS, rng):
            assert validator.is_valid(json.loads(text)), (group, text)
