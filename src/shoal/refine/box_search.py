"""Box search: anonymity as facility location.

A class is seen as a *box*, one state an attribute, that costs its loss for every record in it and must hold enough of
them for the policy. A step proposes a box around a record, lets it win the records that now pay more, dissolves or
repairs the classes it took them from, sends homeless records to the classes where they cost least, and stays if the
loss falls, or by annealing if it rises. Moving a box moves whole groups of records at once, and surplus records of
rich classes help poor ones for nothing.

Every class that a step touches satisfies the policy afterwards. The budget is a number of elementary operations, never a
clock: a seed gives the same partition on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ConfigError, InternalError, UnsupportedError
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.space import Space

if TYPE_CHECKING:
    from shoal.kernels.box_state import Gauge, Store, Table

Ints = NDArray[np.int64]
Effort = Literal["fast", "thorough"] | float

# Elementary operations: about this many a second on one core of an ordinary machine.
SECOND = 60_000_000
# Operations per record, and the seconds that ORDINARY records may take at most; larger tables get more in proportion.
EFFORTS = {"fast": (20_000, 1.5), "thorough": (200_000, 15.0)}
ORDINARY = 30_000
SLICES = 100
NEAR = 32
LEAF = 8
# At most 2^ROWS sets of tuples, and of classes, for an attribute.
ROWS = 7


def box_search(
    codes: NDArray[np.int32],
    space: Space,
    rules: Rules,
    partition: Partition,
    *,
    effort: Effort = "fast",
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Partition:
    """A partition with no more loss than `partition`, which must satisfy the rules; suppressed records stay out.

    `effort` is "fast", "thorough" or a number of nominal seconds; `progress` is called with the share that is done.
    """
    flat_rules = rules.flat()
    if flat_rules is None:
        raise UnsupportedError(
            "The box search needs a policy of which every model has a compiled form; turn refine off."
        )
    inside = np.flatnonzero(partition.labels >= 0)
    budget = _budget(effort, len(inside))
    if len(inside) < 2 * rules.k:
        return partition
    if rules.deficits(partition.labels, partition.classes).max() > 0:
        raise InternalError("the box search was given a partition that does not satisfy the policy")
    from shoal.kernels.box_search import search

    labels = partition.labels[inside].astype(np.int64)
    rows = np.ascontiguousarray(codes[inside], dtype=np.int32)
    if rules.union_closed:
        labels = _pooled(rows, space, labels)
    gauge, table, store, points = _prepare(rows, space, rules, inside, labels)
    random = np.random.default_rng(seed).integers(1, 2**63, size=1).astype(np.uint64)
    strangers = _strangers(rows, space, seed)
    total = best = _total(store)
    kept: NDArray[np.int32] | None = None
    for part in range(SLICES):
        heat = _heat(total, int(store.number[0]), len(rows) / rules.k, strangers) * (1 - part / SLICES) ** 2
        until = budget * (part + 1) // SLICES
        total += search(gauge, flat_rules, table, store, random, rules.k, rules.superset_closed, heat, until)
        if total < best - 1e-9:
            best, kept = total, store.hold[:, :4].copy()
        if progress is not None:
            progress((part + 1) / SLICES)
    if kept is None:
        return partition
    labels = _labels(kept, points)
    if rules.union_closed:
        labels = _pooled(rows, space, labels)
    result = Partition.compact(_spread(labels, inside, partition.n), notes=partition.notes)
    if rules.deficits(result.labels, result.classes).max() > 0:
        raise InternalError("the box search broke the policy")
    return result


def _budget(effort: Effort, n: int) -> int:
    """Elementary operations for an effort."""
    if isinstance(effort, str) and effort in EFFORTS:
        per_record, seconds = EFFORTS[effort]
        return int(min(per_record * n, seconds * SECOND * max(1.0, n / ORDINARY)))
    if isinstance(effort, (str, bool)) or not 0 <= effort < np.inf:
        raise ConfigError(f"refine = {effort!r} is not allowed; write fast, thorough or a number of seconds.")
    return int(effort * SECOND)


def _pooled(codes: NDArray[np.int32], space: Space, labels: Ints) -> Ints:
    """Classes with the same box made one: they are published alike, and one class shares its surplus."""
    dense = np.unique(labels, return_inverse=True)[1].ravel()
    boxes = space.states(codes, *_by_class(dense))
    return np.asarray(np.unique(boxes, axis=0, return_inverse=True)[1].ravel()[dense], dtype=np.int64)


def _by_class(labels: Ints) -> tuple[Ints, Ints]:
    """Records class by class, and where each class begins."""
    order = np.argsort(labels, kind="stable")
    return order, np.searchsorted(labels[order], np.arange(int(labels.max()) + 1))


def _strangers(codes: NDArray[np.int32], space: Space, seed: int) -> float:
    """What a record loses on average in a class of two random records."""
    pairs = np.random.default_rng(seed).integers(0, len(codes), size=2 * 1000)
    return float(space.unit(space.states(codes, pairs, np.arange(0, len(pairs), 2))).mean())


def _heat(total: float, classes: int, most: float, strangers: float) -> float:
    """The temperature of the beginning, between what a class costs now and what two strangers would.

    The exponents fit what worked best on Adult for k from 2 to 100; a factor of two either way hardly matters. A start
    with few classes says little about the classes to come, of which there can be at most `most`.
    """
    cost = max(0.0, total) / max(classes, 0.5 * most)
    return float(strangers**0.3 * cost**0.7)


def _prepare(
    codes: NDArray[np.int32], space: Space, rules: Rules, records: Ints, labels: Ints
) -> tuple[Gauge, Table, Store, Ints]:
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
    nearest(gauge.spec, gauge.losses, tuples, nodes, near)
    masks = _masks(gauge.spec, tuples)
    table = state.Table(tuples, of_record.astype(np.int32), bins, near, masks)
    counts = rules.stats(_spread(labels, records, rules.n), int(labels.max()) + 1).counts
    store = _store(gauge, table, codes, space, rules.k, labels, of_record[point_first], points, counts)
    return gauge, table, store, points


def _spread(labels: Ints, records: Ints, n: int) -> Ints:
    """Labels of some records as labels of all."""
    whole = np.full(n, -1, dtype=np.int64)
    whole[records] = labels
    return whole


def _store(
    gauge: Gauge,
    table: Table,
    codes: NDArray[np.int32],
    space: Space,
    k: int,
    labels: Ints,
    tuple_of_point: Ints,
    points: Ints,
    counts: tuple[Ints, ...],
) -> Store:
    """The partition as holdings and boxes, with room for as many classes as there can ever be and one more."""
    from shoal.kernels import box_state as state

    n, classes = len(codes), int(labels.max()) + 1
    room, holdings = n // k + 2, n + 2
    cells, amounts = np.unique(points * room + labels, return_counts=True)
    used = len(cells)
    hold = np.full((holdings, 10), state.NOBODY, dtype=np.int32)
    hold[:, [state.COUNT, state.TAKEN]] = 0
    hold[:used, state.POINT], hold[:used, state.CLASS] = cells // room, cells % room
    hold[:used, state.TUPLE], hold[:used, state.COUNT] = tuple_of_point[cells // room], amounts
    hold[: holdings - used, state.FREE] = np.arange(used, holdings)
    klass = np.zeros((room, 8), dtype=np.int64)
    klass[:, state.SIZE] = np.bincount(labels, minlength=room)
    klass[:, state.HEAD] = _linked(hold[:used], state.CLASS, state.NEXT_IN_CLASS, room)
    klass[:, state.LIVE] = klass[:, state.PLACE] = np.arange(room)
    heads = _linked(hold[:used], state.TUPLE, state.NEXT_IN_TUPLE, len(table.codes))
    box = np.zeros((2 * room + 2, space.width), dtype=np.int64)
    box[:classes] = space.states(codes, *_by_class(labels))
    loss = np.zeros(2 * room)
    loss[:classes] = space.unit(box[:classes])
    histogram = np.zeros((2 * room, sum(part.shape[1] for part in counts)), dtype=np.int32)
    if counts:
        histogram[:classes] = np.concatenate(counts, axis=1)
    number = np.zeros(8, dtype=np.int64)
    number[state.CLASSES], number[state.FREES] = classes, holdings - used
    covers = np.zeros((len(table.masks), (room + 63) // 64), dtype=np.uint64)
    state.cover(gauge.spec, gauge.tree, covers, box, classes)
    lists = np.zeros((2 * holdings, 5), dtype=np.int32)
    return state.Store(box, loss, histogram, klass, hold, heads, lists, covers, number)


def _linked(hold: NDArray[np.int32], column: int, after: int, size: int) -> NDArray[np.int32]:
    """Thread the holdings with the same value in a column, in order and back; where each list begins."""
    order = np.argsort(hold[:, column], kind="stable")
    keys = hold[order, column]
    same = keys[1:] == keys[:-1]
    hold[order[:-1][same], after] = order[1:][same]
    hold[order[1:][same], after + 1] = order[:-1][same]
    head = np.full(size, -1, dtype=np.int32)
    begins = np.concatenate([[True], ~same])
    head[keys[begins]] = order[begins]
    return head


def _distinct(rows: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """First row of each distinct one, and which one each row is."""
    key, span = np.zeros(len(rows), dtype=np.int64), 1
    for a in range(rows.shape[1]):
        size = int(rows[:, a].max()) + 2
        if span * size >= 2**62:
            key = np.unique(key, return_inverse=True)[1].ravel().astype(np.int64)
            span = int(key.max()) + 1
        key, span = key * size + rows[:, a] + 1, span * size
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.ravel().astype(np.int64)


def _tree(space: Space, codes: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """An order of the tuples in which near ones are near, and the nodes of the tree above it (see `nearest`)."""
    m = len(codes)
    levels = max(0, int(np.ceil(np.log2(m / LEAF))))
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


def _masks(spec: Ints, tuples: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Sets of tuples by code, as bits; `spec` learns where the rows of each attribute begin."""
    from shoal.kernels.box_state import CODES, KIND, MASKS, SHIFT
    from shoal.kernels.space import SET

    m, used = len(tuples), 0
    words, rows = (m + 63) // 64, []
    for a in range(len(spec)):
        last = int(spec[a, CODES]) - 1
        shift = max(0, last.bit_length() - ROWS)
        groups = np.arange((last >> shift) + 2)[:, None]
        group = tuples[:, a] >> shift
        inside = groups == group if spec[a, KIND] == SET else groups > group
        spec[a, MASKS], spec[a, SHIFT] = used, shift
        used += len(inside)
        padded = np.zeros((len(inside), 64 * words), dtype=bool)
        padded[:, :m] = inside
        rows.append(np.packbits(padded, axis=1, bitorder="little").view(np.uint64))
    return np.concatenate([*rows, np.zeros((2, words), dtype=np.uint64)])


def _total(store: Store) -> float:
    sizes = store.klass[:, 0]
    return float(sizes @ store.loss[: len(sizes)])


def _labels(hold: NDArray[np.int32], points: Ints) -> Ints:
    """Give each point's records, in order, to the classes that hold them, in order."""
    from shoal.kernels.box_state import CLASS, COUNT, POINT

    held = hold[np.lexsort((hold[:, CLASS], hold[:, POINT]))]
    labels = np.empty(len(points), dtype=np.int64)
    labels[np.argsort(points, kind="stable")] = np.repeat(held[:, CLASS], held[:, COUNT])
    return labels
