"""The store: batches, their mistakes, undo, other processes, renewal, on SQLite and PostgreSQL."""

from __future__ import annotations

import inspect
import re
import sqlite3
import stat
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa
from tests.evolve.store.registry import POLICY, SCHEMA, kept, make, people, place, same
from tests.io.postgres import PostgresUnavailableError, postgres_server

import shoal
from shoal.errors import ConfigError, InfeasibleError, InputError, ShoalError
from shoal.evolve.store import tables
from shoal.evolve.store.settings import Settings


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    try:
        with postgres_server() as url:
            yield url
    except PostgresUnavailableError as reason:
        pytest.skip(f"PostgreSQL: {reason}")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/registry.db"
        return
    pytest.importorskip("psycopg")
    with place(str(request.getfixturevalue("server"))) as found:
        yield found


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/registry.db"


def test_batches_come_go_and_change(url: str) -> None:
    store = make(url)
    applied = store.insert(people(60, 20), batch="one")
    assert (applied.inserted, applied.records, applied.version) == (20, 80, 2)
    again = store.insert(people(60, 20), batch="one")
    assert not again.applied and again.version == 2
    corrected = people(10, 5, seed=9)
    applied = store.apply(insert=people(80, 4), update=corrected, delete=[0, 1, "2"])
    assert (applied.inserted, applied.updated, applied.deleted, applied.records) == (4, 5, 3, 81)
    expected = pl.concat([people(0, 60)[3:10], corrected, people(0, 60)[15:], people(60, 20), people(80, 4)])
    assert same(store.records(), kept(expected))
    assert store.check().require().records == 81
    opened = shoal.Store.open(url)
    assert same(opened.records(), kept(expected))
    applied = opened.upsert(pl.concat([people(84, 2), corrected]))
    assert (applied.inserted, applied.updated, applied.unchanged) == (2, 0, 5)
    # The first one notices what the other did.
    assert store.delete(["84"]).records == 82
    assert store.check().passed
    assert [batch["kind"] for batch in store.batches()] == ["creation"] + ["batch"] * 4


def test_undo_restores_everything_and_the_batch_can_come_again(url: str) -> None:
    store = make(url)
    store.insert(people(60, 9))
    before, content = store.records(), _rows(store)
    odd = people(69, 3).with_columns(age=pl.Series([200.5, 1.0, 2.0]), job=pl.lit("astronaut"), zip=pl.lit("9999"))
    store.apply(insert=odd, delete=[5, 6], update=people(30, 6, seed=3), batch="odd")
    other = shoal.Store.open(url)
    other.check().require()
    undone = store.undo()
    assert (undone.batch, undone.records) == ("odd", 69)
    assert same(store.records(), before)
    now = _rows(store)
    assert {key: row[:2] for key, row in now.items()} == {key: row[:2] for key, row in content.items()}
    store.check().require()
    with pytest.raises(InputError, match="nothing to undo"):
        store.undo()
    # Another process that saw the batch forgets the values that it brought.
    other.insert(people(100, 3))
    assert "astronaut" not in other._live.books.books["quasi", "job"].labels  # type: ignore[union-attr]
    assert store.apply(insert=odd, delete=[5, 6], batch="odd").applied
    store.check().require()
    assert same(shoal.Store.open(url).records(), store.records())


def test_memory_and_database_agree(url: str) -> None:
    """Two processes that take turns, and one that starts afresh, hold the same classes and losses."""
    one = make(url)
    two = shoal.Store.open(url)
    for turn in range(6):
        store = (one, two)[turn % 2]
        first = 60 + 10 * turn
        fresh = people(first, 10).with_columns(age=pl.col("age") + turn * 0.25)
        store.apply(insert=fresh, delete=[turn], update=people(20 + turn, 2, seed=turn + 1))
    one.delete([59])
    two.delete([58])
    one.insert(people(500, 1))
    fresh_start = shoal.Store.open(url)
    for store in (two, fresh_start):
        store.insert(people(600 + (store is two), 1))
    losses = []
    for store in (one, two, fresh_start):
        with store._database.reading() as connection:
            live = store._load(connection, shoal.evolve.store.live.read_state(connection))
        losses.append(
            (live.version, round(live.classes.loss, 9), live.classes.labels.tolist(), live.classes.codes.tolist())
        )
    assert losses[0] == losses[1] == losses[2]
    one.check().require()


def test_a_renewal_starts_over(file: str) -> None:
    store = make(file, refine=False)
    advice = [store.insert(people(60 + 10 * i, 10)).advice for i in range(3)]
    assert advice[0] is None and advice[-1] is not None and "20%" in advice[-1]
    loss = store.renew().loss
    assert loss == store._live.classes.baseline  # type: ignore[union-attr]
    assert store.insert(people(200, 1)).advice is None
    store.check().require()
    assert [batch["kind"] for batch in store.batches()][-2] == "renewal"


