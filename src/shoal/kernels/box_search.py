"""The steps of the box search: propose a box, let it win records, repair what it broke, keep or undo."""

from __future__ import annotations

import numpy as np

from shoal.kernels.box_draft import count_in, finish, good, plan, tighten, touch
from shoal.kernels.box_gauge import EPSILON, holds, row_cost, row_covers, row_join
from shoal.kernels.box_propose import pick, propose, uniform
from shoal.kernels.box_shift import WIDTH, find_class, shift
from shoal.kernels.box_types import CLOSED, NOBODY, PARTIAL, Gauge, Store, Table
from shoal.kernels.jit import bare, entry
from shoal.kernels.logs import log, power
from shoal.kernels.rules import class_deficit
from shoal.kernels.space import SET, popcount
from shoal.policy import FlatRules

# A donor that would break is closed with the share it loses to this power: the more it loses, the likelier.
DISSOLVES = 0.7
# Operations that the budget counts for a step of whatever kind, and for a class that it touches.
STEP_WORK, TOUCH_WORK = 60, 10
# … and for a tuple that a scan of near ones looks at.
LOOK_WORK = 3
# Words of sets of tuples that a scan of all combines in one operation: they lie side by side, and several are combined at once.
COMBINED = 40


@entry
def search(gauge: Gauge, rules: FlatRules, table: Table, store: Store, heat: float, until: int) -> None:
    """Steps until the work counter reaches `until`; what the total loss changes by is added to `gained`.

    All that a step leaves behind is in the store, so a search may stop and go on anywhere.
    """
    desk = store.desk
    while desk.work < until:
        desk.work += STEP_WORK
        desk.limit = -heat * log(1.0 - uniform(desk))
        desk.fresh = NOBODY
        change = np.inf
        t, c = pick(table, store)
        desk.middle, desk.home = t, c
        kind = uniform(desk)
        if kind < desk.shifts:
            change = shift(gauge, table, store, t, c)
        elif propose(gauge, table, store, t, c, kind) and scan(gauge, table, store):
            win(rules, table, store)
            if fill(rules, table, store):
                # From here on numbers are exact, and what follows only adds to the change.
                change = settle(gauge, table, store)
                change = rehouse(gauge, table, store, change)
        if desk.touched > 0:
            accepted = change <= desk.limit and all_good(rules, store)
            finish(gauge, table, store, accepted)
            desk.gained += change if accepted else 0.0


@bare
def all_good(rules: FlatRules, store: Store) -> bool:
    """Whether all classes of the draft satisfy the policy."""
    desk = store.desk
    if desk.fresh != NOBODY:
        if desk.closed_up:
            return True
        if not good(rules, store, desk.fresh):
            return False
    for i in range(desk.touched):
        c = np.int64(store.lists[i].touched)
        if store.classes[c].status != CLOSED and not good(rules, store, c):
            return False
    return True


@bare
def sift(gauge: Gauge, table: Table, store: Store) -> bool:
    """Mark the tuples that may lie in the trial box in the last row of the masks; whether it is certain that they do."""
    masks, box, desk = table.masks, store.box, store.desk
    trial, rows = desk.trial, 0
    marked, scratch = len(masks) - 1, len(masks) - 2
    words = masks.shape[1]
    exact = True
    for w in range(words):
        masks[marked, w] = ~np.uint64(0)
    for a in range(len(gauge.attributes)):
        it = gauge.attributes[a]
        if it.kind == SET:
            for w in range(words):
                masks[scratch, w] = 0
            for code in range(it.codes):
                if holds(box, trial, it.slot, code):
                    row = it.masks + (code >> it.shift)
                    rows += 1
                    for w in range(words):
                        masks[scratch, w] |= masks[row, w]
            rows += 1
            for w in range(words):
                masks[marked, w] &= masks[scratch, w]
            exact = exact and it.shift == 0
        elif box[trial, it.slot] > 0 or box[trial, it.slot + 1] < it.codes - 1:
            before = it.masks + (box[trial, it.slot] >> it.shift)
            upto = it.masks + (box[trial, it.slot + 1] >> it.shift) + 1
            rows += 1
            for w in range(words):
                masks[marked, w] &= masks[upto, w] & ~masks[before, w]
            exact = exact and it.shift == 0
    # An operation is that of a table with WIDTH attributes; the budget of a wider one is smaller in proportion.
    desk.work += words * rows * WIDTH // (COMBINED * max(WIDTH, len(gauge.attributes)))
    return exact


