"""Batches that come by themselves: files in a folder, and rows of a database table that are newer than the last seen."""

from __future__ import annotations

import os
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa
from tests.evolve.store.registry import kept, make, people, place, same

import shoal
from shoal.errors import ConfigError, InputError
from shoal.evolve.store.sync import sync
from shoal.evolve.store.watch import watch
from shoal.io import write_sql
from shoal.io.files import write_table


@pytest.fixture
def store(tmp_path: Path) -> shoal.Store:
    return make(f"sqlite:///{tmp_path}/registry.db")


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


def test_files_are_applied_once_in_the_order_of_their_names(store: shoal.Store, inbox: Path, tmp_path: Path) -> None:
    write_table(people(60, 5), inbox / "insert-1.csv")
    write_table(people(62, 3, seed=4), inbox / "update-2.parquet")
    write_table(pl.DataFrame({"id": [60]}), inbox / "delete.csv")
    write_table(pl.concat([people(1, 1, seed=8), people(70, 2)]), inbox / "nightly.csv")
    (inbox / ".insert-hidden.csv").write_text("id\n1\n")
    (inbox / "insert.part").write_text("id\n1\n")
    # In the order of their names, the deletion comes before what it deletes.
    taken = {one.path.name: one for one in watch(store, inbox, once=True, interval=0)}
    assert list(taken) == ["delete.csv", "insert-1.csv", "nightly.csv", "update-2.parquet"]
    assert "key '60' is not in the store" in str(taken["delete.csv"].problem)
    assert taken["nightly.csv"].applied is not None
    assert (taken["nightly.csv"].applied.inserted, taken["nightly.csv"].applied.updated) == (2, 1)
    assert store.check().require().records == 67
    again = {one.path.name: one for one in watch(store, inbox, once=True, interval=0)}
    assert again["delete.csv"].applied is not None and again["delete.csv"].applied.deleted == 1
    assert not any(one.applied.applied for name, one in again.items() if name != "delete.csv" and one.applied)
    done = tmp_path / "done"
    done.mkdir()
    list(watch(store, inbox, once=True, interval=0, done=done))
    assert sorted(path.name for path in done.iterdir()) == [
        "delete.csv",
        "insert-1.csv",
        "nightly.csv",
        "update-2.parquet",
    ]
    for wrong in (inbox / "nowhere", tmp_path / "registry.db"):
        with pytest.raises(InputError, match="no folder"):
            next(watch(store, wrong))


def test_a_file_that_is_still_being_written_waits(store: shoal.Store, inbox: Path) -> None:
    text = people(60, 20).write_csv()
    path = inbox / "insert.csv"
    path.write_text(text[:150])
    pieces = iter([text[:200], text[:260], text, None, None])

    def wait(seconds: float) -> None:
        piece = next(pieces)
        if piece is not None:
            path.write_text(piece)
            os.utime(path, ns=(len(piece), len(piece)))

    looks = watch(store, inbox, sleep=wait)
    taken = next(looks)
    assert taken.applied is not None and taken.applied.inserted == 20
    assert list(pieces) == [None]  # it was taken at the first look that found it as the one before
    looks.close()


def test_a_feed_goes_on_where_it_was(store: shoal.Store, tmp_path: Path) -> None:
    source = f"sqlite:///{tmp_path}/clinic.db"
    moment = [datetime(2024, 1, 1, 8, minute) for minute in range(4)]
    extra = pl.DataFrame({"updated_at": moment, "ward": ["a"] * 4})
    write_sql(pl.concat([people(60, 4), extra], how="horizontal"), source, "patients")
    engine = sa.create_engine(source, poolclass=sa.pool.NullPool)
    first = sync(store, source, "patients")
    assert first.applied is not None and (first.read, first.applied.inserted) == (4, 4)
    nothing = sync(store, source, "patients")
    assert nothing.applied is not None and not nothing.applied.applied and nothing.read == 1
    version = store.check().require().version
    with engine.begin() as connection:  # one more at the same moment, one later, one changed
        for row, at in ((people(64, 1), moment[3]), (people(65, 1), datetime(2024, 1, 2)), (people(66, 1), None)):
            line = {**row.row(0, named=True), "updated_at": at, "ward": "b"}
            names = ", ".join(line)
            values = ", ".join(f":{name}" for name in line)
            connection.execute(sa.text(f"INSERT INTO patients ({names}) VALUES ({values})"), line)
        connection.execute(sa.text("UPDATE patients SET age = 33, updated_at = '2024-01-03 00:00:00' WHERE id = 61"))
    second = sync(store, source, "patients")
    assert second.applied is not None
    assert (second.applied.inserted, second.applied.updated, second.mark) == (2, 1, "2024-01-03 00:00:00")
    assert store.check().require().version == version + 1
    store.undo()
    again = sync(store, source, "patients")  # what was taken back is read again
    assert again.applied is not None and again.applied.inserted == 2
    with pytest.raises(ConfigError, match="cannot be compared"):
        sync(store, source, "patients", since="yesterday")
    with pytest.raises(InputError, match="no column 'changed'"):
        sync(store, source, "patients", column="changed")
    with pytest.raises(InputError, match=r"no table 'patient'.*did you mean 'patients'"):
        sync(store, source, "patient")
    engine.dispose()


