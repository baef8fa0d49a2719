"""The reachability paper's experiments 1 to 3 as the example program runs them: every answer is whole under a budget
that is enough, one that is not is refused, and the paper's baseline fails now and then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[1] / "examples" / "benchmarks" / "reachability.py"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """All lines of a small run, which must find every guarantee held."""
    path = tmp_path_factory.mktemp("reachability") / "lines.json"
    arguments = ["--quick", "--experiments", "1", "2", "3", "--json", str(path), "--results", str(path.parent)]
    outcome = subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    claims = json.loads((path.parent / "reachability.json").read_text(encoding="utf-8"))["claims"]
    verdicts = {claim["where"]: claim["verdict"] for claim in claims}
    assert [verdicts[f"Experiment {number}"] for number in (1, 2, 3)] == ["holds"] * 3
    written: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["lines"]
    return written


def rates(lines: list[dict[str, Any]], experiment: int, method: str) -> dict[str, float]:
    """Per cent by budget."""
    return {
        line["case"]: line["number"]
        for line in lines
        if line["section"][0] == str(experiment) and line["who"] == method
    }


def test_every_answer_is_whole_within_its_budget(lines: list[dict[str, Any]]) -> None:
    assert rates(lines, 1, "trieauto, budget: goal reached") == {"T=8": 100}
    assert rates(lines, 1, "trieauto, budget: trap entered") == {"T=8": 0}
    assert rates(lines, 2, "trieauto, budget") == dict.fromkeys(["T=4", "T=6", "T=8", "T=12", "T=16"], 100)
    assert rates(lines, 3, "trieauto, budget") == dict.fromkeys(["T=3", "T=4", "T=8"], 100)


def test_budgets_that_are_not_enough_are_refused_and_say_what_is(lines: list[dict[str, Any]]) -> None:
    refusals = [line for line in lines if "refused" in line["who"]]
    assert [(line["section"][0], line["case"], line["number"]) for line in refusals] == [
        ("1", "T=2", 100),
        ("2", "T=0", 100),
        ("3", "T=2", 100),
    ]
    for line, needed, given in zip(refusals, (3, 1, 3), (2, 0, 2), strict=True):
        assert line["note"].startswith(f"BudgetError: {needed} token")
        assert f"the budget is {given}" in line["note"]


def test_the_baselines_fail_where_the_paper_says_so(lines: list[dict[str, Any]]) -> None:
    assert 40 < rates(lines, 1, "forward-only: goal reached")["T=8"] < 60
    assert 40 < rates(lines, 1, "forward-only: trap entered")["T=8"] < 60
    for experiment in (2, 3):
        assert all(0 < rate < 100 for rate in rates(lines, experiment, "forward-only").values())
        assert all(rate < 20 for rate in rates(lines, experiment, "vanilla").values())


def test_the_program_fails_if_a_guarantee_does_not_hold() -> None:
    """A matcher that forgets its budget is found out."""
    script = (
        f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r})\n"
        "import reach_methods, reachability\n"
        "reach_methods.METHODS[reach_methods.OURS] = reach_methods.ForwardOnly\n"
        "sys.exit(reachability.main(['--quick', '--experiments', '3']))\n"
    )
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert outcome.returncode == 1, outcome.stderr
    assert "FAILED" in outcome.stdout
