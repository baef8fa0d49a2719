"""Choose one value of a set for a prompt: tokenizing, generating, reading off the value and its probability."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import torch
from tqdm.auto import tqdm
from transformers import LogitsProcessorList, PreTrainedModel, PreTrainedTokenizerBase, StoppingCriteriaList

import trieauto
from trieauto import Automaton, Constraint, ListAutomaton, Matcher, TokenAutomaton, Vocabulary
from trieauto.budgets import checked_budget
from trieauto.constraint import Tokenization
from trieauto.errors import BudgetError, TrieautoError, UnsupportedError, VocabularyError
from trieauto.value_lists.constraint import ListConstraint

from ._hf_budgets import context_length, has_one_for_each, matcher_within_context, named, of_prompt
from ._hf_choice import Answer, Choice, read_answer, refused
from ._hf_fast_forward import FastForward, check_fast_forward
from ._hf_messages import shown
from ._hf_options import NEUTRAL, checked, drafts
from ._hf_passes import appending_at_each_pass, eval_mode, log_probabilities
from ._hf_processor import ConstraintLogitsProcessor
from ._hf_prompts import Prompt, encode, pad
from ._hf_scores import NODES_PER_PASS, Score, ValueScorer, checked_count, checked_tolerance
from ._hf_stopping import ConstraintStoppingCriteria

_MOST_TOKENS = 2**31  # of what only a budget ends


class Chooser:
    """Lets a model answer prompts with values of a set.

    >>> chooser = Chooser(model, tokenizer, ["get_weather", "get_time", "send_mail"])
    >>> chooser("What time is it in Lima?")
    Choice(value='get_time', log_probability=-1.7, token_ids=(…), num_forward_passes=2, ended='complete', error=None)
    >>> list(chooser.map(prompts, batch_size=16))

    Decoding is greedy unless the arguments say otherwise, and ends as soon as the value is determined. With
    ``max_new_tokens`` only values that can be spelled in so many tokens are chosen, whatever the model prefers, and
    ``Choice.ended`` says whether that made a difference. Of the model's ``generation_config`` only the stop, padding
    and start tokens and the parameters of sampling count; the rest is meant for free text.

    Args:
        model: a decoder or an encoder-decoder with ``generate``. It is in eval mode while it answers, and as before
            afterwards.
        tokenizer: the model's. It is not changed.
        values: the set, an ``Automaton`` of values, or a ``Constraint`` compiled for this tokenizer. Or lists of
            values, ``trieauto.several(labels, minimum, maximum)``: multi-label classification. The value of a choice is
            then the tuple of the labels, all different, in the model's order.
        max_new_tokens: the budget of each answer, in tokens; None for none. The whole text of a value counts, also what
            need not be generated because no other value is possible; a stop token counts where one is needed. Where
            the (text) model's configuration has ``max_position_embeddings``, a prompt's budget is what the prompt
            leaves of these, if that is less. (For an encoder-decoder, what the decoder's start leaves.) Without a
            budget the context is not looked at.
        tokenization: "any" spelling of a value in tokens, or the "canonical" one alone, which the tokenizer itself
            writes for the value standing alone (see ``trieauto.compile``; for the text that a prompt ends with, pass a
            ``Constraint`` with its ``left_context``).
        scores: how many of the most likely values each ``Choice`` lists in ``scores``, with their probabilities (as
            ``most_likely`` finds them, at its cost, one prompt after the other); None for none. They are of the whole
            set, whatever the budget, and of the model's own distribution, whatever the arguments of ``generate``.
        scores_tolerance: what ``most_likely`` takes as ``tolerance``.
        fast_forward: spend no forward pass on text that all values share which are still possible (see
            ``generate_constrained``). Another spelling of that text can change what the model chooses next. For
            decoders, one prompt at a time (``batch_size=1``).
        generate_arguments: passed to ``generate``: ``do_sample=True, temperature=0.7``, ``num_beams=4``,
            ``logits_processor=[…]`` (applied before the constraint), ``assistant_model=…`` and so on.

    Raises:
        TrieautoError: no tokenizer, no set, what compiling raises (an empty set, a value that the vocabulary cannot
            spell, …), or a budget that is none.
        BudgetError: no value has so few tokens; it names the fewest.
        VocabularyError: a tokenizer, or a constraint, that does not fit the model.
        UnsupportedError: a model that does not generate, or an argument that would break the constraint.

    It keeps nothing from one call to the next, so several threads may use it if they may use the model.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        values: Iterable[str | bytes] | Automaton | ListAutomaton | Constraint,
        *,
        max_new_tokens: int | None = None,
        tokenization: Tokenization = "any",
        scores: int | None = None,
        scores_tolerance: float = 0.0,
        fast_forward: bool = False,
        **generate_arguments: Any,
    ) -> None:
        if not (isinstance(model, PreTrainedModel) and model.can_generate()):
            raise UnsupportedError(f"{type(model).__name__} cannot generate: load the model with a language-model head")
        if not isinstance(tokenizer, PreTrainedTokenizerBase):
            raise TrieautoError(f"expected the model's tokenizer, of transformers, not {shown(tokenizer)}")
        with named("max_new_tokens"):
            self._max_new_tokens = _checked(max_new_tokens)
        self._num_scores = None if scores is None else checked_count("scores", scores)
        self._scores_tolerance = checked_tolerance("scores_tolerance", scores_tolerance)
        self._arguments = checked(generate_arguments)
        self._is_fast_forward = fast_forward
        if fast_forward:
            check_fast_forward(model, self._arguments)
        self._processors = list(self._arguments.pop("logits_processor", None) or [])
        self._model = model
        self._tokenizer = tokenizer
        self.constraint = _constraint(model, tokenizer, values, tokenization)
        vocabulary = self.constraint.vocabulary
        self._stop_token_ids = sorted({*vocabulary.stop_token_ids, *_model_stop_token_ids(model)})
        self._pad_token_id = next(
            token_id
            for token_id in (model.generation_config.pad_token_id, tokenizer.pad_token_id, self._stop_token_ids[0])
            if token_id is not None
        )
        self._most_tokens = _most_tokens(self.constraint, self._max_new_tokens)
        self._decoder_prompt = _decoder_prompt(model) if model.config.is_encoder_decoder else None
        self._context_length = context_length(model.config)
        with named("max_new_tokens"):
            self.constraint.matcher(self._max_new_tokens)
        if self._num_scores is not None:
            self._scorer.check_size(self._scores_tolerance)

    def __repr__(self) -> str:
        return f"<Chooser: {type(self._model).__name__} with {self.constraint!r}>"

    def __call__(self, prompt: Prompt, max_new_tokens: int | None = None) -> Choice:
        """The value for one prompt: plain text, or chat messages (the tokenizer's chat template is applied).

        Args:
            prompt: the prompt.
            max_new_tokens: its budget; None for the Chooser's own.

        Raises:
            UnsupportedError: an empty prompt, neither text nor chat messages, or what the chat template refuses.
            BudgetError: no value fits the budget, or (if there is one) what the prompt leaves of the model's context;
                before the model runs. So a value never is None.
            TrieautoError: a budget that is none.
        """
        with named("max_new_tokens"):
            budget = _checked(max_new_tokens)
        [choice] = self._choose([prompt], [budget])
        if choice.error is not None:
            raise choice.error
        return choice

    def map(
        self,
        prompts: Iterable[Prompt],
        batch_size: int = 8,
        progress: bool = True,
        max_new_tokens: int | Iterable[int | None] | None = None,
    ) -> Iterator[Choice]:
        """The values for many prompts, one after the other, in their order.

        Prompts are read and answered a batch at a time, as the results are asked for, so that neither need fit in
        memory. Memory of a batch: beside the model's, its float32 logits of every step. A prompt whose budget is too
        small for any value does not disturb the others: the model is not run for it, and its ``Choice`` is "refused".

        Args:
            prompts: any iterable of prompts, chat messages and plain text mixed as you like.
            batch_size: prompts that share a ``generate`` call, padded to the longest.
            progress: whether to show a progress bar on stderr.
            max_new_tokens: the budget of each answer; None for the Chooser's own. Or an iterable with one of these for
                each prompt, read along with the prompts.

        Raises:
            UnsupportedError: one prompt instead of many, a ``batch_size`` below 1, or above 1 with an assistant model
                or prompt lookup; and for each prompt as when called with it.
            TrieautoError: ``prompts`` that cannot be iterated over, a ``batch_size`` that is no integer, a budget that
                is none, more prompts than budgets, or (if both have a length) fewer.
        """
        if isinstance(prompts, (str, bytes, Mapping)) or _is_one_chat(prompts):
            raise UnsupportedError(f"map takes many prompts, but got one: {shown(prompts)}")
        try:
            remaining = iter(prompts)
        except TypeError:
            raise TrieautoError(f"map takes many prompts, not {shown(prompts)}") from None
        try:
            size = operator.index(batch_size)
        except TypeError:
            size = None
        if size is None or isinstance(batch_size, bool):
            raise TrieautoError(f"batch_size must be an integer, not {shown(batch_size)}")
        if batch_size < 1:
            raise UnsupportedError(f"batch_size must be at least 1, but is {batch_size}")
        if batch_size > 1 and self._is_fast_forward:
            raise UnsupportedError(f"fast_forward runs one prompt at a time: it needs batch_size=1, not {batch_size}")
        if batch_size > 1 and drafts(self._arguments):
            raise UnsupportedError(
                f"drafted tokens (assistant model, prompt lookup) need batch_size=1, not {batch_size}"
            )
        total = len(prompts) if isinstance(prompts, Sized) else None
        if has_one_for_each(max_new_tokens):
            if total is not None and isinstance(max_new_tokens, Sized) and len(max_new_tokens) != total:
                raise TrieautoError(f"max_new_tokens holds {len(max_new_tokens)} budgets for {total} prompts")
            budgets = _each_checked(max_new_tokens)
        else:
            with named("max_new_tokens"):
                budgets = itertools.repeat(_checked(cast(int | None, max_new_tokens)))
        return self._map(remaining, budgets, total, size, progress)

    def probabilities(self, prompt: Prompt, batch_size: int = NODES_PER_PASS) -> dict[str | bytes, float]:
        """The probability of each value, given that the answer is one of the set: classification.

        Exact, up to rounding; what is counted as a value's probability is said in ``Score``. Duplicates count once,
        and values that the vocabulary cannot spell are left out.

        Args:
            prompt: the prompt.
            batch_size: how many prefixes of values the model reads in one pass. It takes their logits: float32,
                batch_size × vocabulary.

        Returns:
            In the order in which the values were given. They sum to 1.

        Raises:
            UnsupportedError: more than 5,000 values, one that is no UTF-8, or a prompt as when called with it, or that
                leaves too little of the model's context for the longest value.
            UnreachableValueError: values that the tokenizer changes.
            TrieautoError: a ``batch_size`` that is none, or scores of the model that are not numbers.

        The prompt is read once, and each inner node of the trie of the values' tokens (in a decoder with an ordinary
        cache; other models read the prompt and the value anew for each value).
        """
        size = checked_count("batch_size", batch_size)
        return self._scorer.probabilities(encode(self._tokenizer, prompt), size)

    def most_likely(
        self, prompt: Prompt, count: int = 5, *, tolerance: float = 0.0, batch_size: int | None = None
    ) -> tuple[Score, ...]:
        """The ``count`` most likely values (all, if there are fewer), the most likely first.

        With a tolerance of 0 their probabilities are exact, and every value is scored, as in ``probabilities``. With
        another, a set may have any size: the likeliest prefixes are followed until it is certain that these are the
        most likely values, and that no probability is off by more than the tolerance; ``Score.error_bound`` says by
        how much. A tolerance of 1 asks for nothing but the right values in the right order.

        Args:
            prompt: the prompt.
            count: how many values.
            tolerance: how much a probability may be off, 0 to 1.
            batch_size: as for ``probabilities``; by default 256, and 32 with a tolerance.

        Raises:
            UnsupportedError, UnreachableValueError, TrieautoError: as for ``probabilities``.
        """
        number = checked_count("count", count)
        size = None if batch_size is None else checked_count("batch_size", batch_size)
        bound = checked_tolerance("tolerance", tolerance)
        return self._scorer.best(encode(self._tokenizer, prompt), number, bound, size)

    def beams(self, prompt: Prompt, num_beams: int = 5) -> tuple[Score, ...]:
        """The values that beam search finds, the most likely first: ``num_beams`` at most, and never one twice.

        (With ``num_beams`` as an argument of ``generate``, several beams may hold spellings of one value.) For a set of
        any size, and a fixed cost: as many passes as the longest value has tokens, of ``num_beams`` prefixes each. They
        need not be the most likely values of all, as those of ``most_likely`` are.

        Raises:
            UnsupportedError, UnreachableValueError, TrieautoError: as for ``probabilities``, but for the size.
        """
        return self._scorer.beams(encode(self._tokenizer, prompt), checked_count("num_beams", num_beams))

    @cached_property
    def _scorer(self) -> ValueScorer:
        decoder_prompt = None if self._decoder_prompt is None else self._decoder_prompt[0].tolist()
        return ValueScorer(self._model, self._tokenizer, self.constraint, self._stop_token_ids, decoder_prompt)

    def _map(
        self,
        remaining: Iterator[Prompt],
        budgets: Iterator[int | None],
        total: int | None,
        batch_size: int,
        progress: bool,
    ) -> Iterator[Choice]:
        num_read = 0
        with tqdm(total=total, unit="prompt", disable=not progress) as bar:
            while batch := list(itertools.islice(remaining, batch_size)):
                own_budgets = list(itertools.islice(budgets, len(batch)))
                num_read += len(own_budgets)
                if len(own_budgets) < len(batch):
                    raise TrieautoError(f"max_new_tokens holds only {num_read} budgets, but there are more prompts")
                for choice in self._choose(batch, own_budgets):
                    bar.update()
                    yield choice

    def _choose(self, prompts: Sequence[Prompt], budgets: Sequence[int | None]) -> list[Choice]:
        """The results for a batch of prompts. ``budgets``: of each; None for the Chooser's own."""
        encoded = [encode(self._tokenizer, prompt) for prompt in prompts]
        choices: dict[int, Choice] = {}
        running: dict[int, Matcher] = {}
        for i, (ids, budget) in enumerate(zip(encoded, budgets, strict=True)):
            try:
                start = self._matcher(budget, len(ids))
            except BudgetError as error:
                choices[i] = refused(error)
                continue
            if start.value is None:
                running[i] = start
            else:  # there is nothing to choose
                answer = read_answer(start, ())
                choices[i] = Choice(answer.value, 0.0, (), 0, answer.ended)
        if running:
            generated = self._generate([encoded[i] for i in running], list(running.values()))
            choices.update(zip(running, generated, strict=True))
        if self._num_scores is not None:
            for i, choice in choices.items():
                if choice.error is None:
                    best = self._scorer.best(encoded[i], self._num_scores, self._scores_tolerance)
                    choices[i] = replace(choice, scores=best)
        return [choices[i] for i in range(len(prompts))]

    def _matcher(self, budget: int | None, num_prompt_tokens: int) -> Matcher:
        if self._decoder_prompt is not None:
            num_prompt_tokens = self._decoder_prompt.shape[1]
        own = self._max_new_tokens if budget is None else budget
        return matcher_within_context(self.constraint, own, num_prompt_tokens, self._context_length)

    def _generate(self, encoded: Sequence[Sequence[int]], starts: Sequence[Matcher]) -> list[Choice]:
        """Lets the model answer. ``starts``: for each prompt, a matcher with its budget."""
        model = self._model
        arguments = self._arguments
        ids, mask = pad(encoded, self._pad_token_id, model.device, left=self._decoder_prompt is None)
        prompt_length = ids.shape[1]
        if self._decoder_prompt is not None:
            arguments = {**arguments, "decoder_input_ids": self._decoder_prompt.expand(len(encoded), -1)}
            prompt_length = self._decoder_prompt.shape[1]
        budgets = [start.remaining_tokens for start in starts]
        most_tokens = max(self._most_tokens if budget is None else min(self._most_tokens, budget) for budget in budgets)
        processor = ConstraintLogitsProcessor(self.constraint, prompt_length, budgets)
        criterion = ConstraintStoppingCriteria(processor)
        loop = FastForward(processor, self._tokenizer)
        if self._is_fast_forward:
            arguments = {**arguments, "custom_generate": loop}
        generate: Any = model.generate
        passes_of_drafts: list[None] = []
        counting = appending_at_each_pass(model, passes_of_drafts) if drafts(arguments) else nullcontext()
        with eval_mode(model), counting:
            output = generate(
                input_ids=ids,
                attention_mask=mask,
                logits_processor=LogitsProcessorList([*self._processors, processor]),
                stopping_criteria=StoppingCriteriaList([criterion]),
                **{**NEUTRAL, "eos_token_id": self._stop_token_ids, "pad_token_id": self._pad_token_id, **arguments},
                max_length=prompt_length + most_tokens,
            )
        rows = output.sequences[:, prompt_length:].tolist()
        answers: list[Answer] = [read_answer(start, row) for start, row in zip(starts, rows, strict=True)]
        scores = log_probabilities(output, [answer.token_ids for answer in answers])
        # A greedy or sampled row is over when its value is determined, others of the batch may go on. The criterion is
        # asked once after every pass, except where tokens are drafted.
        passes = len(passes_of_drafts) or loop.num_forward_passes or criterion.num_calls
        is_shared = getattr(output, "beam_indices", None) is not None
        return [
            Choice(
                answer.value,
                score,
                answer.token_ids,
                passes if is_shared else min(answer.num_steps, passes),
                answer.ended,
            )
            for answer, score in zip(answers, scores, strict=True)
        ]


