"""Withdrawing a release that nobody has: the guards and the audit go on as if it had never been made.

A release that is made and not handed out costs something all the same: the next one is planned after it. So the last one can
be taken back, on the word of its owner. Of what it was, only the manifest is kept, and its number is not given again. The rows
behind the release before it are kept for this until the next one is made (`evolve/store/archive.py`).

Nothing here can find out whether the word is true. Whoever has the release all the same can lay it beside later ones; these
were not planned after it, and the audit does not know it any more.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from shoal.errors import ConfigError, InputError
from shoal.evolve.store import tables
from shoal.evolve.store.database import Database
from shoal.evolve.store.live import read_state
from shoal.evolve.store.seals import release_seal, rows_seal


@dataclass(frozen=True)
class Withdrawn:
    """A release that was withdrawn, and the last one that counts now, if there is one."""

    number: int
    last: int | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def withdraw(database: Database, *, never_handed_out: bool) -> Withdrawn:
    """Take back the last release: of what it was, only its manifest is kept."""
    table = tables.releases
    with database.writing() as connection:
        read_state(connection, lock=True)
        rows = connection.execute(sa.select(table).order_by(table.c.number.desc())).all()
        if not rows:
            raise InputError("The store has no release to withdraw; make one with shoal store release.")
        last, before = rows[0], rows[1] if len(rows) > 1 else None
        rest = next((row for row in rows[1:] if row.members), None)
        if not last.members:
            raise InputError(
                f"Release {last.number}, the last one, has been withdrawn already, and those before it are what later ones were "
                "made after; only the last release can be withdrawn."
            )
        if never_handed_out is not True:
            raise ConfigError(
                f"Release {last.number} can be withdrawn only if nobody has it: say so with --never-handed-out "
                "(never_handed_out=True). If somebody may have it, leave it: the next release will be safe beside it."
            )
        if rest is not None and rest.shown is None:
            raise InputError(
                f"Release {last.number} cannot be withdrawn, because the next one would follow release {rest.number}, and the "
                "rows behind that are not kept any more; go on from here."
            )
        told = {**json.loads(last.manifest), "withdrawn": datetime.now(UTC).isoformat(timespec="seconds")}
        row = {**last._mapping, "manifest": json.dumps(told, ensure_ascii=False, sort_keys=True)}
        row |= {"members": b"", "masked": None, "shown": None, "faces": None}
        row |= {
            "seal": release_seal(before.seal if before is not None else "", row),
            "rows_seal": rows_seal(None, None),
        }
        connection.execute(table.update().where(table.c.number == last.number).values(**row))
    return Withdrawn(last.number, None if rest is None else rest.number)
