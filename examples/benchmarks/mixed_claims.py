"""The trie paper's claims about mixed schemas (section 5.1), judged by the lines of ``mixed_schemas.py``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from curves import Curve, draw_curves
from lines import Lines, MissingLineError, Subject
from results import Claim
from wording import duration, faster, span

_claim = partial(Claim, "trie")
START = "schema to first mask"
ENGINES = ("trieauto", "XGrammar", "LLGuidance")
CASES = {"tool calling": 1_000, "classification": 500, "entity linking": 5_000}
PAPER = {"tool calling": "33 ms / 75 ms / –", "classification": "– / – / –", "entity linking": "37 ms / 150 ms / –"}


def _name(case: str) -> str:
    return f"{case} {CASES[case]:,}"


def _to_first_mask(lines: Lines, section: str, name: str) -> float:
    """In the fastest of the forms "NAME" and "NAME, ...": what XGrammar and LLGuidance have options for."""
    found = [
        line["timing"]["median"]
        for line in lines.some(section, "to the first mask")
        if line["who"].split(", ")[0] == name and line["timing"] is not None
    ]
    if not found:
        raise MissingLineError(f"{section}, to the first mask, {name}")
    return float(min(found))


def compiling(lines: Lines) -> Iterator[Claim]:
    found = {}
    for case in CASES:
        section = f"{_name(case)}: schema to first mask"
        try:
            found[case] = [_to_first_mask(lines, section, name) for name in ENGINES]
        except MissingLineError:
            continue
    if not found:
        raise MissingLineError("schema to first mask")
    ours, xgrammar, guidance = zip(*found.values(), strict=True)
    ratios = [theirs / own for own, theirs in zip(ours, xgrammar, strict=True)]
    worst = max(range(len(ours)), key=lambda place: ours[place] / guidance[place])
    yield _claim(
        where="Section 5.1, mixed schemas",
        says="In schemas with an enum among other fields the trie compiles faster than XGrammar "
        f"(schema to first mask, the fastest form of each: {' / '.join(ENGINES)})",
        reported="; ".join(f"{case} K={CASES[case]:,}: {PAPER[case]}" for case in found),
        measured="; ".join(
            f"{case} K={CASES[case]:,}: {' / '.join(map(duration, seconds))}" for case, seconds in found.items()
        ),
        verdict="holds" if min(ratios) > 1 else "in part" if max(ratios) > 1 else "does not hold",
        comment=f"Ours is {span(ratios)} faster than XGrammar; the paper's is 2.3 and "
        f"4.1 times faster. Against LLGuidance, which the paper does not measure here, at worst "
        f"{faster(ours[worst], guidance[worst], 'it')}.",
        order=4,
    )


def masks(lines: Lines) -> Iterator[Claim]:
    rows, ahead = [], []
    for case in CASES:
        section = f"{_name(case)}: a mask while answers are written"
        for phase in dict.fromkeys(line["case"] for line in lines.some(section)):
            try:
                found = [lines.seconds(section, phase, name) for name in ENGINES]
            except MissingLineError:
                continue
            rows.append(f"{case}, {phase}: {' / '.join(map(duration, found))}")
            ahead.append(found[0] <= min(found[1:]))
    if not rows:
        raise MissingLineError("masks while answers are written")
    yield _claim(
        where="Section 5.1, mixed schemas, masks",
        says="The trie's masks carry over to the enum of a mixed schema; what is around it is left to the backend "
        f"(a mask: {' / '.join(ENGINES)})",
        reported="compile time only; end-to-end throughput is not evaluated",
        measured="; ".join(rows),
        verdict="holds" if all(ahead) else "in part" if any(ahead) else "does not hold",
        comment=f"trieauto is fastest in {sum(ahead)} of {len(ahead)} kinds of field. It compiles the whole schema "
        "into one automaton, so there is no backend to hand over to.",
        order=4.5,
    )


def dispatch(lines: Lines) -> Iterator[Claim]:
    found = {
        case: lines.some(f"{case} ", "to the first mask", "trieauto") for case in CASES
    }  # the smallest sizes come first
    small = {case: some[0] for case, some in found.items() if some and some[0]["timing"]}
    if not small:
        raise MissingLineError("to the first mask")
    equal = [line for line in lines.some("") if line["who"].startswith("masks equal to ours")]
    most = max(line["timing"]["median"] for line in small.values())
    compared = sum(int(line["number"]) for line in equal)
    yield _claim(
        where="Section 4.3",
        says="The trie drops into mixed schemas without changing them; dispatch costs less than 1 ms",
        reported="< 1 ms to route fields to the trie or to XGrammar",
        measured=f"schemas are taken as they are, {compared:,} masks equal to the peers'; a whole schema with a small "
        f"enum takes at most {duration(most)} to its first mask",
        verdict="holds" if equal and most < 0.002 else "in part" if equal else "does not hold",
        comment="There is nothing to dispatch: a schema is one automaton with a trie inside.",
        order=1,
    )


def draw(lines: Lines, directory: Path) -> dict[str, str]:
    """To the first mask by the size of the enum, for each kind of schema."""
    panels = {}
    for case in CASES:
        sections = {section.partition(":")[0]: section for section in lines.sections(f"{case} ") if START in section}
        counts = {int(title.rpartition(" ")[2].replace(",", "")): section for title, section in sections.items()}
        panels[case] = [
            Curve(name, {count: _to_first_mask(lines, section, name) for count, section in counts.items()})
            for name in ENGINES
        ]
    name = "mixed_schemas.svg"
    if not draw_curves(directory / name, panels, "values in the enum", "schema to first mask"):
        return {}
    return {
        name: "JSON schemas with an enum among other fields: each engine's fastest first mask, by the size of the enum."
    }


SUBJECT = Subject(
    "mixed_schemas",
    "JSON schemas with a large enum inside, beside XGrammar and LLGuidance",
    [compiling, masks, dispatch],
    draw,
)
