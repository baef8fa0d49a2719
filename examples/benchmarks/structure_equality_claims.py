"""What the trie paper claims about equality: of masks, of automata, of what a model writes; judged by one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from judging import judged
from results import Claim, Verdict
from structure_model import SameTokens
from structure_run import Structure
from wording import duration, span, times

NOT_MEASURED = "not measured in this run"


def equality_claims(run: Structure) -> list[Claim]:
    """One for each claim; what a run left out is said to be not reproduced."""
    return [
        _equal_masks(run),
        _stop_token(run),
        _isomorphic(run),
        _node_ratios(run),
        _same_outputs(run),
        _own_tokens(run),
        _high_cardinality(run),
        _accuracy(run),
    ]


def _equal_masks(run: Structure) -> Claim:
    said = "; ".join(
        f"{name}: {own.masks} of {own.places:,} masks differ, {own.outputs} samples"
        for name, own in run.agreement.items()
    )
    wrong = sum(own.masks + own.outputs for own in run.agreement.values())
    return Claim(
        "trie", "Proposition 1",
        "Trie and FSM allow the same tokens, so decoding, greedy or from one seed, writes the same.",
        "identical on 1,000 samples", f"{run.samples:,} samples at K=1,000; {said}",
        judged(wrong == 0 and run.samples > 0),
        "The scores are random, from one seed, so that rare spellings are gone through, too. For real models see "
        "appendix H.8.",
        order=40.1,
    )  # fmt: skip


def _stop_token(run: Structure) -> Claim:
    said = "; ".join(
        f"{name}: the end differs at {own.ends}, other bits of special tokens at {own.special} of {own.places:,} places"
        for name, own in run.agreement.items()
    )
    return Claim(
        "trie", "Appendix G.5", "Trie and FSM differ in the stop token at most.", "only the trailing stop token",
        said, judged(all(own.masks == 0 for own in run.agreement.values())),
        "All engines let a value end at the same places."
        if all(own.ends == 0 for own in run.agreement.values())
        else "They differ about where a value may end.",
        order=40.2,
    )  # fmt: skip


def _isomorphic(run: Structure) -> Claim:
    shapes = {**run.shapes, **{f"tool names, K={count:,}": own for count, own in run.tools.items()}}
    shares = {name: own.nodes / own.minimal for name, own in shapes.items()}
    equal = [name for name, share in shares.items() if share == 1]
    most = max(shares, key=lambda name: shares[name])
    said = ", ".join(f"{name} {own.nodes:,} and {own.minimal:,}" for name, own in shapes.items())
    return Claim(
        "trie", "Proposition 1, appendix G.2", "The trie is isomorphic to the minimal DFA of its set.", "always",
        f"nodes of the trie, states of the minimal automaton: {said}",
        judged(len(equal) == len(shares), in_part=bool(equal)),
        f"Each of these tries is larger, up to {times(shares[most])} ({most}): all leaves are one state, and common "
        "ends are shared. The masks are equal all the same, "
        "because what is legal depends on what may follow." if not equal
        else f"Equal for {', '.join(equal)}.",
        order=40.3,
    )  # fmt: skip


def _node_ratios(run: Structure) -> Claim:
    ratios = {count: run.token_nodes[count] / own.nodes for count, own in run.tools.items()}
    said = ", ".join(f"{ratio:.2g}× at {count:,}" for count, ratio in sorted(ratios.items()))
    return Claim(
        "trie", "Appendix H.8", "The trie over characters has fewer nodes than the one over tokens.",
        "3× fewer at K=100, 1.2× at 10,000", f"nodes of the one over tokens for each of ours: {said}",
        judged(all(ratio > 1 for ratio in ratios.values()), in_part=any(ratio > 1 for ratio in ratios.values())),
        f"A token is several bytes, so the trie over bytes has {span([1 / ratio for ratio in ratios.values()])} as "
        "many nodes. Its speed comes from elsewhere: it needs "
        "no tokenizer to run over the values." if max(ratios.values()) < 1
        else "",
        order=2.2,
    )  # fmt: skip


def _by_prompts(run: Structure, say: Callable[[SameTokens], str]) -> str:
    """What is said of each K, by the number of names that the prompts list."""
    parts = []
    for listed in dict.fromkeys(own.listed for own in run.same):
        where = f"with {listed} of the names in the prompt" if listed else "with prompts that name no tool"
        parts.append(f"{where} {', '.join(say(own) for own in run.same if own.listed == listed)}")
    return "; ".join(parts)


def _judged_alike(alike: Sequence[int], samples: Sequence[int]) -> Verdict:
    """In part if so of most samples."""
    return judged(list(alike) == list(samples), in_part=2 * sum(alike) > sum(samples))


def _same_outputs(run: Structure) -> Claim:
    where, says = "Appendix H.8, table 16", "Tries over characters and over tokens make a model write the same."
    reported = "all of 100 samples at K=500, 1,000, 2,000 and 5,000 (Qwen3-8B)"
    if not run.same:
        return Claim("trie", where, says, reported, NOT_MEASURED, "not reproduced", order=2.3)
    said = _by_prompts(run, lambda own: f"{own.texts} of {own.samples} at {own.count:,}")
    return Claim(
        "trie", where, says, reported, f"the same value: {said} (SmolLM2-135M-Instruct, greedy)",
        _judged_alike([own.texts for own in run.same], [own.samples for own in run.same]),
        f"It failed {sum(own.samples - own.texts for own in run.same)} times of "
        f"{sum(own.samples for own in run.same)}. Nothing guarantees it: the one over characters allows spellings "
        "that the other does not, and Proposition 1 says nothing about the two.",
        order=2.3,
    )  # fmt: skip


def _own_tokens(run: Structure) -> Claim:
    where, says = "Appendix H.9", "A model does not use the freedom to spell a value in other tokens."
    reported = "the same tokens on every sample (Qwen3-8B)"
    if not run.same:
        return Claim("trie", where, says, reported, NOT_MEASURED, "not reproduced", order=2.4)
    said = _by_prompts(run, lambda own: f"{own.tokens} and {own.own} of {own.samples} at {own.count:,}")
    examples = [own.example for own in run.same if own.example[0]]
    example = f" For example {'|'.join(examples[0][0])} and {'|'.join(examples[0][1])}." if examples else ""
    return Claim(
        "trie", where, says, reported,
        f"the same tokens under both tries, and the tokenizer's own under the one over bytes: {said}",
        _judged_alike([own.tokens for own in run.same], [own.samples for own in run.same]),
        f"A model of 135 million parameters.{example} Where it must hold, "
        "there is tokenization='canonical'.",
        order=2.4,
    )  # fmt: skip


def _high_cardinality(run: Structure) -> Claim:
    where, says = "Table 11", "At 74,719 ICD-10-CM codes FSM compiling times out, and the trie makes it possible."
    found = run.first_masks.get("ICD-10-CM")
    reported = "timeout against a trie that compiles"
    if found is None:
        return Claim("trie", where, says, reported, NOT_MEASURED, "not reproduced", order=11.0)

    def say(outcome: float | str) -> str:
        return outcome if isinstance(outcome, str) else duration(outcome)

    said = "; ".join(
        f"{name}: " + " / ".join(say(engines.get(engine, "–")) for engine in found)
        for name, engines in run.first_masks.items()
    )
    peers = {engine: outcome for engine, outcome in found.items() if engine != "trieauto"}
    stopped = [engine for engine, outcome in peers.items() if isinstance(outcome, str)]
    ours = found["trieauto"]
    return Claim(
        "trie", where, f"{says} (to the first mask: {' / '.join(found)})", reported, said,
        judged(len(stopped) == len(peers) and not isinstance(ours, str), in_part=bool(stopped)),
        f"Stopped: {', '.join(stopped) or 'none'}. Codes are short, so the set is small for its number of values.",
        order=11.0,
    )  # fmt: skip


def _accuracy(run: Structure) -> Claim:
    where, says = "Table 11", "At 74,719 codes the model's accuracy is 0 %: the decoder is not what limits it."
    reported = "0 % (its model), latency in the table's picture only"
    own = run.choosing.get("ICD-10-CM")
    if own is None:
        return Claim("trie", where, says, reported, NOT_MEASURED, "not reproduced", order=11.1)
    said = "; ".join(
        f"{name}: {one.right} of {one.samples} right, {duration(one.seconds)} a prompt"
        for name, one in run.choosing.items()
    )
    return Claim(
        "trie", where, says, reported, f"{said} (SmolLM2-135M-Instruct)",
        judged(own.right == 0, in_part=own.right / own.samples <= 0.1),
        "Another model, and prompts of our own: the paper gives none. Products are described by all parts of their "
        "names, codes by the classification's words.",
        order=11.1,
    )  # fmt: skip
