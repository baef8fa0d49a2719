"""How things are timed here: side by side, in turns, after a warm-up; the median with the fastest and the slowest."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import re
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
TURN = 0.01  # seconds


@dataclass(frozen=True)
class Timing:
    """Seconds for one call: the median of ``rounds`` rounds, the fastest and the slowest."""

    median: float
    low: float
    high: float
    rounds: int

    @staticmethod
    def of(seconds: list[float]) -> Timing:
        return Timing(statistics.median(seconds), min(seconds), max(seconds), len(seconds))

    def __str__(self) -> str:
        unit, scale = next((u, s) for u, s in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)) if self.median >= s or u == "µs")
        numbers = f"{three_digits(self.median / scale)} {unit}"
        if self.rounds == 1:
            return numbers
        return f"{numbers} ({three_digits(self.low / scale)}-{three_digits(self.high / scale)})"


def three_digits(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def clocked(task: Callable[..., object], *arguments: Any, calls: int = 1) -> Callable[[], float]:
    """A function that runs ``task(*arguments)``, which does ``calls`` calls, and returns the seconds of one."""

    def run() -> float:
        begin = time.perf_counter()
        result = task(*arguments)
        elapsed = time.perf_counter() - begin
        del result  # freeing it is not what is measured
        return elapsed / calls

    return run


def in_turns(tasks: Mapping[str, Callable[[], float]], *, seconds: float = 1.0, rounds: int = 31) -> dict[str, Timing]:
    """Time several tasks side by side.

    Every round gives every task a turn, in an order that rotates, so that whatever else the machine does falls on all
    of them. A turn of a short task is one run that does not count, for the processor's caches are full of another
    task's data, and then as many as fit in ``TURN`` seconds. A task that has used up its time sits out later rounds.

    Args:
        tasks: each runs once and returns the seconds it counts (see ``clocked``).
        seconds: for each task in all, what it does not count included.
        rounds: at most.
    """
    used = dict.fromkeys(tasks, 0.0)
    samples: dict[str, list[float]] = {name: [] for name in tasks}
    names = list(tasks)
    for name in names:
        tasks[name]()
    was_enabled = gc.isenabled()
    gc.disable()
    gc.freeze()  # so that collecting between rounds looks at new objects only, and leaves the processor's caches alone
    try:
        for number in range(rounds):
            for offset in range(len(names)):
                name = names[(number + offset) % len(names)]
                if samples[name] and used[name] > seconds:
                    continue
                begin = time.perf_counter()
                samples[name].append(_turn(tasks[name]))
                used[name] += time.perf_counter() - begin
            gc.collect()
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()
    return {name: Timing.of(samples[name]) for name in names}


def _turn(task: Callable[[], float]) -> float:
    begin = time.perf_counter()
    first = task()
    if time.perf_counter() - begin > TURN:
        return first
    counted: list[float] = []
    begin = time.perf_counter()
    while not counted or time.perf_counter() - begin < TURN:
        counted.append(task())
    return statistics.median(counted)


def clock_overhead() -> float:
    """Seconds between two readings of the clock with nothing in between."""
    clock = time.perf_counter
    return statistics.median(-(clock() - clock()) for _ in range(10_000))


class TookTooLong(Exception):  # noqa: N818 (an outcome, not a mistake)
    """A child process that was still at work when its time was up."""


def in_child(function: Callable[..., T], *arguments: Any, timeout: float) -> T:
    """``function(*arguments, begin)`` in a fresh process, so that it can be stopped and its memory is its own.

    The function calls ``begin()`` when what it needs is there; the clock runs from then on.

    Raises:
        TookTooLong: no result within ``timeout`` seconds.
        RuntimeError: the process failed.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, function, arguments), daemon=True)
    process.start()
    sender.close()
    try:
        receiver.recv()
        if not receiver.poll(timeout):
            raise TookTooLong
        result: T = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"{function.__name__}{arguments} ended with exit code {process.exitcode}") from None
    finally:
        process.terminate()
        process.join()
    return result


def _child(sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    sender.send(function(*arguments, lambda: sender.send(None)))


def resident_bytes(*, reset_peak: bool = False) -> tuple[int, int]:
    """Resident memory of this process now, and its peak since it was last reset (Linux with glibc)."""
    ctypes.CDLL(None).malloc_trim(0)  # memory that was freed before must not hide what is taken from now on
    if reset_peak:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    now, peak = (re.search(rf"{name}:\s+(\d+) kB", status) for name in ("VmRSS", "VmHWM"))
    assert now is not None
    assert peak is not None
    return int(now[1]) * 1024, int(peak[1]) * 1024
