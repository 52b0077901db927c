"""Quasi-identifiers that are numbers or dates in their file, and those that are published as two ends.

A column with a type has no spellings; what it holds is held against its declaration all the same: the domain, the kind, the
order, the taxonomy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.schema import Schema
from shoal.taxonomy_build import number_label
from shoal.verifier.meaning import ANYTHING, Problem, attribute_of, read_cells

Ints = NDArray[np.int64]


def typed_problems(series: pl.Series, schema: Schema, which: Ints) -> list[str]:
    """What a column that is no text holds and its declaration does not know; `which` of its entries each record has."""
    attribute = attribute_of(series.name, schema)
    if attribute.kind is None and attribute.domain is None and attribute.taxonomy is None and attribute.order is None:
        return []
    distinct = series.unique(maintain_order=True)
    texts = shown(distinct)
    return [
        problem.told(series.name, _places(series, distinct)[which])
        for problem in read_cells(texts, series.name, schema).problems
    ]


def shown(distinct: pl.Series) -> list[str | None]:
    """Numbers and dates as a text file would have them; midnight is a day."""
    if distinct.dtype.is_float():
        return [None if value is None else _number(value) for value in distinct]
    if isinstance(distinct.dtype, pl.Datetime) and (distinct.dt.date().cast(distinct.dtype) == distinct).all():
        distinct = distinct.dt.date()
    return distinct.cast(pl.String).to_list()


def _number(value: float) -> str:
    return number_label(value) if np.isfinite(value) else str(value)


def _places(series: pl.Series, distinct: pl.Series) -> Ints:
    """Which of its distinct values each entry has."""
    numbered = distinct.to_frame("value").with_row_index("place")
    found = series.to_frame("value").join(numbered, on="value", how="left", nulls_equal=True, maintain_order="left")
    return found["place"].to_numpy().astype(np.int64)


def pairs_of(quasi: Sequence[str], schema: Schema) -> Iterator[tuple[str, str]]:
    """The published columns that are the two ends of one quasi-identifier."""
    for name in quasi:
        owner = name.removesuffix("_min")
        if owner != name and name not in schema.attributes and f"{owner}_max" in quasi:
            yield name, f"{owner}_max"


def end_problems(ends: pl.DataFrame, which: Ints, schema: Schema) -> list[str]:
    """Pairs of ends that are no interval: one of them missing, more than one value, or the lower above the upper."""
    texts = [one.to_list() if one.dtype == pl.String else shown(one) for one in ends]
    low, high = (read_cells(text, one.name, schema).keys for one, text in zip(ends, texts, strict=True))
    wrong = frozenset(row for row, pair in enumerate(zip(low, high, strict=True)) if not _is_interval(*pair))
    problem = Problem(f"with '{ends.columns[1]}' it is no interval", wrong)
    return [problem.told(ends.columns[0], which)] if wrong else []


def _is_interval(low: Any, high: Any) -> bool:
    if low in (None, ANYTHING) or high in (None, ANYTHING):
        return bool(low == high)
    if not all(key[0] == "between" and key[1] == key[2] for key in (low, high)):
        return False
    first, last = low[1], high[1]
    return bool(first <= last) if isinstance(first, Decimal) else bool(first[: len(last)] <= last[: len(first)])
