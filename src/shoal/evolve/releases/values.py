"""What a release shows of its rows as it is, for m-invariance: each combination of values has a number.

A combination has the sensitive attributes and the columns of the role other, as they are published. Two of them *clash* when
they agree in a sensitive attribute, or a reader would take them to: they are never in one class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.evolve.releases.guards import Numbers
from shoal.microdata import encode_sensitive
from shoal.schema import Schema
from shoal.transform import transformed

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Values:
    """All combinations, in alphabetical order, missing last."""

    names: list[str]
    """The columns: the sensitive attributes, then the others."""
    frame: pl.DataFrame
    """The columns of one row with each combination."""
    parts: Codes
    """A row a combination and a column a sensitive attribute: which of its values it has."""

    @property
    def simple(self) -> bool:
        """Whether a combination is a value of one attribute, and no two of them look alike."""
        return len(self.names) == 1 and len(np.unique(self.parts)) == len(self.parts)

    def clash(self, one: int, others: Iterable[int]) -> bool:
        """Whether a combination agrees with one of some others in a sensitive attribute."""
        some = list(others)
        return bool(some) and bool((self.parts[some] == self.parts[one]).any())

    def apart(self, chosen: Sequence[int], wanted: int, order: Iterable[int]) -> list[int] | None:
        """Some combinations with so many more, in this order, that no two clash; None where there are too few."""
        found = list(chosen)
        for code in order:
            if len(found) >= wanted:
                break
            if not self.clash(code, found):
                found.append(code)
        return found if len(found) >= wanted else None


def encoded(now: pl.DataFrame, old: pl.DataFrame, schema: Schema) -> tuple[Values, Numbers]:
    """The combinations of two tables, and the number of each of their rows, those of the first one first."""
    names = [*schema.named("sensitive"), *schema.named("other")]
    both = pl.concat([now.select(names), old.select(names)])
    published = transformed(both, schema)
    texts = published.select(pl.all().cast(pl.String))
    distinct = texts.unique().sort(names, nulls_last=True)
    place = {row: code for code, row in enumerate(distinct.iter_rows())}
    codes = np.fromiter((place[row] for row in texts.iter_rows()), dtype=np.int64, count=texts.height)
    first = np.unique(codes, return_index=True)[1]
    columns = [encode_sensitive(published, name, schema).codes[first] for name in schema.named("sensitive")]
    return Values(names, both[first], np.stack(columns, axis=1).astype(np.int64)), codes


def told_apart(frame: pl.DataFrame, classes: Numbers, schema: Schema) -> NDArray[np.bool_]:
    """Of each row, whether nobody in its class has the same value of a sensitive attribute."""
    alone = np.ones(frame.height, dtype=bool)
    if not frame.height:
        return alone
    published = transformed(frame.select(schema.named("sensitive")), schema)
    for name in schema.named("sensitive"):
        pairs = pl.DataFrame({"class": classes, "code": encode_sensitive(published, name, schema).codes})
        alone &= ~pairs.is_duplicated().to_numpy()
    return alone
