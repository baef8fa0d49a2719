"""Where SGLang's official hooks give grammars their budget, and end answers that are complete."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from trieauto.errors import BudgetError, TrieautoError

logger = logging.getLogger("trieauto")
_MANAGER = "sglang.srt.constrained.grammar_manager.GrammarManager"
_PROCESSOR = b"_sglang_processor".hex()  # in the text of a serialised ``TrieLogitProcessor``
_REQUEST = "sglang.srt.managers.schedule_batch.Req"


def only_prefills(req: Any) -> bool:
    """Whether SGLang sends a request ahead of n > 1 samples, to prefill their prompt; nobody sees its text."""
    return bool(req.sampling_params.max_new_tokens == 0 and req.sampling_params.n > 1)


def give_budget(req: Any) -> None:
    """Tell a request's grammar, if it is one of ours, how many tokens the request has; refuse the request (HTTP 400)
    if no answer has so few."""
    set_budget = getattr(req.grammar, "set_trie_budget", None)
    if set_budget is None or req.to_finish is not None or req.finished():
        return
    tokens = req.sampling_params.max_new_tokens
    try:
        if not only_prefills(req):
            set_budget(tokens)
            req.grammar.keep_answers_whole(req.sampling_params)
        if tokens == 0:
            req.grammar = None  # no text at all is an answer, or nobody sees it
    except BudgetError as error:
        from trieauto.serving.messages import too_few_tokens

        message = too_few_tokens(error.needed, tokens, "max_new_tokens", req.grammar.budget_includes)
        req.set_finish_with_abort(message)
    except TrieautoError as error:
        req.set_finish_with_abort(f"the request cannot be constrained: {error}")


def after_process(is_queued: bool, manager: Any, req: Any) -> None:
    """After ``process_req_with_grammar``: the grammar of a request that need not wait is there now. Requests with our
    logit processor are checked, too."""
    if not is_queued:
        give_budget(req)
    processor = req.custom_logit_processor
    if processor is not None and _PROCESSOR in processor and req.to_finish is None and not only_prefills(req):
        from ._sglang_processor import check_request

        reason = check_request(manager, req)
        if reason is not None:
            req.set_finish_with_abort(reason)


def after_ready(requests: list[Any], manager: Any) -> None:
    """After ``get_ready_grammar_requests``: so are those of requests that have waited."""
    for req in requests:
        give_budget(req)


def after_finish_check(result: None, req: Any, new_accepted_len: int = 1) -> None:
    """After ``update_finish_state``: end a request whose answer is whole and has no continuation, without a step for
    the stop token."""
    is_whole = getattr(req.grammar, "is_whole_after", None)
    if is_whole is None or req.finished_reason is not None or req.to_finish is not None:
        return
    if is_whole(req.output_ids):
        from sglang.srt.managers.schedule_batch import FINISH_MATCHED_TOKEN

        req.finished_reason = FINISH_MATCHED_TOKEN(matched=None)  # type "stop"; no token is trimmed off the text
        req.finished_len = len(req.output_ids)


BUDGET_HOOKS: dict[str, Callable[..., None]] = {
    f"{_MANAGER}.process_req_with_grammar": after_process,
    f"{_MANAGER}.get_ready_grammar_requests": after_ready,
}
FINISH_HOOKS: dict[str, Callable[..., None]] = {f"{_REQUEST}.update_finish_state": after_finish_check}


def register_hooks() -> None:
    """Register all hooks; SGLang applies them after all plugins have been loaded."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for target, hook in (BUDGET_HOOKS | FINISH_HOOKS).items():
        if all(hook is not known for _, known, _ in HookRegistry._hooks.get(target, ())):
            HookRegistry.register(target, hook, HookType.AFTER)


def check_hooks(version: str, tested: tuple[str, ...]) -> None:
    """Make sure that the hooks took, since SGLang only logs those that could not be applied, and say so in the log.

    Raises:
        RuntimeError: those that give budgets did not; answers could be cut off.
    """
    missing = [target for target in BUDGET_HOOKS | FINISH_HOOKS if not _is_applied(target)]
    if any(target in BUDGET_HOOKS for target in missing):
        raise RuntimeError(
            f"trieauto: SGLang {version} did not apply the hooks on {', '.join(missing)}, so answers could be cut off "
            f"by their token limit. It was tested with SGLang {', '.join(tested)}"
        )
    for target in missing:
        logger.warning("trieauto: no hook on %s: complete answers take one more token, the stop token", target)
    if version in tested:
        logger.info("trieauto: SGLang %s, a tested version; all hooks are in place", version)
    else:
        logger.warning(
            "trieauto: SGLang %s is not a version it was tested with (%s); its hooks are in place",
            version,
            ", ".join(tested),
        )


def _is_applied(target: str) -> bool:
    from pkgutil import resolve_name

    from sglang.srt.plugins.hook_registry import HookRegistry

    try:
        function = resolve_name(target)
    except (ImportError, AttributeError):
        return False
    return target in HookRegistry._patched and hasattr(function, "__wrapped__")
