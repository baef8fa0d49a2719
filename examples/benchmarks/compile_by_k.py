"""From a set to its first mask, and from then on one mask after the other, by the size of the set, all engines.

    python examples/benchmarks/compile_by_k.py             10 to 100,000 tool names (about 10 minutes)
    python examples/benchmarks/compile_by_k.py --quick     10 and 30 (half a minute)

The trie paper's figure 1a and tables 2, 4 and 18: trieauto, its construction as the paper has it (nothing kept, masks
of all nodes by Aho-Corasick), a trie over tokens as GENRE's, with and without masks made beforehand, XGrammar (EBNF,
and what is fastest), LLGuidance, outlines-core. A peer that is still at work after a minute is stopped, and that is
said. Needs ``pip install "trieauto[bench,demo]"`` and dashscope. Keep the machine quiet.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from by_k_claims import claims
from by_k_paper import COUNTS
from by_k_plots import COMPILE_PLOT, MASK_PLOT, draw_compiling, draw_masks
from by_k_run import ByK
from context import NUM_WALKS, Context, attempt, canonical_masks_trial
from judging import crossovers, said_crossings
from measure import Timing, in_turns
from peers import PEERS
from report import progress
from restoring import restored
from results import DIRECTORY, Results, add_from_json, earlier_run
from rows_compile import GIVEN_UP, LONG, all_forms, time_first_masks
from rows_masks import other_masks
from token_tries import TOKEN_TRIES, canonical_walks
from walks import WalkTimer

from trieauto.demo_sets import tool_names

OURS = ("trieauto", "trieauto, as in the paper", "trieauto, canonical")
COMPILED_TRIES = ("GENRE", "GENRE, masks ready")  # "GENRE, rows" is compiled as "GENRE"
BY_FORM = {"XGrammar": "EBNF"}
COMPARED_TO = 10_000  # up to this size masks of all engines are compared
KINDS = [name for name in PEERS if name != "XGrammar dynamic"]


@dataclass
class Run:
    """What is measured, set by set."""

    context: Context
    seconds: float
    by_k: ByK = field(default_factory=ByK)

    def all_sets(self) -> None:
        forms = all_forms(self.context, KINDS)
        for count in self.context.counts:
            found = time_first_masks(
                self.context, count, forms, (*OURS, *COMPILED_TRIES), BY_FORM, seconds=2 * self.seconds
            )
            for name, timing in found.timings.items():
                self.by_k.compiling.setdefault(name, {})[count] = timing
            for name, failure in found.failures.items():
                self.by_k.stopped.setdefault(name, {})[count] = failure
            self.by_k.forms[count] = found.by_form
            self.by_k.fastest_form[count] = {name: found.labels[name] for name in KINDS if name in found.labels}
            self._add("set to first mask", count, found.timings, found.labels, found.failures)
            self.masks(count, found.timings)

    def masks(self, count: int, first: dict[str, Timing]) -> None:
        """Every engine's mask along values as the tokenizer writes them; what compiles slowly, once and in a child."""
        context, values = self.context, tool_names(count)
        compiled: dict[str, Any] = {}
        single: dict[str, Timing] = {}
        names = [*OURS[:1], "trieauto, own buffers", OURS[2], *TOKEN_TRIES, *KINDS]
        for name in names:
            if name in KINDS and name not in first:
                continue  # it was stopped
            engine = context.engine(name)
            form = engine.forms[0]
            if name in KINDS and first[name].median > LONG:
                cost = attempt(canonical_masks_trial, context, name, count, form)
                if isinstance(cost, str):
                    self.by_k.stopped_masks.setdefault(name, {})[count] = cost
                else:
                    single[name] = Timing.of([cost.seconds])
                continue
            progress(f"masks of {name} at K={count:,}")
            compiled[name] = engine.compile(form, form.source(values))
        walks = canonical_walks(values, NUM_WALKS)
        timings = in_turns(
            {name: WalkTimer(context.engine(name), made, walks) for name, made in compiled.items()},
            seconds=self.seconds,
        )
        for name, timing in (timings | single).items():
            self.by_k.masks.setdefault(name, {})[count] = timing
        self._add("one mask", count, timings | single, {}, self.by_k.stopped_masks_at(count))
        if count <= COMPARED_TO:
            self.by_k.different[count] = other_masks(context, values, compiled)

    def _add(
        self, what: str, count: int, timings: dict[str, Timing], labels: dict[str, str], failed: dict[str, str]
    ) -> None:
        case, ours = f"K={count:,}", timings["trieauto"].median
        section = self.context.report.section(f"{case}: {what} (Qwen, 151,646 ids); ratios: theirs over ours")
        for name, timing in timings.items():
            ratio = None if name == "trieauto" else timing.median / ours
            section.add(case, labels.get(name, name), timing, ratio=ratio)
        for name, why in failed.items():
            section.add(case, name, note="stopped at a smaller set" if why == GIVEN_UP else f"stopped: {why}")


