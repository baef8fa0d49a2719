"""Other ways to run the engine: speculation by n-grams, a reasoning parser, the offline engine. SmolLM2 throughout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trieauto.serving import ENVIRONMENT

from ..sets import TOOLS
from .server import Answer, Server

pytestmark = pytest.mark.sglang

GRAMMARS: list[dict[str, Any]] = [
    {"regex": "*set:tools"},
    {"regex": "*set:tools", "max_tokens": 3},
    {"regex": "[0-9]{4}-[0-9]{2}-[0-9]{2}"},
    {"regex": r"(\w+ ){2,5}end"},
    {"regex": "(ab){3,9}|(xy ?)+z", "max_tokens": 12},
    {"json_schema": json.dumps({"type": "array", "items": {"x-trieauto-set": "codes"}, "minItems": 2, "maxItems": 6})},
    {"ebnf": 'root ::= "a" root | "b"'},
    {},
]
JOBS = [
    {"prompt": f"The tool to use for {what} is ", "max_tokens": 24, **grammar}
    for what in ("sending mail", "the weather")
    for grammar in GRAMMARS
]


def visible(answer: Answer) -> tuple[str, str]:
    return answer.text, answer.finish


def test_speculation_changes_nothing(models: Path, sets: Path, tmp_path: Path) -> None:
    """One request after the other: in a batch, sums come out a little differently. float32, for the same reason."""
    found = []
    for arguments, environment in (
        (("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "4"), {"SGLANG_CPU_SPEC": "1"}),
        ((), {}),
    ):
        arguments = (*arguments, "--dtype", "float32", "--max-running-requests", "16", "--disable-radix-cache")
        environment = {ENVIRONMENT: str(sets), **environment}
        with Server(models / "smollm2", *arguments, log=tmp_path / f"{len(found)}.log", **environment) as server:
            found.append([visible(answer) for answer in server.generate_all(JOBS, at_once=1)])
            if "SGLANG_CPU_SPEC" in environment:  # once more, with drafts from the first time
                found.append([visible(answer) for answer in server.generate_all(JOBS, at_once=1)])
                together = server.generate_all(JOBS, at_once=12)
                for job, answer in zip(JOBS, together, strict=True):
                    assert answer.status == 200
                    if job.get("regex") == "*set:tools":
                        assert answer.text in TOOLS
                accepted = [answer.meta.get("spec_accept_length") or 0 for answer in together]
                assert max(accepted) > 1.2, accepted
            assert not server.logged("Traceback (most recent call last)")
            assert not server.logged("is not legal after")
    assert found[0] == found[1] == found[2]


END = "</think>"


def test_thinking(models: Path, sets: Path, tmp_path: Path) -> None:
    arguments = ("--reasoning-parser", "deepseek-r1", "--max-running-requests", "16")
    with Server(models / "smollm2", *arguments, log=tmp_path / "log", **{ENVIRONMENT: str(sets)}) as server:
        thinking = {"prompt": "Which tool sends mail? <think>", "REQUIRE_REASONING": True}
        budgets = [*range(1, 14), 20, 40]
        for grammar in ({"regex": "*set:tools"}, {"json_schema": '{"x-trieauto-set": "tools", "title": "t"}'}):
            answers = server.generate_all([{"max_tokens": n, **thinking, **grammar} for n in budgets])
            refused = [budget for budget, answer in zip(budgets, answers, strict=True) if answer.is_refused]
            assert refused == budgets[: len(refused)]
            for budget, answer in zip(budgets, answers, strict=True):
                if answer.is_refused:
                    assert f"the shortest answer takes {len(refused) + 1} tokens (of which 3 tokens end" in answer.text
                else:
                    _, _, rest = answer.text.partition(END)
                    assert rest.strip('"') in TOOLS, answer
                    assert answer.num_tokens <= budget
        limited = server.generate(**thinking, max_tokens=40, regex="*set:tools", custom_params={"thinking_budget": 2})
        assert limited.meta["reasoning_tokens"] == 2 + 3
        plain = server.generate("x", max_tokens=40, regex="*set:tools")
        assert plain.text in TOOLS
        other = server.generate(**thinking, max_tokens=10, ebnf='root ::= "a" root | "b"')
        assert other.num_tokens == 10
        mixed = server.generate_all(
            [{**thinking, "max_tokens": 24, "regex": "*set:tools"}, {**thinking, "max_tokens": 24},
             {"max_tokens": 24, "ebnf": 'root ::= "a" root | "b"'}, {"max_tokens": 24, "regex": "*set:tools"}] * 6
        )  # fmt: skip
        assert all(answer.text.partition(END)[2] in TOOLS for answer in mixed[::4])
        assert all(answer.text in TOOLS for answer in mixed[3::4])
        message = server.chat(max_tokens=40, regex="*set:tools")["choices"][0]["message"]
        assert message["content"] in TOOLS
        assert message["reasoning_content"]
        assert "of which 3 tokens end" in server.chat(max_tokens=5, regex="*set:tools")["message"]
        assert not server.logged("Traceback (most recent call last)")


ENGINE = """
import json, sys
import sglang

if __name__ == "__main__":
    engine = sglang.Engine(
        model_path=sys.argv[1], grammar_backend="trie", device="cpu", attention_backend="torch_native",
        sampling_backend="pytorch", disable_cuda_graph=True, max_total_tokens=4096, max_running_requests=16,
        context_length=1024, log_level="warning", enable_metrics=False,
    )
    prompts = [f"The tool for {number} is " for number in range(12)]
    parameters = [{"regex": "*set:tools", "max_new_tokens": 3 + number, "temperature": 0} for number in range(12)]
    answers = engine.generate(prompts, parameters)
    free = engine.generate("Hello", {"max_new_tokens": 4})
    try:
        engine.generate("x", {"regex": "*set:tools", "max_new_tokens": 2})
        refused = ""
    except ValueError as error:
        refused = str(error)
    engine.shutdown()
    print("ANSWERS " + json.dumps([[answer["text"] for answer in answers], free["text"], refused]))
"""


def test_the_offline_engine(models: Path, sets: Path, tmp_path: Path) -> None:
    """With requests that are thrown out of the batch, and come back, all the time."""
    script = tmp_path / "engine.py"
    script.write_text(ENGINE)
    run = subprocess.run(
        [sys.executable, script, str(models / "smollm2")],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env=os.environ | {ENVIRONMENT: str(sets), "SGLANG_TEST_RETRACT": "1"},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("ANSWERS ")]
    answers, free, refused = json.loads(line.removeprefix("ANSWERS "))
    assert len(answers) == 12
    assert all(answer in TOOLS for answer in answers)
    assert free
    assert "the shortest answer takes 3 tokens" in refused
    assert "retract" in (run.stderr + run.stdout).lower()
