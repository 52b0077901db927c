"""The table in columns, as it was at some version: a large store opens from it, and reads one by one only what changed since.

A snapshot is a copy and never the truth. It is in pieces, and each has a seal made with that of the change whose outcome it
shows, so that it stands in the chain like everything else (`evolve/store/seals.py`). One that is missing, damaged or of
another table is not used: the records themselves are read, and the next change writes another. Somebody who is forgotten is
in none, since forgetting writes it anew.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import NDArray

from shoal.evolve.releases.rows import places
from shoal.evolve.store import tables
from shoal.evolve.store.seals import snapshot_seal
from shoal.evolve.store.settings import TYPES, decode_rows

Numbers = NDArray[np.int64]

# Records of a piece: a few megabytes each, so that neither side of a connection holds all of them twice.
PIECE = 2**18
# Records that are read from the database at a time: as rows of Python they take ten times the room.
ROWS = 2**16
# A snapshot is written anew when more than this part of the table has to be read one by one. A record costs about ten times as
# much to read as to write into one.
OUTDATED = 8
NUMBER, PERSON, PLACE = "__number", "__person", "__class"


@dataclass(frozen=True, eq=False)
class Held:
    """Records by number: whose each is, its class, and its values."""

    numbers: Numbers
    persons: Numbers
    labels: Numbers
    frame: pl.DataFrame
    outdated: bool = False
    """Whether a new snapshot is worth its while."""

    def take(self, rows: NDArray[Any]) -> Held:
        """Some of them."""
        return Held(self.numbers[rows], self.persons[rows], self.labels[rows], _rows(self.frame, rows))


def read_held(connection: sa.Connection, types: Mapping[str, str], version: int) -> Held:
    """All records, from the snapshot as far as it goes."""
    found = _read(connection, types, version)
    if found is None:
        return replace(read_changed(connection, types), outdated=True)
    since, old = found
    new = read_changed(connection, types, since)
    gone = connection.execute(sa.select(tables.gone.c.number).where(tables.gone.c.version > since)).scalars().all()
    held = followed(old, new, np.array(gone, dtype=np.int64))
    there = connection.execute(sa.select(sa.func.count()).select_from(tables.records)).scalar()
    if there != len(held.numbers):
        return replace(read_changed(connection, types), outdated=True)
    return replace(held, outdated=OUTDATED * len(new.numbers) > len(held.numbers))


def followed(old: Held, new: Held, gone: Numbers) -> Held:
    """Records after what changed: new ones and new versions, without those that are gone."""
    if not len(new.numbers) and not len(gone):
        return old
    at = places(old.numbers, new.numbers)
    again, fresh = np.flatnonzero(at >= 0), np.flatnonzero(at < 0)
    ends = int(old.numbers[-1]) if len(old.numbers) else -1
    if not np.isin(old.numbers, gone).any() and (new.numbers[fresh] > ends).all():
        # Mostly records come, and others only move to another class: then nothing of a large table has to be picked out.
        rest = _again(old, at[again], new.take(again))
        return rest if not len(fresh) else _both(rest, new.take(fresh))
    kept = ~np.isin(old.numbers, np.concatenate([gone, new.numbers]))
    both = _both(old, new)
    rows = np.concatenate([np.flatnonzero(kept), len(old.numbers) + np.arange(len(new.numbers))])
    return both.take(rows[np.argsort(both.numbers[rows], kind="stable")])


def _again(old: Held, at: Numbers, new: Held) -> Held:
    """Records with new versions of some of them, which stand at these places."""
    persons, labels, frame = old.persons.copy(), old.labels.copy(), old.frame
    persons[at], labels[at] = new.persons, new.labels
    if not _rows(frame, at).equals(new.frame):
        source = np.arange(len(persons))
        source[at] = len(persons) + np.arange(len(at))
        frame = _rows(pl.concat([frame, new.frame]), source)
    return Held(old.numbers, persons, labels, frame)


def _both(one: Held, other: Held) -> Held:
    """Records of two, one after the other."""
    numbers, persons, labels = (
        np.concatenate([getattr(part, name) for part in (one, other)]) for name in ("numbers", "persons", "labels")
    )
    return Held(numbers, persons, labels, pl.concat([one.frame, other.frame]))


def read_changed(connection: sa.Connection, types: Mapping[str, str], since: int = -1) -> Held:
    """The records that changed after a version, as they are written one by one."""
    table = tables.records.c
    query = sa.select(table.number, table.person, table["class"], table.content)
    # In the order of the index that finds them: told to give few of them by number, SQLite would look at all.
    query = query.where(table.version > since).order_by(table.version) if since >= 0 else query.order_by(table.number)
    parts = [_held(columns, types) for columns in _columns(connection, query)] or [_held([(), (), (), ()], types)]
    numbers, persons, labels = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("numbers", "persons", "labels")
    )
    held = Held(numbers, persons, labels, pl.concat([part.frame for part in parts]))
    return held if since < 0 else held.take(np.argsort(numbers))


def write(connection: sa.Connection, version: int, held: Held) -> None:
    """The table as it is at a version, in the place of any earlier one."""
    connection.execute(tables.snapshot.delete())
    before = _seal_at(connection, version)
    begins = range(0, len(held.numbers), PIECE)
    for piece, begin in enumerate(begins):
        part = held.take(np.arange(begin, min(begin + PIECE, len(held.numbers))))
        columns = zip((NUMBER, PERSON, PLACE), (part.numbers, part.persons, part.labels), strict=True)
        whole = part.frame.with_columns(pl.Series(name, column) for name, column in columns)
        whole.write_parquet(buffer := io.BytesIO(), compression="zstd", statistics=False)
        row: dict[str, Any] = {"piece": piece, "pieces": len(begins), "version": version, "content": buffer.getvalue()}
        connection.execute(tables.snapshot.insert(), {**row, "seal": snapshot_seal(before, row)})


def damaged(connection: sa.Connection) -> list[int]:
    """The pieces, counted from 1, that are not as they were written."""
    wrong, pieces = [], 0
    for row in connection.execute(sa.select(tables.snapshot).order_by(tables.snapshot.c.piece)):
        pieces += 1
        known = row.piece == pieces - 1 and row.seal == snapshot_seal(_seal_at(connection, row.version), row._mapping)
        wrong += [] if known else [pieces]
        last = row
    return wrong if not pieces or last.pieces == pieces else [*wrong, pieces + 1]


def _read(connection: sa.Connection, types: Mapping[str, str], version: int) -> tuple[int, Held] | None:
    """The snapshot and its version, unless it cannot be used."""
    rows = connection.execute(sa.select(tables.snapshot).order_by(tables.snapshot.c.piece)).all()
    if not rows or rows[0].version > version or len(rows) != rows[0].pieces:
        return None
    since, before = rows[0].version, _seal_at(connection, rows[0].version)
    for piece, row in enumerate(rows):
        if row.piece != piece or row.version != since or row.seal != snapshot_seal(before, row._mapping):
            return None
    frame = pl.concat([pl.read_parquet(io.BytesIO(row.content)) for row in rows])
    values = frame.drop(NUMBER, PERSON, PLACE)
    if values.columns != list(types) or any(not _fits(values[name].dtype, kind) for name, kind in types.items()):
        return None
    numbers, persons, labels = (frame[name].to_numpy() for name in (NUMBER, PERSON, PLACE))
    return since, Held(numbers, persons, labels, values.cast({name: TYPES[kind] for name, kind in types.items()}))


def _fits(dtype: Any, kind: str) -> bool:
    """Whether a column is still what it was; whole numbers may have become numbers since, and never the other way round:
    taking a batch back makes numbers whole again, which may have lost their last digits."""
    return bool(dtype == TYPES[kind]) or (kind == "number" and dtype == pl.Int64)


def _seal_at(connection: sa.Connection, version: int) -> str:
    """The seal of a change."""
    query = sa.select(tables.batches.c.seal).where(tables.batches.c.version == version)
    return connection.execute(query).scalar() or ""


def _columns(connection: sa.Connection, query: Any) -> Iterator[list[Any]]:
    """What a query gives, some rows at a time, by column."""
    for rows in connection.execute(query.execution_options(stream_results=True)).partitions(ROWS):
        yield list(zip(*rows, strict=True))


def _held(columns: list[Any], types: Mapping[str, str]) -> Held:
    numbers, persons, labels = (np.array(column, dtype=np.int64) for column in columns[:3])
    return Held(numbers, persons, labels, decode_rows(list(columns[3]), types))


def _rows(frame: pl.DataFrame, rows: NDArray[Any]) -> pl.DataFrame:
    return frame[rows] if frame.width else frame