_TITLES = {
    "compiling": "set to first mask",
    "masks": "one mask",
    "forms": "forms in seconds, best of a few",
    "fastest_form": "fastest form",
    "stopped": "stopped",
    "stopped_masks": "stopped before all masks",
    "different": "places with other masks than ours, and places",
}
"""What the figures call the parts of a run."""


def by_k_of(figures: dict[str, Any]) -> ByK:
    """What ``results`` made the figures of."""
    return restored(ByK, {name: figures[title] for name, title in _TITLES.items()})


def results(by_k: ByK, patience: float, earlier: dict[str, Any] | None = None) -> Results:
    """All of it as JSON, with the claims; of an ``earlier`` run, if it is one (see ``Results``)."""
    figures, compiling = asdict(by_k), by_k.medians(by_k.compiling)
    crossing = {
        name: {other: crossovers(compiling[name], line) for other, line in compiling.items() if other != name}
        for name in OURS
    }
    return Results(
        "compile_by_k",
        "Sets of strings: compile time and per-step masking by K (trie paper, figure 1a, tables 2, 4 and 18)",
        figures={
            "tokenizer": "Qwen, 151,646 ids",
            "patience in seconds": patience,
            "crossovers of set to first mask": crossing,
            **{title: figures[name] for name, title in _TITLES.items()},
        },
        claims=claims(by_k, patience),
        plots={
            COMPILE_PLOT: "From the set to the first mask by K. Crosses are the paper's own figures, on its machine.",
            MASK_PLOT: "One mask by K, along values as the tokenizer writes them.",
        },
        earlier=earlier or {},
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="sets of 10 and 30, few rounds")
    parser.add_argument("--counts", nargs="+", type=int, metavar="K", help="sizes of the sets")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds after which a peer is stopped")
    parser.add_argument("--seconds", type=float, help="for each measurement (default 1)")
    parser.add_argument("--results", type=Path, default=DIRECTORY, metavar="DIR", help="where JSON and plots go")
    add_from_json(parser)
    options = parser.parse_args(arguments)
    counts = sorted(options.counts or ([10, 30] if options.quick else COUNTS))
    context = Context(counts, options.patience, None)
    run = Run(context, options.seconds or (0.05 if options.quick else 1.0))
    if options.from_json is not None:
        figures, earlier = earlier_run(options.from_json, "compile_by_k")
        run.by_k = by_k_of(figures)
        found = results(run.by_k, figures["patience in seconds"], earlier)
    else:
        run.all_sets()
        found = results(run.by_k, options.patience)
    print("\nWhere lines cross (set to first mask)")
    for name, others in found.figures["crossovers of set to first mask"].items():
        for other, crossing in others.items():
            if crossing:
                print(f"  {name} and {other}: {said_crossings(crossing)}")
    for claim in found.claims:
        print(f"\n{claim.where}: {claim.says}\n  paper: {claim.reported}\n  here: {claim.measured}\n  {claim.verdict}")
    draw_compiling(options.results / COMPILE_PLOT, run.by_k, options.patience)
    draw_masks(options.results / MASK_PLOT, run.by_k)
    print(f"\n{found.save(options.results)}")


if __name__ == "__main__":
    main()
