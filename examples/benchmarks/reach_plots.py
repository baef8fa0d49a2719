"""The reachability paper's experiments, drawn from the lines of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from curves import Curve, draw_curves
from lines import Lines
from plots import COLOURS, NEUTRAL
from reach_paper import AGENT_RATES, FORWARD, JSON_RATES, MODEL_RATES, OURS, SCALING, VANILLA, Rates

EXPERIMENTS = {
    "JSON (experiment 2)": ("2. ", JSON_RATES),
    "an agent (experiment 3)": ("3. ", AGENT_RATES),
    "a real model (experiment 5)": ("5. ", MODEL_RATES),
}
OFFLINE = ("trieauto: constraint built (automaton + compile)", "trieauto: d of all states")
DENSE_OFFLINE = "dense form: R, delta given"
_METHODS = {VANILLA: (NEUTRAL, ":"), FORWARD: (COLOURS["XGrammar"], "-"), OURS: (COLOURS["trieauto"], "-")}


def draw(lines: Lines, directory: Path) -> dict[str, str]:
    """How many answers are whole by budget; the time before the first token by states."""
    plots = {}
    whole, offline = "reachability_whole.svg", "reachability_offline.svg"
    panels = {title: _methods(lines, section, paper) for title, (section, paper) in EXPERIMENTS.items()}
    if draw_curves(directory / whole, panels, "tokens at most (T)", "whole answers", "per cent", at_sizes=True):
        plots[whole] = "Answers that are whole, by budget. Crosses are the paper's own figures."
    panels = {
        "32,000 tokens": _offline(lines, "   V=32,000", 32_000),
        "151,646 tokens": _offline(lines, "   V=151,646", 151_643),
    }
    if draw_curves(directory / offline, panels, "states", "before the first token"):
        plots[offline] = "The search before the first token, by states. Crosses are the paper's own figures."
    return plots


def _methods(lines: Lines, section: str, paper: Mapping[int, Rates]) -> list[Curve]:
    return [
        Curve(
            method,
            {budget: line["number"] for budget in paper for line in lines.some(section, f"T={budget}", method)},
            colour,
            style,
            {budget: rates[method] for budget, rates in paper.items()},
        )
        for method, (colour, style) in _METHODS.items()
    ]


def _offline(lines: Lines, prefix: str, paper_tokens: int) -> list[Curve]:
    """trieauto by edges a state, darker where there are more, and the dense form, which is alike for all."""
    curves = []
    dense: dict[int, float] = {}
    for section, style in zip(lines.sections(prefix), (":", "-.", "--", "-"), strict=False):
        own: dict[int, float] = {}
        for who, found in {OFFLINE[0]: own, OFFLINE[1]: own, DENSE_OFFLINE: dense}.items():
            for line in lines.some(section, who=who):
                if line["timing"] is not None:
                    states = int(line["case"].removeprefix("S=").replace(",", ""))
                    before = 0.0 if found is dense else found.get(states, 0.0)
                    found[states] = before + line["timing"]["median"]
        edges = section.partition(", ")[2].partition("), ")[2] or section.rpartition(", ")[2]
        curves.append(Curve(f"trieauto, {edges}", own, style=style))
    paper = {states: cell.offline_ms / 1e3 for (tokens, states), cell in SCALING.items() if tokens == paper_tokens}
    curves.append(Curve("the paper's dense table", dense, COLOURS["XGrammar"], paper=paper))
    return curves
