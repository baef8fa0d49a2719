"""``trieauto choose``: a model chooses a value for each prompt of a file, and goes on where it was interrupted."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import TrieautoError
from ..kernels.jit import warm_up
from ..value_files import read_values
from .arguments import filled, positive, token_budget
from .errors import CommandError, reason
from .models import load_model, load_tokenizer, require_transformers
from .prompts import ERROR_KEY, PromptLine, read_prompts
from .refusals import check_budget, naming_values
from .results import ENDINGS, ResultFile, ResultStream
from .run_record import RunRecord
from .terminal import counted, duration, status

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

    from ..integrations.hf import Choice


def add_parser(commands: Any) -> None:
    """Add ``choose`` to the subcommands."""
    parser = commands.add_parser(
        "choose",
        help="let a model choose one value of a file for each prompt of another",
        description="Reads prompts as JSON objects, one a line, and writes each with the value that the model chose, "
        "in the same order. After an interruption of any kind, the same command goes on where the output file ends.",
        epilog='A line of the prompts is {"prompt": "plain text"}, which the model goes on from, or {"messages": '
        '[{"role": "user", "content": "..."}]}, a chat. Its other keys are kept. Added to it are value, '
        "log_probability (natural logarithm, of the tokens that the model chose), num_tokens, num_forward_passes and "
        'ended: "complete"; or "completed under the budget", if without --max-new-tokens the value might have been '
        'another; or "refused", with value null and the key error, if the prompt leaves too little of the model\'s '
        "context to finish any value.",
    )
    parser.add_argument(
        "--model",
        required=True,
        type=filled,
        metavar="DIR|NAME",
        help="the model's directory, or its name in the Hugging Face hub",
    )
    parser.add_argument(
        "--gguf", type=filled, metavar="NAME", help="the file in that directory, if the model is a GGUF"
    )
    parser.add_argument(
        "--values",
        required=True,
        type=Path,
        metavar="FILE",
        help="the values: one a line; or .json, an array of strings; or .jsonl, one JSON string a line",
    )
    parser.add_argument("--prompts", default="-", metavar="FILE", help="the prompts, JSON lines (default: -, stdin)")
    parser.add_argument("--output", default="-", metavar="FILE", help="the answers, JSON lines (default: -, stdout)")
    parser.add_argument(
        "--batch-size",
        type=positive,
        default=8,
        metavar="N",
        help="prompts answered, and written, together (default: 8)",
    )
    parser.add_argument(
        "--system",
        metavar="TEXT",
        help='a system message for each chat that has none; a "prompt" becomes the chat\'s user message',
    )
    parser.add_argument(
        "--max-new-tokens",
        type=token_budget,
        metavar="N",
        help="finish every answer within N tokens, and within the model's context; a prompt that leaves too little of "
        "it is refused in its line of the output, and does not end the run",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Answer every prompt that is not yet answered."""
    require_transformers(arguments.gguf)
    values = read_values(arguments.values)
    prompts = read_prompts(arguments.prompts, arguments.system)
    if arguments.output == "-":
        return _answer(arguments, values, prompts, ResultStream())
    with ResultFile(Path(arguments.output), arguments.prompts) as results:
        record = RunRecord.of(values, arguments.system, arguments.model, arguments.gguf, arguments.max_new_tokens)
        results.check(prompts, frozenset(values), record)
        return _answer(arguments, values, prompts, results)


def _answer(
    arguments: argparse.Namespace,
    values: Sequence[str],
    prompts: Sequence[PromptLine],
    results: ResultFile | ResultStream,
) -> int:
    num_done = results.num_done
    if num_done == len(prompts):
        results.finish()
        _say(f"{arguments.output} is complete: {counted(num_done, 'prompt')} answered{_told(results.endings)}")
        return 0
    if num_done > 0:
        _say(f"{arguments.output} has {num_done:,} of {counted(len(prompts), 'answer')}; going on from there")

    warm_up()
    with status("loading the tokenizer"):
        tokenizer = load_tokenizer(arguments.model, arguments.gguf)
    check_budget(tokenizer, arguments.values, values, arguments.max_new_tokens)
    longest = _check_prompts(tokenizer, prompts)
    with status("loading the model"):
        model = load_model(arguments.model, arguments.gguf)
    if arguments.max_new_tokens is None:
        _check_length(model.config, *longest)

    from tqdm import tqdm

    from ..integrations.hf import Chooser

    with naming_values(arguments.values, values):
        chooser = Chooser(model, tokenizer, values, max_new_tokens=arguments.max_new_tokens)
    results.begin()
    begin = time.perf_counter()
    # Batches are always cut at the same places, so that an interruption does not change any of them.
    first = num_done - num_done % arguments.batch_size
    with tqdm(total=len(prompts), initial=num_done, unit="prompt", disable=None) as bar:
        for start in range(first, len(prompts), arguments.batch_size):
            batch = prompts[start : start + arguments.batch_size]
            choices = list(chooser.map([line.prompt for line in batch], arguments.batch_size, progress=False))
            new = list(zip(batch, choices, strict=True))[max(0, num_done - start) :]
            results.write(b"".join(line.answered(_results(choice)) for line, choice in new))
            results.endings.update(choice.ended for _, choice in new)
            bar.update(len(new))
    results.finish()
    done = f"answered {counted(len(prompts) - num_done, 'prompt')} in {duration(time.perf_counter() - begin)}"
    told = _told(results.endings)
    if told and num_done > 0:
        done = f"{done}; {arguments.output} has {counted(len(prompts), 'answer')}"
    _say(done + told)
    return 0


def _told(endings: Counter[str]) -> str:
    """How the answers of a run ended, unless all of them are simply complete."""
    if set(endings) <= {"complete"}:
        return ""
    return ": " + ", ".join(f"{endings[ending]:,} {ending}" for ending in ENDINGS if endings[ending])


def _check_prompts(tokenizer: PreTrainedTokenizerBase, prompts: Sequence[PromptLine]) -> tuple[int, str]:
    """Tokenize every prompt, so that none fails in the middle of the work; the longest one's length and place."""
    from jinja2 import TemplateError

    from ..integrations._hf_prompts import encode

    longest = (0, "")
    refusals = (TrieautoError, TemplateError, TypeError)  # the last from templates, for content of a wrong kind
    for line in prompts:
        try:
            longest = max(longest, (len(encode(tokenizer, line.prompt)), line.place))
        except refusals as error:
            raise CommandError(f"{line.place}: {reason(error)}") from error
    return longest


def _check_length(config: PretrainedConfig, length: int, place: str) -> None:
    """Refuse a prompt that fills the model's context, where the model has one of a fixed length.

    Only where there is no budget: with one, ``Chooser`` refuses such a prompt alone.
    """
    context = getattr(config.get_text_config(decoder=True), "max_position_embeddings", None)
    if context is not None and length >= context:
        raise CommandError(f"{place}: the prompt has {length:,} tokens, and the model's context only {context:,}")


def _results(choice: Choice) -> dict[str, Any]:
    is_refused = choice.error is not None
    results = {
        "value": choice.value,
        "log_probability": None if is_refused else choice.log_probability,
        "num_tokens": len(choice.token_ids),
        "num_forward_passes": choice.num_forward_passes,
        "ended": choice.ended,
    }
    return {**results, ERROR_KEY: str(choice.error)} if is_refused else results


def _say(text: str) -> None:
    print(text, file=sys.stderr)
