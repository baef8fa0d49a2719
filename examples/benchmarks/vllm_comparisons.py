"""Ours beside the best of vLLM's own backends, of the lines of one run or several."""

from __future__ import annotations

import re
from typing import Any

from report import Report

STOCK = ("xgrammar", "guidance")
OURS = ("backend", "processor")
TARGETS = {
    ("smollm2", "K=1,000"): 1.2,
    ("smollm2", "K=10,000"): 3.0,
    ("random", "K=1,000"): 3.0,
}
"""Requests per second over the best of vLLM's own; with random weights in batches of 64 and more."""


def merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of earlier runs, with those that were measured again replaced."""
    lines = {(line["section"], line["case"], line["who"]): line for line in [*old, *new]}
    return list(lines.values())


def add_comparisons(report: Report, lines: list[dict[str, Any]]) -> None:
    """A line for each cell of ours that one of vLLM's own has, too.

    Cells in which not all answers are in the set, because a backend gave up, are nothing to be compared with.
    """
    seconds: dict[tuple[str, str, str], dict[str, float]] = {}
    for line in lines:
        model, _, way = line["section"].partition(", ")
        form, _, batch = line["who"].partition(", ")
        if line["timing"] is None or way not in STOCK + OURS or not _all_valid(line["note"]):
            continue
        if way in STOCK:
            seconds.setdefault((model, line["case"], batch), {})[way] = line["timing"]["median"]
        else:
            seconds.setdefault((model, line["case"], batch), {})[f"{way}, {form}"] = line["timing"]["median"]
    section = None
    for (model, case, batch), found in seconds.items():
        stock = {way: found[way] for way in STOCK if way in found}
        if not stock:
            continue
        best = min(stock, key=stock.__getitem__)
        for who, of_ours in found.items():
            if who in STOCK:
                continue
            section = section or report.section("Requests per second, over the best of vLLM's own")
            target = TARGETS.get((model, case))
            if model == "random" and batch not in ("batch 64", "batch 256"):
                target = None
            section.add(
                f"{model}, {case}",
                f"{who}, {batch}",
                ratio=stock[best] / of_ours,
                note=f"over {best}",
                **({} if target is None else {"at_least": target}),
            )


def _all_valid(note: str) -> bool:
    found = re.search(r"(\d+) of (\d+) valid", note)
    return found is not None and found[1] == found[2]
