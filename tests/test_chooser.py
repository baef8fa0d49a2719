"""``Chooser`` on a real language model, and on tiny encoder-decoder models with the same tokenizer."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as TokenizerOfPieces
from tokenizers import decoders, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import LogitsProcessor, PreTrainedTokenizerFast, T5Config, T5EncoderModel

import trieauto
from trieauto.errors import (
    EmptyConstraintError,
    TrieautoError,
    UnreachableValueError,
    UnsupportedError,
    VocabularyError,
)
from trieauto.integrations._hf_prompts import encode
from trieauto.integrations.hf import Choice, Chooser, ConstraintWarning, Prompt

from . import tiny_models as tiny
from .tiny_models import T5_SIZE, Model, Tokenizer

TOOLS = [
    "get",
    "get_weather",
    "get_weather_tomorrow",
    "get_time",
    "send_mail",
    "send_message",
    "set_alarm",
    "sélectionner",
    "天气",
    "🌦",
]
CHAT = [
    {"role": "system", "content": "Answer with the name of one tool."},
    {"role": "user", "content": "Which tool tells what time it is in Lima? get_weather, get_time or send_mail?"},
]
PROMPTS: list[Prompt] = [
    CHAT,
    "The tool that sends an e-mail is called ",
    "Will it rain tomorrow?\nTool:",
    [{"role": "user", "content": "Wake me at seven."}],
    "a",
]


@pytest.fixture(scope="module")
def tokenizer(smollm2_tokenizer: Tokenizer) -> Tokenizer:
    """Of both the real model and the small ones."""
    return smollm2_tokenizer


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Model:
    return tiny.decoder_for(tokenizer)


@pytest.fixture(scope="module")
def chooser(model: Model, tokenizer: Tokenizer) -> Chooser:
    return Chooser(model, tokenizer, TOOLS)


@pytest.fixture(scope="module")
def alone(chooser: Chooser) -> list[Choice]:
    """The choice for each prompt, one prompt at a time."""
    return [chooser(prompt) for prompt in PROMPTS]


def prompt_ids(tokenizer: Tokenizer, prompt: Prompt) -> list[int]:
    """What the model reads, by way of the text: SmolLM2's tokenizer adds no special tokens of its own."""
    if not isinstance(prompt, str):
        prompt = tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
    ids: list[int] = tokenizer(prompt)["input_ids"]
    return ids


def log_probability(model: Model, prompt: Sequence[int], answer: Sequence[int]) -> float:
    """Of the answer after the prompt, by the model's own log-softmax, in one forward pass."""
    with torch.no_grad():
        scores = model(torch.tensor([[*prompt, *answer]])).logits[0].double().log_softmax(dim=-1)
    return sum(float(scores[len(prompt) - 1 + i, token_id]) for i, token_id in enumerate(answer))


@pytest.mark.parametrize("is_real", [True, False])
def test_greedy_is_the_likeliest_allowed_token_at_every_step(
    is_real: bool, smollm2_model: Model, model: Model, tokenizer: Tokenizer
) -> None:
    """A plain loop over the matcher gives the same value, tokens, passes, and log-probability (not of the masked
    scores)."""
    if is_real:
        model = smollm2_model
    chooser = Chooser(model, tokenizer, TOOLS)
    prompts = PROMPTS[:2] if is_real else PROMPTS
    for prompt, choice in zip(prompts, map(chooser, prompts), strict=True):
        matcher = chooser.constraint.matcher()
        start = prompt_ids(tokenizer, prompt)
        ids: list[int] = []
        while matcher.value is None:
            allowed = torch.from_numpy(matcher.allowed_token_ids()).long()
            with torch.no_grad():
                scores = model(torch.tensor([start + ids])).logits[0, -1, allowed]
            ids.append(int(allowed[scores.argmax()]))
            assert matcher.accept_token(ids[-1])
        content = ids[:-1] if matcher.is_terminated() else ids
        assert choice.value == matcher.value
        assert choice.value in TOOLS
        assert list(choice.token_ids) == content
        assert choice.num_forward_passes == len(ids)
        assert choice.log_probability == pytest.approx(log_probability(model, start, content), abs=1e-3)


