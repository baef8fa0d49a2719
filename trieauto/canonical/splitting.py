"""How a tokenizer splits texts, as an automaton over classes of characters that guesses where pre-tokens end.

A *stage* splits each piece that the stage before it made, and sees nothing of the others. Within a piece its pattern
is matched as backtracking engines do: of all ways to match, the first in order of priority. A state keeps, for each
stage, the threads of the match under way in that order, and a set of threads that must never succeed: those that come
before the match that was chosen, for a guess that a pre-token ends here holds only if none of them does later (as
``\\s*[\\r\\n]+`` may, many spaces further on). So exactly one sequence of guesses survives for each text.

Added tokens (the first stages, if there are any) are cut out of the text first, leftmost and longest; what is between
them goes through the other stages. Where the encoder takes a whole pre-token for its token whatever the merges say,
pieces of the last stage keep where in the trie of these tokens they are: none of them may be written in parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedError
from .programs import CHAR, JUMP, LOOK, MATCH, SPLIT, Program

MOST_STATES = 50_000
NOWHERE = -1

Threads = tuple[int, ...]
GAP: Threads = (-1,)
"""In the place of threads: text that the pattern does not match."""
_Obligations = frozenset[int]


class _Piece(NamedTuple):
    """What one stage knows of the piece that it is in.

    Attributes:
        threads: where in the program each thread is that may still become the match, first ones first; or ``GAP``.
        banned: where threads are that must not match.
        whole: where in the trie of whole tokens the text of the piece is; ``NOWHERE`` outside it or in other stages.
    """

    threads: Threads
    banned: _Obligations
    whole: int = NOWHERE


_Config = tuple[tuple[_Piece | None, ...], int]
"""The pieces of all stages (None inside an added token), and the first stage that was guessed to begin a new piece
here; as many as there are stages for none."""


@dataclass(frozen=True)
class Stage:
    """One way to split.

    Attributes:
        program: what a piece matches.
        leaves: for each of its leaves the classes in it, bool[classes].
        is_added: whether pieces that match are added tokens, which no other stage sees.
        keeps_gaps: whether text between matches makes pieces, too; otherwise it is lost.
    """

    program: Program
    leaves: list[npt.NDArray[np.bool_]]
    is_added: bool = False
    keeps_gaps: bool = True


class WholeTokens:
    """The trie of tokens that are written for pre-tokens with their text, and only for these."""

    WRITTEN = -2
    """In the place of a node: the piece was written as one token."""

    def __init__(self, tokens: Iterable[Sequence[int]]) -> None:
        self._children: dict[tuple[int, int], int] = {}
        self._ends: set[int] = set()
        for characters in tokens:
            node = 0
            for character in characters:
                node = self._children.setdefault((node, character), len(self._children) + 1)
            self._ends.add(node)

    def after(self, node: int, character: int) -> int:
        return self._children.get((node, character), NOWHERE)

    def is_end(self, node: int) -> bool:
        return node in self._ends


class Splitting(NamedTuple):
    """The automaton of where pre-tokens may end. State 0 is the beginning of a text.

    Attributes:
        steps: int32[S, C], where a character of each class leads if no pre-token begins with it; ``NOWHERE``.
        cuts: int32[S], the state in which a pre-token must begin; ``NOWHERE`` if none can.
        boths: int32[S], the state in which one may.
        finals: uint8[S], whether the text may end.
        atoms: int32[S, A], where each token leads that is not made by merges: added and whole ones.
    """

    steps: npt.NDArray[np.int32]
    cuts: npt.NDArray[np.int32]
    boths: npt.NDArray[np.int32]
    finals: npt.NDArray[np.uint8]
    atoms: npt.NDArray[np.int32]


class Atom(NamedTuple):
    """A token that is not made by merges.

    Attributes:
        characters: the classes of its characters.
        stage: the stage of added tokens that cuts it out; ``NOWHERE`` for a whole one.
    """

    characters: tuple[int, ...]
    stage: int = NOWHERE


def splitting_automaton(stages: Sequence[Stage], num_classes: int, atoms: Sequence[Atom] = ()) -> Splitting:
    """All states that texts lead to. O(states * (classes + characters of atoms)), in Python: some seconds at most.

    Raises:
        UnsupportedError: there are very many.
    """
    splitter = _Splitter(stages, num_classes, WholeTokens(a.characters for a in atoms if a.stage == NOWHERE))
    begin: frozenset[_Config] = frozenset([((), 0)])
    numbers: dict[frozenset[_Config], int] = {begin: 0}
    waiting = [begin]
    rows: list[list[int]] = []
    cuts, boths, finals = [], [], []
    atom_rows: list[list[int]] = []

    def number(configs: frozenset[_Config]) -> int:
        if not configs:
            return NOWHERE
        if configs not in numbers:
            if len(numbers) >= MOST_STATES:
                raise UnsupportedError(
                    f"the tokenizer's pre-tokenizer takes more than {MOST_STATES:,} states to follow, which "
                    "tokenization='canonical' of a language of more than 200,000 strings would have to do"
                )
            numbers[configs] = len(numbers)
            waiting.append(configs)
        return numbers[configs]

    for configs in waiting:  # it grows
        cut = splitter.cut(configs)
        rows.append([number(splitter.step(configs, c)) for c in range(num_classes)])
        cuts.append(number(cut))
        boths.append(number(configs | cut))
        finals.append(splitter.is_final(configs))
        atom_rows.append([number(splitter.after_atom(cut, atom)) for atom in atoms])
    return _reduced(
        Splitting(
            np.array(rows, np.int32),
            np.array(cuts, np.int32),
            np.array(boths, np.int32),
            np.array(finals, np.uint8),
            np.array(atom_rows, np.int32).reshape(len(rows), len(atoms)),
        )
    )


def _reduced(splitting: Splitting) -> Splitting:
    """Without states that do not lead to the end, and with one for all from which the same follows. State 0 stays."""
    steps, cuts, boths, finals, atoms = splitting
    leads = np.concatenate([steps, cuts[:, None], boths[:, None], atoms], axis=1)
    live = finals != 0
    while True:
        more = live | np.append(live, False)[leads].any(axis=1)
        if (more == live).all():
            break
        live = more
    leads[~np.append(live, False)[leads]] = NOWHERE
    kinds = finals.astype(np.int64)
    count = 0
    while True:  # Moore's algorithm
        seen = np.concatenate([kinds[:, None], np.append(kinds, -1)[leads]], axis=1)
        _, firsts, kinds = np.unique(seen, axis=0, return_index=True, return_inverse=True)
        kinds = kinds.reshape(-1)
        if len(firsts) == count:
            break
        count = len(firsts)
    order = np.argsort(firsts, kind="stable")  # in the order in which they were found, so the first one is 0
    number = np.empty(count, np.int32)
    number[order] = np.arange(count, dtype=np.int32)
    kept = firsts[order]
    leads = np.append(number[kinds], NOWHERE).astype(np.int32)[leads[kept]]
    width = steps.shape[1]
    return Splitting(
        leads[:, :width].copy(),
        leads[:, width].copy(),
        leads[:, width + 1].copy(),
        finals[kept],
        leads[:, width + 2 :].copy(),
    )


class _Splitter:
    """Moves configurations."""

    def __init__(self, stages: Sequence[Stage], num_classes: int, whole: WholeTokens) -> None:
        self._stages = stages
        self._last = len(stages) - 1
        self._whole = whole
        self._end = num_classes  # in the place of a class: the text, or the piece, ends
        self._expanded: dict[tuple[int, Threads, int], tuple[Threads, bool]] = {}
        self._moved: dict[tuple[_Config, int], tuple[_Config, ...]] = {}

    # Sets of configurations

    def step(self, configs: frozenset[_Config], character: int) -> frozenset[_Config]:
        """After a character that begins no added token."""
        found: list[_Config] = []
        for config in configs:
            key = config, character
            if key not in self._moved:
                self._moved[key] = tuple(self._after(config, character))
            found.extend(self._moved[key])
        return frozenset(found)

    def cut(self, configs: frozenset[_Config]) -> frozenset[_Config]:
        """With the guess that a pre-token begins here: at which stage is another guess."""
        found = []
        for pieces, cut in configs:
            if cut < len(self._stages):
                found.append((pieces, cut))
            else:
                found.extend((pieces, stage) for stage in range(len(self._stages)))
        return frozenset(found)

    def is_final(self, configs: frozenset[_Config]) -> bool:
        return any(map(self._may_end, configs))

    def after_atom(self, configs: frozenset[_Config], atom: Atom) -> frozenset[_Config]:
        """After a token that is not made by merges, all of it: the next piece begins there."""
        depth = self._last if atom.stage == NOWHERE else atom.stage
        now: list[_Config] = [config for config in configs if config[1] <= depth]
        for place, character in enumerate(atom.characters):
            following: list[_Config] = []
            for config in now:
                if place == 0 or atom.stage == NOWHERE:
                    following.extend(self._after(config, character, atom.stage))
                else:
                    following.extend(self._inside_added(config, character, atom.stage))
            now = following
        if atom.stage == NOWHERE:
            now = [
                ((*pieces[:-1], piece._replace(whole=WholeTokens.WRITTEN)), cut)
                for pieces, cut in now
                if (piece := pieces[-1]) is not None and self._whole.is_end(piece.whole)
            ]
        elif depth == self._last:  # the piece of the last stage is the token, not one that goes on behind it
            now = [
                ((*pieces[:-1], piece._replace(whole=WholeTokens.WRITTEN)), cut)
                for pieces, cut in now
                if (piece := pieces[-1]) is not None
            ]
        return frozenset((pieces, stage) for pieces, _ in now for stage in range(depth + 1))

    def _inside_added(self, config: _Config, character: int, stage: int) -> Iterable[_Config]:
        moved = [
            self._go_on(k, piece, character) for k, piece in enumerate(config[0][: stage + 1]) if piece is not None
        ]
        if any(piece is None for piece in moved):
            return ()
        return [((*moved, *config[0][stage + 1 :]), config[1])]

    # One configuration

    def _may_end(self, config: _Config) -> bool:
        pieces, cut = config
        if not pieces:
            return True  # the beginning: an empty text
        last = pieces[-1]
        if cut < len(self._stages) and last is not None and last.whole != WholeTokens.WRITTEN:
            return False  # a pre-token was to begin
        return all(piece is None or self._ended(k, piece, self._end) is not None for k, piece in enumerate(pieces))

    def _after(self, config: _Config, character: int, added: int = NOWHERE) -> Iterable[_Config]:
        pieces, cut = config
        if not pieces:
            return self._begun((), 0, [frozenset()] * len(self._stages), character, added)
        kept: list[_Piece | None] = []
        for k in range(cut):
            piece = pieces[k]
            if piece is None:
                return ()
            moved = self._go_on(k, piece, character)
            if moved is None:
                return ()
            kept.append(moved)
        if cut == len(self._stages):
            return [(tuple(kept), cut)]
        banned: list[_Obligations] = []
        for k in range(cut, len(pieces)):
            piece = pieces[k]
            if piece is None:  # inside an added token, which no stage but the first has seen
                banned.append(frozenset())
                continue
            left = self._ended(k, piece, character if k == cut else self._end)
            if left is None:
                return ()
            banned.append(left if k == cut else frozenset())
        after_gap = pieces[cut] is not None and pieces[cut].threads == GAP  # type: ignore[union-attr]
        return self._begun(tuple(kept), cut, banned, character, added, after_gap)

    def _begun(
        self,
        kept: tuple[_Piece | None, ...],
        cut: int,
        banned: Sequence[_Obligations],
        character: int,
        added: int,
        after_gap: bool = False,
    ) -> list[_Config]:
        """New pieces of the stages from ``cut`` on; that of stage ``added`` is an added token."""
        choices: list[list[_Piece | None]] = []
        for k in range(cut, len(self._stages)):
            stage = self._stages[k]
            if added != NOWHERE and k > added:
                choices.append([None])
                continue
            threads, _ = self._expand(k, (0,), character)
            began = self._consumed(k, threads, character)
            whole = self._whole.after(0, character) if k == self._last else NOWHERE
            options: list[_Piece | None] = []
            if began and stage.is_added == (k == added):
                options.append(_Piece(began, banned[k - cut], whole))
            # Text between matches goes on to the next match; so it does not begin where it ended just now.
            if k != added and stage.keeps_gaps and not (k == cut and after_gap):
                options.append(_Piece(GAP, banned[k - cut] | frozenset(began), whole))
            choices.append(options)
        return [(kept + rest, len(self._stages)) for rest in product(*choices)]

    def _go_on(self, k: int, piece: _Piece, character: int) -> _Piece | None:
        """The same piece with one more character."""
        banned = self._still_banned(k, piece.banned, character)
        if banned is None:
            return None
        whole = NOWHERE if piece.whole == NOWHERE else self._whole.after(piece.whole, character)
        if piece.threads == GAP:
            threads, _ = self._expand(k, (0,), character)
            return _Piece(GAP, banned | frozenset(self._consumed(k, threads, character)), whole)
        threads, _ = self._expand(k, piece.threads, character)
        threads = self._consumed(k, threads, character)
        return _Piece(threads, banned, whole) if threads else None

    def _ended(self, k: int, piece: _Piece, character: int) -> _Obligations | None:
        """The threads that must not match from now on, if a piece ends before a character; None if it cannot."""
        banned = self._still_banned(k, piece.banned, character)
        if banned is None or self._whole.is_end(piece.whole):
            return None
        if piece.threads == GAP:
            return banned
        threads, matches = self._expand(k, piece.threads, character)
        return banned | frozenset(self._consumed(k, threads, character)) if matches else None

    def _still_banned(self, k: int, banned: _Obligations, character: int) -> _Obligations | None:
        if not banned:
            return banned
        threads, matches = self._expand(k, tuple(sorted(banned)), character)
        return None if matches else frozenset(self._consumed(k, threads, character))

    def _consumed(self, k: int, threads: Threads, character: int) -> Threads:
        if character == self._end:
            return ()
        stage = self._stages[k]
        instructions = stage.program.instructions
        return tuple(at + 1 for at in threads if stage.leaves[instructions[at].leaf][character])

    def _expand(self, k: int, threads: Threads, character: int) -> tuple[Threads, bool]:
        """The threads that wait for a character, in order, up to the first that matches before this one; whether one
        does."""
        key = k, threads, character
        if key not in self._expanded:
            self._expanded[key] = self._expansion(k, threads, character)
        return self._expanded[key]

    def _expansion(self, k: int, threads: Threads, character: int) -> tuple[Threads, bool]:
        stage = self._stages[k]
        found: list[int] = []
        seen: set[int] = set()
        pending = list(reversed(threads))
        while pending:
            at = pending.pop()
            if at in seen:
                continue
            seen.add(at)
            instruction = stage.program.instructions[at]
            if instruction.kind == MATCH:
                return tuple(found), True
            if instruction.kind == CHAR:
                found.append(at)
            elif instruction.kind == JUMP:
                pending.append(instruction.first)
            elif instruction.kind == SPLIT:
                pending += [instruction.second, instruction.first]
            elif instruction.kind == LOOK:
                if character == self._end:
                    holds = instruction.at_end
                else:
                    holds = instruction.leaf >= 0 and bool(stage.leaves[instruction.leaf][character])
                if holds:
                    pending.append(at + 1)
        return tuple(found), False


def is_total(stage: Stage, num_classes: int) -> bool:
    """Whether each single character matches, whatever follows: then no text is between matches."""
    splitter = _Splitter([stage], num_classes, WholeTokens([]))
    for character in range(num_classes):
        after = splitter._consumed(0, splitter._expand(0, (0,), character)[0], character)
        if not all(splitter._expand(0, after, following)[1] for following in range(num_classes + 1)):
            return False
    return True
