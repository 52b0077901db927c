"""Processes that work on a store and may be killed: a warm parent forks one for every line it reads.

Compiled code is loaded once, before the first fork; polars, whose threads do not survive a fork, is used only after it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[3]
RELEASE_EVERY = 7


class Nursery:
    """The test's side."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def child(self, **task: Any) -> int:
        """Start a child; its process id, once it is at work."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer.strip(), "the child ended before it began to work"
        return int(answer)


@contextmanager
def nursery() -> Iterator[Nursery]:
    """A warm parent process, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from tests.evolve.store.nursery import main; main()"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Nursery(process)
    finally:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def main() -> None:
    """The warm parent."""
    warnings.simplefilter("ignore")
    _warm()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(reading)
            code = 1
            try:
                task = json.loads(line)
                WORK[task.pop("work")](writing, **task)
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            print(pipe.readline().strip(), flush=True)


def batch(index: int) -> dict[str, Any]:
    """The batch of this number: some come, some change, some of those that came five batches ago go."""
    from tests.evolve.store.registry import people

    first = 1_000 + 10 * index
    parts: dict[str, Any] = {"insert": people(first, 6, seed=1), "update": people(index % 40, 3, seed=index + 2)}
    if index >= 5:
        parts["delete"] = [str(first - 50 + i) for i in range(4)]
    return parts


def applied(store: Any) -> int:
    """How many of these batches the store has."""
    return sum(1 for line in store.batches() if line["batch"] is not None)


def _endless(ready: int, url: str, folder: str) -> None:
    """Batches and releases until somebody kills this process; it leaves a byte for each in a file."""
    import shoal
    from shoal.evolve.store.live import read_state

    store = shoal.Store.open(url)
    index = applied(store)
    with store._database.reading() as connection:  # the first batch then begins at once
        store._load(connection, read_state(connection))
    os.write(ready, f"{os.getpid()}\n".encode())
    while True:
        store.apply(**batch(index), batch=f"batch {index}")
        with (Path(folder) / f"{os.getpid()}.done").open("ab") as done:
            done.write(b".")
        index += 1
        if index % RELEASE_EVERY == 0:
            store.release(Path(folder) / f"{index}-{os.getpid()}.csv", allow_exposure=True)


def _creator(ready: int, url: str) -> None:
    """A store that somebody may not let come to be."""
    from tests.evolve.store.registry import make

    os.write(ready, f"{os.getpid()}\n".encode())
    make(url, 3_000)
    time.sleep(60)


def _writer(ready: int, url: str, name: int, seconds: float, result: str) -> None:
    """Inserts and deletions next to another writer's; some batches are given by both."""
    from tests.evolve.store.registry import people

    import shoal

    store = shoal.Store.open(url)
    there: set[str] = set()
    counts = {"applied": 0, "shared": 0}
    random = np.random.default_rng(name)
    os.write(ready, f"{os.getpid()}\n".encode())
    ends, turn = time.monotonic() + seconds, 0
    problem = None
    try:
        while time.monotonic() < ends:
            first = 1_000_000 * (name + 1) + 10 * turn
            size = int(random.integers(1, 8))
            parts: dict[str, Any] = {"insert": people(first, size)}
            if turn % 3 == 2:
                gone = sorted(there)[:4]
                parts["delete"] = gone
                there -= set(gone)
            store.apply(**parts, batch=f"{name} {turn}")
            there |= {str(first + i) for i in range(size)}
            store.check().require()
            if turn % 4 == 0:
                shared = store.insert(people(100 + turn, 3), batch=f"shared {turn}")
                counts["shared"] += shared.applied
                store.check().require()
            counts["applied"] += 1
            turn += 1
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    Path(result).write_text(json.dumps({**counts, "keys": sorted(there), "turns": turn, "problem": problem}))


WORK = {"creator": _creator, "endless": _endless, "writer": _writer}


def _warm() -> None:
    """Load what a batch needs, by a table made of plain arrays."""
    import sqlalchemy  # noqa: F401
    from tests.evolve.store.registry import POLICY

    import shoal.evolve.releases.history
    import shoal.evolve.store.publish
    import shoal.evolve.store.store  # noqa: F401
    from shoal.evolve.i3m.classes import Binding, Classes
    from shoal.models import Sensitive
    from shoal.space import Interval, Set, Space

    n = 40
    random = np.random.default_rng(0)
    codes = np.stack([random.integers(0, 9, n), random.integers(0, 3, n)], axis=1).astype(np.int32)
    secrets = (np.arange(n) % 4).astype(np.int32)[:, None]
    space = Space((Interval(np.arange(9.0), 8.0), Set(("a", "b", "c"))), np.ones(2), "ncp")
    illness = Sensitive("illness", secrets[:, 0], ("a", "b", "c", "d"))
    classes = Classes(space, codes, np.arange(n) // 4, Binding(POLICY, [illness]), secrets)
    classes.insert(codes, secrets)
    classes.delete(range(0, n, 3))
    classes.optimize()
