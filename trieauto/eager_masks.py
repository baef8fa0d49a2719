"""The masks of all states at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
import numpy.typing as npt

from .automaton import Automaton
from .errors import UnsupportedError
from .kernels.aho_corasick import all_tokens_by_aho_corasick, depth_of_trie
from .kernels.walk import all_tokens, state_tokens
from .packing import MAX_THREADS, default_threads
from .vocabulary import Vocabulary

Method = Literal["walk", "aho_corasick"]

STATES_PER_STRING = 8  # how many states take about as long as sorting one string
MAX_ENTRIES = 2**28  # 1 GB of token ids


def eager_masks(
    automaton: Automaton,
    extended: Automaton,
    vocabulary: Vocabulary,
    distances: npt.NDArray[np.int32],
    method: Method,
    threads: int | None,
    max_entries: int | None = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Offsets int32[N + 1] and token ids int32 of all states' masks.

    ``automaton`` is without, ``extended`` with the prefix space; they differ in the start alone, so a trie's states
    are done on the trie. ``distances``: fewest tokens from each state to the end, or empty where none is out of reach.

    Raises:
        UnsupportedError: more than ``max_entries`` tokens in all (by default ``MAX_ENTRIES``).
    """
    if extended.is_trie:
        automaton = extended
    max_entries = MAX_ENTRIES if max_entries is None else max_entries
    tables = vocabulary.tables
    num_states = automaton.num_states
    if threads is None:
        threads = default_threads(num_states // STATES_PER_STRING)
    threads = min(threads, MAX_THREADS, num_states)

    def masks(span: tuple[int, int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        if method == "walk":
            return all_tokens(*automaton.arrays, distances, *tables.trie, *span, max_entries)  # type: ignore[no-any-return]
        return all_tokens_by_aho_corasick(  # type: ignore[no-any-return]
            automaton.labels,
            automaton.links,
            distances,
            tables.nodes,
            tables.token_ids,
            *tables.aho_corasick,
            depth,
            *span,
            max_entries,
        )

    depth = depth_of_trie(automaton.links) if method == "aho_corasick" else 0
    if threads == 1:
        parts = [masks((0, num_states))]
    else:
        spans = [(num_states * k // threads, num_states * (k + 1) // threads) for k in range(threads)]
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(masks, spans))
    if extended is not automaton:
        start_tokens, _ = state_tokens(*extended.arrays, distances, *tables.trie, extended.start)
        parts.append((np.array([len(start_tokens)], np.int64), start_tokens))
    counts = [part[0] for part in parts]
    num_entries = sum(int(part.sum()) for part in counts)
    if sum(map(len, counts)) < extended.num_states or num_entries > max_entries:
        raise UnsupportedError(
            f"the masks of all {extended.num_states:,} states hold more than {max_entries:,} tokens: use mode='lazy'"
        )
    offsets = np.zeros(extended.num_states + 1, np.int32)
    np.cumsum(counts[0] if len(counts) == 1 else np.concatenate(counts), out=offsets[1:])
    tokens = parts[0][1] if len(parts) == 1 else np.concatenate([part[1] for part in parts])
    return offsets, tokens
