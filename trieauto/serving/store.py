"""The constraints that requests ask for by text: compiled once, kept while there is room."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import Literal

import numpy as np

from ..automaton import Automaton
from ..compiling import compile
from ..constraint import Constraint
from ..errors import TrieautoError, UnsupportedError, shorten
from ..fixed_formats import fixed_format
from ..grammars import from_grammar
from ..json_schemas import json_schema
from ..json_schemas.checking import parsed
from ..json_schemas.named_sets import find_set_names, may_name_sets
from ..json_schemas.strings import flags_of
from ..regex_automaton import regex
from ..value_lists.automaton import ListAutomaton
from ..value_sets import choices
from ..vocabulary import Vocabulary
from .named_sets import PREFIX, NamedSet, NamedSets
from .schemas import with_object_types
from .snapshots import read_snapshot

GrammarKind = Literal["regex", "ebnf", "json_schema", "values", "format"]
"""What the text of a request is."""

Key = tuple[str, bytes, tuple[str, ...]]  # kind, digest of the text, versions of its sets

_CLASSES = re.compile(r"\\[dwsbB]")
MOST_BYTES = 2**30
_MOST_NAMES = 4096  # texts of which the sets that they name are remembered


class ConstraintStore:
    """Constraints by the text of a grammar, for one vocabulary. Thread-safe.

    Threads that ask for the same text at once wait for the one that compiles it. Those used longest ago are dropped
    when all together take more than ``max_bytes``; what uses them keeps them alive.
    """

    def __init__(self, vocabulary: Vocabulary, sets: NamedSets, *, max_bytes: int = MOST_BYTES) -> None:
        """
        Args:
            vocabulary: the model's.
            sets: what ``*set:NAME`` and ``x-trieauto-set`` refer to.
            max_bytes: of all constraints together, ready masks included, vocabulary and values excluded. A constraint
                that is larger by itself is compiled for each request anew.
        """
        self.vocabulary = vocabulary
        self.sets = sets
        self.max_bytes = max_bytes
        self.num_compiled = 0
        self._futures: OrderedDict[Key, Future[Constraint]] = OrderedDict()
        self._names: OrderedDict[bytes, tuple[str, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def names_of_sets(self, kind: GrammarKind, text: str) -> tuple[str, ...]:
        """The sets that a text refers to: those that only we can serve.

        Args:
            kind: what the text is.
            text: a regular expression, a grammar, a schema, values or the name of a format.

        Raises:
            TrieautoError: a reference that is not well formed.
        """
        if kind in ("values", "format"):
            return ()
        if kind != "json_schema":
            return (text[len(PREFIX) :],) if text.startswith(PREFIX) else ()
        if not may_name_sets(text):
            return ()
        digest = _digest(text)
        names = self._names.get(digest)
        if names is None:
            names = find_set_names(text)
            with self._lock:
                self._names[digest] = names
                if len(self._names) > _MOST_NAMES:
                    self._names.popitem(last=False)
        return names

    def key(self, kind: GrammarKind, text: str) -> Key:
        """What a constraint is kept under: its text, and the versions of the sets that it names, as they are now.

        Args:
            kind, text: as for ``names_of_sets``.

        Raises:
            TrieautoError: a set that does not exist or cannot be read.
        """
        return kind, _digest(text), tuple(self.sets.version(name) for name in self.names_of_sets(kind, text))

    def peek(self, kind: GrammarKind, text: str) -> Constraint | None:
        """The constraint of a text if it is compiled already; None too where ``get`` would raise. Some microseconds.

        Args:
            kind, text: as for ``names_of_sets``.
        """
        try:
            key = self.key(kind, text)
        except TrieautoError:
            return None
        return self._kept(key)

    def _kept(self, key: Key) -> Constraint | None:
        with self._lock:
            future = self._futures.get(key)
            if future is None or not future.done():
                return None
            self._futures.move_to_end(key)
        return future.result()

    def get(
        self, kind: GrammarKind, text: str, versions: tuple[str, ...] | None = None, kept_in: str | None = None
    ) -> Constraint:
        """The constraint of a text, compiled if it is not there.

        Args:
            kind: "values" (a JSON array of strings), "format" (as ``trieauto.fixed_format``, of valid days), "regex",
                "ebnf" (XGrammar's) and "json_schema", as ``trieauto.from_grammar`` takes them; but ``\\d``,
                ``\\w`` and ``\\s`` of a regex are ASCII where that makes its language smaller, since engines and ``re``
                differ there. A schema that declares properties, but no type, is taken for an object's.
            text: the grammar, or ``*set:NAME`` for one value of a named set. In a JSON schema ``x-trieauto-set``
                names a set.
            versions: those of its sets (``key(kind, text)[2]``), for a request that has begun with them; by default
                as they are now.
            kept_in: a directory of ``Snapshots`` that has these, if their files have changed since.

        Raises:
            TrieautoError: what ``from_grammar`` and ``compile`` raise, and ``NamedSets.get``. All who waited for it get
                the same error; the next request tries again.
        """
        if versions is not None:
            kept = self._kept((kind, _digest(text), versions))
            if kept is not None:
                return kept
        names = self.names_of_sets(kind, text)
        if versions is None:
            found = {name: self.sets.get(name) for name in names}
        else:
            found = {name: self._state(name, version, kept_in) for name, version in zip(names, versions, strict=True)}
        key = kind, _digest(text), tuple(named.version for named in found.values())
        with self._lock:
            future = self._futures.get(key)
            is_ours = future is None
            if future is None:
                future = self._futures[key] = Future()
            self._futures.move_to_end(key)
        if not is_ours:
            return future.result()
        try:
            constraint = _prepared(compile(_automaton(kind, text, found), self.vocabulary))
        except BaseException as error:
            with self._lock:
                self._futures.pop(key, None)
            if isinstance(error, (RecursionError, MemoryError)):
                error = UnsupportedError(f"the {kind} {shorten(text)} is too large: {type(error).__name__}")
            future.set_exception(error)
            raise error from None
        self.num_compiled += 1
        future.set_result(constraint)
        self._make_room()
        return constraint

    def _state(self, name: str, version: str, kept_in: str | None) -> NamedSet:
        """A set as it was at a version."""
        with contextlib.suppress(TrieautoError):
            named = self.sets.get(name)
            if named.version == version:
                return named
        return read_snapshot(kept_in or "", name, version)

    def clear(self) -> None:
        """Drop all constraints."""
        with self._lock:
            self._futures.clear()

    @property
    def nbytes(self) -> int:
        """Memory of the constraints that are kept, in bytes."""
        with self._lock:
            futures = list(self._futures.values())
        return sum(future.result().nbytes for future in futures if future.done())

    def __len__(self) -> int:
        """How many constraints are kept, or being compiled."""
        return len(self._futures)

    def _make_room(self) -> None:
        with self._lock:
            sizes = {key: future.result().nbytes for key, future in self._futures.items() if future.done()}
            total = sum(sizes.values())
            for key, size in sizes.items():
                if total <= self.max_bytes:
                    break
                del self._futures[key]
                total -= size


def _prepared(constraint: Constraint) -> Constraint:
    """Find now what a first request would wait for: distances, and the first mask under a budget and without."""
    row = np.empty((1, constraint.num_words), np.int32)
    for budget in (None, constraint.min_tokens):
        constraint.matcher(budget).fill_next_token_bitmask(row)
    return constraint


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _values(text: str) -> list[str]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TrieautoError(f"the values {shorten(text)} are not JSON: {error}") from None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TrieautoError(f"the values {shorten(text)} are not an array of strings")
    return values


def _automaton(kind: GrammarKind, text: str, found: dict[str, NamedSet]) -> Automaton | ListAutomaton:
    if kind == "json_schema":
        schema = with_object_types(parsed(text))
        return json_schema(schema, sets={name: named.values for name, named in found.items()})
    if found:
        (named,) = found.values()
        return named.automaton
    if kind == "values":
        return choices(_values(text))
    if kind == "format":
        return fixed_format(text, valid_days=text in ("date", "date-time"))
    if kind == "regex" and _CLASSES.search(text):
        return regex(text, flags_of(text))
    return from_grammar(text, kind)
