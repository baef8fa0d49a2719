"""The logits processor and the stopping criterion, in every way that ``generate`` calls them.

The oracle is a plain loop over the definition: full forward passes without a cache, and the tokens whose bytes lead on
to a value. All single letters are tokens, so no prefix of a value is a dead end.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LogitsProcessor

import trieauto
from trieauto import Constraint, Matcher
from trieauto.errors import TrieautoError, VocabularyError
from trieauto.integrations.hf import ConstraintLogitsProcessor, ConstraintStoppingCriteria, ConstraintWarning

from . import tiny_models as tiny
from .tiny_models import NUM_LOGITS, PAD, SIZE, START, STOPS, TOKENS, VALUES, Model

PROMPTS = [[5], [6, 7, 8], [9, 4, 4, 10, 11], [4, 5, 6, 7, 8, 9, 10]]
OTHER_VALUES = ["bed", "bee", "gh", "ghe", "hag"]


@pytest.fixture(scope="module")
def constraint() -> Constraint:
    return compile_values(VALUES)


@pytest.fixture(scope="module")
def other_constraint() -> Constraint:
    return compile_values(OTHER_VALUES)


@pytest.fixture(scope="module")
def model() -> Model:
    return tiny.decoder()


def compile_values(values: Sequence[str]) -> Constraint:
    return trieauto.compile(trieauto.choices(values), tiny.vocabulary())


# The oracle


def legal_tokens(text: bytes, values: Sequence[str]) -> list[int]:
    """Ids whose bytes lead from ``text`` on to a value, and the stop ids where ``text`` is one."""
    ends = [value.encode() for value in values]
    legal = [i for i, token in enumerate(TOKENS) if token and any(end.startswith(text + token) for end in ends)]
    return legal + (STOPS if text in ends else [])


def is_over(text: bytes, ids: Sequence[int], values: Sequence[str]) -> bool:
    possible = [value for value in values if value.encode().startswith(text)]
    return len(possible) == 1 or any(token_id in STOPS for token_id in ids[-1:])


def text_of(ids: Sequence[int]) -> bytes:
    return b"".join(TOKENS[i] or b"" for i in ids)


def next_log_probabilities(model: Model, prompt: Sequence[int], generated: Sequence[int]) -> torch.Tensor:
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            start = [model.config.decoder_start_token_id, *generated]
            output = model(input_ids=torch.tensor([prompt]), decoder_input_ids=torch.tensor([start]))
        else:
            output = model(input_ids=torch.tensor([[*prompt, *generated]]))
    scores: torch.Tensor = output.logits[0, -1].double().log_softmax(dim=-1)
    return scores


def plain_greedy(model: Model, prompt: Sequence[int], values: Sequence[str]) -> list[int]:
    """The likeliest legal token after the other, until a value is determined."""
    ids: list[int] = []
    while not is_over(text_of(ids), ids, values):
        legal = legal_tokens(text_of(ids), values)
        scores = next_log_probabilities(model, prompt, ids)[legal]
        ids.append(legal[int(scores.argmax())])
    return ids


def all_paths(model: Model, prompt: Sequence[int], values: Sequence[str]) -> dict[tuple[int, ...], float]:
    """Every sequence of legal tokens up to where a value is determined, with its log-probability."""
    done: dict[tuple[int, ...], float] = {}
    running: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    while running:
        ids, score = running.pop()
        scores = next_log_probabilities(model, prompt, ids)
        for token_id in legal_tokens(text_of(ids), values):
            path = (*ids, token_id)
            total = score + float(scores[token_id])
            if is_over(text_of(path), path, values):
                done[path] = total
            else:
                running.append((path, total))
    return done


# The code under test


def left_padded(prompts: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
    width = max(map(len, prompts))
    return {
        "input_ids": torch.tensor([[PAD] * (width - len(prompt)) + list(prompt) for prompt in prompts]),
        "attention_mask": torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]),
    }


def right_padded(prompts: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
    width = max(map(len, prompts))
    return {
        "input_ids": torch.tensor([list(prompt) + [PAD] * (width - len(prompt)) for prompt in prompts]),
        "attention_mask": torch.tensor([[1] * len(prompt) + [0] * (width - len(prompt)) for prompt in prompts]),
    }


def generate(
    model: Model,
    prompts: Sequence[Sequence[int]],
    constraint: Constraint | Sequence[Constraint] | ConstraintLogitsProcessor,
    stop_early: bool = True,
    **options: object,
) -> list[list[int]]:
    """What each row generated, whatever ``generate`` filled it up with included."""
    inputs = (right_padded if model.config.is_encoder_decoder else left_padded)(prompts)
    prompt_length = 1 if model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
    if isinstance(constraint, ConstraintLogitsProcessor):
        processor = constraint
        processor.begin(prompt_length)
    else:
        processor = ConstraintLogitsProcessor(constraint, prompt_length)
    criteria = [ConstraintStoppingCriteria(processor)] if stop_early else []
    output = model.generate(
        **inputs, logits_processor=[processor], stopping_criteria=criteria, max_new_tokens=9, **options
    )
    rows: list[list[int]] = output[:, prompt_length:].tolist()
    return rows


def determined(row: list[int], values: Sequence[str]) -> list[int]:
    """A row up to where its value is determined."""
    starts = (row[:length] for length in range(1, len(row) + 1))
    return next(start for start in starts if is_over(text_of(start), start, values))


def stopped(row: list[int]) -> list[int]:
    """A row up to its first stop token."""
    return row[: 1 + min(row.index(stop) for stop in STOPS if stop in row)]


def value_of(row: list[int], values: Sequence[str]) -> str:
    """The value that a row determines."""
    start = determined(row, values)
    text = text_of(start).decode()
    if start[-1] in STOPS:
        assert text in values
        return text
    [value] = [value for value in values if value.startswith(text)]
    return value


MODELS: list[Callable[[int], Model]] = [tiny.decoder, tiny.t5, tiny.bart]


def pad_to(row: list[int], length: int) -> list[int]:
    return row + [PAD] * (length - len(row))


@pytest.mark.parametrize("make", MODELS)
def test_greedy_takes_the_likeliest_legal_token_until_the_value_is_determined(
    make: Callable[[int], Model], constraint: Constraint
) -> None:
    for seed in range(3):
        model = make(seed)
        for prompt in PROMPTS:
            assert generate(model, [prompt], constraint) == [plain_greedy(model, prompt, VALUES)]


@pytest.mark.parametrize("make", MODELS)
def test_without_the_criterion_a_row_is_a_whole_value_and_a_stop_token(
    make: Callable[[int], Model], constraint: Constraint
) -> None:
    for seed in range(3):
        model = make(seed)
        for prompt in PROMPTS:
            [row] = generate(model, [prompt], constraint, stop_early=False)
            start = plain_greedy(model, prompt, VALUES)
            assert determined(row, VALUES) == start
            assert row == stopped(row)
            assert text_of(row).decode() == value_of(start, VALUES)


@pytest.mark.parametrize("make", MODELS)
def test_a_padded_batch_gives_what_its_prompts_give_alone(make: Callable[[int], Model], constraint: Constraint) -> None:
    for seed in range(3):
        model = make(seed)
        answers = [plain_greedy(model, prompt, VALUES) for prompt in PROMPTS]
        longest = max(map(len, answers))
        assert generate(model, PROMPTS, constraint) == [pad_to(answer, longest) for answer in answers]


def test_padding_may_be_a_stop_token(model: Model, constraint: Constraint) -> None:
    rows = generate(model, PROMPTS, constraint, pad_token_id=STOPS[0])
    answers = [plain_greedy(model, prompt, VALUES) for prompt in PROMPTS]
    assert [determined(row, VALUES) for row in rows] == answers
    filling = [token_id for row, answer in zip(rows, answers, strict=True) for token_id in row[len(answer) :]]
    assert set(filling) == {STOPS[0]}


def test_every_row_follows_its_own_constraint(
    model: Model, constraint: Constraint, other_constraint: Constraint
) -> None:
    sets = [VALUES, OTHER_VALUES, OTHER_VALUES, VALUES]
    rows = generate(model, PROMPTS, [constraint, other_constraint, other_constraint, constraint])
    for row, prompt, values in zip(rows, PROMPTS, sets, strict=True):
        assert determined(row, values) == plain_greedy(model, prompt, values)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("stop_early", [True, False])
def test_sampled_sequences_are_values(
    make: Callable[[int], Model], stop_early: bool, constraint: Constraint, other_constraint: Constraint
) -> None:
    torch.manual_seed(0)
    rows = generate(
        make(0),
        PROMPTS[:2],
        [constraint, other_constraint],
        stop_early,
        do_sample=True,
        num_return_sequences=30,
        temperature=3.0,
    )
    drawn = {value_of(row, VALUES) for row in rows[:30]}, {value_of(row, OTHER_VALUES) for row in rows[30:]}
    assert drawn[0] <= set(VALUES)
    assert drawn[1] <= set(OTHER_VALUES)
    assert min(map(len, drawn)) > 1
    if not stop_early:
        assert {text_of(stopped(row)).decode() for row in rows[:30]} == drawn[0]


@pytest.mark.parametrize("make", MODELS)
def test_beam_search_with_room_for_everything_finds_the_likeliest_path(
    make: Callable[[int], Model], constraint: Constraint, other_constraint: Constraint
) -> None:
    sets = [OTHER_VALUES, VALUES]
    for seed in range(3):
        model = make(seed)
        paths = [all_paths(model, prompt, values) for prompt, values in zip(PROMPTS[1:3], sets, strict=True)]
        rows = generate(
            model,
            PROMPTS[1:3],
            [other_constraint, constraint],
            num_beams=48,
            num_return_sequences=2,
            early_stopping="never",
            length_penalty=0.0,
        )
        for found, values, scores in zip((rows[:2], rows[2:]), sets, paths, strict=True):
            likeliest = sorted(scores, key=scores.__getitem__, reverse=True)
            assert [tuple(determined(row, values)) for row in found] == likeliest[:2]


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("do_sample", [False, True])
@pytest.mark.parametrize("stop_early", [False, True])
def test_narrow_beams_still_end_with_values(
    make: Callable[[int], Model],
    do_sample: bool,
    stop_early: bool,
    constraint: Constraint,
    other_constraint: Constraint,
) -> None:
    torch.manual_seed(0)
    for seed in range(3):
        rows = generate(
            make(seed), PROMPTS, [constraint, other_constraint] * 2, stop_early, num_beams=3, do_sample=do_sample
        )
        for row, values in zip(rows, [VALUES, OTHER_VALUES] * 2, strict=True):
            value = value_of(row, values)
            assert stop_early or text_of(stopped(row)).decode() == value


@pytest.mark.parametrize("stop_early", [False, True])
def test_more_beams_than_the_set_has_answers(model: Model, stop_early: bool) -> None:
    [row] = generate(model, [PROMPTS[1]], compile_values(["a", "b"]), stop_early, num_beams=8)
    assert value_of(row, ["a", "b"]) in {"a", "b"}


@pytest.mark.parametrize("stop_early", [False, True])
def test_drafted_tokens_do_not_change_the_answer(constraint: Constraint, stop_early: bool) -> None:
    prompt = [5, 6, 4, 9, 8, 14, 6, 4, 9, 8, 2, 6, 4, 12, 6, 4]  # repeats itself, for the lookup to find something
    for seed in range(5):
        model = tiny.decoder(seed)
        [expected] = generate(model, [prompt], constraint, stop_early=False)
        for options in (
            {"assistant_model": tiny.decoder(seed + 1)},
            {"assistant_model": model},
            {"prompt_lookup_num_tokens": 4},
        ):
            [row] = generate(model, [prompt], constraint, stop_early, **options)
            if stop_early:  # asked once after several tokens, so the row may run past the place where it could end
                assert row == expected[: len(row)]
                assert determined(row, VALUES) == plain_greedy(model, prompt, VALUES)
            else:
                assert row == expected


def test_sampling_with_an_assistant_gives_values(constraint: Constraint) -> None:
    torch.manual_seed(0)
    model, assistant = tiny.decoder(0), tiny.decoder(1)
    for prompt in PROMPTS:
        [row] = generate(model, [prompt], constraint, do_sample=True, assistant_model=assistant)
        assert value_of(row, VALUES) in VALUES


def test_one_object_serves_call_after_call(constraint: Constraint) -> None:
    model = tiny.decoder(2)
    processor = ConstraintLogitsProcessor(constraint)
    for prompts in ([PROMPTS[0]], PROMPTS, PROMPTS[::-1], [PROMPTS[2]]):
        rows = generate(model, prompts, processor)
        assert [determined(row, VALUES) for row in rows] == [plain_greedy(model, prompt, VALUES) for prompt in prompts]
    # The answer so far becomes part of the prompt: the same ids, with the border elsewhere.
    prompt = list(PROMPTS[1])
    for _ in range(3):
        [answer] = generate(model, [prompt], processor)
        assert answer == plain_greedy(model, prompt, VALUES)
        prompt += answer


def test_prompts_of_one_length_need_no_new_beginning(model: Model, constraint: Constraint) -> None:
    processor = ConstraintLogitsProcessor(constraint, prompt_length=3)
    for prompt in ([5, 6, 7], [8, 4, 4], [5, 6, 7]):
        output = model.generate(torch.tensor([prompt]), logits_processor=[processor], max_new_tokens=9)
        assert text_of(output[0, 3:].tolist()).decode() in VALUES


def test_a_stop_token_of_the_callers_choice_ends_the_row(model: Model, constraint: Constraint) -> None:
    """The others may come before it, and change nothing."""
    for stop in STOPS:
        for row in generate(model, PROMPTS, constraint, stop_early=False, eos_token_id=[stop]):
            assert text_of(row).decode() in VALUES


# Single calls


def step(
    processor: ConstraintLogitsProcessor, histories: Sequence[Sequence[int]], scores: torch.Tensor | None = None
) -> torch.Tensor:
    if scores is None:
        scores = torch.zeros(len(histories), NUM_LOGITS)
    return processor(ids_of(histories), scores)  # type: ignore[arg-type]


def ids_of(histories: Sequence[Sequence[int]]) -> torch.LongTensor:
    return torch.tensor(histories, dtype=torch.long).reshape(len(histories), -1)  # type: ignore[return-value]


def kept(scores: torch.Tensor) -> list[list[int]]:
    """The ids of each row whose score is not -inf."""
    return [row.nonzero().flatten().tolist() for row in (scores > -torch.inf)]


HISTORIES = [[], [4], [12], [13], [6, 4], [6, 4, 9], [4, 5, STOPS[0]], [4, 5, STOPS[1], PAD, PAD], [4, 4], [11, 11, 11]]


def expected_ids(history: Sequence[int], values: Sequence[str] = VALUES) -> list[int]:
    """The ids that a row may go on with: by definition inside the language, only to stop elsewhere."""
    text = b""
    for token_id in history:
        if token_id in STOPS or token_id not in legal_tokens(text, values):
            return STOPS
        text += TOKENS[token_id] or b""
    return sorted(legal_tokens(text, values))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("num_logits", [SIZE, SIZE + 1, NUM_LOGITS, 64, 200])
def test_only_allowed_scores_remain_and_the_callers_stay_as_they_were(
    dtype: torch.dtype, num_logits: int, constraint: Constraint
) -> None:
    processor = ConstraintLogitsProcessor(constraint, prompt_length=0)
    for history in HISTORIES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConstraintWarning)
            scores = torch.randn(1, num_logits).to(dtype)
            before = scores.clone()
            masked = step(processor, [history], scores)
        assert torch.equal(scores, before)
        assert masked.dtype == dtype
        assert masked.shape == scores.shape
        assert kept(masked) == [expected_ids(history)]
        assert torch.equal(masked[masked > -torch.inf], scores[masked > -torch.inf])


def test_a_scores_row_may_be_a_view(constraint: Constraint) -> None:
    """Assisted decoding passes slices of a larger tensor."""
    processor = ConstraintLogitsProcessor(constraint, prompt_length=0)
    scores = torch.randn(2, 3, NUM_LOGITS)
    assert torch.equal(step(processor, [[4], [6]], scores[:, 1]), step(processor, [[4], [6]], scores[:, 1].clone()))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_rows_are_recognised_whatever_the_calls_before(data: st.DataObject) -> None:
    """Any order of lengths, rows, numbers of rows and made-up ids gives the masks that the histories alone define."""
    constraints = [compile_values(VALUES), compile_values(OTHER_VALUES)]
    processor = ConstraintLogitsProcessor(constraints, prompt_length=0)
    criterion = ConstraintStoppingCriteria(processor)
    token_ids = st.sampled_from([*range(4, len(TOKENS)), *STOPS, PAD, SIZE + 3, 4, 6, 12])
    histories: list[list[int]] = [[], []]
    for _ in range(data.draw(st.integers(1, 8))):
        length = data.draw(st.integers(0, len(histories[0]) + 2))
        num_rows = 2 * data.draw(st.integers(1, 3))
        histories = [
            (start := list(data.draw(st.sampled_from(histories)))[:length])
            + data.draw(st.lists(token_ids, min_size=length - len(start), max_size=length - len(start)))
            for _ in range(num_rows)
        ]
        sets = [VALUES] * (num_rows // 2) + [OTHER_VALUES] * (num_rows // 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConstraintWarning)
            expected = [expected_ids(history, values) for history, values in zip(histories, sets, strict=True)]
            if data.draw(st.booleans()):
                assert kept(step(processor, histories)) == expected
            else:
                done = criterion(ids_of(histories), None)
                assert done.tolist() == [
                    mask == STOPS or is_over(text_of(history), history, values)
                    for history, values, mask in zip(histories, sets, expected, strict=True)
                ]


def test_a_step_moves_each_row_by_one_token(constraint: Constraint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where beams change places, and where drafts are taken back."""
    moves = 0
    accept_token = Matcher.accept_token

    def counted(matcher: Matcher, token_id: int) -> bool:
        nonlocal moves
        moves += 1
        return accept_token(matcher, token_id)

    monkeypatch.setattr(Matcher, "accept_token", counted)
    value = [9, 4, 6, 4, 7, 8]  # facade
    processor = ConstraintLogitsProcessor(constraint, prompt_length=0)
    step(processor, [[], [], []])
    for length in range(1, 7):
        step(processor, [value[:length]] * 3)
    assert moves == 3 * 6
    moves = 0
    step(processor, [value[:2]] * 3)
    assert moves == 0
    step(processor, [value[:3], [9, 4, 7], [9, 4, 4]])
    assert moves == 3
    moves = 0
    step(processor, [[9, 4, 7, 8], value[:4], value[:4]])
    assert moves == 3