def test_deletions_come_by_a_column_or_by_the_whole_table(store: shoal.Store, tmp_path: Path) -> None:
    source = f"sqlite:///{tmp_path}/clinic.db"
    table = pl.concat([people(0, 60), people(60, 2)]).with_columns(
        version=pl.int_range(1, 63), gone=pl.Series([0] * 58 + [1, 1, 0, 1])
    )
    write_sql(table, source, "patients")
    found = sync(store, source, "patients", deleted="gone")
    assert found.applied is not None
    # Two of those that are gone were in the store, one of those that are not was not.
    assert (found.applied.inserted, found.applied.deleted, found.applied.unchanged) == (1, 2, 58)
    write_sql(people(0, 60)[:50].with_columns(version=pl.int_range(100, 150)), source, "patients", force=True)
    whole = sync(store, source, "patients", since="all")
    assert whole.applied is not None and (whole.applied.deleted, whole.applied.unchanged) == (9, 50)
    assert same(store.records(), kept(people(0, 60)[:50]))
    write_sql(people(50, 3), source, "plain")
    with pytest.raises(ConfigError, match="name the one that grows"):
        sync(store, source, "plain")


def test_a_feed_from_postgresql(store: shoal.Store, server: str) -> None:
    with place(server) as url:
        rows: Any = people(60, 6).with_columns(version=pl.int_range(1, 7))
        write_sql(rows, url, "patients")
        assert sync(store, url, "patients").applied.inserted == 6  # type: ignore[union-attr]
        write_sql(people(66, 2).with_columns(version=pl.int_range(7, 9)), url, "patients", force=True)
        found = sync(store, url, "patients")
        assert found.applied is not None and (found.applied.inserted, found.mark) == (2, "8")
        store.check().require()


def test_a_feed_of_times_with_a_zone(store: shoal.Store, server: str) -> None:
    """Whatever zone the server speaks in, nothing newer than the mark is missed."""
    with place(server) as url:
        engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"), poolclass=sa.pool.NullPool)
        write_sql(people(60, 2), url, "patients")
        with engine.begin() as connection:
            connection.execute(sa.text("ALTER TABLE patients ADD COLUMN updated_at timestamptz"))
            connection.execute(sa.text("UPDATE patients SET updated_at = '2024-05-05 12:00:00+00'"))
        for n, zone in enumerate(("America/New_York", "Asia/Tokyo", "UTC")):
            there = url.replace("options=", f"options=-ctimezone%3D{zone.replace('/', '%2F')}%20")
            sync(store, there, "patients")
            with engine.begin() as connection:
                columns = "name, age, zip, job, illness, note"
                moment = f"2024-05-05 12:0{n + 1}:00+00"
                connection.execute(
                    sa.text(
                        f"INSERT INTO patients (id, {columns}, updated_at) SELECT {70 + n}, {columns}, '{moment}' "
                        "FROM patients WHERE id = 60"
                    )
                )
            found = sync(store, there, "patients")
            assert found.applied is not None and found.applied.inserted == 1, zone
        engine.dispose()


def test_a_late_change_is_found_with_an_overlap(store: shoal.Store, tmp_path: Path) -> None:
    source = f"sqlite:///{tmp_path}/clinic.db"
    write_sql(people(60, 3).with_columns(version=pl.Series([5, 6, 9])), source, "patients")
    assert sync(store, source, "patients").mark == "9"
    write_sql(people(60, 4).with_columns(version=pl.Series([5, 6, 9, 8])), source, "patients", force=True)
    missed = sync(store, source, "patients")
    assert missed.applied is not None and not missed.applied.inserted
    found = sync(store, source, "patients", overlap=2)
    assert found.applied is not None and (found.applied.inserted, found.mark) == (1, "9")


