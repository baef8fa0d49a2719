"""A real engine with vLLM's V2 model runner. Its kernels are Triton's, for which PyPI has no compiler for CPUs; so they
run in Triton's interpreter, slowly."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trieauto.serving import ENVIRONMENT

from ..sets import CODES, TOOLS

pytestmark = pytest.mark.vllm

ENGINE = """
import json, sys
from types import SimpleNamespace

from triton.backends import backends

# vLLM asks whether there is a compiler for CPUs; the interpreter needs none.
backends.clear()
backends["cpu"] = SimpleNamespace(driver=SimpleNamespace(is_active=lambda: True), compiler=None)

if __name__ == "__main__":
    from vllm import LLM, SamplingParams
    from vllm.exceptions import VLLMValidationError

    llm = LLM(
        model=sys.argv[1], dtype="bfloat16", max_model_len=64, enforce_eager=True, max_num_seqs=3, block_size=32,
        num_gpu_blocks_override=5, enable_prefix_caching=False, disable_log_stats=False,
    )
    assert llm.llm_engine.vllm_config.use_v2_model_runner
    jobs = [(None, 6), ({"regex": "[0-9]{7}"}, 7), ({"regex": "[0-9]{6}"}, 9), ("*set:tools", 8), ("*set:codes", 4)]
    parameters = [
        SamplingParams(
            temperature=number % 2, seed=1, max_tokens=tokens, ignore_eos=argument is None,
            extra_args=None if argument is None else {"trieauto": argument},
        )
        for number, (argument, tokens) in enumerate(jobs)
    ]
    prompts = [{"prompt_token_ids": [64 + number] * 29} for number in range(len(jobs))]
    answers = [output.outputs[0] for output in llm.generate(prompts, parameters, use_tqdm=False)]
    refused = ""
    try:
        llm.generate("x", SamplingParams(max_tokens=1, extra_args={"trieauto": "*set:tools"}), use_tqdm=False)
    except VLLMValidationError as error:
        refused = str(error)
    preemptions = sum(metric.value for metric in llm.get_metrics() if metric.name == "vllm:num_preemptions")
    found = [(answer.text, answer.finish_reason, len(answer.token_ids)) for answer in answers]
    print("ANSWERS " + json.dumps([jobs, found, refused, preemptions]))
"""


def test_the_v2_runner(models: Path, sets: Path, tmp_path: Path) -> None:
    script = tmp_path / "engine.py"
    script.write_text(ENGINE)
    variables = {"TRITON_INTERPRET": "1", "VLLM_USE_V2_MODEL_RUNNER": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    run = subprocess.run(
        [sys.executable, script, str(models / "random")],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env=os.environ | variables | {ENVIRONMENT: str(sets)},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("ANSWERS ")]
    jobs, found, refused, preemptions = json.loads(line.removeprefix("ANSWERS "))
    valid = [
        None,
        re.compile("[0-9]{7}").fullmatch,
        re.compile("[0-9]{6}").fullmatch,
        TOOLS.__contains__,
        CODES.__contains__,
    ]
    for (_, max_tokens), is_valid, (text, finish, num_tokens) in zip(jobs, valid, found, strict=True):
        if is_valid is None:
            assert (finish, num_tokens) == ("length", max_tokens)
        else:
            assert is_valid(text)
            assert num_tokens <= max_tokens
            assert finish == "stop"
    assert "the shortest answer takes 2 tokens" in refused
    assert preemptions > 0
