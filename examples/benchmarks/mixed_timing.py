"""What is timed of a mixed schema: its start, its steps, its memory."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from context import Cost
from measure import Timing, clock_overhead, resident_bytes
from mixed_cases import CASES, Phase
from mixed_documents import PHASES, Document, documents
from mixed_engines import ENGINES, Mixed, MixedEngine
from vocabularies import qwen


class Start:
    """Seconds from a schema to the first mask, with new values at every call; keeps those to compile it as well."""

    def __init__(self, engine: MixedEngine, mixed: Mixed) -> None:
        self.engine = engine
        self.mixed = mixed
        self.form = engine.form(mixed)
        self.bitmask = engine.allocate(1)
        self.seed = 0
        self.compile_seconds: list[float] = []

    def __call__(self) -> float:
        self.seed += 1
        source = self.form.source(self.mixed.values(self.seed))
        engine, clock = self.engine, time.perf_counter
        begin = clock()
        compiled = engine.compile(self.form, source)
        middle = clock()
        matcher = engine.first_matcher(compiled)
        engine.fill(matcher, self.bitmask)()
        end = clock()
        self.compile_seconds.append(middle - begin)
        return end - begin

    def compiling(self) -> Timing:
        """Without the first call, which warms up."""
        return Timing.of(self.compile_seconds[1:] or self.compile_seconds)


def walk_seconds(
    engine: MixedEngine, compiled: Any, answers: Sequence[Document], patience: float = math.inf
) -> list[float]:
    """Seconds of every mask while the answers are written, one after the other; none is begun after ``patience``."""
    matcher = engine.first_matcher(compiled)
    fill, clock, seconds = engine.fill(matcher, engine.allocate(1)), time.perf_counter, []
    begun = clock()
    for answer in answers:
        engine.reset(matcher)
        for token_id in (None, *answer.token_ids):
            if token_id is not None:
                engine.accept(matcher, token_id)
            begin = clock()
            if begin - begun > patience:
                return seconds
            fill()
            seconds.append(clock() - begin)
    return seconds


def step_timings(
    engines: Mapping[str, MixedEngine], mixed: Mixed, num_documents: int, rounds: int, patience: float
) -> dict[str, dict[Phase, Timing]]:
    """The masks of each phase, by engine: median, fastest and slowest.

    Every round compiles anew and writes the same answers, so each mask is measured as many times in the same place, the
    first visits of a new constraint included. The median of those is the mask's time: what the machine did besides
    rarely falls on the same mask twice, so the slowest is one that is slow by itself. An engine that has used up
    ``patience`` seconds sits out further answers and rounds.
    """
    values = mixed.values(seed=0)
    answers = documents(mixed, values, num_documents)
    samples: dict[str, list[list[float]]] = {name: [] for name in engines}
    used = dict.fromkeys(engines, 0.0)
    names = list(engines)
    for number in range(rounds):
        for offset in range(len(names)):
            engine = engines[names[(number + offset) % len(names)]]
            if used[engine.name] > patience:
                continue
            begin = time.perf_counter()
            form = engine.form(mixed)
            compiled = engine.compile(form, form.source(values))
            gc.collect()
            gc.disable()
            try:
                samples[engine.name].append(walk_seconds(engine, compiled, answers, patience))
            finally:
                gc.enable()
            used[engine.name] += time.perf_counter() - begin
    phases = [phase for answer in answers for phase in answer.phases]
    overhead = clock_overhead()
    result: dict[str, dict[Phase, Timing]] = {}
    for name, walks in samples.items():
        # Walks differ in length if patience ended one of them.
        columns = ([seconds for seconds in column if seconds is not None] for column in zip_longest(*walks))
        typical = [max(0.0, statistics.median(column) - overhead) for column in columns]
        seen = phases[: len(typical)]
        result[name] = {
            phase: Timing.of([seconds for seconds, other in zip(typical, seen, strict=True) if other == phase])
            for phase in PHASES
            if phase in seen
        }
    return result


def trial(
    engine_name: str, case: str, count: int, plain_strings: bool, num_documents: int, begin: Callable[[], None]
) -> Cost:
    """For a child: the time to the first mask, and the memory of what exists after that and some answers."""
    engine = ENGINES[engine_name](qwen())
    small, mixed = (Mixed(CASES[case], number, plain_strings) for number in (3, count))
    walk_seconds(engine, _compiled(engine, small), documents(small, small.values(0), num_documents))
    values = mixed.values(seed=0)
    answers = documents(mixed, values, num_documents)
    form = engine.form(mixed)
    source = form.source(values)
    bitmask = engine.allocate(1)
    gc.collect()
    before, _ = resident_bytes(reset_peak=True)
    begin()
    start = time.perf_counter()
    compiled = engine.compile(form, source)
    engine.fill(engine.first_matcher(compiled), bitmask)()
    seconds = time.perf_counter() - start
    walk_seconds(engine, compiled, answers)
    gc.collect()
    after, peak = resident_bytes()
    return Cost(seconds, after - before, peak - before, engine.nbytes(compiled))


def _compiled(engine: MixedEngine, mixed: Mixed) -> Any:
    form = engine.form(mixed)
    return engine.compile(form, form.source(mixed.values(0)))
