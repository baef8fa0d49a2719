"""The page of all claims: ``README.md``, made of what the programs here left in ``results/``.

    python examples/benchmarks/page.py            writes it
    python examples/benchmarks/page.py --check    fails if it is not what would be written

Verdicts and measurements on the page come from the runs; only what the papers say and report is typed in.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from not_reproduced import CLAIMS
from page_text import NAMES, SIGNS, escaped, figures_table, is_alike, table, took
from paper_places import missing, named, places, rank
from results import DIRECTORY, Claim, Paper, Verdict

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
PAPERS: dict[Paper, str] = {
    "trie": "Trie Automata for Constrained Decoding over Large Finite Sets",
    "reachability": "Goal-Conditioned Reachability Logit Masker",
}
INTRODUCTION = """\
<!-- Made by page.py of the files in results/. Do not edit: run `python examples/benchmarks/page.py`. -->

Two papers are behind trieauto. This page takes their claims one by one: what the paper reports, what we measure, and
whether the claim holds. The verdict is about the claim, not about trieauto: a claim can fail here because trieauto does
better than the paper says, or because another engine does.

The papers' figures come from other machines (A100 GPUs, 96 cores), other versions, and mostly other models. Compare
ratios among the papers' figures and among ours, never a time of theirs with one of ours. Times are medians; what was
too slow is said to be stopped.

Words that recur:

- **K**: the number of values in a set; **N**: its trie's nodes; **V**: the tokens of a vocabulary; **ℓ**: a length in
  characters; **r**: nodes of the trie over characters of the set. **FSM**: a finite-state machine made of a regex or a
  grammar, as general engines do. **GENRE**: a trie over tokens, as entity retrieval has it.
- **Set to first mask**: from Python strings (for a peer, from its own text of the same set) to the first mask, the
  tokenizer being ready. **Fastest form**: each peer is given the set as a regex, a grammar or a JSON enum, whichever it
  takes fastest.
- **The paper's construction**: masks of all nodes by Aho-Corasick, with its automaton over the vocabulary built anew
  for each set; our code, one thread. **trieauto**: what users get, which keeps what depends on the tokenizer alone and
  finds masks when they are needed. Where a claim holds for one of the two and not for the other, it holds in part.
- **eager**: all masks found beforehand. **own buffers**: bitmasks that remember which words they hold, so that only
  those are written that change.
- **PE**: the labels in the prompt and no constraint, the answer matched to the nearest label; **trie**: the same prompt
  under the constraint; **think**: the model thinks first."""


FILES = """\
`data` holds the labelled sets (each a directory with `labels.txt` and `test.jsonl`; each program says where they come
from); files of names have one a line (`names_packages.txt`: those of PyPI's index; `names.txt`: first and last names of
the package names-dataset). `--from-json` makes claims and plots again of figures that were measured before, where the
program was run with `--json` for each engine apart."""


@dataclass(frozen=True)
class Entry:
    """A claim, where it stands, and the program that measured it (None: nothing did)."""

    claim: Claim
    program: str | None
    number: int = 0

    @property
    def key(self) -> tuple[int, float, float]:
        claim = self.claim
        return list(PAPERS).index(claim.paper), rank(claim.paper, claim.where), claim.order or 0.0


def documents(directory: Path) -> list[dict[str, Any]]:
    """What the programs left, by their names."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(directory.glob("*.json"))]


def entries(runs: Sequence[dict[str, Any]]) -> list[Entry]:
    """All claims in the order of the papers."""
    found = [Entry(Claim(**claim), run["program"]) for run in runs for claim in run["claims"]]
    found = sorted([*found, *(Entry(claim, None) for claim in CLAIMS)], key=lambda entry: entry.key)
    return [Entry(entry.claim, entry.program, number) for number, entry in enumerate(found, 1)]


def page(directory: Path = DIRECTORY) -> str:
    """The text of the page."""
    runs = documents(directory)
    every = entries(runs)
    parts = ["# The papers' claims, measured", INTRODUCTION, *_summary(every)]
    for paper, title in PAPERS.items():
        parts += [f"## {title}", *_of_paper(paper, [entry for entry in every if entry.claim.paper == paper])]
    parts += ["## Plots", *_plots(runs), "## Run it again", *_again(runs)]
    return "\n\n".join(parts) + "\n"


def _summary(every: Sequence[Entry]) -> list[str]:
    rows = []
    for name, papers in [*((NAMES[paper], [paper]) for paper in PAPERS), ("both", list(PAPERS))]:
        count = Counter(entry.claim.verdict for entry in every if entry.claim.paper in papers)
        rows.append([name, *(str(count[verdict]) for verdict in SIGNS), str(count.total())])
    parts = ["## In short", table(["claims", *(f"{sign} {verdict}" for verdict, sign in SIGNS.items()), "all"], rows)]
    titles: dict[Verdict, str] = {"does not hold": "What does not hold", "in part": "What holds in part"}
    for verdict, title in titles.items():
        lines = [
            f"- **[{NAMES[entry.claim.paper]}, {escaped(entry.claim.where)}](#claim-{entry.number})**: "
            f"{escaped(_title(figures_table(entry.claim.says, entry.claim.reported, entry.claim.measured)[0]))}"
            for entry in every
            if entry.claim.verdict == verdict
        ]
        parts += [f"### {SIGNS[verdict]} {title}", "\n".join(lines) or "Nothing."]
    return parts


