"""The command ``trieauto``: ``demo``, ``choose`` and ``inspect``."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from .. import __version__
from ..errors import TrieautoError
from . import choose, demo, inspect
from .errors import CommandError, reason

__all__ = ["main"]

_BROKEN_PIPE = 141  # 128 + SIGPIPE, as a shell reports a process that the signal ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; ``argv`` is by default the process's own arguments.

    Returns:
        The exit code: 0, 1 after a failure (one line on stderr says which), 2 after wrong usage, 130 when interrupted,
        141 when nobody reads the output any more.
    """
    if sys.stderr is None:  # closed, as by "2>&-"; what would be written there is lost, as asked for
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    if sys.stdout is None:
        print("trieauto: stdout is closed: there is nowhere to write to", file=sys.stderr)
        return 1
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character is no reason to fail
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has had enough of it, as ``head`` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that flushing at exit does not fail again
        return _BROKEN_PIPE
    return code


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as ended:  # argparse has said why, or has printed the help
        return ended.code if isinstance(ended.code, int) else 0
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except (CommandError, TrieautoError) as error:
        print(f"trieauto {arguments.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\ntrieauto {arguments.command}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, a file that may not be read
        print(f"trieauto {arguments.command}: {reason(error)}", file=sys.stderr)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trieauto",
        description="Let a language model choose exactly one value of a set, however large the set is.",
    )
    parser.add_argument("--version", action="version", version=f"trieauto {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for command in (demo, choose, inspect):
        command.add_parser(commands)
    return parser
