"""The snapshot of a store: what is opened from it is what the records say, and one that is damaged or stale is never believed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa
from tests.evolve.store.registry import kept, make, people, same

import shoal
from shoal.evolve.store import snapshot, tables
from shoal.evolve.store.live import read_state

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several pieces, and several looks at the database, of a table of sixty."""
    monkeypatch.setattr(snapshot, "PIECE", 16)
    monkeypatch.setattr(snapshot, "ROWS", 7)


def held(store: shoal.Store) -> tuple[snapshot.Held, snapshot.Held]:
    """The table by way of the snapshot, and as the records say it."""
    with store._database.reading() as connection:
        state = read_state(connection)
        return (
            snapshot.read_held(connection, state.types, state.version),
            snapshot.read_changed(connection, state.types),
        )


def agree(store: shoal.Store) -> snapshot.Held:
    """What is read by way of the snapshot, which is what the records say."""
    by_snapshot, itself = held(store)
    for name in ("numbers", "persons", "labels"):
        assert np.array_equal(getattr(by_snapshot, name), getattr(itself, name)), name
    assert by_snapshot.frame.equals(itself.frame)
    return by_snapshot


def snapshot_version(store: shoal.Store) -> list[int]:
    with store._database.reading() as connection:
        return list(connection.execute(sa.select(tables.snapshot.c.version)).scalars())


CHANGES: list[tuple[str, Callable[[shoal.Store], Any]]] = [
    ("insert", lambda s: s.insert(people(100, 5))),
    ("delete", lambda s: s.delete([3, 4, 50])),
    ("update", lambda s: s.update(people(10, 4, seed=9))),
    ("numbers for whole numbers", lambda s: s.update(people(7, 1).with_columns(note=pl.lit(0.5)))),
    ("undo", lambda s: s.undo()),
    ("again", lambda s: s.apply(insert=people(200, 30), delete=[20], update=people(30, 3, seed=4))),
    ("undo", lambda s: s.undo()),
    ("back", lambda s: s.insert(people(3, 1))),
    ("forget", lambda s: s.forget(["5", "50"])),
    ("renew", lambda s: s.renew()),
    ("many", lambda s: s.insert(people(300, 40))),
]


