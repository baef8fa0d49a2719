"""How error messages show the values that users gave."""

from __future__ import annotations

from trieauto.errors import shorten


def shown(value: object) -> str:
    """As ``shorten``, on one line: the ``repr`` of tensors and configurations has many."""
    text = shorten(value)
    return " ".join(text.split()) if "\n" in text else text
