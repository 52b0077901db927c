"""SQL tables in and out, on SQLite and, where a server can be had, on PostgreSQL."""

from __future__ import annotations

import builtins
import secrets
import sqlite3
import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa
from polars.testing import assert_frame_equal
from tests.io.postgres import PostgresUnavailableError, postgres_server

from shoal.errors import ConfigError, InputError, MissingExtraError
from shoal.io import read_sql, sql, write_sql

TABLE = pl.DataFrame(
    {
        "id": [1, 2**60 + 1, 3],
        "age": [39, None, 50],
        "cost": [1.25, 1e-9, None],
        "note": ['say "hi"', "two\nlines é %s :x", None],
        "day": [date(2024, 2, 29), None, date(1900, 1, 1)],
        "moment": [datetime(2024, 2, 29, 13, 5, 7), None, datetime(1999, 1, 1)],
        "select": ["a", "b", "c"],
    }
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    try:
        with postgres_server() as url:
            yield url
    except PostgresUnavailableError as reason:
        pytest.skip(f"PostgreSQL: {reason}")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/test.db"
    pytest.importorskip("psycopg")
    return str(request.getfixturevalue("server"))


@pytest.fixture
def name(url: str) -> Iterator[str]:
    """A table name of our own, gone afterwards: the server may be somebody's."""
    fresh = f"shoal_{secrets.token_hex(6)}"
    yield fresh
    with sql._connected(sql._address(url), writing=True) as connection:
        connection.exec_driver_sql(f'DROP TABLE IF EXISTS "{fresh}"')


def _execute(url: str, *statements: str) -> None:
    with sql._connected(sql._address(url), writing=True) as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def _message(call: Callable[[], object], kind: type[Exception] = InputError) -> str:
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("chunk", [2, 50_000])
def test_round_trip(url: str, name: str, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(sql, "_CHUNK", chunk)
    write_sql(TABLE, url, name)
    assert_frame_equal(read_sql(url, table=name), TABLE, check_row_order=False)
    query = f"SELECT age, note FROM \"{name}\" WHERE note LIKE '%s:x' OR note LIKE 'say%' OR age = 50 ORDER BY age"
    frame = read_sql(url, query=query)
    assert frame["age"].to_list() == [39, 50]


def test_types_of_the_database(url: str, name: str) -> None:
    _execute(
        url,
        f'CREATE TABLE "{name}" (n NUMERIC(8, 2), w NUMERIC(8, 0), b BOOLEAN, c VARCHAR(5), d DATE, s SMALLINT)',
        f"INSERT INTO \"{name}\" VALUES (1.50, 7, TRUE, '01234', '2024-02-29', 3)",
        f"INSERT INTO \"{name}\" VALUES (2, NULL, FALSE, '?', NULL, NULL)",
    )
    frame = read_sql(url, table=name)
    assert frame.to_dict(as_series=False) == {
        "n": [1.5, 2.0],
        "w": [7, None],
        "b": ["True", "False"],
        "c": ["01234", None],
        "d": [date(2024, 2, 29), None],
        "s": [3, None],
    }
    assert frame.dtypes == [pl.Float64, pl.Int64, pl.String, pl.String, pl.Date, pl.Int64]


def test_types_only_postgresql_has(server: str) -> None:
    pytest.importorskip("psycopg")
    frame = read_sql(
        server,
        query="SELECT 1.5::numeric AS n, 2::numeric AS w, '2024-02-29 10:00+00'::timestamptz AT TIME ZONE 'UTC' AS t, "
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u",
    )
    assert frame.row(0) == (1.5, 2, datetime(2024, 2, 29, 10), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
    assert "'a'" in _message(lambda: read_sql(server, query="SELECT ARRAY[1, 2] AS a"))


def test_schema_qualified_table(server: str) -> None:
    pytest.importorskip("psycopg")
    schema = f"shoal_{secrets.token_hex(6)}"
    _execute(server, f"CREATE SCHEMA {schema}")
    try:
        write_sql(TABLE, server, f"{schema}.people")
        assert read_sql(server, table=f"{schema}.people").height == 3
        assert "did you mean 'people'" in _message(lambda: read_sql(server, table=f"{schema}.poeple"))
    finally:
        _execute(server, f"DROP SCHEMA {schema} CASCADE")


def test_existing_table_needs_force(url: str, name: str) -> None:
    write_sql(TABLE, url, name)
    assert "already exists" in _message(lambda: write_sql(TABLE.head(1), url, name))
    assert read_sql(url, table=name).height == 3
    write_sql(TABLE.select("age"), url, name, force=True)
    assert read_sql(url, table=name).columns == ["age"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_broken_write_changes_nothing(
    url: str, name: str, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    write_sql(TABLE, url, name)
    slices = pl.DataFrame.iter_slices

    def break_off(frame: pl.DataFrame, size: int) -> Iterator[pl.DataFrame]:
        yield next(slices(frame, 1))
        raise error

    monkeypatch.setattr(pl.DataFrame, "iter_slices", break_off)
    with pytest.raises(error):
        write_sql(TABLE.select("age"), url, name, force=True)
    with pytest.raises(error):
        write_sql(TABLE, url, name + "_new")
    assert_frame_equal(read_sql(url, table=name), TABLE, check_row_order=False)
    assert "no table" in _message(lambda: read_sql(url, table=name + "_new"))


def test_a_broken_write_leaves_no_new_database_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    message = _message(lambda: write_sql(TABLE.with_columns(bad=pl.lit([1])), url, "t"))
    assert "'bad'" in message
    assert list(tmp_path.iterdir()) == []


def test_unknown_table(url: str, name: str) -> None:
    write_sql(TABLE, url, name)
    assert f"did you mean '{name}'" in _message(lambda: read_sql(url, table=name[:-1]))


def test_reading_cannot_change_anything(url: str, name: str) -> None:
    write_sql(TABLE, url, name)
    for query in (
        f'DELETE FROM "{name}"',
        f'DELETE FROM "{name}" RETURNING id',
        f'SELECT 1; DELETE FROM "{name}"',
        f'/* SELECT */ DELETE FROM "{name}"',
        "PRAGMA user_version = 3",
    ):
        with pytest.raises(ConfigError, match="SELECT"):
            read_sql(url, query=query)
    assert read_sql(url, query=f"SELECT ';', id FROM \"{name}\" -- all; of them\n;").height == 3
    # What begins like a SELECT is held back by the transaction.
    _message(lambda: read_sql(url, query=f'WITH gone AS (DELETE FROM "{name}" RETURNING id) SELECT * FROM gone'))
    assert read_sql(url, table=name).height == 3


def test_bad_queries(url: str, name: str) -> None:
    write_sql(TABLE, url, name)
    assert "nowhere" in _message(lambda: read_sql(url, query="SELECT x FROM nowhere"))
    assert "no records" in _message(lambda: read_sql(url, query=f'SELECT * FROM "{name}" WHERE id < 0'))
    assert "columns 1 and 2" in _message(lambda: read_sql(url, query=f'SELECT age, age FROM "{name}"'))


def test_table_or_query() -> None:
    assert "exactly one" in _message(lambda: read_sql("sqlite:///x.db"), ConfigError)
    assert "exactly one" in _message(lambda: read_sql("sqlite:///x.db", table="t", query="q"), ConfigError)


def test_bad_addresses(tmp_path: Path) -> None:
    assert "does not exist" in _message(lambda: read_sql(f"sqlite:///{tmp_path}/no.db", table="t"))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "text.db").write_text("this is not a database at all" * 50)
    assert "not a database" in _message(lambda: read_sql(f"sqlite:///{tmp_path}/text.db", table="t"))
    assert "unable to open" in _message(lambda: write_sql(TABLE, f"sqlite:///{tmp_path}/no/x.db", "t"))
    assert "did you mean 'sqlite'" in _message(lambda: read_sql("sqlit:///x.db", table="t"), ConfigError)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://agnes:s3cret@127.0.0.1:1/db",
        "postgresql://agnes:s3cret@127.0.0.1:1/db?connect_timeout=1",
        "postgres://agnes:s3cret@127.0.0.1:1/db",
        "postgresql:/agnes:s3cret@",
        "mysql+nodriver://agnes:s3cret@127.0.0.1:1/db",
        "agnes:s3cret",
        "postgresql://agnes:s3cret@127.0.0.1:port/db",
    ],
)
def test_passwords_are_never_repeated(url: str) -> None:
    pytest.importorskip("psycopg")
    for call in (lambda: read_sql(url, table="t"), lambda: write_sql(TABLE, url, "t")):
        with pytest.raises((InputError, ConfigError)) as caught:
            call()
        assert "s3cret" not in str(caught.value)
        assert "agnes" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_records_are_never_repeated(server: str) -> None:
    pytest.importorskip("psycopg")
    message = _message(lambda: write_sql(pl.DataFrame({"x": ["private words \0"]}), server, "shoal_never"))
    assert "NUL" in message
    assert "private words" not in message


def test_integers_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    table = pl.DataFrame({"n": pl.Series([2**63], dtype=pl.UInt64)})
    assert "'n'" in _message(lambda: write_sql(table, f"sqlite:///{tmp_path}/t.db", "t"))
    assert list(tmp_path.iterdir()) == []


def test_missing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without_psycopg(name: str, *rest: Any, **options: Any) -> Any:
        if name.split(".")[0] == "psycopg":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return original(name, *rest, **options)

    for module in [module for module in sys.modules if module.split(".")[0] == "psycopg"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", without_psycopg)
    message = _message(lambda: read_sql("postgresql://h/db", table="t"), MissingExtraError)
    assert "shoal[postgres]" in message


def test_values_that_do_not_fit_their_column(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t (d DATE, mixed INTEGER)")
        connection.execute("INSERT INTO t VALUES ('someday', 1), ('2024-01-01', 'x')")
    connection.close()
    url = f"sqlite:///{tmp_path}/t.db"
    assert "query" in _message(lambda: read_sql(url, table="t"))
    frame = read_sql(url, query="SELECT * FROM t")
    assert frame.rows() == [("someday", "1"), ("2024-01-01", "x")]


def test_views_are_tables_too(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    write_sql(TABLE, url, "people")
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE VIEW old AS SELECT id, age FROM people WHERE age > 40"))
    assert read_sql(url, table="old").rows() == [(3, 50)]
