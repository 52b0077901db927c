"""What cuts save: loss(P) − Σ |P_i|/|P| · loss(P_i) per record, for the median cuts of a part or for all its cuts.

All cuts of an attribute are weighed together. Rows are grouped by code; for one attribute after the other the groups'
states are joined from the left and from the right, so what lies inside and outside of a run of groups is known at once.
A part costs O(rows · d²), whatever the number of cuts. Attributes that are constant in the part cost nothing.

Counters start as np.int64(0): a plain 0 is a type of its own and everything it is passed to would be compiled twice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from shoal.kernels.jit import bare, inner
from shoal.kernels.mondrian_parts import (
    APART,
    EXTENT,
    FOUND,
    HIERARCHY,
    HIGH,
    KIND,
    LEVELS,
    LOW,
    MISSING,
    NODE,
    PLACE,
    PRICE,
    SET,
    SIDE,
    SIZE,
    START,
    STATE,
    WEIGHT,
    Column,
    Cuts,
    Floats,
    Ints,
    Marks,
    Table,
    Work,
    common_level,
    mark_halves,
    median_cut,
    sort_found,
)
from shoal.kernels.space import TICKS, popcount

INSIDE, OUTSIDE = 0, 1


class Candidates(NamedTuple):
    """Cuts to try: a key to be largest, the attribute, and the codes that go left (-1: not known before it is tried)."""

    key: Ints
    attribute: Ints
    first: Ints
    last: Ints


@njit(cache=True, nogil=True, inline="always")
def save(
    table: Table,
    cuts: Cuts,
    prices: Floats,
    work: Work,
    by_median: bool,
    a: int,
    begin: int,
    end: int,
    found: Candidates,
    filled: int,
) -> int:
    """Add the attribute's median cut (along its taxonomy where it has one) or its cuts at codes, if large enough."""
    side, codes = table.scratch[SIDE, begin:end], work.codes
    groups, count, first = np.int64(0), np.int64(0), np.int64(0)
    if by_median:
        groups, last, ties = median_cut(table, cuts, work, a, begin, end)
        if groups == 0:
            return filled
        if last >= 0:
            mark_halves(table.columns[a, begin:end], 0, last, ties, side)
    else:
        groups = group_by_code(table.columns[a, begin:end], side, codes, work.part[LOW, a], work.part[HIGH, a])
    before = weights_before(table, begin, end, groups)
    runs = np.empty((2, 2 * groups), np.int64)
    if by_median:
        for j in range(groups):
            runs[0, j], runs[1, j] = j, j + 1
        count = groups
    elif cuts.attribute[a, KIND] == HIERARCHY:
        count = runs_of_nodes(cuts, work, a, groups, before, runs)
    else:
        for j in range(1, groups):
            count = add_run(runs, count, before, cuts.k, first, j)
        if cuts.attribute[a, APART] == 1:
            for i in range(1, groups):
                count = add_run(runs, count, before, cuts.k, i, i + 1)
    losses = np.zeros((2, count))
    whole = run_losses(table.columns, cuts, prices, work, side, begin, end, groups, runs, count, losses)
    after, total = 0.0, before[groups]
    for c in range(count):
        i, j = runs[0, c], runs[1, c]
        inside = before[j] - before[i]
        if by_median:
            after += inside / total * losses[INSIDE, c]
            continue
        after = inside / total * losses[INSIDE, c] + (total - inside) / total * losses[OUTSIDE, c]
        found.key[filled], found.attribute[filled] = in_ticks(whole - after), a
        found.first[filled], found.last[filled] = codes[FOUND, i], codes[FOUND, j - 1]
        filled += 1
    if by_median:
        found.key[filled], found.attribute[filled] = in_ticks(whole - after), a
        filled += 1
    return filled


