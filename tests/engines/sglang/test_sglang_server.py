"""A server with ``--grammar-backend trie``, end to end. The model has random weights, so that it would rather say
anything than what is asked for."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import requests

from trieauto.demo_sets import tool_names
from trieauto.serving import ENVIRONMENT

from ..sets import TOOLS
from .server import Server

pytestmark = pytest.mark.sglang

EVENT = {
    "type": "object",
    "properties": {"tool": {"x-trieauto-set": "tools"}, "on": {"type": "string", "format": "date"}},
    "required": ["tool", "on"],
}
STOP_ID = "151645"  # <|im_end|>
RECURSIVE = 'root ::= "a" root | "b"'


@pytest.fixture(scope="module")
def server(models: Path, sets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("log") / "server.log"
    arguments = ("--max-running-requests", "64", "--enable-custom-logit-processor", "--random-seed", "1")
    delayed = {"SGLANG_ENABLE_DELAY_SAMPLE": "1"}
    with Server(models / "random", *arguments, log=log, **{ENVIRONMENT: str(sets)}, **delayed) as server:
        yield server
        assert server.process.poll() is None
        assert not server.logged("Traceback (most recent call last)")


def is_event(text: str) -> bool:
    value = json.loads(text)
    date.fromisoformat(value["on"])
    return value["tool"] in TOOLS and value.keys() == {"tool", "on"}


KINDS: dict[str, tuple[dict[str, str], Any]] = {
    "set by name in regex": ({"regex": "*set:tools"}, TOOLS.__contains__),
    "set by name in ebnf": ({"ebnf": "*set:tools"}, TOOLS.__contains__),
    "set by name in schema": ({"json_schema": json.dumps(EVENT)}, is_event),
    "regex": ({"regex": r"(\w{2,5} ){2,6}end|stop"}, re.compile(r"(\w{2,5} ){2,6}end|stop").fullmatch),
    "union": ({"regex": "yes|no|yes, sir"}, ["yes", "no", "yes, sir"].__contains__),
    "ebnf": ({"ebnf": 'root ::= ("red" | "green") " ball"'}, ["red ball", "green ball"].__contains__),
    "enum": ({"json_schema": '{"enum": ["a", 1, null]}'}, ['"a"', "1", "null"].__contains__),
}


def test_what_is_logged_at_the_start(server: Server) -> None:
    assert server.logged("SGLang 0.5.23, a tested version; all hooks are in place")


@pytest.mark.parametrize("kind", KINDS)
def test_every_budget_is_met_or_refused(server: Server, kind: str) -> None:
    options, is_valid = KINDS[kind]
    budgets = list(range(1, 33))
    answers = server.generate_all([{"max_tokens": budget, **options} for budget in budgets])
    refused = [budget for budget, answer in zip(budgets, answers, strict=True) if answer.is_refused]
    needed = len(refused) + 1
    assert refused == budgets[: len(refused)]
    for budget, answer in zip(budgets, answers, strict=True):
        if budget in refused:
            tokens = "1 token" if needed == 1 else f"{needed} tokens"
            assert f"the shortest answer takes {tokens}" in answer.text
            assert f"is {budget}" in answer.text
        else:
            answer.check(is_valid, budget)
    hot = server.generate_all([{"max_tokens": 40, "temperature": 2.0, "top_p": 0.95, **options}] * 24)
    for answer in hot:
        answer.check(is_valid, 40)


def test_a_complete_answer_costs_no_stop_token(server: Server) -> None:
    whole = server.generate(max_tokens=32, regex="*set:tools")
    assert whole.finish == "stop"
    assert whole.text in TOOLS
    length = whole.num_tokens
    at_limit = server.generate(max_tokens=length, regex="*set:tools")
    assert at_limit.finish == "length"
    assert at_limit.text in TOOLS
    one_more = server.generate(max_tokens=length + 1, regex="*set:tools")
    if one_more.text == whole.text:
        assert one_more.finish == "stop"
        assert one_more.num_tokens == length
    # What could go on ends by the stop token.
    other = server.generate(max_tokens=8, regex="x*", logit_bias={STOP_ID: 100.0})
    assert (other.text, other.finish, other.num_tokens) == ("", "stop", 1)


@pytest.mark.parametrize(
    "options", [{"ignore_eos": True}, {"min_new_tokens": 12}, {"stop": ["\n"]}, {"n": 1, "frequency_penalty": 1.0}]
)
def test_other_sampling_options(server: Server, options: dict[str, Any]) -> None:
    for grammar, is_valid in (({"regex": "*set:tools"}, TOOLS.__contains__), ({"regex": "a{1,3}"}, "aaa".startswith)):
        server.generate(max_tokens=16, **grammar, **options).check(is_valid, 16)


def test_batches_of_all_kinds(server: Server) -> None:
    rng = random.Random(1)
    jobs: list[dict[str, Any]] = []
    checks = []
    for number in range(120):
        kind = rng.choice([*KINDS, "xgrammar", "unconstrained"])
        prompt, budget = f"Request {number}: ", rng.randint(20, 32)
        if kind == "xgrammar":
            jobs.append({"prompt": prompt, "max_tokens": budget, "ebnf": RECURSIVE})
            checks.append(re.compile("a*b?").fullmatch)  # may be cut off
        elif kind == "unconstrained":
            jobs.append({"prompt": prompt, "max_tokens": budget})
            checks.append(lambda text: text not in TOOLS)
        else:
            jobs.append({"prompt": prompt, "max_tokens": budget, **KINDS[kind][0]})
            checks.append(KINDS[kind][1])
    for job, is_valid, answer in zip(jobs, checks, server.generate_all(jobs, at_once=32), strict=True):
        answer.check(is_valid, job["max_tokens"])
    assert len(server.logged("XGrammar serves ebnf")) == 1
    several = server.post(
        "/generate",
        text=["a", "b"],
        sampling_params=[{"regex": "*set:tools", "max_new_tokens": 20}, {"max_new_tokens": 3}],
    ).json()
    assert several[0]["text"] in TOOLS
    assert several[1]["meta_info"]["completion_tokens"] == 3


BAD: list[tuple[dict[str, Any], str]] = [
    ({"regex": "*set:tolls"}, "closest are 'tools'"),
    ({"regex": "*set:../x"}, "is no name of a set"),
    ({"regex": "("}, "regex"),
    ({"ebnf": "root ::= nothing"}, "ebnf"),
    ({"json_schema": "{"}, "json"),
    ({"json_schema": '{"x-trieauto-set": "tolls"}'}, "closest are 'tools'"),
    ({"json_schema": '{"not": {"x-trieauto-set": "tools"}}'}, "#/not"),
    ({"json_schema": '{"type": "string", "enum": [1]}'}, "no value"),
    ({"json_schema": '{"anyOf": [' * 2000 + "true" + "]}" * 2000}, "nested too deeply"),
    ({"regex": "a{100000}"}, "the shortest answer takes"),
    ({"regex": "*set:tools", "max_tokens": 1}, "the shortest answer takes"),
    ({"regex": "*set:tools", "prompt": "x " * 3000}, "longer than"),
    ({"structural_tag": json.dumps({"structures": [{"begin": "<", "schema": EVENT, "end": ">"}], "triggers": ["<"]})},
     "cannot name sets"),
]  # fmt: skip


def test_bad_requests_leave_the_server_serving(server: Server) -> None:
    for _ in range(2):
        for options, message in BAD:
            answer = server.generate(**options)
            assert answer.is_refused, (options, answer)
            assert message in answer.text
    answers = server.generate_all([options for options, _ in BAD] * 4 + [{"regex": "*set:tools"}] * 40, at_once=24)
    assert all(answer.is_refused for answer in answers[:-40])
    assert all(answer.text in TOOLS for answer in answers[-40:])


def test_a_prompt_that_leaves_too_little(server: Server) -> None:
    """The budget is what the context leaves, too."""
    count = server.generate("x" * 40, max_tokens=1).meta["prompt_tokens"]
    for length in range(2048 - 16, 2048):
        answer = server.generate("x " * ((length - count) // 2 + count), max_tokens=64, regex=r"(\d\d){8,40}")
        assert answer.is_refused or re.fullmatch(r"(\d\d){8,40}", answer.text), answer


def test_aborts(server: Server) -> None:
    def leave(number: int) -> None:
        with pytest.raises(requests.exceptions.RequestException):
            server.post("/generate", timeout=0.05 + number / 200, text="x", sampling_params={
                "max_new_tokens": 1500, "regex": r"(\w\w\w ){1,2000}", "ignore_eos": True})  # fmt: skip

    threads = [threading.Thread(target=leave, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    others = server.generate_all([{"regex": "*set:tools", "max_tokens": 24}] * 16, at_once=8)
    for thread in threads:
        thread.join()
    assert all(answer.text in TOOLS for answer in others)
    running = threading.Thread(
        target=server.generate, kwargs={"regex": r"(\w\w\w ){1,2000}", "max_tokens": 1500, "ignore_eos": True}
    )
    running.start()
    time.sleep(0.5)
    server.post("/abort_request", abort_all=True)
    running.join(60)
    assert not running.is_alive()
    assert server.generate(regex="*set:tools").text in TOOLS


def test_a_changed_file_is_served(server: Server, sets: Path) -> None:
    assert server.generate(regex="*set:new").is_refused
    for values in (["one", "two"], ["three"]):
        (sets / "new.tmp").write_text("\n".join(values))
        (sets / "new.tmp").rename(sets / "new.txt")
        for options in ({"regex": "*set:new"}, {"json_schema": '{"x-trieauto-set": "new"}'}):
            assert server.generate(**options).text.strip('"') in values
    (sets / "new.txt").write_text("")
    assert "new.txt holds no values" in server.generate(regex="*set:new").text
    (sets / "new.txt").unlink()
    assert "no set named 'new'" in server.generate(regex="*set:new").text


# The OpenAI-compatible endpoint


def schema_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}


def test_response_formats(server: Server) -> None:
    choice = server.chat(response_format=schema_format(EVENT))["choices"][0]
    assert is_event(choice["message"]["content"])
    assert choice["finish_reason"] == "stop"
    for options in ({"regex": "*set:tools"}, {"ebnf": "*set:tools"}):
        assert server.chat(**options)["choices"][0]["message"]["content"] in TOOLS
    assert "shortest answer takes" in server.chat(max_tokens=2, response_format=schema_format(EVENT))["message"]
    assert "closest are 'tools'" in server.chat(regex="*set:tool")["message"]
    answer = server.post("/v1/completions", model="m", prompt="x", max_tokens=32, regex="*set:tools").json()
    assert answer["choices"][0]["text"] in TOOLS
    several = server.chat(regex="*set:tools", n=4, temperature=1.0)
    assert [choice["message"]["content"] in TOOLS for choice in several.get("choices", [several])] == [True] * 4


def test_no_tokens_are_no_answer(server: Server) -> None:
    """But where the empty text is one. (SGLang sends such requests itself, ahead of n > 1 samples.)"""
    for options in ({"regex": "(a|b)?"}, {}):
        assert server.generate(max_tokens=0, **options).text == ""
    for options in ({"regex": "*set:tools"}, {"ebnf": 'root ::= "a"'}):
        refused = server.generate(max_tokens=0, **options)
        assert refused.is_refused
        assert "max_new_tokens, or what the prompt leaves of the context, is 0" in refused.text
    assert server.generate(max_tokens=0, regex="*set:tolls").is_refused


def test_nothing_else_ends_an_answer(server: Server) -> None:
    """Stop strings and stop tokens with text would cut it off; they may come from a chat template."""
    for options in (
        {"stop": "_"},
        {"stop": ["get", "send", "a", "e"]},
        {"stop_regex": "[a-z]"},
        {"stop_token_ids": [62, 83]},
    ):
        for number in range(3):
            answer = server.generate(f"{number}", regex="*set:tools", **options)
            assert (answer.status, answer.text in TOOLS) == (200, True), (options, answer)
        assert server.chat(regex="*set:tools", **options)["choices"][0]["message"]["content"] in TOOLS
    for grammar, answers in (({"regex": "()"}, [""]), ({"regex": "a?"}, ["", "a"]), ({"ebnf": 'root ::= "a"'}, ["a"])):
        server.generate(min_new_tokens=4, **grammar).check(answers.__contains__, 32)


def test_a_directory_that_is_gone_for_a_while(server: Server, sets: Path) -> None:
    assert server.generate(regex="*set:tools").text in TOOLS
    away = sets.rename(sets.with_name("away"))
    refused = server.generate(regex="*set:tools")
    away.rename(sets)
    assert refused.is_refused
    assert "the directory of named sets" in refused.text
    assert server.generate(regex="*set:tools").text in TOOLS


def test_streams(server: Server) -> None:
    response = server.post(
        "/v1/chat/completions", model="m", messages=[{"role": "user", "content": "x"}], regex="*set:tools", stream=True
    )
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line)["choices"]]
    assert "".join(choice["delta"].get("content") or "" for choice in choices) in TOOLS
    assert choices[-1]["finish_reason"] == "stop"


def test_tool_choice(server: Server) -> None:
    parameters = {
        "type": "object",
        "properties": {"unit": {"enum": ["c", "f"]}, "other": {"x-trieauto-set": "tools"}},
        "required": ["unit", "other"],
    }
    names = ["get_weather", "send_mail"]
    tools = [
        {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}} for name in names
    ]
    for choice in ("required", {"type": "function", "function": {"name": "send_mail"}}):
        message = server.chat(tools=tools, tool_choice=choice, max_tokens=60)["choices"][0]["message"]
        calls = message.get("tool_calls") or [
            {"function": {"name": call["name"], "arguments": json.dumps(call["parameters"])}}
            for call in json.loads(message["content"])
        ]
        for call in calls:
            assert call["function"]["name"] in (names if choice == "required" else ["send_mail"])
            arguments = json.loads(call["function"]["arguments"])
            assert arguments["unit"] in ("c", "f")
            assert arguments["other"] in TOOLS
        assert "shortest answer takes" in server.chat(tools=tools, tool_choice=choice, max_tokens=5)["message"]


# The way without a grammar backend


def test_the_logit_processor(server: Server) -> None:
    from trieauto.integrations.sglang import TrieLogitProcessor

    text = TrieLogitProcessor.to_str()

    def job(params: Any, max_tokens: int = 32) -> dict[str, Any]:
        return {"CUSTOM_LOGIT_PROCESSOR": text, "custom_params": params, "max_tokens": max_tokens}

    answers = server.generate_all([job({"regex": "*set:tools"}, budget) for budget in range(1, 25)])
    assert answers[0].is_refused
    assert "tokens are needed to finish, but the budget is 1" in answers[0].text
    for budget, answer in enumerate(answers, start=1):
        if not answer.is_refused:
            answer.check(TOOLS.__contains__, budget)
    assert is_event(server.generate(**job({"json_schema": json.dumps(EVENT)}, 64)).text)
    for params, message in (
        (None, "needs custom_params"),
        ({}, "it has none"),
        ({"regex": "a", "ebnf": "b"}, "it has ebnf, regex"),
        ({"regex": "*set:tolls"}, "closest are 'tools'"),
        ({"ebnf": RECURSIVE}, "made of itself"),
    ):
        answer = server.generate(**job(params))
        assert answer.is_refused
        assert message in answer.text
    assert "not both" in server.generate(**job({"regex": "a"}), regex="b").text


# Load


def test_a_thousand_requests_with_a_hundred_sets(server: Server, sets: Path) -> None:
    names = tool_names(20_000, seed=3)
    of_set = {f"load{number}": names[200 * number : 200 * number + 200] for number in range(100)}
    for name, values in of_set.items():
        (sets / f"{name}.txt").write_text("\n".join(values))
    jobs, wanted = [], []
    for number in range(1000):
        name = f"load{number * 37 % 100}"
        if number % 4 == 3:  # not by name, but written out
            options = {"json_schema": json.dumps({"enum": of_set[name]})}
        else:
            options = {"regex": f"*set:{name}"} if number % 4 else {"json_schema": json.dumps({"x-trieauto-set": name})}
        jobs.append({"prompt": f"{number}", "max_tokens": 16, **options})
        wanted.append(of_set[name])
    memory = []
    for part in range(8):  # each part has all sets
        answers = server.generate_all(jobs[part % 4 :: 4], at_once=48)
        for answer, values in zip(answers, wanted[part % 4 :: 4], strict=True):
            answer.check(lambda text, values=values: text.strip('"') in values, 16)
        memory.append(server.memory())
    # Allocators grow by leaps until they have enough; what leaks grows with every part.
    growth = [after - before for before, after in pairwise(memory[3:])]
    assert min(growth) < 10 * 2**20, memory
    assert memory[-1] - memory[3] < 100 * 2**20, memory
