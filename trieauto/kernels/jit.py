"""The one decorator around numba, and where compiled kernels are kept.

Every kernel states its signature, is compiled by :func:`warm_up` (or at its first call) and never again: a call with
other types raises ``TypeError`` instead of compiling a second version in the middle of a request.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import pickle
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numba
import platformdirs
from numba.core import caching, config
from numba.core.codegen import get_host_cpu_features

logger = logging.getLogger("trieauto")
Function = Callable[..., Any]  # what a kernel takes and returns is in its signature

_kernels: list[tuple[Any, str]] = []
_warm_up_lock = threading.Lock()
_is_warm = False
_COMPLETE = "complete"  # a file that says that every kernel is there


def cache_root() -> Path | None:
    """The directory for everything trieauto keeps on disk, or ``None`` where nothing is writable.

    ``TRIEAUTO_CACHE_DIR`` if set, else the user's cache directory.
    """
    chosen = os.environ.get("TRIEAUTO_CACHE_DIR")
    try:
        root = Path(chosen) if chosen else platformdirs.user_cache_path("trieauto", appauthor=False)
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=root):
            pass
    except (OSError, RuntimeError):  # RuntimeError: no home directory can be determined
        return None
    return root


@cache
def source_digest() -> str:
    """A digest of all kernel sources: what they built or compiled before a change is not used after it."""
    digest = hashlib.blake2b(digest_size=16)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


@cache
def _kernel_directory() -> Path | None:
    """Where compiled kernels are kept: one directory for each state of all kernel sources, numba and CPU.

    numba's own cache looks at one file at a time, so a kernel would go on using an old version of a helper that
    lives in another file.
    """
    root = cache_root()
    if root is None:
        warnings.warn(
            "trieauto finds no writable cache directory, so its kernels are compiled anew in each process; "
            "set TRIEAUTO_CACHE_DIR to a writable directory to compile them once",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    settings = (
        source_digest(),
        numba.__version__,
        config.CPU_NAME or "host",
        config.CPU_FEATURES or get_host_cpu_features(),
        config.BOUNDSCHECK,
        config.OPT,
        config.DEBUG_JIT,
    )
    return root / "kernels" / hashlib.blake2b(repr(settings).encode(), digest_size=16).hexdigest()


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Points numba's cache at our directory; freshness is in the directory's name."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        self._py_file = py_file
        self._line = py_func.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(_kernel_directory())

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:
        return cls(py_func, py_file)


class _CacheImpl(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]  # noqa: RUF012 - numba's attribute


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _CacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except (OSError, EOFError, pickle.UnpicklingError, ValueError, TypeError, AttributeError, IndexError, KeyError):
            # A damaged file is no reason to fail: it is compiled anew and replaced.
            logger.warning("trieauto: a damaged kernel cache file is being replaced in %s", self.cache_path)
            self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:  # disk full, or the directory has gone: the kernel works all the same
            logger.warning("trieauto: a compiled kernel could not be kept (%s)", error)


def kernel(signature: str, *, nogil: bool = True) -> Callable[[Function], Function]:
    """Compile a function over plain arrays and numbers, with exactly this signature, cached on disk.

    Args:
        signature: numba's notation, the return type included.
        nogil: release the interpreter lock during the call. Off for calls of about a microsecond, where handing
            the lock over costs more than the work (and getting it back can take a whole switch interval).
    """

    def decorate(function: Function) -> Function:
        dispatcher = numba.njit(nogil=nogil, error_model="numpy", fastmath=False)(function)
        _kernels.append((dispatcher, signature))
        return cast(Function, dispatcher)

    return decorate


def helper(function: Function) -> Function:
    """A function that only kernels call; compiled into them for whatever types they pass."""
    return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))


@contextmanager
def _one_process_at_a_time(directory: Path) -> Iterator[None]:
    """Let one process compile for all that start at once; where there are no file locks, each compiles for itself."""
    try:
        import fcntl

        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (directory / "lock").open("w")
    except (ImportError, OSError):
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def warm_up() -> None:
    """Load every kernel from disk, or compile it (once for each machine and version; most of a minute in all).

    Called when the first vocabulary is made, so that nothing is ever compiled while serving. Safe from several
    threads and processes at once.
    """
    global _is_warm
    if _is_warm:
        return
    for source in Path(__file__).parent.glob("[a-z]*.py"):  # those that nothing has imported yet, too
        import_module(f"{__package__}.{source.stem}")
    with _warm_up_lock:
        if _is_warm:
            return
        directory = _kernel_directory()
        if directory is None:
            _compile_all()
        elif (directory / _COMPLETE).exists():
            _compile_all(_Cache)
        else:
            with _one_process_at_a_time(directory):
                if not (directory / _COMPLETE).exists():
                    logger.warning("trieauto: compiling its kernels for this machine, once; this takes some seconds")
                _compile_all(_Cache)
                with contextlib.suppress(OSError):
                    (directory / _COMPLETE).touch()
        _is_warm = True


def _compile_all(cache_class: type[_Cache] | None = None) -> None:
    for dispatcher, signature in _kernels:
        if cache_class is not None:
            dispatcher._cache = cache_class(dispatcher.py_func)
        dispatcher.compile(signature)
        dispatcher.disable_compile()
