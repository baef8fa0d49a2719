"""Curves over sizes on logarithmic axes, in one panel or several with one scale, for the programs that have lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lines import Lines, MissingLineError
from plots import COLOURS, NEUTRAL, plot, seconds_text

Unit = Literal["seconds", "per cent", "number"]


@dataclass(frozen=True)
class Curve:
    """A line of a plot.

    Attributes:
        points: heights by size.
        colour: by default that of the engine that the name begins with.
        style: matplotlib's; "" for points without a line.
        paper: what a paper reports of the same, drawn as crosses.
    """

    name: str
    points: Mapping[int, float]
    colour: str = ""
    style: str = "-"
    paper: Mapping[int, float] = field(default_factory=dict)


def draw_curves(
    path: Path,
    panels: Mapping[str, Sequence[Curve]],
    across: str,
    up: str,
    unit: Unit = "seconds",
    at_sizes: bool = False,
    width: float = 8.6,
) -> bool:
    """Write the plot. Curves without points are left out, panels without curves too.

    Args:
        panels: by title.
        across: what the sizes are.
        up: what the heights are.
        at_sizes: labels at all sizes, which must be few, instead of at powers of ten.
        width: inches.

    Returns:
        Whether there was anything to draw.
    """
    drawn = {title: kept for title, found in panels.items() if (kept := [curve for curve in found if curve.points])}
    if not drawn:
        return False
    with plot(path, width, 3.9, ncols=len(drawn), squeeze=False, sharey=True) as (figure, axes):
        for axis, (title, found) in zip(axes[0], drawn.items(), strict=True):
            for curve in found:
                _draw(axis, curve)
            axis.set(title=title, xlabel=across, xscale="log")
            axis.title.set_fontsize(10)
            if at_sizes:
                sizes = sorted({size for curve in found for size in curve.points})
                axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
            else:
                axis.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}")
            axis.xaxis.set_minor_formatter(lambda *_: "")
            axis.tick_params(which="minor", length=0)
        _heights(axes[0][0], up, unit)
        handles = {
            text: handle for axis in axes[0] for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        if any(curve.paper for found in drawn.values() for curve in found):
            (cross,) = axes[0][0].plot([], [], "x", color=NEUTRAL)
            handles["the paper's figures"] = cross
        ncols = max(1, min(len(handles), int(12 * width / (6 + max(map(len, handles))))))
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=ncols, fontsize=8)
    return True


def _draw(axis: Any, curve: Curve) -> None:
    colour = curve.colour or next((found for name, found in COLOURS.items() if curve.name.startswith(name)), NEUTRAL)
    sizes = sorted(curve.points)
    heights = [curve.points[size] for size in sizes]
    style = {"linestyle": curve.style or "none", "marker": "o", "markersize": 4, "color": colour}
    axis.plot(sizes, heights, label=curve.name, **style)
    if curve.paper:
        axis.plot(list(curve.paper), list(curve.paper.values()), "x", color=colour, markersize=7, alpha=0.6)


def _heights(axis: Any, text: str, unit: Unit) -> None:
    axis.set_ylabel(text)
    if unit == "per cent":
        axis.set_ylim(-4, 104)
        axis.yaxis.set_major_formatter(lambda share, _: f"{share:g} %")
        return
    axis.set_yscale("log")
    if unit == "seconds":
        axis.yaxis.set_major_formatter(lambda seconds, _: seconds_text(seconds))
    else:
        axis.yaxis.set_major_formatter(lambda number, _: f"{number:,g}")
    low, high = axis.get_ylim()
    if high / low > 10:  # else there may be no power of ten between them
        axis.yaxis.set_minor_formatter(lambda *_: "")


def seconds_by_count(lines: Lines, section: str, counts: Sequence[int], who: str) -> dict[int, float]:
    """Medians of the cases "K=1,000" and so on, as far as they were measured."""
    found = {}
    for count in counts:
        try:
            found[count] = lines.seconds(section, f"K={count:,}", who)
        except MissingLineError:
            continue
    return found
