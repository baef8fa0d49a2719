"""Budgets in ``generate`` and in ``Chooser``: whatever the model prefers, the answer is whole in time.

The oracle is the definition: a token is legal with r tokens left if the end can be reached in r - 1 after it.
"""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LogitsProcessor

import trieauto
from trieauto import BudgetError, Constraint, Matcher
from trieauto.demo_sets import tool_names
from trieauto.errors import TrieautoError, UnsupportedError
from trieauto.integrations.hf import (
    Choice,
    Chooser,
    ConstraintLogitsProcessor,
    ConstraintStoppingCriteria,
    ConstraintWarning,
    Prompt,
)

from . import tiny_models as tiny
from .test_hf_processor import (
    MODELS,
    OTHER_VALUES,
    PROMPTS,
    compile_values,
    is_over,
    kept,
    left_padded,
    legal_tokens,
    next_log_probabilities,
    right_padded,
    step,
    text_of,
)
from .tiny_models import PAD, SIZE, START, STOPS, TOKENS, VALUES, Model, Tokenizer

BUDGETS = [1, 2, 3, 4]  # the first is the fewest tokens of any value


@pytest.fixture(autouse=True)
def _no_warning() -> Iterator[None]:
    """A budget contradicts nobody, and no row of a loop looks like another prompt."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConstraintWarning)
        yield


@pytest.fixture(scope="module")
def constraint() -> Constraint:
    return compile_values(VALUES)


@pytest.fixture(scope="module")
def model() -> Model:
    return tiny.decoder()


# The oracle


@cache
def fewest_tokens(text: bytes, values: tuple[str, ...]) -> int:
    """From the prefix ``text`` of a value to the end of any value."""
    if text.decode() in values:
        return 0
    return 1 + min(fewest_tokens(text + (TOKENS[i] or b""), values) for i in legal_tokens(text, values))


def legal_within(text: bytes, values: Sequence[str], remaining: int) -> list[int]:
    return [
        i
        for i in legal_tokens(text, values)
        if i in STOPS or fewest_tokens(text + (TOKENS[i] or b""), tuple(values)) <= remaining - 1
    ]


def greedy_within(
    model: Model, prompt: Sequence[int], values: Sequence[str], budget: int, stop_early: bool
) -> list[int]:
    """The likeliest legal token after the other, until the budget is over, or (early) the value is determined."""
    ids: list[int] = []
    while len(ids) < budget and not is_over(text_of(ids), ids, [] if not stop_early else values):
        legal = legal_within(text_of(ids), values, budget - len(ids))
        if stop_early and set(legal) <= set(STOPS):
            break
        ids.append(legal[int(next_log_probabilities(model, prompt, ids)[legal].argmax())])
    return ids


# The code under test


class Farthest(LogitsProcessor):
    """The worst of models: prefers the token after which the end takes the most tokens, a stop token least of all."""

    def __init__(self, constraint: Constraint, prompt_length: int) -> None:
        self.constraint = constraint
        self.prompt_length = prompt_length

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        preferred = torch.zeros_like(scores)
        for row, history in zip(preferred, input_ids[:, self.prompt_length :].tolist(), strict=True):
            matcher = self.constraint.matcher()
            size = self.constraint.vocabulary.size
            if any(token_id >= size for token_id in history) or not matcher.accept_tokens(history):
                continue  # this row is over
            for token_id in matcher.allowed_token_ids().tolist():
                after = matcher.fork()
                after.accept_token(token_id)
                row[token_id] = 0 if after.is_terminated() else 9 * (1 + after.min_tokens_to_finish)
        return preferred.log_softmax(dim=-1)  # type: ignore[return-value]


def generate(
    model: Model,
    prompts: Sequence[Sequence[int]],
    constraint: Constraint | Sequence[Constraint],
    budgets: Any,
    stop_early: bool = False,
    farthest: bool = False,
    max_new_tokens: int | None = None,
    **options: object,
) -> list[list[int]]:
    """What each row generated; ``generate`` gets the largest budget, if it is not told otherwise."""
    inputs = (right_padded if model.config.is_encoder_decoder else left_padded)(prompts)
    prompt_length = 1 if model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
    processor = ConstraintLogitsProcessor(constraint, prompt_length, max_new_tokens=budgets)
    first = [Farthest(constraint, prompt_length)] if farthest and isinstance(constraint, Constraint) else []
    if max_new_tokens is None:
        max_new_tokens = budgets if isinstance(budgets, int) else max(budgets)
    output = model.generate(
        **inputs,
        logits_processor=[*first, processor],
        stopping_criteria=[ConstraintStoppingCriteria(processor)] if stop_early else [],
        max_new_tokens=max_new_tokens,
        **{"forced_eos_token_id": None, **options},  # BART's own configuration has one
    )
    rows: list[list[int]] = output[:, prompt_length:].tolist()
    return rows


def answer_of(row: Sequence[int]) -> list[int]:
    """A row up to its first stop token, padding left away."""
    return list(itertools.takewhile(lambda token_id: token_id not in (*STOPS, PAD), row))


# In generate


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("stop_early", [True, False])
def test_greedy_takes_the_likeliest_token_that_can_still_be_finished(
    make: Callable[[int], Model], stop_early: bool, constraint: Constraint
) -> None:
    assert constraint.min_tokens == BUDGETS[0] == fewest_tokens(b"", tuple(VALUES))
    seen = set()
    for seed in range(3):
        model = make(seed)
        for prompt, budget in itertools.product(PROMPTS[:3], BUDGETS):
            [row] = generate(model, [prompt], constraint, budget, stop_early)
            assert row == greedy_within(model, prompt, VALUES, budget, stop_early)
            assert stop_early or text_of(row).decode() in VALUES
            seen.add((budget, text_of(row)))
    assert len(seen) > len(BUDGETS)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_sample": True, "num_return_sequences": 10, "temperature": 3.0},
        {"num_beams": 3, "num_return_sequences": 2},
        {"num_beams": 3, "do_sample": True},
    ],
)
@pytest.mark.parametrize("farthest", [False, True])
def test_every_answer_is_whole_within_the_budget(
    make: Callable[[int], Model], options: dict[str, Any], farthest: bool, constraint: Constraint
) -> None:
    torch.manual_seed(0)
    for budget, stop_early in itertools.product(BUDGETS, [False, True]):
        rows = generate(make(0), PROMPTS[:2], constraint, budget, stop_early, farthest, **options)
        assert len(rows) == 2 * options.get("num_return_sequences", 1)
        for row in rows:
            assert len(row) <= budget
            if stop_early:
                matcher = constraint.matcher(budget)
                while matcher.value is None:
                    assert matcher.accept_token(row[matcher.num_accepted])
                assert matcher.value in VALUES
            else:
                assert text_of(answer_of(row)).decode() in VALUES


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("stop_early", [False, True])
def test_each_prompt_of_a_batch_has_its_own_budget(
    make: Callable[[int], Model], stop_early: bool, constraint: Constraint
) -> None:
    model = make(1)
    for budgets in ([1, 2, 3, 4], [4, 1, 2, 1], [2, 2, 9, 2]):
        rows = generate(model, PROMPTS, constraint, budgets, stop_early)
        for row, prompt, budget in zip(rows, PROMPTS, budgets, strict=True):
            alone = greedy_within(model, prompt, VALUES, budget, stop_early)
            assert row[: len(alone)] == alone
            # Where the loop goes on for others, a row whose budget is over may only stop.
            assert set(row[len(alone) :]) <= {*STOPS, PAD}
            assert text_of(answer_of(row)) == text_of(alone)


def test_a_prompt_without_a_budget_beside_others(model: Model, constraint: Constraint) -> None:
    rows = generate(model, PROMPTS, constraint, [None, 1, None, 2], max_new_tokens=9)
    free = generate(model, PROMPTS, constraint, None, max_new_tokens=9)
    for i in (0, 2):
        assert answer_of(rows[i]) == answer_of(free[i])
    for i, budget in ((1, 1), (3, 2)):
        assert answer_of(rows[i]) == answer_of(greedy_within(model, PROMPTS[i], VALUES, budget, False))


@pytest.mark.parametrize("options", [{"num_beams": 3, "num_return_sequences": 2}, {"do_sample": True}])
@pytest.mark.parametrize("farthest", [False, True])
def test_beams_and_samples_of_a_prompt_share_its_budget(
    options: dict[str, Any], farthest: bool, constraint: Constraint
) -> None:
    torch.manual_seed(0)
    options = {"num_return_sequences": 5, **options}
    budgets = [3, 1, 4, 2]
    for seed in range(2):
        rows = generate(tiny.decoder(seed), PROMPTS, constraint, budgets, farthest=farthest, **options)
        share = len(rows) // len(PROMPTS)
        for i, row in enumerate(rows):
            answer = answer_of(row)
            assert text_of(answer).decode() in VALUES
            assert len(answer) <= budgets[i // share]


def test_constraints_and_budgets_go_together(model: Model, constraint: Constraint) -> None:
    other = compile_values(OTHER_VALUES)
    sets = [VALUES, OTHER_VALUES, OTHER_VALUES, VALUES]
    for budgets in ([1, 2, 3, 4], 2):
        rows = generate(model, PROMPTS, [constraint, other, other, constraint], budgets)
        own = [budgets] * 4 if isinstance(budgets, int) else budgets
        for row, prompt, values, budget in zip(rows, PROMPTS, sets, own, strict=True):
            assert answer_of(row) == answer_of(greedy_within(model, prompt, values, budget, False))


@pytest.mark.parametrize("stop_early", [False, True])
def test_drafted_tokens_do_not_change_the_answer(constraint: Constraint, stop_early: bool) -> None:
    prompt = [5, 6, 4, 9, 8, 14, 6, 4, 9, 8, 2, 6, 4, 12, 6, 4]
    for seed, budget in itertools.product(range(3), BUDGETS):
        model = tiny.decoder(seed)
        expected = greedy_within(model, prompt, VALUES, budget, stop_early=False)
        for options in (
            {"assistant_model": tiny.decoder(seed + 1)},
            {"assistant_model": model},
            {"prompt_lookup_num_tokens": 4, "max_matching_ngram_size": 1},
        ):
            for max_new_tokens in (budget, 9):
                [row] = generate(
                    model, [prompt], constraint, budget, stop_early, max_new_tokens=max_new_tokens, **options
                )
                if stop_early:  # asked once after several tokens, so the row may run past the place where it could end
                    start = greedy_within(model, prompt, VALUES, budget, stop_early=True)
                    assert row[: len(start)] == start
                else:
                    assert answer_of(row) == answer_of(expected)


@pytest.mark.parametrize("options", [{}, {"num_beams": 3, "num_return_sequences": 2}, {"do_sample": True}])
@pytest.mark.parametrize("stop_early", [False, True])
def test_no_budget_and_a_large_one_change_nothing(
    options: dict[str, Any], stop_early: bool, model: Model, constraint: Constraint
) -> None:
    inputs = left_padded(PROMPTS)
    length = inputs["input_ids"].shape[1]
    outputs = []
    for processor in (
        ConstraintLogitsProcessor(constraint, length),
        ConstraintLogitsProcessor(constraint, length, None),
        ConstraintLogitsProcessor(constraint, length, [None] * 4),
        ConstraintLogitsProcessor(constraint, length, 7),  # the longest value is of six letters; then a stop token
        ConstraintLogitsProcessor(constraint, length, [7, 8, 2**70, None]),
    ):
        torch.manual_seed(0)
        criteria = [ConstraintStoppingCriteria(processor)] if stop_early else []
        output = model.generate(
            **inputs, logits_processor=[processor], stopping_criteria=criteria, max_new_tokens=7, **options
        )
        outputs.append(output.tolist())
    assert all(output == outputs[0] for output in outputs)


def test_without_a_budget_the_same_loop_cuts_answers_off(constraint: Constraint) -> None:
    models = [tiny.decoder(seed) for seed in range(3)]
    for budget, are_whole in ((None, False), (2, True)):
        rows = [
            generate(model, [prompt], constraint, budget, max_new_tokens=2)[0] for model in models for prompt in PROMPTS
        ]
        assert all(text_of(answer_of(row)).decode() in VALUES for row in rows) is are_whole


class InThisOrder(LogitsProcessor):
    """Prefers one token after the other."""

    def __init__(self, token_ids: Sequence[int], prompt_length: int) -> None:
        self.token_ids = token_ids
        self.prompt_length = prompt_length

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        preferred = torch.zeros_like(scores)
        preferred[:, self.token_ids[input_ids.shape[1] - self.prompt_length]] = 1.0
        return preferred  # type: ignore[return-value]


@pytest.mark.parametrize("stop_early", [False, True])
def test_a_stop_token_costs_one_token_and_is_not_needed_at_the_end(
    stop_early: bool, model: Model, constraint: Constraint
) -> None:
    """The answer ``abc`` in three tokens; ``abcd`` could follow."""
    letters, stop = [4, 5, 6], STOPS[1]
    for budget, loop, expected, expected_early in (
        (3, 3, letters, letters),
        (3, 9, [*letters, stop], letters),  # the loop has more room than the budget
        (4, 4, [*letters, stop], [*letters, stop]),
        (9, 9, [*letters, stop], [*letters, stop]),
    ):
        processor = ConstraintLogitsProcessor(constraint, 3, budget)
        [row] = model.generate(
            torch.tensor([[5, 6, 7]]),
            logits_processor=[InThisOrder([*letters, stop], 3), processor],
            stopping_criteria=[ConstraintStoppingCriteria(processor)] if stop_early else [],
            max_new_tokens=loop,
        )[:, 3:].tolist()
        assert row == (expected_early if stop_early else expected)


def test_a_last_token_that_the_model_forces_is_overruled(constraint: Constraint) -> None:
    """BART's configuration forces a stop token at the end of the loop, which is where a budget ends."""
    for seed, budget in itertools.product(range(3), [1, 2]):
        options: dict[str, Any] = {"forced_eos_token_id": STOPS[0]}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConstraintWarning)
            [row] = generate(tiny.bart(seed), [PROMPTS[0]], constraint, budget, **options)
        assert text_of(answer_of(row)).decode() in VALUES
        messages = [str(warning.message) for warning in caught if warning.category is ConstraintWarning]
        assert [f"forces token {STOPS[0]} (forced_bos_token_id, forced_eos" in message for message in messages] == (
            [] if row[-1] == STOPS[0] else [True]
        )


