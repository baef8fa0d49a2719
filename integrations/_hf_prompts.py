"""Prompts, as chat messages or plain text, to the padded ids that ``generate`` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch
from transformers import PreTrainedTokenizerBase

from trieauto.errors import UnsupportedError, shorten

Prompt: TypeAlias = str | Sequence[Mapping[str, Any]]
"""Plain text, or chat messages such as ``[{"role": "user", "content": "…"}]``."""


def encode(tokenizer: PreTrainedTokenizerBase, prompt: Prompt) -> list[int]:
    """The ids of one prompt.

    Chat messages go through the tokenizer's chat template, which writes every special token itself. Plain text gets the
    special tokens that the tokenizer adds, unless it already begins with the one for the beginning.

    Raises:
        UnsupportedError: neither text nor chat messages, no chat template for chat messages, or no ids at all.
    """
    if isinstance(prompt, str):
        is_rendered = bool(tokenizer.bos_token) and prompt.startswith(tokenizer.bos_token)
        ids = tokenizer(prompt, add_special_tokens=not is_rendered)["input_ids"]
    elif is_chat(prompt):
        if tokenizer.chat_template is None:
            raise UnsupportedError("the tokenizer has no chat template: give the prompt as plain text")
        messages: Any = list(prompt)
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    else:
        raise UnsupportedError(
            f"a prompt is text or a list of chat messages with role and content, not {shorten(prompt)}"
        )
    if not ids:
        raise UnsupportedError(f"the prompt {shorten(prompt)} has no tokens: there is nothing to answer")
    return list(ids)


def is_chat(prompt: object) -> bool:
    """Whether it is a non-empty list of messages that have a role."""
    return (
        isinstance(prompt, Sequence)
        and len(prompt) > 0
        and all(isinstance(message, Mapping) and "role" in message for message in prompt)
    )


def pad(
    rows: Sequence[Sequence[int]], pad_token_id: int, device: torch.device, left: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and attention mask (int64, rows × longest row), padded on the left or on the right."""
    width = max(len(row) for row in rows)
    ids = torch.full((len(rows), width), pad_token_id, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        place = slice(width - len(row), width) if left else slice(0, len(row))
        ids[i, place] = torch.tensor(row, dtype=torch.long)
        mask[i, place] = 1
    return ids.to(device), mask.to(device)
