"""``$ref``: what it refers to, and how often one may stand inside itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UnsupportedError, shorten
from .checking import malformed, pointer, unsupported


class References:
    """Finds what the references of one schema refer to. Nothing is fetched: only what the schema holds is known."""

    def __init__(self, root: Mapping[str, Any] | bool) -> None:
        self._root = root
        self._resolver: Any = None
        self._has_addresses: bool | None = None

    def root(self) -> Any:
        """The ``referencing`` resolver of the whole schema."""
        if self._resolver is None:
            try:
                from referencing import Registry
            except ImportError:
                raise UnsupportedError(
                    "$ref takes the package referencing: pip install trieauto[json-schema]"
                ) from None
            resource = self._resource(self._root)
            address = resource.id() or ""
            self._resolver = Registry().with_resource(address, resource).resolver(address)
        return self._resolver

    def below(self, resolver: Any, schema: Mapping[str, Any], at: str) -> Any:
        """The resolver inside a part of the schema that has an ``$id`` of its own."""
        resolver = self.root() if resolver is None else resolver
        try:
            return resolver.in_subresource(self._resource(schema))
        except ValueError as error:
            raise malformed(pointer(at, "$id"), str(error)) from None

    def _resource(self, schema: Any) -> Any:
        from referencing.jsonschema import DRAFT202012, specification_with

        dialect = self._root.get("$schema", "") if isinstance(self._root, Mapping) else ""
        return specification_with(dialect, default=DRAFT202012).create_resource(schema)

    def find(self, reference: str, resolver: Any, at: str) -> tuple[Any, Any]:
        """What a reference refers to, and the resolver there (None: that of the whole schema).

        Raises:
            TrieautoError, UnsupportedError: there is no such thing in the schema; there is none that is outside of it.
        """
        root = self.root()
        from referencing.exceptions import NoSuchAnchor, Unresolvable

        try:
            found = (root if resolver is None else resolver).lookup(reference)
        except (Unresolvable, NoSuchAnchor, ValueError, TypeError, AttributeError, LookupError):
            error = malformed if reference.startswith("#") else unsupported
            raise error(
                pointer(at, "$ref"), f"the schema holds no {shorten(reference)} (and nothing is fetched)"
            ) from None
        if self._has_addresses is None:
            self._has_addresses = _has_id_below(self._root)
        return found.contents, found.resolver if self._has_addresses else None


def _has_id_below(schema: Any, level: int = 0) -> bool:
    """Whether a part of the schema has an address of its own."""
    if isinstance(schema, Mapping):
        if level > 0 and isinstance(schema.get("$id"), str):
            return True
        return any(_has_id_below(value, level + 1) for key, value in schema.items() if key not in ("enum", "const"))
    return isinstance(schema, list) and any(_has_id_below(item, level + 1) for item in schema)