# A goal that is not text


def test_a_token_automaton_reaches_its_goal_in_time(model: Model) -> None:
    """A tool loop with special tokens on its edges: call (START), get an answer, retry for ever, or finish."""
    call, good, bad, finish = START, 21, 22, 11
    edges = [(0, call, 1), (1, bad, 2), (2, call, 1), (2, bad, 2), (1, good, 3), (3, finish, 4), (3, call, 1)]
    graph = trieauto.token_automaton(5, edges, 0, [4])
    constraint = trieauto.compile(graph, tiny.vocabulary())
    with pytest.raises(BudgetError) as caught:
        ConstraintLogitsProcessor(constraint, 3, 2)
    assert (caught.value.needed, caught.value.given) == (3, 2)
    torch.manual_seed(0)
    options: dict[str, Any]
    for options in ({}, {"do_sample": True, "num_return_sequences": 9}, {"num_beams": 3, "num_return_sequences": 2}):
        for budget, farthest, stop_early in itertools.product([5, 7, 8], [False, True], [False, True]):
            for row in generate(model, PROMPTS, constraint, budget, stop_early, farthest, **options):
                assert graph.accepts(answer_of(row))
    # With a budget for only one way, the goal itself needs no stop token.
    for budget, stop_early in itertools.product([3, 4], [False, True]):
        rows = generate(model, PROMPTS, constraint, [budget] * 4, stop_early, farthest=True)
        assert rows == [[call, good, finish, STOPS[0]][: 3 if stop_early else budget]] * 4


