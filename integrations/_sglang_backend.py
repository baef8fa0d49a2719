"""SGLang's grammar backend ``trie``: what trieauto supports is ours, everything else is XGrammar's."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    InvalidGrammarObject,
    register_vocab_mask_buffer,
)
from sglang.srt.constrained.xgrammar_backend import TokenizerNotSupportedError, XGrammarGrammarBackend
from sglang.srt.runtime_context import get_serving

from trieauto.errors import EmptyConstraintError, TrieautoError, UnreachableValueError, shorten
from trieauto.serving import ConstraintStore, GrammarKind, NamedSets
from trieauto.serving.named_sets import mentions_sets

from ._sglang_grammar import TrieGrammar, TrieMethods, delegated, new_mask
from ._sglang_hooks import check_hooks
from ._sglang_vocabulary import read_vocabulary
from .sglang import TESTED_VERSIONS

logger = logging.getLogger("trieauto")
KINDS: dict[str, GrammarKind] = {
    "json": "json_schema", "regex": "regex", "ebnf": "ebnf", "full_assistant_ebnf": "ebnf"
}  # fmt: skip
_ANY_JSON = "$$ANY$$"
_MOST_REASONS = 1000  # that are remembered, so that each is logged once


def make_backend(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> BaseGrammarBackend:
    """The factory that SGLang's scheduler calls.

    Raises:
        RuntimeError: SGLang did not apply the hooks that give budgets.
        TrieautoError: a tokenizer that cannot be read exactly, or a directory of sets that is none.
    """
    from sglang.version import __version__ as version

    check_hooks(version, TESTED_VERSIONS)
    vocabulary = read_vocabulary(tokenizer, vocab_size, eos_token_ids).prepare()
    store = ConstraintStore(vocabulary, NamedSets.from_environment())
    logger.info("trieauto: serving %r with %r", store.vocabulary, store.sets)
    serving = get_serving()
    try:
        other = XGrammarGrammarBackend(
            tokenizer,
            vocab_size=vocab_size,
            model_eos_token_ids=list(eos_token_ids) if eos_token_ids else None,
            any_whitespace=not serving.constrained_json_disable_any_whitespace,
            max_whitespace_cnt=serving.constrained_json_max_whitespace_cnt,
        )
    except TokenizerNotSupportedError as error:
        logger.warning("trieauto: what it does not support is refused, since XGrammar cannot be used: %s", error)
        other = None
    backend = TrieGrammarBackend(store, other)
    if serving.reasoning_parser:
        from ._sglang_reasoning import with_reasoning

        return with_reasoning(backend, tokenizer, serving)
    return backend


class TrieGrammarBackend(BaseGrammarBackend):  # type: ignore[misc]
    """Compiles grammars (in SGLang's thread pool), and keeps them: ours in a ``ConstraintStore``, XGrammar's in
    SGLang's cache."""

    def __init__(self, store: ConstraintStore, other: XGrammarGrammarBackend | None) -> None:
        super().__init__()
        self.store = store
        self.other = other
        self._reasons: OrderedDict[str, None] = OrderedDict()

    # Requests

    def ready(self, key: tuple[str, str]) -> TrieGrammar | None:
        """The grammar of a new request, if its constraint is compiled already."""
        kind = KINDS.get(key[0])
        constraint = None if kind is None else self.store.peek(kind, key[1])
        return None if kind is None or constraint is None else TrieGrammar(constraint, kind, key[1])

    def get_cached_or_future_value(
        self, key: tuple[str, str], require_reasoning: bool
    ) -> tuple[BaseGrammarObject | Future[BaseGrammarObject], bool]:
        """A grammar that is there, or one that is being compiled."""
        grammar = self.ready(key)
        return (grammar, True) if grammar is not None else super().get_cached_or_future_value(key, require_reasoning)

    def set_cache(self, key: tuple[str, str], value: BaseGrammarObject) -> None:
        """Keep what XGrammar compiled. What is ours is in the store already, by the versions of its sets; and what is
        wrong with a named set now may not be later."""
        if not isinstance(value, TrieMethods) and not self._names_sets(*key):
            super().set_cache(key, value)

    def reset(self) -> None:
        """Drop all grammars."""
        super().reset()
        self.store.clear()
        if self.other is not None:
            self.other.reset()

    # Compiling

    def _init_value_dispatch(self, key: tuple[str, str], require_reasoning: bool) -> BaseGrammarObject:
        try:
            return super()._init_value_dispatch(key, require_reasoning)
        except RecursionError:  # SGLang would write all of the text into its log
            return _invalid(f"{shorten(key[1])} is nested too deeply")

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """A JSON schema."""
        if key_string == _ANY_JSON:
            return self._delegate("dispatch_json", key_string, "any JSON at all has no end of its own")
        return self._dispatch("json_schema", key_string, "dispatch_json")

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """A regular expression, or ``*set:NAME``."""
        return self._dispatch("regex", key_string, "dispatch_regex")

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """A grammar in XGrammar's EBNF, or ``*set:NAME``."""
        return self._dispatch("ebnf", key_string, "dispatch_ebnf")

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """Text in which tags hold what a grammar describes: always XGrammar's."""
        if self._names_sets("structural_tag", key_string):
            return _invalid("structural tags cannot name sets: XGrammar, which serves them, does not know them")
        return self._delegate("dispatch_structural_tag", key_string, "structural tags")

    def _dispatch(self, kind: GrammarKind, text: str, dispatch: str) -> BaseGrammarObject:
        try:
            return TrieGrammar(self.store.get(kind, text), kind, text)
        except (EmptyConstraintError, UnreachableValueError) as error:
            return _invalid(str(error))
        except TrieautoError as error:
            if self._names_sets(dispatch.removeprefix("dispatch_"), text):
                return _invalid(str(error))
            return self._delegate(dispatch, text, str(error))

    def _delegate(self, dispatch: str, text: str, reason: str) -> BaseGrammarObject:
        if self.other is None:
            return _invalid(f"{reason} (and XGrammar cannot be used with this tokenizer)")
        if reason not in self._reasons:
            self._reasons[reason] = None
            if len(self._reasons) > _MOST_REASONS:
                self._reasons.popitem(last=False)
            logger.warning(
                "trieauto: XGrammar serves %s %s, and its answers may be cut off by max_new_tokens: %s",
                dispatch.removeprefix("dispatch_"),
                shorten(text),
                reason,
            )
        return delegated(getattr(self.other, dispatch)(text))

    def _names_sets(self, key_type: str, text: str) -> bool:
        """Whether a text names sets (or tries to), so that nobody else can serve it."""
        try:
            if key_type in KINDS:
                return bool(self.store.names_of_sets(KINDS[key_type], text))
            return mentions_sets(text)
        except TrieautoError:
            return True

    # What strict thinking asks of a backend

    def initialize_vocab_mask_buffer(self, name: str, vocab_size: int, max_rows: int, device: Any) -> torch.Tensor:
        """A pinned buffer for masks, registered with SGLang."""
        mask: torch.Tensor = register_vocab_mask_buffer(name, new_mask(max_rows, vocab_size), max_rows)
        return mask

    allocate_vocab_mask = staticmethod(lambda vocab_size, batch_size, device: new_mask(batch_size, vocab_size))
    move_vocab_mask = staticmethod(TrieMethods.move_vocab_mask)
    apply_vocab_mask = staticmethod(TrieMethods.apply_vocab_mask)

    @property
    def is_support_token_filter(self) -> bool:
        """Whether tokens can be taken out of masks; XGrammar's backend does it."""
        return self.other is not None

    def set_token_filter(self, *arguments: Any, **options: Any) -> None:
        """Set or clear tokens in a mask."""
        assert self.other is not None
        self.other.set_token_filter(*arguments, **options)

    def reserve_framing_tokens(self, token_ids: Sequence[int]) -> None:
        """Tokens that only frames hold."""
        if self.other is not None:
            self.other.reserve_framing_tokens(token_ids)

    def compile_framed_grammar(
        self, grammar: BaseGrammarObject, frame: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> BaseGrammarObject | None:
        """A grammar in a frame; XGrammar's only."""
        if self.other is None or isinstance(grammar, TrieMethods):
            return None
        return delegated(self.other.compile_framed_grammar(grammar, frame))


def _invalid(message: str) -> InvalidGrammarObject:
    logger.error("trieauto: refused: %s", message)
    return InvalidGrammarObject(message)
