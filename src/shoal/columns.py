"""Columns: a table's text and numbers made into what their schema says, and the taxonomies they declare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import taxonomy_build as build
from shoal.errors import ConfigError, InputError, InternalError, raw, which
from shoal.schema import Attribute, Schema, TaxonomySource
from shoal.spelling import alike, means_missing
from shoal.taxonomy import Taxonomy
from shoal.taxonomy_build import number_label

# Beyond this, neighbouring whole numbers share one float.
EXACT_INTEGER = 2**53

# Labels are clustered by the pairs of letters in them, counted in so many buckets; none is rarer than another.
BUCKETS, ALIKE = 256, 1000


def typed(series: pl.Series, attribute: Attribute) -> tuple[pl.Series, str]:
    """The column as its kind says; text where a number or a date is needed is an error that shows it."""
    name = series.name
    kind = attribute.kind
    if kind is None:
        if series.dtype.is_numeric():
            kind = "number"
        else:
            kind = "date" if series.dtype in (pl.Date, pl.Datetime) else "category"
        if attribute.order is not None:
            kind = "category"
        if isinstance(attribute.taxonomy, TaxonomySource) and attribute.taxonomy.prefix is not None:
            kind = "category"
    if kind == "category":
        return texts(series, "number" if series.dtype.is_numeric() else "category"), kind
    if kind == "date":
        if series.dtype == pl.Datetime:
            return series.cast(pl.Date), kind
        if series.dtype == pl.Date:
            return series, kind
        parsed = series.cast(pl.String).str.to_date("%Y-%m-%d", strict=False)
        _complain(series, parsed, name, "a date such as 2024-03-31", "category")
        return parsed, kind
    if series.dtype == pl.Boolean:
        series = series.cast(pl.Int64)
    numbers = series if series.dtype.is_numeric() else series.cast(pl.String).cast(pl.Float64, strict=False)
    _complain(series, numbers, name, "a number", "category")
    as_float = numbers.cast(pl.Float64)
    bad = ~as_float.fill_null(0.0).is_finite()
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise InputError(
            f"Column '{name}', record {row + 1}: {raw(as_float[row], 'the value (inf or nan)')} is not a finite number; "
            "correct or remove it."
        )
    if numbers.dtype.is_integer() and (as_float.abs().max() or 0) > EXACT_INTEGER:  # type: ignore[operator]
        raise InputError(
            f"Column '{name}' holds whole numbers beyond 2^53 that cannot be told apart as numbers; "
            'declare kind = "category" or the role "identifier".'
        )
    return as_float, kind


def texts(series: pl.Series, kind: str) -> pl.Series:
    """A column as the labels a taxonomy would use: 7, not 7.0; dates as 2024-03-31."""
    if kind == "number" and series.dtype.is_float():
        distinct = series.drop_nulls().unique()
        series = series.replace_strict(distinct, [number_label(x) for x in distinct])
    return series.cast(pl.String)


def _complain(series: pl.Series, parsed: pl.Series, name: str, wanted: str, way_out: str) -> None:
    lost = parsed.is_null() & series.is_not_null()
    if lost.any():
        row = int(lost.arg_max() or 0)
        raise InputError(
            f"Column '{name}', record {row + 1}: {raw(series[row], 'the value')} is not {wanted} "
            f'({int(lost.sum())} such values); correct them, list them under [source] missing, or declare kind = "{way_out}".'
        )


def code(
    series: pl.Series,
    labels: list[str],
    name: str,
    what: str,
    missing: int | None = None,
    counts: NDArray[np.int64] | None = None,
) -> NDArray[np.int32]:
    """Position of each value in `labels`; missing gets the next code unless told otherwise.

    `counts` says how many records each entry stands for, which an error tells; one by default.
    """
    physical = series.cast(pl.Enum(labels), strict=False).to_physical() if labels else series.cast(pl.Int32)
    if physical.null_count() > series.null_count():
        unknown = series.filter(physical.is_null() & series.is_not_null()).unique().sort()
        count = _records(series, unknown[0], counts)
        raise InputError(unknown_value(name, str(unknown[0]), count, what, len(unknown) - 1))
    if physical.null_count():
        physical = physical.cast(pl.Int32).fill_null(len(labels) if missing is None else missing)
    return physical.to_numpy().astype(np.int32)  # a copy: compiled loops take what cannot be written for another type


def unknown_value(name: str, value: str, count: int, what: str, more: int = 0) -> str:
    others = f" and {more} more values" if more else ""
    return (
        f"Column '{name}': the {what} does not know {raw(value, 'a value')} ({count} record{'s' if count != 1 else ''}){others}; "
        f"add it to the {what}, correct the data, or list it under [source] missing{which()}."
    )


@dataclass(frozen=True)
class Told:
    """The values of a sensitive attribute as a reader tells them apart."""

    labels: tuple[str, ...]
    """One a value: its most frequent spelling, most frequent first; of an ordered attribute all that are declared."""
    code_of: Mapping[str, int]
    """The position of every spelling in `labels`, -1 for those that mean missing."""

    @property
    def joined(self) -> list[list[str]]:
        """Values with more than one spelling, all of them."""
        groups: dict[int, list[str]] = {}
        for text, code in self.code_of.items():
            if code >= 0:
                groups.setdefault(code, []).append(text)
        return [texts for texts in groups.values() if len(texts) > 1]

    @property
    def blank(self) -> list[str]:
        """Spellings of missing."""
        return [text for text, code in self.code_of.items() if code < 0]


def told_apart(
    series: pl.Series,
    name: str,
    attribute: Attribute,
    known: Collection[str] = (),
    counts: NDArray[np.int64] | None = None,
) -> Told:
    """The values of a column of texts: those that a reader takes for one are one, and spellings of missing are none.

    Declared values (an order, categories, or `known` from a taxonomy that was not made of the values) are told apart as they
    are declared, whatever they look like, and others are refused: a misspelt value would add to diversity and to nothing else.
    `counts` says how many records each entry stands for; one by default.
    """
    texts = by_count(series, counts)
    declared, what = _declared(attribute, known)
    if not what:
        groups = alike(texts)
        code_of = dict.fromkeys(texts, -1)
        for code, group in enumerate(groups):
            code_of.update({texts[row]: code for row in group})
        return Told(tuple(texts[group[0]] for group in groups), code_of)
    blank = dict(zip(texts, means_missing(texts), strict=True))
    strange = [text for text in texts if text not in declared and not blank[text]]
    if strange:
        count = _records(series, strange[0], counts)
        raise InputError(unknown_value(name, strange[0], count, what, len(strange) - 1))
    labels = list(attribute.order) if attribute.order is not None else [text for text in texts if text in declared]
    place = {label: code for code, label in enumerate(labels)}
    return Told(tuple(labels), {text: place.get(text, -1) for text in texts})


def _declared(attribute: Attribute, known: Collection[str]) -> tuple[Collection[str], str]:
    if attribute.order is not None:
        return attribute.order, "order"
    if known:
        return known, "taxonomy"
    if attribute.categories is not None:
        return {value for values in attribute.categories.values() for value in values}, "list of categories"
    return (), ""


def is_named(source: Taxonomy | TaxonomySource | str | None) -> bool:
    """Whether a taxonomy is there without the table: given, or in a file, and not made from the values."""
    if isinstance(source, TaxonomySource):
        return source.parents is not None or source.rows is not None
    return isinstance(source, Taxonomy) or (isinstance(source, str) and source != "auto")


def by_count(series: pl.Series, counts: NDArray[np.int64] | None = None) -> list[str]:
    """The labels of a column, most frequent first; `counts` says how many records each entry stands for."""
    if counts is None:
        # Counted without a list of the records of each, which `value_counts` makes.
        counted = series.drop_nulls().alias("label").to_frame().group_by("label").agg(pl.len().alias("records"))
    else:
        both = pl.DataFrame({"label": series, "records": counts}).drop_nulls("label")
        counted = both.group_by("label").agg(pl.col("records").sum())
    counted = counted.sort("records", "label", descending=[True, False])
    return [str(label) for label in counted["label"]]


def _records(series: pl.Series, value: str, counts: NDArray[np.int64] | None) -> int:
    same = (series == value).fill_null(False).to_numpy()
    return int(np.count_nonzero(same) if counts is None else counts[same].sum())


def numbers_of(series: pl.Series) -> pl.Series:
    return series.cast(pl.Int32).cast(pl.Float64) if series.dtype == pl.Date else series.cast(pl.Float64)


def ranks(numbers: pl.Series) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Rank of each number among the distinct ones; missing gets the rank after the last."""
    values = numbers.drop_nulls().unique().sort().to_numpy().astype(np.float64)
    dense = numbers.fill_null(0.0).to_numpy()
    codes = np.searchsorted(values, dense).astype(np.int32)
    if numbers.null_count():
        codes[numbers.is_null().to_numpy()] = len(values)
    return codes, values


