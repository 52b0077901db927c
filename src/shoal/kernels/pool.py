"""The free records in a tree: the cheapest for a class and the furthest from a record, without looking at all of them.

Records with equal quasi-identifiers (and equal sensitive values, where these matter) are one *point*. The points that are
still free lie in a tree whose nodes know the state that covers their points, so that a node's loss joined with a class
is a lower bound for every record below it, and its loss joined with one record an upper bound of the pair costs.

Two facts make the search exact and short:

- Joining is monotone, also in floating point: losses come out of tables that rise with the range, and rounded sums rise
  with their terms. So a bound never lies on the wrong side, not even by a rounding.
- A class only grows, so an old bound is still a bound. The frontier of the search is therefore kept while a class grows
  and an entry is priced again only when it comes to the top (lazy greedy).

Costs are compared in ticks, then by record index, everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, entry, inner, loop
from shoal.kernels.space import SET, TICKS, TREE, FlatSpace, attribute_loss, begin, merge, popcount, range_loss

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

LEAF = 8
SAMPLE = 33
GONE = np.int64(2**62)
# An entry of a frontier is priced and sinks some levels when it is moved: about so many elementary steps.
MOVE = 8

# A bare 0 is a type of its own for the compiler, and every function it is given to is compiled once more.
ZERO = np.int64(0)
STALE = np.int64(-1)


class Pool(NamedTuple):
    """Free records as points in a tree. `first` is the smallest free record below a node, GONE when there is none."""

    codes: Codes
    group: Ints
    start: Ints
    records: Ints
    next: Ints
    leaf: Ints
    begin: Ints
    end: Ints
    left: Ints
    parent: Ints
    state: Ints
    first: Ints


class Frontier(NamedTuple):
    """A binary heap of nodes and points by (ticks, record); `version` tells for which state an entry was priced.

    `size` holds the number of entries, and the steps that were taken so far.
    """

    ticks: Ints
    record: Ints
    item: Ints
    version: Ints
    size: Ints


def make_pool(flat: FlatSpace, codes: Codes, key: Ints, group: Ints, records: Ints) -> Pool:
    """The pool of some records (ascending). Records with the same `key` have the same codes and the same group."""
    order = np.argsort(key[records], kind="stable")
    listed = records[order]
    sorted_key = key[listed]
    fresh = np.concatenate([[True], sorted_key[1:] != sorted_key[:-1]])
    start = np.append(np.flatnonzero(fresh), len(listed)).astype(np.int64)
    heads = listed[start[:-1]]
    points = np.ascontiguousarray(codes[heads])
    place, lo, hi, left, parent = build_tree(flat, points)
    lengths = np.diff(start)[place]
    new_start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    within = np.arange(len(listed)) - np.repeat(new_start[:-1], lengths)
    pool = Pool(
        codes=np.ascontiguousarray(points[place]),
        group=group[heads[place]].astype(np.int64),
        start=new_start,
        records=listed[np.repeat(start[:-1][place], lengths) + within],
        next=new_start[:-1].copy(),
        leaf=np.zeros(len(place), dtype=np.int64),
        begin=lo,
        end=hi,
        left=left,
        parent=parent,
        state=np.zeros((len(lo), flat.slot[-1]), dtype=np.int64),
        first=np.zeros(len(lo), dtype=np.int64),
    )
    fill_nodes(flat, pool)
    return pool


def bring_forward(pool: Pool, record: int) -> int:
    """Make a free record the next one of its point, and return the point."""
    at = int(np.flatnonzero(pool.records == record)[0])
    point = int(np.searchsorted(pool.start, at, side="right")) - 1
    pool.records[pool.next[point] : at + 1] = np.roll(pool.records[pool.next[point] : at + 1], 1)
    return point


def make_frontier(pool: Pool) -> Frontier:
    """Room for every node and point once."""
    room = len(pool.begin) + len(pool.codes)
    arrays = [np.zeros(room, dtype=np.int64) for _ in range(4)]
    return Frontier(arrays[0], arrays[1], arrays[2], arrays[3], np.zeros(2, dtype=np.int64))


def build_tree(flat: FlatSpace, codes: Codes) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """The order of the points, and begin, end, left child (the right one follows) and parent of each node."""
    n = len(codes)
    place, nodes = np.arange(n), np.full((2 * n, 4), -1, dtype=np.int64)
    used = cut_nodes(flat, codes, place, np.empty(n, dtype=np.int64), np.empty(SAMPLE, dtype=np.int64), nodes)
    return (place, *(np.ascontiguousarray(nodes[:used, column]) for column in range(4)))


@loop
def cut_nodes(flat: FlatSpace, codes: Codes, place: Ints, spare: Ints, sample: Ints, nodes: Ints) -> int:
    """Cut the points where their state loses most, near the middle; at a child's border inside a taxonomy."""
    state = np.empty(flat.slot[-1], dtype=np.int64)
    nodes[0, 0], nodes[0, 1] = 0, len(codes)
    used, node = 1, 0
    while node < used:
        low, high = nodes[node, 0], nodes[node, 1]
        if high - low > LEAF:
            begin(flat, state, codes[place[low]])
            for i in range(low + 1, high):
                absorb(flat, state, codes[place[i]])
            a = widest(flat, state)
            middle = (low + high) // 2
            if a >= 0:
                count = min(SAMPLE, high - low)
                for i in range(count):
                    code = np.int64(codes[place[low + i * (high - low) // count], a])
                    at = i
                    while at > 0 and sample[at - 1] > code:
                        sample[at] = sample[at - 1]
                        at -= 1
                    sample[at] = code
                cut = cut_code(flat, state, a, sample[count // 2])
                middle, rest = low, 0
                for i in range(low, high):
                    if codes[place[i], a] <= cut:
                        place[middle] = place[i]
                        middle += 1
                    else:
                        spare[rest] = place[i]
                        rest += 1
                for i in range(rest):
                    place[middle + i] = spare[i]
            nodes[node, 2] = used
            nodes[used, 0], nodes[used, 1], nodes[used, 3] = low, middle, node
            nodes[used + 1, 0], nodes[used + 1, 1], nodes[used + 1, 3] = middle, high, node
            used += 2
        node += 1
    return used


@entry
def widest(flat: FlatSpace, state: Ints) -> int:
    """The attribute whose joined state loses most; -1 when all points agree in everything that costs."""
    best, chosen = 0.0, -1
    for a in range(len(flat.kind)):
        lost = attribute_loss(flat, state, a)
        if lost > best:
            best, chosen = lost, a
    return chosen


@bare
def cut_code(flat: FlatSpace, state: Ints, a: int, middle: int) -> int:
    """The largest code of the left part; both parts get a point, because the ends of the state occur."""
    slot = flat.slot[a]
    if flat.kind[a] == SET:
        low, high = np.int64(-1), np.int64(-1)
        for w in range(slot, flat.slot[a + 1]):
            for bit in range(64):
                if (state[w] >> bit) & 1:
                    high = 64 * (w - slot) + bit
                    low = high if low < 0 else low
    else:
        low, high = state[slot], state[slot + 1]
    if flat.kind[a] == TREE:
        top = flat.start[a]
        root = low
        while flat.last[top + root] < high:
            root = flat.parent[top + root]
        child = middle
        while flat.parent[top + child] != root:
            child = flat.parent[top + child]
        return flat.last[top + child] if flat.last[top + child] < high else flat.first[top + child] - 1
    return max(low, min(high - 1, middle))


@entry
def fill_nodes(flat: FlatSpace, pool: Pool) -> None:
    """States and first records, children before parents."""
    for node in range(len(pool.begin) - 1, -1, -1):
        left = pool.left[node]
        if left >= 0:
            for slot in range(pool.state.shape[1]):  # a slice assignment takes long to compile
                pool.state[node, slot] = pool.state[left, slot]
            merge(flat, pool.state[node], pool.state[left + 1])
            pool.first[node] = min(pool.first[left], pool.first[left + 1])
            continue
        begin(flat, pool.state[node], pool.codes[pool.begin[node]])
        pool.first[node] = GONE
        for i in range(pool.begin[node], pool.end[node]):
            absorb(flat, pool.state[node], pool.codes[i])
            pool.first[node] = min(pool.first[node], pool.records[pool.start[i]])
            pool.leaf[i] = node


@entry
def take(pool: Pool, point: int) -> int:
    """Remove the point's smallest free record from the pool and return it."""
    record = pool.records[pool.next[point]]
    pool.next[point] += 1
    node = pool.leaf[point]
    first = GONE
    for i in range(pool.begin[node], pool.end[node]):
        if pool.next[i] < pool.start[i + 1]:
            first = min(first, pool.records[pool.next[i]])
    while True:
        if first == pool.first[node]:
            break
        pool.first[node] = first
        if node == 0:
            break
        node = pool.parent[node]
        first = min(pool.first[pool.left[node]], pool.first[pool.left[node] + 1])
    return record


@bare
def node_bound(flat: FlatSpace, node: Ints, state: Ints) -> int:
    """No record below the node joins `state` for less."""
    total = 0.0
    for a in range(len(flat.kind)):
        slot = flat.slot[a]
        if flat.kind[a] != SET:
            nearest = max(node[slot], min(node[slot + 1], state[slot]))
            total += range_loss(flat, a, min(state[slot], nearest), max(state[slot + 1], nearest))
        else:
            count, new = 0, 1
            for w in range(slot, flat.slot[a + 1]):
                count += popcount(state[w])
                if state[w] & node[w]:
                    new = 0
            total += flat.set_loss[flat.start[a] + count + new]
    return np.int64(np.rint(total * TICKS))


@bare
def node_reach(flat: FlatSpace, node: Ints, codes: Codes) -> int:
    """No record below the node is further from the record with these codes."""
    total = 0.0
    for a in range(len(flat.kind)):
        slot = flat.slot[a]
        code = np.int64(codes[a])
        if flat.kind[a] != SET:
            total += max(
                range_loss(flat, a, min(node[slot], code), max(node[slot], code)),
                range_loss(flat, a, min(node[slot + 1], code), max(node[slot + 1], code)),
            )
        else:
            other = 0
            for w in range(slot, flat.slot[a + 1]):
                word = node[w]
                if w == slot + (code >> 6):
                    word &= ~(np.int64(1) << (code & 63))
                if word:
                    other = 1
            total += flat.set_loss[flat.start[a] + 1 + other]
    return np.int64(np.rint(total * TICKS))


@bare
def point_loss(flat: FlatSpace, codes: Codes, state: Ints) -> float:
    """The loss of `state` joined with one record, as `shoal.kernels.space.joined_loss`, for inner loops."""
    total = 0.0
    for a in range(len(flat.kind)):
        slot = flat.slot[a]
        code = np.int64(codes[a])
        if flat.kind[a] != SET:
            total += range_loss(flat, a, min(state[slot], code), max(state[slot + 1], code))
        else:
            count = 0
            for w in range(slot, flat.slot[a + 1]):
                count += popcount(state[w])
            if not (state[slot + (code >> 6)] >> (code & 63)) & 1:
                count += 1
            total += flat.set_loss[flat.start[a] + count]
    return total


@bare
def point_cost(flat: FlatSpace, codes: Codes, state: Ints) -> int:
    """Its ticks."""
    return np.int64(np.rint(point_loss(flat, codes, state) * TICKS))


@bare
def push(front: Frontier, ticks: int, record: int, item: int, version: int) -> None:
    """Add an entry to the heap."""
    i = front.size[0]
    front.size[0] += 1
    front.size[1] += MOVE
    while i > 0:
        up = (i - 1) >> 1
        if front.ticks[up] < ticks or (front.ticks[up] == ticks and front.record[up] <= record):
            break
        front.ticks[i], front.record[i] = front.ticks[up], front.record[up]
        front.item[i], front.version[i] = front.item[up], front.version[up]
        i = up
    front.ticks[i], front.record[i], front.item[i], front.version[i] = ticks, record, item, version


@bare
def settle(front: Frontier, ticks: int, record: int, item: int, version: int) -> None:
    """Put an entry in the place of the top one."""
    front.size[1] += MOVE
    i, size = 0, front.size[0]
    while True:
        down = 2 * i + 1
        if down >= size:
            break
        right = down + 1
        if right < size and (
            front.ticks[right] < front.ticks[down]
            or (front.ticks[right] == front.ticks[down] and front.record[right] < front.record[down])
        ):
            down = right
        if ticks < front.ticks[down] or (ticks == front.ticks[down] and record <= front.record[down]):
            break
        front.ticks[i], front.record[i] = front.ticks[down], front.record[down]
        front.item[i], front.version[i] = front.item[down], front.version[down]
        i = down
    front.ticks[i], front.record[i], front.item[i], front.version[i] = ticks, record, item, version


@inner
def pop(front: Frontier) -> None:
    """Drop the top entry."""
    front.size[0] -= 1
    last = front.size[0]
    if last > 0:
        settle(front, front.ticks[last], front.record[last], front.item[last], front.version[last])


@entry
def furthest(flat: FlatSpace, pool: Pool, front: Frontier, codes: Codes) -> int:
    """The point with the largest pair cost to a record with these codes; ties to the smallest record."""
    front.size[0] = 0
    push(front, -GONE, pool.first[0], ZERO, ZERO)
    while True:
        item = front.item[0]
        if item < 0:
            return ~item
        pop(front)
        if pool.left[item] >= 0:
            for child in range(pool.left[item], pool.left[item] + 2):
                if pool.first[child] < GONE:
                    push(front, -node_reach(flat, pool.state[child], codes), pool.first[child], child, ZERO)
        else:
            for i in range(pool.begin[item], pool.end[item]):
                if pool.next[i] < pool.start[i + 1]:
                    cost = pair_cost(flat, pool.codes[i], codes)
                    push(front, -cost, pool.records[pool.next[i]], ~i, ZERO)


@bare
def pair_cost(flat: FlatSpace, codes: Codes, other: Codes) -> int:
    """Ticks of unit({a, b})."""
    total = 0.0
    for a in range(len(flat.kind)):
        x, y = np.int64(codes[a]), np.int64(other[a])
        if flat.kind[a] != SET:
            total += range_loss(flat, a, min(x, y), max(x, y))
        else:
            total += flat.set_loss[flat.start[a] + (1 if x == y else 2)]
    return np.int64(np.rint(total * TICKS))


@entry
def start_search(front: Frontier) -> None:
    """An empty class: everything is still to be priced."""
    front.size[0] = 0
    push(front, ZERO, ZERO, ZERO, STALE)


@loop
def cheapest(flat: FlatSpace, pool: Pool, front: Frontier, state: Ints, version: int) -> int:
    """The point that joins `state` for the least loss, ties to the smallest record; -1 when the pool is empty.

    It stays on top of the frontier, priced; entries are stale when `version` has moved on.
    """
    while front.size[0] > 0:
        item = front.item[0]
        if item < 0:
            point = ~item
            if pool.next[point] == pool.start[point + 1]:
                pop(front)
                continue
            record = pool.records[pool.next[point]]
            if front.version[0] == version and front.record[0] == record:
                return point
            settle(front, point_cost(flat, pool.codes[point], state), record, item, version)
        elif pool.first[item] == GONE:
            pop(front)
        elif front.version[0] != version:
            settle(front, node_bound(flat, pool.state[item], state), pool.first[item], item, version)
        else:
            pop(front)
            if pool.left[item] >= 0:
                for child in range(pool.left[item], pool.left[item] + 2):
                    if pool.first[child] < GONE:
                        bound = node_bound(flat, pool.state[child], state)
                        push(front, bound, pool.first[child], child, version)
            else:
                for i in range(pool.begin[item], pool.end[item]):
                    if pool.next[i] < pool.start[i + 1]:
                        cost = point_cost(flat, pool.codes[i], state)
                        push(front, cost, pool.records[pool.next[i]], ~i, version)
    return -1


@entry
def absorb(flat: FlatSpace, state: Ints, codes: Codes) -> bool:
    """Join a record into a state; whether that moved the state."""
    moved = False
    for a in range(len(flat.kind)):
        slot = flat.slot[a]
        code = np.int64(codes[a])
        if flat.kind[a] == SET:
            bit = np.int64(1) << (code & 63)
            if not state[slot + (code >> 6)] & bit:
                state[slot + (code >> 6)] |= bit
                moved = True
        else:
            if code < state[slot]:
                state[slot] = code
                moved = True
            if code > state[slot + 1]:
                state[slot + 1] = code
                moved = True
    return moved
