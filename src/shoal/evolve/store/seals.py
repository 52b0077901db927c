"""Seals: digests by which a changed bit is noticed, in records, in their classes, in the snapshot of them, in releases, in the
list of changes, in who left and in which values are known.

A seal is written with what it seals and says whether that is still as it was written. Changes and releases are chained: the
seal of each is made with that of the one before, so that none can be missing, doubled or in another's place. Seals are for
damage; who can write to the store can make new ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
import sqlalchemy as sa

from shoal.evolve.store import tables
from shoal.evolve.store.batch_input import KeyedRows
from shoal.evolve.store.settings import encode_rows


def seal(*parts: Any) -> str:
    """A digest of some values, each told apart from its neighbours; None is a value of its own."""
    told: list[bytes] = []
    for part in parts:
        content = part if isinstance(part, bytes) else b"\x00" if part is None else str(part).encode()
        told += (len(content).to_bytes(8, "little"), content)
    return hashlib.blake2b(b"".join(told), digest_size=12).hexdigest()


def record_seal(number: int, person: int, key: str, content: str) -> str:
    """Of what a record says; it stays when the record moves."""
    return seal(number, person, key, content)


def place_seal(number: int, place: int, version: int) -> str:
    """Of the class a record is in, and since when."""
    return seal(number, place, version)


def batch_seal(before: str, row: Mapping[Any, Any]) -> str:
    """Of a change, after the one before it. A batch that was undone keeps its name in another column."""
    name = row["id"] if row["id"] is not None else row["undone"] or None
    return seal(before, row["version"], name, row["kind"], row["counts"], row["at"], row["content"])


def release_seal(before: str, row: Mapping[Any, Any]) -> str:
    """Of a release, after the one before it; its masked table has a digest in the manifest."""
    return seal(before, row["number"], row["version"], row["manifest"], row["members"], row["at"])


def snapshot_seal(before: str, row: Mapping[Any, Any]) -> str:
    """Of a piece of the snapshot, after the change whose outcome it shows."""
    return seal(before, row["piece"], row["pieces"], row["version"], bytes(row["content"]))


def rows_seal(shown: bytes | None, faces: bytes | None) -> str:
    """Of what only the newest release has."""
    return seal(shown, faces)


def left_seal(secret: bytes, digest: str, person: int, forgotten: bool) -> str:
    """Of somebody who left; with the secret, so that its own damage shows in all of them."""
    return seal(secret, _as_text(digest), person, int(forgotten))


def left_rows(secret: bytes, persons: Iterable[tuple[str, int]], *, forgotten: bool = False) -> list[dict[str, Any]]:
    """People who left, by digest and number, as rows of their table."""
    return [
        {
            "digest": digest,
            "person": person,
            "forgotten": forgotten,
            "seal": left_seal(secret, digest, person, forgotten),
        }
        for digest, person in persons
    ]


def mark_left(connection: sa.Connection, which: sa.ColumnElement[bool], *, forgotten: bool) -> None:
    """Some of those who left are forgotten, or are not any more."""
    table = tables.left
    rows = connection.execute(
        sa.select(table.c.digest, table.c.person).where(which, table.c.forgotten != forgotten)
    ).all()
    if rows:
        change = table.update().where(table.c.digest == sa.bindparam("at"))
        change = change.values(forgotten=forgotten, seal=sa.bindparam("one"))
        secret = tables.secret_of(connection)
        told = [{"at": row.digest, "one": left_seal(secret, row.digest, row.person, forgotten)} for row in rows]
        connection.execute(change, told)


def value_seal(row: Mapping[Any, Any]) -> str:
    """Of a value that the store knows, and since when."""
    return seal(_as_text(row["column"]), row["position"], _as_text(row["value"]), row["version"])


def _as_text(value: Any) -> str | None:
    """A flipped bit may make bytes of a text in SQLite, which are not the same to whoever looks for it."""
    return None if value is None else str(value)


def write_values(connection: sa.Connection, news: Iterable[Mapping[str, Any]], version: int) -> None:
    """Values that the store knows from this version on."""
    rows = [{**row, "version": version} for row in news]
    if rows:
        connection.execute(tables.values.insert(), [{**row, "seal": value_seal(row)} for row in rows])


def last_seal(connection: sa.Connection, table: sa.Table, order: Any) -> str:
    """The end of a chain."""
    return connection.execute(sa.select(table.c.seal).order_by(order.desc()).limit(1)).scalar() or ""


def batch_content(connection: sa.Connection, given: Mapping[str, KeyedRows], leaving: Sequence[str]) -> str:
    """A digest of what a batch brings, with the store's secret, by which the same batch is told from another of its name."""
    parts: list[Any] = [tables.secret_of(connection)]
    for name in sorted(given):
        rows = given[name]
        numbers = rows.frame.with_columns(pl.col(pl.Int64).cast(pl.Float64))
        parts += [
            name,
            len(rows.keys),
            *(part for pair in sorted(zip(rows.keys, encode_rows(numbers), strict=True)) for part in pair),
        ]
    return seal(*parts, "delete", *sorted(leaving))


def seal_all(connection: sa.Connection) -> None:
    """Seals for a store that was written without."""
    change = tables.records.update().where(tables.records.c.number == sa.bindparam("at"))
    change = change.values(seal=sa.bindparam("one"), place_seal=sa.bindparam("other"))
    rows = [
        {
            "at": row.number,
            "one": record_seal(row.number, row.person, row.key, row.content),
            "other": place_seal(row.number, row._mapping["class"], row.version),
        }
        for row in connection.execute(sa.select(tables.records)).all()
    ]
    if rows:
        connection.execute(change, rows)
    before = ""
    for row in connection.execute(sa.select(tables.batches).order_by(tables.batches.c.version)).all():
        before = batch_seal(before, row._mapping)
        connection.execute(tables.batches.update().where(tables.batches.c.version == row.version).values(seal=before))
    before, table = "", tables.releases
    for row in connection.execute(sa.select(table).order_by(table.c.number)).all():
        before = release_seal(before, row._mapping)
        own = rows_seal(row.shown, row.faces)
        connection.execute(table.update().where(table.c.number == row.number).values(seal=before, rows_seal=own))


def seal_known(connection: sa.Connection) -> None:
    """Seals of those who left and of known values, for a store that was written without."""
    table, secret = tables.left, tables.secret_of(connection)
    for row in connection.execute(sa.select(table)).all():
        own = left_seal(secret, row.digest, row.person, row.forgotten)
        connection.execute(table.update().where(table.c.digest == row.digest).values(seal=own))
    known = tables.values
    for row in connection.execute(sa.select(known)).all():
        one = sa.and_(known.c.column == row.column, known.c.position == row.position)
        connection.execute(known.update().where(one).values(seal=value_seal(row._mapping)))
