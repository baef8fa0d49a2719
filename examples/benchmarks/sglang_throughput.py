"""SGLang with each of its grammar backends and with ours: requests per second, tokens, first answers, validity.

    python examples/benchmarks/sglang_throughput.py --models DIRECTORY            everything (about an hour)
    python examples/benchmarks/sglang_throughput.py --models DIRECTORY --quick    the smallest setting (some minutes)

Run it with the Python of the environment that ``tests/engines/run.sh sglang`` makes. ``DIRECTORY`` holds the models
``smollm2`` and ``random``, as ``tests/engines/models.py`` writes them: SmolLM2-135M-Instruct, and one layer of
random weights with a vocabulary of 151,646 tokens, whose forward pass is so short that what engine and mask cost shows.

For each model and backend a server of its own is started. Each set is given to each backend in the form that is fastest
there: by name to ours, as EBNF to XGrammar, as a JSON enum to LLGuidance. The object with a 5,000-value enum and a date
is a JSON schema for all. Beside each cell, in the same server and right after it, as many tokens are generated without
any constraint: "of free" is the ratio of the two rates in tokens. An answer is valid if it is in the set; with four
tokens at most, a backend that knows no budget cuts answers off, and ours refuses what does not fit.

Keep the machine quiet while it measures.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from lines import add_saving, converted, finish
from measure import Timing
from report import Report
from results import machine
from sglang_claims import SUBJECT
from tool_prompts import prompts

from trieauto.demo_sets import icd10_cm_codes, tool_names
from trieauto.serving import ENVIRONMENT

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.engines.sglang.server import Answer, Server

BACKENDS = ("trie", "xgrammar", "llguidance")
MODELS = ("smollm2", "random")
NEW_SETS = 3  # of which the first answer is timed
_NO_SIGNS = str.maketrans("", "", "=,")


@dataclass(frozen=True)
class Case:
    """A set, and how answers from it are asked for."""

    name: str
    values: list[str]
    is_object: bool = False

    def schema(self, values: dict[str, Any]) -> str:
        properties = {"tool": values, "on": {"type": "string", "format": "date"}}
        return json.dumps({"type": "object", "properties": properties, "required": ["tool", "on"]})

    def set_name(self, number: int) -> str:
        """The name of the file of one of its new sets."""
        return f"{self.name.translate(_NO_SIGNS)}_{number}"

    def options(self, backend: str, set_name: str) -> dict[str, str]:
        """The sampling parameters of a request."""
        if self.is_object:
            return {"json_schema": self.schema({"x-trieauto-set": set_name} if backend == "trie" else self.enum)}
        if backend == "trie":
            return {"regex": f"*set:{set_name}"}
        if backend == "llguidance":
            return {"json_schema": json.dumps(self.enum)}
        return {"ebnf": "root ::= " + " | ".join(map(json.dumps, self.values))}

    @property
    def enum(self) -> dict[str, Any]:
        return {"type": "string", "enum": self.values}

    def checker(self, backend: str) -> Callable[[str], bool]:
        """Whether an answer is what was asked for."""
        known = set(self.values)

        def is_valid(text: str) -> bool:
            if not self.is_object and backend != "llguidance":
                return text in known
            try:
                value = json.loads(text)
                return (
                    value["tool"] in known and bool(date.fromisoformat(value["on"]))
                    if self.is_object
                    else value in known
                )
            except (ValueError, TypeError, KeyError):
                return False

        return is_valid


def cases(quick: bool) -> list[Case]:
    tools = [Case(f"K={count:,}", tool_names(count)) for count in ((1_000,) if quick else (1_000, 5_000, 10_000))]
    if quick:
        return tools
    return [*tools, Case("ICD-10", icd10_cm_codes()), Case("object", tool_names(5_000), is_object=True)]


@dataclass(frozen=True)
class Cell:
    """What one run of requests came to."""

    seconds: float
    answers: list[Answer]

    @property
    def requests_per_second(self) -> float:
        return len(self.answers) / self.seconds

    @property
    def tokens(self) -> int:
        return sum(answer.num_tokens for answer in self.answers)


def run(server: Server, jobs: list[dict[str, Any]], at_once: int) -> Cell:
    begin = time.perf_counter()
    answers = server.generate_all(jobs, at_once)
    return Cell(time.perf_counter() - begin, answers)


class Bench:
    """All cells of one model."""

    def __init__(self, options: argparse.Namespace, model: str, report: Report) -> None:
        self.options = options
        self.model = model
        self.report = report
        self.is_right = True

    @contextmanager
    def server(self, backend: str, sets: Path) -> Iterator[Server]:
        log = sets / f"{self.model}-{backend}.log"
        arguments = ["--max-running-requests", "64", "--disable-radix-cache", *self.options.server_arguments]
        environment = {ENVIRONMENT: str(sets), "SGLANG_GRAMMAR_MAX_POLL_ITERATIONS": "1000000"}
        model = self.options.models / self.model
        with Server(model, *arguments, log=log, grammar_backend=backend, **environment) as server:
            yield server

    def measure(self, backend: str) -> None:
        section = self.report.section(f"{self.model}, {backend}")
        with tempfile.TemporaryDirectory() as directory, self.server(backend, Path(directory)) as server:
            for max_tokens in (1, 8):  # warm
                run(server, [{"prompt": text, "max_tokens": max_tokens} for text in prompts(16, 0)], 16)
            for case in self.options.cases:
                first = self.first_answers(server, backend, case, Path(directory))
                extra = Timing.of(first)
                is_ours = backend == "trie" and case.name == "K=10,000"
                section.add(
                    case.name, "first answer of a new set, beyond an unconstrained one", extra,
                    **({"ratio": extra.median / 0.05, "at_most": 1.0} if is_ours else {}),
                )  # fmt: skip
                for max_tokens in self.options.max_tokens:
                    for at_once in self.options.at_once:
                        self.cell(section, server, backend, case, max_tokens, at_once)

    def first_answers(self, server: Server, backend: str, case: Case, sets: Path) -> list[float]:
        seconds = []
        for number in range(NEW_SETS):
            # Another set of the same kind: without its first values, so that no cache knows it.
            new = Case(case.name, case.values[number:], case.is_object)
            name = case.set_name(number)
            (sets / f"{name}.txt").write_text("\n".join(new.values) + "\n")
            (prompt,) = prompts(1, 100 + number)
            begin = time.perf_counter()
            answer = server.generate(prompt, 32, **new.options(backend, name))
            elapsed = time.perf_counter() - begin
            free = []
            for _ in range(3):
                begin = time.perf_counter()
                server.generate(prompt, max(1, answer.num_tokens), ignore_eos=True)
                free.append(time.perf_counter() - begin)
            seconds.append(elapsed - statistics.median(free))
        return seconds

    def cell(self, section: Any, server: Server, backend: str, case: Case, max_tokens: int, at_once: int) -> None:
        count = self.options.requests * (1 if at_once == 1 else 2 if at_once == 4 else 4)
        texts = prompts(count, at_once)
        options = case.options(backend, case.set_name(0))
        found = run(server, [{"prompt": text, "max_tokens": max_tokens, **options} for text in texts], at_once)
        free = run(
            server,
            [
                {"prompt": text, "max_tokens": max(1, answer.num_tokens), "ignore_eos": True}
                for text, answer in zip(texts, found.answers, strict=True)
            ],
            at_once,
        )
        refused = sum(answer.is_refused for answer in found.answers)
        served = [answer for answer in found.answers if answer.status == 200]
        valid = sum(map(case.checker(backend), (answer.text for answer in served)))
        ratio = (found.tokens / found.seconds) / (free.tokens / free.seconds) if refused == 0 else None
        tokens = found.tokens / max(1, len(served))
        section.add(
            case.name,
            f"{max_tokens} tokens at most, {at_once} at once",
            found.requests_per_second,
            unit="requests/s",
            ratio=ratio,
            **({"at_least": 0.97} if backend == "trie" and ratio is not None else {}),
            note=f"{tokens:.2f} tokens each, {valid} of {len(served)} valid, {refused} refused",
        )
        if backend == "trie" and (valid < len(served) or len(served) + refused < count):
            self.is_right = False
            print("  WRONG: every answer must be in the set, or refused", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    if converted(SUBJECT, arguments):
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True, help="the directory of the models")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS), help="models to measure")
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    parser.add_argument("--cases", nargs="+", metavar="CASE", help="K=1,000 K=5,000 K=10,000 ICD-10 object")
    parser.add_argument("--at-once", nargs="+", type=int, default=[1, 4, 16, 64])
    parser.add_argument("--max-tokens", nargs="+", type=int, default=[32, 4])
    parser.add_argument("--requests", type=int, default=32, help="at once 1; two and four times as many at 4 and more")
    parser.add_argument(
        "--server-arguments", nargs=argparse.REMAINDER, default=[], help="passed on to SGLang; must come last"
    )
    parser.add_argument("--quick", action="store_true", help="K=1,000, 1 and 16 at once, 8 requests")
    add_saving(parser)
    options = parser.parse_args(arguments)
    if options.quick:
        options.at_once, options.requests = [1, 16], 8
    options.cases = [case for case in cases(options.quick) if options.cases is None or case.name in options.cases]
    if not options.cases:
        parser.error("--cases names none of the cases")
    about = machine()
    print("; ".join(f"{name} {value}" for name, value in about.items()))
    report = Report()
    is_right = True
    for model in options.only:
        bench = Bench(options, model, report)
        for backend in options.backends:
            bench.measure(backend)
        is_right &= bench.is_right
    is_whole = (
        not options.quick and set(options.only) == set(MODELS) and set(options.backends) == set(BACKENDS)
        and len(options.cases) == len(cases(quick=False))
    )  # fmt: skip
    finish(options, SUBJECT, report.as_json(), about, is_whole=is_whole)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
