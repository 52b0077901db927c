"""The state of the box search: distinct tuples, classes as boxes, and who holds how many records.

Records with the same quasi-identifiers and the same sensitive codes are one *point*. A *holding* says how many
records of a point are in a class; it lies in two linked lists, that of its tuple and that of its class.
A step is drafted before it is done: sizes, histograms and boxes of touched classes change at once (their old
rows are kept beside them), holdings only when the step is accepted.

The loops below run millions of times a second. That is why what belongs together shares a matrix, and why they
leave a loop by its condition or a return: Numba counts references around every `break`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.kernels.jit import inner
from shoal.kernels.rules import class_deficit
from shoal.kernels.space import INTERVAL, SET, TREE, FlatSpace, popcount
from shoal.policy import FlatRules

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

# Columns of `spec`, one row an attribute; TABLE and VALUES are places in `losses`, NODES in `tree`, MASKS in bitmaps.
KIND, SLOT, STOP, CODES, MISSING, TABLE, VALUES, NODES, MASKS, SHIFT = range(10)
PARENT, FIRST, LAST = range(3)
# Columns of `hold`, one row a holding; FREE is a stack of unused rows.
POINT, TUPLE, CLASS, COUNT, TAKEN, NEXT_IN_CLASS, BACK_IN_CLASS, NEXT_IN_TUPLE, BACK_IN_TUPLE, FREE = range(10)
# Columns of `klass`, one row a class; LIVE and PLACE are a permutation with the classes in use first.
SIZE, OLD_SIZE, HEAD, STATUS, SEEN, LIVE, PLACE, TOUCHED = range(8)
OPEN, CHANGED, PARTIAL, CLOSED = range(4)
# Columns of `lists`: the plan (which holding, to which class, how many records), and what a scan found.
PLAN, TO, AMOUNT, FOUND, SPARE = range(5)
# Places in `number`.
CLASSES, FREES, TOUCHES, PLANS, FOUNDS, SPARES, STAMP, WORK = range(8)
NOBODY = -1


class Gauge(NamedTuple):
    """A space in three arrays: what every attribute is, all loss tables, all taxonomies."""

    spec: Ints
    losses: Floats
    tree: Ints


class Table(NamedTuple):
    """What never changes: distinct tuples, the tuple of each record, histogram columns of each point, near tuples, shares.

    Rows of `masks` are sets of tuples: for a range, row i those with a smaller code than i; for a set those with
    code i. Neighbouring codes of large domains share rows (SHIFT). The last two rows are for scans to write on.
    """

    codes: Shorts
    record_tuple: Shorts
    bins: Shorts
    near: Shorts
    masks: Words
    shares: Floats


class Store(NamedTuple):
    """The partition. Rows of classes are followed by as many old rows and two rows for a box on trial.

    Rows of `covers` are sets of classes: those whose box has code i. The last row is for a search to write on.
    """

    box: Ints
    loss: Floats
    histogram: Shorts
    klass: Ints
    hold: Shorts
    tuple_head: Shorts
    lists: Shorts
    covers: Words
    number: Ints


def gauge(flat: FlatSpace) -> Gauge:
    """Pack a flat space."""
    d = len(flat.kind)
    spec = np.full((d, 10), -1, dtype=np.int64)
    spec[:, KIND], spec[:, CODES], spec[:, MISSING] = flat.kind, flat.size, flat.missing
    spec[:, SLOT], spec[:, STOP] = flat.slot[:-1], flat.slot[1:]
    losses = [flat.pair]
    for a in range(d):
        begin, size = int(flat.start[a]), int(flat.size[a])
        spec[a, VALUES] = sum(map(len, losses))
        if flat.kind[a] == TREE:
            spec[a, NODES] = begin
        if flat.kind[a] == SET:
            losses.append(flat.set_loss[begin : begin + size + 1])
        elif flat.pair_start[a] >= 0:
            spec[a, TABLE] = flat.pair_start[a]
        elif flat.kind[a] == INTERVAL:
            losses.append(np.append(flat.values[begin : begin + flat.missing[a]] * flat.scale[a], flat.weight[a]))
        else:
            losses.append(highest_between(flat, begin, size))
    return Gauge(spec, np.concatenate(losses), np.stack([flat.parent, flat.first, flat.last], axis=1))


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


@inner
def range_cost(spec: Ints, losses: Floats, a: int, lo: int, hi: int) -> float:
    """Weighted loss of the code range lo … hi of an Interval or a Tree."""
    table, begin, codes = spec[a, TABLE], spec[a, VALUES], spec[a, CODES]
    if table >= 0:
        return losses[table + lo * codes + hi]
    if lo == hi:
        return 0.0
    if spec[a, KIND] == INTERVAL:
        return losses[begin + hi] - (0.0 if hi == spec[a, MISSING] else losses[begin + lo])
    j = np.int64(math.frexp(float(hi - lo))[1] - 1)
    row = begin + j * codes
    return max(losses[row + lo], losses[row + hi - (1 << j)])


@inner
def holds(box: Ints, c: int, slot: int, code: int) -> bool:
    """Whether the set that begins at a slot of row `c` has a code."""
    return (box[c, slot + (code >> 6)] >> (code & 63)) & 1 == 1


@inner
def set_cost(spec: Ints, losses: Floats, box: Ints, c: int, a: int, more: int) -> float:
    """Weighted loss of a set of row `c` with `more` codes added."""
    count = more
    for w in range(spec[a, SLOT], spec[a, STOP]):
        count += popcount(box[c, w])
    return losses[spec[a, VALUES] + count]


@inner
def row_cost(spec: Ints, losses: Floats, box: Ints, c: int) -> float:
    """Weighted loss of row `c` of a matrix of states."""
    total = 0.0
    for a in range(len(spec)):
        slot = spec[a, SLOT]
        if spec[a, KIND] != SET:
            total += range_cost(spec, losses, a, box[c, slot], box[c, slot + 1])
        else:
            total += set_cost(spec, losses, box, c, a, np.int64(0))
    return total


@inner
def row_growth(spec: Ints, losses: Floats, box: Ints, c: int, codes: Shorts, t: int, most: float) -> float:
    """How much the loss of row `c` rises when tuple `t` joins; any number of at least `most` beyond that."""
    total = 0.0
    # A plain 0 would be a type of its own, and whatever it is passed to compiled twice.
    a = np.int64(0)
    while a < len(spec) and total < most:
        slot = spec[a, SLOT]
        code = np.int64(codes[t, a])
        if spec[a, KIND] != SET:
            lo, hi = box[c, slot], box[c, slot + 1]
            if code < lo or code > hi:
                total += range_cost(spec, losses, a, min(lo, code), max(hi, code)) - range_cost(spec, losses, a, lo, hi)
        elif not holds(box, c, slot, code):
            total += set_cost(spec, losses, box, c, a, np.int64(1)) - set_cost(spec, losses, box, c, a, np.int64(0))
        a += 1
    return total


@inner
def row_join(spec: Ints, box: Ints, c: int, codes: Shorts, t: int, others: int) -> None:
    """Join tuple `t` into row `c`; it is the row's only tuple if there are no others."""
    for a in range(len(spec)):
        slot = spec[a, SLOT]
        code = np.int64(codes[t, a])
        if spec[a, KIND] != SET:
            box[c, slot] = min(box[c, slot], code) if others else code
            box[c, slot + 1] = max(box[c, slot + 1], code) if others else code
        else:
            for w in range(slot, spec[a, STOP]):
                bit = np.int64(1) << (code & 63) if w - slot == code >> 6 else 0
                box[c, w] = box[c, w] | bit if others else bit


