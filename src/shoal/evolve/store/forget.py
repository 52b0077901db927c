"""Forgetting somebody: the key and the values go from everywhere in the store, and what is published stays as it is.

The row of a class that was published cannot simply vanish: its absence would tell its value to whoever has the release
before. It stays as one of the rows of its class, with the quasi-identifiers of another one, until the class leaves. What
remains of the person besides is a number: in which class of which release it was, and under which digest it would be known
again. Without that, somebody who is forgotten and comes back would be published as a stranger beside the old releases.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa

from shoal.errors import InputError, raw
from shoal.evolve.releases.guards import Numbers
from shoal.evolve.store import dregs, tables
from shoal.evolve.store.archive import DIGEST
from shoal.evolve.store.changes import CLASS, RECORD, frame_bytes, read_frame
from shoal.evolve.store.codebook import Books
from shoal.evolve.store.commit import Prospect
from shoal.evolve.store.live import State
from shoal.evolve.store.seals import mark_left, rows_seal, write_values
from shoal.evolve.store.settings import Settings
from shoal.evolve.store.snapshot import read_held, write


@dataclass(frozen=True)
class Forgotten:
    """What was done: people forgotten, how many of them were still in the table, and rows of theirs that stay published."""

    version: int
    forgotten: int
    deleted: int
    still_shown: int
    prospect: Prospect | None = field(default=None, compare=False)
    """Of a dry run, the release that would follow."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        told = asdict(self)
        return {name: value for name, value in told.items() if name != "prospect" or value is not None}


def left_persons(connection: sa.Connection, settings: Settings, keys: list[str]) -> list[int]:
    """The persons of keys that are not in the table any more; refuses those that never were."""
    digests = tables.digest_of(connection, keys)
    known: dict[str, int] = {}
    for part in tables.chunks(digests):
        query = sa.select(tables.left.c.digest, tables.left.c.person).where(tables.left.c.digest.in_(part))
        known.update({row.digest: row.person for row in connection.execute(query)})
    column = settings.person or settings.key
    for row, one in enumerate(digests):
        if one not in known:
            raise InputError(
                f"Column '{column}', key {row + 1}: nobody with {raw(keys[row], 'this key', 'the key')} is or was in the store; "
                "check it, or leave it out."
            )
    return [known[one] for one in digests]


def wipe(connection: sa.Connection, settings: Settings, state: State, persons: list[int]) -> int:
    """Remove what is left of persons that are not in the table; how many rows of theirs the newest release shows."""
    for part in tables.chunks(persons):
        mark_left(connection, tables.left.c.person.in_(part), forgotten=True)
    connection.execute(tables.journal.delete())
    dregs.note(connection)
    _relearn(connection, settings, state)
    table, shown = tables.releases, 0
    kept = sa.select(table.c.number, table.c.shown, table.c.faces).where(table.c.shown.is_not(None))
    for release in connection.execute(kept.order_by(table.c.number)).all():
        rows, faces = read_frame(release.shown), read_frame(release.faces)
        digests = [name for name in faces.columns if name.startswith(DIGEST)]
        them = pl.col(RECORD).is_in(persons)
        faces = faces.with_columns(pl.when(~them).then(pl.col(name)).alias(name) for name in digests)
        rest = frame_bytes(_anonymous(rows, settings, persons)), frame_bytes(faces)
        written = {"shown": rest[0], "faces": rest[1], "rows_seal": rows_seal(*rest)}
        connection.execute(table.update().where(table.c.number == release.number).values(**written))
        shown = int(rows[RECORD].is_in(persons).sum())
    return shown


def _anonymous(rows: pl.DataFrame, settings: Settings, persons: list[int]) -> pl.DataFrame:
    """Rows of the newest release in which these persons have the quasi-identifiers of somebody else of their class.

    Where nobody else is left, the whole class is about to leave, and any will do.
    """
    theirs = np.isin(rows[RECORD].to_numpy(), persons)
    classes, others = rows[CLASS].to_numpy(), np.flatnonzero(~theirs)
    source: Numbers = np.arange(rows.height)
    for row in np.flatnonzero(theirs).tolist():
        beside = others[classes[others] == classes[row]]
        source[row] = beside[0] if len(beside) else others[0] if len(others) else -1
    names = settings.schema.named("quasi")
    like = rows.select(names)[np.maximum(source, 0)]
    if (source < 0).any():
        like = like.clear(rows.height)
    return rows.with_columns(like[name] for name in names)


def _relearn(connection: sa.Connection, settings: Settings, state: State) -> None:
    """The values that the table has, and no others; and a snapshot in which nobody is who is not in it."""
    held = read_held(connection, state.types, state.version)
    write(connection, state.version, held)
    empty = Books(settings.schema, settings.policy)
    connection.execute(tables.values.delete())
    write_values(connection, empty.learn(held.frame).news(empty), state.version)
