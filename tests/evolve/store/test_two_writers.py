"""Two processes that insert at once: nothing lost, nothing doubled, the policy after every commit.

SHOAL_SECONDS=60 runs each of them for a minute.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.evolve.store.nursery import Nursery, nursery
from tests.evolve.store.registry import make, place
from tests.io.postgres import PostgresUnavailableError, postgres_server

import shoal


@pytest.fixture(scope="module")
def parent() -> Iterator[Nursery]:
    with nursery() as found:
        yield found


def race(url: str, parent: Nursery, folder: Path, seconds: float) -> None:
    """Let two writers loose on one store, then count."""
    make(url).close()
    results = [folder / f"{name}.json" for name in range(2)]
    for name, path in enumerate(results):
        parent.child(work="writer", url=url, name=name, seconds=seconds, result=str(path))
    until = time.monotonic() + seconds + 60
    while not all(path.exists() for path in results) and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(0.2)
    told = [json.loads(path.read_text()) for path in results]
    assert [one["problem"] for one in told] == [None, None]
    store = shoal.Store.open(url)
    store.check().require()
    keys = store.keys()
    assert len(set(keys)) == len(keys)
    # Each shared batch was applied by exactly one of the two.
    shared_turns = range(0, max(one["turns"] for one in told), 4)
    assert sum(one["shared"] for one in told) == len(shared_turns)
    expected = {str(i) for i in range(60)} | {str(100 + turn + i) for turn in shared_turns for i in range(3)}
    for one in told:
        expected |= set(one["keys"])
    assert set(keys) == expected
    assert min(one["applied"] for one in told) >= 3
    assert len(store.batches()) == 1 + sum(one["applied"] for one in told) + len(shared_turns)
    store.close()


def test_two_writers_on_sqlite(parent: Nursery, tmp_path: Path) -> None:
    race(f"sqlite:///{tmp_path}/registry.db", parent, tmp_path, float(os.environ.get("SHOAL_SECONDS", "15")))


def test_two_writers_on_postgresql(parent: Nursery, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    try:
        with postgres_server() as server, place(server) as url:
            race(url, parent, tmp_path, float(os.environ.get("SHOAL_SECONDS", "6")))
    except PostgresUnavailableError as reason:
        pytest.skip(f"PostgreSQL: {reason}")
