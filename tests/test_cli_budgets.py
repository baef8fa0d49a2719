"""The command ``trieauto`` with token budgets: what ``inspect`` says of them, what ``choose`` does under one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as TokenizerOfPieces
from tokenizers import decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from trieauto.cli import main
from trieauto.cli.errors import CommandError
from trieauto.cli.models import load_model, load_tokenizer
from trieauto.cli.prompts import ERROR_KEY, RESULT_KEYS, read_prompts
from trieauto.cli.results import ResultFile
from trieauto.cli.run_record import RunRecord
from trieauto.cli.tokenizers import load_vocabulary
from trieauto.demo_sets import tool_names
from trieauto.integrations.hf import Chooser
from trieauto.reference.prefix_space import PrefixSpace, spellings

from . import tiny_models as tiny
from .test_cli import Output, failure, inspected, tiktoken_file, write
from .tokenizers_for_tests import mistral_file


def fewest_tokens(text: bytes, tokens: Sequence[bytes]) -> int | None:
    """How many tokens spell a text at least; None if none do."""
    fewest: list[int | None] = [0]
    for end in range(1, len(text) + 1):
        counts = [fewest[end - len(token)] for token in tokens if text[:end].endswith(token)]
        fewest.append(min((count + 1 for count in counts if count is not None), default=None))
    return fewest[-1]


def fewest_of_values(values: Sequence[str], tokens: Sequence[bytes], prefix_space: PrefixSpace) -> list[int]:
    """The same for each value that can be spelled."""
    fewest = []
    for value in values:
        counts = [fewest_tokens(text, tokens) for text in spellings([value.encode()], prefix_space)]
        possible = [count for count in counts if count is not None]
        fewest.extend([min(possible)] if possible else [])
    return fewest


# inspect


@pytest.mark.parametrize("prefix_space", ["none", "optional", "required"])
def test_inspect_knows_the_fewest_tokens_of_any_value_and_of_all(
    prefix_space: PrefixSpace, capsys: Output, tmp_path: Path
) -> None:
    values = [*tool_names(40), "Zürich", "東京", "get"]
    path = write(tmp_path / "values.json", json.dumps(values))
    tokenizer = mistral_file("tokenizer.model.v1")
    report = inspected(capsys, path, "--tokenizer", tokenizer, "--prefix-space", prefix_space)
    tokens = [token for token in load_vocabulary(str(tokenizer))[0].tokens if token]
    fewest = fewest_of_values(values, tokens, prefix_space)
    assert (report["min_tokens"], report["enough_tokens"]) == (min(fewest), max(fewest))
    assert report["budget"] is None


def test_values_that_cannot_be_spelled_need_no_budget(capsys: Output, tmp_path: Path) -> None:
    path = write(tmp_path / "values.txt", "ab\naab\nzzzzzzzz\n")
    report = inspected(capsys, path, "--tokenizer", tiktoken_file(tmp_path / "t", [b"a", b"b", b"ab"]))
    assert report["unreachable_values"] == ["zzzzzzzz"]
    assert (report["min_tokens"], report["enough_tokens"]) == (1, 2)


@pytest.mark.parametrize(
    ("max_tokens", "start_tokens", "num_values"),
    [(1, None, 0), (2, 1, 1), (3, 3, 2), (4, 4, 2), (1_000_000, 4, 2)],
)
def test_inspect_shows_what_a_budget_leaves(
    max_tokens: int, start_tokens: int | None, num_values: int, capsys: Output, tmp_path: Path
) -> None:
    # "abc" "d" is the only answer of two tokens; of three there are "a" "bc" "d" and "bc" "d" "a".
    path = write(tmp_path / "values.txt", "abcd\nbcda\n")
    tokenizer = tiktoken_file(tmp_path / "t", [b"abc", b"b", b"bc", b"c", b"d", b"a"])
    arguments = (path, "--tokenizer", tokenizer, "--max-tokens", max_tokens)
    report = inspected(capsys, *arguments)
    error = "2 tokens are needed to finish, but the budget is 1" if max_tokens == 1 else None
    assert (report["min_tokens"], report["enough_tokens"], report["start_tokens"]) == (2, 3, 4)
    left = {"start_tokens": start_tokens, "num_values": num_values}
    assert report["budget"] == {"max_tokens": max_tokens, **left, "error": error}
    without = inspected(capsys, *arguments[:-2])
    assert report["memory"] == without["memory"]
    assert main(["inspect", *map(str, arguments)]) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = [" ".join(line.split()) for line in lines]
    assert "fewest tokens 2 of any answer; a stop token not counted" in shown
    assert "enough tokens 3 the least budget that leaves no value out" in shown
    expected = (
        "refused no answer has fewer than 2 tokens" if error else f"{num_values} of 2 values can be written in it"
    )
    assert f"budget of {max_tokens:,} {expected}" in shown
    assert error or f"{start_tokens} of 4 tokens legal at the start" in shown
    assert max(map(len, lines[1:])) <= 80


def test_the_empty_value_leaves_a_stop_token_out_of_the_count(capsys: Output, tmp_path: Path) -> None:
    path = write(tmp_path / "values.jsonl", '""\n"a"\n"aa"\n')
    report = inspected(capsys, path, "--tokenizer", tiktoken_file(tmp_path / "t", [b"a"]), "--max-tokens", 1)
    assert (report["min_tokens"], report["enough_tokens"]) == (0, 2)
    assert report["budget"] == {"max_tokens": 1, "start_tokens": 1, "num_values": 2, "error": None}


# choose

REFUSED = {
    "value": None, "log_probability": None, "num_tokens": 0, "num_forward_passes": 0, "ended": "refused", "error": "no"
}  # fmt: skip
ANSWER = {"value": "abc", "log_probability": -0.5, "num_tokens": 1, "num_forward_passes": 1, "ended": "complete"}


@pytest.mark.parametrize(
    ("changed", "ending"),
    [
        ({}, "refused"),
        (ANSWER | {"ended": "completed under the budget"}, None),  # and an error
        ({"value": "abc"}, None),
        ({"ended": "complete"}, None),
    ],
)
def test_a_refused_line_is_kept_wherever_the_file_is_cut_off(
    changed: dict[str, Any], ending: str | None, tmp_path: Path
) -> None:
    path = write(tmp_path / "prompts.jsonl", '{"prompt": "a"}\n{"prompt": "b"}\n')
    prompts = read_prompts(str(path), None)
    record = RunRecord.of(["abc"], None, "m", None, 4)
    complete = prompts[0].answered(ANSWER) + prompts[1].answered({**REFUSED, **changed})
    output = tmp_path / "output.jsonl"
    for length in range(len(complete)):
        output.write_bytes(complete[:length])
        with ResultFile(output, str(path)) as results:
            results.check(prompts, {"abc"}, record)
            assert results.endings.total() == results.num_done == complete[:length].count(b"\n")
    output.write_bytes(complete)
    with ResultFile(output, str(path)) as results:
        if ending is None:
            with pytest.raises(CommandError, match=r"output\.jsonl:2 is not an answer to line 2"):
                results.check(prompts, {"abc"}, record)
        else:
            results.check(prompts, {"abc"}, record)
            assert results.endings == {"complete": 1, ending: 1}


@pytest.mark.parametrize(
    "changed",
    [{"value": None}, {"value": ["abc"]}, {"ended": "refused"}, {"ended": "cut off"}, {"ended": None}],
)
def test_an_answer_is_a_value_and_ended_somehow(changed: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path / "prompts.jsonl", '{"prompt": "a"}')
    prompts = read_prompts(str(path), None)
    output = write(tmp_path / "output.jsonl", prompts[0].answered({**ANSWER, **changed}))
    with ResultFile(output, str(path)) as results, pytest.raises(CommandError, match="is not an answer to line 1"):
        results.check(prompts, {"abc"}, RunRecord.of(["abc"], None, "m", None, 4))


LETTERS = "abcdefgh"
MERGES = [("a", "b"), ("c", "d"), ("e", "f"), ("ab", "cd")]
TOKENS = [*LETTERS, *("".join(pair) for pair in MERGES)]
VALUES = ["abcdefgh", "ab", "abcd", "ghghgh", "cdcdg", "hhhhhhhh", "fade", "gg"]
CONTEXT = 16
PROMPTS = ["fade", "hg", "g" * (CONTEXT - 2), "beef", "a" * CONTEXT, "cab", "h" * (CONTEXT - 1), "face"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights and a context of 16 tokens, and its tokenizer of letters."""
    path = tmp_path_factory.mktemp("model")
    vocab = {token: number for number, token in enumerate(["<pad>", "<start>", "<stop>", "<end>", *TOKENS])}
    inner = TokenizerOfPieces(models.BPE(vocab, MERGES))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    make: Any = PreTrainedTokenizerFast  # it has no annotations
    tokenizer = make(tokenizer_object=inner, pad_token="<pad>", bos_token="<start>", eos_token="<stop>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<end>"]})
    tokenizer.save_pretrained(path)
    model = tiny.decoder(seed=3, num_logits=len(vocab))
    model.config.max_position_embeddings = CONTEXT
    model.save_pretrained(path)
    return path


