"""A lower bound from how far records are apart, for tables with too many boxes (`shoal.measures.bounds`).

Let d_a(i, j) be what attribute a loses, weighed, on a class of the records i and j alone, and k the least size of a good class.

**The farthest.** A good class that holds i loses at least what i and the (k − 1)-th nearest of the others lose together.

*Proof.* It holds k − 1 others, one of which is at least as far as that, and it loses no less than any two of its records. ∎

**Pairs.** Let c_a be at least Σ d_a over all pairs of any k records, in units of what attribute a loses on all of them. With
d'(i, j) = Σ_a d_a(i, j)/c_a let v_i be k/2 times the sum of the k − 1 smallest d'(i, ·). Then Σ v is at most the total loss of
any partition into good classes.

*Proof.* A class K of k records loses at least its Σ d' over pairs, half of Σ_i Σ_j d'(i, j) and so at least 1/k Σ_i v_i. A larger
class C loses no less than any k of its records; on average over all choices of k, that is at least 1/|C| Σ_i v_i. Multiply by |C|
and add over the classes. ∎

Of a number c_a = ⌊k²/4⌋: the gap between the r-th and the next of k records in order lies in r·(k − r) pairs. Of q different
values no more pairs differ than among k records in q equal parts (Turán 1941), and each loses at most what all lose. Missing lies
at the end of a number's line, where no number is further from it than the two lose.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.progress import Progress, side_by_side
from shoal.space import Interval, Measure, Set, Space, Tree

if TYPE_CHECKING:
    from shoal.kernels.bound_apart import Columns

Way = Literal["farthest", "pairs"]
WAYS: tuple[Way, ...] = ("farthest", "pairs")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]

# Distances are whole numbers, the largest about so many, rounded down to less than they are.
LARGEST = 2**29
SAFE = 1 - 1e-9
# Pairs of tuples of which one column is compared at the price of a point in a box.
READ = 60
# Tuples that both ways are tried on; tuples that a thread takes at a time.
TRIED, CHUNK = 64, 256


class Step(NamedTuple):
    """Codes outside these are farther by so much."""

    low: int
    high: int
    more: float


@dataclass(frozen=True, eq=False)
class Table:
    """The distinct tuples of a table, and how they are told apart."""

    codes: Ints32
    size: Ints
    of_record: Ints
    places: dict[int, Floats]
    """Of a number: where each code is on its line, in units of loss."""
    steps: dict[int, list[list[Step]]]
    """Of names: the steps away from each code."""
    most: Floats
    """c_a of each column."""

    @property
    def price(self) -> int:
        """Operations that one tuple takes."""
        deep = sum(max(map(len, steps)) for steps in self.steps.values())
        return len(self.codes) * (len(self.places) + deep + 1) // READ + 1

    def columns(self, way: Way) -> tuple[Columns, float]:
        """What the kernel compares tuples by, and how many ticks a unit of loss is."""
        from shoal.kernels.bound_apart import Columns

        share = 1 / self.most if way == "pairs" else np.ones(len(self.most))
        longest = [float(places.max()) * share[a] for a, places in self.places.items()]
        longest += [max(sum(step.more for step in own) for own in steps) * share[a] for a, steps in self.steps.items()]
        unit = LARGEST / (sum(longest) or 1.0)
        on_lines = [
            np.floor(places * (share[a] * unit * SAFE)).astype(np.int32)[self.codes[:, a]]
            for a, places in self.places.items()
        ]
        flat = [
            Step(step.low, step.high, max(0, int(step.more * share[a] * unit * SAFE) - 1))
            for a, steps in self.steps.items()
            for own in steps
            for step in own
        ]
        counts = [len(own) for steps in self.steps.values() for own in steps]
        low, high, more = np.array(flat, dtype=np.int32).reshape(-1, 3).T.copy()
        m = len(self.codes)
        return Columns(
            np.array(on_lines, dtype=np.int32).reshape(-1, m),
            np.ascontiguousarray(self.codes[:, list(self.steps)].T),
            np.cumsum([0, *(len(steps) for steps in self.steps.values())])[:-1].astype(np.int64),
            np.cumsum([0, *counts]).astype(np.int64),
            low,
            high,
            more,
        ), unit


@dataclass(frozen=True, eq=False)
class Prospect:
    """The better of the two ways, as a few tuples show."""

    table: Table
    k: int
    way: Way
    alone: Ints
    """The tuples that have to share a class with others."""
    total: float
    """What all of them would come to."""

    @property
    def price(self) -> int:
        """Operations that all tuples take."""
        return self.table.price * len(self.alone)

    @property
    def spent(self) -> int:
        """Operations that the few took."""
        return self.table.price * len(WAYS) * min(TRIED, len(self.alone))

    def numbers(self, work: int, progress: Progress) -> Floats:
        """The number a record, from about so many operations.

        Where these are not enough for all tuples the others count as nothing, which is less but as true.
        """
        u = np.zeros(len(self.table.codes))
        chosen = _spread(self.alone, work // self.table.price)
        u[chosen] = _numbers(self.table, self.k, self.way, chosen, progress)
        return u[self.table.of_record]


def prospect(codes: NDArray[np.int32], space: Space, k: int, progress: Progress) -> Prospect:
    """Try both ways on a few tuples."""
    table = _table(codes, space, k)
    alone = np.flatnonzero(table.size < k)
    tried = _spread(alone, TRIED)
    totals = [0.0 for _ in WAYS]
    if k > 1 and len(tried):
        every = len(alone) / len(tried)
        sizes = table.size[tried].astype(np.float64)
        totals = [float(exact.weighed(_numbers(table, k, way, tried, progress), sizes)) * every for way in WAYS]
    best = int(np.argmax(totals))
    return Prospect(table, k, WAYS[best], alone, totals[best])


def _spread(some: Ints, count: int) -> Ints:
    """So many of them, evenly spread."""
    return some if count >= len(some) else some[np.arange(count) * len(some) // max(1, count)]


def _numbers(table: Table, k: int, way: Way, chosen: Ints, progress: Progress) -> Floats:
    """The number of each chosen tuple."""
    from shoal.kernels.bound_apart import nearest_sums

    columns, unit = table.columns(way)
    found = np.zeros(len(chosen), dtype=np.int64)

    def some(begin: int, part: Progress) -> None:
        rows = slice(begin, begin + CHUNK)
        nearest_sums(columns, table.size, k - 1, way == "farthest", chosen[rows], found[rows])
        part.check()

    side_by_side(some, range(0, len(chosen), CHUNK), progress, threads=os.cpu_count() or 1)
    return np.asarray(found * ((k / 2 if way == "pairs" else 1.0) / unit))


def _table(codes: NDArray[np.int32], space: Space, k: int) -> Table:
    places: dict[int, Floats] = {}
    steps: dict[int, list[list[Step]]] = {}
    most = np.ones(len(space.domains))
    for a, domain in enumerate(space.domains):
        weight, seen = float(space.weights[a]), np.unique(codes[:, a])
        if isinstance(domain, Interval):
            places[a] = _line(domain) * weight
            most[a] = max(1, parted(k, 2))
        else:
            steps[a] = [[Step(*step[:2], step.more * weight) for step in own] for own in _steps(domain, space.measure)]
            most[a] = pairs_at_most(domain, space.measure, len(seen), k)
    distinct, of_record, size = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    return Table(distinct, size.astype(np.int64), of_record.ravel(), places, steps, most)


def _line(domain: Interval) -> Floats:
    """Where each code lies on a line of length 1 at most, so that two of them are no further apart than they lose."""
    known = domain.values
    spread = float(known[-1] - known[0]) if len(known) else 0.0
    # Beyond the reference range a loss does not grow: then what is left of it is shared out.
    line = (known - known[0]) / max(domain.width, spread) if spread > 0 and domain.width > 0 else np.zeros(len(known))
    return np.append(line, 1.0) if domain.has_missing else line


def _steps(domain: Tree | Set, measure: Measure) -> list[list[Step]]:
    """The steps away from each code: past each node above it, or to any other value."""
    if isinstance(domain, Set):
        another = float(domain.size_losses(measure)[min(2, domain.size)])
        return [[Step(code, code, another)] for code in range(domain.size)]
    tree, losses = domain.taxonomy, domain.node_losses(measure)
    above: list[list[Step]] = [[] for _ in range(tree.nodes)]
    for node in range(tree.nodes - 1, -1, -1):
        parent = int(tree.parent[node])
        if parent >= 0:
            more = float(losses[parent] - losses[node])
            own = [Step(int(tree.first[node]), int(tree.last[node]), more)] if more > 0 else []
            above[node] = [*own, *above[parent]]
    return above[: tree.leaves]


def pairs_at_most(domain: Tree | Set, measure: Measure, values: int, k: int) -> float:
    """c_a: what all pairs of k records with so many values lose together at most, in units of what the k lose.

    >>> pairs_at_most(Set(("a", "b", "c")), "ncp", 3, 5)
    6.0
    """
    if isinstance(domain, Set):
        losses = domain.size_losses(measure)
        return max([1.0, *(parted(k, q) * float(losses[2] / losses[q]) for q in range(2, min(k, values) + 1))])
    return float(max(1, parted(k, values)))


def parted(k: int, parts: int) -> int:
    """How many pairs of k records lie in different parts when the parts are as equal as can be.

    >>> parted(5, 2), parted(5, 3), parted(5, 9)
    (6, 8, 10)
    """
    parts = max(1, min(parts, k))
    least, more = divmod(k, parts)
    return (k * k - (parts - more) * least**2 - more * (least + 1) ** 2) // 2
