"""What narrowing bounds leaves open about several releases, decided exactly within a budget.

How often a value occurs in a cell lies between the bounds of `evolve/releases/deduction.py`, which are true, and need not be the
narrowest. A world gives every cell whole numbers of every value that add up to what the classes published. Worlds that were
found show from inside how wide the bounds are at least; between what is certain from outside and what is possible from
inside, integer programs (SciPy's HiGHS) decide, one unknown after the other and only for cells of which it matters.

Many cells need no program. Where some values occur equally often in every class that a cell is connected with, exchanging
them makes one world from another: a cell that can have only such values can have each of them. That is all of m-invariance.

The budget is counted, not timed, so that the same releases give the same answer everywhere. What is left open when it ends
is called undecided, and that is not safe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from shoal.evolve.releases.deduction import Ints, Knowledge
from shoal.progress import Progress

Bools = NDArray[np.bool_]
Exposed = Callable[[Ints, Ints, Ints], Bools]
"""Which of some cells are exposed, when these are the bounds: cells, lower, upper. Narrower bounds expose no fewer."""

UNKNOWNS = 3_000_000
"""The budget: so many unknowns in all integer programs of an audit together, a program counted each time it is solved."""
NODES = 10_000
"""No program is followed through more branches than this."""


@dataclass
class Budget:
    """How much of the budget is left, and whether the answer is still wanted."""

    unknowns: int = field(default_factory=lambda: UNKNOWNS)
    progress: Progress = field(default_factory=Progress)

    def spend(self, unknowns: int) -> bool:
        """Whether a program with so many unknowns can still be solved."""
        self.progress.check()
        self.unknowns -= unknowns
        return self.unknowns >= 0


def decide(known: Knowledge, exposed: Exposed, budget: Budget) -> tuple[Knowledge, Bools]:
    """Narrower bounds, with which `exposed` is exact but for the cells that are marked as undecided."""
    lower, upper = known.lower.copy(), known.upper.copy()
    undecided = np.zeros(len(known.sizes), dtype=bool)
    unsettled: Bools = np.asarray((lower < upper).any(axis=1))
    for cells, classes in _components(known, unsettled):
        owner, member = _paired(known, cells, classes)
        part = _Part(
            cells=cells,
            owner=owner,
            member=member,
            sizes=known.sizes[cells],
            counts=np.subtract(known.counts[classes], _settled(known, classes, unsettled)),
            lower=lower[cells],
            upper=upper[cells],
        )
        undecided[cells] = part.decide(exposed, budget)
        lower[cells], upper[cells] = part.lower, part.upper
    return replace(known, lower=lower, upper=upper), undecided


def _components(known: Knowledge, unsettled: Bools) -> list[tuple[Ints, Ints]]:
    """Cells that are not settled and hang together by classes, with these classes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    some = unsettled[known.member]
    owner, member, cells = known.owner[some], known.member[some], len(known.sizes)
    if not len(member):
        return []
    size = cells + len(known.counts)
    links = coo_array((np.ones(len(member)), (member, cells + owner)), shape=(size, size))
    label = connected_components(links, directed=False)[1]
    open_cells = np.flatnonzero(unsettled)
    open_classes = np.unique(owner)
    found = []
    for name in np.unique(label[open_cells]).tolist():
        found.append((open_cells[label[open_cells] == name], open_classes[label[cells + open_classes] == name]))
    return found


def _paired(known: Knowledge, cells: Ints, classes: Ints) -> tuple[Ints, Ints]:
    """The pairs of these classes and cells, numbered from 0."""
    inside = np.isin(known.member, cells) & np.isin(known.owner, classes)
    return np.searchsorted(classes, known.owner[inside]), np.searchsorted(cells, known.member[inside])


def _settled(known: Knowledge, classes: Ints, unsettled: Bools) -> Ints:
    """What the settled cells of some classes have."""
    fixed = ~unsettled[known.member] & np.isin(known.owner, classes)
    sums = np.zeros((len(classes), known.counts.shape[1]), dtype=np.int64)
    np.add.at(sums, np.searchsorted(classes, known.owner[fixed]), known.lower[known.member[fixed]])
    return sums


