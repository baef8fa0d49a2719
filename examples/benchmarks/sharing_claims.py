"""The trie paper's claims about what prefix sharing saves, judged by the lines of ``sharing.py``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from curves import Curve, draw_curves
from judging import judged
from lines import Lines, MissingLineError, Subject
from results import Claim
from wording import duration, span, times

_claim = partial(Claim, "trie")
LENGTH = 36
FIRST, NODES = "To the first mask", "How much is shared"
EAGER = "trieauto, eager"
PEERS = ("XGrammar", "LLGuidance")


def _ratios(lines: Lines) -> dict[str, float]:
    """r of each case, the largest first."""
    found = {line["case"]: float(line["number"]) for line in lines.some(NODES, who="r")}
    if len(found) < 2:
        raise MissingLineError(NODES)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def proportional(lines: Lines) -> Iterator[Claim]:
    ratios = _ratios(lines)
    seconds = {case: lines.seconds(FIRST, case, EAGER) for case in ratios}
    first, *others = ratios
    saved = {case: (ratios[case] / ratios[first], seconds[case] / seconds[first]) for case in others}
    off = [time / nodes for nodes, time in saved.values()]
    yield _claim(
        where="Appendix H.7, compile time",
        says="The more prefixes are shared, the less time compiling takes, in proportion to r",
        reported="70 % less at r=0.3",
        measured="all masks of 1,000 random strings of 36 characters: "
        + ", ".join(f"{duration(seconds[case])} at r={ratio:.2f}" for case, ratio in ratios.items()),
        verdict=judged(max(off) <= 1.25 and min(off) >= 0.8, in_part=max(time for _, time in saved.values()) < 0.9),
        comment="Of the time at the largest r "
        + ", ".join(f"{time:.0%} for {nodes:.0%} of the nodes" for nodes, time in saved.values())
        + ". Packing and sorting the strings costs the same whatever they share.",
        order=2.5,
    )


def without_structure(lines: Lines) -> Iterator[Claim]:
    ratios = _ratios(lines)
    first, last = next(iter(ratios)), list(ratios)[-1]
    gains = {
        name: [lines.seconds(FIRST, case, name) / lines.seconds(FIRST, case, "trieauto") for case in (first, last)]
        for name in PEERS
    }
    smallest = min(gain for gain, _ in gains.values())
    yield _claim(
        where="Appendix H.12, random strings",
        says="Random strings, which share nothing (r near 1), lose the advantage of compiling as a trie",
        reported="no figures",
        measured=f"to the first mask over ours, at r={ratios[first]:.2f} and {ratios[last]:.2f}: "
        + ", ".join(f"{name} {times(one)} and {times(other)}" for name, (one, other) in gains.items()),
        verdict=judged(smallest <= 1, in_part=smallest <= 2),
        comment=f"At r={ratios[first]:.2f} trieauto is still {span(gain for gain, _ in gains.values())} as fast.",
        order=5,
    )


def draw(lines: Lines, directory: Path) -> dict[str, str]:
    """To the first mask by r, in per cent."""
    ratios = _ratios(lines)
    curves = [
        Curve(
            name,
            {
                round(100 * ratio): line["timing"]["median"]
                for case, ratio in ratios.items()
                for line in lines.some(FIRST, case, name)[:1]
            },
            style="--" if name == EAGER else "-",
        )
        for name in ("trieauto", EAGER, *PEERS)
    ]
    name = "sharing.svg"
    across = "nodes for 100 characters of the set (r)"
    if not draw_curves(directory / name, {"": curves}, across, "set to first mask", at_sizes=True, width=6.4):
        return {}
    return {name: "1,000 strings of 36 characters: to the first mask, by how many characters are nodes of their own."}


SUBJECT = Subject(
    "sharing", "compile time by how much of their text the values share", [proportional, without_structure], draw
)
