"""The reachability paper's claims, judged by the lines of a run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lines import Lines, MissingLineError, Subject
from reach_paper import (
    AGENT_RATES,
    FORWARD,
    JSON_RATES,
    MODEL_MS,
    MODEL_RATES,
    OURS,
    SCALING,
    TRAP_ENTRY_RATES,
    TRAP_GOAL_RATES,
    VANILLA,
    Rates,
)
from reach_plots import draw
from results import Claim, Verdict
from wording import duration, percent, span, three_digits, times

_claim = partial(Claim, "reachability")
METHODS = (VANILLA, FORWARD, OURS)
STEP, DENSE_STEP = "trieauto: a step (mask, accept)", "dense form: a step (mask, next state)"
LOGITS = ", logits"
QWEN = "   V=151,646 (qwen)"
FLAT = 1.5
"""The slowest over the fastest, up to which times count as the same."""


def _rates(lines: Lines, section: str, budget: int, what: str = "") -> Rates:
    return {method: lines.number(section, f"T={budget}", method + what) for method in METHODS}


def _three(rates: Rates) -> str:
    return " / ".join(percent(rates[method]) for method in METHODS)


ORDER = "vanilla / forward-only / reachability"


def traps(lines: Lines) -> Iterator[Claim]:
    goal, trap = (_rates(lines, "1. ", 8, what) for what in (": goal reached", ": trap entered"))
    held = goal[OURS] == 100 and trap[OURS] == 0
    yield _claim(
        where="Experiment 1",
        says="Reachability always gets to the goal and never into a trap; forward masks get there half of the time "
        f"({ORDER})",
        reported=f"goal: {_three(TRAP_GOAL_RATES)}; trap: {_three(TRAP_ENTRY_RATES)}",
        measured=f"goal: {_three(goal)}; trap: {_three(trap)}",
        verdict="holds" if held and goal[FORWARD] < 100 else "in part" if held else "does not hold",
        comment="The paper gives no graph; ours was chosen to fit its table, so the two baselines are no finding. "
        "trieauto leaves dead ends out even without a budget.",
    )


def _by_budget(lines: Lines, section: str, reported: dict[int, Rates]) -> tuple[dict[int, Rates], str, str, Verdict]:
    found = {budget: _rates(lines, section, budget) for budget in reported}
    said, measured = (
        "; ".join(f"T={budget}: {_three(rates[budget])}" for budget in rates) for rates in (reported, found)
    )
    held = all(rates[OURS] == 100 for rates in found.values())
    worse = all(max(rates[FORWARD], rates[VANILLA]) < 100 for rates in found.values())
    return found, said, measured, "holds" if held and worse else "in part" if held else "does not hold"


def json_objects(lines: Lines) -> Iterator[Claim]:
    found, reported, measured, verdict = _by_budget(lines, "2. ", JSON_RATES)
    yield _claim(
        where="Experiment 2",
        says=f"Every JSON object is whole under budgets of 4 to 16 tokens; forward masks are cut off ({ORDER})",
        reported=reported,
        measured=measured,
        verdict=verdict,
        comment="The paper gives neither grammar nor vocabulary; these are of our own. A budget that cannot be met is "
        "refused before the first token; the paper does not say what its masker does then.",
    )
    worst = max(100 - rates[FORWARD] for rates in found.values())
    yield _claim(
        where="Abstract, Experiment 2",
        says="Forward masks fail up to 54.4 % of the time",
        reported="54.4 % (T=6)",
        measured=f"up to {percent(worst)}",
        verdict="holds" if worst >= 45 else "in part" if worst >= 20 else "does not hold",
        comment="How often depends on grammar, vocabulary and model, which the paper does not give.",
        order=2,
    )
    lower = found[6][FORWARD] < found[4][FORWARD] - 5
    yield _claim(
        where="Experiment 2, T=4 and T=6",
        says="Forward masks do worse with 6 tokens than with 4",
        reported="55.4 % whole at T=4, 45.6 % at T=6",
        measured=f"{percent(found[4][FORWARD])} at T=4, {percent(found[6][FORWARD])} at T=6",
        verdict="holds" if lower else "does not hold",
        comment="What is whole within 4 tokens is whole within 6. With one grammar and one model only chance could "
        "make the second cell lower, and 500 trials leave some 2 points to chance.",
        order=2,
    )


def agent(lines: Lines) -> Iterator[Claim]:
    _, reported, measured, verdict = _by_budget(lines, "3. ", AGENT_RATES)
    yield _claim(
        where="Experiment 3",
        says=f"An agent under a budget of actions always finishes; with forward masks it loses itself ({ORDER})",
        reported=reported,
        measured=measured,
        verdict=verdict,
        comment="The paper gives neither graph nor number of trials.",
    )


def _dense_steps(lines: Lines, what: str) -> dict[tuple[str, str], float]:
    """Seconds of a step of the paper's dense form, by section and size."""
    return {
        (line["section"], line["case"]): line["timing"]["median"]
        for line in lines.some("   V=", who=DENSE_STEP + what)
        if line["timing"] is not None
    }