# Single calls


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_row_gets_the_matcher_of_another_budget(data: st.DataObject) -> None:
    """Any order of lengths, rows and made-up ids gives the masks that history and budget alone define."""
    constraints = [compile_values(VALUES), compile_values(OTHER_VALUES)]
    pairs = [(0, 1), (0, 3), (1, 2), (0, None), (0, 3), (1, 4)]
    chosen = data.draw(st.lists(st.sampled_from(pairs), min_size=2, max_size=4))
    processor = ConstraintLogitsProcessor([constraints[i] for i, _ in chosen], 0, [budget for _, budget in chosen])
    criterion = ConstraintStoppingCriteria(processor)
    token_ids = st.sampled_from([*range(4, len(TOKENS)), *STOPS, PAD, SIZE + 3, 4, 6, 12])
    histories: list[list[int]] = [[]]
    for _ in range(data.draw(st.integers(1, 6))):
        length = data.draw(st.integers(0, len(histories[0]) + 2))
        share = data.draw(st.integers(1, 2))
        histories = [
            (start := list(data.draw(st.sampled_from(histories)))[:length])
            + data.draw(st.lists(token_ids, min_size=length - len(start), max_size=length - len(start)))
            for _ in range(share * len(chosen))
        ]
        masks, ends = [], []
        for i, history in enumerate(histories):
            which, budget = chosen[i // share]
            mask, is_at_end = expected_within(history, [VALUES, OTHER_VALUES][which], budget)
            masks.append(mask)
            ends.append(is_at_end)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConstraintWarning)
            if data.draw(st.booleans()):
                assert kept(step(processor, histories)) == masks
            else:
                ids = torch.tensor(histories, dtype=torch.long).reshape(len(histories), -1)
                assert criterion(ids, None).tolist() == ends  # type: ignore[arg-type]


