"""Suppression: records that cost the others of their class more than they lose by being left out.

A suppressed record loses everything, so to give it up pays only where its class becomes that much tighter. A *tail* of a class
is all its records up to some value of an attribute, or from some value on; of a set, those with one value. Two steps are
repeated while the loss falls and no more records go than are allowed:

- *trim*: a tail leaves its class, and what remains is a good class.
- *disperse*: a tail leaves, and the rest of the class, too little to be good, joins the classes where that costs least.

Which records go is decided by quasi-identifiers: nobody is left out for a sensitive value, which would tell it. So suppression
makes no policy feasible that was not. Suppressed records that are published masked are a class like any other: where they are no
good one, the class that loses least by it goes with them, and where that does not pay either, nobody is suppressed.

>>> import polars as pl, shoal
>>> from shoal.algorithms import run
>>> frame = pl.DataFrame({"age": [20, 21, 22, 23, 24, 25, 99], "height": [170, 171, 172, 173, 174, 175, 230]})
>>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "height": {"role": "quasi"}})
>>> rules = data.rules(shoal.Policy((shoal.KAnonymity(3),)))
>>> found = without_outliers(data, rules, run("mondrian", data, rules), objective="ncp", allowed=1, drop=True)
>>> found.labels.tolist()
[0, 0, 0, 0, 0, 0, -1]
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress
from shoal.space import Measure, Set, Space

if TYPE_CHECKING:
    from shoal.kernels.space import FlatSpace

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Records × classes that are priced for dispersing: about a second of work.
PRICED = 20_000_000
# Rows of trial classes whose states are worked out at a time: a few hundred megabytes.
ROWS = 4_000_000


def without_outliers(
    data: Microdata,
    rules: Rules,
    partition: Partition,
    *,
    objective: Measure,
    allowed: int,
    drop: bool,
    progress: Progress | None = None,
) -> Partition:
    """The partition with up to `allowed` records suppressed, those it has suppressed included, where that lowers the loss.

    `drop` says that suppressed records are left out of the release, so that they need not be a good class. Full-domain
    partitions publish one level a column, which no record's leaving changes: they come back as they are.
    """
    if partition.levels is not None or partition.classes == 0 or allowed <= partition.suppressed:
        return partition
    told = progress or Progress()
    classes = _Classes(data, rules, data.space(objective), partition.labels.astype(np.int64), allowed)
    before = classes.total()
    while classes.trim(told) or classes.disperse(told):
        told.check()
    if not drop and not classes.mask(before):
        return partition
    gone = int(np.count_nonzero(classes.labels < 0)) - partition.suppressed
    if gone == 0:
        return partition
    return Partition.compact(classes.labels, notes={**partition.notes, "outliers_suppressed": gone})


@dataclass(frozen=True, eq=False)
class _Tails:
    """Tails of classes: the class and the attribute of each, its codes from `first` to `last`, how many records have them,
    and the ticks that a record of the rest of the class loses.
    """

    owner: Ints
    attribute: Ints
    first: Ints
    last: Ints
    size: Ints
    rest: Floats

    def at(self, chosen: NDArray[np.integer] | NDArray[np.bool_]) -> _Tails:
        """Some of them."""
        return _Tails(*(column[chosen] for column in vars(self).values()))


class _Classes:
    """Labels that change, with the states, sizes and losses (in ticks, of one record) of the classes."""

    def __init__(self, data: Microdata, rules: Rules, space: Space, labels: Ints, allowed: int) -> None:
        self.data, self.rules, self.space, self.labels, self.allowed = data, rules, space, labels, allowed
        self.everything = float(exact.ticks(exact.total(space.weights)))
        self.count_again()

    def count_again(self) -> None:
        """Numbers without gaps, and what follows from the labels."""
        found = Partition.compact(self.labels)
        self.labels, self.sizes, self.count = found.labels.astype(np.int64), found.sizes, found.classes
        self.states = self.space.states(self.data.codes, found.order, found.starts)
        self.units = exact.ticks(self.space.unit(self.states))

    @property
    def left(self) -> int:
        """How many records may still go."""
        return self.allowed - int(np.count_nonzero(self.labels < 0))

    def total(self) -> float:
        """The loss in ticks."""
        lost = np.count_nonzero(self.labels < 0) * self.everything
        return exact.total(self.units * self.sizes) + lost

    def trim(self, told: Progress) -> bool:
        """Let tails go while classes stay good and the loss falls, those first that gain most a record."""
        asked, changed = np.arange(self.count), False
        while len(asked) and self.left > 0:
            told.check()
            tails = self.tails(asked)
            gain = self.gain(tails)
            worth = (gain > 0) & (self.sizes[tails.owner] - tails.size >= self.rules.k)
            tails, gain = self.best_good(tails.at(worth), gain[worth])
            order = np.lexsort((tails.owner, -gain / tails.size))
            taken = order[_fitting(tails.size[order], self.left)]
            if len(taken) == 0:
                break
            self.labels[self.members(tails.at(taken))] = -1
            asked = np.sort(tails.owner[taken])
            self.refresh(tails.at(taken))
            changed = True
        return changed

    def gain(self, tails: _Tails) -> Floats:
        """Ticks that are gained when a tail goes and the rest stays a class."""
        unit, size = self.units[tails.owner], self.sizes[tails.owner]
        return np.asarray((size - tails.size) * (unit - tails.rest) - tails.size * (self.everything - unit))

    def best_good(self, tails: _Tails, gain: Floats) -> tuple[_Tails, Floats]:
        """Of each class the tail with the largest gain that leaves a good class; ties to the first attribute, then code."""
        order = np.lexsort((tails.last, tails.first, tails.attribute, -gain, tails.owner))
        tails, gain = tails.at(order), gain[order]
        accepted: list[Ints] = []
        waiting = np.arange(len(tails.owner))
        while len(waiting):
            first = np.ones(len(waiting), dtype=bool)
            first[1:] = tails.owner[waiting][1:] != tails.owner[waiting][:-1]
            tried = waiting[first]
            labels = self.labels.copy()
            labels[self.members(tails.at(tried))] = -1
            good = self.rules.deficits(labels, self.count)[tails.owner[tried]] <= 0
            accepted.append(tried[good])
            done = np.isin(tails.owner[waiting], tails.owner[tried[good]])
            waiting = waiting[~first & ~done]
        chosen = np.sort(np.concatenate([*accepted, np.zeros(0, dtype=np.int64)]))
        return tails.at(chosen), gain[chosen]

    def members(self, tails: _Tails) -> NDArray[np.bool_]:
        """Which records leave with the tails; at most one of each class."""
        attribute, first, last = (np.zeros(self.count + 1, dtype=np.int64) for _ in range(3))
        last[:] = -1  # nobody goes, also of those who are gone: the last place is theirs
        attribute[tails.owner], first[tails.owner], last[tails.owner] = tails.attribute, tails.first, tails.last
        codes = self.data.codes[np.arange(self.data.n), attribute[self.labels]]
        return np.asarray((codes >= first[self.labels]) & (codes <= last[self.labels]))

    def refresh(self, tails: _Tails) -> None:
        """Sizes, states and losses of the classes that lost these tails."""
        rows = np.flatnonzero(np.isin(self.labels, tails.owner))
        rows = rows[np.argsort(self.labels[rows], kind="stable")]
        owners, sizes = np.unique(self.labels[rows], return_counts=True)
        self.sizes[owners] = sizes
        self.states[owners] = self.space.states(self.data.codes, rows, np.cumsum(sizes) - sizes)
        self.units[owners] = exact.ticks(self.space.unit(self.states[owners]))

    def tails(self, classes: Ints) -> _Tails:
        """The tails of these classes that could pay: what they cost is less than all that the class loses."""
        rows = np.flatnonzero(np.isin(self.labels, classes))
        rows = rows[np.argsort(self.labels[rows], kind="stable")]
        parts = [self.tails_of(rows, a) for a in range(len(self.space.domains))]
        return _Tails(*(np.concatenate(column) for column in zip(*(vars(p).values() for p in parts), strict=True)))

    def tails_of(self, rows: Ints, a: int) -> _Tails:
        """The tails along one attribute; `rows` are the records class by class."""
        owner, codes = self.labels[rows], self.data.codes[rows, a].astype(np.int64)
        width = self.space.domains[a].size
        cells, sizes = np.unique(owner * width + codes, return_counts=True)
        classes, code = cells // width, cells % width
        if isinstance(self.space.domains[a], Set):
            first, last = code, code
        else:
            slot = int(self.space.slots[a])
            up_to = np.cumsum(sizes) - np.searchsorted(owner, classes)
            first = np.concatenate([self.states[classes, slot], code])
            last = np.concatenate([code, self.states[classes, slot + 1]])
            classes, sizes = np.tile(classes, 2), np.concatenate([up_to, self.sizes[classes] - up_to + sizes])
        could_pay = (sizes < self.sizes[classes]) & (sizes <= self.left)
        could_pay &= sizes * self.everything < self.sizes[classes] * self.units[classes]
        classes, first, last, sizes = (column[could_pay] for column in (classes, first, last, sizes))
        rest, start = np.zeros(len(classes)), np.searchsorted(owner, classes)
        for begin, end in _pieces(self.sizes[classes], ROWS):
            lengths = self.sizes[classes[begin:end]]
            tail = np.repeat(np.arange(begin, end), lengths)
            place = start[tail] + np.arange(len(tail)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            stays = (codes[place] < first[tail]) | (codes[place] > last[tail])
            kept = lengths - sizes[begin:end]
            states = self.space.states(self.data.codes, rows[place[stays]], np.cumsum(kept) - kept)
            rest[begin:end] = exact.ticks(self.space.unit(states))
        return _Tails(classes, np.full(len(classes), a, dtype=np.int64), first, last, sizes.astype(np.int64), rest)

    def disperse(self, told: Progress) -> bool:
        """Give up the classes that would gain most, all together or ever fewer of them; whether that lowered the loss."""
        if self.left <= 0 or self.count < 2:
            return False
        tails = self.tails(np.arange(self.count))
        if len(tails.owner) == 0:
            return False
        # The tail that hides the tightest rest; then what is left to pay for that rest.
        order = np.lexsort((tails.last, tails.first, tails.attribute, -self.gain(tails), tails.owner))
        tails = tails.at(order[np.unique(tails.owner[order], return_index=True)[1]])
        worth = self.units[tails.owner] * self.sizes[tails.owner] - tails.size * self.everything
        order = np.lexsort((tails.owner, -worth))
        records = np.cumsum((self.sizes[tails.owner] - tails.size)[order])
        order = order[(records * self.count <= PRICED) & (worth[order] > 0)]
        gain = worth[order] - self.price(tails.at(order), told)
        order = order[gain > 0][np.lexsort((tails.owner[order[gain > 0]], -gain[gain > 0]))]
        chosen = order[_fitting(tails.size[order], self.left)]
        while len(chosen):
            told.check()
            if self.give_up(tails.at(chosen), told):
                return True
            chosen = chosen[: len(chosen) // 2]
        return False

    def price(self, tails: _Tails, told: Progress) -> Floats:
        """What the records that remain of each class would add, each where that is least, as the other classes are now."""
        from shoal.kernels.greedy import added_by_class, class_losses
        from shoal.kernels.space import flatten

        flat: FlatSpace = flatten(self.space)
        losses = class_losses(flat, self.states)
        leaving, codes, found = self.members(tails), self.data.codes.copy(), Partition(self.labels.astype(np.int32))
        prices = np.zeros(len(tails.owner))
        for i, c in enumerate(tails.owner.tolist()):
            told.check()
            members = found.order[found.starts[c] : found.starts[c] + self.sizes[c]]
            for record in members[~leaving[members]]:
                costs = added_by_class(flat, self.states, self.sizes, losses, codes[record])
                costs[c] = costs.max()
                prices[i] += costs.min()
        return prices

    def give_up(self, tails: _Tails, told: Progress) -> bool:
        """Suppress the tails and let the rest of their classes join others; undone unless the loss falls."""
        from shoal.algorithms.common import assign_leftovers

        old, before = self.labels, self.total()
        leaving = self.members(tails)
        labels = np.where(np.isin(old, tails.owner), -1, old)
        kept = np.flatnonzero((old >= 0) & ~leaving)
        part = Partition.compact(labels[kept])
        if part.classes == 0:
            return False
        placed = assign_leftovers(self.data.take(kept), self.rules.restrict(kept), part.labels, self.space, told)
        if (placed < 0).any():
            return False
        self.labels = np.full(self.data.n, -1, dtype=np.int64)
        self.labels[kept] = placed
        self.count_again()
        if self.total() < before:
            return True
        self.labels = old
        self.count_again()
        return False

    def mask(self, before: float) -> bool:
        """Make the suppressed records a good class, with another one if need be; False when that does not pay."""
        gone = np.flatnonzero(self.labels < 0)
        if len(gone) == 0 or self.rules.ok(gone):
            return True
        price = self.sizes * (self.everything - self.units)
        fits = np.flatnonzero((self.sizes <= self.left) & (self.total() + price < before))
        for c in fits[np.lexsort((fits, price[fits]))].tolist():
            together = np.flatnonzero((self.labels < 0) | (self.labels == c))
            if self.rules.ok(together):
                self.labels[together] = -1
                return True
        return False


def _fitting(sizes: Ints, room: int) -> NDArray[np.bool_]:
    """Which of some things in a row are taken by one who has so much room and passes over what is too large."""
    taken = np.zeros(len(sizes), dtype=bool)
    for i, size in enumerate(sizes.tolist()):
        taken[i] = size <= room
        room -= size if taken[i] else 0
    return taken


def _pieces(sizes: Ints, most: int) -> list[tuple[int, int]]:
    """Stretches whose sizes sum up to about `most`."""
    place = np.cumsum(sizes) // most
    cuts = np.flatnonzero(np.diff(place)) + 1
    ends = [0, *cuts.tolist(), len(sizes)]
    return [(begin, end) for begin, end in pairwise(ends) if end > begin]