def test_a_batch_gives_what_its_prompts_give_alone(chooser: Chooser, alone: list[Choice]) -> None:
    for batch_size in (1, 2, 5, 8):
        together = list(chooser.map(PROMPTS, batch_size=batch_size, progress=False))
        for choice, expected in zip(together, alone, strict=True):
            assert choice.value == expected.value
            assert choice.token_ids == expected.token_ids
            assert choice.num_forward_passes == expected.num_forward_passes
            assert choice.log_probability == pytest.approx(expected.log_probability, abs=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_beams": 3},
        {"prompt_lookup_num_tokens": 4},
        {"do_sample": True, "num_beams": 2, "top_k": 5},
        {"use_cache": False},
    ],
)
def test_forward_passes_are_counted_truly(options: dict[str, Any], model: Model, tokenizer: Tokenizer) -> None:
    chooser = Chooser(model, tokenizer, TOOLS, **options)
    passes = 0

    def count(*_: object) -> None:
        nonlocal passes
        passes += 1

    handle = model.register_forward_hook(count)
    try:
        for prompt in PROMPTS[:2]:
            passes = 0
            assert chooser(prompt).num_forward_passes == passes > 0
        if "prompt_lookup_num_tokens" not in options:
            passes = 0
            assert max(choice.num_forward_passes for choice in chooser.map(PROMPTS, progress=False)) == passes
    finally:
        handle.remove()


@pytest.mark.parametrize("options", [{"num_beams": 3}, {"num_beams": 4, "do_sample": True, "top_k": 9}])
def test_beams_change_places_and_the_score_stays_the_answers_own(
    options: dict[str, Any], model: Model, tokenizer: Tokenizer
) -> None:
    torch.manual_seed(0)
    chooser = Chooser(model, tokenizer, TOOLS, **options)
    for prompt, choice in zip(PROMPTS, chooser.map(PROMPTS, batch_size=3, progress=False), strict=True):
        assert choice.value in TOOLS
        expected = log_probability(model, prompt_ids(tokenizer, prompt), choice.token_ids)
        assert choice.log_probability == pytest.approx(expected, abs=1e-3)


def test_drafted_tokens_do_not_change_the_choice(model: Model, tokenizer: Tokenizer, alone: list[Choice]) -> None:
    for options in ({"prompt_lookup_num_tokens": 4}, {"assistant_model": model}):
        chooser = Chooser(model, tokenizer, TOOLS, **options)
        for prompt, expected in zip(PROMPTS[:3], alone, strict=False):
            choice = chooser(prompt)
            assert (choice.value, choice.token_ids) == (expected.value, expected.token_ids)
            assert choice.num_forward_passes <= expected.num_forward_passes
            assert choice.log_probability == pytest.approx(expected.log_probability, abs=1e-3)
        with pytest.raises(UnsupportedError, match="batch_size=1, not 8"):
            chooser.map(PROMPTS)


def test_sampling_draws_different_values(model: Model, tokenizer: Tokenizer) -> None:
    torch.manual_seed(0)
    chooser = Chooser(model, tokenizer, TOOLS, do_sample=True, temperature=5.0, top_k=0)
    values = {choice.value for choice in chooser.map([PROMPTS[1]] * 12, batch_size=12, progress=False)}
    assert len(values) > 1
    assert values <= set(TOOLS)


def test_the_models_own_generation_config_does_not_decide(
    model: Model,
    tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
    recwarn: pytest.WarningsRecorder,
    chooser: Chooser,
    alone: list[Choice],
) -> None:
    """Checkpoints bring defaults for free text, which would forbid or reweigh what the set needs."""
    prompts: list[Prompt] = [CHAT, *(f"{tool} or {tool} or" for tool in TOOLS)]
    expected = [choice.value for choice in chooser.map(prompts, progress=False)]
    for name, value in {
        "do_sample": True,
        "temperature": 9.0,
        "num_beams": 4,
        "repetition_penalty": 100.0,
        "min_length": 50,
        "min_new_tokens": 50,
        "max_new_tokens": 2,
        "no_repeat_ngram_size": 1,
        "suppress_tokens": list(alone[1].token_ids[-1:]),
        "bad_words_ids": [list(alone[0].token_ids[:1])],
        "forced_eos_token_id": tokenizer.eos_token_id,
    }.items():
        monkeypatch.setattr(model.generation_config, name, value)
    choices = Chooser(model, tokenizer, TOOLS).map(prompts, progress=False)
    assert [choice.value for choice in choices] == expected
    assert not recwarn.list


