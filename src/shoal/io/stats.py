"""Files of SPSS, Stata and SAS in, with their value labels; pyreadstat reads them, where it is installed.

A column whose values all have labels is the labels: 1 and 2 become male and female. Where only some have one, the numbers stay
and those whose label says that there is no value (refused, unknown) are missing, as are the file's own kinds of missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import InputError, MissingExtraError
from shoal.spelling import says_nothing

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
"""The extensions, and who reads them."""


def read_stats(path: Path, label: str, extension: str, encoding: str | None) -> pl.DataFrame:
    """The table of a file of SPSS, Stata or SAS; `label` is how messages call it."""
    try:
        import pyreadstat
    except ImportError:
        raise MissingExtraError("pyreadstat", "stats", f"Reading {extension} files") from None
    reader = getattr(pyreadstat, READERS[extension])
    given = {"encoding": encoding} if encoding is not None else {}
    try:
        frame, told = reader(str(path), output_format="polars", **given)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{label} is not a whole {extension} file ({reason}): save it again, or give its encoding."
        ) from error
    table: pl.DataFrame = frame
    labels: Mapping[str, Mapping[Any, str]] = told.variable_value_labels
    return table.with_columns(_labelled(column, labels.get(column.name, {})) for column in table.iter_columns())


def _labelled(column: pl.Series, labels: Mapping[Any, str]) -> pl.Series:
    """The column with the labels of its values, or with missing where a label says so."""
    column = _plain(column)
    if column.dtype == pl.String:
        column = column.replace("", None)
    known = column.drop_nulls().unique()
    if not labels or not len(known) or column.dtype.is_temporal():
        return column
    values = pl.Series(list(labels), dtype=column.dtype, strict=False)
    texts = pl.Series(list(labels.values()), dtype=pl.String)
    if known.is_in(values.implode()).all():
        return column.replace_strict(values, texts, default=None, return_dtype=pl.String).alias(column.name)
    nothing = values.filter(pl.Series(says_nothing(texts.to_list()), dtype=pl.Boolean))
    if not len(nothing):
        return column
    return pl.select(pl.when(~column.is_in(nothing.implode())).then(column).alias(column.name)).to_series()


def _plain(column: pl.Series) -> pl.Series:
    """These programs know one kind of number; a column of whole ones is integers."""
    if column.dtype == pl.Object:
        return pl.Series(column.name, [None if v is None else str(v) for v in column.to_list()], dtype=pl.String)
    if not column.dtype.is_float():
        return column
    known = column.drop_nulls().drop_nans()
    whole = column.fill_nan(None).cast(pl.Int64, strict=False)
    return whole if (known == known.floor()).all() and whole.null_count() == len(column) - len(known) else column
