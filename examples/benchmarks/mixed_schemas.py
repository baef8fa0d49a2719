"""JSON schemas with a large enum inside, measured: trieauto, XGrammar and LLGuidance side by side, with the targets.

    python examples/benchmarks/mixed_schemas.py                                  all cases (some fifteen minutes)
    python examples/benchmarks/mixed_schemas.py --quick                          enums of up to 1,000, fewer rounds
    python examples/benchmarks/mixed_schemas.py --cases classification --counts 500
    python examples/benchmarks/mixed_schemas.py --plain-strings                 strings of any kind: see mixed_cases.py

The trie paper's three mixed schemas (section 5.1): tool calling with 1,000 tools, classification with 500 labels,
entity linking with 5,000 entities; besides 10, 100 and 50,000, to see where which engine is ahead. The paper's
own figures stand beside ours as "paper"; they are of another machine and another version of XGrammar.

First of all, the engines must have the same language: all of them must take the same answers, and all masks along them
and along random walks must be equal, or the program says where they are not and exits with 1. Then the time to compile
a schema and to have its first mask, with new values each time, so that nobody's cache of sets helps; the masks while
answers are written, token by token as the tokenizer encodes them, by the field that they fall in (each mask's median
over rounds, first visits included; of those the median, the fastest and the slowest); and memory, each engine in a
process of its own.

Needs ``pip install "trieauto[bench,demo]"``, tiktoken, and dashscope for the tokenizer. Times are medians over rounds,
with the fastest and slowest in parentheses; a ratio is a peer's cost over ours. Keep the machine quiet while it runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from context import CHILD_FROM, Cost
from lines import add_saving, converted, finish
from measure import Timing, TookTooLong, in_child, in_turns
from mixed_agreement import Disagreement, check_agreement
from mixed_cases import CASES
from mixed_claims import SUBJECT
from mixed_documents import documents
from mixed_engines import ENGINES, OURS, Mixed, MixedEngine
from mixed_timing import Start, step_timings, trial
from report import Report, progress
from results import machine
from vocabularies import qwen

XGRAMMAR_TARGETS = {1_000: 10.0, 5_000: 100.0}  # to the first mask
# The paper's milliseconds to compile (section 5.1); for K=500 it gives none.
PAPER_COMPILE = {
    ("tool calling", 1_000): {OURS: "33 ms", "XGrammar": "75 ms"},
    ("entity linking", 5_000): {OURS: "37 ms", "XGrammar": "150 ms"},
}
# Its masks inside an enum that is the whole schema (abstract; appendix M).
PAPER_ENUM_STEP = {OURS: "0.65 µs", "XGrammar": "5.8 µs", "LLGuidance": "73 to 141 µs"}
MEMORY_FROM = 500  # by default there is no row about the memory of less
LONG = 3.0  # seconds from which one measurement, in a child, is all there is


ROWS = ("language", "first-mask", "steps", "memory")
_SAME_MASKS = ("trieauto, from text", "XGrammar, cache")  # the same as another engine once compiled


@dataclass
class Run:
    """The settings of a run, and what it found."""

    rows: list[str]
    patience: float
    rounds: int
    seconds: float
    num_documents: int
    plain_strings: bool
    memory_from: int
    report: Report = field(default_factory=Report)
    engines: dict[str, MixedEngine] = field(default_factory=dict)
    _alone: dict[tuple[str, Mixed, int], Cost | str] = field(default_factory=dict)

    def alone(self, name: str, mixed: Mixed, num_documents: int) -> Cost | str:
        """A trial in a process of its own, once: first mask and so many answers; or why there is no result."""
        key = (name, mixed, num_documents)
        if key not in self._alone:
            progress(f"{mixed}: {name} in a process of its own")
            arguments = (name, mixed.case.name, mixed.count, mixed.plain_strings, num_documents)
            try:
                self._alone[key] = in_child(trial, *arguments, timeout=self.patience)
            except TookTooLong:
                self._alone[key] = f"more than {self.patience:g} s"
            except RuntimeError as error:  # refused, or the process died
                self._alone[key] = str(error)
        return self._alone[key]


def measure(run: Run, mixed: Mixed) -> None:
    """All rows of one schema with so many values."""
    tried = {name: run.alone(name, mixed, 0) for name in ENGINES} if mixed.count >= CHILD_FROM else {}
    engines = {
        name: engine
        for name, engine in run.engines.items()
        if name not in tried or (isinstance(cost := tried[name], Cost) and cost.seconds <= LONG)
    }
    different = {name: engine for name, engine in engines.items() if name not in _SAME_MASKS}
    if "language" in run.rows:
        _agree(run, mixed, different)
    if "first-mask" in run.rows:
        _starts(run, mixed, engines, {name: cost for name, cost in tried.items() if name not in engines})
    if "steps" in run.rows:
        # A single mask can take a peer minutes, and only a process can be stopped in the middle of it.
        tried = {name: run.alone(name, mixed, run.num_documents) for name in different if mixed.count >= CHILD_FROM}
        failures = {name: cost for name, cost in tried.items() if isinstance(cost, str)}
        _steps(run, mixed, {name: engine for name, engine in different.items() if name not in failures}, failures)
    if "memory" in run.rows and mixed.count >= run.memory_from:
        _memory(run, mixed)


def _agree(run: Run, mixed: Mixed, engines: dict[str, MixedEngine]) -> None:
    progress(f"{mixed}: comparing masks")
    values = mixed.values(seed=0)
    compiled = {}
    for name, engine in engines.items():
        form = engine.form(mixed)
        compiled[name] = engine.compile(form, form.source(values))
    answers = documents(mixed, values, 5)
    count = check_agreement(engines, compiled, answers, qwen(), num_walks=10, plain_strings=mixed.plain_strings)
    section = run.report.section(f"{mixed}: the same language")
    peers = [name for name in engines if name != OURS and engines[name].is_oracle]
    section.add("", f"masks equal to ours: {', '.join(peers)}", count, unit="masks")


def _starts(run: Run, mixed: Mixed, engines: dict[str, MixedEngine], others: dict[str, Cost | str]) -> None:
    progress(f"{mixed}: compiling")
    section = run.report.section(f"{mixed}: schema to first mask")
    starts = {name: Start(engine, mixed) for name, engine in engines.items()}
    tasks: dict[str, Callable[[], float]] = dict(starts)
    timings = in_turns(tasks, seconds=run.seconds, rounds=run.rounds)
    ours = timings[OURS].median
    compiling = {name: start.compiling() for name, start in starts.items()}
    paper = PAPER_COMPILE.get((mixed.case.name, mixed.count), {})
    for name, timing in compiling.items():
        ratio = timing.median / compiling[OURS].median if name != OURS else None
        note = f"paper: {paper[name]}" if name in paper else ""
        section.add("compile", name, timing, ratio=ratio, note=note)
    for name, timing in timings.items():
        ratio = timing.median / ours if name != OURS else None
        section.add("to the first mask", name, timing, ratio=ratio, at_least=_start_target(name, mixed.count))
    for name, cost in others.items():
        target = _start_target(name, mixed.count)
        if isinstance(cost, Cost):
            timing = Timing.of([cost.seconds])
            section.add("to the first mask", name, timing, ratio=cost.seconds / ours, at_least=target)
        elif cost.startswith("more than"):
            # What took longer than our patience is at least so many times slower.
            least = run.patience / ours
            met = None if target is None or least < target else target
            section.add("to the first mask", name, ratio=least, at_least=met, note=f"skipped: {cost}; a bound")
        else:
            section.add("to the first mask", name, note=f"skipped: {cost}")


def _start_target(name: str, count: int) -> float | None:
    if name in ("XGrammar", "XGrammar, cache"):
        return XGRAMMAR_TARGETS.get(count)
    return 1.0 if name.startswith("LLGuidance") and count >= 100 else None


def _steps(run: Run, mixed: Mixed, engines: dict[str, MixedEngine], failures: dict[str, str]) -> None:
    progress(f"{mixed}: masks while answers are written")
    section = run.report.section(f"{mixed}: a mask while answers are written")
    for name, failure in failures.items():
        section.add("all", name, note=f"skipped: {run.num_documents} answers: {failure}")
    timings = step_timings(engines, mixed, run.num_documents, min(run.rounds, 5), run.patience)
    for phase, ours in timings[OURS].items():
        for name, of_phases in timings.items():
            if phase not in of_phases:
                section.add(phase, name, note="not reached")
                continue
            timing = of_phases[phase]
            paper = PAPER_ENUM_STEP.get(name, "") if phase == "enum" else ""
            notes = [f"paper: {paper}"] if paper else []
            if name == OURS:
                section.add(phase, name, timing, note="; ".join(notes))
                continue
            notes.insert(0, f"slowest: {timing.high / ours.high:.3g}×")
            target = 1.0 if name == "XGrammar" else None
            ratio = timing.median / ours.median
            section.add(phase, name, timing, ratio=ratio, at_least=target, note="; ".join(notes))


def _memory(run: Run, mixed: Mixed) -> None:
    section = run.report.section(
        f"{mixed}: memory after {run.num_documents} answers: the engine's account, and resident"
    )
    costs = {name: run.alone(name, mixed, run.num_documents) for name in ENGINES if name not in _SAME_MASKS}
    ours = costs[OURS]
    assert isinstance(ours, Cost), ours
    for name, cost in costs.items():
        if isinstance(cost, str):
            section.add("", name, note=f"skipped: {cost}")
            continue
        if cost.nbytes is not None:
            ratio = cost.nbytes / (ours.nbytes or 1) if name != OURS else None
            section.add("", name, cost.nbytes / 1e6, unit="MB", ratio=ratio)
        section.add("", f"{name}, resident", cost.resident / 1e6, unit="MB")


def main(arguments: Sequence[str] | None = None) -> int:
    if converted(SUBJECT, arguments):
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="enums of up to 1,000, fewer rounds, 10 s of patience")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--counts", nargs="+", type=int, metavar="K", help="sizes of the enum, for all cases")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--plain-strings", action="store_true", help="strings of any kind, on which engines differ")
    parser.add_argument("--rounds", type=int, help="measurements of each (default 31; with --quick 5)")
    parser.add_argument("--documents", type=int, default=40, help="answers written (default 40)")
    parser.add_argument("--patience", type=float, help="seconds after which a peer is skipped (default 60)")
    add_saving(parser)
    options = parser.parse_args(arguments)
    run = Run(
        rows=options.rows,
        patience=options.patience or (10.0 if options.quick else 60.0),
        rounds=options.rounds or (5 if options.quick else 31),
        seconds=2.0 if options.quick else 6.0,
        num_documents=options.documents,
        plain_strings=options.plain_strings,
        memory_from=0 if options.counts else MEMORY_FROM,
    )
    strings = "of any kind" if options.plain_strings else "without quotes, backslashes, control characters"
    about = machine() | {"strings": strings}
    print("; ".join(f"{name} {value}" for name, value in about.items()))
    if options.rows != ["memory"]:  # which has processes of its own
        for name, engine in ENGINES.items():
            progress(f"preparing {name}")
            run.engines[name] = engine(qwen())
    for name in options.cases:
        counts = options.counts or [count for count in CASES[name].counts if count <= 1_000 or not options.quick]
        for count in counts:
            try:
                measure(run, Mixed(CASES[name], count, options.plain_strings))
            except Disagreement as error:
                print(f"\nFAILED: {name} {count:,}: {error}")
                return 1
    judged = [line.met for line in run.report.lines if line.met is not None]
    print(f"\n{sum(judged)} of {len(judged)} targets met")
    chosen = options.quick or options.plain_strings or options.counts is not None
    is_whole = not chosen and set(options.cases) == set(CASES) and set(options.rows) == set(ROWS)
    finish(options, SUBJECT, run.report.as_json(), about, is_whole=is_whole)
    return 0


if __name__ == "__main__":
    sys.exit(main())
