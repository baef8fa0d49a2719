"""Structured outputs by trieauto over HTTP. The engine has a process of its own, and random weights."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ..sets import CODES, TOOLS
from .kinds import EVENT, is_event
from .server import Server

pytestmark = pytest.mark.vllm


def chat(server: Server, max_tokens: int = 64, **options: Any) -> Any:
    messages = [{"role": "user", "content": "Which tool?"}]
    return server.post("/v1/chat/completions", model="m", messages=messages, max_tokens=max_tokens, **options)


def test_what_is_logged_at_the_start(server: Server) -> None:
    assert len(server.logged("trieauto: it serves the structured outputs of vLLM 0.32.0")) >= 2  # both processes


def test_completions(server: Server) -> None:
    jobs: list[dict[str, Any]] = []
    checks: list[Any] = []
    for number in range(48):
        asked, is_valid = [
            ({"choice": TOOLS}, TOOLS.__contains__),
            ({"regex": "*set:codes"}, CODES.__contains__),
            ({"json": EVENT}, is_event),
            ({"grammar": 'root ::= "a" root | "b"'}, re.compile("a*b?").fullmatch),
        ][number % 4]
        jobs.append({"argument": None, "structured_outputs": asked, "max_tokens": 24 + number})
        checks.append(is_valid)
    for job, is_valid, answer in zip(jobs, checks, server.complete_all(jobs), strict=True):
        assert answer.status == 200, answer
        assert is_valid(answer.text), (job, answer)
        assert answer.num_tokens <= job["max_tokens"]


def test_what_cannot_be_finished_is_refused(server: Server) -> None:
    for asked, max_tokens, message in [
        ({"choice": ["a rather long value of several words"]}, 2, r"the shortest answer takes \d+ tokens"),
        ({"regex": "*set:tolls"}, 16, "closest are 'tools'"),
        ({"choice": []}, 16, "has none"),
    ]:
        refused = server.complete(None, max_tokens, structured_outputs=asked)
        assert refused.is_refused
        assert re.search(message, refused.text), refused
    assert server.complete(None, stop=["\n"], structured_outputs={"choice": TOOLS}).is_refused
    assert server.complete(None, structured_outputs={"choice": TOOLS}).text in TOOLS


def test_chats_with_a_response_format(server: Server) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "event", "schema": EVENT}}
    choice = chat(server, response_format=form, temperature=0).json()["choices"][0]
    assert is_event(choice["message"]["content"])
    assert choice["finish_reason"] == "stop"
    refused = chat(server, 2, response_format=form)
    assert refused.status_code == 400
    assert "the shortest answer takes" in refused.json()["error"]["message"]


@pytest.mark.parametrize("strict", [None, True])
def test_sets_in_tools_are_never_ignored(server: Server, strict: bool | None) -> None:
    """With this tool parser vLLM does not constrain what is not strict, and makes structural tags of what is."""
    parameters = {"type": "object", "properties": {"tool": {"x-trieauto-set": "tools"}}, "required": ["tool"]}
    tools = [{"type": "function", "function": {"name": "call", "parameters": parameters, "strict": strict}}]
    for choice in ("auto", "required", {"type": "function", "function": {"name": "call"}}):
        refused = chat(server, 100, tools=tools, tool_choice=choice)
        assert refused.status_code == 400, (choice, refused.text)
        message = refused.json()["error"]["message"]
        assert "name a set" in message or "structural tags" in message
    assert chat(server, 8, tools=tools, tool_choice="none").status_code == 200
    del parameters["properties"]
    assert chat(server, 8, tools=tools, tool_choice="auto").status_code == 200


def test_streams(server: Server) -> None:
    response = server.post(
        "/v1/completions", model="m", prompt="It is ", max_tokens=32, stream=True, structured_outputs={"choice": TOOLS}
    )
    lines = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    choices = [choice for line in lines for choice in line["choices"]]
    assert "".join(choice["text"] for choice in choices) in TOOLS
    assert choices[-1]["finish_reason"] == "stop"


def test_beam_search_is_refused(server: Server) -> None:
    refused = server.complete(None, structured_outputs={"choice": TOOLS}, use_beam_search=True, n=2)
    assert refused.is_refused
    assert "use_beam_search" in refused.text