def expected_within(history: Sequence[int], values: Sequence[str], budget: int | None) -> tuple[list[int], bool]:
    """The ids that a row may go on with, and whether it is at its end."""
    text = b""
    for used, token_id in enumerate(history):
        remaining = math.inf if budget is None else budget - used
        if token_id in STOPS or token_id not in legal_within(text, values, remaining):  # type: ignore[arg-type]
            return STOPS, True
        text += TOKENS[token_id] or b""
    remaining = math.inf if budget is None else budget - len(history)
    mask = sorted(legal_within(text, values, remaining))  # type: ignore[arg-type]
    return mask, mask == STOPS or is_over(text, history, values)


def test_the_next_loop_keeps_the_budget_or_gets_another(constraint: Constraint) -> None:
    processor = ConstraintLogitsProcessor(constraint, 0, max_new_tokens=1)
    one, two, free = (legal_within(b"", VALUES, remaining) for remaining in (1, 2, 9))
    assert len(one) < len(two) < len(free)
    assert kept(step(processor, [[]])) == [sorted(one)]
    processor.begin(0)
    assert kept(step(processor, [[]])) == [sorted(one)]
    processor.begin(0, max_new_tokens=2)
    assert kept(step(processor, [[]])) == [sorted(two)]
    assert "prompt_length=0, max_new_tokens=2, 1 constraint in" in repr(processor)
    processor.begin(0, [1, 2])
    assert kept(step(processor, [[], [], [], []])) == [sorted(one)] * 2 + [sorted(two)] * 2
    # What is refused changes nothing.
    for wrong in (0, [1, 0], "2", [1, -1]):
        with pytest.raises(TrieautoError):
            processor.begin(1, wrong)  # type: ignore[arg-type]
    assert kept(step(processor, [[], []])) == [sorted(one), sorted(two)]
    processor.begin(0, None)
    assert kept(step(processor, [[]])) == [sorted(free)]
    assert "max_new_tokens" not in repr(processor)


