"""The steps of the box search: propose a box, let it win records, repair what it broke, keep or undo."""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.kernels.box_propose import EPSILON, SHIFTS, pick, propose, uniform
from shoal.kernels.box_shift import find_class, shift
from shoal.kernels.box_state import (
    CLASS,
    CLASSES,
    CLOSED,
    CODES,
    COUNT,
    FOUND,
    FOUNDS,
    HEAD,
    KIND,
    LIVE,
    MASKS,
    NEXT_IN_CLASS,
    NEXT_IN_TUPLE,
    NOBODY,
    OLD_SIZE,
    OPEN,
    PARTIAL,
    PLAN,
    PLANS,
    POINT,
    SHIFT,
    SIZE,
    SLOT,
    SPARE,
    SPARES,
    STATUS,
    TAKEN,
    TOUCHED,
    TOUCHES,
    TUPLE,
    WORK,
    Floats,
    Gauge,
    Ints,
    Shorts,
    Store,
    Table,
    Words,
    copy_row,
    count_in,
    finish,
    good,
    holds,
    note,
    row_cost,
    row_covers,
    row_join,
    tighten,
    touch,
)
from shoal.kernels.jit import inner
from shoal.kernels.logs import log, power
from shoal.kernels.rules import class_deficit
from shoal.kernels.space import SET, popcount
from shoal.policy import FlatRules

# A donor that would break is closed with the share it loses to this power: the more it loses, the likelier.
DISSOLVES = 0.7


@njit(cache=True, nogil=True)
def search(
    gauge: Gauge,
    rules: FlatRules,
    table: Table,
    store: Store,
    seed: Words,
    k: int,
    closed_up: bool,
    heat: float,
    until: int,
) -> float:
    """Steps until the work counter reaches `until`; returns the change of the total loss.

    Work is counted in operations of about the same length. `closed_up`: good classes stay good whatever joins them.
    """
    # By threes at most: from four names on, Python makes a tuple, and one of arrays takes long to compile.
    spec, losses, tree = gauge.spec, gauge.losses, gauge.tree
    codes, records, bins = table.codes, table.record_tuple, table.bins
    near, masks, shares = table.near, table.masks, table.shares
    box, loss, histogram = store.box, store.loss, store.histogram
    klass, hold, heads = store.klass, store.hold, store.tuple_head
    lists, covers, number = store.lists, store.covers, store.number
    trial = len(box) - 2
    total = 0.0
    while number[WORK] < until:
        number[WORK] += 60
        limit = -heat * log(1.0 - uniform(seed))
        t, c = pick(records, heads, hold, loss, seed)
        kind = uniform(seed)
        change, fresh = np.inf, np.int64(NOBODY)
        if kind < shares[SHIFTS]:
            change = shift(
                spec, losses, codes, near, bins, box, loss, histogram, klass, hold, heads, lists, covers,
                number, seed, t, c, k,
            )  # fmt: skip
        else:
            replaced = propose(
                spec, losses, tree, codes, near, records, box, loss, klass, hold, heads, number, shares, seed, kind,
                t, c, trial, k,
            )  # fmt: skip
            price = row_cost(spec, losses, box, trial)
            kept = c if replaced else np.int64(NOBODY)
            inside = 0
            if replaced or price < loss[c] - EPSILON:
                inside = scan(spec, codes, masks, box, hold, heads, klass, loss, lists, number, price, kept, trial)
            if inside >= k:
                fresh = klass[number[CLASSES], LIVE]
                klass[fresh, STATUS] = PARTIAL
                if take(rules, bins, box, loss, histogram, klass, hold, lists, number, seed, fresh, kept, k):
                    # From here on numbers are exact, and what follows only adds to the change.
                    change = settle(spec, losses, codes, box, loss, klass, hold, lists, number, fresh, limit)
                    change = rehouse(
                        spec, losses, codes, near, bins, box, loss, histogram, klass, hold, heads, lists, covers,
                        number, fresh, change, limit,
                    )  # fmt: skip
        if number[TOUCHES] > 0:
            accepted = change <= limit
            if accepted and not (closed_up and fresh != NOBODY):
                accepted = fresh == NOBODY or good(rules, klass, histogram, fresh, k)
                for i in range(number[TOUCHES]):
                    d = klass[i, TOUCHED]
                    accepted = accepted and (klass[d, STATUS] == CLOSED or good(rules, klass, histogram, d, k))
            finish(spec, tree, box, loss, histogram, klass, hold, heads, lists, covers, number, fresh, accepted)
            total += change if accepted else 0.0
    return total


