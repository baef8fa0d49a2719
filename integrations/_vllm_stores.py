"""The constraints of a vLLM engine: one store for each vocabulary of a process, whoever asks for it there."""

from __future__ import annotations

import functools
import logging
import threading
import weakref
from typing import Any

from trieauto.serving import ConstraintStore, NamedSets, Snapshots

logger = logging.getLogger("trieauto")
_by_fingerprint: dict[str, ConstraintStore] = {}
_by_config: dict[int, ConstraintStore] = {}
_lock = threading.Lock()


@functools.cache
def snapshots() -> Snapshots:
    """Those of this process."""
    return Snapshots()


def store_of(model_config: Any, tokenizer: Any = None) -> ConstraintStore:
    """The store of a model, made when it is first asked for (some seconds then, for large vocabularies). Thread-safe.

    Front end, scheduler and processor share it where they run in one process.

    Raises:
        TrieautoError: a tokenizer that cannot be read exactly, or a directory of sets that is none.
    """
    store = _by_config.get(id(model_config))
    if store is not None:
        return store
    with _lock:
        store = _by_config.get(id(model_config))
        if store is None:
            from ._vllm_vocabulary import read_vocabulary

            vocabulary = read_vocabulary(model_config, tokenizer)
            store = _by_fingerprint.get(vocabulary.fingerprint)
            if store is None:
                store = ConstraintStore(vocabulary.prepare(), NamedSets.from_environment())
                _by_fingerprint[vocabulary.fingerprint] = store
                logger.info("trieauto: serving %r with %r", store.vocabulary, store.sets)
            _by_config[id(model_config)] = store
            weakref.finalize(model_config, _by_config.pop, id(model_config), None)
        return store
