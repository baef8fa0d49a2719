"""The rows about decoding: one mask along random walks, over vocabularies, and 128 masks at once."""

from __future__ import annotations

from typing import Any

from batching import batch_timings, park
from context import CHILD_FROM, NUM_WALKS, Context, attempt, masks_trial
from measure import Timing, in_turns
from ours import OURS
from peers import PEERS, Engine
from report import Section, progress
from vocabularies import INSTALLED, VOCABULARIES
from walks import WalkTimer, disagreements, random_walks

from trieauto.demo_sets import tool_names

OWN = ("trieauto", "trieauto, own buffers")
BATCH = 128
BATCH_COUNT = 1_000


def one_mask(context: Context) -> None:
    """One mask into a row from Python: along random walks, and at the root alone; the masks themselves compared."""
    section = context.report.section("One mask into a bitmask row, from Python (Qwen, 151,646 ids)")
    given_up: set[str] = set()
    along: dict[str, dict[int, float]] = {name: {} for name in OWN}
    at_root: dict[str, dict[int, float]] = {name: {} for name in OWN}
    for count in context.counts:
        case, values = f"K={count:,}", tool_names(count)
        compiled: dict[str, Any] = {}
        for name in (*OWN, *PEERS):
            if name in given_up:
                section.add(case, name, note="skipped: a smaller set took too long")
                continue
            form = context.engine(name).forms[0]
            if name in PEERS and count >= CHILD_FROM:
                outcome = attempt(masks_trial, context, name, count, form)
                if isinstance(outcome, str):
                    given_up.add(name)
                    section.add(case, name, note=f"skipped: set and {NUM_WALKS} walks took {outcome}")
                    continue
            progress(f"masks of {name} at {case}")
            compiled[name] = context.engine(name).compile(form, form.source(values))
        walks = random_walks(values, context.engine("trieauto").forms[0], VOCABULARIES["qwen"](), NUM_WALKS)
        timings = in_turns({n: WalkTimer(context.engine(n), made, walks) for n, made in compiled.items()})
        roots = in_turns(
            {n: WalkTimer(context.engine(n), made, [[]] * 64) for n, made in compiled.items()}, seconds=0.3
        )
        for name in OWN:
            along[name][count], at_root[name][count] = timings[name].median, roots[name].median
        targets = {"XGrammar": 2.0} if count == 1_000 else {}
        _add_against_ours(section, case, "", timings, targets)
        _add_against_ours(section, case, ", root", roots, targets)
        _compare_masks(context, section, case, values, compiled)
    for name in OWN:
        for what, seconds in (("along walks", along[name]), ("root", at_root[name])):
            if len(seconds) > 1:
                ratio = max(seconds.values()) / min(seconds.values())
                section.add("over all K", f"{name}, {what}, slowest over fastest", ratio=ratio, at_most=1.5)


def _add_against_ours(
    section: Section, case: str, suffix: str, timings: dict[str, Timing], targets: dict[str, float]
) -> None:
    for name, timing in timings.items():
        ratio = None if name in OURS else timing.median / timings["trieauto"].median
        section.add(case, name + suffix, timing, ratio=ratio, at_least=targets.get(name))


def _compare_masks(
    context: Context, section: Section, case: str, values: list[str], compiled: dict[str, Any], vocabulary: str = "qwen"
) -> None:
    for name, (wrong, places) in other_masks(context, values, compiled, vocabulary).items():
        section.add(case, f"{name}: other masks than ours, of {places}", wrong, at_most=0)


def other_masks(
    context: Context, values: list[str], compiled: dict[str, Any], vocabulary: str = "qwen", places: int = 128
) -> dict[str, tuple[int, int]]:
    """For each engine but trieauto, at how many of so many random places it has another mask or another end."""
    byte_vocabulary = VOCABULARIES[vocabulary]()
    walks = random_walks(values, context.engine("trieauto", vocabulary).forms[0], byte_vocabulary, places, seed=2)
    engines = {name: context.engine(name, vocabulary) for name in compiled}
    wrong = disagreements(engines, compiled, walks, byte_vocabulary)
    return {name: (count, places) for name, count in wrong.items()}


def vocabularies(context: Context) -> None:
    """The same set over vocabularies of 32,000 to 151,646 ids."""
    section = context.report.section("One mask over vocabularies (K=1,000, along walks)")
    values = tool_names(1_000)
    costs: dict[str, tuple[int, float]] = {}
    for vocabulary in INSTALLED:
        byte_vocabulary = VOCABULARIES[vocabulary]()
        case = f"V={byte_vocabulary.size:,} ({vocabulary})"
        engines: dict[str, Engine] = {
            name: context.engine(name, vocabulary) for name in (*OWN, "XGrammar", "LLGuidance")
        }
        compiled = {name: e.compile(e.forms[0], e.forms[0].source(values)) for name, e in engines.items()}
        walks = random_walks(values, engines["trieauto"].forms[0], byte_vocabulary, NUM_WALKS)
        timings = in_turns({name: WalkTimer(engines[name], made, walks) for name, made in compiled.items()})
        _add_against_ours(section, case, "", timings, {})
        _compare_masks(context, section, case, values, compiled, vocabulary)
        costs[vocabulary] = engines["trieauto"].num_words, timings["trieauto"].median
    words, seconds = min(costs.values())
    for vocabulary, (more_words, more_seconds) in costs.items():
        if more_words > words:
            ratio = (more_seconds / seconds) / (more_words / words)
            section.add(f"to {vocabulary}", "trieauto, growth over the row's growth", ratio=ratio, at_most=1.0)


def batch(context: Context) -> None:
    """A batch step: 128 rows, every matcher having taken a token since its last mask; sets long in use."""
    section = context.report.section(f"{BATCH} masks in one call (Qwen, K={BATCH_COUNT:,}), best number of threads")
    byte_vocabulary = VOCABULARIES["qwen"]()
    timings: dict[tuple[str, str], Timing] = {}
    for kind, num_sets in (("one set", 1), (f"{BATCH} sets", BATCH)):
        names = [name for name in (*OWN, *PEERS) if name != "outlines-core" or num_sets == 1]
        if "outlines-core" not in names:
            section.add(kind, "outlines-core", note="skipped: compiling its sets takes over a minute")
        sets = [tool_names(BATCH_COUNT, seed) for seed in range(num_sets)]
        # 512 matchers take turns on the same 128 rows, so that no row is filled twice with the same mask.
        parked = park({name: context.engine(name) for name in names}, sets, 4 * BATCH, byte_vocabulary)
        for name, (timing, threads) in batch_timings(parked, BATCH, loops=False).items():
            timings[name, kind] = timing
            section.add(kind, name, timing, note="" if name in OURS else f"threads={threads}")
        for own, targets in zip(
            OWN, ({"XGrammar": 5, "LLGuidance": 20}, {"XGrammar": 10, "LLGuidance": 50}), strict=True
        ):
            for name, target in targets.items():
                ratio = timings[name, kind].median / timings[own, kind].median
                section.add(kind, f"{name} over {own}", ratio=ratio, at_least=target)
    for own in OWN:
        ratio = timings[own, f"{BATCH} sets"].median / timings[own, "one set"].median
        section.add(f"{BATCH} sets over one", own, ratio=ratio, at_most=1.5)
