"""What can be counted out from several releases by who knows everybody's class in each of them.

Persons with the same classes in all releases are a *cell*: nothing tells them apart. Each class says how many of its
persons have each value, so the number of persons in cell z with value v lies between bounds that narrow each other:

- a cell has no more of a value than each of its classes, and no more than its persons;
- what the other cells of a class cannot have, this cell must have;
- what the other cells of a class must have, this cell cannot have; and the same among the values of one cell.

A value with upper bound 0 in one of a person's classes is out (intersection). A class that another contains leaves the rest
of it with the difference exactly. Chains of these over any number of releases are found as well, since bounds are narrowed
until nothing changes.

The bounds are true of everybody who fits the releases, so what they prove is really known to such an intruder. They do
not use every consequence (`evolve/releases/decision.py` does); nor what the intruder knows of values themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.evolve.releases.rows import numbered
from shoal.progress import Progress

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Numbers of one piece of the bounds; pieces of values keep memory small.
PIECE = 2**24
# Chains of reasoning longer than this are not followed; bounds are true after every round, if not the narrowest.
ROUNDS = 100


@dataclass(frozen=True, eq=False)
class Publication:
    """One release: persons, their classes and the codes of their sensitive values, in the same order.

    A person has one number in all releases as long as the value is the same.
    """

    persons: Ints
    classes: Ints
    values: Ints


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Bounds on the number of persons with each value, by cell."""

    persons: Ints
    """All persons, ascending."""
    cell_of: Ints
    """The cell of each person."""
    history: Ints
    """The class of each cell in each release, -1 where it is in none."""
    sizes: Ints
    lower: Ints
    upper: Ints
    counts: Ints
    """Values of each class, counted; equal classes of several releases only once."""
    owner: Ints
    member: Ints
    """Pairs of a class and a cell in it."""
    whole: Bools
    """Cells that are a whole class in some release: that release alone tells all about them."""

    @property
    def possible(self) -> Ints:
        """Different known values (all but code 0, missing) that are possible in each cell."""
        return np.asarray(np.count_nonzero(self.upper[:, 1:], axis=1), dtype=np.int64)

    def groups(self, group: Ints) -> tuple[Ints, Ints]:
        """Per cell, how many groups of known values are possible, and the fewest in one of its classes, as one release tells.

        `group` has the group of each value but missing, -1 for none.
        """
        support = np.full(len(self.sizes), len(group) + 1, dtype=np.int64)
        np.minimum.at(support, self.member, distinct(self.counts, group)[self.owner])
        return distinct(self.upper, group), support

    def told_at_once(self, classes: Bools) -> Bools:
        """The cells of some classes: whatever is true of these, a single release tells."""
        found = np.zeros(len(self.sizes), dtype=bool)
        found[self.member[classes[self.owner]]] = True
        return found


def steady(persons: Sequence[Ints], classes: Sequence[Ints]) -> list[Bools]:
    """Of each release, the rows of classes whose persons are one class, with nobody else, in every release that has any of them.

    One of these releases tells all that there is about them, and nobody else's bounds hang on them: no comparison of releases
    adds anything. A person has one row in a release, and one number in all of them.
    """
    # A person's group is the class in which it was seen first; it is torn once a class has only some of it, or others too.
    group = np.full(1 + max(int(own.max(initial=-1)) for own in persons), -1, dtype=np.int64)
    sizes, torn = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    for own, names in zip(persons, classes, strict=True):
        label, first = numbered(names)
        here, size = group[own], np.bincount(label, minlength=len(first))
        whose = here[first]
        mixed = np.zeros(len(first), dtype=bool)
        mixed[label[here != whose[label]]] = True
        known = np.flatnonzero(~mixed & (whose >= 0))
        mixed[known] = size[known] != sizes[whose[known]]
        torn[here[mixed[label] & (here >= 0)]] = True
        new = here < 0
        group[own[new]] = len(sizes) + label[new]
        sizes, torn = np.concatenate([sizes, size]), np.concatenate([torn, mixed])
    return [~torn[group[own]] for own in persons]


def deduce(publications: Sequence[Publication], values: int, progress: Progress | None = None) -> Knowledge:
    """What releases tell together. Values are coded 0 (missing), 1, …"""
    told = Progress.of(progress)
    everybody = np.concatenate([p.persons for p in publications])
    persons = everybody[numbered(everybody)[1]]
    history = np.full((len(persons), len(publications)), -1, dtype=np.int64)
    for t, publication in enumerate(publications):
        history[np.searchsorted(persons, publication.persons), t] = publication.classes
    cell_of, first = numbered(*history.T)
    cells, sizes = history[first], np.bincount(cell_of, minlength=len(first)).astype(np.int64)
    owner, cell, counts = _constraints(publications, persons, cell_of, cells, values)
    told.check()
    lower, upper = _bounds(owner, cell, counts, sizes, told)
    alone = np.bincount(owner, minlength=len(counts)) == 1
    whole = np.zeros(len(cells), dtype=bool)
    whole[cell[alone[owner]]] = True
    return Knowledge(persons, cell_of, cells, sizes, lower, upper, counts, owner, cell, whole)


