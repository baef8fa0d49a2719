"""The trie paper's claims about accuracy and validity, judged by the lines of ``accuracy.py``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from accuracy_paper import ACCURACY, PE, SAME_SPELLING, SHORT, STRICT, THINK_PE, THINK_TRIE
from accuracy_plots import draw_bars
from lines import Lines, MissingLineError, Subject
from results import Claim
from wording import listed, percent, times

_claim = partial(Claim, "trie")
SETS = ("TREC", "MASSIVE", "Banking77", "CLINC150")
ANY = ", any tokens"

SMALL = "100 samples a cell; SmolLM2-135M is far smaller than the paper's models (1.7 to 20 billion parameters)."
COUNTS = (10, 100, 500, 1_000, 2_000, 5_000)


def _section(name: str, lines: Lines) -> str:
    """The title of a set's arms."""
    found = [title for title in lines.sections(f"{name}: ") if "strategies" not in title]
    if not found:
        raise MissingLineError(name)
    return found[0]


def _known(lines: Lines, arm: str, what: str = "accuracy") -> dict[str, float]:
    """A number of an arm, by set."""
    found = {}
    for name in SETS:
        try:
            found[name] = lines.number(_section(name, lines), arm, what)
        except MissingLineError:
            continue
    return found


def same_prompt(lines: Lines) -> Iterator[Claim]:
    arms = (PE, STRICT + ANY)
    accuracy, validity = ([_known(lines, arm, what) for arm in arms] for what in ("accuracy", "validity"))
    names = [name for name in SETS if all(name in found for found in (*accuracy, *validity))]
    if not names:
        raise MissingLineError(f"{PE} and {STRICT}")
    said = {name: "; ".join(p for p in (ACCURACY.get((name, arm), "") for arm in (PE, STRICT)) if p) for name in names}
    valid = all(validity[1][name] == 100 for name in names)
    better = [name for name in names if accuracy[1][name] >= accuracy[0][name]]
    yield _claim(
        where="Table 6",
        says="With the same prompt, answers under the trie are all valid, and at least as accurate "
        "(accuracy, and how many are valid: without / with the trie)",
        reported=". ".join(f"{name} {text}" for name, text in said.items() if text) or "no figures for these sets",
        measured="; ".join(
            f"{name}: "
            + " / ".join(f"{percent(accuracy[i][name])} ({percent(validity[i][name])} valid)" for i in (0, 1))
            for name in names
        ),
        verdict="holds" if valid and len(better) == len(names) else "in part" if valid else "does not hold",
        comment=f"More accurate, or as much, on {len(better)} of {len(names)} sets. {SMALL} Answers without the trie "
        "are matched to the nearest label, however far, so being invalid costs them nothing in accuracy.",
        order=1,
    )


def thinking(lines: Lines) -> Iterator[Claim]:
    arms = (PE, STRICT + ANY, THINK_PE, THINK_TRIE + ANY)
    found = [_known(lines, arm) for arm in arms]
    names = [name for name in SETS if all(name in accuracy for accuracy in found)]
    if not names:
        raise MissingLineError(THINK_TRIE)
    best = [name for name in names if found[3][name] >= max(accuracy[name] for accuracy in found)]
    last = [name for name in names if found[3][name] <= min(accuracy[name] for accuracy in found)]
    rows = "; ".join(f"{name}: {' / '.join(percent(accuracy[name]) for accuracy in found)}" for name in names)
    yield _claim(
        where="Table 6, Section 5.3, thinking",
        says=f"Thinking first, then the trie, is the most accurate on all four sets (accuracy: {PE} / trie / think + "
        "PE / think + trie)",
        reported="TREC: 36.3 % / – / – / 63.1 %" if "TREC" in names else "all four sets",
        measured=rows,
        verdict="holds" if len(best) == len(names) else "in part" if 2 * len(best) >= len(names) else "does not hold",
        comment=f"The most accurate on {len(best)} of {len(names)} sets here, the least on {len(last)}. {SMALL}",
        order=2,
    )
    large = [name for name in names if name != "TREC"]  # the others have 59 to 150 labels
    if large:
        yield _claim(
            where="Appendix L, thinking",
            says="With more than 50 labels thinking first, then the trie, is the strategy to choose",
            reported="advice",
            measured="see Table 6: the most accurate of the four arms on "
            f"{len(set(best) & set(large))} of {len(large)} sets with more than 50 labels",
            verdict="holds" if set(large) <= set(best) else "in part" if set(large) & set(best) else "does not hold",
            comment=SMALL,
            order=5,
        )
    worse = [name for name in names if found[2][name] < found[0][name]]
    yield _claim(
        where="Table 6, Section 5.3, thinking without the trie",
        says="Without the trie, thinking first often costs accuracy",
        reported="Qwen3-8B on Banking77: 37.6 % against 48.8 %",
        measured=", ".join(f"{name} {percent(found[2][name])} against {percent(found[0][name])}" for name in names),
        verdict="holds" if 2 * len(worse) >= len(names) else "in part" if worse else "does not hold",
        comment=f"It does on {len(worse)} of {len(names)} sets. {SMALL}",
        order=3,
    )


