"""The benchmark of mixed schemas runs: engines that have the same language are measured, and others are found out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[1] / "examples" / "benchmarks" / "mixed_schemas.py"
TINY = ["--counts", "12", "--rounds", "1", "--documents", "2"]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The lines of a tiny run without those about memory, by section."""
    path = tmp_path_factory.mktemp("mixed") / "lines.json"
    arguments = ["--quick", *TINY, "--rows", "language", "first-mask", "steps", "--json", str(path)]
    arguments += ["--results", str(path.parent)]
    outcome = subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    claims = json.loads((path.parent / "mixed_schemas.json").read_text(encoding="utf-8"))["claims"]
    assert [claim["where"] for claim in claims] == ["Section 4.3"]  # the others are about larger enums
    result = defaultdict(list)
    for line in json.loads(path.read_text(encoding="utf-8"))["lines"]:
        result[line["section"]].append(line)
    return result


@pytest.mark.parametrize("case", ["tool calling", "classification", "entity linking"])
def test_every_engine_is_measured_in_every_field(lines: dict[str, list[dict[str, Any]]], case: str) -> None:
    language, start, steps = (lines[title] for title in lines if title.startswith(f"{case} 12:"))
    assert language[0]["number"] > 1_000  # masks that were compared
    starts = {(line["case"], line["who"]): line["timing"] for line in start}
    engines = {who for _, who in starts}
    assert {"trieauto", "XGrammar", "LLGuidance"} < engines
    for who in engines:
        assert starts["compile", who]["median"] > 0
        assert starts["to the first mask", who]["median"] > 0
    phases = {line["case"] for line in steps}
    assert phases == {"structure", "enum", "number"} | ({"free string"} if case != "classification" else set())
    assert len(steps) == len(phases) * len({line["who"] for line in steps})


def test_memory_is_that_of_a_process_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "lines.json"
    arguments = ["--quick", *TINY, "--cases", "tool calling", "--rows", "memory", "--json", str(path)]
    outcome = subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    numbers = {line["who"]: line["number"] for line in json.loads(path.read_text(encoding="utf-8"))["lines"]}
    assert 0 < numbers["trieauto"] < 1  # MB
    assert 0 < numbers["XGrammar"] < 1


def test_the_program_fails_if_languages_differ() -> None:
    """XGrammar with spaces where it likes writes other texts."""
    script = (
        f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r})\n"
        "import mixed_engines, mixed_schemas\n"
        "def compile(self, form, source):\n"
        "    return self.compiler().compile_json_schema(source)\n"
        "mixed_engines.MixedXGrammar.compile = compile\n"
        f"sys.exit(mixed_schemas.main([*{TINY!r}, '--cases', 'classification', '--rows', 'language']))\n"
    )
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert outcome.returncode == 1, outcome.stderr
    assert "FAILED: classification 12" in outcome.stdout
    assert "only XGrammar allows" in outcome.stdout
