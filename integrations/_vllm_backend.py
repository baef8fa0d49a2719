"""Structured outputs in vLLM's engine: what trieauto serves is compiled and followed here, the rest is vLLM's own."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from pkgutil import resolve_name
from typing import Any

import torch
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from trieauto import Constraint
from trieauto.errors import TrieautoError

from ._vllm_grammar import TrieGrammar, fill_batch
from ._vllm_stores import store_of
from ._vllm_structured import BACKEND, constraint_of_key, only_prefills
from ._vllm_thinking import tokens_that_end_thinking, walker_for

logger = logging.getLogger("trieauto")
OTHERS = {
    "xgrammar": "vllm.v1.structured_output.backend_xgrammar:XgrammarBackend",
    "guidance": "vllm.v1.structured_output.backend_guidance:GuidanceBackend",
    "outlines": "vllm.v1.structured_output.backend_outlines:OutlinesBackend",
}
"""vLLM's own backends, by the names that its front end chooses from."""


class TrieBackend(StructuredOutputBackend):  # type: ignore[misc]
    """Makes grammars from a ``ConstraintStore``."""

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        """Reads the tokenizer.

        Raises:
            TrieautoError: a tokenizer that cannot be read exactly, or a directory of sets that is none.
        """
        super().__init__(vllm_config, tokenizer, vocab_size)
        self.store = store_of(vllm_config.model_config, tokenizer)

    def constraint(self, request_type: StructuredOutputOptions, grammar_spec: str) -> Constraint:
        """What a request asks for, compiled if it is not there.

        Raises:
            TrieautoError: what ``ConstraintStore.get`` raises.
        """
        return self.store.get(*constraint_of_key(request_type, grammar_spec))

    def compile_grammar(
        self, request_type: StructuredOutputOptions, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> TrieGrammar:
        """The grammar of a request, without a budget. (Stop tokens are the vocabulary's; others were refused.)

        Raises:
            TrieautoError: what ``ConstraintStore.get`` raises.
        """
        return TrieGrammar(self.constraint(request_type, grammar_spec).matcher())

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """A bitmask with every token allowed: int32[max_num_seqs, ceil(vocab_size / 32)]."""
        return torch.full((max_num_seqs, (self.vocab_size + 31) // 32), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Drop all constraints."""
        self.store.clear()


class TrieStructuredOutputManager(StructuredOutputManager):  # type: ignore[misc]
    """vLLM's manager of grammars with a backend more.

    Unlike vLLM's, which uses the backend of its first request for all, it has each backend that a request was admitted
    for, so that ours and others serve requests of the same batch.
    """

    _backends: dict[str, StructuredOutputBackend]
    _ours: TrieBackend
    _grammar_bitmask: torch.Tensor | None

    def add_ours(self) -> None:
        """What is to be done after ``__init__``, which is vLLM's.

        Raises:
            TrieautoError: as for ``TrieBackend``.
        """
        self.backend = self._ours = self._new_backend(TrieBackend)
        self._backends = {BACKEND: self._ours}

    def _new_backend(self, cls: Any) -> Any:
        vocab_size = self.vllm_config.model_config.get_vocab_size()
        return cls(self.vllm_config, tokenizer=self.tokenizer, vocab_size=vocab_size)

    # Compiling

    def grammar_init(self, request: Any) -> None:
        """Begin to compile a request's grammar; it is there at once if its constraint is compiled already. (One thread
        calls this; the scheduler has another.)"""
        asked = request.structured_output_request
        if asked is None:
            return
        name = asked.params._backend
        if name not in self._backends:
            if name not in OTHERS:
                raise TrieautoError(f"request {request.request_id} was not admitted by vLLM's front end")
            self._backends[name] = self._new_backend(resolve_name(OTHERS[name]))
        if name == BACKEND and self._ours.store.peek(*constraint_of_key(*asked.structured_output_key)) is not None:
            asked.grammar = self._made_now(request)
        elif self._use_async_grammar_compilation:
            asked.grammar = self.executor.submit(self._create_grammar, request)
        else:
            asked.grammar = self._made_now(request)

    def _made_now(self, request: Any) -> Future[StructuredOutputGrammar]:
        """A grammar, or the error by which the scheduler will end the request."""
        made: Future[StructuredOutputGrammar] = Future()
        try:
            made.set_result(self._create_grammar(request))
        except Exception as error:
            made.set_exception(error)
        return made

    def _create_grammar(self, request: Any) -> StructuredOutputGrammar:
        asked = request.structured_output_request
        try:
            if asked.params._backend == BACKEND:
                return self._grammar(request, self._ours.constraint(*asked.structured_output_key))
            return self._backends[asked.params._backend].compile_grammar(
                *asked.structured_output_key, stop_token_ids=request.sampling_params.all_stop_token_ids
            )
        except Exception as error:
            logger.error("trieauto: request %s is ended, for its grammar cannot be made: %s", request.request_id, error)
            raise

    def _grammar(self, request: Any, constraint: Constraint) -> TrieGrammar:
        asked = request.structured_output_request
        if only_prefills(request.sampling_params):
            return TrieGrammar(constraint.matcher())
        walker = walker_for(constraint, self._tokens_that_end_thinking(request), self._budget(request))
        asked.reasoning_ended = True  # for vLLM: our grammar knows what is thinking, and ends it
        request.trieauto_matcher = walker.fork()  # the scheduler's, by which it sees the end
        return TrieGrammar(walker)

    def _budget(self, request: Any) -> int:
        """How many tokens vLLM lets a request generate, a stop token included."""
        left = self.vllm_config.model_config.max_model_len - request.num_prompt_tokens
        return int(min(request.max_tokens, left))

    def _tokens_that_end_thinking(self, request: Any) -> list[int]:
        """None if a request does not think before it answers."""
        asked = request.structured_output_request
        parser = None if self.enable_in_reasoning or asked.reasoning_ended else self._get_reasoner(request)
        if parser is None:
            return []
        if asked.reasoning_ended is None and parser.is_reasoning_end(request.prompt_token_ids or []):
            return []
        return tokens_that_end_thinking(parser, self.tokenizer)

    # Masks

    def grammar_bitmask(
        self,
        requests: dict[str, Any],
        structured_output_request_ids: list[str],
        scheduled_spec_decode_tokens: dict[str, list[int]],
    ) -> Any:
        """The masks of a batch: int32[rows, words]. One kernel call for all of ours; vLLM's own way, row by row, where
        tokens were drafted, or where none is ours."""
        asked = [requests[name].structured_output_request for name in structured_output_request_ids]
        is_drafted = any(map(scheduled_spec_decode_tokens.get, structured_output_request_ids))
        if is_drafted or not any(isinstance(one.grammar, TrieGrammar) for one in asked):
            return super().grammar_bitmask(requests, structured_output_request_ids, scheduled_spec_decode_tokens)
        if self._grammar_bitmask is None:
            rows = self.vllm_config.scheduler_config.max_num_seqs * (1 + self.vllm_config.num_speculative_tokens)
            self._grammar_bitmask = self._ours.allocate_token_bitmask(rows)
        ours = []
        for row, (name, one) in enumerate(zip(structured_output_request_ids, asked, strict=True)):
            if isinstance(one.grammar, TrieGrammar):
                ours.append((row, one.grammar))
            else:
                is_bound = self._get_constraint_bounds(requests[name], ()).constraint_start == 0
                self._fill_bitmasks([(one.grammar, row, is_bound)])
        fill_batch(ours, self._grammar_bitmask)
        return self._grammar_bitmask.numpy()[: len(asked)]

    def clear_backend(self) -> None:
        """Release all backends."""
        self.backend = None
        super().clear_backend()
        for backend in self._backends.values():
            backend.destroy()
        self._backends.clear()