@pytest.fixture
def job(tmp_path: Path, directory: Path) -> list[str]:
    values = write(tmp_path / "values.txt", "\n".join(VALUES))
    prompts = write(tmp_path / "prompts.jsonl", "".join(json.dumps({"prompt": text}) + "\n" for text in PROMPTS))
    arguments = ["choose", "--model", directory, "--values", values, "--prompts", prompts, "--batch-size", "3"]
    return [str(argument) for argument in arguments]


def chosen(job: Sequence[str], output: Output) -> tuple[list[dict[str, Any]], str]:
    """The lines of the output, and the one on stderr."""
    assert main(job) == 0
    written = output.readouterr()
    assert written.err.count("\n") == 1
    return [json.loads(line) for line in written.out.splitlines()], written.err.rstrip()


@pytest.mark.parametrize("max_new_tokens", [1, 2, 3, 4, 20])
def test_every_answer_fits_the_budget_and_the_context(max_new_tokens: int, job: list[str], capsys: Output) -> None:
    rows, summary = chosen([*job, "--max-new-tokens", str(max_new_tokens)], capsys)
    assert [row["prompt"] for row in rows] == PROMPTS
    tokens = [token.encode() for token in TOKENS]
    for row in rows:
        # Each letter of these prompts is a token, but for "ab" and "ef".
        left = CONTEXT - len(row["prompt"].replace("ab", "a").replace("ef", "e"))
        if left == 0:
            assert tuple(row) == ("prompt", *RESULT_KEYS, ERROR_KEY)
            error = row.pop("error")
            assert "needed" in error
            assert "the model's 16" in error
            assert {**row, "error": "no"} == {"prompt": row["prompt"], **REFUSED}
            continue
        assert tuple(row) == ("prompt", *RESULT_KEYS)
        fewest = fewest_tokens(row["value"].encode(), tokens)
        assert fewest is not None
        assert fewest <= min(max_new_tokens, left)
        assert row["num_tokens"] <= min(max_new_tokens, left)
    endings = [row["ended"] for row in rows]
    told = [
        f"{endings.count(ending)} {ending}"
        for ending in ("complete", "completed under the budget", "refused")
        if ending in endings
    ]
    assert endings.count("refused") == 1
    assert ("completed under the budget" if max_new_tokens < 20 else "complete") in endings
    assert summary.startswith("answered 8 prompts in ")
    assert summary.endswith(f": {', '.join(told)}")


