"""A schema as a part of an automaton in the making."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from ..automaton import Automaton
from ..errors import EmptyConstraintError, UnsupportedError
from ..nfa import Nfa, Part
from ..value_lists.automaton import ListAutomaton
from . import disjoint
from .arrays import array_part
from .checking import KINDS, LEGACY, NEWEST, check_keywords, located, malformed, pointer, unsupported
from .enums import is_set, key_of, pointer_of_values, space, spellings, values_of, values_part
from .escaping import Escapes
from .merging import assertions, merged
from .numbers import integer_part, number_part
from .objects import object_part
from .references import References
from .strings import keep_matching, string_part
from .unique import unique_array

_MOST_LEVELS = 12  # of arrays and objects in a value of any kind, each of which doubles its states: 350,000 by then
MAX_SCHEMAS = 200_000  # looked at, each reference anew
_ANY = (
    "a value of any kind has no end of its own: say its type (and properties or items), or how deep it may go, with "
    "max_depth"
)
_BESIDE_VALUES = frozenset(
    (
        *("minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required"),
    )
)
"""The keywords beside enum that can be asked of each value alone."""


@dataclass(frozen=True)
class Options:
    """Those of ``json_schema``, which see."""

    escapes: Escapes
    whitespace: int
    max_depth: int | None
    max_digits: int | None
    formats: Literal["exact", "annotation"]


class Place(NamedTuple):
    """Where in the schema: a JSON pointer, and the resolver of references there (None: that of the whole schema)."""

    at: str
    resolver: Any = None

    def below(self, *tokens: str | int) -> Place:
        return Place(pointer(self.at, *tokens), self.resolver)


class _Anything:
    """The schema of a value of any kind with so many levels of arrays and objects."""

    def __init__(self, depth: int) -> None:
        self.depth = depth


class Builder:
    """Adds the parts of one schema to an ``Nfa``."""

    def __init__(self, root: Mapping[str, Any] | bool, options: Options, dialect: str = NEWEST) -> None:
        self.nfa = Nfa()
        self.options = options
        self.root = root
        self._dialect = dialect
        self._references = References(root)
        self._open: Counter[int] = Counter()  # how often each target of a reference is open, by identity
        self._seen: set[object] = set()
        self._remembered: dict[object, Automaton | None] = {}
        self._count = 0

    def automaton(self) -> Automaton | ListAutomaton:
        """The automaton of the whole schema."""
        place = Place("#")
        if isinstance(self.root, Mapping) and self.root.get("uniqueItems"):
            self._checked(self.root, place)
            lists = unique_array(self, self.root, place)
            if lists is not None:
                return lists
        return self._finished(self.root, place)

    def separate(self, schema: Any, place: Place) -> Automaton | None:
        """The automaton of a part alone, to be copied; None if it has no value."""
        whole, self.nfa = self.nfa, Nfa()
        try:
            return self._finished(schema, place)
        except EmptyConstraintError:
            return None
        finally:
            self.nfa = whole

    def _finished(self, schema: Any, place: Place) -> Automaton:
        part = self.part(schema, place)
        try:
            return self.nfa.automaton(part)
        except UnsupportedError as error:
            raise located(error, place.at) from None

    # Small parts

    def separator(self, sign: bytes, nfa: Nfa | None = None) -> Part:
        """A comma or colon, and spaces."""
        nfa = self.nfa if nfa is None else nfa
        if self.options.whitespace == 0:
            return nfa.literal(sign)
        return nfa.sequence([nfa.literal(sign), space(nfa, self.options.whitespace)])

    def checked_name(self, name: object, place: Place) -> str:
        """A property's name."""
        if not isinstance(name, str):
            raise malformed(place.at, f"the name {name!r} is not a string")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise unsupported(place.at, f"a surrogate in the name {name!r}") from None
        return name

    def any_below(self, place: Place) -> Any:
        """The schema of the values of any kind inside an array or object that is itself of any kind."""
        depth = self.options.max_depth
        if depth is None:
            raise unsupported(place.at, _ANY)
        if depth > _MOST_LEVELS:
            raise unsupported(place.at, f"a value of any kind of more than {_MOST_LEVELS} levels: max_depth is {depth}")
        return _Anything(depth - 1)

    # Schemas

    def part(self, schema: Any, place: Place) -> Part:
        """The values of a schema.

        Raises:
            UnsupportedError, TrieautoError: with the JSON pointer.
        """
        try:
            return self._part(schema, place)
        except UnsupportedError as error:
            raise located(error, place.at) from None

    def _part(self, schema: Any, place: Place) -> Part:
        self._count_one(place)
        if isinstance(schema, _Anything):
            return self.nfa.embed(_anything(schema.depth, self.options))
        if schema is False:
            return self.nfa.never(f"false at {place.at}")
        if schema is True:
            schema = {}
        place = self._checked(schema, place)
        if "$ref" in schema or "allOf" in schema:
            return self._combined(schema, place)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._alternatives(schema, keyword, place)
        if "enum" in schema or "const" in schema:
            return self._values(schema, place)
        return self._kinds(schema, place)

    def _count_one(self, place: Place) -> None:
        self._count += 1
        if self._count > MAX_SCHEMAS:
            raise unsupported(place.at, f"more than {MAX_SCHEMAS:,} schemas, each reference counted anew")

    def _checked(self, schema: Any, place: Place) -> Place:
        """Check a schema's keywords; the place, with its own resolver if it has an address of its own."""
        check_keywords(schema, place.at, is_root=schema is self.root)
        if "prefixItems" in schema and self._dialect != NEWEST:
            raise unsupported(
                pointer(place.at, "prefixItems"), f"prefixItems in {self._dialect}, which has no such keyword"
            )
        if "$id" not in schema or schema is self.root or ("$ref" in schema and self._dialect in LEGACY):
            return place
        return Place(place.at, self._references.below(place.resolver, schema, place.at))

    def _kinds(self, schema: Mapping[str, Any], place: Place) -> Part:
        types = schema.get("type", KINDS)
        kinds = [types] if isinstance(types, str) else list(dict.fromkeys(types))
        if "type" not in schema and self.options.max_depth is None:
            raise unsupported(place.at, _ANY)
        if "number" in kinds and "integer" in kinds:
            kinds.remove("integer")
        parts = [self._kind(kind, schema, place) for kind in kinds]
        return parts[0] if len(parts) == 1 else self.nfa.choice(parts)

    def _kind(self, kind: str, schema: Mapping[str, Any], place: Place) -> Part:
        nfa, options = self.nfa, self.options
        if kind == "string":
            use_formats = options.formats == "exact"
            return string_part(nfa, schema, place.at, options.escapes, use_formats=use_formats)
        if kind == "integer":
            return integer_part(nfa, schema, place.at, options.max_digits)
        if kind == "number":
            return number_part(nfa, schema, place.at, options.max_digits)
        if kind == "boolean":
            return nfa.choice([nfa.literal(b"true"), nfa.literal(b"false")])
        if kind == "null":
            return nfa.literal(b"null")
        return (array_part if kind == "array" else object_part)(self, schema, place)

    def _values(self, schema: Mapping[str, Any], place: Place) -> Part:
        at = pointer_of_values(schema, place.at)
        values = values_of(schema)
        rest = {key: value for key, value in assertions(schema).items() if key not in ("enum", "const", "type")}
        if self.options.formats == "annotation":
            rest.pop("format", None)
        if rest:
            values = self._valid(values, rest, place)
        return values_part(self.nfa, values, at, self.options.escapes, self.options.whitespace)

    def _valid(self, values: list[Any], rest: Mapping[str, Any], place: Place) -> list[Any]:
        """Those values that other keywords allow, too."""
        for keyword in rest:
            if keyword not in _BESIDE_VALUES:
                raise unsupported(pointer(place.at, keyword), f"{keyword} beside enum or const")
        try:
            from jsonschema import Draft202012Validator
        except ImportError:
            raise unsupported(
                place.at, "other keywords beside enum without the package jsonschema: pip install trieauto[json-schema]"
            ) from None
        spellings(values, pointer_of_values({"enum": values}, place.at))  # for its errors
        if "pattern" in rest:
            values = keep_matching(values, rest["pattern"], place.at)
        validator = Draft202012Validator({keyword: value for keyword, value in rest.items() if keyword != "pattern"})
        try:
            return [value for value in values if validator.is_valid(value)]
        except OverflowError:
            raise unsupported(place.at, "an integer beside enum that is too large for a double") from None

    # Several schemas at once

    def _combined(self, schema: Mapping[str, Any], place: Place) -> Part:
        beside = assertions(schema)
        if "$ref" in beside and (len(beside) == 1 or self._dialect in LEGACY):
            contents, target = self._target(beside["$ref"], place)
            return self._referred(contents, target, place)
        targets: set[int] = set()
        whole, resolver = self._flat(schema, place, targets)
        with self._opened(targets, place) as is_possible:
            return self.part(whole, Place(place.at, resolver)) if is_possible else self.nfa.choice([])

    def _referred(self, contents: Any, target: Place, place: Place) -> Part:
        """What a reference alone refers to. The first time it is built in place; what is used again is built once more
        by itself, to be copied, so that references to references cannot multiply."""
        with self._opened({id(contents)}, place) as is_possible:
            if not is_possible:
                return self.nfa.choice([])
            key = id(contents), tuple(sorted(self._open.items()))
            if key not in self._seen:
                self._seen.add(key)
                return self.part(contents, target)
            if key not in self._remembered:
                self._remembered[key] = self.separate(contents, target)
            automaton = self._remembered[key]
            if automaton is None:
                return self.nfa.never(f"no value is valid at {target.at}")
            return self.nfa.embed(automaton)

    @contextmanager
    def _opened(self, targets: set[int], place: Place) -> Iterator[bool]:
        """Within, the targets of references are open once more; whether ``max_depth`` leaves them any value."""
        before = self._open
        self._open = before + Counter(targets)
        limit = self.options.max_depth
        deepest = max((self._open[target] for target in targets), default=0)
        if deepest > 1 and limit is None:
            raise unsupported(place.at, "a reference inside itself has no end: say how deep it may go, with max_depth")
        try:
            yield limit is None or deepest <= limit
        finally:
            self._open = before

    def _target(self, reference: str, place: Place) -> tuple[Any, Place]:
        contents, resolver = self._references.find(reference, place.resolver, place.at)
        return contents, Place(reference if reference.startswith("#") else reference + "#", resolver)

    def flat(self, schema: Any, place: Place) -> tuple[Mapping[str, Any] | bool, Any]:
        """A schema with what ``$ref`` and ``allOf`` stand for put in, and the resolver of references there."""
        return self._flat(schema, place, set())

    def _flat(
        self, schema: Any, place: Place, targets: set[int], way: frozenset[int] = frozenset()
    ) -> tuple[Mapping[str, Any] | bool, Any]:
        """A schema with what ``$ref`` and ``allOf`` stand for put in, and the resolver there; adds what references
        lead to to ``targets``. ``way``: those that led here."""
        self._count_one(place)
        if isinstance(schema, (bool, _Anything)):
            return schema, place.resolver  # type: ignore[return-value]
        place = self._checked(schema, place)
        own = assertions(schema)
        pieces = [(member, place.below("allOf", number)) for number, member in enumerate(own.pop("allOf", ()))]
        if "$ref" in own:
            contents, target = self._target(own.pop("$ref"), place)
            if id(contents) in way:
                raise unsupported(
                    pointer(place.at, "$ref"), "a reference that comes back to itself with no value between"
                )
            if self._dialect in LEGACY:
                own, pieces = {}, []
            if id(contents) not in targets:  # else it is among what is asked for at once already
                pieces.insert(0, (contents, target))
            targets.add(id(contents))
            way |= {id(contents)}
        flat: list[tuple[Mapping[str, Any] | bool, Any]] = [(own, place.resolver)] if own else []
        for member, where in pieces:
            flat.append(self._flat(member, where, targets, way))
            if own or len(pieces) > 1:
                self._check_closed(flat[-1][0], where)
        whole, resolver = flat[0] if flat else (True, place.resolver)
        for following, other in flat[1:]:
            if other is not resolver:
                raise unsupported(place.at, "schemas of different base addresses ($id) at once")
            whole = merged(whole, following, place.at)
        return whole, resolver

    def _check_closed(self, schema: Mapping[str, Any] | bool, place: Place) -> None:
        if isinstance(schema, Mapping) and "unevaluatedProperties" in schema:
            raise unsupported(
                pointer(place.at, "unevaluatedProperties"), "unevaluatedProperties in one of several schemas at once"
            )

    def _alternatives(self, schema: Mapping[str, Any], keyword: str, place: Place) -> Part:
        """``anyOf`` or ``oneOf``, whose alternatives are joined with what stands beside it."""
        rest = assertions(schema)
        alternatives = rest.pop(keyword)
        is_exclusive = keyword == "oneOf"
        for number, alternative in enumerate(alternatives):
            if not isinstance(alternative, bool):
                check_keywords(alternative, pointer(place.at, keyword, number), is_root=False)
        if all(map(is_set, alternatives)) and rest.keys() <= {"type"}:
            values = [value for alternative in alternatives for value in values_of(alternative)]
            if not is_exclusive or len(set(map(key_of, values))) == len(values):
                return self._values({"enum": values, **rest}, Place(pointer(place.at, keyword)))

        def flat(alternative: Any) -> Mapping[str, Any] | bool:
            return self._flat(alternative, place.below(keyword), set())[0]

        if is_exclusive and (pair := disjoint.all_disjoint(alternatives, flat)) is not None:
            raise unsupported(
                pointer(place.at, keyword), f"oneOf whose alternatives {pair[0]} and {pair[1]} may both hold: say anyOf"
            )
        parts = []
        others = list(enumerate(alternatives))
        if not rest and len(sets := [alternative for alternative in alternatives if is_set(alternative)]) > 1:
            values = [value for alternative in sets for value in values_of(alternative)]
            parts.append(self._values({"enum": values}, Place(pointer(place.at, keyword))))
            others = [(number, alternative) for number, alternative in others if not is_set(alternative)]
        parts += [
            self._alternative(rest, alternative, place, place.below(keyword, number)) for number, alternative in others
        ]
        return self.nfa.choice(parts)

    def _alternative(self, rest: dict[str, Any], alternative: Any, place: Place, below: Place) -> Part:
        if not rest:
            return self.part(alternative, below)
        targets: set[int] = set()
        other, resolver = self._flat(alternative, below, targets)
        self._check_closed(other, below)
        own, own_resolver = self._flat(rest, place, targets)
        if resolver is not own_resolver:
            raise unsupported(below.at, "schemas of different base addresses ($id) at once")
        with self._opened(targets, place) as is_possible:
            if not is_possible:
                return self.nfa.choice([])
            return self.part(merged(own, other, place.at), Place(below.at, resolver))


@lru_cache(maxsize=32)
def _anything(depth: int, options: Options) -> Automaton:
    """The values of any kind with so many levels of arrays and objects."""
    builder = Builder(True, options)
    scalars = ["string", "number", "boolean", "null"]
    parts = [builder._kind(kind, {}, Place("#")) for kind in scalars]
    if depth > 0:
        inner = _Anything(depth - 1)
        parts.append(builder._kind("array", {"items": inner}, Place("#")))
        parts.append(builder._kind("object", {"additionalProperties": inner}, Place("#")))
    return builder.nfa.automaton(builder.nfa.choice(parts))