def test_only_one_value_needs_no_forward_pass(model: Model, tokenizer: Tokenizer) -> None:
    for values in (["get_time"], ["get_time", "get_time"], [""], [b"caf\xc3"]):
        chooser = Chooser(model, tokenizer, values)
        assert chooser("a") == Choice(values[0], 0.0, (), 0)
        assert [choice.value for choice in chooser.map(["a", CHAT], progress=False)] == [values[0]] * 2


def test_a_value_that_others_begin_with_is_told_apart_by_the_stop_token(model: Model, tokenizer: Tokenizer) -> None:
    chooser = Chooser(model, tokenizer, ["", "abc"])
    prompts: list[Prompt] = ["Say nothing:", "x", CHAT, "Continue the alphabet: "]
    choices = list(chooser.map(prompts, progress=False))
    assert all(choice.num_forward_passes == 1 for choice in choices)
    for choice in choices:
        if choice.value == "":
            assert (choice.token_ids, choice.log_probability) == ((), 0.0)
        else:
            assert choice.value == "abc"
            assert choice.log_probability < 0


def test_values_come_back_as_they_were_given(model: Model, tokenizer: Tokenizer) -> None:
    values: list[str | bytes] = ["abc", b"xyz", "é"]
    chooser = Chooser(model, tokenizer, iter(values))
    chosen = {type(choice.value): choice.value for choice in chooser.map(["x", "xy", "wxyz = ", "abc abc "], 4, False)}
    assert set(chosen.values()) <= set(values)


def test_an_automaton_or_a_constraint_will_do(
    model: Model, tokenizer: Tokenizer, chooser: Chooser, alone: list[Choice]
) -> None:
    for values in (trieauto.choices(TOOLS), chooser.constraint):
        assert Chooser(model, tokenizer, values)(CHAT).value == alone[0].value


def test_map_reads_a_batch_at_a_time(chooser: Chooser, alone: list[Choice]) -> None:
    taken = 0

    def endless() -> Iterator[Prompt]:
        nonlocal taken
        for prompt in itertools.cycle(PROMPTS[1:3]):
            taken += 1
            yield prompt

    choices = chooser.map(endless(), batch_size=2, progress=False)
    assert taken == 0
    assert [next(choices).value for _ in range(3)] == [alone[1].value, alone[2].value, alone[1].value]
    assert taken == 4


def test_map_shows_its_progress(chooser: Chooser, capfd: pytest.CaptureFixture[str]) -> None:
    assert len(list(chooser.map(PROMPTS[:3], batch_size=2))) == 3
    assert "3/3" in capfd.readouterr().err
    assert len(list(chooser.map(iter(PROMPTS[:3]), batch_size=2))) == 3
    assert "3prompt" in capfd.readouterr().err
    list(chooser.map(PROMPTS[:1], progress=False))
    assert capfd.readouterr().err == ""
    assert list(chooser.map([], progress=False)) == []


def test_model_and_tokenizer_are_left_as_they_were(
    model: Model, tokenizer: Tokenizer, chooser: Chooser, alone: list[Choice]
) -> None:
    padding_side, config = tokenizer.padding_side, model.generation_config.to_dict()
    model.train()
    model.model.layers[0].eval()
    try:
        before = [module.training for module in model.modules()]
        assert next(chooser.map(PROMPTS, progress=False)).value == alone[0].value
        assert [module.training for module in model.modules()] == before
        with pytest.raises(UnsupportedError):
            chooser("")
        assert [module.training for module in model.modules()] == before
    finally:
        model.eval()
    assert tokenizer.padding_side == padding_side
    assert model.generation_config.to_dict() == config


def test_every_prompt_begins_with_one_start_token(tokenizer: Tokenizer, chooser: Chooser, alone: list[Choice]) -> None:
    """With a tokenizer that adds one to plain text: a chat template, and text made by it, bring their own."""
    rendered = tokenizer.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    assert rendered.startswith(tokenizer.bos_token)
    assert chooser(rendered) == alone[0]
    adding = copy.deepcopy(tokenizer)
    start = (adding.bos_token, adding.bos_token_id)
    adding.backend_tokenizer.post_processor = TemplateProcessing(single=f"{start[0]} $A", special_tokens=[start])
    for prompt in ("plain text", rendered, CHAT):
        ids = encode(adding, prompt)
        assert ids[0] == adding.bos_token_id
        assert ids[1] != adding.bos_token_id
    assert encode(adding, rendered) == encode(adding, CHAT) == prompt_ids(tokenizer, CHAT)
    assert encode(adding, "plain text")[1:] == prompt_ids(tokenizer, "plain text")