def test_what_is_opened_from_it_is_what_the_records_say(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/registry.db"
    one = make(url, policy=shoal.KAnonymity(3), refine=True)
    assert snapshot_version(one) == [1, 1, 1, 1]
    alone = make(f"sqlite:///{tmp_path}/alone.db", policy=shoal.KAnonymity(3), refine=True)
    for name, change in CHANGES:
        with shoal.Store.open(url) as store:
            change(store)
            agree(store)
        with alone._database.writing() as connection:
            connection.execute(tables.snapshot.delete())  # always by way of the records
        change(alone)
        assert held(alone)[1].numbers.tolist() == held(one)[1].numbers.tolist(), name
        assert held(alone)[1].labels.tolist() == held(one)[1].labels.tolist(), name
        one.check().require()
    assert same(one.records(), alone.records())


def test_it_is_written_anew_when_much_has_changed_and_not_before(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/registry.db"
    make(url).close()
    for first, expected in ((100, 1), (101, 1), (102, 1)):
        with shoal.Store.open(url) as store:
            store.insert(people(first, 1))
            assert set(snapshot_version(store)) == {expected}
    with shoal.Store.open(url) as store:
        store.insert(people(200, 40))
        assert set(snapshot_version(store)) == {1}
    with shoal.Store.open(url) as store:
        store.insert(people(300, 1))
        assert set(snapshot_version(store)) == {5}
        assert len(snapshot_version(store)) == 7
        agree(store)
    with shoal.Store.open(url) as store:
        store.apply(insert=people(301, 1), dry_run=True)
        store.renew()
        assert set(snapshot_version(store)) == {7}
        assert not agree(store).outdated


SPOILT = {
    "a bit of the content": "UPDATE shoal_snapshot SET content = zeroblob(40) WHERE piece = 1",
    "a piece in another's place": "UPDATE shoal_snapshot SET content = (SELECT content FROM shoal_snapshot WHERE piece = 0), "
    "seal = (SELECT seal FROM shoal_snapshot WHERE piece = 0) WHERE piece = 1",
    "a piece is missing": "DELETE FROM shoal_snapshot WHERE piece = 3",
    "the first is missing": "DELETE FROM shoal_snapshot WHERE piece = 0",
    "another version": "UPDATE shoal_snapshot SET version = 2",
    "a version to come": "UPDATE shoal_snapshot SET version = 99",
    "another number of pieces": "UPDATE shoal_snapshot SET pieces = 3",
    "a seal": "UPDATE shoal_snapshot SET seal = 'x' WHERE piece = 2",
    "the change it belongs to": "UPDATE shoal_batches SET seal = 'x' WHERE version = 1",
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_damaged_one_is_named_and_not_believed(how: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/registry.db"
    store = make(url)
    store.insert(people(100, 3))
    before = store.records()
    with sqlite3.connect(tmp_path / "registry.db") as connection:
        connection.execute(SPOILT[how])
    connection.close()
    with shoal.Store.open(url) as opened:
        assert agree(opened).outdated
        found = opened.check().problems
        assert any("the snapshot of the table is not as it was written" in problem for problem in found)
        assert opened.records().equals(before)
        opened.insert(people(200, 1))
        assert not any("snapshot" in problem for problem in opened.check().problems)
        assert not agree(opened).outdated


def test_a_sealed_one_of_another_table_is_named(tmp_path: Path) -> None:
    store = make(f"sqlite:///{tmp_path}/registry.db")
    with store._database.writing() as connection:
        state = read_state(connection)
        table = snapshot.read_held(connection, state.types, state.version)
        values = table.frame.with_columns(illness=pl.col("illness").reverse())
        snapshot.write(connection, 1, snapshot.Held(table.numbers, table.persons, table.labels, values))
    assert store.check().problems == (
        "the snapshot of the table is of another table; shoal store renew writes another.",
    )
    store.renew()
    store.check().require()


def test_one_with_other_records_than_there_are_is_not_believed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/registry.db"
    make(url).close()
    with sqlite3.connect(tmp_path / "registry.db") as connection:
        connection.execute("DELETE FROM shoal_records WHERE number = 7")
    connection.close()
    store = shoal.Store.open(url)
    assert len(agree(store).numbers) == 59


def test_large_whole_numbers_keep_their_digits(tmp_path: Path) -> None:
    """Beside a number that is not whole they are numbers, and lose digits; taken back, they have them again."""
    url, large = f"sqlite:///{tmp_path}/registry.db", 2**60 + 1
    store = make(url, policy=shoal.KAnonymity(3))
    store.update(people(5, 1).with_columns(note=pl.lit(large)))
    store.renew()
    with shoal.Store.open(url) as other:
        other.insert(people(100, 30).with_columns(note=pl.lit(0.5)))
    with shoal.Store.open(url) as other:
        agree(other)
        other.renew()  # a snapshot of numbers
        with pytest.raises(shoal.errors.InputError, match="nothing to undo"):
            other.undo()
    again = make(f"sqlite:///{tmp_path}/again.db", policy=shoal.KAnonymity(3))
    again.update(people(5, 1).with_columns(note=pl.lit(large)))
    again.insert(people(100, 30).with_columns(note=pl.lit(0.5)))
    with again._database.writing() as connection:
        state = read_state(connection)
        snapshot.write(connection, state.version, snapshot.read_changed(connection, state.types))
    again.undo()
    assert agree(again).frame["note"].max() == large


def test_a_store_of_the_layout_before_opens_and_goes_on(tmp_path: Path) -> None:
    """As version 3 wrote it: two who left, of whom one is back and one is forgotten, three releases, a batch to be undone."""
    path = tmp_path / "registry.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((HERE / "layout3.sql").read_text())
    connection.close()
    shutil.copy(path, tmp_path / "undone.db")
    url = f"sqlite:///{path}"
    store = shoal.Store.open(url)
    assert store.check().require().releases == 3
    assert not store.audit().exposed
    assert [row["records"] for row in store.history()] == [8, 8, 8]
    rows = {"id": [1, 20, 21], "age": [21, 60, 61], "ill": ["cold", "flu", "gout"]}
    assert store.insert(pl.DataFrame(rows)).records == 13
    assert store.release().number == 4
    store.check().require()
    agree(store)
    undone = shoal.Store.open(f"sqlite:///{tmp_path}/undone.db")
    assert undone.undo().records == 9
    assert not undone.insert(pl.DataFrame({"id": [10], "age": [47], "ill": ["cold"]}), batch="wednesday").unchanged
    undone.check().require()


def test_nothing_of_the_key_is_in_it(tmp_path: Path) -> None:
    store = make(f"sqlite:///{tmp_path}/registry.db")
    assert "id" not in agree(store).frame.columns
    assert same(store.records(), kept(people(0, 60)))
