"""A real engine that drafts tokens (by n-grams of the prompt), with structured outputs by trieauto."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trieauto.serving import ENVIRONMENT

from ..sets import TOOLS

pytestmark = pytest.mark.vllm

ENGINE = """
import json, sys

if __name__ == "__main__":
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    llm = LLM(
        model=sys.argv[1], dtype="bfloat16", max_model_len=512, enforce_eager=True, max_num_seqs=16,
        disable_log_stats=False,
        speculative_config={
            "method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 1
        },
    )
    prompts, parameters, budgets = json.load(sys.stdin)
    parameters = [
        # All are greedy: where some are not, vLLM 0.32.0 divides logits by temperatures that it has never written
        # (on CPUs: _expand_kernel_impl fills a copy), so that any token may come out.
        SamplingParams(max_tokens=budget, temperature=0, structured_outputs=StructuredOutputsParams(**asked))
        for asked, budget in zip(parameters, budgets)
    ]
    outputs = llm.generate(prompts, parameters, use_tqdm=False)
    accepted = sum(
        metric.value for metric in llm.get_metrics() if metric.name == "vllm:spec_decode_num_accepted_tokens"
    )
    answers = [(one.text, one.finish_reason, len(one.token_ids)) for output in outputs for one in output.outputs]
    print(json.dumps([accepted, answers]))
"""


def test_drafted_tokens_are_those_of_answers(models: Path, sets: Path, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"tool": {"enum": TOOLS[:50]}}, "required": ["tool"]}
    asked = [{"choice": TOOLS}, {"regex": "*set:tools"}, {"json": schema}, {"grammar": 'root ::= "a" root | "b"'}]
    prompts = [
        f"Tools: {', '.join(TOOLS[3 * number : 3 * number + 12])}. I choose {TOOLS[3 * number]}. The tool is "
        for number in range(48)
    ]
    budgets = [20 + number % 12 for number in range(48)]
    script = tmp_path / "engine.py"
    script.write_text(ENGINE)
    environment = os.environ | {
        ENVIRONMENT: str(sets),
        "TRIEAUTO_VLLM_BACKEND": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    done = subprocess.run(
        [sys.executable, str(script), str(models / "smollm2")],
        input=json.dumps([prompts, [asked[number % 4] for number in range(48)], budgets]),
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    accepted, answers = json.loads(done.stdout.splitlines()[-1])
    assert accepted > 0
    for number, (text, finish, num_tokens) in enumerate(answers):
        assert num_tokens <= budgets[number]
        if number % 4 < 2:
            assert (text in TOOLS, finish) == (True, "stop")
        elif number % 4 == 2:
            assert (json.loads(text)["tool"] in TOOLS[:50], finish) == (True, "stop")
