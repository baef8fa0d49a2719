"""One HTML file out of the page's parts and its data. It loads nothing, and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from functools import cache
from importlib import resources
from pathlib import Path

# In this order: each uses what those before it define.
_SCRIPTS = (
    "text.js",
    "data.js",
    "trie.js",
    "constraint.js",
    "spellings.js",
    "stepper.js",
    "explain.js",
    "elements.js",
    "token_list.js",
    "search.js",
    "budget_panel.js",
    "value_panel.js",
    "app.js",
)

_MARK = b'<meta name="generator" content="trieauto">'


def is_page(path: Path) -> bool:
    """Whether a file was made by ``page_document``."""
    with path.open("rb") as file:
        return _MARK in file.read(1024)


def page_document(data: bytes) -> bytes:
    """The HTML file, UTF-8, for what ``page_data`` made.

    The data is base64 of what zlib made of it, so nothing in it can be taken for HTML; and the page's policy (CSP)
    names the digests of its one script and one style, so that nothing else could run or load anyway.
    """
    style, script = _part("page.css"), "\n".join(map(_part, _SCRIPTS))
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'"
    parts = {
        "policy": policy,
        "style": style,
        "script": script,
        "data": base64.b64encode(zlib.compress(data, 9)).decode(),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _part("page.html")).encode()


@cache
def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
