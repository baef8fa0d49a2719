"""Starting: a fresh machine, several processes at once, a container where nothing can be written."""

from __future__ import annotations

import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import trieauto

PROGRAM = """
import numpy as np, trieauto
vocabulary = trieauto.Vocabulary.from_tokens([b"a", b"b", b"ab", None], stop_token_ids=[3])
matcher = trieauto.compile(trieauto.choices(["ab", "b"]), vocabulary).matcher()
print(trieauto.__file__, matcher.allowed_token_ids().tolist())
"""


def _start(environment: dict[str, str], cwd: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, *options, "-c", PROGRAM]
    return subprocess.Popen(
        command, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _environment(**changes: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("HOME", "XDG_CACHE_HOME", "TRIEAUTO_CACHE_DIR")
    }
    return {**kept, **changes}


def test_three_processes_start_at_once_on_a_fresh_machine(tmp_path: Path) -> None:
    """All compile, all keep what they compiled, none fails; the next start finds it."""
    environment = _environment(TRIEAUTO_CACHE_DIR=str(tmp_path / "cache"))
    processes = [_start(environment, tmp_path) for _ in range(3)]
    err_of_all = ""
    for process in processes:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        assert out.endswith("[0, 1, 2]\n")
        err_of_all += err
    kept = sorted(path.name for path in (tmp_path / "cache").rglob("*.nb*"))
    assert kept
    assert err_of_all.count("compiling") == 1  # one for all
    assert not list((tmp_path / "cache").rglob("*.tmp*"))
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nb*")}
    process = _start(environment, tmp_path)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0
    assert err == ""
    assert stamps == {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nb*")}

    # Damage to what was kept is repaired, not fatal.
    for number, path in enumerate(sorted(stamps)):
        path.write_bytes([b"", b"garbage", path.read_bytes()[:-7]][number % 3])
    process = _start(environment, tmp_path)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert out.endswith("[0, 1, 2]\n")
    assert "damaged" in err


def test_a_container_where_nothing_can_be_written(tmp_path: Path) -> None:
    """The installed package read-only, no home directory, no cache: it works, with one warning."""
    package = tmp_path / "site"
    ignore = shutil.ignore_patterns("__pycache__", "*.nb*")
    source = Path(trieauto.__file__).parent
    shutil.copytree(source, package / "trieauto", ignore=ignore)
    for path in [package, *package.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    environment = _environment(
        PYTHONPATH=str(package), HOME="/nonexistent", XDG_CACHE_HOME="/proc/nonexistent", PYTHONDONTWRITEBYTECODE="1"
    )
    process = _start(environment, tmp_path)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert out == f"{package / 'trieauto' / '__init__.py'} [0, 1, 2]\n"
    assert err.count("RuntimeWarning") == 1
    assert "TRIEAUTO_CACHE_DIR" in err
    assert not list(package.rglob("*.nb*"))


def test_kernels_are_not_compiled_for_other_types() -> None:
    """A call that does not fit fails at once instead of compiling something new while serving."""
    trieauto.Vocabulary.from_tokens([b"a", None], stop_token_ids=[1])
    from trieauto.kernels import jit

    assert jit._kernels
    for dispatcher, _ in jit._kernels:
        assert len(dispatcher.signatures) == 1
        assert not dispatcher._can_compile
    with pytest.raises(TypeError):
        jit._kernels[0][0]("a", "b", "c", "d", "e", "f", "g", "h", "i")


def test_what_plugins_of_engines_import_is_light(tmp_path: Path) -> None:
    """Engines import plug-ins in processes that never make a mask."""
    program = (
        "import sys, trieauto, trieauto.integrations.sglang\n"
        "assert trieauto.errors.BudgetError is trieauto.BudgetError and trieauto.__version__\n"
        "print(sorted({'numpy', 'numba', 'torch', 'jsonschema', 'sglang'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_public_names_are_what_they_say(tmp_path: Path) -> None:
    """Whatever modules are imported, and in whatever order, no module takes the place of a function."""
    modules = [
        f"trieauto.{module.name}"
        for module in pkgutil.iter_modules(trieauto.__path__)
        if module.name not in ("__main__", "integrations", "reference")
    ]
    program = (
        f"import importlib, sys, types\nfor name in {modules}: importlib.import_module(name)\n"
        "import trieauto\n"
        "found = {n: getattr(trieauto, n) for n in trieauto.__all__ if n != 'errors'}\n"
        "assert not [n for n in found if isinstance(found[n], types.ModuleType)]\n"
        "assert set(trieauto.__all__) <= set(dir(trieauto))\n"
        "namespace = {}\nexec('from trieauto import *', namespace)\n"
        "assert namespace['regex']('a').accepts('a') and not hasattr(trieauto, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=300)
