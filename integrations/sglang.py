"""SGLang: ``--grammar-backend trie``.

SGLang finds this module by the entry point group ``sglang.srt.plugins`` in each of its processes, so it must be light:
everything heavy is imported when the scheduler makes its grammar backend.
"""

from __future__ import annotations

from typing import Any

BACKEND = "trie"
"""What ``--grammar-backend`` calls it."""

TESTED_VERSIONS = ("0.5.23",)
"""Versions of SGLang. With others it says so in the log, and does not start where budgets could not be kept."""

__all__ = ["BACKEND", "TESTED_VERSIONS", "register"]  # and TrieLogitProcessor, which is imported when asked for


def register() -> None:
    """Add ``trie`` to SGLang's grammar backends, and the hooks by which it learns budgets. The entry point."""
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
    from sglang.srt.constrained.base_grammar_backend import register_grammar_backend

    from ._sglang_hooks import register_hooks

    if BACKEND not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([BACKEND])
    register_grammar_backend(BACKEND, _backend)
    register_hooks()


def _backend(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> Any:
    from ._sglang_backend import make_backend

    return make_backend(server_args, tokenizer, vocab_size, eos_token_ids)


def __getattr__(name: str) -> Any:
    if name == "TrieLogitProcessor":
        from ._sglang_processor import TrieLogitProcessor

        return TrieLogitProcessor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
