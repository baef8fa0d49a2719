"""The rows about starting: making a tokenizer ready, and importing."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import xgrammar
from context import Context
from measure import clocked, in_turns
from preparation import COLD, KEPT, cache_directory, forget_tables, preparation_timings
from report import progress
from vocabularies import INSTALLED, VOCABULARIES, huggingface_tokenizer

import trieauto


def tokenizer(context: Context) -> None:
    """To what a set can be compiled with, from a tokenizer as people have it, and from the bytes of all its tokens.

    Nothing is kept in memory from before.
    """
    _from_huggingface(context)
    section = context.report.section("Tokenizer preparation, from the tokens' bytes")
    for vocabulary in INSTALLED:
        byte_vocabulary = VOCABULARIES[vocabulary]()
        progress(f"preparing tokenizers for {vocabulary}")
        timings = preparation_timings(byte_vocabulary, [COLD, KEPT, "XGrammar", "LLGuidance", "outlines-core"])
        ours = timings[COLD].median
        for name, timing in timings.items():
            is_peer = not name.startswith("trieauto")
            target = 1 if name == "XGrammar" else None
            ratio = timing.median / ours if is_peer else None
            section.add(f"V={byte_vocabulary.size:,} ({vocabulary})", name, timing, ratio=ratio, at_least=target)


def _from_huggingface(context: Context) -> None:
    tokenizer = huggingface_tokenizer()
    section = context.report.section("Tokenizer preparation, from a Hugging Face tokenizer (SmolLM2, 49,152 ids)")

    def ours() -> float:
        with tempfile.TemporaryDirectory() as empty, cache_directory(empty):
            forget_tables()
            return clocked(trieauto.Vocabulary.from_tokenizer, tokenizer)()

    timings = in_turns(
        {
            COLD: ours,
            "XGrammar": clocked(xgrammar.TokenizerInfo.from_huggingface, tokenizer),
        },
        seconds=4.0,
    )
    for name, timing in timings.items():
        ratio = timing.median / timings[COLD].median if name == "XGrammar" else None
        section.add("", name, timing, ratio=ratio, at_least=1 if name == "XGrammar" else None)


_PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
from peers import *
from vocabularies import qwen
from trieauto.demo_sets import tool_names
vocabulary, values = qwen(), tool_names(1_000)
vocabulary.ids
before = set(sys.modules)
begin = time.perf_counter()
from {module} import {engine} as Engine
engine = Engine(vocabulary)
engine.first_mask(engine.forms[0], engine.forms[0].source(values), engine.allocate(1))
print(time.perf_counter() - begin)
"""


def imports(context: Context) -> None:
    """In a fresh Python process: import, tokenizer, a set of 1,000, first mask. Our disk cache is filled."""
    section = context.report.section("Import and first use in a fresh process (Qwen, K=1,000)")
    programs = {
        "trieauto": _PROGRAM.format(module="ours", engine="Trieauto"),
        "XGrammar": _PROGRAM.format(module="peers", engine="XGrammar"),
        "LLGuidance": _PROGRAM.format(module="peers", engine="LLGuidance"),
    }
    here = str(Path(__file__).parent)

    def run(program: str) -> Callable[[], float]:
        command = [sys.executable, "-c", program, here]
        return lambda: float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    timings = in_turns({name: run(program) for name, program in programs.items()}, seconds=20.0, rounds=5)
    ours = timings["trieauto"]
    section.add("", "trieauto", ours, unit="s", at_most=1.5)
    for name in ("XGrammar", "LLGuidance"):
        section.add("", name, timings[name], ratio=timings[name].median / ours.median)
