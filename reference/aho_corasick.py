"""The same masks as ``char_trie``, found by Aho-Corasick matching (the paper's section 4.2).

The vocabulary is the pattern set, the values are the texts. A token that ends after ``end`` bytes of a value starts
``len(token)`` bytes earlier, and is valid at the node of that start. The paper scans the trie once and restores the
automaton's state at each branch. pyahocorasick has no state to save, so here each value is scanned from end to end:
shared prefixes are scanned again and give the same matches again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import ahocorasick


def masks(values: Iterable[bytes], tokens: Sequence[bytes | None]) -> dict[bytes, list[int]]:
    """For every prefix of a value (and ``b""``), the ids of all tokens valid there, ascending.

    Equal to ``CharTrie(values).masks(tokens)``. O(bytes of the vocabulary + bytes of the values + matches).
    """
    ids_by_bytes: dict[bytes, list[int]] = {}
    for token_id, token in enumerate(tokens):
        if token:
            ids_by_bytes.setdefault(token, []).append(token_id)

    automaton = ahocorasick.Automaton()
    for token, ids in ids_by_bytes.items():
        # The library matches text: Latin-1 maps each byte to the character with the same number.
        automaton.add_word(token.decode("latin-1"), (len(token), ids))
    automaton.make_automaton()

    found: dict[bytes, set[int]] = {b"": set()}
    for value in values:
        for depth in range(1, len(value) + 1):
            found.setdefault(value[:depth], set())
        # An automaton without patterns cannot be scanned with.
        if ids_by_bytes:
            for last, (length, ids) in automaton.iter(value.decode("latin-1")):
                found[value[: last + 1 - length]].update(ids)
    return {node: sorted(ids) for node, ids in found.items()}
