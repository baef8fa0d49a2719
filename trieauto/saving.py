"""Constraints in files that are mapped into memory: plain arrays under checksums, never pickled.

A file is one line (what it is, its format's version, how long the header is and its digest), the header in JSON (the
vocabulary's fingerprint; names, types, lengths, places and checksums of the arrays; what is no array), and the arrays,
each at a multiple of 64 bytes. A file is written beside its place and moved there in one step, so that processes that
have the old one mapped go on with that.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .constraint import Constraint
from .errors import SavedConstraintError, TrieautoError, UnsupportedError, shorten
from .kernels.checking import checksum
from .kernels.jit import warm_up
from .saved_parts import Arrays, put_together, taken_apart
from .vocabulary import Vocabulary

VERSION = 1
_KIND = "trieauto constraint"
_ALIGNMENT = 64
_LONGEST_LINE = 128
_DTYPES = {"uint8": np.uint8, "int32": np.int32, "int64": np.int64}


def save(constraint: Constraint, path: str | os.PathLike[str]) -> None:
    """See ``Constraint.save``."""
    if type(constraint) is not Constraint:
        raise UnsupportedError(f"{constraint!r} cannot be saved: pickle it, or compile it anew")
    arrays, facts = taken_apart(constraint)
    described: dict[str, list[object]] = {}
    contents = []
    place = 0
    for name, array in arrays.items():
        data = array.tobytes()
        data += bytes(-len(data) % _ALIGNMENT)
        described[name] = [array.dtype.name, len(array), place, int(checksum(np.frombuffer(bytearray(data), np.int64)))]
        contents.append(data)
        place += len(data)
    header = json.dumps({"vocabulary": constraint.vocabulary.fingerprint, "arrays": described, "facts": facts}).encode()
    header += b" " * (-(len(header) + _ALIGNMENT * 2) % _ALIGNMENT)
    _write(Path(_checked_path(path)), [_line(header), header, *contents])


def _line(header: bytes) -> bytes:
    digest = hashlib.blake2b(header, digest_size=16).hexdigest()
    return f"{_KIND} {VERSION} {len(header)} {digest}\n".encode().ljust(_LONGEST_LINE)


def _write(path: Path, parts: list[bytes]) -> None:
    if path.is_dir():
        raise SavedConstraintError(f"{path} cannot be written: Is a directory")
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".tmp")
    except OSError as error:
        raise SavedConstraintError(f"{path} cannot be written: {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise SavedConstraintError(f"{path} cannot be written: {error.strerror or error}") from error


def load(path: str | os.PathLike[str], vocabulary: Vocabulary) -> Constraint:
    """The constraint that ``constraint.save`` wrote, mapped into memory: processes that load it share one copy.

    Everything is checked before it is used: checksums, and that no number leads outside the arrays. Some 0.2 ns a byte
    of the file, so milliseconds for a million values.

    Args:
        path: the file. Others may replace it meanwhile, but must not write into it.
        vocabulary: the one that it was compiled for, made anew or not.

    Raises:
        SavedConstraintError: no such file; something else; damaged, or written by another version; made for another
            vocabulary.
        TrieautoError: no path, or no vocabulary.
    """
    begin = time.perf_counter()
    file_path = Path(_checked_path(path))
    if not isinstance(vocabulary, Vocabulary):
        raise TrieautoError(
            f"load takes the vocabulary that the constraint was compiled for, not {shorten(vocabulary)}"
        )
    warm_up()
    try:
        with file_path.open("rb") as file:
            # Private: arrays over it may be written to, as kernels require, but nobody does.
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except ValueError:
        raise SavedConstraintError(f"{file_path} is empty: it is no saved constraint") from None
    except OSError as error:
        raise SavedConstraintError(f"{file_path} cannot be read: {error.strerror or error}") from error
    try:
        header, first = _header(memory)
        if header["vocabulary"] != vocabulary.fingerprint:
            raise SavedConstraintError(
                f"{file_path} was made for another vocabulary (fingerprint {shorten(header['vocabulary'])}), not for "
                f"{vocabulary!r} ({vocabulary.fingerprint})"
            )
        arrays = _mapped(memory, header["arrays"], first)
        return put_together(arrays, header["facts"], vocabulary, begin)
    except SavedConstraintError:
        raise
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, AttributeError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise SavedConstraintError(f"{file_path} cannot be loaded: {reason}") from None


def _checked_path(path: object) -> str | os.PathLike[str]:
    if not isinstance(path, (str, os.PathLike)) or not _names_a_file(os.fspath(path)):
        raise TrieautoError(f"a path must be a str or a PathLike that names a file, not {shorten(path)}")
    return path


def _names_a_file(path: object) -> bool:
    try:
        return isinstance(path, str) and "\0" not in path and os.fsencode(path) != b""
    except UnicodeEncodeError:
        return False


def _header(memory: mmap.mmap) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin."""
    line = memory[:_LONGEST_LINE].split(b"\n")[0].decode("ascii", "replace")
    if not line.startswith(_KIND + " "):
        raise ValueError("it is no saved constraint")
    version, *rest = line.removeprefix(_KIND).split()
    if version != str(VERSION):
        raise ValueError(f"it has version {shorten(version)} of the format; this trieauto reads {VERSION}")
    if len(rest) != 2 or not rest[0].isdecimal():
        raise ValueError("it is damaged: its first line is not whole")
    end = _LONGEST_LINE + int(rest[0])
    data = memory[_LONGEST_LINE:end]
    if memory[:_LONGEST_LINE] != _line(data):
        raise ValueError("it is damaged: the first lines do not match")
    header: dict[str, Any] = json.loads(data)
    return header, end


def _mapped(memory: mmap.mmap, described: Mapping[str, Any], first: int) -> Arrays:
    arrays: Arrays = {}
    behind = first
    for name, (dtype, length, place, expected) in described.items():
        begin = first + place
        end = begin + length * np.dtype(_DTYPES[dtype]).itemsize
        padded = end + (-end % _ALIGNMENT)
        if length < 0 or place < 0 or padded > len(memory):
            raise ValueError("it is damaged: it is shorter than its arrays")
        if checksum(np.frombuffer(memory, np.int64, (padded - begin) // 8, begin)) != expected:
            raise ValueError(f"it is damaged: the checksum of its {name} does not match")
        arrays[name] = np.frombuffer(memory, _DTYPES[dtype], length, begin)
        behind = max(behind, padded)
    if behind != len(memory):
        raise ValueError("it is damaged: something stands behind its arrays")
    return arrays
