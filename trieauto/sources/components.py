"""The normalizers, pre-tokenizers and decoders of a ``tokenizer.json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Component = Mapping[str, Any]


def unrolled(component: Component | None, parts: str) -> Iterator[Component]:
    """The steps of a component in order, with sequences (nested ones too) unrolled; none of ``None``.

    Args:
        component: an entry such as ``{"type": "Fuse"}`` or ``{"type": "Sequence", parts: [...]}``.
        parts: the key that holds the steps of a sequence.
    """
    if component is None:
        return
    if component["type"] == "Sequence":
        for part in component[parts]:
            yield from unrolled(part, parts)
    else:
        yield component
