"""What a store remembers of its releases: enough to go on from them and to audit them, and nobody's own values for longer than
that takes.

- Of every release: which person was in which class, and the values that each class published, without saying whose they are;
  written as what changed since the release before (`evolve/store/changes.py`).
- Of the newest: the rows behind it as well, since the next one may have to show them again. Of the one before it too, since
  the newest may be withdrawn. Of one that was withdrawn nothing but its manifest; it has no members.
- Of persons who are in earlier releases and not in the newest: a digest of what was last published of them, with the store's
  secret, so that one who is back with the same value is known to be so. Of persons who were forgotten there is none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import NDArray

from shoal.columns import typed
from shoal.evolve.releases.guards import Numbers, Shown, Table, changed
from shoal.evolve.releases.history import Finding, class_texts
from shoal.evolve.releases.people import ROWS, each, goes_on, of_people, values_of
from shoal.evolve.releases.rows import in_order, numbered, places, taken
from shoal.evolve.store import tables
from shoal.evolve.store.changes import (
    CLASS,
    LIFE,
    RECORD,
    amended,
    frame_bytes,
    life_names,
    numbers_of,
    pack,
    read_frame,
    unpack,
)
from shoal.evolve.store.settings import Settings, decode_rows
from shoal.microdata import encode_sensitive
from shoal.spelling import looks_of

DIGEST = "__digest "


@dataclass(frozen=True, eq=False)
class Memory:
    """All releases of a store. `before` has the rows behind the newest; in `releases`, oldest first, nobody's row is known."""

    settings: Settings
    secret: bytes
    numbers: tuple[int, ...]
    """Those of the releases, which are missing where one was withdrawn."""
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
        lives = self.lives(table.records, table.frame)
        if ROWS not in lives:
            return replace(table, lives=lives)
        at = places(self.faces[RECORD].to_numpy(), table.records)
        there, differs = np.flatnonzero(at >= 0), np.zeros(len(table.records), dtype=bool)
        differs[there] = lives[ROWS][there] != self.faces[LIFE + ROWS].to_numpy()[at[there]]
        return replace(table, lives=lives, differs=differs)

    def lives(self, records: Numbers, frame: pl.DataFrame) -> dict[str, Numbers]:
        """Which life each row would be, were it published now."""
        found = {}
        for name in life_names(self.settings):
            life = np.zeros(len(records), dtype=np.int64)
            if self.before is not None and self.before.lives is not None:
                at = places(self.before.records, records)
                there = np.flatnonzero(at >= 0)
                at = at[there]
                another = self._another(name, self.before.frame[name], at, frame[name], there)
                life[there] = self.before.lives[name][at] + another
            at = places(self.faces[RECORD].to_numpy(), records)
            for row in np.flatnonzero(at >= 0).tolist():
                was = self.faces.row(int(at[row]), named=True)
                life[row] = was[LIFE + name] + (not self._same(name, int(records[row]), frame[row], was[DIGEST + name]))
            found[name] = life
        return found

    def _another(self, name: str, old: pl.Series, before: Numbers, new: pl.Series, now: Numbers) -> NDArray[np.bool_]:
        """Whether rows before and rows now, pair by pair, have values that a reader tells apart."""
        old = old.cast(new.dtype)
        was, is_now = taken(old, before), taken(new, now)
        if of_people(self.settings.schema) and name != ROWS:
            return ~each(goes_on, was, is_now)
        differs = was.ne_missing(is_now).to_numpy().copy()
        if differs.any() and name != ROWS:
            # Which of the others are taken for one may hang on any value that occurs.
            parts = (
                old.unique(maintain_order=True),
                new.unique(maintain_order=True),
                was.filter(differs),
                is_now.filter(differs),
            )
            codes = encode_sensitive(
                pl.concat([part.alias(name) for part in parts]).to_frame(), name, self.settings.schema
            ).codes
            some = int(differs.sum())
            differs[differs] = codes[-2 * some : -some] != codes[-some:]
        return differs

    def remembered(self, shown: Shown) -> Shown:
        """A release as it is kept: persons by class, and values by class, each in an order that says nothing of the other."""
        texts = shown.texts or class_texts(shown, self.settings.schema)
        same = self._as_before(shown)
        if same is None:
            return self._arranged(replace(shown, texts=texts))
        some = ~same[shown.classes]
        part = Shown(shown.records[some], shown.classes[some], shown.frame.filter(some))
        last = self.releases[-1]
        touched = np.concatenate([last.classes[~same[last.classes]], part.classes])
        return replace(amended(last, touched, self._arranged(part)), texts=texts)

    def _as_before(self, shown: Shown) -> NDArray[np.bool_] | None:
        """Which classes, by number, have the persons and values that they had in the newest release; None if not known."""
        before, names = self.before, value_columns(self.settings)
        if before is None or before.lives is None or any(name in self.settings.schema.named("quasi") for name in names):
            return None
        if any(one.records.min(initial=0) < 0 for one in (before, shown)):
            return None  # nobody is behind a counterfeit, and one is like another
        at = places(before.records, shown.records)
        rows = np.flatnonzero(at >= 0)
        rows = rows[before.classes[at[rows]] == shown.classes[rows]]
        rows = rows[~changed(before.frame, at[rows], shown.frame, rows, names)]
        same = np.ones(1 + max(int(one.classes.max(initial=-1)) for one in (before, shown)), dtype=bool)
        for one, found in ((shown, rows), (before, at[rows])):
            other = np.ones(len(one.records), dtype=bool)
            other[found] = False
            same[one.classes[other]] = False
        return same

    def _arranged(self, shown: Shown) -> Shown:
        lives = self.lives(shown.records, shown.frame)
        members = _by_class(shown.classes, shown.records)
        values = shown.frame.select(value_columns(self.settings))
        if values.width:
            values = values[_by_class(shown.classes, *map(_ranks, values.iter_columns()))]
        own = {name: own[members] for name, own in lives.items()}
        return Shown(shown.records[members], shown.classes[members], values, own, shown.texts)

    def faces_after(self, shown: Shown) -> pl.DataFrame:
        """The faces once a release has been made: of those who are not in it any more, and not of those who are again."""
        kept = self.faces
        if kept.height:
            kept = kept.filter(~pl.col(RECORD).is_in(shown.records))
        if self.before is None or self.before.lives is None:
            return kept
        before, lives = self.before, self.before.lives
        rows = np.flatnonzero((before.records >= 0) & ~np.isin(before.records, shown.records))
        columns: dict[str, Any] = {RECORD: before.records[rows]}
        for name in life_names(self.settings):
            columns[LIFE + name] = lives[name][rows]
            columns[DIGEST + name] = pl.Series(
                [
                    None if int(before.records[row]) in self.forgotten else self._digest(name, before, row)
                    for row in rows.tolist()
                ],
                dtype=pl.String,
            )
        return pl.concat([kept, pl.DataFrame(columns, schema=kept.schema)])

    def written(self, shown: Shown, kept: Shown) -> dict[str, Any]:
        """What is written of one more release, given by the rows behind it and by what is remembered of it."""
        members = pack(kept, self.releases[-1] if self.releases else None)
        return {"members": members, "shown": pack_rows(shown), "faces": frame_bytes(self.faces_after(shown))}

    def after(self, shown: Shown, kept: Shown, number: int) -> Memory:
        """The memory with that release, which has this number."""
        numbers, releases = (*self.numbers, number), (*self.releases, kept)
        before = _with_lives(shown, kept)
        return replace(self, numbers=numbers, releases=releases, before=before, faces=self.faces_after(shown))

    def _digest(self, name: str, shown: Shown, row: int) -> str:
        person = int(shown.records[row])
        if of_people(self.settings.schema) and name != ROWS:
            return self._digests(person, shown.frame[name][row])
        return digest(self.secret, person, self._text(name, shown.frame[row]))

    def _digests(self, person: int, text: str | None) -> str:
        """What is kept of a set: a digest of each of its values, in an order that says nothing."""
        return " ".join(sorted(digest(self.secret, person, value) for value in values_of(text)))

    def _same(self, name: str, person: int, row: pl.DataFrame, known: str | None) -> bool:
        """Whether somebody is back with the value published last; of who was forgotten, whether it may be that value."""
        if of_people(self.settings.schema) and name != ROWS:
            return self._goes_on(name, person, row[name][0], known)
        text = self._text(name, row)
        if known is not None:
            return known == digest(self.secret, person, text)
        if name == ROWS:
            return False
        for release in reversed(self.releases):
            if len(own := release.classes[release.records == person]):
                published = release.frame.filter(pl.Series(release.classes == own[0]))
                return text in {self._text(name, published[i]) for i in range(published.height)}
        return False

    def _goes_on(self, name: str, person: int, text: str | None, known: str | None) -> bool:
        """The same of a set: whether it has, or may have, a value in common with the one published last."""
        if known is not None:
            mine = self._digests(person, text)
            return mine == known or bool(set(mine.split()) & set(known.split()))
        for release in reversed(self.releases):
            if len(own := release.classes[release.records == person]):
                published = release.frame[name].filter(pl.Series(release.classes == own[0]))
                return any(goes_on(one, text) for one in published)
        return False

    def _text(self, name: str, row: pl.DataFrame) -> str:
        """A value as it is compared: what a reader takes for the same is the same. Rows are compared as they are."""
        if name == ROWS:
            return str(row[name][0])
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
    query = sa.select(table.number, table.members, table.shown, table.faces).order_by(table.number)
    rows = [row for row in connection.execute(query) if row.members]
    found: list[Shown] = []
    for row in rows:
        found.append(unpack(row.members, settings, value_columns(settings), like, found[-1] if found else None))
    before, faces = None, _no_faces(settings)
    if rows and rows[-1].shown is not None:
        before, faces = unpack_rows(rows[-1].shown, found[-1], like), read_frame(rows[-1].faces)
    gone = connection.execute(sa.select(tables.left.c.person).where(tables.left.c.forgotten)).scalars()
    numbers = tuple(row.number for row in rows)
    return Memory(settings, tables.secret_of(connection), numbers, tuple(found), before, faces, frozenset(gone))


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
    memory = Memory(settings, tables.secret_of(connection), (), (), None, _no_faces(settings), frozenset())
    for row in rows:
        old = unpack_rows(bytes(row.shown), Shown(*_nobody()), decode_rows([], json.loads(types)))
        shown = replace(old, texts=None, lives=None)
        kept = memory.remembered(shown)
        line = memory.written(shown, kept)
        memory = memory.after(shown, kept, row.number)
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
    rows = connection.execute(sa.select(table.manifest, table.members).order_by(table.number))
    told = [json.loads(row.manifest) for row in rows if row.members]
    lines = [line for manifest in told for line in manifest.get("secret", {}).get("followed", [])]
    return [Finding(**{**line, "values": tuple(line["values"])}) for line in lines]


