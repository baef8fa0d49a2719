"""A set as the regular expression ``e1|e2|...``, through the finite-state machine that interegular builds from it.

This is the baseline of the paper (appendix G.2): a DFA over bytes, and masks found by simulating every token from every
state. The regex is written over Latin-1, where the character with number n stands for the byte n.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import interegular


def pattern_of(values: Iterable[bytes]) -> str:
    """The regular expression that matches exactly ``values``, every byte escaped as ``\\xNN``."""
    return "|".join("".join(f"\\x{byte:02x}" for byte in value) for value in values)


class RegexDfa:
    """The DFA of a regular expression over Latin-1, with states numbered by interegular.

    Attributes:
        fsm: the machine, an ``interegular.FSM`` (only partly typed there).
        live: the states from which an accepting state can be reached.
    """

    def __init__(self, fsm: Any) -> None:
        self.fsm = fsm
        self.live: set[int] = {state for state in fsm.states if fsm.islive(state)}

    @classmethod
    def from_pattern(cls, pattern: str) -> RegexDfa:
        """The DFA of a regular expression (interegular's syntax)."""
        return cls(interegular.parse_pattern(pattern).to_fsm())

    @classmethod
    def from_values(cls, values: Iterable[bytes]) -> RegexDfa:
        """The DFA of a set. ValueError if it is empty: no regular expression of this form matches nothing."""
        distinct = sorted(set(values))
        if not distinct:
            raise ValueError("an empty set has no regular expression e1|e2|...")
        return cls.from_pattern(pattern_of(distinct))

    def minimised(self) -> RegexDfa:
        """The minimal DFA of the same language."""
        return RegexDfa(self.fsm.reduce())

    def walk(self, state: int, token: bytes) -> int | None:
        """The live state that the bytes of ``token`` lead to from ``state``, or None."""
        target = self.step(state, token)
        return target if target in self.live else None

    def step(self, state: int, token: bytes) -> int | None:
        """The state, live or not, that the bytes of ``token`` lead to from ``state``, or None."""
        current: int = state
        for byte in token:
            edges = self.fsm.map[current]
            symbol = self.fsm.alphabet[chr(byte)]
            if symbol not in edges:
                return None
            current = edges[symbol]
        return current

    def masks_by_state(self, tokens: Sequence[bytes | None]) -> dict[int, list[int]]:
        """For every live state, the ids of all non-empty tokens that lead to a live state, ascending."""
        return {
            state: [token_id for token_id, token in enumerate(tokens) if token and self.walk(state, token) is not None]
            for state in self.live
        }

    def states_by_prefix(self) -> dict[bytes, int]:
        """For every prefix of a word of the language, the state it leads to. ValueError if the language is infinite."""
        states: dict[bytes, int] = {}
        pending = [(b"", self.fsm.initial)] if self.fsm.initial in self.live else []
        while pending:
            prefix, state = pending.pop()
            # A walk over as many bytes as there are states has met one of them twice.
            if len(prefix) >= len(self.fsm.states):
                raise ValueError(f"the language is infinite: {prefix!r} has gone through a loop")
            states[prefix] = state
            for byte in range(256):
                following = self.walk(state, bytes([byte]))
                if following is not None:
                    pending.append((prefix + bytes([byte]), following))
        return states

    def accepts(self, word: bytes) -> bool:
        """Whether ``word`` is in the language."""
        return self.walk(self.fsm.initial, word) in self.fsm.finals

    def masks(self, tokens: Sequence[bytes | None]) -> dict[bytes, list[int]]:
        """The masks of a finite language keyed by prefix, to compare with ``CharTrie.masks``.

        Several prefixes may share a state, and so a mask. ValueError if the language is infinite.
        """
        by_state = self.masks_by_state(tokens)
        return {prefix: by_state[state] for prefix, state in self.states_by_prefix().items()}
