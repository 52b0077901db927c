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

from shoal.engines.base import RECORDS, Book, fold
from shoal.engines.corners import Corners, Shape, coded_arrays, stacked
from shoal.engines.cutting import Leaf
from shoal.engines.digests import added, row_keys, row_sums
from shoal.engines.looking_up import looked_up
from shoal.engines.memory import whole_classes
from shoal.engines.solving import Solver
from shoal.engines.spark_packs import DATA, DIGEST, NOTE, TO, a_row, bucket, frames, packed, packs, parted, sent
from shoal.engines.texts import text_pieces
from shoal.errors import InternalError, ShoalError
from shoal.kernels.corners import Tree, route
from shoal.measures.folding import Sum, Tally

T = TypeVar("T")

COUNTED = "counted"
"""The column that says how many records a pack has."""
CHUNK = 4 << 20
"""Bytes of counts in one row that is merged: small enough for any executor, large enough to be few."""
SLICE = 1 << 16
"""Rows of a staged file that are read or written at a time."""
CLASSES = 1 << 17
"""Rows of classes that are judged at a time."""


class Lookup(NamedTuple):
    """Books for executors, and the columns that all books give; those of books that are not here stand beside the records."""

    books: tuple[Book, ...]
    columns: tuple[str, ...]

    def coded(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What all books say of records."""
        beside = rows.select(name for name in self.columns if name in rows.columns)
        found = looked_up(rows, self.books) if self.books else rows.select()
        return pl.concat([found, beside], how="horizontal").select(self.columns)


def encoded(batches: Iterable[Any], lookup: Lookup, source: Sequence[str]) -> Iterator[Any]:
    """Records looked up and packed, with a digest of all columns of the `source`."""
    for rows in frames(batches):
        digest = row_sums(rows.select(source)).tobytes()
        yield a_row(**{COUNTED: rows.height, DIGEST: digest, DATA: packed(lookup.coded(rows))})


def summed(batches: Iterable[Any]) -> Iterator[Any]:
    """How many records a partition has, and the sum of their digests."""
    for batch in batches:
        if batch.num_rows:
            digest = added(b"".join(batch.column(DIGEST).to_pylist())).tobytes()
            yield a_row(**{COUNTED: sum(batch.column(COUNTED).to_pylist()), DIGEST: digest})


def sampled(batches: Iterable[Any], step: int) -> Iterator[Any]:
    """Every so-manieth record of a partition."""
    seen = 0
    for rows in packs(batches):
        yield a_row(**{DATA: packed(rows.gather_every(step, -seen % step))})
        seen += rows.height


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
    for rows in packs(batches):
        found.add(tree, *coded_arrays(rows, shape.seen))
    step = cells_a_row(shape)
    for first in range(0, len(found.counts), step):
        last = first + step
        if found.counts[first:last].any():
            arrays = found.counts, found.ends, found.bits, found.histograms
            yield _counts(first, b"".join(array[first:last].tobytes() for array in arrays))


def _counts(first: int, data: bytes) -> Any:
    return pa.RecordBatch.from_arrays(
        [pa.array([first], pa.int64()), pa.array([data], pa.binary())], names=["first", "data"]
    )


def piece_of(data: bytes, shape: Shape) -> Piece:
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
    pieces = [piece_of(data.as_py(), shape) for data in table.column("data")]
    counts, ends, bits, histograms = pieces[0]
    total = Piece(counts.copy(), ends.copy(), bits.copy(), histograms.copy())
    for piece in pieces[1:]:
        _add(total, piece)
    return pa.Table.from_batches([_counts(first, b"".join(array.tobytes() for array in total))])


def routed(batches: Iterable[Any], tree: Tree) -> Iterator[Any]:
    """Coded records, packed by their parts."""
    return sent((rows, _parts(rows, tree)) for rows in packs(batches))


def _parts(rows: pl.DataFrame, tree: Tree) -> NDArray[np.int64]:
    part = np.empty(rows.height, dtype=np.int32)
    route(tree, stacked(rows, "q"), part)
    return part.astype(np.int64)


def without_records(solver: Solver) -> Solver:
    """The solver as it is sent to executors: without the books that were needed to encode."""
    books = tuple(Book(book.names, None, book.columns.clear()) for book in solver.learned.books)
    published = {name: replace(one, raw=None) for name, one in solver.learned.published.items()}
    return replace(solver, learned=replace(solver.learned, books=books, published=published))


def solved(batches: Iterable[Any], solver: Solver, files: int) -> Iterator[Any]:
    """All records of a block: what they publish, with a note of what it cost. An error of the house is a note too."""
    rows: list[pl.DataFrame] = []
    number = -1
    for batch in batches:
        rows += packs([batch])
        number = batch.column(TO)[0].as_py() if batch.num_rows else number
    if not rows:
        return
    try:
        published, found = solver.block(number, pl.concat(rows))
    except ShoalError as problem:
        told = json.dumps({"error": [type(problem).__name__, str(problem)]})
        yield a_row(**{TO: -1, DATA: None, NOTE: told})
        return
    yield a_row(**{TO: -1, DATA: None, NOTE: noted(found)})
    yield from _to_files(published, solver.seed, files)


def known(batches: Iterable[Any], solver: Solver, leaves: Mapping[int, Leaf], files: int) -> Iterator[Any]:
    """Records of classes that are known already: what they publish."""
    for batch in batches:
        for number, rows in zip(batch.column(TO).to_pylist(), packs([batch]), strict=True):
            yield from _to_files(solver.known(leaves[number], rows), solver.seed, files)


def _to_files(published: pl.DataFrame, seed: int, files: int) -> Iterator[Any]:
    """Published rows packed by the file they go to, with the numbers by which they are put into order there.

    The file is the upper end of the first number: where a file ends tells as little as the order.
    """
    first, second = row_keys(published, seed)
    named = published.rename({name: f"x{i}" for i, name in enumerate(published.columns)})
    keyed = named.with_columns(pl.Series("h0", first), pl.Series("h1", second))
    file = ((first >> np.uint64(32)) * np.uint64(files)) >> np.uint64(32)
    for number, rows in parted(keyed, file.astype(np.int64)):
        yield a_row(**{TO: number, DATA: packed(rows), NOTE: None})


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
    for batch in batches:
        for text in batch.column(NOTE).drop_null().to_pylist():
            if text.startswith('{"error"'):
                yield pa.RecordBatch.from_arrays([pa.array([text])], names=[NOTE])
                return
            total.merge(tallied(text))
            any_there = True
    if any_there:
        yield pa.RecordBatch.from_arrays([pa.array([noted(total)])], names=[NOTE])


def counted_rows(rows: Iterable[pl.DataFrame], lookup: Lookup, by: Sequence[str], buckets: int) -> Iterator[Any]:
    """Records looked up, equal ones counted and packed by the bucket that the columns `by` say."""
    counted = (lookup.coded(some).group_by(pl.all()).len(name=RECORDS) for some in rows)
    return sent((some, bucket(some, by, buckets)) for some in counted)


def together(batches: Iterable[Any]) -> pl.DataFrame:
    """All rows of a bucket, equal ones counted."""
    rows = list(packs(batches))
    if not rows:
        return pl.DataFrame()
    counted = pl.concat(rows)
    return counted.group_by(pl.all().exclude(RECORDS)).agg(pl.col(RECORDS).cast(pl.Int64).sum())


def sizes(batches: Iterable[Any]) -> Iterator[Any]:
    """How many groups of so many equal rows a bucket has."""
    rows = together(batches)
    if rows.height:
        found = rows.group_by(RECORDS).len(name="groups").select(pl.all().cast(pl.Int64))
        yield from found.to_arrow().to_batches()


def judged_classes(
    batches: Iterable[Any], classes: Sequence[str], judged: Callable[[pl.DataFrame], T], merge: Callable[[T, T], T]
) -> Iterator[Any]:
    """What was found in the classes of a bucket, which has them whole."""
    rows = together(batches)
    if rows.height:
        ordered = rows.sort(classes)
        verdicts = [judged(some) for some in whole_classes(ordered.iter_slices(CLASSES), classes)]
        data = pickle.dumps(fold(verdicts, merge))
        yield pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], names=["data"])


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
