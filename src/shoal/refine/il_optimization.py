"""IL_Optimization: break classes whose records others would take without publishing anything else (Truta & Campan 2007, §4).

A record is *covered* by another class that would publish the same with it. A class is *totally covered* if every record
of it is. Such a class can be *broken*: each record goes to a class that covers it, and nothing changes but what these
records pay. The break is worth it if they pay less. The paper never removes the broken class and trusts in covers that
an earlier break may have removed; here both are repaired (docs/algorithms.md#il_optimization).

>>> import numpy as np, polars as pl, shoal
>>> from shoal.partition import Partition
>>> frame = pl.DataFrame({"age": [25, 40, 35, 55, 33, 42, 38], "sex": ["M", "F", "M", "M", "F", "M", "M"]})
>>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "sex": {"role": "quasi"}})
>>> rules = data.rules(shoal.Policy((shoal.KAnonymity(2),)))
>>> classes = Partition(np.array([0, 0, 1, 1, 2, 2, 2]))
>>> il_optimization(data.codes, data.space("il"), rules, classes).labels.tolist()
[0, 0, 1, 1, 0, 1, 1]
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.exact import TICKS
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import SLICE, Progress, Told
from shoal.space import Codes, Space

if TYPE_CHECKING:
    from shoal.kernels.space import FlatSpace

Labels = NDArray[np.int64]


def il_optimization(
    codes: Codes,
    space: Space,
    rules: Rules,
    partition: Partition,
    *,
    iterate: bool = False,
    progress: Told | None = None,
) -> Partition:
    """The partition after every interesting break, dearest classes first; its loss never rises.

    `iterate` also splits classes of 2k records or more as Split2k does, and takes turns as long as that helps.
    Classes of a policy that more records can spoil are tested before anything is moved. Suppressed records stay so.
    `progress` is called with the share that is done.
    """
    from shoal.kernels.space import flatten

    flat, told = flatten(space), Progress.of(progress)
    with told.stage("breaking classes", 0.5 if iterate else None) as part:
        labels = _break_all(codes, flat, rules, partition.labels.astype(np.int64), part)
    if iterate:
        loss = _loss(codes, space, labels)
        for turn in count(2):
            # Nobody knows how many turns there will be: each takes half of what is left.
            with told.stage("splitting and breaking classes", 0.5**turn) as part:
                halves = _split_all(codes, flat, rules, labels, part)
                tried = _break_all(codes, flat, rules, halves, part)
            lower = _loss(codes, space, tried)
            if lower >= loss:
                break
            labels, loss = tried, lower
    told(1.0)
    return Partition.compact(labels)


def _break_all(codes: Codes, flat: FlatSpace, rules: Rules, labels: Labels, progress: Progress) -> Labels:
    """One pass. Covers only ever vanish, so a class that is not worth a break now will not be later."""
    from shoal.kernels.class_index import make_index
    from shoal.kernels.coverage import PLACE, Breaks, break_class, next_break
    from shoal.kernels.heap import make_heap
    from shoal.kernels.i3m import make_groups, make_records, members_of, settle

    def stay_good(c: int) -> bool:
        rows = members_of(records, groups, c)
        gains = targets[: len(rows)]
        joined = (np.concatenate([members_of(records, groups, t), rows[gains == t]]) for t in np.unique(gains))
        return all(rules.ok(members) for members in joined)

    classes = int(labels.max()) + 1 if len(labels) else 0
    if classes < 2:
        return labels
    records = make_records(codes, labels)
    groups, index = make_groups(flat, classes), make_index(flat, classes + 8)
    settle(flat, index, groups, records, classes)
    heap = make_heap(classes + 8)
    dearness = np.rint(groups.loss[:, -1] * TICKS) * groups.info[:, 0]
    order = np.argsort(-dearness, kind="stable")
    # Classes grow by what others give them: any of them may come to hold every record.
    targets = np.zeros(len(codes), dtype=np.int64)
    at = np.zeros(3, dtype=np.int64)
    breaks = Breaks(order, at, targets)
    while at[PLACE] < len(order):
        progress(at[PLACE] / len(order))
        if next_break(flat, index, groups, records, heap, breaks, SLICE) and at[PLACE] < len(order):
            c = int(order[at[PLACE]])
            if rules.superset_closed or stay_good(c):
                break_class(flat, index, groups, records, c, targets)
            at[PLACE] += 1
    return records.link[:, 0].astype(np.int64)


def _split_all(codes: Codes, flat: FlatSpace, rules: Rules, labels: Labels, progress: Progress) -> Labels:
    """Split2k of all classes with 2k records or more, as far as both parts are good; new classes come last."""
    labels = labels.copy()
    order = np.argsort(labels, kind="stable")[np.count_nonzero(labels < 0) :]
    sizes = np.bincount(labels[order], minlength=int(labels.max()) + 1)
    used = len(sizes)
    ends = np.cumsum(sizes)
    for c in np.flatnonzero(sizes >= 2 * rules.k):
        rest = order[ends[c] - sizes[c] : ends[c]]
        while len(rest) >= 2 * rules.k:
            half = _half(codes, flat, rest, rules.k, progress)
            if not (rules.only_size or (rules.ok(rest[half]) and rules.ok(rest[~half]))):
                break
            labels[rest[half]] = used
            rest, used = rest[~half], used + 1
    return labels


def _half(codes: Codes, flat: FlatSpace, rows: Labels, k: int, progress: Progress) -> NDArray[np.bool_]:
    """Which k of the records Split2k moves, a slice of work at a time."""
    from shoal.kernels.i3m import choose_more

    moved, state = np.zeros(len(rows), dtype=np.bool_), np.zeros(int(flat.slot[-1]), dtype=np.int64)
    more = k
    while more > 0:
        progress.check()
        more = choose_more(flat, codes, rows, moved, state, more, SLICE // len(flat.kind))
    return moved


def _loss(codes: Codes, space: Space, labels: Labels) -> int:
    """The total in ticks, from the losses of the classes in ticks."""
    partition = Partition.compact(labels)
    units = np.rint(space.unit(space.states(codes, partition.order, partition.starts)) * TICKS).astype(np.int64)
    return sum((units * partition.sizes).tolist())
