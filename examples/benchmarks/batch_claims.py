"""What the trie paper's Table 19 says of batches, judged by a run; and the plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measure import Timing
from peers import ROW_BY_ROW
from plots import COLOURS, plot
from restoring import restored
from results import Claim, Verdict
from wording import as_figures, duration, span, times

ONE, EACH, LARGER = "one set", "a set for each row", "one larger set"
FORWARD = 10e-3  # seconds of a forward pass of the model on the paper's GPU
PAPER = {"trieauto": 10e-6, "XGrammar": 783e-6, "LLGuidance": 3.7e-3}  # at 128 rows
PAPER_LARGE = {"trieauto": 10.3e-6, "XGrammar": 781e-6, "LLGuidance": 3.671e-3}
SAME = 1.25  # what is called the same cost
OWN = "trieauto, own buffers"
_MARKERS = {"trieauto": "o", "XGrammar": "s", "LLGuidance": "^"}


@dataclass
class Kind:
    """Batches on so many sets of so many values.

    ``timings[size][engine]`` is one call and the best number of threads; ``compared`` and ``different`` count rows.
    """

    num_sets: int
    count: int
    timings: dict[int, dict[str, tuple[Timing, Any]]] = field(default_factory=dict)
    compared: int = 0
    different: int = 0

    def __str__(self) -> str:
        return f"{self.num_sets} set{'s' if self.num_sets > 1 else ''} of {self.count:,}"

    def seconds(self, size: int, who: str = "trieauto") -> float:
        return self.timings[size][who][0].median

    def ratio(self, size: int, who: str, ours: str = "trieauto") -> float:
        return self.seconds(size, who) / self.seconds(size, ours)

    @classmethod
    def of_json(cls, figures: dict[str, Any]) -> Kind:
        """What ``as_json`` made the figures of."""
        timings = {
            size: {who: (figures_of, figures_of["threads"]) for who, figures_of in row.items()}
            for size, row in figures["timings"].items()
        }
        return restored(cls, {**figures, "timings": timings})

    def as_json(self) -> dict[str, Any]:
        return {
            "num_sets": self.num_sets,
            "count": self.count,
            "compared": self.compared,
            "different": self.different,
            "timings": {
                size: {
                    who: {**as_figures({"": timing})[""], "threads": threads} for who, (timing, threads) in row.items()
                }
                for size, row in self.timings.items()
            },
        }


@dataclass
class Batches:
    """All of a run; ``sizes`` ascending, ``row_bytes`` of one mask."""

    sizes: Sequence[int]
    row_bytes: int
    kinds: dict[str, Kind] = field(default_factory=dict)

    @property
    def different(self) -> int:
        return sum(kind.different for kind in self.kinds.values())


def claims(batches: Batches) -> list[Claim]:
    """One for each statement, and one about what the paper does not measure: a set for each row."""
    return [_ratios(batches), _share(batches), _size_of_set(batches), _many_sets(batches)]


def _ratios(batches: Batches) -> Claim:
    size, kind = batches.sizes[-1], batches.kinds[ONE]
    ratios = {who: kind.ratio(size, who) for who in ("XGrammar", "LLGuidance")}
    own = {who: kind.ratio(size, who, OWN) for who in ratios}
    paper = {who: PAPER[who] / PAPER["trieauto"] for who in ratios}
    best = {who: max(ratios[who], own[who]) for who in ratios}
    verdict: Verdict = "does not hold"
    if min(best.values()) > 1:
        verdict = "holds" if all(best[who] >= paper[who] for who in best) else "in part"
    row = batches.row_bytes
    return Claim(
        "trie",
        "Table 19",
        "The masks of 128 rows take the trie 1/78 of XGrammar's time and 1/370 of LLGuidance's (K=1,000, one set).",
        "; ".join(f"{who}: {duration(seconds)}" for who, seconds in PAPER.items()),
        "; ".join(
            [f"trieauto: {duration(kind.seconds(size))}", f"{OWN}: {duration(kind.seconds(size, OWN))}"]
            + [f"{who}: {_with_threads(kind, size, who)}, {times(ratios[who])} and {times(own[who])}" for who in ratios]
        ),
        verdict,
        f"The paper's 10 µs are lookups (0.08 µs a row, Appendix H.3): {size} rows of {row:,} bytes written in that "
        f"time would be {size * row / PAPER['trieauto'] / 1e9:,.0f} GB a second. Ours are rows that can be used. The "
        "peers have their call for a batch, or a loop over its rows, whichever is faster.",
    )


def _share(batches: Batches) -> Claim:
    size, kind = batches.sizes[-1], batches.kinds[ONE]
    shares = {who: kind.seconds(size, who) / FORWARD for who in PAPER}
    verdict: Verdict = "does not hold"
    if shares["LLGuidance"] > shares["XGrammar"] > shares["trieauto"]:
        verdict = "holds" if shares["LLGuidance"] >= 0.25 and shares["trieauto"] <= 0.005 else "in part"
    return Claim(
        "trie",
        "Table 19, share of the forward pass",
        "With 128 rows LLGuidance's masks take more than a third of a forward pass of 10 ms and limit throughput; the "
        "trie's are negligible.",
        "trie 0.1 %, XGrammar 7.8 %, LLGuidance 37 %",
        f"Of 10 ms, B={size}: " + ", ".join(f"{who} {share:.2%}" for who, share in shares.items()) + ".",
        verdict,
        "The forward pass is the paper's; without its GPU it is not measured here.",
    )


def _size_of_set(batches: Batches) -> Claim:
    size, one, larger = batches.sizes[-1], batches.kinds[ONE], batches.kinds[LARGER]
    growth = {who: larger.seconds(size, who) / one.seconds(size, who) for who in (*PAPER, OWN)}
    fraction = sum(growth[who] <= SAME for who in PAPER) / len(PAPER)
    return Claim(
        "trie",
        "Appendix M.1",
        "At K=10,000 a batch costs what it costs at K=1,000, with the trie and with the peers.",
        ", ".join(f"{who} {duration(PAPER[who])} and {duration(PAPER_LARGE[who])}" for who in PAPER),
        f"B={size}, K={larger.count:,} over K={one.count:,}: "
        + ", ".join(f"{who} {times(ratio)}" for who, ratio in growth.items())
        + ".",
        "holds" if fraction == 1 else "in part" if growth["trieauto"] <= SAME else "does not hold",
        "At the larger size: "
        + ", ".join(f"{who} {duration(larger.seconds(size, who))}" for who in (*PAPER, OWN))
        + ".",
    )


def _many_sets(batches: Batches) -> Claim:
    sizes, one, each = batches.sizes, batches.kinds[ONE], batches.kinds[EACH]
    size = sizes[-1]
    growth = {who: each.seconds(size, who) / one.seconds(size, who) for who in (*PAPER, OWN)}
    faster = [each.ratio(batch, who) for batch in sizes for who in ("XGrammar", "LLGuidance")]
    alone = {who: one.ratio(sizes[0], who) for who in ("XGrammar", "LLGuidance")}
    return Claim(
        "trie",
        "Section 5.1, batch serving",
        "The advantage is decisive in batches, where every request has its own state (and, in a server, its own set).",
        "one set for all rows",
        f"A different set in each of {size} rows costs "
        + ", ".join(f"{who} {times(ratio)}" for who, ratio in growth.items())
        + f" what one set costs. With a set for each row trieauto is {span(faster)} as fast as the peers over all "
        f"batch sizes; for {sizes[0]} row of one set XGrammar takes {times(alone['XGrammar'])}, LLGuidance "
        f"{times(alone['LLGuidance'])} our time. {sum(kind.compared for kind in batches.kinds.values()):,} rows "
        f"compared, {batches.different} different.",
        "holds" if min(faster) > 1 else "in part" if max(faster) > 1 else "does not hold",
        f"The figures are of sets of {one.count:,} tool names.",
    )


def _with_threads(kind: Kind, size: int, who: str) -> str:
    threads = kind.timings[size][who][1]
    return f"{duration(kind.seconds(size, who))}, {threads if threads == ROW_BY_ROW else f'threads {threads}'}"


def draw(batches: Batches, path: Path) -> None:
    """Two panels with one scale: one set for all rows, a set for each."""
    with plot(path, width=8.4, ncols=2, sharey=True) as (_, panels):
        for axes, title in zip(panels, (ONE, EACH), strict=True):
            kind = batches.kinds[title]
            for who, marker in _MARKERS.items():
                heights = [kind.seconds(size, who) * 1e6 for size in batches.sizes]
                axes.plot(batches.sizes, heights, label=who, color=COLOURS[who], marker=marker)
            heights = [kind.seconds(size, OWN) * 1e6 for size in batches.sizes]
            style = {"color": COLOURS["trieauto"], "marker": "o", "linestyle": "--", "fillstyle": "none"}
            axes.plot(batches.sizes, heights, label=OWN, **style)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda cost, _: f"{cost:,g}")
            axes.set_xticks(batches.sizes, [f"{size}" for size in batches.sizes])
            axes.set_xlabel(f"rows; {title}, K={kind.count:,}")
        panels[0].set_ylabel("one call, µs")
        panels[0].legend()
