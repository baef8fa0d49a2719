"""The processor that stays on the device returns what the one on the host returns, in every way that it is called."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import trieauto
from trieauto import Constraint
from trieauto.errors import BudgetError, TrieautoError, UnsupportedError, VocabularyError
from trieauto.integrations import _hf_device
from trieauto.integrations.device import DeviceConstraints
from trieauto.integrations.hf import ConstraintLogitsProcessor, ConstraintWarning, DeviceLogitsProcessor

from . import tiny_models as tiny
from .never_waits import NeverWaits
from .tiny_models import NUM_LOGITS, PAD, SIZE, VALUES, Model

PROMPTS = [[5], [6, 7, 8], [9, 4, 4, 10, 11], [4, 5, 6, 7, 8, 9, 10]]
OTHER_VALUES = ["bed", "bee", "gh", "ghe", "hag"]
WIDTH = max(map(len, PROMPTS))


def compile_values(values: list[str]) -> Constraint:
    return trieauto.compile(trieauto.choices(values), tiny.vocabulary())


@pytest.fixture(scope="module")
def constraint() -> Constraint:
    return compile_values(VALUES)


@pytest.fixture(scope="module")
def other() -> Constraint:
    return compile_values(OTHER_VALUES)


@pytest.fixture(scope="module")
def model() -> Model:
    return tiny.decoder()


def generated(model: Model, processor: Any, seed: int = 0, **options: Any) -> list[list[int]]:
    inputs = {
        "input_ids": torch.tensor([[PAD] * (WIDTH - len(prompt)) + prompt for prompt in PROMPTS]),
        "attention_mask": torch.tensor([[0] * (WIDTH - len(prompt)) + [1] * len(prompt) for prompt in PROMPTS]),
    }
    if "prompt_lookup_num_tokens" in options:
        inputs = {name: tensor[-1:] for name, tensor in inputs.items()}
    torch.manual_seed(seed)
    options = {"max_new_tokens": 12, "do_sample": False, **options}
    ids: list[list[int]] = model.generate(**inputs, logits_processor=[processor], **options)[:, WIDTH:].tolist()
    return ids


WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampling": {"do_sample": True, "top_k": 0},
    "several sequences": {"do_sample": True, "num_return_sequences": 3},
    "beams": {"num_beams": 3, "num_return_sequences": 2},
    "sampled beams": {"num_beams": 3, "do_sample": True},
    "drafts": {"prompt_lookup_num_tokens": 3},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("budget", [None, 3, 5])
def test_generate_gives_the_same_ids(model: Model, constraint: Constraint, way: str, budget: int | None) -> None:
    options = WAYS[way] if budget is None else {**WAYS[way], "max_new_tokens": budget}
    host = ConstraintLogitsProcessor(constraint, WIDTH, budget)
    on_device = DeviceLogitsProcessor(constraint, WIDTH, budget)
    for seed in range(3):
        assert generated(model, on_device, seed, **options) == generated(model, host, seed, **options)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "drafts"])
def test_prompts_with_constraints_and_budgets_of_their_own(
    model: Model, constraint: Constraint, other: Constraint, way: str
) -> None:
    constraints, budgets = [constraint, other, constraint, other], [4, None, 2, 6]
    tables = DeviceConstraints([other])
    host = ConstraintLogitsProcessor(constraints, WIDTH, budgets)
    on_device = DeviceLogitsProcessor(constraints, WIDTH, budgets, tables=tables)
    for seed in range(3):
        assert generated(model, on_device, seed, **WAYS[way]) == generated(model, host, seed, **WAYS[way])
    assert tables.num_states == 3 + sum(DeviceConstraints([each]).num_states - 3 for each in (constraint, other))


def test_assisted_decoding(constraint: Constraint) -> None:
    """The assistant's drafts and the model's checks are calls of one processor, back and forth."""
    model, assistant = tiny.decoder(), tiny.decoder(seed=1)
    for budget in (None, 5):
        outputs = []
        for kind in (ConstraintLogitsProcessor, DeviceLogitsProcessor):
            processor: Any = kind(constraint, len(PROMPTS[3]), budget)
            ids = model.generate(
                torch.tensor([PROMPTS[3]]),
                attention_mask=torch.ones(1, len(PROMPTS[3]), dtype=torch.int64),
                logits_processor=[processor],
                assistant_model=assistant,
                do_sample=False,
                max_new_tokens=budget or 12,
            )
            outputs.append(ids.tolist())
        assert outputs[0] == outputs[1]


def same_scores(host: Any, on_device: Any, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintWarning)  # only the host gives them
        expected: torch.Tensor = host(input_ids, scores)
    before = scores.clone()
    found = on_device(input_ids, scores)
    assert torch.equal(found, expected)
    assert found.dtype == scores.dtype
    assert torch.equal(scores.nan_to_num(99), before.nan_to_num(99))
    return expected


@settings(max_examples=60)
@given(st.data())
def test_calls_return_the_same_scores(data: st.DataObject) -> None:
    """Rows that go on, change places, leave the language, end, and whose scores are infinite or no numbers."""
    constraint, other = compile_values(VALUES), compile_values(OTHER_VALUES)
    count = data.draw(st.sampled_from([1, 2, 4, 6]))
    constraints = [constraint, other] if count % 2 == 0 and data.draw(st.booleans()) else [constraint]
    budget = data.draw(st.sampled_from([None, 3, 5]))
    host = ConstraintLogitsProcessor(constraints, 2, budget)
    on_device = DeviceLogitsProcessor(constraints, 2, budget)
    dtype = data.draw(st.sampled_from([torch.float32, torch.float16, torch.bfloat16]))
    share = count // len(constraints)
    ids = torch.zeros(count, 2, dtype=torch.int64)
    for _ in range(data.draw(st.integers(1, 6))):
        scores = torch.randn(count, NUM_LOGITS).to(dtype)
        kind = data.draw(st.sampled_from(["finite", "finite", "few", "nan", "none"]))
        if kind == "few":
            scores[:, torch.randperm(NUM_LOGITS)[3:]] = -torch.inf
        elif kind != "finite":
            scores[0] = torch.nan if kind == "nan" else -torch.inf
        masked = same_scores(host, on_device, ids, scores)
        # Beams go on from any row of the same prompt.
        parents = [share * (row // share) + data.draw(st.integers(0, share - 1)) for row in range(count)]
        chosen = masked[parents].float().softmax(-1).multinomial(1)
        if data.draw(st.integers(0, 5)) == 0:
            chosen[0] = data.draw(st.integers(0, SIZE - 1))
        ids = torch.cat([ids[parents], chosen], dim=1)


def test_ids_may_be_of_any_length(constraint: Constraint) -> None:
    """Forwards by several, backwards, another batch, and again from the beginning."""
    host, on_device = ConstraintLogitsProcessor(constraint, 1, 6), DeviceLogitsProcessor(constraint, 1, 6)
    whole = torch.tensor([[PAD, 4, 5, 6, 2, 2, 0], [PAD, 6, 4, 9, 8, 3, 0], [PAD, 4, 4, 4, 4, 4, 4]])
    for length, rows in ((1, 3), (4, 3), (4, 3), (2, 3), (3, 3), (7, 3), (1, 2), (2, 2), (3, 1), (1, 3), (2, 3)):
        same_scores(host, on_device, whole[:rows, :length], torch.randn(rows, NUM_LOGITS))


def test_large_batches_are_followed_from_their_start(
    model: Model, constraint: Constraint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_hf_device, "_MOST_COMPARED", 10)
    host, on_device = ConstraintLogitsProcessor(constraint, WIDTH), DeviceLogitsProcessor(constraint, WIDTH)
    assert generated(model, on_device, **WAYS["beams"]) == generated(model, host, **WAYS["beams"])


def test_begin(model: Model, constraint: Constraint) -> None:
    processor = DeviceLogitsProcessor(constraint)
    with pytest.raises(TrieautoError, match="where does the prompt end"):
        processor(torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, NUM_LOGITS))
    processor.begin(WIDTH, max_new_tokens=4)
    assert "prompt_length=7, max_new_tokens=4, 1 constraint" in repr(processor)
    assert generated(model, processor) == generated(model, ConstraintLogitsProcessor(constraint, WIDTH, 4))
    processor.begin(WIDTH, None)
    assert generated(model, processor) == generated(model, ConstraintLogitsProcessor(constraint, WIDTH))


def test_the_host_never_waits(constraint: Constraint, other: Constraint) -> None:
    """Nor at the first step, once the rows' states are there."""
    processor = DeviceLogitsProcessor([constraint, other], 1, [5, None])
    ids = torch.zeros(4, 1, dtype=torch.int64)
    scores = torch.randn(4, NUM_LOGITS)
    processor(ids, scores)
    for _ in range(3):
        with NeverWaits():
            masked = processor(ids, scores)
            ids = torch.cat([ids, masked.argmax(dim=1, keepdim=True)], dim=1)


