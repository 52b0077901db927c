"""What is left in the files of a database between forgetting somebody and rewriting them.

Forgetting is a transaction; overwriting what it freed comes after it and takes as long as the store is large. A mark is
written with the transaction and goes when the files have been rewritten: a process that is killed in between leaves it, and
whoever opens the store next rewrites them. Until then `shoal store check` says so.
"""

from __future__ import annotations

import sqlalchemy as sa

from shoal.evolve.store import tables
from shoal.evolve.store.database import Database

DREGS = "dregs"
"""The mark, a row of `shoal_meta`."""


def note(connection: sa.Connection) -> None:
    """From here on there may be something left of somebody."""
    connection.execute(tables.meta.delete().where(tables.meta.c.name == DREGS))
    connection.execute(tables.meta.insert(), {"name": DREGS, "value": "yes"})


def noted(connection: sa.Connection) -> bool:
    """Whether there may be."""
    return connection.execute(sa.select(tables.meta.c.value).where(tables.meta.c.name == DREGS)).scalar() is not None


def scour(database: Database) -> None:
    """Rewrite the files, so that what was deleted is in none of them."""
    database.scrub([table.name for table in tables.metadata.sorted_tables])
    with database.writing() as connection:
        connection.execute(tables.meta.delete().where(tables.meta.c.name == DREGS))
