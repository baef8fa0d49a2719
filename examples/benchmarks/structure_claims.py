"""What the trie paper claims about the structure of sets and about memory, judged by one run."""

from __future__ import annotations

from context import Cost
from judging import judged
from results import Claim
from structure_equality_claims import equality_claims
from structure_run import Structure
from structure_sets import PAPER_RATIO
from structure_tries import shape
from wording import span, times

CLOSE = 0.05  # of ratios: sets of the same kind are not the same sets
OF_KINDS = ("random UUIDs, K=1,000", "names of cities")
OF_BENCHMARKS = tuple(name for name in PAPER_RATIO if name not in OF_KINDS)
PAPER_DEPTHS = {0: (72, 72, 1), 1: (6, 17, 12), 2: (3, 7, 19), 3: (5, 35, 21), 4: (10, 39, 21), 5: (8, 43, 34)}
WORKED_EXAMPLE = ["medical_billing", "medical_coding", "medical_records"]


def claims(run: Structure) -> list[Claim]:
    """One for each claim; what a run left out is said to be not reproduced."""
    return [
        _ratios(run),
        _ratios_of_kinds(run),
        _mask_memory(run),
        _table_memory(run),
        _process_memory(run),
        _tokenizer_memory(run),
        _depths(run),
        _after_some_characters(run),
        _compile_operations(run),
        _step_operations(run),
        _worked_example(),
        *equality_claims(run),
    ]


def _mb(size: float) -> str:
    return f"{size / 1e6:,.3g} MB" if size < 1e9 else f"{size / 1e9:,.3g} GB"


def _ratio_claim(run: Structure, names: tuple[str, ...], where: str, says: str, order: float) -> Claim:
    found = {name: run.shapes[name].ratio for name in names if name in run.shapes}
    reported = ", ".join(
        f"{name} {low:g}" if low == high else f"{name} {low:g} to {high:g}"
        for name, (low, high) in PAPER_RATIO.items()
        if name in names
    )
    if not found:
        return Claim("trie", where, says, reported, "not measured in this run", "not reproduced")
    fits = [PAPER_RATIO[name][0] - CLOSE <= ratio <= PAPER_RATIO[name][1] + CLOSE for name, ratio in found.items()]
    missing = [name for name in names if name not in found]
    return Claim(
        "trie", where, says, reported, ", ".join(f"{name} {ratio:.3f}" for name, ratio in found.items()),
        judged(all(fits) and not missing, in_part=any(fits)),
        f"Within {CLOSE:g} for {sum(fits)} of {len(fits)}." + (f" Left out: {', '.join(missing)}." if missing else ""),
        order=order,
    )  # fmt: skip


def _ratios(run: Structure) -> Claim:
    return _ratio_claim(
        run,
        OF_BENCHMARKS,
        "Table 14",
        "What share of a set's characters are nodes of their own (r; the lower, the more is shared).",
        14.0,
    )


def _ratios_of_kinds(run: Structure) -> Claim:
    return _ratio_claim(run, OF_KINDS, "Appendix H.7", "Random strings share nothing, natural language a third.", 14.1)


def _mask_memory(run: Structure) -> Claim:
    where, says = "Table 10", "The masks of all nodes take little memory, about linear in K."
    reported = "0.9 MB at K=10,000, 8 MB at 100,000"
    if not {10_000, 100_000} <= run.memory.keys():
        return Claim("trie", where, says, reported, "not measured in this run", "not reproduced", order=10.0)
    at = {count: run.memory[count] for count in sorted(run.memory)}
    said = ", ".join(f"{_mb(own.entries)} at {count:,}" for count, own in at.items())
    near = [at[10_000].entries / 0.9e6, at[100_000].entries / 8e6]
    return Claim(
        "trie", where, says, reported, f"4 bytes for each token of each node: {said}",
        judged(all(0.5 <= ratio <= 2 for ratio in near), in_part=all(0.1 <= ratio <= 10 for ratio in near)),
        f"{span(near)} the paper's, whose names beyond its pools are not known. That is the tokens alone: trieauto "
        f"with all masks stored, its trie and the values' order takes {_mb(at[100_000].stored)} at 100,000, and by "
        f"default, where masks are found when needed, {_mb(at[100_000].found)}.",
        order=10.0,
    )  # fmt: skip


