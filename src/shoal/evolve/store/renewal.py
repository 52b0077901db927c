"""What a renewal is worth: under which guard the classes of a store are what is published next, and where they are not.

Without a guard, and before the first release, a release shows the classes that the store has: renewing them lowers its loss.
Under batching what was published stays together; a renewal can only have it cut finer, in the next release
(`evolve/releases/batching.py`). Under m-invariance every release is cut anew from the records.
"""

from __future__ import annotations

import sqlalchemy as sa

from shoal.evolve.releases.guards import Guard
from shoal.evolve.store import tables

RECUT = "recut"


def helps(connection: sa.Connection, guard: Guard) -> bool:
    """Whether the next release shows the classes of the store."""
    if guard == "none":
        return True
    counted = sa.func.length(tables.releases.c.members) > 0  # those that were not withdrawn
    return connection.execute(sa.select(tables.releases.c.number).where(counted).limit(1)).scalar() is None


def recutting(connection: sa.Connection) -> bool:
    """Whether the next release cuts what was published finer, where it may."""
    return connection.execute(sa.select(tables.meta.c.value).where(tables.meta.c.name == RECUT)).scalar() is not None


def note_recut(connection: sa.Connection, wanted: bool) -> None:
    """Remember whether it does, until there is a release."""
    connection.execute(tables.meta.delete().where(tables.meta.c.name == RECUT))
    if wanted:
        connection.execute(tables.meta.insert(), {"name": RECUT, "value": "yes"})
