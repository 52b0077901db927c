"""Boxes of the box search: what one costs, what it would cost with a tuple more, and what lies in it.

A box is a row of a matrix of states. These loops run millions of times a second. They leave a loop by its condition or a
return: Numba counts references around every `break`.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.kernels.box_types import Attribute, Floats, Gauge, Ints, Node, Shorts, blank
from shoal.kernels.jit import bare
from shoal.kernels.space import INTERVAL, SET, TREE, FlatSpace, popcount

# Losses are sums of a few numbers up to 1: what differs by less than this is the same loss summed in another order.
EPSILON = 1e-9
# At most 2^ROWS sets of tuples, and of classes, for an attribute: with more codes neighbours share one. More rows make
# scans more exact, but then no longer fit into the cache.
ROWS = 7


def gauge(flat: FlatSpace) -> Gauge:
    """Pack a flat space."""
    d = len(flat.kind)
    attributes = blank(Attribute, d)
    attributes["kind"], attributes["codes"], attributes["missing"] = flat.kind, flat.size, flat.missing
    attributes["slot"], attributes["stop"] = flat.slot[:-1], flat.slot[1:]
    attributes["table"] = attributes["nodes"] = -1
    losses = [flat.pair]
    used = 0
    for a in range(d):
        begin, size, it = int(flat.start[a]), int(flat.size[a]), attributes[a]
        it["values"] = sum(map(len, losses))
        if flat.kind[a] == TREE:
            it["nodes"] = begin
        if flat.kind[a] == SET:
            losses.append(flat.set_loss[begin : begin + size + 1])
        elif flat.pair_start[a] >= 0:
            it["table"] = flat.pair_start[a]
        elif flat.kind[a] == INTERVAL:
            losses.append(np.append(flat.values[begin : begin + flat.missing[a]] * flat.scale[a], flat.weight[a]))
        else:
            losses.append(highest_between(flat, begin, size))
        it["masks"], it["shift"] = used, max(0, (size - 1).bit_length() - ROWS)
        used += ((size - 1) >> int(it["shift"])) + 2
    nodes = blank(Node, len(flat.parent))
    nodes["parent"], nodes["first"], nodes["last"] = flat.parent, flat.first, flat.last
    return Gauge(attributes, np.concatenate(losses), nodes)


def highest_between(flat: FlatSpace, begin: int, size: int) -> Floats:
    """Row j, column i: the largest loss of a join of neighbours among the leaves i … i + 2^j.

    The lowest common ancestor of a range of leaves is the highest of those of neighbouring leaves in it.
    """
    first = np.zeros(size)
    for leaf in range(size - 1):
        node = leaf
        while flat.last[begin + node] <= leaf:
            node = flat.parent[begin + node]
        first[leaf] = flat.node_loss[begin + node]
    rows = [first]
    for j in range(1, max(1, (size - 1).bit_length())):
        half = 1 << (j - 1)
        rows.append(np.maximum(rows[-1], np.append(rows[-1][half:], np.zeros(half))))
    return np.concatenate(rows)


@bare
def range_cost(gauge: Gauge, a: int, lo: int, hi: int) -> float:
    """Weighted loss of the code range lo … hi of an Interval or a Tree."""
    it, losses = gauge.attributes[a], gauge.losses
    if it.table >= 0:
        return losses[it.table + lo * it.codes + hi]
    if lo == hi:
        return 0.0
    if it.kind == INTERVAL:
        return losses[it.values + hi] - (0.0 if hi == it.missing else losses[it.values + lo])
    j = np.int64(math.frexp(float(hi - lo))[1] - 1)
    row = it.values + j * it.codes
    return max(losses[row + lo], losses[row + hi - (1 << j)])


@bare
def holds(box: Ints, c: int, slot: int, code: int) -> bool:
    """Whether the set that begins at a slot of row `c` has a code."""
    return (box[c, slot + (code >> 6)] >> (code & 63)) & 1 == 1


@bare
def set_cost(gauge: Gauge, box: Ints, c: int, a: int, more: int) -> float:
    """Weighted loss of a set of row `c` with `more` codes added."""
    it = gauge.attributes[a]
    count = more
    for w in range(it.slot, it.stop):
        count += popcount(box[c, w])
    return gauge.losses[it.values + count]


@bare
def row_cost(gauge: Gauge, box: Ints, c: int) -> float:
    """Weighted loss of row `c` of a matrix of states."""
    total = 0.0
    for a in range(len(gauge.attributes)):
        it = gauge.attributes[a]
        if it.kind != SET:
            total += range_cost(gauge, a, box[c, it.slot], box[c, it.slot + 1])
        else:
            total += set_cost(gauge, box, c, a, np.int64(0))
    return total


@bare
def row_growth(gauge: Gauge, box: Ints, c: int, codes: Shorts, t: int, most: float) -> float:
    """How much the loss of row `c` rises when tuple `t` joins; any number of at least `most` beyond that."""
    total = 0.0
    # A plain 0 would be a type of its own, and whatever it is passed to compiled twice.
    a = np.int64(0)
    while a < len(gauge.attributes) and total < most:
        it = gauge.attributes[a]
        code = np.int64(codes[t, a])
        if it.kind != SET:
            lo, hi = box[c, it.slot], box[c, it.slot + 1]
            if code < lo or code > hi:
                total += range_cost(gauge, a, min(lo, code), max(hi, code)) - range_cost(gauge, a, lo, hi)
        elif not holds(box, c, it.slot, code):
            total += set_cost(gauge, box, c, a, np.int64(1)) - set_cost(gauge, box, c, a, np.int64(0))
        a += 1
    return total


@bare
def row_join(gauge: Gauge, box: Ints, c: int, codes: Shorts, t: int, others: int) -> None:
    """Join tuple `t` into row `c`; it is the row's only tuple if there are no others."""
    for a in range(len(gauge.attributes)):
        it = gauge.attributes[a]
        slot, code = it.slot, np.int64(codes[t, a])
        if it.kind != SET:
            box[c, slot] = min(box[c, slot], code) if others else code
            box[c, slot + 1] = max(box[c, slot + 1], code) if others else code
        else:
            for w in range(slot, it.stop):
                bit = np.int64(1) << (code & 63) if w - slot == code >> 6 else 0
                box[c, w] = box[c, w] | bit if others else bit