@bare
def group_by_code(column: Column, side: Marks, codes: Ints, low: int, high: int) -> int:
    """Mark each row with the rank of its code, list the codes in order; their number."""
    groups = np.int64(0)
    if high - low < 8 * len(column):
        for code in column:
            codes[PLACE, code] = 1
        for code in range(low, high + 1):
            if codes[PLACE, code]:
                codes[FOUND, groups] = code
                codes[PLACE, code] = groups
                groups += 1
    else:
        for code in column:
            if codes[PLACE, code] == 0:
                codes[PLACE, code] = 1
                codes[FOUND, groups] = code
                groups += 1
        sort_found(codes, groups)
    for i in range(len(column)):
        side[i] = codes[PLACE, column[i]]
    for j in range(groups):
        codes[PLACE, codes[FOUND, j]] = 0
    return groups


@inner
def weights_before(table: Table, begin: int, end: int, groups: int) -> Ints:
    """How many records lie in the groups before each group."""
    before = np.zeros(groups + 1, np.int64)
    side = table.scratch[SIDE, begin:end]
    for i in range(len(side)):
        before[side[i] + 1] += table.cargo[WEIGHT, begin + i] if table.weighted else 1
    for j in range(groups):
        before[j + 1] += before[j]
    return before


@bare
def add_run(runs: Ints, count: int, before: Ints, k: int, i: int, j: int) -> int:
    """Add the run of groups i to j (exclusive) if it and the rest are large enough."""
    inside = before[j] - before[i]
    if inside < k or before[len(before) - 1] - inside < k:
        return count
    runs[0, count], runs[1, count] = i, j
    return count + 1


@bare
def runs_of_nodes(cuts: Cuts, work: Work, a: int, groups: int, before: Ints, runs: Ints) -> int:
    """The runs of groups under each node below the lowest common ancestor, from the root down."""
    count = np.int64(0)
    if cuts.attribute[a, APART] == 0:
        return count
    size, codes = cuts.attribute[a, SIZE], work.codes
    top = common_level(cuts, a, work.part[LOW, a], work.part[HIGH, a])
    for level in range(top + 1, cuts.attribute[a, LEVELS]):
        above = cuts.rank[cuts.attribute[a, START] + (level - 1) * size :]
        rank = cuts.rank[cuts.attribute[a, START] + level * size :]
        i = np.int64(0)
        for j in range(1, groups + 1):
            if j < groups and rank[codes[FOUND, j]] == rank[codes[FOUND, i]]:
                continue
            # A node whose parent has no other records is in the list already.
            new = (i > 0 and above[codes[FOUND, i - 1]] == above[codes[FOUND, i]]) or (
                j < groups and above[codes[FOUND, j]] == above[codes[FOUND, i]]
            )
            if new:
                count = add_run(runs, count, before, cuts.k, i, j)
            i = j
    return count


@njit(cache=True, nogil=True, inline="always")
def run_losses(
    columns: Column,
    cuts: Cuts,
    prices: Floats,
    work: Work,
    side: Marks,
    begin: int,
    end: int,
    groups: int,
    runs: Ints,
    count: int,
    losses: Floats,
) -> float:
    """Add up the losses inside and outside of each run of groups over all attributes; the loss of the whole part."""
    whole = 0.0
    for a in range(len(cuts.attribute)):
        if work.part[EXTENT, a] == 0 or count == 0:
            continue
        if cuts.attribute[a, STATE] == SET:
            price = prices[cuts.attribute[a, PRICE] :]
            whole += set_losses(
                columns[a, begin:end], side, price, cuts.attribute[a, SIZE], groups, runs, count, losses
            )
        else:
            whole += range_losses(columns[a, begin:end], side, cuts, prices, a, groups, runs, count, losses)
    return whole


