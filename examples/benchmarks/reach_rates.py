"""How often each method gets there: the cells of experiments 1 to 3, and what all experiments say of budgets."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from reach_graphs import Task
from reach_methods import METHODS, draw
from reach_paper import OURS, Rates
from report import Report, Section

import trieauto

PERCENT = "%"
"""The unit of lines that must be met: the program fails if one is not."""


@dataclass(frozen=True)
class Run:
    """The settings of a run; ``trials`` divides numbers of trials (1 for the paper's)."""

    report: Report
    is_quick: bool
    seed: int = 0

    def trials(self, papers: int) -> int:
        return max(1, papers // 5) if self.is_quick else papers


def sequences(task: Task, method: str, budget: int, trials: int, seed: int) -> list[list[int]]:
    """The same for the same arguments, whatever else was drawn before."""
    rng = np.random.default_rng([seed, budget])
    return [draw(METHODS[method](task, budget), task.num_tokens, budget, rng) for _ in range(trials)]


def add_rates(
    section: Section,
    case: str,
    rates: Mapping[str, float],
    paper: Rates,
    *,
    what: str = "",
    ours: Mapping[str, float],
    notes: Mapping[str, str] | None = None,
) -> None:
    """A line for each method, the paper's figure beside it; ``ours`` says what must hold of our rate."""
    for method, rate in rates.items():
        note = f"paper {paper[method]:.1f} %" + ("" if notes is None else f"; {notes[method]}")
        section.add(case, method + what, rate, unit=PERCENT, note=note, **(ours if method == OURS else {}))


def add_goal_cell(
    section: Section,
    task: Task,
    budget: int,
    trials: int,
    seed: int,
    paper: Rates,
    is_success: Callable[[list[int]], bool],
) -> None:
    """One budget: how often each method succeeds, and how many tokens it takes."""
    rates: dict[str, float] = {}
    notes: dict[str, str] = {}
    for method in METHODS:
        drawn = sequences(task, method, budget, trials, seed)
        rates[method] = 100 * sum(map(is_success, drawn)) / trials
        notes[method] = f"{statistics.mean(map(len, drawn)):.1f} of {budget} tokens used"
    add_rates(section, f"T={budget}", rates, paper, ours={"at_least": 100}, notes=notes)


def add_refusal(section: Section, constraint: trieauto.Constraint) -> None:
    """The largest budget that is not enough must be refused before the first token."""
    budget = constraint.min_tokens - 1
    try:
        constraint.matcher(max_tokens=budget)
    except trieauto.BudgetError as error:
        refused, note = 100.0, f"BudgetError: {error}"
    else:
        refused, note = 0.0, "a matcher was made"
    section.add(
        f"T={budget}", "trieauto, refused before the first token", refused, unit=PERCENT, at_least=100, note=note
    )
