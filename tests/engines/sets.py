"""Named sets for engines."""

from __future__ import annotations

import json
from pathlib import Path

from trieauto.demo_sets import tool_names

TOOLS = tool_names(1000)
CODES = [f"{letter}{number:02}" for letter in "ABC" for number in range(100)]


def write_sets(directory: Path) -> Path:
    """Write the sets ``tools`` and ``codes`` into a directory."""
    (directory / "tools.txt").write_text("\n".join(TOOLS) + "\n")
    (directory / "codes.json").write_text(json.dumps(CODES))
    return directory
