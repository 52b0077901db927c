"""Whose is each row? Finds the column that says it: by its name, by what its values are, or because its rows agree.

Rows of one person agree in what does not change about them. So a key whose rows agree in most of the quasi-identifiers, far more
often than rows do by chance, is a person's, whatever it is called. First names agree in sex and in nothing else, a doctor's
number in the department: these are nobody's key.

>>> import polars as pl
>>> visits = pl.DataFrame({"nr": [i // 3 for i in range(60)], "age": [20 + i // 3 * 7 % 50 for i in range(60)],
...                        "zip": [40 + i // 3 * 3 % 17 for i in range(60)], "day": [i * 11 % 31 for i in range(60)]})
>>> belongs_together(visits["nr"], visits.select("age", "zip", "day"))
True
>>> rows_each(visits["nr"])
'60 rows are those of 20 persons, 3 rows each'
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from shoal.persons import Persons, number_persons
from shoal.schema import Attribute, Kind, Schema, Within

PAIRS = 10
"""Fewer rows that share a value with another one tell nothing."""
AGREE = 0.5
"""Rows agree in a column when they do so in this share of what chance leaves open."""
SAME = 0.9
"""A column in which rows agree that often by chance says nothing about a key."""
LOOKED_AT = 100_000  # rows: what holds for nearly all shows in these


def belongs_together(key: pl.Series, others: pl.DataFrame) -> bool:
    """Whether the rows of each value of `key` are one person's: they agree in most of the other columns, and in two at least."""
    order = key.arg_sort()
    sorted_key = key.gather(order)
    same = (sorted_key == sorted_key.shift(1)).fill_null(False).arg_true()
    if len(same) < PAIRS:
        return False
    same = same.gather_every(max(1, len(same) // LOOKED_AT))
    agreeing = told = 0
    for column in others.iter_columns():
        counts = column.value_counts()["count"].to_numpy().astype(np.int64)
        chance = float((counts * (counts - 1)).sum()) / (len(column) * (len(column) - 1))
        if chance >= SAME:
            continue
        told += 1
        this, before = column.gather(order.gather(same)), column.gather(order.gather(same - 1))
        agree = int(this.eq_missing(before).sum()) / len(same)
        agreeing += (agree - chance) / (1 - chance) >= AGREE
    return agreeing >= 2 and 2 * agreeing > told


def rows_each(key: pl.Series) -> str:
    """How many rows a person has, in words; rows that are nobody's are left out."""
    known = key.drop_nulls()
    counts = known.value_counts()["count"]
    least, most = int(counts.to_numpy().min(initial=len(known))), int(counts.to_numpy().max(initial=0))
    each = f"{least}" if least == most else f"{least} to {most}"
    return f"{len(known):,} rows are those of {len(counts):,} persons, {each} row{'s' if most > 1 else ''} each"


def persons_in(table: pl.DataFrame, key: str) -> Persons:
    """The persons of a table; a row without a key is a person of its own."""
    own = pl.concat_str(pl.lit("row "), pl.int_range(pl.len()))
    keys = table.select(pl.coalesce(pl.concat_str(pl.lit("key "), pl.col(key).cast(pl.String)), own).alias(key))
    return number_persons(keys.to_series())


def differing(series: pl.Series, persons: Persons) -> int:
    """The persons whose rows differ in a column."""
    own = series.gather(persons.first).gather(persons.of_row)
    return len(np.unique(persons.of_row[series.ne_missing(own).to_numpy()]))


def settling(kind: Kind) -> Within:
    """Which value counts where a person's rows differ: the latest or largest, or the most frequent of categories."""
    return "most" if kind == "category" else "max"


def quasi_schema(kinds: Mapping[str, tuple[Kind, Within | None]]) -> Schema:
    """A schema of quasi-identifiers alone: kind, and which value of a person counts."""
    return Schema({name: Attribute(role="quasi", kind=kind, within=within) for name, (kind, within) in kinds.items()})  # type: ignore[call-arg]
