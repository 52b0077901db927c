"""The draft of a step of the box search: what it touches, what it plans, and how it is carried out or forgotten.

Sizes, histograms and boxes of touched classes change at once; holdings only when the step is accepted. What sizes and boxes were
is kept beside them. Histograms may be much longer than what a step changes in them: they always have what the plan says, and
undoing the plan brings them back.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.box_gauge import copy_box, holds, row_join, widen
from shoal.kernels.box_types import CHANGED, CLOSED, NOBODY, OPEN, Fields, Gauge, Holding, Store, Table
from shoal.kernels.jit import bare, entry
from shoal.kernels.rules import class_deficit
from shoal.kernels.space import SET
from shoal.policy import FlatRules


@bare
def copy_class(store: Store, c: int, to: int) -> None:
    """Copy what describes class `c` into another row, but for the histogram."""
    it, other = store.classes[c], store.classes[to]
    other.size = it.size
    other.loss = it.loss
    copy_box(store.box, c, to)


@bare
def touch(store: Store, c: int) -> None:
    """Keep what class `c` was before the step changes it."""
    it, desk = store.classes[c], store.desk
    if it.status == OPEN:
        it.status = CHANGED
        store.lists[desk.touched].touched = c
        desk.touched += 1
        copy_class(store, c, c + desk.old)


@bare
def count_in(table: Table, store: Store, c: int, point: int, amount: int) -> None:
    """Add `amount` records of a point (or take them away) in the size and histogram of class `c`."""
    bins, histogram = table.bins, store.histogram
    store.classes[c].size += amount
    for v in range(bins.shape[1]):
        b = bins[point, v]
        if b >= 0:
            histogram[c, b] += amount


@bare
def good(rules: FlatRules, store: Store, c: int) -> bool:
    """Whether class `c` satisfies the policy; without histograms the size decides."""
    size, histogram = store.classes[c].size, store.histogram
    if size < store.desk.k:
        return False
    store.desk.work += store.desk.asking
    return histogram.shape[1] == 0 or class_deficit(rules, size, histogram[c]) <= 0.0


@bare
def plan(store: Store, h: int, to: int, amount: int) -> None:
    """Plan that `amount` records of a holding go to class `to`."""
    entry = store.lists[store.desk.planned]
    entry.planned = h
    entry.to = to
    entry.amount = amount
    store.holdings[h].taken += amount
    store.desk.planned += 1


@bare
def tighten(gauge: Gauge, table: Table, store: Store, c: int) -> None:
    """Shrink the box of a class to the records that stay in it."""
    h, others = store.classes[c].head, np.int64(0)
    while h != NOBODY:
        it = store.holdings[h]
        if it.count > it.taken:
            row_join(gauge, store.box, c, table.codes, np.int64(it.tuple), others)
            others += 1
        store.desk.work += 1
        h = np.int64(it.next_in_class)


@bare
def finish(gauge: Gauge, table: Table, store: Store, accepted: bool) -> None:
    """Carry the plan out, or forget it; either way the draft is empty afterwards."""
    classes, lists, desk = store.classes, store.lists, store.desk
    fresh = desk.fresh
    for i in range(desk.planned):
        it = store.holdings[lists[i].planned]
        it.taken = 0
        if not accepted:
            amount, point = np.int64(lists[i].amount), np.int64(it.point)
            count_in(table, store, np.int64(it.home), point, amount)
            count_in(table, store, np.int64(lists[i].to), point, -amount)
    if accepted:
        if fresh != NOBODY:
            toggle(gauge, store, fresh, fresh)
            desk.live += 1
        for i in range(desk.planned):
            move(store, np.int64(lists[i].planned), np.int64(lists[i].to), np.int64(lists[i].amount))
    elif fresh != NOBODY:
        empty(store, fresh)
    if fresh != NOBODY:
        classes[fresh].status = OPEN
    for i in range(desk.touched):
        c = np.int64(lists[i].touched)
        if not accepted:
            copy_class(store, c + desk.old, c)
        else:
            toggle(gauge, store, c + desk.old, c)
            if classes[c].status == CLOSED:
                retire(store, c)
            else:
                toggle(gauge, store, c, c)
        classes[c].status = OPEN
    desk.touched = 0
    desk.planned = 0


@bare
def empty(store: Store, c: int) -> None:
    """Make `c` a class without records; nobody is counted in its histogram any more."""
    store.classes[c].size = 0
    store.classes[c].loss = 0.0


@bare
def retire(store: Store, c: int) -> None:
    """Class `c` is in use no more; the last one that is takes its place among the live ones."""
    classes, lists, desk = store.classes, store.lists, store.desk
    empty(store, c)
    desk.live -= 1
    place, end = classes[c].place, desk.live
    last = lists[end].live
    lists[place].live = last
    classes[last].place = place
    lists[end].live = c
    classes[c].place = end


@bare
def toggle(gauge: Gauge, store: Store, row: int, c: int) -> None:
    """Add class `c` to the sets of the codes that the box in `row` has, or take it out of them."""
    box, covers, wide = store.box, store.covers, store.desk.trial + 1
    if store.desk.narrow:
        return
    word = c >> 6
    bit = np.uint64(1) << np.uint64(c & 63)
    copy_box(box, row, wide)
    widen(gauge, box, wide)
    for a in range(len(gauge.attributes)):
        it = gauge.attributes[a]
        if it.kind != SET:
            for b in range(box[wide, it.slot] >> it.shift, (box[wide, it.slot + 1] >> it.shift) + 1):
                covers[it.masks + b, word] ^= bit
        else:
            last = NOBODY
            for code in range(it.codes):
                b = code >> it.shift
                if b != last and holds(box, wide, it.slot, code):
                    covers[it.masks + b, word] ^= bit
                    last = b


@entry
def cover(gauge: Gauge, store: Store) -> None:
    """Fill the sets of classes."""
    for c in range(store.desk.live):
        toggle(gauge, store, c, c)


@bare
def move(store: Store, h: int, to: int, amount: int) -> None:
    """Move records of a holding to another class."""
    classes, holdings, heads = store.classes, store.holdings, store.heads
    it, desk = holdings[h], store.desk
    t = it.tuple
    it.count -= amount
    target = np.int64(heads[t])
    while target != NOBODY and not (holdings[target].point == it.point and holdings[target].home == to):
        target = np.int64(holdings[target].next_in_tuple)
    known = target != NOBODY
    if it.count == 0:
        classes[it.home].head = unlink_from_class(holdings, h, classes[it.home].head)
        if known:
            heads[t] = unlink_from_tuple(holdings, h, np.int64(heads[t]))
            store.lists[desk.free].free = h
            desk.free += 1
        else:
            target = h
    elif not known:
        desk.free -= 1
        target = np.int64(store.lists[desk.free].free)
        holdings[target].point = it.point
        holdings[target].tuple = t
        holdings[target].count = 0
        link_in_tuple(holdings, target, np.int64(heads[t]))
        heads[t] = target
    holdings[target].count += amount
    if not known:
        holdings[target].home = to
        link_in_class(holdings, target, classes[to].head)
        classes[to].head = target


@bare
def link_in_class(holdings: Fields[Holding], h: int, first: int) -> None:
    """Put a holding before the first of its class."""
    holdings[h].next_in_class = first
    holdings[h].back_in_class = NOBODY
    if first != NOBODY:
        holdings[first].back_in_class = h


@bare
def link_in_tuple(holdings: Fields[Holding], h: int, first: int) -> None:
    """Put a holding before the first of its tuple."""
    holdings[h].next_in_tuple = first
    holdings[h].back_in_tuple = NOBODY
    if first != NOBODY:
        holdings[first].back_in_tuple = h


@bare
def unlink_from_class(holdings: Fields[Holding], h: int, first: int) -> int:
    """Take a holding out of its class; returns the first of the others."""
    following, before = np.int64(holdings[h].next_in_class), np.int64(holdings[h].back_in_class)
    if following != NOBODY:
        holdings[following].back_in_class = before
    if before == NOBODY:
        return following
    holdings[before].next_in_class = following
    return first


@bare
def unlink_from_tuple(holdings: Fields[Holding], h: int, first: int) -> int:
    """Take a holding out of its tuple; returns the first of the others."""
    following, before = np.int64(holdings[h].next_in_tuple), np.int64(holdings[h].back_in_tuple)
    if following != NOBODY:
        holdings[following].back_in_tuple = before
    if before == NOBODY:
        return following
    holdings[before].next_in_tuple = following
    return first
