"""One cell of experiment 4: what a constraint costs before the first token, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from measure import Timing, clocked, in_turns
from reach_steps import Walks
from report import Section

import trieauto
from trieauto.kernels.walk import UNREACHABLE

Making = Callable[[], trieauto.Automaton | trieauto.TokenAutomaton]


@dataclass(frozen=True)
class Cell:
    """What was made for a cell, and its times.

    Attributes:
        constraint: with its distances, and masks ready from the walks.
        built: making the automaton from its edges or values, and compiling it.
        distances: the distances of all states to the end.
        first_mask: the first mask under a budget just large enough, with distances known.
        walks: random walks under the cell's budget.
    """

    constraint: trieauto.Constraint
    built: Timing
    distances: Timing
    first_mask: Timing
    walks: Walks

    def add_lines(self, section: Section, case: str) -> None:
        """Times before the first token, and memory: the arrays of the constraint, without the vocabulary."""
        constraint = self.constraint
        d, transitions = constraint.distances(), constraint.automaton.nbytes
        farthest = int(d[d != UNREACHABLE].max())
        section.add(case, "trieauto: constraint built (automaton + compile)", self.built)
        section.add(case, "trieauto: d of all states", self.distances, note=f"the farthest state has d={farthest}")
        section.add(case, "trieauto: first mask, budget just enough", self.first_mask)
        section.add(
            case,
            "trieauto: memory",
            constraint.nbytes / 1e6,
            unit="MB",
            note=f"d {size_of(d.nbytes)}, transitions {size_of(transitions)}, "
            f"ready masks and the rest {size_of(constraint.nbytes - d.nbytes - transitions)}",
        )

    def describe_walks(self) -> str:
        walks = self.walks
        return (
            f"T={walks.budget}, d(start)={self.constraint.min_tokens}; {walks.num_steps} steps, the budget binds at "
            f"{walks.limited:.0%}; up to {walks.most_allowed:,} tokens legal"
        )


def size_of(nbytes: int) -> str:
    """Bytes for people; MB = 10**6 bytes."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if nbytes >= scale:
            return f"{nbytes / scale:,.3g} {unit}"
    return f"{nbytes} B"


def measured_cell(
    make: Making,
    vocabulary: trieauto.Vocabulary,
    budget: Callable[[trieauto.Constraint], int],
    num_walks: int,
    seed: int,
    rounds: int = 9,
) -> Cell:
    """Make a constraint over and over for the times, and walk along one under a budget."""
    automaton = make()
    constraint = trieauto.compile(automaton, vocabulary)
    bitmask = trieauto.allocate_token_bitmask(1, vocabulary.size)

    def distances() -> float:
        return clocked(trieauto.compile(automaton, vocabulary).distances)()

    def first_mask() -> float:
        fresh = trieauto.compile(automaton, vocabulary)
        matcher = fresh.matcher(max_tokens=fresh.min_tokens)
        return clocked(matcher.fill_next_token_bitmask, bitmask)()

    timings = in_turns(
        {
            "built": clocked(lambda: trieauto.compile(make(), vocabulary)),
            "distances": distances,
            "first mask": first_mask,
        },
        rounds=rounds,
    )
    walks = Walks.of(constraint, budget(constraint), num_walks, seed)
    return Cell(constraint, timings["built"], timings["distances"], timings["first mask"], walks)
