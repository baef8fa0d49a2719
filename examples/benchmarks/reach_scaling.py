"""Experiment 4: what budgets cost, over states, vocabularies, and edges a state; beside the paper's dense form."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import numpy.typing as npt
from measure import Timing, in_child, in_turns
from reach_automata import Large, QuotedText, RandomAutomaton
from reach_cells import Cell, measured_cell, size_of
from reach_memory import resident_for_budgets
from reach_paper import SCALING
from reach_rates import PERCENT, Run
from reach_steps import DenseSteps, OurSteps, OurStepsWithLogits, disagreements
from report import Section, progress
from vocabularies import VOCABULARIES, ByteVocabulary

import trieauto
from trieauto.demo_sets import tool_names
from trieauto.reference.reachability import DenseReachability

BUDGET = 16
SIZES = [10, 100, 1_000, 10_000]
DEGREES = [2, 10, 100]
PAPER_SIZES = {"mistral": 32_000, "qwen": 151_643}
DENSE_LIMIT, QUICK_DENSE_LIMIT = 1_500_000_000, 100_000_000  # bytes of delta
NUM_WALKS, NUM_TEXT_WALKS = 64, 8  # few in text, so that all its rows stay ready
SET_SIZES = [10_000, 100_000]
OTHERS = "nearly all"
ROWS: tuple[int | str, ...] = (*DEGREES, OTHERS)


def scaling(run: Run) -> None:
    run.report.section(
        f"4. Scaling, T={BUDGET} (the largest budget of the paper's other tables; it gives none here).\n"
        "   Vocabularies as they are: Mistral's 32,000, Qwen's 151,643 with 3 special ids more. Random graphs over\n"
        "   tokens with 2, 10 and 100 edges a state, all within 14 tokens of the goal; and the bytes of a text that\n"
        "   ends at a quote, of up to n characters in UTF-8, 4 states each, where nearly every token is legal (fewer\n"
        "   at the smallest size, n = 2). Steps go along random walks over legal tokens that end with the budget,\n"
        "   masks ready; also with the mask applied to float32 logits in place, which is what the paper times.\n"
        "   The dense form is the paper's, built by the reference; ratios are its cost over ours. Its delta is given,\n"
        "   as in the paper; ours begins with a list of edges, so R is compared with constraint and d together.\n"
        "   Memory is that of arrays, MB = 10**6 bytes, without vocabulary and logits"
    )
    cells: dict[tuple[str, int | str, int], Cell] = {}
    for vocabulary in PAPER_SIZES:
        for degree in ROWS:
            _scaling_over_states(run, vocabulary, degree, cells)
    _judge(run, cells)
    _sets(run)


def _scaling_over_states(
    run: Run, vocabulary: str, degree: int | str, cells: dict[tuple[str, int | str, int], Cell]
) -> None:
    byte_vocabulary = VOCABULARIES[vocabulary]()
    section = run.report.section(f"   V={byte_vocabulary.size:,} ({vocabulary}), {degree} edges a state")
    steps: list[float] = []
    for size in [SIZES[0], SIZES[-1]] if run.is_quick else SIZES:
        large = _large(size, degree, vocabulary, run.seed)
        case = f"S={large.num_states:,}"
        progress(f"V={byte_vocabulary.size:,}, {degree} edges, {case}")
        cell = measured_cell(large.automaton, _tokenizer(vocabulary), lambda _: BUDGET, _num_walks(degree), run.seed)
        cells[vocabulary, degree, size] = cell
        cell.add_lines(section, case)
        steps.append(_add_steps(run, section, case, cell, large, byte_vocabulary, size).median)
    section.add("over all S", "trieauto: a step, slowest over fastest", ratio=max(steps) / min(steps), at_most=1.5)


def _large(size: int, degree: int | str, vocabulary: str, seed: int) -> Large:
    if isinstance(degree, int):
        return RandomAutomaton.of(size, degree, VOCABULARIES[vocabulary](), seed)
    return QuotedText(size // 4)


def _num_walks(degree: int | str) -> int:
    return NUM_WALKS if isinstance(degree, int) else NUM_TEXT_WALKS


@cache
def _tokenizer(vocabulary: str) -> trieauto.Vocabulary:
    byte_vocabulary = VOCABULARIES[vocabulary]()
    return trieauto.Vocabulary.from_tokens(byte_vocabulary.tokens, stop_token_ids=[byte_vocabulary.stop_token_id])


def _add_steps(
    run: Run, section: Section, case: str, cell: Cell, large: Large, byte_vocabulary: ByteVocabulary, size: int
) -> Timing:
    """The lines about steps, and those of the dense form where it fits; the time of our step without logits."""
    ours, dense_form = "trieauto: a step (mask, accept)", "dense form: a step (mask, next state)"
    own, logits = ", own buffer", ", logits"
    tasks: dict[str, Callable[[], float]] = {
        ours: OurSteps(cell.constraint, cell.walks),
        ours + own: OurSteps(cell.constraint, cell.walks, own_buffer=True),
        ours + logits: OurStepsWithLogits(cell.constraint, cell.walks),
    }
    paper = SCALING.get((PAPER_SIZES[byte_vocabulary.name], size))
    nbytes = 8 * large.num_states * byte_vocabulary.size
    limit = QUICK_DENSE_LIMIT if run.is_quick else DENSE_LIMIT
    if nbytes <= limit:
        progress("the paper's dense form")
        delta = large.delta(byte_vocabulary)
        dense, made = _timed_dense_form(delta, large.goal)
        for suffix in ("", logits):
            tasks[dense_form + suffix] = DenseSteps(dense, large.start, cell.walks, with_logits=bool(suffix))
        wrong = disagreements(cell.constraint, dense, large.start, cell.walks.tokens, BUDGET)
    timings = in_turns(tasks, rounds=15)
    section.add(case, ours, timings[ours], note=cell.describe_walks())
    section.add(case, ours + own, timings[ours + own])
    section.add(case, ours + logits, timings[ours + logits])
    if nbytes <= limit:
        offline = cell.built.median + cell.distances.median
        table = dense.nbytes.table
        section.add(
            case,
            "dense form: R, delta given",
            made,
            ratio=made.median / offline,
            note="" if paper is None else f"paper {paper.offline_ms:,.2f} ms",
        )
        section.add(
            case,
            "dense form: memory",
            (nbytes + table) / 1e6,
            unit="MB",
            ratio=(nbytes + table) / cell.constraint.nbytes,
            note=f"delta {size_of(nbytes)}, R {size_of(table)}" + ("" if paper is None else f"; paper {paper.memory}"),
        )
        for suffix in ("", logits):
            section.add(
                case,
                dense_form + suffix,
                timings[dense_form + suffix],
                ratio=timings[dense_form + suffix].median / timings[ours + suffix].median,
                note=f"paper {paper.step_us} µs" if paper is not None and suffix else "",
            )
        wrong_rate = 100 * wrong / cell.walks.num_steps
        section.add(case, "dense form: steps with other masks than ours", wrong_rate, unit=PERCENT, at_most=0)
    else:
        said = "" if paper is None else f"; paper {paper.offline_ms:,.2f} ms, {paper.memory}, {paper.step_us} µs a step"
        section.add(case, "dense form", note=f"skipped: delta would take {size_of(nbytes)}{said}")
    return timings[ours]


def _timed_dense_form(delta: npt.NDArray[np.int64], goal: int) -> tuple[DenseReachability, Timing]:
    """R over a given delta: three times where that takes no minutes."""
    seconds = []
    for _ in range(3 if delta.nbytes <= QUICK_DENSE_LIMIT else 1):
        begin = time.perf_counter()
        dense = DenseReachability(delta, [goal], BUDGET)
        seconds.append(time.perf_counter() - begin)
    return dense, Timing.of(seconds)


def _judge(run: Run, cells: dict[tuple[str, int | str, int], Cell]) -> None:
    """The two targets, of the largest automata with the larger vocabulary."""
    section = run.report.section("   The targets: 10,000 states, V=151,646")
    for degree, seconds, memory in ((DEGREES[-1], 0.1, 50), (OTHERS, 1.0, 100)):
        case = f"{degree} edges"
        cell = cells["qwen", degree, SIZES[-1]]
        large = _large(SIZES[-1], degree, "qwen", run.seed)
        if isinstance(degree, int):
            offline = cell.built.median + cell.distances.median
            section.add(case, "constraint built, and d", 1e3 * offline, unit="ms", at_most=1e3 * seconds)
        else:
            offline = cell.distances.median + cell.first_mask.median
            section.add(case, "d, and the first budgeted mask", 1e3 * offline, unit="ms", at_most=1e3 * seconds)
        section.add(case, "arrays, ready masks included", cell.constraint.nbytes / 1e6, unit="MB", at_most=memory)
        kept, peak = in_child(resident_for_budgets, large, "qwen", timeout=600)
        section.add(case, "resident, kept", kept / 1e6, unit="MB", at_most=memory)
        section.add(case, "resident, at the peak while it is made", peak / 1e6, unit="MB", note="edges given")
        step = in_turns({"step": OurSteps(cell.constraint, cell.walks)})["step"]
        section.add(case, "a step (mask, accept)", 1e6 * step.median, unit="µs", at_most=2, note=f"{step}")


def _sets(run: Run) -> None:
    section = run.report.section("   Sets of tool names, V=151,646, T=d(start)+4")
    for count in SET_SIZES:
        case = f"K={count:,}"
        progress(f"a set of {case}")
        names = tool_names(count, run.seed)
        cell = measured_cell(
            partial(trieauto.choices, names),
            _tokenizer("qwen"),
            lambda constraint: constraint.min_tokens + 4,
            NUM_WALKS,
            run.seed,
        )
        cell.add_lines(section, case)
        steps = in_turns({"": OurSteps(cell.constraint, cell.walks)}, rounds=15)[""]
        section.add(case, "trieauto: a step (mask, accept)", steps, note=cell.describe_walks())
