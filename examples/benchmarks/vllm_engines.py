"""vLLM with each way of constraining answers: the settings of an engine, and the parameters of its requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Way:
    """One way of constraining answers.

    Attributes:
        name: of the way.
        engine: vLLM is started with this backend of structured outputs.
        is_ours: trieauto does it.
        environment: of all processes of the engine.
        forms: how a set can be asked for, by name; each makes the options of ``SamplingParams`` of values and the name
            of the set's file.
    """

    name: str
    engine: str
    is_ours: bool
    environment: dict[str, str]
    forms: dict[str, Callable[[Sequence[str], str], dict[str, Any]]]


def choice(values: Sequence[str], name: str) -> dict[str, Any]:
    """vLLM's ``choice``."""
    from vllm.sampling_params import StructuredOutputsParams

    return {"structured_outputs": StructuredOutputsParams(choice=list(values))}


def union(values: Sequence[str], name: str) -> dict[str, Any]:
    """A regular expression of all values."""
    from vllm.sampling_params import StructuredOutputsParams

    return {"structured_outputs": StructuredOutputsParams(regex="|".join(map(_escaped, values)))}


def named(values: Sequence[str], name: str) -> dict[str, Any]:
    """The name of a set, in place of a regular expression."""
    from vllm.sampling_params import StructuredOutputsParams

    return {"structured_outputs": StructuredOutputsParams(regex=f"*set:{name}")}


def inline_argument(values: Sequence[str], name: str) -> dict[str, Any]:
    """The logits processor's argument, all values."""
    return {"extra_args": {"trieauto": list(values)}}


def named_argument(values: Sequence[str], name: str) -> dict[str, Any]:
    """The logits processor's argument, the name of a set."""
    return {"extra_args": {"trieauto": f"*set:{name}"}}


def _escaped(value: str) -> str:
    return re.sub(r"[^A-Za-z0-9_ -]", lambda found: "\\" + found[0], value)


_OURS = {"choice": choice, "set": named, "regex": union}
WAYS = {
    way.name: way
    for way in (
        Way("xgrammar", "xgrammar", False, {}, {"choice": choice, "regex": union}),
        Way("guidance", "guidance", False, {}, {"choice": choice, "regex": union}),
        Way("backend", "auto", True, {"TRIEAUTO_VLLM_BACKEND": "1"}, _OURS),
        Way("processor", "auto", True, {}, {"choice": inline_argument, "set": named_argument}),
    )
}
"""Ours as a backend of structured outputs and as a logits processor, and vLLM's own two."""


@dataclass(frozen=True)
class Run:
    """What one call of ``generate`` came to."""

    seconds: float
    texts: list[str]
    tokens: list[int]

    @property
    def requests_per_second(self) -> float:
        return len(self.texts) / self.seconds

    @property
    def steps_per_second(self) -> float:
        return sum(self.tokens) / self.seconds


def engine_options(way: Way, model: str, max_num_seqs: int) -> dict[str, Any]:
    """What vLLM's ``LLM`` is made with."""
    return {
        "model": model,
        "dtype": "bfloat16",
        "max_model_len": 1024,
        "enforce_eager": True,
        "max_num_seqs": max_num_seqs,
        "enable_prefix_caching": False,
        "structured_outputs_config": {"backend": way.engine},
    }
