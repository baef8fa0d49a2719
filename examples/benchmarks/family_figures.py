"""The figures of one family of tokenizers, and the plots of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import Timing
from plots import COLOURS, NEUTRAL, plot
from preparation import COLD, WITH_AHO_CORASICK
from restoring import restored
from vocabularies import FAMILIES
from wording import as_figures

PAPER_PER_STEP = {
    "mistral": 0.60e-6,
    "gpt2": 0.62e-6,
    "olmo": 0.63e-6,
    "tekken": 0.64e-6,
    "qwen": 0.65e-6,
    "o200k": 0.66e-6,
    "gemma": 0.67e-6,
}
_STYLES: dict[str, dict[str, Any]] = {
    "trieauto": {"color": COLOURS["trieauto"], "marker": "o"},
    "trieauto, own buffers": {"color": COLOURS["trieauto"], "marker": "o", "linestyle": "--", "fillstyle": "none"},
    "XGrammar": {"color": COLOURS["XGrammar"], "marker": "s"},
    "LLGuidance": {"color": COLOURS["LLGuidance"], "marker": "^"},
}


@dataclass(frozen=True)
class Family:
    """What was measured with one tokenizer; see ``family_measures``.

    ``first_masks[count][engine]`` is a timing and the form of the set that the engine was given.
    """

    name: str
    size: int
    preparations: dict[str, Timing]
    first_masks: dict[int, dict[str, tuple[Timing, str]]]
    masks: dict[str, Timing]
    agreement: dict[str, dict[str, int]]
    aho_corasick_bytes: int

    @property
    def label(self) -> str:
        return FAMILIES[self.name]

    @property
    def different(self) -> int:
        """Masks that are not ours."""
        return sum(sum(counted.values()) - counted["compared"] for counted in self.agreement.values())

    @property
    def compared(self) -> int:
        """Pairs of masks."""
        return sum(counted["compared"] * (len(counted) - 1) for counted in self.agreement.values())

    def seconds(self, count: int, who: str) -> float:
        """From the set to the first mask, the tokenizer being ready."""
        return self.first_masks[count][who][0].median

    def anew(self, count: int) -> float:
        """As the paper counts: the automaton over the vocabulary built anew, then the masks of all nodes by it."""
        return self.preparations[WITH_AHO_CORASICK].median + self.seconds(count, "trieauto, eager, Aho-Corasick")

    def speedup(self, count: int, over: str = "XGrammar") -> float:
        """Both tokenizers being ready."""
        return self.seconds(count, over) / self.seconds(count, "trieauto")

    def speedup_anew(self, count: int) -> float:
        """Over XGrammar with a tokenizer that is ready."""
        return self.seconds(count, "XGrammar") / self.anew(count)

    def speedup_both_anew(self, count: int) -> float:
        """Over XGrammar whose tokenizer is built anew, too."""
        return (self.preparations["XGrammar"].median + self.seconds(count, "XGrammar")) / self.anew(count)

    def preparation_ratio(self, who: str) -> float:
        return self.preparations[who].median / self.preparations[COLD].median

    @classmethod
    def of_json(cls, name: str, figures: dict[str, Any]) -> Family:
        """What ``as_json`` made the figures of."""
        first = {
            count: {who: (figures_of, figures_of["form"]) for who, figures_of in row.items()}
            for count, row in figures["first_masks"].items()
        }
        return restored(cls, {**figures, "name": name, "first_masks": first})

    def as_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "size": self.size,
            "preparations": as_figures(self.preparations),
            "first_masks": {
                count: {who: {**as_figures({"": timing})[""], "form": form} for who, (timing, form) in row.items()}
                for count, row in self.first_masks.items()
            },
            "masks": as_figures(self.masks),
            "agreement": self.agreement,
            "aho_corasick_bytes": self.aho_corasick_bytes,
        }


def draw_speedups(families: Sequence[Family], path: Path) -> None:
    """A line for each size of set: XGrammar's time over ours, by tokenizer."""
    places = range(len(families))
    counts = list(families[0].first_masks)
    with plot(path, height=4.6) as (_, axes):
        for index, count in enumerate(counts):
            alpha = 0.5 + 0.5 * index / max(1, len(counts) - 1)
            style = {"color": COLOURS["trieauto"], "marker": "o", "alpha": alpha}
            axes.plot(places, [family.speedup(count) for family in families], **style)
            _name_line(axes, f"K={count:,}", families[-1].speedup(count))
        axes.axhline(1, color=COLOURS["XGrammar"], linestyle=":")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda ratio, _: f"{ratio:,g}×")
        axes.set_ylabel("times faster than XGrammar, set to first mask")
        axes.set_xticks(places, [family.label.replace(" ", "\n") for family in families])
        axes.margins(x=0.05)


def draw_masks(families: Sequence[Family], path: Path) -> None:
    """One mask by the number of token ids; the paper's figures are of another machine."""
    sizes = [family.size for family in families]
    with plot(path) as (_, axes):
        for who, style in _STYLES.items():
            axes.plot(sizes, [family.masks[who].median * 1e6 for family in families], label=who, **style)
        paper = [PAPER_PER_STEP[family.name] * 1e6 for family in families]
        axes.plot(sizes, paper, label="the paper's trie, on its machine", color=NEUTRAL, linestyle=":")
        axes.set_yscale("log")
        axes.set_xlabel("token ids")
        axes.set_ylabel("one mask, µs")
        axes.xaxis.set_major_formatter(lambda size, _: f"{size / 1000:.0f}K")
        for set_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            set_formatter(lambda cost, _: f"{cost:g}")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)


def _name_line(axes: Any, text: str, height: float) -> None:
    """Beside the axes, at the height of its end."""
    axes.annotate(
        text, (1.01, height), xycoords=("axes fraction", "data"), va="center", fontsize=9, annotation_clip=False
    )
