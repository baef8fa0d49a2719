"""Structured outputs by trieauto, in a real engine in this process, whose model has random weights."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..sets import CODES, TOOLS
from .engine import LETTER_A, MODEL_LEN, STOP_ID
from .kinds import EVENT, is_event

# isort: split
import torch
from vllm import LLM, SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.reasoning.abs_reasoning_parsers import ReasoningParser
from vllm.sampling_params import StructuredOutputsParams
from vllm.v1.request import Request

from trieauto import Matcher
from trieauto.integrations import _vllm_backend, _vllm_frontend
from trieauto.integrations._vllm_grammar import TrieGrammar
from trieauto.integrations._vllm_stores import store_of
from trieauto.integrations._vllm_structured import BACKEND, constraint_asked_for

pytestmark = pytest.mark.vllm
Check = Callable[[str], Any]

SCHEMA = {"type": "object", "properties": {"code": {"enum": CODES}}, "required": ["code"]}
DATE = re.compile(r"\d{4}-[01]\d-[0-3]\d")
OURS: dict[str, tuple[dict[str, Any], Check]] = {
    "choice": ({"choice": TOOLS}, TOOLS.__contains__),
    "choice with prefixes": ({"choice": ["yes", "yes, sir", "no"]}, ["yes", "yes, sir", "no"].__contains__),
    "set as regex": ({"regex": "*set:tools"}, TOOLS.__contains__),
    "set as grammar": ({"grammar": "*set:codes"}, CODES.__contains__),
    "regex": ({"regex": r"(\w{2,5} ){2,6}end|stop"}, re.compile(r"(\w{2,5} ){2,6}end|stop", re.ASCII).fullmatch),
    "json": ({"json": SCHEMA}, lambda text: json.loads(text)["code"] in CODES),
    "json as text": ({"json": json.dumps(EVENT)}, is_event),
    "date": ({"json": {"type": "string", "format": "date"}}, lambda text: DATE.fullmatch(json.loads(text))),
    "ebnf": ({"grammar": 'root ::= ("red" | "green") " ball"'}, ["red ball", "green ball"].__contains__),
}
RECURSIVE = 'root ::= "a" root | "b"'
OTHERS: dict[str, tuple[dict[str, Any], Check]] = {
    "ebnf": ({"grammar": RECURSIVE}, re.compile("a*b?").fullmatch),
    "lark": ({"grammar": 'start: "a" start | "b"'}, re.compile("a*b?").fullmatch),
    "json": ({"json": {"type": "object"}}, lambda text: text.startswith("{")),
    "json object": ({"json_object": True}, lambda text: text.startswith("{")),
}


def params(asked: dict[str, Any] | None, max_tokens: int | None = 48, **options: Any) -> SamplingParams:
    structured = None if asked is None else StructuredOutputsParams(**asked)
    options = {"temperature": 0.0, **options}
    return SamplingParams(max_tokens=max_tokens, structured_outputs=structured, **options)


def answer(llm: LLM, asked: Any, max_tokens: int | None = 48, prompt: Any = "It is ", **options: Any) -> Any:
    (output,) = llm.generate(prompt, params(asked, max_tokens, **options), use_tqdm=False)
    return output.outputs[0]


def refusal(llm: LLM, asked: Any, max_tokens: int | None = 48, prompt: Any = "It is ", **options: Any) -> str:
    with pytest.raises(VLLMValidationError) as refused:
        answer(llm, asked, max_tokens, prompt, **options)
    assert not llm.llm_engine.has_unfinished_requests()
    return str(refused.value)


def check(output: Any, is_valid: Check, max_tokens: int) -> None:
    assert is_valid(output.text), output
    assert len(output.token_ids) <= max_tokens
    assert output.finish_reason in ("stop", "length")


@pytest.mark.parametrize("kind", OURS)
def test_every_budget_is_met_or_refused(llm: LLM, kind: str) -> None:
    asked, is_valid = OURS[kind]
    constraint = store_of(llm.llm_engine.model_config).get(*constraint_asked_for(StructuredOutputsParams(**asked)))
    needed = constraint.min_tokens
    for budget in range(1, needed):
        assert f"the shortest answer takes {needed} tokens, but max_tokens" in refusal(llm, asked, budget)
    budgets = list(range(needed, needed + 24))
    outputs = llm.generate(["It is "] * len(budgets), [params(asked, n) for n in budgets], use_tqdm=False)
    for budget, output in zip(budgets, outputs, strict=True):
        check(output.outputs[0], is_valid, budget)


def test_a_complete_answer_costs_no_stop_token(llm: LLM) -> None:
    whole = answer(llm, {"choice": TOOLS})
    assert (whole.text in TOOLS, whole.finish_reason, whole.stop_reason) == (True, "stop", None)
    assert STOP_ID not in whole.token_ids
    at_limit = answer(llm, {"choice": TOOLS}, len(whole.token_ids))
    assert (at_limit.text, at_limit.finish_reason) == (whole.text, "stop")
    assert answer(llm, {"regex": "x*"}, 3).finish_reason == "length"
    ended = answer(llm, {"regex": "x*"}, 8, logit_bias={STOP_ID: 100.0})
    assert (ended.text, ended.finish_reason, list(ended.token_ids)) == ("", "stop", [STOP_ID])


def test_batches_of_ours_others_and_none(llm: LLM) -> None:
    rng = random.Random(2)
    jobs, checks = [], []
    for number in range(120):
        budget = rng.randint(24, 56)
        pick = number % 4
        if pick == 3:
            jobs.append(params(None, budget, ignore_eos=True))
            checks.append(lambda text: text not in TOOLS)
        elif pick == 2 and number % 8 == 2:
            jobs.append(params(None, budget, extra_args={"trieauto": "*set:codes"}))
            checks.append(CODES.__contains__)
        else:
            asked, is_valid = rng.choice(list((OTHERS if pick == 2 else OURS).values()))
            jobs.append(params(asked, budget, temperature=rng.choice([0.0, 1.0]), seed=number))
            checks.append(is_valid)
    outputs = llm.generate([f"Request {number} is " * 3 for number in range(120)], jobs, use_tqdm=False)
    for job, is_valid, output in zip(jobs, checks, outputs, strict=True):
        check(output.outputs[0], is_valid, job.max_tokens or 0)
        if job.ignore_eos:
            assert len(output.outputs[0].token_ids) == job.max_tokens


def test_parameters_can_be_used_again(llm: LLM) -> None:
    for asked, is_valid in (OURS["choice"], OURS["json"], OURS["set as regex"]):
        shared = params(asked, 40, n=3, temperature=1.0, seed=1)
        for _ in range(2):
            for output in llm.generate(["It is ", "They are "], shared, use_tqdm=False):
                for one in output.outputs:
                    check(one, is_valid, 40)
            assert shared.structured_outputs is not None
            assert shared.structured_outputs._backend == BACKEND
            assert not shared.include_stop_str_in_output
    other = params(OTHERS["ebnf"][0])
    for _ in range(2):
        llm.generate("It is ", other, use_tqdm=False)
        assert other.structured_outputs._backend == "xgrammar"  # type: ignore[union-attr]


def test_what_others_serve_is_logged_once(llm: LLM, caplog: pytest.LogCaptureFixture) -> None:
    _vllm_frontend._others.__init__()  # type: ignore[misc]
    for number in range(3):
        check(answer(llm, {"grammar": RECURSIVE + "\n" * number}), OTHERS["ebnf"][1], 48)
    (line,) = [record.message for record in caplog.records if "own backend serves" in record.message]
    assert "'root', which is made of itself" in line
    assert "may be cut off by max_tokens" in line


def test_other_parameters(llm: LLM) -> None:
    for options in (
        {"ignore_eos": True},
        {"frequency_penalty": 2.0, "repetition_penalty": 0.1},
        {"logprobs": 3},
        {"skip_special_tokens": False},
        {"stop_token_ids": [STOP_ID, 151643]},
    ):
        for kind in ("choice", "choice with prefixes", "json"):
            asked, is_valid = OURS[kind]
            check(answer(llm, asked, 32, **options), is_valid, 32)


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"choice": []}, {}, "has none"),
    ({"choice": ["a"]}, {"stop": ["a"]}, "stop cannot be used with structured_outputs"),
    ({"choice": ["a"]}, {"bad_words": ["a"]}, "bad_words cannot be used"),
    ({"choice": ["a"]}, {"allowed_token_ids": [5]}, "allowed_token_ids cannot be used"),
    ({"choice": ["a"]}, {"min_tokens": 2}, "min_tokens is 2"),
    ({"choice": ["a"]}, {"stop_token_ids": [LETTER_A]}, "stop token id 64 stands for the text b'a'"),
    ({"regex": "*set:tolls"}, {}, "closest are 'tools'"),
    ({"grammar": "*set:"}, {}, "is no name of a set"),
    ({"grammar": "*values:[1]"}, {}, "are not an array of strings"),
    ({"json": {"x-trieauto-set": 1}}, {}, "must be a string, not 1"),
    ({"json": {"not": {"x-trieauto-set": "tools"}}}, {}, "not supported in the schema at #/not"),
    ({"json": {"x-trieauto-set": "tools"}, "whitespace_pattern": " "}, {}, "whitespace_pattern is not supported"),
    ({"structural_tag": '{"format": {"type": "regex", "pattern": "*set:tools"}}'}, {}, "structural tags"),
    ({"json": {"type": "string", "enum": [1]}}, {}, "no value"),
    ({"regex": "a{100000}"}, {}, "the shortest answer takes"),
    ({"regex": "("}, {}, "regex"),
    ({"grammar": "root :="}, {}, "grammar"),
]


def test_bad_requests_leave_the_engine_serving(llm: LLM) -> None:
    for asked, options, message in REFUSED:
        assert message in refusal(llm, asked, **options), (asked, options)
    check(answer(llm, {"choice": TOOLS}), TOOLS.__contains__, 48)


def test_what_the_context_leaves_is_a_budget_too(llm: LLM) -> None:
    asked = {"regex": r"(\d\d){8,40}"}
    is_valid = re.compile(r"(\d\d){8,40}").fullmatch
    for left in (15, 16, 17):
        prompt = {"prompt_token_ids": [LETTER_A] * (MODEL_LEN - left)}
        for max_tokens in (None, 64):
            if left < 16:
                assert f"what the prompt leaves of the context, is {left}" in refusal(llm, asked, max_tokens, prompt)
            else:
                check(answer(llm, asked, max_tokens, prompt), is_valid, left)


def test_a_changed_file_disturbs_no_request_in_flight(llm: LLM, sets: Path) -> None:
    def write(*values: str) -> None:
        (sets / "other.tmp").write_text("\n".join(values))
        (sets / "other.tmp").rename(sets / "other.txt")

    engine = llm.llm_engine
    old, young = "an old value of some length", "a young value"
    found: dict[str, str] = {}
    write(old)
    engine.add_request("first", "It is ", params({"regex": "*set:other"}))
    engine.step()
    write(young)
    engine.add_request("second", "It is ", params({"grammar": "*set:other"}))
    while engine.has_unfinished_requests():
        for output in engine.step():
            found[output.request_id] = output.outputs[0].text
    assert found == {"first": old, "second": young}
    (sets / "other.txt").unlink()


def test_a_set_that_is_gone_ends_its_request_with_an_error(
    llm: LLM, sets: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sets / "gone.txt").write_text("a value")
    engine = llm.llm_engine
    admitted = engine.input_processor.process_inputs("lost", "It is ", params({"regex": "*set:gone"}), ("generate",))
    (sets / "gone.txt").unlink()
    engine.add_request(admitted.request_id, admitted, admitted.sampling_params)
    engine.add_request("other", "It is ", params({"regex": "*set:codes"}))
    found = {}
    while engine.has_unfinished_requests():
        for output in engine.step():
            found[output.request_id] = output.outputs[0]
    assert found.pop("other").text in CODES
    (lost,) = found.values()
    assert (lost.text, lost.finish_reason) == ("", "error")
    assert "there is no set named 'gone'" in caplog.text


def test_a_request_for_its_prompt_alone_is_no_answer(llm: LLM) -> None:
    """As an engine gets it that prefills for another one."""
    transfer = {"kv_transfer_params": {"do_remote_decode": True}}
    one = answer(llm, {"choice": ["a rather long value of several words"]}, 1, extra_args=transfer)
    assert (len(one.token_ids), one.finish_reason) == (1, "length")


# The manager of grammars


def manager_of(llm: LLM) -> Any:
    return llm.llm_engine.engine_core.engine_core.structured_output_manager


def admitted(llm: LLM, name: str, asked: dict[str, Any], max_tokens: int = 32) -> Request:
    """A request as the scheduler has it, with its grammar."""
    job = llm.llm_engine.input_processor.process_inputs(name, "It is ", params(asked, max_tokens), ("generate",))
    request = Request.from_engine_core_request(job, None)
    manager_of(llm).grammar_init(request)
    while not request.structured_output_request.is_grammar_ready:  # type: ignore[union-attr]
        pass
    return request


def row_of(matcher: Any, size: int) -> Any:
    row = np.empty((1, (size + 31) // 32), np.int32)
    matcher.fill_next_token_bitmask(row)
    return row[0]


def test_masks_of_drafted_tokens(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = manager_of(llm)
    assert type(manager) is _vllm_backend.TrieStructuredOutputManager
    size = manager.vllm_config.model_config.get_vocab_size()
    rows = torch.full((64, (size + 31) // 32), 7, dtype=torch.int32)
    monkeypatch.setattr(manager, "_grammar_bitmask", rows)
    requests = {name: admitted(llm, name, OURS[kind][0]) for name, kind in (("a", "choice"), ("b", "json"))}
    requests["c"] = admitted(llm, "c", OTHERS["ebnf"][0])
    rng = random.Random(3)
    drafts: dict[str, list[int]] = {}
    expected = []
    for name in ("a", "b"):
        walker: Matcher = requests[name].structured_output_request.grammar.walker.fork()  # type: ignore[union-attr]
        drafts[name] = []
        expected.append(row_of(walker, size))
        for _ in range(4):
            drafts[name].append(int(rng.choice(walker.allowed_token_ids())))
            assert walker.accept_token(drafts[name][-1])
            expected.append(row_of(walker, size))
        assert manager.validate_tokens(requests[name], [*drafts[name], size + 5]) == drafts[name]
    found = manager.grammar_bitmask(requests, ["a", "b", "c"], {**drafts, "c": [-1, -1]})
    assert found.shape == (13, rows.shape[1])
    assert (found[:10] == np.array(expected)).all()
    assert (found[11:] == -1).all()
    # Without drafts: one kernel call, the same masks.
    found = manager.grammar_bitmask(requests, ["c", "b", "a"], {})
    assert (found[1:] == np.array([expected[5], expected[0]])).all()
    # What is accepted is what the masks go on from; what is not legal is not.
    for name in ("a", "b"):
        assert manager.accept_tokens(requests[name], drafts[name])
        grammar: TrieGrammar = requests[name].structured_output_request.grammar  # type: ignore[union-attr, assignment]
        before = grammar.walker.num_accepted
        assert not manager.accept_tokens(requests[name], [STOP_ID])
        assert not manager.accept_tokens(requests[name], [size + 5])
        assert grammar.walker.num_accepted == before == 4
        grammar.rollback(4)
        assert (row_of(grammar.walker, size) == expected[0 if name == "a" else 5]).all()
        grammar.reset()


class Thinker(ReasoningParser):
    """Thinking that ends at several tokens of text."""

    reasoning_end_str = "</thought>"

    def is_reasoning_end(self, input_ids: Any) -> bool:
        return False

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        return input_ids

    def extract_reasoning(self, *arguments: Any, **options: Any) -> Any:
        return None, None

    extract_reasoning_streaming = extract_reasoning


def test_thinking_is_ended_in_time_for_the_answer(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_of(llm), "reasoner_cls", Thinker)
    ends = llm.get_tokenizer().encode(Thinker.reasoning_end_str)
    assert len(ends) > 1
    jobs = [params({"choice": CODES}, budget, temperature=1.0, seed=budget) for budget in range(10, 42)]
    jobs += [params(OTHERS["ebnf"][0], 8), params(None, 12)]
    outputs = llm.generate(["It is "] * len(jobs), jobs, use_tqdm=False)
    for job, output in zip(jobs[:-2], outputs[:-2], strict=True):
        (one,) = output.outputs
        thought, _, rest = one.text.partition(Thinker.reasoning_end_str)
        assert rest in CODES
        assert len(one.token_ids) <= (job.max_tokens or 0)
        assert len(thought) > 0
    # Too few tokens for the end of thinking and an answer: only the engine knows whether a request thinks.
    assert answer(llm, {"choice": CODES}, len(ends) + 1).finish_reason == "error"
    check(answer(llm, {"choice": CODES}), lambda text: text.partition(Thinker.reasoning_end_str)[2] in CODES, 48)


def test_a_parser_without_an_end_is_refused(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.reasoning import ReasoningParserManager

    class Endless(Thinker):
        reasoning_end_str = None  # type: ignore[assignment]

    ReasoningParserManager.register_module("endless", module=Endless)
    config = llm.llm_engine.vllm_config.structured_outputs_config
    monkeypatch.setattr(config, "reasoning_parser", "endless")
    assert "Endless has no text that ends thinking" in refusal(llm, {"choice": CODES})
