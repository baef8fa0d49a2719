"""Integers and numbers, and their ranges, digit by digit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..automaton import Automaton
from ..errors import EmptyConstraintError, shorten
from ..nfa import Nfa, Part
from ..value_sets import choices
from .checking import pointer, unsupported

_MAX_MULTIPLES = 1_000_000  # of a range, listed
_MAX_REMAINDERS = 10_000
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_DIGITS = b"0123456789"


def integer_part(nfa: Nfa, schema: Mapping[str, Any], at: str, max_digits: int | None) -> Part:
    """Integers as ``json.dumps`` writes them: no fraction, no exponent, no leading zeros, no -0."""
    low, high = _integer_bounds(schema)
    step = schema.get("multipleOf", 1)
    if step != int(step):
        raise unsupported(pointer(at, "multipleOf"), f"multiples of {shorten(step)}, which is no integer")
    if int(step) > 1:
        return _multiples(nfa, int(step), low, high, at, max_digits)
    try:
        return nfa.embed(_integers(low, high, max_digits))
    except EmptyConstraintError:
        return nfa.never(f"no integer is valid at {at}")


@lru_cache(maxsize=256)
def _integers(low: int | None, high: int | None, max_digits: int | None) -> Automaton:
    nfa = Nfa()
    parts = []
    if low is None or low < 0:
        magnitudes = _magnitudes(
            nfa, 1 if high is None or high >= 0 else -high, None if low is None else -low, max_digits
        )
        parts.append(nfa.sequence([nfa.literal(b"-"), magnitudes]))
    if high is None or high >= 0:
        parts.append(_magnitudes(nfa, 0 if low is None else max(0, low), high, max_digits))
    return nfa.automaton(nfa.choice(parts))


def number_part(nfa: Nfa, schema: Mapping[str, Any], at: str, max_digits: int | None) -> Part:
    """Numbers. Without bounds: all that JSON can write. With bounds: without exponents.

    Bounds hold for the number as a double, to which Python and most parsers round what they read: a bound that is
    excluded is replaced by the double next to it.
    """
    if "multipleOf" in schema:
        raise unsupported(pointer(at, "multipleOf"), "multiples, but of integers: doubles are seldom exact multiples")
    low, high = _decimal_bounds(schema, at)
    if low is None and high is None:
        return nfa.embed(_any_number(max_digits))
    if low is not None and high is not None and low > high:
        return nfa.never(f"no number is valid at {at}")
    parts = []
    zero = Decimal(0)
    if low is None or low < 0:
        least = zero if high is None or high >= 0 else -high
        magnitudes = _decimals(nfa, least, None if low is None else -low, max_digits)
        parts.append(nfa.sequence([nfa.literal(b"-"), magnitudes]))
    if high is None or high >= 0:
        parts.append(_decimals(nfa, zero if low is None else max(zero, low), high, max_digits))
    return nfa.choice(parts)


@lru_cache
def _any_number(max_digits: int | None) -> Automaton:
    nfa = Nfa()

    def digits() -> Part:
        return nfa.repeat(lambda: nfa.any_byte(_DIGITS), 1, max_digits)

    exponent = nfa.sequence([nfa.any_byte(b"eE"), nfa.optional(nfa.any_byte(b"+-")), digits()])
    fraction = nfa.sequence([nfa.literal(b"."), digits()])
    whole = _magnitudes(nfa, 0, None, max_digits)
    return nfa.automaton(
        nfa.sequence([nfa.optional(nfa.literal(b"-")), whole, nfa.optional(fraction), nfa.optional(exponent)])
    )


def _integer_bounds(schema: Mapping[str, Any]) -> tuple[int | None, int | None]:
    lows = [math.ceil(schema["minimum"])] if "minimum" in schema else []
    lows += [math.floor(schema["exclusiveMinimum"]) + 1] if "exclusiveMinimum" in schema else []
    highs = [math.floor(schema["maximum"])] if "maximum" in schema else []
    highs += [math.ceil(schema["exclusiveMaximum"]) - 1] if "exclusiveMaximum" in schema else []
    return max(lows, default=None), min(highs, default=None)


def _decimal_bounds(schema: Mapping[str, Any], at: str) -> tuple[Decimal | None, Decimal | None]:
    """As decimals that a text may reach: what lies between them lies between them as a double, too, because rounding
    keeps the order."""
    for keyword in _BOUNDS:
        if keyword in schema:
            bound = schema[keyword]
            try:
                is_exact = math.isfinite(float(bound)) and Fraction(float(bound)) == Fraction(bound)
            except OverflowError:
                is_exact = False
            if not is_exact:
                raise unsupported(
                    pointer(at, keyword), f"a bound of numbers that no double is equal to, {shorten(bound)}"
                )
    lows = [float(schema["minimum"])] if "minimum" in schema else []
    lows += [math.nextafter(schema["exclusiveMinimum"], math.inf)] if "exclusiveMinimum" in schema else []
    highs = [float(schema["maximum"])] if "maximum" in schema else []
    highs += [math.nextafter(schema["exclusiveMaximum"], -math.inf)] if "exclusiveMaximum" in schema else []
    low, high = max(lows, default=None), min(highs, default=None)
    for bound in (low, high):
        if bound is not None and math.isinf(bound):
            raise unsupported(at, "a bound beyond which no double lies")
    # repr is the shortest text that is read as this double.
    return None if low is None else Decimal(repr(low)), None if high is None else Decimal(repr(high))


def _magnitudes(nfa: Nfa, low: int, high: int | None, max_digits: int | None) -> Part:
    """The integers from ``low`` (not negative) to ``high``, of so many digits at most. Linear in the digits."""
    if max_digits is not None:
        high = 10**max_digits - 1 if high is None else min(high, 10**max_digits - 1)
    if high is not None and low > high:
        return nfa.choice([])
    first = Decimal(low).adjusted() + 1 if low > 0 else 1  # digits
    last = None if high is None else Decimal(high).adjusted() + 1 if high > 0 else 1
    if last == first:
        return _between(nfa, _text(low), _text(high or 0), is_fraction=False)
    parts = [_between(nfa, _text(low), "9" * first, is_fraction=False)]
    most = None if last is None else last - 1
    if most is None or most > first:
        digits = nfa.repeat(lambda: nfa.any_byte(_DIGITS), first, None if most is None else most - 1)
        parts.append(nfa.sequence([nfa.any_byte(b"123456789"), digits]))
    if high is not None and last is not None:
        parts.append(_between(nfa, "1" + "0" * (last - 1), _text(high), is_fraction=False))
    return nfa.choice(parts)


def _text(number: int) -> str:
    """Its digits, however many (``str`` refuses more than some thousands)."""
    return format(Decimal(number), "f")


def _decimals(nfa: Nfa, low: Decimal, high: Decimal | None, max_digits: int | None) -> Part:
    """Magnitudes from ``low`` (not negative) to ``high``, with a fraction or without."""
    if high is not None and low > high:
        return nfa.choice([])
    low_whole, low_fraction = _split(low)
    if high is None:
        begin = nfa.sequence([_whole(nfa, low_whole, max_digits), _fraction(nfa, low_fraction, None, max_digits)])
        rest = nfa.sequence([_magnitudes(nfa, low_whole + 1, None, max_digits), _fraction(nfa, "", None, max_digits)])
        return nfa.choice([begin, rest])
    high_whole, high_fraction = _split(high)
    if low_whole == high_whole:
        return nfa.sequence(
            [_whole(nfa, low_whole, max_digits), _fraction(nfa, low_fraction, high_fraction, max_digits)]
        )
    parts = [
        [_whole(nfa, low_whole, max_digits), _fraction(nfa, low_fraction, None, max_digits)],
        [_whole(nfa, high_whole, max_digits), _fraction(nfa, "", high_fraction, max_digits)],
    ]
    if low_whole + 1 < high_whole:
        between = _magnitudes(nfa, low_whole + 1, high_whole - 1, max_digits)
        parts.append([between, _fraction(nfa, "", None, max_digits)])
    return nfa.choice([nfa.sequence(part) for part in parts])


def _split(number: Decimal) -> tuple[int, str]:
    """The integer below, and the digits of the rest, without zeros at the end."""
    whole, _, fraction = format(number, "f").partition(".")
    return int(whole), fraction.rstrip("0")


def _whole(nfa: Nfa, number: int, max_digits: int | None) -> Part:
    return _magnitudes(nfa, number, number, max_digits)


def _fraction(nfa: Nfa, low: str, high: str | None, max_digits: int | None) -> Part:
    """A point and digits, at least one, as much as ``low`` and at most ``high`` (digits after the point; None: any);
    or nothing, if ``low`` is zero."""
    point = nfa.sequence([nfa.literal(b"."), _between(nfa, low, high, is_fraction=True, max_digits=max_digits)])
    return nfa.optional(point) if low == "" else point


def _between(nfa: Nfa, low: str, high: str | None, *, is_fraction: bool, max_digits: int | None = None) -> Part:
    """Digits in lexical order from ``low`` to ``high``: all of their length, or, as a fraction, of any length.

    A state knows how many digits there were and whether they are so far those of ``low`` and of ``high``, which ties
    the next digit.
    """
    length = max(len(low), len(high or ""))
    whole = Part(nfa.states(1), nfa.states(1))

    def state(place: int, ties_low: bool, ties_high: bool) -> tuple[int, bool, bool]:
        if is_fraction:
            ties_low = ties_low and place < len(low)
            if max_digits is None:
                place = min(place, max(length, 1)) if ties_low or ties_high else 1
        return place, ties_low, ties_high

    start = (0, True, high is not None)
    numbers = {start: whole.start}
    waiting = [start]
    while waiting:
        here = place, ties_low, ties_high = waiting.pop()
        is_end = place > 0 and not ties_low if is_fraction else place == length
        if is_end:
            nfa.jump(numbers[here], whole.end)
        if place == (max_digits if is_fraction else length):
            continue
        least = int(low[place : place + 1] or "0") if ties_low else 0
        most = int((high or "")[place : place + 1] or "0") if ties_high else 9
        for digit in range(least, most + 1):
            after = state(place + 1, ties_low and digit == least, ties_high and digit == most)
            if after not in numbers:
                numbers[after] = nfa.states(1)
                waiting.append(after)
            nfa.edge(numbers[here], 0x30 + digit, numbers[after])
    return whole


def _multiples(nfa: Nfa, step: int, low: int | None, high: int | None, at: str, max_digits: int | None) -> Part:
    if low is not None and high is not None:
        first, last = -(-low // step) * step, high // step * step
        if max_digits is not None:
            largest = (10**max_digits - 1) // step * step
            first, last = max(first, -largest), min(last, largest)
        if first > last:
            return nfa.choice([])
        if (last - first) // step >= _MAX_MULTIPLES:
            raise unsupported(pointer(at, "multipleOf"), f"more than {_MAX_MULTIPLES:,} multiples in a range")
        return nfa.embed(choices([str(number) for number in range(first, last + 1, step)]))
    if step > _MAX_REMAINDERS or max_digits is not None or low not in (None, 0, 1) or high is not None:
        raise unsupported(
            pointer(at, "multipleOf"), f"multiples of {shorten(step)} but in a range with both ends, or from 0 on"
        )
    parts = [nfa.literal(b"0")] if low != 1 else []
    if low is None:
        parts.append(nfa.sequence([nfa.literal(b"-"), _positive_multiples(nfa, step)]))
    return nfa.choice([*parts, _positive_multiples(nfa, step)])


def _positive_multiples(nfa: Nfa, step: int) -> Part:
    """A state for each remainder."""
    start = nfa.states(step + 1)
    for digit in range(1, 10):
        nfa.edge(start, 0x30 + digit, start + 1 + digit % step)
    for remainder in range(step):
        for digit in range(10):
            nfa.edge(start + 1 + remainder, 0x30 + digit, start + 1 + (10 * remainder + digit) % step)
    return nfa.sequence([nfa.nothing(), Part(start, _exit(nfa, start + 1))])


def _exit(nfa: Nfa, state: int) -> int:
    end = nfa.states(1)
    nfa.jump(state, end)
    return end
