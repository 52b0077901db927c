"""Releases of a store: written with their manifests, remembered, audited against each other, and refused if they expose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa
from tests.evolve.store.registry import POLICY, SCHEMA, make, people
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.configuration import read_schema
from shoal.errors import ConfigError, InputError, VerificationError
from shoal.io.files import read_table
from shoal.release import file_digest
from shoal.verifier import masked_schema, verify


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/registry.db"


def test_a_release_is_written_verified_and_remembered(file: str, tmp_path: Path) -> None:
    store = make(file, guard="batching")
    first = store.release(tmp_path / "one.csv")
    assert (first.number, first.version, first.waiting) == (1, 1, {"insertions": 0, "deletions": 0, "updates": 0})
    table = read_table(tmp_path / "one.csv")
    assert table.height == 60 and "id" not in table.columns and "name" not in table.columns
    told = json.loads((tmp_path / "one.csv.manifest.json").read_text())
    assert told["output_sha256"] == file_digest(tmp_path / "one.csv")
    assert told["roles"]["name"] == told["roles"]["id"] == "identifier"
    assert verify(table, store.settings.policy, masked_schema(store.settings.schema, table)).passed
    with pytest.raises(InputError, match="already exists"):
        store.release(tmp_path / "one.csv")
    assert len(store.history()) == 1
    store.insert(people(60, 2))
    second = store.release(tmp_path / "two.parquet")
    assert second.waiting["insertions"] == 2 and second.masked.height == 60
    store.insert(people(62, 20))
    store.delete([3])
    third = store.release()
    assert third.waiting == {"insertions": 0, "deletions": 1, "updates": 0}
    assert third.masked.height == 82
    assert not store.audit().exposed
    lines = store.history()
    assert [line["release"] for line in lines] == [1, 2, 3]
    assert [line["waiting"] for line in lines] == [0, 2, 1]
    assert store.check().require().releases == 3
    store.export(2, tmp_path / "again.csv")
    assert read_table(tmp_path / "again.csv").height == 60
    assert shoal.Store.open(file).release().number == 4


def test_a_dangerous_column_stops_a_release_of_the_store_and_an_accepted_one_is_told(file: str, tmp_path: Path) -> None:
    store = make(file, schema={**SCHEMA, "note": {"role": "other"}})
    with pytest.raises(InputError, match=r"'note'.*tells records apart.*accept"):
        store.release(tmp_path / "one.csv")
    assert not (tmp_path / "one.csv").exists()
    assert store.history() == []
    accepted = make(f"sqlite:///{tmp_path}/accepted.db").release()
    told = accepted.manifest["published_as_it_is"]["findings"]
    assert [(one["column"], one["accepted"]) for one in told] == [("note", "a number that only the tests know")]


def test_a_column_that_lost_its_last_value_is_named_with_the_way_out(file: str) -> None:
    store = make(file)
    store.update(people(0, 60).with_columns(pl.lit(None, dtype=pl.Int64).alias("age")))
    with pytest.raises(InputError, match="Column 'age' has no value left"):
        store.release()
    store.undo()
    assert store.release().masked.height == 60


def test_a_single_insertion_is_refused_without_a_guard(file: str, tmp_path: Path) -> None:
    store = make(file)
    store.release()
    store.insert(people(60, 1))
    with pytest.raises(VerificationError, match="Release 2 was refused"):
        store.release(tmp_path / "leak.csv")
    assert not (tmp_path / "leak.csv").exists() and len(store.history()) == 1
    shown = store.release(tmp_path / "leak.csv", allow_exposure=True)
    assert shown.manifest["exposed"] is True and store.history()[-1]["exposed"] is True
    assert store.audit().exposed
    with pytest.raises(VerificationError):
        store.audit().require()


def test_m_invariance_publishes_its_counterfeits(file: str) -> None:
    policy = shoal.KAnonymity(3) & shoal.LDiversity(3, "illness")
    # A column that is published as it is would let rows be followed.
    schema = {**SCHEMA, "note": {"role": "identifier"}}
    store = make(file, policy=policy, guard="m-invariance", m=3, schema=schema)
    store.release()
    for turn in range(4):
        store.apply(insert=people(60 + 5 * turn, 5), delete=list(range(3 * turn, 3 * turn + 3)))
        made = store.release()
        counted = sum(line["counterfeits"] for line in made.manifest["counterfeits_by_class"])
        assert counted == made.counterfeits
        assert (
            made.masked.height == 60 + 2 * (turn + 1) - made.waiting["insertions"] + made.waiting["deletions"] + counted
        )
    assert not store.audit().exposed
    store.check().require()
    with pytest.raises(ConfigError, match="belongs to"):
        store.release(guard="none", m=3)
    assert store.release(guard="none", allow_exposure=True).counterfeits == 0


def test_whole_numbers_that_become_numbers_between_releases(file: str) -> None:
    store = make(file, guard="batching")
    store.release()
    store.insert(people(60, 12).with_columns(age=pl.col("age") + 0.5, note=pl.col("note") / 2))
    made = store.release()
    assert made.masked.height == 72 - made.waiting["insertions"]
    store.check().require()


def test_what_cannot_be_written_is_not_remembered(file: str, tmp_path: Path) -> None:
    store = make(file)
    for path, says in (("x.unknown", "unknown"), ("nowhere/x.csv", "does not exist")):
        with pytest.raises(shoal.ShoalError, match=says):
            store.release(tmp_path / path)
    assert store.history() == []
    database = store._database

    @sa.event.listens_for(database.engine, "before_cursor_execute")
    def fail(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if statement.startswith("INSERT INTO shoal_releases"):
            raise sa.exc.OperationalError(statement, None, Exception("disk I/O error"))

    with pytest.raises(InputError, match="could not be read or written"):
        store.release(tmp_path / "x.csv")
    sa.event.remove(database.engine, "before_cursor_execute", fail)
    assert store.history() == []
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("registry")] == []


def test_a_release_whose_file_got_lost_can_be_written_again(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(file)

    def fail(path: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("shoal.io.atomic._sync_file", fail)
    with pytest.raises(InputError, match=r"Release 1 is in the store and its file is not there.*--again 1"):
        store.release(tmp_path / "x.csv")
    monkeypatch.undo()
    assert not (tmp_path / "x.csv").exists() and len(store.history()) == 1
    store.export(1, tmp_path / "x.csv")
    assert read_table(tmp_path / "x.csv").height == 60


def test_two_releases_at_the_same_moment(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make(file)
    other = shoal.Store.open(file)
    from shoal.evolve.store import publish

    masked = publish._masked

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(publish, "_masked", masked)
        other.release()
        return masked(*arguments)

    monkeypatch.setattr(publish, "_masked", meanwhile)
    with pytest.raises(InputError, match="at the same moment"):
        store.release()
    assert len(store.history()) == 1


def test_a_store_made_of_microdata_with_every_kind_of_column(file: str) -> None:
    """Dates, orders, taxonomies by rule, guarding nodes: what is written down is read back the same."""
    n = 60
    table = people(0, n).with_columns(
        born=pl.Series([f"19{50 + i % 40}-0{1 + i % 9}-1{i % 9}" for i in range(n)]).str.to_date(),
        seen=pl.Series([f"2024-01-0{1 + i % 9} 1{i % 9}:30:00" for i in range(n)]).str.to_datetime(),
        size=pl.Series([("small", "middle", "large")[i % 3] for i in range(n)]),
        wish=pl.Series([ill if i % 3 == 0 else None for i, ill in enumerate(people(0, n)["illness"])]),
        stay=pl.Series([float(i % 7) + 0.5 for i in range(n)]),
    )
    schema = {
        **SCHEMA,
        "id": {"role": "identifier"},
        "age": {"role": "quasi", "taxonomy": {"intervals": [5, 20]}},
        "job": {"role": "quasi", "taxonomy": "auto"},
        "born": {"role": "quasi", "kind": "date", "domain": ["1900-01-01", "2030-01-01"]},
        "size": {"role": "quasi", "order": ["small", "middle", "large"]},
        "seen": {"role": "other", "accept": "made up"},
        "wish": {"role": "other", "accept": "made up"},
        "stay": {"role": "sensitive"},
    }
    policy = POLICY & shoal.Personalized(0.8, guard="wish", attribute="illness")
    data = shoal.Microdata.from_frame(table, schema)
    store = shoal.Store.create(file, data, policy, key="id", algorithm="mondrian", refine=False, guard="none")
    opened = shoal.Store.open(file)
    assert opened.settings.to_json() == store.settings.to_json()
    fresh = table[:9].with_columns(id=pl.col("id") + 1000, age=pl.col("age") + 100, stay=pl.col("stay") + 9)
    opened.insert(fresh)
    store.delete([1, 2])
    store.update(table[5:7].with_columns(born=pl.lit("1950-05-05"), size=pl.lit(None, dtype=pl.String)))
    for one in (store, opened, shoal.Store.open(file)):
        one.check().require()
        assert one.records().height == n + 7
    made = store.release(allow_exposure=True)
    assert made.masked["seen"].dtype == pl.Datetime("us")
    with pytest.raises(InputError, match=r"'born', record 1 .* lies outside the declared domain"):
        store.update(table[5:6].with_columns(born=pl.lit("1850-05-05").str.to_date()))
    with pytest.raises(InputError, match=r"'size', record 1 .*the order does not know 'tiny'"):
        store.update(table[5:6].with_columns(size=pl.lit("tiny")))
    with pytest.raises(InputError, match=r"'job', record 1 .*the taxonomy does not know 'pilot'"):
        store.update(table[5:6].with_columns(job=pl.lit("pilot")))
    assert read_schema(store.settings.schema) is store.settings.schema


def test_a_store_in_numbers(file: str) -> None:
    store = make(file, guard="batching")
    empty = store.status()
    assert (empty["records"], empty["releases"], empty["last_release"], empty["loss"]) == (60, 0, None, None)
    store.release()
    store.insert(people(60, 1))
    store.release()
    store.insert(people(61, 1))
    found = store.status()
    assert (found["records"], found["releases"], found["waiting"], found["changes_since_release"]) == (62, 2, 1, 1)
    assert found["exposed"] is False and found["bytes"] > 4096 and 0 < found["loss"] < 1
    told = CliRunner().invoke(app, ["store", "metrics", "--store", file])
    assert told.exit_code == 0
    lines = dict(line.split() for line in told.stdout.splitlines() if not line.startswith("#"))
    assert (lines["shoal_store_records"], lines["shoal_store_waiting"]) == ("62", "1")
    assert float(lines["shoal_store_last_release_seconds"]) > 1e9
