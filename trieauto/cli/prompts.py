"""The prompts of ``trieauto choose``: JSON objects, one a line, checked before anything is generated."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..value_files import as_json, read_bytes, split_lines
from .errors import CommandError

RESULT_KEYS = ("value", "log_probability", "num_tokens", "num_forward_passes", "ended")
ERROR_KEY = "error"  # follows them where the prompt was refused


@dataclass(frozen=True, slots=True)
class PromptLine:
    """One line of the input.

    Attributes:
        place: the file and the line's number, for messages.
        prompt: plain text, or the messages of a chat.
        opening: with what the line's answer begins: the JSON object as it was written, but open for more keys.
    """

    place: str
    prompt: str | Sequence[Mapping[str, Any]]
    opening: bytes

    def answered(self, results: Mapping[str, Any]) -> bytes:
        """The line of the output: the input object and the results, ended by a newline."""
        return self.opening + json.dumps(results, ensure_ascii=False)[1:].encode() + b"\n"


def read_prompts(name: str, system: str | None) -> list[PromptLine]:
    """All prompts of a file, or of stdin.

    Args:
        name: the file, or "-".
        system: the system message of every chat that has none of its own; it makes a chat of plain text.

    Raises:
        CommandError: a file that cannot be read or holds no prompts, or a line that is none; the message names both.
    """
    origin = "stdin" if name == "-" else name
    if name == "-" and sys.stdin is None:
        raise CommandError("stdin is closed: name a file with --prompts")
    data = sys.stdin.buffer.read() if name == "-" else read_bytes(Path(name))
    lines = [_prompt_line(line, f"{origin}:{number}", system) for number, line in enumerate(split_lines(data), start=1)]
    if not lines:
        raise CommandError(f"{origin} holds no prompts")
    return lines


def _prompt_line(line: bytes, place: str, system: str | None) -> PromptLine:
    text = line.strip()
    if not text:
        raise CommandError(f"{place}: an empty line")
    try:
        record = json.loads(text.decode())
        json.dumps(record, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise CommandError(f"{place}: not JSON: {error.msg} at column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{place}: not UTF-8 (byte 0x{text[error.start]:02x})") from error
    except UnicodeEncodeError as error:
        raise CommandError(f"{place}: a lone surrogate, which is no character") from error
    if not isinstance(record, dict):
        raise CommandError(f"{place}: {as_json(record)} is not a JSON object")
    for key in (*RESULT_KEYS, ERROR_KEY):
        if key in record:
            raise CommandError(f'{place}: the key "{key}" is where the answer is written; rename yours')
    return PromptLine(place, _prompt(record, place, system), text[:-1].rstrip() + b", ")


def _prompt(record: Mapping[str, Any], place: str, system: str | None) -> str | list[Mapping[str, Any]]:
    if "prompt" in record and "messages" in record:
        raise CommandError(f'{place}: has both "prompt" and "messages": give one')
    if "prompt" not in record and "messages" not in record:
        raise CommandError(f'{place}: a line needs either "prompt" or "messages"')
    if "prompt" in record:
        prompt = record["prompt"]
        if not isinstance(prompt, str):
            raise CommandError(f'{place}: "prompt" is {as_json(prompt)}, not a text')
        return prompt if system is None else [_message("system", system), _message("user", prompt)]
    messages = record["messages"]
    if messages == []:
        raise CommandError(f'{place}: "messages" is empty')
    if not isinstance(messages, list):
        raise CommandError(f'{place}: "messages" is {as_json(messages)}, not a list of messages')
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str) or "content" not in message:
            raise CommandError(f'{place}: {as_json(message)} is not a message with "role" and "content"')
    has_own = any(message["role"] == "system" for message in messages)
    return messages if system is None or has_own else [_message("system", system), *messages]


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
