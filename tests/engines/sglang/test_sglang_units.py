"""The grammar backend with SGLang's own classes: its manager of grammars, its batches, its trees of drafts."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sglang.srt.constrained.base_grammar_backend import GRAMMAR_BACKEND_REGISTRY, GrammarRow, InvalidGrammarObject
from sglang.srt.constrained.grammar_manager import GrammarManager
from sglang.srt.constrained.xgrammar_backend import XGrammarGrammar
from sglang.srt.managers.schedule_batch import Req
from sglang.srt.plugins import load_plugins
from sglang.srt.plugins.hook_registry import HookRegistry
from sglang.srt.runtime_context import get_parallel, get_serving, publish
from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.spec_utils import traverse_tree
from sglang.srt.utils.hf_transformers_utils import get_tokenizer

import trieauto
from trieauto.integrations import _sglang_hooks as hooks
from trieauto.integrations._sglang_grammar import TrieGrammar
from trieauto.serving import ENVIRONMENT

pytestmark = pytest.mark.sglang
SIZE = 49_152
STOP = 2
RECURSIVE = 'root ::= "a" root | "b"'


@pytest.fixture(scope="module")
def tokenizer(models: Path) -> Any:
    return get_tokenizer(str(models / "smollm2"))


@pytest.fixture(scope="module", autouse=True)
def engine(models: Path) -> None:
    """What a scheduler's process does before it makes its grammar backend."""
    load_plugins()
    arguments = ServerArgs(
        model_path=str(models / "smollm2"), device="cpu", grammar_backend="trie", attention_backend="torch_native",
        sampling_backend="pytorch", disable_cuda_graph=True,
    )  # fmt: skip
    arguments.resolve_once()
    publish(arguments, role="scheduler")
    get_parallel().override_permanently(tp_rank=0, pp_rank=0, pp_size=1)


def make_manager(tokenizer: Any, think_end_ids: list[int] | None = None) -> GrammarManager:
    group = SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True)
    scheduler = SimpleNamespace(
        server_args=None,
        tokenizer=tokenizer,
        model_config=SimpleNamespace(vocab_size=SIZE, hf_eos_token_id={STOP}, think_end_ids=think_end_ids),
        dp_tp_cpu_group=None,
        dp_tp_group=group,
        pp_group=None,
    )
    return GrammarManager(scheduler)


@pytest.fixture
def manager(tokenizer: Any, sets: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GrammarManager]:
    monkeypatch.setenv(ENVIRONMENT, str(sets))
    manager = make_manager(tokenizer)
    yield manager
    manager.grammar_backend.executor.shutdown()


def request(tokenizer: Any, max_tokens: int = 32, *, reasoning: bool = False, **options: Any) -> Req:
    parameters = SamplingParams(max_new_tokens=max_tokens, temperature=0, **options)
    parameters.normalize(tokenizer)
    parameters.verify(SIZE)
    req = Req("id", "text", [1, 5, 6], parameters, eos_token_ids={STOP}, vocab_size=SIZE, require_reasoning=reasoning)
    req.tokenizer = tokenizer
    return req


def submitted(manager: GrammarManager, *requests: Req) -> list[Req]:
    """Requests with their grammars, whether these had to be compiled or not."""
    for req in requests:
        manager.process_req_with_grammar(req)
    while manager.has_waiting_grammars():
        manager.get_ready_grammar_requests()
    return list(requests)


def one(manager: GrammarManager, tokenizer: Any, max_tokens: int = 32, **options: Any) -> Any:
    """The grammar of one request."""
    return submitted(manager, request(tokenizer, max_tokens, **options))[0].grammar


def allowed(row: torch.Tensor) -> list[int]:
    return np.flatnonzero(np.unpackbits(row.numpy().view(np.uint8), bitorder="little")).tolist()


def finish(req: Req) -> dict[str, Any] | None:
    reason = req.to_finish or req.finished_reason
    return None if reason is None else reason.to_json()


# Registration


