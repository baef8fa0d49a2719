"""Putting an automaton and a vocabulary together."""

from __future__ import annotations

import time
from typing import Literal, get_args

from .automaton import Automaton, PrefixSpace, with_prefix_space
from .budgets import token_distances
from .canonical.constraint import CanonicalConstraint
from .canonical.strings import CanonicalTokens, canonical_tokens, is_encoded
from .constraint import NOTHING, Constraint, Tokenization
from .eager_masks import Method, eager_masks
from .errors import TrieautoError, UnsupportedError, shorten
from .packing import check_threads
from .spelling import find_unreachable_values, has_every_byte
from .token_automata import TokenAutomaton, check_edge_tokens
from .value_lists.automaton import ListAutomaton
from .value_lists.constraint import compile_lists
from .vocabulary import Vocabulary

Mode = Literal["auto", "eager", "lazy"]

# Storing the masks of all states takes about 50 ns a state, and saves about 100 ns for each mask from then on. So a set
# that is used begins lazy, and after half as many masks as it has states, all are stored; unless storing them would
# hold a step up for more than a millisecond or two, or take more memory than the saving is worth.
AUTO_STATES = 20_000
AUTO_MIN_WALKS = 500


def walks_before_storing(automaton: Automaton) -> int:
    """After how many masks found one by one those of all states are stored, in "auto" mode; -1 for never."""
    if automaton.values is None or automaton.num_states > AUTO_STATES:
        return -1
    return max(AUTO_MIN_WALKS, automaton.num_states // 2)


def compile(
    automaton: Automaton | TokenAutomaton | ListAutomaton,
    vocabulary: Vocabulary,
    *,
    mode: Mode = "auto",
    unreachable: Literal["error", "report"] = "error",
    prefix_space: PrefixSpace | None = None,
    method: Method = "walk",
    threads: int | None = None,
    tokenization: Tokenization = "any",
    left_context: str | None = None,
) -> Constraint:
    """Put an automaton and a vocabulary together.

    Args:
        automaton: a language over bytes, as ``choices`` makes it, or over tokens (``token_automaton``), whose edges are
            the masks: then there is nothing to choose by the options. Or lists of values (``several``), whose masks
            are always found when they are needed.
        mode: "eager" finds the legal tokens of every state now; "lazy" finds those of a state when they are needed,
            which costs well under a microsecond, and keeps the ones that cost more; "auto" begins lazy and stores all
            masks of a small automaton once so many were needed that this pays.
        unreachable: what to do about values that the vocabulary's tokens cannot spell: an error that names them, or
            go on without them and list them in ``unreachable_values``. Of sets inside a larger language those are
            found that have a byte which no token has.
        prefix_space: a space before the answer, as SentencePiece tokenizers write it: "none", "optional" or
            "required". By default "optional" for a set and a tokenizer that puts one before the first word, else
            "none": in any other language, put the space into the pattern.
        method: for eager masks, walking the token trie and the automaton together, or the trie paper's Aho-Corasick
            pass (section 4.2; sets only). The masks are equal.
        threads: for eager masks; by default one up to 160,000 states, then one for each processor, eight at most.
        tokenization: "any" admits every spelling of a string in tokens; "canonical" only the one that the tokenizer
            itself writes (appendix H.9 of the trie paper; see ``canonical`` for its mask law). The vocabulary must come
            from a tokenizer. A set, or a language of at most 200,000 strings, is encoded string by string; a string
            that the tokenizer never writes (its normalizer changes it, it is no UTF-8, it has the text of a special
            token and the encoder reads that, as Hugging Face's do; tiktoken's and Mistral's write it as text) counts as
            one that cannot be spelled. Any other language is followed together with the tokenizer's
            own steps, if that is a byte-level BPE; strings that it never writes are then not in it. Its masks are found
            while it is written: the first in each place takes up to some tens of milliseconds where nearly every token
            is legal, some milliseconds in a place like others before. Budgets count canonical tokens.
            Where the tokenizer puts a space before the first word, that is in it, so there is no ``prefix_space`` to
            choose.
        left_context: for canonical tokenization, the text before the answer, special tokens included: only what the
            tokenizer writes for the string behind it, if that is behind the context's own tokens. It is encoded with
            every string, so give no more of it than may matter, such as the last message's beginning. By default the
            string stands alone, as after a special token.

    Raises:
        UnreachableValueError, EmptyConstraintError: some or all of the values cannot be spelled.
        UnsupportedError: a combination of options, eager masks of more than 268 million entries, a language or
            vocabulary that canonical tokenization is not for, or lists of values of which the vocabulary lacks single
            bytes.
        TrieautoError: an automaton over tokens that the vocabulary does not have.
    """
    begin = time.perf_counter()
    _check_options(automaton, vocabulary, mode, unreachable, prefix_space, method)
    check_threads(threads)
    _check_tokenization(automaton, tokenization, left_context, mode, prefix_space, method)
    if isinstance(automaton, TokenAutomaton):
        check_edge_tokens(automaton, len(vocabulary.tables.offsets) - 1, vocabulary.stop_token_ids)
        return Constraint(automaton, vocabulary, compile_seconds=time.perf_counter() - begin)
    if isinstance(automaton, ListAutomaton):
        return compile_lists(automaton, vocabulary, mode, prefix_space)
    if tokenization == "canonical" and not is_encoded(automaton, vocabulary):
        if mode == "eager":
            raise UnsupportedError(
                f"mode='eager' is not for tokenization='canonical' of {automaton!r}, which has too many strings to "
                "list: what may follow is found while an answer is written"
            )
        return CanonicalConstraint(automaton, vocabulary, left_context)
    if tokenization == "canonical":
        if mode == "lazy":
            raise _not_canonical("mode", mode)
        canonical = canonical_tokens(automaton, vocabulary, left_context, error=unreachable == "error", threads=threads)
        return constraint_of(canonical, vocabulary, left_context, begin)
    if prefix_space is None:
        prefix_space = "optional" if vocabulary.prefix_space and automaton.values is not None else "none"
    extended = with_prefix_space(automaton, prefix_space)
    distances = None if has_every_byte(extended, vocabulary) else token_distances(extended, vocabulary)
    unreachable_values: list[str | bytes] = []
    if distances is not None:
        unreachable_values = find_unreachable_values(extended, vocabulary, distances, error=unreachable == "error")
    walks = -1
    if mode == "auto" and method == "walk":
        mode = "lazy"
        walks = walks_before_storing(extended)
    masks = None
    if mode != "lazy":
        masks = eager_masks(
            automaton, extended, vocabulary, NOTHING if distances is None else distances, method, threads
        )
    return Constraint(
        extended,
        vocabulary,
        distances=distances,
        has_every_byte=distances is None,
        masks=masks,
        walks_before_storing=walks,
        prefix_space=prefix_space,
        unreachable_values=unreachable_values,
        compile_seconds=time.perf_counter() - begin,
    )


def _check_options(
    automaton: object, vocabulary: object, mode: str, unreachable: str, prefix_space: str | None, method: str
) -> None:
    if not isinstance(automaton, (Automaton, TokenAutomaton, ListAutomaton)):
        raise TrieautoError(
            f"compile takes an automaton, as trieauto.choices(values) makes it, not {shorten(automaton)}"
        )
    if not isinstance(vocabulary, Vocabulary):
        raise TrieautoError(
            f"compile takes a vocabulary, as Vocabulary.from_tokenizer makes it, not {shorten(vocabulary)}"
        )
    for name, value, allowed in (
        ("mode", mode, get_args(Mode)),
        ("unreachable", unreachable, ("error", "report")),
        ("prefix_space", prefix_space, (*get_args(PrefixSpace), None)),
        ("method", method, get_args(Method)),
    ):
        if value not in allowed:
            raise TrieautoError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, allowed))}")
    if method == "aho_corasick" and mode == "lazy":
        raise UnsupportedError("the Aho-Corasick pass finds the masks of all states at once: it has no lazy mode")
    if isinstance(automaton, TokenAutomaton):
        for name, value, usual in (
            ("mode", mode, ("auto", "eager")),
            ("prefix_space", prefix_space, (None, "none")),
            ("method", method, ("walk",)),
        ):
            if value not in usual:
                raise UnsupportedError(f"{name}={value!r} is for languages over bytes, not for {automaton!r}")
    elif method == "aho_corasick" and (isinstance(automaton, ListAutomaton) or not automaton.is_trie):
        raise UnsupportedError("the Aho-Corasick pass is for sets")