def _table_memory(run: Structure) -> Claim:
    where, says = "Section 5.1, appendix H.5", "By formula an FSM's table takes some hundred times as much."
    reported = "about 2 GB at K=100,000; 222× at 10,000"
    if not {10_000, 100_000} <= run.memory.keys():
        return Claim("trie", where, says, reported, "not measured in this run", "not reproduced", order=10.1)
    small, large = run.memory[10_000], run.memory[100_000]
    ratios = [small.table / small.entries, large.table / large.entries]
    minimal = [small.minimal_table / small.entries, large.minimal_table / large.entries]
    return Claim(
        "trie", where, says, reported,
        f"1,024 bytes for each of {large.nodes:,} nodes: {_mb(large.table)} at 100,000; {times(ratios[0])} the masks "
        f"at 10,000, {times(ratios[1])} at 100,000",
        judged(min(ratios) >= 111 and 1e9 <= large.table <= 4e9, in_part=min(ratios) >= 10),
        f"A formula about a table that no engine here makes, for as many states as the trie has nodes. The minimal "
        f"automaton has {large.minimal:,} states: {times(minimal[0])} and {times(minimal[1])}.",
        order=10.1,
    )  # fmt: skip


def _process_memory(run: Structure) -> Claim:
    where, says = "Appendix H.5", "A process grows by several times less than with XGrammar (K=10,000)."
    reported = "XGrammar 9.6 MB, trie 2.2 MB (4.4×)"
    costs = {name: cost for name, cost in run.process.items() if isinstance(cost, Cost)}
    if run.process_count != 10_000 or not {"trieauto", "XGrammar"} <= costs.keys():
        return Claim("trie", where, says, reported, "not measured in this run", "not reproduced", order=10.2)
    ratio = costs["XGrammar"].resident / max(costs["trieauto"].resident, 4096)
    eager = costs["XGrammar"].resident / max(costs["trieauto, eager"].resident, 4096)
    said = ", ".join(f"{name} {_mb(cost.resident)}" for name, cost in costs.items())
    return Claim(
        "trie", where, says, reported, f"resident memory kept: {said}",
        judged(ratio >= 2.2 and eager >= 2.2, in_part=ratio > 1),
        f"XGrammar takes {times(ratio)} as much as trieauto, {times(eager)} as much as with all masks stored. Each "
        "engine in a process of its own, from before compiling to after the first mask.",
        order=10.2,
    )  # fmt: skip


def _tokenizer_memory(run: Structure) -> Claim:
    reported = "about 150 MB for Gemma3's 262K tokens, 8 MB for a set of 100,000"
    largest = max(run.memory)
    of_set = run.memory[largest].found
    return Claim(
        "trie", "Section 5.1", "The vocabulary's automaton is the large part, shared by all sets.", reported,
        f"Qwen's 151,646 tokens with Aho-Corasick links {_mb(run.tokenizer_bytes)}, a set of {largest:,} {_mb(of_set)}",
        judged(run.tokenizer_bytes > of_set),
        "How large it is, is another claim.",
        order=10.3,
    )  # fmt: skip


def _depths(run: Structure) -> Claim:
    rows = {row.depth: row for row in run.depths}
    here = {depth: rows[depth] for depth in PAPER_DEPTHS if depth in rows}
    root, second = here[0], here[2]
    largest = max(row.largest for row in run.depths)
    return Claim(
        "trie", "Table 15",
        "The root has few legal tokens, not V; at depth 2 a handful; then more again: K=1,000 (mean / largest / nodes)",
        "; ".join(f"depth {depth}: {mean} / {most} / {nodes}" for depth, (mean, most, nodes) in PAPER_DEPTHS.items()),
        "; ".join(f"depth {depth}: {row.mean:.3g} / {row.largest} / {row.nodes}" for depth, row in here.items()),
        judged(
            root.largest < 300 and second.mean < 10 and max(here[3].mean, here[4].mean, here[5].mean) > second.mean,
            in_part=root.largest < 300,
        ),
        f"The largest of all {sum(row.nodes for row in run.depths):,} nodes has {largest}. The paper's set has fewer "
        "nodes near the root, so its names are not drawn as its appendix C.2 says or as ours." if here[3].nodes > 42
        else f"The largest of all has {largest}.",
        order=15.0,
    )  # fmt: skip


