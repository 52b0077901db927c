"""Values looked up among distinct ones: missing is a value, and so is what is not a number; zero has one spelling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from shoal.engines.base import Book
from shoal.errors import InternalError


def one_zero(table: pl.DataFrame) -> pl.DataFrame:
    """The table with one spelling of zero, which is one value: which of two is found does not depend on who comes first."""
    floats = [name for name, dtype in table.schema.items() if dtype.is_float()]
    return table.with_columns(pl.when(pl.col(name) == 0).then(0).otherwise(name).alias(name) for name in floats)


def looked_up(table: pl.DataFrame, books: Sequence[Book]) -> pl.DataFrame:
    """What books say of each record."""
    return pl.concat([_looked_up(table, book) for book in books], how="horizontal")


def _looked_up(table: pl.DataFrame, book: Book) -> pl.DataFrame:
    rows = found_at(table.select(book.names), pl.DataFrame(pl.from_arrow(book.values)))
    if rows.null_count():
        raise InternalError("a value of a record stands in none of the books")
    return book.columns[rows]


def found_at(table: pl.DataFrame, distinct: pl.DataFrame) -> pl.Series:
    """The place of each row among distinct rows of the same columns, or none; missing is a value."""
    if table.width > 1:
        places = one_zero(distinct).with_row_index(" place")
        how: dict[str, Any] = {"how": "left", "nulls_equal": True, "maintain_order": "left"}
        return one_zero(table).join(places, on=table.columns, **how)[" place"]
    from pyarrow.compute import index_in

    # A join takes no single NaN for another.
    own, known = (_plain(one).to_series().to_arrow(compat_level=pl.CompatLevel.oldest()) for one in (table, distinct))
    return pl.Series(index_in(own, value_set=known))


def _plain(table: pl.DataFrame) -> pl.DataFrame:
    """Texts as texts, whatever they are kept as."""
    return one_zero(table).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
