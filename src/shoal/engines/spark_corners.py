"""Corners counted where the records are: each partition for itself, in packed counts that merge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines.corners import Corners, Shape, coded_arrays
from shoal.engines.spark_packs import packs
from shoal.kernels.corners import Tree

CHUNK = 4 << 20
"""Bytes of counts in one row that is merged: small enough for any executor, large enough to be few."""


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
