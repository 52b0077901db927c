"""Classes become published values: generalized, averaged or suppressed (docs/algorithms.md#recoding)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.schema import Intervals
from shoal.space import SUPPRESSED, Domain, Interval, Set, States, Tree, written
from shoal.taxonomy import Taxonomy


def cellwise(data: Microdata) -> Microdata:
    """The same table where every value is published as it is or not at all: local suppression.

    Each domain becomes a taxonomy of its values under one root `*`, so the `il` of a partition is the number of cells that
    are blanked, and minimising it is minimal local suppression. A missing value is a value like any other.
    """
    return replace(
        data,
        frame=data.table,
        domains=tuple(_flat(domain, name) for domain, name in zip(data.domains, data.quasi, strict=True)),
    )


def _flat(domain: Domain, name: str) -> Tree:
    if isinstance(domain, Interval):
        labels = [str(domain.publish(code, code)) for code in range(len(domain.values))]
    elif isinstance(domain, Tree):
        labels = list(domain.taxonomy.labels[: domain.size - domain.has_missing])
    else:
        labels = [written(label) for label in domain.labels]
    if SUPPRESSED in labels:
        raise InputError(
            f"Column '{name}' has the value '{SUPPRESSED}', and a value that is left out is published as '{SUPPRESSED}' too; "
            "write it in another way, or use another recode."
        )
    flat = Taxonomy.from_rows([(label, SUPPRESSED) for label in labels])
    return Tree(flat.with_missing() if domain.has_missing else flat, domain.has_missing)


def generalize(
    data: Microdata,
    partition: Partition,
    states: States,
    *,
    intervals: Intervals = "text",
    rows: NDArray[np.int64] | None = None,
) -> list[pl.Series]:
    """Intervals, lowest common ancestors and sets, one column a quasi-identifier (two with `columns`).

    `rows` are the records to show and their order; by default all of them in theirs.
    """
    labels = partition.labels if rows is None else partition.labels[rows]
    space = data.space("ncp")
    texts = space.publish(states)
    columns: list[pl.Series] = []
    for a, (name, domain) in enumerate(zip(data.quasi, data.domains, strict=True)):
        if isinstance(domain, Interval) and domain.labels is None and intervals != "text":
            slot = int(space.slots[a])
            columns += _numeric(name, domain, states[:, slot], states[:, slot + 1], labels, intervals)
        else:
            columns.append(_spread(name, texts[a], labels))
    return columns


def microaggregate(data: Microdata, partition: Partition, *, rows: NDArray[np.int64] | None = None) -> list[pl.Series]:
    """The class's mean for numbers and dates, median for ordered labels, most frequent value for the rest.

    Ties go to the smallest code. Missing values take no part; a class of nothing but missing stays missing.
    """
    columns: list[pl.Series] = []
    shown = partition.labels if rows is None else partition.labels[rows]
    inside = partition.labels >= 0
    labels = partition.labels[inside]
    for a, (name, domain) in enumerate(zip(data.quasi, data.domains, strict=True)):
        codes = data.codes[inside, a]
        known = codes < domain.missing_code
        if isinstance(domain, Interval) and domain.labels is None:
            sums = np.bincount(labels[known], domain.values[codes[known]], partition.classes)
            counts = np.bincount(labels[known], minlength=partition.classes)
            means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
            columns.append(_gathered(name, means, shown, domain.is_date))
            continue
        if isinstance(domain, Interval):
            chosen = _medians(codes[known], labels[known], partition.classes)
            texts = [domain.publish(int(c), int(c)) if c >= 0 else None for c in chosen]
        else:
            chosen = _modes(codes[known], labels[known], partition.classes, domain.size)
            names = [written(label) for label in domain.labels] if isinstance(domain, Set) else domain.taxonomy.labels
            texts = [names[int(c)] if c >= 0 else None for c in chosen]
        columns.append(_spread(name, texts, shown))
    return columns


def _spread(name: str, texts: list[str | None], labels: NDArray[np.int32]) -> pl.Series:
    """Each record's class text; suppressed records (label -1) take the last entry."""
    table = pl.Series(name, [*texts, SUPPRESSED], dtype=pl.String)
    return table.gather(pl.Series(np.where(labels < 0, len(texts), labels).astype(np.uint32)))


def _numeric(
    name: str, domain: Interval, lo: States, hi: States, labels: NDArray[np.int32], intervals: Intervals
) -> list[pl.Series]:
    """Numbers for people who compute: both ends, or the middle. "Any" is the whole observed range."""
    if len(domain.values) == 0:
        ends = [np.full(len(lo), np.nan)] * 2
    else:
        any_value = (hi == len(domain.values)) & (lo < hi)
        low = domain.values[np.where(any_value, 0, np.minimum(lo, len(domain.values) - 1))]
        high = domain.values[np.where(any_value, len(domain.values) - 1, np.minimum(hi, len(domain.values) - 1))]
        missing = lo == len(domain.values)
        ends = [np.where(missing, np.nan, low), np.where(missing, np.nan, high)]
    if intervals == "midpoint":
        return [_gathered(name, (ends[0] + ends[1]) / 2, labels, domain.is_date)]
    return [
        _gathered(f"{name}_min", ends[0], labels, domain.is_date),
        _gathered(f"{name}_max", ends[1], labels, domain.is_date),
    ]


def _gathered(name: str, values: NDArray[np.float64], labels: NDArray[np.int32], is_date: bool) -> pl.Series:
    series = pl.Series(name, np.append(values, np.nan)[labels]).fill_nan(None)
    if is_date:
        return series.round(0).cast(pl.Int32).cast(pl.Date)
    whole = series.drop_nulls()
    if len(whole) and bool((whole == whole.floor()).all()) and (whole.abs().max() or 0) < 2**53:  # type: ignore[operator]
        return series.cast(pl.Int64)
    return series


def _modes(codes: NDArray[np.int32], labels: NDArray[np.int32], classes: int, size: int) -> NDArray[np.int64]:
    cells, counts = np.unique(labels.astype(np.int64) * size + codes, return_counts=True)
    chosen = np.full(classes, -1, dtype=np.int64)
    order = np.lexsort((cells % size, -counts, cells // size))
    owner = (cells // size)[order]
    first = np.ones(len(owner), dtype=bool)
    first[1:] = owner[1:] != owner[:-1]
    chosen[owner[first]] = (cells % size)[order][first]
    return chosen


def _medians(codes: NDArray[np.int32], labels: NDArray[np.int32], classes: int) -> NDArray[np.int64]:
    order = np.lexsort((codes, labels))
    sizes = np.bincount(labels, minlength=classes)
    starts = np.cumsum(sizes) - sizes
    chosen = np.full(classes, -1, dtype=np.int64)
    filled = sizes > 0
    chosen[filled] = codes[order][(starts + (sizes - 1) // 2)[filled]]
    return chosen
