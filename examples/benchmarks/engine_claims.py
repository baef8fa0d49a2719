"""What the claims about serving engines share: rates by model and batch, read off a run's lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lines import JsonLine
from wording import three_digits

MODELS = {"random": "one random layer, 151,646 tokens", "smollm2": "SmolLM2-135M, 49,152 tokens"}
"""The models of the engines' benchmarks, in words."""


def tokens_each(line: JsonLine) -> float | None:
    """The tokens of an answer, as its note has it."""
    found = re.search(r"([\d.]+) tokens each", line["note"])
    return float(found[1]) if found else None


def share_valid(line: JsonLine) -> float | None:
    """Per cent of the answers served that are in the set."""
    found = re.search(r"(\d+) of (\d+) valid", line["note"])
    return 100 * int(found[1]) / int(found[2]) if found and int(found[2]) else None


def rates(found: Sequence[float | None]) -> str:
    """As in "219 / 7.5 / –", requests a second."""
    return " / ".join("–" if rate is None else three_digits(rate) for rate in found)
