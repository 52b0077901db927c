"""People with several rows: which rows are whose, and one value of each quasi-identifier for each person.

What is protected is a person. All rows of a person are in one class and publish the same quasi-identifiers, so these have to
be one value a person before anything is encoded (docs/persons.md).

>>> import polars as pl
>>> from shoal.configuration import read_schema
>>> visits = pl.DataFrame({"pid": [7, 9, 7], "age": [40, 52, 41], "ill": ["flu", "flu", "cold"]})
>>> schema = read_schema({"pid": {"role": "person"}, "age": {"role": "quasi", "within": "max"}, "ill": {"role": "sensitive"}})
>>> people = persons_of(visits, schema)
>>> people.of_row.tolist(), people.count
([0, 1, 0], 2)
>>> settled(visits, schema, people)["age"].to_list()
[41, 52]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import typed
from shoal.errors import ConfigError, InputError
from shoal.schema import Attribute, Schema

REPEATED = 0.1
"""An identifier whose values repeat in more rows than this share has to be declared a person, or not one."""


@dataclass(frozen=True, eq=False)
class Persons:
    """Which person each row belongs to, numbered in the order in which they first appear."""

    of_row: NDArray[np.int32]

    @cached_property
    def count(self) -> int:
        """How many persons there are."""
        return int(self.of_row.max(initial=-1)) + 1

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """The first row of each person."""
        rows = np.empty(self.count, dtype=np.int64)
        rows[self.of_row[::-1]] = np.arange(len(self.of_row) - 1, -1, -1)
        return rows

    def of_rows(self, rows: NDArray[Any]) -> Persons:
        """Whose some of the rows are, in that order."""
        return _renumbered(self.of_row[rows])

    def take(self, persons: NDArray[Any]) -> tuple[NDArray[np.int64], Persons]:
        """The rows of some persons (their numbers), in the order of the rows, and whose they are in that order of persons."""
        place = np.full(self.count, -1, dtype=np.int32)
        place[persons] = np.arange(len(persons), dtype=np.int32)
        rows = np.flatnonzero(place[self.of_row] >= 0)
        return rows, Persons(place[self.of_row[rows]])


def _renumbered(of_row: NDArray[Any]) -> Persons:
    _, first, inverse = np.unique(of_row, return_index=True, return_inverse=True)
    return Persons(np.argsort(np.argsort(first))[inverse].astype(np.int32))


def number_persons(keys: pl.Series) -> Persons:
    """Number the persons of a column of keys; a row without a key belongs to nobody, which is an error."""
    holes = keys.null_count()
    if holes:
        row = int(keys.is_null().arg_max() or 0) + 1
        raise InputError(
            f"Column '{keys.name}' says whose each row is, and {holes} rows are nobody's, the first in record {row}; "
            "fill them in or leave these rows out."
        )
    # Two spellings of a number are two texts; the keys of a person are compared as they are written.
    first = keys.to_frame("key").with_row_index("row").select(pl.col("row").first().over("key")).to_series().to_numpy()
    begins = first == np.arange(len(first))
    return Persons((np.cumsum(begins)[first] - 1).astype(np.int32))


def token_problem(keys: pl.Series) -> str | None:
    """What is wrong with a column that was declared to publish tokens, in a sentence; None where nothing is.

    A release deals the numbers from 1 to that of its persons among them, so anything else is no token of it, and may be the key
    that a token should have replaced.

    >>> token_problem(pl.Series("pid", [2, 1, 2, 3])), token_problem(pl.Series("pid", [1, 2, 1043])) is None
    (None, False)
    >>> token_problem(pl.Series("pid", ["1", "2"])), token_problem(pl.Series("pid", ["1", "+2"])) is None
    (None, False)
    """
    count = keys.n_unique()
    # As text they are digits alone: +7, 07 and 7.0 tell one row of a person from another.
    plain = keys.str.contains(r"^[1-9][0-9]{0,17}$").all() if keys.dtype == pl.String else keys.dtype.is_integer()
    whole = keys.cast(pl.Int64, strict=False) if plain else None
    if whole is not None and (whole.min(), whole.max()) == (1, count):
        return None
    return (
        f"Column '{keys.name}' is declared to publish tokens, which are the numbers from 1 to that of the persons ({count:,}), "
        "and something else stands there: keys of the original may."
    )


def persons_of(table: pl.DataFrame, schema: Schema) -> Persons | None:
    """The persons of a table; None when no column says who they are, and every row is a person."""
    if schema.person is not None:
        return number_persons(table[schema.person])
    for name in schema.named("identifier"):
        require_no_repeats(table[name], schema.attributes[name])
    return None


def require_no_repeats(keys: pl.Series, attribute: Attribute) -> None:
    """An identifier that repeats is probably a person's: whose rows would then count as different people."""
    known = keys.drop_nulls()
    refuse_repeats(keys.name, attribute, len(keys), len(known), known.n_unique())


