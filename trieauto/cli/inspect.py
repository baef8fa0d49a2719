"""``trieauto inspect``: what a set is and costs under a tokenizer."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import trieauto

from ..automaton import PrefixSpace
from ..errors import BudgetError, EmptyConstraintError, shorten
from ..kernels.jit import warm_up
from ..value_files import read_values
from .arguments import filled, token_budget
from .errors import CommandError
from .mask_sizes import DepthRow, grouped, mask_sizes_by_depth
from .page import PageNames, check_page_path, write_page
from .terminal import bold, counted, dim, duration, size, status
from .tokenizers import NamedTokenizer, load_named

_SHOWN_VALUES = 20
_MAX_RUNS = 5  # of compiling, to measure it
_MAX_SECONDS = 0.2


@dataclass(frozen=True)
class BudgetReport:
    """What a budget of ``max_tokens`` leaves of a set.

    Attributes:
        start_tokens: tokens legal at the start; None if the budget is refused.
        num_values: values that can be written in so many tokens.
        error: why it is refused.
    """

    max_tokens: int
    start_tokens: int | None
    num_values: int
    error: str | None


@dataclass(frozen=True)
class PageReport:
    """The page that was written, and its size in bytes."""

    path: str
    num_bytes: int


@dataclass(frozen=True)
class Report:
    """What ``inspect`` found; the fields of its JSON. Lengths in bytes, memory in bytes, times in seconds.

    Attributes:
        num_values: K, the distinct values; ``num_duplicates`` more lines repeat one of them.
        num_bytes: of all distinct values together (the paper's N_chars).
        num_nodes: of their trie, the root included.
        prefix_sharing_ratio: nodes over bytes (the trie paper's r, appendix H.7); none for the empty value alone.
        start_tokens: tokens legal at the start. With a prefix space, the start comes before the trie's root.
        min_tokens: the fewest tokens of any answer, a stop token not counted: no budget can be less.
        enough_tokens: the least budget that leaves no value out.
        budget: of ``--max-tokens``, if that was given.
        page: where ``--html`` wrote one, and its size in bytes.
        tokens_by_depth: tokens legal at the trie's nodes, by depth, stop tokens not counted; over all nodes.
        compile_seconds: from the list of values to the constraint that masks are taken from; the least of some runs.
        memory: of the compiled set, without the values themselves and without what budgets need, four bytes a node;
            ``vocabulary_memory`` is shared by all sets.
    """

    values_file: str
    tokenizer: str
    num_values: int
    num_duplicates: int
    num_bytes: int
    shortest: int
    longest: int
    num_nodes: int
    prefix_sharing_ratio: float | None
    num_token_ids: int
    stop_token_ids: list[int]
    num_single_bytes: int
    is_byte_complete: bool
    vocabulary_memory: int
    vocabulary_seconds: float
    prefix_space: str
    mode: str
    memory: int
    compile_seconds: float
    start_tokens: int
    min_tokens: int
    enough_tokens: int
    budget: BudgetReport | None
    page: PageReport | None
    tokens_by_depth: list[DepthRow]
    unreachable_values: list[str]


def add_parser(commands: Any) -> None:
    """Add ``inspect`` to the subcommands."""
    parser = commands.add_parser(
        "inspect",
        help="show what a set of values is and costs under a tokenizer",
        description="Compiles a file of values for a tokenizer and shows its size, how much the values share, how many "
        "tokens are legal where, how many an answer takes, what it costs, and which values the tokenizer cannot spell.",
    )
    parser.add_argument(
        "values",
        type=Path,
        metavar="VALUES",
        help="the values: one a line; or .json, an array of strings; or .jsonl, one JSON string a line",
    )
    parser.add_argument(
        "--tokenizer",
        required=True,
        type=filled,
        metavar="PATH|NAME",
        help="a tokenizer.json, tiktoken, SentencePiece, tekken.json or GGUF file, a model's directory, or the name of "
        "one in the Hugging Face hub",
    )
    parser.add_argument(
        "--prefix-space",
        choices=["none", "optional", "required"],
        help="a space before the answer (default: as the tokenizer does it)",
    )
    parser.add_argument(
        "--max-tokens",
        type=token_budget,
        metavar="T",
        help="show what a budget of T tokens leaves at the start, or that no answer has so few",
    )
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a page, for a browser, on which to step through the set token by token and to ask why a token is "
        "allowed, or is not",
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the report on a set."""
    if arguments.html is not None:
        check_page_path(arguments.html)
    values = read_values(arguments.values)
    warm_up()
    with status("loading the tokenizer"):
        begin = time.perf_counter()
        tokenizer = load_named(arguments.tokenizer)
        vocabulary, names_stop = tokenizer.vocabulary, tokenizer.names_stop
        vocabulary_seconds = time.perf_counter() - begin
    distinct = {value.encode() for value in values}
    try:
        automaton, constraint, compile_seconds = _compile(values, vocabulary, arguments.prefix_space)
    except EmptyConstraintError as error:
        raise CommandError(
            f"{arguments.values}: the tokens of {arguments.tokenizer} can spell none of the "
            f"{counted(len(distinct), 'value')}"
        ) from error
    memory = constraint.nbytes  # before distances are found
    enough_tokens = constraint.enough_tokens
    assert enough_tokens is not None  # which only other languages than sets have
    lengths = [len(value) for value in distinct]
    report = Report(
        values_file=str(arguments.values),
        tokenizer=arguments.tokenizer,
        num_values=len(distinct),
        num_duplicates=len(values) - len(distinct),
        num_bytes=sum(lengths),
        shortest=min(lengths),
        longest=max(lengths),
        num_nodes=automaton.num_states,
        prefix_sharing_ratio=automaton.num_states / sum(lengths) if any(lengths) else None,
        num_token_ids=len(vocabulary.tokens),
        stop_token_ids=list(vocabulary.stop_token_ids) if names_stop else [],
        num_single_bytes=int(vocabulary.tables.single_bytes.sum()),
        is_byte_complete=vocabulary.is_byte_complete,
        vocabulary_memory=vocabulary.tables.nbytes,
        vocabulary_seconds=vocabulary_seconds,
        prefix_space=constraint.prefix_space,
        mode=constraint.mode,
        memory=memory,
        compile_seconds=compile_seconds,
        start_tokens=len(constraint.content_tokens(constraint.automaton.start)),
        min_tokens=constraint.min_tokens,
        enough_tokens=enough_tokens,
        budget=None if arguments.max_tokens is None else _under_budget(constraint, arguments.max_tokens),
        page=None if arguments.html is None else _write_page(arguments, values, tokenizer, constraint),
        tokens_by_depth=mask_sizes_by_depth(constraint),
        unreachable_values=[str(value) for value in constraint.unreachable_values],
    )
    if arguments.json:
        print(json.dumps(_for_json(report), indent=2))
    else:
        _show(report)
    return 0


def _compile(
    values: Sequence[str], vocabulary: trieauto.Vocabulary, prefix_space: PrefixSpace | None
) -> tuple[trieauto.Automaton, trieauto.Constraint, float]:
    """The set compiled, and the least time that this took: of several runs, where they are short."""
    times: list[float] = []
    while not times or (len(times) < _MAX_RUNS and sum(times) < _MAX_SECONDS):
        begin = time.perf_counter()
        automaton = trieauto.choices(values)
        constraint = trieauto.compile(automaton, vocabulary, unreachable="report", prefix_space=prefix_space)
        times.append(time.perf_counter() - begin)
    return automaton, constraint, min(times)


def _under_budget(constraint: trieauto.Constraint, max_tokens: int) -> BudgetReport:
    try:
        legal = constraint.matcher(max_tokens).allowed_token_ids()
    except BudgetError as error:
        return BudgetReport(max_tokens, None, 0, str(error))
    num_tokens = len(np.setdiff1d(legal, constraint.vocabulary.stop_token_ids))
    return BudgetReport(max_tokens, num_tokens, constraint.num_values_within(max_tokens) or 0, None)


def _write_page(
    arguments: argparse.Namespace, values: Sequence[str], tokenizer: NamedTokenizer, constraint: trieauto.Constraint
) -> PageReport:
    names = PageNames(str(arguments.values), arguments.tokenizer, tokenizer.names_stop, arguments.max_tokens)
    with status("asking the tokenizer how it writes the values"):
        own_tokens = None if tokenizer.encode is None else tokenizer.encode(values)
    with status("writing the page"):
        return PageReport(str(arguments.html), write_page(arguments.html, constraint, names, own_tokens))


def _for_json(report: Report) -> dict[str, Any]:
    table = [
        {"depth": row.first, "mean": row.mean, "max": row.maximum, "nodes": row.nodes} for row in report.tokens_by_depth
    ]
    budget = None if report.budget is None else vars(report.budget)
    page = None if report.page is None else vars(report.page)
    return {**vars(report), "budget": budget, "page": page, "tokens_by_depth": table}


def _show(report: Report) -> None:
    print(f"{bold(report.values_file)} with {bold(report.tokenizer)}\n")
    duplicates = f"{counted(report.num_duplicates, 'duplicate')} left out" if report.num_duplicates else ""
    ratio = "-" if report.prefix_sharing_ratio is None else f"{report.prefix_sharing_ratio:.2f}"
    missing = 256 - report.num_single_bytes
    stop_ids = ", ".join(map(str, report.stop_token_ids))
    for label, figure, note in (
        ("values (K)", f"{report.num_values:,}", duplicates),
        ("bytes", f"{report.num_bytes:,}", f"{report.shortest:,} to {report.longest:,} in a value"),
        ("trie nodes", f"{report.num_nodes:,}", ""),
        ("nodes per byte (r)", ratio, "the lower, the more prefixes are shared"),
        ("unreachable values", f"{len(report.unreachable_values):,}", ""),
        ("fewest tokens", f"{report.min_tokens:,}", "of any answer; a stop token not counted"),
        ("enough tokens", f"{report.enough_tokens:,}", "the least budget that leaves no value out"),
        *_budget_lines(report),
        ("compile time", duration(report.compile_seconds), f"tokenizer: read in {duration(report.vocabulary_seconds)}"),
        ("memory", size(report.memory), f"tokenizer: {size(report.vocabulary_memory)}, shared by all sets"),
        ("masks", report.mode, "found when needed" if report.mode == "lazy" else "all found when compiling"),
        ("prefix space", report.prefix_space, ""),
        ("token ids", f"{report.num_token_ids:,}", f"stop: {stop_ids}" if stop_ids else "the file names no stop token"),
        (
            "single bytes",
            f"{report.num_single_bytes}",
            f"{missing} of 256 have no token:" if missing else "byte-complete",
        ),
        *([("", "", "values that hold them may be unspellable")] if missing else []),
    ):
        print(f"  {label:18}  {figure:>11}  {dim(note)}".rstrip())
    _show_table(report)
    _show_unreachable(report.unreachable_values)
    if report.page is not None:
        print(
            f"\n{bold(report.page.path)}, {size(report.page.num_bytes)}: open it in a browser to step through the set"
        )


def _budget_lines(report: Report) -> list[tuple[str, str, str]]:
    budget = report.budget
    if budget is None:
        return []
    label = f"budget of {budget.max_tokens:,}"
    if budget.start_tokens is None:
        return [(label, "refused", f"no answer has fewer than {counted(report.min_tokens, 'token')}")]
    return [
        (label, f"{budget.num_values:,}", f"of {counted(report.num_values, 'value')} can be written in it"),
        ("", f"{budget.start_tokens:,}", f"of {counted(report.start_tokens, 'token')} legal at the start"),
    ]


def _show_table(report: Report) -> None:
    print(f"\n{bold('Legal tokens by depth')} in bytes, over all nodes; stop tokens not counted\n")
    print(dim(f"  {'depth':>11}  {'mean':>9}  {'max':>9}  {'nodes':>11}"))
    if report.prefix_space != "none":
        print(f"  {'start':>11}  {report.start_tokens:>9,.1f}  {report.start_tokens:>9,}  {1:>11}")
    for row in grouped(report.tokens_by_depth):
        depth = f"{row.first:,}" if row.first == row.last else f"{row.first:,}–{row.last:,}"
        print(f"  {depth:>11}  {row.mean:>9,.1f}  {row.maximum:>9,}  {row.nodes:>11,}")


def _show_unreachable(values: Sequence[str]) -> None:
    if not values:
        return
    print(f"\n{bold('Unreachable')}: no tokens of this tokenizer spell\n")
    for value in values[:_SHOWN_VALUES]:
        print(f"  {shorten(value)}")
    if len(values) > _SHOWN_VALUES:
        print(f"  and {len(values) - _SHOWN_VALUES:,} more; --json lists all of them")
