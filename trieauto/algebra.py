"""Languages from languages: one after the other, one or the other, again and again."""

from __future__ import annotations

import numpy as np

from .automaton import Automaton
from .errors import TrieautoError, UnsupportedError, shorten
from .kernels.equality import alike
from .nfa import MAX_STATES, Nfa, edges_of
from .packing import as_integer

# Rounds of looking for equal states: at least so many, and as many more as look at so many states.
_ROUNDS = 64
_VISITS = 5_000_000


def literal(text: str | bytes) -> Automaton:
    """The automaton of one string. O(bytes).

    Args:
        text: the string; str is taken in UTF-8.

    Raises:
        TrieautoError: neither str nor bytes, or a lone surrogate.
    """
    nfa = Nfa()
    return nfa.automaton(nfa.literal(_bytes_of(text)))


def concatenated(*automata: Automaton) -> Automaton:
    """A string of each, one after the other. O(all edges), unless one ends in many ways in which the next can begin."""
    nfa = Nfa()
    return nfa.automaton(nfa.sequence([nfa.embed(automaton) for automaton in automata]))


def united(*automata: Automaton) -> Automaton:
    """A string of any of them. O(all edges), and what they share is followed once."""
    nfa = Nfa()
    return nfa.automaton(nfa.choice([nfa.embed(automaton) for automaton in automata]))


def repeated(automaton: Automaton, least: int, most: int | None) -> Automaton:
    """``least`` to ``most`` strings of it, one after the other; without end if ``most`` is None.

    Raises:
        TrieautoError: bounds that are no such numbers.
        UnsupportedError: too many states.
    """
    least = _bound("least", least)
    most = None if most is None else _bound("most", most)
    if most is not None and most < least:
        raise TrieautoError(f"a repetition of at least {least} and at most {most} is impossible")
    copies = least + 1 if most is None else most
    if copies * automaton.num_states > MAX_STATES:  # before they are made one by one
        raise UnsupportedError(f"{copies:,} times {automaton.num_states:,} states are too many")
    nfa = Nfa()
    return nfa.automaton(nfa.repeat(lambda: nfa.embed(automaton), least, most))


def minimised(automaton: Automaton) -> Automaton:
    """The same language with equal states put together, if that can be found out cheaply. Not for sets, whose values
    each have a way of their own."""
    if automaton.is_trie or len(automaton.labels) == 0:
        return automaton
    rounds = max(_ROUNDS, _VISITS // automaton.num_states)
    first, is_final = alike(*automaton.arrays, automaton.accepting.astype(np.int32), rounds)
    kept = np.flatnonzero(first == np.arange(automaton.num_states))
    if not is_final or len(kept) == automaton.num_states:
        return automaton
    number = np.zeros(automaton.num_states, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    number = number[first]
    sources, labels, targets = edges_of(automaton)
    keep = first[sources] == sources
    links = np.zeros(len(kept) + 1, np.int32)
    np.cumsum(np.bincount(number[sources[keep]], minlength=len(kept)), out=links[1:])
    targets = number[targets[keep]] if keep.any() else np.zeros(1, np.int32)
    start = int(number[automaton.start])
    return Automaton(labels[keep], links, targets, automaton.accepting[kept], start, sets=automaton.sets)


def _bytes_of(text: str | bytes) -> bytes:
    if isinstance(text, (bytes, bytearray)):
        return bytes(text)
    if not isinstance(text, str):
        raise TrieautoError(f"a literal is str or bytes, not {shorten(text)}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise TrieautoError(f"the literal {shorten(text)} holds a lone surrogate and has no UTF-8 bytes") from None


def _bound(name: str, value: int) -> int:
    number = as_integer(value)
    if number is None or number < 0:
        raise TrieautoError(f"{name} must be a number from 0 on, not {shorten(value)}")
    return number
