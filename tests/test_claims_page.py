"""The page of the papers' claims: up to date, complete, and made of nothing but what programs left behind."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "benchmarks"))
import paper_places
import vllm_claims
from lines import Lines, MissingLineError, Subject
from not_reproduced import CLAIMS
from page import documents, entries, main, page
from page_text import escaped, figures_table
from results import DIRECTORY, Claim, Paper, Results, Verdict

BENCHMARKS = DIRECTORY.parent
PAPERS: tuple[Paper, ...] = ("trie", "reachability")


def claim(verdict: Verdict = "holds", where: str = "Table 2", **more: Any) -> Claim:
    return Claim("trie", where, "says so", "1 ms", "2 ms", verdict, **more)


def saved(directory: Path, *claims: Claim, program: str = "some_program") -> None:
    Results(program, "something", {"lines": []}, list(claims), {"a.svg": "A plot"}).save(directory)


# The page of this repository


def test_the_page_is_what_the_results_say() -> None:
    assert main(["--check"]) == 0


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_of_the_papers_is_on_the_page(paper: Paper) -> None:
    """Measured by a program, or named with the reason why not."""
    claimed = [entry.claim.where for entry in entries(documents(DIRECTORY)) if entry.claim.paper == paper]
    assert paper_places.missing(paper, claimed) == []
    assert "Not measured yet" not in page()


@pytest.mark.parametrize("run", documents(DIRECTORY), ids=lambda run: run["program"])
def test_claims_and_plots_are_those_that_follow_from_the_figures(run: dict[str, Any], tmp_path: Path) -> None:
    """They can be made again without a run; what the program says now is what is kept."""
    program = run["program"]
    file = DIRECTORY / f"{program}.json"
    importlib.import_module(program).main(["--from-json", str(file), "--results", str(tmp_path)])
    assert json.loads((tmp_path / file.name).read_text("utf-8")) == run
    assert {path.name for path in tmp_path.glob("*.svg")} == run["plots"].keys()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ("", "cannot be read"),
        ("[1]", "holds no results"),
        ("{}", "holds results of no program, not of"),
        ('{"program": "accuracy_of_others"}', "holds results of accuracy_of_others, not of"),
    ],
)
@pytest.mark.parametrize("program", ["batches", "choices"])
def test_figures_of_something_else_are_refused(program: str, content: str | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    if content is not None:
        file.write_text(content, "utf-8")
    with pytest.raises(SystemExit, match=message):
        importlib.import_module(program).main(["--from-json", str(file), "--results", str(tmp_path)])
    assert not list(tmp_path.glob("*.svg"))


def test_every_program_has_a_plot_and_every_plot_is_there() -> None:
    for run in documents(DIRECTORY):
        assert run["plots"], run["program"]
        for name in run["plots"]:
            assert (DIRECTORY / name).exists(), f"{run['program']} has no {name}"


def test_what_is_not_reproduced_says_why_and_of_which_place() -> None:
    for one in CLAIMS:
        assert one.verdict == "not reproduced"
        assert one.comment
        assert paper_places.named(one.paper, one.where), one.where


# How it is made


def test_the_check_fails_if_the_page_was_edited_or_a_result_changed(tmp_path: Path) -> None:
    results, target = tmp_path / "results", tmp_path / "README.md"
    saved(results, claim())
    arguments = ["--results", str(results), "--page", str(target)]
    assert main([*arguments, "--check"]) == 1
    assert main(arguments) == 0
    assert main([*arguments, "--check"]) == 0
    written = target.read_text("utf-8")
    target.write_text(written.replace("2 ms", "1 ms"), "utf-8")
    assert main([*arguments, "--check"]) == 1
    target.write_text(written, "utf-8")
    saved(results, claim("does not hold"))
    assert main([*arguments, "--check"]) == 1


def test_what_does_not_hold_is_counted_and_listed_at_the_top(tmp_path: Path) -> None:
    saved(tmp_path, claim("does not hold"), claim("in part", "Table 4"), claim("holds", "Table 1"))
    text = page(tmp_path)
    others = sum(one.paper == "trie" for one in CLAIMS)
    assert f"| Trie Automata | 1 | 1 | 1 | {others} | {3 + others} |" in text
    top = text.split("\n## ")[1]
    assert top.startswith("In short")
    failed, in_part = top.split("\n### ")[1:]
    assert "Table 2" in failed
    assert "Table 4" in in_part
    assert "Table 1" not in failed + in_part


def test_claims_stand_as_in_the_papers(tmp_path: Path) -> None:
    saved(tmp_path, claim(where="Table 19"), claim(where="Table 2", order=2), claim(where="Tables 2 and 4", order=1))
    saved(tmp_path, claim(where="Figure 1a, Appendix G.7"), claim(where="Appendix H.9"), program="another")
    found = [entry.claim.where for entry in entries(documents(tmp_path)) if entry.program]
    assert found == ["Figure 1a, Appendix G.7", "Tables 2 and 4", "Table 2", "Appendix H.9", "Table 19"]
    headings = [line for line in page(tmp_path).splitlines() if line.startswith("### Table 2")]
    assert len(headings) == 1


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("Tables 2 and 4", ["Table 2", "Table 4"]),
        ("Tables 2, 4, and 18", ["Table 2", "Table 4", "Table 18"]),
        ("Section 5.1, mixed schemas", ["Section 5.1"]),
        ("Appendices I and J", ["Appendix I", "Appendix J"]),
        ("Prop. 1", ["Proposition 1"]),
        ("Appendix H.10, caches; Figure 1b", ["Appendix H.10", "Figure 1b"]),
        ("Table 99", []),
    ],
)
def test_a_claim_may_be_about_several_places(where: str, found: list[str]) -> None:
    assert paper_places.named("trie", where) == found


def test_text_is_shown_as_it_is() -> None:
    assert escaped("~5 <b> | $x & `a|b <c>`\nnext") == "\\~5 &lt;b&gt; \\| \\$x &amp; `a|b <c>` next"


def test_figures_of_a_kind_become_a_table() -> None:
    says, table = figures_table("It is fast (ms: ours / theirs)", "K=10: 1 / 2", "K=10: 3 / 4; K=100: 5 / 6")
    assert says == "It is fast"
    assert table.splitlines() == [
        "| ms | ours | theirs |",
        "| --- | --- | --- |",
        "| paper, K=10 | 1 | 2 |",
        "| here, K=10 | 3 | 4 |",
        "| here, K=100 | 5 | 6 |",
    ]
    assert figures_table("It is fast", "K=10: 1", "K=10: 3; K=100: 5")[1].splitlines()[2:] == [
        "| K=10 | 1 | 3 |",
        "| K=100 | – | 5 |",
    ]
    assert figures_table("It is fast", "1 ms", "K=10: 3; K=100: 5")[1].splitlines()[2:] == [
        "| K=10 | 3 |",
        "| K=100 | 5 |",
    ]
    assert figures_table("It is fast", "1 ms", "2 ms")[1] == ""


@pytest.mark.parametrize(
    "measured",
    [
        "With one: K=10: 3; K=100: 5",  # figures of two kinds
        "K=10: 3; K=100: 5. Then: 7",
        "K=10: 3; K=10: 5",  # one would be lost
        "ours 1 (threads: 2); theirs 3 (threads: 4)",
    ],
)
def test_prose_is_not_torn_into_a_table(measured: str) -> None:
    assert figures_table("It is fast", "1 ms", measured) == ("It is fast", "")


def test_what_the_paper_reports_is_never_lost(tmp_path: Path) -> None:
    saved(tmp_path, Claim("trie", "Table 2", "a (x / y)", "the paper's text", "K=1: 3 / 4; K=2: 5 / 6", "holds"))
    text = page(tmp_path)
    assert "Paper: the paper's text" in text
    assert "| here, K=1 | 3 | 4 |" in text


# Claims of lines


def line(section: str, case: str, who: str, median: float | None = None, **more: Any) -> dict[str, Any]:
    timing = None if median is None else {"median": median, "low": median, "high": median, "rounds": 3}
    return {
        "section": section,
        "case": case,
        "who": who,
        "timing": timing,
        "number": None,
        "ratio": None,
        "note": "",
    } | more


def test_lines_are_found_or_said_to_be_missing() -> None:
    lines = Lines([line("a: one", "K=1", "XGrammar (EBNF)", 2.0), line("a: one", "K=1", "ours", number=3.0)])
    assert lines.seconds("a", "K=1", "XGrammar") == 2
    assert lines.number("a: one", "K=1", "ours") == 3
    for missing in (lines.seconds, lines.number, lines.one):
        with pytest.raises(MissingLineError):
            missing("b", "K=1", "ours")
    with pytest.raises(MissingLineError, match="not timed"):
        lines.seconds("a", "K=1", "ours")


def test_a_claim_without_its_lines_is_left_out_and_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def found(lines: Lines) -> list[Claim]:
        return [claim()]

    def lost(lines: Lines) -> list[Claim]:
        lines.one("a", "b", "c")
        return [claim()]

    path = Subject("program", "title", [lost, found]).save([], tmp_path)
    assert len(json.loads(path.read_text("utf-8"))["claims"]) == 1
    assert "no claim of lost: not measured: a, b, c" in capsys.readouterr().err


def vllm_lines(processor: float) -> list[dict[str, Any]]:
    """As ``vllm_throughput.py --json`` writes them, ours with so many seconds a request."""
    valid = "a request; 9 requests/s, {} tokens each, 256 of 256 valid"
    rows = []
    for model in ("random", "smollm2"):
        rows.append(line(f"{model}, free text", "batch 256", "in the engine of xgrammar", 0.02, note=valid.format(64)))
        for way, seconds, tokens in (("xgrammar", 0.1, 6), ("processor", processor, 5), ("backend", 2 * processor, 5)):
            for batch in (16, 256):
                who = f"choice, batch {batch}"
                rows.append(line(f"{model}, {way}", "K=1,000", who, seconds, note=valid.format(tokens)))
            rows.append(line(f"{model}, {way}", "K=1,000", "choice, batch 1", seconds, note=valid.format(tokens)))
    return rows


def test_verdicts_follow_from_the_figures_of_an_earlier_run(tmp_path: Path) -> None:
    verdicts = {}
    for processor in (0.004, 0.03, 0.2):
        file = tmp_path / "figures.json"
        about = {"machine": "a machine", "versions": {"trieauto": "0"}}
        file.write_text(json.dumps({"about": about, "lines": vllm_lines(processor)}), "utf-8")
        command = [sys.executable, str(BENCHMARKS / "vllm_throughput.py"), "--from-json", str(file)]
        subprocess.run([*command, "--results", str(tmp_path)], check=True, capture_output=True)
        document = json.loads((tmp_path / "vllm_throughput.json").read_text("utf-8"))
        assert document["machine"]["cpu"] == "a machine"
        assert document["machine"]["trieauto"] == "0"
        assert document["seconds"] is None
        assert (tmp_path / "vllm_throughput.svg").read_text("utf-8").startswith("<?xml")
        claims = [Claim(**one) for one in document["claims"]]
        verdicts[processor] = [one.verdict for one in claims if one.where.startswith("Table 3, Figure 1b")]
        ended = [one.verdict for one in claims if one.where == "Table 3, early end"]
        assert ended == ["holds" if processor < 0.02 else "does not hold"]
    assert verdicts == {0.004: ["holds"] * 2, 0.03: ["in part"] * 2, 0.2: ["does not hold"] * 2}


def test_cells_with_wrong_answers_are_not_compared() -> None:
    lines = [one | {"note": one["note"].replace("256 of 256", "255 of 256")} for one in vllm_lines(0.01)]
    assert not [one for one in vllm_claims.SUBJECT.claims(Lines(lines)) if one.where.startswith("Table 3, Figure 1b")]
