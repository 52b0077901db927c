"""A table as its source wrote it, read as its columns say: `missing`, `format` and `decimal`.

This happens once, before anything is transformed or encoded. From here on dates are dates, numbers are numbers, and what means
"no value" is missing; so they are published in one spelling, 2024-03-31 and 1234.5, whatever the source's was. A masked table has
that spelling and is not read again.

>>> import polars as pl
>>> from shoal.configuration import read_schema
>>> schema = read_schema({"seen": {"role": "quasi", "format": "DD.MM.YYYY"}, "age": {"role": "quasi", "missing": [-99]}})
>>> as_declared(pl.DataFrame({"seen": ["1.3.1994", "2.3.1994"], "age": [34, -99]}), schema).rows()
[(datetime.date(1994, 3, 1), 34), (datetime.date(1994, 3, 2), None)]
"""

from __future__ import annotations

import polars as pl

from shoal import formats
from shoal.errors import InputError, raw
from shoal.io.frames import normalise
from shoal.schema import Attribute, Schema
from shoal.taxonomy_build import number_label

SHOWN = 3
"""Records that a message names."""


def as_declared(table: pl.DataFrame, schema: Schema, *, strict: bool = True) -> pl.DataFrame:
    """The table with every column read as it says; others as they are.

    Without `strict`, a column that is not written as it says stays as it is: lists of others may be written otherwise.
    """
    changed = []
    rest = schema.attributes.get("*")
    for name in table.columns:
        attribute = schema.attributes.get(name, rest)
        if attribute is None or attribute.role == "identifier" or not (attribute.patterns or attribute.missing):
            continue
        try:
            changed.append(_read(table[name], attribute))
        except InputError:
            if strict:
                raise
    return normalise(table.with_columns(changed)) if changed else table


def _read(column: pl.Series, attribute: Attribute) -> pl.Series:
    column = without_codes(column, attribute)
    patterns = attribute.patterns
    if not patterns:
        return column
    if patterns[0].kind == "date" and column.dtype.is_integer():
        column = column.cast(pl.String)  # 20240331
    if column.dtype != pl.String:
        return column  # a table that has types says itself what its values are
    found = formats.read(column, patterns)
    lost = (found.is_null() & column.is_not_null()).arg_true()
    if len(lost):
        row, name = int(lost[0]), column.name
        wanted = " or ".join(f"'{one.text}'" for one in patterns)
        decimal = f" with decimal = '{attribute.decimal}'" if attribute.decimal else ""
        raise InputError(
            f"Column '{name}', record {row + 1}: {raw(column[row], 'the value')} is not a {patterns[0].kind} written as {wanted}"
            f"{decimal} ({len(lost)} such values{_others(lost)}); correct them, list them under missing of "
            f"[attributes.{name}], or add their spelling to its format."
        )
    return without_codes(found, attribute)


def _others(rows: pl.Series) -> str:
    """Where the next ones are."""
    more = ", ".join(str(row + 1) for row in rows[1:SHOWN])
    return f", also in records {more}{' …' if len(rows) > SHOWN else ''}" if more else ""


def without_codes(column: pl.Series, attribute: Attribute) -> pl.Series:
    """The column with null for the codes that mean missing, however it is typed."""
    codes = attribute.missing or []
    if not codes:
        return column
    if column.dtype == pl.String:
        texts = pl.Series(
            [code if isinstance(code, str) else number_label(float(code)) for code in codes], dtype=pl.String
        )
        gone = column.str.strip_chars().is_in(texts.str.strip_chars().implode())
    elif column.dtype.is_numeric():
        gone = column.cast(pl.Float64).is_in([number for code in codes if (number := _number(code)) is not None])
    elif column.dtype.is_temporal():
        gone = column.cast(pl.Date).is_in(_dates(codes, attribute).implode())
    else:
        return column
    return pl.select(pl.when(~gone).then(column).alias(column.name)).to_series() if gone.any() else column


def _number(code: str | float) -> float | None:
    try:
        return float(code)
    except ValueError:
        return None


def _dates(codes: list[str | int | float], attribute: Attribute) -> pl.Series:
    """The days that codes mean, as the column or as 2024-03-31 writes them."""
    texts = pl.Series([str(code) for code in codes], dtype=pl.String)
    patterns = [one for one in attribute.patterns if one.kind == "date"]
    found = formats.read(texts, [*patterns, formats.pattern("YYYY-MM-DD")]).cast(pl.Date)
    return found.drop_nulls()
