"""Objects that are shared between threads and read by kernels must not change once they are made."""

from __future__ import annotations

from typing import Any, NoReturn

from .errors import TrieautoError


class Frozen:
    """Refuses to set or delete attributes; ``__init__`` sets them with ``self._set(name=value, ...)``."""

    def _set(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise TrieautoError(f"a {type(self).__name__} does not change: make a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise TrieautoError(f"a {type(self).__name__} does not change: {name!r} cannot be deleted")
