"""The README's program for SGLang."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..readme import run_program

pytestmark = pytest.mark.sglang

CPU = 'device="cpu", attention_backend="torch_native", sampling_backend="pytorch", max_total_tokens=16384, '
"""Without these it finds the CPU by itself, but takes most of the machine's memory for its cache."""


def test_the_program_of_the_readme(models: Path, tmp_path: Path) -> None:
    assert run_program("sglang", models / "smollm2", tmp_path, CPU) in ("get_weather", "get_time", "send_mail")
