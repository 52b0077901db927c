"""Forgetting: nothing of a person is in the bytes of the database afterwards, and the releases stay safe and auditable."""

from __future__ import annotations

import io
import sqlite3
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa
from tests.evolve.store.registry import SCHEMA, make, people, place
from tests.evolve.store.test_returns import first, learned, rows
from tests.evolve.store.test_returns import make as make_small

import shoal
from shoal.errors import InputError
from shoal.evolve.store import tables
from shoal.evolve.store.database import UnavailableError

KEY, JOB, ZIP, AGE, NOTE = "KEY-7f3ac1d2", "JOB-canary-91b5", "ZIP-canary-5510", 987_654, 555_123_456


def canary(n: int = 1) -> pl.DataFrame:
    """Somebody whose every value is nobody else's, but for the illness."""
    return people(500, n).with_columns(
        id=pl.Series([KEY + "x" * i for i in range(n)]),
        job=pl.lit(JOB),
        zip=pl.lit(ZIP),
        age=pl.lit(AGE),
        note=pl.lit(NOTE),
        name=pl.lit("NAME-canary-3321"),
    )


NEEDLES = [KEY, JOB, ZIP, str(AGE), str(NOTE), "NAME-canary-3321"]


def found(folder: Path, published: bool) -> list[str]:
    """Traces of the canary: in the bytes of any file of the folder, and in any cell of any table, compressed ones too.

    What was published of its class, the masked table and the values that it shows as they are, is not counted.
    """
    content = b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())
    hits = [needle for needle in NEEDLES if needle.encode() in content]
    if published:
        hits = [needle for needle in hits if needle in (KEY, NEEDLES[-1])]
    with sqlite3.connect(folder / "registry.db") as connection:
        connection.row_factory = sqlite3.Row
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in connection.execute(f"SELECT * FROM {name}"):
                pairs = zip(row.keys(), row, strict=True)
                cells = [c for key, c in pairs if key != "masked" and not (published and key == "manifest")]
                hits += [needle for cell in cells for needle in NEEDLES if traces(cell, needle)]
    connection.close()
    return hits


def traces(cell: Any, needle: str) -> bool:
    """Whether a cell has the text, also inside a compressed table, but for what its class published."""
    if isinstance(cell, bytes):
        frame = pl.read_parquet(io.BytesIO(cell)) if cell[:4] == b"PAR1" else pl.read_ipc(io.BytesIO(cell))
        frame = frame.drop([name for name in frame.columns if name in ("__region", "note")])
        frame.write_ipc(buffer := io.BytesIO())  # with whatever lies in memory beside the rows
        return (
            any(needle in str(value) for row in frame.rows() for value in row) or needle.encode() in buffer.getvalue()
        )
    return needle in str(cell)


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("how", ["there", "left", "left long ago", "corrected", "in the snapshot"])
def test_nothing_is_left_in_the_bytes(tmp_path: Path, published: bool, how: str) -> None:
    store = make(f"sqlite:///{tmp_path}/registry.db", guard="batching")
    store.insert(canary())
    if published:
        store.insert(people(600, 8))
        store.release()
    if how == "in the snapshot":
        store.renew()
    if how in ("corrected", "in the snapshot"):
        store.update(canary().with_columns(job=pl.lit("clerk"), age=pl.lit(33)))
    elif how != "there":
        store.delete([KEY])
    if how == "left long ago":
        store.insert(people(700, 30))
        store.delete([str(key) for key in range(700, 720)])
        if published:
            store.release()
    assert found(tmp_path, published)
    done = store.forget([KEY])
    assert (done.forgotten, done.deleted) == (1, int(how in ("there", "corrected", "in the snapshot")))
    assert done.still_shown == int(published)
    assert found(tmp_path, published) == []
    store.check().require()
    store.close()
    again = shoal.Store.open(f"sqlite:///{tmp_path}/registry.db")
    again.insert(people(800, 3))
    again.release()
    again.check().require()
    assert not again.audit().exposed
    again.forget([KEY])
    with pytest.raises(InputError, match="nothing to undo"):
        again.undo()


