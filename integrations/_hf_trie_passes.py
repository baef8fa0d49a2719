"""A model's probabilities at the nodes of a trie of token sequences that all follow one prompt."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from ._hf_passes import Decoder
from ._hf_value_trie import ROOT, ValueTrie

ROWS = 16
"""Of a pass that has one row for each path: its logits are rows × tokens × vocabulary."""


class TriePasses(Protocol):
    """A way to have the model's logits at the nodes of a trie."""

    def logits(self, nodes: Sequence[int]) -> torch.Tensor:
        """The raw logits after each of some nodes with children: nodes × vocabulary, in the model's dtype.

        Args:
            nodes: each comes after its parent, or the parent was asked for earlier and kept.
        """

    def keep(self, nodes: Iterable[int]) -> None:
        """Forget all nodes that were asked for, but these and the ones on the way to them."""


class TreePasses:
    """All nodes of a call in one pass of one row, each attending to the prompt and to the nodes on the way to it
    (a tree attention mask). The prompt and each node are run once. For models that ``may_take_tree_masks`` names.

    Memory: keys and values of the prompt and of the nodes that are kept, and the logits of the nodes of a pass.

    Args:
        model: a decoder.
        prompt: its ids, at least one.
        trie: the sequences that may follow.
    """

    def __init__(self, model: PreTrainedModel, prompt: Sequence[int], trie: ValueTrie) -> None:
        self._decoder = Decoder(model)
        self._trie = trie
        self._held: list[int] = []  # nodes in the cache, in their order there
        self._num_prompt_tokens = len(prompt)
        ids = torch.tensor([list(prompt)], dtype=torch.long, device=model.device)
        self._after_prompt = self._decoder.read(ids, num_logits=1)[0]

    @property
    def has_simple_cache(self) -> bool:
        """Whether every layer of the model keeps all keys and values in the order in which they came."""
        cache = self._decoder.cache
        return isinstance(cache, DynamicCache) and all(type(layer) is DynamicLayer for layer in cache.layers)

    def logits(self, nodes: Sequence[int]) -> torch.Tensor:
        """As ``TriePasses`` says. One pass; none for the root."""
        others = [node for node in nodes if node != ROOT]
        if not others:
            return self._after_prompt.expand(len(nodes), -1)
        model, trie = self._decoder.model, self._trie
        self._held += others
        place = {node: i for i, node in enumerate(self._held)}
        sees = torch.zeros(len(others), self._num_prompt_tokens + len(self._held), dtype=torch.bool)
        sees[:, : self._num_prompt_tokens] = True
        rows, columns = [], []
        for i, node in enumerate(others):
            on_the_way = [place[before] for before in trie.path(node)]
            rows += [i] * len(on_the_way)
            columns += on_the_way
        sees[torch.tensor(rows), self._num_prompt_tokens + torch.tensor(columns)] = True
        mask = torch.zeros(sees.shape, dtype=model.dtype).masked_fill(~sees, torch.finfo(model.dtype).min)
        positions = [self._num_prompt_tokens + trie.depths[node] - 1 for node in others]
        logits = self._decoder.read(
            torch.tensor([[trie.tokens[node] for node in others]], device=model.device),
            num_logits=len(others),
            attention_mask=mask[None, None].to(model.device),
            position_ids=torch.tensor([positions], device=model.device),
        )[0]
        if len(others) == len(nodes):
            return logits
        row_of = {node: i for i, node in enumerate(others)}
        return torch.stack([self._after_prompt[0] if node == ROOT else logits[row_of[node]] for node in nodes])

    def keep(self, nodes: Iterable[int]) -> None:
        """As ``TriePasses`` says."""
        wanted = {on_the_way for node in nodes for on_the_way in self._trie.path(node)}
        kept = [i for i, node in enumerate(self._held) if node in wanted]
        if len(kept) == len(self._held):
            return
        prompt = torch.arange(self._num_prompt_tokens)
        columns = torch.cat([prompt, self._num_prompt_tokens + torch.tensor(kept, dtype=torch.long)])
        cache: Any = self._decoder.cache
        for layer in cache.layers:
            columns = columns.to(layer.keys.device)
            layer.keys, layer.values = layer.keys[:, :, columns], layer.values[:, :, columns]
        self._held = [self._held[i] for i in kept]


