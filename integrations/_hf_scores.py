"""How likely a model finds each value of a set after a prompt: exactly, or the most likely ones within a bound."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

import trieauto
from trieauto import Constraint, TokenAutomaton, Vocabulary
from trieauto.errors import TrieautoError, UnsupportedError
from trieauto.packing import as_bytes, as_integer

from ._hf_budgets import context_length
from ._hf_messages import shown
from ._hf_passes import eval_mode
from ._hf_trie_passes import RowPasses, TreePasses, TriePasses, may_take_tree_masks
from ._hf_trie_search import TrieSearch, log_sum
from ._hf_value_trie import NO_VALUE, ROOT, ValueTrie

MOST_VALUES = 5_000
"""Of a set whose every value is scored."""

NODES_PER_PASS = 256
"""Of which the logits are wanted: float32, nodes × vocabulary."""

NODES_PER_STEP = 32
"""The same where the likeliest prefixes go first: the more at once, the more of them for nothing."""

_NODES_OF_TRIAL = 16


@dataclass(frozen=True, slots=True)
class Score:
    """How likely a model finds a value.

    A value has one spelling here, the tokenizer's own. Its probability is the product of the model's probabilities of
    these tokens after the prompt, each among all tokens of the vocabulary; and, if another value goes on from there,
    of the probability that the answer stops there (the sum over the stop tokens). ``probability`` is its share in the
    sum over the whole set.

    Attributes:
        value: the value, as it was given.
        probability: of this value, given that the answer is one of the set. Exact if ``error_bound`` is 0, up to
            rounding; otherwise the true one lies between this and ``probability + error_bound``.
        log_probability: natural logarithm of the product, before it is divided by the sum over the set.
        error_bound: how much larger than ``probability`` the true one may be.
    """

    value: str | bytes
    probability: float
    log_probability: float
    error_bound: float = 0.0


class ValueScorer:
    """Scores the values of a set after prompts, with one model.

    Args:
        model: any model that generates.
        tokenizer: the model's.
        constraint: of the set. Values that its vocabulary cannot spell are left out.
        stop_token_ids: what ends an answer.
        decoder_prompt: for an encoder-decoder, the ids that the decoder starts from.

    Raises:
        UnsupportedError, EmptyConstraintError, UnreachableValueError: values that the tokenizer itself never writes (as
            in ``trieauto.compile(..., tokenization="canonical")``).
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        constraint: Constraint,
        stop_token_ids: Sequence[int],
        decoder_prompt: Sequence[int] | None = None,
    ) -> None:
        automaton = _canonical(constraint, tokenizer)
        sorted_values = automaton.values
        assert sorted_values is not None
        places = np.unique(sorted_values.order).tolist()
        self.values: list[str | bytes] = list(map(sorted_values.given.__getitem__, places))
        """Without duplicates, in the order in which they were given."""
        self._trie = ValueTrie(automaton)
        self._model = model
        self._stop_token_ids = torch.tensor(list(stop_token_ids), dtype=torch.long)
        self._decoder_prompt = decoder_prompt
        self._context_length = context_length(model.config)
        self._takes_tree_masks: bool | None = None if may_take_tree_masks(model) else False

    def check_size(self, tolerance: float) -> None:
        """Whether so large a set is scored with a tolerance.

        Raises:
            UnsupportedError: if not.
        """
        if tolerance == 0 and len(self.values) > MOST_VALUES:
            raise UnsupportedError(
                f"the set has {len(self.values):,} values; all are scored for sets of {MOST_VALUES:,} at most. For the "
                "most likely ones of a larger set give a tolerance above 0, or use beams"
            )

    def log_probabilities(self, prompt: Sequence[int], batch_size: int) -> npt.NDArray[np.float64]:
        """Of every value, before normalising, in the order of ``values``. Every node of the trie is run once.

        Raises:
            UnsupportedError: more values than ``MOST_VALUES``, or too long a prompt.
            TrieautoError: scores that are not numbers, or of -inf for all values.
        """
        self.check_size(tolerance=0.0)
        with torch.no_grad(), eval_mode(self._model):
            search = TrieSearch(self._trie, self._passes(prompt), self._stop_token_ids)
            inner = self._trie.inner_nodes()
            for i in range(0, len(inner), batch_size):
                search.expand(inner[i : i + batch_size])
                search.forget_the_finished()
        found = np.full(len(self.values), -np.inf)
        for value, score in search.finished.items():
            found[value] = score
        log_sum(found)
        return found

    def probabilities(self, prompt: Sequence[int], batch_size: int) -> dict[str | bytes, float]:
        """Of every value, in the order of ``values``; raises as ``log_probabilities``."""
        logs = self.log_probabilities(prompt, batch_size)
        return dict(zip(self.values, np.exp(logs - log_sum(logs)).tolist(), strict=True))

    def best(
        self, prompt: Sequence[int], count: int, tolerance: float, batch_size: int | None = None
    ) -> tuple[Score, ...]:
        """The ``count`` most likely values, the most likely first.

        With a tolerance of 0 every value is scored. Otherwise the likeliest open prefix is followed first, until these
        values are above every prefix that is still open (so they are the right ones, in the right order), and the mass
        of the open prefixes can change no reported probability by more than the tolerance.

        Raises:
            UnsupportedError, TrieautoError: as for ``log_probabilities``; with a tolerance a set may have any size.
        """
        count = min(count, len(self.values))
        if tolerance == 0:
            logs = self.log_probabilities(prompt, batch_size or NODES_PER_PASS)
            shares = np.exp(logs - log_sum(logs))
            best = np.argsort(-logs, kind="stable")[:count].tolist()  # of equals, the first given
            return tuple(Score(self.values[i], float(shares[i]), float(logs[i])) for i in best)
        batch_size = batch_size or NODES_PER_STEP
        trie = self._trie
        with torch.no_grad(), eval_mode(self._model):
            search = TrieSearch(trie, self._passes(prompt), self._stop_token_ids)
            search.expand([ROOT] if trie.children[ROOT] else [])
            open_nodes = [(-search.prefixes[node], node) for node in trie.children[ROOT] if trie.children[node]]
            heapq.heapify(open_nodes)
            while open_nodes:
                if len(search.finished) >= count:
                    scores = self._bounded(search, [-log for log, _ in open_nodes], count)
                    are_right = scores[-1].log_probability >= -open_nodes[0][0]
                    if are_right and max(score.error_bound for score in scores) <= tolerance:
                        return scores
                nodes = [heapq.heappop(open_nodes)[1] for _ in range(min(batch_size, len(open_nodes)))]
                for segment_end in search.expand_segments(nodes):
                    for child in trie.children[segment_end]:
                        if trie.children[child]:
                            heapq.heappush(open_nodes, (-search.prefixes[child], child))
        return self._bounded(search, [], count)

    def beams(self, prompt: Sequence[int], num_beams: int) -> tuple[Score, ...]:
        """What beam search finds: at each step the prefixes go on that are among the ``num_beams`` likeliest of all
        values finished so far and all prefixes one token further on. No finished value is forgotten. ``num_beams``
        values at most, all distinct, the most likely first.

        Raises:
            UnsupportedError: too long a prompt.
            TrieautoError: as for ``log_probabilities``.
        """
        trie = self._trie
        pruned: list[float] = []  # prefixes that were given up
        with torch.no_grad(), eval_mode(self._model):
            search = TrieSearch(trie, self._passes(prompt), self._stop_token_ids)
            nodes = [ROOT] if trie.children[ROOT] else []
            while nodes:
                search.expand(nodes)
                reached = [child for node in nodes for child in trie.children[node] if trie.children[child]]
                rivals = [(log, NO_VALUE) for log in search.finished.values()]
                rivals += [(search.prefixes[node], node) for node in reached]
                # A finished value is kept before an equal prefix.
                kept = sorted(rivals, key=lambda rival: (-rival[0], rival[1]))[:num_beams]
                nodes = [node for _, node in kept if node != NO_VALUE]
                pruned += [search.prefixes[node] for node in set(reached) - set(nodes)]
                search.passes.keep(trie.parents[node] for node in nodes)
        return self._bounded(search, pruned, num_beams)

    def _bounded(self, search: TrieSearch, open_logs: Iterable[float], count: int) -> tuple[Score, ...]:
        """The best of the finished values, with what the open prefixes leave unknown about their probabilities."""
        of_finished = log_sum(list(search.finished.values()))
        open_logs = list(open_logs)
        of_all = log_sum([of_finished, *open_logs])
        best = sorted(search.finished.items(), key=lambda item: (-item[1], item[0]))[:count]
        return tuple(
            Score(
                self.values[value],
                math.exp(log - of_all),
                log,
                max(0.0, math.exp(log - of_finished) - math.exp(log - of_all)) if open_logs else 0.0,
            )
            for value, log in best
        )

    def _passes(self, prompt: Sequence[int]) -> TriePasses:
        length = len(prompt if self._decoder_prompt is None else self._decoder_prompt)
        longest = self._trie.longest_inner_path
        if self._context_length is not None and length + longest > self._context_length:
            raise UnsupportedError(
                f"the values cannot be scored: the prompt's {length:,} tokens and the {longest:,} of the longest value "
                f"are more than the model's {self._context_length:,} positions"
            )
        if self._takes_tree_masks is None:
            self._takes_tree_masks = self._follows_tree_masks(prompt)
        if self._takes_tree_masks:
            return TreePasses(self._model, prompt, self._trie)
        return self._row_passes(prompt)

    def _row_passes(self, prompt: Sequence[int]) -> RowPasses:
        return RowPasses(self._model, prompt, self._trie, self._decoder_prompt)

    def _follows_tree_masks(self, prompt: Sequence[int]) -> bool:
        """Try it, with a few nodes of the trie: what a configuration says of a model's attention is not everything."""
        nodes = self._trie.inner_nodes()
        nodes = [node for node in nodes if node != ROOT][:_NODES_OF_TRIAL]
        try:
            by_tree = TreePasses(self._model, prompt, self._trie)
        except UnsupportedError:  # its cache is none of attention
            return False
        if not by_tree.has_simple_cache:
            return False
        if not nodes:
            return True
        found = by_tree.logits(nodes).float().log_softmax(-1)
        expected = self._row_passes(prompt).logits(nodes).float().log_softmax(-1)
        likely = expected.topk(min(20, expected.shape[-1])).indices
        difference = (found.gather(1, likely) - expected.gather(1, likely)).abs().max()
        return bool(difference <= (1e-2 if self._model.dtype == torch.float32 else 0.25))


