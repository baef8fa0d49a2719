"""The phases of compiling, drawn."""

from __future__ import annotations

from pathlib import Path

from phase_compile import AHO_CORASICK, DECODING, TRAVERSAL, TRIE, WALK
from phase_run import Run
from plots import COLOURS, NEUTRAL, plot

PHASES_PLOT = "phases_by_k.svg"
STYLES = {
    DECODING: (NEUTRAL, "--"),
    AHO_CORASICK: (NEUTRAL, "-"),
    TRIE: (COLOURS["XGrammar"], "-"),
    TRAVERSAL: (COLOURS["trieauto"], "-"),
    WALK: (COLOURS["trieauto"], "--"),
}


def draw_phases(path: Path, run: Run) -> None:
    """Each phase by K; grey ones depend on the tokenizer alone."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    counts = [own.count for own in run.phases]
    with plot(path, width=7.6, height=4.2) as (_, axes):
        for name, (colour, style) in STYLES.items():
            seconds = [1e3 * own.timings[name].median for own in run.phases]
            axes.plot(counts, seconds, style, color=colour, marker="o", markersize=4, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda spent, _: f"{spent:g} ms"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("values in the set (K)")
        axes.set_title("Phases of compiling (Qwen's tokenizer, one thread)", loc="left", fontsize=11)
        axes.legend(fontsize=8)
