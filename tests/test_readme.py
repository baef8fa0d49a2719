"""What the pages for users say runs as written: Python with a real model, commands, links. (The README's programs for
serving engines are run by ``tests/engines``, where these are installed.)"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedModel, PreTrainedTokenizerBase

import trieauto
from trieauto.cli import main
from trieauto.demo_sets import tool_names

from .engines.models import save_smollm2
from .pages import README, ROOT, anchors, commands, engine_of, files_named, links, pages, python_blocks

TOOLS = {"get_weather", "get_time", "send_mail"}
MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.fixture(scope="module")
def place(
    smollm2_model: PreTrainedModel,
    smollm2_tokenizer: PreTrainedTokenizerBase,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A directory that has the model under the name by which the README asks for it."""
    directory = tmp_path_factory.mktemp("readme")
    save_smollm2(smollm2_model, smollm2_tokenizer, directory / MODEL)
    return directory


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That directory, as the current one: some blocks write files."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return place


def run(block: str, names: dict[str, Any]) -> Any:
    """Run a block. Its last line is most often an expression whose value a reader would look at: that is returned."""
    *statements, last = block.strip().splitlines()
    if re.match(r"[a-z_]+ = |    |\)", last):
        exec(block, names)
        return None
    exec("\n".join(statements), names)
    return eval(last.split("  #")[0], names)


def test_the_blocks_of_the_readme(here: Path) -> None:
    blocks = [block for block in python_blocks(README) if not engine_of(block)]
    assert len(blocks) == 8
    names: dict[str, Any] = {}
    for block in blocks:
        shown = run(block, names)
        if "Chooser" in block:
            assert shown in TOOLS
            assert names["choice"].ended in ("complete", "completed under the budget")
        elif "from_grammar" in block or "restricted_to" in block:
            assert repr(shown) == block.rstrip().split("# ")[-1]
        elif "json_schema" in block:
            assert names["constraint"].automaton.accepts(re.findall(r"# (\{.*\})", block)[0])
            assert names["matcher"].remaining_tokens == 40
        elif "fixed_format" in block:
            assert names["constraint"].min_tokens <= names["matcher"].remaining_tokens == 40
        elif "token_automaton" in block:
            assert shown is True
        else:
            assert shown in TOOLS


def test_the_blocks_about_hugging_face(
    smollm2_model: PreTrainedModel, smollm2_tokenizer: PreTrainedTokenizerBase
) -> None:
    blocks = python_blocks(ROOT / "examples" / "huggingface" / "README.md")
    assert len(blocks) == 5
    names: dict[str, Any] = {"model": smollm2_model, "tokenizer": smollm2_tokenizer}
    for block in blocks:
        shown = run(block, names)
        if "chooser.map" in block:
            assert names["choice"].value in TOOLS
            assert {answer.value for answer in names["answers"]} <= TOOLS
        elif "several" in block:
            assert len(set(shown)) == len(shown) >= 2
            assert set(shown) <= TOOLS
        elif "Hierarchy" in block:
            grouped, *others = shown
            assert grouped in {"get_weather", "get_forecast", "send_mail", "read_mail"}
            assert set(others) <= TOOLS
        elif "generate_constrained" in block:
            assert shown is True
        else:
            assert shown in TOOLS


def test_the_commands_of_the_readme(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "tools.txt").write_text("\n".join(sorted(TOOLS)) + "\n")
    (here / "prompts.jsonl").write_text('{"prompt": "The tool for mail is "}\n{"prompt": "What time is it? "}\n')
    found = commands(README, "trieauto")
    assert len(found) == 3
    for command in found:
        assert main(shlex.split(command.replace("DIRECTORY", MODEL))[1:]) == 0, command
    assert "2 prompts" in capsys.readouterr().err
    assert len((here / "answers.jsonl").read_text().splitlines()) == 2
    assert (here / "page.html").read_text().startswith("<!doctype html>")
    for command in commands(README, "bash"):
        assert (ROOT / command.split()[1]).is_file()


def test_what_sets_take_is_as_the_readme_says(smollm2_tokenizer: PreTrainedTokenizerBase) -> None:
    vocabulary = trieauto.Vocabulary.from_tokenizer(smollm2_tokenizer)
    for values in (["a"], ["", "a", "ab"], tool_names(1000), [f"{number:x}" for number in range(5000)]):
        automaton = trieauto.choices(values)
        num_states, num_values = automaton.num_states, len(values)
        assert num_states == 1 + len({value[:end] for value in values for end in range(1, len(value) + 1)})
        assert automaton.nbytes == 6 * num_states + 16 * num_values
        constraint = trieauto.compile(automaton, vocabulary, mode="lazy")
        before = constraint.nbytes
        assert automaton.nbytes <= before <= automaton.nbytes + 4 * num_states + 1024
        assert constraint.distances().nbytes == 4 * num_states
        assert constraint.nbytes <= automaton.nbytes + 4 * num_states + 1024
    language = trieauto.regex("[a-f]{3}(x|yz)+")
    assert language.nbytes <= 5 * (language.num_states + 1) + 5 * len(language.labels)


PLACES = ("", "trieauto", "trieauto/kernels", "trieauto/sources", "integrations", "tests", "examples/benchmarks")


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_are_there(page: Path) -> None:
    places = [page.parent, *(ROOT / place for place in PLACES)]
    for name in files_named(page):
        assert any(list(place.glob(name)) for place in places), f"{page.name} speaks of {name}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in links(page):
        file, _, heading = target.partition("#")
        linked = page.parent / file if file else page
        assert linked.exists(), f"{page.name} links to {target}"
        assert not heading or heading in anchors(linked), f"{page.name} links to {target}"
