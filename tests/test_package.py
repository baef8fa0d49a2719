"""What a wheel has in it: everything of the library, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from .pages import ROOT

PACKAGES = {"trieauto": "trieauto", "integrations": "trieauto/integrations", "reference": "trieauto/reference"}
DATA = {".typed", ".html", ".css", ".js"}


def test_a_wheel_has_what_the_library_needs_and_no_more(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for directory in PACKAGES:
        shutil.copytree(ROOT / directory, source / directory, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    build = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as files:
        found = {name for name in files.namelist() if ".dist-info/" not in name}
        about = {name.partition(".dist-info/")[2]: name for name in files.namelist() if ".dist-info/" in name}
        entry_points = files.read(about["entry_points.txt"]).decode()
        metadata = files.read(about["METADATA"]).decode()
    expected = {
        f"{place}/{path.relative_to(ROOT / directory).as_posix()}"
        for directory, place in PACKAGES.items()
        for path in (ROOT / directory).rglob("*")
        if path.suffix in {".py", *DATA} and path.is_file()
    }
    assert found == expected
    assert "trieauto/py.typed" in found
    assert "licenses/LICENSE" in about
    assert "License-Expression: Apache-2.0" in metadata
    for group in ("console_scripts", "sglang.srt.plugins", "vllm.general_plugins", "vllm.logits_processors"):
        assert f"[{group}]\ntrieauto = " in entry_points