def declared_taxonomy(
    table: pl.DataFrame,
    series: pl.Series,
    kind: str,
    name: str,
    schema: Schema,
    counts: NDArray[np.int64] | None = None,
) -> Taxonomy:
    """The taxonomy a column declares: given, read, or built from its values, of which each stands for `counts` records."""
    source = schema.attributes[name].taxonomy
    if isinstance(source, Taxonomy):
        return source
    if isinstance(source, str) and source != "auto":
        return schema.taxonomy_file(name, source)
    known = series.drop_nulls()
    if source == "auto":
        if kind == "category":
            if counts is not None:
                raise InternalError(f"the taxonomy of '{name}' is made from pairs of values, not from its own alone")
            return _auto_categories(table, series, name, schema)
        numbers = numbers_of(known)
        if kind == "date":
            return build.from_dates(_labels(known, kind), ["month", "year"], name)
        values, place = np.unique(numbers.to_numpy(), return_inverse=True)
        weights = None if counts is None else counts[series.is_not_null().to_numpy()]
        records = np.bincount(place, weights, minlength=len(values)).astype(np.int64)
        return build.auto_numbers(values, records, name)
    if source is None or isinstance(source, str):
        raise InternalError(f"column '{name}' declares no taxonomy")
    if source.parents is not None:
        return Taxonomy.from_parents(source.parents, name)
    if source.rows is not None:
        return Taxonomy.from_rows(source.rows, name)
    if source.prefix is not None:
        return build.from_prefixes(_labels(known, kind), source.prefix, name)
    if source.dates is not None:
        if kind != "date":
            raise ConfigError(f'[attributes.{name}] taxonomy: dates need kind = "date".')
        return build.from_dates(_labels(known, kind), list(source.dates), name)
    if kind != "number":
        raise ConfigError(f'[attributes.{name}] taxonomy: intervals need kind = "number".')
    values = np.unique(numbers_of(known).to_numpy())
    if source.edges is not None:
        return build.from_intervals(values, edges=source.edges, name=name)
    return build.from_intervals(values, widths=source.intervals or [], name=name)