def test_all_scores_minus_infinity_leaves_an_allowed_token(
    constraint: Constraint, recwarn: pytest.WarningsRecorder
) -> None:
    processor = ConstraintLogitsProcessor(constraint, prompt_length=1)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        masked = step(processor, [[START, 4], [START, 6]], torch.full((2, NUM_LOGITS), -torch.inf, dtype=dtype))
        assert kept(masked) == [expected_ids([4]), expected_ids([6])]
        assert torch.isfinite(masked[masked > -torch.inf] / 0.5).all()
    assert not recwarn.list


def test_a_finished_row_contradicts_nobody(constraint: Constraint, recwarn: pytest.WarningsRecorder) -> None:
    """What other processors forbid there does not matter: ``generate`` writes padding."""
    scores = torch.zeros(2, NUM_LOGITS)
    scores[:, STOPS] = -torch.inf
    processor = ConstraintLogitsProcessor(constraint, prompt_length=0)
    step(processor, [[4, 5], [4, 5]])
    assert kept(step(processor, [[4, 5, STOPS[0]], [4, 5, PAD]], scores)) == [STOPS, STOPS]
    assert not recwarn.list


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_new_tokens": 9}, r"forbids the stop token 2 \(min_length"),
        ({"suppress_tokens": list(range(4, len(TOKENS)))}, r"after 0 .*forbids all \d+ allowed tokens, such as 4 b'a'"),
        ({"forced_bos_token_id": START}, r"forces token 1 \(forced_bos_token_id"),
    ],
)
def test_a_contradicting_processor_is_described_and_overruled(
    options: dict[str, object], message: str, model: Model, constraint: Constraint
) -> None:
    prompt = [START]
    with pytest.warns(ConstraintWarning) as caught:
        [row] = generate(model, [prompt], constraint, stop_early=False, **options)
    [warning] = caught
    assert re.search(message, str(warning.message))
    assert any(value.encode().startswith(text_of(row)) for value in VALUES)
    assert set(row) <= set(range(len(TOKENS)))


