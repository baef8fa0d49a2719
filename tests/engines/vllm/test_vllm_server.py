"""A server, its engine in a process of its own, end to end. The model has random weights."""

from __future__ import annotations

import json
import random
import re
import threading
from pathlib import Path
from typing import Any

import pytest
import requests

from ..sets import CODES, TOOLS
from .kinds import EVENT, KINDS, is_event
from .server import Server

pytestmark = pytest.mark.vllm


def sent(argument: Any) -> Any:
    """How an argument is sent: vLLM passes on strings, numbers and lists of them, so objects are sent as JSON text."""
    return json.dumps(argument) if isinstance(argument, dict) else argument


JOBS = [(sent(argument), is_valid) for argument, is_valid in KINDS.values()]


def test_what_is_logged_at_the_start(server: Server) -> None:
    """By the front end and by the engine, before the first request."""
    assert len(server.logged("trieauto: serving <Vocabulary of 151,646 tokens")) == 2


def test_all_kinds_and_budgets_at_once(server: Server) -> None:
    rng = random.Random(1)
    jobs, checks = [], []
    for number in range(160):
        argument, is_valid = rng.choice([*JOBS, (None, lambda text: text not in TOOLS)])
        jobs.append({"argument": argument, "max_tokens": rng.randint(1, 48), "prompt": f"Request {number} is "})
        checks.append(is_valid)
    refused = 0
    for job, is_valid, answer in zip(jobs, checks, server.complete_all(jobs, at_once=48), strict=True):
        if answer.is_refused:
            needed = re.search(r"the shortest answer takes (\d+) token", answer.text)
            assert needed, answer
            assert int(needed[1]) > job["max_tokens"]
            refused += 1
        else:
            answer.check(is_valid, job["max_tokens"])
    assert 0 < refused < 80


BAD: list[tuple[dict[str, Any], str]] = [
    ({"argument": "*set:tolls"}, "closest are 'tools'"),
    ({"argument": '{"set": "tools"'}, "is not the JSON text of a constraint"),
    ({"argument": "tools"}, "is no constraint"),
    ({"argument": 7}, "is no constraint"),
    ({"argument": [1, 2]}, "number 0 is 1"),
    ({"argument": '{"regex": "("}'}, "unterminated subpattern"),
    ({"argument": "*set:tools", "max_tokens": 1}, "the shortest answer takes 2 tokens"),
    ({"argument": '{"regex": "a{100000}"}'}, "the shortest answer takes"),
    ({"argument": "*set:tools", "stop": ["\n"]}, "stop cannot be used"),
    ({"argument": "*set:tools", "bad_words": ["a"]}, "bad_words cannot be used"),
    ({"argument": "*set:tools", "allowed_token_ids": [1]}, "allowed_token_ids cannot be used"),
    ({"argument": "*set:tools", "min_tokens": 12}, "min_tokens is 12"),
    ({"argument": "*set:tools", "structured_outputs": {"choice": ["a"]}}, "a request has one or the other"),
    ({"argument": "*set:tools", "use_beam_search": True, "n": 2}, "use_beam_search cannot be used"),
    ({"argument": "*set:tools", "prompt": [64] * 2047, "max_tokens": 5}, "what the prompt leaves"),
]


def test_bad_requests_leave_the_server_serving(server: Server) -> None:
    for options, message in BAD:
        answer = server.complete(**options)
        assert answer.is_refused, (options, answer)
        assert message in answer.text
    good = {"argument": "*set:codes"}
    answers = server.complete_all([job for options, _ in BAD for job in (options, good, good)], at_once=24)
    assert all(answer.is_refused for answer in answers[::3])
    assert all(answer.text in CODES for answer in answers[1::3] + answers[2::3])


def test_chat(server: Server) -> None:
    choice = server.chat("*set:tools")["choices"][0]
    assert choice["message"]["content"] in TOOLS
    assert choice["finish_reason"] == "stop"
    event = server.chat(json.dumps({"json_schema": EVENT}), max_tokens=None)["choices"][0]
    assert is_event(event["message"]["content"])
    several = server.chat("*set:tools", n=4, temperature=1.0, seed=1)["choices"]
    assert [one["message"]["content"] in TOOLS for one in several] == [True] * 4
    assert "use_beam_search" in server.chat("*set:tools", use_beam_search=True, n=2)["error"]["message"]
    assert "shortest answer takes" in server.chat("*set:tools", max_tokens=1)["error"]["message"]


def test_streams(server: Server) -> None:
    for argument, is_valid in JOBS[:4]:
        response = server.post(
            "/v1/completions", model="m", prompt="It is ", max_tokens=32, stream=True, vllm_xargs={"trieauto": argument}
        )
        lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
        choices = [choice for line in lines for choice in json.loads(line)["choices"]]
        assert is_valid("".join(choice["text"] for choice in choices))
        assert choices[-1]["finish_reason"] == "stop"


def test_requests_whose_clients_leave(server: Server) -> None:
    def leave(number: int) -> None:
        with pytest.raises(requests.exceptions.RequestException):
            server.post("/v1/completions", timeout=0.05 + number / 100, model="m", prompt="x", max_tokens=1500,
                        vllm_xargs={"trieauto": json.dumps({"regex": r"(\w\w\w ){500,2000}"})})  # fmt: skip

    threads = [threading.Thread(target=leave, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    others = server.complete_all([{"argument": "*set:tools"}] * 16, at_once=8)
    for thread in threads:
        thread.join()
    assert all(answer.text in TOOLS for answer in others)


def test_a_changed_file_is_served(server: Server, sets: Path) -> None:
    assert server.complete("*set:served").is_refused
    for values in (["one", "two"], ["three"]):
        (sets / "new.tmp").write_text("\n".join(values))
        (sets / "new.tmp").rename(sets / "served.txt")
        for argument in ("*set:served", '{"json_schema": {"x-trieauto-set": "served"}}'):
            assert server.complete(argument).text.strip('"') in values
    (sets / "served.txt").unlink()
    assert "no set named 'served'" in server.complete("*set:served").text
