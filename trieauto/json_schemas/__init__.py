"""JSON schemas as automata: JSON text that is valid, spelled in one way or in few."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ..automaton import Automaton
from ..errors import EmptyConstraintError, TrieautoError, UnsupportedError, shorten
from ..value_lists.automaton import ListAutomaton
from .building import Builder, Options
from .checking import check_by_metaschema, check_keywords, dialect_of, parsed, unsupported
from .enums import is_set, pointer_of_values, values_automaton, values_of
from .escaping import Escapes
from .named_sets import Sets, with_sets

__all__ = ["json_schema"]

_MOST = {"whitespace": 1_000, "max_depth": 1_000, "max_digits": 10_000}
"""Of options that cost states wherever they apply."""

_TOO_DEEP = "the schema is nested too deeply for Python's stack (see sys.setrecursionlimit)"


def json_schema(
    schema: Mapping[str, Any] | bool | str,
    *,
    whitespace: int = 0,
    escapes: Escapes = "canonical",
    max_depth: int | None = None,
    max_digits: int | None = None,
    formats: Literal["exact", "annotation"] = "exact",
    check: bool = False,
    sets: Sets | None = None,
) -> Automaton | ListAutomaton:
    """The automaton of the JSON texts that are valid for a schema (drafts 2020-12, 2019-09, 7 and 6).

    Whatever it lets through is valid. Of the texts of one value it lets through those that the options name, by default
    only the compact one that ``json.dumps(value, ensure_ascii=False, separators=(",", ":"))`` writes. An ``enum`` is a
    trie, however large.

    What is valid by the schema and yet not generated:

    - Properties come in the order in which they are declared; those that are required but not declared follow, then
      others. Where ``properties`` are declared, there are no others unless ``additionalProperties`` says so. (An object
      without any declared has names of all kinds, and so needs ``max_depth``.)
    - Integers have no fraction and no exponent, and there is no -0. Numbers with bounds have no exponent, and -0.0 only
      if there are numbers below zero. Values of ``enum`` and ``const`` are written as the schema has them.
    - Texts with surrogates that are no pair. (In ``enum``, ``const`` and names they are refused.)

    ``pattern`` is searched for, in the syntax and with the meaning of Python's ``re`` (see ``regex``). The standard's
    ``\\d`` and ``\\w`` are ASCII, those of many validators are Unicode's: what is generated matches by both, but in a
    complement (``[^a]``, ``.``) it need not be what ECMAScript has, which counts UTF-16 and other line ends. Of formats
    there are date (days of the calendar), time, date-time, duration (RFC 3339; capitals, no leap seconds), email (no
    quoted names, no addresses in brackets), ipv4, ipv6, uuid. Annotations change nothing; neither do keywords that
    begin with x-.

    One keyword of our own: ``"x-trieauto-set": "NAME"`` stands for an ``enum`` of the strings that ``sets`` has under
    that name, so that a large set need not be written into every schema.

    Args:
        schema: an object, true, false, or the text of one. Nothing is fetched for ``$ref``.
        whitespace: up to so many spaces or line breaks may stand after each comma, colon and opening bracket and before
            each closing one. None by default.
        escapes: characters in strings as ``json.dumps`` writes them, or in any form that JSON has for them.
        max_depth: how many levels a ``$ref`` may be inside itself (1: not at all), and how many levels of arrays and
            objects a value may have of which the schema says nothing: with 1, ``{}`` allows ``[1]`` and not ``[[1]]``,
            ``{"type": "object"}`` allows ``{"a":1}`` and not ``{"a":[1]}``. The automaton grows exponentially with it.
            None: neither is allowed.
        max_digits: the most digits of an integer, and of each part of a number (before the point, after it, in the
            exponent); None: any number.
        formats: "annotation" ignores ``format``, which is JSON Schema's own default.
        check: check the whole schema against its metaschema first (package jsonschema; a millisecond or more). Without
            it what is used of the schema is checked while it is read, but not annotations and definitions that nothing
            refers to.
        sets: values by the names that ``x-trieauto-set`` gives: a mapping, or ``trieauto.serving.NamedSets``. Without
            it the keyword is refused.

    Returns:
        A deterministic automaton; for nothing but a set, its trie; for a whole schema that is an array of an enum with
        ``uniqueItems``, a ``ListAutomaton``, whose matchers mask the values that were given already.

    Raises:
        UnsupportedError: what would change the language and is not supported; it names it and the JSON pointer.
            These are ``not``, ``if``, ``contains``, ``patternProperties``, ``propertyNames``, ``dependentRequired``,
            ``dependentSchemas``, ``unevaluatedItems``, ``$dynamicRef`` and their like; ``items`` as a list,
            which drafts 6 and 7 have (say ``prefixItems`` in 2020-12); ``minProperties`` and
            ``maxProperties`` where properties would have to be counted; ``format`` beside ``enum``;
            ``oneOf`` whose alternatives cannot be shown to be disjoint; ``uniqueItems`` for more than one
            (but for a whole schema whose ``items`` are an enum);
            ``multipleOf`` for numbers; keywords and formats that are not known (``nullable``); recursion
            without ``max_depth``: without a bound it is no regular language. Also what takes too much:
            ``max_depth`` or ``whitespace`` over 1,000, ``max_digits`` over 10,000, more than 12 levels of
            which the schema says nothing, schemas more than some 150 levels deep.
        EmptyConstraintError: no value is valid; where that comes from, if it is known.
        TrieautoError: not a schema, with the JSON pointer; not an option.
    """
    options = _options(whitespace, escapes, max_depth, max_digits, formats)
    root = parsed(schema)
    dialect = dialect_of(root)
    if check:
        check_by_metaschema(root)
    if sets is not None:
        try:
            root = with_sets(root, sets)
        except RecursionError:
            raise unsupported("#", _TOO_DEEP) from None
    if is_set(root) and whitespace == 0 and escapes == "canonical":
        assert isinstance(root, Mapping)
        check_keywords(root, "#", is_root=True)
        values = values_of(root)
        if not values:
            raise EmptyConstraintError("the schema allows no value at all")
        return values_automaton(values, pointer_of_values(root, "#"))
    try:
        return Builder(root, options, dialect).automaton()
    except EmptyConstraintError as error:
        why = str(error).partition("; ")[2]
        raise EmptyConstraintError(f"the schema allows no value at all{why and ': '}{why}") from None
    except (RecursionError, SystemError):  # the latter if it happens while a kernel is called
        raise unsupported("#", _TOO_DEEP) from None


def _options(whitespace: object, escapes: Any, max_depth: object, max_digits: object, formats: Any) -> Options:
    for name, value, least, may_be_none in (
        ("whitespace", whitespace, 0, False),
        ("max_depth", max_depth, 1, True),
        ("max_digits", max_digits, 1, True),
    ):
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if not (value is None and may_be_none) and not (is_integer and value >= least):  # type: ignore[operator]
            raise TrieautoError(f"{name} must be an integer from {least} on, not {shorten(value)}")
        if is_integer and value > _MOST[name]:  # type: ignore[operator]
            raise UnsupportedError(f"{name} is {shorten(value)}; {_MOST[name]:,} is the most")
    for name, value, allowed in (
        ("escapes", escapes, ("canonical", "any")),
        ("formats", formats, ("exact", "annotation")),
    ):
        if value not in allowed:
            raise TrieautoError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, allowed))}")
    return Options(escapes, whitespace, max_depth, max_digits, formats)  # type: ignore[arg-type]
