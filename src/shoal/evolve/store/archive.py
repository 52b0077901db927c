"""What a store remembers of its releases: enough to go on from them and to audit them, and nobody's own values for longer than
that takes.

- Of every release: which person was in which class, and the values that each class published, without saying whose they are.
- Of the newest: the rows behind it as well, since the next one may have to show them again.
- Of persons who are in earlier releases and not in the newest: a digest of what was last published of them, with the store's
  secret, so that one who is back with the same value is known to be so. Of persons who were forgotten there is none.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import NDArray

from shoal.columns import typed
from shoal.evolve.releases.guards import Numbers, Shown, Table
from shoal.evolve.releases.history import Finding, class_texts
from shoal.evolve.store import tables
from shoal.evolve.store.settings import Settings, decode_rows
from shoal.microdata import encode_sensitive
from shoal.spelling import looks_of

RECORD, CLASS, REGION, LIFE, DIGEST = "__record", "__class", "__region", "__life ", "__digest "


@dataclass(frozen=True, eq=False)
class Memory:
    """All releases of a store. `before` has the rows behind the newest; in `releases`, oldest first, nobody's row is known."""

    settings: Settings
    secret: bytes
    releases: tuple[Shown, ...]
    before: Shown | None
    faces: pl.DataFrame
    """Persons of earlier releases that are not in the newest: their last life and its digest, by attribute."""
    forgotten: frozenset[int]

    @property
    def next_class(self) -> int:
        """Above all class numbers in use."""
        return max([0, *(int(one.classes.max(initial=-1)) + 1 for one in self.releases)])

    def with_lives(self, table: Table) -> Table:
        """The table with its persons' lives, going on from what was published last of them."""
        return replace(table, lives=self.lives(table.records, table.frame))

    def lives(self, records: Numbers, frame: pl.DataFrame) -> dict[str, Numbers]:
        """Which life each row would be, were it published now."""
        schema, found = self.settings.schema, {}
        for name in schema.named("sensitive"):
            life = np.zeros(len(records), dtype=np.int64)
            if self.before is not None and self.before.lives is not None:
                at, there = _places(self.before.records, records)
                old = self.before.frame.select(pl.col(name).cast(frame.schema[name]))
                codes = encode_sensitive(pl.concat([old, frame.select(name)]), name, schema).codes
                changed = codes[at[there]] != codes[old.height :][there]
                life[there] = self.before.lives[name][at[there]] + changed
            at, there = _places(self.faces[RECORD].to_numpy(), records)
            for row in np.flatnonzero(there).tolist():
                was = self.faces.row(int(at[row]), named=True)
                life[row] = was[LIFE + name] + (not self._same(name, int(records[row]), frame[row], was[DIGEST + name]))
            found[name] = life
        return found

    def remembered(self, shown: Shown) -> Shown:
        """A release as it is kept: persons by class, and values by class, each in an order that says nothing of the other."""
        lives = self.lives(shown.records, shown.frame)
        members = np.lexsort((shown.records, shown.classes))
        texts = shown.texts or class_texts(shown, self.settings.schema)
        values = pl.DataFrame([*shown.frame.select(value_columns(self.settings)), pl.Series(CLASS, shown.classes)])
        return Shown(
            shown.records[members],
            shown.classes[members],
            values.sort(CLASS, *values.columns[:-1], nulls_last=True).drop(CLASS),
            {name: own[members] for name, own in lives.items()},
            texts,
        )

    def faces_after(self, shown: Shown) -> pl.DataFrame:
        """The faces once a release has been made: of those who are not in it any more, and not of those who are again."""
        kept = self.faces.filter(~pl.col(RECORD).is_in(shown.records))
        if self.before is None or self.before.lives is None:
            return kept
        before, lives = self.before, self.before.lives
        rows = np.flatnonzero((before.records >= 0) & ~np.isin(before.records, shown.records))
        columns: dict[str, Any] = {RECORD: before.records[rows]}
        for name in self.settings.schema.named("sensitive"):
            columns[LIFE + name] = lives[name][rows]
            columns[DIGEST + name] = pl.Series(
                [
                    None if int(before.records[row]) in self.forgotten else self._digest(name, before, row)
                    for row in rows.tolist()
                ],
                dtype=pl.String,
            )
        return pl.concat([kept, pl.DataFrame(columns, schema=kept.schema)])

    def after(self, shown: Shown) -> tuple[Memory, dict[str, Any]]:
        """The memory with one more release, given by the rows behind it, and what is written of it."""
        kept, faces = self.remembered(shown), self.faces_after(shown)
        rows, content = pack_rows(shown), pack(kept)
        before = unpack_rows(rows, kept, shown.frame)
        memory = replace(self, releases=(*self.releases, kept), before=before, faces=faces)
        return memory, {"members": content, "shown": rows, "faces": frame_bytes(faces)}

    def _digest(self, name: str, shown: Shown, row: int) -> str:
        return digest(self.secret, int(shown.records[row]), self._text(name, shown.frame[row]))

    def _same(self, name: str, person: int, row: pl.DataFrame, known: str | None) -> bool:
        """Whether somebody is back with the value published last; of who was forgotten, whether it may be that value."""
        text = self._text(name, row)
        if known is not None:
            return known == digest(self.secret, person, text)
        for release in reversed(self.releases):
            if len(own := release.classes[release.records == person]):
                published = release.frame.filter(pl.Series(release.classes == own[0]))
                return text in {self._text(name, published[i]) for i in range(published.height)}
        return False

    def _text(self, name: str, row: pl.DataFrame) -> str:
        """A value as it is compared: what a reader takes for the same is the same."""
        series, kind = typed(row[name], self.settings.schema.attributes[name])
        value = series[0]
        return "" if value is None else looks_of([value])[0] if kind == "category" else repr(value)


