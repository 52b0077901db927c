"""A studio that runs as people run it: the real command, on a free port, in a folder of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

PATIENT = 300.0
"""Seconds after which something that should come is said not to come; no test is about how long it takes."""


class Answered(NamedTuple):
    """What came back."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Served:
    """A studio and a program that talks to it, with its token."""

    def __init__(self, folder: Path, *more: str, **environment: str) -> None:
        self.folder = folder
        words = [
            sys.executable,
            "-m",
            "shoal",
            "studio",
            *more,
            "--folder",
            str(folder),
            "--port",
            "0",
            "--no-browser",
            "--json",
        ]
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read() if self.process.stderr else ""
        self.url: str = json.loads(line)["url"]
        parts = urlsplit(self.url)
        self.host, self.port = str(parts.hostname), int(parts.port or 0)
        self.token = parts.query.removeprefix("token=")
        self.said = ""

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answered:
        """One request, with the token unless another key is given."""
        told = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENT)
        try:
            connection.request(method, path, body, {key: value for key, value in told.items() if value})
            answer = connection.getresponse()
            return Answered(
                answer.status, answer.read().decode("utf-8", "replace"), {k.lower(): v for k, v in answer.getheaders()}
            )
        finally:
            connection.close()

    def view(self, page: str) -> Any:
        """The JSON twin of a page."""
        found = self.ask("GET", f"/{page}.json")
        assert found.status == 200, found.text
        return found.json

    def drawn(self, page: str) -> str:
        """The page as a browser gets it."""
        found = self.ask("GET", f"/{page}", Accept="text/html")
        assert found.status == 200, found.text
        return found.text

    def post(self, path: str, **fields: str) -> Answered:
        """A form."""
        return self.ask("POST", path, urlencode(fields).encode(), Content_Type="application/x-www-form-urlencoded")

    def upload(self, name: str, content: bytes) -> Answered:
        """A file, under whatever name."""
        head = f'--xyz\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        body = head + content + b"\r\n--xyz--\r\n"
        return self.ask("POST", "/data/upload", body, Content_Type="multipart/form-data; boundary=xyz")

    def opened(self, name: str, content: bytes) -> Any:
        """A file sent and looked at: the page Data when nothing is being worked on any more."""
        sent = self.upload(name, content)
        assert sent.status == 200, sent.text
        return self.settled()

    def settled(self) -> Any:
        """The page Data when nothing is being worked on any more."""

        def done() -> Any:
            page = self.view("data")
            waits = page["opening"] or any(
                page.get(part, {}).get("state") == "working" for part in ("looking", "weighing")
            )
            return None if waits else page

        return until(done)

    def raw(self, content: bytes, *, hang_up: bool = False) -> bytes:
        """Bytes as they are, and what is said to them before the connection is closed; or hang up when they are said."""
        with socket.create_connection((self.host, self.port), timeout=PATIENT) as connection:
            found = b""
            try:
                connection.sendall(content)
                if hang_up:
                    return b""
                while piece := connection.recv(65536):
                    found += piece
            except (ConnectionError, BrokenPipeError):
                pass
            return found

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        """Stop it, as Ctrl-C does."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        _, err = self.process.communicate(timeout=PATIENT)
        self.said = err or ""
        return self.process.returncode

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def until(found: Callable[[], Any]) -> Any:
    """What comes in the end."""
    end = time.monotonic() + PATIENT
    while time.monotonic() < end:
        value = found()
        if value is not None and value is not False:
            return value
        time.sleep(0.1)
    raise AssertionError("it did not come")


def alive(pid: int) -> bool:
    """Whether a process is there and not just waiting to be forgotten."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")
