"""What the trie paper claims about phases and other ways, judged by one run."""

from __future__ import annotations

from collections.abc import Mapping

from judging import judged
from measure import Timing
from phase_ablation import ALONE
from phase_alternative_claims import alternative_claims
from phase_compile import AHO_CORASICK, DECODING, TRAVERSAL, TRIE, WALK
from phase_precomputing import EACH, ONE, OURS, PAPERS
from phase_precomputing import WALK as BOTH_TRIES
from phase_run import Run
from results import Claim
from wording import duration, faster, span, times

NOT_MEASURED = "not measured in this run"


def claims(run: Run) -> list[Claim]:
    """One for each claim; what a run left out is said to be not reproduced."""
    return [
        _example(run),
        *_precomputed(run),
        _lookup(run),
        _application(run),
        _most_is_aho_corasick(run),
        _traversal(run),
        _naive(run),
        *alternative_claims(run),
        _ablation(run),
    ]


def _example(run: Run) -> Claim:
    where, says = (
        "Appendix H.1",
        "For 2,000 values and 32,000 tokens the FSM takes 40 to 460 times the trie's operations.",
    )
    reported = "15.4 million (with minimisation 169 million) against 368,000 operations"
    seconds = {name: spent for name, spent in run.example.items() if not isinstance(spent, str)}
    stopped = {name: why for name, why in run.example.items() if isinstance(why, str)}
    if run.example_count != 2_000 or "trieauto" not in seconds:
        return Claim("trie", where, says, reported, NOT_MEASURED, "not reproduced", order=60.0)
    papers = seconds["trieauto, as in the paper"]
    said = ", ".join(f"{name} {duration(spent)}" for name, spent in seconds.items())
    said += "".join(f", {name} stopped after {why.removeprefix('more than ')}" for name, why in stopped.items())
    peers = {name: spent / papers for name, spent in seconds.items() if not name.startswith("trieauto")}
    fsm = peers.get("outlines-core", float("inf"))
    at_least = f"outlines-core {times(fsm)}" if fsm < float("inf") else "outlines-core longer than it was given"
    return Claim(
        "trie", where, says, reported, f"in time, to the first mask: {said}",
        judged(fsm >= 40, in_part=fsm >= 4),
        f"Over the paper's construction: {at_least}, "
        f"{', '.join(f'{name} {times(ratio)}' for name, ratio in peers.items() if name != 'outlines-core')}. For the "
        "operations themselves see table 1.",
        order=60.0,
    )  # fmt: skip


def _precomputed(run: Run) -> list[Claim]:
    where, says = "Appendix H.2", "Making all masks through XGrammar's matcher takes 196 times the trie's way."
    reported = "6.5 s against 33 ms at K=1,000 (196×)"
    own = next((found for found in run.precomputed if found.count == 1_000), None)
    claims = []
    if own is None:
        claims.append(Claim("trie", where, says, reported, NOT_MEASURED, "not reproduced", order=61.0))
    else:
        ratios = {way: own.seconds[EACH] / own.seconds[way] for way in (ONE, PAPERS, OURS, BOTH_TRIES)}
        beside = faster(own.seconds[ONE], own.seconds[PAPERS], "the paper's construction")
        claims.append(
            Claim(
                "trie",
                where,
                says,
                reported,
                f"{own.nodes:,} states: {', '.join(f'{way} {duration(spent)}' for way, spent in own.seconds.items())}",
                judged(ratios[PAPERS] >= 98, in_part=ratios[OURS] >= 98 or ratios[PAPERS] >= 2),
                f"A matcher for each state takes {times(ratios[PAPERS])} the paper's construction, "
                f"{times(ratios[OURS])} the same with the vocabulary's automaton kept, {times(ratios[BOTH_TRIES])} "
                f"what trieauto does. One matcher that goes forth and back is {times(ratios[ONE])} faster than a "
                f"matcher for each, and {beside}. "
                f"XGrammar's compiling, {duration(own.compiling)}, is not counted. Its rows take "
                f"{own.row_bytes / 1e6:,.0f} MB, our lists {own.own_bytes / 1e6:.2g} MB.",
                order=61.0,
            )
        )
    different = sum(found.different for found in run.precomputed)
    nodes = sum(found.nodes for found in run.precomputed)
    lookups = run.precomputed[-1].lookups
    claims.append(
        Claim(
            "trie",
            where,
            "Once they are made, the masks are the same, and so is the cost of looking one up.",
            "identical data structures",
            f"{different} of {nodes:,} masks differ; a stored row copied in numpy "
            f"{duration(lookups['a stored row'].median)}, trieauto's mask into a row "
            f"{duration(lookups['trieauto'].median)}",
            judged(different == 0),
            "The masks of states, not the states: there is one for each node of the trie, where the minimal "
            f"automaton has {', '.join(f'{found.minimal:,} at K={found.count:,}' for found in run.precomputed)}.",
            order=61.1,
        )
    )
    return claims


