"""Single records of the box search: the class where one costs least, and records that change places."""

from __future__ import annotations

import numpy as np

from shoal.kernels.box_propose import below, uniform
from shoal.kernels.box_state import (
    CHANGED,
    CLASS,
    CLOSED,
    COUNT,
    HEAD,
    MASKS,
    NEXT_IN_CLASS,
    NEXT_IN_TUPLE,
    NOBODY,
    OLD_SIZE,
    OPEN,
    POINT,
    SEEN,
    SHIFT,
    SIZE,
    STAMP,
    STATUS,
    TAKEN,
    TOUCHED,
    TOUCHES,
    TUPLE,
    WORK,
    Floats,
    Ints,
    Shorts,
    Words,
    count_in,
    note,
    row_cost,
    row_growth,
    row_join,
    tighten,
    touch,
)
from shoal.kernels.jit import inner
from shoal.kernels.space import popcount

# A chain of records that replace each other has at most so many links, and ends early as often as this.
LINKS, LOOSE = 4, 0.25
# The most of the near tuples that a replacement is not looked for in.
SKIPS = 0.5


@inner
def shift(
    spec: Ints,
    losses: Floats,
    codes: Shorts,
    near: Shorts,
    bins: Shorts,
    box: Ints,
    loss: Floats,
    histogram: Shorts,
    klass: Ints,
    hold: Shorts,
    heads: Shorts,
    lists: Shorts,
    covers: Words,
    number: Ints,
    seed: Words,
    t: int,
    c: int,
    k: int,
) -> float:
    """Draft that records of tuple `t` leave class `c`, and return the change.

    They go where they cost least. If `c` is too small then, another record takes their place; if that makes the class it
    comes from too small, another takes its place, and so on. The class that the first went to may give one as well: a swap,
    or a ring. Whether the rest of the policy holds is for the caller to see.
    """
    h = np.int64(heads[t])
    while hold[h, CLASS] != c:
        h = np.int64(hold[h, NEXT_IN_TUPLE])
    amount = max(np.int64(1), min(np.int64(hold[h, COUNT]), klass[c, SIZE] - k))
    touch(box, loss, histogram, klass, number, c)
    # For the search alone: the record must not find the class that it leaves.
    klass[c, STATUS] = CLOSED
    nobody = np.int64(NOBODY)
    target = find_class(spec, losses, codes, near, box, loss, klass, hold, heads, covers, number, t, amount, nobody)
    klass[c, STATUS] = CHANGED
    if target == NOBODY:
        return np.inf
    touch(box, loss, histogram, klass, number, target)
    hand_over(bins, histogram, klass, hold, lists, number, h, target, amount)
    row_join(spec, box, target, codes, t, np.int64(1))
    tighten(spec, codes, box, hold, number, c, klass[c, HEAD])
    needy, links = c, 0
    while needy != NOBODY and klass[needy, SIZE] < k:
        links += 1
        enough = k + 1 if links == LINKS or uniform(seed) < LOOSE else 0
        h = replacement(spec, losses, codes, near, box, loss, klass, hold, heads, number, seed, needy, target, enough)
        if h == NOBODY:
            return np.inf
        giver = np.int64(hold[h, CLASS])
        touch(box, loss, histogram, klass, number, giver)
        hand_over(bins, histogram, klass, hold, lists, number, h, needy, np.int64(1))
        row_join(spec, box, needy, codes, np.int64(hold[h, TUPLE]), np.int64(1))
        tighten(spec, codes, box, hold, number, giver, klass[giver, HEAD])
        if giver == target:
            row_join(spec, box, target, codes, t, klass[target, SIZE] - amount)
        needy = giver if giver != target else nobody
    change = 0.0
    for i in range(number[TOUCHES]):
        d = klass[i, TOUCHED]
        loss[d] = row_cost(spec, losses, box, d)
        change += klass[d, SIZE] * loss[d] - klass[d, OLD_SIZE] * loss[d + len(klass)]
    number[WORK] += 120
    return change


@inner
def hand_over(
    bins: Shorts,
    histogram: Shorts,
    klass: Ints,
    hold: Shorts,
    lists: Shorts,
    number: Ints,
    h: int,
    to: int,
    amount: int,
) -> None:
    """Plan that records of a holding go to another class, and count them there."""
    note(lists, hold, number, h, to, amount)
    count_in(klass, histogram, bins, np.int64(hold[h, CLASS]), np.int64(hold[h, POINT]), -amount)
    count_in(klass, histogram, bins, to, np.int64(hold[h, POINT]), amount)


