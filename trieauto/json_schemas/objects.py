"""Objects: properties in declared order, commas where they belong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..nfa import Part
from ..value_sets import choices
from .checking import pointer, unsupported
from .enums import quoted, space
from .escaping import characters, escaped
from .products import difference

if TYPE_CHECKING:
    from .building import Builder, Place


def object_part(builder: Builder, schema: Mapping[str, Any], place: Place) -> Part:
    """An object: the declared properties in their order, then those that are required but not declared, then others.

    After a property comes a comma and, after that, one of the fields that may be next; so whatever is left out, commas
    are right, and every field is there once.
    """
    nfa, at, options = builder.nfa, place.at, builder.options
    required = dict.fromkeys(schema.get("required", ()))
    # Where properties are declared, others are not generated; an object without any is open to all.
    unevaluated = schema.get("unevaluatedProperties", True)
    if not isinstance(unevaluated, bool):
        raise unsupported(pointer(at, "unevaluatedProperties"), "a schema for them (say additionalProperties)")
    more = schema.get("additionalProperties", "properties" not in schema and unevaluated)
    fields = [(name, value, place.below("properties", name)) for name, value in schema.get("properties", {}).items()]
    declared = {name for name, _, _ in fields}
    for name in required:
        if name not in declared:
            # By the schema it may be anything, unless additionalProperties has a say.
            value = schema.get("additionalProperties", unevaluated)
            fields.append((name, value, place.below("required" if value is True else "additionalProperties")))
    _check_counts(schema, at, len(required), len(fields), is_open=more is not False)
    if more is False and not fields and schema.get("minProperties", 0) > 0:
        return nfa.never(f"no object is valid at {at}")
    if more is True:
        more = builder.any_below(place)

    # Where the next property begins, which is field number i or, where those are optional, a later one; spaces before.
    next_field = [nfa.states(1) for _ in range(len(fields) + 1)]
    begin = nfa.sequence([nfa.literal(b"{"), space(nfa, options.whitespace)])
    end = nfa.literal(b"}")
    closing = nfa.sequence([space(nfa, options.whitespace), nfa.nothing()])
    nfa.jump(closing.end, end.start)
    last_required = max((number for number, (name, _, _) in enumerate(fields) if name in required), default=-1)

    def add(number: int, name_part: Part, value: Any, where: Place, following: int) -> None:
        """A property; after it field number ``following`` or a later one, or the end."""
        pair = nfa.sequence([name_part, builder.separator(b":"), builder.part(value, where)])
        nfa.jump(next_field[number], pair.start)
        comma = builder.separator(b",")
        nfa.jump(pair.end, comma.start)
        nfa.jump(comma.end, next_field[following])
        if number >= last_required:
            nfa.jump(pair.end, closing.start)

    for number, (name, value, where) in enumerate(fields):
        name_part = quoted(nfa, [builder.checked_name(name, where)], where.at, options.escapes)
        add(number, name_part, value, where, number + 1)
        if name not in required:
            nfa.jump(next_field[number], next_field[number + 1])
    if more is not False:
        body = characters(options.escapes, 0, None)
        if fields:
            body = difference(body, escaped(choices([name for name, _, _ in fields]), options.escapes))
        name_part = nfa.sequence([nfa.literal(b'"'), nfa.embed(body), nfa.literal(b'"')])
        add(len(fields), name_part, more, place.below("additionalProperties"), len(fields))
    nfa.jump(begin.end, next_field[0])
    if last_required < 0 and int(schema.get("minProperties", 0)) == 0:
        nfa.jump(begin.end, end.start)
    return nfa.sequence([nfa.nothing(), Part(begin.start, end.end)])


def _check_counts(schema: Mapping[str, Any], at: str, num_required: int, num_declared: int, *, is_open: bool) -> None:
    """``minProperties`` and ``maxProperties`` may say what is so anyway, or that something must be there."""
    if schema.get("minProperties", 0) > max(1, num_required):
        raise unsupported(pointer(at, "minProperties"), "counting optional properties")
    most = schema.get("maxProperties")
    if most is not None and (is_open or most < num_declared):
        raise unsupported(pointer(at, "maxProperties"), "counting optional properties")
