"""Retention: what is dropped of old releases, and that neither the audit nor a guard answers otherwise for it."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.evolve.store.registry import SCHEMA, make, people
from tests.evolve.store.test_histories import Histories

import shoal
from shoal.errors import ConfigError, InputError, ShoalError
from shoal.evolve.releases.guards import Shown
from shoal.evolve.store import archive, publish, tables
from shoal.evolve.store.changes import read_frame
from shoal.evolve.store.live import read_state
from shoal.evolve.store.seals import release_seal, rows_seal
from shoal.evolve.store.settings import decode_rows

# Random histories beside those of test_histories.py, each of which is looked at twice as closely.
TRIED = 12


def releases(store: shoal.Store) -> tuple[Shown, ...]:
    with store._database.reading() as connection:
        like = decode_rows([], read_state(connection).types)
        return archive.read_memory(connection, store.settings, like).releases


def equal(one: Shown, other: Shown) -> bool:
    """Whether two remembered releases are the same, row by row."""
    assert one.lives is not None and other.lives is not None
    arrays = [(one.records, other.records), (one.classes, other.classes)]
    arrays += [(one.lives[name], other.lives[name]) for name in one.lives]
    same = all(np.array_equal(*pair) for pair in arrays) and one.lives.keys() == other.lives.keys()
    return same and one.frame.equals(other.frame) and dict(one.texts or {}) == dict(other.texts or {})


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> list[Shown]:
    """What was to be remembered of each release, as it was before it was written: what all its rows say, and not only those
    of the classes that changed."""
    found: list[Shown] = []
    whole = archive.Memory.written

    def noted(self: Any, shown: Shown, kept: Shown) -> Any:
        assert equal(kept, self._arranged(replace(shown, texts=kept.texts)))
        found.append(kept)
        return whole(self, shown, kept)

    monkeypatch.setattr(archive.Memory, "written", noted)
    return found


@pytest.mark.parametrize("guard", ["none", "batching", "m-invariance"])
def test_a_release_is_read_back_as_it_was_remembered(guard: Any, remembered: list[Shown], tmp_path: Path) -> None:
    note = {"role": "identifier"} if guard == "m-invariance" else {"role": "other", "accept": "made up"}
    schema = {**SCHEMA, "note": note}
    store = make(f"sqlite:///{tmp_path}/registry.db", 90, guard=guard, schema=schema, policy=shoal.KAnonymity(3))
    random = np.random.default_rng(7)
    for week in range(8):
        store.release(allow_exposure=True)
        keys = sorted(random.choice(list(map(int, store.keys())), 6, replace=False).tolist())
        changed = people(1000 * week, 3, seed=week).with_columns(id=pl.Series(keys[:3]))
        store.apply(insert=people(200 + 50 * week, 7), delete=keys[3:], update=changed)
        if week == 4:
            store.renew()
        if week == 5:
            store.withdraw(never_handed_out=True)
            remembered.pop()
        if week == 6:  # whole numbers become numbers
            store.update(people(int(store.keys()[0]), 1).with_columns(age=pl.lit(33.5)))
    store.release(allow_exposure=True)
    found = releases(store)
    assert len(found) == len(remembered) == 8
    for one, other in zip(found, remembered, strict=True):
        like = {name: found[-1].frame[name].dtype for name in other.frame.columns}
        assert equal(one, Shown(other.records, other.classes, other.frame.cast(like), other.lives, other.texts))
    store.check().require()


def test_what_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    store = make(f"sqlite:///{tmp_path}/registry.db", 600, guard="batching")
    store.release()
    for _ in range(5):
        store.release()
    sizes = [line["bytes"] for line in store.history()]
    members = sizes_of(tmp_path / "registry.db", "members")
    assert max(members[1:]) < members[0] / 4
    found = releases(store)
    assert all(one is found[0] for one in found[1:])
    store.update(people(3, 1).with_columns(age=pl.lit(44)))
    store.insert(people(1000, 40))
    store.release()
    assert max(members[1:]) < sizes_of(tmp_path / "registry.db", "members")[-1] < members[0]
    assert sizes[0] > members[0]


def sizes_of(path: Path, column: str) -> list[int]:
    with sqlite3.connect(path) as connection:
        rows = connection.execute(f"SELECT length({column}) FROM shoal_releases ORDER BY number").fetchall()
    connection.close()
    return [row[0] for row in rows]


def test_only_so_many_are_kept_in_full(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/registry.db"
    store = make(url, 2_000, guard="batching", retention=2)
    pages = []
    for week in range(9):
        store.insert(people(3000 + 20 * week, 20))
        store.release()
        pages.append(store.status()["bytes"])
    lines = store.history()
    assert [line["in_full"] for line in lines] == [False] * 7 + [True] * 2
    assert store.status()["releases_in_full"] == 2
    assert all(line["bytes"] > 0 for line in lines)
    # Each release more adds what changed, which is less than what one takes that is kept in full; the file grows by whole pages.
    assert np.diff(pages[3:]).mean() < lines[-1]["bytes"] / 2
    assert max(line["bytes"] for line in lines[1:7]) < sizes_of(tmp_path / "registry.db", "masked")[-1]
    with pytest.raises(InputError, match="Release 3 is not kept in full any more"):
        store.export(3, tmp_path / "third.csv")
    assert store.export(8, tmp_path / "eighth.csv").exists()
    store.check().require()
    assert not store.audit().exposed
    assert store.withdraw(never_handed_out=True).last == 8
    store.check().require()
    assert store.release().number == 10


def test_it_can_be_changed_and_the_file_becomes_smaller(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/registry.db"
    store = make(url, 500, guard="batching")
    for _ in range(8):
        store.release()
    before = store.status()["bytes"]
    other = shoal.Store.open(url)
    assert other.retain(3) == 5
    assert store.status()["bytes"] < before
    store.release()  # opened before, and still does as the store says
    assert [line["in_full"] for line in store.history()] == [False] * 6 + [True] * 3
    assert other.retain(None) == 0
    store.release()
    assert sum(line["in_full"] for line in store.history()) == 4
    assert shoal.Store.open(url).settings.retention is None
    other.check().require()
    for wrong in (0, -1, True, 2.0, "3"):
        with pytest.raises(ConfigError, match="how many releases are kept in full, at least 1"):
            other.retain(wrong)  # type: ignore[arg-type]


def test_a_table_that_is_missing_without_reason_is_named(tmp_path: Path) -> None:
    store = make(f"sqlite:///{tmp_path}/registry.db", retention=2, guard="batching")
    for _ in range(4):
        store.release()
    store.check().require()
    with sqlite3.connect(tmp_path / "registry.db") as connection:
        connection.execute("UPDATE shoal_releases SET masked = NULL WHERE number = 3")
    connection.close()
    assert store.check().problems == ("the table of release 3 is missing; restore the store from a backup.",)


class Retained(Histories):
    """Every release is compared with what a store would say that keeps a single one in full."""

    def _release(self, guard: Any) -> None:
        super()._release(guard)
        if not self.releases:
            return
        copy = Path(self.folder.name) / "copy.db"
        copy.unlink(missing_ok=True)
        with sqlite3.connect(Path(self.folder.name) / "registry.db") as source, sqlite3.connect(copy) as target:
            source.backup(target)
        source.close(), target.close()
        with shoal.Store.open(f"sqlite:///{copy}") as other:
            assert other.retain(1) == len(other.history()) - 1
            assert other.audit().to_dict() == self.store.audit().to_dict()
            assert self._next(other) == self._next(self.store)
            other.check().require()

    def _next(self, store: shoal.Store) -> Any:
        """What the next release would be, or why it would not be."""
        try:
            made = store.release(dry_run=True)
        except ShoalError as problem:
            return str(problem)
        return made.masked.rows(), made.waiting, made.audit.to_dict()


@pytest.mark.parametrize("block", range(2))
def test_audits_and_guards_answer_the_same_on_random_histories(block: int) -> None:
    machine: Any = seed(100 + block)(Retained)
    how = settings(
        max_examples=TRIED // 2,
        stateful_step_count=6,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=False,
        database=None,
    )
    run_state_machine_as_test(machine, settings=how)  # type: ignore[no-untyped-call]


def test_who_is_forgotten_while_a_release_is_made_does_not_come_back_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/registry.db"
    store = make(url, guard="batching")
    store.release()
    prepared = publish._prepared

    def meanwhile(*arguments: Any) -> Any:
        ready = prepared(*arguments)
        shoal.Store.open(url).forget(["7"])
        return ready

    monkeypatch.setattr(publish, "_prepared", meanwhile)
    with pytest.raises(InputError, match="Somebody was forgotten at the same moment"):
        store.release(tmp_path / "masked.csv")
    assert not (tmp_path / "masked.csv").exists() and len(store.history()) == 1
    monkeypatch.setattr(publish, "_prepared", prepared)
    assert store.release().number == 2


def test_tables_of_stores_made_before_are_read(tmp_path: Path) -> None:
    """They are Arrow files, and are read, gone on from and checked as what they are."""
    store = make(f"sqlite:///{tmp_path}/registry.db", 60, guard="batching")
    store.release()
    store.insert(people(100, 6))
    first = releases(store)[0]
    with store._database.writing() as connection:
        row = connection.execute(sa.select(tables.releases)).one()._mapping
        arrow = {name: as_arrow(row[name]) for name in ("members", "masked", "shown", "faces")}
        told = {**json.loads(row["manifest"]), "table_sha256": hashlib.sha256(arrow["masked"]).hexdigest()}
        row = {**row, **arrow, "manifest": json.dumps(told, ensure_ascii=False, sort_keys=True)}
        row |= {"seal": release_seal("", row), "rows_seal": rows_seal(row["shown"], row["faces"])}
        connection.execute(tables.releases.update().values(**row))
    store.check().require()
    assert equal(releases(store)[0], first)
    assert store.release().masked.height == 66
    assert pl.read_csv(store.export(1, tmp_path / "first.csv")).height == 60
    store.check().require()


def as_arrow(content: bytes) -> bytes:
    read_frame(content).write_ipc(buffer := io.BytesIO(), compression="zstd", compat_level=pl.CompatLevel.oldest())
    return buffer.getvalue()
