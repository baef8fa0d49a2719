"""The lines a run prints and keeps as JSON."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from measure import Timing


@dataclass
class Line:
    """One number beside its target.

    ``timing`` for times, ``number`` for everything else; ``ratio`` is the peer's cost over ours, or whatever
    ``target`` speaks of; ``met`` is None where there is no target.
    """

    section: str
    case: str
    who: str
    timing: Timing | None = None
    number: float | None = None
    unit: str = ""
    ratio: float | None = None
    target: str = ""
    met: bool | None = None
    note: str = ""

    def __str__(self) -> str:
        value = ""
        if self.timing is not None:
            value = str(self.timing)
        elif self.number is not None:
            value = f"{self.number:,.4g} {self.unit}".rstrip()
        ratio = "" if self.ratio is None else f"{self.ratio:,.3g}×"
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        return (
            f"  {self.case:<19} {self.who:<52} {value:<24} {ratio:>8}  {self.target:<16} {verdict:<6} {self.note}"
        ).rstrip()


@dataclass
class Report:
    """Collects lines and prints them section by section."""

    lines: list[Line] = field(default_factory=list)

    def section(self, title: str) -> Section:
        print(f"\n{title}", flush=True)
        return Section(self, title)

    def as_json(self) -> list[dict[str, Any]]:
        return [
            {key: value.__dict__ if isinstance(value, Timing) else value for key, value in line.__dict__.items()}
            for line in self.lines
        ]


@dataclass
class Section:
    """Adds lines under one title."""

    report: Report
    title: str

    def add(
        self,
        case: str,
        who: str,
        value: Timing | float | None = None,
        *,
        unit: str = "",
        ratio: float | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        note: str = "",
    ) -> None:
        """``at_least`` and ``at_most`` are targets of the ratio if there is one, of the value otherwise."""
        timing = value if isinstance(value, Timing) else None
        number = None if value is None or timing is not None else float(value)  # type: ignore[arg-type]
        judged = ratio if ratio is not None else timing.median if timing is not None else number
        target, met = "", None
        for limit, sign in ((at_least, "≥"), (at_most, "≤")):
            if limit is not None:
                target = f"target {sign} {limit:,g}{'×' if ratio is not None else f' {unit}'.rstrip()}"
                if judged is not None:
                    met = judged >= limit if sign == "≥" else judged <= limit
        line = Line(self.title, case, who, timing, number, unit, ratio, target, met, note)
        self.report.lines.append(line)
        print(line, flush=True)


def progress(message: str) -> None:
    """What is being done, on standard error."""
    print(f"[{message}]", file=sys.stderr, flush=True)
