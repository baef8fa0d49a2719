"""The probabilities of values, against scoring each value by a forward pass of its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    FalconConfig,
    GemmaConfig,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    LogitsProcessorList,
    MambaConfig,
    MistralConfig,
    PretrainedConfig,
    Qwen2Config,
)

import trieauto
from trieauto import Vocabulary
from trieauto.demo_sets import tool_names
from trieauto.errors import TrieautoError, UnreachableValueError, UnsupportedError
from trieauto.integrations.hf import Chooser, ConstraintLogitsProcessor, Score

from . import tiny_models as tiny
from .tiny_models import Model, Tokenizer

PROMPT = "Which tool tells what time it is in Lima?\nTool: "
TOOLS = [
    "get",
    "get_weather",
    "get_weather_tomorrow",
    "get_time",
    "send_mail",
    "send_message",
    "set_alarm",
    "天气",
    "🌦",
]
SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 128,
}
NUM_TOKENS = 49152  # of SmolLM2's tokenizer

TAKE_TREES: dict[str, PretrainedConfig] = {
    "Llama": LlamaConfig(vocab_size=NUM_TOKENS, **SMALL),
    "GPT-2": GPT2Config(vocab_size=NUM_TOKENS, n_embd=16, n_layer=2, n_head=2, n_positions=128),
    "GPT-NeoX": GPTNeoXConfig(vocab_size=NUM_TOKENS, **SMALL),
    "Qwen2": Qwen2Config(vocab_size=NUM_TOKENS, **SMALL),
    "Gemma": GemmaConfig(vocab_size=NUM_TOKENS, head_dim=8, **SMALL),
    "Falcon with rotary positions": FalconConfig(
        vocab_size=NUM_TOKENS, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, alibi=False
    ),
}
NEED_ROWS: dict[str, PretrainedConfig] = {
    "Mistral with a sliding window": MistralConfig(vocab_size=NUM_TOKENS, sliding_window=6, head_dim=8, **SMALL),
    "Bloom with ALiBi": BloomConfig(vocab_size=NUM_TOKENS, hidden_size=16, n_layer=2, n_head=2),
    "Falcon with ALiBi": FalconConfig(
        vocab_size=NUM_TOKENS, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, alibi=True
    ),
    "Mamba": MambaConfig(vocab_size=NUM_TOKENS, hidden_size=16, num_hidden_layers=2, state_size=4),
}


def made(config: PretrainedConfig, tokenizer: Tokenizer, seed: int = 0) -> Model:
    """A model with random weights that stops where the tokenizer does."""
    torch.manual_seed(seed)
    make: Any = AutoModelForCausalLM
    model: Any = make.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2 and "A_log" not in name:
                parameter.normal_(std=0.4)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    return model.eval()


@pytest.fixture(scope="module")
def tokenizer(smollm2_tokenizer: Tokenizer) -> Tokenizer:
    return smollm2_tokenizer


@pytest.fixture(scope="module")
def vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary.from_tokenizer(tokenizer)


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Model:
    return made(TAKE_TREES["Llama"], tokenizer)


def spelling(tokenizer: Tokenizer, value: str | bytes) -> list[int]:
    text = value if isinstance(value, str) else value.decode()
    token_ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
    return token_ids


def brute_force(
    model: Model, tokenizer: Tokenizer, prompt: str, values: Sequence[str | bytes]
) -> dict[str | bytes, float]:
    """The logarithm of each value's probability before normalising: each by a pass of its own, no cache, no trie."""
    prompt_ids = tokenizer(prompt)["input_ids"]
    spellings = {value: spelling(tokenizer, value) for value in values}
    stop = model.generation_config.eos_token_id
    prefixes = {tuple(ids[:i]) for ids in spellings.values() for i in range(len(ids))}
    logs = {}
    for value, token_ids in spellings.items():
        if model.config.is_encoder_decoder:
            start = [model.generation_config.decoder_start_token_id]
            inputs = {"input_ids": [prompt_ids], "decoder_input_ids": [start + token_ids]}
        else:
            start = prompt_ids
            inputs = {"input_ids": [start + token_ids]}
        with torch.no_grad():
            output = model(**{name: torch.tensor(ids) for name, ids in inputs.items()}, use_cache=False)
        scores = output.logits[0, len(start) - 1 :].double().log_softmax(dim=-1)
        logs[value] = sum(float(scores[i, token_id]) for i, token_id in enumerate(token_ids))
        if tuple(token_ids) in prefixes:
            logs[value] += float(scores[len(token_ids), stop])
    return logs


