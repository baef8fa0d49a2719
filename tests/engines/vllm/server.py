"""A real vLLM server on the CPU, and requests to it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..server import Answer, EngineServer, free_port


class Server(EngineServer):
    """A server with its engine in another process, as vLLM starts it by itself."""

    def __init__(self, model: Path, *arguments: str, log: Path, **environment: str) -> None:
        port = free_port()
        command = [
            sys.executable,
            "-m",
            "vllm.entrypoints.openai.api_server",
            "--model",
            str(model.resolve()),
            "--port",
            str(port),
        ]
        command += ["--host", "127.0.0.1", "--enforce-eager", "--served-model-name", "m", *arguments]
        super().__init__(command, port, log, environment)

    def complete(self, argument: Any, max_tokens: int | None = 32, prompt: Any = "It is ", **options: Any) -> Answer:
        """One request to ``/v1/completions``."""
        if argument is not None:
            options["vllm_xargs"] = {"trieauto": argument}
        response = self.post(
            "/v1/completions", **{"model": "m", "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, **options}
        )
        data = response.json()
        if response.status_code != 200:
            return Answer(response.status_code, str(data))
        choice = data["choices"][0]
        return Answer(200, choice["text"], data["usage"]["completion_tokens"], choice["finish_reason"])

    def complete_all(self, jobs: Sequence[dict[str, Any]], at_once: int = 16) -> list[Answer]:
        """Many requests, so many at once."""
        with ThreadPoolExecutor(at_once) as threads:
            return list(threads.map(lambda job: self.complete(**job), jobs))

    def chat(self, argument: Any, **options: Any) -> Any:
        """One request to ``/v1/chat/completions``: the answer's JSON."""
        messages = [{"role": "user", "content": "Which tool?"}]
        options = {"max_tokens": 32, "temperature": 0, **options}
        xargs = {"trieauto": argument}
        return self.post("/v1/chat/completions", model="m", messages=messages, vllm_xargs=xargs, **options).json()
