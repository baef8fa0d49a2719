"""Accuracy and validity on the labelled sets, drawn from the lines of ``accuracy.py``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from plots import COLOURS, NEUTRAL, plot

Numbers = Mapping[str, Mapping[str, float]]
"""Per cent by arm and set."""

PLOT = "accuracy.svg"
_COLOURS = (NEUTRAL, COLOURS["XGrammar"], COLOURS["trieauto"], COLOURS["LLGuidance"])


def draw_bars(directory: Path, panels: Mapping[str, Numbers]) -> dict[str, str]:
    """A group of bars for each set and a bar for each arm; pale ones for arms without a constraint."""
    drawn = {title: numbers for title, numbers in panels.items() if any(numbers.values())}
    if not drawn:
        return {}
    with plot(directory / PLOT, 8.6, 3.9, ncols=len(drawn), squeeze=False) as (figure, axes):
        for axis, (title, numbers) in zip(axes[0], drawn.items(), strict=True):
            sets = list(dict.fromkeys(name for found in numbers.values() for name in found))
            width = 0.8 / len(numbers)
            for place, (arm, found) in enumerate(numbers.items()):
                style = {"color": _COLOURS[place % len(_COLOURS)], "alpha": 1.0 if "trie" in arm else 0.55}
                places = [sets.index(name) - 0.4 + (place + 0.5) * width for name in found]
                axis.bar(places, list(found.values()), width, label=arm, **style)
            axis.set_title(title, fontsize=10)
            axis.set_xticks(range(len(sets)), sets)
            axis.grid(visible=False, axis="x")
            axis.set_axisbelow(True)
            axis.yaxis.set_major_formatter(lambda share, _: f"{share:g} %")
        handles, names = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=4, fontsize=8)
    return {PLOT: "Accuracy and validity of SmolLM2-135M on four labelled sets (Table 6 of the trie paper)"}
