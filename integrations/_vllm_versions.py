"""What trieauto was tested with, and how it says so."""

from __future__ import annotations

import logging

from .vllm import TESTED_VERSIONS

logger = logging.getLogger("trieauto")


def is_tested(version: str) -> bool:
    """Whether trieauto was tested with a version of vLLM, whatever it was built for (``0.32.0+cpu``)."""
    return version.partition("+")[0] in TESTED_VERSIONS


def log_as_vllm_does() -> None:
    """Show our log lines where vLLM shows its own, unless the program has arranged for them."""
    theirs = logging.getLogger("vllm")
    if not logger.hasHandlers():
        for handler in theirs.handlers:
            logger.addHandler(handler)
        logger.setLevel(theirs.level)
