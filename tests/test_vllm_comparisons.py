"""How the figures of the vLLM benchmark's slices are put together."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "benchmarks"))
from report import Report
from vllm_comparisons import add_comparisons, merged


def line(way: str, who: str, median: float | None, case: str = "K=1,000", model: str = "random") -> dict[str, Any]:
    timing = None if median is None else {"median": median}
    return {"section": f"{model}, {way}", "case": case, "who": who, "timing": timing}


def test_a_slice_replaces_what_it_measures_again() -> None:
    old = [line("backend", "choice, batch 1", 1.0), line("guidance", "choice, batch 1", 2.0)]
    found = merged(old, [line("backend", "choice, batch 1", 3.0), line("backend", "choice, batch 16", 4.0)])
    assert [(one["section"], one["timing"]["median"]) for one in found] == [
        ("random, backend", 3.0),
        ("random, guidance", 2.0),
        ("random, backend", 4.0),
    ]


def test_ours_is_compared_with_the_best_of_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    add_comparisons(
        report,
        [
            line("xgrammar", "choice, batch 64", 6.0),
            line("guidance", "choice, batch 64", 4.0),
            line("backend", "choice, batch 64", 1.0),
            line("backend", "set, batch 64", 2.0),
            line("processor", "choice, batch 64", None),  # left out
            line("backend", "choice, batch 16", 1.0),  # nothing to compare with
            line("xgrammar", "choice, batch 1", 6.0),
            line("backend", "choice, batch 1", 3.0),
        ],
    )
    assert [(one.who, one.ratio, one.met, one.note) for one in report.lines] == [
        ("backend, choice, batch 64", 4.0, True, "over guidance"),
        ("backend, set, batch 64", 2.0, False, "over guidance"),
        ("backend, choice, batch 1", 2.0, None, "over xgrammar"),
    ]