@inner
def sift(spec: Ints, masks: Words, box: Ints, trial: int) -> bool:
    """Mark the tuples that may lie in the trial box in the last row of the masks; whether it is certain that they do."""
    marked, scratch = len(masks) - 1, len(masks) - 2
    words = masks.shape[1]
    exact = True
    for w in range(words):
        masks[marked, w] = ~np.uint64(0)
    for a in range(len(spec)):
        slot, first, shift, codes = spec[a, SLOT], spec[a, MASKS], spec[a, SHIFT], spec[a, CODES]
        if spec[a, KIND] == SET:
            for w in range(words):
                masks[scratch, w] = 0
            for code in range(codes):
                if holds(box, trial, slot, code):
                    row = first + (code >> shift)
                    for w in range(words):
                        masks[scratch, w] |= masks[row, w]
            for w in range(words):
                masks[marked, w] &= masks[scratch, w]
            exact = exact and shift == 0
        elif box[trial, slot] > 0 or box[trial, slot + 1] < codes - 1:
            before = first + (box[trial, slot] >> shift)
            upto = first + (box[trial, slot + 1] >> shift) + 1
            for w in range(words):
                masks[marked, w] &= masks[upto, w] & ~masks[before, w]
            exact = exact and shift == 0
    return exact


@inner
def scan(
    spec: Ints,
    codes: Shorts,
    masks: Words,
    box: Ints,
    hold: Shorts,
    heads: Shorts,
    klass: Ints,
    loss: Floats,
    lists: Shorts,
    number: Ints,
    price: float,
    kept: int,
    trial: int,
) -> int:
    """List the holdings in the trial box: those that would pay no more in it (or are in class `kept`), and the others.

    Returns the number of records in the box, or 0 when there is nothing to win.
    """
    exact = sift(spec, masks, box, trial)
    marked, words = len(masks) - 1, masks.shape[1]
    one = np.uint64(1)
    found, spare, inside, own = 0, 0, 0, 0
    for w in range(words):
        word = masks[marked, w]
        while word:
            t = 64 * w + popcount(np.int64((word & (~word + one)) - one))
            word &= word - one
            if t < len(heads) and (exact or row_covers(spec, box, trial, codes, t)):
                h = heads[t]
                while h != NOBODY:
                    c = hold[h, CLASS]
                    inside += hold[h, COUNT]
                    if c == kept or loss[c] >= price - EPSILON:
                        lists[found, FOUND] = h
                        found += 1
                        own += hold[h, COUNT] if c == kept else 0
                    else:
                        lists[spare, SPARE] = h
                        spare += 1
                    h = hold[h, NEXT_IN_TUPLE]
    number[FOUNDS] = found
    number[SPARES] = spare
    number[WORK] += found + spare + (3 * words * len(spec) >> 5)
    same = kept != NOBODY and own == klass[kept, SIZE] and inside == own
    return 0 if same or found == 0 else inside


