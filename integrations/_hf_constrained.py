"""One answer of a language, from a prompt: for constraints that are no sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from transformers import LogitsProcessorList, PreTrainedModel, PreTrainedTokenizerBase, StoppingCriteriaList

from trieauto import Constraint, ListAutomaton, Matcher
from trieauto.errors import TrieautoError, UnsupportedError
from trieauto.fast_forward import bytes_of_tokens
from trieauto.packing import as_bytes

from ._hf_budgets import context_length, matcher_within_context
from ._hf_fast_forward import FastForward, check_fast_forward
from ._hf_messages import shown
from ._hf_options import NEUTRAL, checked, drafts
from ._hf_passes import eval_mode
from ._hf_processor import ConstraintLogitsProcessor
from ._hf_prompts import Prompt, encode
from ._hf_rows import is_determined
from ._hf_stopping import ConstraintStoppingCriteria


@dataclass(frozen=True, slots=True)
class Generated:
    """An answer of a constraint's language.

    Attributes:
        content: its bytes; of a set, those of the value.
        token_ids: its ids, without a stop token; of a set, those that determine the value.
        num_forward_passes: how often the model ran.
        num_forced_tokens: how many of the ids the model did not choose, because nothing else could follow (with
            ``fast_forward``).
        value: of a set, its value as it was given.
    """

    content: bytes
    token_ids: tuple[int, ...]
    num_forward_passes: int
    num_forced_tokens: int = 0
    value: str | bytes | None = None

    @property
    def text(self) -> str:
        """The content; bytes that are no UTF-8 become U+FFFD."""
        return self.content.decode(errors="replace")


def generate_constrained(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompt: Prompt | Sequence[int],
    constraint: Constraint,
    *,
    max_new_tokens: int,
    fast_forward: bool = True,
    **generate_arguments: Any,
) -> Generated:
    """Let a decoder write one whole answer of a constraint's language after a prompt.

    >>> answer = generate_constrained(model, tokenizer, "The weather in Lima: ", constraint, max_new_tokens=40)
    >>> json.loads(answer.text)

    With ``fast_forward`` no forward pass is spent on text that is forced: the fixed parts of a JSON object, or what
    the values that are still possible share. Such text is spelled as the tokenizer spells it, where the budget allows.
    Where the model would have spelled it otherwise, what it chooses next may differ from decoding token by token;
    where not, the answer is the same. The answer is of the language and within the budget, in any case.

    Args:
        model: a decoder with ``generate``. It is in eval mode while it answers, and as before afterwards.
        tokenizer: the model's.
        prompt: plain text, chat messages (the tokenizer's chat template is applied), or token ids.
        constraint: compiled for this tokenizer.
        max_new_tokens: the budget of the answer, in tokens; or what the prompt leaves of the model's context, if that
            is less.
        fast_forward: whether forced text is read in one pass.
        generate_arguments: for ``generate``: ``do_sample=True, temperature=0.7``, ``logits_processor=[…]`` (applied
            before the constraint). As with ``Chooser``, the model's ``generation_config`` counts for stop, padding and
            start tokens and the parameters of sampling only.

    Raises:
        BudgetError: no answer has so few tokens.
        UnsupportedError: an encoder-decoder, an empty prompt, lists of values, or an argument that cannot be combined
            with this.
        TrieautoError: no constraint, or a budget that is none.
    """
    if not isinstance(constraint, Constraint):
        raise TrieautoError(f"expected a Constraint, as trieauto.compile makes it, not {shown(constraint)}")
    if isinstance(constraint.automaton, ListAutomaton):
        raise UnsupportedError("lists of values are for Chooser, whose answers are values and not texts")
    if not (isinstance(model, PreTrainedModel) and model.can_generate()):
        raise UnsupportedError(f"{type(model).__name__} cannot generate: load the model with a language-model head")
    if max_new_tokens is None:
        raise TrieautoError("max_new_tokens is None: say how long the answer may be, so that it is finished in time")
    arguments = checked(generate_arguments)
    if fast_forward:
        check_fast_forward(model, arguments)
    elif model.config.is_encoder_decoder:
        raise UnsupportedError(f"this is for decoders, and {type(model).__name__} is an encoder-decoder")
    elif drafts(arguments):
        raise UnsupportedError("drafted tokens (assistant model, prompt lookup) make the passes impossible to count")
    ids = _prompt_ids(tokenizer, prompt, constraint.vocabulary.size)
    start = matcher_within_context(constraint, max_new_tokens, len(ids), context_length(model.config))
    max_tokens = start.remaining_tokens
    if max_tokens is None:
        raise TrieautoError(f"max_new_tokens={shown(max_new_tokens)} is no bound")
    vocabulary = constraint.vocabulary
    if is_determined(start):
        return _read(start, [], 0, 0)
    processor = ConstraintLogitsProcessor(constraint, len(ids), max_tokens)
    criterion = ConstraintStoppingCriteria(processor)
    loop = FastForward(processor, tokenizer)
    others = list(arguments.pop("logits_processor", None) or [])
    if fast_forward:
        arguments["custom_generate"] = loop
    stop_token_ids = list(vocabulary.stop_token_ids)
    input_ids = torch.tensor([ids], dtype=torch.long, device=model.device)
    generate: Any = model.generate
    arguments = {**NEUTRAL, "output_logits": False, "pad_token_id": stop_token_ids[0], **arguments}
    with eval_mode(model):
        output = generate(
            input_ids=input_ids,
            attention_mask=torch.ones_like(input_ids),
            logits_processor=LogitsProcessorList([*others, processor]),
            stopping_criteria=StoppingCriteriaList([criterion]),
            eos_token_id=stop_token_ids,
            max_length=len(ids) + max_tokens,
            **arguments,
        )
    token_ids: list[int] = output.sequences[0, len(ids) :].tolist()
    num_passes = loop.num_forward_passes if fast_forward else criterion.num_calls
    return _read(start, token_ids, num_passes, loop.num_forced_tokens)


def _read(start: Matcher, token_ids: list[int], num_forward_passes: int, num_forced_tokens: int) -> Generated:
    """The answer that ids stand for."""
    matcher = start.fork()
    if not matcher.accept_tokens(token_ids) or not is_determined(matcher):
        raise TrieautoError(f"the model's answer {shown(token_ids)} is not of the constraint's language")
    vocabulary = matcher.constraint.vocabulary
    if matcher.is_terminated():
        token_ids = [token_id for token_id in token_ids if token_id not in vocabulary.stop_token_ids]
    value = matcher.value
    assert not isinstance(value, tuple)  # lists are refused
    content = bytes_of_tokens(vocabulary, token_ids) if value is None else as_bytes(value)
    return Generated(content, tuple(token_ids), num_forward_passes, num_forced_tokens, value)


def _prompt_ids(tokenizer: PreTrainedTokenizerBase, prompt: Prompt | Sequence[int], size: int) -> list[int]:
    if isinstance(prompt, Sequence) and len(prompt) > 0 and all(type(token_id) is int for token_id in prompt):
        ids = list(cast(Sequence[int], prompt))
        for token_id in ids:
            if not 0 <= token_id < size:
                raise TrieautoError(
                    f"the prompt's token id {shown(token_id)} is outside the vocabulary of {size:,} ids"
                )
        return ids
    return encode(tokenizer, cast(Prompt, prompt))