@dataclass(eq=False)
class _Part:
    """Cells that hang together; `least` and `most` are the fewest and most of each value in the worlds found so far."""

    cells: Ints
    owner: Ints
    member: Ints
    sizes: Ints
    counts: Ints
    lower: Ints
    upper: Ints

    def __post_init__(self) -> None:
        self.least, self.most = np.broadcast_to(self.sizes[:, None], self.lower.shape).copy(), np.zeros_like(self.upper)
        self._exchange()

    def _exchange(self) -> None:
        """Cells that can only have values of which all classes have equally many can have each of them."""
        _, groups = np.unique(self.counts, axis=1, return_inverse=True)
        groups = groups.ravel()
        can = np.where(self.upper > 0, groups, -1)
        highest = can.max(axis=1)
        only = (np.where(self.upper > 0, groups, highest[:, None]) == highest[:, None]).all(axis=1)
        width = np.bincount(groups, minlength=int(groups.max()) + 1)[highest]
        for z in np.flatnonzero(only).tolist():
            some = groups == highest[z]
            self.least[z] = np.where(some, self.sizes[z] // width[z], 0)
            self.most[z] = np.where(some, -(-self.sizes[z] // width[z]), 0)
        self.seen = only

    def decide(self, exposed: Exposed, budget: Budget) -> Bools:
        """Solve until every cell is exposed for certain or certainly not; which ones are not decided."""
        program = None
        while len(left := np.flatnonzero(self._open(exposed))):
            program = program or _Program(self)
            if not self._narrow(int(left[0]), program, budget, exposed):
                return self._open(exposed)
        return np.zeros(len(self.cells), dtype=bool)

    def _open(self, exposed: Exposed) -> Bools:
        """Cells that are exposed if the worlds found are all there are, and not if all within the bounds are."""
        outside = exposed(self.cells, self.lower, self.upper)
        exact = (self.lower == self.least).all(axis=1) & (self.upper == self.most).all(axis=1)
        return np.asarray(~outside & ~exact & (~self.seen | exposed(self.cells, self.least, self.most)))

    def _narrow(self, cell: int, program: _Program, budget: Budget, exposed: Exposed) -> bool:
        """Decide one cell, one value after the other; whether the budget sufficed."""
        for value in np.flatnonzero(
            (self.most[cell] < self.upper[cell]) | (self.least[cell] > self.lower[cell])
        ).tolist():
            for sign, bound, inner in ((-1, self.upper, self.most), (1, self.lower, self.least)):
                if bound[cell, value] == inner[cell, value]:
                    continue
                world, best = program.solve(cell, value, sign) if budget.spend(program.unknowns) else (None, False)
                if world is None:
                    return False
                np.minimum(self.least, world, out=self.least)
                np.maximum(self.most, world, out=self.most)
                self.seen[:] = True
                if not best:
                    return False
                bound[cell, value] = world[cell, value]
                if not self._open(exposed)[cell]:
                    return True
        return True


class _Program:
    """The worlds of a part as an integer program."""

    def __init__(self, part: _Part) -> None:
        from scipy.sparse import csr_array, vstack

        self.part = part
        self.at = np.full(part.lower.shape, -1, dtype=np.int64)
        free = part.lower < part.upper
        self.unknowns = int(free.sum())
        self.at[free] = np.arange(self.unknowns)
        self.fixed = np.where(free, 0, part.lower)
        cell, _ = np.nonzero(free)
        ones = np.ones(self.unknowns)
        sums = csr_array((ones, (cell, np.arange(self.unknowns))), shape=(len(part.sizes), self.unknowns))
        values = part.counts.shape[1]
        row, column = np.nonzero(free[part.member])
        line = part.owner[row] * values + column
        unknown = self.at[part.member[row], column]
        classes = csr_array((np.ones(len(line)), (line, unknown)), shape=(part.counts.size, self.unknowns))
        told = part.counts.copy()
        np.add.at(told, part.owner, -self.fixed[part.member])
        used = np.diff(classes.indptr) > 0
        self.matrix = vstack([sums, classes[np.flatnonzero(used)]], format="csr")
        self.sums = np.concatenate([part.sizes - self.fixed.sum(axis=1), told.ravel()[used]])

    def solve(self, cell: int, value: int, sign: int) -> tuple[Ints | None, bool]:
        """A world with the fewest (or, with sign -1, most) of a value in a cell, and whether that is proved."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        free = self.at >= 0
        cost = np.zeros(self.unknowns)
        cost[self.at[cell, value]] = sign
        found = milp(
            cost,
            integrality=np.ones(self.unknowns, dtype=np.int64),
            bounds=Bounds(self.part.lower[free], self.part.upper[free]),
            constraints=LinearConstraint(self.matrix, self.sums, self.sums),
            options={"node_limit": NODES},
        )
        if found.x is None:
            return None, False
        world = self.fixed.copy()
        world[free] = np.round(found.x).astype(np.int64)
        return world, found.status == 0
