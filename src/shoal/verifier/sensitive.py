"""Sensitive attributes as the masked table shows them: what a reader takes for one value is one value."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import is_named, sensitive_taxonomy, texts, told_apart, typed
from shoal.errors import InputError, ShoalError
from shoal.io.lean import is_lean, places_of, spelled, texts_of
from shoal.models import Sensitive
from shoal.reading import without_codes
from shoal.schema import Schema
from shoal.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False)
class AuditedColumn(Sensitive):
    """A sensitive attribute as the masked table shows it.

    Beside what models ask of any sensitive attribute, `joined` are the values that have several spellings and are counted
    as one, and `blank` the spellings of missing, which are no value.

    >>> import numpy as np
    >>> from shoal.verifier import AuditedColumn
    >>> AuditedColumn("illness", np.array([0, 1], dtype=np.int32), ("flu", "cold")).labels
    ('flu', 'cold')
    """

    joined: tuple[tuple[str, ...], ...] = ()
    blank: tuple[str, ...] = ()


def audited_column(
    masked: pl.DataFrame, name: str, schema: Schema, counts: NDArray[np.int64] | None = None
) -> AuditedColumn:
    """The sensitive attribute `name` of a `masked` table, read as the `schema` declares it. Returns its codes and labels.

    A row may be a distinct value that stands for `counts` records; one by default.

    >>> import polars as pl, shoal
    >>> from shoal.verifier import audited_column
    >>> schema = shoal.Schema({"illness": shoal.Attribute(role="sensitive")})
    >>> audited_column(pl.DataFrame({"illness": ["flu", "cold", "flu"]}), "illness", schema).labels
    ('flu', 'cold')
    """
    if is_lean(masked[name]):
        return _by_value(masked[name], schema)
    attribute = schema.attributes[name]
    # Whoever left a code for "no value" in the table must not have it counted as one more value.
    series, kind = typed(without_codes(masked[name], attribute), attribute)
    numbers = taxonomy = None
    joined: list[list[str]] = []
    blank: list[str] = []
    if kind == "category":
        if is_named(attribute.taxonomy):
            taxonomy = sensitive_taxonomy([], kind, name, schema)
        told = told_apart(series, name, attribute, taxonomy.labels if taxonomy else (), counts)
        labels, code_of, joined, blank = told.labels, told.code_of, told.joined, told.blank
    else:
        distinct = series.drop_nulls().unique().sort()
        numbers = distinct.cast(pl.Int32).cast(pl.Float64).to_numpy() if kind == "date" else distinct.to_numpy()
        labels = tuple(texts(distinct, kind).to_list())
        code_of = {label: code for code, label in enumerate(labels)}
    if taxonomy is None:
        taxonomy = sensitive_taxonomy(labels, kind, name, schema)
    if taxonomy is not None:
        _refuse_overlap({labels[code] for code in code_of.values() if code >= 0}, taxonomy, name)
    return AuditedColumn(
        name=name,
        codes=_codes(texts(series, kind), list(code_of), list(code_of.values())),
        labels=labels,
        numbers=numbers,
        ordered=numbers is not None or attribute.order is not None,
        taxonomy=taxonomy,
        protect=tuple(attribute.protect),
        categories=tuple((key, tuple(values)) for key, values in (attribute.categories or {}).items()),
        weights=counts,
        joined=tuple(tuple(spellings) for spellings in joined),
        blank=tuple(blank),
    )


def _by_value(column: pl.Series, schema: Schema) -> AuditedColumn:
    """A column that is held as numbers into the list of its texts: each text is read once, and dealt out."""
    places, texts = places_of(column), texts_of(column)
    counts = np.bincount(places.to_numpy(), minlength=len(texts) + 1).astype(np.int64)
    there = np.flatnonzero(counts)
    values = texts.append(pl.Series([None], dtype=pl.String)).gather(there).alias(column.name)
    try:
        found = audited_column(values.to_frame(), column.name, schema, counts[there])
    except ShoalError:
        # What is wrong is told with the record it stands in.
        return audited_column(spelled(column).to_frame(), column.name, schema)
    codes = np.full(len(counts), -1, dtype=np.int32)
    codes[there] = found.codes
    return replace(found, codes=pl.Series(codes).gather(places).to_numpy(writable=True), weights=None)


def _codes(shown: pl.Series, spellings: list[str], codes: list[int]) -> NDArray[np.int32]:
    """The code of each cell by its spelling; -1 where it has none."""
    places = shown.cast(pl.Enum(spellings), strict=False).to_physical()
    return pl.Series([*codes, -1], dtype=pl.Int32).gather(places).fill_null(-1).to_numpy(writable=True)


def _refuse_overlap(values: set[str], tree: Taxonomy, name: str) -> None:
    """A value and a node above it may be the same secret: nobody can count them as two."""
    for node in sorted(tree.node(value) for value in values if value not in tree.leaf_codes):
        if any(value != tree.labels[node] and _covers(tree, node, value) for value in values):
            raise InputError(
                f"Column '{name}' holds a value and a node of its taxonomy above that value, which may be the same: publish "
                "both as values, or both as nodes of one level."
            )


def _covers(tree: Taxonomy, node: int, label: str) -> bool:
    leaf = tree.leaf_codes.get(label)
    other = tree.node(label) if leaf is None else leaf
    return bool(tree.first[node] <= tree.first[other] and tree.last[other] <= tree.last[node])
