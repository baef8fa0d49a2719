"""A real SGLang server on the CPU, and requests to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import requests
from urllib3.util import Retry

START_SECONDS = 300
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


@dataclass(frozen=True)
class Answer:
    """What ``/generate`` answered: an error if ``status`` is not 200."""

    status: int
    text: str
    num_tokens: int = 0
    finish: str = ""
    meta: Any = None

    @property
    def is_refused(self) -> bool:
        return self.status == 400


class Server:
    """A server in processes of its own, all of which are ended with it."""

    def __init__(
        self, model: Path, *arguments: str, log: Path, grammar_backend: str = "trie", **environment: str
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        command = [sys.executable, "-m", "sglang.launch_server", "--model-path", str(model), "--port", str(self.port)]
        command += [*COMMON, "--grammar-backend", grammar_backend, *arguments]
        with log.open("w") as output:
            self.process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=os.environ | {"SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": "1"} | environment,
                start_new_session=True,
            )
        self._session = requests.Session()
        # The server closes connections that were idle for some seconds, maybe just as one is used again.
        again = Retry(2, connect=0, read=2, allowed_methods=None)
        self._session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=128, max_retries=again))
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if requests.get(self.url + "/health", timeout=5).ok:
                    return
            except requests.RequestException:
                pass
            time.sleep(0.5)
        raise RuntimeError(f"the server did not start:\n{self.log.read_text()[-4000:]}")

    def stop(self) -> None:
        """End all processes of the server."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sign)
                self.process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def post(self, path: str, timeout: float = 300, **body: Any) -> requests.Response:
        """One request, with a body in JSON."""
        return self._session.post(self.url + path, json=body, timeout=timeout)

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

    def memory(self) -> int:
        """Bytes of memory of all processes."""
        processes = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        return sum(process.memory_info().rss for process in processes)

    def logged(self, text: str) -> list[str]:
        """The lines of the log that hold a text."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if text in line]
