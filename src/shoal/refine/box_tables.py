"""Tables for the box search: what the compiled loop walks through, for a whole table or for a region of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.models import Kind
from shoal.policy import FlatRules, Rules
from shoal.progress import Progress
from shoal.refine.effort import asking_work
from shoal.refine.near import NEAR, near_count, near_tuples, tree_order
from shoal.space import Space

if TYPE_CHECKING:
    from shoal.kernels.box_types import Attribute, Fields, Gauge, Store, Table

Ints = NDArray[np.int64]

# Sets of tuples are looked through a word at a time, for every attribute: beyond so many tuples × attributes near tuples alone
# are looked at, where they have CROWD times the records that a class needs.
SETS, CROWD = 100_000, 2
# How often a step shifts a record, gathers near records, changes a class, generalizes a tuple at random, or joins near
# tuples (the rest: a class grows), for k far below MIDDLE and for k far above.
SMALL = (0.40, 0.38, 0.08, 0.04, 0.06)
LARGE = (0.01, 0.10, 0.36, 0.14, 0.30)
MIDDLE = 15


@dataclass(frozen=True, eq=False)
class Encoded:
    """The records in the search: distinct tuples in the order of a tree with their neighbours, and points.

    A point is a tuple with sensitive codes. `records` are the numbers that the rules know the records by; `flat` are the rules
    for histograms with so many columns, and `bins` says in which of them a point is counted; points that are counted alike are
    of one of the `kinds`. `work` is what finding the neighbours took of the budget.
    """

    space: Space
    rules: Rules
    flat: FlatRules
    columns: int
    records: Ints
    codes: NDArray[np.int32]
    gauge: Gauge
    tuples: NDArray[np.int32]
    near: NDArray[np.int32]
    bins: NDArray[np.int32]
    kinds: NDArray[np.int32]
    tuple_of_point: Ints
    point_of_record: Ints
    work: int


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the records with their classes, ready to be searched; `points` is the part's own point of each of them."""

    records: Ints
    points: Ints
    table: Table
    store: Store

    def total(self) -> float:
        """The loss of all classes."""
        classes, live = self.store.classes, self.store.desk.old
        return exact.weighed(classes["size"][:live], classes["loss"][:live])

    def held(self) -> NDArray[np.int32]:
        """A copy of who is in which class: point, class and how many."""
        holdings = self.store.holdings
        return np.stack([holdings["point"], holdings["home"], holdings["count"]])

    def labels(self, held: NDArray[np.int32]) -> Ints:
        """Give each point's records, in order, to the classes that hold them, in order."""
        _, home, count = held[:, np.lexsort((held[1], held[0]))]
        labels = np.empty(len(self.points), dtype=np.int64)
        labels[np.argsort(self.points, kind="stable")] = np.repeat(home, count)
        return labels