@bare
def row_covers(gauge: Gauge, box: Ints, c: int, codes: Shorts, t: int) -> bool:
    """Whether tuple `t` lies in row `c`."""
    for a in range(len(gauge.attributes)):
        it = gauge.attributes[a]
        code = np.int64(codes[t, a])
        if it.kind != SET:
            if code < box[c, it.slot] or code > box[c, it.slot + 1]:
                return False
        elif not holds(box, c, it.slot, code):
            return False
    return True


@bare
def copy_box(box: Ints, c: int, to: int) -> None:
    """Copy row `c` into another."""
    for w in range(box.shape[1]):
        box[to, w] = box[c, w]


@bare
def widen(gauge: Gauge, box: Ints, c: int) -> None:
    """Grow row `c` as far as it costs nothing: a code range of a taxonomy to its node, one with missing to all codes."""
    nodes = gauge.nodes
    for a in range(len(gauge.attributes)):
        it = gauge.attributes[a]
        lo, hi = it.slot, it.slot + 1
        if it.kind != SET and box[c, lo] < box[c, hi]:
            if it.kind == TREE:
                node = nodes[it.nodes + box[c, lo]]
                while node.last < box[c, hi]:
                    node = nodes[it.nodes + node.parent]
                box[c, lo] = node.first
                box[c, hi] = node.last
            elif box[c, hi] == it.missing:
                box[c, lo] = 0
