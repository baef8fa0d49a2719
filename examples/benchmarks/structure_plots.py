"""Memory by K, and legal tokens by depth, drawn."""

from __future__ import annotations

from pathlib import Path

from plots import COLOURS, NEUTRAL, plot
from structure_run import Structure

MEMORY_PLOT = "memory_by_k.svg"
DEPTH_PLOT = "tokens_by_depth.svg"


def draw_memory(path: Path, run: Structure) -> None:
    """What a set takes, beside the paper's formula for an FSM."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    counts = sorted(run.memory)
    with plot(path, width=7.6, height=4.4) as (_, axes):
        lines = (
            ("an FSM's table, by formula", [run.memory[k].table for k in counts], NEUTRAL, "--"),
            ("the same, minimal", [run.memory[k].minimal_table for k in counts], NEUTRAL, ":"),
            ("trieauto, all masks stored", [run.memory[k].stored for k in counts], COLOURS["trieauto"], "--"),
            ("trieauto", [run.memory[k].found for k in counts], COLOURS["trieauto"], "-"),
        )
        for name, sizes, colour, style in lines:
            axes.plot(counts, [size / 1e6 for size in sizes], style, color=colour, marker="o", markersize=4, label=name)
        paper = {count: size for count, size in {10_000: 0.9, 100_000: 8.0}.items() if count in counts}
        axes.plot(
            list(paper), list(paper.values()), "x", color=COLOURS["trieauto"], alpha=0.6, markersize=7,
            label="masks, the paper's figures",
        )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,g} MB"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("values in the set (K)")
        axes.set_title("memory of a compiled set", loc="left", fontsize=11)
        axes.legend(fontsize=8)


def draw_depths(path: Path, run: Structure) -> None:
    """Mean and largest mask by depth."""
    from structure_claims import PAPER_DEPTHS

    depths = [row.depth for row in run.depths]
    colour = COLOURS["trieauto"]
    with plot(path, width=7.6, height=3.8) as (_, axes):
        axes.bar(depths, [row.largest for row in run.depths], color=colour, alpha=0.25, label="largest")
        axes.bar(depths, [row.mean for row in run.depths], color=colour, label="mean")
        axes.plot(
            list(PAPER_DEPTHS), [most for _, most, _ in PAPER_DEPTHS.values()], "x", color=NEUTRAL, markersize=7,
            label="largest, the paper's",
        )  # fmt: skip
        axes.plot(
            list(PAPER_DEPTHS), [mean for mean, _, _ in PAPER_DEPTHS.values()], "+", color=NEUTRAL, markersize=8,
            label="mean, the paper's",
        )  # fmt: skip
        axes.set_xlabel("bytes from the root")
        axes.set_title("legal tokens (K=1,000 tool names, Qwen)", loc="left", fontsize=11)
        axes.legend(fontsize=8)
