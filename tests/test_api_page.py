"""The page of the API is up to date, and everything public is documented: names, parameters, fields, methods."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import trieauto

from . import api_objects
from .api_objects import GROUPS, MODULES, Public, everything, of_module
from .api_page import PAGE, item_name, page, rendered
from .pages import anchors, links

EVERYTHING = everything()
WORDS = Counter(re.findall(r"\w+", PAGE.read_text("utf-8")))


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m tests.api_page > trieauto/API.md"


def test_every_public_name_of_the_package_is_on_it() -> None:
    names = [name for group in GROUPS.values() for name in group]
    errors = [it.definition.name for it in of_module("trieauto.errors")]
    assert sorted([*names, *errors, "errors"]) == sorted({*trieauto.__all__, "ValueFileError"})


def test_headings_differ() -> None:
    assert len(anchors(PAGE)) == len(set(anchors(PAGE)))
    assert len(links(PAGE)) > len(anchors(PAGE))  # that they lead somewhere is tested with all other pages


@pytest.mark.parametrize("it", EVERYTHING, ids=lambda it: it.name)
def test_the_page_leaves_nothing_out(it: Public) -> None:
    docstrings = [it.definition.docstring] + ([it.init.docstring] if it.has_constructor else [])
    shown = words("\n".join(line for found in docstrings for line in rendered(found)))
    assert set(shown - words(it.docstring)) <= {"Arguments", "python"}
    assert set(words(it.docstring) - shown) <= {"Args"}
    assert shown <= WORDS


@pytest.mark.parametrize("shown", MODULES)
def test_modules_say_what_they_are_for(shown: str) -> None:
    assert api_objects.module(MODULES[shown]).docstring is not None
    assert of_module(shown)


@pytest.mark.parametrize("it", EVERYTHING, ids=lambda it: it.name)
def test_everything_is_documented(it: Public) -> None:
    first = it.docstring.partition("\n\n")[0]
    assert re.search(r"[.:)]$|:\n", first), f"{it.name}: no sentence: {first!r}"
    for parameter in it.parameters:
        assert is_mentioned(parameter.name, it.docstring), f"{it.name} does not say what {parameter.name} is"
    for name in it.fields:
        assert name in items(it, "attributes"), f"{it.name} does not say what its {name} is"
    known = {parameter.name for parameter in it.parameters}
    for name in items(it, "parameters"):
        assert name in known, f"{it.name} says something of {name}, which it does not take"


@pytest.mark.parametrize("it", EVERYTHING, ids=lambda it: it.name)
def test_errors_that_are_raised_are_named(it: Public) -> None:
    """Those that a function raises in its own body. (Those of what it calls are for people to see to.)"""
    if not it.definition.is_function:
        return
    raised = set(re.findall(r"raise ([A-Z]\w*Error)\(", it.definition.source))
    assert raised <= set(re.findall(r"\w+Error", it.docstring)), f"{it.name} raises {raised}"


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text))


def is_mentioned(name: str, docstring: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", docstring) is not None


def items(it: Public, kind: str) -> list[str]:
    """The names in a section of a docstring."""
    docstrings = [it.definition.docstring] + ([it.init.docstring] if it.has_constructor else [])
    sections = [
        section for found in docstrings if found is not None for section in found.parse("google", warnings=False)
    ]
    names = [item_name(item) for section in sections if section.kind.value == kind for item in section.value]
    return [name.strip() for listed in names for name in listed.split(",")]