def _check_tokenization(
    automaton: Automaton | TokenAutomaton | ListAutomaton,
    tokenization: str,
    left_context: object,
    mode: str,
    prefix_space: str | None,
    method: str,
) -> None:
    if tokenization not in get_args(Tokenization):
        allowed = " or ".join(map(repr, get_args(Tokenization)))
        raise TrieautoError(f"tokenization is {shorten(tokenization)}; it must be {allowed}")
    if left_context is not None and not isinstance(left_context, str):
        raise TrieautoError(f"left_context must be the text before the answer, or None, not {shorten(left_context)}")
    if tokenization == "any":
        if left_context is not None:
            raise UnsupportedError("left_context is for tokenization='canonical': any other spelling ignores it")
        return
    if isinstance(automaton, (TokenAutomaton, ListAutomaton)):
        raise UnsupportedError(f"tokenization='canonical' is for languages over bytes, not for {automaton!r}")
    if prefix_space is not None:
        raise _not_canonical("prefix_space", prefix_space)
    if method != "walk":
        raise _not_canonical("method", method)
    if left_context is not None:
        try:
            left_context.encode()
        except UnicodeEncodeError:
            raise TrieautoError(f"left_context {shorten(left_context)} holds a lone surrogate") from None


def constraint_of(
    canonical: CanonicalTokens, vocabulary: Vocabulary, left_context: str | None, begin: float
) -> Constraint:
    """Of strings in canonical tokens. ``begin``: when compiling began, on the clock of ``time.perf_counter``."""
    return Constraint(
        canonical.automaton,
        vocabulary,
        prefix_space=canonical.prefix_space,
        unreachable_values=canonical.unreachable,
        tokenization="canonical",
        left_context=left_context,
        compile_seconds=time.perf_counter() - begin,
    )


def _not_canonical(name: str, value: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name}={value!r} is for tokenization='any': canonical tokens are those that the tokenizer writes, its own "
        "space before them included, and all of a set's masks are known at once"
    )
