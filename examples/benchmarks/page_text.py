"""How the page writes: Markdown as GitHub shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import get_args

from results import Paper, Verdict

SIGNS: dict[Verdict, str] = {"holds": "✅", "in part": "🟡", "does not hold": "❌", "not reproduced": "⚪"}
NAMES: dict[Paper, str] = {"trie": "Trie Automata", "reachability": "Reachability"}
assert tuple(SIGNS) == get_args(Verdict)


def escaped(text: str) -> str:
    """Text in which GitHub sees no tags, strike-outs, formulas or line breaks; what stands in backticks is left."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(
        part if part.startswith("`") else re.sub(r"(?<!\\)([~$*|])", r"\\\1", _no_tags(part)) for part in parts
    )


def _no_tags(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; its first column is text, the others may be numbers."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def figures_table(says: str, reported: str, measured: str) -> tuple[str, str]:
    """What is claimed, and a table of the figures if there are several of a kind (else "").

    What was measured must be of the form "this: figures; that: figures". What is reported has columns or rows of its
    own if it is of that form too, about the same things. If what is claimed ends with the names of the figures,
    "(unit: ours / theirs)", and the figures are as many, each name has a column.
    """
    here = parts(measured)
    if len(here) < 2:
        return says, ""
    paper = parts(reported) if is_alike(reported, measured) else {}
    named = re.search(r" \((?:([^()]*): )?([^():]+(?: / [^():]+)+)\)$", says)
    names = named[2].split(" / ") if named else []
    if named and all(len(figures.split(" / ")) == len(names) for figures in (*paper.values(), *here.values())):
        rows = []
        for what, figures in here.items():
            if what in paper:
                rows.append([f"paper, {what}", *paper[what].split(" / ")])
            rows.append([f"here, {what}", *figures.split(" / ")])
        header = [named[1] or "", *names]
        says = says[: named.start()]
    else:
        header = ["", "paper", "here"] if paper else ["", "here"]
        rows = [[what, *([paper.get(what, "–")] if paper else []), figures] for what, figures in here.items()]
    return says, table(list(map(escaped, header)), [list(map(escaped, row)) for row in rows])


def is_alike(reported: str, measured: str) -> bool:
    """Whether what is reported can stand in the table of what was measured."""
    paper = parts(reported)
    return bool(paper) and set(paper) <= set(parts(measured))


def parts(text: str) -> dict[str, str]:
    """Figures by what they are about, if the text is of that form: else it is prose, which a table would tear."""
    pairs = [re.fullmatch(r"([^:;]{1,40}): ([^;]*)", part) for part in text.split("; ")]
    found = {pair[1]: pair[2] for pair in pairs if pair is not None}
    is_torn = len(found) < len(pairs) or any(
        what.count("(") != what.count(")") or ": " in figures for what, figures in found.items()
    )
    return {} if is_torn else found


def took(seconds: float | None, said: str) -> str:
    """How long a run took; what its program says where it was not recorded."""
    if seconds is None:
        return said or "not recorded"
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min"