def normalised(logs: dict[str | bytes, float]) -> dict[str | bytes, float]:
    highest = max(logs.values())
    shares = {value: math.exp(log - highest) for value, log in logs.items()}
    return {value: share / sum(shares.values()) for value, share in shares.items()}


def check(chooser: Chooser, model: Model, tokenizer: Tokenizer, prompt: str, values: Sequence[str | bytes]) -> None:
    logs = brute_force(model, tokenizer, prompt, values)
    expected = normalised(logs)
    found = chooser.probabilities(prompt)
    assert list(found) == list(expected)
    assert list(found.values()) == pytest.approx(list(expected.values()), abs=1e-4)
    assert sum(found.values()) == pytest.approx(1.0)
    scores = chooser.most_likely(prompt, len(values))
    assert {score.value: score.probability for score in scores} == pytest.approx(found, abs=1e-6)
    assert {score.value: score.log_probability for score in scores} == pytest.approx(logs, abs=1e-3)
    assert [score.probability for score in scores] == sorted(found.values(), reverse=True)
    assert {score.error_bound for score in scores} == {0.0}


@pytest.mark.parametrize("name", [*TAKE_TREES, *NEED_ROWS])
def test_every_value_by_a_pass_of_its_own(name: str, tokenizer: Tokenizer) -> None:
    for seed in range(2):
        model = made((TAKE_TREES | NEED_ROWS)[name], tokenizer, seed)
        chooser = Chooser(model, tokenizer, TOOLS)
        for prompt in (PROMPT, "a"):
            check(chooser, model, tokenizer, prompt, TOOLS)


def test_a_real_model(smollm2_model: Model, tokenizer: Tokenizer) -> None:
    chooser = Chooser(smollm2_model, tokenizer, TOOLS)
    check(chooser, smollm2_model, tokenizer, PROMPT, TOOLS)


@pytest.mark.parametrize("make", [tiny.t5, tiny.bart])
def test_encoder_decoders(make: Any, tokenizer: Tokenizer) -> None:
    model = make().__class__(copy_of(make().config, vocab_size=NUM_TOKENS)).eval()
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    check(Chooser(model, tokenizer, TOOLS), model, tokenizer, PROMPT, TOOLS)


def copy_of(config: PretrainedConfig, **changes: Any) -> PretrainedConfig:
    return type(config)(**{**config.to_dict(), **changes})


@settings(max_examples=25)
@given(
    values=st.lists(st.text("ab _é", max_size=6), min_size=1, max_size=12, unique=True),
    batch_size=st.integers(1, 20),
    seed=st.integers(0, 3),
)
def test_any_set_and_any_batch_size(
    values: list[str], batch_size: int, seed: int, tokenizer: Tokenizer, vocabulary: Vocabulary
) -> None:
    """Prefixes of one another and the empty text included; a batch size changes nothing."""
    model = made(TAKE_TREES["Llama"], tokenizer, seed)
    chooser = Chooser(model, tokenizer, trieauto.compile(trieauto.choices(values), vocabulary))
    check(chooser, model, tokenizer, PROMPT, values)
    expected = chooser.probabilities(PROMPT)
    assert chooser.probabilities(PROMPT, batch_size=batch_size) == pytest.approx(expected, abs=1e-5)
    exact = chooser.most_likely(PROMPT, len(values))
    for tolerance in (1e-9, 0.05, 1.0):
        for count in (1, 2, len(values) + 3):
            check_bounds(
                chooser.most_likely(PROMPT, count, tolerance=tolerance, batch_size=batch_size), exact, tolerance
            )
            assert len(chooser.most_likely(PROMPT, count, tolerance=tolerance)) == min(count, len(values))


def check_bounds(found: Sequence[Score], exact: Sequence[Score], tolerance: float) -> None:
    """The right values in the right order, and the true probability within the stated bound, which is within the
    tolerance. (Values so alike that rounding decides may change places.)"""
    truth = {score.value: score.probability for score in exact}
    assert [truth[score.value] for score in found] == pytest.approx(
        [score.probability for score in exact[: len(found)]]
    )
    for score in found:
        assert score.error_bound <= tolerance
        assert score.probability - 1e-6 <= truth[score.value] <= score.probability + score.error_bound + 1e-6
    assert len({score.value for score in found}) == len(found)


@contextmanager
def reading(model: Model) -> Iterator[list[int]]:
    """How many tokens each pass reads."""
    sizes: list[int] = []

    def note(_: object, __: object, inputs: dict[str, Any]) -> None:
        sizes.append(inputs["input_ids"].numel())

    handle = model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield sizes
    finally:
        handle.remove()


