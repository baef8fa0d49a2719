"""Sets of values by name, read from a directory, so that 100,000 values need not travel with each request."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..automaton import Automaton
from ..errors import TrieautoError, UnsupportedError, ValueFileError, shorten
from ..json_schemas.named_sets import may_name_sets, names_in, unknown_set
from ..value_files import parse_values
from ..value_sets import choices

logger = logging.getLogger("trieauto")
ENVIRONMENT = "TRIEAUTO_SETS"
"""The environment variable that names the directory of sets, for engines."""

PREFIX = "*set:"
"""Before a set's name where a regular expression or a grammar is expected. Nothing can be repeated at the beginning of
either, so no notation has a text that begins like this."""

_SUFFIXES = (".txt", ".json", ".jsonl")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}")
_SETTLED_AFTER = 2_000_000_000  # ns; a file changed later than so long ago may change again without its time doing so
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, eq=False)
class NamedSet:
    """One state of a named set. Immutable.

    Attributes:
        name: what requests call it.
        version: a digest of the file's contents: equal for equal values.
        values: in the file's order.
        automaton: exactly one of them, as ``choices`` makes it.
    """

    name: str
    version: str
    values: list[str]
    automaton: Automaton


@dataclass(frozen=True, slots=True)
class _Loaded:
    path: str
    stamp: tuple[int, ...]
    is_settled: bool
    found: NamedSet
    directory_changed: int = -1  # the directory's time of change when no second file was looked for


class NamedSets:
    """The sets of a directory: ``NAME.txt`` (one value a line), ``NAME.json`` (an array of strings) or ``NAME.jsonl``
    (one JSON string a line). Thread-safe.

    A file is read when its set is first asked for, and again once it has changed (time of change, size, inode; a
    ``stat`` of the file and one of the directory for each request). Replace a file in one step (write another and
    rename it): one that is written in place can be read half-written. What was made from an earlier state goes on with
    that state.
    """

    def __init__(self, directory: str | os.PathLike[str] | None) -> None:
        """Nothing is read yet.

        Args:
            directory: where the files are; None: there are no sets.

        Raises:
            TrieautoError: not a directory.
        """
        self.directory = None if directory is None else Path(directory)
        if self.directory is not None and not self.directory.is_dir():
            raise TrieautoError(f"the directory of named sets, {str(self.directory)!r}, is not a directory")
        self._stat_of = "" if directory is None else os.fspath(directory)  # os.stat of a Path takes twice as long
        self._loaded: dict[str, _Loaded] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_environment(cls) -> NamedSets:
        """The sets of the directory that the environment variable ``TRIEAUTO_SETS`` names; none if it is not set."""
        return cls(os.environ.get(ENVIRONMENT) or None)

    def names(self) -> list[str]:
        """The names of all sets, ascending. Lists the directory.

        Raises:
            ValueFileError: it cannot be listed (any more).
        """
        if self.directory is None:
            return []
        try:
            found = [file.stem for file in self.directory.iterdir() if file.suffix in _SUFFIXES and file.is_file()]
        except OSError as error:
            raise ValueFileError(f"the directory of named sets, {self.directory}: {error.strerror or error}") from error
        return sorted({name for name in found if _NAME.fullmatch(name)})

    def get(self, name: str) -> NamedSet:
        """The set ``name`` as its file is now. A ``stat``, and reading and sorting the values if it has changed;
        threads that want the same set at once wait for one of them.

        Raises:
            UnsupportedError: there is no such set; it lists close names. Or two files have this name.
            ValueFileError: the file cannot be read, or a line of it is no value.
            TrieautoError: a name that no set can have.
        """
        loaded = self._loaded.get(name) if isinstance(name, str) else None
        if loaded is not None and self._is_current(name, loaded):
            return loaded.found
        path = self._path(name)
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            loaded = self._loaded.get(name)
            if loaded is not None and self._is_current(name, loaded):
                return loaded.found
            try:
                with path.open("rb") as file:
                    status = os.fstat(file.fileno())
                    data = file.read()
                    is_same = _stamp(os.fstat(file.fileno())) == _stamp(status)
            except OSError as error:
                raise ValueFileError(f"{path}: {error.strerror or error}") from error
            is_settled = is_same and time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_AFTER
            version = hashlib.blake2b(data + path.suffix.encode(), digest_size=16).hexdigest()
            if loaded is None or loaded.found.version != version:
                values = parse_values(data.removeprefix(_BYTE_ORDER_MARK), path)
                found = NamedSet(name, version, values, choices(values))
                logger.info("trieauto: read the set %r, %s values, from %s", name, f"{len(values):,}", path)
            else:
                found = loaded.found
            self._loaded[name] = _Loaded(os.fspath(path), _stamp(status), is_settled, found)
            return found

    def _is_current(self, name: str, loaded: _Loaded) -> bool:
        """Whether a set is as it was loaded: its file has not changed, nor is there a second one of its name."""
        try:
            if not loaded.is_settled or _stamp(os.stat(loaded.path)) != loaded.stamp:
                return False
            changed = os.stat(self._stat_of).st_mtime_ns
        except OSError:
            return False
        if changed != loaded.directory_changed:  # only then can there be a second file
            if os.fspath(self._path(name)) != loaded.path:
                return False
            if time.time_ns() - changed > _SETTLED_AFTER:
                self._loaded[name] = replace(loaded, directory_changed=changed)
        return True

    def automaton(self, name: str) -> Automaton:
        """The automaton of the set ``name`` as its file is now; errors and cost as for ``get``."""
        return self.get(name).automaton

    def version(self, name: str) -> str:
        """A digest of the set ``name`` as its file is now, for the keys of caches; errors and cost as for ``get``."""
        return self.get(name).version

    def __getitem__(self, name: str) -> Sequence[str]:
        """The values of the set ``name`` as its file is now; errors and cost as for ``get``. (This is what
        ``json_schema`` takes.)"""
        return self.get(name).values

    def _path(self, name: str) -> Path:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise TrieautoError(
                f"{shorten(name)} is no name of a set: letters, digits, '_', '-' and '.', 128 at most, "
                "not beginning with '-' or '.'"
            )
        if self.directory is None:
            raise UnsupportedError(
                f"there is no set named {shorten(name)}: no directory of sets is configured "
                f"(environment variable {ENVIRONMENT})"
            )
        paths = [self.directory / (name + suffix) for suffix in _SUFFIXES]
        try:
            found = [path for path in paths if path.is_file()]
        except OSError as error:
            raise ValueFileError(f"the set {name!r}: {error}") from error
        if len(found) > 1:
            raise UnsupportedError(
                f"the set {name!r} has more than one file: {' and '.join(path.name for path in found)}"
            )
        if not found:
            raise unknown_set(name, self.names())
        return found[0]

    def __repr__(self) -> str:
        return f"<NamedSets of {None if self.directory is None else str(self.directory)!r}>"


def mentions_sets(text: str) -> bool:
    """Whether a grammar of any kind, such as a structural tag, names sets somewhere in it, or tries to, so that nobody
    else can serve it. A scan of the text; one that may name any is parsed."""
    if text.startswith(PREFIX):
        return True
    if PREFIX not in text and not may_name_sets(text):
        return False
    try:
        return _mentions_sets(json.loads(text))
    except TrieautoError:
        return True
    except (ValueError, RecursionError):
        return False


def _mentions_sets(grammar: object) -> bool:
    if names_in(grammar):
        return True
    if isinstance(grammar, dict):
        return any(map(_mentions_sets, grammar.values()))
    if isinstance(grammar, list):
        return any(map(_mentions_sets, grammar))
    return isinstance(grammar, str) and grammar.startswith(PREFIX)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev
