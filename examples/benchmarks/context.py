"""What all rows share: the settings of a run, the engines, the sets, and trials in a process of their own."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from measure import TookTooLong, in_child, resident_bytes
from ours import OURS
from peers import PEERS, Engine, Form
from report import Report, progress
from token_tries import TOKEN_TRIES, canonical_walks
from vocabularies import VOCABULARIES
from walks import Walk, WalkTimer, random_walks

from trieauto.demo_sets import tool_names

ENGINES: dict[str, type[Engine]] = {**OURS, **PEERS, **TOKEN_TRIES}
CHILD_FROM = 10_000  # sets of this size are first tried in a child, where an engine can be stopped
NUM_WALKS = 64


@dataclass
class Context:
    """One run.

    Attributes:
        counts: sizes of the sets.
        patience: seconds after which a peer is given up in a cell, and for larger sets in that row.
        names: a file with one value a line, for the row of real names.
    """

    counts: list[int]
    patience: float
    names: Path | None
    report: Report = field(default_factory=Report)

    def engine(self, name: str, vocabulary: str = "qwen") -> Engine:
        return _engine(name, vocabulary)


@dataclass(frozen=True)
class Cost:
    """What a trial took: seconds of what it measures, resident memory in bytes, and the engine's own account of it."""

    seconds: float
    resident: int
    peak: int
    nbytes: int | None


@cache
def _engine(name: str, vocabulary: str) -> Engine:
    progress(f"preparing {name} for {vocabulary}")
    return ENGINES[name](VOCABULARIES[vocabulary]())


def load_values(source: int | Path) -> list[str]:
    """So many tool names, or the lines of a file."""
    if isinstance(source, int):
        return tool_names(source)
    return source.read_text(encoding="utf-8").splitlines()


def first_mask_trial(
    engine_name: str, vocabulary: str, values: int | Path, form: Form, begin: Callable[[], None]
) -> Cost:
    """For a child: the time to the first mask and the memory of what then exists."""
    engine = ENGINES[engine_name](VOCABULARIES[vocabulary]())
    small = form.source(tool_names(3))
    engine.first_mask(form, small, engine.allocate(1))
    source = form.source(load_values(values))
    bitmask = engine.allocate(1)
    gc.collect()
    before, _ = resident_bytes(reset_peak=True)
    begin()
    seconds, made = engine.timed_first_mask(form, source, bitmask)
    gc.collect()
    after, peak = resident_bytes()
    return Cost(seconds, after - before, peak - before, engine.nbytes(made))


def masks_trial(engine_name: str, vocabulary: str, values: int | Path, form: Form, begin: Callable[[], None]) -> Cost:
    """For a child: compile, and once all masks along random walks."""
    walks = random_walks(load_values(values), form, VOCABULARIES[vocabulary](), NUM_WALKS)
    return _masks_along(walks, engine_name, vocabulary, values, form, begin)


def canonical_masks_trial(
    engine_name: str, vocabulary: str, values: int | Path, form: Form, begin: Callable[[], None]
) -> Cost:
    """The same along values as the tokenizer itself writes them (Qwen's; not for JSON)."""
    walks = canonical_walks(load_values(values), NUM_WALKS)
    return _masks_along(walks, engine_name, vocabulary, values, form, begin)


def _masks_along(
    walks: list[Walk], engine_name: str, vocabulary: str, values: int | Path, form: Form, begin: Callable[[], None]
) -> Cost:
    engine = ENGINES[engine_name](VOCABULARIES[vocabulary]())
    source = form.source(load_values(values))
    begin()
    compiled = engine.compile(form, source)
    return Cost(WalkTimer(engine, compiled, walks)(), 0, 0, engine.nbytes(compiled))


def attempt(
    trial: Callable[..., Cost],
    context: Context,
    engine_name: str,
    values: int | Path,
    form: Form,
    vocabulary: str = "qwen",
) -> Cost | str:
    """A trial in a child, or why there is no result."""
    size = f"K={values:,}" if isinstance(values, int) else values.name
    progress(f"trying {engine_name} ({form.name}) at {size} in a process of its own")
    try:
        return in_child(trial, engine_name, vocabulary, values, form, timeout=context.patience)
    except TookTooLong:
        return f"more than {context.patience:g} s"