def _checked(max_new_tokens: int | None) -> int | None:
    """One budget, or the error that it is none."""
    return None if max_new_tokens is None else checked_budget(max_new_tokens)


def _each_checked(max_new_tokens: Iterable[int | None]) -> Iterator[int | None]:
    for i, budget in enumerate(max_new_tokens):
        with named(of_prompt(i)):
            checked = _checked(budget)
        yield checked


def _constraint(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    values: Iterable[str | bytes] | Automaton | ListAutomaton | Constraint,
    tokenization: Tokenization,
) -> Constraint:
    """The constraint for a model, whose own stop tokens end an answer too."""
    num_logits = model.config.get_text_config(decoder=True).vocab_size
    model_stop_token_ids = _model_stop_token_ids(model)
    if isinstance(values, Constraint):
        vocabulary = values.vocabulary
        if tokenization not in ("any", values.tokenization):
            raise TrieautoError(
                f"tokenization={tokenization!r}, but the constraint was compiled for {values.tokenization!r}"
            )
        if vocabulary.size > num_logits:
            raise VocabularyError(
                f"the constraint was compiled for {vocabulary.size:,} ids, but the model has {num_logits:,} logits"
            )
        for token_id in model_stop_token_ids:
            if token_id < len(vocabulary.tokens) and vocabulary.tokens[token_id]:
                raise VocabularyError(
                    f"the model stops at token {token_id}, which the constraint's vocabulary takes for the text "
                    f"{vocabulary.tokens[token_id]!r}: name it as a stop token when making the vocabulary"
                )
        return values
    stop_token_ids = {*model_stop_token_ids, tokenizer.eos_token_id} - {None}
    vocabulary = Vocabulary.from_tokenizer(tokenizer, size=num_logits, stop_token_ids=stop_token_ids or None)
    automaton = values if isinstance(values, (Automaton, ListAutomaton, TokenAutomaton)) else trieauto.choices(values)
    try:
        return trieauto.compile(automaton, vocabulary, tokenization=tokenization)
    except UnsupportedError as error:
        if "prefix_space" not in str(error):
            raise
        raise UnsupportedError(f"{error}, and pass a Constraint compiled that way to Chooser") from None


