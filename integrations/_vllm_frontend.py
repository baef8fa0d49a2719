"""Structured outputs where requests come in: who serves them, and what is refused with HTTP 400."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import OrderedDict
from typing import Any

from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import check_json_nesting

from trieauto.errors import EmptyConstraintError, TrieautoError, UnreachableValueError, UnsupportedError, shorten
from trieauto.serving import ConstraintRequest, ConstraintStore
from trieauto.serving.named_sets import mentions_sets

from ._vllm_admission import check_conflicts, check_tokens, shows_everything
from ._vllm_requests import AdmittedRequest
from ._vllm_stores import store_of
from ._vllm_structured import BACKEND, as_text, constraint_asked_for, mark_as_ours, only_prefills
from ._vllm_thinking import check_parser

logger = logging.getLogger("trieauto")
BACKENDS = ("auto", "xgrammar")
"""Of vLLM, as its option says: those in whose place trieauto serves. With any other one it stands back."""

_MOST_REASONS = 1000  # that are remembered, so that each is logged once
_MOST_TEXTS = 1000  # for which it is remembered that others serve them


class Others:
    """What vLLM's own backends serve, and why. Thread-safe."""

    def __init__(self) -> None:
        self._reasons: OrderedDict[str, None] = OrderedDict()
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._lock = threading.Lock()

    def knows(self, asked_for: ConstraintRequest) -> bool:
        """Whether others are known to serve what a request asks for."""
        return bool(self._known) and asked_for.kind != "values" and _digest(asked_for) in self._known

    def add(self, asked_for: ConstraintRequest) -> None:
        """Note that they do, so that compiling it is not tried again."""
        with self._lock:
            self._known[_digest(asked_for)] = None
            if len(self._known) > _MOST_TEXTS:
                self._known.popitem(last=False)

    def log(self, what: str, reason: str) -> None:
        """Say it, each reason once."""
        with self._lock:
            if reason in self._reasons:
                return
            self._reasons[reason] = None
            if len(self._reasons) > _MOST_REASONS:
                self._reasons.popitem(last=False)
        logger.warning(
            "trieauto: vLLM's own backend serves %s, and its answers may be cut off by max_tokens: %s",
            what,
            reason,
        )


def _digest(asked_for: ConstraintRequest) -> bytes:
    text = f"{asked_for.kind} {asked_for.text}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


_others = Others()


def serves(structured_outputs_config: Any) -> bool:
    """Whether trieauto serves the structured outputs of an engine."""
    return structured_outputs_config is not None and structured_outputs_config.backend in BACKENDS


def take(params: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> bool:
    """Whether trieauto serves a request's structured outputs; then its parameters say so from now on.

    Some microseconds once its constraint is known, plus one for some ten values of a choice.

    Raises:
        VLLMValidationError: nobody can serve it, or its other parameters are at odds with it.
    """
    asked = params.structured_outputs
    check_json_nesting(asked.json)
    check_json_nesting(asked.structural_tag, structural_tag=True)
    try:
        is_ours = _take(asked, store_of(model_config, tokenizer))
        if is_ours:
            check_conflicts(params, "structured_outputs")
            check_parser(structured_outputs_config, tokenizer)
    except TrieautoError as error:
        raise VLLMValidationError(str(error), parameter="structured_outputs") from error
    return is_ours


def _take(asked: Any, store: ConstraintStore) -> bool:
    try:
        asked_for = constraint_asked_for(asked)
    except UnsupportedError as error:
        if mentions_sets(as_text(asked.structural_tag or asked.json or "")):
            raise
        return _leave(asked, "a request", error)
    if _others.knows(asked_for):
        return False
    try:
        store.get(*asked_for)
    except (EmptyConstraintError, UnreachableValueError):
        raise
    except TrieautoError as error:
        if asked_for.kind == "values" or _names_sets(asked_for, store):
            raise
        _others.add(asked_for)
        return _leave(asked, f"the {asked_for.kind} {shorten(asked_for.text)}", error)
    mark_as_ours(asked, asked_for)
    return True


def _names_sets(asked_for: ConstraintRequest, store: ConstraintStore) -> bool:
    """Whether a text names sets (or tries to), so that nobody else can serve it."""
    try:
        return bool(store.names_of_sets(*asked_for))
    except TrieautoError:
        return True


def _leave(asked: Any, what: str, reason: TrieautoError) -> bool:
    """Leave a request to others."""
    _others.log(what, str(reason))
    if asked._backend == BACKEND:
        asked._backend = None
    return False


def admit(request: Any, vllm_config: Any, tokenizer: Any) -> None:
    """Make sure that a request of ours can be finished within its tokens, now that their number and the length of its
    prompt are known, and let vLLM show all of its text.

    Args:
        request: vLLM's ``EngineCoreRequest``, whose parameters are its own.
        vllm_config: of the engine.
        tokenizer: of the engine.

    Raises:
        VLLMValidationError: it cannot; it names the fewest tokens. Or it is a part of a session that goes on.
    """
    params = request.sampling_params
    if params.structured_outputs._backend != BACKEND or only_prefills(params):
        return
    if request.resumable:
        raise VLLMValidationError("structured outputs of requests that go on after their answers are not supported")
    store = store_of(vllm_config.model_config, tokenizer)
    asked_for = constraint_asked_for(params.structured_outputs)
    length = len(request.prompt_token_ids if request.prompt_token_ids is not None else request.prompt_embeds)
    budget = min(params.max_tokens, vllm_config.model_config.max_model_len - length)
    try:
        check_tokens(params, store, AdmittedRequest(*asked_for, budget, False))
    except TrieautoError as error:
        raise VLLMValidationError(str(error), parameter="structured_outputs") from error
    if shows_everything(params, store.vocabulary, tokenizer):
        params.include_stop_str_in_output = True  # without it the text of a last token is left out
