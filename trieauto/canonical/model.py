"""A byte-pair tokenizer as arrays: where it splits, and which token may follow which inside a pre-token."""

from __future__ import annotations

import hashlib
import json
import threading
import weakref
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import disk_cache
from ..errors import UnsupportedError, shorten
from ..kernels.byte_pairs import NOT_WRITTEN, apart_from, first_beside, left_tree, merge_trees, pair_table
from ..packing import pack
from ..recent import Recent
from ..sources.byte_pair_rules import NUMERIC, BytePairRules, Split
from ..sources.encoders import Encoder
from ..vocabulary import Vocabulary
from .characters import Alphabet, EngineClasses, alphabet, numeric, oniguruma, rust_regex
from .patterns import parse_pattern
from .programs import CharacterSet, Program, alternatives_of, only, program_of_set
from .splitting import NOWHERE, Atom, Splitting, Stage, is_total, splitting_automaton

MOST_APART = 32 * 2**20  # bytes of rows that are kept
MOST_STEPS = 20_000_000  # states times classes, of the automaton of where pre-tokens end

_ARRAYS = ("decode", "steps", "cuts", "boths", "finals", "atoms")


class Step(NamedTuple):
    """What a token of a written text does.

    Attributes:
        begins: whether a pre-token begins with it.
        split, partial: the states of ``splitting`` and of the UTF-8 decoder after it; ``NOWHERE``: it cannot be there.
        last: the token, or -1 if no other can be joined with it.
    """

    begins: bool
    split: int
    partial: int
    last: int