class FirstScoresOnly(LogitsProcessor):
    """Leaves two rows different contradictions: no score at all, and a score for one forbidden token."""

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        masked = torch.full_like(scores, -torch.inf)
        masked[1, NUM_LOGITS - 1] = 0.0
        return masked  # type: ignore[return-value]


def test_rows_without_an_allowed_score_can_be_sampled_with_any_temperature(
    model: Model, constraint: Constraint
) -> None:
    torch.manual_seed(0)
    inputs = left_padded(PROMPTS[1:3])
    length = inputs["input_ids"].shape[1]
    processor = ConstraintLogitsProcessor(constraint, length)
    with pytest.warns(ConstraintWarning, match=f"in row 1, .*forces token {NUM_LOGITS - 1} "):
        output = model.generate(
            **inputs,
            logits_processor=[FirstScoresOnly(), processor],
            do_sample=True,
            temperature=0.01,
            top_k=3,
            max_new_tokens=9,
        )
    for row in output[:, length:].tolist():
        assert value_of(row, VALUES) in VALUES


class NotANumber(LogitsProcessor):
    """What a broken model gives: NaN, from the given number of tokens on, in the last row or, with beams, in all."""

    def __init__(self, length: int, only_last: bool) -> None:
        self.length = length
        self.rows = slice(-1, None) if only_last else slice(None)

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        scores = scores.clone()  # type: ignore[assignment]
        if input_ids.shape[1] >= self.length:
            scores[self.rows] = torch.nan
        return scores


