"""Box search: k-anonymity as facility location (ours).

A class is a *box*, one state an attribute, that costs its loss for every record in it and must hold a good class.
A step proposes a box around a record, lets it win the records that now pay more, dissolves or repairs the classes it took
them from, and keeps the result if the loss falls, or by annealing. Every touched class is tested with the policy.
The budget is a number of elementary operations, never a clock, so a seed gives the same bytes on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.errors import UnsupportedError
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.space import Space

if TYPE_CHECKING:
    from shoal.kernels.box_state import Gauge, Store, Table

Progress = Callable[[float], None]
Effort = Literal["fast", "thorough"] | float

# Elementary operations: about 60 million a second on one core of an ordinary machine.
A_SECOND = 60_000_000
FAST, THOROUGH = 2 * A_SECOND, 13 * A_SECOND
SMALL = 20_000
SLICES = 40
NEAR = 32
LEAF = 8
BUCKETS = 128
# Shares of the kinds of proposals and the habits of a step, in the order the kernel reads them.
HABITS = (2.0, 0.45, 0.65, 0.9, 0.0, 0.5, 0.5, 0.7, 1.0, 0.7, 0.0, 0.0, 1.0, 0.0, 0.0)


def box_search(
    codes: NDArray[np.int32],
    space: Space,
    rules: Rules,
    partition: Partition,
    *,
    effort: Effort = "fast",
    seed: int = 0,
    progress: Progress | None = None,
) -> Partition:
    """A partition with no more loss than `partition`, which must satisfy the rules; suppressed records stay suppressed.

    `effort` is `"fast"`, `"thorough"`, or nominal seconds on one core.
    """
    flat_rules = rules.flat()
    if flat_rules is None:
        raise UnsupportedError("box search needs a policy whose models all have a compiled form.")
    inside = np.flatnonzero(partition.labels >= 0)
    if len(inside) < 2 * rules.k:
        return partition
    from shoal.kernels.box_search import search

    labels = partition.labels[inside].astype(np.int64)
    gauge, table, store, points = _prepare(np.ascontiguousarray(codes[inside]), space, rules, inside, labels)
    start = total = _total(store)
    budget = _budget(effort, len(inside))
    heat = _heat(total / len(inside), rules.k, space)
    random = np.array([seed * 7919 + 12345], dtype=np.uint64)
    counters = np.zeros(20, dtype=np.int64)
    habits = np.array(HABITS)
    for part in range(SLICES):
        until = budget * (part + 1) // SLICES
        total += search(
            gauge,
            flat_rules,
            table,
            store,
            random,
            rules.k,
            rules.superset_closed,
            heat,
            budget,
            until,
            habits,
            counters,
        )
        if progress is not None:
            progress((part + 1) / SLICES)
    if total >= start:
        return partition
    found = np.full(len(partition.labels), -1, dtype=np.int64)
    found[inside] = _labels(store, points)
    return Partition.compact(found, notes=partition.notes)


def _budget(effort: Effort, n: int) -> int:
    """Operations for an effort; small tables need fewer, large ones get more."""
    if effort == "fast":
        return min(FAST, SMALL * n)
    if effort == "thorough":
        return int(min(THOROUGH, 5 * SMALL * n) * max(1.0, n / 30_000))
    return int(float(effort) * A_SECOND)


def _heat(unit: float, k: int, space: Space) -> float:
    """The first temperature: grows with what a class of k records costs, in the units of the loss itself.

    The exponent is a fit to what worked best on Adult for k = 2 … 100; the start's loss overstates the end's.
    """
    scale = max(1e-12, float(space.weights.sum()) / 7)
    return float(2.1 * scale * (max(1e-12, 0.6 * k * unit) / scale) ** 0.55)


def _prepare(
    codes: NDArray[np.int32], space: Space, rules: Rules, records: NDArray[np.int64], labels: NDArray[np.int64]
) -> tuple[Gauge, Table, Store, NDArray[np.int64]]:
    """Distinct tuples in the order of a tree, points, holdings and classes, as the kernel wants them."""
    from shoal.kernels import box_state as state
    from shoal.kernels.box_near import nearest
    from shoal.kernels.space import flatten

    gauge = state.gauge(flatten(space))
    first, of_record = _distinct(codes)
    order, nodes = _tree(space, codes[first])
    tuples = np.ascontiguousarray(codes[first][order])
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    of_record = place[of_record]
    views = rules.codes()[records]
    offsets = np.concatenate([[0], np.cumsum([view.width for view in rules.views])]).astype(np.int64)
    point_first, points = _distinct(np.column_stack([of_record.astype(np.int32), views]))
    bins = np.where(views[point_first] >= 0, views[point_first] + offsets[:-1], -1).astype(np.int32)
    near = np.zeros((len(tuples), min(NEAR, max(1, len(tuples) - 1))), dtype=np.int32)
    masks = _masks(gauge.spec, tuples)
    table = state.Table(tuples, of_record.astype(np.int32), bins, near, masks)
    nearest(gauge.spec, gauge.losses, tuples, nodes, near)
    store = _store(gauge, codes, space, rules, records, labels, of_record[point_first], points, len(tuples), len(masks))
    return gauge, table, store, points


def _store(
    gauge: Gauge,
    codes: NDArray[np.int32],
    space: Space,
    rules: Rules,
    records: NDArray[np.int64],
    labels: NDArray[np.int64],
    tuple_of_point: NDArray[np.int64],
    points: NDArray[np.int64],
    tuples: int,
    masks: int,
) -> Store:
    from shoal.kernels import box_state as state

    n, classes = len(codes), int(labels.max()) + 1
    room, holdings = max(n // rules.k, classes) + 2, n + 2
    cells, counts = np.unique(points * room + labels, return_counts=True)
    used = len(cells)
    hold = np.full((holdings, 10), -1, dtype=np.int32)
    hold[:, state.TAKEN] = 0
    hold[:used, state.POINT], hold[:used, state.CLASS] = cells // room, cells % room
    hold[:used, state.TUPLE], hold[:used, state.COUNT] = tuple_of_point[cells // room], counts
    head = _linked(hold, used, state.CLASS, state.NEXT_IN_CLASS, state.BACK_IN_CLASS, room)
    tuple_head = _linked(hold, used, state.TUPLE, state.NEXT_IN_TUPLE, state.BACK_IN_TUPLE, tuples)
    hold[: holdings - used, state.FREE] = np.arange(used, holdings)
    box = np.zeros((2 * room + 2, space.width), dtype=np.int64)
    order = np.argsort(labels, kind="stable")
    box[:classes] = space.states(codes, order, np.searchsorted(labels[order], np.arange(classes)))
    loss = np.zeros(2 * room)
    loss[:classes] = space.unit(box[:classes])
    klass = np.zeros((room, 8), dtype=np.int64)
    klass[:, state.SIZE], klass[:, state.HEAD] = np.bincount(labels, minlength=room), head
    klass[:, state.LIVE] = klass[:, state.PLACE] = np.arange(room)
    whole = np.full(rules.n, -1, dtype=np.int64)
    whole[records] = labels
    stats = rules.stats(whole, classes)
    histogram = np.zeros((2 * room, sum(view.width for view in rules.views)), dtype=np.int32)
    if rules.views:
        histogram[:classes] = np.concatenate(stats.counts, axis=1)
    number = np.zeros(8, dtype=np.int64)
    number[state.CLASSES], number[state.FREES] = classes, holdings - used
    covers = np.zeros((masks, (room + 63) // 64), dtype=np.uint64)
    for c in range(classes):
        state.toggle(gauge.spec, gauge.tree, covers, box, c, c)
    lists = np.zeros((2 * holdings, 5), dtype=np.int32)
    return state.Store(box, loss, histogram, klass, hold, tuple_head, lists, number, covers)


def _linked(hold: NDArray[np.int32], used: int, column: int, after: int, before: int, size: int) -> NDArray[np.int32]:
    """Thread the holdings with the same value in a column; where each list begins."""
    order = np.argsort(hold[:used, column], kind="stable")
    keys = hold[order, column]
    same = keys[1:] == keys[:-1]
    hold[order[:-1][same], after] = order[1:][same]
    hold[order[1:][same], before] = order[:-1][same]
    head = np.full(size, -1, dtype=np.int32)
    begins = np.concatenate([[True], ~same])
    head[keys[begins]] = order[begins]
    return head


def _distinct(rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First row of each distinct one, and which one each row is."""
    key, span = np.zeros(len(rows), dtype=np.int64), 1
    for a in range(rows.shape[1]):
        size = int(rows[:, a].max()) + 2
        if span * size >= 2**62:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            span = int(key.max()) + 1
        key, span = key * size + rows[:, a] + 1, span * size
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.ravel().astype(np.int64)