class BytePairModel:
    """How a tokenizer writes texts, for following it. Immutable, thread-safe; one for each vocabulary.

    Attributes:
        decode: int32[D, 256], UTF-8 in classes of characters: see ``characters.Alphabet``.
        splitting: where pre-tokens may end.
        is_written: uint8[V], the tokens that merges make.
        atom_ids: int32[A], the ids of the tokens that are not made by merges.
        atoms: where in ``atom_ids`` each of them is.
        byte_tokens: int32[256], the token of each byte; -1 for none.
        pairs: what says of two tokens whether they may be neighbours: see ``kernels.byte_pairs.are_apart``.
        is_ascii_only: whether it holds for ASCII alone.
    """

    def __init__(self, vocabulary: Vocabulary, rules: BytePairRules) -> None:
        tables = vocabulary.tables
        count = len(tables.offsets) - 1
        self._prepare_merges(rules, count)
        spelled = np.diff(tables.offsets) > 0
        lost = [
            token_id for token_id in rules.pieces.values() if self._births[token_id] >= -1 and not spelled[token_id]
        ]
        if lost:
            raise UnsupportedError(
                f"the tokenizer itself writes token {lost[0]:,}, which has no bytes in {vocabulary!r} (it may be a "
                "stop token): tokenization='canonical' of a language of more than 200,000 strings cannot follow it"
            )
        whole = _whole_tokens(rules, self._births) if rules.takes_whole else []
        added = [
            (text, token_id, stage)
            for stage, step in enumerate(rules.added)
            for text, token_id in step
            if token_id < count and spelled[token_id]
        ]
        for text, token_id, _ in added:
            if self._births[token_id] != NOT_WRITTEN:
                raise UnsupportedError(
                    f"the added token {shorten(text)} is one that merges make, too, which tokenization='canonical' of "
                    "a language of more than 200,000 strings does not support"
                )
        missing = sorted(set(range(256)) - {token[0] for token in rules.pieces if len(token) == 1})
        self.is_ascii_only = rules.is_ascii_only
        self._added_texts = {token_id: text.encode() for step in rules.added for text, token_id in step}
        self.atom_ids = np.array([i for _, i in whole] + [i for _, i, _ in added], np.int32)
        self.atoms = {int(token_id): k for k, token_id in enumerate(self.atom_ids)}
        packed = pack([text.encode() for text, _ in whole] + [text.encode() for text, _, _ in added])
        self.atom_data, self.atom_offsets = packed.data.copy(), packed.offsets
        self.decode, self.splitting = _splitting_of(rules, missing, whole, added)
        self._rows: Recent[npt.NDArray[np.uint8]] = Recent(MOST_APART)

    def _prepare_merges(self, rules: BytePairRules, count: int) -> None:
        is_piece = np.zeros(count, np.uint8)
        byte_tokens = self.byte_tokens = np.full(256, -1, np.int32)
        for token, token_id in rules.pieces.items():
            if token_id >= count:
                raise UnsupportedError(f"the tokenizer has a token {token_id:,}, the vocabulary has {count:,} ids")
            is_piece[token_id] = 1
            if len(token) == 1:
                byte_tokens[token[0]] = token_id
        merges = rules.lefts, rules.rights, rules.ranks, rules.results
        # Special tokens and stop tokens have no bytes in the vocabulary; merges are about the bytes that pieces have.
        own = [b""] * count
        for token, token_id in rules.pieces.items():
            own[token_id] = token
        packed = pack(own)
        pairs = pair_table(*merges)
        lefts, self._rights, births, kinds = merge_trees(
            packed.data, packed.offsets, is_piece, byte_tokens, *pairs, *merges
        )
        self.pairs = lefts, self._rights, births, *pairs[:2]
        self._births = births
        if (kinds == 2).any():
            first = int(np.flatnonzero(kinds == 2)[0])
            raise UnsupportedError(
                f"the tokenizer's merge of tokens {int(rules.lefts[first]):,} and {int(rules.rights[first]):,} comes "
                "before those that make these, which tokenization='canonical' of a language of more than 200,000 "
                "strings does not support"
            )
        is_done = kinds == 1
        order = np.flatnonzero(is_done)[np.lexsort((rules.ranks[is_done], rules.lefts[is_done]))]
        links = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(rules.lefts[order], minlength=count), out=links[1:])
        self._merges = links, rules.rights[order], rules.ranks[order]
        self._tree = left_tree(lefts, births, np.argsort(-births.astype(np.int64), kind="stable"))
        self.is_written = (births != NOT_WRITTEN).astype(np.uint8)

    def apart_from(self, token: int) -> npt.NDArray[np.uint8]:
        """Which tokens may not follow ``token`` inside a pre-token: uint8[V]. Some tenths of a millisecond; the last
        ones are kept."""
        row = self._rows.get(token)
        if row is None:
            row = apart_from(token, self._rights, self._births, *self._merges, *self._tree)
            self._rows.add(token, row, row.nbytes)
        return row

    def first_beside(self, token: int, tokens: npt.NDArray[np.int32], is_wanted: npt.NDArray[np.uint8]) -> int:
        """The place of the first wanted one of ``tokens`` that may follow a token inside a pre-token; -1 if none may.
        Well under a microsecond for each that may not."""
        return int(first_beside(token, tokens, is_wanted, *self.pairs))

    def split_after(self, text: str, tokens: npt.NDArray[np.int32], vocabulary: Vocabulary) -> tuple[int, int]:
        """The state of ``splitting`` after a text that was written in these tokens, and the last of them (-1 for none
        that could be joined with what follows)."""
        step = Step(False, 0, 0, -1)
        for step in self.steps_of(0, tokens.tolist(), vocabulary):
            if step.split == NOWHERE:
                break
        if step.split == NOWHERE or step.partial != 0 or not self._spells(text, tokens.tolist(), vocabulary):
            raise UnsupportedError(
                f"how the tokenizer writes the left context {shorten(text)} could not be followed: its tokens may not "
                "spell all of it"
            )
        return step.split, step.last

    def _spells(self, text: str, tokens: list[int], vocabulary: Vocabulary) -> bool:
        """Whether tokens have the bytes of a text, as far as bytes are known: some tokenizers leave text out."""
        spelled = b""
        is_whole = True
        for token_id in tokens:
            data = vocabulary.tokens[token_id] if token_id < len(vocabulary.tokens) else None
            data = data or self._added_texts.get(token_id)
            is_whole = is_whole and data is not None
            spelled = b"" if data is None else spelled + data
        own = text.encode()
        return self.is_ascii_only or (own == spelled if is_whole else own.endswith(spelled))

    def steps_of(self, split: int, tokens: list[int], vocabulary: Vocabulary) -> Iterator[Step]:
        """Where each of the tokens leads that the tokenizer writes from a state in which a pre-token begins."""
        spelled = vocabulary.tokens
        partial, last = 0, -1
        for token_id in tokens:
            data = spelled[token_id] if token_id < len(spelled) else None
            begins = partial == 0
            if partial == 0 and data is None:  # a special token, from which on the text is a new one
                split, last = 0, -1
            elif partial == 0 and token_id in self.atoms:
                split, last = int(self.splitting.atoms[split, self.atoms[token_id]]), -1
            elif data is None:
                split = NOWHERE  # inside a character
            else:
                if partial == 0:
                    begins = last < 0 or bool(self.apart_from(last)[token_id])
                    split = int((self.splitting.cuts if begins else self.splitting.boths)[split])
                split, partial = self.moved(split, partial, data)
                last = token_id
            yield Step(begins, split, partial, last)

    def moved(self, split: int, partial: int, data: bytes) -> tuple[int, int]:
        """Where bytes lead the splitting automaton and the UTF-8 decoder."""
        for byte in data:
            code = int(self.decode[partial, byte])
            if split == NOWHERE or code == -1:
                return NOWHERE, 0
            partial = max(code, 0)
            if code < 0:
                split = int(self.splitting.steps[split, -2 - code])
        return split, partial