def _lookup(run: Run) -> Claim:
    assert run.steps is not None
    inside, called = run.steps.inside, run.steps.called
    ratio = inside["XGrammar"].median / inside["trieauto"].median
    from_python = called["XGrammar"].median / called["trieauto"].median
    own, own_called = (of["XGrammar"].median / of["trieauto, own buffers"].median for of in (inside, called))

    def say(timings: Mapping[str, Timing]) -> str:
        return " / ".join(duration(timings[name].median) for name in inside)

    return Claim(
        "trie", "Appendix H.3",
        f"Finding the legal tokens alone is 56 times as fast as XGrammar's ({' / '.join(inside)})",
        "0.08 µs against 4.5 µs (56×); as called from Python 0.65 against 5.8 µs (9×)",
        f"a row of 128 in one call: {say(inside)}; called one by one: {say(called)}",
        judged(max(ratio, own) >= 28, in_part=max(ratio, own) > 1),
        f"Over trieauto's {times(ratio)} inside, {times(from_python)} called from Python; over its own buffers, of "
        f"which only the words that change are written, {times(own)} and {times(own_called)}. The paper's 0.08 µs is "
        "a list found, not a row of 19 KB written.",
        order=62.0,
    )  # fmt: skip


def _application(run: Run) -> Claim:
    assert run.steps is not None
    applied = {name: timing.median for name, timing in run.steps.applied.items()}
    found = run.steps.called["trieauto"].median
    said = ", ".join(f"{name} {duration(spent)}" for name, spent in applied.items())
    usual = applied["torch, a tensor of bool"]
    spread = max(applied.values()) / min(applied.values())
    return Claim(
        "trie", "Appendix H.3", "Applying a mask to the logits costs far more than finding it, whatever the method.",
        "about 31 µs, identical for all", f"{said}; finding it {duration(found)} (float32, one thread)",
        judged(min(applied.values()) >= 10 * found and spread <= 2, in_part=usual >= 10 * found),
        f"It is {span([spent / found for spent in applied.values()])} what finding the mask takes; but it does depend "
        f"on the method, by {times(spread)}.",
        order=62.1,
    )  # fmt: skip


def _most_is_aho_corasick(run: Run) -> Claim:
    shares, apart, costs = {}, {}, []
    names = (TRIE, DECODING, AHO_CORASICK, TRAVERSAL)
    for own in run.phases:
        parts = {name: own.timings[name].median for name in names}
        shares[own.count] = parts[AHO_CORASICK] / sum(parts.values())
        apart[own.count] = parts[AHO_CORASICK] / (sum(parts.values()) - parts[DECODING])
        costs.append(f"K={own.count:,}: {' / '.join(duration(spent) for spent in parts.values())}")
    small = [share for count, share in shares.items() if count <= 10_000]
    small_apart = [share for count, share in apart.items() if count <= 10_000]
    return Claim(
        "trie", "Section 4.2, appendix H.4",
        "Building the Aho-Corasick automaton is most of compiling (trie / decoding / Aho-Corasick / traversal)",
        "most of 30 to 40 ms, for K up to 10,000", "; ".join(costs),
        judged(min(small) >= 0.5, in_part=max(small_apart) >= 0.5),
        f"Its share is {', '.join(f'{share:.0%} at {count:,}' for count, share in shares.items())}; of what is left "
        f"without decoding the tokens, {', '.join(f'{share:.0%} at {count:,}' for count, share in apart.items())}. "
        "It depends on the tokenizer alone, as decoding does; trieauto does both once.",
        order=63.0,
    )  # fmt: skip