def digest(secret: bytes, person: int, text: str) -> str:
    """What is kept of a value of somebody who left."""
    return hashlib.blake2b(f"{person} {text}".encode(), key=secret, digest_size=16).hexdigest()


def value_columns(settings: Settings) -> list[str]:
    """The columns published as they are, and those that say what somebody's values are guarded by."""
    schema = settings.schema
    beside = settings.policy.beside(schema.named("sensitive"))
    wanted = [
        *schema.named("sensitive"),
        *schema.named("other"),
        *(name for names in beside.values() for name in names),
    ]
    return [name for name in dict.fromkeys(wanted) if name in schema.attributes]


def read_memory(connection: sa.Connection, settings: Settings, like: pl.DataFrame) -> Memory:
    """All releases, their values in the types of a frame: whole numbers may have become numbers since."""
    table = tables.releases.c
    found, before, faces = [], None, _no_faces(settings)
    for row in connection.execute(sa.select(table.members, table.shown, table.faces).order_by(table.number)):
        found.append(unpack(row.members, settings, like))
        before = None if row.shown is None else unpack_rows(row.shown, found[-1], like)
        faces = _no_faces(settings) if row.faces is None else pl.read_ipc(io.BytesIO(row.faces))
    gone = connection.execute(sa.select(tables.left.c.person).where(tables.left.c.forgotten)).scalars()
    return Memory(settings, tables.secret_of(connection), tuple(found), before, faces, frozenset(gone))


def rewrite_releases(connection: sa.Connection) -> None:
    """Layout 3: releases of a store that kept the rows behind each of them."""
    table = tables.releases
    rows = connection.execute(
        sa.text(f"SELECT number, version, manifest, masked, shown, at FROM {table.name} ORDER BY 1")
    ).all()
    text = connection.execute(sa.select(tables.meta.c.value).where(tables.meta.c.name == "settings")).scalar_one()
    settings, types = Settings.from_json(text), connection.execute(sa.select(tables.state.c.types)).scalar_one()
    connection.execute(sa.text(f"DROP TABLE {table.name}"))
    table.create(connection)
    memory = Memory(settings, tables.secret_of(connection), (), None, _no_faces(settings), frozenset())
    for row in rows:
        old = unpack_rows(bytes(row.shown), Shown(*_nobody()), decode_rows([], json.loads(types)))
        line: dict[str, Any]
        memory, line = memory.after(replace(old, texts=None, lives=None))
        connection.execute(table.update().values(shown=None, faces=None))
        line |= {name: getattr(row, name) for name in ("number", "version", "manifest", "masked", "at")}
        line |= {"seal": "", "rows_seal": ""}
        connection.execute(table.insert(), line)


