"""One run over sets of growing size, and what claims about it share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judging import Line
from measure import Timing
from results import Claim
from wording import duration

TRIE, PAPERS_TRIE, CANONICAL = "trieauto", "trieauto, as in the paper", "trieauto, canonical"
XGRAMMAR, LLGUIDANCE, OUTLINES, GENRE = "XGrammar", "LLGuidance", "outlines-core", "GENRE"
Timings = dict[str, dict[int, Timing]]
Lines = Mapping[str, Line]
OTHER_MACHINE = "The paper's machine has 96 cores, and its engines are older versions: compare ratios, not times."


@dataclass
class ByK:
    """One run.

    Attributes:
        compiling, masks: by engine and size of the set.
        forms: seconds of the peers' forms by size, peer and form.
        fastest_form: the form in ``compiling``, by size and peer, with the peer's name.
        stopped: why a peer has no timing, by peer and size.
        stopped_masks: the same where the first mask was there, but not all of a measurement.
        different: for each size and engine, at how many places its mask is not ours, and of how many.
    """

    compiling: Timings = field(default_factory=dict)
    masks: Timings = field(default_factory=dict)
    forms: dict[int, dict[str, dict[str, float]]] = field(default_factory=dict)
    fastest_form: dict[int, dict[str, str]] = field(default_factory=dict)
    stopped: dict[str, dict[int, str]] = field(default_factory=dict)
    stopped_masks: dict[str, dict[int, str]] = field(default_factory=dict)
    different: dict[int, dict[str, tuple[int, int]]] = field(default_factory=dict)

    @staticmethod
    def medians(timings: Timings) -> dict[str, dict[int, float]]:
        return {name: {count: timing.median for count, timing in line.items()} for name, line in timings.items()}

    def stopped_masks_at(self, count: int) -> dict[str, str]:
        return {name: whys[count] for name, whys in self.stopped_masks.items() if count in whys}


def missing_sizes(where: str, says: str, reported: str, needed: Sequence[int], line: Line | None) -> Claim | None:
    """The claim as not measured, if the run does not have the sizes."""
    lacking = [count for count in needed if count not in (line or {})]
    if not lacking:
        return None
    sizes = ", ".join(f"{count:,}" for count in lacking)
    return Claim("trie", where, says, reported, f"not measured in this run: no K={sizes}", "not reproduced")


def growth(line: Line, up_to: int) -> float:
    """The largest cost over the smallest."""
    costs = [seconds for count, seconds in line.items() if count <= up_to]
    return max(costs) / min(costs)


def at(line: Line, counts: Sequence[int]) -> str:
    return ", ".join(f"{duration(line[count])} at {count:,}" for count in counts if count in line)