@pytest.mark.parametrize("name", list(TAKE_TREES))
def test_the_prompt_and_every_shared_prefix_are_read_once(name: str, tokenizer: Tokenizer) -> None:
    model = made(TAKE_TREES[name], tokenizer)
    values = tool_names(60)
    chooser = Chooser(model, tokenizer, values)
    chooser.probabilities("a")  # the first time, it is tried whether the model takes tree masks
    spellings = [spelling(tokenizer, value) for value in values]
    prefixes = {tuple(ids[:i]) for ids in spellings for i in range(1, len(ids))}
    for batch_size in (1, 7, 1000):
        with reading(model) as sizes:
            chooser.probabilities(PROMPT, batch_size)
        assert sum(sizes) == len(tokenizer(PROMPT)["input_ids"]) + len(prefixes)
        assert max(sizes[1:]) <= batch_size


def test_a_thousand_values(model: Model, tokenizer: Tokenizer) -> None:
    values = tool_names(1000)
    chooser = Chooser(model, tokenizer, values)
    expected = normalised(brute_force(model, tokenizer, PROMPT, values))
    found = chooser.probabilities(PROMPT)
    assert list(found.values()) == pytest.approx(list(expected.values()), abs=1e-4)
    exact = chooser.most_likely(PROMPT, 1000)
    for tolerance in (0.01, 1.0):
        for count in (1, 5):
            with reading(model) as sizes:
                check_bounds(chooser.most_likely(PROMPT, count, tolerance=tolerance, batch_size=8), exact, tolerance)
            assert sum(sizes) <= sum(len(spelling(tokenizer, value)) for value in values)
    with reading(model) as sizes:
        chooser.most_likely(PROMPT, 1, tolerance=1.0, batch_size=8)
    assert sum(sizes) < 300  # of some 4,000 inner nodes


def test_duplicates_count_once(model: Model, tokenizer: Tokenizer) -> None:
    distinct = Chooser(model, tokenizer, ["b", "a", "ab"]).probabilities(PROMPT)
    found = Chooser(model, tokenizer, ["b", "a", b"b", "a", "ab"]).probabilities(PROMPT)
    assert list(found) == ["b", "a", "ab"]
    assert found == pytest.approx(distinct)


def test_one_value(model: Model, tokenizer: Tokenizer) -> None:
    for value in ("get_weather_tomorrow", "a", ""):
        chooser = Chooser(model, tokenizer, [value], scores=3)
        [log] = brute_force(model, tokenizer, PROMPT, [value]).values()
        for scores in (chooser(PROMPT).scores, chooser.beams(PROMPT), chooser.most_likely(PROMPT, tolerance=0.5)):
            assert scores is not None
            [score] = scores
            assert (score.value, score.error_bound) == (value, 0.0)
            assert score.probability == pytest.approx(1.0)
            assert score.log_probability == pytest.approx(log, abs=1e-4)


def test_scores_of_a_choice(model: Model, tokenizer: Tokenizer) -> None:
    chooser = Chooser(model, tokenizer, TOOLS, scores=3)
    prompts = [PROMPT, "a", "Set an alarm: "]
    for prompt, choice in zip(prompts, chooser.map(prompts, batch_size=2, progress=False), strict=True):
        assert choice.scores == chooser.most_likely(prompt, 3)
        assert len(choice.scores) == 3
    assert Chooser(model, tokenizer, TOOLS)(PROMPT).scores is None
    all_of_them = Chooser(model, tokenizer, TOOLS, scores=len(TOOLS) + 5)(PROMPT).scores
    assert all_of_them is not None
    assert {score.value for score in all_of_them} == set(TOOLS)
    assert len(all_of_them) == len(TOOLS)
    within = Chooser(model, tokenizer, TOOLS, scores=2, scores_tolerance=1.0)(PROMPT).scores
    assert within is not None
    check_bounds(within, all_of_them, 1.0)


def test_a_refused_prompt_has_no_scores(model: Model, tokenizer: Tokenizer) -> None:
    chooser = Chooser(model, tokenizer, ["get_weather_tomorrow", "send_message_to_all"], scores=2)
    refused, answered = chooser.map(["a", "b"], progress=False, max_new_tokens=[1, None])
    assert refused.ended == "refused"
    assert refused.scores is None
    assert answered.scores is not None