def _nobody() -> tuple[Numbers, Numbers, pl.DataFrame]:
    none = np.zeros(0, dtype=np.int64)
    return none, none, pl.DataFrame()


def read_followed(connection: sa.Connection) -> list[Finding]:
    """What was found about rows that can be followed, release by release."""
    table = tables.releases.c
    rows = connection.execute(sa.select(table.manifest).order_by(table.number)).scalars()
    lines = [line for text in rows for line in json.loads(text).get("secret", {}).get("followed", [])]
    return [Finding(**{**line, "values": tuple(line["values"])}) for line in lines]


def pack(shown: Shown) -> bytes:
    """A remembered release as bytes."""
    names = shown.texts or {}
    regions = pl.Series(REGION, [names[number] for number in shown.classes.tolist()], dtype=pl.String)
    lives = [pl.Series(LIFE + name, own, dtype=pl.Int64) for name, own in (shown.lives or {}).items()]
    return frame_bytes(pl.DataFrame([*shown.frame, *_numbers(shown), regions, *lives]))


def unpack(content: bytes, settings: Settings, like: pl.DataFrame) -> Shown:
    """A remembered release."""
    rows = pl.read_ipc(io.BytesIO(content))
    names = value_columns(settings)
    values = rows.select(pl.col(name).cast(like.schema[name]) for name in names)
    lives = {name: rows[LIFE + name].to_numpy() for name in settings.schema.named("sensitive")}
    records, classes = rows[RECORD].to_numpy(), rows[CLASS].to_numpy()
    return Shown(records, classes, values, lives, dict(zip(classes.tolist(), rows[REGION], strict=True)))


def pack_rows(shown: Shown) -> bytes:
    """The rows behind the newest release as bytes."""
    return frame_bytes(shown.frame.with_columns(*_numbers(shown)))


def unpack_rows(content: bytes, remembered: Shown, like: pl.DataFrame) -> Shown:
    """The rows behind the newest release, with the lives that are remembered of it."""
    rows = pl.read_ipc(io.BytesIO(content))
    records, classes = rows[RECORD].to_numpy(), rows[CLASS].to_numpy()
    place = np.lexsort((records, classes))
    lives = {}
    for name, own in (remembered.lives or {}).items():
        lives[name] = np.empty(len(records), dtype=np.int64)
        lives[name][place] = own
    values = rows.drop(RECORD, CLASS).cast(dict(like.schema))  # type: ignore[arg-type]
    return Shown(records, classes, values, lives, remembered.texts)


def frame_bytes(frame: pl.DataFrame) -> bytes:
    """A frame as bytes."""
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="zstd")
    return buffer.getvalue()


def _numbers(shown: Shown) -> Sequence[pl.Series]:
    return pl.Series(RECORD, shown.records, dtype=pl.Int64), pl.Series(CLASS, shown.classes, dtype=pl.Int64)


def _no_faces(settings: Settings) -> pl.DataFrame:
    columns: Mapping[str, Any] = {RECORD: pl.Int64}
    for name in settings.schema.named("sensitive"):
        columns = {**columns, LIFE + name: pl.Int64, DIGEST + name: pl.String}
    return pl.DataFrame(schema=dict(columns))


def _places(known: Numbers, records: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """Where each record stands among some known ones, in whatever order, and whether it does; counterfeits do not."""
    if not len(known):
        return np.zeros(len(records), dtype=np.int64), np.zeros(len(records), dtype=bool)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known[order], records), len(known) - 1)
    return order[at], (known[order[at]] == records) & (records >= 0)