class OnlyTheFirstToken(LogitsProcessor):
    """Another rule, which no value satisfies after its first token."""

    def __init__(self, token_id: int) -> None:
        self.token_id = token_id

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        masked = torch.full_like(scores, -torch.inf)
        masked[:, self.token_id] = 0.0
        return masked  # type: ignore[return-value]


def test_other_processors_apply_before_the_constraint(model: Model, tokenizer: Tokenizer) -> None:
    [token_id] = tokenizer("s")["input_ids"]
    chooser = Chooser(model, tokenizer, TOOLS, tokenization="any", logits_processor=[OnlyTheFirstToken(token_id)])
    with pytest.warns(ConstraintWarning, match=f"after 1 generated tokens, it forces token {token_id} b's'"):
        choice = chooser(CHAT)
    assert str(choice.value).startswith("s")


@pytest.mark.parametrize("options", [{}, {"do_sample": True}, {"num_beams": 3}])
def test_a_model_whose_scores_are_not_numbers(options: dict[str, Any], tokenizer: Tokenizer) -> None:
    """An error would lose the other prompts of a batch: the value is in the set, and its probability is no number."""
    model = tiny.decoder(num_logits=len(tokenizer))
    with torch.no_grad():
        model.lm_head.weight.fill_(torch.nan)
    with pytest.warns(ConstraintWarning, match="the model's scores are not numbers: in row 0") as caught:
        choices = list(Chooser(model, tokenizer, TOOLS, **options).map(PROMPTS, progress=False))
    assert len(caught) == 1
    for choice in choices:
        assert choice.value in TOOLS
        assert math.isnan(choice.log_probability)


def test_a_chooser_says_what_it_is(chooser: Chooser) -> None:
    assert repr(chooser) == f"<Chooser: LlamaForCausalLM with {chooser.constraint!r}>"


# Encoder-decoder models


def encoder_decoder(vocab_size: int, seed: int, **generation: object) -> Model:
    model = tiny.bart(seed, vocab_size)
    generation = {"decoder_start_token_id": 0, "eos_token_id": 2, "forced_eos_token_id": None, **generation}
    for name, value in generation.items():
        setattr(model.generation_config, name, value)
    return model


@pytest.mark.parametrize("generation", [{}, {"forced_bos_token_id": 17, "min_length": 20, "forced_eos_token_id": 2}])
def test_encoder_decoder_models(generation: dict[str, object], tokenizer: Tokenizer, chooser: Chooser) -> None:
    """The decoder starts from its start token, and from a language token where the model has one."""
    starts = [0, 17] if generation else [0]
    seen = set()
    for seed in range(2):
        model = encoder_decoder(len(tokenizer), seed, **generation)
        for options in ({}, {"num_beams": 2}):
            own_chooser = Chooser(model, tokenizer, chooser.constraint, **options)
            for prompt, choice in zip(PROMPTS, own_chooser.map(PROMPTS, progress=False), strict=True):
                seen.add(choice.value)
                single = own_chooser(prompt)
                assert (single.value, single.token_ids) == (choice.value, choice.token_ids)
                with torch.no_grad():
                    logits = model(
                        input_ids=torch.tensor([prompt_ids(tokenizer, prompt)]),
                        decoder_input_ids=torch.tensor([[*starts, *choice.token_ids]]),
                    ).logits[0]
                scores = logits.double().log_softmax(dim=-1)[len(starts) - 1 : -1]
                expected = sum(float(scores[i, token_id]) for i, token_id in enumerate(choice.token_ids))
                assert choice.log_probability == pytest.approx(expected, abs=1e-3)
    assert len(seen) > 1


# Misuse


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_length": 5}, "give max_new_tokens"),
        ({"min_new_tokens": 5}, "neither sooner nor later"),
        ({"eos_token_id": 7}, "neither sooner nor later"),
        ({"stopping_criteria": []}, "neither sooner nor later"),
        ({"bad_words_ids": [[5]]}, "forbids or forces tokens"),
        ({"prefix_allowed_tokens_fn": print}, "forbids or forces tokens"),
        ({"num_return_sequences": 2}, "one value is chosen"),
        ({"generation_config": None}, "give its fields"),
        ({"input_ids": None}, "brings its own prompt"),
        ({"cache_implementation": "paged"}, "no answer would end"),
    ],
)
def test_arguments_that_would_break_the_constraint_are_refused(
    options: dict[str, Any], reason: str, model: Model, tokenizer: Tokenizer
) -> None:
    [name] = options
    with pytest.raises(UnsupportedError, match=f"{name}=.*{reason}"):
        Chooser(model, tokenizer, TOOLS, **options)


