"""Batches as they come in: a frame or a file, checked against what the store keeps, before anything is changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.columns import texts
from shoal.errors import InputError, did_you_mean, raw
from shoal.evolve.store.settings import TYPES, Settings, type_names
from shoal.io.frames import to_polars
from shoal.reading import as_declared


@dataclass(frozen=True, eq=False)
class KeyedRows:
    """Records of a batch: their keys as text, and the columns the store keeps."""

    keys: list[str]
    frame: pl.DataFrame

    def take(self, rows: list[int]) -> KeyedRows:
        """Some of them."""
        return KeyedRows([self.keys[row] for row in rows], self.frame[rows])


def read_rows(source: Any, settings: Settings, types: Mapping[str, str], *, partial: bool = False) -> KeyedRows:
    """The records of a frame or a file, in the types of the store; none are no mistake.

    With `partial` columns that do not change may be missing.
    """
    table = _table(source, settings)
    columns = [name for name in settings.columns if not partial or name in table.columns]
    for name in [settings.key, *columns]:
        if name not in table.columns:
            raise InputError(
                f"The batch has no column '{name}', which the store needs; {did_you_mean(name, table.columns)}"
            )
    if not columns:
        raise InputError("The batch has no column besides the key; give those that change.")
    known = {settings.key, *columns, *settings.ignored}
    for name in table.columns:
        if name not in known:
            raise InputError(
                f"The store has no column '{name}'; leave it out of the batch, or {did_you_mean(name, settings.columns)}"
            )
    frame = table.select(fitted(table[name], types[name]) for name in columns)
    if settings.missing == "error":
        _require_complete(frame, settings)
    return KeyedRows(read_keys(table, settings), frame)


def completed(rows: KeyedRows, stored: pl.DataFrame) -> KeyedRows:
    """Rows that lack columns, with these of the stored records, which are in the same order."""
    lacking = [name for name in stored.columns if name not in rows.frame.columns]
    return KeyedRows(rows.keys, pl.DataFrame([*rows.frame, *stored.select(lacking)]).select(stored.columns))


def read_keys(source: Any, settings: Settings, column: str | None = None) -> list[str]:
    """Keys as text: of a frame or a file with the key column, or another one, or a list of them; each once."""
    name = column or settings.key
    if isinstance(source, str):
        source = Path(source)
    if isinstance(source, Iterable) and not hasattr(source, "columns") and not isinstance(source, pl.LazyFrame):
        given = list(source)
        source = pl.DataFrame({name: pl.Series([None if k is None else str(k) for k in given], dtype=pl.String)})
    table = _table(source, settings)
    if name not in table.columns:
        raise InputError(f"The batch has no column '{name}', the key of the store; {did_you_mean(name, table.columns)}")
    keys = key_texts(table[name])
    if keys.null_count():
        row = int(keys.is_null().arg_max() or 0)
        raise InputError(f"Column '{name}', record {row + 1} of the batch: the key is missing; give every record one.")
    twice = keys.is_duplicated()
    if twice.any():
        row = int(twice.arg_max() or 0)
        again = int((keys == keys[row]).arg_true()[1])
        raise InputError(
            f"Column '{name}': {raw(keys[row], 'one key', 'key')} stands in records {row + 1} and {again + 1} of the "
            "batch; leave one of them out."
        )
    return keys.to_list()


def key_texts(column: pl.Series) -> pl.Series:
    """Keys as text, however they were given."""
    return texts(column, "number" if column.dtype.is_numeric() else "category")


def file_batch_id(path: Path) -> str:
    """The id of a file that is to be applied once: its name and its content."""
    with path.open("rb") as handle:
        return f"{path.name} {hashlib.file_digest(handle, 'sha256').hexdigest()[:32]}"


def widened(types: Mapping[str, str], frame: pl.DataFrame) -> dict[str, str]:
    """The types that hold both what the store has and what a batch brings."""
    brought = type_names(frame)
    return {name: "number" if (kind, brought[name]) == ("integer", "number") else kind for name, kind in types.items()}


def fitted(column: pl.Series, kind: str) -> pl.Series:
    """A column in the type the store keeps it in; whole numbers may become numbers, and anything may become text."""
    wanted = TYPES[kind]
    if column.dtype == wanted or (kind == "integer" and column.dtype == pl.Float64):
        return column
    if column.null_count() == len(column):
        return pl.Series(column.name, [None] * len(column), dtype=wanted)
    if kind == "text":
        return texts(column, "number" if column.dtype.is_numeric() else "category")
    if kind == "number" and column.dtype == pl.Int64:
        return column.cast(pl.Float64)
    if kind == "moment" and column.dtype == pl.Date:
        return column.cast(wanted)
    if column.dtype == pl.String:
        read = _read_text(column, kind)
        lost = read.is_null() & column.is_not_null()
        if not lost.any():
            return read
        row = int(lost.arg_max() or 0)
    else:
        row = int(column.is_not_null().arg_max() or 0)
    shown = "a whole number" if kind == "integer" else {"date": "a date such as 2024-03-31"}.get(kind, f"a {kind}")
    raise InputError(
        f"Column '{column.name}', record {row + 1} of the batch: {raw(column[row], 'the value')} is not {shown}, "
        "as this column holds in the store; correct it."
    )


def _read_text(column: pl.Series, kind: str) -> pl.Series:
    if kind == "date":
        return column.str.to_date("%Y-%m-%d", strict=False)
    if kind == "moment":
        return column.str.to_datetime(strict=False, time_unit="us")
    numbers = column.cast(pl.Float64, strict=False)
    whole = column.cast(pl.Int64, strict=False)
    if kind == "integer" and whole.null_count() == column.null_count():
        return whole
    return numbers


def _table(source: Any, settings: Settings) -> pl.DataFrame:
    if isinstance(source, str | Path):
        from shoal.io.delimited import NoRecordsError
        from shoal.io.files import read_table

        try:
            table = read_table(source, missing=settings.missing_texts, as_text=settings.given.as_text)
        except NoRecordsError as nothing:
            return pl.DataFrame(schema=dict.fromkeys(nothing.columns, pl.String))
    else:
        table = to_polars(source)[0]
    return as_declared(table, settings.given)


def _require_complete(frame: pl.DataFrame, settings: Settings) -> None:
    for name in settings.given.named("quasi") + settings.given.named("sensitive"):
        if name in frame.columns and frame[name].null_count():
            row = int(frame[name].is_null().arg_max() or 0)
            raise InputError(
                f"Column '{name}', record {row + 1} of the batch: the value is missing, and this store was made with "
                'missing = "error"; fill it.'
            )