def test_budgets_may_be_numbers_of_any_library(constraint: Constraint) -> None:
    expected = [sorted(legal_within(b"", VALUES, remaining)) for remaining in (1, 2)]
    for budgets in ((1, 2), np.array([1, 2]), torch.tensor([1, 2]), iter([1, 2])):
        processor = ConstraintLogitsProcessor(constraint, 0, budgets)  # type: ignore[arg-type]
        assert kept(step(processor, [[], []])) == expected
    for budget in (np.int64(2), np.array(2), torch.tensor(2)):
        processor = ConstraintLogitsProcessor(constraint, 0, budget)  # type: ignore[arg-type]
        assert kept(step(processor, [[]])) == expected[1:]


def test_an_impossible_budget_is_refused_before_the_model_runs(model: Model, constraint: Constraint) -> None:
    longer = compile_values(["facade", "decade"])  # two letters of either are one token
    needed = longer.min_tokens
    assert needed == fewest_tokens(b"", ("facade", "decade")) > 2
    with tiny.counted_passes(model) as passes:
        with pytest.raises(BudgetError, match=rf"^{needed} tokens are needed .* budget is 2") as caught:
            generate(model, [PROMPTS[0]], longer, needed - 1 if needed == 3 else 2)
        assert (caught.value.needed, caught.value.given) == (needed, 2)
        for constraints, budgets, place in (
            (longer, [9, None, 1, 0], 2),
            ([constraint, longer], 2, 1),
            ([longer, constraint], [needed, 0], 1),
        ):
            with pytest.raises(BudgetError, match=f"max_new_tokens of the prompt at index {place}: ") as caught:
                generate(model, PROMPTS, constraints, budgets)
            assert caught.value.needed in (1, needed)
            assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert not passes
    assert generate(model, [PROMPTS[0]], longer, needed)


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        (-1, "^max_new_tokens: a budget cannot be negative, but is -1"),
        (2.0, "^max_new_tokens: a budget must be an integer number of tokens, or None, not 2.0"),
        ("12", "^max_new_tokens: .* not '12'"),
        (True, "^max_new_tokens: .* not True"),
        ({3, 4}, "^max_new_tokens: .* not {3, 4}"),
        ([3, "4"], "^max_new_tokens of the prompt at index 1: .* not '4'"),
        ([3, 4, -5], "^max_new_tokens of the prompt at index 2: a budget cannot be negative"),
        ([], "^max_new_tokens holds no budget"),
    ],
)
def test_what_is_no_budget(budgets: Any, message: str, constraint: Constraint) -> None:
    with pytest.raises(TrieautoError, match=message):
        ConstraintLogitsProcessor(constraint, 3, budgets)


def test_numbers_of_constraints_budgets_and_rows_must_agree(constraint: Constraint) -> None:
    with pytest.raises(TrieautoError, match="holds 3 budgets for 2 constraints"):
        ConstraintLogitsProcessor([constraint, constraint], 0, [2, 3, 4])
    processor = ConstraintLogitsProcessor(constraint, 0, [2, 3])
    with pytest.raises(TrieautoError, match="3 rows cannot be shared out among 2 prompts"):
        step(processor, [[], [], []])


# Chooser

TOOLS = ["get", "get_weather", "get_weather_tomorrow", "get_time", "send_mail", "send_message", "set_alarm", "天气"]
QUESTIONS: list[Prompt] = [
    [{"role": "user", "content": "Will it rain tomorrow?"}],
    "The tool that sends an e-mail is called ",
    "x",
    [{"role": "user", "content": "Wake me at seven."}],
]


@pytest.fixture(scope="module")
def tokenizer(smollm2_tokenizer: Tokenizer) -> Tokenizer:
    return smollm2_tokenizer


@pytest.fixture(scope="module")
def small_model(tokenizer: Tokenizer) -> Model:
    """A decoder with random weights for the real tokenizer."""
    return tiny.decoder_for(tokenizer)


@pytest.fixture(scope="module")
def chooser(small_model: Model, tokenizer: Tokenizer) -> Chooser:
    return Chooser(small_model, tokenizer, TOOLS)


