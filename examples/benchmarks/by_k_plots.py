"""Compile time and masks by K, drawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from by_k_paper import COMPILE, LIMITS, MASK
from by_k_run import GENRE, LLGUIDANCE, OUTLINES, PAPERS_TRIE, TRIE, XGRAMMAR, ByK
from judging import Line, cost_at, crossovers, round_2
from measure import Timing
from plots import COLOURS, NEUTRAL, plot, seconds_text

COMPILE_PLOT = "compile_by_k.svg"
MASK_PLOT = "mask_by_k.svg"
DRAWN = (OUTLINES, XGRAMMAR, GENRE, LLGUIDANCE, TRIE)


def draw_compiling(path: Path, by_k: ByK, patience: float) -> None:
    """From the set to the first mask; what was stopped ends in an open triangle; the providers' limits."""
    with plot(path, width=8.4, height=5.0) as (_, axes):
        counts = sorted(by_k.compiling[TRIE])
        _scales(
            axes,
            counts,
            "values in the set (K)",
            "From a set of strings to its first mask (Qwen's tokenizer, 151,646 tokens)",
        )
        for name in DRAWN:
            _line(axes, name, by_k.compiling.get(name, {}))
        papers = by_k.compiling[PAPERS_TRIE]
        _line(axes, TRIE, papers, linestyle=(0, (1.2, 2.2)), linewidth=1.6, marker=None, alpha=0.9)
        _stopped(axes, by_k, patience)
        _papers(axes, COMPILE, counts)
        low, high = axes.get_ylim()
        axes.set_ylim(low / 8, max(3 * patience, high))  # with room for the names of the limits
        ends = [(name, by_k.compiling.get(name, {})) for name in DRAWN]
        _labels(axes, [*ends, ("the paper's way", papers)], counts[-1])
        _limits(axes, counts)
        _crossings(axes, by_k)


def draw_masks(path: Path, by_k: ByK) -> None:
    """One mask."""
    with plot(path, width=8.4, height=4.4) as (_, axes):
        counts = sorted(by_k.masks[TRIE])
        _scales(
            axes, counts, "values in the set (K)", "One mask, called from Python (Qwen's tokenizer, 151,646 tokens)"
        )
        lines = {**by_k.masks, GENRE: by_k.masks["GENRE, rows"]}
        for name in DRAWN:
            _line(axes, name, lines.get(name, {}))
        keys = by_k.masks[GENRE]
        _line(axes, GENRE, keys, linestyle=(0, (1.2, 2.2)), linewidth=1.6, marker=None, alpha=0.9)
        _papers(axes, MASK, counts)
        ends = [(name, lines.get(name, {})) for name in DRAWN]
        _labels(axes, [*ends, ("GENRE, list of ids", keys)], counts[-1])


def _scales(axes: Any, counts: list[int], below: str, beside: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(counts[0] / 1.15, counts[-1] * 1.15)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    axes.yaxis.set_major_locator(LogLocator(base=10, numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: seconds_text(seconds)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="minor", length=0)
    axes.set_xlabel(below)
    axes.set_title(beside, loc="left", fontsize=11)


def _line(axes: Any, name: str, timings: Mapping[int, Timing], **style: Any) -> None:
    counts = sorted(timings)
    if not counts:
        return
    is_ours = name == TRIE
    colour = COLOURS[name]
    usual = {"linewidth": 3.2 if is_ours else 2.0, "marker": "o", "markersize": 5.5 if is_ours else 4.0}
    axes.plot(
        counts, [timings[count].median for count in counts], color=colour, zorder=4 if is_ours else 3,
        solid_capstyle="round", **{**usual, **style},
    )  # fmt: skip


def _stopped(axes: Any, by_k: ByK, patience: float) -> None:
    for name, sizes in by_k.stopped.items():
        timings = by_k.compiling.get(name)
        if name not in COLOURS or not timings:
            continue
        first, last = min(sizes), max(timings)
        style = {"color": COLOURS[name], "zorder": 3}
        axes.plot([last, first], [timings[last].median, patience], linestyle=(0, (4, 3)), linewidth=1.4, **style)
        axes.plot([first], [patience], marker="^", markersize=8, markerfacecolor="none", linestyle="none", **style)
        axes.annotate(
            f"stopped after {patience:g} s", (first, patience), (0, 9), textcoords="offset points", ha="center",
            fontsize=8, color=COLOURS[name],
        )  # fmt: skip


def _papers(axes: Any, figures: Mapping[str, Line], counts: list[int]) -> None:
    """The paper's figures, faint."""
    for name, line in figures.items():
        within = [count for count in sorted(line) if counts[0] <= count <= counts[-1]]
        axes.plot(
            within, [line[count] for count in within], linestyle="none", marker="x", markersize=6.5,
            markeredgewidth=1.3, color=COLOURS[name], alpha=0.5, zorder=2,
        )  # fmt: skip
    axes.plot([], [], linestyle="none", marker="x", color=NEUTRAL, alpha=0.7, label="the paper's figures, its machine")
    axes.legend(loc="lower right", fontsize=8, handletextpad=0.2)


def _labels(axes: Any, lines: list[tuple[str, Mapping[int, Timing]]], last: int) -> None:
    """Names at the lines' ends, moved apart where they would overlap."""
    import math

    ends = sorted((timings[max(timings)].median, max(timings), name) for name, timings in lines if timings)
    low, high = axes.get_ylim()
    gap = math.log(high / low) * 0.045
    before = -math.inf
    for seconds, count, name in ends:
        colour = COLOURS.get(name) or COLOURS[GENRE if name.startswith(GENRE) else TRIE]
        style = {"color": colour, "fontsize": 10 if name == TRIE else 9, "weight": "bold" if name == TRIE else "normal"}
        if count < last:
            axes.annotate(name, (count, seconds), (-8, 4), textcoords="offset points", ha="right", **style)
            continue
        place = max(math.log(seconds), before + gap)
        before = place
        axes.annotate(
            name, (count, seconds), (1.015, math.exp(place)), textcoords=axes.get_yaxis_transform(), va="center",
            annotation_clip=False, **style,
        )  # fmt: skip


def _limits(axes: Any, counts: list[int]) -> None:
    for provider, limit in LIMITS.items():
        if not counts[0] <= limit <= counts[-1]:
            continue
        axes.axvline(limit, color=NEUTRAL, linestyle=":", linewidth=1.1, zorder=0)
        axes.annotate(
            f"{provider} {limit:,}", (limit, 0.0), (-3, 5), xycoords=("data", "axes fraction"),
            textcoords="offset points", rotation=90, ha="right", va="bottom", fontsize=8,
        )  # fmt: skip


def _crossings(axes: Any, by_k: ByK) -> None:
    """Rings where one line overtakes another: ours, and those that the paper speaks of."""
    lines = by_k.medians(by_k.compiling)
    for one, other in ((TRIE, GENRE), (TRIE, LLGUIDANCE), (PAPERS_TRIE, XGRAMMAR), (PAPERS_TRIE, GENRE)):
        for count in crossovers(lines.get(one, {}), lines.get(other, {})):
            seconds = cost_at(lines[one], count)
            axes.plot(
                [count], [seconds], marker="o", markersize=12, markerfacecolor="none", markeredgewidth=1.3,
                color=NEUTRAL, zorder=6,
            )  # fmt: skip
            axes.annotate(
                f"K≈{round_2(count):,}",
                (count, seconds),
                (0, -19),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                zorder=6,
            )