@pytest.mark.parametrize("generated", [0, 1])
@pytest.mark.parametrize(
    "options", [{}, {"do_sample": True}, {"num_beams": 3}, {"num_beams": 3, "do_sample": True, "temperature": 0.01}]
)
def test_scores_that_are_not_numbers_leave_the_answer_in_the_set(
    options: dict[str, object], generated: int, model: Model, constraint: Constraint
) -> None:
    torch.manual_seed(0)
    inputs = left_padded(PROMPTS[1:3])
    length = inputs["input_ids"].shape[1]
    processor = ConstraintLogitsProcessor(constraint, length)
    has_beams = "num_beams" in options
    broken = NotANumber(length + generated, only_last=not has_beams)
    for _ in range(2):
        processor.begin(length)
        with pytest.warns(ConstraintWarning) as caught:
            output = model.generate(**inputs, logits_processor=[broken, processor], max_new_tokens=9, **options)
        [warning] = caught
        row = 0 if has_beams else 1
        assert f"the model's scores are not numbers: in row {row}, after {generated} gen" in str(warning.message)
        for ids in output[:, length:].tolist():
            assert text_of(stopped(ids)).decode() in VALUES


def test_an_allowed_number_wins_over_what_is_none(constraint: Constraint) -> None:
    scores = torch.zeros(3, NUM_LOGITS)
    scores[0] = torch.nan
    scores[0, 6] = 1.0
    scores[1, [0, NUM_LOGITS - 1]] = torch.nan  # not allowed: does not matter
    scores[2, expected_ids([])] = torch.nan  # numbers only where none is allowed: no contradiction
    with pytest.warns(ConstraintWarning, match="not numbers: in row 0") as caught:
        masked = step(ConstraintLogitsProcessor(constraint, 0), [[], [], []], scores)
    assert len(caught) == 1
    assert kept(masked) == [[6], expected_ids([]), expected_ids([])]


