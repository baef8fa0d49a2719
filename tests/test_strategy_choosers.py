"""Strategies with a model: every value can be had, in one budget for all calls, and the calls are accounted for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from transformers import LogitsProcessor

import trieauto
from trieauto.errors import BudgetError, TrieautoError, UnsupportedError
from trieauto.integrations._hf_chooser import model_vocabulary
from trieauto.integrations._hf_strategies import subset_constraint
from trieauto.integrations.hf import Chooser, Decision, HierarchicalChooser, ShortlistChooser, ThinkingChooser
from trieauto.strategies import Cascade, Hierarchy, TfidfScorer, prompts
from trieauto.strategies.values import Value

from . import tiny_models as tiny
from .tiny_models import Model, Tokenizer

VALUES = [
    "get",
    "get_time",
    "get_weather",
    "get_weather_tomorrow",
    "send_mail",
    "send_message",
    "set_alarm",
    "天气",
    "ok",
]
GROUPS = {"get": VALUES[:4], "send something": VALUES[4:6], "others": [*VALUES[6:], "get_time"]}
HIERARCHY = Hierarchy(GROUPS)
TEXTS = [
    "What time is it in Lima?",
    "Write to Ann.",
    "",
    "天气怎么样",
    "Wake me at seven, and then tell me the weather.",
]


def in_order(text: str, values: Sequence[Value]) -> list[int]:
    """A scorer for which earlier values are likelier."""
    return list(range(len(values), 0, -1))


CASCADE = Cascade(VALUES, in_order, k=2)


@pytest.fixture(scope="module")
def tokenizer(smollm2_tokenizer: Tokenizer) -> Tokenizer:
    return smollm2_tokenizer


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Model:
    return tiny.decoder_for(tokenizer)


@pytest.fixture(scope="module")
def vocabulary(model: Model, tokenizer: Tokenizer) -> trieauto.Vocabulary:
    return model_vocabulary(model, tokenizer)


class Wishing(LogitsProcessor):
    """Makes a model say what one wishes, call after call; whether it may is up to the constraint."""

    def __init__(self, vocabulary: trieauto.Vocabulary, *wishes: str) -> None:
        self._vocabulary = vocabulary
        self._wishes = [wish.encode() for wish in wishes]
        self._call = -1
        self._prompt_length = 0
        self._last = torch.empty(0, dtype=torch.long)

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        row = input_ids[0]
        if len(row) != len(self._last) + 1 or not torch.equal(row[:-1], self._last):
            self._call += 1
            self._prompt_length = len(row)
        self._last = row
        tokens = self._vocabulary.tokens
        said = b"".join(tokens[token_id] or b"" for token_id in row[self._prompt_length :].tolist())
        rest = self._wishes[self._call].removeprefix(said)
        wished = torch.zeros_like(scores)
        for token_id, token in enumerate(tokens):
            if token and rest.startswith(token):
                wished[0, token_id] = 1e6 * len(token)
        if not rest:
            wished[0, list(self._vocabulary.stop_token_ids)] = 1e6
        return scores + wished  # type: ignore[return-value]


def fewest(vocabulary: trieauto.Vocabulary, value: str) -> int:
    return trieauto.compile(trieauto.choices([value]), vocabulary).min_tokens


def spent(decision: Decision) -> int:
    """Tokens, stop tokens included: without beams and drafts, one for each pass."""
    assert decision.num_forward_passes == decision.num_thinking_tokens + sum(
        call.num_forward_passes for call in decision.calls
    )
    return decision.num_forward_passes


# Two questions: group and value


def test_every_value_of_every_group_can_be_chosen(
    model: Model, tokenizer: Tokenizer, vocabulary: trieauto.Vocabulary
) -> None:
    for name, values in GROUPS.items():
        for value in values:
            wishing = Wishing(vocabulary, name, value)
            chooser = HierarchicalChooser(model, tokenizer, HIERARCHY, logits_processor=[wishing])
            decision = chooser("anything")
            assert decision.value == value
            assert [call.value for call in decision.calls] == [name, value]
            assert decision.log_probability == decision.calls[1].log_probability


def test_a_hierarchical_choice_is_that_of_two_choosers(model: Model, tokenizer: Tokenizer) -> None:
    """And a batch, whose prompts go on in different groups, gives what its prompts give alone."""
    chooser = HierarchicalChooser(model, tokenizer, HIERARCHY)
    first = Chooser(model, tokenizer, HIERARCHY.names)
    alone = []
    for text in TEXTS:
        group = first([{"role": "user", "content": prompts.select(text, HIERARCHY.names)}])
        values = GROUPS[str(group.value)]
        second = Chooser(model, tokenizer, values)
        value = second([{"role": "user", "content": prompts.select(text, values)}])
        decision = chooser(text)
        assert decision.value == value.value
        assert [call.token_ids for call in decision.calls] == [group.token_ids, value.token_ids]
        assert spent(decision) == group.num_forward_passes + value.num_forward_passes
        alone.append(decision)
    for batch_size in (2, 5):
        together = list(chooser.map(TEXTS, batch_size=batch_size, progress=False))
        assert [[call.token_ids for call in each.calls] for each in together] == [
            [call.token_ids for call in each.calls] for each in alone
        ]
        assert [each.num_forward_passes for each in together] == [each.num_forward_passes for each in alone]


def test_groups_and_values_share_a_budget(model: Model, tokenizer: Tokenizer, vocabulary: trieauto.Vocabulary) -> None:
    """From the least budget up; and one that has room for all leaves none out."""
    least = min(fewest(vocabulary, name) + fewest(vocabulary, value) for name in GROUPS for value in GROUPS[name])
    chooser = HierarchicalChooser(model, tokenizer, HIERARCHY)
    for budget in range(least):
        with pytest.raises(BudgetError) as raised:
            chooser("anything", budget)
        assert (raised.value.needed, raised.value.given) == (least, budget)
        with pytest.raises(BudgetError, match="max_new_tokens"):
            HierarchicalChooser(model, tokenizer, HIERARCHY, max_new_tokens=budget)
        assert [each.ended for each in chooser.map(TEXTS[:1], max_new_tokens=budget, progress=False)] == ["refused"]
    for budget in range(least, least + 12):
        for decision in chooser.map(TEXTS, max_new_tokens=budget, progress=False):
            group, value = decision.calls
            assert value.value in GROUPS[str(group.value)]
            assert spent(decision) <= budget
    # Wherever a name and a value fit one beside the other, that group is among those to choose from.
    for budget in range(least, least + 12):
        constraint, of_name = chooser._plan(budget)
        assert of_name is not None
        for name in constraint.automaton.values.given:  # type: ignore[union-attr]
            assert of_name + min(fewest(vocabulary, value) for value in GROUPS[str(name)]) <= budget
    all_of_it = max(fewest(vocabulary, name) for name in GROUPS) + max(fewest(vocabulary, value) for value in VALUES)
    for name, values in GROUPS.items():
        for value in values:
            wishing = Wishing(vocabulary, name, value)
            wished = HierarchicalChooser(model, tokenizer, HIERARCHY, logits_processor=[wishing])
            assert wished("anything", all_of_it).value == value


# Shortlists


def test_every_value_can_be_had_by_way_of_the_escape(
    model: Model, tokenizer: Tokenizer, vocabulary: trieauto.Vocabulary
) -> None:
    assert CASCADE.sizes == (2, 4, 9)
    for place, value in enumerate(VALUES):
        stage = next(number for number, size in enumerate(CASCADE.sizes) if place < size)
        wishes = [CASCADE.escape] * stage + [value]
        chooser = ShortlistChooser(model, tokenizer, CASCADE, logits_processor=[Wishing(vocabulary, *wishes)])
        decision = chooser("anything")
        assert [call.value for call in decision.calls] == wishes
        assert decision.value == value
        # And of the whole set, too, for those who escape twice.
        wishes = [CASCADE.escape] * 2 + [value]
        chooser = ShortlistChooser(model, tokenizer, CASCADE, logits_processor=[Wishing(vocabulary, *wishes)])
        assert chooser("anything").value == value


def test_the_escape_is_no_result(model: Model, tokenizer: Tokenizer, vocabulary: trieauto.Vocabulary) -> None:
    wishing = Wishing(vocabulary, *[CASCADE.escape] * 3)
    decision = ShortlistChooser(model, tokenizer, CASCADE, logits_processor=[wishing])("anything")
    assert decision.value in VALUES
    assert len(decision.calls) == 3


def test_unlikely_answers_go_on_too(model: Model, tokenizer: Tokenizer) -> None:
    for limit, expected in ((None, {1, 2, 3}), (math.inf, {3}), (0.0, {3}), (-math.inf, {1, 2, 3})):
        chooser = ShortlistChooser(model, tokenizer, CASCADE, min_log_probability=limit)
        decisions = list(chooser.map(TEXTS, progress=False))
        assert {len(decision.calls) for decision in decisions} <= expected
        for decision in decisions:
            assert decision.value in VALUES
            for call in decision.calls[:-1]:
                assert call.value == CASCADE.escape or call.log_probability < (-math.inf if limit is None else limit)
        assert [each.value for each in decisions] == [chooser(text).value for text in TEXTS]


def test_stages_share_a_budget(model: Model, tokenizer: Tokenizer, vocabulary: trieauto.Vocabulary) -> None:
    """A shortlist is asked about only where everything on it, and the whole set after it, has room."""
    least = min(fewest(vocabulary, value) for value in VALUES)
    enough = max(fewest(vocabulary, value) for value in VALUES)
    of_escape = fewest(vocabulary, CASCADE.escape)
    chooser = ShortlistChooser(model, tokenizer, CASCADE, min_log_probability=0.0)
    for budget in range(least):
        with pytest.raises(BudgetError) as raised:
            chooser("anything", budget)
        assert (raised.value.needed, raised.value.given) == (least, budget)
    with pytest.raises(BudgetError, match="max_new_tokens"):
        ShortlistChooser(model, tokenizer, CASCADE, max_new_tokens=0)
    for budget in range(least, enough + 3 * of_escape):
        for decision in chooser.map(TEXTS, max_new_tokens=budget, progress=False):
            assert decision.value in VALUES
            assert spent(decision) <= budget
            assert len(decision.calls) == 1 or budget >= enough + of_escape
            assert len(decision.calls) > 1 or budget < enough + max(enough, of_escape)
    for value in VALUES:
        wishes = [value]
        wished = ShortlistChooser(model, tokenizer, CASCADE, logits_processor=[Wishing(vocabulary, *wishes)])
        assert wished("anything", enough).value == value


def test_a_shortlist_with_which_the_prompt_is_too_long_is_left_away(model: Model, tokenizer: Tokenizer) -> None:
    def ask(text: str, options: Sequence[Value]) -> str:
        return text if len(options) == len(VALUES) else "word " * 3000

    decision = ShortlistChooser(model, tokenizer, CASCADE, ask=ask)("anything", 200)
    assert len(decision.calls) == 1
    assert decision.value in VALUES
    refused = ShortlistChooser(model, tokenizer, CASCADE, ask=lambda text, options: "word " * 3000)
    [result] = refused.map(["anything"], max_new_tokens=200, progress=False)
    assert (result.value, result.ended, type(result.error)) == (None, "refused", BudgetError)


# Thinking


def test_thinking_and_answer_share_a_budget(
    model: Model, tokenizer: Tokenizer, vocabulary: trieauto.Vocabulary
) -> None:
    """From the least budget up there is an answer, and thinking takes none of the room that the longest value needs."""
    least = min(fewest(vocabulary, value) for value in VALUES)
    enough = max(fewest(vocabulary, value) for value in VALUES)
    chooser = ThinkingChooser(model, tokenizer, VALUES, max_thinking_tokens=6)
    for budget in range(least):
        with pytest.raises(BudgetError) as raised:
            chooser("anything", budget)
        assert (raised.value.needed, raised.value.given) == (least, budget)
    with pytest.raises(BudgetError, match="max_new_tokens"):
        ThinkingChooser(model, tokenizer, VALUES, max_new_tokens=0)
    for budget in range(least, enough + 12):
        for decision in chooser.map(TEXTS, max_new_tokens=budget, progress=False):
            assert decision.value in VALUES
            assert spent(decision) <= budget
            assert decision.num_thinking_tokens == min(6, max(0, budget - enough - 1))
    for value in VALUES:
        wished = ThinkingChooser(
            model, tokenizer, VALUES, max_thinking_tokens=6, logits_processor=[Wishing(vocabulary, value)]
        )
        assert wished("anything", enough + 4).value == value


def test_thoughts_are_what_the_model_writes_by_itself(model: Model, tokenizer: Tokenizer) -> None:
    chooser = ThinkingChooser(model, tokenizer, VALUES, max_thinking_tokens=5)
    decisions = list(chooser.map(TEXTS, batch_size=3, progress=False))
    for text, decision in zip(TEXTS, decisions, strict=True):
        prompt = [{"role": "user", "content": prompts.think(text, VALUES)}]
        ids = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, return_tensors="pt", return_dict=True)
        length = ids["input_ids"].shape[1]
        written = model.generate(**ids, max_new_tokens=5, do_sample=False)[0, length:]
        assert decision.num_thinking_tokens == len(written)
        assert decision.thoughts == tokenizer.decode(written, skip_special_tokens=True)
        question = prompts.select_after_thinking(text, VALUES, str(decision.thoughts).strip())
        answer = Chooser(model, tokenizer, VALUES)([{"role": "user", "content": question}])
        assert decision.value == answer.value
        assert decision.calls[0].token_ids == answer.token_ids


def test_a_stop_token_ends_thinking(model: Model, tokenizer: Tokenizer, vocabulary: trieauto.Vocabulary) -> None:
    stopping = Wishing(vocabulary, "I think")
    chooser = ThinkingChooser(model, tokenizer, VALUES, thinking_arguments={"logits_processor": [stopping]})
    decision = chooser("anything")
    assert decision.thoughts == "I think"
    assert decision.num_thinking_tokens == len(tokenizer.tokenize("I think")) + 1
    none = ThinkingChooser(model, tokenizer, VALUES, max_thinking_tokens=0)("anything")
    assert (none.thoughts, none.num_thinking_tokens) == ("", 0)


def test_thinking_ends_where_the_context_does(tokenizer: Tokenizer) -> None:
    model = tiny.decoder_for(tokenizer)
    question = [{"role": "user", "content": prompts.select_after_thinking("anything", VALUES, "")}]
    length = len(tokenizer.apply_chat_template(question, add_generation_prompt=True, return_dict=False))
    model.config.max_position_embeddings = length + 20
    decision = ThinkingChooser(model, tokenizer, VALUES)("anything")
    assert 0 < decision.num_thinking_tokens < 20
    assert decision.value in VALUES


# All of them


def test_a_real_model(smollm2_model: Model, smollm2_tokenizer: Tokenizer) -> None:
    """Named groups of its own, a shortlist by TF-IDF, a few thoughts: a sensible prompt gets a value each time."""
    colours = ["red", "green", "blue", "dark red", "dark green", "dark blue", "light red", "light green"]
    text = "The sky on a clear day"
    hierarchy = Hierarchy.by_similarity(colours)
    decisions = [
        HierarchicalChooser(smollm2_model, smollm2_tokenizer, hierarchy)(text),
        ShortlistChooser(smollm2_model, smollm2_tokenizer, Cascade(colours, TfidfScorer(), k=3))(text),
        ThinkingChooser(smollm2_model, smollm2_tokenizer, colours, max_thinking_tokens=8)(text, 16),
    ]
    for decision in decisions:
        assert decision.value in colours
        assert decision.error is None
        assert spent(decision) > 0


def test_options_reach_every_constraint(model: Model, tokenizer: Tokenizer) -> None:
    options: dict[str, Any] = {"prefix_space": "required"}
    for chooser in (
        HierarchicalChooser(model, tokenizer, HIERARCHY, compile_options=options),
        ShortlistChooser(model, tokenizer, CASCADE, compile_options=options),
    ):
        for call in chooser("anything").calls:
            assert not call.token_ids or tokenizer.decode(call.token_ids).startswith(" ")


def test_canonical_where_the_tokenizer_writes_every_value(model: Model, tokenizer: Tokenizer) -> None:
    vocabulary = model_vocabulary(model, tokenizer)
    written, other = ["get", "天气"], ["get", "天气".encode()[:1]]
    for options in ({}, {"unreachable": "report"}):
        assert subset_constraint(written, vocabulary, options).tokenization == "canonical"
        assert subset_constraint(other, vocabulary, options).tokenization == "any"
    for options in ({"tokenization": "any"}, {"mode": "lazy"}):
        assert subset_constraint(written, vocabulary, options).tokenization == "any"
    with pytest.raises(trieauto.UnreachableValueError, match="1 of 2 values"):
        subset_constraint(other, vocabulary, {"tokenization": "canonical"})


def test_errors(model: Model, tokenizer: Tokenizer) -> None:
    with pytest.raises(TrieautoError, match="expected a Hierarchy"):
        HierarchicalChooser(model, tokenizer, GROUPS)  # type: ignore[arg-type]
    with pytest.raises(TrieautoError, match="expected a Cascade"):
        ShortlistChooser(model, tokenizer, VALUES)  # type: ignore[arg-type]
    with pytest.raises(TrieautoError, match="min_log_probability must be a number"):
        ShortlistChooser(model, tokenizer, CASCADE, min_log_probability="low")  # type: ignore[arg-type]
    with pytest.raises(TrieautoError, match="a question is asked by a function"):
        HierarchicalChooser(model, tokenizer, HIERARCHY, ask_group="Which?")  # type: ignore[arg-type]
    with pytest.raises(TrieautoError, match="a question is asked by a function"):
        ThinkingChooser(model, tokenizer, VALUES, ask="Which?")  # type: ignore[arg-type]
    with pytest.raises(TrieautoError, match="max_thinking_tokens: a budget"):
        ThinkingChooser(model, tokenizer, VALUES, max_thinking_tokens=-1)
    with pytest.raises(UnsupportedError, match="encoder-decoder"):
        ThinkingChooser(tiny.bart(num_logits=len(tokenizer)), tokenizer, VALUES)
    with pytest.raises(TrieautoError, match="cannot generate"):
        HierarchicalChooser(None, tokenizer, HIERARCHY)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="max_time"):
        ShortlistChooser(model, tokenizer, CASCADE, max_time=3)
    with pytest.raises(UnsupportedError, match="max_time"):
        ThinkingChooser(model, tokenizer, VALUES, thinking_arguments={"max_time": 3})
    choosers = [
        HierarchicalChooser(model, tokenizer, HIERARCHY),
        ShortlistChooser(model, tokenizer, CASCADE),
        ThinkingChooser(model, tokenizer, VALUES, max_thinking_tokens=2),
    ]
    for chooser, bad in itertools.product(choosers, (7, [{"role": "user", "content": "Hi"}], b"Hi")):
        with pytest.raises(UnsupportedError, match="a strategy takes the text"):
            chooser(bad)  # type: ignore[arg-type]
    for chooser in choosers:
        assert repr(chooser).startswith(f"<{type(chooser).__name__}")
        with pytest.raises(UnsupportedError, match="map takes many prompts"):
            chooser.map("one text")


def test_options_of_another_kind(model: Model, tokenizer: Tokenizer) -> None:
    hierarchy = Hierarchy({"x y": ["a", "b"], "z": ["c", "d"]})
    for wrong in ({"foo": 1}, 3):
        with pytest.raises(trieauto.TrieautoError, match=r"options of trieauto\.compile by name"):
            HierarchicalChooser(model, tokenizer, hierarchy, compile_options=wrong)  # type: ignore[arg-type]
    with pytest.raises(trieauto.TrieautoError, match=r"a mapping of names to values, not \[1\]"):
        ThinkingChooser(model, tokenizer, VALUES, thinking_arguments=[1])  # type: ignore[arg-type]
    for name in ("scores", "fast_forward"):
        with pytest.raises(trieauto.UnsupportedError, match=f"{name} is not for a strategy of several calls"):
            HierarchicalChooser(model, tokenizer, hierarchy, **{name: 1})
        with pytest.raises(trieauto.UnsupportedError, match=f"{name} is not for a strategy of several calls"):
            ThinkingChooser(model, tokenizer, VALUES, **{name: 1})