def test_bad_input(constraint: Constraint) -> None:
    with pytest.raises(BudgetError, match="1 token is needed"):
        DeviceLogitsProcessor(constraint, 1, 0)
    with pytest.raises(TrieautoError, match="expected a Constraint"):
        DeviceLogitsProcessor("a", 1)  # type: ignore[arg-type]
    with pytest.raises(TrieautoError, match="tables must be DeviceConstraints, not str"):
        DeviceLogitsProcessor(constraint, 1, tables="a")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="too many to store"):
        DeviceLogitsProcessor(constraint, 1, tables=DeviceConstraints(vocabulary=constraint.vocabulary, max_entries=9))
    with pytest.raises(VocabularyError, match="the same vocabulary"):
        DeviceLogitsProcessor(constraint, 1, tables=DeviceConstraints(vocabulary=tiny.vocabulary(44)))
    processor = DeviceLogitsProcessor([constraint, constraint], 1)
    with pytest.raises(TrieautoError, match="3 rows cannot be shared out among 2 prompts"):
        processor(torch.zeros(3, 1, dtype=torch.int64), torch.zeros(3, NUM_LOGITS))
    with pytest.raises(VocabularyError, match="39 logits"):
        processor(torch.zeros(2, 1, dtype=torch.int64), torch.zeros(2, SIZE - 1))
    with pytest.raises(TrieautoError, match="fewer than prompt_length=1"):
        processor(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(2, NUM_LOGITS))
    with pytest.raises(TrieautoError, match="prompt_length must not be negative"):
        processor.begin(-1)
