"""The functions of vLLM that are changed so that trieauto serves structured outputs. Each does what it did before for
everything that is not ours."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from typing import Any

from ._vllm_versions import log_as_vllm_does
from ._vllm_wrapping import Wrapper, after, found, wrap, wrap_requests

logger = logging.getLogger("trieauto")
_MARK = "_trieauto_backend"
_RUNNER = "vllm.v1.worker.gpu_model_runner"


def serve_instead(validate: Callable[..., None]) -> Callable[..., None]:
    """``SamplingParams._validate_structured_outputs``, in the front end: what is ours is not validated by others."""

    @functools.wraps(validate)
    def wrapped(self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
        if self.structured_outputs is not None and tokenizer is not None and not model_config.is_diffusion:
            from . import _vllm_frontend as frontend

            if frontend.serves(structured_outputs_config) and frontend.take(
                self, model_config, structured_outputs_config, tokenizer
            ):
                return
        validate(self, model_config, structured_outputs_config, tokenizer)

    return wrapped


def after_start(_: None, processor: Any) -> None:
    """After ``InputProcessor.__init__``: the tokenizer is read when the server starts, not by its first request; and
    what vLLM would not constrain is refused: beam search, and tools that name sets where it leaves tools free."""
    from . import _vllm_frontend as frontend
    from ._vllm_stores import store_of

    config = processor.model_config
    if frontend.serves(processor.structured_outputs_config) and has_text(config):
        say_so()
        wrap_requests("to_beam_search_params", no_beams, _MARK)
        wrap_requests("to_sampling_params", no_sets_in_loose_tools, _MARK)
        store_of(config, processor.tokenizer)


def say_so() -> None:
    """In the log, which vLLM has arranged by now."""
    from vllm.version import __version__ as version

    log_as_vllm_does()
    logger.info("trieauto: it serves the structured outputs of vLLM %s", version)


def has_text(model_config: Any) -> bool:
    """Whether a model generates text, and its tokens are known."""
    return bool(model_config.runner_type == "generate" and not model_config.skip_tokenizer_init)


def no_beams(make: Callable[..., Any]) -> Callable[..., Any]:
    """``to_beam_search_params`` of a request over HTTP."""

    @functools.wraps(make)
    def wrapped(request: Any, *arguments: Any, **options: Any) -> Any:
        if request.extract_structured_outputs() is not None:
            from vllm.exceptions import VLLMValidationError

            raise VLLMValidationError("use_beam_search cannot be used with structured outputs")
        return make(request, *arguments, **options)

    return wrapped


def no_sets_in_loose_tools(make: Callable[..., Any]) -> Callable[..., Any]:
    """``to_sampling_params`` of a request over HTTP. With many tool parsers vLLM does not constrain the arguments of
    tools, or only to be JSON."""

    @functools.wraps(make)
    def wrapped(request: Any, *arguments: Any, **options: Any) -> Any:
        params = make(request, *arguments, **options)
        if getattr(request, "tools", None) and request.tool_choice != "none":
            from ._vllm_structured import drops_sets_of_tools

            if drops_sets_of_tools(request.tools, params.structured_outputs):
                from vllm.exceptions import VLLMValidationError

                raise VLLMValidationError(
                    "the parameters of a tool name a set (x-trieauto-set), but with this tool_choice and tool parser "
                    "vLLM does not constrain them: use response_format or structured_outputs instead",
                    parameter="tools",
                )
        return params

    return wrapped


def after_inputs(request: Any, processor: Any) -> None:
    """After ``InputProcessor.process_inputs``: the length of the prompt is known now."""
    if request.sampling_params is not None and request.sampling_params.structured_outputs is not None:
        from ._vllm_frontend import admit

        admit(request, processor.vllm_config, processor.tokenizer)


def after_making(_: None, manager: Any) -> None:
    """After ``StructuredOutputManager.__init__``, in the scheduler's process: it becomes one of ours."""
    from ._vllm_frontend import serves

    config = manager.vllm_config
    if serves(config.structured_outputs_config) and has_text(config.model_config):
        from ._vllm_backend import TrieStructuredOutputManager

        say_so()
        manager.__class__ = TrieStructuredOutputManager
        manager.add_ours()


