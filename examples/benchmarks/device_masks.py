"""Masks on the device against masks from the host: one step of a batch, side by side.

    python examples/benchmarks/device_masks.py             sets of 1,000 to 100,000 tool names, batches of 1 to 128
    python examples/benchmarks/device_masks.py --counts 1000 --batches 16

A step, given the tokens that were chosen last: every row takes its token, and the logits of all tokens that are not
legal then become minus infinity. The host does it with matchers (``accept_token``, ``fill_next_token_bitmasks``, and
the mask applied by a kernel, on a GPU after a copy there); the device with ``DeviceConstraints.advance`` and
``apply_``. All rows walk randomly through one set. Measured on the CPU, and on a GPU where there is one; needs
``pip install "trieauto[bench]"`` and dashscope for Qwen's vocabulary. Ratios are the host's time over the device's.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from device_claims import SUBJECT
from lines import add_saving, converted, finish
from measure import Timing, in_turns
from report import Report, Section, progress
from results import machine
from vocabularies import qwen

import trieauto
from trieauto.demo_sets import tool_names
from trieauto.integrations._masks import mask_on_cpu, new_mask
from trieauto.integrations.device import DeviceConstraints
from trieauto.transitions import token_transitions

COUNTS = [1_000, 10_000, 100_000]
BATCHES = [1, 16, 128]
STEPS = 8  # of each walk; what is over earlier goes on with stop tokens, as in a batch that waits for its longest row
HOST = "host: accept, fill, mask"
DEVICE = "device: advance, apply_"
BUDGETS = ", budgets"


class Walks:
    """Random walks of a batch through a set, as the ids that are chosen at each step."""

    def __init__(self, constraint: trieauto.Constraint, batch: int) -> None:
        self.constraint = constraint
        self.batch = batch
        self.budget = constraint.enough_tokens or 0
        generator = random.Random(batch)
        matchers = [constraint.matcher(self.budget) for _ in range(batch)]
        self.ids = np.empty((batch, STEPS), np.int64)
        for step in range(STEPS):
            for row, matcher in enumerate(matchers):
                self.ids[row, step] = generator.choice(matcher.allowed_token_ids().tolist())
                matcher.accept_token(int(self.ids[row, step]))


def steps_by_host(walks: Walks, device: torch.device, budget: int | None) -> Callable[[], float]:
    """Seconds of a step with matchers."""
    matchers = [walks.constraint.matcher(budget) for _ in range(walks.batch)]
    chosen = torch.from_numpy(walks.ids).to(device)
    size = walks.constraint.vocabulary.size
    is_on_cpu = device.type == "cpu"
    mask = new_mask(walks.batch, size, pin_memory=not is_on_cpu)
    fresh = torch.randn(walks.batch, size, device=device)
    logits = fresh.clone()

    def run() -> float:
        total = 0.0
        for matcher in matchers:
            matcher.reset()
        for step in range(STEPS):
            logits.copy_(fresh)
            _wait_for(device)
            begin = time.perf_counter()
            for matcher, token_id in zip(matchers, chosen[:, step].tolist(), strict=True):
                matcher.accept_token(token_id)
            trieauto.fill_next_token_bitmasks(matchers, mask)
            if is_on_cpu:
                mask_on_cpu(logits, mask.numpy())
            else:
                from xgrammar import apply_token_bitmask_inplace

                apply_token_bitmask_inplace(logits, mask.to(device, non_blocking=True))
            _wait_for(device)
            total += time.perf_counter() - begin
        return total / STEPS

    return run


def steps_by_device(walks: Walks, tables: DeviceConstraints, budget: int | None) -> Callable[[], float]:
    """Seconds of a step with tensors."""
    device = tables.device
    chosen = torch.from_numpy(walks.ids).to(device)
    fresh = torch.randn(walks.batch, walks.constraint.vocabulary.size, device=device)
    logits = fresh.clone()
    starts = tables.start_states([walks.constraint] * walks.batch)
    left = [None if budget is None else torch.full_like(starts, budget - step) for step in range(STEPS + 1)]

    def run() -> float:
        total = 0.0
        states = starts
        for step in range(STEPS):
            logits.copy_(fresh)
            _wait_for(device)
            begin = time.perf_counter()
            states = tables.advance(states, chosen[:, step], left[step])
            tables.apply_(logits, states, left[step + 1])
            _wait_for(device)
            total += time.perf_counter() - begin
        return total / STEPS

    return run


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def check(walks: Walks, tables: DeviceConstraints) -> None:
    """Both ways mask the same, at every step, with budgets and without."""
    size = walks.constraint.vocabulary.size
    for budget in (None, walks.budget):
        matchers = [walks.constraint.matcher(budget) for _ in range(walks.batch)]
        states = tables.start_states([walks.constraint] * walks.batch)
        mask = new_mask(walks.batch, size, pin_memory=False)
        for step in range(STEPS):
            for matcher, token_id in zip(matchers, walks.ids[:, step].tolist(), strict=True):
                matcher.accept_token(token_id)
            trieauto.fill_next_token_bitmasks(matchers, mask)
            by_host = torch.zeros(walks.batch, size)
            mask_on_cpu(by_host, mask.numpy())
            states = tables.advance(states, torch.from_numpy(walks.ids[:, step]).to(tables.device))
            left = None if budget is None else torch.full_like(states, budget - step - 1)
            by_device = tables.apply_(torch.zeros(walks.batch, size, device=tables.device), states, left)
            if not torch.equal(by_host, by_device.cpu()):
                raise AssertionError(f"different masks after {step + 1} tokens with budget {budget}")


def of_set(
    section: Section, constraint: trieauto.Constraint, count: int, device: torch.device, batches: list[int]
) -> None:
    """One set's table, and its steps for each size of batch."""
    case = f"K={count:,}"
    begin = time.perf_counter()
    transitions = token_transitions(constraint)
    found = time.perf_counter()
    tables = DeviceConstraints([constraint], device)
    _wait_for(device)
    section.add(case, "transitions found", Timing.of([found - begin]), note=f"{transitions.num_states:,} states")
    section.add(case, "transitions found and on the device", Timing.of([time.perf_counter() - found]))
    section.add(
        case,
        "memory of the tables",
        tables.nbytes / 1e6,
        unit="MB",
        note=f"{tables.num_entries:,} transitions, {tables.width:,} of one state at most",
    )
    for batch in batches:
        progress(f"{case}, batch {batch}, {device}")
        walks = Walks(constraint, batch)
        check(walks, tables)
        tasks: dict[str, Callable[[], float]] = {}
        for suffix, budget in (("", None), (BUDGETS, walks.budget)):
            tasks[HOST + suffix] = steps_by_host(walks, device, budget)
            tasks[DEVICE + suffix] = steps_by_device(walks, tables, budget)
        timings = in_turns(tasks)
        for suffix in ("", BUDGETS):
            section.add(f"{case}, batch {batch}", HOST + suffix, timings[HOST + suffix])
            ratio = timings[HOST + suffix].median / timings[DEVICE + suffix].median
            section.add(f"{case}, batch {batch}", DEVICE + suffix, timings[DEVICE + suffix], ratio=ratio)


