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


def wrap_beam_search(wrapper: Wrapper, mark: str) -> None:
    """Replace what makes the parameters of beam search of a request over HTTP, for which vLLM drops whatever constrains
    the request."""
    for name in ("chat_completion", "completion"):
        module = sys.modules.get(f"vllm.entrypoints.openai.{name}.protocol")
        for cls in () if module is None else vars(module).values():
            if isinstance(cls, type) and "to_beam_search_params" in vars(cls):
                wrap(cls, "to_beam_search_params", wrapper, mark)


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
