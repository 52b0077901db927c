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
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.persons import Persons, number_persons
from shoal.schema import Attribute, Kind, Schema, Within

PAIRS = 10
"""Fewer rows that share a value with another one tell nothing."""
AGREE = 0.5
"""Rows agree in a column when they do so in this share of what chance leaves open."""
SAME = 0.9
"""A column in which rows agree that often by chance says nothing about a key."""
SEVERAL = 0.2
"""So many keys with rows that differ in sex or birth are no slips of the pen."""
LOOKED_AT = 100_000  # rows: what holds for nearly all shows in these


def belongs_together(key: pl.Series, others: pl.DataFrame) -> bool:
    """Whether the rows of each value of `key` are one person's: they agree in most of the other columns, and in two at least."""
    return together(key, comparable(others))


class Compared(NamedTuple):
    """A column to compare rows in: a number for each value, missing being one too, and how often rows agree by chance."""

    codes: NDArray[np.int64]
    chance: float


def comparable(others: pl.DataFrame) -> dict[str, Compared]:
    """Columns made ready once for many keys; those in which rows agree by chance anyway are left out."""
    found = {}
    for column in others.iter_columns():
        codes = column.rank("dense").fill_null(0).to_numpy().astype(np.int64)
        counts = np.bincount(codes)
        chance = float((counts * (counts - 1)).sum()) / (len(column) * (len(column) - 1))
        if chance < SAME:
            found[column.name] = Compared(codes, chance)
    return found


def together(key: pl.Series, others: Mapping[str, Compared]) -> bool:
    """`belongs_together` for columns that are ready; the key itself is none of them, whatever is there under its name."""
    order = key.arg_sort()
    sorted_key = key.gather(order)
    same = (sorted_key == sorted_key.shift(1)).fill_null(False).arg_true()
    if len(same) < PAIRS:
        return False
    same = same.gather_every(max(1, len(same) // LOOKED_AT))
    this, before = order.gather(same).to_numpy(), order.gather(same - 1).to_numpy()
    compared = [one for name, one in others.items() if name != key.name]
    agreeing = 0
    for codes, chance in compared:
        agree = int(np.count_nonzero(codes[this] == codes[before])) / len(same)
        agreeing += (agree - chance) / (1 - chance) >= AGREE
    return agreeing >= 2 and 2 * agreeing > len(compared)


def agree(key: pl.Series, lasting: pl.Series) -> bool:
    """Whether nearly all rows of one value of `key` say the same of a thing that is a person's own, as the day of birth is."""
    pairs = pl.DataFrame({"key": key, "value": lasting}).drop_nulls()
    several = (
        pairs.group_by("key")
        .agg(pl.col("value").n_unique().alias("values"), pl.len().alias("rows"))
        .filter(pl.col("rows") > 1)
    )
    return several.height >= PAIRS and int((several["values"] == 1).sum()) >= SAME * several.height


def differ(key: pl.Series, lasting: pl.Series) -> bool:
    """Whether rows of one value of `key` often differ in what lasts for life: then they are several persons', as those of
    a household are.
    """
    pairs = pl.DataFrame({"key": key, "value": lasting}).drop_nulls()
    firsts = (
        pairs.group_by("key")
        .agg(pl.col("value").n_unique().alias("values"), pl.len().alias("rows"))
        .filter(pl.col("rows") > 1)
    )
    return firsts.height >= PAIRS and int((firsts["values"] > 1).sum()) > SEVERAL * firsts.height


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