def main(arguments: Sequence[str] | None = None) -> None:
    if converted(SUBJECT, arguments):
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS, metavar="K", help="sizes of the sets")
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES, metavar="B", help="rows of a batch")
    parser.add_argument("--threads", type=int, default=1, help="of torch on the CPU; matchers have one (default 1)")
    add_saving(parser)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    of_tokens = qwen()
    vocabulary = trieauto.Vocabulary.from_tokens(of_tokens.tokens, stop_token_ids=[of_tokens.stop_token_id])
    devices = [torch.device("cpu")] + ([torch.device("cuda", 0)] if torch.cuda.is_available() else [])
    report = Report()
    for device in devices:
        name = f"{options.threads} thread(s) of torch" if device.type == "cpu" else torch.cuda.get_device_name(device)
        section = report.section(f"A step of a batch on {device} ({name}), {vocabulary.size:,} ids, float32 logits")
        for count in options.counts:
            constraint = trieauto.compile(trieauto.choices(tool_names(count)), vocabulary)
            constraint.distances()
            of_set(section, constraint, count, device, options.batches)
    about = machine()
    if len(devices) == 1:
        print("\nThere is no CUDA device here: nothing was measured on one.")
    else:
        about |= {"gpu": torch.cuda.get_device_name(devices[-1])}
    is_whole = options.counts == COUNTS and options.batches == BATCHES
    finish(options, SUBJECT, report.as_json(), about, is_whole=is_whole)


if __name__ == "__main__":
    main()
