"""A change feed: rows of a database table that are newer than the last ones seen become one batch.

The table has a column that grows with every change: a version number, or the time of the last update. How far it was
read is kept in the store and moves in the same transaction as the batch, so that nothing is lost or applied twice
whatever happens in between. Rows as old as the mark are read again, since others may have come at the same moment; those
that did not change are left alone.

A transaction may become visible after later ones: it took its time or its number early and committed late. PostgreSQL says
which transactions were still under way when the table was read, and by which one each row was written; so the next look
also takes the rows of all that were not finished then, whatever their column says. Where that cannot be asked (views), an
hour, or a thousand versions, before the mark is read again. SQLite writes one transaction after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl
import sqlalchemy as sa

from shoal.columns import texts
from shoal.errors import ConfigError, InputError, did_you_mean
from shoal.evolve.store.commit import Applied
from shoal.evolve.store.store import Store
from shoal.io import sql
from shoal.io.frames import apply_missing, normalise
from shoal.progress import Told

XID = " xid "
# Numbers of transactions go round after 2³²; those of the last 2³¹ before the present one are in the past.
LATE = "(xmin::text::bigint - :since + 4294967296) % 4294967296 < 2147483648"
VERSION_COLUMNS = ("updated_at", "modified_at", "changed_at", "last_modified", "row_version", "version")


@dataclass(frozen=True)
class Synced:
    """What a feed brought: rows read, the batch they made (None when there was nothing new), and the new mark."""

    read: int
    applied: Applied | None
    mark: str | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "read": self.read,
            "mark": self.mark,
            "applied": None if self.applied is None else self.applied.to_dict(),
        }


def sync(
    store: Store,
    url: str,
    table: str,
    *,
    since: str = "auto",
    column: str | None = None,
    deleted: str | None = None,
    overlap: float | None = None,
    progress: Told | None = None,
    dry_run: bool = False,
) -> Synced:
    """Bring a store up to a table of another database.

    `since="auto"` goes on from the last time; a number or a time starts there; `"all"` reads the whole table and also
    deletes the records whose keys it does not have any more. `deleted` is a column that says so row by row (true, a
    number other than 0, or a time of deletion). `overlap` goes back by so many seconds or versions; by default by none where the
    database itself says what was not finished at the last look, or has only one writer. With `dry_run` nothing is changed, and
    the mark stays where it was.
    """
    address = sql._address(url)
    sql._check_sqlite_file(address)
    feed = f"{sql._name(address)} {table}"
    kept = store.mark(feed) if since == "auto" else None if since == "all" else since
    mark, under_way = _read_mark(kept)
    with sql._connected(address, writing=False) as connection:
        every = sql._select_all(connection, address, table)
        names = [part.name for part in every.selected_columns]
        version = _version_column(names, column, table)
        for name in [store.settings.key, *([deleted] if deleted else [])]:
            if name not in names:
                raise InputError(f"Table '{table}' has no column '{name}'; {did_you_mean(name, names)}")
        source = every.selected_columns[version]
        unfinished = _unfinished(connection, address, table)
        back = overlap if overlap is not None else _default_overlap(source, address, unfinished is not None)
        query = every
        if mark is not None:
            reached = _reaches(source, mark, address, back)
            if under_way is not None and unfinished is not None:
                reached = sa.or_(reached, sa.text(LATE).bindparams(since=under_way % 2**32))
            query = every.where(reached)
        raw = sql._fetch(connection, query.order_by(source), f"table '{table}'")
    frame = normalise(apply_missing(raw, store.settings.missing_texts), f"table '{table}'")
    if frame.height == 0:
        return Synced(0, None, mark)
    newest = _newest(raw[version])
    moved_on = mark if newest is None else str(newest)
    parts = _parts(store, frame, deleted, whole=since == "all")
    if not parts:
        return Synced(frame.height, None, mark)
    if moved_on is None:
        raise InputError(f"Column '{version}' of table '{table}' has no values; name another with --column.")
    if mark is not None and since == "auto" and _behind(raw[version], mark):
        moved_on = mark  # late ones alone
    written = moved_on if unfinished is None else f"{moved_on}{XID}{unfinished}"
    applied = store.apply(**parts, mark=(feed, written), progress=progress, dry_run=dry_run)
    return Synced(frame.height, applied, moved_on)


def _read_mark(kept: str | None) -> tuple[str | None, int | None]:
    """How far a feed was read, and the first transaction that was not finished then."""
    if kept is None or XID not in kept:
        return kept, None
    mark, _, unfinished = kept.rpartition(XID)
    return mark, int(unfinished)


def _unfinished(connection: sa.Connection, address: sa.URL, table: str) -> int | None:
    """The first transaction of a PostgreSQL database that is not finished now; None where rows do not tell theirs."""
    if address.get_backend_name() != "postgresql":
        return None
    schema, name = sql._split(address, table)
    if name not in sa.inspect(connection).get_table_names(schema):
        return None
    return int(connection.execute(sa.text("SELECT txid_snapshot_xmin(txid_current_snapshot())")).scalar_one())


def _default_overlap(source: Any, address: sa.URL, told: bool) -> float:
    """How far to go back where the database does not tell what was late."""
    if told or address.get_backend_name() == "sqlite":
        return 0.0
    try:
        return 1000.0 if source.type.python_type in (int, float) else 3600.0
    except NotImplementedError:
        return 3600.0


def _behind(column: pl.Series, mark: str) -> bool:
    """Whether all rows are older than the mark."""
    newest = _newest(column)
    if newest is None:
        return True
    if isinstance(newest, (int, float)):
        return newest < float(mark)
    return str(newest) < mark


def _version_column(names: list[str], column: str | None, table: str) -> str:
    if column is not None:
        if column not in names:
            raise InputError(f"Table '{table}' has no column '{column}'; {did_you_mean(column, names)}")
        return column
    for name in VERSION_COLUMNS:
        if name in names:
            return name
    raise ConfigError(
        f"Table '{table}' has no column {' or '.join(VERSION_COLUMNS)}; name the one that grows with every change with --column."
    )


def _newest(column: pl.Series) -> Any:
    """The largest value; of times with a zone in UTC, whatever zone the server speaks in."""
    if isinstance(column.dtype, pl.Datetime) and column.dtype.time_zone is not None:
        column = column.dt.convert_time_zone("UTC")
    return column.drop_nulls().max()


def _reaches(source: Any, mark: str, address: sa.URL, overlap: float) -> Any:
    """The condition that a row is as new as the mark, or newer, as the database compares."""
    try:
        kind = source.type.python_type
    except NotImplementedError:
        kind = str
    try:
        if kind is datetime:
            moment = datetime.fromisoformat(mark) - timedelta(seconds=overlap)
            if address.get_backend_name() == "sqlite":
                # SQLite keeps times as texts, with or without their fractions; the shorter one comes first.
                return sa.type_coerce(source, sa.String()) >= str(moment)
            if getattr(source.type, "timezone", False) and moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            return source >= moment
        if kind is date:
            return source >= date.fromisoformat(mark) - timedelta(seconds=overlap)
        return source >= (kind(mark) - kind(overlap) if kind in (int, float) else mark)
    except ValueError:
        raise ConfigError(
            f"since = '{mark}' cannot be compared with column '{source.name}'; write it as the column does."
        ) from None


def _parts(store: Store, frame: pl.DataFrame, deleted: str | None, *, whole: bool) -> dict[str, Any]:
    """What the rows say: records to keep current, and keys to delete."""
    key, settings = store.settings.key, store.settings
    keep = pl.Series([True] * frame.height)
    gone: list[str] = []
    if deleted is not None:
        keep = ~_says_yes(frame[deleted])
    if deleted is not None or whole:
        there, keys = set(store.keys()), texts(frame[key], "number" if frame[key].dtype.is_numeric() else "category")
        gone = [name for name in keys.filter(~keep).to_list() if name in there]
        gone += sorted(there - set(keys.to_list())) if whole else []
    parts: dict[str, Any] = {}
    rows = frame.filter(keep).select(name for name in frame.columns if name in {key, *settings.columns})
    if rows.height:
        parts["upsert"] = rows
    if gone:
        parts["delete"] = gone
    return parts


def _says_yes(column: pl.Series) -> pl.Series:
    if column.dtype.is_numeric():
        return (column != 0).fill_null(False)
    if column.dtype == pl.String:
        return (~column.str.to_lowercase().is_in(["", "false", "f", "no", "n", "0"])).fill_null(False)
    return column.is_not_null()
