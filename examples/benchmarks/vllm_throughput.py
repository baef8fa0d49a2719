"""vLLM with each of its backends and with ours: requests per second, steps, first answers, validity.

    python examples/benchmarks/vllm_throughput.py --models DIRECTORY             everything (hours)
    python examples/benchmarks/vllm_throughput.py --models DIRECTORY --quick     the smallest setting (some minutes)
    python examples/benchmarks/vllm_throughput.py --models DIRECTORY --only random --ways xgrammar backend \
        --cases K=1,000 --batches 64 256 --json figures.json                      a slice of it

Run it with the Python of the environment that ``tests/engines/run.sh vllm`` makes. ``DIRECTORY`` holds the models
``smollm2`` and ``random``, as ``tests/engines/models.py`` writes them: SmolLM2-135M-Instruct, and one layer of random
weights with a vocabulary of 151,646 tokens, whose forward pass is so short that what engine and mask cost shows.

For each model and way of constraining answers an engine of its own is started, in a process of its own, which is front
end and engine in one, so that what each of them costs adds up (with ``--separate`` they are two, as in a server, and
contend for the cores of a small machine). A batch of requests is given to it at once, greedy, each with its own
parameters, as requests over HTTP have them. Beside each batch, in the same engine and in turns with it, two others run:
as many tokens for each prompt without any constraint (the ratio of the two rates, at equal steps, stands beside the
time), and, in the first engine, free text up to its own stop token (64 tokens at most). Medians of rounds, with the
fastest and the slowest.

What is written with ``--json`` is added to what the file has from other slices; the comparisons between ours and the
best of vLLM's own, which close a run, are made of all of it. So are the results for the page, with ``--results DIR``,
or later, in any environment:

    python examples/benchmarks/vllm_throughput.py --from-json figures.json

Keep the machine quiet while it measures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lines import add_saving, converted
from measure import Timing
from report import Report, Section
from results import DIRECTORY, machine
from tool_prompts import prompts
from vllm_claims import SUBJECT
from vllm_comparisons import add_comparisons, merged
from vllm_engines import WAYS, Run, Way, engine_options

from trieauto.demo_sets import icd10_cm_codes, tool_names
from trieauto.serving import ENVIRONMENT

MODELS = ("smollm2", "random")
CASES = ("K=1,000", "K=10,000", "ICD-10")
COLD = (500, 1_000, 5_000, 10_000)
FREE_TOKENS = 64
SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "2",
    "VLLM_LOGGING_LEVEL": "ERROR",
}


def values_of(case: str) -> list[str]:
    return icd10_cm_codes() if case == "ICD-10" else tool_names(int(case.removeprefix("K=").replace(",", "")))


class Bench:
    """All cells of one engine."""

    def __init__(self, options: argparse.Namespace, model: str, way: Way, sets: Path, report: Report) -> None:
        from vllm import LLM

        self.options = options
        self.model = model
        self.way = way
        self.sets = sets
        self.report = report
        self.is_right = True
        self.llm = LLM(**engine_options(way, str(options.models / model), max(options.batches)))

    def generate(self, texts: Sequence[str], parameters: Sequence[dict[str, Any]]) -> Run:
        """One batch; its parameters are made before the clock runs."""
        from vllm import SamplingParams

        params = [SamplingParams(temperature=0, **options) for options in parameters]
        begin = time.perf_counter()
        outputs = self.llm.generate(list(texts), params, use_tqdm=False)
        seconds = time.perf_counter() - begin
        answers = [output.outputs[0] for output in outputs]
        return Run(seconds, [answer.text for answer in answers], [len(answer.token_ids) for answer in answers])

    def measure(self) -> None:
        self.generate(prompts(16, 0), [{"max_tokens": 8}] * 16)  # warm
        for batch in self.options.batches if self.options.free else ():
            self.free(
                self.report.section(f"{self.model}, free text") if batch == self.options.batches[0] else None, batch
            )
        section = self.report.section(f"{self.model}, {self.way.name}")
        for case in self.options.cases:
            values = values_of(case)
            (self.sets / "set.txt").write_text("\n".join(values) + "\n")
            for form in self.way.forms:
                if form == "regex" or (form == "set" and case == "K=1,000" and not self.options.all_forms):
                    continue
                self.cells(section, case, values, form)
        if self.options.cold:
            section = self.report.section(f"{self.model}, {self.way.name}, first answers")
            for count in COLD:
                for form in self.way.forms:
                    self.first_answers(section, count, form)

    def free(self, section: Section | None, batch: int) -> None:
        """Free text up to the model's own stop token."""
        if section is not None:
            self._free = section
        texts = prompts(batch, batch)
        runs = [self.generate(texts, [{"max_tokens": FREE_TOKENS}] * batch) for _ in range(self.options.rounds)]
        tokens = sum(runs[0].tokens) / batch
        self._free.add(
            f"batch {batch}", f"in the engine of {self.way.name}", Timing.of([run.seconds / batch for run in runs]),
            note=f"a request; {batch / statistics.median(run.seconds for run in runs):.4g} requests/s, "
                 f"{tokens:.2f} tokens each",
        )  # fmt: skip

    def cells(self, section: Section, case: str, values: list[str], form: str) -> None:
        """One set, in all batches."""
        known = set(values)
        make = self.way.forms[form]
        one = self.generate(prompts(1, 7), [{"max_tokens": 32, **make(values, "set")}])  # compiled now
        one = self.generate(prompts(1, 8), [{"max_tokens": 32, **make(values, "set")}])
        for batch in self.options.batches:
            who = f"{form}, batch {batch}"
            if one.seconds * (self.options.rounds + 1) * batch / 16 > self.options.patience:
                section.add(case, who, note=f"left out: one request takes {one.seconds:.2g} s")
                continue
            texts = prompts(batch, batch)
            bound, free = [], []
            for _ in range(self.options.rounds):
                found = self.generate(texts, [{"max_tokens": 32, **make(values, "set")} for _ in texts])
                bound.append(found)
                free.append(self.generate(texts, [{"max_tokens": n, "ignore_eos": True} for n in found.tokens]))
            ratio = statistics.median(
                run.steps_per_second / other.steps_per_second for run, other in zip(bound, free, strict=True)
            )
            valid = sum(text in known for text in bound[0].texts)
            median = statistics.median(run.seconds for run in bound)
            section.add(
                case,
                who,
                Timing.of([run.seconds / batch for run in bound]),
                ratio=ratio,
                **({"at_least": 0.97} if self.way.is_ours else {}),
                note=f"a request; {batch / median:.4g} requests/s, {sum(found.tokens) / batch:.2f} tokens each, "
                f"{valid} of {batch} valid",
            )
            if self.way.is_ours and any(text not in known for run in bound for text in run.texts):
                self.is_right = False
                print("  WRONG: every answer must be in the set", file=sys.stderr)

    def first_answers(self, section: Section, count: int, form: str) -> None:
        """The first request over a set that nothing has seen, beyond as many tokens without a constraint."""
        seconds = []
        values = tool_names(count + self.options.rounds)
        for number in range(self.options.rounds):
            new = values[number : number + count]
            name = f"new_{count}_{number}"
            (self.sets / f"{name}.txt").write_text("\n".join(new) + "\n")
            texts = prompts(1, 100 + number)
            first = self.generate(texts, [{"max_tokens": 32, **self.way.forms[form](new, name)}])
            free = [self.generate(texts, [{"max_tokens": first.tokens[0], "ignore_eos": True}]) for _ in range(3)]
            seconds.append(first.seconds - statistics.median(run.seconds for run in free))
        section.add(f"K={count:,}", form, Timing.of(seconds), note="beyond a free request of as many tokens")


