"""An engine in this process, with vLLM's V1 model runner, that serves structured outputs by trieauto, too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trieauto.serving import ENVIRONMENT

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ["TRIEAUTO_VLLM_BACKEND"] = "1"
from vllm import LLM

MODEL_LEN = 256
STOP_ID = 151645  # <|im_end|>
LETTER_A = 64


@contextmanager
def engine(model: Path, sets: Path) -> Iterator[LLM]:
    """An engine whose cache is so small that requests are thrown out of the batch, and come back."""
    os.environ[ENVIRONMENT] = str(sets)
    llm = LLM(
        model=str(model),
        dtype="bfloat16",
        max_model_len=MODEL_LEN,
        enforce_eager=True,
        max_num_seqs=16,
        block_size=32,
        num_gpu_blocks_override=20,
        enable_prefix_caching=False,
        disable_log_stats=False,
    )
    yield llm
    llm.llm_engine.engine_core.shutdown()
    del os.environ[ENVIRONMENT]
