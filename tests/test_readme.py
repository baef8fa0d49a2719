"""The README's Python blocks run as written, one after the other, with a real model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedModel, PreTrainedTokenizerBase

README = Path(__file__).parent.parent / "README.md"
TOOLS = {"get_weather", "get_time", "send_mail"}


def test_the_blocks_run(
    smollm2_model: PreTrainedModel,
    smollm2_tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 11
    names: dict[str, Any] = {"model": smollm2_model, "tokenizer": smollm2_tokenizer}
    for block in blocks:
        # The last line of a block is an expression whose value a reader would look at.
        *statements, last = block.strip().splitlines()
        is_expression = not re.match(r"[a-z_]+ = |    ", last)
        exec("\n".join(statements if is_expression else [*statements, last]), names)
        if is_expression:
            names["shown"] = eval(last.split("  #")[0], names)
        if "chooser.map" in block:
            assert names["choice"].value in TOOLS
            assert {answer.value for answer in names["answers"]} <= TOOLS
        elif "from_grammar" in block or "restricted_to" in block:
            assert repr(names["shown"]) == last.split("# ")[1]
        elif "json_schema" in block:
            assert names["constraint"].automaton.accepts(re.findall(r"# (\{.*\})", block)[0])
            assert names["matcher"].remaining_tokens == 40
        elif "several" in block:
            assert len(set(names["shown"])) == len(names["shown"]) >= 2
            assert set(names["shown"]) <= TOOLS
        elif "token_automaton" in block or "fixed_format" in block or "generate_constrained" in block:
            assert names["shown"] is True
        else:
            assert names["shown"] in TOOLS