def test_processor_and_criterion_say_what_they_are(constraint: Constraint) -> None:
    processor = ConstraintLogitsProcessor([constraint, constraint], prompt_length=7)
    what = f"<ConstraintLogitsProcessor: prompt_length=7, 2 constraints in {constraint.vocabulary!r}>"
    assert repr(processor) == what
    assert repr(ConstraintStoppingCriteria(processor)) == f"<ConstraintStoppingCriteria for {what}>"
    assert "prompt_length=None, 1 constraint in" in repr(ConstraintLogitsProcessor(constraint))


# Misuse


IDS = torch.zeros(2, 3, dtype=torch.long)
SCORES = torch.zeros(2, NUM_LOGITS)


@pytest.mark.parametrize(
    ("ids", "scores", "message"),
    [
        (IDS, SCORES[0], r"scores must .* two dimensions, but have shape \(45,\)"),
        (IDS, SCORES[None], r"scores must .* shape \(1, 2, 45\)"),
        (IDS, SCORES.long(), r"scores must be a tensor of floats .* dtype torch\.int64"),
        (IDS, SCORES.numpy(), "scores must be a torch tensor of floats, not ndarray"),
        (IDS, None, "scores must be a torch tensor of floats, not NoneType"),
        (IDS, SCORES[:1], "scores have 1 rows, but input_ids have 2"),
        (IDS[:0], SCORES, "input_ids have no rows"),
        (IDS[:0], SCORES[:0], "have no rows"),
        (IDS[0], SCORES, r"input_ids must .* two dimensions, but have shape \(3,\)"),
        (IDS.float(), SCORES, r"input_ids must be a tensor of integers .* dtype torch\.float32"),
        (IDS.numpy(), SCORES, "input_ids must be a torch tensor of integers, not ndarray"),
        (IDS.tolist(), SCORES, "input_ids must be a torch tensor of integers, not list"),
    ],
)
def test_ids_and_scores_are_tensors_with_the_same_rows(
    ids: Any, scores: Any, message: str, constraint: Constraint
) -> None:
    processor = ConstraintLogitsProcessor(constraint, prompt_length=3)
    with pytest.raises(TrieautoError, match=message):
        processor(ids, scores)
    if "input_ids must" in message:
        with pytest.raises(TrieautoError, match=message):
            ConstraintStoppingCriteria(processor)(ids, None)


