"""The steps of EnhancedPKClustering that look at many records (docs/algorithms.md#enhanced_pk).

Records with equal sensitive values are a group, those of a group with equal quasi-identifiers a point. Groups and points
are listed sensitive class (SEC) by sensitive class. BestMatch compares diversity, then loss, both in ticks, then the
record's index.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.greedy import Needs, lacking, missing_values, most_helpful
from shoal.kernels.jit import bare, entry, loop
from shoal.kernels.pool import GONE, ZERO, Frontier, Pool, absorb, cheapest, pair_cost, point_loss, start_search, take
from shoal.kernels.space import TICKS, FlatSpace, begin, loss

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Counts = NDArray[np.int32]

IN, OUT = np.int64(1), np.int64(-1)

REMEMBERED = 16
"""How many records a cluster knows in advance when clusters choose in turn."""


class Points(NamedTuple):
    """Points listed SEC by SEC; the records of a point are used in ascending order."""

    codes: Codes
    group: Ints
    start: Ints
    records: Ints
    next: Ints


class Clusters(NamedTuple):
    """Classes in the making; `head` and `link` chain the members of each, `label` is -1 for free records."""

    state: Ints
    size: Ints
    loss: Floats
    head: Ints
    link: Ints
    label: Ints


class Offers(NamedTuple):
    """Per cluster the best records it could get: their gain, and for each its cost and its point; `at` is the next one."""

    gain: Ints
    known: Ints
    cost: Ints
    owner: Ints
    length: Ints
    at: Ints


class Sketch(NamedTuple):
    """Working memory: counts of a cluster's values, what each rule's next value is worth, how much each group helps."""

    counts: Counts
    worth: Floats
    helpful: Ints


def make_sketch(needs: Needs) -> Sketch:
    """Empty working memory."""
    groups = len(needs.cell)
    return Sketch(np.zeros(needs.width, dtype=np.int32), np.zeros(len(needs.p)), np.zeros(groups, dtype=np.int64))


class Dealing(NamedTuple):
    """Where `deal` is: the points of the SEC that have free records, and `at`, which holds what SEC … HIGH name."""

    sketch: Sketch
    alive: Ints
    at: Ints


SEC, LIVE, DEALT, TURN, LOW, HIGH = range(6)
"""The SEC (its points are not listed yet where LIVE is -1), live points, records dealt of it, whose turn it is, its groups."""


def make_dealing(points: Points, needs: Needs) -> Dealing:
    """Nothing is dealt yet."""
    return Dealing(
        make_sketch(needs), np.empty(len(points.codes), dtype=np.int64), np.array([0, -1, 0, 0, 0, 0], dtype=np.int64)
    )


class Serving(NamedTuple):
    """Where `serve` is: clusters that wait in a heap by their best offer; `at` holds what LOOKED … LAST_GROUP name."""

    sketch: Sketch
    offers: Offers
    heap: Ints
    at: Ints


LOOKED, WAITING, UNUSED, FIRST_GROUP, LAST_GROUP = range(5)
"""Clusters that have offers, clusters in the heap, free records of the SEC (-1: not counted yet), its groups."""


def make_serving(needs: Needs, clusters: int) -> Serving:
    """Nobody is served yet."""
    shape = (clusters, REMEMBERED)
    offers = Offers(
        np.empty(clusters, dtype=np.int64),
        np.empty(shape, dtype=np.int64),
        np.empty(shape, dtype=np.int64),
        np.empty(shape, dtype=np.int64),
        np.zeros(clusters, dtype=np.int64),
        np.zeros(clusters, dtype=np.int64),
    )
    return Serving(make_sketch(needs), offers, np.arange(clusters), np.array([0, clusters, -1, 0, 0], dtype=np.int64))


def make_clusters(flat: FlatSpace, count: int, n: int) -> Clusters:
    """Empty clusters over n free records."""
    return Clusters(
        state=np.zeros((count, int(flat.slot[-1])), dtype=np.int64),
        size=np.zeros(count, dtype=np.int64),
        loss=np.zeros(count),
        head=np.full(count, -1, dtype=np.int64),
        link=np.full(n, -1, dtype=np.int64),
        label=np.full(n, -1, dtype=np.int64),
    )


def make_points(codes: Codes, key: Ints, group: Ints, order: Ints) -> Points:
    """Points of the records in `order`, in which records of one point stand together, ascending."""
    fresh = np.concatenate([[True], key[order][1:] != key[order][:-1]])
    start = np.append(np.flatnonzero(fresh), len(order)).astype(np.int64)
    heads = order[start[:-1]]
    return Points(np.ascontiguousarray(codes[heads]), group[heads], start, order, start[:-1].copy())


@entry
def deal(
    flat: FlatSpace,
    codes: Codes,
    group: Ints,
    points: Points,
    needs: Needs,
    clusters: Clusters,
    dealing: Dealing,
    first: Ints,
    last: Ints,
    target: int,
    cap: int,
    places: Codes,
    place_of: Ints,
    near: Ints,
    steps: int,
) -> bool:
    """Step 2, Split: each SEC in turn goes round the clusters, each takes its best match, until they have `target` records.

    SEC i holds the points first[i] … last[i]-1 and gives at most `cap` records. With `near` (the distance to the nearest
    seed, one for each of the distinct tuples `places`) an empty cluster takes the record furthest from all seeds before.
    False after about so many steps, to go on later.
    """
    at, alive, sketch = dealing.at, dealing.alive, dealing.sketch
    m = len(clusters.size)
    while at[SEC] < len(first):
        if at[LIVE] < 0:
            list_points(points, dealing, first[at[SEC]], last[at[SEC]], len(sketch.helpful))
        while at[LIVE] > 0 and at[DEALT] < cap:
            if steps <= 0:
                return False
            c = at[TURN]
            steps -= at[LIVE] * len(flat.kind)
            count_members(needs, group, clusters, c, sketch.counts, IN)
            rate(needs, sketch.counts, sketch.worth, at[LOW], at[HIGH], sketch.helpful)
            best, least, record, place = np.int64(-1), GONE, GONE, 0
            for i in range(at[LIVE]):
                point = alive[i]
                helps = sketch.helpful[points.group[point]]
                if helps < best:
                    continue
                free = points.records[points.next[point]]
                cost = np.int64(0)
                if clusters.size[c] > 0:
                    cost = np.int64(np.rint(point_loss(flat, points.codes[point], clusters.state[c]) * TICKS))
                elif len(near) > 0:
                    cost = -near[place_of[points.records[points.start[point]]]]
                if helps > best or cost < least or (cost == least and free < record):
                    best, least, record, place = helps, cost, free, i
            count_members(needs, group, clusters, c, sketch.counts, OUT)
            if len(near) > 0 and clusters.size[c] == 0:
                steps -= len(near) * len(flat.kind)
                for i in range(len(near)):
                    near[i] = min(near[i], pair_cost(flat, places[i], codes[record]))
            enter(flat, clusters, c, record, codes[record])
            point = alive[place]
            points.next[point] += 1
            if points.next[point] == points.start[point + 1]:
                at[LIVE] -= 1
                alive[place] = alive[at[LIVE]]
            at[DEALT] += 1
            at[TURN] += 1
            if at[TURN] == m:
                if clusters.size[m - 1] >= target:
                    return True
                at[TURN] = 0
        at[SEC] += 1
        at[LIVE] = -1
    return True


@bare
def list_points(points: Points, dealing: Dealing, first: int, last: int, groups: int) -> None:
    """Begin with a SEC: its points, and its groups."""
    at = dealing.at
    at[LIVE], at[DEALT], at[LOW], at[HIGH] = 0, 0, groups, 0
    for point in range(first, last):
        dealing.alive[at[LIVE]] = point
        at[LIVE] += 1
        at[LOW], at[HIGH] = min(at[LOW], points.group[point]), max(at[HIGH], points.group[point] + 1)


@entry
def enter(flat: FlatSpace, clusters: Clusters, c: int, record: int, codes: Codes) -> bool:
    """A record joins a cluster; whether that moved the cluster's state."""
    moved = clusters.size[c] == 0
    if moved:
        begin(flat, clusters.state[c], codes)
    elif absorb(flat, clusters.state[c], codes):
        moved = True
    if moved:
        clusters.loss[c] = loss(flat, clusters.state[c])
    clusters.size[c] += 1
    clusters.link[record] = clusters.head[c]
    clusters.head[c] = record
    clusters.label[record] = c
    return moved


