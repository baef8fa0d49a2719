"""Constraints of each kind, and what is an answer to each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date
from typing import Any

from ..sets import CODES, TOOLS

EVENT = {
    "type": "object",
    "properties": {"tool": {"x-trieauto-set": "tools"}, "code": {"enum": CODES}},
    "required": ["tool", "code"],
}


def is_event(text: str) -> bool:
    """Whether a text is an answer to ``EVENT``."""
    value = json.loads(text)
    return value.keys() == {"tool", "code"} and value["tool"] in TOOLS and value["code"] in CODES


KINDS: dict[str, tuple[Any, Callable[[str], Any]]] = {
    "values": (TOOLS, TOOLS.__contains__),
    "values with prefixes": ({"values": ["yes", "yes, sir", "no"]}, ["yes", "yes, sir", "no"].__contains__),
    "values as text": (json.dumps(CODES), CODES.__contains__),
    "set": ({"set": "tools"}, TOOLS.__contains__),
    "set as text": ("*set:codes", CODES.__contains__),
    "regex": ({"regex": r"(\w{2,5} ){2,6}end|stop"}, re.compile(r"(\w{2,5} ){2,6}end|stop", re.ASCII).fullmatch),
    "format": ({"format": "date"}, date.fromisoformat),
    "json_schema": ({"json_schema": EVENT}, is_event),
    "json_schema as text": (json.dumps({"json_schema": {"enum": ["a", 1, None]}}), ['"a"', "1", "null"].__contains__),
    "ebnf": ({"ebnf": 'root ::= ("red" | "green") " ball"'}, ["red ball", "green ball"].__contains__),
}