@inner
def row_covers(spec: Ints, box: Ints, c: int, codes: Shorts, t: int) -> bool:
    """Whether tuple `t` lies in row `c`."""
    for a in range(len(spec)):
        slot = spec[a, SLOT]
        code = np.int64(codes[t, a])
        if spec[a, KIND] != SET:
            if code < box[c, slot] or code > box[c, slot + 1]:
                return False
        elif not holds(box, c, slot, code):
            return False
    return True


@inner
def widen(spec: Ints, tree: Ints, box: Ints, c: int) -> None:
    """Grow row `c` as far as it costs nothing: a code range of a taxonomy to its node, one with missing to all codes."""
    for a in range(len(spec)):
        slot, begin = spec[a, SLOT], spec[a, NODES]
        if spec[a, KIND] != SET and box[c, slot] < box[c, slot + 1]:
            if spec[a, KIND] == TREE:
                node = begin + box[c, slot]
                while tree[node, LAST] < box[c, slot + 1]:
                    node = begin + tree[node, PARENT]
                box[c, slot] = tree[node, FIRST]
                box[c, slot + 1] = tree[node, LAST]
            elif box[c, slot + 1] == spec[a, MISSING]:
                box[c, slot] = 0


@inner
def toggle(spec: Ints, tree: Ints, covers: Words, box: Ints, row: int, c: int) -> None:
    """Add class `c` to the sets of the codes that the box in `row` has, or take it out of them."""
    word = c >> 6
    bit = np.uint64(1) << np.uint64(c & 63)
    wide = len(box) - 1
    for w in range(box.shape[1]):
        box[wide, w] = box[row, w]
    widen(spec, tree, box, wide)
    for a in range(len(spec)):
        slot, first, shift = spec[a, SLOT], spec[a, MASKS], spec[a, SHIFT]
        if spec[a, KIND] != SET:
            for b in range(first + (box[wide, slot] >> shift), first + (box[wide, slot + 1] >> shift) + 1):
                covers[b, word] ^= bit
        else:
            last = NOBODY
            for code in range(spec[a, CODES]):
                b = first + (code >> shift)
                if b != last and holds(box, wide, slot, code):
                    covers[b, word] ^= bit
                    last = b


