"""Experiment 3: an agent that calls tools, with a loop of retries that nothing ends and a search that goes deep."""

from __future__ import annotations

from reach_graphs import Graph, Task, task_over_tokens
from reach_methods import states_passed
from reach_paper import AGENT_RATES
from reach_rates import Run, add_goal_cell, add_refusal

ACTIONS = ["search", "plan", "read", "cite", "follow_link", "broaden", "narrow", "back", "call_api", "retry", "finish"]
TRIALS = 500


def agent_task() -> Task:
    """Search, read, finish: three actions. A plan first costs one more. A deeper search comes back to the results
    after two actions or more; a call of the API fails, and is tried again for ever."""
    action = {name: token_id for token_id, name in enumerate(ACTIONS)}
    graph = Graph()
    planned, results, deeper, evidence, failed, done = (graph.new_state() for _ in range(6))

    def edge(source: int, names: str, target: int) -> None:
        graph.edge(source, [action[name] for name in names.split()], target)

    edge(0, "search", results)
    edge(0, "plan", planned)
    edge(planned, "search", results)
    edge(results, "read cite", evidence)
    edge(results, "follow_link broaden narrow", deeper)
    edge(results, "call_api", failed)
    edge(deeper, "follow_link", deeper)
    edge(deeper, "back", results)
    edge(failed, "retry", failed)
    edge(evidence, "finish", done)
    graph.accepting.add(done)
    return task_over_tokens(graph, ACTIONS)


def agent(run: Run) -> None:
    task = agent_task()
    trials = run.trials(TRIALS)
    section = run.report.section(
        f"3. Agent that calls tools: {trials:,} trials a cell; {len(ACTIONS)} actions, the shortest way takes "
        f"{task.constraint.min_tokens}.\n"
        "   The paper gives neither graph nor number of trials. Ours is: search (or plan, search); then read or cite,\n"
        "   and finish; or three ways into a deeper search that takes two actions or more; or a call that fails and\n"
        "   is retried for ever"
    )
    for budget, paper in AGENT_RATES.items():
        add_goal_cell(
            section,
            task,
            budget,
            trials,
            run.seed,
            paper,
            lambda drawn: states_passed(task, drawn)[-1] in task.goals,
        )
    add_refusal(section, task.constraint)
