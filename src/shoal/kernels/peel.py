"""Loops behind `shoal.algorithms.peel`: which records leave a cell as a class, and where left-over records go.

A *lot* is all records with the same quasi-identifiers and the same *group* of sensitive values. Its records are
interchangeable and leave it from the front, so what leaves a cell is decided by numbers per group alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, entry, loop
from shoal.kernels.rules import class_deficit, class_ok
from shoal.kernels.space import TICKS, FlatSpace, begin, join, joined_loss, loss
from shoal.policy import FlatRules

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Words = NDArray[np.uint64]

WHOLE, FILL, REMOVE = 0, 1, 2
"""A cell leaves as a whole or not at all; the best filling of some size leaves; records are removed step by step."""
EPSILON = 1e-9
FEW = 32
"""Up to so many sizes and groups are tried one by one."""


class Lots(NamedTuple):
    """Point p has the lots start[p] … start[p+1]-1; lot l still has the records record[first[l]:last[l]]."""

    start: Ints
    group: Ints
    first: Ints
    last: Ints
    record: Ints


class Wanted(NamedTuple):
    """What a peeled class must be.

    `cells` says where a record of each group is counted, one column a view (-1: missing). `share` is each group's part of
    an ideal class; groups with share 0 are minded by no rule and come along.
    """

    rules: FlatRules
    cells: Ints
    share: Floats
    width: int
    smallest: int
    mode: int


@loop
def cell_losses(flat: FlatSpace, codes: Codes, visits: Codes, inside: Words, live: Words) -> Floats:
    """The loss of a class with all points of a cell, for every cell."""
    losses, members = np.zeros(len(visits)), np.empty(len(codes), dtype=np.int64)
    state = np.empty(flat.slot[len(flat.kind)], dtype=np.int64)
    for i in range(len(visits)):
        found = find_points(visits[i], inside, live, members)
        if found > 0:
            begin(flat, state, codes[members[0]])
            for m in range(1, found):
                join(flat, state, codes[members[m]])
            losses[i] = loss(flat, state)
    return losses


NEXT, LABEL = 0, 1
"""Where `peel_cells` is: the next cell, the next class."""


@loop
def peel_cells(
    visits: Codes, inside: Words, live: Words, lots: Lots, wanted: Wanted, labels: Ints, at: Ints, steps: int
) -> None:
    """Visit cells in the given order, from the one `at` on, and let a class leave each that has one, for so many steps."""
    groups = len(wanted.share)
    have, take = np.empty(groups, dtype=np.int64), np.empty(groups, dtype=np.int64)
    members = np.empty(len(lots.start), dtype=np.int64)
    # A filling looks at every group for some dozens of sizes, a removal judges a class for each group and several times.
    choosing = groups * (8 * wanted.width if wanted.mode == REMOVE else FEW)
    while at[NEXT] < len(visits) and steps > 0:
        found, total = find_points(visits[at[NEXT]], inside, live, members), np.int64(0)
        at[NEXT] += 1
        steps -= len(live) + groups
        for g in range(groups):
            have[g] = 0
        for m in range(found):
            for lot in range(lots.start[members[m]], lots.start[members[m] + 1]):
                have[lots.group[lot]] += lots.last[lot] - lots.first[lot]
                total += lots.last[lot] - lots.first[lot]
                steps -= 1
        if total < wanted.smallest:
            continue
        steps -= choosing
        if choose(wanted, have, total, take) == 0:
            continue
        for m in range(found):
            point, left = members[m], 0
            for lot in range(lots.start[point], lots.start[point + 1]):
                while take[lots.group[lot]] > 0 and lots.first[lot] < lots.last[lot]:
                    labels[lots.record[lots.first[lot]]] = at[LABEL]
                    lots.first[lot] += 1
                    take[lots.group[lot]] -= 1
                left += lots.last[lot] - lots.first[lot]
            if left == 0:
                live[point >> 6] &= ~(np.uint64(1) << np.uint64(point & 63))
        at[LABEL] += 1


@entry
def find_points(cell: Codes, inside: Words, live: Words, members: Ints) -> int:
    """The live points of a cell, ascending; returns how many there are.

    A cell names one row of `inside` per attribute: bit p says whether point p is in that group of values.
    """
    found = 0
    for w in range(len(live)):
        word = live[w]
        for row in cell:
            word &= inside[row, w]
            if word == 0:
                break
        point = 64 * w
        while word != 0:
            if word & np.uint64(1):
                members[found] = point
                found += 1
            word >>= np.uint64(1)
            point += 1
    return found


@loop
def choose(wanted: Wanted, have: Ints, total: int, take: Ints) -> int:
    """How many records of each group leave a cell as a class, as many as possible; returns their sum, 0 for no class."""
    counts = np.empty(wanted.width, dtype=np.int32)
    for g in range(len(have)):
        take[g] = have[g]
    if good(wanted, take, total, counts):
        return total
    if wanted.mode == FILL:
        return choose_by_size(wanted, have, total, take, counts)
    if wanted.mode == REMOVE:
        return choose_by_removal(wanted, have, total, take, counts)
    return np.int64(0)


@entry
def good(wanted: Wanted, take: Ints, total: int, counts: Codes) -> bool:
    """Whether so many records of each group are a class that is wanted; leaves its histograms in `counts`."""
    for cell in range(len(counts)):
        counts[cell] = 0
    for g in range(len(take)):
        for view in range(wanted.cells.shape[1]):
            if wanted.cells[g, view] >= 0:
                counts[wanted.cells[g, view]] += take[g]
    return class_ok(wanted.rules, total, counts)


@bare
def choose_by_size(wanted: Wanted, have: Ints, total: int, take: Ints, counts: Codes) -> int:
    """The largest size whose best filling is good.

    Fillings grow worse with size except for the rounding to whole records. So small cells try every size; in large ones
    the size is halved until it is good, bisected, and the sizes just above are looked at.
    """
    low, high = wanted.smallest - 1, total
    if total - wanted.smallest > FEW:
        low = total // 2
        while low >= wanted.smallest:
            fill(wanted, have, low, take)
            if good(wanted, take, low, counts):
                break
            low, high = low // 2, low
        if low < wanted.smallest:
            return np.int64(0)
        while high - low > 1:
            middle = (low + high) // 2
            fill(wanted, have, middle, take)
            if good(wanted, take, middle, counts):
                low = middle
            else:
                high = middle
        high = min(total, low + FEW)
    for size in range(high - 1, low, -1):
        fill(wanted, have, size, take)
        if good(wanted, take, size, counts):
            return size
    if low < wanted.smallest:
        return np.int64(0)
    fill(wanted, have, low, take)
    return low


@bare
def fill(wanted: Wanted, have: Ints, size: int, take: Ints) -> None:
    """`size` of the cell's records with shares as near to the wanted ones as can be.

    For equal distances Σ min(c_v, s·Q_v) is then as large as any subset of this size has it, and so the distance the
    smallest; with equal shares the counts are as even as any subset has them, so they are majorized by all others, and the
    largest share, the entropy and r_1 - c·(r_l + … + r_m) are the best possible.
    """
    left, groups = size, len(have)
    for g in range(groups):
        take[g] = min(have[g], left) if wanted.share[g] == 0 else 0
        left -= take[g]
    known = left
    for g in range(groups):
        if wanted.share[g] > 0:
            take[g] = min(have[g], np.int64(np.floor(known * wanted.share[g] + EPSILON)))
            left -= take[g]
    # What is lacking now are fractions of records: the largest come first, or many along the order of the groups.
    carry = 0.0
    for g in range(groups):
        lacking = known * wanted.share[g] - take[g]
        if groups > FEW and take[g] < have[g] and lacking > 0 and left > 0:
            carry += lacking
            if carry >= 0.5:
                take[g] += 1
                left -= 1
                carry -= 1.0
    while left > 0 and groups <= FEW:
        best, most = -1, EPSILON
        for g in range(groups):
            lacking = known * wanted.share[g] - take[g]
            if take[g] < have[g] and lacking > most:
                best, most = g, lacking
        if best < 0:
            break
        take[best] += 1
        left -= 1
    # The rest is excess, spread over what the cell still has.
    while left > 0:
        rest, open_share = left, 0.0
        for g in range(groups):
            if take[g] < have[g]:
                open_share += wanted.share[g]
        best, least = -1, np.inf
        for g in range(groups):
            if take[g] < have[g]:
                more = min(have[g] - take[g], np.int64(np.floor(rest * wanted.share[g] / open_share)))
                if groups > FEW:
                    more = min(left, max(more, 1))
                take[g] += more
                left -= more
                if take[g] < have[g] and (take[g] + 1) / wanted.share[g] < least:
                    best, least = g, (take[g] + 1) / wanted.share[g]
        if best < 0:
            break
        if left > 0:
            take[best] += 1
            left -= 1


@bare
def choose_by_removal(wanted: Wanted, have: Ints, total: int, take: Ints, counts: Codes) -> int:
    """Records of the group whose removal leaves the least deficit go, many at a time, then fewer; then some return."""
    deficit, step = class_deficit(wanted.rules, total, counts), max(1, total // 8)
    while deficit > 0:
        best, least, away = 0, deficit - EPSILON, 0
        for g in range(len(have)):
            gone = min(step, take[g])
            if gone > 0 and total - gone >= wanted.smallest:
                count(counts, wanted.cells[g], -gone)
                remaining = class_deficit(wanted.rules, total - gone, counts)
                count(counts, wanted.cells[g], gone)
                if remaining < least:
                    best, least, away = g, remaining, gone
        if away > 0:
            take[best] -= away
            total -= away
            count(counts, wanted.cells[best], -away)
            deficit = least
        elif step > 1:
            step //= 2
        else:
            return np.int64(0)
    while step > 0:
        for g in range(len(have)):
            back = min(step, have[g] - take[g])
            count(counts, wanted.cells[g], back)
            if class_ok(wanted.rules, total + back, counts):
                take[g] += back
                total += back
            else:
                count(counts, wanted.cells[g], -back)
        step //= 2
    return total


@entry
def place(
    flat: FlatSpace,
    rules: FlatRules,
    codes: Codes,
    cells: Ints,
    waiting: Ints,
    states: Ints,
    losses: Floats,
    sizes: Ints,
    counts: Codes,
    labels: Ints,
) -> None:
    """Waiting records, in order, join the class with the least added loss that stays good (docs/algorithms.md#any-policy).

    Records that would spoil every class keep their label.
    """
    for r in waiting:
        best, least = np.int64(-1), np.inf
        for c in range(len(sizes)):
            if np.rint(losses[c] * TICKS) >= least:
                continue  # a class costs its new member at least its own loss
            after = joined_loss(flat, states[c], codes[r])
            cost = np.rint(((sizes[c] + 1) * after - sizes[c] * losses[c]) * TICKS)
            if cost < least:
                count(counts[c], cells[r], np.int64(1))
                if class_ok(rules, sizes[c] + 1, counts[c]):
                    best, least = np.int64(c), cost
                count(counts[c], cells[r], np.int64(-1))
        if best >= 0:
            labels[r] = best
            join(flat, states[best], codes[r])
            losses[best] = loss(flat, states[best])
            sizes[best] += 1
            count(counts[best], cells[r], np.int64(1))


@entry
def count(counts: Codes, cells: Ints, many: int) -> None:
    """Count so many records in (or out, if negative) of a class's histograms."""
    for cell in cells:
        if cell >= 0:
            counts[cell] += many