def test_the_row_stays_until_its_class_leaves(tmp_path: Path) -> None:
    store = make_small(tmp_path)
    assert store.release().masked.height == 8
    assert store.forget([0]).still_shown == 1
    kept = store.release()
    assert (kept.masked.height, kept.waiting["deletions"]) == (8, 1)
    assert kept.masked["ill"].sort().to_list() == first()["ill"].sort().to_list()
    store.delete([1])
    assert store.release().masked.height == 6
    assert not learned(store) and not store.audit().exposed
    # Whoever is forgotten and comes back is known to be the same person, and nothing else is known.
    store.insert(rows((0, 20, "flu"), (30, 21, "HIV"), (31, 22, "gout")))
    assert store.release().waiting["insertions"] == 1
    store.insert(rows((1, 21, "cold")))
    assert store.release().waiting["insertions"] == 0
    assert not learned(store) and not store.audit().exposed


def test_who_never_was_cannot_be_forgotten(tmp_path: Path) -> None:
    store = make(f"sqlite:///{tmp_path}/registry.db")
    with pytest.raises(InputError, match="nobody with the key 'nobody' is or was in the store"):
        store.forget(["1", "nobody"])
    assert store.check().require().records == 60
    other = shoal.Store.open(f"sqlite:///{tmp_path}/registry.db")
    other.insert(people(60, 2))
    store.forget(["60"])
    other.insert(people(62, 1))
    assert other.check().require().records == 62


def test_another_reader_is_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/registry.db"
    make(url).close()
    store = shoal.Store.open(url, patience=0.05)
    reader = sqlite3.connect(tmp_path / "registry.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM shoal_records").fetchall()
    with pytest.raises(UnavailableError, match="another process has the store open"):
        store.forget(["1"])
    reader.execute("ROLLBACK")
    reader.close()
    assert store.forget(["1"]).deleted == 0


def test_killed_before_the_file_is_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the store next finishes it; while somebody else reads it, nobody can, and the check says so."""
    url = f"sqlite:///{tmp_path}/registry.db"
    store = make(url, guard="batching")
    store.insert(canary())

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store._database, "scrub", killed)
        with pytest.raises(KeyboardInterrupt):
            store.forget([KEY])
    assert found(tmp_path, published=False), "the journal has it still"
    assert any("has not been overwritten yet" in problem for problem in store.check().problems)
    store.close()
    reader = sqlite3.connect(tmp_path / "registry.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM shoal_records").fetchall()
    busy = shoal.Store.open(url, patience=0.05)
    assert not busy.check().passed
    busy.close()
    reader.execute("ROLLBACK")
    reader.close()
    with shoal.Store.open(url) as again:
        assert found(tmp_path, published=False) == []
        again.check().require()


def test_a_backup_has_whom_it_had(tmp_path: Path) -> None:
    """Forgotten is who was forgotten in this file: a backup that is put in its place has to forget them again."""
    url = f"sqlite:///{tmp_path}/registry.db"
    store = make(url, guard="batching")
    store.insert(canary())
    store.release()
    with sqlite3.connect(tmp_path / "registry.db") as source, sqlite3.connect(tmp_path / "backup") as copy:
        source.backup(copy)
    source.close()
    copy.close()
    store.forget([KEY])
    store.close()
    (tmp_path / "backup").rename(tmp_path / "registry.db")
    with shoal.Store.open(url) as back:
        assert back.keys().count(KEY) == 1
        assert back.forget([KEY]).deleted == 1
        assert found(tmp_path, published=True) == []
        assert not back.audit().exposed and back.check().require()


def test_postgresql_has_it_in_no_table(server: str) -> None:
    with place(server) as url:
        store = make(url, guard="batching", schema={**SCHEMA, "note": {"role": "identifier"}})
        store.insert(canary())
        store.release()
        store.renew()  # with a snapshot that has it
        store.release()
        store.delete([KEY])
        store.release()
        store.forget([KEY])
        with store._database.reading() as connection:
            for table in tables.metadata.sorted_tables:
                for row in connection.execute(sa.select(table)):
                    cells = [bytes(cell) if isinstance(cell, memoryview) else cell for cell in row]
                    wrong = [n for n in (KEY, str(NOTE)) for cell in cells if traces(cell, n)]
                    assert not wrong, table.name
        store.check().require()