def may_repeat(attribute: Attribute) -> bool:
    """Whether nobody asks if an identifier repeats."""
    return attribute.repeats == "allowed" or bool(attribute.drop)


def refuse_repeats(name: str, attribute: Attribute, rows: int, known: int, distinct: int) -> None:
    """`require_no_repeats` where only is known how many of so many rows have a value, and how many values there are."""
    if may_repeat(attribute) or known - distinct <= REPEATED * max(1, rows):
        return
    raise InputError(
        f"Identifier '{name}' repeats: {known:,} rows have {distinct:,} values. If its rows are one person's, "
        f'a class of rows is no class of people: declare role = "person" under [attributes.{name}]. If they are not '
        '(first names, wards), say repeats = "allowed".'
    )


def settled(table: pl.DataFrame, schema: Schema, persons: Persons) -> pl.DataFrame:
    """One row a person: the quasi-identifiers, each settled to one value where a person's rows differ."""
    columns = [_settle(table[name], schema.attributes[name], persons) for name in schema.named("quasi")]
    return pl.DataFrame(columns)


def _settle(series: pl.Series, attribute: Attribute, persons: Persons) -> pl.Series:
    if attribute.within is None:
        _require_constant(series, persons)
        return series.gather(persons.first)
    grouped = pl.DataFrame({"person": persons.of_row, "row": np.arange(len(series)), "value": series})
    if attribute.within in ("min", "max"):
        return _extreme(grouped, series, attribute)
    known = grouped.drop_nulls("value")
    if attribute.within == "most":
        counted = known.group_by("person", "value").agg(pl.len().alias("rows"), pl.col("row").min())
        # The most frequent value; of several the one that came first.
        chosen = counted.sort(["person", "rows", "row"], descending=[False, True, False]).unique("person", keep="first")
    else:
        by_row = known.sort("row", descending=attribute.within == "last")
        chosen = by_row.unique("person", keep="first", maintain_order=True)
    return _by_person(chosen, persons.count, series)


def _extreme(grouped: pl.DataFrame, series: pl.Series, attribute: Attribute) -> pl.Series:
    values, kind = typed(series, attribute)
    if attribute.order is not None:
        position = {label: i for i, label in enumerate(attribute.order)}
        values = values.replace_strict(position, default=None, return_dtype=pl.Float64)
    elif kind == "category":
        raise ConfigError(
            f'[attributes.{series.name}] within = "{attribute.within}": the column has no order; use first, last or most, or '
            "declare its order."
        )
    ranked = grouped.with_columns(by=values.to_physical().cast(pl.Float64)).drop_nulls("by")
    ranked = ranked.sort(["person", "by", "row"], descending=[False, attribute.within == "max", False])
    count = int(grouped["person"].max()) + 1  # type: ignore[arg-type]
    return _by_person(ranked.unique("person", keep="first", maintain_order=True), count, series)


def _by_person(chosen: pl.DataFrame, count: int, series: pl.Series) -> pl.Series:
    """One value a person, missing where none is known."""
    everybody = pl.DataFrame({"person": np.arange(count, dtype=np.int32)})
    found = everybody.join(chosen.select("person", "value"), on="person", how="left", maintain_order="left")["value"]
    return found.alias(series.name)


def _require_constant(series: pl.Series, persons: Persons) -> None:
    """Refuse a quasi-identifier in which rows of one person differ, with how many persons and where to look."""
    own = series.gather(persons.first).gather(persons.of_row)
    differs = series.ne_missing(own).to_numpy()
    if not differs.any():
        return
    people = len(np.unique(persons.of_row[differs]))
    row = int(differs.argmax())
    before = int(persons.first[persons.of_row[row]])
    raise InputError(
        f"Quasi-identifier '{series.name}' differs between the rows of {people:,} of {persons.count:,} persons, the first time "
        f"in records {before + 1} and {row + 1}; everything a person publishes has to be the same, so say which value counts: "
        f'within = "first", "last", "min", "max" or "most" under [attributes.{series.name}].'
    )
