"""A store's classes in memory: loaded once, then following what this process and others commit."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa

from shoal.errors import InputError
from shoal.evolve.i3m.classes import Classes, Numbers
from shoal.evolve.store import tables
from shoal.evolve.store.codebook import Books
from shoal.evolve.store.settings import Settings
from shoal.evolve.store.snapshot import Held, read_changed, read_held, write


@dataclass(frozen=True)
class State:
    """The one row that says where a store stands."""

    version: int
    next_record: int
    next_class: int
    baseline: float
    changed: int
    types: dict[str, str]
    before: dict[str, Any] | None


@dataclass(eq=False)
class Live:
    """The classes of the store at a version; between a change and its commit `next_version` is set."""

    version: int
    books: Books
    classes: Classes
    next_version: int | None = None

    def learn(self, frame: pl.DataFrame) -> list[dict[str, Any]]:
        """Make room for the values of new records; gives the rows that have to be written."""
        return self._learn(self.books.learn(frame))

    def _learn(self, books: Books) -> list[dict[str, Any]]:
        if books is self.books:
            return []
        self.next_version = self.version + 1
        old, self.books = self.books, books
        quasi, rest = books.moves(old)
        self.classes.recode(books.space(self.classes.space.measure), quasi, bind=books.bind, sensitive_maps=rest)
        return books.news(old)


def read_state(connection: sa.Connection, *, lock: bool = False) -> State:
    """Where the store stands; with `lock` nobody else can change it before this transaction ends."""
    query = sa.select(tables.state)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise InputError("The store has no state; it is damaged: restore it from a backup.")
    before = json.loads(row.before) if row.before else None
    return State(row.version, row.next_record, row.next_class, row.baseline, row.changed, json.loads(row.types), before)


def load(connection: sa.Connection, settings: Settings, state: State) -> Live:
    """All classes from the store; a snapshot that is out of date is written anew."""
    held = read_held(connection, state.types, state.version)
    if held.outdated:
        write(connection, state.version, held)
    return classes_of(connection, settings, state, held)


def classes_of(connection: sa.Connection, settings: Settings, state: State, held: Held) -> Live:
    """The classes of all records."""
    books = Books(settings.schema, settings.policy).read(_known(connection, 0))
    codes, secrets = books.codes(held.frame)
    return Live(state.version, books, _classes(books, settings, state, held.numbers, codes, secrets, held.labels))


def follow(connection: sa.Connection, settings: Settings, state: State, live: Live) -> Live:
    """The classes after what other processes committed since."""
    since = live.version
    # What was learned since may have been unlearned.
    anew = tables.batches.c.kind.in_(["undo", "forgetting"])
    undone = sa.select(sa.func.count()).where(anew, tables.batches.c.version > since)
    if connection.execute(undone).scalar():
        return load(connection, settings, state)
    live._learn(live.books.read(_known(connection, since)))
    gone = connection.execute(sa.select(tables.gone.c.number).where(tables.gone.c.version > since)).scalars().all()
    new = read_changed(connection, state.types, since)
    codes, secrets = live.books.codes(new.frame)
    was = live.classes
    keep = ~np.isin(was.records, np.concatenate([np.array(gone, dtype=np.int64), new.numbers]))
    numbers = np.concatenate([was.records[keep], new.numbers])
    order = np.argsort(numbers)
    classes = _classes(
        live.books,
        settings,
        state,
        numbers[order],
        np.concatenate([was.codes[keep], codes])[order],
        np.concatenate([was.sensitive[keep], secrets])[order],
        np.concatenate([was.labels[keep], new.labels])[order],
    )
    return Live(state.version, live.books, classes)


def _known(connection: sa.Connection, since: int) -> Iterable[Any]:
    table = tables.values.c
    query = sa.select(table.column, table.value).where(table.version > since).order_by(table.column, table.position)
    return [tuple(row) for row in connection.execute(query)]


def _classes(
    books: Books, settings: Settings, state: State, numbers: Numbers, codes: Any, secrets: Any, labels: Numbers
) -> Classes:
    return Classes(
        books.space(settings.objective),
        codes,
        labels,
        books.bind,
        secrets,
        records=numbers,
        baseline=state.baseline,
        changed=state.changed,
        next_class=state.next_class,
        next_record=state.next_record,
    )
