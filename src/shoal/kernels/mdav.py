"""MDAV microaggregation (Domingo-Ferrer & Torra 2005), exact and in about n log n.

`generic` forms two groups in each round, one round the record farthest from the centroid and one round the record
farthest from that one; `single` forms only the first. Distances and ties are those of `kernels.kdtree`. The centroid
comes from a running sum in doubled precision, which rounds to what a fresh exact sum of the remaining records gives.

**Farthest from the centroid.** Many records are almost equally far from it, so a tree would look at most of them.
But the centroid moves little: if it has walked D in all when x is measured and D' now, then
|x - c'| ≤ |x - c| + (D' - D). A heap ordered by |x - c| - D therefore keeps the order of these upper bounds for
ever, and only the few points whose bound still reaches the best fresh distance are measured again.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ConfigError, InfeasibleError, InputError
from shoal.kernels.jit import bare, entry
from shoal.kernels.kdtree import (
    GRID,
    SLACK,
    Floats,
    Ints,
    Tree,
    build_tree,
    delete_record,
    farthest_record,
    live_count,
    nearest_records,
    rounded,
)
from shoal.progress import SLICE, Progress


def mdav_labels(X: Floats, k: int, form: Literal["generic", "single"], progress: Progress | None = None) -> Ints:
    """The class of each record, numbered in the order the classes are formed; X holds standardized columns.

    >>> mdav_labels(np.array([[1.0], [2.0], [9.0], [8.0], [1.5]]), 2, "generic").tolist()
    [1, 1, 0, 0, 1]
    """
    if form not in ("generic", "single"):
        raise ConfigError(f"MDAV has the forms 'generic' and 'single', not {form!r}.")
    if k < 1:
        raise ConfigError(f"k is {k}: a class needs at least one record, so set k to 1 or more.")
    if len(X) < k:
        raise InfeasibleError(f"The table has {len(X)} records, fewer than k = {k}: lower k or add records.")
    X = np.ascontiguousarray(X, dtype=np.float64)
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise InputError(
            f"Row {row} of column {column} is {X[row, column]}: distances need finite numbers, fill or drop it first."
        )
    if X.shape[1] == 0:
        X = np.zeros((len(X), 1))  # without columns all records are equal, as in a constant one

    told = Progress.of(progress)
    labels = np.empty(len(X), dtype=np.int32)
    rows = np.arange(len(X))
    total = np.zeros((2, X.shape[1]))
    _add_rows(total, X)
    groups = 0
    while len(rows) >= 2 * k:
        tree = build_tree(X)
        centroid = total.sum(axis=0) / len(rows)
        queue = _new_queue(X, tree, centroid)
        formed = np.full(len(rows), -1, dtype=np.int32)
        members, distances = np.empty(k, dtype=np.int32), np.empty(k)
        while has_rounds(X, tree, k):
            told(1 - live_count(tree) / len(labels))
            groups = _form_groups(
                X, tree, queue, k, form == "generic", total, centroid, members, distances, formed, groups, SLICE
            )
        labels[rows] = formed
        rest = np.flatnonzero(formed < 0)
        rows, X = rows[rest], X[rest]
    labels[rows] = groups
    return labels


class Queue(NamedTuple):
    """A max-heap of points by upper bounds of their distance from the centroid."""

    key: Floats  # distance when measured, less the walk of the centroid until then
    point: Ints
    aside_key: Floats  # points taken off the heap in the last round; they come back if still there
    aside: Ints
    measured: Ints  # [point]: the round of its last measurement
    walk: Floats  # [0]: how far the centroid has walked
    sizes: NDArray[np.int64]  # points in the heap, points aside, round, steps taken so far


def _new_queue(X: Floats, tree: Tree, centroid: Floats) -> Queue:
    distance = np.sqrt(((X[tree.first_record] - centroid) ** 2).sum(axis=1))
    order = np.argsort(-distance, kind="stable")  # a falling sequence is a heap
    points = len(order)
    return Queue(
        key=distance[order],
        point=order.astype(np.int32),
        aside_key=np.empty(points),
        aside=np.empty(points, dtype=np.int32),
        measured=np.zeros(points, dtype=np.int32),
        walk=np.zeros(1),
        sizes=np.array([points, 0, 0, 0], dtype=np.int64),
    )


@entry
def _form_groups(
    X: Floats,
    tree: Tree,
    queue: Queue,
    k: int,
    paired: bool,
    total: Floats,
    centroid: Floats,
    members: Ints,
    distances: Floats,
    labels: Ints,
    groups: int,
    steps: int,
) -> int:
    """Rounds until less than 2k records, or less than half of those in the tree, remain; returns the groups so far.

    Half-empty leaves and an origin far from the centroid slow the searches: the rest then gets a tree of its own.
    Returns also after about so many steps, to go on later.
    """
    until = steps_taken(tree, queue) + steps
    while has_rounds(X, tree, k) and steps_taken(tree, queue) < until:
        second = paired and live_count(tree) >= 3 * k
        _move_centroid(centroid, total, live_count(tree), queue)
        seed = _farthest_from_centroid(X, tree.first_record, centroid, queue)
        while True:
            members[k - 1] = seed
            delete_record(tree, members[k - 1])
            nearest_records(tree, X[seed], k - 1, members, distances)
            for i in range(k):
                if i < k - 1:
                    delete_record(tree, members[i])
                labels[members[i]] = groups
                _add(total, X[members[i]], -1.0)
            groups += 1
            if not second:
                break
            # The definition finds s before group 1 leaves, and again if group 1 took it: the same record as this.
            seed = farthest_record(tree, X[seed])
            second = False
    return groups


@entry
def has_rounds(X: Floats, tree: Tree, k: int) -> bool:
    """Whether there are records for another round, and enough of them in this tree."""
    return live_count(tree) >= 2 * k and 2 * live_count(tree) >= X.shape[0]


@bare
def steps_taken(tree: Tree, queue: Queue) -> int:
    """How much work the searches were so far."""
    return tree.sizes[2] + queue.sizes[3]


@bare
def _farthest_from_centroid(X: Floats, first_record: Ints, centroid: Floats, queue: Queue) -> int:
    key, point, walk = queue.key, queue.point, queue.walk[0]
    size = queue.sizes[0]
    for i in range(queue.sizes[1]):
        if first_record[queue.aside[i]] >= 0:
            _sift_up(key, point, size, queue.aside_key[i], queue.aside[i])
            size += 1
    queue.sizes[2] += 1
    aside = 0
    best, best_distance, threshold = -1, -1.0, -1.0
    while size > 0 and key[0] + walk >= threshold:
        queue.sizes[3] += centroid.size
        top = point[0]
        record = first_record[top]
        if record >= 0 and queue.measured[top] != queue.sizes[2]:
            queue.measured[top] = queue.sizes[2]
            squared = 0.0
            for column in range(centroid.size):
                squared += (X[record, column] - centroid[column]) * (X[record, column] - centroid[column])
            distance = rounded(squared)
            if distance > best_distance or (distance == best_distance and record < best):
                best, best_distance = record, distance
                # Whatever rounds to the same distance has to be seen, for the smaller index wins.
                length = np.sqrt(max(distance - GRID, 0.0))
                threshold = length - SLACK * (1.0 + length + walk)
            _sift_down(key, point, size, np.sqrt(squared) - walk, top)
            continue
        if record >= 0:
            queue.aside[aside] = top
            queue.aside_key[aside] = key[0]
            aside += 1
        size -= 1
        _sift_down(key, point, size, key[size], point[size])
    queue.sizes[0] = size
    queue.sizes[1] = aside
    return best


@bare
def _sift_down(key: Floats, point: Ints, size: int, new_key: float, new_point: int) -> None:
    """Put a new entry in the place of the top."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and key[child + 1] > key[child]:
            child += 1
        if key[child] <= new_key:
            break
        key[place] = key[child]
        point[place] = point[child]
        place = child
    key[place] = new_key
    point[place] = new_point


@bare
def _sift_up(key: Floats, point: Ints, size: int, new_key: float, new_point: int) -> None:
    """Add an entry to a heap of the given size."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if key[parent] >= new_key:
            break
        key[place] = key[parent]
        point[place] = point[parent]
        place = parent
    key[place] = new_key
    point[place] = new_point


@bare
def _move_centroid(centroid: Floats, total: Floats, records: int, queue: Queue) -> None:
    step = 0.0
    for column in range(centroid.size):
        value = (total[0, column] + total[1, column]) / records
        step += (value - centroid[column]) * (value - centroid[column])
        centroid[column] = value
    queue.walk[0] += np.sqrt(step)


@entry
def _add_rows(total: Floats, X: Floats) -> None:
    for row in range(X.shape[0]):
        _add(total, X[row], 1.0)


@bare
def _add(total: Floats, row: Floats, sign: float) -> None:
    """Add a row to the sum total[0] + total[1] without losing what rounding cuts off (Knuth's two-sum)."""
    for column in range(row.size):
        value = sign * row[column]
        before = total[0, column]
        after = before + value
        shadow = after - before
        total[1, column] += (before - (after - shadow)) + (value - shadow)
        total[0, column] = after