@njit(cache=True, nogil=True)
def cover(spec: Ints, tree: Ints, covers: Words, box: Ints, classes: int) -> None:
    """Fill the sets of classes."""
    for c in range(classes):
        toggle(spec, tree, covers, box, c, c)


@inner
def copy_row(box: Ints, loss: Floats, histogram: Shorts, c: int, to: int) -> None:
    """Copy what describes class `c` into another row."""
    loss[to] = loss[c]
    for w in range(box.shape[1]):
        box[to, w] = box[c, w]
    for v in range(histogram.shape[1]):
        histogram[to, v] = histogram[c, v]


@inner
def touch(box: Ints, loss: Floats, histogram: Shorts, klass: Ints, number: Ints, c: int) -> None:
    """Keep what class `c` was before the step changes it."""
    if klass[c, STATUS] == OPEN:
        klass[c, STATUS] = CHANGED
        klass[number[TOUCHES], TOUCHED] = c
        number[TOUCHES] += 1
        klass[c, OLD_SIZE] = klass[c, SIZE]
        copy_row(box, loss, histogram, c, c + len(klass))


@inner
def count_in(klass: Ints, histogram: Shorts, bins: Shorts, c: int, point: int, amount: int) -> None:
    """Add `amount` records of a point (or take them away) in the size and histogram of class `c`."""
    klass[c, SIZE] += amount
    for v in range(bins.shape[1]):
        b = bins[point, v]
        if b >= 0:
            histogram[c, b] += amount


@inner
def good(rules: FlatRules, klass: Ints, histogram: Shorts, c: int, k: int) -> bool:
    """Whether class `c` satisfies the policy; without histograms the size decides."""
    if klass[c, SIZE] < k:
        return False
    return histogram.shape[1] == 0 or class_deficit(rules, klass[c, SIZE], histogram[c]) <= 0.0


@inner
def note(lists: Shorts, hold: Shorts, number: Ints, h: int, to: int, amount: int) -> None:
    """Plan that `amount` records of a holding go to class `to`."""
    i = number[PLANS]
    lists[i, PLAN] = h
    lists[i, TO] = to
    lists[i, AMOUNT] = amount
    hold[h, TAKEN] += amount
    number[PLANS] = i + 1


@inner
def tighten(spec: Ints, codes: Shorts, box: Ints, hold: Shorts, number: Ints, c: int, head: int) -> None:
    """Shrink the box of a class to the records that stay in it."""
    h = head
    others = np.int64(0)
    while h != NOBODY:
        if hold[h, COUNT] > hold[h, TAKEN]:
            row_join(spec, box, c, codes, np.int64(hold[h, TUPLE]), others)
            others += 1
        number[WORK] += 1
        h = np.int64(hold[h, NEXT_IN_CLASS])


