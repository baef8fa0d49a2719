"""vLLM: ``SamplingParams(extra_args={"trieauto": ...})``.

vLLM finds this module by two entry points, in each of its processes, so it must be light: ``vllm.general_plugins``
(``register``, which puts the hooks in place by which requests are checked at admission and end when they are whole) and
``vllm.logits_processors`` (``TrieLogitsProcessor``, which is imported when vLLM asks for it). What needs trieauto's
kernels is imported when the first request wants it.
"""

from __future__ import annotations

from typing import Any

ARGUMENT = "trieauto"
"""The key in ``SamplingParams.extra_args``, and in ``vllm_xargs`` over HTTP."""

SETS = "TRIEAUTO_SETS"
"""``trieauto.serving.ENVIRONMENT``, which would take most of a second to import."""

TESTED_VERSIONS = ("0.32.0",)
"""Versions of vLLM."""

__all__ = ["ARGUMENT", "TESTED_VERSIONS", "register"]  # and TrieLogitsProcessor, which is imported when asked for


def register() -> None:
    """Put the hooks in place. The entry point; calling it again changes nothing."""
    from ._vllm_hooks import register_hooks

    register_hooks()


def __getattr__(name: str) -> Any:
    if name == "TrieLogitsProcessor":
        from ._vllm_processor import TrieLogitsProcessor

        return TrieLogitsProcessor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
