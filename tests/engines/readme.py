"""The README's programs for engines, run as files in processes of their own, as a reader would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ..pages import engine_block

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
SECONDS = 400


def run_program(engine: str, model: Path, directory: Path, added: str = "") -> str:
    """Run the program for an engine; the last thing that it prints. (Engines log to the same place.)

    Args:
        model: a directory, which the program finds under the name that it says.
        directory: an empty one to run in.
        added: arguments of the engine that say how it runs on a small machine.
    """
    named = directory / MODEL
    named.parent.mkdir()
    named.symlink_to(model, target_is_directory=True)
    program = engine_block(engine)
    assert f'"{MODEL}", ' in program
    file = directory / "program.py"
    file.write_text(program.replace(f'"{MODEL}", ', f'"{MODEL}", {added}'))
    done = subprocess.run([sys.executable, str(file)], cwd=directory, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith(("(", "[", "INFO", "WARNING"))]
    return lines[-1]