def _whole_tokens(rules: BytePairRules, births: npt.NDArray[np.int32]) -> list[tuple[str, int]]:
    """Tokens that merges do not make, and that are whole characters."""
    found = []
    for token, token_id in rules.pieces.items():
        if births[token_id] == NOT_WRITTEN:
            try:
                found.append((token.decode(), token_id))
            except UnicodeDecodeError:
                continue
    return found


def _splitting_of(
    rules: BytePairRules,
    missing: list[int],
    whole: list[tuple[str, int]],
    added: list[tuple[str, int, int]],
) -> tuple[npt.NDArray[np.int32], Splitting]:
    described = (
        [tuple(vars(split).items()) for split in rules.splits],
        rules.engine,
        metadata.version("tokenizers" if rules.engine == "oniguruma" else "tiktoken"),
        [[text for text, _ in step] for step in rules.added],
        missing,
        [text for text, _ in whole],
        [(text, stage) for text, _, stage in added],
        _own_digest(),
    )
    key = hashlib.blake2b(json.dumps(described).encode(), digest_size=16).hexdigest()
    stored: dict[str, Any] | None = disk_cache.load("splitting", key)
    if stored is None or stored.keys() != set(_ARRAYS):
        letters, splitting = _made_splitting(rules, missing, whole, added)
        stored = dict(zip(_ARRAYS, (letters.decode, *splitting), strict=True))
        disk_cache.save("splitting", key, stored)
    return stored["decode"], Splitting(*(stored[name] for name in _ARRAYS[1:]))


def _made_splitting(
    rules: BytePairRules,
    missing: list[int],
    whole: list[tuple[str, int]],
    added: list[tuple[str, int, int]],
) -> tuple[Alphabet, Splitting]:
    is_rust = rules.engine == "rust"
    classes = EngineClasses(rust_regex if is_rust else oniguruma)
    programs = [alternatives_of(sorted((text for text, _ in step), key=len, reverse=True)) for step in rules.added]
    programs += [_program(split, classes, is_rust) for split in rules.splits]
    singles = sorted({character for text, _ in whole for character in text})
    sets: list[CharacterSet] = [leaf for program in programs for leaf in program.leaves]
    sets += map(only, singles)
    letters = alphabet(sets, missing)
    _, firsts = np.unique(letters.classes, return_index=True)
    examples = firsts[-letters.num_classes :]  # a character of each class; surrogates, of none, come first
    stages = []
    for number, program in enumerate(programs):
        is_added = number < len(rules.added)
        stage = Stage(program, [leaf[examples] for leaf in program.leaves], is_added=is_added)
        keeps_gaps = is_added or rules.splits[number - len(rules.added)].keeps_gaps
        if not is_added and keeps_gaps and is_total(stage, letters.num_classes):
            keeps_gaps = False
        stages.append(Stage(stage.program, stage.leaves, is_added, keeps_gaps))
    atoms = [Atom(_classes(text, letters)) for text, _ in whole]
    atoms += [Atom(_classes(text, letters), stage) for text, _, stage in added]
    return letters, splitting_automaton(stages, letters.num_classes, atoms)


def _program(split: Split, classes: EngineClasses, is_rust: bool) -> Program:
    if split.pattern != NUMERIC:
        return parse_pattern(split.pattern, classes, is_rust=is_rust)
    return program_of_set(classes.found_by(numeric), is_repeated=split.is_repeated)


def _classes(text: str, letters: Alphabet) -> tuple[int, ...]:
    return tuple(int(letters.classes[ord(character)]) for character in text)


@cache
def _own_digest() -> str:
    """Of the code that makes the automaton: what another version made is not used."""
    digest = hashlib.blake2b(digest_size=16)
    for name in ("patterns", "programs", "characters", "splitting", "model"):
        digest.update((Path(__file__).parent / f"{name}.py").read_bytes())
    return digest.hexdigest()


_models: weakref.WeakKeyDictionary[Vocabulary, BytePairModel] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def byte_pair_model(vocabulary: Vocabulary, encoder: Encoder) -> BytePairModel:
    """The model of a vocabulary's tokenizer: made once, in some seconds the first time and then from disk.

    Raises:
        UnsupportedError: not a byte-level BPE, or one with steps that are not supported; the message names them.
    """
    with _lock:
        model = _models.get(vocabulary)
        if model is None:
            model = _models[vocabulary] = BytePairModel(vocabulary, encoder.rules())
        return model