def test_the_store_is_for_its_owner_and_forgets_identifiers(file: str, tmp_path: Path) -> None:
    store = make(file)
    store.insert(people(60, 3))
    for path in tmp_path.glob("registry.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert b"person 4" not in path.read_bytes()
    with sqlite3.connect(tmp_path / "registry.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


MISTAKES: list[tuple[str, Callable[[shoal.Store], Any], str]] = [
    ("a key twice in a batch", lambda s: s.insert(pl.concat([people(60, 2), people(61, 1)])), "records 2 and 3"),
    (
        "a key that is there",
        lambda s: s.insert(people(59, 2)),
        "record 1 of the batch: key '59' is in the store already",
    ),
    ("an update of nobody", lambda s: s.update(people(59, 2)), "record 2 of the batch: key '60' is not in the store"),
    ("a deletion of nobody", lambda s: s.delete([1, 77]), "key '77' is not in the store"),
    ("a deletion named twice", lambda s: s.delete([1, 1]), "records 1 and 2"),
    ("two things with one key", lambda s: s.apply(update=people(1, 1), delete=[1]), "named twice"),
    (
        "a missing key",
        lambda s: s.insert(people(60, 2).with_columns(id=pl.Series([60, None]))),
        "record 2 .* key is missing",
    ),
    (
        "no key column",
        lambda s: s.insert(people(60, 2).rename({"id": "ident"})),
        "no column 'id', which the store needs",
    ),
    ("a missing column", lambda s: s.insert(people(60, 2).drop("job")), "no column 'job', which the store needs"),
    ("an unknown column", lambda s: s.insert(people(60, 2).with_columns(x=1)), "The store has no column 'x'"),
    (
        "another type",
        lambda s: s.insert(people(60, 2).with_columns(age=pl.Series(["41", "old"]))),
        "'age', record 2 .*'old' is not a whole number",
    ),
    (
        "text for a note",
        lambda s: s.insert(people(60, 2).with_columns(note=pl.lit("x"))),
        "'note', record 1 .*'x' is not a whole number",
    ),
    (
        "outside the taxonomy",
        lambda s: s.insert(people(60, 2).with_columns(illness=pl.Series(["flu", "gout"]))),
        "'illness', record 2 .*does not know 'gout'",
    ),
    ("nothing at all", lambda s: s.apply(), "empty"),
    ("too few left", lambda s: s.delete(list(range(58))), "needs 3 records and there would be 2"),
    ("a file that is not there", lambda s: s.insert("nowhere.csv"), "nowhere.csv"),
    ("a release that is not there", lambda s: s.export(3, "x.csv"), "no release 3"),
    ("an audit of nothing", lambda s: s.audit(), "no releases yet"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> shoal.Store:
    return make(f"sqlite:///{tmp_path_factory.mktemp('store')}/registry.db")


@pytest.mark.parametrize(("what", "do", "says"), MISTAKES, ids=[what for what, _, _ in MISTAKES])
def test_mistakes_change_nothing(made: shoal.Store, what: str, do: Callable[[shoal.Store], Any], says: str) -> None:
    before = _rows(made)
    with pytest.raises(ShoalError, match=f"(?s){says}") as told:
        do(made)
    assert str(told.value).count("\n") == 0
    assert _rows(made) == before
    made.check().require()


def test_a_policy_that_becomes_infeasible(file: str) -> None:
    table = people(0, 12).with_columns(illness=pl.Series(["flu"] * 6 + ["cold"] * 6))
    store = shoal.Store.create(file, table, POLICY, key="id", schema=SCHEMA, algorithm="mondrian", refine=False)
    with pytest.raises(InfeasibleError):
        store.delete([*range(6, 12)])
    assert store.delete([6]).records == 11
    store.check().require()


def test_wrong_ways_to_make_a_store(file: str, tmp_path: Path) -> None:
    def create(**more: Any) -> None:
        options = {"key": "id", "schema": SCHEMA, "algorithm": "mondrian", "refine": False, **more}
        shoal.Store.create(more.pop("url", file), options.pop("data", people(0, 12)), POLICY, **options)

    with pytest.raises(InputError, match="no column 'ident' to be the key"):
        create(key="ident")
    with pytest.raises(ConfigError, match="would be published"):
        create(key="note")
    with pytest.raises(InputError, match="key '3' stands in records"):
        create(data=pl.concat([people(0, 12), people(3, 1)]))
    with pytest.raises(ConfigError, match="did you mean 'batching'"):
        create(guard="batchin")
    with pytest.raises(ConfigError, match="belongs to"):
        create(m=3)
    with pytest.raises(ConfigError, match="missing = 'drop'"):
        create(missing="drop")
    with pytest.raises(ConfigError, match="needs a schema"):
        create(schema=None)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="There is no store"):
        shoal.Store.open(file)
    with pytest.raises(ConfigError, match="SQLite or PostgreSQL"):
        shoal.Store.open("mysql://localhost/x")
    with pytest.raises(ConfigError, match="needs a file"):
        shoal.Store.open("sqlite://")
    create()
    with pytest.raises(InputError, match="holds a store already"):
        create()
    assert shoal.Store.open(file).check().passed


def test_every_setting_is_a_parameter_with_its_default_and_a_word_about_it() -> None:
    parameters = inspect.signature(shoal.Store.create).parameters
    assert not [p for p in parameters.values() if p.kind is p.VAR_KEYWORD]
    for setting in fields(Settings):
        if setting.name in ("ignored", "rows", "row_types"):  # they are of the schema
            continue
        assert setting.name in parameters
        assert f"`{setting.name}`" in (shoal.Store.create.__doc__ or "")
        if setting.default is not MISSING:
            assert parameters[setting.name].default == setting.default


def test_settings_are_kept(file: str) -> None:
    whole = people(0, 40).drop_nulls().head(12)
    given: dict[str, Any] = {"order": "keep", "intervals": "columns", "missing": "error", "missing_texts": ["n/a"]}
    given |= {"key": "id", "schema": SCHEMA, "algorithm": "mondrian", "options": {"cuts": "all"}, "refine": False}
    shoal.Store.create(file, whole, POLICY, **given)
    kept = shoal.Store.open(file).settings
    assert (kept.order, kept.intervals, kept.missing, kept.missing_texts) == ("keep", "columns", "error", ("n/a",))
    assert kept.options == {"cuts": "all"}


def test_a_database_that_is_no_store(file: str, tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (x)")
    with pytest.raises(InputError, match="holds no store"):
        shoal.Store.open(file)
    path.write_bytes(b"something else entirely" * 100)
    with pytest.raises(InputError, match="not a store but some other file"):
        shoal.Store.open(file)


def test_an_older_layout_is_upgraded_and_a_newer_one_refused(url: str) -> None:
    store = make(url)
    store.release()
    with store._database.writing() as connection:  # layout 1 had no feeds, layout 2 no persons, and 3 no snapshot
        for table in ("shoal_feeds", "shoal_left", "shoal_snapshot"):
            connection.execute(sa.text(f"DROP TABLE {table}"))
        for table in ("shoal_records", "shoal_journal"):
            connection.execute(sa.text(f"ALTER TABLE {table} DROP COLUMN person"))
        connection.execute(sa.text("DELETE FROM shoal_meta WHERE name = 'secret'"))
        added = {"releases": ("members", "faces", "seal", "rows_seal"), "records": ("seal", "place_seal")}
        for table, columns in {**added, "batches": ("seal", "content"), "values": ("seal",)}.items():
            for column in columns:
                connection.execute(sa.text(f"ALTER TABLE shoal_{table} DROP COLUMN {column}"))
        connection.execute(sa.text("UPDATE shoal_meta SET value = '1' WHERE name = 'layout'"))
    opened = shoal.Store.open(url)
    assert not opened.audit().exposed and opened.release().masked.equals(store.release().masked)
    assert opened.mark("somewhere") is None
    opened.apply(insert=people(60, 2), mark=("somewhere", "7"))
    assert shoal.Store.open(url).mark("somewhere") == "7"
    opened.undo()
    assert opened.mark("somewhere") is None
    opened.check().require()
    with opened._database.writing() as connection:
        assert tables.layout_of(connection) == tables.LAYOUT
        connection.execute(sa.text("UPDATE shoal_meta SET value = '99' WHERE name = 'layout'"))
    with pytest.raises(InputError, match="newer version of Shoal \\(layout 99"):
        shoal.Store.open(url)


def test_a_locked_store_says_so_and_stays(file: str, tmp_path: Path) -> None:
    make(file)
    store = shoal.Store.open(file, patience=0.1)
    holder = sqlite3.connect(tmp_path / "registry.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(InputError, match="is busy"):
        store.insert(people(60, 3))
    assert store.check().passed  # readers do not wait
    holder.execute("ROLLBACK")
    holder.close()
    assert store.insert(people(60, 3)).records == 63


def test_a_server_that_cannot_be_reached(server: str) -> None:
    with pytest.raises(InputError, match=r"reports: connection failed.* The store is as it was before") as told:
        shoal.Store.open("postgresql://shoal:secret@127.0.0.1:1/nowhere")
    assert "secret" not in str(told.value)
    with place(server) as url:
        make(url).close()
        store = shoal.Store.open(url, patience=0.1)
        with store._database.writing() as holder:
            holder.execute(sa.select(tables.state).with_for_update())
            with pytest.raises(InputError, match=r"is busy: another process has held it for 0.1 seconds"):
                store.insert(people(60, 3))
        assert store.insert(people(60, 3)).records == 63


def test_a_read_only_store_says_so(file: str, tmp_path: Path) -> None:
    make(file)
    store = shoal.Store.open(f"sqlite:///file:{tmp_path}/registry.db?mode=ro&uri=true")
    with pytest.raises(InputError, match="cannot be written to"):
        store.insert(people(60, 3))
    store.check().require()


def test_a_full_disk_leaves_the_store_as_it_was(file: str) -> None:
    store = make(file)
    pages = []

    @sa.event.listens_for(store._database.engine, "connect")
    def limit(connection: Any, record: Any) -> None:
        used = connection.execute("PRAGMA page_count").fetchone()[0]
        pages.append(connection.execute(f"PRAGMA max_page_count = {used + 3}").fetchone()[0])

    before = _rows(store)
    store._database.dispose()
    with pytest.raises(InputError, match="no room left on its disk"):
        store.insert(people(60, 900))
    sa.event.remove(store._database.engine, "connect", limit)
    store._database.dispose()
    assert pages
    assert _rows(store) == before
    store.check().require()
    assert store.insert(people(60, 900)).records == 960
    store.check().require()


def test_a_lost_connection_in_mid_batch(server: str) -> None:
    with place(server) as url:
        store = make(url)
        before = _rows(store)
        killer = sa.create_engine(sa.make_url(server).set(drivername="postgresql+psycopg"), poolclass=sa.pool.NullPool)

        @sa.event.listens_for(store._database.engine, "before_cursor_execute")
        def cut(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
            if statement.startswith("INSERT INTO shoal_records"):
                pid = cursor.connection.info.backend_pid
                with killer.begin() as other:
                    other.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})

        with pytest.raises(InputError, match=r"connection to .* was lost"):
            store.insert(people(60, 5), batch="cut")
        sa.event.remove(store._database.engine, "before_cursor_execute", cut)
        killer.dispose()
        assert _rows(store) == before
        store.check().require()
        assert store.insert(people(60, 5), batch="cut").records == 65
        store.check().require()


SPOILT = [
    ("UPDATE shoal_records SET class = 10000 WHERE number = 7", "never given"),
    (
        "UPDATE shoal_records SET class = (SELECT MAX(class) FROM shoal_records) WHERE number IN "
        "(SELECT number FROM shoal_records WHERE class = 0 LIMIT 2)",
        "k_anonymity|p_sensitive",
    ),
    ("UPDATE shoal_records SET content = 'nonsense' WHERE number = 7", "cannot be read"),
    ("UPDATE shoal_records SET version = 9 WHERE number = 7", "changed at version 9"),
    ("INSERT INTO shoal_gone (number, version) VALUES (3, 1)", "both there and gone"),
    ("DELETE FROM shoal_records WHERE number = 7", "leave 60 records, and 59 are there"),
    ("UPDATE shoal_state SET version = 5", "do not lead to version 5"),
    ("UPDATE shoal_releases SET masked = x'00'", "not the one its manifest names"),
    (
        "UPDATE shoal_releases SET manifest = replace(manifest, '\"records\": 60', '\"records\": 61')",
        "than its manifest says",
    ),
]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("released") / "registry.db"
    store = make(f"sqlite:///{path}")
    store.release()
    return path


@pytest.mark.parametrize(("statement", "says"), SPOILT, ids=[says for _, says in SPOILT])
def test_check_finds_what_is_wrong(released: Path, tmp_path: Path, statement: str, says: str) -> None:
    copy = tmp_path / "copy.db"
    with sqlite3.connect(released) as source, sqlite3.connect(copy) as target:
        source.backup(target)
        assert shoal.Store.open(f"sqlite:///{copy}").check().require().releases == 1
        target.execute(statement)
    source.close()
    target.close()
    found = shoal.Store.open(f"sqlite:///{copy}").check()
    assert re.search(says, " ".join(found.problems)), found.problems
    with pytest.raises(shoal.VerificationError, match="not as it should be"):
        found.require()


def _rows(store: shoal.Store) -> dict[str, Any]:
    with store._database.reading() as connection:
        return {
            row.key: (row._mapping["class"], row.content, row.version)
            for row in connection.execute(sa.select(tables.records))
        }
