"""How characters are written inside a JSON string, and languages of raw text rewritten that way."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..automaton import Automaton
from ..errors import UnsupportedError
from ..nfa import Nfa, edges_of

Escapes = Literal["canonical", "any"]

_SHORT = {0x22: '"', 0x5C: "\\", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}
MUST_ESCAPE = [*range(0x20), 0x22, 0x5C]
_MAX_SPELLED = 20_000  # characters beyond ASCII, over all states, more than there are states; those of sets are not
_SURROGATES = range(0xD800, 0xE000)

Edges = npt.NDArray[np.int64]  # [E, 3]: source, byte, target


spelled_string = encode_basestring
"""A string as JSON, canonically: as ``json.dumps(ensure_ascii=False)`` writes it."""


@lru_cache
def character(escapes: Escapes | None) -> Edges:
    """One character as it stands in a JSON string; for None, as it stands in any text.

    int64[E, 3]: edges from state 0 to state 1, by source and byte, one for each source and byte. Nothing leads into
    state 0, nothing on from state 1; the other states follow. Surrogates are left out, alone they are no characters.
    """
    edges: list[tuple[int, int, int]] = []

    def add(source: int, labels: object, target: int) -> None:
        edges.extend((source, label, target) for label in labels)  # type: ignore[attr-defined]

    one, two, three, after_e0, after_ed, after_f0, after_f4 = range(2, 9)
    add(0, [byte for byte in range(0x80) if escapes is None or byte not in MUST_ESCAPE], 1)
    add(0, range(0xC2, 0xE0), one)
    add(0, [0xE0], after_e0)
    add(0, [*range(0xE1, 0xED), 0xEE, 0xEF], two)
    add(0, [0xED], after_ed)
    add(0, [0xF0], after_f0)
    add(0, range(0xF1, 0xF4), three)
    add(0, [0xF4], after_f4)
    add(one, range(0x80, 0xC0), 1)
    add(two, range(0x80, 0xC0), one)
    add(three, range(0x80, 0xC0), two)
    add(after_e0, range(0xA0, 0xC0), one)
    add(after_ed, range(0x80, 0xA0), one)
    add(after_f0, range(0x90, 0xC0), two)
    add(after_f4, range(0x80, 0x90), two)
    escape, unicode, *more = range(9, 25)
    if escapes is not None:
        add(0, b"\\", escape)
        add(escape, b'"\\bfnrt', 1)
        add(escape, b"u", unicode)
    if escapes == "canonical":
        add(unicode, b"0", more[0])
        add(more[0], b"0", more[1])
        add(more[1], b"0", more[2])
        add(more[1], b"1", more[3])
        add(more[2], b"01234567bef", 1)  # those that have no shorter escape
        add(more[3], b"0123456789abcdef", 1)
    elif escapes == "any":
        digits = b"0123456789abcdefABCDEF"
        three_left, two_left, one_left, after_d, *pair = more
        add(escape, b"/", 1)
        add(unicode, sorted(set(digits) - set(b"dD")), three_left)
        add(unicode, b"dD", after_d)
        add(three_left, digits, two_left)
        add(two_left, digits, one_left)
        add(one_left, digits, 1)
        add(after_d, b"01234567", two_left)
        add(after_d, b"89abAB", pair[0])
        add(pair[0], digits, pair[1])
        add(pair[1], digits, pair[2])
        add(pair[2], b"\\", pair[3])
        add(pair[3], b"u", pair[4])
        add(pair[4], b"dD", pair[5])
        add(pair[5], b"cdefCDEF", two_left)
    table = np.array(edges, np.int64)
    used = np.unique(np.append(table[:, [0, 2]].ravel(), [0, 1]))
    table[:, [0, 2]] = np.searchsorted(used, table[:, [0, 2]])
    in_order: Edges = table[np.lexsort((table[:, 1], table[:, 0]))]
    return in_order


@lru_cache(maxsize=64)
def characters(escapes: Escapes | None, least: int, most: int | None) -> Automaton:
    """``least`` to ``most`` (None: any number of) characters. Deterministic as it is built; O(most) in all.

    One copy of ``character`` after the other, the end of each being the start of the next.
    """
    edges = character(escapes)
    inner = int(edges[:, [0, 2]].max()) - 1  # states of a copy that are neither its start nor its end
    copies = least + 1 if most is None else most
    size = inner + 1
    places = np.where(edges[:, [0, 2]] == 1, size, np.maximum(edges[:, [0, 2]] - 1, 0))
    shift = size * np.arange(copies)[:, None]
    sources = (places[:, 0] + shift).ravel()
    targets = (places[:, 1] + shift).ravel()
    if most is None:
        targets[targets == size * copies] = size * least
    num_states = size * copies + (most is not None)
    accepting = np.zeros(num_states, np.uint8)
    accepting[size * least : size * (copies + 1) : size] = 1
    return automaton_of(num_states, sources, np.tile(edges[:, 1], copies), targets, accepting)


def automaton_of(
    num_states: int,
    sources: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int64],
    accepting: npt.NDArray[np.uint8],
    start: int = 0,
) -> Automaton:
    """From the edges of a deterministic automaton, in any order."""
    keys = sources << 8 | labels
    if (keys[1:] < keys[:-1]).any():
        order = np.argsort(keys)
        sources, labels, targets = sources[order], labels[order], targets[order]
    links = np.searchsorted(sources, np.arange(num_states + 1)).astype(np.int32)
    if len(targets) == 0:
        targets = np.zeros(1, np.int64)  # empty would mean a trie
    return Automaton(labels.astype(np.uint8), links, targets.astype(np.int32), accepting, start)


def escaped(automaton: Automaton, escapes: Escapes) -> Automaton:
    """What stands between the quotes for the texts of an automaton: each character in one of its spellings.

    The texts are whole UTF-8. O(edges); for "any" also a Python step for each edge of a character beyond ASCII.

    Raises:
        UnsupportedError: "any" for classes of very many characters beyond ASCII: every one of them has its own escape.
    """
    sources, labels, targets = (array.astype(np.int64) for array in edges_of(automaton))
    is_special = np.isin(labels, MUST_ESCAPE)
    if escapes == "canonical" and not is_special.any():
        return automaton
    by_escape = is_special if escapes == "canonical" else labels < 0x80
    # Six states and more for each state with an escape: after \, \u, \u0, \u00, and \u000 to \u007.
    of_state = np.full(automaton.num_states, -1)
    with_escape = np.unique(sources[by_escape])
    size = 12
    of_state[with_escape] = automaton.num_states + size * np.arange(len(with_escape))
    here = of_state[with_escape]
    chunks = [_edges(with_escape, 0x5C, here), _edges(here, ord("u"), here + 1)]
    chunks += [_edges(here + 1, 0x30, here + 2), _edges(here + 2, 0x30, here + 3)]
    chunks += [_edges(here + 3, 0x30 + high, here + 4 + high) for high in range(8)]
    for byte in np.unique(labels[by_escape]).tolist():
        at = by_escape & (labels == byte)
        begin, end = of_state[sources[at]], targets[at]
        short = _SHORT.get(byte, "/" if byte == 0x2F and escapes == "any" else None)
        if short is not None:
            chunks.append(_edges(begin, ord(short), end))
        if short is None or escapes == "any":
            digit = f"{byte & 15:x}"
            for spelled in {digit, digit.upper()} if escapes == "any" else {digit}:
                chunks.append(_edges(begin + 4 + (byte >> 4), ord(spelled), end))
    raw = ~is_special
    chunks.append(np.stack([sources[raw], labels[raw], targets[raw]], axis=1))
    if escapes == "any":
        chunks.append(_beyond_ascii(automaton, automaton.num_states + size * len(with_escape), of_state, chunks))
    nfa = Nfa()
    edges = np.concatenate(chunks)
    num_states = max(automaton.num_states, int(edges[:, [0, 2]].max(initial=0)) + 1)
    accepting = np.zeros(num_states, np.uint8)
    accepting[: automaton.num_states] = automaton.accepting
    return nfa.automaton(
        nfa.embed(automaton_of(num_states, edges[:, 0], edges[:, 1], edges[:, 2], accepting, automaton.start))
    )


def _edges(sources: npt.NDArray[np.int64], label: int, targets: npt.NDArray[np.int64]) -> Edges:
    return np.stack([sources, np.full(len(sources), label), targets], axis=1)


def _beyond_ascii(automaton: Automaton, first: int, of_state: npt.NDArray[np.int64], chunks: list[Edges]) -> Edges:
    """The \\u escapes of characters beyond ASCII, in tries of their digits below each state's \\u."""
    edges: list[tuple[int, int, int]] = []
    for count, (state, code, end) in enumerate(_wide_characters(automaton)):
        if count == _MAX_SPELLED + automaton.num_states:
            raise UnsupportedError("escapes='any' for classes of very many characters beyond ASCII")
        if of_state[state] < 0:
            of_state[state] = first
            edges += [(state, 0x5C, first), (first, ord("u"), first + 1)]
            first += 2
        units = chr(code).encode("utf-16-be").hex()
        spelled = units if len(units) == 4 else f"{units[:4]}\\u{units[4:]}"
        at = int(of_state[state]) + 1
        for place, digit in enumerate(spelled):
            following = end if place == len(spelled) - 1 else first
            forms = {digit, digit.upper()} if digit != "u" else {digit}
            edges += [(at, ord(form), following) for form in forms]
            at = first
            first += place < len(spelled) - 1
    return np.array(edges, np.int64).reshape(-1, 3)


def _wide_characters(automaton: Automaton) -> Iterator[tuple[int, int, int]]:
    """(state, code point, state after it) for all characters beyond ASCII, from all states between characters."""
    sources, labels, targets = edges_of(automaton)
    links = np.searchsorted(sources, np.arange(automaton.num_states + 1)).tolist()
    wide = np.flatnonzero(labels >= 0xC0)
    label_list, target_list = labels.tolist(), targets.tolist()
    for edge in wide.tolist():
        lead = label_list[edge]
        more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        stack = [(lead & (0x3F >> more), target_list[edge], more)]
        while stack:
            code, state, left = stack.pop()
            if left == 0:
                if code not in _SURROGATES:
                    yield int(sources[edge]), code, state
                continue
            stack += [
                (code << 6 | label_list[following] & 0x3F, target_list[following], left - 1)
                for following in range(links[state], links[state + 1])
            ]
