"""The rows about compiling a set: time to the first mask, memory, a set of real names, our own ways compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from context import CHILD_FROM, Context, Cost, attempt, first_mask_trial, load_values
from measure import Timing, clocked, in_turns
from peers import PEERS, Engine, Form
from vocabularies import VOCABULARIES
from walks import WalkTimer, random_walks

import trieauto
from trieauto.demo_sets import tool_names

TO_FIRST_MASK = {
    "LLGuidance": {10: 2, 100: 2, 1_000: 4, 10_000: 10, 100_000: 10},
    "XGrammar": {1_000: 50, 10_000: 400, 100_000: 1_000},
}
LONG = 3.0  # seconds from which one measurement, in a child, is all there is
RISKY = 10.0  # seconds; what may take longer is tried in a child first, where it can be stopped
FEW_FROM = 50_000  # of sets of this size, the two forms that were best before are tried
GIVEN_UP = "given up"


@dataclass
class RankedForms:
    """A peer's forms, fastest first, as the largest set so far ranks them; those that fail drop out.

    Attributes:
        seconds: of each to the first mask, at that set.
        count: its size; 0 before the first.
    """

    forms: list[Form]
    seconds: dict[Form, float] = field(default_factory=dict)
    count: int = 0

    def must_be_stoppable(self, form: Form, count: int) -> bool:
        """Whether a set of this size may take long, at the square of what it took before."""
        if not self.count:
            return count >= CHILD_FROM
        return self.seconds[form] * (count / self.count) ** 2 > RISKY


@dataclass
class FirstMasks:
    """Of a set, by engine.

    Attributes:
        timings: in the fastest form; and ``"XGrammar (EBNF)"`` for a form that was asked for besides.
        labels: the engine and its form, for people.
        failures: why an engine has none.
        by_form: seconds of all forms that were tried, the best of a few.
    """

    timings: dict[str, Timing]
    labels: dict[str, str]
    failures: dict[str, str]
    by_form: dict[str, dict[str, float]]


def all_forms(context: Context, peers: Iterable[str] = PEERS) -> dict[str, RankedForms]:
    """The forms of all peers, before any was tried."""
    return {name: RankedForms(list(context.engine(name).forms)) for name in peers}


def time_first_masks(
    context: Context,
    count: int,
    forms: dict[str, RankedForms],
    others: Sequence[str] = ("trieauto",),
    besides: Mapping[str, str] = MappingProxyType({}),
    seconds: float = 2.0,
) -> FirstMasks:
    """Time every engine side by side: ``others`` in their only form, peers in their fastest.

    Args:
        forms: ranked on the way; call this with growing sets.
        besides: one more form of a peer to be timed, by its name.
        seconds: for each engine.
    """
    values = tool_names(count)
    tasks: dict[str, Callable[[], float]] = {}
    labels, singles = {name: name for name in others}, {}
    failures: dict[str, str] = {}
    by_form: dict[str, dict[str, float]] = {}
    for name in others:
        engine = context.engine(name)
        tasks[name] = clocked(engine.first_mask, engine.forms[0], values, engine.allocate(1))
    for name, ranked in forms.items():
        peer, wanted = context.engine(name), besides.get(name)
        failures[name] = _rank_forms(context, peer, ranked, count, wanted)
        by_form[name] = {form.name: spent for form, spent in ranked.seconds.items()} if ranked.forms else {}
        chosen = dict(zip([name], ranked.forms, strict=False))
        chosen |= {f"{name} ({form.name})": form for form in ranked.forms[1:] if form.name == wanted}
        for key, form in chosen.items():
            labels[key] = f"{name} ({form.name})"
            if ranked.seconds[form] > LONG:
                singles[key] = Timing.of([ranked.seconds[form]])
            else:
                tasks[key] = clocked(peer.first_mask, form, form.source(values), peer.allocate(1))
    timings = in_turns(tasks, seconds=seconds) | singles
    return FirstMasks(timings, labels, {n: why for n, why in failures.items() if n not in timings}, by_form)


def first_mask(context: Context) -> None:
    """From Python strings (ours) or the engine's own text (peers) to the first mask, the tokenizer being ready."""
    section = context.report.section("Set to first mask (Qwen, 151,646 ids); peers in their fastest form")
    forms = all_forms(context)
    for count in context.counts:
        case, found = f"K={count:,}", time_first_masks(context, count, forms)
        timings = found.timings
        ours = timings["trieauto"]
        section.add(case, "trieauto", ours)
        for name in PEERS:
            target = TO_FIRST_MASK.get(name, {}).get(count)
            if name in timings:
                ratio = timings[name].median / ours.median
                section.add(case, found.labels[name], timings[name], ratio=ratio, at_least=target)
            elif found.failures[name] == GIVEN_UP:
                section.add(case, name, note="skipped: a smaller set took too long")
            else:
                # What took longer than our patience is at least so many times slower.
                least = context.patience / ours.median
                met = None if target is None or least < target else target
                note = f"skipped: {found.failures[name]}; ratio is a bound"
                section.add(case, name, ratio=least, at_least=met, note=note)


