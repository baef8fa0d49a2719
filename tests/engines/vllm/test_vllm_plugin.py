"""The plug-in, in processes that start no engine: when it stands back, and what it replaces."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from . import engine  # noqa: F401 (says what vLLM is to load)

# isort: split
import torch
from vllm.plugins import load_general_plugins
from vllm.v1.core.sched.output import GrammarOutput
from vllm.v1.structured_output import StructuredOutputManager, utils

from trieauto import TrieautoError
from trieauto.integrations import _vllm_backend_hooks as hooks
from trieauto.integrations import _vllm_plugin as plugin

pytestmark = pytest.mark.vllm

LOAD = """
import sys
from vllm.plugins import load_general_plugins
from vllm.sampling_params import SamplingParams
load_general_plugins()
print(hasattr(SamplingParams._validate_structured_outputs, "_trieauto_backend"), "numba" in sys.modules)
"""


@pytest.mark.parametrize("wish", ["", "1"])
def test_processes_change_vllm_if_asked_and_stay_light(wish: str) -> None:
    environment = os.environ | {plugin.ENVIRONMENT: wish}
    done = subprocess.run([sys.executable, "-c", LOAD], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"{wish == '1'} False"


def test_untested_versions_are_left_alone(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("vllm.version.__version__", "0.99.0")
    applied: list[None] = []
    monkeypatch.setattr(hooks, "apply_hooks", lambda: applied.append(None))
    monkeypatch.setenv(plugin.ENVIRONMENT, "1")
    plugin.register()
    assert "0.99.0 is not a version it was tested with (0.32.0)" in caplog.text
    assert not applied
    monkeypatch.setenv(plugin.ENVIRONMENT, "force")
    plugin.register()
    assert len(applied) == 1


def test_a_changed_vllm_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugin.ENVIRONMENT, "1")
    plugin.register()
    monkeypatch.delattr(StructuredOutputManager, "grammar_bitmask")
    with pytest.raises(TrieautoError, match=r"0\.32\.0 has changed what trieauto's backend would change"):
        plugin.register()
    monkeypatch.undo()
    monkeypatch.setattr(StructuredOutputManager, "clear_backend", lambda manager, more: None)
    monkeypatch.setitem(hooks.METHODS, next(reversed(hooks.METHODS)), ["self", "other"])
    with pytest.raises(AttributeError, match="has the parameters manager, more, not self, other"):
        hooks.apply_hooks()
    monkeypatch.setenv(plugin.ENVIRONMENT, "yes")
    with pytest.raises(TrieautoError, match="must be '1', 'force' or '0'"):
        plugin.register()


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_masks_are_applied_as_vllm_applies_them(data: st.DataObject) -> None:
    load_general_plugins()
    count = data.draw(st.integers(1, 6), "requests")
    names = [f"r{number}" for number in range(count)]
    in_mask = data.draw(st.lists(st.sampled_from([*names, "elsewhere"]), min_size=1, unique=True), "in the mask")
    drafts = {
        name: [1] * length
        for name in [*names, "elsewhere"]
        if (length := data.draw(st.sampled_from([0, 0, 0, 1, 3]), name))
    }
    size = data.draw(st.sampled_from([31, 64, 100]), "size")
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    rows = sum(1 + len(drafts.get(name, ())) for name in in_mask)
    mask = rng.integers(-(2**31), 2**31, (rows, (size + 31) // 32), np.int64).astype(np.int32)
    dtype = data.draw(st.sampled_from([torch.float32, torch.bfloat16]), "dtype")
    logits = torch.randn(sum(1 + len(drafts.get(name, ())) for name in names), size).to(dtype)
    arguments = (
        SimpleNamespace(scheduled_spec_decode_tokens=drafts),
        GrammarOutput(in_mask, mask),
        SimpleNamespace(req_ids=names),
    )
    ours, theirs = logits.clone(), logits.clone()
    utils.apply_grammar_bitmask(*arguments, ours)
    if set(in_mask) != {"elsewhere"}:
        getattr(utils.apply_grammar_bitmask, hooks._MARK)(*arguments, theirs)
    assert torch.equal(ours, theirs)
