"""The programs that judge the papers' claims: small runs of them, and verdicts on figures that are made up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "benchmarks"))
import accuracy_claims
import choices_claims
import device_claims
import hf_claims
import mixed_claims
import reach_claims
import scale_claims
import sglang_claims
import sharing_claims
import vllm_claims
from lines import Lines, Subject
from results import DIRECTORY, Claim

SUBJECTS = [
    module.SUBJECT
    for module in (
        *(accuracy_claims, choices_claims, device_claims, hf_claims, mixed_claims),
        *(reach_claims, scale_claims, sglang_claims, sharing_claims, vllm_claims),
    )
]


def run(program: str, directory: Path, *arguments: str) -> dict[str, Any]:
    """What a program leaves in the directory."""
    command = [sys.executable, str(DIRECTORY.parent / f"{program}.py"), *arguments, "--results", str(directory)]
    outcome = subprocess.run(command, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    document: dict[str, Any] = json.loads((directory / f"{program}.json").read_text("utf-8"))
    return document


def line(section: str, case: str, who: str, median: float | None = None, **more: Any) -> dict[str, Any]:
    timing = None if median is None else {"median": median, "low": median, "high": median, "rounds": 3}
    empty = {"section": section, "case": case, "who": who, "timing": timing, "number": None, "ratio": None, "note": ""}
    return empty | more


def verdicts(subject: Subject, lines: list[dict[str, Any]]) -> dict[str, str]:
    return {claim.where: claim.verdict for claim in subject.claims(Lines(lines))}


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.program)
def test_a_run_that_measured_nothing_claims_nothing(subject: Subject) -> None:
    assert subject.claims(Lines([])) == []
    assert (DIRECTORY.parent / f"{subject.program}.py").exists()


def test_what_can_be_followed_by_hand(tmp_path: Path) -> None:
    document = run("by_hand", tmp_path, "--quick")
    example, groups = (Claim(**claim) for claim in document["claims"])
    assert example.measured == "44 characters, 29 nodes; the same masks, and ing after medical_cod"
    assert groups.where == "Proposition 2"
    assert groups.verdict != "does not hold"


def test_what_sharing_prefixes_saves(tmp_path: Path) -> None:
    document = run("sharing", tmp_path, "--quick")
    lines = Lines(document["figures"]["lines"])
    ratios = [line["number"] for line in lines.some("How much is shared")]
    assert 1 > ratios[0] > ratios[1] > ratios[2] > 0.1
    assert [claim["where"] for claim in document["claims"]] == ["Appendix H.7, compile time"]  # no peer was measured


def test_whole_answers_in_hugging_face(tmp_path: Path) -> None:
    small = ("--counts", "10", "--rounds", "1", "--threads", "1", "--max-tokens", "8")
    names = ("trieauto", "XGrammar", "LLGuidance")
    document = run("hf_latency", tmp_path, *small, "--ways", *names)
    lines = Lines(document["figures"]["lines"])
    for name in names:
        whole = lines.seconds("Whole answers", "K=10", name)
        assert whole > lines.seconds("Whole answers", "K=10", f"{name}: compiling") > 0
    assert lines.one("Whole answers", "K=10", "trieauto")["note"].endswith("1 of 1 valid")
    assert lines.seconds("Whole answers", "K=10", hf_claims.FREE) > 0
    assert lines.number("Four tokens at most", "K=10", "trieauto") == 100
    found = [Claim(**claim) for claim in document["claims"]]
    assert [(claim.paper, claim.where) for claim in found] == [("reachability", "Section 1")]


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"), [(0.7, 5.0, "holds"), (0.7, 1.0, "in part"), (0.7, 0.5, "does not hold")]
)
def test_answers_by_size_are_compared(ours: float, theirs: float, verdict: str) -> None:
    lines = [
        line("Whole answers: x", f"K={count:,}", who, seconds)
        for count in (10, 10_000)
        for who, seconds in (("trieauto", ours), ("XGrammar", theirs if count == 10_000 else ours))
    ]
    assert verdicts(hf_claims.SUBJECT, lines) == {"Table 8": verdict, "Table 8, small sets": "does not hold"}


def test_masks_on_the_device(tmp_path: Path) -> None:
    document = run("device_masks", tmp_path, "--counts", "50", "--batches", "2")
    assert {claim["where"] for claim in document["claims"]} == {"Appendix H.6"}
    compact = next(claim for claim in document["claims"] if "compact" in claim["says"])
    assert compact["verdict"] == "in part"  # the paper speaks of K=100,000


@pytest.mark.parametrize(("factor", "verdict"), [(300.0, "holds"), (30.0, "in part"), (2.0, "does not hold")])
def test_orders_of_magnitude_are_counted(factor: float, verdict: str) -> None:
    lines = [
        line("Set to first mask (x)", f"K={count:,}", who, seconds)
        for count in (1_000, 10_000)
        for who, seconds in (("trieauto", 0.001), ("XGrammar (EBNF)", 0.001 * factor))
    ]
    found = verdicts(choices_claims.SUBJECT, lines)
    assert found == {"Appendix H.12, K > 1,000": verdict, "Appendix H.12, K > 5,000": "does not hold"}


@pytest.mark.parametrize(("updated", "verdict"), [(0.01, "does not hold"), (0.1, "holds")])
def test_updates_are_compared_with_compiling_anew(updated: float, verdict: str) -> None:
    section = "tools: 100,000 values"
    lines = [
        line(section, "set to first mask", "trieauto", 0.1),
        line(section, "memory", "without the strings", number=7.0),
        line(section, "step", "mask and token", 1e-6),
        line(section, "updates", "compiled anew", 0.1),
        line(section, "updates", "100 in, 100 out", updated),
    ]
    found = verdicts(scale_claims.SUBJECT, lines)
    assert found == {"Section 4.3, K > 50,000": "does not hold", "Appendix E, updates": verdict}


def test_answers_that_are_not_valid_are_no_rate(capsys: pytest.CaptureFixture[str]) -> None:
    def cell(backend: str, rate: float, valid: int) -> dict[str, Any]:
        note = f"5.00 tokens each, {valid} of 64 valid, 0 refused"
        who = "32 tokens at most, 16 at once"
        return line(f"random, {backend}", "K=1,000", who, number=rate, unit="requests/s", note=note)

    lines = [cell("trie", 300.0, 64), cell("xgrammar", 100.0, 64), cell("llguidance", 900.0, 60)]
    (claim,) = sglang_claims.SUBJECT.claims(Lines(lines))
    assert claim.measured == "random, K=1,000: 300 / 100 / –"
    assert claim.verdict == "holds"
    assert "no claim of new_sets" in capsys.readouterr().err
