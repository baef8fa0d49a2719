"""Where ``trieauto choose`` writes: a file that an interrupted run can be continued from, or stdout."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from .errors import CommandError, reason
from .prompts import ERROR_KEY, RESULT_KEYS, PromptLine
from .run_record import RunFile, RunRecord

REFUSED = "refused"
ENDINGS = ("complete", "completed under the budget", REFUSED)  # of an answer, as ``Choice.ended`` has them


class ResultFile:
    """A file of answers, line by line those to the prompts, of which some may be there already.

    Every write is on the disk when ``write`` returns. If the process dies while writing, the file ends with some
    complete lines and perhaps a part of one; the next run keeps the lines and writes the rest anew. Until the file is
    complete, a record beside it says with what it was begun. A file in which nothing was written does not remain.

    Attributes:
        num_done: how many prompts were answered when it was opened.
        endings: how the answers that are there ended; whoever writes more counts them here.
    """

    def __init__(self, path: Path, prompts: str) -> None:
        """Open or create ``path``; ``prompts`` is where the prompts came from, for messages, and must be elsewhere."""
        self._path = path
        self._prompts = prompts
        self.num_done = 0
        self.endings: Counter[str] = Counter()
        self._end = 0
        self._run_file = RunFile(path)
        self._record: RunRecord | None = None
        self._is_new = not path.exists()
        if path.exists() and not path.is_file():
            raise CommandError(f"{path} is not a regular file; leave --output away to write to stdout")
        if prompts != "-" and path.exists() and path.samefile(prompts):
            raise CommandError(f"{path} holds the prompts: write the answers to another file")
        try:
            self._file: BinaryIO = path.open("x+b" if self._is_new else "r+b")
        except OSError as error:
            raise CommandError(f"{path}: {reason(error)}") from error
        self._lock()

    def _lock(self) -> None:
        """Keep a second run from writing to the same file, where there are file locks; ends with the process."""
        try:
            import fcntl
        except ImportError:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())
        except (BlockingIOError, FileNotFoundError):
            is_ours = False  # the latter: another run has just removed it, for it had nothing to write
        if not is_ours:
            self._file.close()
            raise CommandError(f"another run is writing to {self._path}: wait, or write to another file")

    def __enter__(self) -> ResultFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_new and os.fstat(self._file.fileno()).st_size == 0:
            self._run_file.remove()
            with suppress(PermissionError):  # where an open file cannot be removed
                self._path.unlink()
        self._file.close()

    def check(self, prompts: Sequence[PromptLine], values: Collection[str], record: RunRecord) -> None:
        """Count the answers that are there. Changes nothing.

        Raises:
            CommandError: the file was begun with something else than ``record`` says; or a line is not an answer, with
                one of these values, to the prompt of that line.
        """
        if os.fstat(self._file.fileno()).st_size > 0:  # else a record is of a file that was deleted
            self._run_file.check(record)
        self._record = record
        for number, line in enumerate(self._file, start=1):
            prompt = prompts[number - 1] if number <= len(prompts) else None
            is_whole = line.endswith(b"\n")
            ending = _ending(line, prompt, values) if prompt is not None and is_whole else None
            is_begun = prompt is not None and not is_whole and _is_begun(line, prompt)
            if ending is None and not is_begun:
                raise CommandError(
                    f"{self._path}:{number} is not an answer to line {number} of {self._prompts}: this file belongs to "
                    "another run; delete it or write to another"
                )
            if ending is not None:
                self.num_done = number
                self.endings[ending] += 1
                self._end += len(line)

    def begin(self) -> None:
        """Drop what an interrupted run left of a line, and keep the record of this one."""
        if self._record is not None:
            self._run_file.write(self._record)
        self._file.truncate(self._end)
        self._file.seek(self._end)

    def write(self, lines: bytes) -> None:
        """Append complete lines, and wait until they are on the disk."""
        self._file.write(lines)
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        """All answers are written: nothing will be continued any more."""
        self._run_file.remove()


class ResultStream:
    """Stdout, which nothing can be continued from."""

    num_done = 0

    def __init__(self) -> None:
        self.endings: Counter[str] = Counter()

    def begin(self) -> None:
        """Nothing to do."""

    def write(self, lines: bytes) -> None:
        """Write complete lines, at once."""
        sys.stdout.buffer.write(lines)
        sys.stdout.buffer.flush()

    def finish(self) -> None:
        """Nothing to do."""


def _is_begun(line: bytes, prompt: PromptLine) -> bool:
    """Whether a torn line may be the beginning of an answer to a prompt."""
    first_key = b'"value": '
    rest = line[len(prompt.opening) :]
    return prompt.opening.startswith(line) or (
        line.startswith(prompt.opening) and (rest.startswith(first_key) or first_key.startswith(rest))
    )


def _ending(line: bytes, prompt: PromptLine, values: Collection[str]) -> str | None:
    """How the answer to a prompt ended that a whole line holds; None if it holds none."""
    if not line.startswith(prompt.opening):
        return None
    try:
        results = json.loads(b"{" + line[len(prompt.opening) :])
    except ValueError:
        return None
    keys = tuple(results)
    if keys not in (RESULT_KEYS, (*RESULT_KEYS, ERROR_KEY)):
        return None
    value, ending = results["value"], results["ended"]
    if ERROR_KEY in results:
        return REFUSED if value is None and ending == REFUSED else None
    is_answer = isinstance(value, str) and value in values and ending in ENDINGS and ending != REFUSED
    return ending if is_answer else None
