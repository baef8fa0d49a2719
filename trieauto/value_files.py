"""Files of values: one a line, a JSON array, or JSON strings one a line."""

from __future__ import annotations

import json
from pathlib import Path

from .errors import ValueFileError, shorten

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SHOWN = 80


def read_values(path: Path) -> list[str]:
    """The values of a file, in its order, duplicates included.

    By the file's name: ``.json`` is an array of strings; ``.jsonl`` has one JSON string a line (for values with
    newlines, or the empty value); any other file has one value a line, without the line's end (LF or CRLF), everything
    else on the line included. All of them are UTF-8, a byte order mark at the beginning is left out.

    Raises:
        ValueFileError: a file that cannot be read or holds no values, or a line that is none; the message names both.
    """
    return parse_values(read_bytes(path), path)


def parse_values(data: bytes, path: Path) -> list[str]:
    """The values of a file whose contents (without a byte order mark) are at hand; see ``read_values``."""
    kind = path.suffix.lower()
    values = _of_json(data, path) if kind == ".json" else _of_lines(data, path, is_json=kind == ".jsonl")
    if not values:
        raise ValueFileError(f"{path} holds no values")
    return values


def place_of_value(path: Path, index: int) -> str:
    """Where in its file the value with this index stands."""
    return f"{'element' if path.suffix.lower() == '.json' else 'line'} {index + 1}"


def as_json(value: object) -> str:
    """A value of a JSON file for a message, as JSON writes it, cut if it is long."""
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def read_bytes(path: Path) -> bytes:
    """All of a file, without a byte order mark.

    Raises:
        ValueFileError: it cannot be read; the message says why.
    """
    try:
        return path.read_bytes().removeprefix(_BYTE_ORDER_MARK)
    except OSError as error:
        raise ValueFileError(f"{path}: {error.strerror or error}") from error


def split_lines(data: bytes) -> list[bytes]:
    """The lines of a file without their ends, which are LF or CRLF; the last one may lack it."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def _of_lines(data: bytes, path: Path, is_json: bool) -> list[str]:
    values = []
    for number, line in enumerate(split_lines(data), start=1):
        if not line:
            hint = "" if is_json else ' (the empty value can be given as "" in a .jsonl file)'
            raise ValueFileError(f"{path}:{number}: an empty line{hint}")
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise ValueFileError(f"{path}:{number}: not UTF-8 (byte 0x{line[error.start]:02x})") from error
        values.append(_string_of_json(text, f"{path}:{number}") if is_json else text)
    return values


def _string_of_json(text: str, place: str) -> str:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueFileError(f"{place}: not JSON: {error.msg} at column {error.colno}") from error
    return _checked(value, place)


def _of_json(data: bytes, path: Path) -> list[str]:
    try:
        values = json.loads(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueFileError(f"{path}:{line}: not UTF-8 (byte 0x{data[error.start]:02x})") from error
    except json.JSONDecodeError as error:
        raise ValueFileError(f"{path}:{error.lineno}: not JSON: {error.msg} at column {error.colno}") from error
    if not isinstance(values, list):
        raise ValueFileError(f"{path}: not an array of strings (for one JSON string a line, name the file .jsonl)")
    return [_checked(value, f"{path}: element {number}") for number, value in enumerate(values, start=1)]


def _checked(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise ValueFileError(f"{place}: {as_json(value)} is not a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueFileError(f"{place}: {shorten(value)} holds a lone surrogate, which is no character") from error
    return value
