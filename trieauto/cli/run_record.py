"""With what a file of answers was begun, kept beside it until it is complete."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..value_files import read_bytes
from .errors import CommandError

_FORMAT = 2


@dataclass(frozen=True)
class RunRecord:
    """What the answers of a run depend on, beside its prompts.

    Attributes:
        values: a digest of the values in their order.
        model: a directory's full path, or a name in the hub.
        version: of this record's form.
    """

    values: str
    system: str | None
    model: str
    gguf: str | None
    max_new_tokens: int | None
    version: int = _FORMAT

    @classmethod
    def of(
        cls, values: Sequence[str], system: str | None, model: str, gguf: str | None, max_new_tokens: int | None
    ) -> RunRecord:
        """The record of a run with these arguments."""
        digest = hashlib.sha256(json.dumps(values).encode()).hexdigest()
        place = str(Path(model).resolve()) if Path(model).exists() else model
        return cls(digest, system, place, gguf, max_new_tokens)


_NAMES = {
    "values": "other --values",
    "system": "another --system",
    "model": "another --model",
    "gguf": "another --gguf",
    "max_new_tokens": "another --max-new-tokens",
    "version": "another version of trieauto",
}


class RunFile:
    """The record beside a file of answers: ``answers.jsonl.run`` beside ``answers.jsonl``."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._path = Path(f"{output}.run")

    def check(self, record: RunRecord) -> None:
        """Compare with the record, if there is one.

        Raises:
            CommandError: the answers were begun otherwise; the message names in what.
        """
        if not self._path.exists():
            return
        data = read_bytes(self._path)
        try:
            written = json.loads(data)
        except (ValueError, RecursionError):
            written = None
        if not isinstance(written, dict):
            raise CommandError(f"{self._path} does not say how {self._output} was begun: delete it to go on anyway")
        differing = [name for key, name in _NAMES.items() if written.get(key) != asdict(record)[key]]
        if differing:
            raise CommandError(
                f"{self._output} was begun with {', '.join(differing)}: go on with the same, or write to another file"
            )

    def write(self, record: RunRecord) -> None:
        """Keep this record; whatever happens, there is a whole one or none."""
        new = Path(f"{self._path}.new")
        with new.open("w") as file:
            json.dump(asdict(record), file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)

    def remove(self) -> None:
        """The answers are complete, or none was written."""
        self._path.unlink(missing_ok=True)