@bare
def scan(gauge: Gauge, table: Table, store: Store) -> bool:
    """List the holdings in the trial box: those that would pay no more in it (or are in the class it replaces), and the others.

    Returns whether there are enough records in it, and anything to win.
    """
    masks, desk = table.masks, store.desk
    marked, words = len(masks) - 1, masks.shape[1]
    one = np.uint64(1)
    desk.found = 0
    desk.spare = 0
    if desk.narrow:
        inside = scan_near(gauge, table, store)
    else:
        inside = np.int64(0)
        exact = sift(gauge, table, store)
        for w in range(words):
            word = masks[marked, w]
            while word:
                t = 64 * w + popcount(np.int64((word & (~word + one)) - one))
                word &= word - one
                if t < len(store.heads) and (exact or row_covers(gauge, store.box, desk.trial, table.codes, t)):
                    inside += listed(store, t)
    desk.work += desk.found + desk.spare
    if desk.found == 0 or inside < desk.k:
        return False
    if desk.replaced == NOBODY or store.classes[desk.replaced].size != inside:
        return True
    # The class that is replaced, and nobody else: nothing changes.
    for i in range(desk.found):
        if store.holdings[store.lists[i].found].home != desk.replaced:
            return True
    return desk.spare > 0


@bare
def scan_near(gauge: Gauge, table: Table, store: Store) -> int:
    """List what lies in the trial box of the tuple in its middle, those near it and those in its class; how many records."""
    codes, near, masks, holdings, desk = table.codes, table.near, table.masks, store.holdings, store.desk
    marked, one = len(masks) - 1, np.uint64(1)
    inside, middle = np.int64(0), desk.middle
    h = store.classes[desk.home].head
    i, visits = -1, 0
    while i < near.shape[1] or h != NOBODY:
        if i < near.shape[1]:
            t = np.int64(near[middle, i]) if i >= 0 else middle
            i += 1
        else:
            t = np.int64(holdings[h].tuple)
            h = np.int64(holdings[h].next_in_class)
        visits += 1
        # The same tuple may be met again: its bit says so, until all are unmarked.
        bit = one << np.uint64(t & 63)
        if masks[marked, t >> 6] & bit == 0:
            masks[marked, t >> 6] |= bit
            if row_covers(gauge, store.box, desk.trial, codes, t):
                inside += listed(store, t)
    masks[marked, middle >> 6] = 0
    for j in range(near.shape[1]):
        masks[marked, near[middle, j] >> 6] = 0
    h = store.classes[desk.home].head
    while h != NOBODY:
        masks[marked, holdings[h].tuple >> 6] = 0
        h = np.int64(holdings[h].next_in_class)
    desk.work += LOOK_WORK * visits
    return inside


@bare
def listed(store: Store, t: int) -> int:
    """List the holdings of a tuple in the trial box; how many records they have."""
    classes, holdings, lists, desk = store.classes, store.holdings, store.lists, store.desk
    inside = np.int64(0)
    h = store.heads[t]
    while h != NOBODY:
        it = holdings[h]
        inside += it.count
        if it.home == desk.replaced or classes[it.home].loss >= desk.price - EPSILON:
            lists[desk.found].found = h
            desk.found += 1
        else:
            lists[desk.spare].spare = h
            desk.spare += 1
        h = it.next_in_tuple
    return inside


@bare
def win(rules: FlatRules, table: Table, store: Store) -> None:
    """Draft the new class with what was found.

    A donor that would break is closed, or gives only as much as leaves it good.
    """
    classes, holdings, lists, desk = store.classes, store.holdings, store.lists, store.desk
    desk.fresh = lists[desk.live].live
    classes[desk.fresh].status = PARTIAL
    for i in range(desk.found):
        it = holdings[lists[i].found]
        touch(store, np.int64(it.home))
        count_in(table, store, np.int64(it.home), np.int64(it.point), -np.int64(it.count))
    for i in range(desk.touched):
        c = np.int64(lists[i].touched)
        donor = classes[c]
        if c == desk.replaced or donor.size == 0:
            donor.status = CLOSED
        elif not good(rules, store, c):
            share = 1.0 - donor.size / classes[c + desk.old].size
            if uniform(desk) < power(share, DISSOLVES):
                donor.status = CLOSED
            else:
                donor.status = PARTIAL
    for i in range(desk.found):
        it = holdings[lists[i].found]
        if classes[it.home].status == PARTIAL:
            count_in(table, store, np.int64(it.home), np.int64(it.point), np.int64(it.count))
    for i in range(desk.found):
        h = np.int64(lists[i].found)
        amount = np.int64(holdings[h].count)
        if classes[holdings[h].home].status == PARTIAL:
            amount = spared(rules, table, store, h, amount)
        give(table, store, h, amount)


@bare
def fill(rules: FlatRules, table: Table, store: Store) -> bool:
    """Fill the new class with surplus records inside its box until it is good.

    Returns whether it is, and is not just the class that it was won from.
    """
    holdings, classes, desk = store.holdings, store.classes, store.desk
    fresh = classes[desk.fresh]
    h, satisfied = np.int64(0), good(rules, store, desk.fresh)
    while h != NOBODY and not satisfied:
        h = best_spare(rules, table, store)
        if h != NOBODY:
            it, amount = holdings[h], np.int64(1)
            if table.bins.shape[1] == 0:
                amount = min(desk.k - fresh.size, np.int64(it.count - it.taken))
            touch(store, np.int64(it.home))
            amount = spared(rules, table, store, h, amount)
            if amount == 0:
                classes[it.home].status = PARTIAL
            give(table, store, h, amount)
            satisfied = good(rules, store, desk.fresh)
    desk.work += TOUCH_WORK * desk.touched
    first = classes[store.lists[0].touched + desk.old]
    return satisfied and (desk.touched > 1 or fresh.size < first.size)


