"""The trie paper's claims about masks on the device (appendix H.6), judged by the lines of ``device_masks.py``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from curves import Curve, draw_curves
from lines import Lines, MissingLineError, Subject
from plots import COLOURS
from results import Claim
from wording import duration, faster, three_digits

_claim = partial(Claim, "trie", where="Appendix H.6")
HOST, DEVICE = "host: accept, fill, mask", "device: advance, apply_"
PAPER_CASE = "K=100,000"


def _section(lines: Lines, kind: str) -> str:
    found = lines.sections(f"A step of a batch on {kind}")
    if not found:
        raise MissingLineError(f"A step of a batch on {kind}")
    return found[0]


def tables(lines: Lines) -> Iterator[Claim]:
    section = _section(lines, "cpu")
    tables_of = lines.some(section, who="memory of the tables")
    case = str(tables_of[-1]["case"]) if tables_of else PAPER_CASE
    size = lines.number(section, case, "memory of the tables")
    seconds = lines.seconds(section, case, "transitions found and on the device")
    yield _claim(
        says="Masks of a trie are compact and can be used as tensors without conversion",
        reported="8 MB at K=100,000, against about 2 GB of an FSM's table",
        measured=f"tables of transitions as tensors, {case}: {three_digits(size)} MB, made in {duration(seconds)}",
        verdict="holds" if size < 12 and case == PAPER_CASE else "in part" if size < 200 else "does not hold",
        comment="On a device a row must also know where each token leads: that, too, is in these tables. They are made "
        "of the compiled set, which takes time of its own; rows of bits for every node would take "
        "19 kB a node with Qwen's vocabulary.",
        order=1,
    )


def steps(lines: Lines) -> Iterator[Claim]:
    """On the GPU, if there was one; else what was measured on the CPU, which is not what the paper speaks of."""
    has_gpu = bool(lines.sections("A step of a batch on cuda"))
    section = _section(lines, "cuda" if has_gpu else "cpu")
    rows, ratios = [], []
    for case in dict.fromkeys(line["case"] for line in lines.some(section, who=DEVICE)):
        host, device = (lines.seconds(section, case, who) for who in (HOST, DEVICE))
        rows.append(f"{case}: {duration(host)} / {duration(device)}")
        ratios.append((host / device, case, device, host))
    if not rows:
        raise MissingLineError(f"{section}: {DEVICE}")
    worst = min(ratios)
    yield _claim(
        says="On a GPU a mask is essentially free beside the forward pass, and the CPU's masks matter less "
        f"(a step of a batch on the {'GPU' if has_gpu else 'CPU'}: masks from the host / on the device)",
        reported="no figures",
        measured="; ".join(rows),
        verdict="not reproduced"
        if not has_gpu
        else "holds"
        if worst[0] > 1
        else "in part"
        if max(ratios)[0] > 1
        else "does not hold",
        comment=("" if has_gpu else "There was no GPU; the same code ran on the CPU. ")
        + f"At worst ({worst[1]}) the device's way is {faster(worst[2], worst[3], 'masks from the host')}.",
        order=2,
    )


def draw(lines: Lines, directory: Path) -> dict[str, str]:
    """A step of a batch, by its rows."""
    colours = {HOST: COLOURS["trieauto"], DEVICE: COLOURS["XGrammar"]}
    panels: dict[str, list[Curve]] = {}
    for section in lines.sections("A step of a batch on "):
        kind = section.removeprefix("A step of a batch on ").split()[0]
        points: dict[str, dict[str, dict[int, float]]] = {}
        for line in lines.some(section):
            size, _, batch = line["case"].partition(", batch ")
            if batch and line["timing"] is not None and line["who"] in colours:
                points.setdefault(size, {}).setdefault(line["who"], {})[int(batch)] = line["timing"]["median"]
        for size, of_ways in points.items():
            panels[f"{size}, on {kind}"] = [Curve(who, found, colours[who]) for who, found in of_ways.items()]
    name = "device_masks.svg"
    if not draw_curves(directory / name, panels, "batch", "a step", at_sizes=True):
        return {}
    return {name: "A step of a batch: masks from the host and masks made on the device."}


SUBJECT = Subject("device_masks", "masks on the device against masks from the host", [tables, steps], draw)