@inner
def finish(
    spec: Ints,
    tree: Ints,
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
    accepted: bool,
) -> None:
    """Carry the plan out, or forget it; either way the draft is empty afterwards."""
    for i in range(number[PLANS]):
        hold[lists[i, PLAN], TAKEN] = 0
    if accepted:
        if fresh != NOBODY:
            toggle(spec, tree, covers, box, fresh, fresh)
            number[CLASSES] += 1
        for i in range(number[PLANS]):
            h, to = np.int64(lists[i, PLAN]), np.int64(lists[i, TO])
            move(hold, klass, heads, number, h, to, np.int64(lists[i, AMOUNT]))
    elif fresh != NOBODY:
        empty(loss, histogram, klass, fresh)
    if fresh != NOBODY:
        klass[fresh, STATUS] = OPEN
    for i in range(number[TOUCHES]):
        c = klass[i, TOUCHED]
        if accepted:
            toggle(spec, tree, covers, box, c + len(klass), c)
            if klass[c, STATUS] != CLOSED:
                toggle(spec, tree, covers, box, c, c)
            else:
                empty(loss, histogram, klass, c)
                # The last class in use takes the place of the closed one.
                number[CLASSES] -= 1
                place, end = klass[c, PLACE], number[CLASSES]
                last = klass[end, LIVE]
                klass[place, LIVE], klass[last, PLACE] = last, place
                klass[end, LIVE], klass[c, PLACE] = c, end
        else:
            klass[c, SIZE] = klass[c, OLD_SIZE]
            copy_row(box, loss, histogram, c + len(klass), c)
        klass[c, STATUS] = OPEN
    number[TOUCHES] = 0
    number[PLANS] = 0


@inner
def empty(loss: Floats, histogram: Shorts, klass: Ints, c: int) -> None:
    """Make `c` a class without records."""
    klass[c, SIZE] = 0
    loss[c] = 0.0
    for v in range(histogram.shape[1]):
        histogram[c, v] = 0


@inner
def move(hold: Shorts, klass: Ints, heads: Shorts, number: Ints, h: int, to: int, amount: int) -> None:
    """Move records of a holding to another class."""
    point, t = hold[h, POINT], hold[h, TUPLE]
    hold[h, COUNT] -= amount
    whole = hold[h, COUNT] == 0
    in_class, in_tuple = np.int64(NEXT_IN_CLASS), np.int64(NEXT_IN_TUPLE)
    target = np.int64(heads[t])
    while target != NOBODY and not (hold[target, POINT] == point and hold[target, CLASS] == to):
        target = np.int64(hold[target, NEXT_IN_TUPLE])
    known = target != NOBODY
    if whole:
        klass[hold[h, CLASS], HEAD] = unlink(hold, h, klass[hold[h, CLASS], HEAD], in_class)
        if known:
            heads[t] = unlink(hold, h, np.int64(heads[t]), in_tuple)
            hold[number[FREES], FREE] = h
            number[FREES] += 1
        target = target if known else h
    elif not known:
        number[FREES] -= 1
        target = np.int64(hold[number[FREES], FREE])
        hold[target, POINT] = point
        hold[target, TUPLE] = t
        hold[target, COUNT] = 0
        link(hold, target, np.int64(heads[t]), in_tuple)
        heads[t] = target
    hold[target, COUNT] += amount
    if not known:
        hold[target, CLASS] = to
        link(hold, target, klass[to, HEAD], in_class)
        klass[to, HEAD] = target


@inner
def link(hold: Shorts, h: int, first: int, after: int) -> None:
    """Put a holding before the first of a list; `after` is the list's column, the one beside it leads back."""
    hold[h, after] = first
    hold[h, after + 1] = NOBODY
    if first != NOBODY:
        hold[first, after + 1] = h


@inner
def unlink(hold: Shorts, h: int, first: int, after: int) -> int:
    """Take a holding out of a list; returns the list's first."""
    following, before = hold[h, after], hold[h, after + 1]
    if following != NOBODY:
        hold[following, after + 1] = before
    if before != NOBODY:
        hold[before, after] = following
        return first
    return np.int64(following)
