"""The image does what its lines say. Where a builder is at hand it is built; everywhere its steps are walked by hand."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()


def said(word: str) -> list[str]:
    return [line.partition(" ")[2] for line in LINES if line.startswith(f"{word} ")]


def test_everything_that_is_copied_is_there_and_let_in() -> None:
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [name for line in said("COPY") if "--from" not in line for name in line.split()[:-1]]
    assert "src" in copied
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in allowed


def test_it_installs_extras_that_exist_and_runs_as_nobody_in_particular() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (install,) = [line for line in said("RUN") if "pip install" in line]
    asked = install.partition("[")[2].partition("]")[0].split(",")
    assert "studio" in asked
    assert set(asked) <= set(extras)
    assert said("USER") == ["shoal"]
    assert not any("SHOAL_STUDIO_PASSWORD" in line for line in LINES), "a password in an image is no secret"


def test_its_command_serves_and_its_health_is_asked_as_written(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    swapped = {"/data": str(tmp_path / "data"), "8700": port}
    command = [swapped.get(word, word) for word in json.loads(said("CMD")[0])]
    assert json.loads(said("ENTRYPOINT")[0]) == ["shoal"]
    health = json.loads(said("HEALTHCHECK")[0].partition("CMD ")[2])[1:]
    environment = {**os.environ, "SHOAL_STUDIO_PASSWORD": "long enough for this"}
    served = subprocess.Popen([sys.executable, "-m", "shoal", *command], env=environment, stdout=subprocess.PIPE)
    try:
        asked = [sys.executable, *(word.replace("8700", port) for word in health)]
        for _ in range(60):
            if (
                well := subprocess.run(asked, capture_output=True, check=False).returncode == 0
            ) or served.poll() is not None:
                break
            time.sleep(1)
        assert well
    finally:
        served.send_signal(signal.SIGINT)
        served.communicate(timeout=30)


def test_without_a_password_it_does_not_start(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SHOAL_STUDIO_PASSWORD"}
    command = ["studio", "--no-browser", "--folder", str(tmp_path), "--listen", "127.0.0.1", "--port", "0"]
    done = subprocess.run([sys.executable, "-m", "shoal", *command], env=environment, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"SHOAL_STUDIO_PASSWORD" in done.stderr


def test_it_is_built_where_there_is_a_builder() -> None:
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("No builder of images answers here; the steps of the Dockerfile are walked by the tests above.")
    subprocess.run(["docker", "build", "-q", str(ROOT)], check=True, timeout=1200)
