"""Records on Spark's way: many of them packed into one value, of which Spark sees nothing but bytes.

What a row costs Spark is the same for a record and for a hundred thousand of them. So executors hand each other packs: Arrow
tables, compressed, each in one row, with a number that says where it goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

DATA = "data"
"""The column that packs are in."""
TO = "number"
"""The column that says where a pack goes."""
DIGEST = "digest"
"""The column that tells the records of a pack by their content."""
NOTE = "note"
"""The column in which the first pack of a block says what the block cost, or why it failed."""
ROWS = 1 << 17
"""Records that are put together before something is done with them: a few megabytes."""
GATHERED = 1 << 20
"""Records of a partition that are kept until they are sent to where they go: some tens of megabytes."""


def packed(rows: pl.DataFrame) -> bytes:
    """A frame as bytes."""
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as file:
        file.write_table(table)
    return bytes(sink.getvalue())


def unpacked(data: Any) -> pl.DataFrame:
    """The frame that was packed."""
    with pa.ipc.open_stream(data) as file:
        return pl.DataFrame(pl.from_arrow(file.read_all()))


def packs(batches: Iterable[Any]) -> Iterator[pl.DataFrame]:
    """The frames in the packs of batches."""
    for batch in batches:
        for data in batch.column(DATA):
            yield unpacked(data.as_buffer())


def a_row(**values: Any) -> Any:
    """A batch of one row, of whole numbers but for packs, digests and notes."""
    kinds = {DATA: pa.binary(), DIGEST: pa.binary(), NOTE: pa.string()}
    arrays = [pa.array([value], kinds.get(name, pa.int32())) for name, value in values.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(values))


def frames(batches: Iterable[Any]) -> Iterator[pl.DataFrame]:
    """The rows of batches, a good number at a time."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= ROWS:
            yield _frame(waiting)
            waiting = []
    if any(one.num_rows for one in waiting):
        yield _frame(waiting)


def _frame(batches: Sequence[Any]) -> pl.DataFrame:
    """Moments in UTC, and not in the zone of the session, as Spark gives them to the driver."""
    rows = pl.DataFrame(pl.from_arrow(pa.Table.from_batches(batches)))
    moments = [name for name, dtype in rows.schema.items() if isinstance(dtype, pl.Datetime) and dtype.time_zone]
    return rows.with_columns(pl.col(moments).dt.convert_time_zone("UTC")) if moments else rows


def sent(rows: Iterable[tuple[pl.DataFrame, NDArray[np.int64]]]) -> Iterator[Any]:
    """Rows with the number of where each goes: packed by it."""
    for some, to in _gathered(rows):
        for number, one in parted(some, to):
            yield a_row(**{TO: number, DATA: packed(one)})


def _gathered(
    rows: Iterable[tuple[pl.DataFrame, NDArray[np.int64]]],
) -> Iterator[tuple[pl.DataFrame, NDArray[np.int64]]]:
    """The same rows, many at a time, so that packs are large."""
    waiting: list[tuple[pl.DataFrame, NDArray[np.int64]]] = []
    for one in rows:
        waiting.append(one)
        if sum(some.height for some, _ in waiting) >= GATHERED:
            yield pl.concat([some for some, _ in waiting]), np.concatenate([to for _, to in waiting])
            waiting = []
    if waiting:
        yield pl.concat([some for some, _ in waiting]), np.concatenate([to for _, to in waiting])


def parted(rows: pl.DataFrame, to: NDArray[np.int64]) -> Iterator[tuple[int, pl.DataFrame]]:
    """Rows parted by a number."""
    order = np.argsort(to, kind="stable")
    numbers, starts = np.unique(to[order], return_index=True)
    if len(numbers) == 1:
        yield int(numbers[0]), rows
        return
    ordered = rows[order]
    for number, begin, end in zip(numbers.tolist(), starts, [*starts[1:], len(to)], strict=True):
        yield number, ordered[int(begin) : int(end)]


def bucket(rows: pl.DataFrame, names: Sequence[str], buckets: int) -> NDArray[np.int64]:
    """A number below `buckets` for each row, the same wherever the columns have the same codes."""
    key = np.zeros(rows.height, dtype=np.uint64)
    for name in names:
        key = (key ^ rows[name].to_numpy().astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return (key % np.uint64(buckets)).astype(np.int64)
