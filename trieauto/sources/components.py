"""The normalizers, pre-tokenizers and decoders of a ``tokenizer.json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trieauto.sources.shapes import entry, not_a, scalar

Component = Mapping[str, Any]


def unrolled(component: Component | None, role: str, parts: str) -> Iterator[Component]:
    """The steps of a component in order, with sequences (nested ones too) unrolled; none of ``None``.

    Args:
        component: an entry such as ``{"type": "Fuse"}`` or ``{"type": "Sequence", parts: [...]}``.
        role: what messages call it.
        parts: the key that holds the steps of a sequence.

    Raises:
        ShapeError: a component or step that is no object, has no type, or is a sequence without a list of steps.
    """
    if component is not None:
        yield from _steps(component, role, parts)


def _steps(component: Any, role: str, parts: str) -> Iterator[Component]:
    if not isinstance(component, Mapping):
        raise not_a("an object", f"a {role}", component)
    if scalar(component, f"a {role}", "type", str) != "Sequence":
        yield component
        return
    steps = entry(component, f"a {role} Sequence", parts)
    if not isinstance(steps, (list, tuple)):
        raise not_a("a list", f"{parts} of a {role} Sequence", steps)
    for step in steps:
        yield from _steps(step, role, parts)


def space_mark(component: Component, role: str) -> str:
    """The one character that a ``Metaspace`` component writes for a space."""
    mark = scalar(component, f"{role} Metaspace", "replacement", str)
    if len(mark) != 1:
        raise not_a("one character", f"replacement of {role} Metaspace", mark)
    return mark