@bare
def count_members(needs: Needs, group: Ints, clusters: Clusters, c: int, counts: Counts, sign: int) -> None:
    """Add the members' sensitive values to the counts, or take them out again."""
    record = clusters.head[c]
    while record >= 0:
        for view in range(needs.cell.shape[1]):
            cell = needs.cell[group[record], view]
            if cell >= 0:
                counts[cell] += sign
        record = clusters.link[record]


@bare
def weigh(needs: Needs, counts: Counts, worth: Floats) -> None:
    """(p − y)·w of each attribute (docs/models.md#hom-and-div)."""
    for i in range(len(worth)):
        worth[i] = missing_values(needs, i, counts) * needs.weight[i]


@entry
def rate(needs: Needs, counts: Counts, worth: Floats, low: int, high: int, gain: Ints) -> None:
    """Ticks of Div(t, cl) for the groups low … high-1: what a new value of each attribute is worth is (p − y)·w."""
    weigh(needs, counts, worth)
    for g in range(low, high):
        total = 0.0
        for i in range(len(worth)):
            cell = needs.cell[g, needs.column[i]]
            if cell >= 0 and counts[cell] == 0:
                total += worth[i]
        gain[g] = np.int64(np.rint(total * TICKS))


@entry
def serve(
    flat: FlatSpace,
    codes: Codes,
    group: Ints,
    points: Points,
    needs: Needs,
    clusters: Clusters,
    serving: Serving,
    first: int,
    last: int,
    steps: int,
) -> bool:
    """Step 3 for one SEC: of all pairs of a record and a cluster not served yet, always the best match, while there are any.

    During this step a cluster's scores do not change, records only vanish. So the clusters wait in a heap by their best
    remaining pair, and a pair whose record is gone is replaced when it comes to the top: the order of the sweep over the
    sorted matrix of all pairs, without the matrix. False after about so many steps, to go on later.
    """
    at, offers, heap, sketch = serving.at, serving.offers, serving.heap, serving.sketch
    known, tried = offers.known, offers.at
    if at[UNUSED] < 0:
        at[UNUSED], at[FIRST_GROUP], at[LAST_GROUP] = 0, len(sketch.helpful), 0
        for point in range(first, last):
            at[UNUSED] += points.start[point + 1] - points.next[point]
            at[FIRST_GROUP] = min(at[FIRST_GROUP], points.group[point])
            at[LAST_GROUP] = max(at[LAST_GROUP], points.group[point] + 1)
    low, high = at[FIRST_GROUP], at[LAST_GROUP]
    while at[LOOKED] < len(clusters.size):
        if steps <= 0:
            return False
        look(flat, group, points, needs, clusters, sketch, offers, first, last, low, high, at[LOOKED])
        steps -= (last - first) * len(flat.kind)
        at[LOOKED] += 1
        if at[LOOKED] == len(clusters.size):
            for i in range(len(clusters.size) // 2 - 1, -1, -1):
                sink(heap, at[WAITING], i, offers)
    while at[WAITING] > 0 and at[UNUSED] > 0:
        if steps <= 0:
            return False
        c = heap[0]
        steps -= 1
        if clusters.label[known[c, tried[c]]] >= 0:
            tried[c] += 1
            if tried[c] == offers.length[c]:
                look(flat, group, points, needs, clusters, sketch, offers, first, last, low, high, c)
                steps -= (last - first) * len(flat.kind)
        else:
            record = known[c, tried[c]]
            enter(flat, clusters, c, record, codes[record])
            points.next[offers.owner[c, tried[c]]] += 1
            at[UNUSED] -= 1
            at[WAITING] -= 1
            heap[0] = heap[at[WAITING]]
        sink(heap, at[WAITING], ZERO, offers)
    return True


@bare
def look(
    flat: FlatSpace,
    group: Ints,
    points: Points,
    needs: Needs,
    clusters: Clusters,
    sketch: Sketch,
    offers: Offers,
    first: int,
    last: int,
    low: int,
    high: int,
    c: int,
) -> None:
    """The best free records of a SEC for cluster c: those of the highest diversity, by added loss and index."""
    known, cost, owner = offers.known, offers.cost, offers.owner
    count_members(needs, group, clusters, c, sketch.counts, IN)
    rate(needs, sketch.counts, sketch.worth, low, high, sketch.helpful)
    size, lost = clusters.size[c], clusters.loss[c]
    best, found = np.int64(-1), 0
    for point in range(first, last):
        if points.next[point] == points.start[point + 1]:
            continue
        helps = sketch.helpful[points.group[point]]
        if helps < best:
            continue
        if helps > best:
            best, found = helps, 0
        added = 0.0
        if size > 0:
            added = (size + 1) * point_loss(flat, points.codes[point], clusters.state[c]) - size * lost
        ticks = np.int64(np.rint(added * TICKS))
        for i in range(points.next[point], points.start[point + 1]):
            record = points.records[i]
            place = found
            while place > 0 and (
                cost[c, place - 1] > ticks or (cost[c, place - 1] == ticks and known[c, place - 1] > record)
            ):
                place -= 1
            if place == REMEMBERED:
                break
            found = min(found + 1, REMEMBERED)
            for j in range(found - 1, place, -1):
                known[c, j], cost[c, j], owner[c, j] = known[c, j - 1], cost[c, j - 1], owner[c, j - 1]
            known[c, place], cost[c, place], owner[c, place] = record, ticks, point
    count_members(needs, group, clusters, c, sketch.counts, OUT)
    offers.gain[c], offers.length[c], offers.at[c] = best, found, 0


@bare
def sink(heap: Ints, size: int, i: int, offers: Offers) -> None:
    """Restore the heap below place i."""
    c = heap[i]
    while True:
        down = 2 * i + 1
        if down >= size:
            break
        if down + 1 < size and better(heap[down + 1], heap[down], offers):
            down += 1
        if not better(heap[down], c, offers):
            break
        heap[i] = heap[down]
        i = down
    heap[i] = c


@bare
def better(c: int, other: int, offers: Offers) -> bool:
    """Whether cluster c's best pair comes before the other's: diversity, added loss, record, cluster."""
    gain, known, cost = offers.gain, offers.known, offers.cost
    mine, theirs = offers.at[c], offers.at[other]
    if gain[c] != gain[other]:
        return gain[c] > gain[other]
    if cost[c, mine] != cost[other, theirs]:
        return cost[c, mine] < cost[other, theirs]
    if known[c, mine] != known[other, theirs]:
        return known[c, mine] < known[other, theirs]
    return c < other


@loop
def homogeneity(needs: Needs, group: Ints, clusters: Clusters) -> Ints:
    """Ticks of Hom(cl) (docs/models.md#hom-and-div) for every cluster."""
    result = np.zeros(len(clusters.size), dtype=np.int64)
    counts = np.zeros(needs.width, dtype=np.int32)
    worth = np.zeros(len(needs.p))
    for c in range(len(result)):
        count_members(needs, group, clusters, c, counts, IN)
        weigh(needs, counts, worth)
        count_members(needs, group, clusters, c, counts, OUT)
        result[c] = np.int64(np.rint(worth.sum() * TICKS))
    return result


class Repair(NamedTuple):
    """Where `diversify` is: the values of the cluster at hand, and `at`, which holds what PLACE … COUNTED name."""

    counts: Counts
    gain: Floats
    allowed: NDArray[np.bool_]
    at: Ints


PLACE, KEPT, FREE, COUNTED = range(4)
"""The cluster's place in the order, how many remain, free records, whether the cluster's values are counted."""


def make_repair(needs: Needs, clusters: int, live: Ints) -> Repair:
    """No cluster is diverse yet."""
    return Repair(
        np.zeros(needs.width, dtype=np.int32),
        np.zeros(len(live)),
        np.zeros(len(live), dtype=np.bool_),
        np.array([0, clusters, live.sum(), 0], dtype=np.int64),
    )


@entry
def diversify(
    flat: FlatSpace,
    codes: Codes,
    group: Ints,
    needs: Needs,
    clusters: Clusters,
    repair: Repair,
    order: Ints,
    start: Ints,
    pool: Ints,
    live: Ints,
    faithful: bool,
    steps: int,
) -> bool:
    """Step 4: free records make the clusters diverse in `order`; the last ones are dissolved when nothing helps.

    `pool` lists the free records group by group: those of group g are the first live[g] from start[g] on. False after
    about so many steps, to go on later.
    """
    at, counts, allowed = repair.at, repair.counts, repair.allowed
    while at[PLACE] < at[KEPT]:
        if steps <= 0:
            return False
        c = order[at[PLACE]]
        if at[COUNTED] == 0:
            count_members(needs, group, clusters, c, counts, IN)
            at[COUNTED] = 1
        steps -= 1 + len(live)
        lacks = lacking(needs, None, clusters.size[c], counts)
        if lacks and at[FREE] > 0:
            helps = most_helpful(needs, None, live, clusters.size[c], counts, repair.gain, allowed)
            if helps > 0 or faithful:
                for g in range(len(live)):
                    steps -= live[g] * allowed[g] * len(flat.kind)
                record = cheapest_record(flat, codes, clusters.state[c], start, pool, live, allowed)
                for view in range(needs.cell.shape[1]):
                    if needs.cell[group[record], view] >= 0:
                        counts[needs.cell[group[record], view]] += 1
                enter(flat, clusters, c, record, codes[record])
                at[FREE] -= 1
                continue
        count_members(needs, group, clusters, c, counts, OUT)
        at[COUNTED] = 0
        if not lacks:
            at[PLACE] += 1
            continue
        at[KEPT] -= 1
        gone = order[at[KEPT]]
        record = clusters.head[gone]
        clusters.head[gone], clusters.size[gone] = -1, 0
        while record >= 0:
            pool[start[group[record]] + live[group[record]]] = record
            live[group[record]] += 1
            at[FREE] += 1
            clusters.label[record] = -1
            record = clusters.link[record]
    return True


@bare
def cheapest_record(
    flat: FlatSpace, codes: Codes, state: Ints, start: Ints, pool: Ints, live: Ints, allowed: NDArray[np.bool_]
) -> int:
    """Remove and return the record of the allowed groups that joins the state for the least loss."""
    least, chosen, place, of_group = GONE, GONE, np.int64(0), 0
    for g in range(len(live)):
        if allowed[g]:
            for i in range(start[g], start[g] + live[g]):
                record = pool[i]
                cost = np.int64(np.rint(point_loss(flat, codes[record], state) * TICKS))
                if cost < least or (cost == least and record < chosen):
                    least, chosen, place, of_group = cost, record, i, g
    live[of_group] -= 1
    pool[place] = pool[start[of_group] + live[of_group]]
    return chosen


TO_FILL, MOVES = 0, 1
"""Where `fill` is: the place of its cluster in the order, how often that one's state moved (-1: not begun)."""


@entry
def fill(
    flat: FlatSpace, pool: Pool, front: Frontier, clusters: Clusters, order: Ints, k: int, at: Ints, steps: int
) -> bool:
    """Step 6: each cluster in turn takes the cheapest free records until it has k. False after so many steps, to go on later."""
    until = front.size[1] + steps
    while at[TO_FILL] < len(order):
        c = order[at[TO_FILL]]
        if at[MOVES] < 0:
            start_search(front)
            at[MOVES] = 0
        while clusters.size[c] < k:
            if front.size[1] >= until:
                return False
            point = cheapest(flat, pool, front, clusters.state[c], at[MOVES])
            if point < 0:
                return True
            if enter(flat, clusters, c, take(pool, point), pool.codes[point]):
                at[MOVES] += 1
        at[TO_FILL] += 1
        at[MOVES] = -1
    return True
