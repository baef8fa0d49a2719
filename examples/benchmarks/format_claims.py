"""What the trie paper's appendix K says of fixed formats, judged by a run; and the plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import Timing
from plots import COLOURS, plot
from restoring import restored
from results import Claim, Verdict
from vocabularies import FAMILIES
from wording import as_figures, duration, durations, span

LEAST, MOST = 2.0, 7_939.0  # the paper's speedups: UUID with 32K tokens, date with 262K
PAPER_XGRAMMAR = 88e-3, 1.2  # seconds of XGrammar's regexes, by vocabulary
SAME = 1.5  # what is called the same time for all formats: the slowest at most so many times the fastest
MARKERS = {"date": "o", "time": "s", "date-time": "^", "uuid": "D"}


@dataclass(frozen=True)
class FormatFigures:
    """Of one format with one tokenizer.

    From the format to the first mask, in which form of it, later masks along random strings, and at how many of the
    places compared each engine's mask is not that of ``fixed_format``.
    """

    first_masks: dict[str, Timing]
    forms: dict[str, str]
    masks: dict[str, Timing]
    compared: int
    different: dict[str, int]


@dataclass(frozen=True)
class FamilyFormats:
    """All formats with one tokenizer."""

    name: str
    size: int
    preparations: dict[str, Timing]
    formats: dict[str, FormatFigures]

    @property
    def label(self) -> str:
        return FAMILIES[self.name]

    @property
    def different(self) -> int:
        return sum(sum(figures.different.values()) for figures in self.formats.values())

    def seconds(self, format_name: str, who: str) -> float:
        """To the first mask, the tokenizer being ready."""
        return self.formats[format_name].first_masks[who].median

    def speedup(self, format_name: str, over: str = "XGrammar") -> float:
        return self.seconds(format_name, over) / self.seconds(format_name, "trieauto")

    def speedup_anew(self, format_name: str) -> float:
        """Over XGrammar whose tokenizer is made ready for every format; ours is ready."""
        theirs = self.preparations["XGrammar"].median + self.seconds(format_name, "XGrammar")
        return theirs / self.seconds(format_name, "trieauto")

    def step(self, format_name: str, over: str) -> float:
        """A later mask, over ours."""
        masks = self.formats[format_name].masks
        return masks[over].median / masks["trieauto"].median

    @classmethod
    def of_json(cls, name: str, figures: dict[str, Any]) -> FamilyFormats:
        """What ``as_json`` made the figures of."""
        return restored(cls, {**figures, "name": name})

    def as_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "size": self.size,
            "preparations": as_figures(self.preparations),
            "formats": {
                name: {
                    "first_masks": as_figures(figures.first_masks),
                    "forms": figures.forms,
                    "masks": as_figures(figures.masks),
                    "compared": figures.compared,
                    "different": figures.different,
                }
                for name, figures in self.formats.items()
            },
        }


def claims(families: Sequence[FamilyFormats]) -> list[Claim]:
    """One for each statement; ``families`` by the size of the vocabulary."""
    return [_speedups(families), _under_a_millisecond(families), _constant(families), _uuid(families)]


def _speedups(families: Sequence[FamilyFormats]) -> Claim:
    by_format = {name: [family.speedup(name) for family in families] for name in MARKERS}
    anew = [family.speedup_anew(name) for family in families for name in MARKERS]
    guided = [family.speedup(name, "LLGuidance") for family in families for name in MARKERS]
    steps = {
        who: [family.step(name, who) for family in families for name in MARKERS] for who in ("XGrammar", "LLGuidance")
    }
    low, high = (pick(pick(row) for row in by_format.values()) for pick in (min, max))
    verdict: Verdict = "holds" if low >= LEAST and high >= MOST else "in part" if low >= 1 else "does not hold"
    preparing = durations(family.preparations["XGrammar"].median for family in families)
    slow = _all(families, "XGrammar")
    compared, different = _comparisons(families)
    return Claim(
        "trie",
        "Table 17",
        "Fixed formats compile much faster position by position than as XGrammar's regexes, with every tokenizer.",
        "2× (UUID, 32K tokens) to 7,939× (date, 262K tokens)",
        "To the first mask, both tokenizers ready: "
        + "; ".join(f"{name} {span(row)}" for name, row in by_format.items())
        + f". With XGrammar's tokenizer made ready anew each time, too: {span(anew)}. LLGuidance takes "
        f"{span(guided)} our time. Later masks: XGrammar {span(steps['XGrammar'])}, LLGuidance "
        f"{span(steps['LLGuidance'])} our time. {compared:,} masks compared, {different} different.{_which(families)}",
        verdict,
        f"XGrammar's regexes take {durations(slow)} here on its best number of threads, its tokenizer {preparing}"
        + ("; the paper's 88 ms to 1.2 s seem to include the tokenizer." if max(slow) < PAPER_XGRAMMAR[0] else "."),
    )


def _under_a_millisecond(families: Sequence[FamilyFormats]) -> Claim:
    ours = {name: [family.seconds(name, "trieauto") for family in families] for name in MARKERS}
    dates = [seconds for name, row in ours.items() if name != "uuid" for seconds in row]
    return Claim(
        "trie",
        "Appendix K, compile time",
        "Dates and times compile in less than a millisecond with every tokenizer.",
        "under 1 ms",
        "To the first mask: "
        + "; ".join(f"{name} {durations(row)}" for name, row in ours.items())
        + "."
        + _which(families),
        "holds" if max(dates) < 1e-3 else "in part" if min(dates) < 1e-3 else "does not hold",
        "The paper's engine looks at a token's first character only; these masks are exact, for tokens of several "
        "positions, too.",
    )


def _constant(families: Sequence[FamilyFormats]) -> Claim:
    uneven = [
        max(row) / min(row) for row in ([family.seconds(name, "XGrammar") for name in MARKERS] for family in families)
    ]
    growth = [families[-1].seconds(name, "XGrammar") / families[0].seconds(name, "XGrammar") for name in MARKERS]
    verdict: Verdict = "holds" if max(uneven) <= SAME and min(growth) > 1 else "does not hold"
    if verdict != "holds" and (max(uneven) <= SAME or min(growth) > 1):
        verdict = "in part"
    return Claim(
        "trie",
        "Appendix K, XGrammar",
        "XGrammar takes the same time for every format, and more with a larger vocabulary.",
        "88 ms to 1.2 s depending on the vocabulary",
        f"Of the four formats the slowest takes {span(uneven)} the time of the fastest; {families[-1].label} takes "
        f"{span(growth)} the time of {families[0].label}; in all {durations(_all(families, 'XGrammar'))}, the "
        f"tokenizer being ready.{_which(families)}",
        verdict,
        "What it takes depends on the format more than on the vocabulary.",
    )


def _uuid(families: Sequence[FamilyFormats]) -> Claim:
    smaller = sum(family.speedup("uuid") < family.speedup("date") for family in families)
    worst = min(families, key=lambda family: family.speedup("uuid"))
    return Claim(
        "trie",
        "Appendix K, UUID",
        "UUIDs gain less than dates, for sixteen characters make more tokens fit at each position.",
        "2× with 32K tokens",
        f"The speedup of UUIDs is smaller than that of dates with {smaller} of {len(families)} tokenizers; it is least "
        f"with {worst.label}: {worst.speedup('uuid'):.2f}× ({duration(worst.seconds('uuid', 'trieauto'))} to "
        f"XGrammar's {duration(worst.seconds('uuid', 'XGrammar'))}).{_which(families)}",
        "holds" if smaller == len(families) else "in part" if smaller else "does not hold",
    )


def _all(families: Sequence[FamilyFormats], who: str) -> list[float]:
    return [family.seconds(name, who) for family in families for name in MARKERS]


def _comparisons(families: Sequence[FamilyFormats]) -> tuple[int, int]:
    formats = [figures for family in families for figures in family.formats.values()]
    return sum(figures.compared * len(figures.different) for figures in formats), sum(f.different for f in families)


def _which(families: Sequence[FamilyFormats]) -> str:
    return "" if len(families) == len(FAMILIES) else f" Only {', '.join(family.label for family in families)}."


def draw(families: Sequence[FamilyFormats], path: Path) -> None:
    """XGrammar's time over ours, by tokenizer, a line for each format."""
    places = range(len(families))
    with plot(path, height=4.4) as (_, axes):
        for index, (name, marker) in enumerate(MARKERS.items()):
            style = {"color": COLOURS["trieauto"], "marker": marker, "alpha": 1 - 0.15 * index}
            axes.plot(places, [family.speedup(name) for family in families], label=name, **style)
        axes.axhline(1, color=COLOURS["XGrammar"], linestyle=":")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda ratio, _: f"{ratio:,g}×")
        axes.set_ylabel("times faster than XGrammar's regex")
        axes.set_xticks(places, [family.label.replace(" ", "\n") for family in families])
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