def mask_on_cpu_instead(apply: Callable[..., None]) -> Callable[..., None]:
    """``apply_grammar_bitmask`` of the model runner: on a CPU masks are applied by us, for XGrammar's kernel is slow
    there."""

    @functools.wraps(apply)
    def wrapped(scheduler_output: Any, grammar_output: Any, input_batch: Any, logits: Any) -> None:
        if not logits.is_cpu:
            apply(scheduler_output, grammar_output, input_batch, logits)
            return
        from ._masks import mask_on_cpu

        places, masks = rows_of_masks(
            input_batch.req_ids,
            grammar_output.structured_output_request_ids,
            scheduler_output.scheduled_spec_decode_tokens,
        )
        mask_on_cpu(logits, grammar_output.grammar_bitmask[masks], places)

    return wrapped


def rows_of_masks(
    in_batch: list[str], in_mask: list[str], drafts: dict[str, list[int]]
) -> tuple[list[int], list[int] | slice]:
    """Which rows of the logits are masked, and by which rows of the bitmask. Both have one row more for each request
    than it has drafted tokens.

    Args:
        in_batch: the requests in the order of the logits.
        in_mask: those that have masks, in the order of the bitmask.
        drafts: the drafted tokens of those that have any.
    """
    if not drafts:
        place_of = dict(zip(in_batch, range(len(in_batch)), strict=True))
        if in_mask and all(map(place_of.__contains__, in_mask)):
            return [place_of[name] for name in in_mask], slice(len(in_mask))
    first: dict[str, int] = {}
    place = 0
    for name in in_batch:
        first[name] = place
        place += 1 + len(drafts.get(name, ()))
    places: list[int] = []
    masks: list[int] = []
    row = 0
    for name in in_mask:
        count = 1 + len(drafts.get(name, ()))
        if name in first:
            places.extend(range(first[name], first[name] + count))
            masks.extend(range(row, row + count))
        row += count
    return places, masks


HOOKS: dict[str, tuple[list[str], Wrapper]] = {
    "vllm.sampling_params:SamplingParams._validate_structured_outputs": (
        ["self", "model_config", "structured_outputs_config", "tokenizer"],
        serve_instead,
    ),
    "vllm.v1.engine.input_processor:InputProcessor.__init__": (["self", "vllm_config"], after(after_start)),
    "vllm.v1.engine.input_processor:InputProcessor.process_inputs": (["self", "request_id"], after(after_inputs)),
    "vllm.v1.structured_output:StructuredOutputManager.__init__": (["self", "vllm_config"], after(after_making)),
    "vllm.v1.structured_output.utils:apply_grammar_bitmask": (
        ["scheduler_output", "grammar_output", "input_batch", "logits"],
        mask_on_cpu_instead,
    ),
}
"""The functions, their first parameters, and what takes their places."""

METHODS = {
    "vllm.v1.structured_output:StructuredOutputManager.grammar_init": ["self", "request"],
    "vllm.v1.structured_output:StructuredOutputManager._create_grammar": ["self", "request"],
    "vllm.v1.structured_output:StructuredOutputManager.grammar_bitmask": [
        "self", "requests", "structured_output_request_ids", "scheduled_spec_decode_tokens"
    ],
    "vllm.v1.structured_output:StructuredOutputManager.clear_backend": ["self"],
}  # fmt: skip
"""The methods that our manager has in place of vLLM's."""


def apply_hooks() -> None:
    """Change vLLM's functions, in this process, once.

    Raises:
        ImportError, AttributeError: one of them is not there, or has other parameters; nothing was changed then.
    """
    for target, parameters in METHODS.items():
        found(target, parameters)
    places = [(*found(target, parameters), wrapper) for target, (parameters, wrapper) in HOOKS.items()]
    for owner, name, wrapper in places:
        wrap(owner, name, wrapper, _MARK)
    runner = sys.modules.get(_RUNNER)  # it has imported the function by name, if it was there before us
    if runner is not None:
        runner.apply_grammar_bitmask = sys.modules["vllm.v1.structured_output.utils"].apply_grammar_bitmask  # type: ignore[attr-defined]
