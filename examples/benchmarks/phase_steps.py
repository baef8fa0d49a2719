"""Appendix H.3: one step taken apart: finding the legal tokens, being called from Python, masking the logits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from context import NUM_WALKS, Context
from measure import Timing, in_turns
from token_tries import canonical_walks
from walks import Parked, WalkTimer

from trieauto.demo_sets import tool_names
from trieauto.integrations._masks import mask_on_cpu

ENGINES = ("trieauto", "trieauto, own buffers", "XGrammar", "LLGuidance")
BATCH = 128


@dataclass(frozen=True)
class Steps:
    """Seconds.

    Attributes:
        inside: of a mask inside one call that fills 128 rows, by engine, one thread.
        called: of a mask filled by a call of its own.
        applied: of setting one row of float32 logits to minus infinity by a mask, by way.
    """

    count: int
    inside: dict[str, Timing]
    called: dict[str, Timing]
    applied: dict[str, Timing]


def steps(context: Context, count: int, seconds: float) -> Steps:
    """On a set of tool names, along values as the tokenizer writes them."""
    values = tool_names(count)
    inside: dict[str, Callable[[], float]] = {}
    called: dict[str, Callable[[], float]] = {}
    mask: Any = None
    walks = canonical_walks(values, BATCH)
    for name in ENGINES:
        engine = context.engine(name)
        compiled = engine.compile(engine.forms[0], engine.forms[0].source(values))
        engine.settle(compiled)
        parked = Parked(engine, [compiled] * BATCH, walks)
        inside[name] = _per_row(parked.batch_timer(BATCH, 1))
        called[name] = WalkTimer(engine, compiled, walks[:NUM_WALKS])
        if name == ENGINES[0]:
            mask = engine.allocate(1)
            engine.fill(parked.matchers[0], mask)()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        applied = in_turns(_applying(mask, 32 * context.engine("trieauto").num_words), seconds=seconds)
    finally:
        torch.set_num_threads(threads)
    return Steps(count, in_turns(inside, seconds=seconds), in_turns(called, seconds=seconds), applied)


def _per_row(of_batch: Callable[[], float]) -> Callable[[], float]:
    return lambda: of_batch() / BATCH


def _applying(mask: Any, width: int) -> dict[str, Callable[[], float]]:
    """Three ways to apply the same bits. All are given what they want, made outside the clock."""
    import xgrammar

    fresh = torch.randn(1, width)
    logits = fresh.clone()
    as_tensor = torch.from_numpy(mask)
    bits = np.unpackbits(np.ascontiguousarray(mask).view(np.uint8), axis=1, bitorder="little")
    is_illegal = torch.from_numpy(bits == 0)
    minus_infinity = -torch.inf

    def timer(apply: Callable[[], object]) -> Callable[[], float]:
        def run() -> float:
            logits.copy_(fresh)
            begin = time.perf_counter()
            apply()
            return time.perf_counter() - begin

        return run

    return {
        "torch, a tensor of bool": timer(lambda: logits.masked_fill_(is_illegal, minus_infinity)),
        "XGrammar, a bitmask": timer(lambda: xgrammar.apply_token_bitmask_inplace(logits, as_tensor)),
        "trieauto, a bitmask": timer(lambda: mask_on_cpu(logits, mask)),
    }
