"""Microaggregation with sensitive values: groups grown from a seed by the nearest records that help (docs/algorithms.md#p_mdav).

What a record does for a group besides its distance depends on its sensitive values alone. Records with the same ones
have the same *label*, so a step decides which labels help and then asks for the nearest free record among them: of the
tree, or of the few records that have these labels. Distances and ties are those of `kernels.kdtree`, always to the seed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, entry, inner, loop
from shoal.kernels.kdtree import (
    Floats,
    Ints,
    Tree,
    build_tree,
    delete_record,
    farthest_record,
    live_count,
    nearest_allowed,
    nearest_records,
    rounded,
)
from shoal.kernels.mdav import (
    Queue,
    _add,
    _add_rows,
    _farthest_from_centroid,
    _move_centroid,
    _new_queue,
    steps_taken,
)
from shoal.kernels.rules import class_deficit
from shoal.kernels.space import TICKS
from shoal.policy import FlatRules

Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]

FREE = -1
SET_ASIDE = -2
"""Label of records whose group could not be finished."""

# Labels of this many neighbours are tried before all labels are judged.
NEIGHBOURS = 16
# Few records are looked at one by one: a filtered search reads about (free / allowed) leaves of this size.
LEAF = 16


class Free(NamedTuple):
    """The records that are still free, as a tree and as lists of records by label."""

    X: Floats
    tree: Tree
    label: Ints  # [record]
    start: Longs  # [label]: where its records begin in `listed`
    listed: Ints  # records label by label; the first `live` of a label are free
    place: Ints  # [record]: where it stands
    live: Longs  # [label]
    cell: Longs  # [label, view]: where its value is counted, -1 for missing
    found: Ints  # scratch of the searches, as the following
    distances: Floats
    allowed: Flags
    verdict: NDArray[np.int8]


class Seeds(NamedTuple):
    """Where groups begin: far from the mean of the free records, or with the next free record of an order."""

    order: Ints  # empty: far from the mean
    cursor: Longs
    queue: Queue
    total: Floats
    centroid: Floats


class Growing(NamedTuple):
    """The group that is being formed, between two slices of the work; what `at` holds is named by SIZE … GROUPS."""

    counts: Ints
    members: Ints
    deficit: Floats
    at: Longs


SIZE, SEED, NEXT, SECOND, PAIRED, GROUPS = range(6)
"""Members, the seed, the record to join next; the seed of the group after it (-1: none), whether there is to be one; groups."""


def make_growing(rows: int, cells: int, groups: int) -> Growing:
    """No group is open."""
    return Growing(
        counts=np.zeros(cells, dtype=np.int32),
        members=np.empty(rows, dtype=np.int32),
        deficit=np.zeros(1),
        at=np.array([0, -1, -1, -1, 0, groups], dtype=np.int64),
    )


class Counted(NamedTuple):
    """Rules that ask for p distinct values: filled cells among first … last - 1, those of one view."""

    p: Longs
    column: Longs
    first: Longs
    last: Longs


def make_free(X: Floats, label: Ints, cell: Longs, longest: int) -> Free:
    """All rows are free; at most `longest` records are searched for at a time."""
    labels = len(cell)
    listed = np.argsort(label, kind="stable").astype(np.int32)
    place = np.empty(len(X), dtype=np.int32)
    place[listed] = np.arange(len(X), dtype=np.int32)
    live = np.bincount(label, minlength=labels).astype(np.int64)
    longest = max(longest, NEIGHBOURS)
    return Free(
        X=X,
        tree=build_tree(X),
        label=label,
        start=np.concatenate([[0], np.cumsum(live)]).astype(np.int64),
        listed=listed,
        place=place,
        live=live,
        cell=cell,
        found=np.empty(longest, dtype=np.int32),
        distances=np.empty(longest),
        allowed=np.empty(labels, dtype=np.bool_),
        verdict=np.empty(labels, dtype=np.int8),
    )


def make_seeds(free: Free, order: Ints) -> Seeds:
    """Seeds by an order of records, or by distance from the mean when it is empty."""
    total = np.zeros((2, free.X.shape[1]))
    _add_rows(total, free.X)
    centroid = total.sum(axis=0) / len(free.X)
    return Seeds(order, np.zeros(1, dtype=np.int64), _new_queue(free.X, free.tree, centroid), total, centroid)


@entry
def grow_groups(
    free: Free,
    seeds: Seeds,
    rules: FlatRules,
    counted: Counted,
    growing: Growing,
    k: int,
    reserve: int,
    paired: bool,
    diverse_first: bool,
    labels: Ints,
    steps: int,
) -> bool:
    """Form groups while `reserve` records are free, or less than half are; False after about so many steps, to go on later.

    A group takes the k - 1 nearest records, then the nearest that lower its deficit until it is zero. `diverse_first`
    begins with the nearest records that bring a value still wanted, and stops when no group can have all of them.
    `paired` forms a second group round the record farthest from the first seed while 3k records are free.
    """
    at, counts, members, deficit = growing.at, growing.counts, growing.members, growing.deficit
    until = steps_taken(free.tree, seeds.queue) + steps
    while steps_taken(free.tree, seeds.queue) < until:
        if at[SIZE] == 0:
            live = live_count(free.tree)
            if live < reserve or live < k or (2 * live < free.X.shape[0] and at[SECOND] < 0):
                return True
            if diverse_first and not _enough_values(free, counted):
                return True
            at[SEED] = at[SECOND] if at[SECOND] >= 0 else _next_seed(free, seeds)
            at[PAIRED] = paired and at[SECOND] < 0 and live >= 3 * k
            at[NEXT], deficit[0] = at[SEED], 0.0
            counts[:] = 0
        at[SIZE] = _join(free, seeds, at[NEXT], members, at[SIZE], counts)
        if diverse_first and _wanted(free, counted, counts):
            at[NEXT] = _nearest(free, free.X[at[SEED]])
        else:
            if at[SIZE] < k:
                at[SIZE] = _fill_up(free, seeds, at[SEED], members, at[SIZE], counts, k)
            deficit[0] = class_deficit(rules, at[SIZE], counts)
            at[NEXT] = _nearest_helpful(free, rules, at[SIZE], counts, deficit[0], free.X[at[SEED]])
        if at[NEXT] >= 0:
            continue
        for i in range(at[SIZE]):
            labels[members[i]] = at[GROUPS] if deficit[0] <= 0 else SET_ASIDE
        at[GROUPS] += deficit[0] <= 0
        at[SECOND] = farthest_record(free.tree, free.X[at[SEED]]) if at[PAIRED] else -1
        at[SIZE] = 0
    return False


@loop
def nearest_points(tree: Tree, X: Floats, found: Ints) -> None:
    """For each row of X the nearest point of the tree."""
    record, distance = np.empty(1, dtype=np.int32), np.empty(1)
    for row in range(X.shape[0]):
        nearest_records(tree, X[row], 1, record, distance)
        found[row] = record[0]


@bare
def _next_seed(free: Free, seeds: Seeds) -> int:
    if seeds.order.size == 0:
        _move_centroid(seeds.centroid, seeds.total, live_count(free.tree), seeds.queue)
        return _farthest_from_centroid(free.X, free.tree.first_record, seeds.centroid, seeds.queue)
    while free.tree.record_point[seeds.order[seeds.cursor[0]]] < 0:
        seeds.cursor[0] += 1
    return seeds.order[seeds.cursor[0]]


@bare
def _join(free: Free, seeds: Seeds, record: int, members: Ints, size: int, counts: Ints) -> int:
    """Take a record into the group; the new size."""
    members[size] = record
    delete_record(free.tree, members[size])
    if seeds.order.size == 0:
        _add(seeds.total, free.X[record], -1.0)
    label = free.label[record]
    free.live[label] -= 1
    at, last = free.place[record], free.start[label] + free.live[label]
    other = free.listed[last]
    free.listed[at], free.listed[last] = other, record
    free.place[other], free.place[record] = at, last
    for view in range(free.cell.shape[1]):
        if free.cell[label, view] >= 0:
            counts[free.cell[label, view]] += 1
    return size + 1


@bare
def _fill_up(free: Free, seeds: Seeds, seed: int, members: Ints, size: int, counts: Ints, k: int) -> int:
    """The nearest records, until there are k."""
    found = nearest_records(free.tree, free.X[seed], k - size, free.found, free.distances)
    for i in range(found):
        size = _join(free, seeds, np.int64(free.found[i]), members, size, counts)
    return size


@bare
def _nearest(free: Free, query: Floats) -> int:
    """The nearest free record with an allowed label, -1 when there is none."""
    candidates, live = 0, live_count(free.tree)
    free.tree.sizes[2] += free.live.size
    for label in range(free.live.size):
        if free.allowed[label]:
            candidates += free.live[label]
    if candidates == 0:
        return np.int64(-1)
    if candidates * candidates > LEAF * live:
        flags = free.tree.no_flags if candidates == live else free.allowed
        nearest_allowed(free.tree, query, 1, free.label, flags, free.found, free.distances)
        return np.int64(free.found[0])
    free.tree.sizes[2] += candidates * query.size
    best, best_distance = np.int64(-1), np.inf
    for label in range(free.live.size):
        if not free.allowed[label]:
            continue
        for i in range(free.start[label], free.start[label] + free.live[label]):
            record = np.int64(free.listed[i])
            distance = 0.0
            for column in range(query.size):
                distance += (free.X[record, column] - query[column]) * (free.X[record, column] - query[column])
            distance = rounded(distance)
            if distance < best_distance or (distance == best_distance and record < best):
                best, best_distance = record, distance
    return best


@bare
def _nearest_helpful(free: Free, rules: FlatRules, size: int, counts: Ints, deficit: float, query: Floats) -> int:
    """The nearest free record that lowers the deficit, -1 when none does or none has to."""
    if deficit <= 0:
        return np.int64(-1)
    if free.live.size > 2 * NEIGHBOURS:
        found = nearest_records(free.tree, query, NEIGHBOURS, free.found, free.distances)
        for i in range(found):
            if _lowers(free, rules, size, counts, deficit, np.int64(free.label[free.found[i]])):
                return np.int64(free.found[i])
    allow_lowering(free, rules, size, counts, deficit)
    return _nearest(free, query)


@bare
def allow_lowering(free: Free, rules: FlatRules, size: int, counts: Ints, deficit: float) -> None:
    """Allow the labels that lower the deficit."""
    free.tree.sizes[2] += free.live.size * counts.size
    for label in range(free.live.size):
        free.allowed[label] = free.live[label] > 0 and _lowers(free, rules, size, counts, deficit, label)


@bare
def _lowers(free: Free, rules: FlatRules, size: int, counts: Ints, deficit: float, label: int) -> bool:
    for view in range(free.cell.shape[1]):
        if free.cell[label, view] >= 0:
            counts[free.cell[label, view]] += 1
    after = class_deficit(rules, size + 1, counts)
    for view in range(free.cell.shape[1]):
        if free.cell[label, view] >= 0:
            counts[free.cell[label, view]] -= 1
    return np.rint((deficit - after) * TICKS) >= 1.0


@bare
def _wanted(free: Free, counted: Counted, counts: Ints) -> bool:
    """Allow the labels that raise a number of distinct values still too small; whether any number is."""
    lacking = False
    free.allowed[:] = False
    for i in range(counted.p.size):
        if _distinct(counts, counted.first[i], counted.last[i]) >= counted.p[i]:
            continue
        lacking = True
        for label in range(free.live.size):
            cell = free.cell[label, counted.column[i]]
            if cell >= 0 and counts[cell] == 0:
                free.allowed[label] = True
    return lacking


@bare
def _distinct(counts: Ints, first: int, last: int) -> int:
    found = 0
    for cell in range(first, last):
        if counts[cell] > 0:
            found += 1
    return found


@inner
def _enough_values(free: Free, counted: Counted) -> bool:
    """Whether the free records have as many distinct values as a group needs."""
    for i in range(counted.p.size):
        seen = np.zeros(counted.last[i] - counted.first[i], dtype=np.bool_)
        missing = counted.p[i]
        for label in range(free.live.size):
            cell = free.cell[label, counted.column[i]]
            if free.live[label] > 0 and cell >= 0 and not seen[cell - counted.first[i]]:
                seen[cell - counted.first[i]] = True
                missing -= 1
                if missing == 0:
                    break
        if missing > 0:
            return False
    return True
