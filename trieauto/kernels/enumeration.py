"""All strings of a finite language, in the order of their bytes."""

from __future__ import annotations

import numpy as np

from .edges import edge_target, first_edge, last_edge, next_edge
from .jit import helper, kernel
from .walk import AUTOMATON


@helper
def _visit(labels, links, targets, accepting, start, most, most_bytes, data, offsets):
    """Depth first; counts, and writes where there is room for it."""
    is_written = len(offsets) > 0
    num_states = len(accepting)
    edges = np.empty(num_states + 1, np.int64)  # the next edge to follow at each depth; no string is longer than this
    stops = np.empty(num_states + 1, np.int64)
    path = np.empty(num_states + 1, np.uint8)
    depth = 0
    count = total = np.int64(0)
    state = np.int64(start)
    while True:
        if accepting[state]:
            if count == most or total + depth > most_bytes:
                return np.int64(-1), np.int64(-1)
            if is_written:
                for k in range(depth):
                    data[total + k] = path[k]
                offsets[count + 1] = total + depth
            count += 1
            total += depth
        edges[depth], stops[depth] = first_edge(links, targets, state), last_edge(links, targets, state)
        while edges[depth] >= stops[depth]:
            depth -= 1
            if depth < 0:
                return count, total
        edge = edges[depth]
        edges[depth] = next_edge(links, targets, edge)
        path[depth] = labels[edge]
        state = np.int64(edge_target(targets, edge))
        depth += 1


@kernel(f"Tuple((int64, int64))({AUTOMATON}, uint8[::1], int64, int64, int64)")
def count_strings(labels, links, targets, accepting, start, most, most_bytes):
    """How many strings an automaton without a cycle accepts, and their bytes together; -1, -1 if there are more than
    ``most`` strings, or ``most_bytes`` bytes in them. O(bytes of the strings), up to these limits."""
    nothing = np.empty(0, np.uint8)
    return _visit(labels, links, targets, accepting, start, most, most_bytes, nothing, np.empty(0, np.int64))


@kernel(f"Tuple((uint8[::1], int64[::1]))({AUTOMATON}, uint8[::1], int64, int64, int64)")
def strings_of(labels, links, targets, accepting, start, count, num_bytes):
    """The strings that ``count_strings`` counted, sorted and packed: data uint8[num_bytes], offsets
    int64[count + 1]."""
    data = np.empty(num_bytes, np.uint8)
    offsets = np.zeros(count + 1, np.int64)
    _visit(labels, links, targets, accepting, start, count, num_bytes, data, offsets)
    return data, offsets
