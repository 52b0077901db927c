"""The engine whose records lie in memory: what every other engine has to do, in the plainest way.

It is how the protocol is tested, and what others are compared with, record for record. Tables that fit are masked faster, and
with whole-table algorithms, by `shoal.road`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from shoal.engines.base import COUNT, RECORDS, Book, Repeats, fold
from shoal.engines.corners import Corners, Shape, coded_arrays, stacked
from shoal.engines.cutting import CutTree
from shoal.engines.looking_up import looked_up, one_zero
from shoal.engines.solving import Solver
from shoal.engines.texts import write_slices
from shoal.io.fingerprint import fingerprint
from shoal.io.frames import apply_missing
from shoal.kernels.corners import Tree, route
from shoal.measures.folding import Tally
from shoal.order import content_key, ranks, shuffled
from shoal.progress import Progress

T = TypeVar("T")


@dataclass(eq=False)
class MemoryEngine:
    """An Arrow table, worked on `batch` records at a time as an engine that has to would."""

    source: Any
    batch: int = 1 << 16
    collected: list[tuple[str, int]] = field(default_factory=list)
    """How many rows each answer had, for whoever wants to know that none grows with the records."""
    coded: pl.DataFrame = field(default_factory=pl.DataFrame)
    staged: pl.DataFrame = field(default_factory=pl.DataFrame)
    seed: int = 0
    name: str = "memory"

    @property
    def columns(self) -> list[str]:
        """The columns of the source."""
        return list(self.source.column_names)

    def value_counts(self, groups: Sequence[Sequence[str]], *, most: int, staged: bool = False) -> list[Any]:
        """Group after group."""
        answers = []
        for names in groups:
            table = self.staged if staged else pl.DataFrame(pl.from_arrow(self.source.select(list(names))))
            found = one_zero(table.select(names)).group_by(list(names)).len(name=COUNT).head(most + 1)
            self.collected.append(("value_counts", found.height))
            answers.append(found.to_arrow())
        return answers

    def repeats(self, names: Sequence[str], *, missing: Sequence[str] = (), staged: bool = False) -> Repeats:
        """How often values repeat."""
        table = self.staged if staged else pl.DataFrame(pl.from_arrow(self.source.select(list(names))))
        found = apply_missing(table.select(names), missing).group_by(list(names)).len(name=COUNT)
        known = found.drop_nulls()
        self.collected.append(("repeats", 1))
        return Repeats(int(known[COUNT].sum()), known.height, found.filter(pl.col(COUNT) == 1).height)

    def leave_out(self, names: Sequence[str], values: Any) -> None:
        """What no value meets stays."""
        gone = pl.DataFrame(pl.from_arrow(values))
        table = pl.DataFrame(pl.from_arrow(self.source))
        self.source = table.join(gone, on=list(names), how="anti", nulls_equal=True).to_arrow()

    def encode(self, books: Sequence[Book]) -> None:
        """Look everything up."""
        table = pl.DataFrame(pl.from_arrow(self.source))
        self.coded = looked_up(table, books)

    def alike(self, books: Sequence[Book]) -> dict[int, int]:
        """Grouped twice."""
        table = pl.DataFrame(pl.from_arrow(self.source))
        coded = looked_up(table, books)
        found = coded.group_by(coded.columns).len(name=RECORDS).group_by(RECORDS).len(name="groups")
        self.collected.append(("alike", found.height))
        return dict(zip(found[RECORDS].to_list(), found["groups"].to_list(), strict=True))

    def sample(self, rows: int) -> pl.DataFrame:
        """Every so-manieth record."""
        found = self.coded.gather_every(max(1, self.coded.height // rows))
        self.collected.append(("sample", found.height))
        return found

    def weigh(self, tree: Tree, shape: Shape) -> Corners:
        """One heap of counts a batch, merged."""
        parts = []
        for rows in self.coded.iter_slices(self.batch):
            one = Corners(shape)
            one.add(tree, *coded_arrays(rows, shape.seen))
            parts.append(one)
        found = fold(parts, Corners.merge)
        self.collected.append(("weigh", len(found.counts)))
        return found

    def solve(self, tree: CutTree, solver: Solver, progress: Progress) -> Tally:
        """Leaf after leaf."""
        codes = stacked(self.coded, "q")
        part = np.empty(self.coded.height, dtype=np.int32)
        route(tree.flat(tree.numbers), codes, part)
        total, staged = Tally(), []
        for number, leaf in enumerate(progress.each(tree.parts)):
            rows = self.coded.filter(pl.Series(part == number))
            if leaf.groups is None:
                published, found = solver.block(number, rows)
            else:
                published, found = solver.known(leaf, rows), solver.known_class(leaf)[0]
            staged.append(published)
            total.merge(found)
        self.staged, self.seed = pl.concat(staged), solver.seed
        return total

    def publish(self, whole: Sequence[str]) -> None:
        """Shuffle as `shoal.road` does."""
        staged = self.staged.with_columns(pl.col(list(whole)).cast(pl.Int64))
        self.staged = staged[shuffled(content_key([ranks(series) for series in staged]), self.seed)]

    def judge(self, books: Sequence[Book], judged: Callable[[pl.DataFrame], T], merge: Callable[[T, T], T]) -> T:
        """Sorted, so that classes lie together, and some at a time."""
        table = looked_up(self.staged, books)
        classes = [name for name in table.columns if name.startswith("c")]
        counted = table.group_by(table.columns).len(name=RECORDS).sort(table.columns)
        return fold((judged(rows) for rows in whole_classes(counted.iter_slices(self.batch), classes)), merge)

    def staged_columns(self) -> pl.DataFrame:
        """Names and types."""
        return self.staged.clear()

    def fingerprint(self) -> bytes:
        """Of the rows, sorted."""
        table = pl.DataFrame(pl.from_arrow(self.source))
        return fingerprint(table.sort(table.columns, nulls_last=True, maintain_order=True))

    def frame(self) -> pl.DataFrame:
        """As it is."""
        return self.staged

    def write(self, path: Path, target: Path, safe_csv: bool) -> None:
        """As Parquet or text."""
        if target.suffix == ".parquet":
            self.staged.write_parquet(path)
        else:
            write_slices(self.staged.iter_slices(self.batch), path, target, safe_csv)

    def discard(self) -> None:
        """Nothing is kept anywhere else."""
        self.coded, self.staged = pl.DataFrame(), pl.DataFrame()


def whole_classes(frames: Iterator[pl.DataFrame], classes: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The same rows, sorted by class already, in frames that end where a class does."""
    waiting: pl.DataFrame | None = None
    for frame in frames:
        rows = frame if waiting is None else pl.concat([waiting, frame])
        last = rows.select(classes).row(rows.height - 1)
        same = np.ones(rows.height, dtype=np.bool_)
        for name, value in zip(classes, last, strict=True):
            same &= rows[name].to_numpy() == value
        begin = int(np.argmax(same))
        if begin:
            yield rows[:begin]
        waiting = rows[begin:]
    if waiting is not None and waiting.height:
        yield waiting
