"""The engines side by side: one small adapter each, so that every row of the table is measured by the same code.

Each is given what it likes best: grammar texts are written and buffers' addresses found outside the clock.
"""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from vocabularies import ByteVocabulary

Bitmask = npt.NDArray[np.int32]
Fill = Callable[[], object]


class EngineError(RuntimeError):
    """An engine that refuses a set or a token."""


@dataclass(frozen=True)
class Form:
    """One way to tell an engine about a set: the text it is given, and how a value is spelled in that language."""

    name: str
    source: Callable[[Sequence[str]], Any]
    is_json: bool = False

    def spell(self, value: str) -> bytes:
        return json.dumps(value, ensure_ascii=False).encode() if self.is_json else value.encode()


class Engine(ABC):
    """What the measurements need of an engine. Made for one vocabulary; making it is not timed here."""

    name: str
    forms: tuple[Form, ...]
    is_oracle = True
    threads: tuple[Any, ...] = (1,)

    def __init__(self, vocabulary: ByteVocabulary) -> None:
        self.num_words = (vocabulary.size + 31) // 32

    @abstractmethod
    def compile(self, form: Form, source: Any) -> Any:
        """What can be shared by all matchers of a set."""

    def settle(self, compiled: Any) -> None:  # noqa: B027 (most have nothing to do)
        """Bring a set to the state that it is in after long use."""

    @abstractmethod
    def matcher(self, compiled: Any) -> Any:
        """A matcher before the first token."""

    @abstractmethod
    def accept(self, matcher: Any, token_id: int) -> None:
        """Take one token.

        Raises:
            EngineError: it is not legal.
        """

    def reset(self, matcher: Any) -> None:
        """Go back to before the first token."""
        matcher.reset()

    @abstractmethod
    def rollback(self, matcher: Any) -> None:
        """Take back the last token."""

    @abstractmethod
    def may_stop(self, matcher: Any) -> bool:
        """Whether a stop token would be accepted now."""

    def allocate(self, rows: int) -> Any:
        """A bitmask of this engine's liking for ``fill`` and ``batch_fill``."""
        return np.zeros((rows, self.num_words), np.int32)

    def rows(self, bitmask: Any) -> Bitmask:
        """The words of what ``allocate`` made: int32[rows, words]."""
        array: Bitmask = bitmask
        return array

    @abstractmethod
    def fill(self, matcher: Any, bitmask: Any) -> Fill:
        """What fills row 0 when called."""

    @abstractmethod
    def batch_fill(self, matchers: Sequence[Any], bitmask: Any, threads: Any) -> Fill:
        """What fills rows 0, 1, ... when called."""

    def nbytes(self, compiled: Any) -> int | None:
        """The engine's own account of the memory of a compiled set."""
        return None

    def first_mask(self, form: Form, source: Any, bitmask: Any) -> Any:
        """From the set to the first mask in row 0; returns what was compiled."""
        compiled = self.compile(form, source)
        self.fill(self.matcher(compiled), bitmask)()
        return compiled

    def timed_first_mask(self, form: Form, source: Any, bitmask: Any) -> tuple[float, Any]:
        """Seconds to the first mask, and what was compiled."""
        begin = time.perf_counter()
        compiled = self.first_mask(form, source, bitmask)
        return time.perf_counter() - begin, compiled


def _quoted_alternatives(values: Sequence[str]) -> str:
    return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)


def _ebnf(values: Sequence[str]) -> str:
    return f"root ::= {_quoted_alternatives(values)}"


# By default LLGuidance allows nothing but the tokenizer's own next token where the text is determined: other masks, and
# slower ones. Its other forms know no such option.
_NO_FORCING = '%llguidance {"no_forcing": true}\n'


def _lark_terminal(values: Sequence[str]) -> str:
    return f"{_NO_FORCING}start: VALUE\nVALUE: {_quoted_alternatives(values)}"


def _lark_rule(values: Sequence[str]) -> str:
    return f"{_NO_FORCING}start: {_quoted_alternatives(values)}"


def lark_regex(pattern: str) -> str:
    """The language of a regex, for LLGuidance's form "lark terminal"."""
    return f"{_NO_FORCING}start: VALUE\nVALUE: /{pattern}/"


def _regex(values: Sequence[str]) -> str:
    return "|".join(re.escape(value) for value in values)


def _json_enum(values: Sequence[str]) -> str:
    return json.dumps({"enum": list(values)}, ensure_ascii=False)


def _structural_tag(values: Sequence[str]) -> str:
    elements = [{"type": "const_string", "value": value} for value in values]
    return json.dumps({"type": "structural_tag", "format": {"type": "or", "elements": elements}})


# A loop over the matchers instead of the engine's call for all, whose threads may cost more than they save.
ROW_BY_ROW = "row by row"


def _one_after_the_other(fills: Sequence[Fill]) -> Fill:
    def fill_all() -> None:
        for fill in fills:
            fill()

    return fill_all


