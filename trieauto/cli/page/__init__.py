"""The page of ``trieauto inspect --html``: a set and a tokenizer in one file, to step through token by token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...constraint import Constraint
from ..errors import CommandError
from .document import is_page, page_document
from .page_data import PageNames, page_data

__all__ = ["PageNames", "check_page_path", "page_data", "page_document", "write_page"]


def check_page_path(path: Path) -> None:
    """Whether a page may be written there: nothing but an older page is ever overwritten.

    Raises:
        CommandError: there is something else, or no directory to write to.
    """
    if path == Path("-"):
        raise CommandError("a page is a file to open in a browser: name one, not -")
    if path.is_dir() or not path.parent.is_dir():
        raise CommandError(f"{path} is a directory" if path.is_dir() else f"there is no directory {path.parent}")
    if path.exists() and not is_page(path):
        raise CommandError(f"{path} is there already and is no page of trieauto: it is not overwritten")


def write_page(
    path: Path, constraint: Constraint, names: PageNames, own_tokens: Sequence[Sequence[int]] | None = None
) -> int:
    """Write the page (arguments as for ``page_data``); how large it is, in bytes."""
    check_page_path(path)
    return path.write_bytes(page_document(page_data(constraint, names, own_tokens)))
