"""Inner loops of Xu's local recoding (docs/algorithms.md#top_down): far seeds, dealing records to them, loans between groups.

Costs are compared in ticks, ties go to the smaller record or group. Groups are rows of `members`, filled from the left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, entry, inner, loop
from shoal.kernels.space import (
    SET,
    TICKS,
    FlatSpace,
    begin,
    join,
    joined_attribute_loss,
    joined_loss,
    loss,
    merge,
    merged_loss,
    range_loss,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

ROUNDS = 3
# Bounds are sums in another order than costs.
SLACK = 1e-9


@loop
def far_pair(flat: FlatSpace, codes: Codes, rows: Ints, u: int) -> tuple[int, int]:
    """Two seeds far apart: the record farthest from u, the one farthest from that, and so on while the pair widens."""
    state = np.empty(flat.slot[-1], np.int64)
    best_u, best_v, best = u, u, np.int64(-1)
    for _ in range(ROUNDS):
        v = farthest(flat, codes, rows, u, state)
        u = farthest(flat, codes, rows, v, state)
        distance = np.int64(np.rint(joined_loss(flat, state, codes[u]) * TICKS))
        if distance <= best:
            break
        best_u, best_v, best = u, v, distance
    return best_u, best_v


@inner
def farthest(flat: FlatSpace, codes: Codes, rows: Ints, u: int, state: Ints) -> int:
    """The record that loses most together with u; `state` is left as that of u."""
    begin(flat, state, codes[u])
    start, price = price_table(flat, state)
    found, most = u, np.int64(-1)
    for r in rows:
        if r != u:
            total = 0.0
            for a in range(len(start)):
                total += price[start[a] + codes[r, a]]
            distance = np.int64(np.rint(total * TICKS))
            if distance > most or (distance == most and r < found):
                found, most = r, distance
    return found


@loop
def deal(flat: FlatSpace, codes: Codes, u: int, v: int, rest: Ints) -> NDArray[np.bool_]:
    """For each record in its turn: whether it joins v's group, because that loses less than u's with it."""
    first, second = np.empty(flat.slot[-1], np.int64), np.empty(flat.slot[-1], np.int64)
    begin(flat, first, codes[u])
    begin(flat, second, codes[v])
    to_second = np.zeros(len(rest), np.bool_)
    for i in range(len(rest)):
        record = codes[rest[i]]
        one = np.rint(joined_loss(flat, first, record) * TICKS)
        other = np.rint(joined_loss(flat, second, record) * TICKS)
        if other < one:
            to_second[i] = True
            join(flat, second, record)
        else:
            join(flat, first, record)
    return to_second


@loop
def union_losses(flat: FlatSpace, states: Ints, sizes: Ints, g: int) -> Ints:
    """The loss of one record in the union of g with each other group, in ticks; -1 for itself and empty groups."""
    result = np.full(len(sizes), -1)
    for other in range(len(sizes)):
        if other != g and sizes[other] > 0:
            result[other] = np.int64(np.rint(merged_loss(flat, states[g], states[other]) * TICKS))
    return result


@loop
def best_loan(
    flat: FlatSpace,
    codes: Codes,
    members: Ints,
    sizes: Ints,
    states: Ints,
    floor: Floats,
    g: int,
    k: int,
    limit: float,
    lent: Ints,
) -> tuple[int, float]:
    """The group that lends g what it lacks at the least cost up to `limit` (-1: none), and which of its rows.

    Most groups are ruled out by a bound: g with m more records loses at least what it loses with the m-th nearest
    alone, and the lender at least its `floor` for m records less.
    """
    need, count = k - sizes[g], len(sizes)
    own = sizes[g] * loss(flat, states[g])
    bounds = np.full(count, np.inf)
    distances = np.empty(members.shape[1])
    start, price = price_table(flat, states[g])
    for b in range(count):
        if b != g and sizes[b] >= k + need:
            before = own + sizes[b] * loss(flat, states[b])
            bound = (sizes[b] - need) * floor[b, need] - before
            if bound <= limit + SLACK:
                for i in range(sizes[b]):
                    distances[i] = 0.0
                    for a in range(len(start)):
                        distances[i] += price[start[a] + codes[members[b, i], a]]
                bound += k * smallest(distances, sizes[b], need)
            bounds[b] = bound
    places = np.empty(need, np.int64)
    width = flat.slot[-1]
    left, right = np.empty((members.shape[1], width), np.int64), np.empty((members.shape[1], width), np.int64)
    lender, least = -1, np.rint(limit * TICKS)
    while True:
        b = 0
        for other in range(1, count):
            if bounds[other] < bounds[b]:
                b = other
        if bounds[b] > least / TICKS + SLACK:
            return lender, least / TICKS
        bounds[b] = np.inf
        before = own + sizes[b] * loss(flat, states[b])
        cost = loan(flat, codes, members[b, : sizes[b]], states[g], sizes[g], places, left, right) - before
        rounded = np.rint(cost * TICKS)
        if rounded < least or (rounded == least and (lender < 0 or b < lender)):
            lender, least = b, rounded
            for i in range(need):
                lent[i] = places[i]


@inner
def price_table(flat: FlatSpace, state: Ints) -> tuple[Ints, Floats]:
    """The loss of each attribute after one code more; attribute a begins at start[a]."""
    start = np.zeros(len(flat.kind), np.int64)
    for a in range(1, len(start)):
        start[a] = start[a - 1] + flat.size[a - 1]
    price = np.empty(start[-1] + flat.size[-1])
    for a in range(len(start)):
        for code in range(flat.size[a]):
            price[start[a] + code] = joined_attribute_loss(flat, state, a, code)
    return start, price


@entry
def smallest(values: Floats, count: int, m: int) -> float:
    """The m-th smallest value, from 1; the values are sorted on the way."""
    for i in range(1, count):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
    return values[m - 1]


@loop
def rest_floor(flat: FlatSpace, codes: Codes, rows: Ints, floor: Floats) -> None:
    """floor[m]: a bound below the loss of one record after any m records have left.

    Attribute by attribute: a range keeps all but t codes at one end and m - t at the other, a set its commoner values.
    """
    count = len(rows)
    column = np.empty(count)
    for m in range(len(floor)):
        floor[m] = 0.0
    for a in range(len(flat.kind)):
        for i in range(count):
            column[i] = codes[rows[i], a]
        smallest(column, count, 1)
        if flat.kind[a] == SET:
            runs = run_lengths(column)
            values = len(runs)
            gone, left = 0, 0
            for m in range(min(len(floor), count)):
                # Values leave whole, the rarest first; the m-th record makes the next one leave, or not yet.
                left += 1 if m > 0 else 0
                if gone < values - 1 and left >= runs[gone]:
                    left -= np.int64(runs[gone])
                    gone += 1
                floor[m] += flat.set_loss[flat.start[a] + values - gone]
            continue
        for m in range(min(len(floor), count)):
            least = np.inf
            for t in range(m + 1):
                least = min(least, range_loss(flat, a, np.int64(column[t]), np.int64(column[count - 1 - m + t])))
            floor[m] += least


@inner
def run_lengths(column: Floats) -> Floats:
    """How often each value of a sorted column occurs, rarest first."""
    lengths = np.zeros(len(column))
    values = 0
    for i in range(len(column)):
        if i > 0 and column[i] != column[i - 1]:
            values += 1
        lengths[values] += 1
    smallest(lengths, values + 1, 1)
    return lengths[: values + 1]


@loop
def loan(
    flat: FlatSpace, codes: Codes, rows: Ints, state: Ints, size: int, places: Ints, left: Ints, right: Ints
) -> float:
    """Lend records one by one, always the one after which both groups lose least; what they lose in the end."""
    taken = np.zeros(len(rows), np.bool_)
    joined, rest = state.copy(), state.copy()
    total = 0.0
    for step in range(len(places)):
        remaining = join_from_both_ends(flat, codes, rows, taken, left, right)
        chosen, least = -1, np.inf
        position = 0
        for i in range(len(rows)):
            if taken[i]:
                continue
            others = 0.0
            if remaining > 1:
                if position > 0:
                    copy_state(rest, left[position - 1])
                    if position + 1 < remaining:
                        merge(flat, rest, right[position + 1])
                else:
                    copy_state(rest, right[position + 1])
                others = (remaining - 1) * loss(flat, rest)
            cost = (size + step + 1) * joined_loss(flat, joined, codes[rows[i]]) + others
            rounded = np.rint(cost * TICKS)
            if chosen < 0 or rounded < least or (rounded == least and rows[i] < rows[chosen]):
                chosen, least, total = i, rounded, cost
            position += 1
        taken[chosen] = True
        places[step] = chosen
        join(flat, joined, codes[rows[chosen]])
    return total


@bare
def join_from_both_ends(
    flat: FlatSpace, codes: Codes, rows: Ints, taken: NDArray[np.bool_], left: Ints, right: Ints
) -> int:
    """States of the rows that are not taken, joined from the left and from the right; how many they are."""
    count = 0
    for i in range(len(rows)):
        if not taken[i]:
            begin(flat, left[count], codes[rows[i]])
            copy_state(right[count], left[count])
            count += 1
    for i in range(1, count):
        merge(flat, left[i], left[i - 1])
    for i in range(count - 2, -1, -1):
        merge(flat, right[i], right[i + 1])
    return count


@bare
def copy_state(target: Ints, source: Ints) -> None:
    """A loop, because slice assignment takes long to compile."""
    for slot in range(len(target)):
        target[slot] = source[slot]


@loop
def grow_from(flat: FlatSpace, codes: Codes, rows: Ints, u: int, k: int) -> NDArray[np.bool_]:
    """Mark u and the k - 1 records that are cheapest to add to it, one by one."""
    state = np.empty(flat.slot[-1], np.int64)
    begin(flat, state, codes[u])
    marked = rows == u
    for _ in range(k - 1):
        chosen, least = -1, np.inf
        for i in range(len(rows)):
            if not marked[i]:
                cost = np.rint(joined_loss(flat, state, codes[rows[i]]) * TICKS)
                if chosen < 0 or cost < least or (cost == least and rows[i] < rows[chosen]):
                    chosen, least = i, cost
        marked[chosen] = True
        join(flat, state, codes[rows[chosen]])
    return marked
