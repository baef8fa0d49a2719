"""The way without a grammar backend: a custom logit processor, which needs nothing but the tokens generated so far."""

from __future__ import annotations

import functools
import logging
from http import HTTPStatus
from typing import Any

import numpy as np
import torch
from sglang.srt.sampling.custom_logit_processor import CustomLogitProcessor

from trieauto import BudgetError, Matcher
from trieauto.errors import TrieautoError
from trieauto.serving import ConstraintStore, GrammarKind, NamedSets

from ._sglang_grammar import apply_mask, keep_answers_whole
from ._sglang_vocabulary import read_vocabulary

logger = logging.getLogger("trieauto")
RUNS_AHEAD = (
    "the trie logit processor must see each token before the next: start the server with SGLANG_ENABLE_DELAY_SAMPLE=1 "
    "or --disable-overlap-schedule"
)
KINDS: tuple[GrammarKind, ...] = ("regex", "ebnf", "json_schema")


class TrieLogitProcessor(CustomLogitProcessor):  # type: ignore[misc]
    """Constrains requests of any server that was started with ``--enable-custom-logit-processor``.

    A request sends ``"custom_logit_processor": TrieLogitProcessor.to_str()``, and in ``custom_params`` one of "regex",
    "ebnf" and "json_schema", as for the backend ``trie``; sets can be named. Budgets hold (``max_new_tokens``).

    Limits, against the grammar backend:

    - trieauto must be installed where the server runs. (If its plug-in is not loaded, what follows is found only while
      generating, and a request is then aborted; with speculation the processor is not called at all.)
    - The server must not run ahead: with overlapped scheduling it needs ``SGLANG_ENABLE_DELAY_SAMPLE=1``, else
      ``--disable-overlap-schedule``. Speculative decoding does not call processors. Both are refused (HTTP 400).
    - What XGrammar would have to serve is refused, too.
    - Constraints are compiled by the scheduler's own thread, so a large new set holds all requests up.
    - A complete answer takes a step for the stop token. There is no thinking before the answer.
    """

    def __call__(
        self, logits: torch.Tensor, custom_param_list: list[dict[str, Any] | None] | None = None
    ) -> torch.Tensor:
        """What SGLang calls: masks the rows of a batch. A request that cannot be constrained is aborted, not left free.

        Args:
            logits: [rows, size], any float dtype and device; changed in place.
            custom_param_list: of each row its request's ``custom_params``, and the request itself.
        """
        rows: list[int] = []
        matchers: list[Matcher] = []
        for row, params in enumerate(custom_param_list or ()):
            request = None if params is None else params.get("__req__")
            try:
                if request is not None and _wants_nothing(request):
                    continue
                _check_is_current(request)
                matchers.append(_matcher(request, params or {}, logits.shape[-1]))
                rows.append(row)
            except ReferenceError:
                continue  # the request is gone
            except Exception as error:
                logger.error("trieauto: a request cannot be constrained: %s", error)
                if request is None:  # there is nothing to abort it by; better no text than free text
                    logits[row] = -torch.inf
                    logits[row, 0] = 0
                else:
                    _abort(request, error)
        if matchers:
            mask = np.full((len(logits), (logits.shape[-1] + 31) // 32), -1, np.int32)
            for row, matcher in zip(rows, matchers, strict=True):
                matcher.fill_next_token_bitmask(mask, row)
            apply_mask(logits, torch.from_numpy(mask).to(logits.device))
        return logits


def check_request(manager: Any, req: Any) -> str | None:
    """Why a request with this processor cannot be served, if so. Compiles its constraint."""
    scheduler = manager.scheduler
    if not scheduler.spec_algorithm.is_none():
        return "the trie logit processor is not called when SGLang decodes speculatively: use --grammar-backend trie"
    from sglang.srt.environ import envs

    if scheduler.enable_overlap and not envs.SGLANG_ENABLE_DELAY_SAMPLE.get():
        return RUNS_AHEAD
    if req.grammar is not None:
        return "a request has either a grammar or the trie logit processor, not both"
    try:
        matcher = _matcher(req, req.sampling_params.custom_params, scheduler.model_config.vocab_size)
        keep_answers_whole(req.sampling_params, matcher)
    except BudgetError as error:
        return f"{error} (max_new_tokens, or what the prompt leaves of the context)"
    except TrieautoError as error:
        return str(error)
    return None


def _wants_nothing(request: Any) -> bool:
    """Whether no token of a request will be used: it has ended, is being aborted, or is there for its prompt alone."""
    return bool(request.to_finish is not None or request.finished() or request.sampling_params.max_new_tokens == 0)


def _check_is_current(request: Any) -> None:
    """Make sure that the token of the last call is among the output of a request."""
    if request is None:
        return
    length, retractions = len(request.output_ids), request.retraction_count
    least, as_of = getattr(request, "trie_expects", (0, retractions))
    if as_of == retractions and length < least:  # a request that was retracted may have lost a token
        raise TrieautoError(RUNS_AHEAD)
    request.trie_expects = length + 1, retractions


def _matcher(request: Any, params: Any, vocab_size: int) -> Matcher:
    """A matcher that has accepted what a request has generated."""
    if request is None or not isinstance(params, dict):
        raise TrieautoError("the trie logit processor needs custom_params, an object")
    given = [kind for kind in KINDS if kind in params]
    names = ", ".join(sorted(params.keys() - {"__req__"})) or "none"
    if len(given) != 1 or not isinstance(params[given[0]], str):
        raise TrieautoError(f"custom_params must have one of {', '.join(KINDS)}, a string; it has {names}")
    store = _store(request.tokenizer, vocab_size, frozenset(request.eos_token_ids or ()))
    output_ids = list(request.output_ids)
    matcher = store.get(given[0], params[given[0]]).matcher(request.sampling_params.max_new_tokens)
    if matcher.validate_tokens(output_ids) < len(output_ids):
        raise TrieautoError(f"the {len(output_ids)} tokens generated so far are not legal")
    matcher.accept_tokens(output_ids)
    return matcher


@functools.lru_cache(maxsize=4)
def _store(tokenizer: Any, vocab_size: int, eos_token_ids: frozenset[int]) -> ConstraintStore:
    return ConstraintStore(read_vocabulary(tokenizer, vocab_size, eos_token_ids), NamedSets.from_environment())


def _abort(request: Any, error: Exception) -> None:
    from sglang.srt.managers.schedule_batch import FINISH_ABORT

    message = f"the request cannot be constrained: {error}"
    request.to_finish = FINISH_ABORT(message, HTTPStatus.BAD_REQUEST, "BadRequestError")
