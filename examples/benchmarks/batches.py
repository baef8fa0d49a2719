"""Masks of a batch in one call: Table 19 of the trie paper, with one set for all rows and with one for each.

    python examples/benchmarks/batches.py            five minutes
    python examples/benchmarks/batches.py --quick    a try with small batches (half a minute)

Needs ``pip install "trieauto[bench,demo]" dashscope``. Qwen's tokenizer, tool names, batches of 1 to 128 rows. Every
matcher takes a token before each call; then one call writes the rows of all, with the number of threads that is best
for the engine, or a loop over the rows if that is faster. Sets are those of a server that has run for a while: their
masks are there. With a set for each row, no two rows share one. Masks are compared. Writes results/batches.json and a
plot. Keep the machine quiet while it runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from batch_claims import EACH, LARGER, ONE, Batches, Kind, claims, draw
from batching import batch_timings, park
from family_measures import Effort, make_engines
from ours import Trieauto, TrieautoOwnBuffers
from peers import Engine, LLGuidance, XGrammar
from report import Report, progress
from results import DIRECTORY, Results, add_from_json, earlier_run
from vocabularies import qwen

from trieauto.demo_sets import tool_names

ENGINES = (Trieauto, TrieautoOwnBuffers, XGrammar, LLGuidance)
SIZES = [1, 2, 4, 8, 16, 32, 64, 128]
GROUPS = 4  # matchers take turns on the rows of the largest batch, so that no row is filled twice with the same mask
COUNT, LARGE = 1_000, 10_000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="batches of up to 4, sets of 100 and 200")
    parser.add_argument("--results", type=Path, default=DIRECTORY, metavar="DIR", help="where to write")
    add_from_json(parser)
    options = parser.parse_args(arguments)
    if options.from_json is not None:
        figures, earlier = earlier_run(options.from_json, "batches")
        kinds = {name: Kind.of_json(figures_of) for name, figures_of in figures["kinds"].items()}
        row_bytes = 4 * -(-figures["token_ids"] // 32)
        return _save(Batches(list(kinds[ONE].timings), row_bytes, kinds), options.results, earlier)
    effort = Effort(0.05, 3, 0) if options.quick else Effort(1.0, 31, 0)
    sizes, count, large = ([1, 4], 100, 200) if options.quick else (SIZES, COUNT, LARGE)
    engines = make_engines(qwen(), ENGINES)
    report = Report()
    batches = Batches(sizes, 4 * engines["trieauto"].num_words)
    batches.kinds[ONE] = _measure(engines, ONE, [tool_names(count)], sizes, effort, report)
    each = [tool_names(count, seed) for seed in range(sizes[-1])]
    batches.kinds[EACH] = _measure(engines, EACH, each, sizes, effort, report)
    ends = [sizes[0], sizes[-1]]
    batches.kinds[LARGER] = _measure(engines, LARGER, [tool_names(large)], ends, effort, report)
    return _save(batches, options.results, {})


def _save(batches: Batches, directory: Path, earlier: dict[str, Any]) -> int:
    results = Results("batches", "Masks of a batch in one call, of one set or many (Table 19)")
    results.earlier = earlier
    results.figures = {
        "token_ids": qwen().size,
        "kinds": {name: kind.as_json() for name, kind in batches.kinds.items()},
    }
    results.claims = claims(batches)
    draw(batches, directory / "batches.svg")
    results.plots = {"batches.svg": "The rows of a batch filled in one call: one set for all rows, or a set for each."}
    print(f"\n{results.save(directory)}")
    for claim in results.claims:
        print(f"{claim.verdict:<14} {claim.where}: {claim.says}\n{'':<15}{claim.measured} {claim.comment}")
    return 1 if batches.different else 0


def _measure(
    engines: Mapping[str, Engine],
    title: str,
    sets: Sequence[Sequence[str]],
    sizes: Sequence[int],
    effort: Effort,
    report: Report,
) -> Kind:
    vocabulary = qwen()
    parked = park(engines, sets, GROUPS * sizes[-1], vocabulary)
    kind = Kind(len(sets), len(sets[0]))
    section = report.section(f"{title}: {kind} (Qwen, {vocabulary.size:,} ids); a ratio is a peer's cost over ours")
    for size in sizes:
        progress(f"batches of {size}, {title}")
        kind.timings[size] = batch_timings(parked, size, seconds=effort.seconds, rounds=effort.rounds)
        for who, (timing, threads) in kind.timings[size].items():
            ratio = None if who.startswith("trieauto") else kind.seconds(size, who) / kind.seconds(size)
            section.add(f"B={size}", who, timing, ratio=ratio, note=f"threads={threads}")
        masks = {
            who: parked[who].batch_content_masks(vocabulary, size, threads)
            for who, (_, threads) in kind.timings[size].items()
        }
        ours = masks.pop("trieauto")
        for who, theirs in masks.items():
            kind.compared += len(ours)
            different = int((ours != theirs).any(axis=1).sum())
            kind.different += different
            section.add(f"B={size}", f"{who}: other masks", different, at_most=0, note=f"of {len(ours)}")
    return kind


if __name__ == "__main__":
    sys.exit(main())