def _keeping(bitmask: Bitmask, fill: partial[object]) -> Fill:
    """``fill``, which knows only an address, and with it the memory that is there."""
    fill.__dict__["bitmask"] = bitmask
    return fill


class XGrammar(Engine):
    """XGrammar as it comes: all masks are prepared while compiling, by eight threads.

    To start them costs more than they save where there is little to prepare (0.4 ms for a date, which one thread
    compiles in 0.1 ms), so the faster forms exist with one thread, too.
    """

    name = "XGrammar"
    threads = (1, 2, "auto", ROW_BY_ROW)
    forms = (
        Form("EBNF", _ebnf),
        Form("regex", _regex),
        Form("structural tag", _structural_tag),
        Form("JSON enum", _json_enum, is_json=True),
        Form("EBNF, one thread", _ebnf),
        Form("regex, one thread", _regex),
        Form("JSON enum, one thread", _json_enum, is_json=True),
    )
    dynamic = False

    def __init__(self, vocabulary: ByteVocabulary) -> None:
        import xgrammar

        super().__init__(vocabulary)
        self._xgrammar: Any = xgrammar
        self._stop_token_id = vocabulary.stop_token_id
        self.tokenizer_info = self.prepare(vocabulary)

    @staticmethod
    def prepare(vocabulary: ByteVocabulary) -> Any:
        """The tokenizer as XGrammar knows it; timed in a row of its own."""
        from xgrammar import TokenizerInfo, VocabType

        tokens = [token or b"" for token in vocabulary.tokens]
        return TokenizerInfo(
            tokens, VocabType.RAW, vocab_size=vocabulary.size, stop_token_ids=[vocabulary.stop_token_id]
        )

    def compile(self, form: Form, source: Any) -> Any:
        language, _, threads = form.name.partition(", ")
        compiler = self._xgrammar.GrammarCompiler(
            self.tokenizer_info,
            cache_enabled=False,
            enable_dynamic_compilation=self.dynamic,
            **({"max_threads": 1} if threads else {}),
        )
        if language == "EBNF":
            return compiler.compile_grammar(source)
        if language == "regex":
            return compiler.compile_regex(source)
        if language == "structural tag":
            return compiler.compile_structural_tag(source)
        return compiler.compile_json_schema(source)

    def matcher(self, compiled: Any) -> Any:
        return self._xgrammar.GrammarMatcher(compiled)

    def accept(self, matcher: Any, token_id: int) -> None:
        if not matcher.accept_token(token_id):
            raise EngineError(f"{self.name} refuses token {token_id}")

    def rollback(self, matcher: Any) -> None:
        matcher.rollback(1)

    def may_stop(self, matcher: Any) -> bool:
        return bool(matcher.fork().accept_token(self._stop_token_id))

    def fill(self, matcher: Any, bitmask: Any) -> Fill:
        return partial(matcher.fill_next_token_bitmask, bitmask, 0)

    def batch_fill(self, matchers: Sequence[Any], bitmask: Any, threads: Any) -> Fill:
        if threads == ROW_BY_ROW:
            fills = [partial(matcher.fill_next_token_bitmask, bitmask, row) for row, matcher in enumerate(matchers)]
            return _one_after_the_other(fills)
        batch = self._xgrammar.BatchGrammarMatcher(threads)
        return partial(batch.batch_fill_next_token_bitmask, list(matchers), bitmask)

    def nbytes(self, compiled: Any) -> int:
        return int(compiled.memory_size_bytes)


class DynamicXGrammar(XGrammar):
    """XGrammar's option to prepare a mask when it is first needed: early to the first mask, slow on new ground."""

    name = "XGrammar dynamic"
    dynamic = True