def check_answer(choice: Choice, constraint: Constraint, budget: int | None) -> None:
    """Whole within the budget, and ``ended`` is what the masks with and without it say."""
    assert choice.error is None
    value = choice.value
    assert value is not None
    with_budget, without = constraint.matcher(budget), constraint.matcher()
    masks_differ = False
    stop = constraint.vocabulary.stop_token_ids[0]
    ids = list(choice.token_ids)
    while with_budget.value is None:
        masks_differ |= not np.array_equal(with_budget.allowed_token_ids(), without.allowed_token_ids())
        token_id = ids.pop(0) if ids else stop
        assert with_budget.accept_token(token_id)
        assert without.accept_token(token_id)
    assert not ids
    assert with_budget.value == value
    masks_differ |= without.value is None
    assert choice.ended == ("completed under the budget" if masks_differ else "complete")
    # What is left to write of the value fits too.
    rest = with_budget.fork()
    while not (rest.is_complete or rest.is_terminated()):
        assert rest.accept_token(int(rest.allowed_token_ids()[0]))
    assert budget is None or with_budget.num_accepted <= budget


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_sample": True, "temperature": 5.0},
        {"num_beams": 3},
        {"num_beams": 3, "do_sample": True},
        {"prompt_lookup_num_tokens": 4},
    ],
)
def test_a_chooser_answers_within_its_budget(
    options: dict[str, Any], small_model: Model, tokenizer: Tokenizer, chooser: Chooser
) -> None:
    torch.manual_seed(0)
    constraint = chooser.constraint
    values: dict[int, set[object]] = {}
    for budget in range(constraint.min_tokens, constraint.min_tokens + 4):
        own = Chooser(small_model, tokenizer, constraint, max_new_tokens=budget, **options)
        batch_size = 1 if "prompt_lookup_num_tokens" in options else 3
        for prompt, choice in zip(QUESTIONS, own.map(QUESTIONS, batch_size, progress=False), strict=True):
            check_answer(choice, constraint, budget)
            values.setdefault(budget, set()).add(choice.value)
            if "do_sample" not in options:
                alone = own(prompt)
                assert (alone.value, alone.token_ids, alone.ended) == (choice.value, choice.token_ids, choice.ended)
    assert values[constraint.min_tokens] <= {tool for tool in TOOLS if tool in ("get", "天气")}


def test_a_budget_that_is_never_felt_changes_nothing(chooser: Chooser) -> None:
    free = list(chooser.map(QUESTIONS, progress=False))
    assert {choice.ended for choice in free} == {"complete"}
    for budgets in (100, [100, None, 50, 2**70]):
        assert list(chooser.map(QUESTIONS, progress=False, max_new_tokens=budgets)) == free


def test_each_prompt_may_bring_its_budget(chooser: Chooser) -> None:
    budgets = [1, None, 2, 3]
    expected = [chooser(prompt, max_new_tokens=budget) for prompt, budget in zip(QUESTIONS, budgets, strict=True)]
    for batch_size in (1, 3, 8):
        for own in (budgets, iter(budgets), itertools.chain(budgets, itertools.repeat(None))):
            choices = list(chooser.map(QUESTIONS, batch_size, progress=False, max_new_tokens=own))
            for choice, alone, budget in zip(choices, expected, budgets, strict=True):
                check_answer(choice, chooser.constraint, budget)
                assert (choice.value, choice.token_ids) == (alone.value, alone.token_ids)
                assert choice.num_forward_passes == alone.num_forward_passes
                assert choice.log_probability == pytest.approx(alone.log_probability, abs=1e-3)


def test_budgets_are_read_with_the_prompts(chooser: Chooser) -> None:
    taken = []

    def endless() -> Iterator[int]:
        for budget in itertools.cycle([1, 2]):
            taken.append(budget)
            yield budget

    choices = chooser.map(iter(QUESTIONS), batch_size=2, progress=False, max_new_tokens=endless())
    assert not taken
    next(choices)
    assert taken == [1, 2]
    with pytest.raises(TrieautoError, match="holds only 3 budgets, but there are more prompts"):
        list(chooser.map(iter(QUESTIONS), batch_size=2, progress=False, max_new_tokens=iter([1, 2, 3])))
    for budgets in ([1], [1] * 5):
        with pytest.raises(TrieautoError, match=f"holds {len(budgets)} budgets for 4 prompts"):
            chooser.map(QUESTIONS, max_new_tokens=budgets)


@pytest.mark.parametrize("wrong", [-1, 2.5, "3", True])
def test_a_chooser_names_what_is_no_budget(
    wrong: Any, chooser: Chooser, small_model: Model, tokenizer: Tokenizer
) -> None:
    message = "max_new_tokens: a budget (must be|cannot be)"
    for call in (
        lambda: Chooser(small_model, tokenizer, TOOLS, max_new_tokens=wrong),
        lambda: chooser(QUESTIONS[0], max_new_tokens=wrong),
        lambda: chooser.map(QUESTIONS, max_new_tokens=wrong),
    ):
        with pytest.raises(TrieautoError, match=message):
            call()
    with pytest.raises(TrieautoError, match="max_new_tokens of the prompt at index 2: a budget"):
        list(chooser.map(QUESTIONS, progress=False, max_new_tokens=[3, None, wrong, 3]))


