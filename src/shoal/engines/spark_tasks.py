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
from shoal.engines.corners import stacked
from shoal.engines.cutting import Leaf
from shoal.engines.digests import added, row_keys, row_sums
from shoal.engines.looking_up import looked_up
from shoal.engines.memory import whole_classes
from shoal.engines.solving import Solver
from shoal.engines.spark_packs import DATA, DIGEST, NOTE, TO, a_row, bucket, frames, packed, packs, parted, sent
from shoal.errors import ShoalError
from shoal.kernels.corners import Tree, route
from shoal.measures.folding import Sum, Tally

T = TypeVar("T")

COUNTED = "counted"
"""The column that says how many records a pack has."""
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
        yield a_row(**{DATA: pickle.dumps(fold(verdicts, merge))})
