"""Sensitive attributes as the masked table shows them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import declared_taxonomy, texts, typed
from shoal.errors import InputError
from shoal.schema import Schema
from shoal.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False)
class AuditedColumn:
    """A sensitive attribute as the masked table shows it.

    `name` is the column; `codes` has one number a record, -1 for missing, and `labels` the text of each; `numbers` the
    value behind each code where they are numbers; `ordered` says whether the codes are in a meaningful order.
    `taxonomy`, `protect` and `categories` are the schema's; `guards` are guarding nodes, one a record, for personalized
    privacy.

    >>> import numpy as np
    >>> from shoal.verifier import AuditedColumn
    >>> AuditedColumn("illness", np.array([0, 1], dtype=np.int32), ("flu", "cold"), None, False, None, (), ()).labels
    ('flu', 'cold')
    """

    name: str
    codes: NDArray[np.int32]
    labels: tuple[str, ...]
    numbers: NDArray[np.float64] | None
    ordered: bool
    taxonomy: Taxonomy | None
    protect: tuple[str, ...]
    categories: tuple[tuple[str, tuple[str, ...]], ...]
    guards: NDArray[np.object_] | None = None


def audited_column(masked: pl.DataFrame, name: str, schema: Schema) -> AuditedColumn:
    """The sensitive attribute `name` of a `masked` table, read as the `schema` declares it. Returns its codes and labels.

    >>> import polars as pl, shoal
    >>> from shoal.verifier import audited_column
    >>> schema = shoal.Schema({"illness": shoal.Attribute(role="sensitive")})
    >>> audited_column(pl.DataFrame({"illness": ["flu", "cold", "flu"]}), "illness", schema).labels
    ('cold', 'flu')
    """
    attribute = schema.attributes[name]
    series, kind = typed(masked[name], attribute)
    numbers = None
    if attribute.order is not None:
        labels = list(attribute.order)
    elif kind == "category":
        labels = sorted(str(value) for value in series.drop_nulls().unique())
    else:
        distinct = series.drop_nulls().unique().sort()
        numbers = distinct.cast(pl.Int32).cast(pl.Float64).to_numpy() if kind == "date" else distinct.to_numpy()
        labels = texts(distinct, kind).to_list()
    position = pl.DataFrame(
        {"label": labels, "code": np.arange(len(labels), dtype=np.int32)}, schema={"label": pl.String, "code": pl.Int32}
    )
    shown = texts(series, kind).alias("label").to_frame()
    codes = shown.join(position, on="label", how="left", maintain_order="left")["code"]
    strange = shown["label"].filter(codes.is_null() & shown["label"].is_not_null())
    if len(strange):
        raise InputError(f"Column '{name}': '{strange[0]}' is not among the declared values.")
    taxonomy = declared_taxonomy(masked, series, kind, name, schema) if attribute.taxonomy is not None else None
    return AuditedColumn(
        name=name,
        codes=codes.fill_null(-1).to_numpy().astype(np.int32),
        labels=tuple(labels),
        numbers=numbers,
        ordered=numbers is not None or attribute.order is not None,
        taxonomy=taxonomy,
        protect=tuple(attribute.protect),
        categories=tuple((key, tuple(values)) for key, values in (attribute.categories or {}).items()),
    )
