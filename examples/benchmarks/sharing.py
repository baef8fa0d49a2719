"""Sets whose values share more or less of their text: compile time by prefix sharing (trie paper, H.7 and H.12).

    python examples/benchmarks/sharing.py            1,000 strings of 36 characters (under a minute)
    python examples/benchmarks/sharing.py --quick    100

The values are random hexadecimal strings. In groups of ten they begin alike, for none, half or nearly all of their
length, so that the sets differ in nothing but r, the nodes of the trie for each character. From the set to the masks of
all nodes (trieauto, eager) and to the first mask (all engines). Needs ``pip install "trieauto[bench,demo]"`` and
dashscope. Keep the machine quiet.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence

from context import Context
from family_measures import tried
from lines import add_saving, converted, finish
from measure import Timing, clocked, in_turns
from results import machine
from sharing_claims import FIRST, LENGTH, NODES, SUBJECT
from structure_tries import shape

SHARED = (0, 18, 34)
GROUP = 10
ENGINES = ("trieauto", "trieauto, eager", "XGrammar", "LLGuidance")


def alike(count: int, shared: int, seed: int = 0) -> list[str]:
    """Distinct random strings; in each group of ten so many first characters are the same."""
    rng = random.Random(seed)
    values: dict[str, None] = {}
    while len(values) < count:
        if len(values) % GROUP == 0:
            start = "".join(rng.choices("0123456789abcdef", k=shared))
        values[start + "".join(rng.choices("0123456789abcdef", k=LENGTH - shared))] = None
    return list(values)


def main(arguments: Sequence[str] | None = None) -> int:
    if converted(SUBJECT, arguments):
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 strings, trieauto alone")
    add_saving(parser)
    options = parser.parse_args(arguments)
    count = 100 if options.quick else 1_000
    context = Context([count], 60.0, None)
    for shared in SHARED:
        values = alike(count, shared)
        case = f"{shared} of {LENGTH} shared"
        tasks: dict[str, Callable[[], float]] = {}
        for name in ENGINES[:2] if options.quick else ENGINES:
            engine = context.engine(name)
            seconds = tried(engine, engine.forms, {form: form.source(values) for form in engine.forms})
            form = min(seconds, key=seconds.__getitem__)
            tasks[name] = clocked(engine.first_mask, form, form.source(values), engine.allocate(1))
        context.report.section(NODES).add(case, "r", shape(values).ratio, unit="nodes a character")
        timings: dict[str, Timing] = in_turns(tasks, seconds=0.2 if options.quick else 2.0)
        section = context.report.section(f"{FIRST}: {count:,} strings of {LENGTH} characters, {case} (Qwen)")
        for name, timing in timings.items():
            ratio = timing.median / timings["trieauto"].median if name != "trieauto" else None
            section.add(case, name, timing, ratio=ratio)
    finish(options, SUBJECT, context.report.as_json(), machine(), is_whole=not options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
