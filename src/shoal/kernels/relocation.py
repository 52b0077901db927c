"""Loops behind `shoal.refine.relocation`: moving single records between classes, and swapping pairs of them.

Work is counted in units of about two nanoseconds of a quiet core: a budget stands for a time, and is the same work everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, entry, inner, loop
from shoal.kernels.logs import log
from shoal.kernels.rules import DISTANCE, ENTROPY, RECURSIVE, SHARES, class_ok
from shoal.kernels.space import SET, FlatSpace, popcount, range_loss
from shoal.policy import FlatRules

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

GAIN = 1e-9
"""A move has to gain more than this, and to be better by more than this than one to a class before: less is rounding."""
RECORD_WORK, CLASS_WORK, COST_WORK, UNLISTED_WORK, MEMBER_WORK, CELL_WORK = 300, 2, 15, 4, 3, 6
"""Work of taking a record out, passing by a class, pricing the record in it, of that for an attribute without a table of losses,
and of looking at a member or a cell, as measured."""
PLACE, WORK = range(2)
"""Where a sweep is: the place in its order, and the work of the whole search until now."""


class Table(NamedTuple):
    """Codes of the records, their groups of sensitive values, and the cells where each group is counted (-1: missing)."""

    codes: Codes
    group: Ints
    cells: Ints


class Classes(NamedTuple):
    """The classes between which records move.

    `part` has the loss by attribute; `edge` counts the members at the lowest and the highest code of each attribute.
    Members form a ring through `after` and `before`, entered at `head`. `room` and `spare` (group × class) remember what
    the class's slack gains when a record of the group joins or leaves: NaN is unknown, -inf that it may not.
    """

    label: Ints
    state: Ints
    edge: Ints
    part: Floats
    loss: Floats
    size: Ints
    counts: Codes
    head: Ints
    after: Ints
    before: Ints
    room: Floats
    spare: Floats


class Sweep(NamedTuple):
    """Records one after the other: in which order, where it is (`PLACE`, `WORK`), the price of slack and the largest loss.

    `rest` and `rest_part` are to write on: the states and losses by attribute of two classes without a record.
    """

    order: Ints
    at: Ints
    price: float
    top: float
    rest: Ints
    rest_part: Floats


@entry
def move_records(flat: FlatSpace, rules: FlatRules, table: Table, classes: Classes, sweep: Sweep, until: int) -> None:
    """Move each record to the class where it costs least, if that gains anything, until there was so much work.

    A move costs what the loss grows, less `price` times (top - loss of the class) for every unit of slack that a class
    gains: slack is worth the more, the cheaper the class that has it. Both classes stay good.
    """
    codes, state, part, loss, sizes = table.codes, classes.state, classes.part, classes.loss, classes.size
    begin, span, slots, pair = flat.pair_start, flat.size, flat.slot, flat.pair
    d, cell_work, cost_work = len(flat.kind), CELL_WORK * classes.counts.shape[1], priced_work(flat)
    order, at, price, top = sweep.order, sweep.at, sweep.price, sweep.top
    rest, rest_part = sweep.rest[0], sweep.rest_part[0]
    work = at[WORK]
    while at[PLACE] < len(order) and work <= until:
        r = order[at[PLACE]]
        at[PLACE] += 1
        own, g = classes.label[r], table.group[r]
        freed = classes.spare[g, own]
        if np.isnan(freed):
            freed = gained_slack(rules, classes.counts[own], sizes[own], table.cells[g], np.int64(-1))
            classes.spare[g, own] = freed
            work += cell_work
        if freed == -np.inf:
            continue
        without(flat, table, classes, own, r, rest, rest_part)
        base = (sizes[own] - 1) * rest_part.sum() - sizes[own] * loss[own]
        base -= price * max(0.0, top - loss[own]) * freed
        work += RECORD_WORK + CLASS_WORK * len(sizes)
        best, least = np.int64(-1), -GAIN
        for c in range(len(sizes)):
            cost = base + loss[c]
            more = classes.room[g, c]
            if np.isnan(more):
                if price == 0 and cost >= least:
                    continue
                more = gained_slack(rules, classes.counts[c], sizes[c], table.cells[g], np.int64(1))
                classes.room[g, c] = more
                work += cell_work
            if more == -np.inf or c == own:
                continue
            cost -= price * max(0.0, top - loss[c]) * more
            if cost >= least:
                continue
            work += cost_work
            for a in range(d):
                code = np.int64(codes[r, a])
                if begin[a] >= 0:
                    # Written out for attributes with a table of losses: most of the time is spent here.
                    low, high = state[c, slots[a]], state[c, slots[a] + 1]
                    if code < low:
                        low = code
                    elif code > high:
                        high = code
                    else:
                        continue
                    cost += (sizes[c] + 1) * (pair[begin[a] + low * span[a] + high] - part[c, a])
                else:
                    cost += (sizes[c] + 1) * (part_with(flat, state[c], part[c, a], a, code) - part[c, a])
                if cost >= least:
                    break
            if cost < least:
                best, least = np.int64(c), cost - GAIN
        if best >= 0:
            work += MEMBER_WORK * sizes[own]
            leave(flat, table, classes, r, rest, rest_part)
            enter(flat, table, classes, r, best)
    at[WORK] = work


@entry
def swap_records(flat: FlatSpace, table: Table, classes: Classes, sweep: Sweep, until: int) -> None:
    """Swap each record with one of the same group in another class, if that gains anything, until there was so much work.

    Sizes and histograms stay what they are, so there is no rule to ask.
    """
    codes, loss, sizes = table.codes, classes.loss, classes.size
    order, at, cost_work = sweep.order, sweep.at, priced_work(flat)
    rest, rest_part, other_rest, other_part = sweep.rest[0], sweep.rest_part[0], sweep.rest[1], sweep.rest_part[1]
    work = at[WORK]
    while at[PLACE] < len(order) and work <= until:
        r = order[at[PLACE]]
        at[PLACE] += 1
        own, g = classes.label[r], table.group[r]
        without(flat, table, classes, own, r, rest, rest_part)
        saved = sizes[own] * (loss[own] - rest_part.sum())
        work += RECORD_WORK
        if sizes[own] == 1 or saved <= GAIN:
            continue
        best, least = np.int64(-1), -GAIN
        for c in range(len(sizes)):
            if c == own:
                continue
            cost = joining_cost(flat, codes[r], classes.state[c], classes.part[c], sizes[c], -saved, least)
            work += cost_work
            if cost >= least:
                continue
            q = classes.head[c]
            for _ in range(sizes[c]):
                if table.group[q] == g:
                    more = joining_cost(flat, codes[q], rest, rest_part, sizes[own], cost, least)
                    work += cost_work
                    if more < least:
                        best, least = q, more - GAIN
                q = classes.after[q]
            work += MEMBER_WORK * sizes[c]
        if best >= 0:
            other = classes.label[best]
            without(flat, table, classes, other, best, other_rest, other_part)
            leave(flat, table, classes, r, rest, rest_part)
            leave(flat, table, classes, best, other_rest, other_part)
            enter(flat, table, classes, r, other)
            enter(flat, table, classes, best, own)
    at[WORK] = work


@bare
def priced_work(flat: FlatSpace) -> int:
    """Work of pricing a record in a class."""
    work = COST_WORK
    for a in range(len(flat.kind)):
        if flat.pair_start[a] < 0:
            work += UNLISTED_WORK
    return work


@bare
def joining_cost(
    flat: FlatSpace, codes: Codes, state: Ints, part: Floats, size: int, cost: float, least: float
) -> float:
    """`cost` and what the loss of `size` records grows when another joins them; given up once it reaches `least`."""
    for a in range(len(part)):
        cost += size * (part_with(flat, state, part[a], a, np.int64(codes[a])) - part[a])
        if cost >= least:
            break
    return cost


@bare
def part_with(flat: FlatSpace, state: Ints, part: float, a: int, code: int) -> float:
    """Loss of attribute a of a state, `part` until now, after one code joined."""
    slot = flat.slot[a]
    if flat.kind[a] == SET:
        if (state[slot + (code >> 6)] >> (code & 63)) & 1:
            return part
        return set_loss(flat, state, a, np.int64(1))
    if state[slot] <= code <= state[slot + 1]:
        return part
    return range_loss(flat, a, min(state[slot], code), max(state[slot + 1], code))


@bare
def set_loss(flat: FlatSpace, state: Ints, a: int, more: int) -> float:
    """Loss of a set with so many members more."""
    members = more
    for w in range(flat.slot[a], flat.slot[a + 1]):
        members += popcount(state[w])
    return flat.set_loss[flat.start[a] + members]


@bare
def without(flat: FlatSpace, table: Table, classes: Classes, c: int, r: int, state: Ints, part: Floats) -> None:
    """State and losses by attribute of class c without its member r."""
    after, codes, slots = classes.after, table.codes, flat.slot
    for a in range(len(part)):
        slot, code = slots[a], np.int64(codes[r, a])
        for w in range(slot, slots[a + 1]):
            state[w] = classes.state[c, w]
        part[a] = classes.part[c, a]
        if flat.kind[a] == SET:
            m = after[r]
            while m != r and codes[m, a] != code:
                m = after[m]
            if m == r:
                part[a] = set_loss(flat, state, a, np.int64(-1))
                state[slot + (code >> 6)] &= ~(np.int64(1) << (code & 63))
            continue
        lowest = code == state[slot] and classes.edge[c, 2 * a] == 1
        if (lowest or (code == state[slot + 1] and classes.edge[c, 2 * a + 1] == 1)) and after[r] != r:
            m = after[r]
            low = high = np.int64(codes[m, a])
            while m != r:
                low, high = min(low, np.int64(codes[m, a])), max(high, np.int64(codes[m, a]))
                m = after[m]
            state[slot], state[slot + 1] = low, high
            part[a] = range_loss(flat, a, low, high)


@bare
def leave(flat: FlatSpace, table: Table, classes: Classes, r: int, rest: Ints, rest_part: Floats) -> None:
    """Record r leaves its class and at least one other member behind; `without` has found what remains."""
    c, after, before = classes.label[r], classes.after[r], classes.before[r]
    classes.after[before], classes.before[after] = after, before
    classes.head[c] = after
    for a in range(len(rest_part)):
        slot, code = flat.slot[a], table.codes[r, a]
        if flat.kind[a] != SET:
            if rest[slot] == classes.state[c, slot] and rest[slot + 1] == classes.state[c, slot + 1]:
                classes.edge[c, 2 * a] -= code == rest[slot]
                classes.edge[c, 2 * a + 1] -= code == rest[slot + 1]
            else:
                low, high, m = 0, 0, after
                for _ in range(classes.size[c] - 1):
                    low += table.codes[m, a] == rest[slot]
                    high += table.codes[m, a] == rest[slot + 1]
                    m = classes.after[m]
                classes.edge[c, 2 * a], classes.edge[c, 2 * a + 1] = low, high
        classes.part[c, a] = rest_part[a]
    for w in range(len(rest)):
        classes.state[c, w] = rest[w]
    changed(table, classes, c, r, np.int64(-1))


@bare
def enter(flat: FlatSpace, table: Table, classes: Classes, r: int, c: int) -> None:
    """Record r, of no class, becomes a member of class c."""
    state, edge = classes.state[c], classes.edge[c]
    for a in range(len(flat.kind)):
        slot, code = flat.slot[a], np.int64(table.codes[r, a])
        classes.part[c, a] = part_with(flat, state, classes.part[c, a], a, code)
        if flat.kind[a] == SET:
            state[slot + (code >> 6)] |= np.int64(1) << (code & 63)
            continue
        if code < state[slot]:
            state[slot], edge[2 * a] = code, 0
        if code > state[slot + 1]:
            state[slot + 1], edge[2 * a + 1] = code, 0
        edge[2 * a] += code == state[slot]
        edge[2 * a + 1] += code == state[slot + 1]
    first = classes.head[c]
    last = classes.before[first]
    classes.after[r], classes.before[r] = first, last
    classes.after[last], classes.before[first] = r, r
    classes.label[r] = c
    changed(table, classes, c, r, np.int64(1))


@bare
def changed(table: Table, classes: Classes, c: int, r: int, many: int) -> None:
    """Write down size, loss and histogram of a class that won or lost record r, and forget what its slack was."""
    classes.loss[c] = classes.part[c].sum()
    classes.size[c] += many
    for cell in table.cells[table.group[r]]:
        if cell >= 0:
            classes.counts[c, cell] += many
    for g in range(len(classes.room)):
        classes.room[g, c] = np.nan
        classes.spare[g, c] = np.nan


@loop
def gained_slack(rules: FlatRules, counts: Codes, size: int, cells: Ints, many: int) -> float:
    """What the slack of a class gains when a record counted in `cells` joins (1) or leaves (-1); -inf if it may not."""
    before, gained = slack(rules, size, counts), -np.inf
    for cell in cells:
        if cell >= 0:
            counts[cell] += many
    if size + many > 0 and class_ok(rules, size + many, counts):
        gained = slack(rules, size + many, counts) - before
    for cell in cells:
        if cell >= 0:
            counts[cell] -= many
    return gained


@loop
def slack(rules: FlatRules, size: int, counts: Codes) -> float:
    """How far a class is from its limits, in about records; forms without a budget have none.

    - t-closeness: s·t - s·distance, which for equal distances is t·s - Σ max(0, c_v - s·Q_v);
    - bounds on shares: the least upper_v·s - c_v, and the least c_v - lower_v·s;
    - entropy l-diversity: s·(entropy - ln l); recursive: c·(r_l + … + r_m) - r_1.
    """
    total = 0.0
    for i in range(len(rules.kind)):
        kind = rules.kind[i]
        if kind in (DISTANCE, SHARES, ENTROPY, RECURSIVE):
            ints = rules.ints[rules.int_start[i] : rules.int_start[i + 1]]
            floats = rules.floats[rules.float_start[i] : rules.float_start[i + 1]]
            own = counts[rules.offset[i] : rules.offset[i] + rules.width[i]]
            if kind == DISTANCE:
                total += distance_slack(ints, floats, own)
            elif kind == SHARES:
                total += shares_slack(ints, floats, size, own)
            elif kind == ENTROPY:
                total += entropy_slack(floats[0], own)
            else:
                total += recursive_slack(ints[0], floats[0], own)
    return total


@inner
def distance_slack(ints: Ints, floats: Floats, counts: Codes) -> float:
    """ints and floats as in `shoal.kernels.rules.distance_deficit`."""
    codes, ranges = ints[0], ints[1]
    known, prefix = 0, np.zeros(codes + 1, dtype=np.int64)
    for i in range(codes):
        known += counts[ints[2 + i]]
        prefix[i + 1] = known
    total = floats[0] * known
    for i in range(ranges):
        inside = prefix[ints[2 + codes + ranges + i]] - prefix[ints[2 + codes + i]]
        total -= floats[1 + ranges + i] * abs(inside - known * floats[1 + i])
    return total


@bare
def shares_slack(ints: Ints, floats: Floats, size: int, counts: Codes) -> float:
    """Records of the value nearest to its bound that could still join or leave, were the class to keep its size."""
    width, whole, least = len(counts), size, np.inf
    if ints[0] == 1:
        whole = 0
        for v in range(width):
            whole += counts[v]
    if whole == 0:
        return 0.0
    for v in range(width):
        least = min(least, floats[width + v] * whole - counts[v])
        if floats[v] > 0 and (counts[v] > 0 or ints[1] == 1):
            least = min(least, counts[v] - floats[v] * whole)
    return least if least < np.inf else 0.0


@bare
def entropy_slack(required: float, counts: Codes) -> float:
    """Entropy above ln l, for all records together."""
    known, total = 0, 0.0
    for v in range(len(counts)):
        if counts[v] > 0:
            known += counts[v]
            total += counts[v] * log(float(counts[v]))
    return known * (log(float(known)) - required) - total if known > 0 else 0.0


@inner
def recursive_slack(length: int, c: float, counts: Codes) -> float:
    """How far r_1 stays below c·(r_l + … + r_m); `largest` keeps the l largest counts, descending."""
    largest, tail = np.zeros(length, dtype=np.int64), 0
    for v in range(len(counts)):
        tail += counts[v]
        at = length - 1
        if counts[v] > largest[at]:
            while at > 0 and largest[at - 1] < counts[v]:
                largest[at] = largest[at - 1]
                at -= 1
            largest[at] = counts[v]
    for i in range(length - 1):
        tail -= largest[i]
    return c * tail - largest[0]
