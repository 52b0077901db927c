"""Single records of the box search: the class where one costs least, and records that change places."""

from __future__ import annotations

import numpy as np

from shoal.kernels.box_draft import count_in, plan, tighten, touch
from shoal.kernels.box_gauge import row_cost, row_growth, row_join
from shoal.kernels.box_propose import below, uniform
from shoal.kernels.box_types import CHANGED, CLOSED, NOBODY, OPEN, Class, Fields, Gauge, Ints, Shorts, Store, Table
from shoal.kernels.jit import bare
from shoal.kernels.space import popcount

# A chain of records that replace each other has at most so many links, and ends early as often as this: each link costs as
# much as the first, and all of them have to pay off together. Chosen by trying a few; no script here compares others.
LINKS, LOOSE = 4, 0.25
# The most of the near tuples that a replacement is not looked for in, so that it is not the same every time.
SKIPS = 0.5
# Operations that the budget counts for a shift, for a replacement, and for a search for a class without its sets.
SHIFT_WORK, REPLACEMENT_WORK, FIND_WORK = 120, 120, 110
# Where tables are large enough to be searched among near tuples alone, what is known of these is seldom in the cache.
NEAR_WORK = 60
# A record looks for a class among so many near tuples: more find none that costs less.
VISITS = 32
# The quasi-identifiers of an ordinary table: in wider ones an operation takes longer in proportion (`refine.effort`).
WIDTH = 8


@bare
def shift(gauge: Gauge, table: Table, store: Store, t: int, c: int) -> float:
    """Draft that records of tuple `t` leave class `c`, and return the change.

    They go where they cost least. If `c` is too small then, another record takes their place; if that makes the class it
    comes from too small, another takes its place, and so on. The class that the first went to may give one as well: a swap,
    or a ring. Whether the rest of the policy holds is for the caller to see.
    """
    classes, holdings, desk = store.classes, store.holdings, store.desk
    box, codes, nobody = store.box, table.codes, np.int64(NOBODY)
    h = np.int64(store.heads[t])
    while holdings[h].home != c:
        h = np.int64(holdings[h].next_in_tuple)
    amount = max(np.int64(1), min(np.int64(holdings[h].count), classes[c].size - desk.k))
    touch(store, c)
    # For the search alone: the record must not find the class that it leaves.
    classes[c].status = CLOSED
    target = find_class(gauge, table, store, t, amount)
    classes[c].status = CHANGED
    if target == NOBODY:
        return np.inf
    touch(store, target)
    hand_over(table, store, h, target, amount)
    row_join(gauge, box, target, codes, t, np.int64(1))
    tighten(gauge, table, store, c)
    needy, links = c, 0
    while needy != NOBODY and classes[needy].size < desk.k:
        links += 1
        enough = desk.k + 1 if links == LINKS or uniform(desk) < LOOSE else 0
        h = replacement(gauge, table, store, needy, target, enough)
        if h == NOBODY:
            return np.inf
        giver = np.int64(holdings[h].home)
        touch(store, giver)
        hand_over(table, store, h, needy, np.int64(1))
        row_join(gauge, box, needy, codes, np.int64(holdings[h].tuple), np.int64(1))
        tighten(gauge, table, store, giver)
        if giver == target:
            row_join(gauge, box, target, codes, t, classes[target].size - amount)
        needy = giver if giver != target else nobody
    desk.work += SHIFT_WORK
    return priced(gauge, store)


@bare
def priced(gauge: Gauge, store: Store) -> float:
    """Write down what the touched classes cost now; the change."""
    change = 0.0
    for i in range(store.desk.touched):
        c = np.int64(store.lists[i].touched)
        it, was = store.classes[c], store.classes[c + store.desk.old]
        it.loss = row_cost(gauge, store.box, c)
        change += it.size * it.loss - was.size * was.loss
    return change


@bare
def hand_over(table: Table, store: Store, h: int, to: int, amount: int) -> None:
    """Plan that records of a holding go to another class, and count them there."""
    it = store.holdings[h]
    plan(store, h, to, amount)
    count_in(table, store, np.int64(it.home), np.int64(it.point), -amount)
    count_in(table, store, to, np.int64(it.point), amount)


