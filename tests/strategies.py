"""Hypothesis strategies that every law of the test suite draws from: sets of values, vocabularies, prefix spaces.

All byte strings are built from a few units, so that values share prefixes and tokens overlap. Import them with
``from .strategies import ...``.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from trieauto.reference.language import unreachable_values
from trieauto.reference.prefix_space import PrefixSpace, spellings

COMMON_UNITS = [b"a", b"b"]
"""Drawn more often than the others, for shared prefixes and overlapping tokens."""

RARE_UNITS = [b" ", b"\x00", b"\n", b'"', b"\\", "é".encode(), "😀".encode(), b"\xf0\x9f", b"\xff", b"\x80"]
"""What breaks careless code: space, NUL, newline, quote, backslash, 2- and 4-byte UTF-8, bytes that are no UTF-8."""


@dataclass(frozen=True)
class Problem:
    """A set of values and a vocabulary to spell them with.

    Attributes:
        values: distinct, at least one, in no particular order.
        tokens: bytes of every id, at least one with bytes; None for stop ids and other special tokens; ``b""`` is
            possible and never legal.
        stop_token_ids: one to three ids, ascending; ``tokens`` is None at each.
        prefix_space: never ``"optional"`` where that would make two values one.
    """

    values: list[bytes]
    tokens: list[bytes | None]
    stop_token_ids: list[int]
    prefix_space: PrefixSpace = "none"


def byte_strings(max_units: int = 5, min_units: int = 0) -> st.SearchStrategy[bytes]:
    """Byte strings of ``min_units`` to ``max_units`` units of up to four bytes each."""
    unit = st.one_of(st.sampled_from(COMMON_UNITS), st.sampled_from([*COMMON_UNITS, *RARE_UNITS]))
    return st.lists(unit, min_size=min_units, max_size=max_units).map(b"".join)


@st.composite
def value_sets(draw: st.DrawFn, max_values: int = 6, max_units: int = 5) -> list[bytes]:
    """One to ``max_values`` distinct values, in any order, the empty one among them at times.

    Some are prefixes or extensions of others, some share their ends.
    """
    values: list[bytes] = []
    for _ in range(draw(st.integers(1, max_values))):
        relation = draw(st.sampled_from(["new", "prefix", "extension", "same end"])) if values else "new"
        if relation == "new":
            value = draw(byte_strings(max_units, min_units=draw(st.sampled_from([1, 1, 1, 0]))))
        else:
            other = draw(st.sampled_from(values))
            cut = draw(st.integers(0, len(other)))
            value = {
                "prefix": other[:cut],
                "extension": other + draw(byte_strings(1)),
                "same end": draw(byte_strings(1)) + other[cut:],
            }[relation]
        if value not in values:
            values.append(value)
    return values


def prefix_spaces() -> st.SearchStrategy[PrefixSpace]:
    """The three settings of the prefix space."""
    choices: list[PrefixSpace] = ["none", "optional", "required"]
    return st.sampled_from(choices)


@st.composite
def token_lists(
    draw: st.DrawFn, values: list[bytes], byte_complete: bool | None = None, max_tokens: int = 12
) -> list[bytes | None]:
    """The bytes of each id of a vocabulary that suits ``values``, without stop ids; in any order.

    Pieces of the values, pieces that leave them, single bytes, ids that spell the same bytes, None and ``b""``. At most
    ``max_tokens`` of these, and single bytes beside them.

    ``byte_complete=True``: every single byte that occurs in ``values`` is a token. ``False``: exactly one such byte is
    not (if any occurs). ``None``: any of the bytes may be missing.
    """
    used = sorted({bytes([byte]) for value in values for byte in value})
    missing = draw(st.sampled_from(used)) if used and byte_complete is False else None
    if used and byte_complete is None:
        singles = draw(st.lists(st.sampled_from(used), unique=True))
    else:
        singles = [single for single in used if single != missing]

    tokens: list[bytes | None] = []
    for _ in range(draw(st.integers(0, max_tokens))):
        kind = draw(st.sampled_from(["piece", "piece", "piece", "overshoot", "other", "same", "special", "empty"]))
        value = draw(st.sampled_from(values))
        start = draw(st.integers(0, len(value)))
        piece = value[start : draw(st.integers(start, len(value)))]
        if kind == "piece":
            tokens.append(piece)
        elif kind == "overshoot":
            tokens.append(value[start:] + draw(byte_strings(1)))
        elif kind == "other":
            tokens.append(draw(byte_strings(2)))
        elif kind == "same":
            tokens.append(draw(st.sampled_from(tokens)) if tokens else piece)
        else:
            tokens.append(None if kind == "special" else b"")
    if missing is not None:
        tokens = [token for token in tokens if token != missing]
    return draw(st.permutations([*tokens, *singles]))


@st.composite
def problems(
    draw: st.DrawFn,
    byte_complete: bool | None = None,
    spellable: bool = False,
    prefix_space: PrefixSpace | None = "none",
    max_values: int = 6,
    max_units: int = 5,
    max_tokens: int = 12,
) -> Problem:
    """A set and a vocabulary for it.

    ``spellable=True``: the vocabulary can spell every string of the language, so that nothing is unreachable.
    ``prefix_space=None`` draws one of the three. ``byte_complete`` is that of ``token_lists``, the space included where
    the language starts with one (a one-byte value that must be spellable may bring the missing byte back). The other
    arguments bound the sizes.
    """
    values = draw(value_sets(max_values, max_units))
    setting = draw(prefix_spaces()) if prefix_space is None else prefix_space
    if setting == "optional":
        values = [value for value in values if value[:1] != b" " or value[1:] not in values]
    language = sorted(spellings(values, setting))
    # A new list: Hypothesis prints a drawn one as it was drawn, without what is added below.
    tokens = list(draw(token_lists(language, byte_complete, max_tokens)))
    if spellable:
        tokens += unreachable_values(language, tokens)
    if not any(tokens):
        tokens.append(b"a")

    stop_token_ids: list[int] = []
    for _ in range(draw(st.integers(1, 3))):
        position = draw(st.integers(0, len(tokens)))
        tokens.insert(position, None)
        stop_token_ids = [*(token_id + (token_id >= position) for token_id in stop_token_ids), position]
    return Problem(values, tokens, sorted(stop_token_ids), setting)


def small_problems(spellable: bool = False, prefix_space: PrefixSpace | None = "none") -> st.SearchStrategy[Problem]:
    """``problems`` of a size at which all token paths can usually be enumerated (some thousands at most)."""
    return problems(spellable=spellable, prefix_space=prefix_space, max_values=4, max_units=3, max_tokens=8)


def walks(max_steps: int = 12) -> st.SearchStrategy[list[int]]:
    """One number for each step of a walk: it takes ``allowed[number % len(allowed)]``, a stop token too."""
    return st.lists(st.integers(0, 2**16), min_size=1, max_size=max_steps)
