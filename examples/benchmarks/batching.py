"""Masks of many matchers in one call, as a server needs them at each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from measure import Timing, in_turns
from peers import ROW_BY_ROW, Engine
from report import progress
from vocabularies import ByteVocabulary
from walks import Parked, random_walks


def park(
    engines: Mapping[str, Engine], sets: Sequence[Sequence[str]], places: int, vocabulary: ByteVocabulary
) -> dict[str, Parked]:
    """So many matchers of each engine, at the same places, which use the sets in turns; the sets are long in use."""
    result = {}
    for name, engine in engines.items():
        progress(f"{places} matchers of {name} on {len(sets)} set(s) of {len(sets[0]):,}")
        form = engine.forms[0]
        compiled = [engine.compile(form, form.source(values)) for values in sets]
        for each in compiled:
            engine.settle(each)
        walks = [random_walks(sets[i % len(sets)], form, vocabulary, 1, seed=i)[0] for i in range(places)]
        result[name] = Parked(engine, [compiled[i % len(sets)] for i in range(places)], walks)
    return result


def batch_timings(
    parked: Mapping[str, Parked], size: int, *, loops: bool = True, seconds: float = 1.0, rounds: int = 31
) -> dict[str, tuple[Timing, Any]]:
    """Of ``size`` rows in one call, and the number of threads that is best for the engine.

    With ``loops``, also of one call for each row (``ROW_BY_ROW``), where that is best.
    """
    tasks: dict[str, Callable[[], float]] = {}
    labels: dict[str, tuple[str, Any]] = {}
    for name, each in parked.items():
        for threads in each.engine.threads:
            if threads == ROW_BY_ROW and not loops:
                continue
            label = f"{name}, {threads}"
            labels[label] = name, threads
            tasks[label] = each.batch_timer(size, threads)
    measured = in_turns(tasks, seconds=seconds, rounds=rounds)
    best: dict[str, tuple[Timing, Any]] = {}
    for label, (name, threads) in labels.items():
        if name not in best or measured[label].median < best[name][0].median:
            best[name] = measured[label], threads
    return best
