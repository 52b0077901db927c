"""A masked table as an intruder sees it: its classes, what they publish, and how often each sensitive value occurs in them.

>>> import polars as pl, shoal
>>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "illness": shoal.Attribute(role="sensitive")})
>>> masked = pl.DataFrame({"age": ["[20, 29]"] * 2 + ["[30, 39]"], "illness": ["flu", "cold", "flu"]})
>>> MaskedTable.of(masked, schema).histograms[0].distinct.tolist()
[2, 1]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.models import Sensitive
from shoal.persons import number_persons
from shoal.schema import Schema
from shoal.verifier import audited_column, derive_classes, published_quasi

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Histogram:
    """One sensitive attribute by class: cells with their counts, class by class and most frequent value first.

    Only what occurs is kept, so thousands of classes times thousands of values take no more room than the table.
    """

    column: Sensitive
    owner: Ints
    code: Ints
    count: Ints
    starts: Ints
    known: Ints
    whose: Ints | None = None
    """Whose each value is, where somebody may have several: a person, and in `cell` which of the cells."""
    cell: Ints | None = None
    whole: Ints | None = None
    """How often each code occurs in the whole table, where these are only some of its classes."""

    def having(self, cells: NDArray[np.bool_]) -> int:
        """How many have a value in one of these cells; who has several of them counts once."""
        if self.whose is None or self.cell is None:
            return int(self.count[cells].sum())
        return len(np.unique(self.whose[cells[self.cell]]))

    @property
    def distinct(self) -> Ints:
        """Different values in each class."""
        return np.diff(self.starts)

    @property
    def table(self) -> Ints:
        """Counts of each code in the whole table."""
        if self.whole is not None:
            return self.whole
        return np.bincount(self.code, self.count, len(self.column.labels)).astype(np.int64)

    @property
    def everybody(self) -> int:
        """How many of the whole table have a known value."""
        return int(self.known.sum() if self.whole is None else self.whole.sum())

    def largest(self, values: Floats) -> Floats:
        """The largest of a number per cell in each class; -inf in classes without a known value."""
        result = np.full(len(self.known), -np.inf)
        filled = self.distinct > 0
        if len(values):
            result[filled] = np.maximum.reduceat(values, self.starts[:-1][filled])
        return result


@dataclass(frozen=True, eq=False)
class MaskedTable:
    """A masked table as an intruder sees it: classes with what they publish and the sensitive values in them. `of`
    makes one.

    - `masked`, `schema`: the published table, and who each column is.
    - `groups`: what each class publishes, one row a class.
    - `labels`, `sizes`: the class of each record, and the records of each class.
    - `histograms`: the values in each class, one entry a sensitive attribute.

    >>> import polars as pl, shoal
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi")})
    >>> MaskedTable.of(pl.DataFrame({"age": ["[20, 29]", "[20, 29]", "[30, 39]"]}), schema).sizes.tolist()
    [2, 1]
    """

    masked: pl.DataFrame
    schema: Schema
    groups: pl.DataFrame
    labels: Ints
    sizes: Ints
    histograms: tuple[Histogram, ...]

    @classmethod
    def of(cls, masked: pl.DataFrame, schema: Schema) -> MaskedTable:
        """Group a masked table by what it publishes: `masked` is the table, `schema` who each column is. Returns the
        grouped table.
        """
        quasi = published_quasi(masked, schema)
        if masked.height == 0:
            raise InputError("The masked table has no records.")
        labels, groups = derive_classes(masked, quasi)
        columns = [audited_column(masked, name, schema) for name in schema.named("sensitive")]
        # Where a token says whose each row is, an intruder looks for persons, each of whom may have several values.
        people = number_persons(masked[str(schema.person)]) if schema.person in masked.columns else None
        if people is not None:
            # Whose rows are in several classes, which no release of persons does, can be found in each of them.
            people = number_persons(pl.Series(people.of_row.astype(np.int64) * groups.height + labels))
        home = labels if people is None else labels[people.first]
        sizes = np.bincount(home, minlength=groups.height).astype(np.int64)
        owner = np.arange(len(labels)) if people is None else people.of_row.astype(np.int64)
        histograms = tuple(_histogram(column, owner, home, len(sizes)) for column in columns)
        return cls(masked, schema, groups, home, sizes, histograms)

    @property
    def n(self) -> int:
        """Number of records; of persons, where a token says whose each row is."""
        return int(self.sizes.sum())

    def show(self, index: int) -> str:
        """Returns what class number `index` publishes, in words."""
        row = self.groups.row(index, named=True)
        return ", ".join(f"{name} = {'missing' if value is None else value}" for name, value in row.items())


def _histogram(column: Sensitive, owner: Ints, home: Ints, classes: int) -> Histogram:
    """`owner` is whose each row is, `home` the class of each owner. Everybody counts once for each value they have."""
    width = max(1, len(column.labels))
    known = column.codes >= 0
    pairs = np.unique(owner[known].astype(np.int64) * width + column.codes[known])
    cells, of_pair, counts = np.unique(
        home[pairs // width] * width + pairs % width, return_inverse=True, return_counts=True
    )
    knowing = np.bincount(home[np.unique(pairs // width)], minlength=classes).astype(np.int64)
    histogram, order = counted_cells(column, cells, counts.astype(np.int64), knowing)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return replace(histogram, whose=pairs // width, cell=place[of_pair.ravel()])


def counted_cells(column: Sensitive, cells: Ints, counts: Ints, known: Ints) -> tuple[Histogram, Ints]:
    """A histogram from its cells (class × how many labels there are + code), and the order in which it has them."""
    width = max(1, len(column.labels))
    owner, code = cells // width, cells % width
    order = np.lexsort((code, -counts, owner))
    starts = np.searchsorted(owner[order], np.arange(len(known) + 1))
    return Histogram(column, owner[order], code[order], counts[order], starts, known), order