def _rank_forms(context: Context, peer: Engine, ranked: RankedForms, count: int, wanted: str | None) -> str:
    """Try the forms on a set, and rank those that bear it, fastest first; returns what became of the others.

    Forms come ranked by the next smaller set, so where the best of them takes too long, the rest is not tried.
    """
    if not ranked.forms:
        return GIVEN_UP
    seconds: dict[Form, float] = {}
    failure = ""
    values = tool_names(count)
    few = [form for place, form in enumerate(ranked.forms) if place < 2 or form.name == wanted]
    for form in few if count >= FEW_FROM else ranked.forms:
        is_risky = ranked.must_be_stoppable(form, count)
        if is_risky:
            try:
                cost = attempt(first_mask_trial, context, peer.name, count, form)
            except RuntimeError as error:  # refused, or the process died
                failure = str(error)
                continue
            if isinstance(cost, str):
                failure = cost
                break
            seconds[form] = cost.seconds
        source, bitmask = form.source(values), peer.allocate(1)
        for _ in range(3):
            if seconds.get(form, 0) <= LONG:
                spent, _ = peer.timed_first_mask(form, source, bitmask)
                seconds[form] = min(spent, seconds.get(form, spent))
    ranked.forms, ranked.seconds, ranked.count = sorted(seconds, key=lambda form: seconds[form]), seconds, count
    return failure


def memory(context: Context) -> None:
    """Each set in a process of its own, after its first mask: the engine's own account, and resident memory."""
    section = context.report.section("Memory of a compiled set (Qwen): as the engine counts, and growth of the process")
    for count in [count for count in (10_000, 100_000) if count <= max(context.counts)]:
        case, costs = f"K={count:,}", {}
        for name in ("trieauto", "trieauto, eager", *PEERS):
            form = context.engine(name).forms[0]
            cost = attempt(first_mask_trial, context, name, count, form)
            if isinstance(cost, str):
                section.add(case, f"{name} ({form.name})", note=f"skipped: {cost}")
                continue
            costs[name] = cost
            limit = 8.0 if (name, count) == ("trieauto", 100_000) else None
            if cost.nbytes is not None:
                section.add(case, f"{name} ({form.name})", cost.nbytes / 1e6, unit="MB", at_most=limit)
            section.add(case, f"{name}, resident", cost.resident / 1e6, unit="MB")
        if "XGrammar" in costs:
            ratio = (costs["XGrammar"].nbytes or 0) / (costs["trieauto"].nbytes or 1)
            section.add(case, "XGrammar over trieauto", ratio=ratio, at_least=50 if count == 100_000 else None)


def names(context: Context) -> None:
    """A large set of real values, from a file."""
    section = context.report.section("A set of real names (Qwen)")
    if context.names is None:
        section.add("", "trieauto", note="skipped: no file given (--names FILE, one name a line)")
        return
    _one_file(context, context.names, section.add)


def _one_file(context: Context, path: Path, add: Callable[..., None]) -> None:
    values = load_values(path)
    case = f"K={len(set(values)):,}"
    ours = context.engine("trieauto")
    bitmask = ours.allocate(1)
    timing = in_turns({ours.name: clocked(ours.first_mask, ours.forms[0], values, bitmask)}, seconds=8.0, rounds=5)[
        ours.name
    ]
    add(case, "trieauto, set to first mask", timing, unit="s", at_most=1.5)
    cost = attempt(first_mask_trial, context, ours.name, path, ours.forms[0])
    if isinstance(cost, Cost):
        add(case, "trieauto, resident beside the strings", cost.resident / 1e6, unit="MB", at_most=250)
        add(case, "trieauto, peak beside the strings", cost.peak / 1e6, unit="MB", at_most=500)
        add(case, "trieauto, its own account", (cost.nbytes or 0) / 1e6, unit="MB")


def methods(context: Context) -> None:
    """Our two ways to the masks of all states, on one and two threads; and all masks now or each when needed."""
    section = context.report.section("trieauto's own ways (Qwen): compiling from a ready automaton, and one mask")
    ours = context.engine("trieauto")
    assert hasattr(ours, "vocabulary")
    vocabulary: trieauto.Vocabulary = ours.vocabulary
    form = ours.forms[0]
    for count in context.counts:
        case, values = f"K={count:,}", tool_names(count)
        automaton = trieauto.choices(values)

        def compile_lazy(automaton: trieauto.Automaton = automaton) -> trieauto.Constraint:
            return trieauto.compile(automaton, vocabulary, mode="lazy")

        def compile_eager(
            method: Literal["walk", "aho_corasick"], threads: int, automaton: trieauto.Automaton = automaton
        ) -> trieauto.Constraint:
            return trieauto.compile(automaton, vocabulary, mode="eager", method=method, threads=threads)

        tasks: dict[str, Callable[[], float]] = {"sort and trie": clocked(trieauto.choices, values)}
        for threads in (1, 2):
            tasks[f"eager, walk, {threads} thread(s)"] = clocked(compile_eager, "walk", threads)
            tasks[f"eager, Aho-Corasick, {threads} thread(s)"] = clocked(compile_eager, "aho_corasick", threads)
        tasks["lazy"] = clocked(compile_lazy)
        timings = in_turns(tasks, seconds=1.0)
        walk = timings["eager, walk, 1 thread(s)"].median
        for name, timing in timings.items():
            section.add(case, name, timing, ratio=timing.median / walk if name.startswith("eager") else None)
        byte_vocabulary = VOCABULARIES["qwen"]()
        walks = random_walks(values, form, byte_vocabulary, 64)
        eager, lazy = compile_eager("walk", 1), compile_lazy()
        fresh = WalkTimer(ours, lazy, walks)()
        masks = in_turns({"eager": WalkTimer(ours, eager, walks), "lazy": WalkTimer(ours, lazy, walks)})
        section.add(case, "one mask, eager", masks["eager"])
        section.add(case, "one mask, lazy, first visit", Timing.of([fresh]))
        section.add(case, "one mask, lazy, later", masks["lazy"])