@inner
def take(
    rules: FlatRules,
    bins: Shorts,
    box: Ints,
    loss: Floats,
    histogram: Shorts,
    klass: Ints,
    hold: Shorts,
    lists: Shorts,
    number: Ints,
    seed: Words,
    fresh: int,
    kept: int,
    k: int,
) -> bool:
    """Draft the new class; whether it satisfies the policy.

    It gets what was found. A donor that would break is closed, or gives only as much as leaves it good. If the new class
    is not good then, it is filled with surplus records inside its box: what helps most, from the dearest class.
    """
    founds, spares = number[FOUNDS], number[SPARES]
    for i in range(founds):
        h = np.int64(lists[i, FOUND])
        c = np.int64(hold[h, CLASS])
        if klass[c, STATUS] == OPEN:
            touch(box, loss, histogram, klass, number, c)
        count_in(klass, histogram, bins, c, np.int64(hold[h, POINT]), -np.int64(hold[h, COUNT]))
    for i in range(number[TOUCHES]):
        c = klass[i, TOUCHED]
        if c == kept or klass[c, SIZE] == 0:
            klass[c, STATUS] = CLOSED
        elif not good(rules, klass, histogram, c, k):
            share = 1.0 - klass[c, SIZE] / klass[c, OLD_SIZE]
            klass[c, STATUS] = CLOSED if uniform(seed) < power(share, DISSOLVES) else PARTIAL
            if klass[c, STATUS] == PARTIAL:
                klass[c, SIZE] = klass[c, OLD_SIZE]
                copy_row(box, loss, histogram, c + len(klass), c)
    only_size = bins.shape[1] == 0
    i, h, satisfied = 0, np.int64(0), False
    while i < founds or (h != NOBODY and not satisfied):
        most = np.int64(0)
        if i < founds:
            h = np.int64(lists[i, FOUND])
            most = np.int64(hold[h, COUNT])
        else:
            h = np.int64(NOBODY)
            best, dearest = 0.0, 0.0
            deficit = 1.0 if only_size else class_deficit(rules, klass[fresh, SIZE], histogram[fresh])
            for j in range(spares):
                other = np.int64(lists[j, SPARE])
                c, point = np.int64(hold[other, CLASS]), np.int64(hold[other, POINT])
                if klass[c, SIZE] > k and hold[other, TAKEN] < hold[other, COUNT] and klass[c, STATUS] != PARTIAL:
                    gain = deficit
                    if not only_size:
                        count_in(klass, histogram, bins, fresh, point, np.int64(1))
                        gain -= class_deficit(rules, klass[fresh, SIZE], histogram[fresh])
                        count_in(klass, histogram, bins, fresh, point, np.int64(-1))
                    if gain > best or (gain > 0.0 and gain == best and loss[c] > dearest):
                        h, best, dearest = other, gain, loss[c]
            if h != NOBODY:
                most = np.int64(1)
                if only_size:
                    most = min(k - klass[fresh, SIZE], np.int64(hold[h, COUNT] - hold[h, TAKEN]))
            number[WORK] += spares >> 2 if only_size else spares
        if most > 0:
            c, point = np.int64(hold[h, CLASS]), np.int64(hold[h, POINT])
            if i >= founds or klass[c, STATUS] == PARTIAL:
                touch(box, loss, histogram, klass, number, c)
                most = max(np.int64(0), min(most, klass[c, SIZE] - k))
                count_in(klass, histogram, bins, c, point, -most)
                while most > 0 and not good(rules, klass, histogram, c, k):
                    count_in(klass, histogram, bins, c, point, np.int64(1))
                    most -= 1
                if most == 0 and i >= founds:
                    klass[c, STATUS] = PARTIAL
            if most > 0:
                note(lists, hold, number, h, fresh, most)
                count_in(klass, histogram, bins, fresh, point, most)
        i += 1
        if i >= founds:
            satisfied = good(rules, klass, histogram, fresh, k)
    number[WORK] += 10 * number[TOUCHES]
    return satisfied and (number[TOUCHES] > 1 or klass[fresh, SIZE] < klass[klass[0, TOUCHED], OLD_SIZE])


@inner
def settle(
    spec: Ints,
    losses: Floats,
    codes: Shorts,
    box: Ints,
    loss: Floats,
    klass: Ints,
    hold: Shorts,
    lists: Shorts,
    number: Ints,
    fresh: int,
    limit: float,
) -> float:
    """Tighten the new class and the donors that stay; what the step changes so far. Stops past `limit`."""
    for i in range(number[PLANS]):
        row_join(spec, box, fresh, codes, np.int64(hold[lists[i, PLAN], TUPLE]), i)
    loss[fresh] = row_cost(spec, losses, box, fresh)
    change = klass[fresh, SIZE] * loss[fresh]
    for i in range(number[TOUCHES]):
        c = klass[i, TOUCHED]
        change -= klass[c, OLD_SIZE] * loss[c + len(klass)]
    i = 0
    while i < number[TOUCHES] and change <= limit:
        c = klass[i, TOUCHED]
        if klass[c, STATUS] != CLOSED:
            tighten(spec, codes, box, hold, number, c, klass[c, HEAD])
            loss[c] = row_cost(spec, losses, box, c)
            change += klass[c, SIZE] * loss[c]
        i += 1
    return change


@inner
def rehouse(
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
    fresh: int,
    change: float,
    limit: float,
) -> float:
    """Send the records left in closing classes to the classes where they cost least. Stops past `limit`."""
    donors = number[TOUCHES]
    i = 0
    while i < donors and change <= limit:
        closing = klass[i, TOUCHED]
        h = klass[closing, HEAD] if klass[closing, STATUS] == CLOSED else np.int64(NOBODY)
        while h != NOBODY and change <= limit:
            left = np.int64(hold[h, COUNT] - hold[h, TAKEN])
            if left > 0:
                t = np.int64(hold[h, TUPLE])
                best = find_class(
                    spec, losses, codes, near, box, loss, klass, hold, heads, covers, number, t, left, fresh
                )
                touch(box, loss, histogram, klass, number, best)
                change -= klass[best, SIZE] * loss[best]
                row_join(spec, box, best, codes, t, klass[best, SIZE])
                note(lists, hold, number, h, best, left)
                count_in(klass, histogram, bins, best, np.int64(hold[h, POINT]), left)
                loss[best] = row_cost(spec, losses, box, best)
                change += klass[best, SIZE] * loss[best]
            h = np.int64(hold[h, NEXT_IN_CLASS])
        i += 1
    return change
