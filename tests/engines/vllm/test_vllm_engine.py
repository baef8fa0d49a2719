"""A real engine in this process, with vLLM's V1 model runner. The model has random weights, so that it would rather say
anything than what is asked for; its cache is so small that requests are thrown out of the batch, and come back."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from ..sets import CODES, TOOLS
from .engine import LETTER_A, MODEL_LEN, STOP_ID
from .kinds import KINDS

# isort: split
from vllm import LLM, SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.outputs import CompletionOutput

pytestmark = pytest.mark.vllm


def params(argument: Any, max_tokens: int | None = 32, **options: Any) -> SamplingParams:
    options = {"temperature": 0.0, **options}
    extra_args = None if argument is None else {"trieauto": argument}
    return SamplingParams(max_tokens=max_tokens, extra_args=extra_args, **options)


def answer(llm: LLM, argument: Any, max_tokens: int | None = 32, prompt: str = "It is ", **options: Any) -> Any:
    (output,) = llm.generate(prompt, params(argument, max_tokens, **options), use_tqdm=False)
    return output.outputs[0]


def refusal(llm: LLM, argument: Any, max_tokens: int | None = 32, prompt: str = "It is ", **options: Any) -> str:
    with pytest.raises(VLLMValidationError) as refused:
        answer(llm, argument, max_tokens, prompt, **options)
    assert not llm.llm_engine.has_unfinished_requests()
    return str(refused.value)


def check(output: CompletionOutput, is_valid: Any, max_tokens: int) -> None:
    assert is_valid(output.text), output
    assert len(output.token_ids) <= max_tokens
    assert output.finish_reason in ("stop", "length")


def fewest_tokens(argument: Any, llm: LLM) -> int:
    from trieauto.integrations._vllm_stores import store_of
    from trieauto.serving import read_request

    return store_of(llm.llm_engine.model_config).get(*read_request(argument)).min_tokens


@pytest.mark.parametrize("kind", KINDS)
def test_every_budget_is_met_or_refused(llm: LLM, kind: str) -> None:
    argument, is_valid = KINDS[kind]
    needed = fewest_tokens(argument, llm)
    for budget in range(1, needed):
        message = (
            f"the shortest answer takes {needed} tokens, but max_tokens, or what the prompt leaves of the context, "
        )
        assert f"{message}is {budget} (" in refusal(llm, argument, budget)
    budgets = list(range(needed, needed + 24))
    outputs = llm.generate(["It is "] * len(budgets), [params(argument, n) for n in budgets], use_tqdm=False)
    for budget, output in zip(budgets, outputs, strict=True):
        check(output.outputs[0], is_valid, budget)
    hot = [params(argument, needed + 8, temperature=2.0, top_p=0.95, seed=seed) for seed in range(24)]
    for output in llm.generate(["It is "] * len(hot), hot, use_tqdm=False):
        check(output.outputs[0], is_valid, needed + 8)


def test_a_complete_answer_costs_no_stop_token(llm: LLM) -> None:
    whole = answer(llm, TOOLS)
    assert (whole.text in TOOLS, whole.finish_reason, whole.stop_reason) == (True, "stop", None)
    assert STOP_ID not in whole.token_ids
    length = len(whole.token_ids)
    at_limit = answer(llm, TOOLS, length)
    assert (at_limit.text, at_limit.finish_reason) == (whole.text, "stop")
    # What could go on is ended by the budget, or by the stop token.
    assert answer(llm, {"regex": "x*"}, 3).finish_reason == "length"
    ended = answer(llm, {"regex": "x*"}, 8, logit_bias={STOP_ID: 100.0})
    assert (ended.text, ended.finish_reason, list(ended.token_ids)) == ("", "stop", [STOP_ID])


@pytest.mark.parametrize(
    "options",
    [
        {"ignore_eos": True},
        {"min_tokens": 1},
        {"logit_bias": {STOP_ID: 100.0, 0: -100.0}},
        {"frequency_penalty": 2.0, "presence_penalty": -2.0, "repetition_penalty": 0.1},
        {"temperature": 1.0, "top_k": 3, "min_p": 0.5, "seed": 1},
        {"logprobs": 3},
        {"skip_special_tokens": False},
        {"include_stop_str_in_output": True},
        {"stop_token_ids": [STOP_ID, 151643]},
    ],
    ids=lambda options: next(iter(options)),
)
def test_other_parameters(llm: LLM, options: dict[str, Any]) -> None:
    for kind in ("values", "values with prefixes", "regex", "json_schema"):
        argument, is_valid = KINDS[kind]
        for max_tokens in (24, 40):
            check(answer(llm, argument, max_tokens, **options), is_valid, max_tokens)


def test_without_text(llm: LLM) -> None:
    output = answer(llm, TOOLS, detokenize=False)
    assert llm.get_tokenizer().decode(output.token_ids) in TOOLS


def test_several_answers_to_one_request(llm: LLM) -> None:
    request = params("*set:tools", 16, n=12, temperature=1.5, seed=3)
    (output,) = llm.generate("It is ", request, use_tqdm=False)
    texts = [one.text for one in output.outputs]
    assert len(set(texts)) > 1
    assert all(text in TOOLS for text in texts)
    assert request.extra_args == {"trieauto": "*set:tools"}  # what a user has is not changed
    assert not request.include_stop_str_in_output


def test_batches_of_all_kinds_with_preemption(llm: LLM) -> None:
    rng = random.Random(1)
    jobs, checks = [], []
    for _ in range(150):
        kind = rng.choice([*KINDS, "long", "unconstrained"])
        budget = rng.randint(24, 60)
        if kind == "unconstrained":
            jobs.append(params(None, budget, ignore_eos=True))
            checks.append(lambda text: text not in TOOLS)
        elif kind == "long":
            jobs.append(params({"regex": r"(\w\w\w ){9,40}\."}, 60))
            checks.append(re.compile(r"(\w\w\w ){9,40}\.").fullmatch)
        else:
            argument, is_valid = KINDS[kind]
            jobs.append(params(argument, budget, temperature=rng.choice([0.0, 1.0]), seed=1))
            checks.append(is_valid)
    before = preemptions(llm)
    outputs = llm.generate([f"Request {number} is " * 3 for number in range(150)], jobs, use_tqdm=False)
    assert preemptions(llm) > before
    for job, is_valid, output in zip(jobs, checks, outputs, strict=True):
        check(output.outputs[0], is_valid, job.max_tokens or 0)
        if job.ignore_eos:
            assert len(output.outputs[0].token_ids) == job.max_tokens


def preemptions(llm: LLM) -> int:
    return sum(metric.value for metric in llm.get_metrics() if metric.name == "vllm:num_preemptions")


def test_what_the_context_leaves_is_a_budget_too(llm: LLM) -> None:
    argument, is_valid = {"regex": r"(\d\d){8,40}"}, re.compile(r"(\d\d){8,40}").fullmatch
    refused = 0
    for length in range(MODEL_LEN - 20, MODEL_LEN - 8):
        prompt: Any = {"prompt_token_ids": [LETTER_A] * length}
        for max_tokens in (None, 64):
            if MODEL_LEN - length < 16:
                message = refusal(llm, argument, max_tokens, prompt)
                assert f"what the prompt leaves of the context, is {MODEL_LEN - length} (" in message
                refused += 1
            else:
                check(answer(llm, argument, max_tokens, prompt), is_valid, MODEL_LEN - length)
    assert refused == 14
    check(answer(llm, argument, None), is_valid, MODEL_LEN)


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ("tools", {}, "is no constraint"),
    ([], {}, "has none"),
    (["a", 1], {}, "number 1 is 1"),
    ({"set": "tolls"}, {}, "closest are 'tools'"),
    ({"set": "../x"}, {}, "is no name of a set"),
    ({"regex": "("}, {}, "unterminated subpattern"),
    ({"regex": "a", "set": "tools"}, {}, "exactly one of"),
    ({"kind": "regex", "text": "a", "budget": 9, "may_end": True, "versions": None}, {}, "exactly one of"),
    ({"ebnf": 'root ::= "a" root | "b"'}, {}, "made of itself"),
    ({"format": "dates"}, {}, "dates"),
    ({"json_schema": '{"enum": []}'}, {}, "allows no value at all"),
    ({"regex": "a{100000}"}, {}, "the shortest answer takes"),
    (["a"], {"stop": ["a"]}, "stop cannot be used with trieauto"),
    (["a"], {"bad_words": ["a"]}, "bad_words cannot be used"),
    (["a"], {"allowed_token_ids": [5]}, "allowed_token_ids cannot be used"),
    (["a"], {"min_tokens": 2}, "there are answers of 1 token,"),
    (["a"], {"stop_token_ids": [LETTER_A]}, "stop token id 64 stands for the text b'a'"),
    (["a"], {"logit_bias": {LETTER_A: float("-inf")}}, "logit_bias of token 64 is -inf"),
]


def test_bad_requests_leave_the_engine_serving(llm: LLM) -> None:
    from vllm.sampling_params import RepetitionDetectionParams, StructuredOutputsParams

    more: list[tuple[Any, dict[str, Any], str]] = [
        (["a"], {"structured_outputs": StructuredOutputsParams(choice=["a"])}, "a request has one or the other"),
        (["a"], {"repetition_detection": RepetitionDetectionParams(3, 1, 2)}, "where it repeats itself"),
    ]
    for argument, options, message in REFUSED + more:
        assert message in refusal(llm, argument, **options)
    check(answer(llm, TOOLS), TOOLS.__contains__, 32)


def test_a_changed_file_disturbs_no_request_in_flight(llm: LLM, sets: Path) -> None:
    def write(*values: str) -> None:
        (sets / "new.tmp").write_text("\n".join(values))
        (sets / "new.tmp").rename(sets / "new.txt")

    assert "no set named 'new'" in refusal(llm, {"set": "new"})
    engine = llm.llm_engine
    old, young = ["an old value of some length"], ["a young value"]
    write(*old)
    found: dict[str, str] = {}
    engine.add_request("first", "It is ", params({"set": "new"}))
    engine.step()
    write(*young)
    engine.add_request("second", "It is ", params("*set:new"))
    for step in range(40):
        for output in engine.step():
            if output.finished:
                found[output.request_id] = output.outputs[0].text
        if step == 1:
            (sets / "new.txt").unlink()
    assert found == {"first": old[0], "second": young[0]}
    assert "no set named 'new'" in refusal(llm, {"set": "new"})


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_set_that_changes_before_a_worker_needs_it(llm: LLM, sets: Path, is_kept: bool) -> None:
    """A worker in another process reads what the request began with; if that is lost, it ends with an error."""
    from trieauto.integrations._vllm_stores import store_of

    engine = llm.llm_engine
    values = [] if is_kept else ["another state"]  # what was written once is not written again
    (sets / "gone.txt").write_text("\n".join(["a value that is gone", *values]))
    engine.add_request("lost", "It is ", params({"set": "gone"}))
    engine.add_request("other", "It is ", params({"set": "codes"}))
    scheduler = engine.engine_core.engine_core.scheduler
    (lost,) = (request for name, request in scheduler.requests.items() if name.startswith("lost"))
    del lost.sampling_params._trieauto_constraint
    store_of(engine.model_config).clear()
    (sets / "gone.txt").unlink()
    if not is_kept:
        for kept in Path(lost.sampling_params.extra_args["trieauto"]["kept_in"]).glob("gone-*"):
            kept.unlink()
    found = {}
    for _ in range(40):
        for output in engine.step():
            if output.finished:
                found[output.request_id] = output.outputs[0]
    assert (found["lost"].finish_reason, found["lost"].text == "a value that is gone") == (
        ("stop", True) if is_kept else ("error", False)
    )
    assert found["other"].text in CODES
    check(answer(llm, TOOLS), TOOLS.__contains__, 32)


def test_aborts(llm: LLM) -> None:
    engine = llm.llm_engine
    for number in range(12):
        engine.add_request(f"r{number}", "It is ", params("*set:tools"))
    engine.step()
    engine.abort_request([f"r{number}" for number in range(0, 12, 2)])
    found = {}
    while engine.has_unfinished_requests():
        for output in engine.step():
            found[output.request_id] = output.outputs[0].text
    assert sorted(found) == sorted(f"r{number}" for number in range(1, 12, 2))
    assert all(text in TOOLS for text in found.values())
