"""Appendix H.2: the masks of all states made beforehand through XGrammar's own matcher, against ours."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from context import Context
from measure import Timing, clocked, in_turns
from ours import TrieautoAsInPaper
from structure_tries import minimal_states, parents
from vocabularies import VOCABULARIES

import trieauto
from trieauto.demo_sets import tool_names

EACH, ONE = "XGrammar, a matcher for each state", "XGrammar, one matcher forth and back"
PAPERS, OURS, WALK = "the paper's construction", "trieauto, Aho-Corasick kept", "trieauto, walking both tries"


@dataclass(frozen=True)
class Precomputed:
    """Seconds to all masks.

    Attributes:
        nodes: of the trie, for each of which there is a mask.
        minimal: states of the smallest automaton, for which as many masks would do.
        seconds: by way; compiling the set included for ours, not for XGrammar's.
        compiling: XGrammar's.
        different: nodes at which XGrammar's mask has other tokens than ours.
        row_bytes: of all of XGrammar's rows; ``own_bytes``: of our lists.
        lookups: seconds to copy a stored row, and of our mask.
    """

    count: int
    nodes: int
    minimal: int
    seconds: dict[str, float]
    compiling: float
    different: int
    row_bytes: int
    own_bytes: int
    lookups: dict[str, Timing]


def precomputed(context: Context, count: int) -> Precomputed:
    """On a set of tool names."""
    values = tool_names(count)
    automaton = trieauto.choices(values)
    engine, xgrammar = context.engine("trieauto, as in the paper"), context.engine("XGrammar")
    assert isinstance(engine, TrieautoAsInPaper)
    source = xgrammar.forms[0].source(values)
    begin = time.perf_counter()
    compiled = xgrammar.compile(xgrammar.forms[0], source)
    compiling = time.perf_counter() - begin
    rows = xgrammar.allocate(automaton.num_states)
    found: dict[str, float] = {}
    prefixes = _prefixes(automaton)
    begin = time.perf_counter()
    for state, prefix in enumerate(prefixes):
        matcher = xgrammar.matcher(compiled)
        if prefix:
            matcher.accept_string(prefix)
        matcher.fill_next_token_bitmask(rows, state)
    found[EACH] = time.perf_counter() - begin
    again = np.zeros_like(rows)
    begin = time.perf_counter()
    matcher = xgrammar.matcher(compiled)
    depth = 0
    for state, prefix in enumerate(prefixes):
        if prefix:
            if depth >= len(prefix):
                matcher.rollback(depth - len(prefix) + 1)
            matcher.accept_string(prefix[-1:])
        depth = len(prefix)
        matcher.fill_next_token_bitmask(again, state)
    found[ONE] = time.perf_counter() - begin
    if not np.array_equal(rows, again):
        raise AssertionError("XGrammar's masks depend on the way to a state")
    del again

    def ours(method: Any) -> trieauto.Constraint:
        return trieauto.compile(trieauto.choices(values), engine.vocabulary, mode="eager", method=method)

    timings = in_turns(
        {
            PAPERS: clocked(engine.compile, engine.forms[0], values),
            OURS: clocked(ours, "aho_corasick"),
            WALK: clocked(ours, "walk"),
        },
        seconds=1.0,
        rounds=9,
    )
    found |= {name: timing.median for name, timing in timings.items()}
    constraint = ours("walk")
    return Precomputed(
        count, automaton.num_states, minimal_states(automaton), found, compiling,
        _different(rows, constraint), rows.nbytes, constraint.nbytes, _lookups(rows, constraint),
    )  # fmt: skip


def _prefixes(automaton: trieauto.Automaton) -> list[bytes]:
    """The bytes that lead to each state of a trie."""
    found = [b""] * automaton.num_states
    for state, above in enumerate(parents(automaton).tolist()):
        if above >= 0:
            found[state] = found[above] + bytes([automaton.labels[state]])
    return found


def _different(rows: npt.NDArray[np.int32], constraint: trieauto.Constraint) -> int:
    """At how many states the tokens with bytes are not the same."""
    is_content = np.zeros(32 * rows.shape[1], np.uint8)
    is_content[[i for i, token in enumerate(VOCABULARIES["qwen"]().tokens) if token]] = 1
    content = np.packbits(is_content, bitorder="little").view(np.int32)
    wrong = 0
    for state, row in enumerate(rows):
        legal = np.zeros(len(is_content), np.uint8)
        legal[constraint.content_tokens(state)] = 1
        wrong += not np.array_equal(np.packbits(legal, bitorder="little").view(np.int32), row & content)
    return wrong


def _lookups(rows: npt.NDArray[np.int32], constraint: trieauto.Constraint) -> dict[str, Timing]:
    """A stored row copied (all of them in turn), and our mask at the start, each called from Python."""
    target = np.empty_like(rows[0])
    bitmask = np.empty_like(rows[:1])
    matcher = constraint.matcher()
    states: Iterator[int] = iter(())

    def copy() -> None:
        nonlocal states
        state = next(states, None)
        if state is None:
            states = iter(range(len(rows)))
            state = 0
        target[:] = rows[state]

    return in_turns(
        {"a stored row": clocked(copy), "trieauto": clocked(matcher.fill_next_token_bitmask, bitmask)}, seconds=0.3
    )


def ratio(found: Precomputed, way: str) -> float:
    """XGrammar's time, as the paper takes it, over another way's."""
    return found.seconds[EACH] / found.seconds[way]
