"""The tables of a store, and how a store of an older layout becomes one of this layout."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from shoal.errors import InputError
from shoal.version import VERSION

LAYOUT = 6
"""The layout this version writes. Layout 1 had no feeds; 2 took who came back for somebody else, and had no seals; 3 had no
snapshot of the table; 4 wrote every release in full; 5 had no seals for those who left and for the values that are known."""

NUMBERS = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
metadata = sa.MetaData()

meta = sa.Table(
    "shoal_meta",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
state = sa.Table(
    "shoal_state",
    metadata,
    sa.Column("one", sa.Integer, primary_key=True),
    sa.Column("version", NUMBERS, nullable=False),
    sa.Column("next_record", NUMBERS, nullable=False),
    sa.Column("next_class", NUMBERS, nullable=False),
    sa.Column("baseline", sa.Double, nullable=False),
    sa.Column("changed", NUMBERS, nullable=False),
    sa.Column("types", sa.Text, nullable=False),
    sa.Column("before", sa.Text),
)
records = sa.Table(
    "shoal_records",
    metadata,
    sa.Column("number", NUMBERS, primary_key=True, autoincrement=False),
    sa.Column("person", NUMBERS, nullable=False),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("class", NUMBERS, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("version", NUMBERS, nullable=False, index=True),
    sa.Column("seal", sa.Text, nullable=False),
    sa.Column("place_seal", sa.Text, nullable=False),
)
snapshot = sa.Table(
    "shoal_snapshot",
    metadata,
    sa.Column("piece", NUMBERS, primary_key=True, autoincrement=False),
    sa.Column("pieces", NUMBERS, nullable=False),
    sa.Column("version", NUMBERS, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("seal", sa.Text, nullable=False),
)
"""A copy of the records in columns, to open from (`evolve/store/snapshot.py`)."""
gone = sa.Table(
    "shoal_gone",
    metadata,
    sa.Column("number", NUMBERS, primary_key=True, autoincrement=False),
    sa.Column("version", NUMBERS, nullable=False, index=True),
)
left = sa.Table(
    "shoal_left",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("person", NUMBERS, nullable=False),
    sa.Column("forgotten", sa.Boolean, nullable=False, default=False),
    sa.Column("seal", sa.Text, nullable=False),
)
"""Everybody who has ever left, by a digest of the key with the store's secret: who comes back is the same person."""
values = sa.Table(
    "shoal_values",
    metadata,
    sa.Column("column", sa.Text, primary_key=True),
    sa.Column("position", NUMBERS, primary_key=True, autoincrement=False),
    sa.Column("value", sa.Text),
    sa.Column("version", NUMBERS, nullable=False),
    sa.Column("seal", sa.Text, nullable=False),
)
batches = sa.Table(
    "shoal_batches",
    metadata,
    sa.Column("version", NUMBERS, primary_key=True, autoincrement=False),
    sa.Column("id", sa.Text, unique=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("counts", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("undone", sa.Text),
    sa.Column("content", sa.Text),
    sa.Column("seal", sa.Text, nullable=False),
)
journal = sa.Table(
    "shoal_journal",
    metadata,
    sa.Column("number", NUMBERS, primary_key=True, autoincrement=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("person", NUMBERS),
    sa.Column("key", sa.Text),
    sa.Column("class", NUMBERS),
    sa.Column("content", sa.Text),
)
releases = sa.Table(
    "shoal_releases",
    metadata,
    sa.Column("number", NUMBERS, primary_key=True, autoincrement=False),
    sa.Column("version", NUMBERS, nullable=False),
    sa.Column("manifest", sa.Text, nullable=False),
    sa.Column("masked", sa.LargeBinary),
    sa.Column("members", sa.LargeBinary, nullable=False),
    sa.Column("shown", sa.LargeBinary),
    sa.Column("faces", sa.LargeBinary),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("seal", sa.Text, nullable=False),
    sa.Column("rows_seal", sa.Text, nullable=False),
)
"""What is kept of each is said in `evolve/store/archive.py`; `shown` and `faces` of the newest two alone."""
feeds = sa.Table(
    "shoal_feeds",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("mark", sa.Text, nullable=False),
    sa.Column("version", NUMBERS, nullable=False),
)

# Rows of an IN list; SQLite allows 32,766 parameters and PostgreSQL 65,535.
CHUNK = 10_000


def create_tables(connection: sa.Connection) -> None:
    """All tables of the present layout, empty."""
    metadata.create_all(connection, checkfirst=False)
    written = {"layout": str(LAYOUT), "shoal": VERSION, "secret": secrets.token_hex(32)}
    connection.execute(meta.insert(), [{"name": name, "value": value} for name, value in written.items()])


def layout_of(connection: sa.Connection) -> int | None:
    """The layout of the store in this database, or None where there is no store."""
    if not sa.inspect(connection).has_table(meta.name):
        return None
    found = connection.execute(sa.select(meta.c.value).where(meta.c.name == "layout")).scalar()
    return None if found is None else int(found)


def require_none(connection: sa.Connection, name: str) -> None:
    """Refuse to make a store where there is one."""
    if layout_of(connection) is not None:
        raise InputError(f"{name} holds a store already; open it, or choose another place.")


def require_layout(layout: int | None, name: str) -> bool:
    """Whether the store is of an older layout; refuses what is no store, and what a newer version wrote."""
    if layout is None:
        raise InputError(f"{name} holds no store; make one with shoal store create, or check the URL.")
    if layout > LAYOUT:
        raise InputError(
            f"The store in {name} was written by a newer version of Shoal (layout {layout}, this one knows up to "
            f"{LAYOUT}); install a newer version."
        )
    return layout < LAYOUT


def migrate(connection: sa.Connection, name: str) -> None:
    """Bring a store to the present layout, step by step, inside the caller's transaction."""
    layout = layout_of(connection)
    if not require_layout(layout, name):
        return
    for step in MIGRATIONS[int(layout or 0) - 1 :]:
        step(connection)
    connection.execute(meta.update().where(meta.c.name == "layout").values(value=str(LAYOUT)))


def _feeds(connection: sa.Connection) -> None:
    """Layout 2: how far each change feed has been read."""
    feeds.create(connection)


def _persons(connection: sa.Connection) -> None:
    """Layout 3: persons have numbers of their own, which they keep when they leave; of those who left before, none are known."""
    connection.execute(
        sa.text(
            f"CREATE TABLE {left.name} (digest TEXT PRIMARY KEY, person BIGINT NOT NULL, forgotten BOOLEAN NOT NULL)"
        )
    )
    connection.execute(meta.insert(), {"name": "secret", "value": secrets.token_hex(32)})
    for name, more in ((records.name, " NOT NULL DEFAULT 0"), (journal.name, "")):
        connection.execute(sa.text(f"ALTER TABLE {name} ADD COLUMN person BIGINT{more}"))
        connection.execute(sa.text(f"UPDATE {name} SET person = number"))
    for name, columns in ((records.name, ("seal", "place_seal")), (batches.name, ("seal",))):
        for column in columns:
            connection.execute(sa.text(f"ALTER TABLE {name} ADD COLUMN {column} TEXT NOT NULL DEFAULT ''"))
    connection.execute(sa.text(f"ALTER TABLE {batches.name} ADD COLUMN content TEXT"))
    from shoal.evolve.store.archive import rewrite_releases
    from shoal.evolve.store.seals import seal_all

    rewrite_releases(connection)
    seal_all(connection)


def _snapshot(connection: sa.Connection) -> None:
    """Layout 4: room for a snapshot, which the next change writes."""
    snapshot.create(connection)


def _changes(connection: sa.Connection) -> None:
    """Layout 5: releases are written as what changed since the one before; those that are there stay as they are."""


def _more_seals(connection: sa.Connection) -> None:
    """Layout 6: who left and which values are known are sealed, too."""
    from shoal.evolve.store.seals import seal_known

    for name in (left.name, values.name):
        connection.execute(sa.text(f"ALTER TABLE {name} ADD COLUMN seal TEXT NOT NULL DEFAULT ''"))
    seal_known(connection)


def secret_of(connection: sa.Connection) -> bytes:
    """What digests are made with."""
    return bytes.fromhex(connection.execute(sa.select(meta.c.value).where(meta.c.name == "secret")).scalar_one())


def digest_of(connection: sa.Connection, keys: Sequence[str]) -> list[str]:
    """What is kept of the keys of those who leave: nobody can read a key off it, and who has the store can recognize one."""
    secret = secret_of(connection)
    return [hmac.new(secret, key.encode(), "sha256").hexdigest() for key in keys]


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (_feeds, _persons, _snapshot, _changes, _more_seals)
"""MIGRATIONS[n - 1] brings layout n to layout n + 1."""


def chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Pieces that fit into one statement."""
    for begin in range(0, len(items), CHUNK):
        yield items[begin : begin + CHUNK]
