"""Types of arguments, for ``argparse``."""

from __future__ import annotations

import argparse

_MOST = 1_000_000


def positive(text: str) -> int:
    """A number from 1 to 1,000,000."""
    return _number(text, 1)


def token_budget(text: str) -> int:
    """A number of tokens from 0, which is enough for the empty value, to 1,000,000."""
    return _number(text, 0)


def _number(text: str, least: int) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST))
    if not is_number or not least <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} to {_MOST:,}")
    return int(text)


def filled(text: str) -> str:
    """A text with something in it."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is empty")
    return text
