"""Frames of pandas, polars and pyarrow in and out, and the few column types the house works with.

Whatever library a table comes from, the same values give the same polars frame: Int64, Float64, String, Date
or Datetime columns, and missing as null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from shoal.errors import ConfigError, InputError, did_you_mean, raw
from shoal.io.lean import repeats
from shoal.io.numbers import exact_or_text

if TYPE_CHECKING:
    import pandas as pd

BACKENDS = ("pandas", "polars", "pyarrow")
# Texts of at most so many bytes stand in a column's rows themselves; longer ones are worth being there once, where the first
# rows repeat each of them so often, and there are few of them.
_SHORT, _HEAD, _FEW = 12, 10_000, 1 << 16
_EXACT = 2**53  # beyond this, neighbouring whole numbers share one float


def to_polars(native: Any) -> tuple[pl.DataFrame, str]:
    """The table as a normalised polars frame, and the name of the library it came from."""
    import narwhals as nw
    from narwhals import dependencies as known

    native = nw.to_native(native, pass_through=True)
    if known.is_polars_lazyframe(native):
        native = native.collect()
    if known.is_polars_dataframe(native):
        check_names(native.columns, "the polars frame")
        return normalise(native), "polars"
    if known.is_pyarrow_table(native):
        check_names(native.column_names, "the pyarrow table")
        columns = [_from_arrow(name, native.column(i)) for i, name in enumerate(native.column_names)]
        return normalise(pl.DataFrame(columns)), "pyarrow"
    if known.is_pandas_dataframe(native):
        names = _pandas_names(native)
        columns = [_from_pandas(name, native.iloc[:, i]) for i, name in enumerate(names)]
        return normalise(pl.DataFrame(columns)), "pandas"
    raise InputError(
        f"a table must be a pandas, polars or pyarrow frame, not {type(native).__module__}."
        f"{type(native).__qualname__}: convert it first."
    )


def from_polars(frame: pl.DataFrame, backend: str) -> Any:
    """The frame in the library named `backend`."""
    if backend == "polars":
        return frame
    if backend == "pyarrow":
        return frame.to_arrow()
    if backend == "pandas":
        return _to_pandas(frame)
    raise ConfigError(f"unknown frame library '{backend}': {did_you_mean(backend, BACKENDS)}")


Types = Mapping[str, Any]
"""The types that columns had before they got those of the house, by name."""


def types_of(native: Any) -> Types:
    """The types of a frame's columns that the house writes in another way and can give back: booleans, short numbers."""
    import narwhals as nw
    from narwhals import dependencies as known

    native = nw.to_native(native, pass_through=True)
    if known.is_polars_lazyframe(native):
        return kept_types(native.collect_schema())
    if known.is_polars_dataframe(native):
        return kept_types(native.schema)
    if known.is_pyarrow_table(native):
        return kept_types(dict(zip(native.column_names, pl.from_arrow(native.slice(0, 0)).dtypes, strict=True)))  # type: ignore[union-attr]
    if known.is_pandas_dataframe(native):
        # By NumPy's names, which pandas has for its own kinds too: boolean, Int32.
        found = {str(name): _NUMPY.get(str(dtype).lower()) for name, dtype in native.dtypes.items()}
        return {name: dtype for name, dtype in found.items() if dtype is not None}
    return {}


def index_of(native: Any) -> Any:
    """The labels of a pandas frame's rows; None where they are just counted, or it is no such frame."""
    index: Any = getattr(native, "index", None)
    counted = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None
    return None if counted or not type(native).__module__.startswith("pandas") else index


_KEPT = (pl.Boolean, pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32, pl.Float32)
_NUMPY = {"bool": pl.Boolean, **{str(dtype).lower(): dtype for dtype in _KEPT}}


def kept_types(schema: Mapping[str, Any]) -> Types:
    """Those of the types that can be given back."""
    return {name: dtype for name, dtype in schema.items() if dtype in _KEPT}


def restored(frame: pl.DataFrame, types: Types) -> pl.DataFrame:
    """The frame with columns in the types they had, where that changes no value."""
    changed = []
    for name, dtype in types.items():
        if name not in frame.columns:
            continue
        column = frame[name]
        if dtype == pl.Boolean:
            if column.dtype != pl.String or not column.is_in(["True", "False"]).fill_null(True).all():
                continue
            changed.append((column == "True").alias(name))
        elif column.dtype.is_numeric():
            short = column.cast(dtype, strict=False)
            if short.cast(column.dtype).eq_missing(column).all():
                changed.append(short)
    return frame.with_columns(changed) if changed else frame


