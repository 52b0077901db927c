"""Merging runs (ours): the best partition that can be put together from the classes of several.

Searches that begin elsewhere end elsewhere, and each is good in other parts of the table. Every class that a run has ended with
is a *column*: so many records of some points, at a price. The least loss that whole columns can have together is an integer
program, set partitioning: every point's records are given away, none twice. Columns satisfy the policy because the runs do, so
whatever is put together does. Where only the size of a class counts, a point with enough records may also stand alone, with as
many of them as the other classes leave.

The program has whole prices, each with a small draw of its own, so that no two choices cost the same. Its answer is taken when it
is proved to be the least, and is then the same whichever way the solver (SciPy's HiGHS) came to it; one that is still open after
NODES branches is thrown away, never one that took too long. One whose fractional answer leaves too much open is not begun. What
decides in the end is the loss in ticks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.progress import Progress, Told
from shoal.refine.box_tables import Encoded, by_class

if TYPE_CHECKING:
    from scipy.sparse import csc_array

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# A program is followed through so many branches; nearly all are solved before the first.
NODES = 20
# A program has at most so many entries (a point in a class is one): it cannot be stopped, and takes about a second then.
ENTRIES = 55_000
# Operations of the search (`refine.effort`) that an entry takes, and the partitions whose classes are in a program as a rule.
ENTRY_WORK, TOGETHER = 1_000, 3
# Operations that setting up a program takes, however small it is: about a hundredth of a second.
SET_UP = 600_000
# Of the budget the programs may take one part in so many; a search that is over before they are set up is better left alone.
PROGRAMS = 2
# What all classes cost together is 2²² in a program, and a draw is below 2⁸: solvers tell 1 from 0 in numbers up to 2³⁰.
PRICES, DRAWS = 2**22, 2**8
# What differs by less from a whole number is one.
WHOLLY = 1e-6
# How HiGHS names a number that is a whole one, and one that is nothing or a whole one between its bounds.
WHOLE, NOTHING_OR_WHOLE = 1, 3
# Operations a record from which on a search is shared out: with less every run ends too early, and one alone loses less.
WORTH = 25_000
# Up to so many records to a class several runs begin with nothing: their classes have little in common, and much to exchange.
# Larger ones are hard to find, so that one run takes their time.
SMALL = 7
# Up to so many records to a class merging pays: Adult loses 0.2 % less with k = 10, and 0.9 % more with k = 25
# (`benchmarks.merging`).
LARGEST = 10
# … and up to so many codes of distinct tuples a record (tuples × attributes over records). Where hardly a row repeats, short runs
# end far from a long one: answers to five questions (5.0) lose 0.8 % less by merging, answers to six and more 1 to 3 % more.
CODES = 5.5
# A program whose fractional answer takes longer, or leaves more open, is not worth the branches: of 10,000 answers to six
# questions it leaves 5,000 open, and half a minute is not enough; of Adult 700, and it takes half a second.
ITERATIONS, OPEN = 20_000, 3_000
# How warm the later runs begin, beside a search from nothing: on Adult with k = 5 a third of that, or a tenth, loses more.
WARM = 0.3
# Seconds between two looks at whether a program is still wanted; what comes of it does not depend on them.
LOOK = 0.05


class Round(NamedTuple):
    """So many runs, each with so many parts of the budget, and how warm they begin beside a search from nothing."""

    runs: int
    weight: int
    warmth: float


def schedule(k: int) -> list[Round]:
    """The rounds of a search; after each its classes and those before are merged."""
    if k <= SMALL:
        return [Round(5, 1, 1.0), *[Round(2, 1, WARM)] * 3]
    return [Round(1, 4, 1.0), *[Round(2, 1, WARM)] * 4]


def worth_merging(whole: Encoded, budget: int) -> bool:
    """Whether so many operations are enough for several runs, and their classes few enough for a program.

    Where a record can spoil the class it joins, a run from nothing ends far from what relocation has found.
    """
    rules = whole.rules
    programs = len(schedule(rules.k)) * merging_work(whole)
    enough = budget >= max(WORTH * len(whole.codes), PROGRAMS * programs)
    enough = enough and whole.tuples.size <= CODES * len(whole.codes)
    return enough and rules.superset_closed and rules.k <= LARGEST and TOGETHER * len(whole.tuple_of_point) <= ENTRIES


def merging_work(whole: Encoded) -> int:
    """What a program will take, about: it is kept back from the runs until it is known."""
    return SET_UP + ENTRY_WORK * min(ENTRIES, TOGETHER * len(whole.tuple_of_point))


class _Column(NamedTuple):
    """A class: its points, how many records of each, and its loss in ticks."""

    points: Ints
    counts: Ints
    ticks: float


@dataclass(eq=False)
class Pool:
    """Classes of partitions of the same records, each once, the latest last; and the best partition, with its loss in ticks.

    Of points, `amounts` says how many records each has and `alone` which may be a class of their own, at `alone_ticks` a record.
    """

    whole: Encoded
    best: Ints
    least: float = math.inf
    columns: dict[bytes, _Column] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Count the points."""
        whole = self.whole
        self.amounts = np.bincount(whole.point_of_record)
        alone = self.amounts >= whole.rules.k if whole.rules.only_size else np.zeros(len(self.amounts), dtype=bool)
        self.alone = np.flatnonzero(alone)
        tuples = whole.tuples[whole.tuple_of_point[self.alone]]
        states = whole.space.states(tuples, np.arange(len(tuples)), np.arange(len(tuples)))
        self.alone_ticks = exact.ticks(whole.space.unit(states)) if len(tuples) else np.zeros(0)

    @property
    def entries(self) -> int:
        """What a program over the columns would have."""
        return sum(len(column.points) for column in self.columns.values()) + len(self.alone)

    def weigh(self, labels: Ints) -> Floats:
        """What each class of a partition loses, numbered without gaps; remembers the partition if it is the best."""
        space = self.whole.space
        units = exact.ticks(space.unit(space.states(self.whole.codes, *by_class(labels))))
        prices = np.bincount(labels) * units
        loss = exact.total(prices)
        if loss < self.least:
            self.best, self.least = labels, loss
        return np.asarray(prices)

    def add(self, labels: Ints) -> None:
        """Take in the classes of a partition; the oldest columns leave where there are too many."""
        prices, m = self.weigh(labels), len(self.amounts)
        cells, counts = np.unique(labels * m + self.whole.point_of_record, return_counts=True)
        cuts = np.searchsorted(cells, np.arange(1, len(prices)) * m)
        by_points, by_counts = np.split(cells % m, cuts), np.split(counts, cuts)
        stands_alone = np.isin(np.arange(m), self.alone)
        for points, amounts, ticks in zip(by_points, by_counts, prices.tolist(), strict=True):
            if len(points) == 1 and stands_alone[points[0]]:
                continue
            key = points.tobytes() + amounts.tobytes()
            # Whoever comes again is young again.
            self.columns.pop(key, None)
            self.columns[key] = _Column(points, amounts, ticks)
        excess = self.entries - ENTRIES
        for key in list(self.columns):
            if excess <= 0:
                break
            excess -= len(self.columns.pop(key).points)

    def merge(self, seed: int, progress: Told | None = None) -> int:
        """Take in the best partition that the columns can make, unless it stays open which that is; the operations it took."""
        columns, entries = list(self.columns.values()), self.entries
        if not columns or self.least <= 0:
            return 0
        most = np.concatenate([np.ones(len(columns)), self.amounts[self.alone]])
        least = np.concatenate([np.zeros(len(columns)), np.full(len(self.alone), self.whole.rules.k)])
        kinds = np.repeat([WHOLE, NOTHING_OR_WHOLE], [len(columns), len(self.alone)])
        program = _Program(self._prices(columns, seed), self._matrix(columns), self.amounts, least, most, kinds)
        chosen = _awaited(program.solved, Progress.of(progress))
        if chosen is not None:
            self.add(self._given(columns, chosen))
        return SET_UP + ENTRY_WORK * entries

    def _prices(self, columns: list[_Column], seed: int) -> Floats:
        """Whole numbers, with a draw for every class; who stands alone pays by the record."""
        ticks = np.concatenate([[column.ticks for column in columns], self.alone_ticks])
        draws = np.random.default_rng([seed, len(ticks)]).integers(0, DRAWS, len(ticks))
        return np.asarray(np.rint(ticks * (PRICES / self.least)) * DRAWS + draws)

    def _matrix(self, columns: list[_Column]) -> csc_array:
        """A row a point, a column a class; behind them the points that may stand alone."""
        from scipy.sparse import csc_array

        lengths = [len(column.points) for column in columns] + [1] * len(self.alone)
        rows = np.concatenate([*(column.points for column in columns), self.alone])
        counts = np.concatenate([*(column.counts for column in columns), np.ones(len(self.alone), dtype=np.int64)])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return csc_array((counts.astype(np.float64), rows, starts), shape=(len(self.amounts), len(lengths)))

    def _given(self, columns: list[_Column], chosen: Ints) -> Ints:
        """Labels: each point's records, in order, go to the classes that were chosen, in order."""
        taken = [column for column, here in zip(columns, chosen, strict=False) if here]
        alone = np.flatnonzero(chosen[len(columns) :])
        points = np.concatenate([*(column.points for column in taken), self.alone[alone]])
        counts = np.concatenate([*(column.counts for column in taken), chosen[len(columns) :][alone]])
        homes = np.repeat(np.arange(len(taken) + len(alone)), [*(len(c.points) for c in taken), *[1] * len(alone)])
        order = np.argsort(points, kind="stable")
        labels = np.empty(len(self.whole.codes), dtype=np.int64)
        labels[np.argsort(self.whole.point_of_record, kind="stable")] = np.repeat(homes[order], counts[order])
        return labels


