"""Think, then answer: free text first, then a value of the set, within one budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from trieauto import Constraint
from trieauto.budgets import checked_budget
from trieauto.errors import BudgetError, TrieautoError, UnsupportedError
from trieauto.serving.thinking import most_thinking_tokens
from trieauto.strategies import prompts

from ._hf_batches import Batched, checked_or_none
from ._hf_budgets import context_length, named
from ._hf_choice import refused
from ._hf_chooser import Chooser
from ._hf_free_text import FreeText, write_freely
from ._hf_messages import shown
from ._hf_options import checked
from ._hf_prompts import Prompt, encode
from ._hf_strategies import Ask, Decision, Value, as_message, asked, checked_texts, decision

AskAfterThinking: TypeAlias = Callable[[str, Sequence[Value], str], Prompt]
"""A text, the options and what the model thought to the prompt that asks for one of the options."""

MOST_THINKING = 300
"""Tokens, as in the trie paper (appendix C.1)."""


class ThinkingChooser(Batched[Decision]):
    """Lets a model think aloud, then asks for a value (the paper's think-then-answer, its appendix C.1).

    >>> chooser = ThinkingChooser(model, tokenizer, values, max_new_tokens=200)
    >>> decision = chooser("I lost my card")
    >>> decision.thoughts, decision.value

    Two calls: what the model thinks is free text, and the second prompt quotes it; only that call is constrained. One
    budget covers both (law 6 of the design): thinking ends where what remains just covers the answer, so with any
    budget that has room for an answer there is one. It leaves room for the longest value if the budget has that much,
    so that thinking takes no value out of reach. A stop token ends thinking too, and counts.

    Args:
        model: a decoder.
        tokenizer, generate_arguments: as for ``Chooser``; the arguments are for the answer.
        values: the set, an ``Automaton`` of values, or a ``Constraint`` compiled for this tokenizer.
        think: the text and the options to the prompt of the first call.
        ask: the text, the options and the thoughts to the prompt of the second call. By default ``prompts.think`` and
            ``prompts.select_after_thinking``, in a chat message if the tokenizer has a chat template.
        max_thinking_tokens: thinking ends after so many tokens, if not before.
        max_new_tokens: the budget of thinking and answer together, in tokens; None for none.
        thinking_arguments: of ``generate``, for thinking; greedy by default.

    Raises:
        BudgetError: no value has so few tokens; it names the fewest.
        TrieautoError, UnsupportedError, VocabularyError: as ``Chooser`` does; an encoder-decoder.

    Where thoughts and the second prompt would not fit the model's context, thinking ends sooner.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        values: Iterable[Value] | Constraint,
        *,
        think: Ask | None = None,
        ask: AskAfterThinking | None = None,
        max_thinking_tokens: int = MOST_THINKING,
        max_new_tokens: int | None = None,
        thinking_arguments: Mapping[str, Any] | None = None,
        **generate_arguments: Any,
    ) -> None:
        for name in ("scores", "scores_tolerance", "fast_forward"):
            if name in generate_arguments:
                raise UnsupportedError(f"{name} is not for a strategy of several calls: it is for a Chooser alone")
        self._chooser = Chooser(model, tokenizer, values, **generate_arguments)
        if model.config.is_encoder_decoder:
            raise UnsupportedError(f"{type(model).__name__} is an encoder-decoder: only decoders think aloud")
        if ask is not None and not callable(ask):
            raise TrieautoError(f"a question is asked by a function of text, options and thoughts, not {shown(ask)}")
        self._model = model
        self._tokenizer = tokenizer
        self._options = self._chooser.options
        self._think = asked(think, prompts.think, tokenizer)
        after = prompts.select_after_thinking
        self._ask: AskAfterThinking = ask or (partial(as_message, after) if tokenizer.chat_template else after)
        self._thinking_arguments = checked(thinking_arguments or {})
        with named("max_thinking_tokens"):
            self._most = checked_budget(max_thinking_tokens)
        with named("max_new_tokens"):
            self._max_new_tokens = checked_or_none(max_new_tokens)
            self._chooser.constraint.matcher(self._max_new_tokens)

    def __repr__(self) -> str:
        return f"<ThinkingChooser: at most {self._most} tokens of thinking, then {self._chooser!r}>"

    def _choose(self, texts: Sequence[Prompt], budgets: Sequence[int | None]) -> list[Decision]:
        own = [self._max_new_tokens if budget is None else budget for budget in budgets]
        results: dict[int, Decision] = {}
        running: dict[int, str] = {}
        for i, (text, budget) in enumerate(zip(checked_texts(texts), own, strict=True)):
            try:
                self._chooser.constraint.matcher(budget)
                running[i] = text
            except BudgetError as error:
                results[i] = decision([refused(error)])
        encoded = {i: encode(self._tokenizer, self._think(text, self._options)) for i, text in running.items()}
        thoughts = write_freely(
            self._model,
            self._tokenizer,
            list(encoded.values()),
            [self._limit(text, own[i], len(encoded[i])) for i, text in running.items()],
            self._chooser.stop_token_ids,
            **self._thinking_arguments,
        )
        answers = self._chooser.choose_among(
            [self._chooser.constraint] * len(running),
            [
                self._ask(text, self._options, thought.text.strip())
                for text, thought in zip(running.values(), thoughts, strict=True)
            ],
            [_after(own[i], thought) for i, thought in zip(running, thoughts, strict=True)],
        )
        for i, answer, thought in zip(running, answers, thoughts, strict=True):
            results[i] = decision([answer], thought.text, thought.num_tokens)
        return [results[i] for i in range(len(texts))]

    def _limit(self, text: str, budget: int | None, num_prompt_tokens: int) -> int:
        """How many tokens of thinking a prompt's budget and the model's context have room for."""
        constraint = self._chooser.constraint
        answer = constraint.enough_tokens or 0
        limits = [self._most]
        if budget is not None:
            limits.append(most_thinking_tokens(budget, 0, answer))
        context = context_length(self._model.config)
        if context is not None:
            asked_at_once = encode(self._tokenizer, self._ask(text, self._options, ""))
            limits += [context - num_prompt_tokens, most_thinking_tokens(context - len(asked_at_once), 0, answer)]
        return max(0, min(limits))


def _after(budget: int | None, thought: FreeText) -> int | None:
    return None if budget is None else budget - thought.num_tokens
