"""A real server of an engine, in processes of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import requests
from urllib3.util import Retry

START_SECONDS = 300


def free_port() -> int:
    """A port on which nobody listens now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@dataclass(frozen=True)
class Answer:
    """What a request was answered: an error if ``status`` is not 200."""

    status: int
    text: str
    num_tokens: int = 0
    finish: str = ""
    meta: Any = None

    @property
    def is_refused(self) -> bool:
        return self.status == 400

    def check(self, is_valid: Callable[[str], Any], max_tokens: int) -> None:
        """Make sure that it is a whole answer within its budget."""
        assert self.status == 200, self
        assert is_valid(self.text), self
        assert self.num_tokens <= max_tokens
        assert self.finish in ("stop", "length")


class EngineServer:
    """A server, all of whose processes are ended with it."""

    def __init__(self, command: Sequence[str], port: int, log: Path, environment: dict[str, str]) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=os.environ | environment,
                cwd=log.parent,  # in the repository its ``trieauto`` would hide the installed one
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def post(self, path: str, timeout: float = 300, **body: Any) -> requests.Response:
        """One request, with a body in JSON."""
        return self._session.post(self.url + path, json=body, timeout=timeout)

    def memory(self) -> int:
        """Bytes of memory of all processes."""
        processes = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        return sum(process.memory_info().rss for process in processes)

    def logged(self, text: str) -> list[str]:
        """The lines of the log that hold a text."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if text in line]