def test_the_backend_is_registered_with_its_hooks(caplog: pytest.LogCaptureFixture) -> None:
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES

    assert GRAMMAR_BACKEND_CHOICES.count("trie") == 1
    assert "trie" in GRAMMAR_BACKEND_REGISTRY
    hooks.register_hooks()
    for target in hooks.BUDGET_HOOKS | hooks.FINISH_HOOKS:
        assert len(HookRegistry._hooks[target]) == 1
    caplog.set_level(logging.INFO)
    hooks.check_hooks("0.5.23", ("0.5.23",))
    assert "a tested version; all hooks are in place" in caplog.text
    hooks.check_hooks("9.9", ("0.5.23",))
    assert "SGLang 9.9 is not a version it was tested with (0.5.23)" in caplog.text


def test_hooks_that_did_not_take_are_noticed(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    finishing, budgets = *hooks.FINISH_HOOKS, next(iter(hooks.BUDGET_HOOKS))
    monkeypatch.setattr(HookRegistry, "_patched", HookRegistry._patched - {finishing})
    hooks.check_hooks("0.5.23", ("0.5.23",))
    assert f"no hook on {finishing}" in caplog.text
    monkeypatch.setattr(HookRegistry, "_patched", HookRegistry._patched - {budgets})
    with pytest.raises(RuntimeError, match=r"did not apply the hooks on .*process_req_with_grammar"):
        make_manager(tokenizer)


# Dispatch


@pytest.mark.parametrize(
    ("options", "is_ours"),
    [
        ({"regex": "a|b"}, True),
        ({"regex": "*set:tools"}, True),
        ({"ebnf": "*set:tools"}, True),
        ({"ebnf": 'root ::= "a" | "b"'}, True),
        ({"json_schema": '{"enum": ["a", 1]}'}, True),
        ({"json_schema": '{"x-trieauto-set": "codes"}'}, True),
        ({"json_schema": '{"type": "object", "properties": {"d": {"type": "string", "format": "date"}}}'}, True),
        ({"regex": r"(a)(?=b)b|\p{Nonsense}"}, None),
        ({"ebnf": RECURSIVE}, False),
        ({"json_schema": '{"type": "object"}'}, False),
        ({"json_schema": "$$ANY$$"}, False),
        ({"structural_tag": json.dumps({"structures": [{"begin": "<a>", "schema": {"type": "string"}, "end": "</a>"}],
                                        "triggers": ["<a>"]})}, False),
    ],
)  # fmt: skip
def test_what_is_supported_is_ours(manager: GrammarManager, tokenizer: Any, options: Any, is_ours: bool | None) -> None:
    first, second = submitted(manager, request(tokenizer, **options))[0], request(tokenizer, **options)
    is_queued = manager.process_req_with_grammar(second)
    if is_ours is None:
        assert finish(first)["status_code"] == 400  # type: ignore[index]
        return
    assert isinstance(first.grammar, TrieGrammar if is_ours else XGrammarGrammar)
    assert type(second.grammar) is type(first.grammar)
    assert second.grammar is not first.grammar
    assert not is_queued
    for req in (first, second):
        assert not req.grammar.is_terminated()
        mask = req.grammar.allocate_vocab_mask(SIZE, 2, "cpu")
        req.grammar.fill_vocab_mask(mask, 1)
        assert (mask[0] == -1).all()
        assert (mask[1] != -1).any() or "structural_tag" in options  # which begins with any text


def test_what_is_delegated_is_logged_once(
    manager: GrammarManager, tokenizer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for text in (RECURSIVE, RECURSIVE + "\n", RECURSIVE + "\n\n"):
        assert isinstance(one(manager, tokenizer, ebnf=text), XGrammarGrammar)
    lines = [record.message for record in caplog.records if "XGrammar serves" in record.message]
    assert len(lines) == 1
    assert "'root', which is made of itself" in lines[0]
    assert "may be cut off by max_new_tokens" in lines[0]


BAD = [
    ({"regex": "*set:tolls"}, "no set named 'tolls'; the closest are 'tools'"),
    ({"regex": "*set:../../etc/passwd"}, "is no name of a set"),
    ({"ebnf": "*set:"}, "'' is no name of a set"),
    ({"regex": "("}, "regex"),
    ({"ebnf": "root :="}, "ebnf"),
    ({"json_schema": "{"}, "json"),
    ({"json_schema": '{"x-trieauto-set": 1}'}, "must be a string, not 1"),
    ({"json_schema": '{"not": {"x-trieauto-set": "tools"}}'}, "not supported in the schema at #/not"),
    ({"json_schema": '{"type": "string", "enum": [1]}'}, "no value"),
    ({"json_schema": '{"type": "object", "x-trieauto-set": "tools"}'}, "no value"),
    ({"json_schema": '{"anyOf": [' * 500 + "true" + "]}" * 500}, "nested too deeply"),
    ({"json_schema": '{"a":' * 100_000 + "1" + "}" * 100_000}, "nested too deeply"),
    ({"regex": "\0"}, "NUL"),
    ({"regex": "a{1000000}"}, "the shortest answer takes 250,00"),
    ({"structural_tag": "{"}, "structural_tag"),
    ({"structural_tag": json.dumps({"structures": [{"begin": "<a>", "schema": {"x-trieauto-set": "tools"},
                                                    "end": "</a>"}], "triggers": ["<a>"]})}, "cannot name sets"),
    ({"structural_tag": json.dumps({"type": "structural_tag", "format": {"type": "regex", "pattern": "*set:tools"}})},
     "cannot name sets"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_grammars_are_refused(manager: GrammarManager, tokenizer: Any, options: Any, message: str) -> None:
    for _ in range(2):
        req = submitted(manager, request(tokenizer, **options))[0]
        assert req.grammar is None
        reason = finish(req)
        assert reason is not None
        assert reason["type"] == "abort"
        assert reason["status_code"] == 400
        assert message in reason["message"]


def test_values_that_no_token_spells_are_refused(manager: GrammarManager, tokenizer: Any) -> None:
    missing = next(
        b for b in range(256) if not manager.grammar_backend.store.vocabulary.tables.single_bytes[b] and b < 32
    )
    reason = finish(submitted(manager, request(tokenizer, regex=f"ok|\\x{missing:02x}"))[0])
    assert reason is not None
    assert reason["status_code"] == 400


# Compiling, and keeping


def test_many_first_requests_compile_once(manager: GrammarManager, tokenizer: Any) -> None:
    requests = [request(tokenizer, max_tokens, regex="*set:tools") for max_tokens in range(20, 84)]
    submitted(manager, *requests)
    assert manager.grammar_backend.store.num_compiled == 1
    assert len({id(req.grammar.constraint) for req in requests}) == 1
    assert len({id(req.grammar.matcher) for req in requests}) == 64
    assert [req.grammar.matcher.remaining_tokens for req in requests] == list(range(20, 84))


def test_a_changed_set_is_served_at_once(manager: GrammarManager, tokenizer: Any, sets: Path) -> None:
    def answers(grammar: Any) -> set[str]:
        return set(grammar.constraint.automaton.values.given)

    path = sets / "changing.txt"
    reason = finish(submitted(manager, request(tokenizer, regex="*set:changing"))[0])
    assert reason is not None
    assert "no set named 'changing'" in reason["message"]
    for values in (["a", "b"], ["c"], ["a", "b"]):
        path.write_text("\n".join(values))
        schema = '{"type": "array", "items": {"x-trieauto-set": "changing"}}'
        for _ in range(2):
            assert answers(one(manager, tokenizer, regex="*set:changing")) == set(values)
            assert one(manager, tokenizer, json_schema=schema).constraint.automaton.accepts(f'["{values[0]}"]')
    path.write_text("a\n\nb")
    reason = finish(submitted(manager, request(tokenizer, regex="*set:changing"))[0])
    assert reason is not None
    assert "changing.txt:2: an empty line" in reason["message"]
    path.unlink()


def test_the_cache_is_emptied(manager: GrammarManager, tokenizer: Any) -> None:
    submitted(manager, request(tokenizer, regex="a"), request(tokenizer, ebnf=RECURSIVE))
    assert len(manager.grammar_backend.store) == len(manager.grammar_backend.cache) == 1
    manager.clear()
    assert len(manager.grammar_backend.store) == len(manager.grammar_backend.cache) == 0


# Budgets


@pytest.mark.parametrize("is_cached", [False, True])
def test_budgets_reach_the_grammar(manager: GrammarManager, tokenizer: Any, is_cached: bool) -> None:
    if is_cached:
        submitted(manager, request(tokenizer, 64, regex="*set:tools"))
    constraint = trieauto.compile(
        manager.grammar_backend.store.sets.automaton("tools"), manager.grammar_backend.store.vocabulary
    )
    for max_tokens in range(1, 10):
        req = submitted(manager, request(tokenizer, max_tokens, regex="*set:tools"))[0]
        if max_tokens >= constraint.min_tokens:
            assert req.grammar.matcher.remaining_tokens == max_tokens
            mask = req.grammar.allocate_vocab_mask(SIZE, 1, "cpu")
            req.grammar.fill_vocab_mask(mask, 0)
            assert allowed(mask[0]) == constraint.matcher(max_tokens).allowed_token_ids().tolist()
        else:
            reason = finish(req)
            assert reason is not None
            assert reason["status_code"] == 400
            assert f"the shortest answer takes {constraint.min_tokens} tokens" in reason["message"]
            assert f"is {max_tokens}" in reason["message"]
        if not is_cached:
            manager.clear()


def test_copies_and_retraction_keep_the_right_budget(manager: GrammarManager, tokenizer: Any) -> None:
    req = submitted(manager, request(tokenizer, 20, regex="(ab)+"))[0]
    (token_id,) = tokenizer.encode("ab", add_special_tokens=False)
    req.grammar.accept_token(token_id)
    req.output_ids.append(token_id)
    copied = req.grammar.copy()
    assert copied.matcher.remaining_tokens is None
    assert copied.matcher.num_accepted == 0
    req.reset_for_retract()
    assert req.grammar.matcher.remaining_tokens == 19
    req.grammar.rollback(1)
    assert req.grammar.matcher.remaining_tokens == 20
    req.grammar.accept_token(token_id)
    req.grammar.reset()
    assert req.grammar.matcher.remaining_tokens == 20
    assert req.grammar.current_token is None
    assert submitted(manager, request(tokenizer, 9, regex="(ab)+"))[0].grammar.matcher.remaining_tokens == 9


# Steps


def test_tokens_that_are_not_legal_are_value_errors(manager: GrammarManager, tokenizer: Any) -> None:
    grammar = one(manager, tokenizer, regex="ab?")
    a, b = (tokenizer.encode(letter, add_special_tokens=False)[0] for letter in "ab")
    for token_id in (b, STOP, SIZE, -1):
        with pytest.raises(
            ValueError, match=f"oken {'id ' if token_id in (SIZE, -1) else ''}-?{abs(token_id):,}".replace(",", ",?")
        ):
            grammar.accept_token(token_id)
    grammar.accept_token(a)
    assert grammar.current_token == a
    grammar.accept_token(STOP)
    assert grammar.is_terminated()
    grammar.accept_token(a)  # sampled before SGLang noticed; ignored
    grammar.rollback(1)
    assert not grammar.is_terminated()
    grammar.accept_token(b)


def test_a_batch_of_all_kinds(manager: GrammarManager, tokenizer: Any) -> None:
    """Ours, XGrammar's, none, finished and terminated, in every order of the first."""

    def grammars() -> list[Any]:
        done, stopped = one(manager, tokenizer, regex="ab?"), one(manager, tokenizer, regex="ab?")
        done.finished = True
        stopped.accept_token(tokenizer.encode("a", add_special_tokens=False)[0])
        stopped.accept_token(STOP)
        return [
            one(manager, tokenizer, 6, regex="*set:tools"),
            one(manager, tokenizer, ebnf=RECURSIVE),
            None,
            done,
            one(manager, tokenizer, json_schema='{"x-trieauto-set": "codes"}'),
            stopped,
            one(manager, tokenizer, ebnf='root ::= "x" root | "y"'),
        ]

    for turn in range(7):
        batch = grammars()[turn:] + grammars()[:turn]
        ones = torch.ones(len(batch))
        info = SamplingBatchInfo(
            temperatures=ones[:, None], top_ps=ones, top_ks=ones.int(), min_ps=ones, is_all_greedy=True,
            is_any_greedy=True, need_top_p_sampling=False, need_top_k_sampling=False, need_min_p_sampling=False,
            vocab_size=SIZE, grammars=batch, device="cpu",
        )  # fmt: skip
        info.update_regex_vocab_mask()
        assert info.grammar_mask is not None
        mask = info.grammar_mask.vocab_mask.clone()
        assert mask.shape == (7, SIZE // 32)
        logits = torch.zeros(7, SIZE)
        info.grammar_mask.apply(logits)
        for row, grammar in enumerate(batch):
            if grammar is None or grammar.finished or grammar.is_terminated():
                assert (mask[row] == -1).all()
            else:
                wanted = torch.full((1, SIZE // 32), -1, dtype=torch.int32)
                grammar.fill_vocab_mask(wanted, 0)
                assert torch.equal(mask[row], wanted[0])
            assert torch.isfinite(logits[row]).nonzero().reshape(-1).tolist() == allowed(mask[row])


def test_masks_in_one_call_leave_other_rows(manager: GrammarManager, tokenizer: Any) -> None:
    ours, other = one(manager, tokenizer, regex="*set:tools"), one(manager, tokenizer, ebnf=RECURSIVE)
    mask = torch.full((6, SIZE // 32), 12345, dtype=torch.int32)
    for grammar in (ours, other):
        grammar.fill_vocab_mask_batched([GrammarRow(4, ours), GrammarRow(1, other), GrammarRow(3, ours)], mask)
        assert (mask[[0, 2, 5]] == 12345).all()
        assert allowed(mask[4]) == allowed(mask[3]) == ours.matcher.allowed_token_ids().tolist()
        assert allowed(mask[1]) != allowed(mask[3])
        mask[1] = mask[3] = mask[4] = 0
    grammar.fill_vocab_mask_batched([], mask)


def test_a_registered_buffer(manager: GrammarManager) -> None:
    buffer = manager.grammar_backend.initialize_vocab_mask_buffer("trie-test", SIZE, 8, "cpu")
    assert buffer.shape == (8, SIZE // 32)
    assert (buffer == -1).all()
    assert manager.grammar_backend.initialize_vocab_mask_buffer("trie-test", SIZE, 8, "cpu") is buffer


def test_trees_of_drafts(manager: GrammarManager, tokenizer: Any) -> None:
    """Masks at every node that its parent's mask allows, and the grammar where it was."""
    grammar = one(manager, tokenizer, 9, regex="(ab|b|abc){2,4}")
    ids = [tokenizer.encode(text, add_special_tokens=False)[0] for text in ("a", "ab", "b", "c", "b")] + [STOP]
    #      a        ab      b      c (not legal)
    #     / \       |              |
    #    b  stop    b              a
    draft = torch.tensor([0, ids[0], ids[1], ids[2], ids[3], ids[2], STOP, ids[2], ids[0]])
    child = torch.tensor([1, 5, 7, -1, 8, -1, -1, -1, -1])
    sibling = torch.tensor([-1, 2, 3, 4, -1, 6, -1, -1, -1])
    paths = {0: [], 1: [ids[0]], 2: [ids[1]], 3: [ids[2]], 5: [ids[0], ids[2]], 7: [ids[1], ids[2]]}
    mask = grammar.allocate_vocab_mask(SIZE, len(draft), "cpu")
    traverse_tree(child, sibling, draft, grammar, mask, SIZE)
    for node in range(len(draft)):
        if node in paths:
            matcher = grammar.constraint.matcher(9)
            assert matcher.accept_tokens(paths[node])
            assert allowed(mask[node]) == matcher.allowed_token_ids().tolist()
        else:
            assert (mask[node] == -1).all()
    assert grammar.matcher.num_accepted == 0
    assert grammar.matcher.remaining_tokens == 9


def test_jumping_forward(manager: GrammarManager, tokenizer: Any) -> None:
    grammar = one(manager, tokenizer, regex="abcdef(g|h)")
    helper = grammar.try_jump_forward(tokenizer)
    assert helper == ([], "abcdef")
    text, state = grammar.jump_forward_str_state(helper)
    first = tokenizer.encode("ab", add_special_tokens=False)
    for token_id in first:
        grammar.accept_token(token_id)
    grammar.jump_and_retokenize(first, tokenizer.encode(text, add_special_tokens=False), state)
    assert grammar.try_jump_forward(tokenizer) is None
    with pytest.raises(ValueError, match="is not legal"):
        grammar.jump_and_retokenize([], tokenizer.encode("x", add_special_tokens=False), state)


# The end


def test_a_complete_answer_ends_without_a_stop_token(manager: GrammarManager, tokenizer: Any) -> None:
    a, b, c = (tokenizer.encode(letter, add_special_tokens=False)[0] for letter in "abc")
    for is_accepted_first in (False, True):  # as speculative decoding does
        req = submitted(manager, request(tokenizer, 3, regex="ab?c?|abd"))[0]
        for token_id in (a, b):
            req.output_ids.append(token_id)
            if is_accepted_first:
                req.grammar.accept_token(token_id)
            req.update_finish_state()
            assert not req.finished()
            if not is_accepted_first:
                req.grammar.accept_token(token_id)
        assert req.grammar.matcher.num_accepted == 2
    req = submitted(manager, request(tokenizer, 9, regex="ab?c?|abd"))[0]
    for token_id in (a, b, c):
        assert finish(req) is None
        req.output_ids.append(token_id)
        req.update_finish_state()
        assert req.grammar.matcher.num_accepted == len(req.output_ids) - 1
        req.grammar.accept_token(token_id)
    assert finish(req) == {"type": "stop", "matched": None}
    assert req.finished_len == 3


@pytest.mark.parametrize(("tokens", "reason"), [([STOP], "stop"), (["a", STOP], "stop"), (["a", "b", "c"], "length")])
def test_other_ends_are_the_engines(manager: GrammarManager, tokenizer: Any, tokens: list[Any], reason: str) -> None:
    ids = [t if t == STOP else tokenizer.encode(t, add_special_tokens=False)[0] for t in tokens]
    req = submitted(manager, request(tokenizer, 3, regex="(ab?c?)?"))[0]
    for token_id in ids:
        req.output_ids.append(token_id)
        req.update_finish_state()
        req.grammar.accept_token(token_id)
    found = finish(req)
    assert found is not None
    assert found["type"] == reason
    assert found.get("matched") == (STOP if reason == "stop" else None)


def test_wrong_tokens_do_not_end_a_request(manager: GrammarManager, tokenizer: Any) -> None:
    req = submitted(manager, request(tokenizer, 9, regex="ab"))[0]
    (b,) = tokenizer.encode("b", add_special_tokens=False)
    req.output_ids.append(b)
    req.update_finish_state()
    assert not req.finished()
    req.output_ids.append(SIZE + 7)
    assert not req.grammar.is_whole_after(req.output_ids)


# Thinking


@pytest.fixture
def thinker(tokenizer: Any, sets: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GrammarManager]:
    monkeypatch.setenv(ENVIRONMENT, str(sets))
    with get_serving().override(reasoning_parser="deepseek-r1"):
        manager = make_manager(tokenizer)
    yield manager
    manager.grammar_backend.executor.shutdown()


def test_thinking_comes_first(thinker: GrammarManager, tokenizer: Any) -> None:
    end = tokenizer.encode("</think>", add_special_tokens=False)
    (hm,) = tokenizer.encode(" hm", add_special_tokens=False)[:1]
    for _ in range(2):  # compiled, then from the store
        grammar = one(thinker, tokenizer, 40, regex="*set:tools", reasoning=True)
        mask = grammar.allocate_vocab_mask(SIZE, 1, "cpu")
        grammar.fill_vocab_mask_batched([GrammarRow(0, grammar)], mask)
        assert allowed(mask[0]) == [i for i in range(SIZE) if i != STOP]
        for token_id in [hm, *end]:
            grammar.accept_token(token_id)
        grammar.fill_vocab_mask_batched([GrammarRow(0, grammar)], mask)
        budget = 40 - 1 - len(end)
        assert allowed(mask[0]) == grammar.grammar.constraint.matcher(budget).allowed_token_ids().tolist()
        grammar.rollback(2)
        grammar.fill_vocab_mask(mask, 0)
        assert len(allowed(mask[0])) == SIZE - 1
        for token_id in end[-2:]:
            grammar.accept_token(token_id)
        assert grammar.matcher_of_row.remaining_tokens == budget
        fresh = grammar.copy()
        assert type(fresh) is type(grammar)
        assert fresh.walker.num_accepted == 0


def test_thinking_may_be_left_out_or_limited(thinker: GrammarManager, tokenizer: Any) -> None:
    end = tokenizer.encode("</think>", add_special_tokens=False)
    plain = one(thinker, tokenizer, 40, regex="*set:tools")
    assert not hasattr(plain.walker, "is_thinking")
    limited = one(thinker, tokenizer, 40, regex="*set:tools", reasoning=True, custom_params={"thinking_budget": 2})
    mask = limited.allocate_vocab_mask(SIZE, 1, "cpu")
    for token_id in (5, 6, *end):
        limited.fill_vocab_mask(mask, 0)
        assert (allowed(mask[0]) == [token_id]) == (token_id in end)
        limited.accept_token(token_id)
    assert not limited.walker.is_thinking
    other = one(thinker, tokenizer, ebnf=RECURSIVE, reasoning=True)
    assert isinstance(other.grammar, XGrammarGrammar)
    assert thinker.grammar_backend.get_cached_or_future_value(("ebnf", RECURSIVE), True)[1]


def test_thinking_counts_in_the_budget(thinker: GrammarManager, tokenizer: Any) -> None:
    end = tokenizer.encode("</think>", add_special_tokens=False)
    needed = len(end) + 3
    for max_tokens in (1, needed - 1):
        reason = finish(submitted(thinker, request(tokenizer, max_tokens, regex="*set:tools", reasoning=True))[0])
        assert reason is not None
        assert reason["status_code"] == 400
        assert (
            f"the shortest answer takes {needed} tokens (of which {len(end)} tokens end the thinking"
            in reason["message"]
        )
    req = submitted(thinker, request(tokenizer, needed, regex="*set:tools", reasoning=True))[0]
    mask = req.grammar.allocate_vocab_mask(SIZE, 1, "cpu")
    for token_id in end:
        req.grammar.fill_vocab_mask(mask, 0)
        assert allowed(mask[0]) == [token_id]
        req.output_ids.append(token_id)
        req.update_finish_state()
        assert not req.finished()
        req.grammar.accept_token(token_id)
    while not req.finished():
        req.grammar.fill_vocab_mask(mask, 0)
        token_id = allowed(mask[0])[0]
        req.output_ids.append(token_id)
        req.update_finish_state()
        req.grammar.accept_token(token_id)
    assert len(req.output_ids) == needed
    assert req.grammar.walker.answer.value is not None


def test_errors_of_thinking_servers(thinker: GrammarManager, tokenizer: Any) -> None:
    for options, message in BAD:
        req = submitted(thinker, request(tokenizer, reasoning=True, **options))[0]  # type: ignore[arg-type]
        reason = finish(req)
        assert reason is not None
        assert reason["status_code"] == 400
        assert message in reason["message"]
    assert not isinstance(one(thinker, tokenizer, regex="a", reasoning=True), InvalidGrammarObject)
