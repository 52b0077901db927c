"""The distinct values of many columns, counted in one pass: each partition counts for itself, and what they counted is merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import polars as pl

from shoal.engines.base import COUNT
from shoal.engines.looking_up import one_zero
from shoal.engines.spark_packs import DATA, TO, a_row, packed, unpacked


def value_counts(rows: Iterable[pl.DataFrame], groups: Sequence[Sequence[str]], few: int) -> Iterator[Any]:
    """What a partition has: a pack for each group of columns, or nothing for one with more than a `few` values."""
    found: dict[int, pl.DataFrame | None] = {}
    for some in rows:
        for which, names in enumerate(groups):
            own = one_zero(some.select(*names, pl.lit(1, pl.Int64).alias(COUNT)))
            before = found.get(which, own.clear())
            if before is not None:
                found[which] = _added([before, own], few)
    for which, counted in found.items():
        yield a_row(**{TO: which, DATA: None if counted is None else packed(counted)})


def merged_counts(batches: Iterable[Any], few: int) -> Iterator[Any]:
    """What all partitions have of one group of columns."""
    found: list[pl.DataFrame] = []
    for batch in batches:
        for which, data in zip(batch.column(TO).to_pylist(), batch.column(DATA), strict=True):
            total = _added([*found, unpacked(data.as_buffer())], few) if data.is_valid else None
            if total is None:
                yield a_row(**{TO: which, DATA: None})
                return
            found = [total]
    for total in found:
        yield a_row(**{TO: which, DATA: packed(total)})


def _added(tables: Sequence[pl.DataFrame], few: int) -> pl.DataFrame | None:
    """Counts of the same columns as one, or nothing where there are too many values."""
    together = pl.concat(tables)
    found = together.group_by(together.columns[:-1]).agg(pl.col(COUNT).sum())
    return found if found.height <= few else None
