"""New records for m-invariance: cut along the quasi-identifiers into eligible blocks, and these into classes.

A block is *eligible* when no value of a sensitive attribute has more than one m-th of its rows. Below 2m rows it then has
every value once, and is a class. So neighbours share a class, whatever their values are: the fewer rows a block has, the less
it loses, and the more signatures there are.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from shoal.errors import InfeasibleError, raw
from shoal.evolve.releases.buckets import (
    Bucket,
    RowList,
    Signature,
    Work,
    fill_up,
    filled,
    held_back,
    missing_rows,
    rounds,
)
from shoal.microdata import Microdata
from shoal.models import Sensitive
from shoal.models.alpha_k import AlphaK
from shoal.models.k_anonymity import KAnonymity
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.space import Measure


def assign(
    work: Work,
    buckets: dict[Signature, Bucket],
    stock: Bucket,
    data: Microdata,
    *,
    first: bool,
    hold_back: bool,
    objective: Measure,
    seed: int,
    progress: Progress,
) -> RowList:
    """The other new records into buckets of their own signatures; the ones held back are returned."""
    if first and not hold_back:
        _require_mixed(work, stock)
    held: RowList = []
    if work.known.simple and (lacking := missing_rows(stock, work.m)):
        if hold_back:
            held = held_back(stock, work.m)
        else:
            fill_up(work, stock, lacking, buckets)
    rows = sorted(row for own in stock.values() for row in own)
    with progress.stage("cutting blocks", 0.8) as part:
        blocks = eligible_blocks(work, rows, data, objective, seed, part)
    classes: list[RowList] = []
    left: RowList = []
    for block in progress.each(blocks):
        if work.known.simple:
            rounds(work, buckets, _by_value(work, block), progress)
        else:
            groups, rest = deal(work, block)
            classes += groups
            left += rest
    held += _settled(work, classes, left, hold_back)
    for group in classes:
        key = tuple(sorted(work.value_of(row) for row in group))
        bucket = buckets.setdefault(key, {v: [] for v in key})
        for row in group:
            bucket[work.value_of(row)].append(row)
    return held


def eligible_blocks(
    work: Work, rows: RowList, data: Microdata, objective: Measure, seed: int, progress: Progress
) -> list[RowList]:
    """Rows cut into eligible blocks with little loss; one block where they cannot be cut, or not be eligible."""
    from shoal.algorithms import run
    from shoal.refine import refined

    if len(rows) < 2 * work.m:
        return [rows] if rows else []
    like = np.array(work.like(rows))
    parts = work.known.parts[[work.value_of(row) for row in rows]]
    names = data.schema.named("sensitive")
    columns = []
    for name, codes in zip(names, parts.T, strict=True):
        found, place = np.unique(codes, return_inverse=True)
        columns.append(Sensitive(name, place.astype(np.int32), tuple(map(str, found.tolist()))))
    table = Microdata(data.frame[like], data.schema, data.codes[like], data.domains, tuple(columns))
    policy = Policy((KAnonymity(work.m), *(AlphaK(1 / work.m, name) for name in names)))
    rules = policy.bind(table.sensitive, table.n)
    try:
        with progress.stage(weight=0.3) as part:
            cut = run("auto", table, rules, objective=objective, seed=seed, options={"refined": True}, progress=part)
    except InfeasibleError:
        return [rows]
    with progress.stage() as part:
        cut = refined(table, rules, cut, objective=objective, seed=seed, progress=part)
    return [[rows[i] for i in members.tolist()] for members in cut.members()]


def deal(work: Work, block: RowList) -> tuple[list[RowList], RowList]:
    """As many classes of a block as it has times m rows, and the rows that clash with some of every class.

    Rows with frequent values first, each into the smallest class with nobody that it clashes with.
    """
    parts = work.known.parts[[work.value_of(row) for row in block]]
    often = np.zeros(len(block), dtype=np.int64)
    for column in parts.T:
        _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
        often = np.maximum(often, counts[place])
    groups: list[RowList] = [[] for _ in range(len(block) // work.m)]
    left: RowList = []
    for at in np.lexsort((np.array(block), -often)).tolist():
        row = block[at]
        free = [group for group in groups if not _clashes(work, row, group)]
        if free:
            min(free, key=len).append(row)
        else:
            left.append(row)
    left += [row for group in groups if len(group) < work.m for row in group]
    return [sorted(group) for group in groups if len(group) >= work.m], sorted(left)


def _settled(work: Work, classes: list[RowList], left: RowList, hold_back: bool) -> RowList:
    """Rows that are left join the new class that loses least by it; what clashes with all of them gets counterfeits, or waits."""
    alone: RowList = []
    for row in left:
        free = [i for i, group in enumerate(classes) if not _clashes(work, row, group)]
        if free:
            costs = [
                float(work.joined([row], classes[i])[0]) * (len(classes[i]) + 1)
                - work.loss(classes[i]) * len(classes[i])
                for i in free
            ]
            classes[free[int(np.argmin(costs))]].append(row)
        else:
            alone.append(row)
    if hold_back:
        return alone
    while alone:
        group = alone[:1]
        for row in alone[1:]:
            if len(group) < work.m and not _clashes(work, row, group):
                group.append(row)
        alone = [row for row in alone if row not in group]
        values = [work.value_of(row) for row in group]
        more = filled(work, values, work.m)[len(values) :]
        classes.append([*group, *(work.fake(value, group[0]) for value in more)])
    return []


def _clashes(work: Work, row: int, group: RowList) -> bool:
    return work.known.clash(work.value_of(row), (work.value_of(other) for other in group))


def _by_value(work: Work, block: RowList) -> Bucket:
    stock: Bucket = {}
    for row in block:
        stock.setdefault(work.value_of(row), []).append(row)
    return stock


def _require_mixed(work: Work, stock: Bucket) -> None:
    """Refuse a first release in which a value is too frequent."""
    total = sum(map(len, stock.values()))
    for column, attribute in enumerate(work.known.names[: work.known.parts.shape[1]]):
        counts: Counter[int] = Counter()
        for value, rows in sorted(stock.items()):
            counts[int(work.known.parts[value, column])] += len(rows)
        most = max(counts.values())
        if most * work.m > total:
            top = min(v for v in stock if counts[int(work.known.parts[v, column])] == most)
            name = work.known.frame[attribute].cast(str)[top]
            raise InfeasibleError(
                f"m-invariance with m = {work.m} allows no value more than {total // work.m} of {total} records at the first "
                f"release, and {most} have {raw(name, 'one value')} as {attribute}; "
                + (f"take m = {total // most} or less." if total // most >= 2 else 'use guard = "batching".'),
                witness=name,
            )