def encode(
    codes: NDArray[np.int32],
    space: Space,
    rules: Rules,
    records: Ints,
    progress: Progress,
    *,
    budget: int,
    seed: int = 0,
) -> Encoded:
    """What holds for all classes and all regions; near tuples are as good as a share of the budget allows."""
    from shoal.kernels.box_gauge import gauge as packed
    from shoal.kernels.space import flatten

    gauge = packed(flatten(space))
    first, of_record = _distinct(codes)
    order, nodes = tree_order(space, codes[first], progress)
    tuples = np.ascontiguousarray(codes[first][order])
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    of_record = place[of_record]
    views = rules.codes()[records]
    point_first, points = _distinct(np.column_stack([of_record.astype(np.int32), views]))
    flat, bins, columns = _columns(rules, views[point_first])
    kinds = _distinct(bins)[1].astype(np.int32)
    known = near_count(rules.k, budget // max(1, len(codes)))
    near, work = near_tuples(gauge, tuples, nodes, budget, seed, progress, width=known)
    tuple_of_point = of_record[point_first]
    return Encoded(
        space, rules, flat, columns, records, codes, gauge, tuples, near, bins, kinds, tuple_of_point, points, work
    )


def _columns(rules: Rules, codes: NDArray[np.int32]) -> tuple[FlatRules, NDArray[np.int32], int]:
    """The rules for histograms, the columns in which rows of codes are counted (-1: nowhere), and how many there are.

    Persons have very many sets of values, of which a class has a few: behind all histograms are the sums of blocks of them, so
    that those that occur are found without looking at all of them.
    """
    from shoal.kernels.hitting import BLOCK

    flat, entries = rules.flat(), rules.entries
    assert flat is not None
    assert entries is not None
    bins, columns = rules.cells(codes), int(rules.view_starts[-1])
    if flat.sets is not None:
        sets = flat.sets.copy()
        of_sets = [i for i, entry in enumerate(entries) if entry.form.kind >= Kind.HITTING]
        for view in dict.fromkeys(entries[i].view for i in of_sets):
            sets[[i for i in of_sets if entries[i].view == view]] = columns
            bins = np.column_stack([bins, np.where(codes[:, view] >= 0, columns + codes[:, view] // BLOCK, -1)])
            columns += -(-rules.views[view].width // BLOCK)
        flat = flat._replace(sets=sets)
    return flat, np.ascontiguousarray(bins, dtype=np.int32), columns


def take(whole: Encoded, records: Ints, labels: Ints) -> Part:
    """A part of the table: some records, and the class of each of them (0, 1, 2 … without gaps)."""
    from shoal.kernels.box_draft import cover
    from shoal.kernels.box_types import Table

    used_points, points = np.unique(whole.point_of_record[records], return_inverse=True)
    used, tuple_of_point = np.unique(whole.tuple_of_point[used_points], return_inverse=True)
    points, tuple_of_point = points.ravel(), tuple_of_point.ravel()
    tuples = whole.tuples[used]
    narrow = _narrow(len(tuples), len(points), tuples.shape[1], whole.rules.k)
    table = Table(
        codes=tuples,
        near=_near(whole.near, used, len(whole.tuples)),
        records=tuple_of_point[points].astype(np.int32),
        bins=whole.bins[used_points],
        kinds=whole.kinds[used_points],
        masks=_masks(whole.gauge.attributes, tuples, empty=narrow),
    )
    store = _store(whole, table, records, labels, tuple_of_point, points)
    store.desk.narrow = np.int64(narrow)
    if not narrow:
        cover(whole.gauge, store)
    return Part(records, points, table, store)


def _narrow(tuples: int, records: int, attributes: int, k: int) -> bool:
    """Whether steps look at near tuples alone: where sets of all tuples cost more to look through, and near ones are enough."""
    return tuples * attributes > SETS and NEAR * records >= CROWD * k * tuples


def by_class(labels: Ints) -> tuple[Ints, Ints]:
    """Records class by class, and where each class begins."""
    order = np.argsort(labels, kind="stable")
    return order, np.searchsorted(labels[order], np.arange(int(labels.max()) + 1))


def spread(labels: Ints, records: Ints, n: int) -> Ints:
    """Labels of some records as labels of all."""
    whole = np.full(n, -1, dtype=np.int64)
    whole[records] = labels
    return whole


def _near(near: NDArray[np.int32], used: Ints, m: int) -> NDArray[np.int32]:
    """Those of the near tuples that are used too, nearest first and again from the first on; else the tuple itself."""
    if len(used) == m:
        return near
    number = np.full(m, -1, dtype=np.int32)
    number[used] = np.arange(len(used))
    found = number[near[used]]
    order = np.argsort(found < 0, axis=1, kind="stable")
    known = np.maximum(1, (found >= 0).sum(axis=1))[:, None]
    filled = np.take_along_axis(np.take_along_axis(found, order, axis=1), np.arange(near.shape[1]) % known, axis=1)
    return np.where(filled < 0, np.arange(len(used), dtype=np.int32)[:, None], filled)


def _shares(k: int) -> dict[str, float]:
    """Where in [0, 1) each kind of step ends: where few records make a class, single ones matter."""
    large = k**3 / (k**3 + MIDDLE**3)
    ends = np.cumsum((1 - large) * np.array(SMALL) + large * np.array(LARGE))
    return dict(zip(("shifts", "gathers", "changes", "generalizations", "joins"), ends.tolist(), strict=True))


def _store(whole: Encoded, table: Table, records: Ints, labels: Ints, tuple_of_point: Ints, points: Ints) -> Store:
    """The partition as holdings and boxes, with room for as many classes as there can ever be and one more."""
    from shoal.kernels.box_types import NOBODY, Asked, Class, Desk, Holding, Listed, Store, blank

    space, rules, codes = whole.space, whole.rules, whole.codes[records]
    n, live = len(codes), int(labels.max()) + 1
    room, most = n // rules.k + 2, n + 2
    cells, amounts = np.unique(points * room + labels, return_counts=True)
    used = len(cells)
    holdings = blank(Holding, most)
    for field in ("point", "tuple", "home", "next_in_class", "back_in_class", "next_in_tuple", "back_in_tuple"):
        holdings[field] = NOBODY
    inside = holdings[:used]
    inside["point"], inside["home"] = cells // room, cells % room
    inside["tuple"], inside["count"] = tuple_of_point[cells // room], amounts
    # Two rows for a box on trial, and as many entries as a step can plan: what it takes, and where the rest goes.
    classes, lists = blank(Class, 2 * room + 2), blank(Listed, 2 * most)
    box = np.zeros((2 * room + 2, space.width), dtype=np.int64)
    box[:live] = space.states(codes, *by_class(labels))
    classes["size"][:room] = np.bincount(labels, minlength=room)
    classes["loss"][:live] = space.unit(box[:live])
    classes["head"][:room] = _linked(inside, "home", "class", room)
    classes["place"][:room] = lists["live"][:room] = np.arange(room)
    lists["free"][: most - used] = np.arange(used, most)
    histogram = np.zeros((room, whole.columns), dtype=np.int32)
    for column in table.bins[points].T:
        np.add.at(histogram, (labels[column >= 0], column[column >= 0]), 1)
    desk = blank(Desk, 1)
    known = {"k": rules.k, "closed_up": rules.superset_closed, "live": live, "free": most - used}
    rows = {"old": room, "trial": 2 * room, "asking": asking_work(whole.flat)}
    for field, value in {**known, **_shares(rules.k), **rows}.items():
        desk[field] = value
    return Store(
        classes=classes,
        box=box,
        histogram=histogram,
        holdings=holdings,
        heads=_linked(inside, "tuple", "tuple", len(table.codes)),
        covers=np.zeros((len(table.masks), (room + 63) // 64), dtype=np.uint64),
        lists=lists,
        asked=blank(Asked, int(whole.kinds.max(initial=0)) + 1),
        desk=desk[0],
    )


def empty_store() -> Store:
    """A store with nothing in it, of the same types as every other: what is compiled for one is compiled for all."""
    from shoal.kernels.box_types import Asked, Class, Desk, Holding, Listed, Store, blank

    return Store(
        classes=blank(Class, 1),
        box=np.zeros((1, 1), dtype=np.int64),
        histogram=np.zeros((1, 1), dtype=np.int32),
        holdings=blank(Holding, 1),
        heads=np.zeros(1, dtype=np.int32),
        covers=np.zeros((1, 1), dtype=np.uint64),
        lists=blank(Listed, 1),
        asked=blank(Asked, 1),
        desk=blank(Desk, 1)[0],
    )


def _linked(holdings: NDArray[np.void], field: str, what: str, size: int) -> NDArray[np.int32]:
    """Thread the holdings with the same value in a field, in order and back; where each list begins."""
    order = np.argsort(holdings[field], kind="stable")
    keys = holdings[field][order]
    same = keys[1:] == keys[:-1]
    holdings[f"next_in_{what}"][order[:-1][same]] = order[1:][same]
    holdings[f"back_in_{what}"][order[1:][same]] = order[:-1][same]
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


def _masks(attributes: Fields[Attribute], tuples: NDArray[np.int32], *, empty: bool) -> NDArray[np.uint64]:
    """Sets of tuples by code, as bits; if `empty`, the two rows to write on alone."""
    from shoal.kernels.space import SET

    m = len(tuples)
    words, rows = (m + 63) // 64, []
    for a in range(0 if empty else len(attributes)):
        kind, shift, codes = (int(attributes[name][a]) for name in ("kind", "shift", "codes"))
        groups = np.arange((codes - 1 >> shift) + 2)[:, None]
        group = tuples[:, a] >> shift
        inside = groups == group if kind == SET else groups > group
        padded = np.zeros((len(inside), 64 * words), dtype=bool)
        padded[:, :m] = inside
        rows.append(np.packbits(padded, axis=1, bitorder="little").view(np.uint64))
    return np.concatenate([*rows, np.zeros((2, words), dtype=np.uint64)])