def test_a_refused_prompt_does_not_disturb_the_others(
    small_model: Model, tokenizer: Tokenizer, chooser: Chooser
) -> None:
    values = [tool for tool in TOOLS if tool not in ("get", "天气")]
    own = Chooser(small_model, tokenizer, values)
    needed = own.constraint.min_tokens
    assert needed > 1
    with tiny.counted_passes(small_model) as passes:
        with pytest.raises(BudgetError) as caught:
            Chooser(small_model, tokenizer, values, max_new_tokens=needed - 1)
        assert (caught.value.needed, caught.value.given) == (needed, needed - 1)
        with pytest.raises(BudgetError, match=rf"^max_new_tokens: {needed} tokens are needed .* budget is 1"):
            own(QUESTIONS[0], max_new_tokens=1)
        choices = list(own.map(QUESTIONS, progress=False, max_new_tokens=needed - 1))
        assert [choice.ended for choice in choices] == ["refused"] * 4
        assert not passes
    budgets = [needed, needed + 1, 1, None]
    for batch_size in (1, 2, 8):
        choices = list(own.map(QUESTIONS, batch_size, progress=False, max_new_tokens=budgets))
        for i in (0, 1, 3):
            check_answer(choices[i], own.constraint, budgets[i])
            assert choices[i].token_ids == own(QUESTIONS[i], budgets[i]).token_ids
        refused = choices[2]
        assert (refused.value, refused.token_ids, refused.num_forward_passes) == (None, (), 0)
        assert math.isnan(refused.log_probability)
        assert isinstance(refused.error, BudgetError)
        assert (refused.error.needed, refused.error.given) == (needed, 1)
        assert refused.error.__traceback__ is None
        assert refused.error.__context__ is None
    with tiny.counted_passes(small_model) as passes:
        assert next(own.map(QUESTIONS[2:3], progress=False, max_new_tokens=[0])).ended == "refused"
    assert not passes


def test_nothing_to_choose_needs_no_forward_pass(small_model: Model, tokenizer: Tokenizer) -> None:
    with tiny.counted_passes(small_model) as passes:
        for budget in (None, 9, 100):
            own = Chooser(small_model, tokenizer, ["get_weather"], max_new_tokens=budget)
            assert own("x") == Choice("get_weather", 0.0, (), 0)
        with pytest.raises(BudgetError):
            own("x", max_new_tokens=1)
        own = Chooser(small_model, tokenizer, ["", "get"], max_new_tokens=0)
        assert own("x") == Choice("", 0.0, (), 0, "completed under the budget")
    assert not passes
    mixed = list(own.map(["x", "y", "z"], progress=False, max_new_tokens=[None, 2, 0]))
    assert (mixed[0], mixed[2]) == (own("x"), own("x"))
    assert mixed[1].num_forward_passes == 1


def test_the_end_of_the_budget_ends_an_answer_that_others_begin_with(small_model: Model, tokenizer: Tokenizer) -> None:
    """No token was forbidden, but without a budget the model might have gone on."""
    [get] = tokenizer("get")["input_ids"]
    values = ["get", "get_time"]
    prefer = InThisOrder([get, tokenizer.eos_token_id], len(tokenizer("x")["input_ids"]))
    own = Chooser(small_model, tokenizer, values, logits_processor=[prefer])
    assert own.constraint.min_tokens == 1
    for budget, ended, passes in ((1, "completed under the budget", 1), (100, "complete", 2), (None, "complete", 2)):
        choice = own("x", budget)
        assert (choice.value, choice.ended, choice.num_forward_passes) == ("get", ended, passes)
        assert choice.token_ids == (get,)