def run_engine(options: argparse.Namespace) -> int:
    """In a process of its own: one engine."""
    way, (model,) = WAYS[options.engine], options.only
    report = Report()
    bench = Bench(options, model, way, Path(os.environ[ENVIRONMENT]), report)
    bench.measure()
    options.json.write_text(json.dumps(report.as_json()), "utf-8")
    return 0 if bench.is_right else 1


def run_all(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """One process for each engine, since what trieauto changes in vLLM it changes for a whole process."""
    about = machine()
    print("; ".join(f"{name} {value}" for name, value in about.items()))
    lines: list[dict[str, Any]] = []
    is_right = True
    for model in options.only:
        for name in options.ways:
            with tempfile.TemporaryDirectory() as directory:
                figures = Path(directory, "figures")
                sets = Path(directory, "sets")
                sets.mkdir()
                command = [sys.executable, __file__, *arguments, "--engine", name, "--json", str(figures)]
                processes = {"VLLM_ENABLE_V1_MULTIPROCESSING": str(int(options.separate))}
                environment = os.environ | SETTINGS | processes | WAYS[name].environment | {ENVIRONMENT: str(sets)}
                once = ["--free"] if name == options.ways[0] else []
                done = subprocess.run([*command, "--only", model, *once], env=environment)
                is_right &= done.returncode == 0
                if figures.exists():
                    lines += json.loads(figures.read_text("utf-8"))
    if options.json is not None and options.json.exists():
        lines = merged(json.loads(options.json.read_text("utf-8"))["lines"], lines)
    report = Report()
    add_comparisons(report, lines)
    if options.json is not None:
        found = {"about": about, "lines": lines, "comparisons": report.as_json()}
        options.json.write_text(json.dumps(found, indent=1), "utf-8")
    asked = ((options.only, MODELS), (options.ways, WAYS), (options.cases, CASES))
    is_whole = not options.quick and all(set(chosen) == set(every) for chosen, every in asked)
    if options.results is not None or is_whole:
        SUBJECT.save(lines, options.results or DIRECTORY)
    return 0 if is_right else 1


def main(arguments: Sequence[str] | None = None) -> int:
    if converted(SUBJECT, arguments):
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True, help="the directory of the models")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS), help="models to measure")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 16, 64, 256])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--all-forms", action="store_true", help="K=1,000 by the name of its set, too")
    parser.add_argument("--cold", action="store_true", help="first answers, too")
    parser.add_argument("--patience", type=float, default=120, metavar="SECONDS", help="for a cell; 120")
    parser.add_argument("--separate", action="store_true", help="the front end in one process, the engine in another")
    parser.add_argument("--quick", action="store_true", help="K=1,000, batches of 1 and 16")
    add_saving(parser)
    parser.add_argument("--engine", choices=list(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--free", action="store_true", help=argparse.SUPPRESS)
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = parser.parse_args(given)
    if options.quick:
        options.cases, options.batches = ["K=1,000"], [1, 16]
    return run_engine(options) if options.engine else run_all(options, given)


if __name__ == "__main__":
    sys.exit(main())
