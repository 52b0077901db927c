"""The classes that a masked table itself shows."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import InputError, VerificationError, did_you_mean
from shoal.schema import Schema


def published_quasi(masked: pl.DataFrame, schema: Schema) -> list[str]:
    """The columns that carry the quasi-identifiers: `age`, or `age_min` and `age_max`.

    `masked` is the published table, `schema` the declared columns. Returns names; raises where a column is missing, or
    an identifier is still there.

    >>> import polars as pl, shoal
    >>> from shoal.verifier import published_quasi
    >>> masked = pl.DataFrame({"age_min": [20], "age_max": [29]})
    >>> published_quasi(masked, shoal.Schema({"age": shoal.Attribute(role="quasi")}))
    ['age_min', 'age_max']
    """
    found: list[str] = []
    for name in schema.named("quasi"):
        if name in masked.columns:
            found.append(name)
        elif f"{name}_min" in masked.columns and f"{name}_max" in masked.columns:
            found += [f"{name}_min", f"{name}_max"]
        else:
            raise InputError(
                f"The masked table has no column '{name}', which is a quasi-identifier; "
                f"{did_you_mean(name, masked.columns)}"
            )
    for name in schema.named("sensitive"):
        if name not in masked.columns:
            raise InputError(f"The masked table has no column '{name}', which is a sensitive attribute.")
    for name in schema.named("identifier"):
        if name in masked.columns:
            raise VerificationError(f"The masked table still has the identifier '{name}'; identifiers never leave.")
    return found


def masked_schema(schema: Schema, masked: pl.DataFrame) -> Schema:
    """The `schema` as far as it concerns a `masked` table: identifiers are gone, undeclared columns are named by "*".

    Returns a schema for `shoal.verify`.

    >>> import polars as pl, shoal
    >>> from shoal.verifier import masked_schema
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "*": shoal.Attribute(role="other")})
    >>> list(masked_schema(schema, pl.DataFrame({"age": ["*"], "ward": [1]})).attributes)
    ['age', 'ward']
    """
    rest = schema.attributes.get("*")
    found = {name: attribute for name, attribute in schema.attributes.items() if name != "*"}
    for name in masked.columns:
        owner = name.removesuffix("_min").removesuffix("_max")
        if name not in found and owner not in found and rest is not None:
            found[name] = rest
    return Schema(found, schema.folder)


def derive_classes(masked: pl.DataFrame, quasi: list[str]) -> tuple[NDArray[np.int64], pl.DataFrame]:
    """The classes that a `masked` table shows: records with equal values in the columns `quasi`. Missing is a value.

    Returns a label per row and the distinct published values, in order of first appearance.

    >>> import polars as pl
    >>> from shoal.verifier import derive_classes
    >>> labels, groups = derive_classes(pl.DataFrame({"age": ["[20, 29]", "[30, 39]", "[20, 29]"]}), ["age"])
    >>> labels.tolist(), groups["age"].to_list()
    ([0, 1, 0], ['[20, 29]', '[30, 39]'])
    """
    keys = masked.select(quasi)
    # A number for each text first: to compare numbers column by column is much faster than to compare texts.
    numbers = keys.with_columns(pl.col(pl.String).cast(pl.Categorical).to_physical()).with_row_index("__row")
    first = numbers.select(pl.col("__row").first().over(quasi)).to_series().to_numpy()
    begins = first == np.arange(len(first))
    labels = np.cumsum(begins)[first] - 1
    return labels.astype(np.int64, copy=False), keys.filter(pl.Series(begins))
