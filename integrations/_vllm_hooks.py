"""Where trieauto takes part in vLLM beside its logits processor: admission, the scheduler's process, and the end.

Each hook calls what it replaces first, and does nothing for requests without a constraint.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections.abc import Callable
from typing import Any

from trieauto.errors import TrieautoError

from . import _vllm_cpu
from ._vllm_requests import argument_of
from ._vllm_versions import is_tested, log_as_vllm_does
from ._vllm_wrapping import Wrapper, after, found, wrap, wrap_requests
from .vllm import ARGUMENT, SETS, TESTED_VERSIONS

logger = logging.getLogger("trieauto")
_MARK = "_trieauto_processor"
_missing: list[str] | None = None  # hooks that could not be put in place; None: none was tried


def after_inputs(request: Any, processor: Any) -> None:
    """After ``InputProcessor.process_inputs``, in the front end: the request has its own parameters now, ``max_tokens``
    among them, and the length of its prompt is known.

    Raises:
        VLLMValidationError: the request is refused (HTTP 400).
    """
    if argument_of(request.sampling_params) is None:
        return
    from vllm.exceptions import VLLMValidationError

    from ._vllm_admission import admit

    try:
        admit(request, processor.vllm_config, processor.tokenizer)
    except TrieautoError as error:
        raise VLLMValidationError(str(error), parameter=ARGUMENT) from error


def after_start(_: None, processor: Any) -> None:
    """After ``InputProcessor.__init__``: beam search, for which vLLM drops all extra arguments, is refused if it comes
    with a constraint."""
    wrap_requests("to_beam_search_params", _no_beams, _MARK)
    _prepare(processor.vllm_config.model_config, processor.tokenizer)


def after_scheduler_start(_: None, scheduler: Any) -> None:
    """After ``Scheduler.__init__``. (``EngineCore.__init__`` has begun when it loads plug-ins.)"""
    _prepare(scheduler.vllm_config.model_config)


def _prepare(model_config: Any, tokenizer: Any = None) -> None:
    """Make now what the first constrained request would wait for, where a directory of sets says that one will come."""
    log_as_vllm_does()  # its log is arranged by now
    if os.environ.get(SETS) and model_config.runner_type == "generate" and not model_config.skip_tokenizer_init:
        from ._vllm_stores import store_of

        store_of(model_config, tokenizer)


def after_preprocessing(result: tuple[Any, int], engine_core: Any) -> None:
    """After ``EngineCore.preprocess_add_request``, in the scheduler's process, but not its thread: the request gets a
    matcher of its own, for its end. Whatever goes wrong ends this request alone."""
    request = result[0]
    if argument_of(request.sampling_params) is None:
        return
    from ._vllm_requests import new_matcher, settle_versions
    from ._vllm_stores import snapshots, store_of

    store = store_of(engine_core.vllm_config.model_config)
    settle_versions(request.sampling_params, store, snapshots())
    request.trieauto_matcher = new_matcher(request.sampling_params, store)


def after_stop_check(is_stopped: bool, request: Any) -> bool:
    """After ``check_stop``: whether a request has ended."""
    matcher = getattr(request, "trieauto_matcher", None)
    if matcher is None:
        return is_stopped
    from ._vllm_finish import check_end

    return check_end(request, matcher, is_stopped)


def _no_beams(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def wrapped(request: Any, *arguments: Any, **options: Any) -> Any:
        if request.vllm_xargs and ARGUMENT in request.vllm_xargs:
            from vllm.exceptions import VLLMValidationError

            raise VLLMValidationError(f"use_beam_search cannot be used with {ARGUMENT}", parameter=ARGUMENT)
        return make(request, *arguments, **options)

    return wrapped


# Putting them in place


def _stop_check(check_stop: Callable[..., bool]) -> Callable[..., bool]:
    @functools.wraps(check_stop)
    def wrapped(request: Any, max_model_len: int) -> bool:
        return after_stop_check(check_stop(request, max_model_len), request)

    return wrapped


HOOKS: dict[str, tuple[list[str], Wrapper]] = {
    "vllm.v1.engine.input_processor:InputProcessor.__init__": (["self", "vllm_config"], after(after_start)),
    "vllm.v1.engine.input_processor:InputProcessor.process_inputs": (
        ["self", "request_id", "prompt", "params"],
        after(after_inputs),
    ),
    "vllm.v1.core.sched.scheduler:Scheduler.__init__": (["self", "vllm_config"], after(after_scheduler_start)),
    "vllm.v1.engine.core:EngineCore.preprocess_add_request": (["self", "request"], after(after_preprocessing)),
    "vllm.v1.core.sched.scheduler:check_stop": (["request", "max_model_len"], _stop_check),
}
"""The functions, their first parameters, and what takes their places."""


def register_hooks() -> None:
    """Put all hooks in place. The log says if this version of vLLM was not tested, or does not have their places."""
    global _missing
    if _missing is not None:
        return
    from vllm.version import __version__ as version

    log_as_vllm_does()
    _missing = []
    with contextlib.suppress(ImportError, AttributeError):
        wrap(*found(_vllm_cpu.TARGET), _vllm_cpu.without_llvmlite, _MARK)
    for target, (parameters, wrapper) in HOOKS.items():
        try:
            wrap(*found(target, parameters), wrapper, _MARK)
        except (ImportError, AttributeError) as error:
            logger.warning("trieauto: no hook on %s, so constraints are refused: %s", target, error)
            _missing.append(target)
    if not is_tested(version) and not _missing:
        logger.warning(
            "trieauto: vLLM %s is not a version it was tested with (%s); its hooks are in place",
            version,
            ", ".join(TESTED_VERSIONS),
        )


def check_hooks() -> None:
    """Make sure that requests are checked, and that their ends are.

    Raises:
        TrieautoError: they are not in this process.
    """
    if _missing is None:
        raise TrieautoError(
            f"{ARGUMENT} needs its plug-in of the group vllm.general_plugins, which was not loaded (VLLM_PLUGINS?)"
        )
    if _missing:
        raise TrieautoError(
            f"{ARGUMENT} cannot be used with this version of vLLM, which has changed {', '.join(_missing)}; "
            f"it was tested with {', '.join(TESTED_VERSIONS)}"
        )
