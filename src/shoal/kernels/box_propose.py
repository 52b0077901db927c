"""Proposals of the box search: a random record, and a box around it."""

from __future__ import annotations

import numpy as np

from shoal.kernels.box_gauge import EPSILON, copy_box, row_cost, row_growth, row_join, widen
from shoal.kernels.box_types import NOBODY, Attribute, Desk, Fields, Gauge, Ints, Node, Store, Table
from shoal.kernels.jit import bare
from shoal.kernels.logs import power
from shoal.kernels.space import SET, TREE

# A changed box replaces its class as often as not: what it does not win then is free for others.
REPLACES = 0.5
# How often a record that loses nothing is put back: little can be won around it.
FREE = 0.9
# The most of the near tuples that a gathering leaves out. Without any left out, it would find the same box every time.
SKIPS = 0.6
# A generalization may cost between this much of its class's loss and LEAST + SPAN of it, and tries so many changes.
LEAST, SPAN, TRIES = 0.5, 0.7, 8
# A class that grows looks at so many tuples, the first half of them near ones.
LOOKS = 12
# How often a range without missing values comes to have them, and the most of the codes that a change passes over.
MISSES, LEAP = 0.05, 0.25


@bare
def uniform(desk: Desk) -> float:
    """A number in [0, 1), by xorshift64*."""
    x = desk.random
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    desk.random = x
    return np.float64((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@bare
def below(desk: Desk, n: int) -> int:
    """A whole number in 0 … n-1."""
    return np.int64(uniform(desk) * n)


@bare
def pick(table: Table, store: Store) -> tuple[int, int]:
    """The tuple and class of a random record: of two, the one in the dearer class."""
    records, holdings, classes, desk = table.records, store.holdings, store.classes, store.desk
    best_t, best_c = 0, NOBODY
    tries = 0
    while tries < 2:
        t = records[below(desk, len(records))]
        h = store.heads[t]
        chosen = h
        count = 0
        while h != NOBODY:
            count += 1
            if count > 1 and below(desk, count) == 0:
                chosen = h
            h = holdings[h].next_in_tuple
        c = holdings[chosen].home
        if best_c == NOBODY or classes[c].loss > classes[best_c].loss:
            best_t, best_c = t, c
        tries += 1
        if tries == 2 and classes[best_c].loss <= EPSILON and uniform(desk) < FREE:
            tries = 1
    return np.int64(best_t), np.int64(best_c)


@bare
def propose(gauge: Gauge, table: Table, store: Store, t: int, c: int, kind: float) -> bool:
    """Write a box around tuple `t` of class `c` into the trial row; whether it costs less, or replaces the class."""
    box, desk = store.box, store.desk
    replaced = False
    copy_box(box, c, desk.trial)
    if kind < desk.gathers:
        gather(gauge, table, store, t, store.classes[c].loss)
    elif kind < desk.changes:
        widen(gauge, box, desk.trial)
        for _ in range(1 + below(desk, 3)):
            perturb(gauge, table, store, t, 0.5)
        replaced = uniform(desk) < REPLACES
    elif kind < desk.generalizations:
        generalize(gauge, table, store, t, store.classes[c].loss)
    elif kind < desk.joins:
        for i in range(2 + below(desk, 3)):
            nearness = uniform(desk)
            other = table.near[t, np.int64(nearness * nearness * table.near.shape[1])] if i else t
            row_join(gauge, box, desk.trial, table.codes, np.int64(other), i)
    else:
        grow(gauge, table, store, t, c)
        replaced = True
    widen(gauge, box, desk.trial)
    desk.price = row_cost(gauge, box, desk.trial)
    desk.replaced = c if replaced else NOBODY
    return replaced or desk.price < store.classes[c].loss - EPSILON


@bare
def gather(gauge: Gauge, table: Table, store: Store, t: int, most: float) -> None:
    """Join near tuples to `t`, some left out at random, until k records are there that would gain or are to spare.

    The trial box stays as it was if it would cost `most` before.
    """
    box, codes, near = store.box, table.codes, table.near
    holdings, classes, desk = store.holdings, store.classes, store.desk
    copy = desk.trial + 1
    row_join(gauge, box, copy, codes, t, np.int64(0))
    price, have = 0.0, 0
    h = store.heads[t]
    while h != NOBODY:
        have += holdings[h].count
        h = holdings[h].next_in_tuple
    skip = SKIPS * uniform(desk)
    i = 0
    while i < near.shape[1] and have < desk.k:
        if uniform(desk) >= skip:
            other = np.int64(near[t, i])
            dearer = price + row_growth(gauge, box, copy, codes, other, most - price)
            if dearer < most - EPSILON:
                useful = 0
                h = store.heads[other]
                while h != NOBODY:
                    it = holdings[h]
                    home = classes[it.home]
                    surplus = it.count if home.loss >= dearer - EPSILON else home.size - desk.k
                    useful += max(0, min(it.count, surplus))
                    h = it.next_in_tuple
                if useful > 0:
                    row_join(gauge, box, copy, codes, other, np.int64(1))
                    price = dearer
                    have += useful
        i += 1
    desk.work += 4 * i
    if have >= desk.k:
        copy_box(box, copy, desk.trial)


@bare
def generalize(gauge: Gauge, table: Table, store: Store, t: int, loss: float) -> None:
    """Let tuple `t` grow at random into a box that costs about `loss`."""
    box, desk = store.box, store.desk
    most = loss * (LEAST + SPAN * uniform(desk))
    row_join(gauge, box, desk.trial, table.codes, t, np.int64(0))
    for _ in range(TRIES):
        copy_box(box, desk.trial, desk.trial + 1)
        perturb(gauge, table, store, t, 1.0)
        if row_cost(gauge, box, desk.trial) > most:
            copy_box(box, desk.trial + 1, desk.trial)


@bare
def grow(gauge: Gauge, table: Table, store: Store, t: int, c: int) -> None:
    """Let class `c` grow by the cheapest of a few tuples outside it, near ones and any."""
    near, records, desk = table.near, table.records, store.desk
    best = np.inf
    chosen = t
    for i in range(LOOKS):
        other = near[t, below(desk, near.shape[1])] if i < LOOKS // 2 else records[below(desk, len(records))]
        growth = row_growth(gauge, store.box, c, table.codes, np.int64(other), best)
        if EPSILON < growth < best:
            best, chosen = growth, np.int64(other)
    row_join(gauge, store.box, desk.trial, table.codes, chosen, np.int64(1))


@bare
def perturb(gauge: Gauge, table: Table, store: Store, t: int, upwards: float) -> None:
    """Change one attribute of the trial box a little, tuple `t` staying inside; it grows with probability `upwards`."""
    box, desk = store.box, store.desk
    a = below(desk, len(gauge.attributes))
    it = gauge.attributes[a]
    code = np.int64(table.codes[t, a])
    larger = uniform(desk) < upwards
    far = uniform(desk)
    if it.kind == SET:
        other = below(desk, it.codes)
        bit = np.int64(1) << (other & 63)
        if larger:
            box[desk.trial, it.slot + (other >> 6)] |= bit
        elif other != code:
            box[desk.trial, it.slot + (other >> 6)] &= ~bit
    elif it.kind == TREE:
        climb(gauge.nodes, it, box, desk.trial, code, larger)
    else:
        stretch(it, box, desk, code, larger, far)


@bare
def climb(nodes: Fields[Node], it: Attribute, box: Ints, c: int, code: int, larger: bool) -> None:
    """A node up or down the chain above a code: the first that is wider, or the last that is narrower, than the state."""
    lo, hi = box[c, it.slot], box[c, it.slot + 1]
    reach = hi - lo + 1 if larger else hi - lo
    node = code
    above = nodes[it.nodes + node].parent
    while above >= 0 and nodes[it.nodes + above].last - nodes[it.nodes + above].first < reach:
        node = above
        above = nodes[it.nodes + node].parent
    if larger and above >= 0:
        node = above
    if larger or lo < hi:
        box[c, it.slot] = nodes[it.nodes + node].first
        box[c, it.slot + 1] = nodes[it.nodes + node].last


@bare
def stretch(it: Attribute, box: Ints, desk: Desk, code: int, larger: bool, far: float) -> None:
    """Move one end of a range of the trial box, or let missing values in or out."""
    c, slot, top = desk.trial, it.slot, it.codes - 1
    lo, hi = box[c, slot], box[c, slot + 1]
    missing = it.missing == top
    if missing and (code == top or hi == top or (larger and far < MISSES)):
        box[c, slot] = top if code == top and not larger else 0
        box[c, slot + 1] = top if code == top or larger else top - 1
    else:
        # Steps of all sizes, up to a quarter of the codes.
        ranks = np.int64(power(1.0 + LEAP * it.codes, far))
        if uniform(desk) < 0.5:
            box[c, slot] = max(0, lo - ranks) if larger else min(code, lo + ranks)
        else:
            box[c, slot + 1] = min(top - 1 if missing else top, hi + ranks) if larger else max(code, hi - ranks)
