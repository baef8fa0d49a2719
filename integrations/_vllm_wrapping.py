"""How functions of vLLM are replaced by ours, which call them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes the function that takes the place of another."""


def found(target: str, parameters: Sequence[str] = ()) -> tuple[Any, str]:
    """The class or module that has a function, and the function's name there.

    Args:
        target: ``module:function`` or ``module:class.method``.
        parameters: the names of its first parameters.

    Raises:
        ImportError, AttributeError: it is not there, or its first parameters are others.
    """
    module, _, path = target.partition(":")
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, import_module(module))
    there = list(inspect.signature(getattr(owner, name)).parameters)[: len(parameters)]
    if there != list(parameters):
        raise AttributeError(f"{target} has the parameters {', '.join(there)}, not {', '.join(parameters)}")
    return owner, name


def wrap(owner: Any, name: str, wrapper: Wrapper, mark: str) -> None:
    """Replace a function, unless that was done before under the same mark."""
    function = getattr(owner, name)
    if not hasattr(function, mark):
        wrapped = wrapper(function)
        setattr(wrapped, mark, function)
        setattr(owner, name, wrapped)


def wrap_requests(name: str, wrapper: Wrapper, mark: str) -> None:
    """Replace a method of requests over HTTP, where their classes are imported: that which makes the parameters of beam
    search, for which vLLM drops whatever constrains the request, or those of sampling."""
    for kind in ("chat_completion", "completion"):
        module = sys.modules.get(f"vllm.entrypoints.openai.{kind}.protocol")
        for cls in () if module is None else vars(module).values():
            if isinstance(cls, type) and name in vars(cls):
                wrap(cls, name, wrapper, mark)


def after(hook: Callable[[Any, Any], None]) -> Wrapper:
    """A method that calls a hook with its result and its object, and returns the result."""

    def wrapper(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def wrapped(self: Any, *arguments: Any, **options: Any) -> Any:
            result = method(self, *arguments, **options)
            hook(result, self)
            return result

        return wrapped

    return wrapper