def test_logits_narrower_than_the_vocabulary_are_an_error_before_anything_is_generated(constraint: Constraint) -> None:
    model = tiny.decoder(num_logits=SIZE - 1)
    streamed: list[torch.Tensor] = []

    class Streamer:
        def put(self, ids: torch.Tensor) -> None:
            streamed.append(ids)

    processor = ConstraintLogitsProcessor(constraint, prompt_length=3)
    with pytest.raises(VocabularyError, match=r"39 logits.*40 ids"):
        model.generate(torch.tensor([[5, 6, 7]]), logits_processor=[processor], streamer=Streamer(), max_new_tokens=9)
    assert [ids.tolist() for ids in streamed] == [[[5, 6, 7]]]


def test_the_end_of_the_prompt_must_be_known(constraint: Constraint) -> None:
    with pytest.raises(TrieautoError, match="where does the prompt end"):
        step(ConstraintLogitsProcessor(constraint), [[4]])
    with pytest.raises(TrieautoError, match="rows have 2 ids, fewer than prompt_length=3"):
        step(ConstraintLogitsProcessor(constraint, prompt_length=3), [[4, 5]])
    for wrong in (-1, 1.5, "3", [3], True, torch.zeros(50, 50)):
        with pytest.raises(TrieautoError, match=r"^prompt_length must.{,150}$"):
            ConstraintLogitsProcessor(constraint, prompt_length=wrong)  # type: ignore[arg-type]


