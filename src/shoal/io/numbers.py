"""Which text is numbers: decided on the whole column, and only when nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import polars as pl

from shoal.errors import InputError, raw

# 01234 is a code (a zip, a record number), not twelve hundred and thirty-four.
_CODE = r"^[+-]?0[0-9]"
_WHOLE = r"^[+-]?[0-9]+$"
_NOT_FINITE = r"(?i)^[+-]?(inf|infinity|nan)$"
_SAMPLE = 100  # values that show a column of text to be no numbers, before all are tried


AsText = Sequence[str] | Literal[True]
"""Columns that stay text whatever they look like, by name; True for all."""


def infer_numbers(frame: pl.DataFrame, place: Callable[[int], str], as_text: AsText = ()) -> pl.DataFrame:
    """Turn the text columns that hold only numbers into Int64 or Float64; all others stay as they are, and `as_text` do.

    `place(row)` words where a row is found, for the error that infinite and NaN values among numbers get.
    """
    candidates = [] if as_text is True else _candidates(frame.drop(as_text, strict=False))
    if not candidates:
        return frame
    whole = frame.select(pl.col(candidates).cast(pl.Int64, strict=False))
    rest = [name for name in candidates if whole[name].null_count() > frame[name].null_count()]
    converted = [whole[name] for name in candidates if name not in set(rest)]
    if rest:
        real = frame.select(pl.col(rest).cast(pl.Float64, strict=False))
        for name in rest:
            column = _real_column(frame[name], real[name], place)
            if column is not None:
                converted.append(column)
    return frame.with_columns(converted)


def number_problem(series: pl.Series) -> tuple[int, str, int] | None:
    """The first value that is not a finite number as (row, value, how many such values), or None.

    Rows count from 1, missing values are no problem, and codes such as 01234 count as numbers: asking
    this question means that the column was declared to be one.
    """
    if series.dtype.is_integer():
        return None
    text = series.cast(pl.String)
    number = text.str.strip_chars().cast(pl.Float64, strict=False)
    bad = (text.is_not_null() & (number.is_null() | ~number.is_finite().fill_null(False))).arg_true()
    if bad.is_empty():
        return None
    first = int(bad[0])
    return first + 1, str(text[first]), len(bad)


def exact_or_text(text: pl.Series) -> pl.Series:
    """Whole numbers beyond 64 bits: Float64 where every one of them survives unchanged, else the text."""
    for value in text.drop_nulls().unique():
        # 310 digits are beyond any double; also keeps int() away from its own limit on digits.
        if len(value) > 310 or int(float(value)) != int(value):
            return text
    return text.cast(pl.Float64)


def _candidates(frame: pl.DataFrame) -> list[str]:
    """Text columns whose first values look like numbers and that hold no codes."""
    names = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    if not names:
        return []
    head = frame.head(_SAMPLE).select(pl.col(names))
    cast = head.select(pl.all().cast(pl.Float64, strict=False))
    names = [name for name in names if cast[name].null_count() == head[name].null_count()]
    if not names:
        return []
    counts = frame.select(pl.col(names).count()).row(0)
    codes = frame.select(pl.col(names).str.contains(_CODE).any()).row(0)
    return [name for name, count, code in zip(names, counts, codes, strict=True) if count and not code]


def _real_column(text: pl.Series, real: pl.Series, place: Callable[[int], str]) -> pl.Series | None:
    """The column as Float64, or None when it has to stay text."""
    if real.null_count() > text.null_count():
        return None
    finite = real.is_finite()
    if not finite.all():
        strange = (~finite).fill_null(False).arg_true()
        spelled = text.gather(strange).str.contains(_NOT_FINITE)
        if not finite.any() or not spelled.all():  # all "nan", or 1e400: nothing is lost as text
            return None
        row = int(strange[0])
        raise InputError(
            f"column '{text.name}' holds {raw(text[row], 'an infinite number or NaN')} in {place(row)} among its numbers: "
            f"correct it, or list {raw(text[row], 'its text')} under missing if that is what it means."
        )
    if text.str.contains(_WHOLE).all():
        exact = exact_or_text(text)
        return exact if exact.dtype == pl.Float64 else None
    return real
