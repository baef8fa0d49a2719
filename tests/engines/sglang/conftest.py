"""Models and sets for servers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from trieauto.demo_sets import tool_names

TOOLS = tool_names(1000)


@pytest.fixture(scope="session")
def models() -> Path:
    """The directory that ``run_sglang.sh`` has written the models to."""
    return Path(os.environ["SGLANG_TEST_MODELS"])


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of named sets."""
    directory = tmp_path_factory.mktemp("sets")
    (directory / "tools.txt").write_text("\n".join(TOOLS) + "\n")
    (directory / "codes.json").write_text(
        json.dumps([f"{letter}{number:02}" for letter in "ABC" for number in range(100)])
    )
    return directory
