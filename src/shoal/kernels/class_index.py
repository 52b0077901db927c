"""A balanced tree over the states of classes: the class that takes a record, or another class, for the least added loss.

Joining a class of s records and loss U per record with t records of state q costs t·J + s·(J − U), where J is the loss
of the joined state: for one record just what Truta & Campan 2007 call the increase of the total loss. A node of the tree
knows the state that covers its classes, the least and the largest loss of each attribute among them, and their
smallest size. That bounds the cost of every class below it:

- J is at least the loss of q joined with the nearest code of the covering state, and at least the least loss below;
- J − U is at least what q lies outside the covering interval, or what the joined loss exceeds the largest loss below.

So a search that always opens the node with the smallest bound finds the exact best class and looks at few others. All
terms rise with the states, also in floating point, and where a difference is taken the bound gives way by more than a
rounding error. Costs are compared in ticks, then by class, and nodes know their first class: ties go to the oldest.

Classes come and go as records do: nodes are split when full, as in a B-tree, and vanish when empty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.kernels.heap import Heap, part_by, pop, push
from shoal.kernels.jit import bare, entry, inner, loop
from shoal.kernels.space import INTERVAL, SET, TICKS, FlatSpace, attribute_loss, popcount, range_loss

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]

FAN = 12
FILL = 8
ROUNDS = 2
ROUNDING = 1e-12
# Nodes whose classes lose alike have the sharper bounds.
LOSS_MATTERS = 2.0
# A sum may be given up when it is above the limit by more than rounding can explain.
SLACK = 1e-9
# Classes from which it is told what many of them differ in; a poor choice would cost searches time and nothing else.
TOLD_BY = 64
NOBODY = -1
NEVER = np.int64(2**62)

# Columns of `Groups.info`, one row a class.
SIZE, HEAD, LEAF = range(3)
# Columns of `Index.info`, one row a node; FIRST is the oldest class below it, LEAST the size of the smallest.
PARENT, COUNT, IS_LEAF, FIRST, LEAST = range(5)
# Places in `Index.top`; FREE begins a list of unused nodes, linked by PARENT, LIVE counts the others, ITEMS the classes.
ROOT, NODES, FREE, LIVE, ITEMS = range(5)
# Columns of an aim, one row an attribute.
ROW, LIMIT = range(2)


class Groups(NamedTuple):
    """The classes: joined state, loss per attribute with the sum in the last column, size, first member, leaf."""

    state: Ints
    loss: Floats
    info: Ints


class Index(NamedTuple):
    """The nodes: children (classes in a leaf), covering state, least and largest losses, least sum of losses."""

    kids: Shorts
    box: Ints
    bound: Floats
    info: Ints
    top: Ints


def make_index(flat: FlatSpace, nodes: int) -> Index:
    """An empty index with room for so many nodes."""
    d = len(flat.kind)
    index = Index(
        kids=np.zeros((nodes, FAN), dtype=np.int32),
        box=np.zeros((nodes, int(flat.slot[-1])), dtype=np.int64),
        bound=np.zeros((nodes, 2 * d + 1)),
        info=np.zeros((nodes, 5), dtype=np.int64),
        top=np.array([0, 1, NOBODY, 1, 0], dtype=np.int64),
    )
    index.info[0] = NOBODY, 0, 1, NEVER, NEVER
    return index


@bare
def appraise(flat: FlatSpace, groups: Groups, c: int) -> None:
    """Losses of a class whose state has moved."""
    d = len(flat.kind)
    total = 0.0
    for a in range(d):
        lost = attribute_loss(flat, groups.state[c], a)
        groups.loss[c, a] = lost
        total += lost
    groups.loss[c, d] = total


@entry
def appraise_all(flat: FlatSpace, groups: Groups, used: int) -> None:
    """Losses of all classes."""
    for c in range(used):
        if groups.info[c, SIZE] > 0:
            appraise(flat, groups, c)


@loop
def build(flat: FlatSpace, index: Index, groups: Groups, order: Ints) -> None:
    """The tree of the classes listed in `order`, which is rearranged; children come after their parents."""
    index.top[ROOT], index.top[NODES], index.top[FREE], index.top[LIVE] = 0, 1, NOBODY, 1
    index.top[ITEMS] = len(order)
    begins, ends = np.zeros(len(index.info), dtype=np.int64), np.zeros(len(index.info), dtype=np.int64)
    index.info[0, PARENT], ends[0] = NOBODY, len(order)
    cuts = np.zeros(2**ROUNDS + 1, dtype=np.int64)
    node = 0
    while node < index.top[NODES]:
        begin, end = begins[node], ends[node]
        index.info[node, COUNT] = 0
        index.info[node, IS_LEAF] = end - begin <= FILL
        if index.info[node, IS_LEAF]:
            for i in range(begin, end):
                adopt(index, groups, node, order[i])
        else:
            cuts[0], cuts[1], parts = begin, end, 1
            for _ in range(ROUNDS):
                # From the last part on, so that no cut is overwritten before it is read.
                for i in range(parts - 1, -1, -1):
                    first, last = cuts[i], cuts[i + 1]
                    middle = last
                    if last - first > FILL:
                        middle = first + halve(flat, groups.state, groups.loss, order[first:last])
                    cuts[2 * i], cuts[2 * i + 1], cuts[2 * i + 2] = first, middle, last
                parts *= 2
            for i in range(parts):
                if cuts[i] < cuts[i + 1]:
                    child = index.top[NODES]
                    index.top[NODES] += 1
                    index.top[LIVE] += 1
                    begins[child], ends[child] = cuts[i], cuts[i + 1]
                    adopt(index, groups, node, child)
        node += 1
    for i in range(index.top[NODES] - 1, -1, -1):
        pull(flat, index, groups, i)


@bare
def adopt(index: Index, groups: Groups, node: int, child: int) -> None:
    """One more child of a node that has room."""
    index.kids[node, index.info[node, COUNT]] = child
    index.info[node, COUNT] += 1
    if index.info[node, IS_LEAF]:
        groups.info[child, LEAF] = node
    else:
        index.info[child, PARENT] = node


@inner
def halve(flat: FlatSpace, states: Ints, losses: Floats, members: Ints) -> int:
    """Part some states by what they differ in most, the place in an attribute or its loss; where the second half begins."""
    count = len(members)
    if count < 2:
        return count
    step = max(1, count // TOLD_BY)
    looked = (count + step - 1) // step
    chosen, by_loss, most = 0, True, -1.0
    for a in range(len(flat.kind)):
        # Averages, not extremes: one stray class says little about the others.
        lost, place = 0.0, 0.0
        for i in range(0, count, step):
            lost += losses[members[i], a] / looked
            place += place_of(flat, states[members[i]], a) / looked
        centre = np.int64(np.rint(place))
        spread, apart = 0.0, 0.0
        for i in range(0, count, step):
            spread += LOSS_MATTERS * abs(losses[members[i], a] - lost)
            at = place_of(flat, states[members[i]], a)
            if flat.kind[a] != SET:
                apart += range_loss(flat, a, min(at, centre), max(at, centre))
            elif at != centre:
                apart += flat.set_loss[flat.start[a] + 2]
        if spread > most:
            chosen, by_loss, most = a, True, spread
        if apart > most:
            chosen, by_loss, most = a, False, apart
    keys = np.empty(count)
    for i in range(count):
        keys[i] = losses[members[i], chosen] if by_loss else place_of(flat, states[members[i]], chosen)
    part_by(keys, members, count // 2)
    return count // 2


@bare
def place_of(flat: FlatSpace, state: Ints, a: int) -> int:
    """Where a state lies in an attribute: the middle code, or the first member of a set."""
    slot = flat.slot[a]
    if flat.kind[a] != SET:
        return (state[slot] + state[slot + 1]) >> 1
    for w in range(slot, flat.slot[a + 1]):
        for bit in range(64):
            if (state[w] >> bit) & 1:
                return 64 * (w - slot) + bit
    return 0


@bare
def pull(flat: FlatSpace, index: Index, groups: Groups, node: int) -> None:
    """What a node knows, from its children."""
    d = len(flat.kind)
    info, box, bound = index.info[node], index.box[node], index.bound[node]
    info[FIRST], info[LEAST] = NEVER, NEVER
    for i in range(info[COUNT]):
        child = index.kids[node, i]
        if info[IS_LEAF]:
            state, least, largest = groups.state[child], groups.loss[child, :d], groups.loss[child, :d]
            total, first, size = groups.loss[child, d], np.int64(child), groups.info[child, SIZE]
        else:
            state, least, largest = index.box[child], index.bound[child, :d], index.bound[child, d : 2 * d]
            total, first, size = index.bound[child, 2 * d], index.info[child, FIRST], index.info[child, LEAST]
        info[FIRST], info[LEAST] = min(info[FIRST], first), min(info[LEAST], size)
        bound[2 * d] = min(bound[2 * d], total) if i > 0 else total
        for a in range(d):
            slot = flat.slot[a]
            if i == 0:
                bound[a], bound[d + a] = least[a], largest[a]
                for w in range(slot, flat.slot[a + 1]):
                    box[w] = state[w]
                continue
            bound[a], bound[d + a] = min(bound[a], least[a]), max(bound[d + a], largest[a])
            if flat.kind[a] != SET:
                box[slot], box[slot + 1] = min(box[slot], state[slot]), max(box[slot + 1], state[slot + 1])
            else:
                for w in range(slot, flat.slot[a + 1]):
                    box[w] |= state[w]


@loop
def pull_all(flat: FlatSpace, index: Index, groups: Groups) -> None:
    """What every node knows, from the leaves up: after losses or codes have changed everywhere."""
    order = np.empty(index.top[LIVE], dtype=np.int64)
    order[0], count, i = index.top[ROOT], 1, 0
    while i < count:
        node = order[i]
        if not index.info[node, IS_LEAF]:
            for j in range(index.info[node, COUNT]):
                order[count] = index.kids[node, j]
                count += 1
        i += 1
    for i in range(count - 1, -1, -1):
        pull(flat, index, groups, order[i])


@bare
def pull_up(flat: FlatSpace, index: Index, groups: Groups, node: int) -> None:
    """The same for a node and all above it."""
    while node != NOBODY:
        pull(flat, index, groups, node)
        node = index.info[node, PARENT]


@bare
def widen_up(flat: FlatSpace, index: Index, groups: Groups, c: int) -> None:
    """What the nodes above a class have to know when it has grown: covering states and largest losses.

    Least losses and sizes stay what they were, which is less than true and does no harm; a node that knew all stops it.
    """
    d, state, node = len(flat.kind), groups.state[c], groups.info[c, LEAF]
    while node != NOBODY:
        box, bound, news = index.box[node], index.bound[node], False
        for a in range(d):
            if groups.loss[c, a] > bound[d + a]:
                bound[d + a], news = groups.loss[c, a], True
            slot = flat.slot[a]
            if flat.kind[a] != SET:
                if state[slot] < box[slot]:
                    box[slot], news = state[slot], True
                if state[slot + 1] > box[slot + 1]:
                    box[slot + 1], news = state[slot + 1], True
            else:
                for w in range(slot, flat.slot[a + 1]):
                    if state[w] & ~box[w]:
                        box[w] |= state[w]
                        news = True
        if not news:
            return
        node = index.info[node, PARENT]


@bare
def enter(flat: FlatSpace, index: Index, groups: Groups, c: int, leaf: int) -> None:
    """Put a class into a leaf; full nodes on the way up are split. Needs room for one node a level and a root."""
    child, node = c, leaf
    index.top[ITEMS] += 1
    while index.info[node, COUNT] == FAN:
        child = divide(flat, index, groups, node, child)
        if index.info[node, PARENT] == NOBODY:
            root = fresh_node(index)
            index.info[root, PARENT], index.info[root, COUNT], index.info[root, IS_LEAF] = NOBODY, 0, 0
            index.top[ROOT] = root
            adopt(index, groups, root, node)
        pull(flat, index, groups, node)
        pull(flat, index, groups, child)
        node = index.info[node, PARENT]
    adopt(index, groups, node, child)
    pull_up(flat, index, groups, node)


@inner
def divide(flat: FlatSpace, index: Index, groups: Groups, node: int, extra: int) -> int:
    """Leave half of a full node's children and one more to a new node, which is returned."""
    members = np.empty(FAN + 1, dtype=np.int64)
    for i in range(FAN):
        members[i] = index.kids[node, i]
    members[FAN] = extra
    if index.info[node, IS_LEAF]:
        middle = halve(flat, groups.state, groups.loss, members)
    else:
        middle = halve(flat, index.box, index.bound, members)
    sibling = fresh_node(index)
    index.info[sibling, COUNT], index.info[sibling, IS_LEAF] = 0, index.info[node, IS_LEAF]
    index.info[node, COUNT] = 0
    for i in range(FAN + 1):
        adopt(index, groups, node if i < middle else sibling, members[i])
    return sibling