class LLGuidance(Engine):
    """LLGuidance, without the limits on a grammar's size that large sets run into."""

    name = "LLGuidance"
    threads = (1, 2, ROW_BY_ROW)
    forms = (
        Form("lark terminal", _lark_terminal),
        Form("lark rule", _lark_rule),
        Form("regex", _regex),
        Form("JSON enum", _json_enum, is_json=True),
    )

    def __init__(self, vocabulary: ByteVocabulary) -> None:
        import llguidance

        super().__init__(vocabulary)
        self._llguidance: Any = llguidance
        self._stop_token_id = vocabulary.stop_token_id
        # Its "slices" speed up masks of nearly all tokens; for sets they cost 0.1 ms for each grammar.
        self.tokenizer = self.prepare(vocabulary, slices=[])
        self._limits = llguidance.LLParserLimits(
            max_items_in_row=2**30,
            initial_lexer_fuel=2**40,
            step_lexer_fuel=2**40,
            step_max_items=2**30,
            max_lexer_states=2**30,
            max_grammar_size=2**30,
        )

    @staticmethod
    def prepare(vocabulary: ByteVocabulary, slices: list[str] | None = None) -> Any:
        """The tokenizer as LLGuidance knows it; timed in a row of its own."""
        import llguidance

        return llguidance.LLTokenizer(_Wrapper(vocabulary), n_vocab=vocabulary.size, slices=slices)  # type: ignore[arg-type]

    def compile(self, form: Form, source: Any) -> Any:
        matcher = self._llguidance.LLMatcher
        if form.name == "regex":
            grammar = matcher.grammar_from_regex(source)
        elif form.is_json:
            grammar = matcher.grammar_from_json_schema(source)
        else:
            grammar = matcher.grammar_from_lark(source)
        compiled = matcher(self.tokenizer, grammar, limits=self._limits)
        self._check(compiled)
        return compiled

    def matcher(self, compiled: Any) -> Any:
        return compiled.deep_copy()

    def first_mask(self, form: Form, source: Any, bitmask: Any) -> Any:
        compiled = self.compile(form, source)  # a matcher already
        self.fill(compiled, bitmask)()
        return compiled

    def accept(self, matcher: Any, token_id: int) -> None:
        if not matcher.consume_token(token_id):
            raise EngineError(f"{self.name} refuses token {token_id}: {matcher.get_error()}")

    def rollback(self, matcher: Any) -> None:
        if not matcher.rollback(1):
            raise EngineError(f"{self.name} cannot roll back: {matcher.get_error()}")

    def may_stop(self, matcher: Any) -> bool:
        return bool(matcher.is_accepting())

    def fill(self, matcher: Any, bitmask: Any) -> Fill:
        return _keeping(bitmask, partial(matcher.unsafe_compute_mask_ptr, bitmask.ctypes.data, bitmask[0].nbytes))

    def batch_fill(self, matchers: Sequence[Any], bitmask: Any, threads: Any) -> Fill:
        if threads == ROW_BY_ROW:
            return _one_after_the_other([self.fill(m, row[None]) for m, row in zip(matchers, bitmask, strict=True)])
        fill = self._llguidance.LLExecutor(threads).unsafe_compute_mask_ptr
        pairs = [(matcher, row) for row, matcher in enumerate(matchers)]
        return _keeping(bitmask, partial(fill, pairs, bitmask.ctypes.data, bitmask[0].nbytes, len(bitmask)))

    def _check(self, matcher: Any) -> None:
        if matcher.is_error():
            raise EngineError(f"{self.name}: {matcher.get_error()}")


class _Wrapper:
    """A tokenizer as LLGuidance wants it: bytes for each id, and an encoder (greedy: any is good for masks)."""

    is_tokenizer_wrapper = True

    def __init__(self, vocabulary: ByteVocabulary) -> None:
        self._ids = vocabulary.ids
        self.eos_token_id = vocabulary.stop_token_id
        self.bos_token_id = None
        self.special_token_ids = [i for i, token in enumerate(vocabulary.tokens) if token is None]
        # 0xFF marks names of special tokens, which are not text.
        self.tokens = [b"\xff<%d>" % i if token is None else token for i, token in enumerate(vocabulary.tokens)]

    def __call__(self, text: str) -> list[int]:
        data, result, begin = text.encode(), [], 0
        while begin < len(data):
            end = next(end for end in range(len(data), begin, -1) if data[begin:end] in self._ids)
            result.append(self._ids[data[begin:end]][0])
            begin = end
        return result


class OutlinesCore(Engine):
    """outlines-core; loses values that are prefixes of others, so its masks are timed but never compared."""

    name = "outlines-core"
    forms = (Form("regex", _regex),)
    is_oracle = False

    def __init__(self, vocabulary: ByteVocabulary) -> None:
        import outlines_core  # type: ignore[import-untyped]

        super().__init__(vocabulary)
        self._outlines_core = outlines_core
        self.vocabulary = self.prepare(vocabulary)

    @staticmethod
    def prepare(vocabulary: ByteVocabulary) -> Any:
        import outlines_core

        return outlines_core.Vocabulary(vocabulary.stop_token_id, dict(vocabulary.ids))

    def compile(self, form: Form, source: Any) -> Any:
        return self._outlines_core.Index(source, self.vocabulary)

    def matcher(self, compiled: Any) -> Any:
        return self._outlines_core.Guide(compiled)

    def accept(self, matcher: Any, token_id: int) -> None:
        try:
            matcher.advance(token_id, return_tokens=False)
        except ValueError as error:
            raise EngineError(f"{self.name} refuses token {token_id}") from error

    def rollback(self, matcher: Any) -> None:
        matcher.rollback_state(1)

    def may_stop(self, matcher: Any) -> bool:
        return bool(matcher.is_finished())

    def fill(self, matcher: Any, bitmask: Any) -> Fill:
        return _keeping(bitmask, partial(matcher.write_mask_into, bitmask.ctypes.data, bitmask.shape[1], 4))

    def batch_fill(self, matchers: Sequence[Any], bitmask: Any, threads: Any) -> Fill:
        return _one_after_the_other([self.fill(m, row[None]) for m, row in zip(matchers, bitmask, strict=True)])


PEERS: dict[str, type[Engine]] = {
    engine.name: engine for engine in (XGrammar, DynamicXGrammar, LLGuidance, OutlinesCore)
}
