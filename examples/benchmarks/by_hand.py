"""What a reader of the trie paper can follow by hand: its worked example, and how groups of √K divide a set.

    python examples/benchmarks/by_hand.py    (some seconds)

Appendix G.1 builds the trie of three values and the masks of a vocabulary of six tokens; Proposition 2 says how small
the larger of two choices gets, the group and the value in it. Needs ``pip install trieauto``.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from curves import Curve, draw_curves
from lines import Lines, Subject, add_saving, converted, finish
from plots import COLOURS
from report import Report
from results import Claim, machine

import trieauto
from trieauto.demo_sets import tool_names
from trieauto.strategies import Hierarchy

TOKENS: list[bytes | None] = [b"medical", b"_bill", b"_cod", b"_rec", b"ing", b"ords", None]
VALUES = ["medical_billing", "medical_coding", "medical_records"]
PAPER_MASKS = {"": "medical", "medical": "_bill _cod _rec", "medical_bill": "ing", "medical_rec": "ords"}
"""By what was written before; the paper names no others with tokens."""
COUNTS, QUICK_COUNTS = (100, 1_000, 5_000), (50,)
MASKS, GROUPS = "The worked example: masks by what was written", "Groups by similarity"

_claim = partial(Claim, "trie")


def masks() -> tuple[trieauto.Constraint, dict[str, str]]:
    """The constraint of the worked example, and its content tokens by the text before them, wherever there are any."""
    vocabulary = trieauto.Vocabulary.from_tokens(TOKENS, stop_token_ids=[len(TOKENS) - 1])
    constraint = trieauto.compile(trieauto.choices(VALUES), vocabulary)
    found: dict[str, str] = {}

    def walk(matcher: trieauto.Matcher, before: bytes) -> None:
        ids = [token_id for token_id in matcher.allowed_token_ids().tolist() if TOKENS[token_id] is not None]
        if ids:
            found[before.decode()] = " ".join((TOKENS[token_id] or b"").decode() for token_id in ids)
        for token_id in ids:
            after = matcher.fork()
            after.accept_token(token_id)
            walk(after, before + (TOKENS[token_id] or b""))

    walk(constraint.matcher(), b"")
    return constraint, found


def worked_example(report: Report) -> None:
    constraint, found = masks()
    section = report.section(MASKS)
    section.add("", "characters", sum(map(len, VALUES)))
    section.add("", "nodes", constraint.automaton.num_states)
    for before, tokens in found.items():
        section.add(before or "(start)", "tokens", note=tokens)


def groups(report: Report, counts: Sequence[int]) -> None:
    section = report.section(GROUPS)
    for count in counts:
        hierarchy = Hierarchy.by_similarity(tool_names(count))
        section.add(f"K={count:,}", "groups", len(hierarchy.names))
        section.add(f"K={count:,}", "largest group", max(map(len, hierarchy.groups.values())))


def example_claims(lines: Lines) -> Iterator[Claim]:
    characters, nodes = (int(lines.number(MASKS, "", who)) for who in ("characters", "nodes"))
    found = {line["case"].replace("(start)", ""): line["note"] for line in lines.some(MASKS, who="tokens")}
    wrong = [before for before, tokens in PAPER_MASKS.items() if found.get(before) != tokens]
    others = [f"{tokens} after {before}" for before, tokens in found.items() if before not in PAPER_MASKS]
    right = (characters, nodes) == (44, 29) and not wrong
    yield _claim(
        where="Appendix G.1, masks",
        says="In the worked example three values make 29 nodes, of which four have tokens",
        reported="44 characters, 29 nodes; "
        + ", ".join(f"{tokens} {'after ' + before if before else 'first'}" for before, tokens in PAPER_MASKS.items()),
        measured=f"{characters} characters, {nodes} nodes; "
        + (f"masks differ after {', '.join(wrong)}" if wrong else "the same masks")
        + (f", and {', '.join(others)}" if others else ""),
        verdict="holds" if right and not others else "in part" if right else "does not hold",
        comment="The paper's list leaves out what it does not walk through." if others else "",
    )


def group_claims(lines: Lines) -> Iterator[Claim]:
    rows, over = [], []
    for line in lines.some(GROUPS, who="groups"):
        count = int(line["case"].removeprefix("K=").replace(",", ""))
        largest = lines.number(GROUPS, line["case"], "largest group")
        most = max(line["number"], largest)
        root = math.ceil(math.sqrt(count))
        over.append(most / root)
        rows.append(f"{line['case']}: {root} / {line['number']:g} / {largest:g}")
    balanced = all(
        min(max(groups, math.ceil(count / groups)) for groups in range(1, count + 1)) == math.ceil(math.sqrt(count))
        for count in range(1, 1_000)
    )
    yield _claim(
        where="Proposition 2",
        says="In two steps, a group and a value in it, no choice need be larger than √K "
        "(⌈√K⌉ / groups by similarity / the largest of them)",
        reported="⌈√K⌉ for balanced groups; no figures",
        measured="; ".join(rows),
        verdict="does not hold" if not balanced else "holds" if max(over) <= 1 else "in part",
        comment="For balanced groups it is true of every K below 1,000, tried one by one. Groups by likeness are not "
        f"balanced: their largest choice is up to {max(over):.1f} times √K. It is the number of options that shrinks; "
        "a mask costs the same at every K anyway.",
    )


def draw(lines: Lines, directory: Path) -> dict[str, str]:
    """How large the two choices are, by the size of the set."""
    found = {int(line["case"].removeprefix("K=").replace(",", "")): line for line in lines.some(GROUPS, who="groups")}
    curves = [
        Curve("one choice of all", {count: count for count in found}, style=":"),
        Curve("⌈√K⌉", {count: math.ceil(math.sqrt(count)) for count in found}, style="--"),
        Curve("groups by similarity", {count: line["number"] for count, line in found.items()}, COLOURS["XGrammar"]),
        Curve(
            "the largest of them",
            {count: lines.number(GROUPS, line["case"], "largest group") for count, line in found.items()},
            COLOURS["trieauto"],
        ),
    ]
    name = "groups_by_k.svg"
    if not draw_curves(directory / name, {"": curves}, "values in the set (K)", "options", "number", width=6.4):
        return {}
    return {name: "Groups first: how many options each of the two choices has, by K (Proposition 2)"}


SUBJECT = Subject("by_hand", "the trie paper's worked example, and groups of √K", [example_claims, group_claims], draw)


def main(arguments: Sequence[str] | None = None) -> int:
    if converted(SUBJECT, arguments):
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sets")
    add_saving(parser)
    options = parser.parse_args(arguments)
    report = Report()
    worked_example(report)
    groups(report, QUICK_COUNTS if options.quick else COUNTS)
    finish(options, SUBJECT, report.as_json(), machine(), is_whole=not options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
