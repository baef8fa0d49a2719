"""Arrays: items one after the other, bounded or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import shorten
from ..nfa import Part
from ..regex_automaton import part_of_repeat
from .checking import pointer, unsupported
from .enums import space

if TYPE_CHECKING:
    from .building import Builder, Place

_MAX_STATES = 5_000_000  # of the items of one array together
_FEW = 4  # fewer items are built one by one


def array_part(builder: Builder, schema: Mapping[str, Any], place: Place) -> Part:
    """An array. Items that any number may follow are one loop; others are copied."""
    prefix = schema.get("prefixItems", ())
    least, most = int(schema.get("minItems", 0)), schema.get("maxItems")
    most = None if most is None else int(most)
    if "items" in schema:
        items = schema["items"]
    else:
        items = builder.any_below(place) if most is None or most > len(prefix) else False
    if items is False:
        most = len(prefix) if most is None else min(most, len(prefix))
    if schema.get("uniqueItems") and (most is None or most > 1):
        raise unsupported(
            pointer(place.at, "uniqueItems"),
            "arrays of more than one item, all of them different, but for a whole schema whose items are an enum",
        )
    nfa = builder.nfa
    if most is not None and least > most:
        return nfa.never(f"minItems is more than there may be at {place.at}")
    after = nfa.states(1)  # an item has just ended
    close = nfa.states(1)
    begin = nfa.sequence([nfa.literal(b"["), space(nfa, builder.options.whitespace)])
    here = begin.end
    if least == 0:
        nfa.jump(here, close)
    count = 0

    def comma(state: int) -> int:
        part = builder.separator(b",")
        nfa.jump(state, part.start)
        return part.end

    for number, item in enumerate(prefix[: len(prefix) if most is None else most]):
        part = builder.part(item, place.below("prefixItems", number))
        nfa.jump(comma(here) if count > 0 else here, part.start)
        here = part.end
        count += 1
        if count >= least:
            nfa.jump(here, after)
    at_items = place.below("items")
    rest = None if most is None else most - count
    num_needed = max(1, least - count)
    if (rest is None and num_needed <= _FEW) or (rest is not None and 0 < rest <= _FEW):
        # Those that must be there, and then one that may come back to itself.
        copies = num_needed if rest is None else rest
        for number in range(copies):
            part = builder.part(items, at_items)
            nfa.jump(comma(here) if count > 0 else here, part.start)
            here = part.end
            count += 1
            if count >= least:
                nfa.jump(here, after)
            if rest is None and number == copies - 1:
                nfa.jump(comma(here), part.start)
    elif rest is None or rest > 0:
        _many(builder, items, at_items, here, after, count, least, rest)
    end = nfa.sequence([space(nfa, builder.options.whitespace), nfa.literal(b"]")])
    if least > 0 or count > 0 or rest != 0:
        following = nfa.nothing()
        nfa.jump(after, following.start)
        nfa.jump(following.end, end.start)
    if least == 0:
        # Nothing between the brackets: the spaces after the first one are all there are.
        empty = nfa.literal(b"]")
        nfa.jump(close, empty.start)
        nfa.jump(empty.end, end.end)
    return nfa.sequence([nfa.nothing(), Part(begin.start, end.end)])


def _many(
    builder: Builder, items: Any, place: Place, here: int, after: int, count: int, least: int, rest: int | None
) -> None:
    """``rest`` items at most (None: any number), as copies of one automaton of a comma and an item."""
    nfa = builder.nfa
    item = builder.separate(items, place)
    if item is None:
        return
    num_copies = least - count if rest is None else rest
    if item.num_states * num_copies > _MAX_STATES:
        raise unsupported(place.at, f"{shorten(num_copies)} items of {item.num_states:,} states each")
    if count == 0:
        first = nfa.embed(item)
        nfa.jump(here, first.start)
        here, count, rest = first.end, 1, None if rest is None else rest - 1
        if count >= least:
            nfa.jump(here, after)
    inner = type(nfa)()
    with_comma = inner.automaton(inner.sequence([builder.separator(b",", inner), inner.embed(item)]))
    more = part_of_repeat(nfa, with_comma, max(0, least - count), rest)
    nfa.jump(here, more.start)
    nfa.jump(more.end, after)