def normalise(frame: pl.DataFrame, label: str = "the table") -> pl.DataFrame:
    """The same values in the types of the house; see the module's first lines.

    Booleans become the text True and False, dates without a time of day become Date, time zones are dropped and
    the wall clock kept, NaN becomes missing. A column of whole floats with gaps becomes Int64, since pandas
    has no other way to say "integers, some missing"; a column without any value becomes String.
    """
    return pl.DataFrame([_normal_column(column, label) for column in frame.iter_columns()])


def worded(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with its booleans as `normalise` writes them."""
    return frame.with_columns(pl.col(pl.Boolean).cast(pl.String).str.to_titlecase())


def alone(column: pl.Series) -> pl.Series:
    """The column with nothing else in its memory.

    A text column that was filtered keeps the texts that are gone where the others lie, and numbers that became missing may still
    lie beneath: both would go along into an Arrow file or a pickle, and what is published must not tell them.
    """
    text = column.dtype == pl.String
    if not text and (column.null_count() == 0 or not (column.dtype.is_numeric() or column.dtype.is_temporal())):
        return column
    if column.null_count() == 0:
        return pl.Series(column.name, column.to_arrow(compat_level=pl.CompatLevel.oldest()), dtype=pl.String)
    import pyarrow as pa

    filled = (column if text else column.to_physical()).fill_null("" if text else 0)
    arrow = filled.to_arrow(compat_level=pl.CompatLevel.oldest())
    known = pa.py_buffer(np.packbits(column.is_not_null().to_numpy(), bitorder="little"))
    blanked = pa.Array.from_buffers(arrow.type, len(arrow), [known, *arrow.buffers()[1:]])
    return pl.Series(column.name, blanked).cast(column.dtype)


def packed(column: pl.Series) -> pl.Series | None:
    """A column of texts with each of them in memory once and nothing else there, in their own order; None where they are many.

    Short texts stand in their rows themselves and gain nothing.
    """
    head = column.head(_HEAD)
    if not (head.str.len_bytes() > _SHORT).any() or not repeats(head):
        return None
    known = column.drop_nulls().unique().sort()
    if len(known) > _FEW:
        return None
    known = pl.Series(known.to_list(), dtype=pl.String)
    return known.gather(column.cast(pl.Enum(known)).to_physical()).rename(column.name)


def check_names(names: Sequence[str], label: str) -> None:
    """Every column has a name, no two have the same, and none is a pattern to polars (*, ^…$)."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise InputError(f"column {position} of {label} has no name: give it one.")
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise InputError(
                f"column {position} of {label} is named '{name}', which stands for a pattern of names: rename it."
            )
        if name in seen:
            raise InputError(
                f"{label} has two columns named '{name}' (columns {seen[name]} and {position}): rename one of them."
            )
        seen[name] = position


def select_columns(frame: pl.DataFrame, columns: Sequence[str] | None, label: str) -> pl.DataFrame:
    """The columns asked for, in that order; all of them when nothing is asked."""
    if columns is None:
        return frame
    for name in columns:
        if name not in frame.columns:
            raise InputError(f"{label} has no column '{name}': {did_you_mean(name, frame.columns)}")
    return frame.select(list(columns))


def apply_missing(frame: pl.DataFrame, missing: Sequence[str]) -> pl.DataFrame:
    """Text values that are listed as missing become null."""
    names = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    if not names or not missing:
        return frame
    found = frame.select(pl.col(names).is_in(list(missing)).any()).row(0)
    names = [name for name, gone in zip(names, found, strict=True) if gone]
    text = pl.col(names)
    return frame.with_columns(pl.when(text.is_in(list(missing)).not_()).then(text).name.keep()) if names else frame


def _normal_column(column: pl.Series, label: str) -> pl.Series:
    dtype = column.dtype
    if dtype == pl.String:
        return column
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Duration):
        raise InputError(
            f"column '{column.name}' of {label} holds values of type {dtype}: turn it into numbers, text or dates "
            "first, or leave it out."
        )
    if len(column) and column.null_count() == len(column):
        return pl.Series(column.name, [None] * len(column), dtype=pl.String)
    if dtype == pl.Boolean:
        return column.replace_strict([True, False], ["True", "False"], return_dtype=pl.String)
    if dtype.is_integer():
        return _integers(column)
    if dtype.is_float():
        return _floats(column.cast(pl.Float64), label)
    if dtype.is_decimal():
        whole = column.cast(pl.Int64, strict=False)
        same = whole.null_count() == column.null_count() and (whole.cast(dtype, strict=False) == column).all()
        return whole if same else _floats(column.cast(pl.Float64), label)
    if isinstance(dtype, pl.Datetime):
        return _datetimes(column)
    if dtype == pl.Date:
        return column
    return column.cast(pl.String)


