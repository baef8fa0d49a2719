"""A real SGLang server on the CPU, and requests to it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..server import Answer, EngineServer, free_port

COMMON = [
    "--device",
    "cpu",
    "--attention-backend",
    "torch_native",
    "--sampling-backend",
    "pytorch",
    "--host",
    "127.0.0.1",
]
COMMON += ["--disable-cuda-graph", "--max-total-tokens", "16384", "--context-length", "2048"]


class Server(EngineServer):
    """A server in processes of its own, all of which are ended with it."""

    def __init__(
        self, model: Path, *arguments: str, log: Path, grammar_backend: str = "trie", **environment: str
    ) -> None:
        port = free_port()
        command = [sys.executable, "-m", "sglang.launch_server", "--model-path", str(model.resolve())]
        command += ["--port", str(port), *COMMON, "--grammar-backend", grammar_backend, *arguments]
        super().__init__(command, port, log, {"SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": "1"} | environment)

    def generate(self, prompt: str = "The tool for this is ", max_tokens: int = 32, **options: Any) -> Answer:
        """One request to ``/generate``; options in capitals go beside the sampling parameters."""
        beside = {name.lower(): value for name, value in options.items() if name.isupper()}
        parameters = {name: value for name, value in options.items() if not name.isupper()}
        parameters = {"max_new_tokens": max_tokens, "temperature": 0, **parameters}
        response = self.post("/generate", text=prompt, sampling_params=parameters, **beside)
        data = response.json()
        if response.status_code != 200:
            return Answer(response.status_code, str(data))
        meta = data["meta_info"]
        return Answer(200, data["text"], meta["completion_tokens"], meta["finish_reason"]["type"], meta)

    def generate_all(self, jobs: Sequence[dict[str, Any]], at_once: int = 16) -> list[Answer]:
        """Many requests, so many at once."""
        with ThreadPoolExecutor(at_once) as threads:
            return list(threads.map(lambda job: self.generate(**job), jobs))

    def chat(self, content: str = "Which tool?", max_tokens: int = 64, **options: Any) -> Any:
        """One request to the OpenAI-compatible endpoint: the answer's JSON."""
        messages = [{"role": "user", "content": content}]
        options = {"temperature": 0, **options}
        response = self.post("/v1/chat/completions", model="m", messages=messages, max_tokens=max_tokens, **options)
        return response.json()
