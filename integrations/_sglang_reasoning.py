"""Models that think before they answer: ``--reasoning-parser`` with the backend ``trie``."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any

from sglang.srt.constrained.base_grammar_backend import BaseGrammarBackend, BaseGrammarObject, InvalidGrammarObject
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend, ReasonerGrammarObject
from sglang.srt.parser.reasoning_parser import ReasoningParser

from trieauto import Matcher
from trieauto.serving import ThinkingMatcher

from ._sglang_backend import TrieGrammarBackend
from ._sglang_grammar import TrieGrammar, TrieMethods, fill_batch

logger = logging.getLogger("trieauto")


def with_reasoning(backend: TrieGrammarBackend, tokenizer: Any, serving: Any) -> BaseGrammarBackend:
    """The backend for a server with a reasoning parser. (SGLang wraps its own backends so, but not those of others.)"""
    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        logger.warning(
            "trieauto: the tokenizer has no tokens for %r, so answers are constrained from their first token on",
            parser.detector.think_end_token,
        )
        return backend
    return TrieReasonerBackend(backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking)


class TrieReasonerBackend(ReasonerGrammarBackend):  # type: ignore[misc]
    """SGLang's backend for reasoning models, with thinking that is closed in time before answers of ours."""

    def get_cached_or_future_value(
        self, key: tuple[str, str], require_reasoning: bool
    ) -> tuple[BaseGrammarObject | Future[BaseGrammarObject], bool]:
        """A grammar that is there, or one that is being compiled."""
        grammar = None if self._is_framed(key[0].partition(":")[0]) else self.grammar_backend.ready(key)
        if grammar is not None:
            is_unwrapped = key[0] == "full_assistant_ebnf"
            return (grammar if is_unwrapped else self._make_grammar_object(grammar, require_reasoning)), True
        found: tuple[Any, bool] = super().get_cached_or_future_value(key, require_reasoning)
        return found

    def set_cache(self, key: tuple[str, str], value: BaseGrammarObject) -> None:
        """Keep what XGrammar compiled; the rest is kept elsewhere."""
        key_type, text = key
        if not isinstance(value, TrieMethods) and not self.grammar_backend._names_sets(
            key_type.partition(":")[0], text
        ):
            super().set_cache(key, value)

    def reset(self) -> None:
        """Drop all grammars."""
        super().reset()
        self.grammar_backend.reset()

    def _init_value_dispatch(self, key: tuple[str, str], reasoning: bool) -> BaseGrammarObject | None:
        key_type, _, variant = key[0].partition(":")
        if not self._is_framed(key_type):
            return super()._init_value_dispatch(key, reasoning)
        # The answer of such a model stands in a frame of tokens, which XGrammar's grammar then describes, too.
        other = self.grammar_backend.other
        if other is None or self.grammar_backend._names_sets(key_type, key[1]):
            return InvalidGrammarObject(
                "the answers of this model stand in a frame of tokens, which trieauto does not know"
            )
        logger.warning("trieauto: XGrammar serves %s: the answers of this model stand in a frame of tokens", key_type)
        grammar = other._init_value_dispatch((key_type, key[1]), reasoning)
        if isinstance(grammar, InvalidGrammarObject):
            return grammar
        return self._frame_answer(grammar, variant) or self._make_grammar_object(grammar, reasoning)

    def _make_grammar_object(self, grammar: BaseGrammarObject | None, reasoning: bool) -> ReasonerGrammarObject:
        if isinstance(grammar, TrieGrammar):
            grammar.constraint.enough_tokens  # noqa: B018 - found here, and not when the scheduler first needs it
        wrapped = super()._make_grammar_object(grammar, reasoning)
        wrapped.__class__ = ThinkingGrammar if isinstance(grammar, TrieGrammar) else DelegatedThinkingGrammar
        return wrapped


class DelegatedThinkingGrammar(ReasonerGrammarObject):  # type: ignore[misc]
    """SGLang's thinking before XGrammar's grammar, which also fills our rows of its batch in one call."""

    fill_vocab_mask_batched = staticmethod(fill_batch)

    def copy(self) -> DelegatedThinkingGrammar:
        """As SGLang's."""
        copied = super().copy()
        copied.__class__ = DelegatedThinkingGrammar
        return copied  # type: ignore[no-any-return]


class ThinkingGrammar(TrieMethods, ReasonerGrammarObject):  # type: ignore[misc]
    """Thinking before a grammar of ours: any token but stop tokens, until the end of thinking; it is forced in time.

    SGLang says whether a request thinks, what ends its thinking and how long it may take after making this object, so
    the matcher is made when it is first needed.
    """

    _walker: Matcher | ThinkingMatcher | None = None

    @property
    def walker(self) -> Matcher | ThinkingMatcher:
        """Where this request stands.

        Raises:
            TrieautoError: what ends thinking cannot, because it is a stop token, or no token at all.
        """
        if self._walker is None:
            matcher = self.grammar.matcher
            if self._is_thinking() and not self.reasoning_in_grammar:
                self._walker = ThinkingMatcher(
                    matcher,
                    self.think_end_ids,
                    answer_tokens=self.grammar.constraint.enough_tokens or 0,
                    max_thinking_tokens=self.max_think_tokens if self.max_think_tokens >= 0 else None,
                    excluded_token_ids=self.think_excluded_token_ids or (),
                )
            else:
                self._walker = matcher
        return self._walker

    @property
    def budget_includes(self) -> str:  # type: ignore[override]
        """For messages about budgets: what is counted beside the answer."""
        if not isinstance(self._walker, ThinkingMatcher):
            return ""
        count = len(self.think_end_ids)
        return f" (of which {'1 token ends' if count == 1 else f'{count} tokens end'} the thinking before it)"

    def maybe_init_reasoning(self, reasoning: bool) -> None:
        """Say whether this request thinks, before its first token."""
        super().maybe_init_reasoning(reasoning)
        self._walker = None

    @property
    def finished(self) -> bool:
        """Whether the request is finished."""
        return self._finished

    @finished.setter
    def finished(self, finished: bool) -> None:
        self._finished = finished

    def copy(self) -> ThinkingGrammar:
        """The same grammar before its first token, and without a budget: for another request."""
        copied = super().copy()
        copied.__class__ = ThinkingGrammar
        copied.current_token = None
        return copied  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<ThinkingGrammar: {self._walker!r} of {self.grammar!r}>"
