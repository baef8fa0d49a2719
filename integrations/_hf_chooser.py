"""Choose one value of a set for a prompt: tokenizing, generating, reading off the value and its probability."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from transformers import LogitsProcessorList, PreTrainedModel, PreTrainedTokenizerBase, StoppingCriteriaList

import trieauto
from trieauto import Automaton, Constraint, ListAutomaton, Matcher, TokenAutomaton, Vocabulary
from trieauto.constraint import Tokenization
from trieauto.errors import (
    BudgetError,
    EmptyConstraintError,
    TrieautoError,
    UnreachableValueError,
    UnsupportedError,
    VocabularyError,
)
from trieauto.value_lists.constraint import ListConstraint

from ._hf_batches import Batched, checked_or_none
from ._hf_budgets import context_length, matcher_within_context, named
from ._hf_choice import Answer, Choice, read_answer, refused
from ._hf_fast_forward import FastForward, check_fast_forward
from ._hf_messages import shown
from ._hf_options import NEUTRAL, checked, drafts
from ._hf_passes import appending_at_each_pass, eval_mode, log_probabilities
from ._hf_processor import ConstraintLogitsProcessor, ConstraintWarning
from ._hf_prompts import Prompt, encode, pad
from ._hf_scores import NODES_PER_PASS, Score, ValueScorer, checked_count, checked_tolerance
from ._hf_stopping import ConstraintStoppingCriteria

_MOST_TOKENS = 2**31  # of what only a budget ends


class Chooser(Batched[Choice]):
    """Lets a model answer prompts with values of a set.

    >>> chooser = Chooser(model, tokenizer, ["get_weather", "get_time", "send_mail"])
    >>> chooser("What time is it in Lima?")
    Choice(value='get_time', log_probability=-1.7, token_ids=(…), num_forward_passes=2, ended='complete', error=None,
           scores=None)
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
            ``Constraint`` with its ``left_context``). With None canonical, which takes fewer steps and does not lead
            small models astray, where the tokenizer writes every value; "any" if it does not (bytes that are no UTF-8,
            texts of special tokens, tokenizers that cannot be asked), for lists, and for ``fast_forward``.
            ``chooser.constraint.tokenization`` says which it is.
        scores: how many of the most likely values each ``Choice`` lists in ``scores``, with their probabilities (as
            ``most_likely`` finds them, at its cost, one prompt after the other); None for none. They are of the whole
            set, whatever the budget, and of the model's own distribution, whatever the arguments of ``generate``. With
            a prompt that leaves too little of the context for them there are none, and a ``ConstraintWarning``.
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
        tokenization: Tokenization | None = None,
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
            self._max_new_tokens = checked_or_none(max_new_tokens)
        self._num_scores = None if scores is None else checked_count("scores", scores)
        self._scores_tolerance = checked_tolerance("scores_tolerance", scores_tolerance)
        self._arguments = checked(generate_arguments)
        if not isinstance(fast_forward, bool):
            raise TrieautoError(f"fast_forward must be True or False, not {shown(fast_forward)}")
        self._is_fast_forward = fast_forward
        if fast_forward:
            check_fast_forward(model, self._arguments)
        self._processors = list(self._arguments.pop("logits_processor", None) or [])
        self._model = model
        self._tokenizer = tokenizer
        self.constraint = _constraint(model, tokenizer, values, tokenization, fast_forward)
        vocabulary = self.constraint.vocabulary
        self.stop_token_ids = sorted({*vocabulary.stop_token_ids, *_model_stop_token_ids(model)})
        self._pad_token_id = next(
            token_id
            for token_id in (model.generation_config.pad_token_id, tokenizer.pad_token_id, self.stop_token_ids[0])
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

    @property
    def options(self) -> tuple[str | bytes, ...]:
        """The set's values in the order given, each once."""
        return values_of(self.constraint)

    def _check_batch_size(self, batch_size: int) -> None:
        if batch_size > 1 and self._is_fast_forward:
            raise UnsupportedError(f"fast_forward runs one prompt at a time: it needs batch_size=1, not {batch_size}")
        if batch_size > 1 and drafts(self._arguments):
            raise UnsupportedError(
                f"drafted tokens (assistant model, prompt lookup) need batch_size=1, not {batch_size}"
            )

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
            UnsupportedError: more than 5,000 values, or lists of values; a prompt as when called with it, or one that
                leaves too little of the model's context for the longest value.
            UnreachableValueError, EmptyConstraintError: values that the tokenizer itself never writes.
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

        Args:
            prompt: the prompt.
            num_beams: how many prefixes are followed, and values found at most.

        Raises:
            UnsupportedError, UnreachableValueError, TrieautoError: as for ``probabilities``, but for the size.
        """
        return self._scorer.beams(encode(self._tokenizer, prompt), checked_count("num_beams", num_beams))

    @cached_property
    def _scorer(self) -> ValueScorer:
        decoder_prompt = None if self._decoder_prompt is None else self._decoder_prompt[0].tolist()
        return ValueScorer(self._model, self._tokenizer, self.constraint, self.stop_token_ids, decoder_prompt)

    def _choose(self, prompts: Sequence[Prompt], budgets: Sequence[int | None]) -> list[Choice]:
        return self.choose_among([self.constraint] * len(prompts), prompts, budgets)

    def choose_among(
        self, constraints: Sequence[Constraint], prompts: Sequence[Prompt], budgets: Sequence[int | None]
    ) -> list[Choice]:
        """The results for one batch of prompts, where each has a set of its own.

        Args:
            constraints: for each prompt the constraint of a set, in the vocabulary of this Chooser's own.
            prompts: the prompts.
            budgets: for each its own; None for the Chooser's.

        Raises:
            UnsupportedError: a prompt as when called with it.
        """
        encoded = [encode(self._tokenizer, prompt) for prompt in prompts]
        choices: dict[int, Choice] = {}
        running: dict[int, Matcher] = {}
        for i, (constraint, ids, budget) in enumerate(zip(constraints, encoded, budgets, strict=True)):
            try:
                start = self._matcher(constraint, budget, len(ids))
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
                if choice.error is None and constraints[i] is self.constraint:
                    choices[i] = replace(choice, scores=self._scores_after(encoded[i], self._num_scores))
        return [choices[i] for i in range(len(prompts))]

    def _scores_after(self, prompt: Sequence[int], count: int) -> tuple[Score, ...] | None:
        try:
            return self._scorer.best(prompt, count, self._scores_tolerance)
        except UnsupportedError as error:  # one prompt that is too long does not disturb the others
            warnings.warn(str(error), ConstraintWarning, stacklevel=2)
            return None

    def _matcher(self, constraint: Constraint, budget: int | None, num_prompt_tokens: int) -> Matcher:
        if self._decoder_prompt is not None:
            num_prompt_tokens = self._decoder_prompt.shape[1]
        own = self._max_new_tokens if budget is None else budget
        return matcher_within_context(constraint, own, num_prompt_tokens, self._context_length)

    def _longest(self, constraint: Constraint) -> int:
        """``_most_tokens``, which is known for the Chooser's own set."""
        return self._most_tokens if constraint is self.constraint else _most_tokens(constraint, self._max_new_tokens)

    def _generate(self, encoded: Sequence[Sequence[int]], starts: Sequence[Matcher]) -> list[Choice]:
        """Lets the model answer. ``starts``: for each prompt, a matcher with its budget."""
        model = self._model
        arguments = self._arguments
        ids, mask = pad(encoded, self._pad_token_id, model.device, left=self._decoder_prompt is None)
        prompt_length = ids.shape[1]
        if self._decoder_prompt is not None:
            arguments = {**arguments, "decoder_input_ids": self._decoder_prompt.expand(len(encoded), -1)}
            prompt_length = self._decoder_prompt.shape[1]
        constraints = [start.constraint for start in starts]
        budgets = [start.remaining_tokens for start in starts]
        longest = {constraint: self._longest(constraint) for constraint in set(constraints)}
        most_tokens = max(
            longest[constraint] if budget is None else min(longest[constraint], budget)
            for constraint, budget in zip(constraints, budgets, strict=True)
        )
        processor = ConstraintLogitsProcessor(constraints, prompt_length, budgets)
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
                **{**NEUTRAL, "eos_token_id": self.stop_token_ids, "pad_token_id": self._pad_token_id, **arguments},
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


def _constraint(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    values: Iterable[str | bytes] | Automaton | ListAutomaton | Constraint,
    tokenization: Tokenization | None,
    fast_forward: bool,
) -> Constraint:
    """The constraint for a model, whose own stop tokens end an answer too."""
    if isinstance(values, Constraint):
        num_logits = _num_logits(model)
        vocabulary = values.vocabulary
        if tokenization not in (None, "any", values.tokenization):
            raise TrieautoError(
                f"tokenization={tokenization!r}, but the constraint was compiled for {values.tokenization!r}"
            )
        if vocabulary.size > num_logits:
            raise VocabularyError(
                f"the constraint was compiled for {vocabulary.size:,} ids, but the model has {num_logits:,} logits"
            )
        for token_id in _model_stop_token_ids(model):
            if token_id < len(vocabulary.tokens) and vocabulary.tokens[token_id]:
                raise VocabularyError(
                    f"the model stops at token {token_id}, which the constraint's vocabulary takes for the text "
                    f"{vocabulary.tokens[token_id]!r}: name it as a stop token when making the vocabulary"
                )
        return values
    vocabulary = model_vocabulary(model, tokenizer)
    automaton = values if isinstance(values, (Automaton, ListAutomaton, TokenAutomaton)) else trieauto.choices(values)
    if tokenization is None and fast_forward:
        tokenization = "any"
    try:
        return compiled(automaton, vocabulary, {} if tokenization is None else {"tokenization": tokenization})
    except UnsupportedError as error:
        if "prefix_space" not in str(error):
            raise
        raise UnsupportedError(f"{error}, and pass a Constraint compiled that way to Chooser") from None


def compiled(
    automaton: Automaton | ListAutomaton | TokenAutomaton, vocabulary: Vocabulary, options: Mapping[str, Any]
) -> Constraint:
    """With options of ``compile``. A set whose tokenization is left open is canonical if the tokenizer writes every
    value and the options are for that."""
    if "tokenization" not in options and isinstance(automaton, Automaton) and automaton.values is not None:
        with suppress(UnreachableValueError, EmptyConstraintError, UnsupportedError):
            return trieauto.compile(
                automaton, vocabulary, **{**options, "tokenization": "canonical", "unreachable": "error"}
            )
    return trieauto.compile(automaton, vocabulary, **options)


def model_vocabulary(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
    """The tokenizer's vocabulary, as wide as the model's logits and with the model's own stop tokens too."""
    stop_token_ids = {*_model_stop_token_ids(model), tokenizer.eos_token_id} - {None}
    return Vocabulary.from_tokenizer(tokenizer, size=_num_logits(model), stop_token_ids=stop_token_ids or None)


def _num_logits(model: PreTrainedModel) -> int:
    size: int = model.config.get_text_config(decoder=True).vocab_size
    return size


def values_of(constraint: Constraint) -> tuple[str | bytes, ...]:
    """The values of a constraint that is one of a set, in the order given, each once."""
    values = constraint.automaton.values
    if values is None:
        raise UnsupportedError(f"expected a set of values, and {constraint.automaton!r} is none")
    return tuple(values.given[place] for place in sorted(set(values.order.tolist())))


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
            "a Chooser needs a set of values, or lists of them (trieauto.from_grammar makes a set of a regex or schema "
            "with few strings); for other languages use ConstraintLogitsProcessor"
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
