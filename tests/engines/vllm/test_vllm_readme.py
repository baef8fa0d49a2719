"""The README's program for vLLM."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..readme import run_program

pytestmark = pytest.mark.vllm


def test_the_program_of_the_readme(models: Path, tmp_path: Path) -> None:
    assert run_program("vllm", models / "smollm2", tmp_path) in ("get_weather", "get_time", "send_mail")