@bare
def best_spare(rules: FlatRules, table: Table, store: Store) -> int:
    """The holding with surplus records that helps the new class most, from the dearest class."""
    holdings, classes, desk = store.holdings, store.classes, store.desk
    histogram, fresh = store.histogram, desk.fresh
    only_size = table.bins.shape[1] == 0
    deficit = 1.0 if only_size else class_deficit(rules, classes[fresh].size, histogram[fresh])
    chosen, best, dearest = np.int64(NOBODY), 0.0, 0.0
    desk.questions += 1
    left = np.int64(0)
    for i in range(desk.spare):
        h = np.int64(store.lists[i].spare)
        it = holdings[h]
        home = classes[it.home]
        if home.size > desk.k and it.taken < it.count and home.status != PARTIAL:
            # Who has nothing to spare now has nothing later, and is not asked again.
            store.lists[left].spare = h
            left += 1
            gain = deficit
            if not only_size:
                # Records of one kind help alike: a box has thousands of them, and few kinds.
                known = store.asked[table.kinds[it.point]]
                if known.question != desk.questions:
                    known.question = desk.questions
                    count_in(table, store, fresh, np.int64(it.point), np.int64(1))
                    known.gain = deficit - class_deficit(rules, classes[fresh].size, histogram[fresh])
                    count_in(table, store, fresh, np.int64(it.point), np.int64(-1))
                    desk.work += desk.asking
                gain = known.gain
            if gain > best or (gain > 0.0 and gain == best and home.loss > dearest):
                chosen, best, dearest = h, gain, home.loss
    desk.work += desk.spare >> 2 if only_size else desk.spare
    desk.spare = left
    return chosen


@bare
def spared(rules: FlatRules, table: Table, store: Store, h: int, most: int) -> int:
    """Take up to `most` records of a holding away from its class, as many as leave it good; how many."""
    it = store.holdings[h]
    c, point = np.int64(it.home), np.int64(it.point)
    amount = max(np.int64(0), min(most, store.classes[c].size - store.desk.k))
    count_in(table, store, c, point, -amount)
    while amount > 0 and not good(rules, store, c):
        count_in(table, store, c, point, np.int64(1))
        amount -= 1
    return amount


@bare
def give(table: Table, store: Store, h: int, amount: int) -> None:
    """Plan that records of a holding go to the new class."""
    if amount > 0:
        plan(store, h, store.desk.fresh, amount)
        count_in(table, store, store.desk.fresh, np.int64(store.holdings[h].point), amount)


@bare
def settle(gauge: Gauge, table: Table, store: Store) -> float:
    """Tighten the new class and the donors that stay; what the step changes so far. Stops past the limit."""
    classes, lists, desk = store.classes, store.lists, store.desk
    fresh = desk.fresh
    for i in range(desk.planned):
        row_join(gauge, store.box, fresh, table.codes, np.int64(store.holdings[lists[i].planned].tuple), i)
    classes[fresh].loss = row_cost(gauge, store.box, fresh)
    change = classes[fresh].size * classes[fresh].loss
    for i in range(desk.touched):
        was = classes[lists[i].touched + desk.old]
        change -= was.size * was.loss
    i = 0
    while i < desk.touched and change <= desk.limit:
        c = np.int64(lists[i].touched)
        it = classes[c]
        if it.status != CLOSED:
            tighten(gauge, table, store, c)
            it.loss = row_cost(gauge, store.box, c)
            change += it.size * it.loss
        i += 1
    return change


@bare
def rehouse(gauge: Gauge, table: Table, store: Store, change: float) -> float:
    """Send the records left in closing classes to the classes where they cost least; what the step changes with that.

    Stops past the limit.
    """
    classes, holdings, desk = store.classes, store.holdings, store.desk
    donors = desk.touched
    i = 0
    while i < donors and change <= desk.limit:
        closing = classes[store.lists[i].touched]
        h = closing.head if closing.status == CLOSED else np.int64(NOBODY)
        while h != NOBODY and change <= desk.limit:
            it = holdings[h]
            left = np.int64(it.count - it.taken)
            if left > 0:
                t = np.int64(it.tuple)
                best = find_class(gauge, table, store, t, left)
                home = classes[best]
                touch(store, best)
                change -= home.size * home.loss
                row_join(gauge, store.box, best, table.codes, t, home.size)
                plan(store, h, best, left)
                count_in(table, store, np.int64(it.home), np.int64(it.point), -left)
                count_in(table, store, best, np.int64(it.point), left)
                home.loss = row_cost(gauge, store.box, best)
                change += home.size * home.loss
            h = np.int64(it.next_in_class)
        i += 1
    return change
