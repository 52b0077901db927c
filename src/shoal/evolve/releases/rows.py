"""Equal rows found by columns of whole numbers: millions of persons by their classes in many releases."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# A table of all keys there could be is quicker than sorting while it has at most so many entries for each row.
SPARSE = 4
# Keys of two columns together stay below this; larger columns are numbered first.
ROOM = 2**62


def numbered(*columns: Ints) -> tuple[Ints, Ints]:
    """The number of each row, and where the first row of each number stands.

    Rows that are equal in all columns have one number, and numbers follow the order of the rows' values, the first column
    first: what `numpy.unique` says of rows, in a fraction of the time.
    """
    number, count = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        if not len(column):
            break
        low, wide = int(column.min()), int(column.max()) - int(column.min()) + 1
        if wide == 1:
            continue
        if count * wide >= ROOM:
            column = np.unique(column, return_inverse=True)[1]
            low, wide = 0, int(column.max()) + 1
        number, count = _ranked(number * wide + (column - low), count * wide)
    first = np.zeros(count if len(number) else 0, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    return number, first


def in_order(number: Ints) -> Ints:
    """Rows by their number, which is not negative; those with one number stay in their order."""
    n = len(number)
    if not n or int(number.max()) >= ROOM // n:
        return np.argsort(number, kind="stable")
    # Whole numbers that tell the rows as well are sorted faster than rows are by what they refer to.
    return np.asarray(np.sort(number * n + np.arange(n)) % n, dtype=np.int64)


def places(known: Ints, wanted: Ints) -> Ints:
    """Where each wanted number stands first among the known ones; -1 where it does not, and for negative ones."""
    found = np.full(len(wanted), -1, dtype=np.int64)
    high = int(known.max(initial=-1))
    inside = np.flatnonzero((wanted >= 0) & (wanted <= high))
    if high < SPARSE * (len(known) + len(wanted)):
        rows, table = np.flatnonzero(known >= 0)[::-1], np.full(high + 1, -1, dtype=np.int64)
        table[known[rows]] = rows
        found[inside] = table[wanted[inside]]
        return found
    order = np.argsort(known, kind="stable")
    at = order[np.searchsorted(known[order], wanted[inside])]
    found[inside] = np.where(known[at] == wanted[inside], at, -1)
    return found


def taken(column: pl.Series, rows: Ints) -> pl.Series:
    """Some rows of a column; the first ones in their order, as often where a table only grows, are not picked one by one."""
    return column[: len(rows)] if np.array_equal(rows, np.arange(len(rows))) else column.gather(rows)


def _ranked(keys: Ints, room: int) -> tuple[Ints, int]:
    """Keys numbered in their order, and how many there are."""
    if room > SPARSE * len(keys):
        found, rank = np.unique(keys, return_inverse=True)
        return rank.ravel().astype(np.int64), len(found)
    there = np.zeros(room, dtype=bool)
    there[keys] = True
    place = np.cumsum(there)
    return np.asarray(place[keys] - 1, dtype=np.int64), int(place[-1])