@inner
def range_losses(
    column: Column,
    side: Marks,
    cuts: Cuts,
    prices: Floats,
    a: int,
    groups: int,
    runs: Ints,
    count: int,
    losses: Floats,
) -> float:
    """`run_losses` for one attribute whose states are ranges of codes."""
    # Rows: lowest and highest code of the group, of it and all to the left, of it and all to the right.
    ends = np.empty((6, groups), np.int64)
    for j in range(groups):
        ends[0, j], ends[1, j] = cuts.attribute[a, SIZE], -1
    for i in range(len(column)):
        code, j = np.int64(column[i]), side[i]
        ends[0, j] = min(ends[0, j], code)
        ends[1, j] = max(ends[1, j], code)
    low, high = ends[0, 0], ends[1, 0]
    for j in range(groups):
        low, high = min(low, ends[0, j]), max(high, ends[1, j])
        ends[2, j], ends[3, j] = low, high
    whole = range_price(cuts, prices, a, low, high)
    low, high = ends[0, groups - 1], ends[1, groups - 1]
    for j in range(groups - 1, -1, -1):
        low, high = min(low, ends[0, j]), max(high, ends[1, j])
        ends[4, j], ends[5, j] = low, high
    # The same range comes again and again: its loss is looked up when it changes.
    last_low, last_high, last_loss = np.zeros(2, np.int64), np.full(2, -1), np.zeros(2)
    for c in range(count):
        i, j = runs[0, c], runs[1, c]
        for part in range(2):
            if part == OUTSIDE:
                low, high = cuts.attribute[a, SIZE], -1
                if i > 0:
                    low, high = ends[2, i - 1], ends[3, i - 1]
                if j < groups:
                    low, high = min(low, ends[4, j]), max(high, ends[5, j])
            elif i == 0:
                low, high = ends[2, j - 1], ends[3, j - 1]
            else:
                low, high = ends[0, i], ends[1, i]
                for g in range(i + 1, j):
                    low, high = min(low, ends[0, g]), max(high, ends[1, g])
            if low != last_low[part] or high != last_high[part]:
                last_low[part], last_high[part] = low, high
                last_loss[part] = range_price(cuts, prices, a, low, high)
            losses[part, c] += last_loss[part]
    return whole


@bare
def range_price(cuts: Cuts, prices: Floats, a: int, low: int, high: int) -> float:
    """Weighted loss of a range of codes, or of their lowest common ancestor."""
    if low == high:
        return 0.0
    price = prices[cuts.attribute[a, PRICE] :]
    if cuts.attribute[a, STATE] == NODE:
        return price[common_level(cuts, a, low, high) * cuts.attribute[a, SIZE] + low]
    if high == cuts.attribute[a, MISSING]:
        return price[high]
    return price[high] - price[low]


@inner
def set_losses(
    column: Column, side: Marks, price: Floats, size: int, groups: int, runs: Ints, count: int, losses: Floats
) -> float:
    """`run_losses` for one attribute whose states are sets of codes, priced by their number."""
    sizes = np.zeros((2, count), np.int64)
    whole = 0
    own, left, right = np.empty(groups, np.int64), np.empty(groups, np.int64), np.empty(groups, np.int64)
    for word in range((size + 63) >> 6):
        own[:] = 0
        for i in range(len(column)):
            code = np.int64(column[i])
            if code >> 6 == word:
                own[side[i]] |= np.int64(1) << (code & 63)
        seen = np.int64(0)
        for j in range(groups):
            seen |= own[j]
            left[j] = seen
        whole += popcount(seen)
        seen = np.int64(0)
        for j in range(groups - 1, -1, -1):
            seen |= own[j]
            right[j] = seen
        for c in range(count):
            i, j = runs[0, c], runs[1, c]
            inside = left[j - 1] if i == 0 else own[i]
            if i > 0:
                for g in range(i + 1, j):
                    inside |= own[g]
            outside = np.int64(0)
            if i > 0:
                outside |= left[i - 1]
            if j < groups:
                outside |= right[j]
            sizes[INSIDE, c] += popcount(inside)
            sizes[OUTSIDE, c] += popcount(outside)
    for c in range(count):
        losses[INSIDE, c] += price[sizes[INSIDE, c]]
        losses[OUTSIDE, c] += price[sizes[OUTSIDE, c]]
    return price[whole]


@bare
def in_ticks(saving: float) -> int:
    """A saving as a key: ticks plus one, so that a cut that saves nothing yet is still a candidate."""
    return max(0, np.int64(np.rint(saving * TICKS))) + 1