def sensitive_taxonomy(labels: Sequence[str], kind: str, name: str, schema: Schema) -> Taxonomy | None:
    """The taxonomy of a sensitive attribute, from its configuration and its distinct values alone, or None.

    Sensitive values are published as they are, so whoever has the masked table makes the same taxonomy of it. An automatic
    one may look neither at other columns, which are masked, nor at frequencies, which change when records are left out.
    """
    source = schema.attributes[name].taxonomy
    if source is None:
        return None
    values = pl.Series(name, sorted(labels), dtype=pl.String)
    if kind != "category":
        values = values.str.to_date("%Y-%m-%d") if kind == "date" else values.cast(pl.Float64)
    if not len(values) and not is_named(source):
        return None
    if source != "auto" or kind == "date":
        return declared_taxonomy(values.to_frame(), values, kind, name, schema)
    if kind == "number":
        numbers = values.sort().to_numpy()
        return build.auto_numbers(numbers, np.ones(len(numbers), dtype=np.int64), name)
    return build.auto_categories(values.to_list(), _letters(values.to_list()), np.full(len(values), ALIKE), name)


def _letters(labels: Sequence[str]) -> NDArray[np.float64]:
    """Which pairs of letters a label has, as shares: values that are spelled alike, as codes of one chapter, are near."""
    profile = np.zeros((len(labels), BUCKETS))
    for row, label in enumerate(labels):
        padded = f"^{label.casefold()}"
        for pair in pairwise(padded):
            profile[row, crc32("".join(pair).encode()) % BUCKETS] += 1
    return np.asarray(profile / np.maximum(1, profile.sum(axis=1, keepdims=True)))


def _labels(known: pl.Series, kind: str) -> list[str]:
    return texts(known.unique(), kind).sort().to_list()


def _auto_categories(table: pl.DataFrame, series: pl.Series, name: str, schema: Schema) -> Taxonomy:
    """Cluster values by what they occur with in the other quasi-identifiers; sensitive columns stay out of it."""
    ones = np.ones(len(series), dtype=np.int64)
    others = [other for other in schema.named("quasi") if other != name]
    beside = (Beside(series, *features(*typed(table[other], schema.attributes[other])), ones) for other in others)
    return auto_taxonomy(series, ones, beside, name)


class Beside(NamedTuple):
    """What values of a column occur with in another one: pairs, and how many records have each."""

    values: pl.Series
    features: NDArray[np.int32]
    width: int
    counts: NDArray[np.int64]


def auto_taxonomy(series: pl.Series, counts: NDArray[np.int64], beside: Iterable[Beside], name: str) -> Taxonomy:
    """Categories clustered by what they occur with; entries of `series` stand for `counts` records."""
    labels = sorted(by_count(series, counts))
    blocks = []
    for one in beside:
        rows = code(one.values, labels, name, "column")
        known = rows < len(labels)
        cells = rows[known].astype(np.int64) * one.width + one.features[known]
        block = np.bincount(cells, one.counts[known], len(labels) * one.width).reshape(len(labels), one.width)
        blocks.append(block / np.maximum(1, block.sum(axis=1, keepdims=True)))
    profile = np.concatenate(blocks, axis=1) if blocks else np.zeros((len(labels), 1))
    rows = code(series, labels, name, "column")
    known = rows < len(labels)
    return build.auto_categories(labels, profile, np.bincount(rows[known], counts[known], len(labels)), name)


def features(
    column: pl.Series, kind: str, counts: NDArray[np.int64] | None = None, bins: int = 32
) -> tuple[NDArray[np.int32], int]:
    """The values of a column in a few groups: the most frequent ones, or ranges of ranks; entries stand for `counts` records."""
    if kind == "category":
        labels = by_count(column, counts)[: bins - 1]
        kept = pl.select(pl.when(column.is_in(pl.Series(labels, dtype=pl.String).implode())).then(column)).to_series()
        return code(kept, labels, column.name, "column"), len(labels) + 1
    codes, values = ranks(numbers_of(column))
    width = max(1, len(values))
    return np.minimum(codes.astype(np.int64) * bins // width, bins).astype(np.int32), bins + 1