def test_greedy_decoding_need_not_find_the_most_likely_value(tokenizer: Tokenizer) -> None:
    """There are seeds with which its first token leads to a less likely value; the scores say so."""
    num_different = 0
    for seed in range(6):
        model = made(TAKE_TREES["Llama"], tokenizer, seed)
        choice = Chooser(model, tokenizer, TOOLS, scores=1)(PROMPT)
        logs = brute_force(model, tokenizer, PROMPT, TOOLS)
        assert choice.scores is not None
        assert logs[choice.scores[0].value] == pytest.approx(max(logs.values()), abs=1e-4)
        num_different += choice.value != choice.scores[0].value
    assert num_different > 0


def beams_by_hand(
    model: Model, tokenizer: Tokenizer, values: Sequence[str], num_beams: int
) -> list[tuple[str | bytes, float]]:
    """Beam search over the spellings, every prefix scored by a pass of its own."""
    spellings = {tuple(spelling(tokenizer, value)): value for value in values}
    prefixes = {ids[:i] for ids in spellings for i in range(len(ids))}
    stop = model.generation_config.eos_token_id
    prompt_ids = tokenizer(PROMPT)["input_ids"]
    finished: dict[tuple[int, ...], float] = {} if () in prefixes else {(): 0.0}
    beams: dict[tuple[int, ...], float] = {(): 0.0} if () in prefixes else {}
    while beams:
        reached: dict[tuple[int, ...], float] = {}
        for ids, log in beams.items():
            with torch.no_grad():
                scores = model(torch.tensor([[*prompt_ids, *ids]])).logits[0, -1].double().log_softmax(-1)
            if ids in spellings:
                finished[ids] = log + float(scores[stop])
            for longer in {other[: len(ids) + 1] for other in spellings if other[: len(ids)] == ids and other != ids}:
                rivals = reached if longer in prefixes else finished
                rivals[longer] = log + float(scores[longer[-1]])
        kept = sorted([*finished.items(), *reached.items()], key=lambda item: -item[1])[:num_beams]
        beams = {ids: log for ids, log in kept if ids in reached}
    best = sorted(finished.items(), key=lambda item: -item[1])[:num_beams]
    return [(spellings[ids], log) for ids, log in best]


@pytest.mark.parametrize("num_beams", [1, 2, 3, 20])
def test_beam_search_returns_distinct_values(num_beams: int, tokenizer: Tokenizer) -> None:
    for seed, values in itertools.product(range(3), (TOOLS, ["a", "ab", "abc", "", "b"])):
        model = made(TAKE_TREES["Llama"], tokenizer, seed)
        chooser = Chooser(model, tokenizer, values)
        found = chooser.beams(PROMPT, num_beams)
        assert len({score.value for score in found}) == len(found) <= min(num_beams, len(values))
        expected = beams_by_hand(model, tokenizer, values, num_beams)
        assert [score.value for score in found] == [value for value, _ in expected]
        assert [score.log_probability for score in found] == pytest.approx([log for _, log in expected], abs=1e-3)
        truth = chooser.probabilities(PROMPT)
        for score in found:
            assert score.probability - 1e-6 <= truth[score.value] <= score.probability + score.error_bound + 1e-6
        if num_beams == 20:
            assert len(found) == len(values)
            assert {score.error_bound for score in found} == {0.0}


def test_beam_search_over_bytes_may_return_a_value_twice(tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
    """Why ``beams`` is there: among all spellings, several beams are spellings of one value."""
    model = made(TAKE_TREES["Llama"], tokenizer, 1)
    constraint = trieauto.compile(trieauto.choices(["get_weather", "send_mail"]), vocabulary)
    inputs = tokenizer(PROMPT, return_tensors="pt")
    length = inputs["input_ids"].shape[1]
    output = model.generate(
        **inputs,
        logits_processor=LogitsProcessorList([ConstraintLogitsProcessor(constraint, length, 12)]),
        max_new_tokens=12,
        num_beams=4,
        num_return_sequences=4,
        do_sample=False,
    )
    texts = tokenizer.batch_decode(output[:, length:], skip_special_tokens=True)
    assert len(set(texts)) < len(texts)
    assert len(Chooser(model, tokenizer, constraint).beams(PROMPT, 4)) == 2


def test_large_sets_need_a_tolerance(model: Model, tokenizer: Tokenizer) -> None:
    values = tool_names(6000)
    chooser = Chooser(model, tokenizer, values)
    for attempt in (
        lambda: chooser.probabilities(PROMPT),
        lambda: chooser.most_likely(PROMPT),
        lambda: Chooser(model, tokenizer, chooser.constraint, scores=2),
    ):
        with pytest.raises(
            UnsupportedError, match=r"6,000 values; all are scored for sets of 5,000 at most.* tolerance"
        ):
            attempt()
    best = chooser.most_likely(PROMPT, 2, tolerance=1.0, batch_size=16)
    assert len({score.value for score in best}) == 2
    assert best[0].log_probability >= best[1].log_probability
    assert len(chooser.beams(PROMPT, 3)) == 3
    assert Chooser(model, tokenizer, chooser.constraint, scores=2, scores_tolerance=1.0)(PROMPT).scores is not None


def test_values_that_the_tokenizer_cannot_spell(model: Model, tokenizer: Tokenizer) -> None:
    with pytest.raises(UnreachableValueError, match=r"b'\\x80a' \(it is no UTF-8\)"):
        Chooser(model, tokenizer, ["a", b"\x80a"]).probabilities(PROMPT)
    with pytest.raises(UnreachableValueError, match=r"never writes 'a<\|im_end\|>' .*\(1 of 2 values\)") as caught:
        Chooser(model, tokenizer, ["a", "a<|im_end|>"], scores=1)
    assert caught.value.values == ["a<|im_end|>"]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "3", True])
