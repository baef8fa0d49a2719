"""Strategies that call a model more than once: groups first, or a shortlist first."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

from transformers import PreTrainedModel, PreTrainedTokenizerBase

import trieauto
from trieauto import Constraint, Vocabulary
from trieauto.errors import BudgetError, EmptyConstraintError, TrieautoError, UnsupportedError
from trieauto.strategies import Cascade, Hierarchy, prompts

from ._hf_batches import Batched, checked_or_none
from ._hf_budgets import named
from ._hf_choice import Choice, num_steps, refused
from ._hf_chooser import Chooser, compiled, model_vocabulary, values_of
from ._hf_messages import shown
from ._hf_prompts import Prompt

Value: TypeAlias = str | bytes
Ask: TypeAlias = Callable[[str, Sequence[Value]], Prompt]
"""A text and the options to the prompt that asks for one of them: plain text or chat messages."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a strategy chose, after all its calls.

    Attributes:
        value: the chosen value, as it was given; None if the prompt was refused.
        log_probability: as in ``Choice``, of the last call's answer.
        num_forward_passes: of all calls together, thinking included.
        calls: the constrained calls, in order; what each of them chose.
        thoughts: what the model wrote before it answered, if it was let think.
        num_thinking_tokens: how many tokens that took, a stop token included.
        ended: as in ``Choice``; "completed under the budget" if that holds for any of the calls.
        error: the tokens needed and the tokens given, if the prompt was refused.
    """

    value: Value | None
    log_probability: float
    num_forward_passes: int
    calls: tuple[Choice, ...]
    thoughts: str | None = None
    num_thinking_tokens: int = 0
    ended: Literal["complete", "completed under the budget", "refused"] = "complete"
    error: BudgetError | None = None


def decision(calls: Sequence[Choice], thoughts: str | None = None, num_thinking_tokens: int = 0) -> Decision:
    """The result of calls, of which the last one says the value or was refused. One pass for each thinking token."""
    last = calls[-1]
    assert not isinstance(last.value, tuple)  # strategies choose one value
    is_limited = any(call.ended == "completed under the budget" for call in calls)
    return Decision(
        last.value,
        last.log_probability,
        num_thinking_tokens + sum(call.num_forward_passes for call in calls),
        tuple(calls),
        thoughts,
        num_thinking_tokens,
        "completed under the budget" if is_limited and last.error is None else last.ended,
        last.error,
    )


def asked(ask: Ask | None, default: Ask, tokenizer: PreTrainedTokenizerBase) -> Ask:
    """What words the questions: the caller's own, or one of ours, which becomes a chat message if the model chats."""
    if ask is not None:
        if not callable(ask):
            raise TrieautoError(f"a question is asked by a function of a text and options, not {shown(ask)}")
        return ask
    return partial(as_message, default) if tokenizer.chat_template is not None else default


def as_message(ask: Callable[..., Prompt], *arguments: Any) -> Prompt:
    return [{"role": "user", "content": ask(*arguments)}]


def checked_texts(texts: Sequence[Prompt]) -> list[str]:
    """Strategies word their prompts themselves.

    Raises:
        UnsupportedError: something else than a text.
    """
    for text in texts:
        if not isinstance(text, str):
            raise UnsupportedError(f"a strategy takes the text to be asked about, not {shown(text)}")
    return [text for text in texts if isinstance(text, str)]


def subset_constraint(values: Iterable[Value], vocabulary: Vocabulary, options: Mapping[str, Any]) -> Constraint:
    """The constraint of some values of a set. ``options``: of ``compile``."""
    return compiled(trieauto.choices(values), vocabulary, options)