def _after_some_characters(run: Structure) -> Claim:
    means = [row.mean for row in run.depths if row.depth in (3, 4)]
    return Claim(
        "trie", "Section 4.2", "After 3 or 4 characters 10 to 100 tokens remain legal, typically.", "10 to 100",
        f"on average {span(means, lambda mean: f'{mean:.1f}')} at depths 3 and 4 (K=1,000 tool names)",
        judged(all(10 <= mean <= 100 for mean in means), in_part=any(1 <= mean <= 100 for mean in means)),
        "The paper's own table 15 has means of 5 and 10 there.",
        order=15.1,
    )  # fmt: skip


def _compile_operations(run: Structure) -> Claim:
    where, says = (
        "Table 1, appendix H.1",
        "Compiling takes 40× fewer operations than the FSM, 460× with minimisation.",
    )
    reported = "15.4 million (169 million) against 368,000, for K=2,000, values of 30, V=32,000, tokens of 4"
    counts = run.counts
    assert counts is not None
    own, worst = counts.formulas, counts.longest
    done = counts.trie_edges + counts.entries
    paper_like = counts.vocabulary_edges + done
    return Claim(
        "trie", where, says, reported,
        f"the formulas with a real set ({counts.shape.characters:,} characters) and Mistral's "
        f"{counts.vocabulary_size:,} tokens ({counts.mean_token:.1f} bytes on average): {own.subset:,.0f} "
        f"({own.minimised:,.0f}) against {own.trie:,.0f}: {times(own.subset / own.trie)} "
        f"({times(own.minimised / own.trie)})",
        judged(own.subset / own.trie >= 40, in_part=own.subset / own.trie >= 4),
        f"Really done: {counts.vocabulary_edges:,} edges of the vocabulary, once for a tokenizer; for the set "
        f"{counts.trie_edges:,} edges and {counts.entries:,} tokens found, {paper_like:,} in all. The longest token "
        f"has {counts.longest_token} bytes, not 4: with it, as the paper defines its ℓ, the formula gives "
        f"{worst.trie:,.0f}, {times(worst.subset / worst.trie)}. No engine fills 256 "
        "entries for each character.",
        order=1.5,
    )  # fmt: skip


def _step_operations(run: Structure) -> Claim:
    counts = run.counts
    assert counts is not None
    ratio = counts.formulas.mask / counts.mask
    return Claim(
        "trie", "Table 1, appendix H.1", "A mask looks at 50 to 500 tokens, not V times ℓ characters: 250 to 2,500×.",
        "128,000 against 50 to 500",
        f"by the formula {counts.formulas.mask:,.0f}; {counts.mask:.1f} tokens are legal at a step on average, at most "
        f"{counts.largest_mask} ({times(ratio)})",
        judged(ratio >= 250),
        "No engine here looks at each token from its beginning: XGrammar has masks ready for most states, LLGuidance "
        "walks a trie of the tokens.",
        order=1.6,
    )  # fmt: skip


def _worked_example() -> Claim:
    own = shape(WORKED_EXAMPLE)
    return Claim(
        "trie", "Appendix G.1", "The worked example's trie has 29 nodes for 44 characters.", "44 characters, 29 nodes",
        f"{own.characters} characters, {own.nodes} nodes, the root included; the minimal automaton has {own.minimal}",
        judged((own.characters, own.nodes) == (44, 29)),
        "",
        order=30.0,
    )  # fmt: skip
