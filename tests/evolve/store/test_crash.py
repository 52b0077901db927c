"""Kill −9 at any moment: the batch is wholly in or wholly out, and the store can prove itself."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.evolve.store.nursery import Nursery, applied, batch, nursery
from tests.evolve.store.registry import kept, make, people, place, same
from tests.io.postgres import PostgresUnavailableError, postgres_server

import shoal
from shoal.errors import InputError
from shoal.manifest import manifest_path
from shoal.release import file_digest

TURNS = 12


@pytest.fixture(scope="module")
def parent() -> Iterator[Nursery]:
    with nursery() as found:
        yield found


def wait(progress: Path, batches: int) -> float:
    """Until a child has done so many batches; how long one took."""
    started = time.monotonic()
    while batches and (progress.stat().st_size if progress.exists() else 0) < batches:
        assert time.monotonic() < started + 60, "the child does not get on"
        time.sleep(0.002)
    return (time.monotonic() - started) / batches if batches else 0.05


def crash(url: str, parent: Nursery, folder: Path, kills: int) -> None:
    """Kill a child at work again and again, and prove the store after each time."""
    make(url).close()
    random = np.random.default_rng(kills)
    model = {row["id"]: row for row in kept(people(0, 60)).to_dicts()}
    done, usual = 0, 0.05
    for _ in range(kills):
        child = parent.child(work="endless", url=url, folder=str(folder))
        usual = 0.8 * usual + 0.2 * wait(folder / f"{child}.done", int(random.integers(0, 3)))
        # Somewhere in the next batch, or in the release after it.
        time.sleep(float(random.uniform(0, 1.3 * usual)))
        os.kill(child, signal.SIGKILL)
        with shoal.Store.open(url) as store:
            found = store.check().require()
            now = applied(store)
            for index in range(done, now):
                parts = batch(index)
                rows = kept(pl.concat([parts["insert"], parts["update"]]))
                model.update({row["id"]: row for row in rows.to_dicts()})
                for key in parts.get("delete", []):
                    del model[key]
            done = now
            assert found.records == len(model)
            table = store.records()
            assert same(table, pl.DataFrame(list(model.values()), schema=table.schema))
            releases = len(store.history())
    # Every file that came to be is whole and one of the releases that the store knows.
    files = [path for path in folder.glob("*.csv") if not path.name.startswith(".")]
    for path in files:
        told = json.loads(manifest_path(path).read_text())
        assert told["output_sha256"] == file_digest(path)
        assert 1 <= told["release"] <= releases
    assert len(files) <= releases
    assert done > kills / 2, "the children were killed before they did anything"


def test_crashes_on_sqlite(parent: Nursery, tmp_path: Path) -> None:
    crash(f"sqlite:///{tmp_path}/registry.db", parent, tmp_path, 50)


def test_crashes_on_postgresql(parent: Nursery, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    try:
        with postgres_server() as server, place(server) as url:
            crash(url, parent, tmp_path, 20)
    except PostgresUnavailableError as reason:
        pytest.skip(f"PostgreSQL: {reason}")


def test_crashes_while_a_store_is_made(parent: Nursery, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    made = 0
    for turn in range(TURNS):
        url = f"sqlite:///{tmp_path}/{turn}.db"
        child = parent.child(work="creator", url=url)
        time.sleep(float(random.uniform(0, 0.6)))
        os.kill(child, signal.SIGKILL)
        try:
            store = shoal.Store.open(url)
            made += 1
        except InputError:
            with pytest.raises(InputError, match="no store"):
                shoal.Store.open(url)
            store = make(url, 30)
        assert store.check().require().records in (30, 3_000)
        store.close()
    assert made < TURNS, "every store was finished before its maker was killed"