def distinct(counts: Ints, group: Ints) -> Ints:
    """How many groups of known values each row has."""
    some = np.flatnonzero(group >= 0)
    some = some[np.argsort(group[some], kind="stable")]
    if not len(some):
        return np.zeros(len(counts), dtype=np.int64)
    starts = np.flatnonzero(np.diff(group[some], prepend=-1))
    present = np.maximum.reduceat(counts[:, 1:][:, some] > 0, starts, axis=1)
    return np.asarray(np.count_nonzero(present, axis=1), dtype=np.int64)


def _constraints(
    publications: Sequence[Publication], persons: Ints, cell_of: Ints, cells: Ints, values: int
) -> tuple[Ints, Ints, Ints]:
    """Classes as lists of cells (`owner` has the class of each entry of `cell`) with counts of values; each only once."""
    owners: list[Ints] = []
    members: list[Ints] = []
    counted: list[Ints] = []
    total, seen, alone = 0, set[bytes](), np.zeros(len(cells), dtype=bool)
    for t, publication in enumerate(publications):
        label, first = numbered(publication.classes)
        names = publication.classes[first]
        counts = np.bincount(label * values + publication.values, minlength=len(names) * values)
        counts = counts.reshape(len(names), values).astype(np.int64)
        inside = np.flatnonzero(cells[:, t] >= 0)
        inside = inside[np.argsort(cells[inside, t], kind="stable")]
        starts = np.searchsorted(cells[inside, t], names)
        lengths = np.diff(starts, append=len(inside))
        # The same persons have the same values, since a person with another value has another number.
        single = lengths == 1
        new = single.copy()
        new[single] = ~alone[inside[starts[single]]]
        alone[inside[starts[single]]] = True
        for c in np.flatnonzero(~single).tolist():
            key = inside[starts[c] : starts[c] + lengths[c]].tobytes()
            new[c] = key not in seen
            seen.add(key)
        owners.append(np.repeat(total + np.arange(new.sum()), lengths[new]))
        members.append(inside[np.repeat(new, lengths)])
        counted.append(counts[new])
        total += int(new.sum())
    return np.concatenate(owners), np.concatenate(members), np.concatenate(counted)


def _bounds(owner: Ints, cell: Ints, counts: Ints, sizes: Ints, progress: Progress) -> tuple[Ints, Ints]:
    """Narrow the bounds until nothing changes; every state on the way is true already.

    Of a cell that is a whole class wherever it is, one class tells all there is, and nobody else's bounds hang on it.
    """
    others = np.bincount(owner, minlength=len(counts))[owner] > 1
    free = np.ones(len(sizes), dtype=bool)
    free[cell[others]] = False
    lower, upper = np.zeros((2, len(sizes), counts.shape[1]), dtype=np.int64)
    told = free[cell]
    lower[cell[told]] = upper[cell[told]] = counts[owner[told]]
    if told.all():
        return lower, upper
    part, classes = np.flatnonzero(~free), np.flatnonzero(np.bincount(owner[~told], minlength=len(counts)))
    place, at = np.cumsum(~free) - 1, np.zeros(len(counts), dtype=np.int64)
    at[classes] = np.arange(len(classes))
    lower[part], upper[part] = _narrowed(at[owner[~told]], place[cell[~told]], counts[classes], sizes[part], progress)
    return lower, upper


def _narrowed(owner: Ints, cell: Ints, counts: Ints, sizes: Ints, progress: Progress) -> tuple[Ints, Ints]:
    """The same for cells that share classes with others."""
    order = np.argsort(cell, kind="stable")
    owner, cell = owner[order], cell[order]
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    number, values = len(sizes), counts.shape[1]
    lower = np.zeros((number, values), dtype=np.int64)
    upper = np.broadcast_to(sizes[:, None], (number, values)).copy()
    width = max(1, PIECE // max(1, len(cell)))
    for _ in range(ROUNDS):
        before = int(upper.sum()), int(lower.sum())
        for begin in range(0, values, width):
            progress.check()
            some = slice(begin, begin + width)
            low, high, total = lower[:, some], upper[:, some], counts[:, some]
            spare = total - _summed(owner, low[cell], len(counts))
            high[:] = np.minimum(high, np.minimum.reduceat(spare[owner] + low[cell], starts, axis=0))
            needed = total - _summed(owner, high[cell], len(counts))
            low[:] = np.maximum(low, np.maximum.reduceat(needed[owner] + high[cell], starts, axis=0))
        upper = np.minimum(upper, (sizes - lower.sum(axis=1))[:, None] + lower)
        lower = np.maximum(lower, (sizes - upper.sum(axis=1))[:, None] + upper)
        if before == (int(upper.sum()), int(lower.sum())):
            break
    return lower, upper


def _summed(owner: Ints, rows: Ints, number: int) -> Ints:
    from scipy.sparse import csr_array

    matrix = csr_array(
        (np.ones(len(owner), dtype=np.int64), (owner, np.arange(len(owner)))), shape=(number, len(owner))
    )
    return np.asarray(matrix @ rows)
