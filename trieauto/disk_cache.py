"""Arrays kept on disk between processes: plain bytes under a digest, never pickled.

A file is one line of JSON (format, builder, key, the arrays' names, dtypes and shapes, a digest) and
the arrays' bytes. It is written beside its place and moved there in one step, so that several processes may write at
once. Whatever does not read as exactly that, for exactly this key, counts as absent and is written anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import os
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .kernels.jit import cache_root, source_digest

logger = logging.getLogger("trieauto")
FORMAT = "trieauto arrays 1"
MAX_FILES = 32  # each of up to some megabytes
_DTYPES = {"uint8", "int32", "int64"}


def _place(kind: str, key: str) -> Path | None:
    root = cache_root()
    return None if root is None else root / "vocabularies" / f"{key}-{kind}.bin"


def _digest(described: object, payload: bytes | bytearray) -> str:
    digest = hashlib.blake2b(json.dumps(described).encode(), digest_size=16)
    digest.update(payload)
    return digest.hexdigest()


def load(kind: str, key: str) -> dict[str, npt.NDArray[np.generic]] | None:
    """The arrays kept under this kind and key, or ``None`` if there are none that can be trusted."""
    place = _place(kind, key)
    if place is None:
        return None
    try:
        with place.open("rb") as file:
            header = json.loads(file.readline(65536))
            payload = bytearray(file.read())  # so that the arrays over it are writable, like fresh ones
        if header["format"] != FORMAT or header["builder"] != source_digest():
            return None  # another version's; that is no fault
        if header["kind"] != kind or header["key"] != key:
            raise ValueError("it was made for something else")
        if header["digest"] != _digest(header["arrays"], payload):
            raise ValueError("its digest does not match its contents")
        arrays: dict[str, npt.NDArray[np.generic]] = {}
        position = 0
        for name, dtype, shape in header["arrays"]:
            if dtype not in _DTYPES:
                raise ValueError(f"it holds an array of {dtype!r}")
            count = math.prod(shape)
            arrays[name] = np.frombuffer(payload, dtype, count, position).reshape(shape)
            position += arrays[name].nbytes
        if position != len(payload) or min((min(shape, default=0) for _, _, shape in header["arrays"]), default=0) < 0:
            raise ValueError("its arrays do not fill it")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else error
        logger.warning("trieauto: the cache file %s is being rebuilt: %s", place, reason)
        return None
    return arrays


def _prune(directory: Path) -> None:
    """Delete the files that were written longest ago, down to ``MAX_FILES``."""
    files = sorted(directory.glob("*.bin"), key=lambda file: file.stat().st_mtime_ns)
    for file in files[:-MAX_FILES]:
        file.unlink(missing_ok=True)


def save(kind: str, key: str, arrays: dict[str, npt.NDArray[np.generic]]) -> None:
    """Keep arrays (C order; uint8, int32 or int64) for later processes; does nothing where nothing is writable."""
    place = _place(kind, key)
    if place is None:
        return
    payload = b"".join(array.tobytes() for array in arrays.values())
    described = [[name, array.dtype.name, list(array.shape)] for name, array in arrays.items()]
    header = {
        "format": FORMAT,
        "builder": source_digest(),
        "kind": kind,
        "key": key,
        "arrays": described,
        "digest": _digest(described, payload),
    }
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=place.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(json.dumps(header).encode() + b"\n")
                file.write(payload)
            os.replace(temporary, place)
            _prune(place.parent)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:  # disk full, or the directory has gone: only speed is lost
        logger.warning("trieauto: a cache file could not be kept: %s", error)