def _integers(column: pl.Series) -> pl.Series:
    whole = column.cast(pl.Int64, strict=False)
    if whole.null_count() > column.null_count():
        return exact_or_text(column.cast(pl.String))
    return whole


def _floats(column: pl.Series, label: str) -> pl.Series:
    infinite = column.is_infinite().fill_null(False)
    if infinite.any():
        row = int(infinite.arg_true()[0])
        raise InputError(
            f"column '{column.name}' of {label} holds {raw(column[row], 'an infinite number')} in row {row + 1}: "
            "replace infinite values by numbers, or by missing."
        )
    column = column.fill_nan(None)
    if column.null_count() == len(column) and len(column):
        return column.cast(pl.String)
    if column.null_count() and ((column == column.floor()) & (column.abs() <= _EXACT)).all():
        return column.cast(pl.Int64)
    return column


def _datetimes(column: pl.Series) -> pl.Series:
    clock = column.dt.replace_time_zone(None).cast(pl.Datetime("us"))
    days = clock.dt.date()
    return days if (days.cast(pl.Datetime("us")) == clock).all() else clock


def _from_arrow(name: str, column: Any) -> pl.Series:
    try:
        return pl.Series(name, pl.from_arrow(column))
    except (Exception, pl.exceptions.PanicException) as error:  # polars and arrow each raise their own kinds
        raise _unreadable(name, str(column.type), error) from error


def _pandas_names(frame: pd.DataFrame) -> list[str]:
    if frame.columns.nlevels > 1:
        raise InputError("the pandas frame has columns of several levels: give every column one plain name.")
    # A number is a fair name in pandas; text everywhere else.
    names = [str(name) for name in frame.columns]
    check_names(names, "the pandas frame")
    return names


def _from_pandas(name: str, column: pd.Series[Any]) -> pl.Series:
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        values = _from_pandas(name, column.cat.categories.to_series())
        codes = pl.Series(column.cat.codes.to_numpy().astype("int64"))
        return values.gather(codes.set(codes < 0, None)).alias(name)
    if isinstance(dtype, pd.SparseDtype):
        return _from_pandas(name, column.astype(dtype.subtype))
    try:
        if isinstance(dtype, (pd.PeriodDtype, pd.IntervalDtype)):
            texts = [None if gone else str(value) for value, gone in zip(column, column.isna(), strict=True)]
            return pl.Series(name, texts, dtype=pl.String)
        if pd.api.types.is_object_dtype(dtype):
            return _from_objects(name, column)
        return pl.Series(name, pl.from_pandas(column.reset_index(drop=True), nan_to_null=True))
    except InputError:
        raise
    except Exception as error:  # pandas, numpy and arrow each raise their own kinds
        raise _unreadable(name, str(dtype), error) from error


def _from_objects(name: str, column: pd.Series[Any]) -> pl.Series:
    """Python objects of any kind, with None, NaN, NaT and NA as missing among them."""
    missing = column.isna().to_numpy()
    values = [None if gone else value for value, gone in zip(column.to_list(), missing, strict=True)]
    kinds = {type(value) for value in values if value is not None}
    if bool in kinds and len(kinds) > 1:
        # Elsewhere True in text would be spelled in lower case, and 1 among numbers.
        return pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)
    series = pl.Series(name, values, strict=False)
    if series.dtype == pl.Object:
        kind = next(iter(sorted(kind.__name__ for kind in kinds)))
        raise InputError(
            f"column '{name}' of the pandas frame holds Python objects of type {kind}: "
            "turn them into numbers, text or dates first."
        )
    return series


def _unreadable(name: str, dtype: str, error: BaseException) -> InputError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(
        f"column '{name}' of type {dtype} cannot be read ({reason}): turn it into numbers, text or dates first."
    )


def _to_pandas(frame: pl.DataFrame) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise InputError("giving back a pandas frame needs the package 'pandas': install it.") from None
    result = frame.to_pandas()
    for name, dtype in frame.schema.items():
        # polars would make floats of integers that have gaps.
        if dtype == pl.Int64 and frame[name].null_count():
            gaps = frame[name].is_null().to_numpy()
            result[name] = pd.arrays.IntegerArray(frame[name].fill_null(0).to_numpy().copy(), gaps.copy())
    return result
