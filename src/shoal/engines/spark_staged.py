"""The staged table where it lies: its files put into order, read back, and made text, by whoever has their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from shoal.engines.spark_packs import packs
from shoal.engines.texts import text_pieces
from shoal.errors import InternalError, ShoalError

SLICE = 1 << 16
"""Rows of a staged file that are read or written at a time."""


def in_order(batches: Iterable[Any], types: Any) -> Iterator[Any]:
    """All rows of a file in the order of their numbers, in the types that were announced, by their places."""
    rows = list(packs(batches))
    if not rows:
        return
    ordered = pl.concat(rows).sort("h0", "h1").drop("h0", "h1")
    if ordered.width != len(types):
        raise InternalError(f"{ordered.width} columns came out of a block where {len(types)} were announced")
    for some in ordered.iter_slices(SLICE):
        plain = some.to_arrow(compat_level=pl.CompatLevel.oldest())
        columns = [column.cast(field.type) for column, field in zip(plain.columns, types, strict=True)]
        yield from pa.Table.from_arrays(columns, schema=types).to_batches()


def staged_frames(batches: Iterable[Any]) -> Iterator[pl.DataFrame]:
    """The rows of staged files, whose columns go by their places."""
    for batch in batches:
        for content in batch.column("content"):
            for rows in _slices(content.as_buffer()):
                yield rows.rename({name: f"x{i}" for i, name in enumerate(rows.columns)})


def texts(batches: Iterable[Any], name: str, safe_csv: bool) -> Iterator[Any]:
    """Staged files as text, a few lines a row: what Spark writes, with an end of line after each."""
    for batch in batches:
        for content in batch.column("content"):
            for text in text_pieces(_slices(content.as_buffer()), name, safe_csv, check=False):
                if text:
                    yield pa.RecordBatch.from_arrays([pa.array([text.removesuffix(b"\n").decode()])], names=["value"])


def compared(batches: Iterable[Any], name: str, safe_csv: bool) -> Iterator[Any]:
    """Whether text files say, byte by byte and read back cell by cell, what the staged files beside them do: what is wrong."""
    for batch in batches:
        for content, written in zip(batch.column("content"), batch.column("written"), strict=True):
            wrong = _wrong(content.as_buffer(), memoryview(written.as_buffer()), name, safe_csv)
            yield pa.RecordBatch.from_arrays([pa.array([wrong], pa.string())], names=["wrong"])


def _wrong(content: Any, written: memoryview, name: str, safe_csv: bool) -> str:
    place = 0
    try:
        for text in text_pieces(_slices(content), name, safe_csv):
            if bytes(written[place : place + len(text)]) != text:
                return OTHER
            place += len(text)
    except ShoalError as problem:
        return str(problem)
    return "" if place == len(written) else OTHER


OTHER = "The text of the staged table is not what was written; nothing was released."


def _slices(content: Any) -> Iterator[pl.DataFrame]:
    """The rows of a Parquet file; one without any says what its columns are."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(pa.BufferReader(content)) as file:
        if file.metadata.num_rows == 0:
            yield pl.DataFrame(pl.from_arrow(file.read()))
        for rows in file.iter_batches(SLICE):
            yield pl.DataFrame(pl.from_arrow(rows))
