"""Which class covers a record for the least loss, and which classes are worth breaking (Truta & Campan 2007, §4).

A class covers a record if it would publish the same with it. The classes are searched through the tree of
`kernels/class_index.py`, cheapest first: a node is left out when its covering state does not reach the record.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.class_index import COUNT, FIRST, IS_LEAF, NOBODY, Groups, Index, leave, start_ranking
from shoal.kernels.heap import Heap, pop, push
from shoal.kernels.i3m import Records, attach, members_of, unhook
from shoal.kernels.jit import bare, loop
from shoal.kernels.space import INTERVAL, SET, TICKS, FlatSpace, covers, range_loss

Ints = NDArray[np.int64]

PLACE, MEMBER, LEFT = range(3)
"""Where a search for breaks is: place of the class, its records looked at, and what the others may still cost in ticks."""


class Breaks(NamedTuple):
    """A search for classes worth breaking: in which order, where it is, and where the records of the class go."""

    order: Ints
    at: Ints
    targets: Ints


@loop
def next_break(
    flat: FlatSpace, index: Index, groups: Groups, records: Records, heap: Heap, breaks: Breaks, steps: int
) -> bool:
    """Go on to the first place in `order` whose class has an interesting break, or to its end. False after so many steps.

    `targets` then begins with the classes that the records (ascending) of that class go to. Losses are unchanged by a
    break except that each record pays for another class, so the optimal break sends every record to its cheapest
    cover (docs/algorithms.md#il_optimization). The search ends as soon as what has been found costs as much as the class itself.
    """
    order, at, targets = breaks.order, breaks.at, breaks.targets
    while at[PLACE] < len(order):
        c = order[at[PLACE]]
        rows = members_of(records, groups, c)
        if at[MEMBER] == 0:
            at[LEFT] = len(rows) * unit_ticks(flat, groups, c)
        while at[MEMBER] < len(rows) and at[LEFT] > 0:
            if steps <= 0:
                return False
            # At worst the search for a cover looks at every class.
            steps -= len(groups.info)
            cover = cheapest_cover(flat, index, groups, heap, records.codes[rows[at[MEMBER]]], c, at[LEFT])
            targets[at[MEMBER]] = cover
            at[MEMBER] += 1
            at[LEFT] = at[LEFT] - unit_ticks(flat, groups, cover) if cover != NOBODY else 0
        at[MEMBER] = 0
        if at[LEFT] > 0:
            return True
        at[PLACE] += 1
    return True


@loop
def break_class(flat: FlatSpace, index: Index, groups: Groups, records: Records, c: int, targets: Ints) -> None:
    """Every record goes to its target."""
    rows = members_of(records, groups, c)
    leave(flat, index, groups, c)
    for i in range(len(rows)):
        unhook(records, groups, rows[i])
        attach(flat, index, groups, records, rows[i], targets[i])


@bare
def cheapest_cover(
    flat: FlatSpace, index: Index, groups: Groups, heap: Heap, codes: NDArray[np.int32], own: int, limit: int
) -> int:
    """The class with the least loss per record, below `limit` ticks, that covers a record of class `own`."""
    best, chosen = limit, NOBODY
    start_ranking(index, heap)
    while heap.size[0] > 0 and (heap.ticks[0] < best or (heap.ticks[0] == best and heap.first[0] < chosen)):
        node = heap.item[0]
        pop(heap)
        for i in range(index.info[node, COUNT]):
            child = np.int64(index.kids[node, i])
            if not index.info[node, IS_LEAF]:
                first, ticks = index.info[child, FIRST], least_ticks(flat, index, child)
                if ticks <= best and may_cover(flat, index, child, codes):
                    push(heap, ticks, first, child)
            elif child != own:
                ticks = unit_ticks(flat, groups, child)
                better = ticks < best or (ticks == best and child < chosen)
                if better and covers(flat, groups.state[child], codes):
                    best, chosen = ticks, child
    return chosen


@bare
def may_cover(flat: FlatSpace, index: Index, node: int, codes: NDArray[np.int32]) -> bool:
    """False only if no class below the node covers the record."""
    d = len(flat.kind)
    box = index.box[node]
    for a in range(d):
        slot = flat.slot[a]
        code = np.int64(codes[a])
        if flat.kind[a] == SET:
            if not (box[slot + (code >> 6)] >> (code & 63)) & 1:
                return False
        elif code < box[slot] or code > box[slot + 1]:
            if flat.kind[a] == INTERVAL:
                # With a missing value among them, some class may publish "any".
                if box[slot + 1] < flat.missing[a]:
                    return False
            else:
                nearest = box[slot] if code < box[slot] else box[slot + 1]
                if range_loss(flat, a, min(code, nearest), max(code, nearest)) > index.bound[node, d + a]:
                    return False
    return True


@bare
def unit_ticks(flat: FlatSpace, groups: Groups, c: int) -> int:
    """Loss of one record of a class."""
    return np.int64(np.rint(groups.loss[c, len(flat.kind)] * TICKS))


@bare
def least_ticks(flat: FlatSpace, index: Index, node: int) -> int:
    """The least loss of a record of a class below a node."""
    return np.int64(np.rint(index.bound[node, 2 * len(flat.kind)] * TICKS))
