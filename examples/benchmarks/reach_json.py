"""Experiment 2: JSON objects under a budget, parsed by ``json.loads``."""

from __future__ import annotations

import json

from reach_graphs import Graph, Task, made_up_vocabulary, task_over_bytes
from reach_paper import JSON_RATES
from reach_rates import Run, add_goal_cell, add_refusal

DEPTH = 3
LETTERS = b"abcdefghijklmnopqrstuvwxyz_"
TOKENS = [
    *(b"{", b"}", b"{}", b"}}", b'{"', b'"}', b'"}}', b'":{"', b'":{', b"},", b'},"'),
    *(b'"', b":", b",", b'":', b'":"', b'","', b',"', b'"id":', b'{"id":'),
    *(b"id", b"name", b"tool", b"a", b"b", b"x_", b"ok"),
    *(b"0", b"1", b"2", b"42", b"7}", b"1,", b"3}}"),
    *(b"-", b"[", b"]", b"\n", b"tr", b"ue"),
]
TRIALS = 500


def json_graph(depth: int) -> Graph:
    """Objects nested up to ``depth`` deep, with strings of letters and whole numbers in them, without white space."""
    graph = Graph()
    end = graph.new_state()
    graph.accepting.add(end)
    after_value = end  # of the object around the one at hand
    inside = [graph.new_state() for _ in range(depth)]  # after the opening brace
    graph.edge(0, b"{", inside[0])
    for level, opened in enumerate(inside):
        key, named, value, text, number, after = (graph.new_state() for _ in range(6))
        comma = graph.new_state()
        graph.edge(opened, b"}", after_value)
        graph.edge(opened, b'"', key)
        graph.edge(key, LETTERS, key)
        graph.edge(key, b'"', named)
        graph.edge(named, b":", value)
        graph.edge(value, b'"', text)
        graph.edge(text, LETTERS, text)
        graph.edge(text, b'"', after)
        graph.edge(value, b"123456789", number)
        graph.edge(value, b"0", after)
        graph.edge(number, b"0123456789", number)
        if level + 1 < depth:
            graph.edge(value, b"{", inside[level + 1])
        for done in (number, after):
            graph.edge(done, b",", comma)
            graph.edge(done, b"}", after_value)
        graph.edge(comma, b'"', key)
        after_value = after
    return graph


def json_task() -> Task:
    return task_over_bytes(json_graph(DEPTH), made_up_vocabulary(TOKENS))


def is_object(drawn: list[int]) -> bool:
    """Whether the tokens spell a JSON object."""
    try:
        return isinstance(json.loads(b"".join(TOKENS[token_id] for token_id in drawn)), dict)
    except ValueError:
        return False


def json_objects(run: Run) -> None:
    task = json_task()
    trials = run.trials(TRIALS)
    section = run.report.section(
        f"2. JSON under a budget: {trials:,} trials a cell, each parsed by json.loads; {len(TOKENS)} tokens.\n"
        f"   The paper gives neither grammar nor vocabulary. Ours: objects up to {DEPTH} deep with strings and whole\n"
        '   numbers, a byte automaton; tokens that straddle its parts (":{" and "}} and 1,), {} among them'
    )
    for budget, paper in JSON_RATES.items():
        add_goal_cell(section, task, budget, trials, run.seed, paper, is_object)
    add_refusal(section, task.constraint)