def test_answers_under_a_budget_are_the_choosers(job: list[str], directory: Path, capsys: Output) -> None:
    model, tokenizer = load_model(str(directory)), load_tokenizer(str(directory))
    chooser = Chooser(model, tokenizer, VALUES, max_new_tokens=2)
    rows, _ = chosen([*job, "--max-new-tokens", "2"], capsys)
    choices = list(chooser.map(PROMPTS, batch_size=3, progress=False))
    assert [(row["value"], row["ended"], row.get("error")) for row in rows] == [
        (choice.value, choice.ended, None if choice.error is None else str(choice.error)) for choice in choices
    ]
    assert {choice.ended for choice in choices} >= {"completed under the budget", "refused"}


def test_a_run_goes_on_only_under_its_budget(job: list[str], tmp_path: Path, capsys: Output) -> None:
    output = tmp_path / "output.jsonl"
    job = [*job, "--output", str(output)]
    assert main([*job, "--max-new-tokens", "2"]) == 0
    told = capsys.readouterr().err.rstrip().partition(": ")[2]
    complete = output.read_bytes()
    lines = complete.splitlines(keepends=True)
    refused = PROMPTS.index("a" * CONTEXT)
    kept = b"".join(lines[: refused + 1])
    with_torn_line = kept + lines[refused + 1][:-9]
    prompts = job[job.index("--prompts") + 1]
    with ResultFile(write(output, with_torn_line), prompts) as results:
        results.check(read_prompts(prompts, None), set(VALUES), record := RunRecord.of(VALUES, None, job[2], None, 2))
        results.begin()
    assert output.read_bytes() == kept
    assert record.max_new_tokens == 2
    for other in ([], ["--max-new-tokens", "3"]):
        message = failure(capsys, *job, *other)
        assert f"{output} was begun with another --max-new-tokens: go on with the same" in message
        assert output.read_bytes() == kept
    assert main([*job, "--max-new-tokens", "2"]) == 0
    assert output.read_bytes().splitlines()[: refused + 1] == complete.splitlines()[: refused + 1]
    assert [json.loads(line)["value"] for line in output.read_bytes().splitlines()] == [
        json.loads(line)["value"] for line in lines
    ]
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"; {output} has 8 answers: {told}")
    assert main([*job, "--max-new-tokens", "2"]) == 0
    assert capsys.readouterr().err == f"{output} is complete: 8 prompts answered: {told}\n"


def test_without_a_budget_a_prompt_that_fills_the_context_ends_the_run(job: list[str], capsys: Output) -> None:
    assert failure(capsys, *job).endswith(":5: the prompt has 16 tokens, and the model's context only 16")


def test_a_budget_that_no_value_fits_is_refused_before_the_model_is_loaded(
    job: list[str], directory: Path, tmp_path: Path, capsys: Output
) -> None:
    only_tokenizer = tmp_path / "model"
    only_tokenizer.mkdir()
    for file in directory.glob("*.json"):
        (only_tokenizer / file.name).symlink_to(file)
    values = write(tmp_path / "v.txt", "hhhhhhhh\nabcdefgh\n")
    output = tmp_path / "output.jsonl"
    job = [*job, "--model", str(only_tokenizer), "--values", str(values), "--output", str(output)]
    message = failure(capsys, *job, "--max-new-tokens", 3)
    # "abcd" "ef" "g" "h"
    expected = f"{values}: no value can be finished within --max-new-tokens 3: raise it to at least 4"
    assert message == f"trieauto choose: {expected}"
    assert not output.exists()
    assert "cannot load the model" in failure(capsys, *job, "--max-new-tokens", 4)
