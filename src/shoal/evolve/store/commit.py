"""How a batch is written: keys are found, the classes follow, and what is needed to take it back is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Literal

import numpy as np
import polars as pl
import sqlalchemy as sa

from shoal.errors import InputError, raw
from shoal.evolve.i3m.classes import Batch, Classes, Numbers
from shoal.evolve.store import tables
from shoal.evolve.store.batch_input import KeyedRows, completed, widened
from shoal.evolve.store.live import Live, State
from shoal.evolve.store.renewal import helps
from shoal.evolve.store.seals import batch_seal, last_seal, left_rows, mark_left, place_seal, record_seal, write_values
from shoal.evolve.store.settings import Settings, decode_rows, encode_rows
from shoal.progress import Progress

# Rows that are written between two checks of the progress.
WRITTEN = 10_000


@dataclass(frozen=True)
class Prospect:
    """The release that would follow a change: its rows, those that would wait, its loss, what the audit would find.

    `refused` says why there would be none.
    """

    shown: int = 0
    waiting: Mapping[str, int] = field(default_factory=dict)
    counterfeits: int = 0
    loss: float | None = None
    findings: tuple[str, ...] = ()
    undecided: int = 0
    refused: str | None = None


@dataclass(frozen=True)
class Applied:
    """What a batch did. `applied` is false when its id had been applied before, or nothing in it was new.

    `advice` says when the table should be anonymized anew, and why; `note` what a renewal is worth to what is published, and
    `prospect` is what a dry run adds.
    """

    version: int
    batch: str | None
    applied: bool = True
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    moved: int = 0
    records: int = 0
    classes: int = 0
    loss: float = 0.0
    advice: str | None = None
    note: str | None = None
    prospect: Prospect | None = field(default=None, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        told = asdict(self)
        return {name: value for name, value in told.items() if name != "prospect" or value is not None}


@dataclass(frozen=True, eq=False)
class Located:
    """A batch whose keys have been found: `old` are the rows of the records to update, `delete` of those to delete."""

    insert: KeyedRows
    update: KeyedRows
    old: list[Any]
    delete: list[Any]
    unchanged: int

    @property
    def empty(self) -> bool:
        """Whether it changes nothing."""
        return not (self.insert.keys or self.update.keys or self.delete)

    @property
    def brought(self) -> pl.DataFrame:
        """All records that come with the batch."""
        return pl.concat([self.update.frame, self.insert.frame], how="vertical_relaxed")


def version_of(connection: sa.Connection, batch: str, content: str) -> int | None:
    """The version that a batch made, if it was applied; refuses another batch of the same name."""
    query = sa.select(tables.batches.c.version, tables.batches.c.content).where(tables.batches.c.id == batch)
    row = connection.execute(query).one_or_none()
    if row is not None and row.content not in (None, content):
        raise InputError(
            f"The batch '{batch}' was applied as version {row.version}, and what is given now under its name is something else; "
            "give it a name of its own."
        )
    return None if row is None else int(row.version)


def mark_of(connection: sa.Connection, feed: tuple[str, str] | None) -> tuple[str, str] | None:
    """How far the feed of this name has been read; None when never, or when there is no feed."""
    if feed is None:
        return None
    found = connection.execute(sa.select(tables.feeds.c.mark).where(tables.feeds.c.name == feed[0])).scalar()
    return None if found is None else (feed[0], found)


def records_of(connection: sa.Connection, keys: Sequence[str]) -> dict[str, Any]:
    """The rows of those of the keys that are in the table."""
    found: dict[str, Any] = {}
    for part in tables.chunks(keys):
        query = sa.select(tables.records).where(tables.records.c.key.in_(part))
        found.update({row.key: row for row in connection.execute(query)})
    return found


def locate(
    connection: sa.Connection, settings: Settings, state: State, given: Mapping[str, KeyedRows], leaving: list[str]
) -> Located:
    """Find the keys of a batch in the store; refuses those that should not be there, and those that should."""
    wanted = [key for rows in given.values() for key in rows.keys] + leaving
    _require_once(wanted, settings.key)
    found = records_of(connection, wanted)
    for row, key in enumerate(given["insert"].keys if "insert" in given else []):
        if key in found:
            raise InputError(
                f"Column '{settings.key}', record {row + 1} of the batch: {raw(key, 'the key', 'key')} is in the store already; "
                "update it, or "
                "leave it out."
            )
    for keys in (given["update"].keys if "update" in given else [], leaving):
        for row, key in enumerate(keys):
            if key not in found:
                raise InputError(
                    f"Column '{settings.key}', record {row + 1} of the batch: {raw(key, 'the key', 'key')} is not in the store; "
                    "insert it, or "
                    "leave it out."
                )
    given = {**given}
    if "update" in given:
        stored = decode_rows([found[key].content for key in given["update"].keys], state.types)
        given["update"] = completed(given["update"], stored)
    coming = [given[name] for name in ("insert", "upsert") if name in given]
    changing = [given[name] for name in ("update", "upsert") if name in given]
    new = [rows.take([i for i, key in enumerate(rows.keys) if key not in found]) for rows in coming]
    old = [rows.take([i for i, key in enumerate(rows.keys) if key in found]) for rows in changing]
    altered = [rows.take(_altered(rows, found, state)) for rows in old]
    update = _together(altered, state)
    return Located(
        insert=_together(new, state),
        update=update,
        old=[found[key] for key in update.keys],
        delete=[found[key] for key in leaving],
        unchanged=sum(len(rows.keys) for rows in old) - len(update.keys),
    )


def commit(
    connection: sa.Connection,
    settings: Settings,
    live: Live,
    state: State,
    located: Located,
    batch: str | None,
    mark: tuple[str, str] | None,
    progress: Progress,
    content: str | None = None,
) -> Applied:
    """Apply a batch to the classes and write it; the caller commits."""
    classes, version = live.classes, state.version + 1
    numbers, labels = classes.records, classes.labels
    fresh = live.learn(located.brought)
    coming = np.arange(state.next_record, state.next_record + len(located.insert.keys))
    update_codes, update_secrets = live.books.codes(located.update.frame)
    insert_codes, insert_secrets = live.books.codes(located.insert.frame)
    with progress.stage("following the batch", 0.4) as part:
        change = classes.apply(
            delete=[row.number for row in located.delete],
            update=Batch(update_codes, update_secrets, [row.number for row in located.old]),
            insert=Batch(insert_codes, insert_secrets, coming.tolist()),
            progress=part,
        )
        live.next_version = version  # from here on, whoever fails has changed what is in memory
    with progress.stage("refining", 0.4) as part:
        moved = np.union1d(change.moved, _refined(classes, change.touched, settings, part))
    moved = np.setdiff1d(moved, np.concatenate([change.inserted, change.updated]))
    where = Whereabouts(classes)
    was = labels[np.searchsorted(numbers, moved)]
    elsewhere = where.of(moved) != was
    moved, was = moved[elsewhere], was[elsewhere]

    with progress.stage("writing the batch") as part:
        _write_journal(connection, located, coming, moved, was, part)
        _write_records(connection, where, located, coming, version, part)
        _write_classes(connection, where, moved, version, part)
    write_values(connection, fresh, version)
    before = {"baseline": state.baseline, "changed": state.changed, "types": state.types}
    if mark is not None:
        before["feed"], before["mark"] = mark[0], _write_mark(connection, mark, version)
    counts = {
        "inserted": len(located.insert.keys),
        "updated": len(located.update.keys),
        "deleted": len(located.delete),
        "unchanged": located.unchanged,
        "moved": len(moved),
    }
    write_batch_row(connection, version, "batch", counts, batch, content)
    _write_state(
        connection,
        state,
        next_record=state.next_record + len(coming),
        next_class=classes.next_class,
        baseline=classes.baseline,
        changed=classes.changed,
        types=json.dumps(widened(state.types, located.brought)),
        before=json.dumps(before),
    )
    return _told(version, batch, classes, counts, advised=helps(connection, settings.guard))


def adopt(connection: sa.Connection, live: Live, state: State, labels: Any, progress: Progress) -> Applied:
    """Give the records the classes of a full run."""
    live.next_version = version = state.version + 1
    change = live.classes.adopt(labels)
    _write_classes(connection, Whereabouts(live.classes), change.moved, version, progress)
    connection.execute(tables.journal.delete())
    write_batch_row(connection, version, "renewal", {"moved": len(change.moved)})
    _write_state(
        connection,
        state,
        next_class=live.classes.next_class,
        baseline=live.classes.baseline,
        changed=live.classes.changed,
        before=None,
    )
    return _told(version, None, live.classes, {"moved": len(change.moved)}, advised=True)


def forgotten(connection: sa.Connection, state: State, deleted: int) -> int:
    """Make of the deletion of people who are to be forgotten, if there was one, a change that cannot be taken back."""
    version = state.version + 1
    if deleted:
        table = tables.batches
        row = {**connection.execute(sa.select(table).where(table.c.version == version)).one()._mapping}
        before = connection.execute(sa.select(table.c.seal).where(table.c.version == version - 1)).scalar() or ""
        row["kind"] = "forgetting"
        renamed = {"kind": row["kind"], "seal": batch_seal(before, row)}
        connection.execute(table.update().where(table.c.version == version).values(**renamed))
        connection.execute(tables.state.update().values(before=None))
        return version
    write_batch_row(connection, version, "forgetting", {"deleted": 0})
    _write_state(connection, state, before=None)
    return version


def take_back(connection: sa.Connection, state: State, progress: Progress) -> Applied:
    """Undo the last batch from the journal."""
    last = connection.execute(sa.select(tables.batches).where(tables.batches.c.version == state.version)).one()
    if state.before is None:
        raise InputError(
            f"There is nothing to undo: the last change was a {last.kind} (version {state.version}), and only the last batch "
            "can be taken back."
        )
    version, before = state.version + 1, state.before
    rows: dict[str, list[Any]] = {"inserted": [], "deleted": [], "updated": [], "moved": []}
    for row in connection.execute(sa.select(tables.journal)):
        rows[row.action].append(row)
    inserted = [row.number for row in rows["inserted"]]
    _remove(connection, _found(connection, inserted), version, progress)
    back = [row.number for row in rows["deleted"]]
    for part in tables.chunks(back):
        connection.execute(tables.gone.delete().where(tables.gone.c.number.in_(part)))
    deleted = [record_row(r.number, r.person, r.key, r._mapping["class"], r.content, version) for r in rows["deleted"]]
    _many(connection, tables.records.insert(), deleted, progress)
    target = tables.records.c
    updated = [record_row(r.number, r.person, r.key, r._mapping["class"], r.content, version) for r in rows["updated"]]
    _rewrite(connection, updated, version, progress)
    _replace(connection, [(row.number, row._mapping["class"]) for row in rows["moved"]], version, progress)
    connection.execute(tables.values.delete().where(tables.values.c.version == state.version))
    if "feed" in before:
        feed = tables.feeds.c.name == before["feed"]
        connection.execute(tables.feeds.delete().where(feed))
        if before["mark"] is not None:
            connection.execute(
                tables.feeds.insert(), {"name": before["feed"], "mark": before["mark"], "version": version}
            )
    connection.execute(tables.journal.delete())
    connection.execute(
        tables.batches.update().where(tables.batches.c.version == state.version).values(id=None, undone=last.id or "")
    )
    counts: dict[str, Any] = {"inserted": len(back), "deleted": len(rows["inserted"]), "updated": len(rows["updated"])}
    counts["moved"] = len(rows["moved"])
    write_batch_row(connection, version, "undo", counts)
    _write_state(
        connection,
        state,
        baseline=before["baseline"],
        changed=before["changed"],
        types=json.dumps(before["types"]),
        before=None,
    )
    there = connection.execute(
        sa.select(sa.func.count(), sa.func.count(sa.distinct(target["class"]))).select_from(tables.records)
    ).one()
    return replace(Applied(version, last.id, records=there[0], classes=there[1]), **counts)


def _refined(classes: Classes, touched: Numbers, settings: Settings, progress: Progress) -> Numbers:
    """Search among the classes that changed, as hard as the store was told; gives the records that moved."""
    if settings.refine is False:
        return np.zeros(0, dtype=np.int64)
    with progress.stage(weight=0.5) as part:
        first = classes.optimize(touched, progress=part)
    if settings.refine is True or settings.refine == "fast":
        return first.moved
    left = np.setdiff1d(np.union1d(touched, first.touched), first.dissolved)
    effort: Literal["fast"] | float = "fast" if isinstance(settings.refine, str) else float(settings.refine)
    with progress.stage() as part:
        return np.union1d(first.moved, classes.refine(left, effort=effort, seed=settings.seed, progress=part).moved)


class Whereabouts:
    """Where each record is after a step."""

    def __init__(self, classes: Classes) -> None:
        self.numbers, self.labels = classes.records, classes.labels

    def of(self, records: Numbers) -> Numbers:
        """The classes of these records."""
        return np.asarray(self.labels[np.searchsorted(self.numbers, records)])


def write_batch_row(
    connection: sa.Connection,
    version: int,
    kind: str,
    counts: Mapping[str, int],
    batch: str | None = None,
    content: str | None = None,
) -> None:
    """Remember a change; `content` says what a batch with a name brought (`seals.batch_content`)."""
    row: dict[str, Any] = {"version": version, "id": batch, "kind": kind, "counts": json.dumps(dict(counts))}
    row |= {"at": datetime.now(UTC).isoformat(timespec="seconds"), "undone": None, "content": content}
    before = last_seal(connection, tables.batches, tables.batches.c.version)
    connection.execute(tables.batches.insert(), {**row, "seal": batch_seal(before, row)})


def record_row(number: int, person: int, key: str, place: int, content: str, version: int) -> dict[str, Any]:
    """A record as it is written, with its seals."""
    row = {"number": number, "person": person, "key": key, "class": place, "content": content, "version": version}
    own = {"seal": record_seal(number, person, key, content), "place_seal": place_seal(number, place, version)}
    return {**row, **own}


def _require_once(keys: Sequence[str], column: str) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise InputError(
                f"Column '{column}': {raw(key, 'one key', 'key')} is named twice in one batch; do one thing with it at a time."
            )
        seen.add(key)


def _altered(rows: KeyedRows, found: Mapping[str, Any], state: State) -> list[int]:
    """Those whose values differ from the stored ones, however these were written."""
    stored = encode_rows(decode_rows([found[key].content for key in rows.keys], state.types))
    return [i for i, (new, old) in enumerate(zip(encode_rows(rows.frame), stored, strict=True)) if new != old]


def _together(parts: list[KeyedRows], state: State) -> KeyedRows:
    """Rows of several sources; where there are none, they have the columns of the store all the same."""
    frame = pl.concat([decode_rows([], state.types), *(rows.frame for rows in parts)], how="vertical_relaxed")
    return KeyedRows([key for rows in parts for key in rows.keys], frame)


def _write_journal(
    connection: sa.Connection, located: Located, coming: Numbers, moved: Numbers, was: Numbers, progress: Progress
) -> None:
    connection.execute(tables.journal.delete())
    rows = [
        {"number": number, "action": "inserted", "person": None, "key": None, "class": None, "content": None}
        for number in coming.tolist()
    ]
    for action, images in (("updated", located.old), ("deleted", located.delete)):
        rows += [{**_whole(row), "action": action} for row in images]
    rows += [
        {"number": number, "action": "moved", "person": None, "key": None, "class": label, "content": None}
        for number, label in zip(moved.tolist(), was.tolist(), strict=True)
    ]
    _many(connection, tables.journal.insert(), rows, progress)


def _write_records(
    connection: sa.Connection,
    where: Whereabouts,
    located: Located,
    coming: Numbers,
    version: int,
    progress: Progress,
) -> None:
    _remove(connection, located.delete, version, progress)
    persons = persons_of(connection, located.insert.keys, coming.tolist())
    changed = np.array([row.number for row in located.old], dtype=np.int64)
    places, texts = where.of(changed).tolist(), encode_rows(located.update.frame)
    updated = [
        record_row(row.number, row.person, row.key, place, text, version)
        for row, place, text in zip(located.old, places, texts, strict=True)
    ]
    _rewrite(connection, updated, version, progress)
    places, texts = where.of(coming).tolist(), encode_rows(located.insert.frame)
    lines = zip(coming.tolist(), persons, located.insert.keys, places, texts, strict=True)
    _many(connection, tables.records.insert(), [record_row(*line, version) for line in lines], progress)


def _write_classes(
    connection: sa.Connection, where: Whereabouts, moved: Numbers, version: int, progress: Progress
) -> None:
    _replace(connection, list(zip(moved.tolist(), where.of(moved).tolist(), strict=True)), version, progress)


def _rewrite(connection: sa.Connection, rows: list[dict[str, Any]], version: int, progress: Progress) -> None:
    """Records with another content."""
    columns = {"class": "to", "content": "text", "seal": "one", "place_seal": "other"}
    change = tables.records.update().where(tables.records.c.number == sa.bindparam("at"))
    change = change.values({**{name: sa.bindparam(bound) for name, bound in columns.items()}, "version": version})
    bound_rows = [{"at": r["number"], **{b: r[n] for n, b in columns.items()}} for r in rows]
    _many(connection, change, bound_rows, progress)


def _replace(connection: sa.Connection, moved: list[tuple[int, int]], version: int, progress: Progress) -> None:
    """Records in another class."""
    change = tables.records.update().where(tables.records.c.number == sa.bindparam("at"))
    change = change.values({"class": sa.bindparam("to"), "place_seal": sa.bindparam("other"), "version": version})
    rows = [{"at": at, "to": to, "other": place_seal(at, to, version)} for at, to in moved]
    _many(connection, change, rows, progress)


def persons_of(connection: sa.Connection, keys: Sequence[str], numbers: Sequence[int]) -> list[int]:
    """The persons of new records: those who left have the number they had, the others that of their record."""
    if not keys:
        return []
    digests = tables.digest_of(connection, keys)
    known: dict[str, int] = {}
    for part in tables.chunks(digests):
        these = tables.left.c.digest.in_(part)
        query = sa.select(tables.left.c.digest, tables.left.c.person).where(these)
        known.update({row.digest: row.person for row in connection.execute(query)})
        mark_left(connection, these, forgotten=False)
    return [known.get(digest, number) for digest, number in zip(digests, numbers, strict=True)]


def _found(connection: sa.Connection, numbers: list[int]) -> list[Any]:
    """The rows of these records."""
    found: list[Any] = []
    for part in tables.chunks(numbers):
        found += connection.execute(sa.select(tables.records).where(tables.records.c.number.in_(part))).all()
    return found


def _remove(connection: sa.Connection, rows: Sequence[Any], version: int, progress: Progress) -> None:
    """Records go; of their persons remains who they were, should they come back."""
    numbers = [row.number for row in rows]
    for part in tables.chunks(numbers):
        progress.check()
        connection.execute(tables.records.delete().where(tables.records.c.number.in_(part)))
    _many(connection, tables.gone.insert(), [{"number": number, "version": version} for number in numbers], progress)
    digests = tables.digest_of(connection, [row.key for row in rows]) if rows else []
    for part in tables.chunks(digests):
        connection.execute(tables.left.delete().where(tables.left.c.digest.in_(part)))
    persons = zip(digests, (row.person for row in rows), strict=True)
    _many(connection, tables.left.insert(), left_rows(tables.secret_of(connection), persons), progress)


def _write_mark(connection: sa.Connection, mark: tuple[str, str], version: int) -> str | None:
    """Remember how far a feed was read; gives how far it had been read before."""
    was = mark_of(connection, mark)
    connection.execute(tables.feeds.delete().where(tables.feeds.c.name == mark[0]))
    connection.execute(tables.feeds.insert(), {"name": mark[0], "mark": mark[1], "version": version})
    return None if was is None else was[1]


def _write_state(connection: sa.Connection, state: State, **more: Any) -> None:
    done = connection.execute(
        tables.state.update().where(tables.state.c.version == state.version).values(version=state.version + 1, **more)
    )
    if done.rowcount != 1:
        raise InputError(
            "Another process changed the store at the same moment; nothing was done: give the batch again."
        )


def _whole(row: Any) -> dict[str, Any]:
    return {
        "number": row.number,
        "person": row.person,
        "key": row.key,
        "class": row._mapping["class"],
        "content": row.content,
    }


def _many(connection: sa.Connection, statement: Any, rows: Sequence[Mapping[str, Any]], progress: Progress) -> None:
    """The same statement for many rows, of numbers and texts alone: the driver takes them as they are, in half the time."""
    if not rows:
        return
    compiled = statement.compile(dialect=connection.dialect, column_keys=sorted(rows[0]))
    fixed = {name: value for name, value in compiled.params.items() if name not in rows[0]}
    for begin in range(0, len(rows), WRITTEN):
        progress.check()
        part = rows[begin : begin + WRITTEN]
        given: list[Any] = [{**fixed, **row} for row in part] if fixed else list(part)
        if compiled.positional:
            in_order = itemgetter(*compiled.positiontup)
            given = [in_order(row) for row in given]
        connection.exec_driver_sql(str(compiled), given)


def _told(version: int, batch: str | None, classes: Classes, counts: Mapping[str, Any], *, advised: bool) -> Applied:
    """What was done. Anonymizing anew is advised where it lowers the loss of what is published, and not elsewhere."""
    applied = Applied(
        version,
        batch,
        records=classes.n,
        classes=len(classes.numbers),
        loss=classes.nil,
        advice=classes.needs_full_run() if advised else None,
    )
    return replace(applied, **counts)
