"""The trie paper's advice on when a trie is worth it, and its algorithm, judged by the lines of ``choices.py``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from curves import Curve, draw_curves, seconds_by_count
from lines import Lines, MissingLineError, Subject
from results import Claim
from wording import duration, span, times

_claim = partial(Claim, "trie")
COUNTS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
PEERS = ("XGrammar", "LLGuidance", "outlines-core")
FIRST_MASK, ONE_MASK = "Set to first mask", "One mask into a bitmask row"
OWN_WAYS = "trieauto's own ways"


def _seconds(lines: Lines, count: int, name: str) -> float | None:
    try:
        return lines.seconds(FIRST_MASK, f"K={count:,}", name)
    except MissingLineError:
        return None


def _ratios(lines: Lines, name: str) -> dict[int, float]:
    """A peer's time over ours, by K."""
    found = {count: (_seconds(lines, count, name), _seconds(lines, count, "trieauto")) for count in COUNTS}
    return {count: theirs / ours for count, (theirs, ours) in found.items() if theirs and ours}


def beyond_a_thousand(lines: Lines) -> Iterator[Claim]:
    large = {count: ratio for count, ratio in _ratios(lines, "XGrammar").items() if count >= 1_000}
    if not large:
        raise MissingLineError("XGrammar's first mask at K=1,000 and above")
    yield _claim(
        where="Appendix H.12, K > 1,000",
        says="From K=1,000 on the trie outperforms FSMs by orders of magnitude",
        reported="by orders of magnitude; in its Table 4 by 2 to 6.5 times, at 100,000 by 40",
        measured=", ".join(f"{times(ratio)} at K={count:,}" for count, ratio in large.items())
        + " (XGrammar's time to the first mask over ours)",
        verdict="holds" if min(large.values()) >= 100 else "in part" if max(large.values()) >= 10 else "does not hold",
        comment=_guidance(lines),
        order=2,
    )


def _guidance(lines: Lines) -> str:
    found = {count: ratio for count, ratio in _ratios(lines, "LLGuidance").items() if count >= 1_000}
    said = ", ".join(f"{times(ratio)} at K={count:,}" for count, ratio in found.items())
    return f"Over LLGuidance, which the advice leaves out: {said}." if said else ""


def one_million(lines: Lines) -> Iterator[Claim]:
    last = max((count for count in COUNTS if _seconds(lines, count, "trieauto")), default=0)
    if last < 10_000:
        raise MissingLineError("trieauto's first mask at K=10,000 and above")
    seconds = _seconds(lines, last, "trieauto") or 0.0
    yield _claim(
        where="Appendix H.12, K > 5,000",
        says="Above 5,000 values hierarchical clustering is needed to manage compile time, above 10,000 speculation",
        reported="a recommendation",
        measured=f"{duration(seconds)} from K={last:,} strings to the first mask",
        verdict="holds" if seconds > 5 else "does not hold",
        comment="Compile time is no reason to split a set of this size. What a model can choose from is another "
        "matter: see Appendix I.",
        order=3,
    )


def aho_corasick(lines: Lines) -> Iterator[Claim]:
    found = {}
    for count in COUNTS:
        try:
            found[count] = [
                lines.seconds(OWN_WAYS, f"K={count:,}", f"eager, {way}, 1 thread(s)")
                for way in ("walk", "Aho-Corasick")
            ]
        except MissingLineError:
            continue
    if not found:
        raise MissingLineError(OWN_WAYS)
    ratios = [corasick / walk for walk, corasick in found.values()]
    yield _claim(
        where="Section 4.2, algorithm",
        says="Aho-Corasick over the vocabulary is the efficient way to find the tokens of every node "
        "(masks of all nodes: Aho-Corasick / both tries walked together)",
        reported="V times fewer operations than trying every token at every node",
        measured="; ".join(
            f"K={n:,}: {duration(corasick)} / {duration(walk)}" for n, (walk, corasick) in found.items()
        ),
        verdict="holds" if max(ratios) <= 1 else "in part" if min(ratios) <= 1.5 else "does not hold",
        comment="What is won over trying every token is another claim. Walking the set's trie and a trie of the "
        f"vocabulary together wins it, too, and is {span(ratios)} faster than Aho-Corasick; trieauto "
        "has both and walks. Both automata are made once per tokenizer.",
        order=2,
    )


def draw(lines: Lines, directory: Path) -> dict[str, str]:
    """To the first mask, and one mask, by K."""
    panels = {
        title: [Curve(name, seconds_by_count(lines, section, COUNTS, name)) for name in ("trieauto", *PEERS)]
        for title, section in {"set to first mask": FIRST_MASK, "one mask, along values": ONE_MASK}.items()
    }
    name = "choices.svg"
    if not draw_curves(directory / name, panels, "values in the set (K)", ""):
        return {}
    return {name: "Sets of up to a million strings: to the first mask, and one mask."}


SUBJECT = Subject(
    "choices",
    "sets of 10 to 1,000,000 strings beside XGrammar, LLGuidance and outlines-core, with the project's targets",
    [beyond_a_thousand, one_million, aho_corasick],
    draw,
)