def flat(lines: Lines) -> Iterator[Claim]:
    spreads = {line["section"].strip(): line["ratio"] for line in lines.some("   V=", "over all S")}
    if not spreads:
        raise MissingLineError("over all S")
    dense = _dense_steps(lines, "")
    by_section: dict[str, list[float]] = {}
    for (section, _), seconds in dense.items():
        by_section.setdefault(section, []).append(seconds)
    dense_spreads = [max(found) / min(found) for found in by_section.values() if len(found) > 1]
    worst = max(spreads.values())
    of_dense = max(dense_spreads, default=None)
    measured = f"trieauto: slowest over fastest at most {times(worst)} in {len(spreads)} rows of 10 to 10,000 states"
    if of_dense is not None:
        measured += f"; the paper's dense form, as far as it fits: {times(of_dense)}"
    of_paper = worst if of_dense is None else of_dense
    yield _claim(
        where="Experiment 4, states",
        says="The time of a step does not grow with the number of states",
        reported="388.7, 335.1, 340.8, 356.3 µs at 10 to 10,000 states, |V|=32,000",
        measured=measured,
        verdict="holds" if max(worst, of_paper) <= FLAT else "in part" if of_paper <= FLAT else "does not hold",
        comment=""
        if max(worst, of_paper) <= FLAT
        else "No step looks at more states when there are more; but larger "
        "tables fit the processor's caches less well, and a mask of few tokens is written faster.",
    )


def vocabulary(lines: Lines) -> Iterator[Claim]:
    dense = _dense_steps(lines, LOGITS)
    small = [seconds for (section, _), seconds in dense.items() if "mistral" in section]
    large = [seconds for (section, _), seconds in dense.items() if "qwen" in section]
    if not small or not large:
        raise MissingLineError(DENSE_STEP + LOGITS)
    ours = [line["timing"]["median"] for line in lines.some(QWEN, who=STEP + LOGITS)]
    bare = [line["timing"]["median"] for line in lines.some(QWEN, who=STEP)]
    growth = (sum(large) / len(large)) / (sum(small) / len(small))
    fits = max(large) < 400e-6
    yield _claim(
        where="Abstract, Experiment 4, Section 3.2",
        says="A step is O(1): flat, under 0.4 ms on a CPU with vocabularies up to 151,643",
        reported="0.34 to 0.39 ms at 32,000; but 0.60 and 0.67 ms at 151,643 in its own table",
        measured=f"the paper's dense form with logits: {duration(min(small))} to {duration(max(small))} at 32,000, "
        f"{duration(min(large))} to {duration(max(large))} at 151,646; trieauto there {duration(min(ours))} to "
        f"{duration(max(ours))} with logits, {duration(min(bare))} to {duration(max(bare))} for the mask alone",
        verdict="holds" if growth <= FLAT and fits else "in part" if growth <= FLAT or fits else "does not hold",
        comment=f"The dense step looks at all of a state's |V| entries, so it grows with the vocabulary: "
        f"{times(growth)} here. O(1) is meant in states and budget. The paper's table contradicts its abstract.",
    )


def equal(lines: Lines) -> Iterator[Claim]:
    found = lines.some("   V=", who="dense form: steps with other masks than ours")
    if not found:
        raise MissingLineError("steps with other masks")
    wrong = max(line["number"] for line in found)
    yield _claim(
        where="Section 3.1",
        says="Backward reachability R[t, s] says which tokens leave a way to the end within the budget",
        reported="R of (T+1) × |S| bits",
        measured=f"trieauto keeps d(s), the fewest tokens to the end: R[t, s] is d(s) ≤ t. Masks that differ "
        f"from those of the paper's R, in {len(found)} automata: {percent(wrong)}",
        verdict="holds" if wrong == 0 else "does not hold",
        comment="One number for each state instead of T+1 bits, and good for every budget.",
    )