def test_transactions_that_commit_late_are_not_lost(store: shoal.Store, server: str) -> None:
    """Two hundred transactions take their number early and commit in any order, with looks in between and some rolled back."""
    random = np.random.default_rng(5)
    with place(server) as url:
        write_sql(people(0, 1).with_columns(version=pl.lit(0)), url, "patients")
        engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"), poolclass=sa.pool.NullPool)
        table = people(1000, 200).to_dicts()
        under_way: list[tuple[sa.Connection, int]] = []
        kept, late, highest, seen = {"0"}, 0, 0, 0
        for version, line in enumerate(table, start=1):
            connection = engine.connect()
            names = ", ".join(line)
            values = ", ".join(f":{name}" for name in line)
            statement = f"INSERT INTO patients ({names}, version) VALUES ({values}, {version})"
            connection.execute(sa.text(statement), line)
            under_way.append((connection, version))
            while len(under_way) > (8 if version < 200 else 0):
                done, number = under_way.pop(int(random.integers(len(under_way))))
                if random.random() < 0.1:
                    done.rollback()
                else:
                    done.commit()
                    kept.add(str(table[number - 1]["id"]))
                    late += number < seen
                    highest = max(highest, number)
                done.close()
            if random.random() < 0.3:
                sync(store, url, "patients")
                seen = highest
        sync(store, url, "patients")
        engine.dispose()
    assert late > 20  # so many would have been missed by who only looks for larger numbers
    there = store.records()["id"].to_list()
    assert kept - {"0"} == {key for key in there if int(key) >= 1000}
    store.check().require()


def test_empty_and_partial_deltas(store: shoal.Store, inbox: Path) -> None:
    version = store.check().version
    for parts in ({"insert": people(60, 0)}, {"update": people(0, 0)}, {"delete": []}, {"upsert": people(60, 0)}):
        assert not store.apply(**parts).applied  # type: ignore[arg-type]
    (inbox / "insert.csv").write_text(",".join(people(0, 1).columns) + "\n")
    assert [one.problem for one in watch(store, inbox, once=True, interval=0)] == [None]
    before = store.records().filter(pl.col("id") == "7")
    assert store.update(pl.DataFrame({"id": [7], "age": [44]})).updated == 1
    after = store.records().filter(pl.col("id") == "7")
    assert after["age"].to_list() == [44] and after.drop("age").equals(before.drop("age"))
    assert store.update(pl.DataFrame({"id": [7], "age": [44]})).unchanged == 1
    with pytest.raises(InputError, match="no column 'age', which the store needs"):
        store.upsert(pl.DataFrame({"id": [7], "job": ["cook"]}))
    with pytest.raises(InputError, match="no column besides the key"):
        store.update(pl.DataFrame({"id": [7]}))
    assert store.check().require().version > version


def test_a_dry_run_changes_nothing(store: shoal.Store, tmp_path: Path) -> None:
    store.release()
    before, found = store.records(), store.check().require()
    would = store.apply(insert=people(60, 5), delete=[1], dry_run=True)
    assert (would.inserted, would.deleted, would.records) == (5, 1, 64)
    assert store.records().equals(before) and store.check().require() == found
    done = store.apply(insert=people(60, 5), delete=[1])
    assert done == would
    shown = store.release(tmp_path / "x.csv", dry_run=True)
    assert shown.audit.exposed and shown.masked.height == 64 and shown.release.measures.ncp > 0
    assert not (tmp_path / "x.csv").exists() and len(store.history()) == 1


def test_a_store_that_is_busy_gets_its_file_later(inbox: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/registry.db"
    make(url).close()
    store = shoal.Store.open(url, patience=0.05)
    write_table(people(60, 5), inbox / "insert.csv")
    holder = sqlite3.connect(tmp_path / "registry.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    looks = watch(store, inbox, interval=0)
    assert next(looks).later
    holder.execute("ROLLBACK")
    holder.close()
    taken = next(looks)
    assert taken.applied is not None and taken.applied.inserted == 5
    looks.close()
