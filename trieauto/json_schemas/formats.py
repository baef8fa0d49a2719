"""The formats of strings that a finite automaton knows exactly."""

from __future__ import annotations

from functools import lru_cache

from ..algebra import literal
from ..automaton import Automaton
from ..fixed_formats import fixed_format
from ..regex_automaton import regex

_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_CLOCK = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DAYS = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_GROUP = "[0-9A-Fa-f]{1,4}"
_LAST = f"(?:{_GROUP}:{_GROUP}|{_IPV4})"
_IPV6 = "|".join(
    [
        f"(?:{_GROUP}:){{6}}{_LAST}",
        f"::(?:{_GROUP}:){{5}}{_LAST}",
        *(f"(?:{_GROUP}(?::{_GROUP}){{0,{k}}})?::(?:{_GROUP}:){{{4 - k}}}{_LAST}" for k in range(5)),
        f"(?:{_GROUP}(?::{_GROUP}){{0,5}})?::{_GROUP}",
        f"(?:{_GROUP}(?::{_GROUP}){{0,6}})?::",
    ]
)

_PATTERNS = {
    "time": _TIME,  # RFC 3339, without leap seconds; capitals
    "duration": f"P(?:{_DAYS}(?:{_CLOCK})?|{_CLOCK}|[0-9]+W)",  # RFC 3339, appendix A
    "email": rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*",  # RFC 5321, without quoted names and bare addresses
    "ipv4": _IPV4,
    "ipv6": _IPV6,  # RFC 3986
    "uuid": "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
}


FORMATS = ("date", "date-time", *_PATTERNS)
"""All that are known. Dates are those of RFC 3339 that are days of the calendar."""


@lru_cache
def format_automaton(name: str) -> Automaton:
    """The texts of one of ``FORMATS``."""
    if name == "date":
        return fixed_format("date", valid_days=True)
    if name == "date-time":
        return format_automaton("date") + literal("T") + format_automaton("time")
    return regex(_PATTERNS[name])