class RowPasses:
    """A row for the prompt and each path, without a cache: slower, for every other model, encoder-decoders included.

    Args:
        model: any model that generates.
        prompt: its ids; for an encoder-decoder, the encoder's.
        trie: the sequences that may follow.
        decoder_prompt: for an encoder-decoder, the ids that the decoder starts from.
    """

    def __init__(
        self, model: Any, prompt: Sequence[int], trie: ValueTrie, decoder_prompt: Sequence[int] | None = None
    ) -> None:
        self._model = model
        self._trie = trie
        self._prompt = list(prompt if decoder_prompt is None else decoder_prompt)
        self._encoder_output: Any = None
        if decoder_prompt is not None:
            ids = torch.tensor([list(prompt)], dtype=torch.long, device=model.device)
            self._encoder_output = model.get_encoder()(input_ids=ids, return_dict=True)

    def keep(self, nodes: Iterable[int]) -> None:
        """Nothing is kept anyway."""

    def logits(self, nodes: Sequence[int]) -> torch.Tensor:
        """As ``TriePasses`` says. A pass for each ``ROWS`` nodes none of which lies on the way to another."""
        trie = self._trie
        on_the_way = {before for node in nodes for before in trie.path(node)[:-1]}
        if any(node != ROOT for node in nodes):
            on_the_way.add(ROOT)
        last = list(dict.fromkeys(node for node in nodes if node not in on_the_way))
        found: dict[int, torch.Tensor] = {}
        wanted = set(nodes)
        for i in range(0, len(last), ROWS):
            paths = [[ROOT, *trie.path(node)] for node in last[i : i + ROWS]]
            logits = self._run([[trie.tokens[node] for node in path[1:]] for path in paths])
            for path, row in zip(paths, logits, strict=True):
                found.update((node, row[depth]) for depth, node in enumerate(path) if node in wanted)
        return torch.stack([found[node] for node in nodes])

    def _run(self, continuations: Sequence[Sequence[int]]) -> torch.Tensor:
        """The logits after the prompt and after each token of each continuation: rows × (longest + 1) × vocabulary."""
        width = max(map(len, continuations))
        # What fills a row up comes after all that counts, so it changes nothing: these models look back only.
        filler = self._prompt[-1]
        ids = torch.tensor(
            [[*self._prompt, *tokens, *[filler] * (width - len(tokens))] for tokens in continuations],
            dtype=torch.long,
            device=self._model.device,
        )
        arguments: dict[str, Any] = {"input_ids": ids}
        if self._encoder_output is not None:
            hidden = self._encoder_output.last_hidden_state.expand(len(ids), -1, -1)
            encoder_output = type(self._encoder_output)(last_hidden_state=hidden)
            arguments = {"encoder_outputs": encoder_output, "decoder_input_ids": ids}
        if "logits_to_keep" in inspect.signature(self._model.forward).parameters:
            arguments["logits_to_keep"] = width + 1
        logits: torch.Tensor = self._model(**arguments, use_cache=False, return_dict=True).logits
        return logits[:, -width - 1 :]


def may_take_tree_masks(model: PreTrainedModel) -> bool:
    """Whether a model's attention follows a mask and positions of one's own, as far as its configuration tells:
    a decoder of which ``forward`` takes both, with attention that reads masks, and no bias by distance (ALiBi)."""
    config = model.config.get_text_config(decoder=True)
    parameters = inspect.signature(model.forward).parameters
    return (
        not model.config.is_encoder_decoder
        and {"position_ids", "attention_mask"} <= parameters.keys()
        and getattr(config, "_attn_implementation", None) in ("sdpa", "eager")
        and not getattr(config, "alibi", False)
    )