def _traversal(run: Run) -> Claim:
    by_count = {own.count: own.timings for own in run.phases}
    reported = "typically under 5 ms for a set"
    small = {count: timings for count, timings in by_count.items() if count <= 10_000}
    costs = [timings[TRIE].median + timings[TRAVERSAL].median for timings in small.values()]
    said = ", ".join(
        f"{duration(timings[TRIE].median + timings[TRAVERSAL].median)} at {count:,}"
        for count, timings in by_count.items()
    )
    gains = [timings[TRAVERSAL].median / timings[WALK].median for timings in by_count.values()]
    return Claim(
        "trie", "Section 5.1", "With the automaton kept, a set costs little: its trie and the traversal.", reported,
        f"{said}, one thread",
        judged(max(costs) < 5e-3, in_part=min(costs) < 5e-3),
        f"Up to 10,000 values it takes {duration(max(costs))} at most. Walking the trie of the tokens and that of the "
        f"set together finds the same masks; Aho-Corasick takes {span(gains)} its time.",
        order=63.1,
    )  # fmt: skip


def _naive(run: Run) -> Claim:
    own = run.naive
    assert own is not None
    ratio = own.whole / own.by_aho_corasick
    return Claim(
        "trie", "Section 4.2, appendix H.4", "Aho-Corasick spares trying each token at each node, a factor of V.",
        "(N + V)·ℓ instead of N·V·ℓ",
        f"{times(ratio)} at K={own.count:,}: each token at each of {own.nodes:,} nodes {duration(own.whole)} (from "
        f"{own.tried:,} of them), Aho-Corasick with its building {duration(own.by_aho_corasick)}",
        judged(ratio >= 15_000 and own.agrees, in_part=ratio > 1 and own.agrees),
        "Both are compiled code. The factor is far below V, because nearly all tokens fail at their first byte, and "
        "building the automaton costs V, too." if ratio < 15_000 else "Both are compiled code.",
        order=63.2,
    )  # fmt: skip


def _ablation(run: Run) -> Claim:
    where, says = "Table 12", "At K=5,000 the trie alone is fastest; groups and shortlists bring nothing."
    reported = "0.77 s for the trie alone"
    if not run.ablation:
        return Claim("trie", where, says, reported, NOT_MEASURED, "not reproduced", order=12.0)
    alone = run.ablation[ALONE].prompt
    others = {name: arm.prompt / alone for name, arm in run.ablation.items() if name != ALONE}
    said = "; ".join(
        f"{name}: {duration(arm.prompt)} / {arm.calls:.1f} / {duration(arm.once)}" for name, arm in run.ablation.items()
    )
    are_valid = all(arm.valid == arm.samples for arm in run.ablation.values())
    return Claim(
        "trie", where, f"{says} (a prompt, the median / calls of the model / once)", reported, said,
        judged(all(ratio >= 1 for ratio in others.values()), in_part=any(ratio >= 1 for ratio in others.values())),
        f"Over the trie alone: {', '.join(f'{name} {times(ratio)}' for name, ratio in others.items())}. Another model "
        f"(SmolLM2-135M-Instruct) on another machine; {'all' if are_valid else 'NOT all'} answers were values of the "
        "set.",
        order=12.0,
    )  # fmt: skip
