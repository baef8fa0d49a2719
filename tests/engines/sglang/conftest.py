"""Models and sets for servers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ..sets import write_sets


@pytest.fixture(scope="session")
def models() -> Path:
    """The directory that ``run.sh`` has written the models to."""
    return Path(os.environ["TRIEAUTO_TEST_MODELS"])


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of named sets."""
    return write_sets(tmp_path_factory.mktemp("sets"))
