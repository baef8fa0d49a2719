"""Types of arguments, for ``argparse``."""

from __future__ import annotations

import argparse

_MOST = 1_000_000


def positive(text: str) -> int:
    """A number from 1 to 1,000,000."""
    number = int(text) if text.isdecimal() and len(text) <= len(str(_MOST)) else 0
    if not 1 <= number <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_MOST:,}")
    return number


def filled(text: str) -> str:
    """A text with something in it."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is empty")
    return text
