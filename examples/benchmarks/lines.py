"""The lines of a run, looked up; the claims made of them; and where both are saved.

A program's lines are also what its ``--json`` file and its file in ``results/`` have, so the claims and plots of an
earlier run can be made from either: ``python examples/benchmarks/PROGRAM.py --from-json FILE``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results import DIRECTORY, Claim, Results, earlier_run, read_json

JsonLine = dict[str, Any]


class MissingLineError(LookupError):
    """This run did not measure it."""


class Lines:
    """The lines of one run (``report.Line`` as JSON), by section, case and who."""

    def __init__(self, lines: Sequence[JsonLine]) -> None:
        self.all = list(lines)

    def sections(self, prefix: str = "") -> list[str]:
        """Their titles, each once, in order."""
        return list(dict.fromkeys(line["section"] for line in self.all if line["section"].startswith(prefix)))

    def some(self, section: str, case: str | None = None, who: str | None = None) -> list[JsonLine]:
        """Those of sections that begin so; ``who`` is the whole, or what stands before " (" in it."""
        return [
            line
            for line in self.all
            if line["section"].startswith(section)
            and case in (None, line["case"])
            and (who in (None, line["who"]) or line["who"].startswith(f"{who} ("))
        ]

    def one(self, section: str, case: str, who: str) -> JsonLine:
        """The first of them.

        Raises:
            MissingLineError: there is none.
        """
        found = self.some(section, case, who)
        if not found:
            raise MissingLineError(f"{section}, {case}, {who}")
        return found[0]

    def seconds(self, section: str, case: str, who: str) -> float:
        """The median. Raises: as ``one`` does, also if nothing was timed."""
        timing = self.one(section, case, who)["timing"]
        if timing is None:
            raise MissingLineError(f"{section}, {case}, {who}: not timed")
        return float(timing["median"])

    def number(self, section: str, case: str, who: str) -> float:
        """Raises: as ``one`` does, also if there is no number."""
        number = self.one(section, case, who)["number"]
        if number is None:
            raise MissingLineError(f"{section}, {case}, {who}: no number")
        return float(number)


Maker = Callable[[Lines], Iterable[Claim]]


@dataclass(frozen=True)
class Subject:
    """What a program is about on the page, and how claims are made of its lines.

    Attributes:
        draw: draws plots of the lines into a directory; gives each file's name and a sentence.
    """

    program: str
    title: str
    makers: Sequence[Maker]
    draw: Callable[[Lines, Path], dict[str, str]] | None = None

    def claims(self, lines: Lines) -> list[Claim]:
        """Those whose lines are there. Which others were left out is said on standard error."""
        claims: list[Claim] = []
        for maker in self.makers:
            try:
                claims.extend(maker(lines))  # what was made before a line was missing is kept
            except MissingLineError as error:
                print(f"[{self.program}: no claim of {maker.__name__}: not measured: {error}]", file=sys.stderr)
        return claims

    def save(self, lines: Sequence[JsonLine], directory: Path, earlier: dict[str, Any] | None = None) -> Path:
        """Make and write the results; of an earlier run, if it is one (see ``Results``)."""
        found = Lines(lines)
        results = Results(self.program, self.title, {"lines": found.all}, self.claims(found), earlier=earlier or {})
        if self.draw is not None:
            try:
                results.plots = self.draw(found, directory)
            except MissingLineError as error:
                print(f"[{self.program}: no plots: not measured: {error}]", file=sys.stderr)
            except ModuleNotFoundError as error:  # an engine's environment
                print(f"[no plots: {error}; --from-json where it is installed draws them]", file=sys.stderr)
        return results.save(directory)


def add_saving(parser: argparse.ArgumentParser) -> None:
    """``--json``, ``--results`` and ``--from-json``, which all programs with lines have."""
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all numbers here")
    parser.add_argument(
        "--results", type=Path, metavar="DIR", help="write results and claims here (default: results/, for whole runs)"
    )
    parser.add_argument(
        "--from-json", type=Path, metavar="PATH", help="no run: results, claims, plots of an earlier --json or result"
    )


def finish(
    options: argparse.Namespace, subject: Subject, lines: Sequence[JsonLine], about: dict[str, str], *, is_whole: bool
) -> None:
    """Write what was asked for. The page's results are written over only by whole runs, or if told so."""
    if options.json is not None:
        options.json.write_text(json.dumps({"about": about, "lines": list(lines)}, indent=1), "utf-8")
    if options.results is not None or is_whole:
        subject.save(lines, options.results or DIRECTORY)


def converted(subject: Subject, arguments: Sequence[str] | None) -> bool:
    """Whether ``--from-json`` was given, and so results were made of that file, and nothing is to be run."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_saving(parser)
    options, _ = parser.parse_known_args(arguments)
    if options.from_json is None:
        return False
    document = read_json(options.from_json)
    if "lines" in document:  # of --json
        lines, earlier = document["lines"], {"seconds": None, "machine": _about(document, options.from_json)}
    else:
        figures, earlier = earlier_run(options.from_json, subject.program)
        lines = figures["lines"]
    print(subject.save(lines, options.results or DIRECTORY, earlier))
    return True


def _about(document: JsonLine, path: Path) -> dict[str, str]:
    """What an earlier ``--json`` says of its machine; the versions of engines' programs stand apart there."""
    about = dict(document.get("about", {}))
    about |= about.pop("versions", {})
    about = {"cpu": about.pop("machine")} | about if "machine" in about else about
    about.setdefault("date", time.strftime("%Y-%m-%d", time.localtime(path.stat().st_mtime)))
    return about
