"""When a constrained request of vLLM ends: once its answer is whole, and with an error if it would not be one."""

from __future__ import annotations

import logging
from typing import Any

from vllm.v1.request import RequestStatus

from trieauto import Matcher

logger = logging.getLogger("trieauto")


def check_end(request: Any, matcher: Matcher, is_stopped: bool) -> bool:
    """Whether a request has ended, and with which status; called after each of its tokens.

    Args:
        request: the scheduler's.
        matcher: the request's own; the new token is not accepted yet.
        is_stopped: whether vLLM has stopped it, by a stop token or by a limit.
    """
    output_ids = request.output_token_ids
    for place in range(matcher.num_accepted, len(output_ids)):
        if not matcher.accept_token(output_ids[place]):
            return _fail(request, f"token {output_ids[place]} is not legal there")
    if is_stopped:
        if not (matcher.is_accepting or matcher.is_terminated()):
            return _fail(request, "it was stopped there")
        if request.status == RequestStatus.FINISHED_LENGTH_CAPPED and _may_end(request) and _is_whole(matcher):
            request.status = RequestStatus.FINISHED_STOPPED
        return True
    if matcher.is_terminated():  # with ignore_eos
        request.status = RequestStatus.FINISHED_STOPPED
        return True
    if matcher.is_complete and _may_end(request):
        is_whole = _is_whole(matcher)
        request.status = RequestStatus.FINISHED_STOPPED if is_whole else RequestStatus.FINISHED_LENGTH_CAPPED
        return True
    return False


def _is_whole(matcher: Matcher) -> bool:
    """Whether nothing could follow even without a budget: then it is not the budget that has ended the answer."""
    free = matcher.fork()
    free.set_budget(None)
    return free.is_terminated() or free.is_complete


def _may_end(request: Any) -> bool:
    """Whether vLLM shows all of the text of an answer that ends without a stop token; admission has seen to it where
    that is possible."""
    return bool(request.sampling_params.include_stop_str_in_output)


def _fail(request: Any, reason: str) -> bool:
    """End a request with an error, rather than with something that was not asked for."""
    logger.error(
        "trieauto: request %s ends with an error after %d tokens, since its answer is not whole: %s",
        request.request_id,
        len(request.output_token_ids),
        reason,
    )
    request.status = RequestStatus.FINISHED_ERROR
    request.resumable = False
    return True
