"""Arrays of values of an enum, all of them different: lists of values, and no automaton."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..automaton import Automaton
from ..errors import EmptyConstraintError
from ..nfa import Nfa
from ..value_lists.automaton import ListAutomaton, list_automaton
from ..value_sets import choices
from .checking import pointer, unsupported
from .enums import is_set, key_of, space, spellings, values_of

if TYPE_CHECKING:
    from .building import Builder, Place


def unique_array(builder: Builder, root: Mapping[str, Any] | bool, place: Place) -> ListAutomaton | None:
    """The lists of a whole schema that is an array of different values of an enum, which items may refer to; None for
    any other, and for arrays without items.

    Raises:
        EmptyConstraintError: there are not as many different values as there must be.
        UnsupportedError: options under which a value has several texts.
    """
    if not isinstance(root, Mapping) or not root.get("uniqueItems") or root.get("type") not in ("array", ["array"]):
        return None
    if "items" not in root or any(keyword in root for keyword in ("prefixItems", "enum", "const")):
        return None
    if any(keyword in root for keyword in ("$ref", "allOf", "anyOf", "oneOf")):
        return None
    items, _ = builder.flat(root["items"], place.below("items"))
    if not is_set(items):
        return None
    assert isinstance(items, Mapping)
    values = list({key_of(value): value for value in reversed(values_of(items))}.values())[::-1]
    least, most = int(root.get("minItems", 0)), min(len(values), int(root.get("maxItems", len(values))))
    if most < 1 or least > int(root.get("maxItems", least)):
        return None
    if least > most:
        raise EmptyConstraintError(
            f"no array; {pointer(place.at, 'minItems')} asks for {least:,} different items, but there are only "
            f"{len(values):,}"
        )
    at, whitespace = pointer(place.at, "uniqueItems"), builder.options.whitespace
    if builder.options.escapes != "canonical":
        raise unsupported(at, "different values with escapes='any', which gives each of them many texts")
    if whitespace > 0 and any(isinstance(value, (Mapping, list, tuple)) for value in values):
        raise unsupported(at, "different arrays or objects with whitespace, which gives each of them many texts")
    texts = spellings(values, pointer(place.at, "items"))
    # Quotes that all have belong to what stands around them: tokens that end a string and go on are common.
    is_quoted = all(len(text) > 2 and text[0] == '"' for text in texts)
    quote = b'"' if is_quoted else b""
    parts = (
        _joint(b"[", quote, whitespace=whitespace),
        _joint(quote + b",", quote, whitespace=whitespace),
        _joint(quote, b"]", whitespace=whitespace),
        _joint(b"[", b"]", whitespace=whitespace),
    )
    return list_automaton(
        choices([text[1:-1] for text in texts] if is_quoted else texts), values, parts, least, most, True
    )


def _joint(before: bytes, after: bytes, *, whitespace: int) -> Automaton:
    """Bytes, spaces, and bytes."""
    nfa = Nfa()
    return nfa.automaton(nfa.sequence([nfa.literal(before), space(nfa, whitespace), nfa.literal(after)]))
