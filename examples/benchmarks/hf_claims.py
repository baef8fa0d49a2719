"""The claims about whole answers in Hugging Face, judged by a run's lines: table 8, appendix A, and what the
reachability paper says of frameworks that know no budget."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from curves import Curve, draw_curves, seconds_by_count
from lines import Lines, MissingLineError, Subject
from results import Claim
from wording import duration, listed, percent, times

_claim = partial(Claim, "trie")
COUNTS = (10, 100, 1_000, 2_000, 5_000, 10_000)
WAYS = {
    "trieauto": ("trieauto", "choices"),
    "XGrammar": ("XGrammar", "EBNF"),
    "XGrammar, regex": ("XGrammar", "regex"),
    "LLGuidance": ("LLGuidance", "lark terminal"),
    "outlines-core": ("outlines-core", "regex"),
}
"""The engines by the names of their lines: the adapter, and the form in which it is given a set."""
FREE = "without constraint"
SECTIONS = {"size": "Whole answers", "short": "Four tokens at most"}


def _seconds(lines: Lines, count: int, name: str) -> float | None:
    try:
        return lines.seconds(SECTIONS["size"], f"K={count:,}", name)
    except MissingLineError:
        return None


def _both(lines: Lines, count: int, what: str = "", names: tuple[str, str] = ("trieauto", "XGrammar")) -> list[float]:
    return [lines.seconds(SECTIONS["size"], f"K={count:,}", name + what) for name in names]


def _counts(lines: Lines) -> list[int]:
    found = [count for count in COUNTS if _seconds(lines, count, "trieauto") is not None]
    if len(found) < 2:
        raise MissingLineError(f"{SECTIONS['size']}, two sizes")
    return found


def _cells(lines: Lines, count: int, what: str = "") -> str:
    found = [_seconds(lines, count, name + what) for name in WAYS]
    return " / ".join("–" if seconds is None else duration(seconds) for seconds in found)


def latency(lines: Lines) -> Iterator[Claim]:
    counts = _counts(lines)
    ours = [_both(lines, count)[0] for count in counts]
    last = counts[-1]
    regex = _seconds(lines, last, "XGrammar, regex")
    theirs = min(seconds for seconds in (_both(lines, last)[1], regex) if seconds is not None)
    is_flat = max(ours) <= 2 * min(ours)
    reported = {10: "0.72 to 0.77 s / 0.05 s / – / – / –", 10_000: "0.72 to 0.77 s / 5.88 s / – / – / –"}
    yield _claim(
        where="Table 8",
        says="An answer takes the same time at every K with the trie, and ever more with an FSM "
        f"(an answer, compiling included: {' / '.join(WAYS)})",
        reported="; ".join(f"K={count:,}: {figures}" for count, figures in reported.items() if count in counts),
        measured="; ".join(f"K={count:,}: {_cells(lines, count)}" for count in counts),
        verdict="holds" if is_flat and theirs > 2 * ours[-1] else "in part" if theirs > ours[-1] else "does not hold",
        comment=f"At K={last:,} trieauto is {times(theirs / ours[-1])} faster than XGrammar's faster way. What is left "
        "of ours, and of LLGuidance's, is the model (SmolLM2, a vocabulary of 49,152 tokens): which name it chooses, "
        "and in how many steps. The paper's figures lump Outlines, SGLang and XGrammar together.",
    )
    first = counts[0]
    ours_first, theirs_first = _both(lines, first)
    yield _claim(
        where="Table 8, small sets",
        says=f"At K={first} an FSM answers much sooner than the trie",
        reported="0.05 s against 0.72 s at K=10",
        measured=f"{duration(theirs_first)} (XGrammar) against {duration(ours_first)}",
        verdict="holds"
        if theirs_first < ours_first / 2
        else "in part"
        if theirs_first < 0.9 * ours_first
        else "does not hold",
        comment="The paper's trie has a fixed cost of 0.7 s that its table of compile times (30 to 40 ms) does not "
        "explain.",
        order=2,
    )


def doubling(lines: Lines) -> Iterator[Claim]:
    smaller, larger = 5_000, 10_000
    ratios, wholes = {}, {}
    for name in WAYS:
        times_of = [_seconds(lines, count, f"{name}: compiling") for count in (smaller, larger)]
        answers = [_seconds(lines, count, name) for count in (smaller, larger)]
        if times_of[0] and times_of[1] and answers[0] and answers[1]:
            ratios[name], wholes[name] = times_of[1] / times_of[0], answers[1] / answers[0]
    if "XGrammar" not in wholes:
        raise MissingLineError(f"XGrammar at K={smaller:,} and K={larger:,}")
    fsms = {name: ratio for name, ratio in wholes.items() if name != "trieauto"}
    yield _claim(
        where="Appendix A",
        says="With an FSM, doubling K more than doubles the time of an answer "
        f"(K={larger:,} over K={smaller:,}: {' / '.join(wholes)})",
        reported="no figures",
        measured=f"an answer: {' / '.join(map(times, wholes.values()))}; "
        f"compiling alone: {' / '.join(times(ratios[name]) for name in wholes)}",
        verdict="holds" if min(fsms.values()) > 2 else "in part" if max(fsms.values()) > 2 else "does not hold",
        comment="What else an answer takes does not grow with K.",
    )


def short(lines: Lines) -> Iterator[Claim]:
    section = SECTIONS["short"]
    rates = {line["who"]: line["number"] for line in lines.some(section)}
    if "trieauto" not in rates:
        raise MissingLineError(section)
    others = [rate for name, rate in rates.items() if name != "trieauto"]
    yield Claim(
        "reachability",
        where="Section 1",
        says="Frameworks for constrained decoding know no budget: answers are cut off in the middle",
        reported="an argument; baselines of its own stand for Outlines and SGLang",
        measured="valid names of tools, four tokens at most: "
        + listed({name: percent(rate) for name, rate in rates.items()}),
        verdict="holds" if max(others) < 100 else "in part" if min(others) < 100 else "does not hold",
        comment="What has no room is refused by trieauto before the first token; nothing is cut off.",
    )


def draw(lines: Lines, directory: Path) -> dict[str, str]:
    """Table 8: an answer by K, and the compiling in it."""
    paper = {"trieauto": {10: 0.745, 10_000: 0.745}, "XGrammar": {10: 0.05, 10_000: 5.88}}
    styles = {"XGrammar, regex": "--", FREE: ":"}
    panels = {
        title: [
            Curve(
                name,
                seconds_by_count(lines, SECTIONS["size"], COUNTS, name + what),
                style=styles.get(name, "-"),
                paper=paper.get(name, {}) if not what else {},
            )
            for name in (*WAYS, FREE)
        ]
        for title, what in {"an answer, compiling included": "", "compiling alone": ": compiling"}.items()
    }
    name = "hf_latency.svg"
    if not draw_curves(directory / name, panels, "values in the set (K)", ""):
        return {}
    return {name: "One answer in Hugging Face, by K, SmolLM2-135M on the CPU (Table 8 of the trie paper)"}


SUBJECT = Subject(
    "hf_latency",
    "one answer in Hugging Face, compiling included",
    [latency, doubling, short],
    draw,
)