def offline(lines: Lines) -> Iterator[Claim]:
    ratios = [line["ratio"] for line in lines.some("   V=", who="dense form: R, delta given") if line["ratio"]]
    target = lines.number("   The targets", "100 edges", "constraint built, and d")
    if not ratios:
        raise MissingLineError("dense form: R, delta given")
    paper = SCALING[151_643, 10_000]
    yield _claim(
        where="Experiment 4, offline",
        says="The search before the first token is done once, and grows with states times vocabulary",
        reported=f"29.6 ms (10 states, 32,000) to {paper.offline_ms / 1000:.1f} s (10,000 states, 151,643)",
        measured=f"10,000 states with 100 edges each, 151,646 tokens: {three_digits(target)} ms from edges to "
        f"distances. Where the dense form fits, trieauto is {span(ratios)} faster",
        verdict="holds" if min(ratios) > 1 else "in part",
        comment="Nothing of this size need be searched: trieauto goes backward over the edges that are there. The "
        f"paper reports {times(paper.offline_ms / target)} that time for its largest cell, on another machine.",
        order=2,
    )


def memory(lines: Lines) -> Iterator[Claim]:
    sparse = lines.number("   The targets", "100 edges", "arrays, ready masks included")
    dense = lines.number("   The targets", "nearly all edges", "arrays, ready masks included")
    paper = SCALING[151_643, 10_000].memory
    yield _claim(
        where="Experiment 4, memory",
        says="A compact two-dimensional bitmap is all that is kept",
        reported=f"2.44 MB (10 states, 32,000) to {paper} (10,000 states, 151,643)",
        measured=f"10,000 states, 151,646 tokens: {three_digits(sparse)} MB with 100 edges a state, "
        f"{three_digits(dense)} MB where nearly every token is legal",
        verdict="does not hold" if 10 * max(sparse, dense) < 11_560 else "holds",
        comment="The paper's figures are those of its dense table of transitions, 8 |S| |V| bytes; the bitmap is the "
        f"small part. trieauto keeps neither: {times(11.56 * 1000 * 2**20 / 1e6 / max(sparse, dense))} less at "
        "least.",
        order=3,
    )


def model(lines: Lines) -> Iterator[Claim]:
    _, reported, measured, verdict = _by_budget(lines, "5. ", MODEL_RATES)
    yield _claim(
        where="Experiment 5",
        says=f"A real model always answers in whole JSON within 6, 10 and 16 tokens ({ORDER})",
        reported=reported,
        measured=measured,
        verdict=verdict,
        comment="The paper's model is Qwen2.5-0.5B, ours SmolLM2-135M. It gives neither prompt nor schema; ours were "
        "chosen so that forward masks are cut off about as often as in its table.",
    )
    seconds = {
        budget: {method: lines.seconds("5. ", f"T={budget}", f"{method}: a sample") for method in METHODS}
        for budget in MODEL_RATES
    }
    saved = {budget: 100 * (1 - found[OURS] / found[VANILLA]) for budget, found in seconds.items()}
    best = max(saved, key=lambda budget: saved[budget])
    yield _claim(
        where="Abstract, Experiment 5, latency",
        says=f"Ending early saves up to 40 % of the time of an answer ({' / '.join(METHODS)})",
        reported=", ".join(f"T={budget}: {ms:,.0f} ms" for budget, ms in MODEL_MS.items())
        + "; no other method's times",
        measured="; ".join(
            f"T={budget}: {' / '.join(duration(found[method]) for method in METHODS)}"
            for budget, found in seconds.items()
        ),
        verdict="holds" if saved[best] >= 35 else "in part" if saved[best] >= 5 else "does not hold",
        comment=f"Beside an answer of T tokens without a constraint, which is never whole JSON, we save "
        f"{percent(saved[best])} at T={best}; where T tokens are needed anyway there is nothing to save. The paper's "
        "40 % are between budgets of its own method, and T=16 is faster there than T=10. The forward-only baseline is "
        "plain Python: its first answers wait for masks that later ones find ready.",
        order=3,
    )


SUBJECT = Subject(
    "reachability",
    "answers within a token budget: the five experiments of the reachability paper",
    [traps, json_objects, agent, flat, vocabulary, equal, offline, memory, model],
    draw,
)