def test_a_prompt_taken_for_an_answer_is_pointed_out(constraint: Constraint) -> None:
    with pytest.warns(ConstraintWarning, match="what follows the first 1 ids is no answer"):
        assert kept(step(ConstraintLogitsProcessor(constraint, prompt_length=1), [[START, 11, 11]])) == [STOPS]


NO_ANSWER = "what follows the first 3 ids is no answer"


@pytest.mark.parametrize("stop_early", [False, True])
@pytest.mark.parametrize("max_new_tokens", [1, 9])
def test_a_longer_prompt_for_a_used_processor_is_pointed_out(
    max_new_tokens: int, stop_early: bool, model: Model, constraint: Constraint
) -> None:
    """Each time; also where the new prompt is the last one with its answer and more after it."""
    processor = ConstraintLogitsProcessor(constraint, prompt_length=3)
    criteria = [ConstraintStoppingCriteria(processor)] if stop_early else []

    def answer(prompt: Sequence[int]) -> list[int]:
        output: list[int] = model.generate(
            torch.tensor([prompt]),
            logits_processor=[processor],
            stopping_criteria=criteria,
            max_new_tokens=max_new_tokens,
        )[0].tolist()
        return output

    first = answer([5, 6, 7])
    for prompt in (PROMPTS[3], [*first, 11, 11], PROMPTS[3], [11, *first[1:4], 11, 11, 11]):
        with pytest.warns(ConstraintWarning, match=NO_ANSWER):
            answer(prompt)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert answer([5, 6, 7]) == first


