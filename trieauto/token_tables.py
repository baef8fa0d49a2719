"""What is built once for a tokenizer: the sorted token trie and the Aho-Corasick automaton over its tokens."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from . import disk_cache
from .kernels import token_trie
from .kernels.aho_corasick import build_aho_corasick
from .kernels.descriptor import scratch_length
from .kernels.jit import warm_up
from .kernels.scan import preorder_of
from .kernels.token_trie import build_double_array, heights_of
from .kernels.trie import build_trie
from .packing import PackedStrings, pack, sort_packed
from .plain_text import PlainText

MIN_TOKENS_ON_DISK = 10_000

_TRIE_ARRAYS = {"nodes": np.int32, "siblings": np.uint8, "token_ids": np.int32}
_AHO_CORASICK_ARRAYS = {"failures": np.int32, "outputs": np.int32, "lengths": np.int32}


class TokenTables:
    """The bytes of every token, and the structures over them. Immutable; shared by equal vocabularies.

    Attributes:
        data uint8[B], offsets int64[V + 1]: the bytes of token v are ``data[offsets[v]:offsets[v + 1]]``; none for a
            token without bytes.
        nodes int32[S, 4], siblings uint8[S, 2], token_ids int32[T]: the token trie (see ``kernels.token_trie``).
        max_token_length: of the longest token, in bytes.
        single_bytes: bool[256], which single bytes are tokens.
        scratch: int32, working space of the kernels that hold the interpreter lock.
        digest: of the tokens' bytes and ids.
    """

    def __init__(self, packed: PackedStrings, digest: str) -> None:
        self.data = packed.data
        self.offsets = packed.offsets
        self.digest = digest
        lengths = np.diff(self.offsets)
        self.max_token_length = int(lengths.max(initial=0))
        self.scratch = np.empty(scratch_length(self.max_token_length), np.int32)
        self.single_bytes = np.zeros(256, bool)
        self.single_bytes[self.data[self.offsets[:-1][lengths == 1]]] = True
        self._lock = threading.Lock()
        self._aho_corasick: tuple[npt.NDArray[np.int32], ...] | None = None
        # What is built in a few milliseconds is not worth a file.
        self._is_kept = len(self.offsets) > MIN_TOKENS_ON_DISK
        stored = disk_cache.load("trie", digest) if self._is_kept else None
        if stored is None or not self._is_sound_trie(stored):
            stored = self._build_trie()
            if self._is_kept:
                disk_cache.save("trie", digest, stored)
        self.nodes: npt.NDArray[np.int32] = stored["nodes"]  # type: ignore[assignment]
        self.siblings: npt.NDArray[np.uint8] = stored["siblings"]  # type: ignore[assignment]
        self.token_ids: npt.NDArray[np.int32] = stored["token_ids"]  # type: ignore[assignment]

    @property
    def trie(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.int32], int]:
        """nodes, siblings, token ids, longest token: the form in which kernels take the token trie."""
        return self.nodes, self.siblings, self.token_ids, self.max_token_length

    @cached_property
    def preorder(self) -> tuple[npt.NDArray[Any], ...]:
        """The token trie in the layout of ``kernels.scan``: labels, depths, ends of subtrees and of tokens; 13 bytes a
        node. Made when first needed."""
        return preorder_of(self.nodes, self.siblings, self.max_token_length)  # type: ignore[no-any-return]

    @cached_property
    def plain_text(self) -> PlainText:
        """Its tokens of plain text and the others. Made when first needed, in some 20 ms."""
        return PlainText(self)

    @cached_property
    def heights(self) -> npt.NDArray[np.int32]:
        """How many more bytes the longest token below each slot of the trie has: int32[S]."""
        return heights_of(self.nodes)  # type: ignore[no-any-return]

    def prepare(self) -> None:
        """Make all that is made when first needed, but the Aho-Corasick automaton."""
        _ = self.preorder, self.plain_text, self.heights

    def _build_trie(self) -> dict[str, npt.NDArray[Any]]:
        lengths = np.diff(self.offsets)
        order, shared = sort_packed(PackedStrings(self.data, self.offsets))
        keep = lengths[order] > 0  # tokens without bytes come first and end at the root
        order, shared = order[keep], shared[keep]
        if len(shared) > 0:
            shared[0] = 0
        labels, subtree_ends, _, terminals = build_trie(self.data, self.offsets, order, shared)
        first = np.zeros(len(labels), np.int32)
        last = np.zeros(len(labels), np.int32)
        ranks = np.arange(len(order), dtype=np.int32)
        first[terminals[::-1]] = ranks[::-1]
        last[terminals] = ranks + 1
        nodes, siblings = build_double_array(labels, subtree_ends, first, last)
        return {"nodes": nodes, "siblings": siblings, "token_ids": order}

    def _is_sound_trie(self, stored: dict[str, npt.NDArray[Any]]) -> bool:
        """Whether stored arrays are safe to walk: every number in them is in range."""
        if not _has_arrays(stored, _TRIE_ARRAYS) or stored["nodes"].ndim != 2 or stored["nodes"].shape[1] != 4:
            return False
        nodes, siblings, token_ids = stored["nodes"], stored["siblings"], stored["token_ids"]
        bases, checks = nodes[:, token_trie.BASE], nodes[:, token_trie.CHECK]
        first, last = nodes[:, token_trie.FIRST], nodes[:, token_trie.LAST]
        if not (
            siblings.shape == (len(nodes), 2)
            and len(nodes) > 256
            and _within(bases, 0, len(nodes) - 256)
            and _within(checks, -1, len(nodes) - 1)
            and _within(first, 0, len(token_ids))
            and _within(last, 0, len(token_ids))
            and _within(token_ids, 0, len(self.offsets) - 2)
        ):
            return False
        # Going from sibling to sibling ends: the bytes ascend.
        following = siblings[:, token_trie.NEXT_SIBLING]
        labels = np.arange(len(nodes)) - bases[checks]
        return bool(np.all((following == 0) | (following > labels) | (checks < 0)))

    @property
    def aho_corasick(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """failures, outputs, lengths, each int32[S] (see ``kernels.aho_corasick``); built when first asked for."""
        with self._lock:
            if self._aho_corasick is None:
                stored = disk_cache.load("aho-corasick", self.digest) if self._is_kept else None
                if stored is None or not self._is_sound_aho_corasick(stored):
                    stored = dict(zip(_AHO_CORASICK_ARRAYS, build_aho_corasick(self.nodes), strict=True))
                    if self._is_kept:
                        disk_cache.save("aho-corasick", self.digest, stored)
                self._aho_corasick = tuple(stored[name] for name in _AHO_CORASICK_ARRAYS)  # type: ignore[misc]
            return self._aho_corasick  # type: ignore[return-value]

    def _is_sound_aho_corasick(self, stored: dict[str, npt.NDArray[Any]]) -> bool:
        """As for the trie; also that every link leads to a shorter string, so that following them ends."""
        if not _has_arrays(stored, _AHO_CORASICK_ARRAYS) or any(len(a) != len(self.nodes) for a in stored.values()):
            return False
        failures, outputs, lengths = (stored[name] for name in _AHO_CORASICK_ARRAYS)
        limit = len(self.nodes) - 1
        if not (
            _within(failures, 0, limit) and _within(outputs, 0, limit) and _within(lengths, 0, self.max_token_length)
        ):
            return False
        used = lengths > 0
        return bool(np.all(lengths[failures[used]] < lengths[used]) and np.all(lengths[outputs[used]] < lengths[used]))

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes."""
        arrays: list[npt.NDArray[Any]] = [self.data, self.offsets, self.nodes, self.siblings, self.token_ids]
        arrays += self._aho_corasick or ()
        return sum(array.nbytes for array in arrays)


def _has_arrays(stored: dict[str, npt.NDArray[Any]], expected: Mapping[str, type]) -> bool:
    return stored.keys() == expected.keys() and all(stored[name].dtype == expected[name] for name in expected)


def _within(array: npt.NDArray[Any], low: int, high: int) -> bool:
    return len(array) == 0 or (int(array.min()) >= low and int(array.max()) <= high)


_shared: weakref.WeakValueDictionary[str, TokenTables] = weakref.WeakValueDictionary()
_shared_lock = threading.Lock()


def token_tables(tokens: Sequence[bytes]) -> TokenTables:
    """The tables of these tokens (``b""`` for one without bytes): from memory, from disk, or built now."""
    warm_up()
    packed = pack(tokens)
    digest = hashlib.blake2b(digest_size=16)
    digest.update(packed.offsets.tobytes())
    digest.update(packed.data.tobytes())
    key = digest.hexdigest()
    with _shared_lock:  # two threads that need the same tables build them once
        tables = _shared.get(key)
        if tables is None:
            tables = _shared[key] = TokenTables(packed, key)
        return tables