@inner
def replacement(
    spec: Ints,
    losses: Floats,
    codes: Shorts,
    near: Shorts,
    box: Ints,
    loss: Floats,
    klass: Ints,
    hold: Shorts,
    heads: Shorts,
    number: Ints,
    seed: Words,
    c: int,
    target: int,
    enough: int,
) -> int:
    """The holding of which a record costs class `c` least, near a random one that stays in it, some left out at random.

    It may come from `target`, or from a class that the step has not touched and that has `enough` records.
    """
    number[WORK] += 120
    h, middle, left = klass[c, HEAD], np.int64(NOBODY), np.int64(0)
    while h != NOBODY:
        if hold[h, COUNT] > hold[h, TAKEN]:
            left += 1
            if below(seed, left) == 0:
                middle = np.int64(hold[h, TUPLE])
        h = np.int64(hold[h, NEXT_IN_CLASS])
    best = np.int64(NOBODY)
    if middle == NOBODY:
        return best
    price, size, cost = row_cost(spec, losses, box, c), klass[c, SIZE] + 1, np.inf
    skip = SKIPS * uniform(seed)
    for i in range(-1, near.shape[1]):
        t = np.int64(near[middle, i]) if i >= 0 else middle
        h = np.int64(heads[t]) if uniform(seed) >= skip else np.int64(NOBODY)
        while h != NOBODY:
            d = np.int64(hold[h, CLASS])
            free = klass[d, STATUS] == OPEN and klass[d, SIZE] >= enough
            if (free or d == target) and hold[h, TAKEN] < hold[h, COUNT]:
                base = price - loss[d]
                offered = base + size * row_growth(spec, losses, box, c, codes, t, (cost - base) / size)
                if offered < cost:
                    best, cost = h, offered
            h = np.int64(hold[h, NEXT_IN_TUPLE])
    return best


@inner
def find_class(
    spec: Ints,
    losses: Floats,
    codes: Shorts,
    near: Shorts,
    box: Ints,
    loss: Floats,
    klass: Ints,
    hold: Shorts,
    heads: Shorts,
    covers: Words,
    number: Ints,
    t: int,
    left: int,
    fresh: int,
) -> int:
    """The class where `left` records of tuple `t` cost least: the new one, one that covers it, or one of near tuples."""
    best, cost = fresh, np.inf
    if fresh != NOBODY:
        cost = offer(spec, losses, codes, box, loss, klass, t, left, fresh, cost)
    chosen, words = len(covers) - 1, covers.shape[1]
    for w in range(words):
        covers[chosen, w] = ~np.uint64(0)
    for a in range(len(spec)):
        row = spec[a, MASKS] + (np.int64(codes[t, a]) >> spec[a, SHIFT])
        for w in range(words):
            covers[chosen, w] &= covers[row, w]
    number[STAMP] += 1
    number[WORK] += 110 + (words * len(spec) >> 4)
    one = np.uint64(1)
    for w in range(words):
        word = covers[chosen, w]
        while word:
            c = np.int64(64 * w + popcount(np.int64((word & (~word + one)) - one)))
            word &= word - one
            if left * loss[c] < cost and klass[c, STATUS] != CLOSED:
                price = offer(spec, losses, codes, box, loss, klass, t, left, c, cost)
                if price < cost:
                    best, cost = c, price
    for i in range(-1, near.shape[1]):
        h = heads[near[t, i] if i >= 0 else t]
        while h != NOBODY:
            c = np.int64(hold[h, CLASS])
            if left * loss[c] < cost and klass[c, SEEN] != number[STAMP] and klass[c, STATUS] != CLOSED:
                klass[c, SEEN] = number[STAMP]
                price = offer(spec, losses, codes, box, loss, klass, t, left, c, cost)
                if price < cost:
                    best, cost = c, price
            h = hold[h, NEXT_IN_TUPLE]
    return best


@inner
def offer(
    spec: Ints,
    losses: Floats,
    codes: Shorts,
    box: Ints,
    loss: Floats,
    klass: Ints,
    t: int,
    left: int,
    c: int,
    most: float,
) -> float:
    """What `left` records of tuple `t` cost in class `c`; any number of at least `most` beyond that."""
    base = left * loss[c]
    size = klass[c, SIZE] + left
    return base + size * row_growth(spec, losses, box, c, codes, t, (most - base) / size)
