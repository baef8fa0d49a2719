"""A repair for vLLM's CPU backend, which cannot start in a process that has imported numba (seen in 0.32.0)."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

TARGET = "vllm.triton_utils.dispatcher:_rebind_kernels"
_MODULE = "llvmlite.binding.ffi"


def without_llvmlite(rebind: Callable[..., None]) -> Callable[..., None]:
    """vLLM's search of all loaded modules for its kernels, which does not look into the one that breaks it.

    It takes the ``__dict__`` of every object in every module for a dictionary. The library object of llvmlite answers
    any attribute with a function. (Whoever imports numba before vLLM starts in the same process meets this, trieauto or
    not.)
    """

    @functools.wraps(rebind)
    def wrapped(*arguments: Any, **options: Any) -> None:
        module = sys.modules.pop(_MODULE, None)
        try:
            rebind(*arguments, **options)
        finally:
            if module is not None:
                sys.modules[_MODULE] = module

    return wrapped