def short_prompt(lines: Lines) -> Iterator[Claim]:
    strict, short = _known(lines, STRICT + ANY), _known(lines, SHORT + ANY)
    names = [name for name in SETS if name in strict and name in short]
    if not names:
        raise MissingLineError(SHORT)
    valid = [_known(lines, arm + ANY, "validity") for arm in (STRICT, SHORT)]
    yield _claim(
        where="Appendix C.1",
        says="A shorter prompt may rely on the trie to enforce validity "
        "(accuracy, and how many are valid: strict prompt / short prompt)",
        reported="two prompts, no comparison of them in the text",
        measured="; ".join(
            f"{name}: {percent(strict[name])} ({percent(valid[0][name])} valid) / {percent(short[name])} "
            f"({percent(valid[1][name])} valid)"
            for name in names
        ),
        verdict="holds" if all(valid[1][name] == 100 for name in names) else "does not hold",
        comment="The strict prompt is more accurate on "
        f"{sum(strict[name] > short[name] for name in names)} of {len(names)} sets, the short one on "
        f"{sum(strict[name] < short[name] for name in names)}.",
    )


def _tools(lines: Lines, arm: str, what: str = "validity") -> dict[int, float]:
    found = {}
    for count in COUNTS:
        try:
            found[count] = lines.number(f"Tool names: K = {count:,}, ", arm, what)
        except MissingLineError:
            continue
    return found


def _retried(lines: Lines, arm: str) -> dict[int, float]:
    names = {line["case"] for line in lines.some("Tool names") if line["case"].startswith(f"{arm}, up to")}
    return {count: share for name in names for count, share in _tools(lines, name).items()}


def compliance(lines: Lines) -> Iterator[Claim]:
    trie, free = _tools(lines, "trie" + ANY), _retried(lines, "unconstrained")
    if not trie or not free:
        raise MissingLineError("Tool names")
    listed = _retried(lines, PE)
    rows = [
        f"K={count:,}: " + " / ".join(percent(f[count]) if count in f else "–" for f in (trie, free, listed))
        for count in COUNTS
        if count in trie
    ]
    held = set(trie.values()) == {100.0}
    yield _claim(
        where="Table 9",
        says="Under a constraint all answers are valid; with retries alone none is "
        "(valid: trie / up to three retries / the same, names in the prompt)",
        reported="100 % under every constraint, 0 % with retries",
        measured="; ".join(rows),
        verdict="holds" if held and max(free.values()) == 0 else "in part" if held else "does not hold",
        comment="A dash: so many names do not fit into the model's context.",
    )


def high_cardinality(lines: Lines) -> Iterator[Claim]:
    trie, free, listed = _tools(lines, "trie" + ANY), _tools(lines, "unconstrained"), _tools(lines, PE)
    large = [count for count in trie if count >= 500]
    if not large:
        raise MissingLineError("Tool names: K = 500 and above")
    cells = (trie, free, listed)
    others = [share for found in (free, listed) for count, share in found.items() if count in large]
    held = all(trie[count] == 100 for count in large)
    yield _claim(
        where="Table 16, Appendix H.11",
        says="With 500 to 5,000 names the trie's answers are all valid, and others are not "
        "(valid: trie / without / names in the prompt)",
        reported="trie 100 %; without it 84 % at K=1,000, 84 to 98 % over all K (Qwen3-8B)",
        measured="; ".join(
            f"K={n:,}: " + " / ".join(percent(found[n]) if n in found else "–" for found in cells) for n in large
        ),
        verdict="holds" if held and min(others) < 100 else "does not hold",
        comment="Without the trie "
        + (f"at most {percent(max(others))}" if max(others) else "none")
        + f" of its answers are names of the set. {SMALL}",
    )
    thousands = {count: share for count, share in free.items() if count >= 1_000}
    if not thousands:
        raise MissingLineError("Tool names: K = 1,000, unconstrained")
    near = max(thousands.values()) < 5
    yield _claim(
        where="Appendix L, Table 16",
        says="From 1,000 values on, validity without a constraint approaches 0 %",
        reported="about 0 % (Appendix L), but 84 to 98 % (Table 16)",
        measured=", ".join(f"{percent(share)} at K={count:,}" for count, share in thousands.items()),
        verdict="holds" if near else "in part" if min(thousands.values()) < 5 else "does not hold",
        comment="The paper contradicts itself" + ("; this model agrees with its Appendix L." if near else "."),
    )


def spelling(lines: Lines) -> Iterator[Claim]:
    tools = {f"{count:,} tools": share for count, share in _tools(lines, "trie", SAME_SPELLING).items()}
    labels = _known(lines, STRICT, SAME_SPELLING)
    found = labels | tools
    if not found:
        raise MissingLineError(SAME_SPELLING)
    worst = min(found.values())
    yield _claim(
        where="Appendix H.9, labels and tools",
        says="Models write the tokenizer's own spelling, although the trie allows every other: "
        "the same tokens as under a trie of that spelling alone",
        reported="every one of 100 samples at K=500, 1,000, 2,000 and 5,000 (Qwen3-8B)",
        measured=", ".join(f"{name} {percent(share)}" for name, share in found.items()),
        verdict="holds" if worst == 100 else "in part" if worst >= 50 else "does not hold",
        comment='`tokenization="canonical"` makes sure of it, where it matters.' if worst < 100 else "",
        order=2,
    )


