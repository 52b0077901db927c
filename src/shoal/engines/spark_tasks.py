"""What Spark's executors do with records: plain functions of Arrow batches, tested and run without Spark too.

None of them may depend on how Spark groups records into partitions and batches; only a block and a class are always whole. What
they give back is either rows of a table or a few bytes that merge.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines.base import Book, fold
from shoal.engines.corners import Corners, Shape, coded_arrays
from shoal.engines.cutting import Leaf
from shoal.engines.memory import whole_classes
from shoal.engines.solving import Solver
from shoal.engines.texts import text_pieces
from shoal.errors import InternalError, ShoalError
from shoal.kernels.corners import Tree, route
from shoal.measures.folding import Sum, Tally

T = TypeVar("T")

NOTE = "note"
"""The column beside published rows in which the first row of a block says what the block cost, or why it failed."""
PART = "part"
"""The column that says in which part of the table a coded record is."""
CHUNK = 4 << 20
"""Bytes of counts in one row that is merged: small enough for any executor, large enough to be few."""
SLICE = 1 << 16
"""Rows of a staged file that become text at a time."""


def frames(batches: Iterable[Any]) -> Iterator[pl.DataFrame]:
    """Batches that have rows, as frames."""
    for batch in batches:
        if batch.num_rows:
            yield pl.DataFrame(pl.from_arrow(batch))


class Piece(NamedTuple):
    """The counts of some neighbouring cells: as the arrays of `Corners`."""

    counts: NDArray[np.int64]
    ends: NDArray[np.int32]
    bits: NDArray[np.int64]
    histograms: NDArray[np.int64]


def cells_a_row(shape: Shape) -> int:
    """How many cells are packed together."""
    return max(1, CHUNK // shape.cell_bytes)


def counted(batches: Iterable[Any], tree: Tree, shape: Shape) -> Iterator[Any]:
    """The corners of all records of a partition, packed: rows of the first cell and the counts of some from there on."""
    found = Corners(shape)
    for rows in frames(batches):
        found.add(tree, *coded_arrays(rows, shape.seen))
    step = cells_a_row(shape)
    for first in range(0, len(found.counts), step):
        last = first + step
        if found.counts[first:last].any():
            arrays = found.counts, found.ends, found.bits, found.histograms
            yield _packed(first, b"".join(array[first:last].tobytes() for array in arrays))


def _packed(first: int, data: bytes) -> Any:
    return pa.RecordBatch.from_arrays(
        [pa.array([first], pa.int64()), pa.array([data], pa.binary())], names=["first", "data"]
    )


def unpacked(data: bytes, shape: Shape) -> Piece:
    """Packed counts as arrays."""
    attributes, words, values = len(shape.sets), shape.words, int(shape.view_start[-1])
    cells = len(data) // (8 * (1 + attributes + words + values))
    found: list[Any] = []
    place = 0
    for dtype, form in (
        (np.int64, (cells,)),
        (np.int32, (cells, attributes, 2)),
        (np.int64, (cells, words)),
        (np.int64, (cells, values)),
    ):
        size = int(np.prod(form)) * np.dtype(dtype).itemsize
        found.append(np.frombuffer(data[place : place + size], dtype=dtype).reshape(form))
        place += size
    return Piece(*found)


def add_piece(corners: Corners, first: int, piece: Piece) -> None:
    """More counts for some cells."""
    cells = slice(first, first + len(piece.counts))
    _add(Piece(corners.counts[cells], corners.ends[cells], corners.bits[cells], corners.histograms[cells]), piece)


def _add(into: Piece, other: Piece) -> None:
    into.counts[:] += other.counts
    np.minimum(into.ends[:, :, 0], other.ends[:, :, 0], out=into.ends[:, :, 0])
    np.maximum(into.ends[:, :, 1], other.ends[:, :, 1], out=into.ends[:, :, 1])
    into.bits[:] |= other.bits
    into.histograms[:] += other.histograms


def merged(table: Any, shape: Shape) -> Any:
    """Rows of packed counts that begin with the same cell, as one row."""
    first = table.column("first")[0].as_py()
    pieces = [unpacked(data.as_py(), shape) for data in table.column("data")]
    counts, ends, bits, histograms = pieces[0]
    total = Piece(counts.copy(), ends.copy(), bits.copy(), histograms.copy())
    for piece in pieces[1:]:
        _add(total, piece)
    return pa.Table.from_batches([_packed(first, b"".join(array.tobytes() for array in total))])


def routed(batches: Iterable[Any], tree: Tree, attributes: int) -> Iterator[Any]:
    """Coded records with the number of their part before them."""
    for batch in batches:
        codes = np.stack([batch.column(f"q{a}").to_numpy() for a in range(attributes)]).astype(np.int32, copy=False)
        part = np.empty(batch.num_rows, dtype=np.int32)
        route(tree, np.ascontiguousarray(codes), part)
        names = [PART, *batch.schema.names]
        yield pa.RecordBatch.from_arrays([pa.array(part), *batch.columns], names=names)


def without_records(solver: Solver) -> Solver:
    """The solver as it is sent to executors: without the books that were needed to encode."""
    books = tuple(Book(book.names, None, book.columns.clear()) for book in solver.learned.books)
    published = {name: replace(one, raw=None) for name, one in solver.learned.published.items()}
    return replace(solver, learned=replace(solver.learned, books=books, published=published))


def solved(table: Any, solver: Solver, types: Any) -> Any:
    """All records of a block: what they publish, with a note of what it cost. An error of the house is a note too."""
    number = table.column(PART)[0].as_py()
    rows = pl.DataFrame(pl.from_arrow(table)).drop(PART)
    try:
        published, found = solver.block(number, rows)
    except ShoalError as problem:
        told = json.dumps({"error": [type(problem).__name__, str(problem)]})
        return pa.Table.from_pylist([{NOTE: told}], schema=types)
    return _typed(published, noted(found), types)


def known(batches: Iterable[Any], solver: Solver, leaves: Mapping[int, Leaf], types: Any) -> Iterator[Any]:
    """Records of classes that are known already: what they publish."""
    for rows in frames(batches):
        for (number,), some in rows.partition_by(PART, as_dict=True, include_key=False).items():
            yield from _typed(solver.known(leaves[int(number)], some), None, types).to_batches()


def _typed(published: pl.DataFrame, note: str | None, types: Any) -> Any:
    """Published rows in the types that were announced, by their places."""
    if published.width != len(types) - 1:
        raise InternalError(f"{published.width} columns came out of a block where {len(types) - 1} were announced")
    plain = published.to_arrow(compat_level=pl.CompatLevel.oldest())
    notes = pa.array([note, *[None] * (published.height - 1)], pa.string())
    columns = [column.cast(field.type) for column, field in zip(plain.columns, types, strict=False)]
    return pa.Table.from_arrays([*columns, notes], schema=types)


def noted(found: Tally) -> str:
    """A tally as text; `tallied` reads it."""
    plain = {name: getattr(found, name) for name in _COUNTED}
    sums = [[what, attribute, hex(one.units)] for (what, attribute), one in found.sums.items()]
    return json.dumps({**plain, "sums": sums, "fractions": sorted(found.fractions)})


_COUNTED = ("records", "classes", "smallest", "largest", "changed", "squares", "small")


def tallied(text: str) -> Tally:
    """What a note says; raises the error that it tells."""
    from shoal import errors

    told = json.loads(text)
    if "error" in told:
        kind, sentence = told["error"]
        raise getattr(errors, kind, ShoalError)(sentence)
    found = Tally(**{name: told[name] for name in _COUNTED}, fractions=set(told["fractions"]))
    for what, attribute, units in told["sums"]:
        one = found.sums[what, attribute] = Sum()
        one.units = int(units, 16)
    return found


def folded_notes(batches: Iterable[Any]) -> Iterator[Any]:
    """All notes of a partition as one; an error is passed on as it is."""
    total, any_there = Tally(), False
    for rows in frames(batches):
        for text in rows[NOTE].drop_nulls():
            if text.startswith('{"error"'):
                yield pa.RecordBatch.from_arrays([pa.array([text])], names=[NOTE])
                return
            total.merge(tallied(text))
            any_there = True
    if any_there:
        yield pa.RecordBatch.from_arrays([pa.array([noted(total)])], names=[NOTE])


def judged_classes(
    batches: Iterable[Any], classes: Sequence[str], judged: Callable[[pl.DataFrame], T], merge: Callable[[T, T], T]
) -> Iterator[Any]:
    """What was found in the classes of a partition, which has them whole and sorted."""
    verdicts = [judged(rows) for rows in whole_classes(frames(batches), classes)]
    if verdicts:
        data = pickle.dumps(fold(verdicts, merge))
        yield pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], names=["data"])


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