@bare
def fresh_node(index: Index) -> int:
    """An unused node."""
    index.top[LIVE] += 1
    node = index.top[FREE]
    if node != NOBODY:
        index.top[FREE] = index.info[node, PARENT]
        return node
    index.top[NODES] += 1
    return index.top[NODES] - 1


@bare
def leave(flat: FlatSpace, index: Index, groups: Groups, c: int) -> None:
    """Take a class out of its leaf; nodes that become empty go too."""
    child, node = c, groups.info[c, LEAF]
    groups.info[c, LEAF] = NOBODY
    index.top[ITEMS] -= 1
    while True:
        last = index.info[node, COUNT] - 1
        for i in range(last):
            if index.kids[node, i] == child:
                index.kids[node, i] = index.kids[node, last]
                break
        index.info[node, COUNT] = last
        if last > 0 or index.info[node, PARENT] == NOBODY:
            break
        child, node = node, index.info[node, PARENT]
        index.info[child, PARENT] = index.top[FREE]
        index.top[FREE] = child
        index.top[LIVE] -= 1
    if index.info[node, COUNT] == 0:
        index.info[node, IS_LEAF] = 1
    pull_up(flat, index, groups, node)


@loop
def best_class(flat: FlatSpace, index: Index, groups: Groups, heap: Heap, state: Ints, records: int) -> int:
    """The class that takes so many records of this joined state for the least added loss; NOBODY without a class."""
    aim = take_aim(flat, state)
    best, chosen, limit = NEVER, NEVER, np.inf
    node = index.top[ROOT]
    # Straight down to some leaf first: a fair class at once keeps most nodes from ever entering the heap.
    while not index.info[node, IS_LEAF]:
        least, nearest = NEVER, NEVER
        for i in range(index.info[node, COUNT]):
            child = np.int64(index.kids[node, i])
            cost = node_cost(flat, index, child, state, aim, records, np.inf)
            if cost < least:
                least, nearest = cost, child
        node = nearest
    start_ranking(index, heap)
    while True:
        if index.info[node, IS_LEAF]:
            for i in range(index.info[node, COUNT]):
                child = np.int64(index.kids[node, i])
                cost = class_cost(flat, groups, child, state, records, limit)
                if cost < best or (cost == best and child < chosen):
                    best, chosen = cost, child
                    limit = (best / TICKS) * (1 + SLACK) + SLACK
        else:
            for i in range(index.info[node, COUNT]):
                child = np.int64(index.kids[node, i])
                cost = node_cost(flat, index, child, state, aim, records, limit)
                if cost <= best:
                    push(heap, cost, index.info[child, FIRST], child)
        if heap.size[0] == 0 or heap.ticks[0] > best or (heap.ticks[0] == best and heap.first[0] > chosen):
            break
        node = heap.item[0]
        pop(heap)
    return chosen if chosen < NEVER else NOBODY


