"""The grammar objects of SGLang's requests: ours, and XGrammar's beside them in the same batch."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject, GrammarRow, GrammarStats
from sglang.srt.constrained.xgrammar_backend import XGrammarGrammar
from sglang.srt.utils.common import is_pin_memory_available

from trieauto import Constraint, Matcher, fill_next_token_bitmasks
from trieauto.errors import shorten
from trieauto.serving import ThinkingMatcher
from trieauto.serving.messages import with_text

from . import _masks

logger = logging.getLogger("trieauto")
_buffers = _masks.MaskBuffers(is_pin_memory_available())


def new_mask(rows: int, vocab_size: int) -> torch.Tensor:
    """A new bitmask with every token allowed, pinned where that is possible."""
    return _masks.new_mask(rows, vocab_size, is_pin_memory_available())


def fill_batch(entries: Sequence[GrammarRow], vocab_mask: torch.Tensor) -> None:
    """Fill the rows of a batch: ours in one kernel call, others by their own grammars. Other rows stay as they were."""
    matchers: list[Matcher] = []
    rows: list[int] = []
    for row, grammar in entries:
        matcher = grammar.matcher_of_row if isinstance(grammar, TrieMethods) else None
        if matcher is None:
            grammar.fill_vocab_mask(vocab_mask, row)
        else:
            matchers.append(matcher)
            rows.append(row)
    if matchers:
        fill_next_token_bitmasks(matchers, vocab_mask, rows)


def apply_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
    """Set the logits of illegal tokens to minus infinity: on devices by XGrammar's kernels. (Its kernel for CPUs takes
    a third of a small model's step, and in version 0.2.7 writes one logit beyond a row whose last tokens are all
    legal.)"""
    if logits.device.type == "cpu":
        _masks.mask_on_cpu(logits, vocab_mask.numpy())
    else:
        XGrammarGrammar.apply_vocab_mask(None, logits, vocab_mask)


def keep_answers_whole(params: Any, walker: Matcher | ThinkingMatcher) -> None:
    """Take out of a request's parameters what would cut its answer off (stop strings, and stop tokens that stand for
    text), or leave nothing legal after it (``min_new_tokens``). They may be those of a chat template or a server's
    defaults, so they are no reason to refuse it.

    Args:
        params: SGLang's ``SamplingParams`` of this request alone.
        walker: before the first token.
    """
    params.min_new_tokens = min(params.min_new_tokens, walker.min_tokens_to_finish)
    dropped: list[object] = [*params.stop_strs, *params.stop_regex_strs]
    params.stop_strs, params.stop_regex_strs = [], []
    if params.stop_token_ids:
        matcher = walker if isinstance(walker, Matcher) else walker.answer
        spelled = with_text(params.stop_token_ids, matcher.constraint.vocabulary)
        params.stop_token_ids = params.stop_token_ids.difference(spelled) or None
        dropped += spelled
    if dropped:
        _warn_of_stops()


@functools.cache
def _warn_of_stops() -> None:
    logger.warning("trieauto: stop strings and stop tokens with text do not end its answers, which are always whole")


class TrieMethods:
    """What grammar objects of ours do for SGLang, by a matcher that says which tokens are legal."""

    current_token: int | None
    budget_includes = ""
    """For messages about budgets: what is counted beside the answer."""

    @property
    def walker(self) -> Matcher | ThinkingMatcher:
        """Where this request stands."""
        raise NotImplementedError

    @property
    def matcher_of_row(self) -> Matcher | None:
        """The matcher whose mask is this request's row, for batched fills; None if there is no single one."""
        walker = self.walker
        if isinstance(walker, Matcher):
            return walker
        return None if walker.is_thinking else walker.answer

    def set_trie_budget(self, max_tokens: int) -> None:
        """How many tokens this request has, a stop token included.

        Raises:
            BudgetError: no answer has so few.
        """
        self.walker.set_budget(max_tokens)

    def keep_answers_whole(self, params: Any) -> None:
        """Let nothing else end this request's answer; see the function of this name."""
        keep_answers_whole(params, self.walker)

    def is_whole_after(self, output_ids: Sequence[int]) -> bool:
        """Whether the answer is whole and has no continuation after these tokens, of which the last ones may not have
        been accepted yet. Changes nothing."""
        walker = self.walker
        taken = 0
        try:
            for token_id in output_ids[walker.num_accepted :]:
                if walker.is_terminated() or not walker.accept_token(int(token_id)):
                    return False
                taken += 1
            return walker.is_terminated() or walker.is_complete
        except ValueError:
            return False  # an id outside the vocabulary; accept_token says so
        finally:
            walker.rollback(taken)

    def accept_token(self, token: int) -> None:
        """Take a token.

        Raises:
            ValueError: it is not legal; SGLang aborts the request. (Tokens after the stop token are ignored.)
        """
        walker = self.walker
        if walker.is_terminated():
            return
        self.current_token = token
        if not walker.accept_token(token):
            raise ValueError(f"token {token} is not legal after {walker.num_accepted} tokens of {self!r}")

    def rollback(self, k: int) -> None:
        """Take back tokens, a stop token too."""
        self.walker.rollback(k)

    def reset(self) -> None:
        """Back to before the first token; the budget has the tokens again."""
        self.walker.reset()
        self.current_token = None

    def is_terminated(self) -> bool:
        """Whether a stop token was accepted."""
        return self.walker.is_terminated()

    # Masks

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """A bitmask for a batch, with every token allowed."""
        return _buffers.rows(batch_size, vocab_size).fill_(-1)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the legal tokens into one row."""
        self.walker.fill_next_token_bitmask(vocab_mask, idx)

    fill_vocab_mask_batched = staticmethod(fill_batch)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow every token."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """The bitmask on the device."""
        return vocab_mask.to(device, non_blocking=True)

    apply_vocab_mask = staticmethod(apply_mask)

    # What nothing calls any more, but the interface has

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that every continuation begins with, if there is any."""
        walker = self.walker
        if isinstance(walker, ThinkingMatcher):
            if walker.is_thinking:
                return None
            walker = walker.answer
        text = walker.jump_forward_string().decode(errors="ignore")
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text, and no state."""
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """Exchange the tokens taken so far for others.

        Raises:
            ValueError: one of them is not legal.
        """
        shared = 0
        for old, new in zip(old_output_ids, new_output_ids, strict=False):
            if old != new:
                break
            shared += 1
        self.rollback(len(old_output_ids) - shared)
        for token_id in new_output_ids[shared:]:
            self.accept_token(token_id)


class TrieGrammar(TrieMethods, BaseGrammarObject):  # type: ignore[misc]
    """A request's way through a constraint."""

    def __init__(self, constraint: Constraint, kind: str, text: str, stats: GrammarStats | None = None) -> None:
        super().__init__()
        self.constraint = constraint
        self.kind = kind
        self.text = text
        self.grammar_stats = GrammarStats(dispatch_type=kind) if stats is None else stats
        self.matcher = constraint.matcher()

    @property
    def walker(self) -> Matcher | ThinkingMatcher:
        return self.matcher

    def copy(self) -> TrieGrammar:
        """The same grammar before its first token, and without a budget: for another request."""
        stats = replace(self.grammar_stats, is_cache_hit=True, tree_traversal_time=[])
        return TrieGrammar(self.constraint, self.kind, self.text, stats)

    def __repr__(self) -> str:
        return f"<TrieGrammar: {self.kind} {shorten(self.text)}, {self.matcher!r}>"


class DelegatedGrammar(XGrammarGrammar):  # type: ignore[misc]
    """XGrammar's grammar, which also fills our rows of its batch in one call, and applies masks as we do."""

    fill_vocab_mask_batched = staticmethod(fill_batch)
    apply_vocab_mask = staticmethod(apply_mask)

    def copy(self) -> DelegatedGrammar:
        """As XGrammar's."""
        return delegated(super().copy())  # type: ignore[no-any-return]


def delegated(grammar: Any) -> Any:
    """A grammar of XGrammar's, as it is, but for how a batch is filled."""
    if type(grammar) is XGrammarGrammar:
        grammar.__class__ = DelegatedGrammar
    return grammar
