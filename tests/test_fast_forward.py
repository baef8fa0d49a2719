"""Forced text costs no forward passes: which tokens are taken for it, and what becomes of the answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as TokenizerOfPieces
from tokenizers import decoders, models
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    PreTrainedTokenizerFast,
)

import trieauto
from trieauto import Constraint, Matcher, Vocabulary
from trieauto.errors import BudgetError, TrieautoError, UnsupportedError
from trieauto.fast_forward import bytes_of_tokens, forced_token_ids
from trieauto.integrations._hf_prompts import encode
from trieauto.integrations.hf import Chooser, Prompt, generate_constrained

from . import tiny_models as tiny
from .tiny_models import Model, Tokenizer

CALL = {
    "type": "object",
    "properties": {
        "tool": {"enum": ["get_weather", "get_time", "send_mail", "send_message"]},
        "unit": {"enum": ["celsius", "fahrenheit", "kelvin"]},
    },
    "required": ["tool", "unit"],
}
PROMPTS: list[Prompt] = [
    [{"role": "user", "content": "How warm is it in Lima? Answer with a tool call in JSON."}],
    "What time is it?\n",
    "a",
]


# Which tokens are forced


def vocabulary_of(longer: Sequence[bytes], singles: bytes = b"abcd") -> Vocabulary:
    return Vocabulary.from_tokens([None, *[bytes([byte]) for byte in singles], *longer], stop_token_ids=[0])


def answers(matcher: Matcher, found: dict[object, set[bytes]] | None = None) -> set[bytes]:
    """The bytes of all answers to which legal tokens lead from here, counted from here."""
    found = {} if found is None else found
    vocabulary = matcher.constraint.vocabulary
    rest: set[bytes] = {b""} if matcher.is_accepting else set()
    for token_id in matcher.allowed_token_ids().tolist():
        if token_id == 0:
            continue
        after = matcher.fork()
        assert after.accept_token(token_id)
        here = after.__reduce__()[1][2:]  # type: ignore[index]  # its state and budget
        if here not in found:
            found[here] = answers(after, found)
        rest |= {bytes_of_tokens(vocabulary, [token_id]) + answer for answer in found[here]}
    return rest


def check_forced(matcher: Matcher, forced: Sequence[int]) -> None:
    """They are legal, nothing but their text could have come, and no other token at their places would say more."""
    vocabulary = matcher.constraint.vocabulary
    text = bytes_of_tokens(vocabulary, forced)
    assert all(answer.startswith(text) for answer in answers(matcher))
    ahead = matcher.fork()
    for token_id in forced:
        assert not ahead.is_accepting
        legal = ahead.allowed_token_ids().tolist()
        assert token_id in legal
        left = ahead.jump_forward_string()
        assert legal == [token_id] or all(left.startswith(bytes_of_tokens(vocabulary, [other])) for other in legal)
        assert ahead.accept_token(token_id)
    # Nothing is left to take: there is a choice, or a token that reaches past what is forced.
    if not ahead.is_complete:
        legal = ahead.allowed_token_ids().tolist()
        left = ahead.jump_forward_string()
        assert len(legal) > 1
        assert not left or any(len(bytes_of_tokens(vocabulary, [other])) > len(left) for other in legal)


SHARED = st.lists(st.sampled_from([b"a", b"b", b"ab", b"ca", b"dd"]), min_size=1, max_size=3).map(b"".join)


@settings(max_examples=50)
@given(
    prefix=SHARED,
    heads=st.lists(SHARED, min_size=1, max_size=3, unique=True),
    middle=SHARED,
    tails=st.lists(SHARED, min_size=1, max_size=2, unique=True),
    longer=st.lists(st.lists(st.sampled_from(list(b"abcd")), min_size=2, max_size=3).map(bytes), max_size=6),
    missing=st.booleans(),
    spare=st.none() | st.integers(0, 2),
    data=st.data(),
)
def test_what_is_forced(
    prefix: bytes,
    heads: list[bytes],
    middle: bytes,
    tails: list[bytes],
    longer: list[bytes],
    missing: bool,
    spare: int | None,
    data: st.DataObject,
) -> None:
    """In structures around sets, with vocabularies that may lack a byte, with budgets and without, anywhere on the way
    to an answer, whatever the tokenizer says."""
    vocabulary = vocabulary_of(longer, b"abd" if missing else b"abcd")
    parts = trieauto.literal(prefix) + trieauto.choices(heads) + trieauto.literal(middle) + trieauto.choices(tails)
    try:
        constraint = trieauto.compile(parts, vocabulary, unreachable="report")
    except TrieautoError:  # it cannot be spelled at all
        return
    budget = None if spare is None else constraint.min_tokens + spare
    matcher = constraint.matcher(budget)

    def tokenize(text: str) -> list[int]:
        return data.draw(st.lists(st.integers(0, vocabulary.size + 2), max_size=12), label=text)

    while not matcher.is_complete:
        before = matcher.fork()
        forced = forced_token_ids(matcher, data.draw(st.sampled_from([None, tokenize])))
        assert matcher.allowed_token_ids().tolist() == before.allowed_token_ids().tolist()
        check_forced(matcher, forced)
        assert matcher.accept_tokens(forced)
        if not matcher.is_complete:
            legal = matcher.allowed_token_ids().tolist()
            assert matcher.accept_token(data.draw(st.sampled_from(legal)))
        if matcher.is_terminated():
            break


def forced_text(constraint: Constraint, budget: int | None = None, encode: Any = None) -> list[bytes]:
    vocabulary = constraint.vocabulary
    return [bytes_of_tokens(vocabulary, [i]) for i in forced_token_ids(constraint.matcher(budget), encode)]


def test_a_token_that_could_reach_past_is_left_to_the_model() -> None:
    parts = trieauto.literal("abcab") + trieauto.choices(["c", "d"])
    plain = trieauto.compile(parts, vocabulary_of([b"abc"]))
    # "ab" may go on as "abc" or end before "d".
    assert forced_text(plain) == [b"abc"]
    assert forced_text(trieauto.compile(parts, vocabulary_of([b"abc", b"ab", b"bd"]))) == [b"abc"]
    assert forced_text(trieauto.compile(parts, vocabulary_of([]))) == [b"a", b"b", b"c", b"a", b"b"]


def test_text_that_no_tokens_of_its_own_spell() -> None:
    """Only "a", "bc" and "bd" are there: after "a", no token is certain, though its first byte is."""
    vocabulary = Vocabulary.from_tokens([None, b"a", b"bc", b"bd"], stop_token_ids=[0])
    constraint = trieauto.compile(trieauto.literal("ab") + trieauto.choices(["c", "d"]), vocabulary)
    assert constraint.matcher().jump_forward_string() == b"ab"
    assert forced_text(constraint) == [b"a"]
    alone = trieauto.compile(trieauto.literal("ab") + trieauto.choices(["c", "ca"]), vocabulary)
    assert forced_text(alone) == [b"a", b"bc"]


def test_a_budget_that_leaves_one_spelling() -> None:
    vocabulary = vocabulary_of([b"ab", b"cd", b"abc", b"bcd"])
    constraint = trieauto.compile(trieauto.literal("abcda") + trieauto.choices(["b", "c"]).repeat(1, 1), vocabulary)

    def one_by_one(text: str) -> list[int]:
        return [1 + b"abcd".index(byte) for byte in text.encode()]

    assert forced_text(constraint, None, one_by_one)[:4] == [b"a", b"b", b"c", b"d"]
    assert constraint.min_tokens == 3
    # The tokenizer's own "b" would be too slow after "a"; at the end one token alone fits, and it says more.
    assert forced_text(constraint, 3, one_by_one) == [b"a", b"bcd", b"ab"]


def test_an_agents_only_way_is_forced() -> None:
    """Over tokens, where one alone is legal."""
    edges = [(0, 1, 1), (1, 2, 2), (2, 3, 3), (2, 4, 3)]
    agent = trieauto.token_automaton(num_states=4, edges=edges, start=0, accepting=[3])
    constraint = trieauto.compile(agent, vocabulary_of([]))
    assert forced_token_ids(constraint.matcher()) == [1, 2]


def test_nothing_is_forced_where_the_answer_may_end() -> None:
    constraint = trieauto.compile(trieauto.choices(["a", "ab"]), vocabulary_of([]))
    assert forced_text(constraint) == [b"a"]
    matcher = constraint.matcher()
    matcher.accept_token(1)
    assert forced_token_ids(matcher) == []
    matcher.accept_token(0)
    assert matcher.is_terminated()
    assert forced_token_ids(matcher) == []


def test_the_tokenizers_own_spelling_is_taken(smollm2_tokenizer: Tokenizer) -> None:
    vocabulary = Vocabulary.from_tokenizer(smollm2_tokenizer)
    constraint = trieauto.compile(trieauto.json_schema(CALL), vocabulary)

    def tokenize(text: str) -> list[int]:
        token_ids: list[int] = smollm2_tokenizer.encode(text, add_special_tokens=False)
        return token_ids

    matcher = constraint.matcher()
    assert tokenize('{"tool":"')[: len(forced := forced_token_ids(matcher, tokenize))] == forced
    assert len(forced) > 1
    so_far = '{"tool":"get_weather'
    assert matcher.accept_tokens(tokenize(so_far))
    forced = forced_token_ids(matcher, tokenize, so_far.encode())
    assert tokenize(so_far + '","unit":"')[len(tokenize(so_far)) :][: len(forced)] == forced
    assert len(forced) > 1


# Answers of models


@pytest.fixture(scope="module")
def tokenizer(smollm2_tokenizer: Tokenizer) -> Tokenizer:
    return smollm2_tokenizer


@pytest.fixture(scope="module")
def constraint(tokenizer: Tokenizer) -> Constraint:
    return trieauto.compile(trieauto.json_schema(CALL), Vocabulary.from_tokenizer(tokenizer))


def made(name: str, vocab_size: int, stop: int, seed: int = 0) -> Model:
    """A tiny model with random weights."""
    sizes: dict[str, Any] = {
        "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1,
    }  # fmt: skip
    configs: dict[str, Any] = {
        "Llama": lambda: LlamaConfig(vocab_size=vocab_size, **sizes),
        "GPT-2": lambda: GPT2Config(vocab_size=vocab_size, n_embd=16, n_layer=2, n_head=2, n_positions=256),
        "Mistral with a sliding window": lambda: MistralConfig(
            vocab_size=vocab_size, sliding_window=8, head_dim=8, **sizes
        ),
        "Mamba": lambda: MambaConfig(vocab_size=vocab_size, hidden_size=16, num_hidden_layers=2, state_size=4),
    }
    torch.manual_seed(seed)
    make: Any = AutoModelForCausalLM
    model: Any = make.from_config(configs[name]())
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=0.5)
    model.generation_config.eos_token_id = stop
    return model.eval()


def by_hand(
    model: Model, tokenizer: Tokenizer, prompt: Sequence[int], constraint: Constraint, budget: int, jumps: bool
) -> list[int]:
    """Greedy decoding, every pass over the whole text; what is forced is taken first, if ``jumps``."""

    def tokenize(text: str) -> list[int]:
        token_ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
        return token_ids

    matcher = constraint.matcher(budget)
    ids: list[int] = []
    while not matcher.is_complete and not matcher.is_terminated():
        before = bytes_of_tokens(constraint.vocabulary, ids)
        forced = forced_token_ids(matcher, tokenize, before) if jumps else []
        if forced:
            ids += forced
            assert matcher.accept_tokens(forced)
            continue
        allowed = torch.from_numpy(matcher.allowed_token_ids()).long()
        with torch.no_grad():
            scores = model(torch.tensor([[*prompt, *ids]])).logits[0, -1, allowed]
        ids.append(int(allowed[scores.argmax()]))
        assert matcher.accept_token(ids[-1])
    return ids


@pytest.mark.parametrize("name", ["Llama", "GPT-2", "Mistral with a sliding window"])
def test_the_answer_is_that_of_a_plain_loop(name: str, tokenizer: Tokenizer, constraint: Constraint) -> None:
    """Same tokens, and a pass for each token that the model chose, no more."""
    size, stop = len(tokenizer), tokenizer.eos_token_id
    for seed in range(3):
        model = made(name, size, stop, seed)
        for prompt in PROMPTS:
            for budget in (constraint.min_tokens, constraint.min_tokens + 3, 60):
                with tiny.counted_passes(model) as passes:
                    answer = generate_constrained(model, tokenizer, prompt, constraint, max_new_tokens=budget)
                expected = by_hand(model, tokenizer, encode(tokenizer, prompt), constraint, budget, jumps=True)
                assert list(answer.token_ids) == expected
                assert len(answer.token_ids) <= budget
                assert set(json.loads(answer.text)) == {"tool", "unit"}
                assert answer.num_forward_passes == len(passes) == len(expected) - answer.num_forced_tokens
                assert answer.num_forced_tokens > 0
                with tiny.counted_passes(model) as passes:
                    slow = generate_constrained(
                        model, tokenizer, prompt, constraint, max_new_tokens=budget, fast_forward=False
                    )
                assert slow.num_forward_passes == len(passes) == len(slow.token_ids)
                assert list(slow.token_ids) == by_hand(
                    model, tokenizer, encode(tokenizer, prompt), constraint, budget, jumps=False
                )


def spelled_alike(constraint: Constraint, tokenizer: Tokenizer, token_ids: Sequence[int], budget: int) -> bool:
    """Whether a model that was asked for every token spelled each forced stretch as it would have been spelled."""

    def tokenize(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
        return ids

    matcher = constraint.matcher(budget)
    done = 0
    while done < len(token_ids):
        before = bytes_of_tokens(constraint.vocabulary, token_ids[:done])
        step = forced_token_ids(matcher, tokenize, before) or [token_ids[done]]
        if list(token_ids[done : done + len(step)]) != step:
            return False
        assert matcher.accept_tokens(step)
        done += len(step)
    return True


def test_forced_text_in_the_models_own_spelling_changes_nothing() -> None:
    """Vocabularies in which forced text has one spelling, or several: where the model spelled it as it is spelled here,
    the answers are equal."""
    num_alike = num_other = 0
    for longer in ([], ["ab"], ["ab", "ba", "cd", "abc"]):
        pieces = {piece: i for i, piece in enumerate(["<end>", *"abcd", *longer])}
        merges = [(piece[:-1], piece[-1]) for piece in longer]
        inner = TokenizerOfPieces(models.BPE(pieces, merges))
        inner.decoder = decoders.Fuse()
        make: Any = PreTrainedTokenizerFast
        tokenizer = make(tokenizer_object=inner, eos_token="<end>")
        vocabulary = vocabulary_of([piece.encode() for piece in longer])
        parts = trieauto.literal("abcd") + trieauto.choices(["a", "cc", "da", "db"])
        constraint = trieauto.compile(parts + trieauto.literal("dcba") + trieauto.choices(["ab", "dc"]), vocabulary)
        for seed in range(8):
            model = made("Llama", vocabulary.size, 0, seed)
            for prompt in ([1, 2], [3, 4, 4]):
                slow, fast = (
                    generate_constrained(
                        model, tokenizer, prompt, constraint, max_new_tokens=14, fast_forward=fast_forward
                    )
                    for fast_forward in (False, True)
                )
                assert constraint.automaton.accepts(fast.content)
                if spelled_alike(constraint, tokenizer, slow.token_ids, 14):
                    assert fast.token_ids == slow.token_ids
                    assert fast.num_forward_passes < slow.num_forward_passes
                    num_alike += 1
                else:
                    num_other += 1
    assert num_alike > 10
    assert num_other > 0


def test_sampling(tokenizer: Tokenizer, constraint: Constraint) -> None:
    model = made("Llama", len(tokenizer), tokenizer.eos_token_id)
    torch.manual_seed(0)
    drawn = {
        generate_constrained(model, tokenizer, "a", constraint, max_new_tokens=60, do_sample=True, temperature=5.0).text
        for _ in range(12)
    }
    assert len(drawn) > 2
    assert all(set(json.loads(text)) == {"tool", "unit"} for text in drawn)
    greedy = generate_constrained(model, tokenizer, "a", constraint, max_new_tokens=60)
    coldest = generate_constrained(model, tokenizer, "a", constraint, max_new_tokens=60, do_sample=True, top_k=1)
    assert coldest.token_ids == greedy.token_ids


def test_a_real_model_needs_fewer_passes(smollm2_model: Model, tokenizer: Tokenizer) -> None:
    size = smollm2_model.config.vocab_size
    constraint = trieauto.compile(trieauto.json_schema(CALL), Vocabulary.from_tokenizer(tokenizer, size=size))
    fast, slow = (
        generate_constrained(
            smollm2_model, tokenizer, PROMPTS[0], constraint, max_new_tokens=40, fast_forward=fast_forward
        )
        for fast_forward in (True, False)
    )
    assert fast.num_forward_passes < slow.num_forward_passes / 2
    assert fast.num_forced_tokens + fast.num_forward_passes == len(fast.token_ids)
    assert slow.num_forced_tokens == 0
    for answer in (fast, slow):
        assert json.loads(answer.text)["unit"] in CALL["properties"]["unit"]["enum"]  # type: ignore[index]


# The Chooser

SHARED_MIDDLES = [
    f"the {size} {colour} house on the {side} side"
    for size in ("big", "small")
    for colour in ("red", "blue")
    for side in ("left", "right")
]


def test_a_choosers_values_with_shared_middles(tokenizer: Tokenizer) -> None:
    for seed in range(4):
        model = made("Llama", len(tokenizer), tokenizer.eos_token_id, seed)
        slow = Chooser(model, tokenizer, SHARED_MIDDLES)
        fast = Chooser(model, tokenizer, SHARED_MIDDLES, fast_forward=True)
        for prompt in PROMPTS:
            with tiny.counted_passes(model) as passes:
                choice = fast(prompt)
            assert choice.value in SHARED_MIDDLES
            assert choice.num_forward_passes == len(passes) < slow(prompt).num_forward_passes
            prompt_ids = encode(tokenizer, prompt)
            with torch.no_grad():
                scores = model(torch.tensor([[*prompt_ids, *choice.token_ids]])).logits[0].double().log_softmax(-1)
            expected = sum(float(scores[len(prompt_ids) - 1 + i, token]) for i, token in enumerate(choice.token_ids))
            assert choice.log_probability == pytest.approx(expected, abs=1e-3)
        choices = list(fast.map(PROMPTS, batch_size=1, progress=False))
        assert choices == [fast(prompt) for prompt in PROMPTS]


def test_a_choosers_budget_holds(tokenizer: Tokenizer) -> None:
    model = made("Llama", len(tokenizer), tokenizer.eos_token_id)
    chooser = Chooser(model, tokenizer, SHARED_MIDDLES, fast_forward=True)
    least = chooser.constraint.min_tokens
    for budget in (least, least + 1, least + 5):
        choice = chooser("a", max_new_tokens=budget)
        matcher = chooser.constraint.matcher(budget)
        assert matcher.accept_tokens(choice.token_ids)
        assert choice.value in SHARED_MIDDLES
    with pytest.raises(BudgetError):
        chooser("a", max_new_tokens=least - 1)


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_beams": 2}, "num_beams=2"),
        ({"prompt_lookup_num_tokens": 3}, "drafted tokens"),
        ({"use_cache": False}, "use_cache is False"),
        ({"output_scores": True}, "output_scores=True"),
        ({"streamer": object()}, "streamer="),
    ],
)
def test_arguments_that_do_not_fit(
    options: dict[str, Any], message: str, tokenizer: Tokenizer, constraint: Constraint
) -> None:
    model = made("Llama", len(tokenizer), tokenizer.eos_token_id)
    with pytest.raises(UnsupportedError, match=message):
        generate_constrained(model, tokenizer, "a", constraint, max_new_tokens=40, **options)
    with pytest.raises(UnsupportedError, match=message):
        Chooser(model, tokenizer, ["a", "b"], fast_forward=True, **options)


def test_models_and_batches_that_do_not_fit(tokenizer: Tokenizer, constraint: Constraint) -> None:
    model = made("Llama", len(tokenizer), tokenizer.eos_token_id)
    chooser = Chooser(model, tokenizer, ["a", "b"], fast_forward=True)
    with pytest.raises(UnsupportedError, match="batch_size=1, not 8"):
        chooser.map(["a", "b"])
    with pytest.raises(UnsupportedError, match="T5ForConditionalGeneration is an encoder-decoder"):
        Chooser(tiny.t5(), tokenizer, ["a", "b"], fast_forward=True)
    for fast_forward in (True, False):
        with pytest.raises(UnsupportedError, match="T5ForConditionalGeneration is an encoder-decoder"):
            generate_constrained(tiny.t5(), tokenizer, "a", constraint, max_new_tokens=40, fast_forward=fast_forward)
    recurrent = made("Mamba", len(tokenizer), tokenizer.eos_token_id)
    with pytest.raises(UnsupportedError, match="MambaForCausalLM keeps"):
        generate_constrained(recurrent, tokenizer, "a", constraint, max_new_tokens=40)
    with pytest.raises(TrieautoError, match="expected a Constraint"):
        generate_constrained(model, tokenizer, "a", constraint.automaton, max_new_tokens=4)  # type: ignore[arg-type]
    with pytest.raises(TrieautoError, match="max_new_tokens is None"):
        generate_constrained(model, tokenizer, "a", constraint, max_new_tokens=None)  # type: ignore[arg-type]
    with pytest.raises(BudgetError):
        generate_constrained(model, tokenizer, "a", constraint, max_new_tokens=2)


def test_what_needs_no_pass_at_all(tokenizer: Tokenizer) -> None:
    model = made("Llama", len(tokenizer), tokenizer.eos_token_id)
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    for language in (trieauto.literal("always the same"), trieauto.literal("")):
        answer = generate_constrained(model, tokenizer, "a", trieauto.compile(language, vocabulary), max_new_tokens=20)
        assert answer.num_forward_passes == 0
        assert answer.num_forced_tokens == len(answer.token_ids)
        assert language.accepts(answer.content)
    one = trieauto.compile(trieauto.choices(["one value"]), vocabulary)
    answer = generate_constrained(model, tokenizer, "a", one, max_new_tokens=20)
    assert (answer.value, answer.content, answer.num_forward_passes) == ("one value", b"one value", 0)


def test_the_model_is_left_as_it_was(tokenizer: Tokenizer, constraint: Constraint) -> None:
    model = made("Llama", len(tokenizer), tokenizer.eos_token_id).train()
    generate_constrained(model, tokenizer, "a", constraint, max_new_tokens=40)
    assert model.training