@entry
def start_ranking(index: Index, heap: Heap) -> None:
    """Nothing has been looked at yet."""
    heap.size[0] = 0
    push(heap, 0, 0, index.top[ROOT])


@loop
def next_ranked(
    flat: FlatSpace, index: Index, groups: Groups, heap: Heap, state: Ints, records: int, found: Ints
) -> int:
    """The next best classes after those already returned, in order; how many there were."""
    aim = take_aim(flat, state)
    count = 0
    while heap.size[0] > 0 and count < len(found):
        node = heap.item[0]
        pop(heap)
        if node < 0:
            found[count] = ~node
            count += 1
            continue
        for i in range(index.info[node, COUNT]):
            child = np.int64(index.kids[node, i])
            if index.info[node, IS_LEAF]:
                push(heap, class_cost(flat, groups, child, state, records, np.inf), child, ~child)
            else:
                cost = node_cost(flat, index, child, state, aim, records, np.inf)
                push(heap, cost, index.info[child, FIRST], child)
    return count


@inner
def take_aim(flat: FlatSpace, state: Ints) -> Ints:
    """What the bounds ask again and again about one state: where the losses from its code lie in the table of pairs, and
    below which end of a covering interval all classes are intervals of numbers; -1 where a shortcut does not hold.
    """
    aim = np.full((len(flat.kind), 2), -1, dtype=np.int64)
    for a in range(len(flat.kind)):
        slot = flat.slot[a]
        if flat.kind[a] != SET and state[slot] == state[slot + 1]:
            if flat.pair_start[a] >= 0:
                aim[a, ROW] = flat.pair_start[a] + state[slot] * flat.size[a]
            if flat.kind[a] == INTERVAL and state[slot] < flat.missing[a]:
                aim[a, LIMIT] = flat.missing[a]
    return aim


