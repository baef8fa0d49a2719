"""Models and sets for engines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..sets import write_sets


@pytest.fixture(scope="session")
def models() -> Path:
    """The directory that ``run.sh`` has written the models to."""
    return Path(os.environ["TRIEAUTO_TEST_MODELS"])


@pytest.fixture(scope="session")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of named sets."""
    return write_sets(tmp_path_factory.mktemp("sets"))


@pytest.fixture(scope="session")
def llm(models: Path, sets: Path) -> Iterator[Any]:
    """An engine in this process. Its model has random weights."""
    from .engine import engine

    with engine(models / "random", sets) as found:
        yield found


@pytest.fixture(scope="session")
def server(models: Path, sets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server whose engine is in another process. Its model has random weights."""
    from trieauto.serving import ENVIRONMENT

    from .server import Server

    log = tmp_path_factory.mktemp("log") / "server.log"
    arguments = ("--max-num-seqs", "32", "--max-model-len", "2048")
    arguments += ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
    environment = {ENVIRONMENT: str(sets), "TRIEAUTO_VLLM_BACKEND": "1"}
    with Server(models / "random", *arguments, log=log, **environment) as server:
        yield server
        assert server.process.poll() is None
        assert not server.logged("Traceback (most recent call last)")