def _of_paper(paper: Paper, of_paper: Sequence[Entry]) -> list[str]:
    parts = []
    absent = missing(paper, [entry.claim.where for entry in of_paper])
    if absent:
        parts.append(f"⏳ Not measured yet: {', '.join(absent)}.")
    last = ""
    for entry in of_paper:
        heading = _heading(entry.claim)
        if heading != last:
            parts.append(f"### {heading}")
            last = heading
        parts.append(_block(entry))
    return parts


def _heading(claim: Claim) -> str:
    found = named(claim.paper, claim.where)
    return f"{found[0]}: {escaped(places(claim.paper)[found[0]])}" if found else escaped(claim.where)


def _block(entry: Entry) -> str:
    claim = entry.claim
    found = named(claim.paper, claim.where)
    also = "" if found == [claim.where] else f" ({escaped(claim.where)})"
    comment = f" {escaped(claim.comment)}" if claim.comment else ""
    by = f"([{entry.program}](#run-{entry.program}))"
    verdict = f"{SIGNS[claim.verdict]} {claim.verdict[0].upper()}{claim.verdict[1:]}.{comment}"
    says, figures = figures_table(claim.says, claim.reported, claim.measured)
    lines = [f'<a id="claim-{entry.number}"></a>**{escaped(_title(says))}**{also}', ""]
    if figures:
        if not is_alike(claim.reported, claim.measured):
            lines += [f"Paper: {escaped(claim.reported)}.", ""]
        return "\n".join([*lines, figures, "", f"{verdict} {by}"])
    lines.append(f"- Paper: {escaped(claim.reported)}")
    if entry.program is not None and claim.measured:
        lines.append(f"- Here: {escaped(claim.measured)} {by}")
    return "\n".join([*lines, f"- {verdict}"])


def _title(says: str) -> str:
    return says.removesuffix(".")


def _plots(runs: Sequence[dict[str, Any]]) -> list[str]:
    parts = []
    for run in runs:
        for name, sentence in run["plots"].items():
            said = escaped(sentence)
            alternative = re.sub(r"[\[\]]", "", said)
            parts.append(f"{said} ([{run['program']}](#run-{run['program']}))\n\n![{alternative}](results/{name})")
    return parts or ["None yet."]


def _again(runs: Sequence[dict[str, Any]]) -> list[str]:
    """The programs, how long they take, and the machines they ran on."""
    machines: dict[str, list[str]] = {}
    rows = []
    for run in runs:
        program, about = run["program"], dict(run["machine"])
        date = about.pop("date", "")
        machines.setdefault(_machine(about), []).append(program)
        rows.append(
            [
                f'<a id="run-{program}"></a>[{program}]({program}.py)',
                escaped(run["title"]),
                took(run.get("seconds"), _said(program)),
                date,
                f"[JSON](results/{program}.json)",
            ]
        )
    commands = "\n".join(run["command"] for run in runs)
    parts = [
        "Each program says in its first lines what it needs. Keep the machine quiet: they measure times. "
        "`python examples/benchmarks/page.py` then writes this page.",
        table(["program", "measures", "takes", "ran", "figures"], rows),
        f"The commands of the runs on this page:\n\n```sh\n{commands}\n```\n\n{FILES}",
        "### Machines",
        "\n".join(f"- {machine}: {', '.join(programs)}" for machine, programs in machines.items()),
    ]
    return parts if runs else ["No program has run yet."]


def _machine(about: dict[str, str]) -> str:
    """A line about a machine and its software."""
    cores = f"{about.pop('cores')} cores" if "cores" in about else ""
    where = [about.pop("cpu", ""), cores, about.pop("system", "")]
    versions = [f"{name} {version}" for name, version in about.items()]
    parts = [", ".join(part for part in where if part), ", ".join(versions)]
    return escaped("; ".join(part for part in parts if part) or "not recorded")


def _said(program: str) -> str:
    """What a program's docstring says of its time: the first parenthesis that speaks of one."""
    path = HERE / f"{program}.py"
    text = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "") if path.exists() else ""
    found = re.search(r"\(([^()]*\b(?:hours?|minutes?|seconds)\b[^()]*)\)", text)
    return found[1] if found else ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is not up to date")
    parser.add_argument("--results", type=Path, default=DIRECTORY, metavar="DIR", help="of the programs")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="to write, or to check")
    options = parser.parse_args(arguments)
    text = page(options.results)
    if options.check:
        if not options.page.exists() or options.page.read_text("utf-8") != text:
            print(f"{options.page} is not what {options.results} says: run page.py", file=sys.stderr)
            return 1
        return 0
    options.page.write_text(text, "utf-8")
    for paper in PAPERS:
        absent = missing(
            paper, [entry.claim.where for entry in entries(documents(options.results)) if entry.claim.paper == paper]
        )
        if absent:
            print(f"{NAMES[paper]}, not measured yet: {', '.join(absent)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
