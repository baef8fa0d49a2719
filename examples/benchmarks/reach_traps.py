"""Experiment 1: a start that branches into a way to the goal and into a trap."""

from __future__ import annotations

from reach_graphs import Graph, Task, task_over_tokens
from reach_methods import METHODS, states_passed
from reach_paper import TRAP_ENTRY_RATES, TRAP_GOAL_RATES
from reach_rates import Run, add_rates, add_refusal, sequences

TOKENS = ["good 1", "good 2", "good 3", "bad 1", "bad 2", "bad 3"]
BUDGET = 8
TRIALS = 1_000


def trap_task() -> tuple[Task, int]:
    """The task and its trap.

    Three of six tokens lead from the start to the good way, on which one certain token must follow, and another; the
    other three lead to the trap, which every token leads back to.
    """
    graph = Graph()
    middle, last, goal, trap = (graph.new_state() for _ in range(4))
    graph.edge(0, [0, 1, 2], middle)
    graph.edge(0, [3, 4, 5], trap)
    graph.edge(middle, [0], last)
    graph.edge(last, [1], goal)
    graph.edge(trap, range(6), trap)
    graph.accepting.add(goal)
    return task_over_tokens(graph, TOKENS), trap


def traps(run: Run) -> None:
    task, trap = trap_task()
    trials = run.trials(TRIALS)
    section = run.report.section(
        f"1. Dead-end traps: {trials:,} trials, T={BUDGET}; 6 tokens, 3 into the trap; the good way takes 3 tokens.\n"
        "   The paper gives no graph. Ours is chosen to fit its table: vanilla expects 1/72 = 1.4 % and 50 %,\n"
        "   forward-only 50 % and 50 %. trieauto leaves the dead end out, budget or not"
    )
    rates: dict[str, dict[str, float]] = {"goal": {}, "trap": {}}
    for method in METHODS:
        passed = [states_passed(task, drawn) for drawn in sequences(task, method, BUDGET, trials, run.seed)]
        rates["goal"][method] = 100 * sum(states[-1] in task.goals for states in passed) / trials
        rates["trap"][method] = 100 * sum(trap in states for states in passed) / trials
    add_rates(section, f"T={BUDGET}", rates["goal"], TRAP_GOAL_RATES, what=": goal reached", ours={"at_least": 100})
    add_rates(section, f"T={BUDGET}", rates["trap"], TRAP_ENTRY_RATES, what=": trap entered", ours={"at_most": 0})
    add_refusal(section, task.constraint)