def _tree(space: Space, codes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort tuples so that near ones are near; the nodes of the implicit tree: covering states, then first and last tuple."""
    m = len(codes)
    levels = max(0, int(np.ceil(np.log2(max(m, 1) / LEAF))))
    order = np.arange(m)
    nodes = []
    for level in range(levels + 1):
        edges = (np.arange(2**level + 1) * m) >> level
        states = space.states(codes, order, edges[:-1])
        nodes.append(np.concatenate([states, edges[:-1, None], edges[1:, None]], axis=1))
        if level < levels:
            widest = np.argmax(space.losses(states) * space.weights, axis=1)
            node = np.repeat(np.arange(2**level), np.diff(edges))
            order = order[np.lexsort((codes[order, widest[node]], node))]
    return order, np.concatenate(nodes).astype(np.int64)


def _masks(spec: NDArray[np.int64], tuples: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Bitmaps of tuples by code; `spec` learns where each attribute's begin."""
    from shoal.kernels import box_state as state
    from shoal.kernels.space import SET

    m = len(tuples)
    words, used, rows = (m + 63) // 64, 0, []
    for a in range(len(spec)):
        buckets = min(int(spec[a, state.CODES]), BUCKETS)
        bucket = tuples[:, a].astype(np.int64) * buckets // spec[a, state.CODES]
        if spec[a, state.KIND] == SET:
            marked = np.arange(buckets)[:, None] == bucket[None, :]
        else:
            marked = np.arange(buckets + 1)[:, None] > bucket[None, :]
        spec[a, state.MASKS], spec[a, state.BUCKETS] = used, buckets
        used += len(marked)
        padded = np.zeros((len(marked), words * 64), dtype=bool)
        padded[:, :m] = marked
        rows.append(np.packbits(padded, axis=1, bitorder="little").view(np.uint64))
    rows.append(np.zeros((1, words), dtype=np.uint64))
    return np.concatenate(rows)


def _total(store: Store) -> float:
    from shoal.kernels.box_state import SIZE

    sizes = store.klass[:, SIZE]
    return float((sizes * store.loss[: len(sizes)]).sum())


def _labels(store: Store, points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Hand each point's records, in order, to the classes that hold them, in order."""
    from shoal.kernels.box_state import CLASS, COUNT, POINT

    free = set(store.hold[: store.number[1], 9].tolist())
    rows = np.array([h for h in range(len(store.hold)) if h not in free], dtype=np.int64)
    held = store.hold[rows]
    held = held[held[:, COUNT] > 0]
    held = held[np.lexsort((held[:, CLASS], held[:, POINT]))]
    given = np.repeat(held[:, CLASS], held[:, COUNT])
    labels = np.empty(len(points), dtype=np.int64)
    labels[np.argsort(points, kind="stable")] = given
    return labels