class _Program(NamedTuple):
    """Prices of the columns, what each has of every point, how many records points have, and the bounds and kinds of numbers."""

    prices: Floats
    matrix: csc_array
    amounts: Ints
    least: Floats
    most: Floats
    kinds: Ints

    def solved(self) -> Ints | None:
        """How often each column is taken; None where that stays open, or is likely to."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        if not self.promising():
            return None
        found = milp(
            self.prices,
            integrality=self.kinds,
            bounds=Bounds(self.least, self.most),
            constraints=LinearConstraint(self.matrix, self.amounts, self.amounts),
            options={"node_limit": NODES, "mip_rel_gap": 0.0},
        )
        return np.rint(found.x).astype(np.int64) if found.status == 0 else None

    def promising(self) -> bool:
        """Whether the fractional answer leaves little open."""
        left = self.left_open()
        return left is not None and left <= OPEN

    def left_open(self) -> int | None:
        """How many numbers of the fractional answer (a tenth of a second as a rule) are not whole; None: it takes too long."""
        from scipy.optimize import linprog

        found = linprog(
            self.prices,
            A_eq=cast("Any", self.matrix),  # sparse, which the stubs do not know
            b_eq=self.amounts,
            bounds=[(0.0, most) for most in self.most.tolist()],
            method="highs-ds",
            options={"maxiter": ITERATIONS},
        )
        if found.status != 0 or found.x is None:
            return None
        return int(np.count_nonzero(np.abs(found.x - np.rint(found.x)) > WHOLLY))


def _awaited(solve: Callable[[], Ints | None], progress: Progress) -> Ints | None:
    """What a solver finds, in a thread of its own: it cannot be stopped, but whoever gives up does not wait for it."""
    found: Future[Ints | None] = Future()

    def work() -> None:
        try:
            found.set_result(solve())
        except BaseException as problem:
            found.set_exception(problem)

    Thread(target=work, daemon=True).start()
    while not found.done():
        progress.check()
        with suppress(TimeoutError):
            found.exception(timeout=LOOK)
    return found.result()