def test_long_arguments_are_shortened(model: Model, tokenizer: Tokenizer) -> None:
    options: dict[str, Any]
    for options in ({"suppress_tokens": list(range(384))}, {"generation_config": model.generation_config}):
        with pytest.raises(UnsupportedError) as caught:
            Chooser(model, tokenizer, TOOLS, **options)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 250


def test_processors_are_a_list(model: Model, tokenizer: Tokenizer) -> None:
    with pytest.raises(TrieautoError, match="logits_processor must be a list of logits processors, not 5"):
        Chooser(model, tokenizer, TOOLS, logits_processor=5)
    with pytest.raises(TrieautoError, match=r"logits_processor must be a list .*OnlyTheFirstToken"):
        Chooser(model, tokenizer, TOOLS, logits_processor=OnlyTheFirstToken(5))
    with pytest.raises(TrieautoError, match="logits_processor must hold logits processors, not 5"):
        Chooser(model, tokenizer, TOOLS, logits_processor=[5])


def test_a_tokenizer_is_needed(model: Model, chooser: Chooser) -> None:
    for wrong in (None, "gpt2", chooser.constraint.vocabulary):
        with pytest.raises(TrieautoError, match=r"expected the model's tokenizer, .* not"):
            Chooser(model, wrong, TOOLS)  # type: ignore[arg-type]


def test_a_space_that_makes_two_values_one() -> None:
    """The error says what a Chooser's user can do, and that works."""
    pieces = ["<unk>", "</s>", "▁", "a", "b"]
    inner = TokenizerOfPieces(models.Unigram([(piece, -float(i)) for i, piece in enumerate(pieces)], 0, False))
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    inner.decoder = decoders.Metaspace(prepend_scheme="always")
    make: Any = PreTrainedTokenizerFast  # it has no annotations
    spaced = make(tokenizer_object=inner, eos_token="</s>", unk_token="<unk>")
    values = ["", " ", "a"]
    own_model = tiny.decoder()
    own_model.generation_config.eos_token_id = spaced.eos_token_id
    with pytest.raises(UnsupportedError, match=r"both '' and ' '.* prefix_space='none' .*pass a Constraint compiled"):
        Chooser(own_model, spaced, values, tokenization="any")
    vocabulary = trieauto.Vocabulary.from_tokenizer(spaced)
    constraint = trieauto.compile(trieauto.choices(values), vocabulary, prefix_space="none")
    assert Chooser(own_model, spaced, constraint)("ab").value in values


def test_sets_that_cannot_be_chosen_from(model: Model, tokenizer: Tokenizer) -> None:
    with pytest.raises(EmptyConstraintError):
        Chooser(model, tokenizer, [])
    with pytest.raises(TrieautoError, match="single string 'get_time'"):
        Chooser(model, tokenizer, "get_time")
    for no_set in (None, 5):
        with pytest.raises(TrieautoError, match=str(no_set)):
            Chooser(model, tokenizer, no_set)  # type: ignore[arg-type]
    # SmolLM2 lacks the single byte F5, which occurs in no UTF-8.
    with pytest.raises(UnreachableValueError, match=r"\\xf5"):
        Chooser(model, tokenizer, ["get_time", b"get_\xf5"])


