"""What is checked before a request with a constraint enters the engine: whatever is wrong with it is HTTP 400."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from trieauto.errors import BudgetError, TrieautoError, shorten

from ._vllm_requests import AdmittedRequest, argument_of, replace_argument
from .vllm import ARGUMENT

if TYPE_CHECKING:
    from trieauto import Vocabulary
    from trieauto.serving import ConstraintStore


def check_params(params: Any) -> None:
    """Refuse what cannot go with a constraint, or could leave nothing legal, or cut an answer off.

    Raises:
        TrieautoError: it names the parameter.
    """
    if argument_of(params) is None:
        return
    if params.structured_outputs:
        raise TrieautoError(f"structured_outputs cannot be used with {ARGUMENT}: a request has one or the other")
    check_conflicts(params, ARGUMENT)


def check_conflicts(params: Any, constraint: str) -> None:
    """Refuse what could leave nothing legal, or cut an answer off.

    Args:
        params: vLLM's ``SamplingParams``.
        constraint: the parameter by which the request is constrained, for messages.

    Raises:
        TrieautoError: it names the parameter.
    """
    conflicts = {
        "stop": (params.stop, "an answer would be cut off where a stop string occurs in it"),
        "bad_words": (params.bad_words, "they could leave nothing that is legal"),
        "allowed_token_ids": (params.allowed_token_ids, "they could leave nothing that is legal"),
        "thinking_token_budget": (params.thinking_token_budget is not None, "the answer begins at once"),
        "repetition_detection": (params.repetition_detection, "an answer would be cut off where it repeats itself"),
        "trace_decode_token_ids": (params.trace_decode_token_ids, "its tokens are given already"),
    }
    for name, (value, reason) in conflicts.items():
        if value:
            raise TrieautoError(f"{name} cannot be used with {constraint}: {reason}")
    for token_id, bias in (params.logit_bias or {}).items():
        if not math.isfinite(bias):
            raise TrieautoError(f"logit_bias of token {token_id} is {bias}, which could leave nothing that is legal")


def check_engine(vllm_config: Any) -> None:
    """Refuse constraints in an engine that would not apply them exactly.

    Raises:
        TrieautoError: it says why, and what helps.
    """
    parser = vllm_config.structured_outputs_config.reasoning_parser
    if parser:
        raise TrieautoError(
            f"the server has a reasoning parser ({parser}), by which the answer would be taken for thinking: "
            f"{ARGUMENT} constrains an answer from its first token on. (structured_outputs think first, with "
            "TRIEAUTO_VLLM_BACKEND=1)"
        )
    if vllm_config.speculative_config is not None:
        raise TrieautoError(f"vLLM does not call logits processors when it decodes speculatively, so {ARGUMENT} cannot")
    runs_ahead = vllm_config.scheduler_config.async_scheduling and not vllm_config.use_v2_model_runner
    if runs_ahead and not vllm_config.model_config.logits_processors:
        raise TrieautoError(
            "with asynchronous scheduling this model runner shows tokens to logits processors only if it was started "
            "with --logits-processors trieauto.integrations.vllm:TrieLogitsProcessor (or --no-async-scheduling)"
        )


def admit(request: Any, vllm_config: Any, tokenizer: Any) -> None:
    """Admit an ``EngineCoreRequest``, whose SamplingParams are its own, and say in them what was admitted. Compiles
    the constraint, if it is not there.

    Raises:
        BudgetError: no answer fits ``max_tokens``, or the context; it names the fewest tokens.
        TrieautoError: whatever else is wrong with the request.
    """
    params = request.sampling_params
    argument = argument_of(params)
    if argument is None:
        return
    from trieauto.serving import read_request

    from ._vllm_stores import store_of

    check_engine(vllm_config)
    if request.resumable:
        raise TrieautoError(f"a request that goes on after its answer (resumable) cannot have {ARGUMENT}")
    kind, text = read_request(argument)
    store = store_of(vllm_config.model_config, tokenizer)
    length = len(request.prompt_token_ids if request.prompt_token_ids is not None else request.prompt_embeds)
    budget = min(params.max_tokens, vllm_config.model_config.max_model_len - length)
    check_tokens(params, store, AdmittedRequest(kind, text, budget, False))
    may_end = shows_everything(params, store.vocabulary, tokenizer)
    replace_argument(params, AdmittedRequest(kind, text, budget, may_end))
    if may_end:
        # vLLM leaves out the text of the last token of an answer that was stopped, whatever token it is, unless:
        params.include_stop_str_in_output = True


def check_tokens(params: Any, store: ConstraintStore, wanted: AdmittedRequest) -> None:
    """Refuse numbers of tokens that no answer has, and stop tokens that are parts of answers.

    Raises:
        BudgetError: no answer fits the budget; it names the fewest tokens.
        TrieautoError: it names the parameter.
    """
    from trieauto.serving.messages import too_few_tokens, with_text

    needed = store.get(wanted.kind, wanted.text).min_tokens
    if needed > wanted.budget:
        raise BudgetError(needed, wanted.budget, too_few_tokens(needed, wanted.budget, "max_tokens"))
    if params.min_tokens > needed:
        tokens = "1 token" if needed == 1 else f"{needed:,} tokens"
        raise TrieautoError(
            f"min_tokens is {params.min_tokens:,}, but there are answers of {tokens}, "
            "after which nothing would be legal"
        )
    vocabulary = store.vocabulary
    for token_id in with_text(params.stop_token_ids or (), vocabulary):
        raise TrieautoError(
            f"stop token id {token_id:,} stands for the text {shorten(vocabulary.tokens[token_id])}: "
            "an answer would be cut off there"
        )


def shows_everything(params: Any, vocabulary: Vocabulary, tokenizer: Any) -> bool:
    """Whether including the text of the last token shows no more than the answer, if that token is a stop token."""
    if params.include_stop_str_in_output or not params.detokenize:
        return True
    return params.skip_special_tokens and _are_skipped(tokenizer, vocabulary.stop_token_ids)


@functools.lru_cache(maxsize=8)
def _are_skipped(tokenizer: Any, stop_ids: tuple[int, ...]) -> bool:
    """Whether stop tokens are special ones, which have no text for vLLM."""
    return not tokenizer.decode(list(stop_ids), skip_special_tokens=True)
