"""What the commands tell a user when they cannot go on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from importlib.util import find_spec


class CommandError(Exception):
    """The reason, in one line, why a command cannot go on. ``main`` prints it and exits with 1."""


def require(modules: Iterable[str], install: str) -> None:
    """Fail if one of these top-level modules is not installed, and say what to install. Imports nothing."""
    for module in modules:
        if find_spec(module) is None:
            raise CommandError(f"{module} is not installed: {install}")


def reason(error: BaseException) -> str:
    """What an exception says, in one line: for system errors the plain reason, else its message, cut if it is long."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return textwrap.shorten(str(error), 300, placeholder=" …") or type(error).__name__
