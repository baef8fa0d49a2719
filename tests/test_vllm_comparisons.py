"""How the figures of the vLLM benchmark's slices are put together."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "benchmarks"))
from report import Report
from vllm_comparisons import add_comparisons, merged


def line(way: str, who: str, median: float | None, num_valid: int = 64) -> dict[str, Any]:
    timing = None if median is None else {"median": median}
    note = f"a request; 9 requests/s, 5.00 tokens each, {num_valid} of 64 valid"
    return {"section": f"random, {way}", "case": "K=1,000", "who": who, "timing": timing, "note": note}


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
            line("guidance", "choice, batch 1", 0.1, num_valid=63),  # it gave up on one
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
