"""The steps of the box search: propose a box, let it win records, repair what it broke, keep or undo."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.kernels.box_state import (
    BUCKETS,
    CHANGED,
    CLASS,
    CLASSES,
    CLOSED,
    CODES,
    COUNT,
    FIRST,
    FOUND,
    FOUNDS,
    HEAD,
    KIND,
    LAST,
    LIVE,
    MASKS,
    MISSING,
    NEXT_IN_CLASS,
    NEXT_IN_TUPLE,
    NOBODY,
    NODES,
    OLD_SIZE,
    OPEN,
    PARENT,
    PARTIAL,
    PLAN,
    PLANS,
    POINT,
    SEEN,
    SIZE,
    SLOT,
    SPARE,
    SPARES,
    STAMP,
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
    count_in,
    finish,
    good,
    lowest,
    note,
    restore,
    row_cost,
    row_covers,
    row_growth,
    row_join,
    tighten,
    touch,
)
from shoal.kernels.rules import FlatRules, class_deficit
from shoal.kernels.space import SET, TREE, popcount

Seed = NDArray[np.uint64]
EPSILON = 1e-9


@njit(cache=True, nogil=True)
def search(
    gauge: Gauge,
    rules: FlatRules,
    table: Table,
    store: Store,
    seed: Seed,
    k: int,
    closed_up: bool,
    heat: float,
    budget: int,
    until: int,
    par: Floats,
    stat: Ints,
) -> float:
    """Steps until the work counter reaches `until`; returns the change of the total loss."""
    spec, losses, tree = gauge.spec, gauge.losses, gauge.tree
    codes, record_tuple, bins, near, masks = table.codes, table.record_tuple, table.bins, table.near, table.masks
    box, loss, histogram, klass, hold, tuple_head, lists, number = (
        store.box,
        store.loss,
        store.histogram,
        store.klass,
        store.hold,
        store.tuple_head,
        store.lists,
        store.number,
    )
    covers = store.covers
    total = 0.0
    trial = len(box) - 2
    while number[WORK] < until:
        number[WORK] += 60
        stat[0] += 1
        rest = 1.0 - number[WORK] / budget
        limit = -heat * rest * rest * np.log(1.0 - uniform(seed))
        accepted = False
        t, c = pick(record_tuple, tuple_head, hold, loss, seed, np.int64(par[0]))
        if uniform(seed) < par[13]:
            stat[8] += 1
            touch(box, loss, histogram, klass, number, c)
            klass[c, STATUS] = CLOSED
            klass[c, SIZE] = 0
            change = rehouse(
                spec,
                losses,
                codes,
                near,
                bins,
                box,
                loss,
                histogram,
                klass,
                hold,
                tuple_head,
                lists,
                number,
                covers,
                seed,
                np.int64(NOBODY),
                -klass[c, OLD_SIZE] * loss[c],
                limit,
                par,
            )
            accepted = (
                change <= limit
                and number[CLASSES] > 1
                and (closed_up or all_good(rules, klass, histogram, number, np.int64(NOBODY), k))
            )
            if accepted:
                total += change
                stat[9] += 1
            finish(
                spec,
                tree,
                covers,
                box,
                loss,
                histogram,
                klass,
                hold,
                tuple_head,
                lists,
                number,
                np.int64(NOBODY),
                accepted,
            )
            continue
        if uniform(seed) < par[14]:
            spare = klass[c, SIZE] - k
            if spare > 0:
                stat[10] += 1
                h = np.int64(tuple_head[t])
                while hold[h, CLASS] != c:
                    h = np.int64(hold[h, NEXT_IN_TUPLE])
                amount = min(spare, np.int64(hold[h, COUNT]))
                touch(box, loss, histogram, klass, number, c)
                amount = release(rules, klass, histogram, bins, c, np.int64(hold[h, POINT]), amount, k)
                if amount > 0:
                    klass[c, STATUS] = CLOSED
                    best = find_class(
                        spec,
                        losses,
                        codes,
                        near,
                        box,
                        loss,
                        klass,
                        hold,
                        tuple_head,
                        number,
                        covers,
                        t,
                        amount,
                        np.int64(NOBODY),
                        False,
                        par,
                    )
                    klass[c, STATUS] = CHANGED
                    if best != NOBODY:
                        touch(box, loss, histogram, klass, number, best)
                        change = -klass[best, SIZE] * loss[best] - klass[c, OLD_SIZE] * loss[c]
                        note(lists, hold, number, h, best, amount)
                        count_in(klass, histogram, bins, best, np.int64(hold[h, POINT]), amount)
                        row_join(spec, box, best, codes, t, False)
                        loss[best] = row_cost(spec, losses, box, best)
                        change += klass[best, SIZE] * loss[best]
                        tighten(spec, codes, box, hold, number, c, klass[c, HEAD])
                        loss[c] = row_cost(spec, losses, box, c)
                        change += klass[c, SIZE] * loss[c]
                        accepted = change <= limit and (
                            closed_up or all_good(rules, klass, histogram, number, np.int64(NOBODY), k)
                        )
                        if accepted:
                            total += change
                            stat[11] += 1
                finish(
                    spec,
                    tree,
                    covers,
                    box,
                    loss,
                    histogram,
                    klass,
                    hold,
                    tuple_head,
                    lists,
                    number,
                    np.int64(NOBODY),
                    accepted,
                )
            continue
        replaced = propose(spec, losses, tree, codes, near, record_tuple, box, loss, seed, t, c, trial, par)
        widen(spec, tree, box, trial)
        price = row_cost(spec, losses, box, trial)
        fresh = klass[number[CLASSES], LIVE]
        kept = c if replaced else NOBODY
        accepted = False
        change = 0.0
        if replaced or price < loss[c] - EPSILON:
            stat[1] += 1
            if (
                scan(spec, codes, masks, box, hold, tuple_head, klass, loss, lists, number, price, kept, trial) >= k
                and number[FOUNDS] > 0
            ):
                stat[2] += 1
                klass[fresh, STATUS] = PARTIAL
                if take(rules, bins, box, loss, histogram, klass, hold, lists, number, seed, fresh, kept, k, par):
                    stat[3] += 1
                    # From here on every number is exact, and what follows only adds to it.
                    change = settle(spec, losses, codes, box, loss, klass, hold, lists, number, fresh, limit)
                    if change <= limit:
                        stat[4] += 1
                        change = rehouse(
                            spec,
                            losses,
                            codes,
                            near,
                            bins,
                            box,
                            loss,
                            histogram,
                            klass,
                            hold,
                            tuple_head,
                            lists,
                            number,
                            covers,
                            seed,
                            fresh,
                            change,
                            limit,
                            par,
                        )
                        stat[5] += change <= limit
                    accepted = change <= limit and (closed_up or all_good(rules, klass, histogram, number, fresh, k))
                klass[fresh, STATUS] = OPEN
                if accepted:
                    number[CLASSES] += 1
                    total += change
                    stat[6] += 1
                else:
                    klass[fresh, SIZE] = 0
                    for v in range(histogram.shape[1]):
                        histogram[fresh, v] = 0
                finish(
                    spec, tree, covers, box, loss, histogram, klass, hold, tuple_head, lists, number, fresh, accepted
                )
    return total


@njit(cache=True, nogil=True)
def uniform(seed: Seed) -> float:
    """A number in [0, 1) (xorshift64*)."""
    x = seed[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    seed[0] = x
    return np.float64((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def below(seed: Seed, n: int) -> int:
    """A whole number in 0 … n-1."""
    return np.int64(uniform(seed) * n)


@njit(cache=True, nogil=True)
def pick(
    record_tuple: Shorts, tuple_head: Shorts, hold: Shorts, loss: Floats, seed: Seed, tries: int
) -> tuple[int, int]:
    """A tuple and one of its classes, preferring dear classes."""
    best_t, best_c = 0, NOBODY
    for _ in range(tries):
        t = record_tuple[below(seed, len(record_tuple))]
        h = tuple_head[t]
        chosen = h
        count = 0
        while h != NOBODY:
            count += 1
            if count > 1 and below(seed, count) == 0:
                chosen = h
            h = hold[h, NEXT_IN_TUPLE]
        c = hold[chosen, CLASS]
        if best_c == NOBODY or loss[c] > loss[best_c]:
            best_t, best_c = t, c
    return np.int64(best_t), np.int64(best_c)


@njit(cache=True, nogil=True)
def propose(
    spec: Ints,
    losses: Floats,
    tree: Ints,
    codes: Shorts,
    near: Shorts,
    record_tuple: Shorts,
    box: Ints,
    loss: Floats,
    seed: Seed,
    t: int,
    c: int,
    trial: int,
    par: Floats,
) -> bool:
    """Write a box around tuple `t` into the trial row; whether it replaces class `c`."""
    u = uniform(seed)
    begin = True
    more = False
    width = box.shape[1]
    if u < par[1]:
        for w in range(width):
            box[trial, w] = box[c, w]
        widen(spec, tree, box, trial)
        for _ in range(1 + below(seed, 3)):
            perturb(spec, tree, codes, box, seed, t, trial, more)
        return uniform(seed) < par[5]
    if u < par[2]:
        target = loss[c] * (par[6] + par[7] * uniform(seed))
        row_join(spec, box, trial, codes, t, begin)
        for _ in range(8):
            for w in range(width):
                box[trial + 1, w] = box[trial, w]
            perturb(spec, tree, codes, box, seed, t, trial, begin)
            if row_cost(spec, losses, box, trial) > target:
                for w in range(width):
                    box[trial, w] = box[trial + 1, w]
        return False
    if u < par[3]:
        row_join(spec, box, trial, codes, t, begin)
        for _ in range(1 + below(seed, 3)):
            z = uniform(seed)
            row_join(spec, box, trial, codes, np.int64(near[t, np.int64(z * z * near.shape[1])]), more)
        return False
    best = np.inf
    chosen = t
    for i in range(12):
        if i < 6:
            other = np.int64(near[t, below(seed, near.shape[1])])
        else:
            other = np.int64(record_tuple[below(seed, len(record_tuple))])
        growth = row_growth(spec, losses, box, c, codes, other, best)
        if growth < best and growth > EPSILON:
            best = growth
            chosen = other
    for w in range(width):
        box[trial, w] = box[c, w]
    row_join(spec, box, trial, codes, chosen, more)
    return True


@njit(cache=True, nogil=True)
def widen(spec: Ints, tree: Ints, box: Ints, trial: int) -> None:
    """Grow a row as far as it costs nothing: a code range of a taxonomy to its node, missing to all."""
    for a in range(len(spec)):
        slot = spec[a, SLOT]
        if spec[a, KIND] != SET and box[trial, slot] < box[trial, slot + 1]:
            if spec[a, KIND] == TREE:
                begin = spec[a, NODES]
                node = begin + lowest(tree, begin, box[trial, slot], box[trial, slot + 1])
                box[trial, slot] = tree[node, FIRST]
                box[trial, slot + 1] = tree[node, LAST]
            elif box[trial, slot + 1] == spec[a, MISSING]:
                box[trial, slot] = 0


@njit(cache=True, nogil=True)
def perturb(spec: Ints, tree: Ints, codes: Shorts, box: Ints, seed: Seed, t: int, trial: int, up: bool) -> None:
    """Change one attribute of a row a little, tuple `t` staying inside."""
    a = below(seed, len(spec))
    slot = spec[a, SLOT]
    code = np.int64(codes[t, a])
    grow = up or uniform(seed) < 0.5
    if spec[a, KIND] == SET:
        other = below(seed, spec[a, CODES])
        if grow:
            box[trial, slot + (other >> 6)] |= np.int64(1) << (other & 63)
        elif other != code:
            box[trial, slot + (other >> 6)] &= ~(np.int64(1) << (other & 63))
        return
    lo, hi = box[trial, slot], box[trial, slot + 1]
    if spec[a, KIND] == TREE:
        begin = spec[a, NODES]
        if grow:
            node = lo
            while node >= 0 and tree[begin + node, LAST] - tree[begin + node, FIRST] <= hi - lo:
                node = tree[begin + node, PARENT]
            if node >= 0:
                box[trial, slot] = tree[begin + node, FIRST]
                box[trial, slot + 1] = tree[begin + node, LAST]
        elif lo < hi:
            node = code
            above = tree[begin + node, PARENT]
            while tree[begin + above, LAST] - tree[begin + above, FIRST] < hi - lo:
                node = above
                above = tree[begin + node, PARENT]
            box[trial, slot] = tree[begin + node, FIRST]
            box[trial, slot + 1] = tree[begin + node, LAST]
        return
    top = spec[a, CODES] - 1
    if spec[a, MISSING] == top:
        if code == top or hi == top or (grow and uniform(seed) < 0.05):
            box[trial, slot] = 0 if grow or code < top else top
            box[trial, slot + 1] = top if grow or code == top else top - 1
            return
        top -= 1
    reach = np.int64(np.exp(uniform(seed) * np.log(1.0 + 0.25 * spec[a, CODES])))
    if uniform(seed) < 0.5:
        box[trial, slot] = max(0, lo - reach) if grow else min(code, lo + reach)
    else:
        box[trial, slot + 1] = min(top, hi + reach) if grow else max(code, hi - reach)


@njit(cache=True, nogil=True)
def sift(spec: Ints, masks: Words, box: Ints, trial: int) -> bool:
    """Mark the tuples that lie in the trial box, or may; whether it is certain."""
    exact = True
    last = len(masks) - 1
    words = masks.shape[1]
    for w in range(words):
        masks[last, w] = ~np.uint64(0)
    for a in range(len(spec)):
        slot, first, buckets, codes = spec[a, SLOT], spec[a, MASKS], spec[a, BUCKETS], spec[a, CODES]
        if spec[a, KIND] != SET:
            lo, hi = box[trial, slot], box[trial, slot + 1]
            if lo > 0 or hi < codes - 1:
                exact = exact and buckets == codes
                lo = first + lo * buckets // codes
                hi = first + hi * buckets // codes + 1
                for w in range(words):
                    masks[last, w] &= masks[hi, w] & ~masks[lo, w]
        else:
            exact = False
    return exact


@njit(cache=True, nogil=True)
def scan(
    spec: Ints,
    codes: Shorts,
    masks: Words,
    box: Ints,
    hold: Shorts,
    tuple_head: Shorts,
    klass: Ints,
    loss: Floats,
    lists: Shorts,
    number: Ints,
    price: float,
    kept: int,
    trial: int,
) -> int:
    """Collect the holdings inside the trial box: those that would pay less in it, and those that could help."""
    exact = sift(spec, masks, box, trial)
    found, spare, inside, visited, own, others = 0, 0, 0, 0, 0, 0
    m = len(tuple_head)
    one = np.uint64(1)
    last = len(masks) - 1
    for w in range(masks.shape[1]):
        word = masks[last, w]
        while word:
            t = 64 * w + popcount(np.int64((word & (~word + one)) - one))
            word &= word - one
            if t < m and (exact or row_covers(spec, box, trial, codes, t)):
                h = tuple_head[t]
                while h != NOBODY:
                    visited += 1
                    c = hold[h, CLASS]
                    inside += hold[h, COUNT]
                    if loss[c] >= price - EPSILON or c == kept:
                        lists[found, FOUND] = h
                        found += 1
                        if c == kept:
                            own += hold[h, COUNT]
                        else:
                            others += 1
                    else:
                        lists[spare, SPARE] = h
                        spare += 1
                    h = hold[h, NEXT_IN_TUPLE]
    number[FOUNDS] = found
    if kept != NOBODY and others == 0 and own == klass[kept, SIZE]:
        inside = 0
    number[SPARES] = spare
    number[WORK] += visited + masks.shape[1] // 6
    return inside


@njit(cache=True, nogil=True)
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
    seed: Seed,
    fresh: int,
    kept: int,
    k: int,
    par: Floats,
) -> bool:
    """Move what was found into the new class; a donor that would break is closed or gives only its surplus."""
    founds = number[FOUNDS]
    for i in range(founds):
        h = lists[i, FOUND]
        c = np.int64(hold[h, CLASS])
        touch(box, loss, histogram, klass, number, c)
        count_in(klass, histogram, bins, c, np.int64(hold[h, POINT]), -np.int64(hold[h, COUNT]))
    if number[TOUCHES] == 1 and number[SPARES] == 0 and klass[klass[0, TOUCHED], SIZE] == 0:
        return False
    for i in range(number[TOUCHES]):
        c = klass[i, TOUCHED]
        if c == kept or klass[c, SIZE] == 0:
            klass[c, STATUS] = CLOSED
        elif not good(rules, klass, histogram, c, k):
            share = 1.0 - klass[c, SIZE] / klass[c, OLD_SIZE]
            if uniform(seed) < par[8] * share ** par[9]:
                klass[c, STATUS] = CLOSED
            else:
                klass[c, STATUS] = PARTIAL
                restore(box, loss, histogram, klass, c)
    for i in range(founds):
        h = np.int64(lists[i, FOUND])
        c = np.int64(hold[h, CLASS])
        point = np.int64(hold[h, POINT])
        amount = np.int64(hold[h, COUNT])
        if klass[c, STATUS] == PARTIAL:
            amount = release(rules, klass, histogram, bins, c, point, min(amount, klass[c, SIZE] - k), k)
        if amount > 0:
            note(lists, hold, number, h, fresh, amount)
            count_in(klass, histogram, bins, fresh, point, amount)
    number[WORK] += 3 * founds + 5 * number[TOUCHES]
    if good(rules, klass, histogram, fresh, k):
        return number[TOUCHES] > 1 or klass[fresh, SIZE] < klass[klass[0, TOUCHED], OLD_SIZE]
    return fill(rules, bins, box, loss, histogram, klass, hold, lists, number, fresh, k)


@njit(cache=True, nogil=True)
def release(
    rules: FlatRules, klass: Ints, histogram: Shorts, bins: Shorts, c: int, point: int, most: int, k: int
) -> int:
    """Take up to `most` records of a point out of class `c` as long as it stays good; how many it were."""
    given = max(most, 0)
    count_in(klass, histogram, bins, c, point, -given)
    while given > 0 and not good(rules, klass, histogram, c, k):
        count_in(klass, histogram, bins, c, point, np.int64(1))
        given -= 1
    return given


@njit(cache=True, nogil=True)
def fill(
    rules: FlatRules,
    bins: Shorts,
    box: Ints,
    loss: Floats,
    histogram: Shorts,
    klass: Ints,
    hold: Shorts,
    lists: Shorts,
    number: Ints,
    fresh: int,
    k: int,
) -> bool:
    """Bring the new class to the policy with surplus records inside its box, from dear classes first."""
    only_size = bins.shape[1] == 0
    spares = number[SPARES]
    deficit = 0.0
    best = 0
    while best != NOBODY and not good(rules, klass, histogram, fresh, k):
        best = NOBODY
        best_gain = 0.0
        best_loss = -1.0
        if not only_size:
            deficit = class_deficit(rules, klass[fresh, SIZE], histogram[fresh])
        for i in range(spares):
            h = lists[i, SPARE]
            c = hold[h, CLASS]
            if klass[c, SIZE] > k and hold[h, TAKEN] < hold[h, COUNT] and klass[c, STATUS] != PARTIAL:
                gain = 0.0
                if not only_size:
                    point = np.int64(hold[h, POINT])
                    count_in(klass, histogram, bins, fresh, point, np.int64(1))
                    gain = deficit - class_deficit(rules, klass[fresh, SIZE], histogram[fresh])
                    count_in(klass, histogram, bins, fresh, point, np.int64(-1))
                if gain > best_gain or (gain == best_gain and loss[c] > best_loss):
                    best, best_gain, best_loss = i, gain, loss[c]
        number[WORK] += spares
        if best != NOBODY:
            h = np.int64(lists[best, SPARE])
            c = np.int64(hold[h, CLASS])
            point = np.int64(hold[h, POINT])
            touch(box, loss, histogram, klass, number, c)
            most = np.int64(1)
            if only_size:
                most = min(min(np.int64(hold[h, COUNT] - hold[h, TAKEN]), klass[c, SIZE] - k), k - klass[fresh, SIZE])
            given = release(rules, klass, histogram, bins, c, point, most, k)
            if given > 0:
                note(lists, hold, number, h, fresh, given)
                count_in(klass, histogram, bins, fresh, point, given)
            else:
                klass[c, STATUS] = PARTIAL
    return best != NOBODY


@njit(cache=True, nogil=True)
def all_good(rules: FlatRules, klass: Ints, histogram: Shorts, number: Ints, fresh: int, k: int) -> bool:
    """Whether the new class and every touched class that stays satisfies the policy."""
    for i in range(number[TOUCHES]):
        c = klass[i, TOUCHED]
        if klass[c, STATUS] != CLOSED and not good(rules, klass, histogram, c, k):
            return False
    return fresh == NOBODY or good(rules, klass, histogram, fresh, k)


@njit(cache=True, nogil=True)
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
    """Tighten the new class and the donors that stay; what the step changes so far."""
    for i in range(number[PLANS]):
        row_join(spec, box, fresh, codes, np.int64(hold[lists[i, PLAN], TUPLE]), i == 0)
    loss[fresh] = row_cost(spec, losses, box, fresh)
    change = klass[fresh, SIZE] * loss[fresh]
    number[WORK] += number[PLANS]
    old = len(klass)
    for i in range(number[TOUCHES]):
        c = klass[i, TOUCHED]
        change -= klass[c, OLD_SIZE] * loss[old + c]
    i = 0
    while i < number[TOUCHES] and change <= limit:
        c = klass[i, TOUCHED]
        if klass[c, STATUS] != CLOSED:
            tighten(spec, codes, box, hold, number, c, klass[c, HEAD])
            loss[c] = row_cost(spec, losses, box, c)
            change += klass[c, SIZE] * loss[c]
        i += 1
    return change


@njit(cache=True, nogil=True)
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
    tuple_head: Shorts,
    lists: Shorts,
    number: Ints,
    covers: Words,
    seed: Seed,
    fresh: int,
    change: float,
    limit: float,
    par: Floats,
) -> float:
    """Send the records left in closing classes to the classes that they cost least; stops past `limit`."""
    everywhere = number[CLASSES] <= par[11] or uniform(seed) < par[10]
    donors = number[TOUCHES]
    more = False
    i = 0
    while i < donors and change <= limit:
        closing = klass[i, TOUCHED]
        h = klass[closing, HEAD] if klass[closing, STATUS] == CLOSED else np.int64(NOBODY)
        while h != NOBODY and change <= limit:
            left = np.int64(hold[h, COUNT] - hold[h, TAKEN])
            if left > 0:
                t = np.int64(hold[h, TUPLE])
                best = find_class(
                    spec,
                    losses,
                    codes,
                    near,
                    box,
                    loss,
                    klass,
                    hold,
                    tuple_head,
                    number,
                    covers,
                    t,
                    left,
                    fresh,
                    everywhere,
                    par,
                )
                if best == NOBODY:
                    return np.inf
                if best != fresh:
                    touch(box, loss, histogram, klass, number, best)
                change -= klass[best, SIZE] * loss[best]
                note(lists, hold, number, h, best, left)
                count_in(klass, histogram, bins, best, np.int64(hold[h, POINT]), left)
                row_join(spec, box, best, codes, t, more)
                loss[best] = row_cost(spec, losses, box, best)
                change += klass[best, SIZE] * loss[best]
            h = np.int64(hold[h, NEXT_IN_CLASS])
        i += 1
    return change


@njit(cache=True, nogil=True)
def find_class(
    spec: Ints,
    losses: Floats,
    codes: Shorts,
    near: Shorts,
    box: Ints,
    loss: Floats,
    klass: Ints,
    hold: Shorts,
    tuple_head: Shorts,
    number: Ints,
    covers: Words,
    t: int,
    left: int,
    fresh: int,
    everywhere: bool,
    par: Floats,
) -> int:
    """The class that `left` records of tuple `t` cost least, among those near or among all."""
    number[STAMP] += 1
    stamp = number[STAMP]
    best = fresh
    cost = np.inf
    if fresh != NOBODY:
        cost = left * loss[fresh] + (klass[fresh, SIZE] + left) * row_growth(spec, losses, box, fresh, codes, t, np.inf)
    for j in range(-1, near.shape[1]):
        other = tuple_head[t if j < 0 else near[t, j]]
        while other != NOBODY:
            c = np.int64(hold[other, CLASS])
            if klass[c, SEEN] != stamp:
                klass[c, SEEN] = stamp
                base = left * loss[c]
                if base < cost and klass[c, STATUS] != CLOSED:
                    size = klass[c, SIZE] + left
                    price = base + size * row_growth(spec, losses, box, c, codes, t, (cost - base) / size)
                    if price < cost:
                        best, cost = c, price
            other = hold[other, NEXT_IN_TUPLE]
    number[WORK] += 50
    if par[12] > 0:
        last = len(covers) - 1
        words = covers.shape[1]
        for a in range(len(spec)):
            row = spec[a, MASKS] + codes[t, a] * spec[a, BUCKETS] // spec[a, CODES]
            if a == 0:
                for w in range(words):
                    covers[last, w] = covers[row, w]
            else:
                for w in range(words):
                    covers[last, w] &= covers[row, w]
        one = np.uint64(1)
        for w in range(words):
            word = covers[last, w]
            while word:
                c = 64 * w + popcount(np.int64((word & (~word + one)) - one))
                word &= word - one
                base = left * loss[c]
                if base < cost and klass[c, STATUS] != CLOSED:
                    size = klass[c, SIZE] + left
                    price = base + size * row_growth(spec, losses, box, c, codes, t, (cost - base) / size)
                    if price < cost:
                        best, cost = c, price
        number[WORK] += words // 5
    if everywhere:
        for i in range(number[CLASSES]):
            c = klass[i, LIVE]
            base = left * loss[c]
            if base < cost and klass[c, STATUS] != CLOSED:
                size = klass[c, SIZE] + left
                price = base + size * row_growth(spec, losses, box, c, codes, t, (cost - base) / size)
                if price < cost:
                    best, cost = c, price
        number[WORK] += number[CLASSES] // 3
    return best
