"""How many releases a store keeps in full.

The masked table of a release is the larger part of what a store keeps of it. The newest ones are kept, as many as the setting
`retention` says (all by default); of those before them it is dropped, and they cannot be written to a file again. Their
manifest stays, with the digest of the table, by which whoever has the file can hold it against the store.

What guards and audits ask is never dropped, for any release: which person was in which class, by number, with which life;
the values of each class; what it published of its quasi-identifiers; and the rows that could be followed
(`evolve/store/archive.py`). The audit's knowledge, its cells and its counts are made of these alone, and so are the plans of
the guards: no masked table is read for either. So both answer the same with any retention, and there is no setting by which
they would not. How much that is follows what changes from release to release, not how many there are (`evolve/store/changes.py`).
"""

from __future__ import annotations

import json
from contextlib import suppress

import sqlalchemy as sa

from shoal.evolve.store import tables
from shoal.evolve.store.database import Database, UnavailableError
from shoal.evolve.store.live import read_state
from shoal.evolve.store.settings import Settings

COMPACTED = "compacted"
"""The row of `shoal_meta` with the number of the last release that is not kept in full any more."""


def retain(database: Database, settings: Settings) -> int:
    """Keep so many releases in full from now on; how many have been compacted for it."""
    with database.writing() as connection:
        read_state(connection, lock=True)
        table = tables.meta
        connection.execute(table.update().where(table.c.name == "settings").values(value=settings.to_json()))
        count = compact(connection)
    if count:
        # A smaller file is welcome and not promised: while somebody reads, what is free is used for what comes next.
        with suppress(UnavailableError):
            database.scrub([tables.releases.name])
    return count


def compact(connection: sa.Connection) -> int:
    """Drop the tables of the releases that are not to be kept in full any more; how many there were."""
    # As the store says it now: another process may have changed it since this one opened the store.
    keep = json.loads(str(_meta(connection, "settings"))).get("retention")
    table = tables.releases.c
    if keep is None:
        return 0
    query = sa.select(table.number).where(table.masked.is_not(None)).order_by(table.number.desc())
    older = list(connection.execute(query).scalars())[keep:]
    if older:
        connection.execute(tables.releases.update().where(table.number <= older[0]).values(masked=None))
        connection.execute(tables.meta.delete().where(tables.meta.c.name == COMPACTED))
        connection.execute(tables.meta.insert(), {"name": COMPACTED, "value": str(older[0])})
    return len(older)


def last_compacted(connection: sa.Connection) -> int:
    """The number of the last release that is not kept in full; 0 when all are."""
    return int(_meta(connection, COMPACTED) or 0)


def _meta(connection: sa.Connection, name: str) -> str | None:
    return connection.execute(sa.select(tables.meta.c.value).where(tables.meta.c.name == name)).scalar()