def test_numbers_that_are_none(wrong: Any, model: Model, tokenizer: Tokenizer) -> None:
    chooser = Chooser(model, tokenizer, TOOLS)
    attempts: dict[str, Callable[[], object]] = {
        "scores": lambda: Chooser(model, tokenizer, TOOLS, scores=wrong),
        "count": lambda: chooser.most_likely(PROMPT, wrong),
        "batch_size": lambda: chooser.probabilities(PROMPT, wrong),
        "num_beams": lambda: chooser.beams(PROMPT, wrong),
    }
    for name, attempt in attempts.items():
        with pytest.raises(TrieautoError, match=f"^{name} must be an integer of at least 1"):
            attempt()


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "0.1", True, float("nan"), None])
def test_tolerances_that_are_none(wrong: Any, model: Model, tokenizer: Tokenizer) -> None:
    with pytest.raises(TrieautoError, match=r"^tolerance must be a number from 0 to 1"):
        Chooser(model, tokenizer, TOOLS).most_likely(PROMPT, 2, tolerance=wrong)
    with pytest.raises(TrieautoError, match=r"^scores_tolerance must be a number from 0 to 1"):
        Chooser(model, tokenizer, TOOLS, scores_tolerance=wrong)


def test_a_prompt_that_fills_the_context(model: Model, tokenizer: Tokenizer) -> None:
    """The model has 128 positions; the last token of a value is never read."""
    chooser = Chooser(model, tokenizer, ["a", "get_weather_tomorrow"])
    longest = len(spelling(tokenizer, "get_weather_tomorrow"))
    for num_tokens in (128 - longest + 1, 128 - longest + 2):
        prompt = " a" * num_tokens
        assert len(tokenizer(prompt)["input_ids"]) == num_tokens
        if num_tokens + longest - 1 <= 128:
            assert sum(chooser.probabilities(prompt).values()) == pytest.approx(1.0)
        else:
            with pytest.raises(
                UnsupportedError, match=r"the prompt's \d+ tokens .* more than the model's 128 positions"
            ):
                chooser.probabilities(prompt)


def test_a_model_whose_scores_are_not_numbers(tokenizer: Tokenizer) -> None:
    model = made(TAKE_TREES["Llama"], tokenizer)
    with torch.no_grad():
        model.lm_head.weight[:] = torch.nan
    with pytest.raises(TrieautoError, match="not numbers"):
        Chooser(model, tokenizer, TOOLS).probabilities(PROMPT)


def test_the_model_is_left_as_it_was(model: Model, tokenizer: Tokenizer) -> None:
    model.train()
    try:
        found = Chooser(model, tokenizer, TOOLS).probabilities(PROMPT)
        assert model.training
    finally:
        model.eval()
    assert found == Chooser(model, tokenizer, TOOLS).probabilities(PROMPT)


def test_half_precision(tokenizer: Tokenizer) -> None:
    model = made(TAKE_TREES["Llama"], tokenizer)
    exact = Chooser(model, tokenizer, TOOLS).probabilities(PROMPT)
    found = Chooser(model.to(torch.bfloat16), tokenizer, TOOLS).probabilities(PROMPT)
    assert sum(found.values()) == pytest.approx(1.0)
    assert np.corrcoef(list(found.values()), list(exact.values()))[0, 1] > 0.9