def groups(lines: Lines) -> Iterator[Claim]:
    rows, drops, kept, grouped = [], [], [], []
    for name in SETS:
        title = next(iter(lines.sections(f"{name}: strategies")), None)
        if title is None:
            continue
        plain = lines.number(title, "the plain trie", "accuracy")
        kind = "taxonomy" if lines.some(title, "groups by taxonomy") else "similarity"
        arms = [f"groups by {kind}", *(f"groups by {kind}, {share} misassigned" for share in ("10%", "20%"))]
        shares = [lines.number(title, arm, "accuracy") for arm in arms]
        right = lines.number(title, arms[0], "the right group")
        kept.append(min(lines.number(title, arm, "validity") for arm in arms))
        rows.append(f"{name}: {' / '.join(map(percent, [plain, *shares, right]))}")
        drops.append(shares[0] - min(shares[1:]))
        grouped.append(shares[0])
    if not rows:
        raise MissingLineError("strategies")
    yield _claim(
        where="Appendix I",
        says="Groups first is robust to 10 to 20 % of the values in a wrong group "
        "(accuracy, canonical tokens: plain trie / groups / 10 % wrong / 20 % wrong / right group chosen)",
        reported="no figures; 'a preliminary direction'",
        measured="; ".join(rows),
        # Where next to nothing is right there is nothing to lose, which is no sign of robustness.
        verdict="holds"
        if max(drops) <= 5 and min(grouped) >= 20
        else "in part"
        if min(kept) == 100
        else "does not hold",
        comment=f"All answers stay {percent(min(kept))} valid, and each call has about √K options. With values in a "
        f"wrong group accuracy falls by {max(drops):.0f} of 100 at most; but with groups so few answers are right "
        f"({percent(min(grouped))} to {percent(max(grouped))}) that this says little. {SMALL}",
    )


def shortlists(lines: Lines) -> Iterator[Claim]:
    rows, best, kept = [], [], []
    ratios: dict[str, float] = {}
    scorers = ("TF-IDF", "rapidfuzz", "embedding")
    for name in SETS:
        title = next(iter(lines.sections(f"{name}: strategies")), None)
        if title is None:
            continue
        recalls = [lines.number(title, f"shortlist by {scorer}", "Recall@20") for scorer in scorers]
        seconds = [lines.number(title, f"shortlist by {scorer}", "time") for scorer in scorers]
        ratios[name] = min(seconds) / lines.number(title, "the plain trie", "time")
        kept += [lines.number(title, f"shortlist by {scorer}", "validity") for scorer in scorers]
        rows.append(f"{name}: {' / '.join(map(percent, recalls))}")
        best.append(max(recalls))
    if not rows:
        raise MissingLineError("strategies")
    yield _claim(
        where="Appendix J",
        says=f"A cheap scorer's first 20 hold the right value nearly always (Recall at 20: {' / '.join(scorers)})",
        reported="87 % (medical codes) to 97 % (places)",
        measured="; ".join(rows),
        verdict="holds" if min(best) >= 87 else "in part" if max(best) >= 87 else "does not hold",
        comment="The paper does not say which scorer it means. Labels of intents share few words with the texts; the "
        "embedding here is the small model's own.",
    )
    yield _claim(
        where="Appendix J, guarantee",
        says="A shortlist trades the guarantee of validity for speed",
        reported="in one sentence traded away, in the next kept by a cascade",
        measured=f"{percent(min(kept))} valid with the cascade; with the fastest scorer the plain trie's time "
        + listed({name: times(ratio) for name, ratio in ratios.items()}),
        verdict="does not hold" if min(kept) == 100 else "holds",
        comment="With a cascade that falls back on the whole set nothing need be given up. "
        + ("No time is saved with sets of 42 to 150 labels; " if min(ratios.values()) >= 1 else "")
        + "for a set of 5,000 values see Table 12.",
        order=2,
    )


def draw(lines: Lines, directory: Path) -> dict[str, str]:
    """Table 6: the four arms with the same prompt."""
    arms = {PE: PE, THINK_PE: THINK_PE, "trie": STRICT + ANY, THINK_TRIE: THINK_TRIE + ANY}
    panels = {
        title: {name: _known(lines, arm, what) for name, arm in arms.items()}
        for title, what in {"right answers": "accuracy", "valid answers": "validity"}.items()
    }
    return draw_bars(directory, panels)


SUBJECT = Subject(
    "accuracy",
    "accuracy and validity of a small model on labelled sets, and the strategies for large ones",
    [same_prompt, thinking, short_prompt, compliance, high_cardinality, spelling, groups, shortlists],
    draw,
)
