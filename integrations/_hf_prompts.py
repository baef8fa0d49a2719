"""Prompts, as chat messages or plain text, to the padded ids that ``generate`` takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from trieauto.errors import UnsupportedError

from ._hf_messages import shown

Prompt: TypeAlias = str | Sequence[Mapping[str, Any]]
"""Plain text, or chat messages such as ``[{"role": "user", "content": "…"}]``."""


def encode(tokenizer: PreTrainedTokenizerBase, prompt: Prompt) -> list[int]:
    """The ids of one prompt.

    Chat messages go through the tokenizer's chat template, which writes every special token itself. Plain text gets the
    special tokens that the tokenizer adds, unless it already begins with the one for the beginning.

    Raises:
        UnsupportedError: neither text nor chat messages, a lone surrogate, no chat template for chat messages, one that
            fails on them, or no ids at all.
    """
    for text in _strings(prompt):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UnsupportedError(
                f"the prompt {shown(prompt)} holds a lone surrogate and has no UTF-8 bytes"
            ) from None
    if isinstance(prompt, str):
        is_rendered = bool(tokenizer.bos_token) and prompt.startswith(tokenizer.bos_token)
        ids = tokenizer(prompt, add_special_tokens=not is_rendered)["input_ids"]
    elif is_chat(prompt):
        if tokenizer.chat_template is None:
            raise UnsupportedError("the tokenizer has no chat template: give the prompt as plain text")
        messages: Any = list(prompt)
        try:
            ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        # Templates for text alone add strings: parts of a message make that a TypeError.
        except (TemplateError, TypeError) as error:
            raise UnsupportedError(f"the chat template fails on the prompt {shown(prompt)}: {error}") from error
    else:
        raise UnsupportedError(
            "a prompt is text or a list of chat messages with role and content (text, or a list of parts), not "
            f"{shown(prompt)}"
        )
    if not ids:
        raise UnsupportedError(f"the prompt {shown(prompt)} has no tokens: there is nothing to answer")
    return list(ids)


def is_chat(prompt: object) -> bool:
    """Whether it is a non-empty list of messages that have a role, and content or tool calls."""
    return (
        isinstance(prompt, Sequence)
        and len(prompt) > 0
        and all(
            isinstance(message, Mapping)
            and isinstance(message.get("role"), str)
            and (isinstance(message.get("content"), (str, list, tuple)) or message.get("tool_calls"))
            for message in prompt
        )
    )


def _strings(value: object) -> Iterator[str]:
    """All text in a prompt, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _strings(part)


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
