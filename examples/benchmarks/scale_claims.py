"""The trie paper's claims about very large and changing sets, judged by the lines of ``scale.py``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from curves import Curve, draw_curves
from lines import Lines, MissingLineError, Subject
from plots import COLOURS
from results import Claim
from wording import duration, span, three_digits

_claim = partial(Claim, "trie")
NAMES = {
    "tools": "tool names",
    "characters": "names of Unicode characters",
    "words": "Chinese words",
    "cities": "names of cities",
    "names": "personal names",
}
"""What the sections call the sets, and what they are."""


def _sets(lines: Lines) -> dict[str, int]:
    """Sections and sizes, the largest last."""
    found = {}
    for section in lines.sections():
        size = section.partition(": ")[2].removesuffix(" values").replace(",", "")
        if size.isdigit() and lines.some(section, "set to first mask"):
            found[section] = int(size)
    if not found:
        raise MissingLineError("a set to its first mask")
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _said(section: str, size: int) -> str:
    name = section.partition(":")[0]
    return f"{size:,} {NAMES.get(name, name)}"


def large(lines: Lines) -> Iterator[Claim]:
    sets = _sets(lines)
    rows, seconds, steps = [], [], []
    for section, size in sets.items():
        seconds.append(lines.seconds(section, "set to first mask", "trieauto"))
        steps.append(lines.seconds(section, "step", "mask and token"))
        memory = lines.number(section, "memory", "without the strings")
        figures = (duration(seconds[-1]), f"{three_digits(memory)} MB", duration(steps[-1]))
        rows.append(f"{_said(section, size)}: {' / '.join(figures)}")
    yield _claim(
        where="Section 4.3, K > 50,000",
        says="About 100,000 values are the practical limit; above 50,000 extensions are called for "
        "(set to first mask / memory / a mask and a token)",
        reported="67 ms and 8 MB at K=100,000; nothing larger",
        measured="; ".join(rows),
        verdict="holds" if max(seconds) > 5 else "does not hold",
        comment="Sets of this size need neither groups nor shortlists to be compiled and masked. The limit is the "
        "paper's, not the method's.",
        order=2,
    )


def updates(lines: Lines) -> Iterator[Claim]:
    rows, ratios = [], []
    for section, size in _sets(lines).items():
        fresh = next(
            iter(lines.some(section, "updates", "compiled anew") + lines.some(section, "100 in, 100 out")), None
        )
        changed = lines.some(section, "updates", "100 in, 100 out") + lines.some(section, "100 in, 100 out", "updated")
        if fresh is None or not changed:
            continue
        seconds = [line["timing"]["median"] for line in (fresh, changed[0])]
        ratios.append(seconds[0] / seconds[1])
        rows.append(f"{_said(section, size)}: {duration(seconds[0])} / {duration(seconds[1])}")
    if not rows:
        raise MissingLineError("updates")
    yield _claim(
        where="Appendix E, updates",
        says="A set that changes must be compiled anew (compiled anew / updated)",
        reported="37 ms, not incremental",
        measured="; ".join(rows),
        verdict="does not hold" if min(ratios) > 1.5 else "in part" if max(ratios) > 1.5 else "holds",
        comment=f"100 values in and 100 out are {span(ratios)} faster with "
        "`constraint.updated`; what the set held before goes on unharmed.",
        order=1,
    )


def draw(lines: Lines, directory: Path) -> dict[str, str]:
    """What is done with a set as a whole, and a step of decoding, by the set's size."""
    sets = _sets(lines)

    def points(case: str, who: str) -> dict[int, float]:
        return {
            size: line["timing"]["median"]
            for section, size in sets.items()
            for line in lines.some(section, case, who)[:1]
            if line["timing"] is not None
        }

    curves = [
        Curve("set to first mask", points("set to first mask", "trieauto"), COLOURS["trieauto"], style=""),
        Curve("100 in, 100 out", points("updates", "100 in, 100 out"), COLOURS["XGrammar"], style=""),
        Curve("budgets, once", points("distances", "for budgets, once"), COLOURS["GENRE"], style=""),
        Curve("a mask and a token", points("step", "mask and token"), COLOURS["LLGuidance"], style=""),
    ]
    name = "scale.svg"
    if not draw_curves(directory / name, {"": curves}, "values in the set", "", width=6.4):
        return {}
    return {name: "Sets of real names: what the whole set costs, and what a step of decoding does."}


SUBJECT = Subject(
    "scale", "sets of hundreds of thousands of real names: compiling, updates, parts, files", [large, updates], draw
)