def test_prompts_that_are_none(chooser: Chooser, tokenizer: Tokenizer) -> None:
    for wrong in (
        None,
        7,
        b"text",
        [],
        ["text"],
        [{"content": "no role"}],
        {"role": "user", "content": "hi"},
        [{"role": "user"}],
        [*CHAT, {"role": "user", "content": None}],
        [{"role": "user", "content": b"bytes"}],
        [{"role": None, "content": "no role"}],
        torch.zeros(9, 9),
    ):
        with pytest.raises(UnsupportedError, match="a prompt is text or a list of chat messages"):
            chooser(wrong)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="'' has no tokens"):
        chooser("")
    for one in ("text", CHAT, CHAT[0]):
        with pytest.raises(UnsupportedError, match="many prompts, but got one"):
            chooser.map(one)  # type: ignore[arg-type]
    for batch_size in (0, -1):
        with pytest.raises(UnsupportedError, match=f"batch_size must be at least 1, but is {batch_size}"):
            chooser.map(PROMPTS, batch_size=batch_size)
    for no_size in (1.5, "2", None, True):
        with pytest.raises(TrieautoError, match=f"batch_size must be an integer, not {no_size!r}"):
            chooser.map(PROMPTS, batch_size=no_size)  # type: ignore[arg-type]
    for no_prompts in (None, 5):
        with pytest.raises(TrieautoError, match=f"map takes many prompts, not {no_prompts}"):
            chooser.map(no_prompts)  # type: ignore[arg-type]


def test_prompts_without_utf_8_bytes(chooser: Chooser) -> None:
    prompts: list[Prompt] = [
        "\ud800",
        "text " * 99 + "\udfff",
        [{"role": "user", "content": "\udc80"}],
        [{"role": "user", "content": [{"type": "text", "text": "a\udc80"}]}],
    ]
    for prompt in prompts:
        with pytest.raises(UnsupportedError, match=r"the prompt .* holds a lone surrogate and has no UTF-8 bytes"):
            chooser(prompt)


def test_what_a_chat_template_refuses(tokenizer: Tokenizer, chooser: Chooser, monkeypatch: pytest.MonkeyPatch) -> None:
    parts: Prompt = [{"role": "user", "content": [{"type": "text", "text": "Lima?"}]}]
    with pytest.raises(UnsupportedError, match=r"fails on the prompt .*'Lima\?'.*: .*concatenate"):
        chooser(parts)  # SmolLM2's template is for text alone
    for template, words in {
        "{{ raise_exception('no system message, please') }}": "no system message, please",
        "{{ messages[0].name.first }}": "'name'",
        "{% for message in messages %}": "endfor",
    }.items():
        monkeypatch.setattr(tokenizer, "chat_template", template)
        with pytest.raises(UnsupportedError, match=f"the chat template fails on the prompt .*'role'.*: .*{words}"):
            chooser(CHAT)
    monkeypatch.setattr(tokenizer, "chat_template", "{{ messages[0].content[0].text }}")
    assert chooser(parts) == chooser("Lima?")


def test_chat_messages_need_a_chat_template(
    model: Model,
    tokenizer: Tokenizer,
    chooser: Chooser,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokenizer, "chat_template", None)
    with pytest.raises(UnsupportedError, match="no chat template"):
        chooser(CHAT)


def test_models_that_do_not_fit(model: Model, tokenizer: Tokenizer) -> None:
    size = len(tokenizer)
    with pytest.raises(VocabularyError, match="49,151"):
        Chooser(encoder_decoder(size - 1, 0), tokenizer, TOOLS)
    wider = trieauto.Vocabulary.from_tokenizer(tokenizer, size=size + 64)
    constraint = trieauto.compile(trieauto.choices(TOOLS), wider)
    with pytest.raises(VocabularyError, match="49,216 ids, but the model has 49,152 logits"):
        Chooser(model, tokenizer, constraint)
    with pytest.raises(UnsupportedError, match="T5EncoderModel cannot generate"):
        Chooser(T5EncoderModel(T5Config(vocab_size=64, **T5_SIZE)), tokenizer, TOOLS)


def test_the_models_stop_tokens_are_never_text(tokenizer: Tokenizer) -> None:
    """A model may stop at a token with text, such as a line break: it ends the answer, and is no part of a value."""
    [line_break] = tokenizer("\n")["input_ids"]
    model = encoder_decoder(len(tokenizer), 0)
    values = ["a", "ab", "a\n", "a\nb"]
    constraint = Chooser(model, tokenizer, values).constraint
    model.generation_config.eos_token_id = [2, line_break]
    with pytest.raises(VocabularyError, match=rf"stops at token {line_break}, .* text b'\\n'"):
        Chooser(model, tokenizer, constraint)
    with pytest.raises(UnreachableValueError):
        Chooser(model, tokenizer, values)
    chooser = Chooser(model, tokenizer, values[:2])
    assert set(chooser.constraint.vocabulary.stop_token_ids) == {2, line_break}
    assert {choice.value for choice in chooser.map(PROMPTS, progress=False)} <= {"a", "ab"}
