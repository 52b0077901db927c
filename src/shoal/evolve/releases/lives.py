"""Who is who across releases: the lives of persons, and the cells of lives that no release tells apart.

A *life* is a person for as long as a sensitive value stays the same. A corrected value ends one life and begins another:
what was published of the old one says nothing about the new one. Leaving does not end a life. Who was discharged and is
back with the same value is the same life, and whoever kept the old releases can lay them beside the new ones.

A *cell* is a set of lives with the same class in every release. All that all releases together can tell about a cell is how
often each value occurs in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.evolve.releases.guards import Numbers, Shown, Table
from shoal.evolve.releases.rows import numbered
from shoal.microdata import encode_sensitive
from shoal.schema import Schema

Lives = NDArray[np.int64]
"""A row a record and a column a sensitive attribute: which of the person's lives it is, counted from 0."""
Rows = Counter[tuple[Any, ...]]


def lives_of(releases: Sequence[Shown | Table], schema: Schema) -> list[Lives]:
    """The lives of the rows of releases in the order of time; counterfeits have one each, and its number says nothing."""
    names = schema.named("sensitive")
    if all(release.lives is not None for release in releases):
        return [_side_by_side(release, names) for release in releases]
    columns = releases[-1].frame.columns
    frame = pl.concat([release.frame.select(columns) for release in releases], how="vertical_relaxed")
    codes = np.zeros((frame.height, len(names)), dtype=np.int64)
    for j, name in enumerate(names):
        codes[:, j] = encode_sensitive(frame, name, schema).codes
    ends = np.cumsum([len(release.records) for release in releases])
    persons = np.concatenate([release.records for release in releases])
    return [part.copy() for part in np.split(_numbered(persons, codes), ends[:-1])]


def _side_by_side(release: Shown | Table, names: list[str]) -> Lives:
    known = release.lives or {}
    return np.stack([known[name] for name in names], axis=1) if names else np.zeros((len(release.records), 0), np.int64)


def _numbered(persons: Numbers, codes: Lives) -> Lives:
    """A life ends where a person's code differs from the last one; rows are in the order of time."""
    order = np.argsort(persons, kind="stable")
    again = np.zeros(len(order), dtype=bool)
    again[1:] = persons[order[1:]] == persons[order[:-1]]
    changes = np.zeros(codes.shape, dtype=np.int64)
    changes[1:] = (codes[order[1:]] != codes[order[:-1]]) & again[1:, None]
    counted = np.cumsum(changes, axis=0)
    first = np.maximum.accumulate(np.where(again, 0, np.arange(len(order))))
    lives = np.empty(codes.shape, dtype=np.int64)
    lives[order] = counted - counted[first]
    return lives


class Cells:
    """The cells of all releases so far. Lives are told apart by all sensitive attributes together."""

    def __init__(self, releases: Sequence[Shown], lives: Sequence[Lives]) -> None:
        self.releases = releases
        persons = np.concatenate([apart(t, one.records) for t, one in enumerate(releases)])
        own = np.concatenate(lives)
        place, first = numbered(persons, *own.T)
        self.persons: Numbers = persons[first]
        """The person of each life."""
        self.lives: Lives = own[first]
        """Which of the person's lives it is, by attribute."""
        self.units = np.split(place, np.cumsum([len(one.records) for one in releases])[:-1])
        """The life of each row of each release."""
        cell = np.zeros(len(first), dtype=np.int64)
        self.history = np.full((len(first), len(releases)), -1, dtype=np.int64)
        for t, release in enumerate(releases):
            self.history[self.units[t], t] = release.classes
            cell = numbered(cell, self.history[:, t])[0]
        self.cell_of: Numbers = cell
        """The cell of each life."""
        self._known: dict[int, Rows | None] = {}

    def latest(self, persons: Numbers) -> Numbers:
        """The life that each person was last published with, -1 for those who never were."""
        last = np.full(len(persons), -1, dtype=np.int64)
        for release, units in zip(self.releases, self.units, strict=True):
            at = np.searchsorted(persons, release.records)
            inside = at < len(persons)
            inside[inside] &= persons[at[inside]] == release.records[inside]
            last[at[inside]] = units[inside]
        return last

    def members(self, cell: int) -> Numbers:
        """The lives of a cell."""
        return np.flatnonzero(self.cell_of == cell)

    def rows(self, cell: int, names: list[str]) -> Rows | None:
        """The values of a cell in some columns, as the releases tell them; None where they do not tell them all.

        A class that is the cell tells them, and so does one whose other cells are known.
        """
        return self._rows(cell, names, frozenset())

    def last_rows(self, cell: int, names: list[str]) -> Rows | None:
        """The values of a cell when it was last published; None where that was not a class of its own."""
        path = self.history[self.members(cell)[0]]
        last = int(np.flatnonzero(path >= 0)[-1])
        alone = (self.cell_of[self.history[:, last] == path[last]] == cell).all()
        return self._published(last, int(path[last]), names) if alone else None

    def _rows(self, cell: int, names: list[str], busy: frozenset[int]) -> Rows | None:
        if cell in self._known:
            return self._known[cell]
        path = self.history[self.members(cell)[0]]
        classes = []
        for t in np.flatnonzero(path >= 0).tolist():
            inside = np.unique(self.cell_of[self.history[:, t] == path[t]])
            classes.append((t, int(path[t]), [int(other) for other in inside if other != cell]))
        classes.sort(key=lambda one: len(one[2]))
        for t, number, others in classes:
            if busy & set(others):
                continue
            found = self._published(t, number, names)
            for other in others:
                known = self._rows(other, names, busy | {cell})
                if known is None or known - found:
                    break
                found -= known
            else:
                self._known[cell] = found
                return found
        if not busy:
            self._known[cell] = None
        return None

    def _published(self, release: int, number: int, names: list[str]) -> Rows:
        shown = self.releases[release]
        return counted(shown.frame, np.flatnonzero(shown.classes == number), names)


def counted(frame: pl.DataFrame, rows: Numbers, names: list[str]) -> Rows:
    """How often each combination of values occurs in some rows; without columns there is one."""
    return Counter(frame[rows].select(names).rows()) if names else Counter({(): len(rows)})


def apart(release: int, records: Numbers) -> Numbers:
    """Persons, and counterfeits told apart from those of other releases."""
    return np.where(records >= 0, records, -(np.arange(len(records)) + 1) * 2**20 - release)
