"""Changes and releases of a store that are cancelled at any moment: the store is as it was, and can be used as before."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.evolve.store.registry import kept, make, people, same

import shoal
from shoal.errors import Cancelled
from shoal.evolve.releases.guards import Guard
from shoal.evolve.store.commit import Applied
from shoal.progress import Progress

# Processor seconds of a thread between two looks.
SECOND = 1.0


class Looks:
    """Counts how often a work looks up, and how long it does not; at the look of a certain number it is cancelled."""

    def __init__(self) -> None:
        self.count, self.longest, self.at, self.last = 0, 0.0, 0, threading.local()
        self.progress = Progress()

    def until(self, at: int = 0) -> Progress:
        """Count from the beginning, and cancel there (0: never). Returns the progress of the work that is counted."""
        self.count, self.longest, self.at, self.last, self.progress = 0, 0.0, at, threading.local(), Progress()
        self.last.time = time.thread_time()
        return self.progress

    def look(self, looking: Progress) -> None:
        """Somebody looks up."""
        if looking._whole is not self.progress._whole:
            return
        now = time.thread_time()
        self.count, self.longest = self.count + 1, max(self.longest, now - getattr(self.last, "time", now))
        self.last.time = now
        if self.count == self.at:
            assert looking.cancel()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    counted, check = Looks(), Progress.check

    def look(self: Progress) -> None:
        counted.look(self)
        check(self)

    monkeypatch.setattr(Progress, "check", look)
    return counted


def batch(store: shoal.Store, progress: Progress | None = None, job: str = "a job of its own") -> Applied:
    """People come, change and leave."""
    changed = people(0, 40, seed=5).with_columns(pl.lit(job).alias("job"))
    new = people(2_000, 100)
    return store.apply(insert=new, update=changed, delete=list(range(50, 90)), progress=progress)


def moments(of: int) -> list[int]:
    """Some looks of so many: the first, the last, and twelve in between."""
    between = np.random.default_rng(of).integers(1, of + 1, 12).tolist()
    return sorted({1, of, *between})


def cancelled(looks: Looks, work: Callable[[Progress], object]) -> Iterator[None]:
    """Cancel some work at several moments, one after the other; it must not come to its end."""
    for at in moments(looks.count):
        threads = threading.active_count()
        progress = looks.until(at)
        with pytest.raises(Cancelled):
            work(progress)
        assert threading.active_count() == threads
        yield


@pytest.fixture
def twins(tmp_path: Path) -> tuple[shoal.Store, shoal.Store]:
    """Two equal stores, of which one is disturbed."""
    one, other = (make(f"sqlite:///{tmp_path / name}", n=400, refine="thorough") for name in ("one.db", "other.db"))
    return one, other


def test_a_batch_that_is_cancelled_has_changed_nothing(
    looks: Looks, twins: tuple[shoal.Store, shoal.Store], tmp_path: Path
) -> None:
    disturbed, left_alone = twins
    batch(left_alone)  # compiles what there is to compile
    left_alone.undo()
    batch(left_alone, looks.until())
    assert looks.longest < SECOND
    before, files = disturbed.records(), sorted(tmp_path.iterdir())
    for _ in cancelled(looks, lambda progress: batch(disturbed, progress)):
        assert disturbed.records().equals(before)
        assert sorted(tmp_path.iterdir()) == files
    assert disturbed.check().passed
    batch(disturbed)
    assert same(disturbed.records(), kept(left_alone.records().with_columns(pl.lit("").alias("name"))))
    # The same classes come out as where nobody disturbed: nothing of what was begun is left in memory.
    assert disturbed.release().masked.equals(left_alone.release().masked)


@pytest.mark.parametrize("job", ["cook", "a job of its own"])
def test_whoever_raises_while_it_is_told_changes_nothing(job: str, twins: tuple[shoal.Store, shoal.Store]) -> None:
    disturbed, left_alone = twins
    told: list[str] = []
    batch(left_alone, Progress(lambda moment: told.append(moment.stage), every=0), job)
    # Where stages begin and end, and in the middle of one.
    edges = {at + side for at, (one, next_one) in enumerate(pairwise(told)) if one != next_one for side in (1, 2)}
    for number in sorted({*edges, len(told) // 2, len(told)}):
        count = 0

        def enough(_: object, number: int = number) -> None:
            nonlocal count
            count += 1
            if count == number:
                raise TimeoutError

        try:
            batch(disturbed, Progress(enough, every=0), job)
        except TimeoutError:
            continue
        assert number >= len(told)  # the last is told when the batch is in
        disturbed.undo()
    batch(disturbed, job=job)
    assert disturbed.release().masked.equals(left_alone.release().masked)


def test_undo_and_renewal_that_are_cancelled_have_changed_nothing(
    looks: Looks, twins: tuple[shoal.Store, shoal.Store]
) -> None:
    disturbed, left_alone = twins
    batch(disturbed), batch(left_alone)
    before = disturbed.records()
    left_alone.undo(progress=looks.until())
    for _ in cancelled(looks, lambda progress: disturbed.undo(progress=progress)):
        assert disturbed.records().equals(before)
    disturbed.undo()
    assert same(disturbed.records(), left_alone.records())
    left_alone.renew(progress=looks.until())
    assert looks.longest < SECOND
    version = disturbed.check().version
    for _ in cancelled(looks, lambda progress: disturbed.renew(progress=progress)):
        assert disturbed.check().version == version
    disturbed.renew()
    assert disturbed.release().masked.equals(left_alone.release().masked)


def test_forgetting_that_is_cancelled_has_forgotten_nobody(
    looks: Looks, twins: tuple[shoal.Store, shoal.Store], tmp_path: Path
) -> None:
    """Everything of them is still there, and the last batch can be undone, which forgetting would have made final."""
    disturbed, left_alone = twins
    for store in twins:
        store.release(guard="batching")
        batch(store)
        store.delete([120])
    keys = ["120", "121", "2050"]
    left_alone.forget(keys, progress=looks.until())
    assert looks.longest < SECOND
    before, versions = disturbed.records(), len(disturbed.batches())
    for _ in cancelled(looks, lambda progress: disturbed.forget(keys, progress=progress)):
        assert disturbed.records().equals(before)
        assert len(disturbed.batches()) == versions
    disturbed.check().require()
    with sqlite3.connect(tmp_path / "one.db") as connection:
        assert connection.execute("SELECT count(*) FROM shoal_left WHERE forgotten").fetchone() == (0,)
    connection.close()
    assert disturbed.undo().inserted == 1
    disturbed.delete([120])
    assert disturbed.forget(keys).forgotten == 3
    assert same(disturbed.records(), left_alone.records())
    disturbed.check().require()


@pytest.mark.parametrize("guard", ["none", "batching"])
def test_a_release_that_is_cancelled_is_neither_written_nor_remembered(
    guard: Guard, looks: Looks, twins: tuple[shoal.Store, shoal.Store], tmp_path: Path
) -> None:
    disturbed, left_alone = twins
    for store in twins:
        store.release(guard=guard)
        batch(store)
    with contextlib.suppress(Cancelled):  # compiles what there is to compile
        cancelled_late = Progress(lambda moment: moment.share > 0.6 and cancelled_late.cancel())
        left_alone.release(guard=guard, allow_exposure=True, progress=cancelled_late)
    whole = looks.until()
    expected = left_alone.release(tmp_path / "left_alone.csv", guard=guard, allow_exposure=True, progress=whole)
    assert looks.longest < SECOND
    files = sorted(tmp_path.iterdir())

    def release(progress: Progress) -> None:
        disturbed.release(tmp_path / "disturbed.csv", guard=guard, allow_exposure=True, progress=progress)

    for _ in cancelled(looks, release):
        assert sorted(tmp_path.iterdir()) == files
        assert len(disturbed.history()) == 1
    assert disturbed.release(guard=guard, allow_exposure=True).masked.equals(expected.masked)
    left_alone.audit(progress=looks.until())
    for _ in cancelled(looks, lambda progress: disturbed.audit(progress=progress)):
        pass
    left_alone.check(progress=looks.until())
    assert looks.longest < SECOND
    for _ in cancelled(looks, lambda progress: disturbed.check(progress=progress)):
        pass


def test_a_store_that_is_cancelled_is_not_there(looks: Looks, tmp_path: Path) -> None:
    make(f"sqlite:///{tmp_path / 'warm.db'}", n=400, refine="fast", progress=looks.until())
    for at in moments(looks.count):
        progress = looks.until(at)
        with pytest.raises(Cancelled):
            make(f"sqlite:///{tmp_path / 'new.db'}", n=400, refine="fast", progress=progress)
        assert not list(tmp_path.glob("*new.db*"))
