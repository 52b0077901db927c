"""Tables whose texts repeat themselves, held as numbers into the lists of their texts.

A text takes sixteen bytes of a polars column wherever it stands, and most columns of a large table have a few hundred texts: a
byte or two a record say which. Such a column is an Enum of polars here, its texts in their own order. Nobody outside sees one:
whoever asks for a table gets texts (`spelled`), and no frame that comes in keeps such a type (`shoal.io.frames.normalise`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

Owner = TypeVar("Owner", bound=type)

_REPEATED = 10
"""Each text of the first records stands in so many of them, on average, where a column repeats its texts."""


def repeats(head: pl.Series) -> bool:
    """Whether a column repeats its texts, by its first records."""
    return head.n_unique() * _REPEATED <= len(head)


def is_lean(column: pl.Series) -> bool:
    """Whether a column is numbers into the list of its texts."""
    return isinstance(column.dtype, pl.Enum)


def texts_of(column: pl.Series) -> pl.Series:
    """The list of texts of a lean column."""
    dtype = column.dtype
    assert isinstance(dtype, pl.Enum)
    return dtype.categories.rename(column.name)


def lean(column: pl.Series) -> pl.Series:
    """A column of texts as numbers into the list of those that are in it; any other column as it is."""
    if is_lean(column):
        return _narrowed(column)
    if column.dtype != pl.String:
        return column
    return column.cast(pl.Enum(column.drop_nulls().unique().sort()))


def _narrowed(column: pl.Series) -> pl.Series:
    """A lean column with the texts that are in it and no others."""
    texts, places = texts_of(column), column.to_physical()
    used = np.bincount(places.drop_nulls().to_numpy(), minlength=len(texts)) > 0
    if used.all():
        return column
    return of_places(column.name, texts.filter(pl.Series(used)), pl.Series(np.cumsum(used) - 1).gather(places))


def of_places(name: str, texts: pl.Series, places: pl.Series) -> pl.Series:
    """The lean column with these places in a list of different texts, which is in their order."""
    return places.cat.to(pl.Enum(texts)).rename(name)


def spelled(column: pl.Series) -> pl.Series:
    """The column with its texts as texts, each of them in memory once."""
    return texts_of(column).gather(column.to_physical()) if is_lean(column) else column


def spelled_out(frame: pl.DataFrame, names: Iterable[str] | None = None) -> pl.DataFrame:
    """The table with the texts of these columns as texts; of all by default."""
    asked = frame.columns if names is None else names
    changed = [spelled(frame[name]) for name in asked if is_lean(frame[name])]
    return frame.with_columns(changed) if changed else frame


def by_text(column: pl.Series, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """What `change` makes of a column value by value, where it makes texts of texts: of each text once."""
    if not is_lean(column):
        return change(column)
    texts = texts_of(column)
    return column if change(texts).equals(texts, null_equal=True) else change(spelled(column))


def bytes_of(column: pl.Series) -> int:
    """How many bytes the texts of a column take where each record has its own."""
    if not is_lean(column):
        return int(column.str.len_bytes().sum() or 0)
    counts = np.bincount(column.to_physical().drop_nulls().to_numpy(), minlength=len(texts_of(column)))
    return int((counts * _lengths(texts_of(column))).sum())


def longest(column: pl.Series) -> int:
    """How many bytes the longest text of a column takes."""
    return int(_lengths(column).max(initial=0))


def shortest(column: pl.Series) -> int:
    """How many bytes the shortest text of a column takes; nothing where there is none."""
    lengths = _lengths(column)
    return int(lengths.min()) if len(lengths) else 0


def _lengths(column: pl.Series) -> NDArray[np.uint32]:
    return (texts_of(column) if is_lean(column) else column.drop_nulls()).str.len_bytes().to_numpy()


def places_of(column: pl.Series) -> pl.Series:
    """For each record of a lean column the place of its text in the list, and the length of the list where it has none."""
    return column.to_physical().cast(pl.UInt32).fill_null(len(texts_of(column)))


class _Spelled:
    """An attribute that holds a lean table until somebody asks for it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return self
        try:
            table = owner.__dict__[self.name]
        except KeyError:
            raise AttributeError(self.name) from None
        if isinstance(table, pl.DataFrame) and any(isinstance(dtype, pl.Enum) for dtype in table.dtypes):
            table = owner.__dict__[self.name] = spelled_out(table)
        return table

    def __set__(self, owner: Any, table: Any) -> None:
        owner.__dict__[self.name] = table


def holds_lean(name: str) -> Callable[[Owner], Owner]:
    """A dataclass whose attribute `name` may be given a lean table: `held` gives it as it is, the attribute spelled out."""

    def marked(kind: Owner) -> Owner:
        setattr(kind, name, _Spelled(name))
        return kind

    return marked


def held(owner: Any, name: str) -> pl.DataFrame:
    """The table that an attribute of a `holds_lean` class holds, lean or not."""
    table: pl.DataFrame = owner.__dict__[name]
    return table