def pack_rows(shown: Shown) -> bytes:
    """The rows behind the newest release as bytes."""
    return frame_bytes(shown.frame.with_columns(*numbers_of(shown)))


def unpack_rows(content: bytes, remembered: Shown, like: pl.DataFrame) -> Shown:
    """The rows behind the newest release, with the lives that are remembered of it."""
    rows = read_frame(content)
    values = rows.drop(RECORD, CLASS).cast(dict(like.schema))  # type: ignore[arg-type]
    return _with_lives(Shown(rows[RECORD].to_numpy(), rows[CLASS].to_numpy(), values), remembered)


def _with_lives(shown: Shown, remembered: Shown) -> Shown:
    """The rows behind a release with the lives and the texts that are remembered of it."""
    if shown.records.min(initial=0) >= 0:
        place = places(remembered.records, shown.records)
        return replace(
            shown, lives={name: own[place] for name, own in (remembered.lives or {}).items()}, texts=remembered.texts
        )
    place = _by_class(shown.classes, shown.records)
    lives = {}
    for name, own in (remembered.lives or {}).items():
        lives[name] = np.empty(len(place), dtype=np.int64)
        lives[name][place] = own
    return replace(shown, lives=lives, texts=remembered.texts)


def _by_class(classes: Numbers, *then: Numbers) -> Numbers:
    """The order by class and then by some whole numbers, the first first; what is equal in all of them stays in its order."""
    if len(then) == 1 and (np.diff(then[0]) > 0).all():
        return in_order(numbered(classes)[0])
    return in_order(numbered(classes, *then)[0])


def _ranks(column: pl.Series) -> Numbers:
    """The rank of each value among those of its column; missing comes last."""
    known = column.drop_nulls().unique().sort()
    if column.dtype == pl.String:
        return column.cast(pl.Enum(known)).to_physical().cast(pl.Int64).fill_null(len(known)).to_numpy()
    filled = column.to_physical().fill_null(strategy="zero").to_numpy()
    ranks = np.searchsorted(known.to_physical().to_numpy(), filled)
    return np.where(column.is_null().to_numpy(), len(known), ranks).astype(np.int64)


def _no_faces(settings: Settings) -> pl.DataFrame:
    columns: Mapping[str, Any] = {RECORD: pl.Int64}
    for name in life_names(settings):
        columns = {**columns, LIFE + name: pl.Int64, DIGEST + name: pl.String}
    return pl.DataFrame(schema=dict(columns))
