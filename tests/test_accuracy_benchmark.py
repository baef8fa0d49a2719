"""The benchmark of accuracy runs on a small set of its own, and fails if an answer under a constraint is not valid."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[1] / "examples" / "benchmarks" / "accuracy.py"
LABELS = ["LOC:city", "LOC:country", "HUM:ind", "NUM:date", "NUM:count", "DESC:def"]
EXAMPLES = [("Where is Lima ?", "LOC:city"), ("Who was Galileo ?", "HUM:ind"), ("When was it ?", "NUM:date")]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data")
    place = directory / "trec_fine"
    place.mkdir()
    (place / "labels.txt").write_text("\n".join([*LABELS, "ENTY:never"]), "utf-8")
    (place / "labels_test_only.txt").write_text("\n".join(LABELS) + "\n", "utf-8")
    lines = [json.dumps({"text": text, "label": label}) for text, label in EXAMPLES]
    (place / "test.jsonl").write_text("\n".join(lines), "utf-8")
    return directory


def small(data: Path) -> list[str]:
    return [
        *("--data", str(data), "--samples", "2", "--sets", "TREC", "--threads", "1"),
        *("--retries", "1", "--thinking-tokens", "4", "--parts", "arms", "thinking", "strategies"),
    ]


def test_every_arm_and_strategy_is_measured(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "lines.json"
    outcome = subprocess.run(
        [sys.executable, str(PROGRAM), *small(data), "--json", str(path), "--results", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    claims = json.loads((tmp_path / "accuracy.json").read_text("utf-8"))["claims"]
    assert {claim["where"].split(",")[0] for claim in claims} == {
        *("Table 6", "Appendix C.1", "Appendix H.9", "Appendix I", "Appendix J")
    }
    lines: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["lines"]
    validity = {line["case"]: line["number"] for line in lines if line["who"] == "validity"}
    for arm in ("PE", "trie strict, any tokens", "trie, any tokens", "think + PE", "think + trie, any tokens"):
        assert 0 <= validity[arm] <= 100
    constrained = [line for line in lines if line["met"] is not None]
    assert len(constrained) >= 3 + 10
    assert all(line["number"] == 100 for line in constrained)
    steps = {line["case"]: line["number"] for line in lines if line["who"] == "steps"}
    assert steps["think + PE"] > steps["PE"] - 32
    assert steps["think + PE, up to 1 retries"] >= steps["think + PE"]
    # Six labels are fewer than twenty: the shortlist is the set.
    assert [line["number"] for line in lines if line["who"] == "Recall@20"] == [100, 100, 100]


def test_the_program_fails_if_an_answer_is_not_valid(data: Path) -> None:
    """A constraint of other values is found out."""
    script = (
        f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r})\n"
        "import accuracy, accuracy_arms\n"
        "own = accuracy_arms.constraint_of\n"
        "accuracy_arms.constraint_of = lambda subject, values, how: own(subject, ['pizza', 'pasta'], how)\n"
        f"sys.exit(accuracy.main([*{small(data)[:-3]!r}, 'arms']))\n"
    )
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    assert "FAILED" in outcome.stdout
