"""Forward passes of a model: over a decoder's cache, counted, without dropout, and what they say of an answer."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import torch
from transformers import Cache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer, StaticLayer, StaticSlidingWindowLayer

from trieauto.errors import UnsupportedError

_LAYERS_OF_ATTENTION = (DynamicLayer, DynamicSlidingWindowLayer, StaticLayer, StaticSlidingWindowLayer)
"""Into these several tokens may be fed at once, at any time. Recurrent layers take them one by one after the first."""


class Decoder:
    """A decoder-only model and what it has read so far.

    >>> decoder = Decoder(model)
    >>> decoder.read(prompt_ids, num_logits=1)  # the logits after the prompt
    >>> decoder.read(more_ids, num_logits=3)

    Args:
        model: it is not changed.
        cache: what to keep keys and values in; by default what the model makes.

    Attributes:
        model: the model.
        cache: the keys and values of what was read; None before that.
        num_passes: how often the model ran.
    """

    def __init__(self, model: PreTrainedModel, cache: Cache | None = None) -> None:
        self.model = model
        self.cache = cache
        self.num_passes = 0
        self._parameters = inspect.signature(model.forward).parameters
        names = [name for name in ("cache", "past_key_values") if name in self._parameters]
        if not names:
            raise UnsupportedError(f"{type(model).__name__} takes no cache of keys and values")
        self._cache_name = names[0]

    def takes(self, argument: str) -> bool:
        """Whether the model's ``forward`` names such an argument."""
        return argument in self._parameters

    def read(self, token_ids: torch.Tensor, num_logits: int, **arguments: Any) -> torch.Tensor:
        """Run the model on the next tokens.

        Args:
            token_ids: int64, rows × tokens.
            num_logits: after how many of them, the last ones, logits are wanted.
            arguments: for ``forward``.

        Returns:
            rows × num_logits × logits, in the model's dtype.

        Raises:
            UnsupportedError: a model whose cache is not one of attention.
        """
        if self.takes("logits_to_keep"):
            arguments["logits_to_keep"] = num_logits
        self.num_passes += 1
        output = self.model(
            input_ids=token_ids, use_cache=True, return_dict=True, **{self._cache_name: self.cache}, **arguments
        )
        cache = getattr(output, self._cache_name, None)
        if not is_of_attention(cache):
            raise UnsupportedError(
                f"{type(self.model).__name__} keeps {_described(cache)}: several tokens cannot be fed into that at once"
            )
        self.cache = cache
        logits: torch.Tensor = output.logits[:, -num_logits:]
        return logits


def is_of_attention(cache: object) -> bool:
    """Whether a cache holds keys and values, and nothing else."""
    return isinstance(cache, Cache) and all(type(layer) in _LAYERS_OF_ATTENTION for layer in cache.layers)


def _described(cache: object) -> str:
    if not isinstance(cache, Cache):
        return "no cache" if cache is None else f"a {type(cache).__name__}"
    others = {type(layer).__name__ for layer in cache.layers} - {kind.__name__ for kind in _LAYERS_OF_ATTENTION}
    return f"a cache of {', '.join(sorted(others))}"


@contextmanager
def eval_mode(model: torch.nn.Module) -> Iterator[None]:
    """No dropout inside; every module as it was afterwards."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def appending_at_each_pass(model: torch.nn.Module, passes: list[None]) -> Iterator[None]:
    """For the passes that this thread makes. A hook makes a compiled model compile again, so only where it must be."""
    thread = get_ident()

    def count(*_: object) -> None:
        if get_ident() == thread:
            passes.append(None)

    handle = model.register_forward_hook(count)
    try:
        yield
    finally:
        handle.remove()


def log_probabilities(output: Any, token_ids: Sequence[Sequence[int]]) -> list[float]:
    """Sum of the unmasked log-softmax over each row's tokens, from the raw logits of every step."""
    beam_indices = getattr(output, "beam_indices", None)
    sums = torch.zeros(len(token_ids), dtype=torch.float64)
    for step in range(max(len(row) for row in token_ids)):
        rows = torch.tensor([i for i, row in enumerate(token_ids) if len(row) > step])
        logits = output.logits[step]
        # Each beam's token was scored in the row that its parent beam had at that step.
        sources = rows.to(logits.device) if beam_indices is None else beam_indices[rows, step].to(logits.device)
        chosen = torch.tensor([token_ids[i][step] for i in rows.tolist()], device=logits.device)
        scores = logits[sources].float()
        sums[rows] += (scores.gather(1, chosen[:, None]).squeeze(1) - scores.logsumexp(dim=1)).double().cpu()
    return sums.tolist()
