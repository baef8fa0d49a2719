"""``trieauto inspect``: what a set is and costs under a tokenizer."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import trieauto

from ..constraint import Constraint
from ..errors import shorten
from .mask_sizes import DepthRow, grouped, mask_sizes_by_depth
from .terminal import bold, counted, dim, duration, size, status
from .tokenizers import load_vocabulary
from .values import read_values

_SHOWN_VALUES = 20


@dataclass(frozen=True)
class Report:
    """What ``inspect`` found; the fields of its JSON. Lengths in bytes, memory in bytes, times in seconds.

    Attributes:
        num_values: K, the distinct values; ``num_duplicates`` more lines repeat one of them.
        num_bytes: of all distinct values together (the paper's N_chars).
        num_nodes: of their trie, the root included.
        prefix_sharing_ratio: nodes over bytes (the trie paper's r, appendix H.7); none for the empty value alone.
        start_tokens: tokens legal at the start. With a prefix space, the start comes before the trie's root.
        tokens_by_depth: tokens legal at the trie's nodes, by depth, stop tokens not counted; over all nodes.
        compile_seconds: from the list of values to the constraint that masks are taken from.
        memory: of the compiled set, without the values themselves; ``vocabulary_memory`` is shared by all sets.
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
    tokens_by_depth: list[DepthRow]
    unreachable_values: list[str]


def add_parser(commands: Any) -> None:
    """Add ``inspect`` to the subcommands."""
    parser = commands.add_parser(
        "inspect",
        help="show what a set of values is and costs under a tokenizer",
        description="Compiles a file of values for a tokenizer and shows its size, how much the values share, how many "
        "tokens are legal where, what it costs, and which values the tokenizer cannot spell.",
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
        metavar="PATH|NAME",
        help="a tokenizer.json, tiktoken, SentencePiece, tekken.json or GGUF file, a model's directory, or the name of "
        "one in the Hugging Face hub",
    )
    parser.add_argument(
        "--prefix-space",
        choices=["none", "optional", "required"],
        help="a space before the answer (default: as the tokenizer does it)",
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the report on a set."""
    values = read_values(arguments.values)
    with status("loading the tokenizer"):
        begin = time.perf_counter()
        vocabulary, names_stop = load_vocabulary(arguments.tokenizer)
        vocabulary_seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    automaton = trieauto.choices(values)
    constraint = trieauto.compile(automaton, vocabulary, unreachable="report", prefix_space=arguments.prefix_space)
    compile_seconds = time.perf_counter() - begin
    distinct = {value.encode() for value in values}
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
        memory=constraint.nbytes,
        compile_seconds=compile_seconds,
        start_tokens=len(constraint.content_tokens(constraint.automaton.start)),
        tokens_by_depth=mask_sizes_by_depth(constraint),
        unreachable_values=[str(value) for value in constraint.unreachable_values],
    )
    if arguments.json:
        print(json.dumps(_for_json(report), indent=2))
    else:
        _show(report)
    return 0
