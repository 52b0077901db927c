"""Keeping a policy while classes change: splits into good parts, loans between classes, targets that stay good.

These are the steps that Truta & Campan 2007 leave to future work, for any policy: its classes are asked for their deficits and
nothing else is known about it (docs/algorithms.md#i3m). A policy of k alone needs none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.evolve.i3m.index import Grouping, Rows, Slots
from shoal.models.k_anonymity import KAnonymity
from shoal.policy import Policy, Rules, Stats

if TYPE_CHECKING:
    from shoal.kernels.i3m import Tests

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# A class that lacks something asks so many of its neighbours; those further away would cost more than merging does.
NEIGHBOURS = 16
# A row that so many classes in the order of their cost cannot take is taken by merging classes.
TRIES = 240
# First rows from which a half is grown when a large class is split: the best of so many is nearly the best of all.
SEEDS = 32


class Judge:
    """A policy's opinion of classes given by rows; `seen` has the codes that its rules count, one line a row.

    The rules may be bound to another table when the rest of a table does not matter to them (`change.is_local`).
    """

    def __init__(self, rules: Rules, seen: NDArray[np.int32]) -> None:
        self.rules, self.seen = rules, seen

    @cached_property
    def tests(self) -> Tests | None:
        """The same for compiled loops; None for k alone."""
        from shoal.kernels.i3m import Tests

        if self.rules.only_size:
            return None
        rules = self.rules.flat()
        if rules is None:
            # A rule that nobody passes leaves every decision to those who can ask the policy itself.
            rules = Policy((KAnonymity(2**62),)).bind((), 0).flat()
        assert rules is not None
        return Tests(rules, self.seen, self.rules.view_starts)

    def deficits(self, classes: Sequence[Rows]) -> Floats:
        """Total deficit of every class."""
        return self.rules.deficit(self._stats(classes))

    def good(self, rows: Rows) -> bool:
        """Whether these rows are a good class."""
        if self.rules.only_size:
            return len(rows) >= self.rules.k
        return bool(self.deficits([rows])[0] <= 0)

    def changed(self, rows: Rows, candidates: Rows, sign: int) -> Floats:
        """Deficit of a class with one candidate more (sign 1), or without it (sign -1), for every candidate."""
        own = self._stats([rows])
        counts = []
        for j, matrix in enumerate(own.counts):
            codes = self.seen[candidates, j]
            varied = np.repeat(matrix, len(candidates), axis=0)
            known = np.flatnonzero(codes >= 0)
            varied[known, codes[known]] += sign
            counts.append(varied)
        return self.rules.deficit(Stats(np.full(len(candidates), len(rows) + sign), tuple(counts)))

    def _stats(self, classes: Sequence[Rows]) -> Stats:
        sizes = np.array([len(rows) for rows in classes], dtype=np.int64)
        rows = np.concatenate([*classes, np.zeros(0, dtype=np.int64)])
        owner = np.repeat(np.arange(len(classes)), sizes)
        counts = []
        for j, view in enumerate(self.rules.views):
            codes = self.seen[rows, j]
            cells = (owner * view.width + codes)[codes >= 0]
            counts.append(np.bincount(cells, minlength=len(classes) * view.width).reshape(len(classes), view.width))
        return Stats(sizes, tuple(counts))


def good_half(grouping: Grouping, judge: Judge, rows: Rows) -> Mask | None:
    """Which rows to split off a class so that both parts are good; None if no way is found.

    The paper's own split where it happens to do; else the rows that the new class lacks most, cheapest first, of which the
    rest can do without. From 3k on the new class is tried from many a first row, and the cheapest outcome counts.
    """
    k = judge.rules.k
    half = grouping.choose_half(rows, k)
    if (judge.deficits([rows[half], rows[~half]]) <= 0).all():
        return half
    if len(rows) < 3 * k:
        return _grow_half(grouping, judge, rows, None)
    best, chosen = np.inf, None
    for first in range(min(len(rows), SEEDS)):
        tried = _grow_half(grouping, judge, rows, first)
        if tried is not None:
            parts = grouping.loss_of([rows[tried], rows[~tried]])
            if parts < best:
                best, chosen = parts, tried
    return chosen


def _grow_half(grouping: Grouping, judge: Judge, rows: Rows, first: int | None) -> Mask | None:
    moved = np.zeros(len(rows), dtype=bool)
    lacking = np.inf
    while lacking > 0:
        free = np.flatnonzero(~moved)
        rest = _without(judge, rows[free])
        new = exact.ticks(judge.changed(rows[moved], rows[free], 1))
        possible = np.flatnonzero(rest <= 0)
        if first is not None and not moved.any():
            possible = possible[free[possible] == first]
        if len(possible) == 0:
            return None
        costs = grouping.price_moves(rows, moved)[free]
        chosen = possible[np.lexsort((costs[possible], new[possible]))[0]]
        if new[chosen] >= lacking and np.count_nonzero(moved) >= judge.rules.k:
            return None
        moved[free[chosen]] = True
        lacking = new[chosen]
    return moved


def loans(grouping: Grouping, judge: Judge, c: int, lenders: Slots) -> Rows | None:
    """Rows that make class `c` good when they leave other classes, which stay good; None if there are none.

    Each is the one that lowers the deficit most, then the cheapest. A class that would take more than it has is
    not worth it.
    """
    own = grouping.members(c)
    limit = 2 * len(own)
    members = grouping.members_by_class(lenders)
    rests = [_without(judge, part) for part in members]
    lacking = float(exact.ticks(judge.deficits([own])[0]))
    while lacking > 0:
        if len(own) == limit or not members:
            return None
        rows = np.concatenate(members)
        more = exact.ticks(judge.changed(own, rows, 1))
        possible = (np.concatenate(rests) <= 0) & (more < lacking)
        if not possible.any():
            return None
        possible &= more == more[possible].min()
        costs, ends = np.full(len(rows), np.inf), np.cumsum([len(part) for part in members])
        state = grouping.state_of(own)
        for lender in np.unique(np.searchsorted(ends, np.flatnonzero(possible), side="right")).tolist():
            part = members[lender]
            costs[ends[lender] - len(part) : ends[lender]] = grouping.price_loans(part, state, len(own))
        chosen = int(np.lexsort((rows, np.where(possible, costs, np.inf)))[0])
        own, lacking = np.append(own, rows[chosen]), float(more[chosen])
        lender = int(np.searchsorted(ends, chosen, side="right"))
        members[lender] = members[lender][members[lender] != rows[chosen]]
        rests[lender] = _without(judge, members[lender])
    return own[limit // 2 :]


def _without(judge: Judge, rows: Rows) -> Floats:
    """Deficit of a class without each of its rows; a class never gives away its last one."""
    return judge.changed(rows, rows, -1) if len(rows) > 1 else np.full(len(rows), np.inf)


def target_for(grouping: Grouping, judge: Judge, row: int, bad: set[int]) -> int:
    """The cheapest class that is good with one row more, or bad already and no worse for it; -1 if none was found."""
    tried = 0
    for classes in grouping.ranked(grouping.state_of(np.array([row])), 1):
        before = grouping.members_by_class(classes)
        after = judge.deficits([np.append(rows, row) for rows in before])
        for c, rows, deficit in zip(classes.tolist(), before, after.tolist(), strict=True):
            if deficit <= 0 or (c in bad and deficit <= judge.deficits([rows])[0]):
                return int(c)
        tried += len(classes)
        if tried >= TRIES:
            break
    return -1


def partner_for(grouping: Grouping, judge: Judge, c: int) -> int:
    """The class to merge `c` with: the cheapest that makes it good, else the one that leaves least to wish for."""
    own = grouping.members(c)
    chosen, least, tried = -1, np.inf, 0
    for classes in grouping.ranked(grouping.states[c].copy(), len(own)):
        others = classes[classes != c]
        left = judge.deficits([np.concatenate([rows, own]) for rows in grouping.members_by_class(others)])
        good = np.flatnonzero(left <= 0)
        if len(good):
            return int(others[good[0]])
        if len(others) and left.min() < least:
            chosen, least = int(others[np.argmin(left)]), float(left.min())
        tried += len(classes)
        if tried >= TRIES:
            break
    return chosen


def neighbours_of(grouping: Grouping, c: int) -> Slots:
    """The classes that class `c` would be merged with for the least loss."""
    nearest = next(iter(grouping.ranked(grouping.states[c].copy(), int(grouping.sizes[c]))))
    return np.asarray(nearest[nearest != c][:NEIGHBOURS])


def same_rules(one: Rules, other: Rules) -> bool:
    """Whether both judge the same counts alike."""
    mine, theirs = one.flat(), other.flat()
    # The last two fields follow from the first.
    return mine is not None and theirs is not None and all(map(np.array_equal, mine[:-2], theirs[:-2]))
