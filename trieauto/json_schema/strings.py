"""Strings: their characters, lengths, patterns and formats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..automaton import Automaton
from ..errors import EmptyConstraintError, TrieautoError, UnsupportedError
from ..nfa import Nfa, Part
from ..regex import part_of
from .checking import malformed, pointer, unsupported
from .escaping import Escapes, characters, escaped
from .formats import PATTERNS, format_automaton
from .products import intersection

_COMPLEMENTS = re.compile(r"\[\^|\\[DWSP]|\(\?[a-zA-Z-]")
MAX_LENGTH = 20_000  # characters that are counted one by one, with some 20 states each


def string_part(nfa: Nfa, schema: Mapping[str, Any], at: str, escapes: Escapes, *, use_formats: bool) -> Part:
    """A string in its quotes.

    ``pattern`` means what ``re.search`` means by it, but ``\\d``, ``\\w`` and ``\\s`` are ASCII where there is no
    complement (``[^``, ``\\D`` and the like) in the pattern.
    """
    least, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    most = None if most is None else int(most)
    for keyword, size in (("minLength", least), ("maxLength", most)):
        if size is not None and size > MAX_LENGTH:
            raise unsupported(pointer(at, keyword), f"strings of more than {MAX_LENGTH:,} characters that are counted")
    if most is not None and least > most:
        return nfa.choice([])
    name = schema.get("format") if use_formats else None
    if name is not None and name not in PATTERNS:
        known = ", ".join(PATTERNS)
        raise unsupported(
            pointer(at, "format"), f"the format {name!r} ({known} are; formats='annotation' ignores all formats)"
        )
    pattern = schema.get("pattern")
    try:
        body = _body(escapes, least, most, pattern, name)
    except EmptyConstraintError:
        return nfa.choice([])
    except UnsupportedError as error:
        raise unsupported(pointer(at, "pattern" if pattern is not None else "format"), str(error)) from None
    except TrieautoError as error:
        raise malformed(pointer(at, "pattern"), str(error)) from None
    return nfa.sequence([nfa.literal(b'"'), nfa.embed(body), nfa.literal(b'"')])


@lru_cache(maxsize=256)
def _body(escapes: Escapes, least: int, most: int | None, pattern: str | None, name: str | None) -> Automaton:
    if pattern is None and name is None:
        return characters(escapes, least, most)
    texts = [] if name is None else [format_automaton(name)]
    if pattern is not None:
        nfa = Nfa()
        # The standard's \\d and \\w are ASCII, those of re are not. In a complement, fewer characters would be more.
        flags = 0 if _COMPLEMENTS.search(pattern) else re.ASCII
        texts.append(nfa.automaton(part_of(nfa, pattern, flags, anchored=False)))
    if least > 0 or most is not None:
        texts.append(characters(None, least, most))
    text = texts[0]
    for other in texts[1:]:
        text = intersection(text, other)
    return escaped(text, escapes)