def _model_stop_token_ids(model: PreTrainedModel) -> list[int]:
    """The ids at which ``generate`` stops by itself."""
    stop = model.generation_config.eos_token_id
    return [] if stop is None else [stop] if isinstance(stop, int) else list(stop)


def _most_tokens(constraint: Constraint, max_new_tokens: int | None) -> int:
    """More tokens than any spelling of any value has: each token is at least a byte."""
    if isinstance(constraint, ListConstraint):
        most_bytes = constraint.most_bytes()
        if most_bytes is None and max_new_tokens is None:
            raise UnsupportedError(
                "lists of any number of values have no end of their own: give a maximum, or max_new_tokens"
            )
        return _MOST_TOKENS if most_bytes is None else most_bytes + 2
    values = constraint.automaton.values
    if values is None:
        raise UnsupportedError(
            "a Chooser needs a set of values, or lists of them; for other languages use ConstraintLogitsProcessor"
        )
    longest = max(len(value.encode() if isinstance(value, str) else value) for value in values.given)
    return longest + 2  # a space before the value, and the stop token


def _decoder_prompt(model: PreTrainedModel) -> torch.Tensor:
    """What the decoder of an encoder-decoder model starts from: int64, 1 × (start token, language or other token)."""
    config = model.generation_config
    start = config.decoder_start_token_id if config.decoder_start_token_id is not None else config.bos_token_id
    if not isinstance(start, int):
        raise UnsupportedError(f"the model's decoder_start_token_id must be one id, not {shown(start)}")
    ids = [start] if config.forced_bos_token_id is None else [start, config.forced_bos_token_id]
    return torch.tensor([ids], dtype=torch.long, device=model.device)


def _is_one_chat(prompts: object) -> bool:
    return isinstance(prompts, Sequence) and len(prompts) > 0 and isinstance(prompts[0], Mapping)