def test_rows_that_no_step_leads_to_are_pointed_out_once(constraint: Constraint) -> None:
    processor = ConstraintLogitsProcessor(constraint, prompt_length=3)
    step(processor, [[5, 6, 7, 4], [5, 6, 7, 6]])
    for length in (5, 6, 7):  # more rows, of which one is outside
        rows = [[5, 6, 7, 4, 5, 6, 7][:length], [5, 6, 7, 6, 8, 4, 7][:length], [8, 8, 8, 11, 11, 11, 11][:length]]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            step(processor, rows)
        assert [NO_ANSWER in str(warning.message) for warning in caught] == ([True] if length == 5 else [])


def test_drafts_that_are_taken_back_are_no_new_prompt(constraint: Constraint) -> None:
    """Neither those outside the language, nor those after a stop token."""
    for prompt in ([5, 6, 4, 9, 8, 14, 6, 4, 9, 8, 2, 6, 4, 12, 6, 4], [11, 4, 11, 11, 4, 11], [9, 4, 2, 3, 9, 4]):
        for seed in range(5):
            for options in (
                {"assistant_model": tiny.decoder(seed + 1)},
                {"prompt_lookup_num_tokens": 4, "max_matching_ngram_size": 1},
                {"prompt_lookup_num_tokens": 4, "eos_token_id": STOPS[1]},
                {"num_beams": 8},
            ):
                with warnings.catch_warnings():
                    warnings.simplefilter("error", ConstraintWarning)
                    generate(tiny.decoder(seed), [prompt], constraint, stop_early=False, **options)


def test_rows_must_divide_among_the_constraints(constraint: Constraint, other_constraint: Constraint) -> None:
    processor = ConstraintLogitsProcessor([constraint, other_constraint], prompt_length=0)
    for num_rows in (1, 3):
        with pytest.raises(TrieautoError, match=f"{num_rows} rows cannot be shared out among 2 prompts"):
            step(processor, [[4]] * num_rows)


def test_constraints_must_fit_together(constraint: Constraint) -> None:
    with pytest.raises(TrieautoError, match="no constraint"):
        ConstraintLogitsProcessor([])
    with pytest.raises(TrieautoError, match="not str"):
        ConstraintLogitsProcessor(["ab"])  # type: ignore[list-item]
    for wrong in (None, 5, "ab", constraint.matcher(), tiny.vocabulary()):
        with pytest.raises(TrieautoError, match=f"expected a Constraint.* not {type(wrong).__name__}$"):
            ConstraintLogitsProcessor(wrong, 3)  # type: ignore[arg-type]
    for automaton in (constraint.automaton, [constraint, constraint.automaton]):
        with pytest.raises(TrieautoError, match=r"not Automaton: compile it with trieauto\.compile"):
            ConstraintLogitsProcessor(automaton, 3)  # type: ignore[arg-type]
    for no_processor in (None, constraint):
        with pytest.raises(TrieautoError, match=f"expected the Constr.* not {type(no_processor).__name__}$"):
            ConstraintStoppingCriteria(no_processor)  # type: ignore[arg-type]
    longer = trieauto.compile(trieauto.choices(VALUES), tiny.vocabulary(size=SIZE + 1))
    with pytest.raises(VocabularyError, match="same vocabulary"):
        ConstraintLogitsProcessor([constraint, longer])


def test_masks_are_those_of_the_matcher(constraint: Constraint) -> None:
    processor = ConstraintLogitsProcessor(constraint, prompt_length=0)
    matcher = constraint.matcher()
    history: list[int] = []
    for token_id in (9, 4, 6, 4, 7, 8):
        assert np.array_equal(kept(step(processor, [history]))[0], matcher.allowed_token_ids())
        assert matcher.accept_token(token_id)
        history.append(token_id)
