"""States of named sets on disk, for processes that first need one after its file has changed."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from ..errors import UnsupportedError
from ..value_sets import choices
from .named_sets import NamedSet

_MOST_STATES = 8  # of one set that are kept, the newest ones


class Snapshots:
    """A temporary directory with the states that requests have begun with, up to eight of a set; it goes with the
    process. Thread-safe."""

    def __init__(self) -> None:
        """Nothing is written yet."""
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._kept: dict[str, OrderedDict[str, Path]] = {}
        self._lock = threading.Lock()

    def keep(self, states: Iterable[NamedSet]) -> str:
        """Make sure that states are there, and say in which directory.

        Args:
            states: of named sets. Each is written once.
        """
        with self._lock:
            if self._directory is None:
                self._directory = tempfile.TemporaryDirectory(prefix="trieauto-sets-")
            for named in states:
                self._keep(named, self._directory.name)
            return self._directory.name

    def _keep(self, named: NamedSet, directory: str) -> None:
        kept = self._kept.setdefault(named.name, OrderedDict())
        if named.version not in kept:
            path = _path(directory, named.name, named.version)
            unfinished = path.with_suffix(".part")
            unfinished.write_text(json.dumps(named.values), "utf-8")
            unfinished.rename(path)
            kept[named.version] = path
            if len(kept) > _MOST_STATES:
                kept.popitem(last=False)[1].unlink(missing_ok=True)
        kept.move_to_end(named.version)


def read_snapshot(directory: str | os.PathLike[str], name: str, version: str) -> NamedSet:
    """A state that was kept, maybe by another process.

    Raises:
        UnsupportedError: it is not there.
    """
    try:
        values = json.loads(_path(directory, name, version).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UnsupportedError(
            f"the set {name!r} has changed since the request began, and what it was is not kept"
        ) from error
    return NamedSet(name, version, values, choices(values))


def _path(directory: str | os.PathLike[str], name: str, version: str) -> Path:
    return Path(directory, f"{name}-{version}.json")
