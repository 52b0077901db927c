"""Rows as they were shown and as they are: two versions of a large table, encoded as far as somebody asks about them.

Rows are counted through: first those shown before, then those of the present table, then those of cohorts that are partly
back. Most of them are in classes in which nothing happened, and nobody asks what these are made of. So only those are
encoded that may have to be judged or grouped, beside enough others for every domain to be that of the present table: the
ends of numbers, and each value of everything else. Where a policy compares a class with the table, all of them are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.evolve.releases.people import microdata
from shoal.microdata import Microdata
from shoal.schema import Schema

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Versions:
    """The rows of both tables; `data` are those that are encoded."""

    old: pl.DataFrame
    now: pl.DataFrame
    data: Microdata
    place: Rows
    """Where each row stands among the encoded ones, -1 where it does not."""

    @classmethod
    def of(
        cls, old: pl.DataFrame, now: pl.DataFrame, absent: Sequence[pl.DataFrame], schema: Schema, some: Rows | None
    ) -> Versions:
        """Two tables with the same columns, and rows of some who are absent. With `some`, no other rows of both will be asked
        about than these."""
        count, known = old.height + now.height, schema.of_versions()
        if some is None or _empty(now, schema):
            data = microdata(pl.concat([old, now, *absent]), known)
            return cls(old, now, data, np.arange(data.n))
        there = np.zeros(count, dtype=bool)
        there[some] = True
        for rows in _every_value(now, schema):
            there[old.height + rows] = True
        parts = [
            table[np.flatnonzero(rows)] for table, rows in ((old, there[: old.height]), (now, there[old.height :]))
        ]
        data = microdata(pl.concat([*parts, *absent]), known)
        place = np.full(count + sum(part.height for part in absent), -1, dtype=np.int64)
        encoded = int(there.sum())
        place[:count][there], place[count:] = np.arange(encoded), np.arange(encoded, data.n)
        return cls(old, now, data, place)

    def encoded(self, rows: Rows) -> Rows:
        """Where rows stand in `data`."""
        return self.place[rows]

    def frame(self, rows: Rows) -> pl.DataFrame:
        """The values of rows of both tables."""
        before = rows < self.old.height
        if not before.any():
            rows = rows - self.old.height
            return self.now if np.array_equal(rows, np.arange(self.now.height)) else self.now[rows]
        kept = self.old[rows[before]]
        source = rows - self.old.height
        source[before] = self.now.height + np.arange(kept.height)
        return pl.concat([self.now, kept])[source]


def _empty(frame: pl.DataFrame, schema: Schema) -> bool:
    """Whether a column that is encoded has no value: what it is then only the other table says."""
    return any(frame[name].null_count() == frame.height for name in schema.named("quasi") + schema.named("sensitive"))


def _every_value(frame: pl.DataFrame, schema: Schema) -> Iterator[Rows]:
    """Rows that have between them what says what the columns are."""
    for name in schema.named("quasi") + schema.named("sensitive"):
        attribute, series = schema.attributes[name], frame[name]
        if series.dtype.is_numeric() and attribute.taxonomy is None and attribute.order is None:
            ends = [series.arg_min(), series.arg_max(), series.is_null().arg_max() if series.null_count() else None]
            yield np.array([row for row in ends if row is not None], dtype=np.int64)
        else:
            yield series.arg_unique().to_numpy().astype(np.int64)
