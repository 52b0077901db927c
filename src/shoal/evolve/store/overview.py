"""What a store says of itself: its records, its batches, its releases, and how it is in numbers."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import sqlalchemy as sa

from shoal.evolve.store import tables
from shoal.evolve.store.database import Database
from shoal.evolve.store.live import read_state
from shoal.evolve.store.settings import Settings, decode_rows
from shoal.evolve.store.visits import KEY, spread


def history(database: Database) -> list[dict[str, Any]]:
    """One line a release, oldest first."""
    table = tables.releases.c
    with database.reading() as connection:
        sizes = (
            sa.func.coalesce(sa.func.length(table[name]), 0)
            for name in ("manifest", "masked", "members", "shown", "faces")
        )
        what = table.number, table.version, table.manifest, table.at, table.masked.is_not(None).label("whole")
        query = sa.select(*what, sum(sizes, sa.literal(0)).label("bytes")).order_by(table.number)
        rows = connection.execute(query).all()
    found = []
    for row in rows:
        told = json.loads(row.manifest)
        measures = told.get("secret", told)["measures"]
        shown = {name: measures[name] for name in ("classes", "smallest_class", "ncp", "il", "nil")}
        found.append(
            {
                "release": row.number,
                "version": row.version,
                "at": row.at,
                "guard": told["guard"],
                "records": told["evidence"]["records"],
                **shown,
                "waiting": sum(told["waiting"].values()),
                **{f"waiting_{name}": count for name, count in told["waiting"].items()},
                "counterfeits": told["counterfeits"],
                "exposed": told["exposed"],
                "withdrawn": told.get("withdrawn"),
                "in_full": bool(row.whole),
                "bytes": row.bytes,
            }
        )
    return found


def status(database: Database) -> dict[str, Any]:
    """How a store is, in numbers for who looks after it."""
    with database.reading() as connection:
        state = read_state(connection)
        counts = sa.select(sa.func.count(), sa.func.count(sa.distinct(tables.records.c["class"])))
        records, classes = connection.execute(counts.select_from(tables.records)).one()
    lines = [line for line in history(database) if line["withdrawn"] is None]
    last = lines[-1] if lines else None
    return {
        "version": state.version,
        "records": records,
        "classes": classes,
        "releases": len(lines),
        "releases_in_full": sum(line["in_full"] for line in lines),
        "last_release": None if last is None else last["at"],
        "changes_since_release": state.version - (0 if last is None else last["version"]),
        "waiting": 0 if last is None else last["waiting"],
        "loss": None if last is None else last["ncp"],
        "exposed": None if last is None else last["exposed"],
        "bytes": database.size([table.name for table in tables.metadata.sorted_tables]),
    }


def batches(database: Database) -> list[dict[str, Any]]:
    """The batches so far, oldest first."""
    with database.reading() as connection:
        rows = connection.execute(sa.select(tables.batches).order_by(tables.batches.c.version)).all()
    return [
        {"version": row.version, "batch": row.id, "kind": row.kind, "at": row.at, **json.loads(row.counts)}
        | ({"undone": row.undone} if row.undone is not None else {})
        for row in rows
    ]


def records(database: Database, settings: Settings) -> pl.DataFrame:
    """The table as it is now, with its keys."""
    with database.reading() as connection:
        state = read_state(connection)
        rows = connection.execute(
            sa.select(tables.records.c.key, tables.records.c.content).order_by(tables.records.c.number)
        ).all()
    frame = decode_rows([row.content for row in rows], state.types)
    if settings.rows is not None:
        return spread(frame, settings).rename({KEY: settings.key})
    return frame.insert_column(0, pl.Series(settings.key, [row.key for row in rows], dtype=pl.String))


def keys(database: Database, settings: Settings) -> list[str]:
    """The keys of all records, as text; where people have several rows, of all rows."""
    if settings.rows is not None:
        return records(database, settings)[settings.key].to_list()
    with database.reading() as connection:
        return list(connection.execute(sa.select(tables.records.c.key).order_by(tables.records.c.number)).scalars())