class HierarchicalChooser(Batched[Decision]):
    """Asks twice: which group, then which value of it (hierarchical rewriting, appendix I of the trie paper).

    >>> chooser = HierarchicalChooser(model, tokenizer, Hierarchy.by_similarity(values))
    >>> chooser("I lost my card").value
    'lost_or_stolen_card'

    Prompts are texts: the strategy words the questions about them, as chat messages if the model chats.

    Both calls are constrained, so the answer is always a value of the set; prompts of a batch may go on in different
    groups. One budget covers both calls. It leaves no value out as long as it has room for the longest name and the
    longest value; below that it keeps groups out for which it has no room.

    Args:
        model, tokenizer, generate_arguments: as for ``Chooser``.
        hierarchy: the groups.
        ask_group: the text and the groups' names to the prompt of the first call. (``prompts.select_group`` shows
            some values of each group too.)
        ask_value: the text and the values of the group to the prompt of the second call. By default both are
            ``prompts.select``, in a chat message if the tokenizer has a chat template.
        max_new_tokens: the budget of both answers together, in tokens; None for none.
        compile_options: of ``trieauto.compile``, for all constraints. ``tokenization`` is as for ``Chooser`` if it is
            left out: canonical where the tokenizer writes every value, and the other options are for it too.

    Raises:
        BudgetError: the budget has no room for any group and value; it names the fewest tokens.
        TrieautoError, UnsupportedError, VocabularyError: as ``Chooser`` does, and ``compile`` of names and values.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        hierarchy: Hierarchy,
        *,
        ask_group: Ask | None = None,
        ask_value: Ask | None = None,
        max_new_tokens: int | None = None,
        compile_options: Mapping[str, Any] | None = None,
        **generate_arguments: Any,
    ) -> None:
        if not isinstance(hierarchy, Hierarchy):
            raise TrieautoError(f"expected a Hierarchy of the values, not {shown(hierarchy)}")
        self._chooser, self._subset = chooser_for(
            model, tokenizer, hierarchy.names, compile_options or {}, generate_arguments
        )
        self.hierarchy = hierarchy
        self._groups = {name: self._of_group(name, values) for name, values in hierarchy.groups.items()}
        self._ask_group = asked(ask_group, prompts.select, tokenizer)
        self._ask_value = asked(ask_value, prompts.select, tokenizer)
        # By the tokens that are kept for the value: the groups that have a value within so many.
        self._names_within: dict[int, Constraint] = {}
        with named("max_new_tokens"):
            self._max_new_tokens = checked_or_none(max_new_tokens)
            self._plan(self._max_new_tokens)

    def _of_group(self, name: str, values: Sequence[Value]) -> Constraint:
        try:
            return self._subset(values)
        except EmptyConstraintError as error:
            raise EmptyConstraintError(f"group {shown(name)}: {error}") from None

    def __repr__(self) -> str:
        return f"<HierarchicalChooser with {self.hierarchy!r}>"

    def _choose(self, texts: Sequence[Prompt], budgets: Sequence[int | None]) -> list[Decision]:
        own = [self._max_new_tokens if budget is None else budget for budget in budgets]
        results: dict[int, list[Choice]] = {}
        running: dict[int, tuple[str, Constraint, int | None]] = {}
        for i, (text, budget) in enumerate(zip(checked_texts(texts), own, strict=True)):
            try:
                running[i] = text, *self._plan(budget)
            except BudgetError as error:
                results[i] = [refused(error)]
        # The group, of those that the budget has room for.
        firsts = self._chooser.choose_among(
            [constraint for _, constraint, _ in running.values()],
            [self._ask_group(text, values_of(constraint)) for text, constraint, _ in running.values()],
            [budget for _, _, budget in running.values()],
        )
        results.update((i, [choice]) for i, choice in zip(running, firsts, strict=True))
        # The value of it.
        going = {i: str(choice.value) for i, choice in zip(running, firsts, strict=True) if choice.error is None}
        seconds = self._chooser.choose_among(
            [self._groups[name] for name in going.values()],
            [self._ask_value(running[i][0], self.hierarchy.groups[name]) for i, name in going.items()],
            [left(own[i], running[i][1], running[i][2], results[i][0]) for i in going],
        )
        for i, choice in zip(going, seconds, strict=True):
            results[i].append(choice)
        return [decision(results[i]) for i in range(len(texts))]

    def _plan(self, budget: int | None) -> tuple[Constraint, int | None]:
        """For a budget the names of the groups that can be chosen, and what of it is for the name.

        What is kept for the value is enough for every value of every group, or for the shortest values of all groups,
        or of as many groups as possible: the first of these that has room for the names beside it.
        """
        names = self._chooser.constraint
        if budget is None:
            return names, None
        fewest, enough = self._tokens_of_groups
        if budget >= enough + (names.enough_tokens or 0):
            return names, budget - enough
        needed = []
        for kept in sorted(set(fewest.values()), reverse=True):
            if kept not in self._names_within:
                within = [name for name, tokens in fewest.items() if tokens <= kept]
                self._names_within[kept] = self._subset(within)
            needed.append(kept + self._names_within[kept].min_tokens)
            if budget >= needed[-1]:
                return self._names_within[kept], budget - kept
        raise BudgetError(min(needed), budget)

    @cached_property
    def _tokens_of_groups(self) -> tuple[dict[str, int], int]:
        """The fewest tokens of each group's values, and how many are enough for every value of every group."""
        fewest = {name: constraint.min_tokens for name, constraint in self._groups.items()}
        return fewest, max(constraint.enough_tokens or 0 for constraint in self._groups.values())


