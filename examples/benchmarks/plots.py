"""Plots as SVG that can be read on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# A colour for each engine, the same in every plot, with contrast enough to white and to near black.
COLOURS = {
    "trieauto": "#d1495b",
    "XGrammar": "#2f7ed8",
    "LLGuidance": "#3a9d5d",
    "outlines-core": "#b07aa1",
    "GENRE": "#b8860b",
}
NEUTRAL = "#7d8590"  # text and lines: 4:1 to white, 4.5:1 to near black
_UNITS = {1e-7: "0.1 µs", 1e-6: "1 µs", 1e-5: "10 µs", 1e-4: "0.1 ms", 1e-3: "1 ms", 1e-2: "10 ms", 0.1: "0.1 s",
          1.0: "1 s", 10.0: "10 s", 100.0: "100 s"}  # fmt: skip


@contextmanager
def plot(path: Path, width: float = 7.2, height: float = 4.2, **options: Any) -> Iterator[tuple[Any, Any]]:
    """``with plot(path) as (figure, axes)``: what is drawn is written as SVG without a background.

    Args:
        options: for ``matplotlib.pyplot.subplots``.
    """
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    style = {
        "svg.fonttype": "path",  # looks the same wherever it is shown
        "svg.hashsalt": path.name,  # the same figures make the same file
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": NEUTRAL,
        "grid.alpha": 0.25,
        "legend.frameon": False,
        **dict.fromkeys(
            ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "legend.labelcolor"),
            NEUTRAL,
        ),
    }
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(width, height), layout="constrained", **options)
        yield figure, axes
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", transparent=True, metadata={"Date": None})
        pyplot.close(figure)


def seconds_text(seconds: float) -> str:
    """Of a tick of a logarithmic axis: "10 µs"."""
    return next((text for value, text in _UNITS.items() if abs(seconds / value - 1) < 0.01), f"{seconds:g} s")