@njit(cache=True, nogil=True, inline="always")
def class_cost(flat: FlatSpace, groups: Groups, c: int, state: Ints, records: int, limit: float) -> int:
    """Ticks of the added loss; NEVER as soon as that is certainly above the limit."""
    own, size = groups.state[c], groups.info[c, SIZE]
    paid = size * groups.loss[c, len(flat.kind)]
    total = 0.0
    for a in range(len(flat.kind)):
        slot = flat.slot[a]
        if flat.kind[a] != SET:
            total += range_loss(flat, a, min(state[slot], own[slot]), max(state[slot + 1], own[slot + 1]))
        else:
            count = 0
            for w in range(slot, flat.slot[a + 1]):
                count += popcount(state[w] | own[w])
            total += flat.set_loss[flat.start[a] + count]
        if (records + size) * total - paid > limit:
            return NEVER
    return np.int64(np.rint((records * total + size * (total - groups.loss[c, len(flat.kind)])) * TICKS))


@njit(cache=True, nogil=True, inline="always")
def node_cost(flat: FlatSpace, index: Index, node: int, state: Ints, aim: Ints, records: int, limit: float) -> int:
    """No class below the node costs less; NEVER as soon as that is certainly above the limit."""
    d = len(flat.kind)
    box, bound, least = index.box[node], index.bound[node], index.info[node, LEAST]
    joined, moved = 0.0, 0.0
    for a in range(d):
        slot = flat.slot[a]
        if flat.kind[a] == SET:
            outside = 0
            for w in range(slot, flat.slot[a + 1]):
                outside += popcount(state[w] & ~box[w])
            joined += bound[a]
            if outside > 0:
                # Every value more costs at least its share of the whole set.
                step = outside * flat.set_loss[flat.start[a] + flat.size[a]] / flat.size[a] * (1 - ROUNDING)
                moved += step
                joined += step
            continue
        nearest = max(box[slot], min(box[slot + 1], state[slot]))
        if aim[a, ROW] >= 0:
            lost = flat.pair[aim[a, ROW] + nearest]
        else:
            lost = range_loss(flat, a, min(state[slot], nearest), max(state[slot + 1], nearest))
        joined += max(lost, bound[a])
        # An interval grows by all that a number lies outside; otherwise the class may have lost something already.
        moved += max(0.0, lost if box[slot + 1] < aim[a, LIMIT] else lost - bound[d + a])
        if records * joined + least * moved > limit:
            return NEVER
    joined = max(joined, bound[2 * d])
    moved = max(0.0, moved - ROUNDING * (1 + moved))
    return np.int64(np.rint((records * joined + least * moved) * TICKS))
