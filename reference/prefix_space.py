"""The byte language that a prefix space makes of a set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

PrefixSpace = Literal["none", "optional", "required"]


def spellings(values: Iterable[bytes], prefix_space: PrefixSpace = "none") -> dict[bytes, bytes]:
    """Every string of the language, and the value of the set that it stands for.

    ``"none"``: the values. ``"required"``: a space and the value. ``"optional"``: both. ValueError, naming the values,
    if ``"optional"`` would give one string two meanings, because the set holds both ``x`` and ``b" " + x``.
    """
    distinct = sorted(set(values))
    if prefix_space == "none":
        return {value: value for value in distinct}
    spaced = {b" " + value: value for value in distinct}
    if prefix_space == "required":
        return spaced
    if prefix_space != "optional":
        raise ValueError(f'prefix_space must be "none", "optional" or "required", not {prefix_space!r}')
    ambiguous = [value for value in distinct if value in spaced]
    if ambiguous:
        raise ValueError(f"with an optional prefix space these could be values or spaced values: {ambiguous!r}")
    return spaced | {value: value for value in distinct}
