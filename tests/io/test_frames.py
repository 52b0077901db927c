"""The three frame libraries give the same frame, and get their own kind back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from shoal.errors import ConfigError, InputError
from shoal.io import from_polars, normalise, to_polars

COLUMNS: dict[str, list[Any]] = {
    "whole": [1, -2, 3],
    "gaps": [1, None, 3],
    "real": [0.5, 1.0, -2.25],
    "real_gaps": [0.5, None, 2.0],
    "text": ["a", "", "ß"],
    "text_gaps": ["a", None, "b"],
    "flag": [True, False, True],
    "flag_gaps": [True, None, False],
    "day": [date(2024, 2, 29), date(1900, 1, 1), date(2100, 12, 31)],
    "day_gaps": [date(2024, 2, 29), None, date(2024, 3, 1)],
    "midnight": [datetime(2024, 2, 29), datetime(2024, 3, 1), None],
    "moment": [datetime(2024, 2, 29, 13, 5), datetime(2024, 3, 1), None],
    "nothing": [None, None, None],
}
EXPECTED = pl.DataFrame(
    {
        **COLUMNS,
        "flag": ["True", "False", "True"],
        "flag_gaps": ["True", None, "False"],
        "midnight": [date(2024, 2, 29), date(2024, 3, 1), None],
    },
    schema_overrides={"nothing": pl.String},
)


def _pandas_plain() -> pd.DataFrame:
    return pd.DataFrame(COLUMNS, index=[7, 7, 9])


def _pandas_objects() -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in COLUMNS.items()})


def _pandas_nullable() -> pd.DataFrame:
    return _pandas_objects().convert_dtypes()


def _pandas_categories() -> pd.DataFrame:
    frame = _pandas_objects()
    return pd.DataFrame({name: pd.Categorical(frame[name]) for name in frame.columns})


def _pandas_nan() -> pd.DataFrame:
    frame = _pandas_objects()
    for name in ("gaps", "text_gaps", "flag_gaps", "day_gaps", "nothing"):
        frame[name] = pd.Series([np.nan if value is None else value for value in COLUMNS[name]], dtype=object)
    return frame


def _polars_eager() -> pl.DataFrame:
    return pl.DataFrame(COLUMNS)


def _polars_narrow() -> pl.DataFrame:
    return pl.DataFrame(COLUMNS).with_columns(
        pl.col("whole").cast(pl.Int8),
        pl.col("gaps").cast(pl.UInt16),
        pl.col("real").cast(pl.Float32),
        pl.col("real_gaps").fill_null(float("nan")),
        pl.col("text").cast(pl.Categorical),
        pl.col("moment").dt.replace_time_zone("Europe/Berlin").cast(pl.Datetime("ns", "Europe/Berlin")),
    )


def _pyarrow() -> pa.Table:
    return pa.table(COLUMNS)


def _pyarrow_dictionary() -> pa.Table:
    table = pa.table(COLUMNS)
    for position, name in enumerate(table.column_names):
        if name in ("whole", "text", "text_gaps", "gaps"):
            table = table.set_column(position, name, table.column(name).dictionary_encode())
    return table


@pytest.mark.parametrize(
    ("make", "backend"),
    [
        (_pandas_plain, "pandas"),
        (_pandas_objects, "pandas"),
        (_pandas_nullable, "pandas"),
        (_pandas_categories, "pandas"),
        (_pandas_nan, "pandas"),
        (_polars_eager, "polars"),
        (lambda: _polars_eager().lazy(), "polars"),
        (_polars_narrow, "polars"),
        (_pyarrow, "pyarrow"),
        (_pyarrow_dictionary, "pyarrow"),
    ],
)
def test_every_library_gives_the_same_frame(make: Callable[[], Any], backend: str) -> None:
    frame, name = to_polars(make())
    assert name == backend
    assert_frame_equal(frame, EXPECTED)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_out_and_in_again_changes_nothing(backend: str) -> None:
    native = from_polars(EXPECTED, backend)
    assert type(native).__module__.split(".")[0] == backend
    again, name = to_polars(native)
    assert name == backend
    assert_frame_equal(again, EXPECTED)


def test_integers_with_gaps_stay_integers_in_pandas() -> None:
    native = from_polars(pl.DataFrame({"n": [2**60 + 1, None]}), "pandas")
    assert native["n"].tolist()[0] == 2**60 + 1
    assert str(native["n"].dtype) == "Int64"


def test_input_is_left_alone() -> None:
    native = _pandas_objects()
    before = native.copy(deep=True)
    to_polars(native)
    pd.testing.assert_frame_equal(native, before)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pl.Series([2**64 - 2**11], dtype=pl.UInt64), pl.Series([float(2**64 - 2**11)])),
        (pl.Series([2**64 - 1], dtype=pl.UInt64), pl.Series([str(2**64 - 1)])),
        (pl.Series([Decimal("1.50"), None]), pl.Series([1.5, None])),
        (pl.Series([Decimal("2"), Decimal("3")]), pl.Series([2, 3])),
        (pl.Series([1.0, 2.0]), pl.Series([1.0, 2.0])),
        (pl.Series([1.0, None]), pl.Series([1, None], dtype=pl.Int64)),
        (pl.Series([1e300, None]), pl.Series([1e300, None])),
        (pl.Series([], dtype=pl.Int32), pl.Series([], dtype=pl.Int64)),
    ],
)
def test_normalise(values: pl.Series, expected: pl.Series) -> None:
    once = normalise(values.to_frame("x"))
    assert_frame_equal(once, expected.to_frame("x"))
    assert_frame_equal(normalise(once), once)


def test_mixed_objects_become_text() -> None:
    native = pd.DataFrame({"x": pd.Series([1, "a", None], dtype=object), "y": pd.Series([True, "a", 2], dtype=object)})
    frame, _ = to_polars(native)
    assert frame.to_dict(as_series=False) == {"x": ["1", "a", None], "y": ["True", "a", "2"]}


@pytest.mark.parametrize(
    ("native", "words"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ["'a'", "columns 1 and 2"]),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), ["'1'", "columns 1 and 2"]),
        (pa.table([[1], [2]], names=["a", "a"]), ["'a'", "columns 1 and 2"]),
        (pd.DataFrame([[1, 2]], columns=["a", " "]), ["column 2", "no name"]),
        (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])), ["several levels"]),
        (pd.DataFrame({"x": [1.0, np.inf]}), ["'x'", "inf", "row 2"]),
        (pl.DataFrame({"x": [float("-inf")]}), ["'x'", "-inf", "row 1"]),
        (pl.DataFrame({"x": [[1]]}), ["'x'", "List"]),
        (pd.DataFrame({"x": [object()]}), ["'x'", "object"]),
        (pd.DataFrame({"x": pd.to_timedelta([1], unit="s")}), ["'x'", "Duration"]),
        (pa.table({"x": [b"1"]}), ["'x'", "Binary"]),
        ({"x": [1]}, ["builtins.dict", "pandas, polars or pyarrow"]),
    ],
)
def test_unusable_tables_say_why(native: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        to_polars(native)
    for word in words:
        assert word in str(caught.value)


def test_unknown_backend() -> None:
    with pytest.raises(ConfigError, match="did you mean 'pandas'"):
        from_polars(EXPECTED, "panda")