def _canonical(constraint: Constraint, tokenizer: PreTrainedTokenizerBase) -> TokenAutomaton:
    """The set in the tokens that the tokenizer itself writes, without the values that no tokens can spell."""
    automaton, vocabulary = constraint.automaton, constraint.vocabulary
    if automaton.values is None:
        raise UnsupportedError(f"probabilities are those of the values of a set, and {automaton!r} is none")
    if isinstance(automaton, TokenAutomaton):  # it is canonical already
        return automaton
    left_out = {as_bytes(value) for value in constraint.unreachable_values}
    values = [automaton.values.given[place] for place in np.unique(automaton.values.order).tolist()]
    if vocabulary.encoder is None:  # made of tokens alone
        vocabulary = Vocabulary.from_tokenizer(
            tokenizer, size=vocabulary.size, stop_token_ids=vocabulary.stop_token_ids
        )
    canonical = trieauto.compile(
        trieauto.choices(value for value in values if as_bytes(value) not in left_out),
        vocabulary,
        tokenization="canonical",
    )
    assert isinstance(canonical.automaton, TokenAutomaton)
    return canonical.automaton


def checked_count(name: str, number: object) -> int:
    """A number of things, at least one.

    Raises:
        TrieautoError: it is none.
    """
    count = as_integer(number)
    if count is None or count < 1:
        raise TrieautoError(f"{name} must be an integer of at least 1, not {shown(number)}")
    return count


def checked_tolerance(name: str, tolerance: object) -> float:
    """How much a probability may be off.

    Raises:
        TrieautoError: not a number from 0 to 1.
    """
    is_number = isinstance(tolerance, (int, float, np.floating)) and not isinstance(tolerance, bool)
    if not is_number or not 0 <= tolerance <= 1:  # type: ignore[operator]
        raise TrieautoError(f"{name} must be a number from 0 to 1, not {shown(tolerance)}")
    return float(tolerance)  # type: ignore[arg-type]