class ShortlistChooser(Batched[Decision]):
    """Asks about a shortlist first, then about a longer one, then about the whole set (speculative short-circuiting,
    appendix J of the trie paper).

    >>> chooser = ShortlistChooser(model, tokenizer, Cascade(values, TfidfScorer(), k=20))

    All calls are constrained: those about a shortlist to its values and the cascade's escape, which sends the prompt on
    to the next stage, and the last to the set. So the answer is always a value, and no value is out of reach. A budget
    covers all calls; a shortlist is left away for which, and for the whole set after it, there is no room, so that the
    budget leaves out no value that it would not leave out without shortlists.

    Args:
        model, tokenizer, generate_arguments: as for ``Chooser``.
        cascade: the values, what ranks them, and the stages.
        ask: the text and the options (of a shortlist the likeliest first, and the escape last) to a prompt; by default
            ``prompts.select``, in a chat message if the tokenizer has a chat template.
        min_log_probability: an answer about a shortlist to which the model itself gives less (a natural logarithm, as
            in ``Choice``) counts as the escape too. None: only the escape does.
        max_new_tokens: the budget of all answers together, in tokens; None for none.
        compile_options: of ``trieauto.compile``, for all constraints. ``tokenization`` is as for ``Chooser`` if it is
            left out: canonical where the tokenizer writes every value, and the other options are for it too.

    Raises:
        BudgetError: the budget has no room for any value; it names the fewest tokens.
        TrieautoError, UnsupportedError, VocabularyError: as ``Chooser`` does, and ``compile`` of values and escape;
            when called, what the scorer's result raises.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        cascade: Cascade,
        *,
        ask: Ask | None = None,
        min_log_probability: float | None = None,
        max_new_tokens: int | None = None,
        compile_options: Mapping[str, Any] | None = None,
        **generate_arguments: Any,
    ) -> None:
        if not isinstance(cascade, Cascade):
            raise TrieautoError(f"expected a Cascade of the values, not {shown(cascade)}")
        if min_log_probability is not None and not isinstance(min_log_probability, (int, float)):
            raise TrieautoError(f"min_log_probability must be a number or None, not {shown(min_log_probability)}")
        self._chooser, self._subset = chooser_for(
            model, tokenizer, cascade.values, compile_options or {}, generate_arguments
        )
        self.cascade = cascade
        self._ask = asked(ask, prompts.select, tokenizer)
        self._least = min_log_probability
        self._subset([cascade.escape])  # which the vocabulary must be able to spell
        with named("max_new_tokens"):
            self._max_new_tokens = checked_or_none(max_new_tokens)
            self._chooser.constraint.matcher(self._max_new_tokens)

    def __repr__(self) -> str:
        return f"<ShortlistChooser with {self.cascade!r}>"

    def _choose(self, texts: Sequence[Prompt], budgets: Sequence[int | None]) -> list[Decision]:
        remaining = [self._max_new_tokens if budget is None else budget for budget in budgets]
        asked_about = checked_texts(texts)
        num_stages = len(self.cascade.sizes)
        longest_list = self.cascade.sizes[-2] if num_stages > 1 else 0
        ranked = [self.cascade.ranked(text, longest_list) if longest_list else () for text in asked_about]
        calls: list[list[Choice]] = [[] for _ in texts]
        waiting = list(range(len(texts)))
        for stage, size in enumerate(self.cascade.sizes):
            is_last = stage == num_stages - 1
            now: dict[int, tuple[Constraint, Sequence[Value], int | None]] = {}
            for i in waiting:
                if is_last:
                    now[i] = self._chooser.constraint, self.cascade.values, remaining[i]
                    continue
                options = [*ranked[i][:size], self.cascade.escape]
                constraint = self._subset(options)
                room, has_room = self._room(constraint, remaining[i])
                if has_room:
                    now[i] = constraint, options, room
            choices = self._chooser.choose_among(
                [constraint for constraint, _, _ in now.values()],
                [self._ask(asked_about[i], options) for i, (_, options, _) in now.items()],
                [budget for _, _, budget in now.values()],
            )
            for (i, (constraint, _, budget)), choice in zip(now.items(), choices, strict=True):
                if choice.error is not None and not is_last:
                    continue  # the shortlist is too long for the model's context
                calls[i].append(choice)
                if is_last or not self._escapes(choice):
                    waiting.remove(i)
                else:
                    remaining[i] = left(remaining[i], constraint, budget, choice)
        return [decision(each) for each in calls]

    def _escapes(self, choice: Choice) -> bool:
        """Whether an answer about a shortlist sends its prompt on. (NaN is no probability that would be enough.)"""
        is_unlikely = self._least is not None and not choice.log_probability >= self._least
        return choice.value == self.cascade.escape or is_unlikely

    def _room(self, constraint: Constraint, budget: int | None) -> tuple[int | None, bool]:
        """What of a budget a call about a shortlist may take, and whether that is enough for all that is on it."""
        if budget is None:
            return None, True
        room = budget - (self._chooser.constraint.enough_tokens or 0)
        return room, room >= (constraint.enough_tokens or 0)


def chooser_for(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    values: Sequence[Value],
    compile_options: Mapping[str, Any],
    generate_arguments: Mapping[str, Any],
) -> tuple[Chooser, Callable[[Iterable[Value]], Constraint]]:
    """A Chooser of some values, and what makes constraints of others for it."""
    if not (isinstance(model, PreTrainedModel) and isinstance(tokenizer, PreTrainedTokenizerBase)):
        Chooser(model, tokenizer, values)  # which says what is wrong with them
    for name in ("scores", "scores_tolerance", "fast_forward", "tokenization"):
        if name in generate_arguments:
            hint = "give it in compile_options" if name == "tokenization" else "it is for a Chooser alone"
            raise UnsupportedError(f"{name} is not for a strategy of several calls: {hint}")
    known = inspect.signature(trieauto.compile).parameters
    if not isinstance(compile_options, Mapping) or not compile_options.keys() <= known.keys():
        raise TrieautoError(f"compile_options are options of trieauto.compile by name, not {shown(compile_options)}")
    vocabulary = model_vocabulary(model, tokenizer)

    def subset(chosen: Iterable[Value]) -> Constraint:
        return subset_constraint(chosen, vocabulary, compile_options)

    return Chooser(model, tokenizer, subset(values), **generate_arguments), subset


def left(budget: int | None, constraint: Constraint, of_call: int | None, choice: Choice) -> int | None:
    """What a budget has left after a call that was given ``of_call`` of it."""
    if budget is None or of_call is None:
        return None
    return budget - num_steps(constraint.matcher(of_call), choice.token_ids)