@bare
def replacement(gauge: Gauge, table: Table, store: Store, c: int, target: int, enough: int) -> int:
    """The holding of which a record costs class `c` least, near a random one that stays in it, some left out at random.

    It may come from `target`, or from a class that the step has not touched and that has `enough` records.
    """
    classes, holdings, desk = store.classes, store.holdings, store.desk
    near = table.near
    desk.work += REPLACEMENT_WORK
    best, middle = np.int64(NOBODY), random_tuple(store, c)
    if middle == NOBODY:
        return best
    price, size, cost = row_cost(gauge, store.box, c), classes[c].size + 1, np.inf
    skip = SKIPS * uniform(desk)
    for i in range(-1, near.shape[1]):
        t = np.int64(near[middle, i]) if i >= 0 else middle
        h = np.int64(store.heads[t]) if uniform(desk) >= skip else np.int64(NOBODY)
        while h != NOBODY:
            it = holdings[h]
            home = classes[it.home]
            free = home.status == OPEN and home.size >= enough
            if (free or it.home == target) and it.taken < it.count:
                base = price - home.loss
                offered = base + size * row_growth(gauge, store.box, c, table.codes, t, (cost - base) / size)
                if offered < cost:
                    best, cost = h, offered
            h = np.int64(it.next_in_tuple)
    return best


@bare
def random_tuple(store: Store, c: int) -> int:
    """The tuple of a random holding that stays in class `c`."""
    h, chosen, left = store.classes[c].head, np.int64(NOBODY), np.int64(0)
    while h != NOBODY:
        it = store.holdings[h]
        if it.count > it.taken:
            left += 1
            if below(store.desk, left) == 0:
                chosen = np.int64(it.tuple)
        h = np.int64(it.next_in_class)
    return chosen


@bare
def find_class(gauge: Gauge, table: Table, store: Store, t: int, left: int) -> int:
    """The class where `left` records of tuple `t` cost least: the new one, one that covers it, or one of near tuples."""
    classes, holdings, heads = store.classes, store.holdings, store.heads
    box, covers, desk = store.box, store.covers, store.desk
    codes, near = table.codes, table.near
    best, cost = desk.fresh, np.inf
    if best != NOBODY:
        cost = offer(gauge, box, classes, best, codes, t, left, cost)
    desk.searches += 1
    desk.work += FIND_WORK + (NEAR_WORK if desk.narrow else 0)
    if not desk.narrow:
        mark_covers(gauge, table, store, t)
        words = covers.shape[1]
        desk.work += words * min(WIDTH, len(gauge.attributes)) >> 4
        chosen, one = len(covers) - 1, np.uint64(1)
        for w in range(words):
            word = covers[chosen, w]
            while word:
                c = np.int64(64 * w + popcount(np.int64((word & (~word + one)) - one)))
                word &= word - one
                if left * classes[c].loss < cost and classes[c].status != CLOSED:
                    price = offer(gauge, box, classes, c, codes, t, left, cost)
                    if price < cost:
                        best, cost = c, price
    for i in range(-1, min(VISITS, near.shape[1])):
        h = heads[near[t, i] if i >= 0 else t]
        while h != NOBODY:
            c = np.int64(holdings[h].home)
            it = classes[c]
            if left * it.loss < cost and it.seen != desk.searches and it.status != CLOSED:
                it.seen = desk.searches
                price = offer(gauge, box, classes, c, codes, t, left, cost)
                if price < cost:
                    best, cost = c, price
            h = holdings[h].next_in_tuple
    return best


@bare
def mark_covers(gauge: Gauge, table: Table, store: Store, t: int) -> None:
    """Mark the classes that may cover tuple `t` in the last row of their sets."""
    covers = store.covers
    chosen, words = len(covers) - 1, covers.shape[1]
    for w in range(words):
        covers[chosen, w] = ~np.uint64(0)
    for a in range(len(gauge.attributes)):
        it = gauge.attributes[a]
        row = it.masks + (np.int64(table.codes[t, a]) >> it.shift)
        for w in range(words):
            covers[chosen, w] &= covers[row, w]


@bare
def offer(
    gauge: Gauge, box: Ints, classes: Fields[Class], c: int, codes: Shorts, t: int, left: int, most: float
) -> float:
    """What `left` records of tuple `t` cost in class `c`; any number of at least `most` beyond that."""
    base = left * classes[c].loss
    size = classes[c].size + left
    return base + size * row_growth(gauge, box, c, codes, t, (most - base) / size)