def test_the_context_bounds_a_budget(
    small_model: Model, tokenizer: Tokenizer, chooser: Chooser, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = chooser("x x x")
    monkeypatch.setattr(small_model.config, "max_position_embeddings", 6)
    own = Chooser(small_model, tokenizer, TOOLS, max_new_tokens=100)
    prompts: list[Prompt] = ["x x x", "x x x x x", "x x x x x x", "x x x x x x x x"]  # as many tokens as letters
    lengths = [3, 5, 6, 8]
    assert [len(tokenizer(prompt)["input_ids"]) for prompt in prompts] == lengths
    choices = list(own.map(prompts, progress=False))
    check_answer(choices[0], own.constraint, 3)
    check_answer(choices[1], own.constraint, 1)
    for choice, length in zip(choices[2:], lengths[2:], strict=True):
        assert choice.ended == "refused"
        assert choice.error is not None
        assert (choice.error.needed, choice.error.given) == (1, 0)
        assert f"the budget is 0, what the prompt's {length} tokens leave of the model's 6" in str(choice.error)
    with pytest.raises(BudgetError, match="shorten the prompt"):
        own(prompts[2])
    # Without a budget nothing changes.
    again = Chooser(small_model, tokenizer, TOOLS)
    assert again("x x x") == free
    assert again(prompts[3]).ended == "complete"


def test_the_context_of_an_encoder_decoder_is_its_decoders(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.bart(0, len(tokenizer))
    for name, value in {"decoder_start_token_id": 0, "eos_token_id": 2, "forced_eos_token_id": None}.items():
        setattr(model.generation_config, name, value)
    prompt = "a prompt that is longer than that"
    for budget in (1, 2, 3):
        check_answer(Chooser(model, tokenizer, TOOLS, max_new_tokens=budget)(prompt), compiled(tokenizer), budget)
    monkeypatch.setattr(model.config, "max_position_embeddings", 3)
    check_answer(Chooser(model, tokenizer, TOOLS, max_new_tokens=50)(prompt), compiled(tokenizer), 2)
    monkeypatch.setattr(model.config, "max_position_embeddings", 1)
    with pytest.raises(BudgetError, match="leave of the model's 1: shorten"):
        Chooser(model, tokenizer, TOOLS, max_new_tokens=50)(prompt)


def compiled(tokenizer: Tokenizer) -> Constraint:
    vocabulary = trieauto.Vocabulary.from_tokenizer(tokenizer, size=len(tokenizer), stop_token_ids=[2])
    return trieauto.compile(trieauto.choices(TOOLS), vocabulary)


def test_only_sets_can_be_chosen_from(small_model: Model, tokenizer: Tokenizer) -> None:
    graph = trieauto.token_automaton(2, [(0, 7, 1)], 0, [1])
    for values in (graph, trieauto.compile(graph, trieauto.Vocabulary.from_tokenizer(tokenizer))):
        with pytest.raises(UnsupportedError, match="a Chooser needs a set of values"):
            Chooser(small_model, tokenizer, values, max_new_tokens=5)  # type: ignore[arg-type]
    with pytest.raises(TrieautoError, match=r"not TokenAutomaton: compile it with trieauto\.compile"):
        ConstraintLogitsProcessor(graph, 3)  # type: ignore[arg-type]


def test_two_threads_with_different_budgets(chooser: Chooser) -> None:
    """They share the chooser, its constraint and its model."""
    work = [(prompt, budget) for budget in (1, 2, 3, None) for prompt in QUESTIONS]
    expected = [chooser(prompt, budget) for prompt, budget in work]
    with ThreadPoolExecutor(2) as pool:
        for choices in pool.map(lambda _: [chooser(prompt, budget) for prompt, budget in work], range(2)):
            assert choices == expected


# A real model and a large set


def test_a_real_model_answers_in_time(smollm2_model: Model, tokenizer: Tokenizer) -> None:
    names = tool_names(1000)
    chooser = Chooser(smollm2_model, tokenizer, names)
    constraint = chooser.constraint
    free = chooser(QUESTIONS[0])
    budgets = range(constraint.min_tokens, constraint.min_tokens + 5)
    ends = set()
    for budget, choice in zip(
        budgets, chooser.map([QUESTIONS[0]] * 5, progress=False, max_new_tokens=budgets), strict=True
    ):
        check_answer(choice, constraint, budget)
        ends.add(choice.ended)
    assert "completed under the budget" in ends
    assert chooser(QUESTIONS[0], 100).value == free.value
    assert chooser(QUESTIONS[0], 100).ended == "complete"

    prompt = tokenizer("The tool that sends a message on Slack is called ", return_tensors="pt")
    length = prompt["input_ids"].shape[1]
    for budget in budgets:
        processor = ConstraintLogitsProcessor(constraint, length, budget)
        output = smollm2_model.generate(**prompt, logits_processor=[processor], do_sample=False, max_new_tokens=budget)
        assert tokenizer.decode(output[0, length:], skip_special_tokens=True) in names


def test_the_worst_of_models_answers_in_time(small_model: Model, tokenizer: Tokenizer) -> None:
    names = tool_names(1000)
    constraint = Chooser(small_model, tokenizer, names).constraint
    inputs = torch.tensor([tokenizer("x")["input_ids"]] * 2)
    length = inputs.shape[1]
    for budget in range(constraint.min_tokens, constraint.min_tokens + 4):
        processor = ConstraintLogitsProcessor(constraint, length, [budget, budget + 1])
        output = small_model.generate(
            inputs, logits_processor=[Farthest(constraint, length), processor], max_new_tokens=budget + 1
        )
        for row, own_budget in zip(output[:, length:].tolist(), (budget, budget + 1), strict=True):
            matcher: Matcher = constraint.matcher(own_budget)
            for token_id in row[:own_budget]:
                matcher.accept_token(token_id)
            assert matcher.is_complete or matcher.is_terminated()
            assert matcher.value in names
