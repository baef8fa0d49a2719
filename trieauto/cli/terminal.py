"""How things look in a terminal, and in a file."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

MAX_WIDTH = 100


def width() -> int:
    """Columns to write in: the terminal's, 100 at most."""
    return min(shutil.get_terminal_size().columns, MAX_WIDTH)


def bold(text: str) -> str:
    """In bold, if stdout is a terminal that can do that."""
    return f"\x1b[1m{text}\x1b[0m" if _has_styles() else text


def dim(text: str) -> str:
    """In a fainter colour, if stdout is a terminal that can do that."""
    return f"\x1b[2m{text}\x1b[0m" if _has_styles() else text


def _has_styles() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show what is going on, on stderr, until it is over; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    stream = sys.stderr
    stream.write(f"{text} …")
    stream.flush()
    try:
        yield
    finally:
        stream.write(f"\r{' ' * (len(text) + 2)}\r")
        stream.flush()


def duration(seconds: float) -> str:
    """Such as ``0.8 µs``, ``12 ms`` or ``3.4 s``."""
    for unit, scale in (("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * scale:
            return _number(seconds / scale, unit)
    return _number(seconds, "s")


def size(num_bytes: int) -> str:
    """Such as ``24 kB`` or ``1.5 MB``, in powers of ten."""
    for unit, scale in (("B", 1), ("kB", 1_000), ("MB", 1_000_000)):
        if num_bytes < 999.5 * scale:
            return f"{num_bytes} B" if scale == 1 else _number(num_bytes / scale, unit)
    return _number(num_bytes / 1e9, "GB")


def _number(value: float, unit: str) -> str:
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:,.0f} {unit}"


def counted(count: int, noun: str) -> str:
    """Such as ``1 value`` or ``1,000 values``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
