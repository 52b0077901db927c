"""Work in other processes: stopped, killed, and found again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.studio.serving import Served, alive, until

from shoal.datasets import hospital
from shoal.io import write_table

pytest.importorskip("starlette", reason="the studio's extra is not installed: pip install -e '.[studio]'")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "patients.csv"
    write_table(hospital(400, 3).drop("name", "record"), path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture
def served(folder: Path, table: Path) -> Iterator[Served]:
    with Served(folder, str(table)) as found:
        until(lambda: found.view("data").get("columns"))
        yield found


def begun(served: Served, effort: str) -> dict[str, Any]:
    """A candidate that is being made: its job, with the process that does it."""
    assert served.post("/run/make", algorithm="auto", effort=effort).status == 200

    def job() -> Any:
        one = served.view("run")["candidates"][-1]["job"]
        return one if one and one["state"] == "running" and one["share"] > 0 else None

    return dict(until(job))


def last(served: Served) -> Any:
    return served.view("run")["candidates"][-1]


def test_jobs_are_stopped_killed_and_found_again(served: Served, folder: Path, table: Path) -> None:
    # Stopped: when the answer comes, the process is gone, and so is what it had begun.
    job = begun(served, "thorough")
    assert alive(job["pid"])
    assert served.post("/run/drop", candidate=job["about"]).status == 200
    assert not alive(job["pid"])
    assert until(lambda: served.view("run")["candidates"] == [])
    assert not list((folder / "candidates").iterdir())

    # Killed from outside: it is told, and the studio goes on.
    job = begun(served, "thorough")
    os.kill(job["pid"], signal.SIGKILL)
    assert until(lambda: last(served)["state"] == "failed")
    assert "SIGKILL" in last(served)["sentence"] and "SIGKILL" in served.drawn("run")

    # Nobody looks on, and it is finished all the same.
    begun(served, "fast")
    assert until(lambda: last(served)["state"] == "done" or None)
    figures = last(served)["figures"]
    assert figures["passed"] and figures["smallest"] >= 5

    # One waits while another is made; a studio that is killed leaves no process behind.
    job = begun(served, "thorough")
    served.post("/run/make", algorithm="auto", effort="fast")
    assert last(served)["state"] == "waiting"
    served.end(signal.SIGKILL)
    assert until(lambda: not alive(job["pid"]))

    # Started again, everything is there: what was done is done, what was cut off says so.
    with Served(folder, str(table)) as again:
        found = {one["name"]: one for one in again.view("run")["candidates"]}
        assert {name: one["state"] for name, one in found.items()} == {
            "A": "failed",
            "B": "done",
            "C": "stopped",
            "D": "stopped",
        }
        assert found["B"]["figures"] == figures
        assert again.view("data")["columns"]
        assert again.view("release")["candidate"] == "B"


def test_the_process_that_answers_may_fall(served: Served, folder: Path) -> None:
    children = [
        int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and parent(path) == served.process.pid
    ]
    assert children
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    changed = served.post("/data/roles", **{"role:stay": "other"})
    assert changed.status in (200, 422)
    until(lambda: served.post("/data/roles", **{"role:stay": "identifier"}).status == 200)
    until(lambda: served.post("/data/retry").status == 200 and served.view("data")["weighing"]["state"] == "ready")
    roles = {column["name"]: column["role"] for column in served.view("data")["columns"]}
    assert roles["stay"] == "identifier"


def parent(path: Path) -> int:
    try:
        return int((path / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0
